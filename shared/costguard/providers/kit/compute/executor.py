"""What the executors of all clouds are: one resource a call, never a retry, and only over a session made for acting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from typing_extensions import assert_never

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.kit.core.changes import require_acting, unfit
from costguard.providers.kit.core.session import Session
from costguard.providers.kit.iam.purposes import OnlyFor, Purpose, SessionT

DECISION_TAG, CASE_TAG = "costguard:decision-id", "costguard:case"
"""What marks a copy as ours."""

_SessionT = TypeVar("_SessionT", bound=Session[Any, Any])


class Executor(ABC, Generic[_SessionT]):
    """`ActionExecutor` for one cloud; one resource a call, never a retry."""

    def __init__(self, session: _SessionT) -> None:
        """Take a session made for acting.

        Raises:
            InvalidInputError: `session` is read-only: whoever wires this would act where nothing may be done.
        """
        require_acting(type(session).__name__, may_change=session.may_change)
        self._session = session

    def execute(self, action: Action) -> Receipt:
        """Start `action`; return once the cloud has accepted it. Accepted is not done.

        Raises:
            OutcomeUnknownError: the call may have taken effect; describe before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused, or the action does not fit its resource; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        verb = action.verb
        if verb is Verb.STOP:
            return self._stop(action)
        if verb is Verb.START:
            return self._start(action)
        if verb is Verb.TERMINATE:
            return self._terminate(action)
        if verb is Verb.SNAPSHOT:
            return self._snapshot(action)
        if verb is Verb.WARN:
            raise unfit(action, "warning people is not the cloud's business")
        if verb is Verb.MEND:
            raise unfit(action, "keys and networks are changed through clients of their own")
        assert_never(verb)

    @abstractmethod
    def _stop(self, action: Action) -> Receipt:
        """Shut the machine down as its owner would, without force."""

    @abstractmethod
    def _start(self, action: Action) -> Receipt:
        """Start the machine again."""

    @abstractmethod
    def _terminate(self, action: Action) -> Receipt:
        """End the machine for good."""

    @abstractmethod
    def _snapshot(self, action: Action) -> Receipt:
        """Copy one volume, or the set that the action names where the cloud can copy one."""


class KeepTagger(OnlyFor[SessionT], ABC):
    """Writes the one tag that Costguard writes on a machine: until when people keep it; never a retry.

    The port of that name, from a session that can do nothing else.
    """

    purpose: ClassVar = Purpose.KEEP_TAG

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        """Set the tag, in the place of what it said; the same however often.

        Raises:
            OutcomeUnknownError: it may be set; read the machine before anything else.
            AccessDeniedError: the role lacks the permission of `Feature.KEEP_TAG`.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        return self._write(machine, KEEP_TAG, value)

    @abstractmethod
    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        """Set one tag of one machine."""
