"""What the executors of all clouds are: one resource a call, never a retry, and only over a session made for acting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar, Generic, TypeVar

from typing_extensions import assert_never

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import InvalidInputError, RefusedError
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.kit.core.session import Session
from costguard.providers.kit.iam.permissions import OnlyFor, Purpose, SessionT

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


def require_acting(session: str, *, may_change: bool) -> None:
    """`session` is the name of its class.

    Raises:
        InvalidInputError: it is read-only: whoever wires this would act where nothing may be done.
    """
    if not may_change:
        message = f"an executor needs a session made for acting ({session}.acting()), this one is read-only"
        raise InvalidInputError(message)


def require_instance(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` changes the instance of its case, one of `clouds`; `needs` names what that is (`an AWS instance`).

    Raises:
        RefusedError: it does not.
    """
    if action.copies:
        raise unfit(action, "it copies no set of volumes")
    _require_subject(action, clouds, needs)


def require_set(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` is about several volumes of the instance of its case, which one call copies together.

    Raises:
        RefusedError: it is not.
    """
    _require_subject(action, clouds, needs)
    for volume in action.copies:
        if volume.kind != "volume" or volume.shard != action.subject.shard or not volume.native_id:
            raise unfit(action, f"{volume} is no volume of its account and region")


def require_volume(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` is about a volume of one of `clouds`, in the account and region of the instance of its case.

    Raises:
        RefusedError: it is not.
    """
    if action.copies:
        raise unfit(action, "it copies no set of volumes")
    _require(action, "volume", clouds, needs)
    if action.resource.shard != action.subject.shard:
        raise unfit(action, "volume and instance must be of one account and region")


def _require_subject(action: Action, clouds: Collection[str], needs: str) -> None:
    if action.resource != action.subject:
        raise unfit(action, "it must change the instance of its case")
    _require(action, "instance", clouds, needs)


def _require(action: Action, kind: str, clouds: Collection[str], needs: str) -> None:
    if action.resource.kind != kind or action.resource.cloud not in clouds:
        raise unfit(action, f"it needs {needs}")
    if not action.resource.native_id or not action.resource.region:
        raise unfit(action, "its resource has no id or region")  # an empty list of ids could mean all


def unfit(action: Action, why: str) -> RefusedError:
    """The error of an action that was not sent, as it does not fit."""
    message = f"{action.verb.value} of {action.resource}: not sent: {why}"
    return RefusedError(message, code="Unfit")
