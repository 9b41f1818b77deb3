"""Permissions, learnt from answers: of dry runs where a cloud has them, and elsewhere of reads for next to nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from costguard.domain.errors import AccessDeniedError, InvalidInputError, OutcomeUnknownError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.ports import CallCount, Caller, Permit
from costguard.providers.kit.core.pacing import clock_skew
from costguard.providers.kit.core.session import Session
from costguard.providers.kit.iam.permissions import Operation

MOST_TRIED = 3
"""Machines asked about: one may be denied by its own tags, as our policies intend."""

NOTHING_TO_ASK_ABOUT = "no machine here to ask about"


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks through `call`, as a session has it, about what `operations` lists.

    `fix_for` says what a person can do about an error; `would_be_allowed` are the codes by which a dry run says that
    the call would have worked.
    """

    call: Callable[..., Any]
    operations: Mapping[str, Operation]
    fix_for: Callable[[ProviderError], str]
    would_be_allowed: Collection[str] = ()

    def read(
        self, shard: Shard, operation: str, parameters: Mapping[str, Any], *, at: Shard | None = None, unless: str = ""
    ) -> Permit:
        """A read: an ordinary answer allows it as well as the word that it would have worked.

        `at` is where to ask, if elsewhere; `unless` is why an ordinary answer proves nothing, where it does not.
        """
        try:
            self._ask(at or shard, operation, parameters)
        except ProviderError as err:
            return self.told(shard, operation, err)
        return self.untold(shard, operation, unless) if unless else self.allowed(shard, operation)

    def tried(self, shard: Shard, operation: str, requests: Iterable[Mapping[str, Any]]) -> Permit:
        """A change as a dry run, on one machine after another until one is allowed.

        Raises:
            OutcomeUnknownError: it was answered as if it had been done.
        """
        found = self.untold(shard, operation, NOTHING_TO_ASK_ABOUT)
        for parameters in requests:
            found = self._dry_run(shard, operation, parameters)
            if found.allowed:
                break
        return found

    def told(self, shard: Shard, operation: str, err: ProviderError) -> Permit:
        """What an error says of the permission; any but two kinds of them says nothing."""
        if err.code in self.would_be_allowed:
            return self.allowed(shard, operation)
        if isinstance(err, AccessDeniedError):
            feature = self._feature(operation)
            return Permit(shard, operation, allowed=False, detail=str(err), fix=self.fix_for(err), feature=feature)
        return self.untold(shard, operation, str(err))

    def allowed(self, shard: Shard, operation: str) -> Permit:
        """It may be done."""
        return Permit(shard, operation, allowed=True, feature=self._feature(operation))

    def untold(self, shard: Shard, operation: str, detail: str, fix: str = "") -> Permit:
        """Nothing is known of it, for this reason."""
        return Permit(shard, operation, allowed=None, detail=detail, fix=fix, feature=self._feature(operation))

    def _dry_run(self, shard: Shard, operation: str, parameters: Mapping[str, Any]) -> Permit:
        try:
            self._ask(shard, operation, {**parameters, "DryRun": True})
        except ProviderError as err:
            return self.told(shard, operation, err)
        message = f"{operation}: a dry run was answered like the change itself, so it may have taken effect"
        raise OutcomeUnknownError(message, operation=operation, code="DryRunIgnored")

    def _ask(self, shard: Shard, operation: str, parameters: Mapping[str, Any]) -> None:
        service, name = operation.split(":")
        self.call(shard, service, name, **parameters)

    def _feature(self, operation: str) -> str:
        return self.operations[operation].feature.value


@dataclass(frozen=True, slots=True)
class Question:
    """One operation and what to ask it with; None where there is nothing to ask about. `at` is where, if elsewhere."""

    operation: str
    parameters: Mapping[str, Any] | None = field(default_factory=dict)
    at: Shard | None = None


_SessionT = TypeVar("_SessionT", bound=Session[Any, Any])


class DryRunPreflight(ABC, Generic[_SessionT]):
    """`Preflight` and `CallLog` of a cloud with dry runs, which check a permission and stop there.

    What a dry run is sent for cannot happen: the session has no way to send a change without `DryRun=true`. Of what
    has none a read asks for next to nothing. `now` is the clock of this machine; `unless` is why an ordinary answer to
    a dry run proves nothing, where it does not.
    """

    operations: ClassVar[Mapping[str, Operation]]
    would_be_allowed: ClassVar[Collection[str]]
    unless: ClassVar[str] = ""

    def __init__(self, session: _SessionT, *, now: Callable[[], datetime]) -> None:
        """Take a session that may ask for dry runs.

        Raises:
            InvalidInputError: `session` may change things: whoever asks first must not be able to.
        """
        if session.may_change or not session.may_dry_run:
            made = f"{type(session).__name__}.dry_running()"
            message = f"a preflight needs a session made for dry runs ({made}), which changes nothing"
            raise InvalidInputError(message)
        self._session = session
        self._now = now
        self._asking = Asking(session.call, self.operations, self._fix_for, self.would_be_allowed)

    def caller(self) -> Caller:
        """Account and ARN of the credentials we started with.

        API: STS GetCallerIdentity, which needs no permission.
        """
        identity = self._session.identity()
        return Caller(self._session.cloud, identity.account, identity.arn)

    def clock_skew(self) -> timedelta | None:
        """From the `Date` header of an answer of STS, which is there even where a wrong clock makes STS refuse.

        The header has whole seconds, so it lies half a second behind on average, and the answer was on its way.
        """
        return clock_skew(self._now, self._ask_time)

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """What scanning asks there, and with `acting` the changes as dry runs on `instances`.

        Not asked: entering accounts and listing them, which `discover` has used to come here.
        """
        found = [self._asked(shard, question) for question in self._reads(shard, instances)]
        return (*found, *(self._changes(shard, instances) if acting else ()))

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation sent, counted where requests leave the process."""
        return self._session.calls_made()

    @abstractmethod
    def _fix_for(self, err: ProviderError) -> str:
        """What a person can do about an error."""

    @abstractmethod
    def _ask_time(self) -> datetime | None:
        """The cloud's clock by an answer of STS; None where no answer told it."""

    @abstractmethod
    def _reads(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Question]:
        """Dry runs where there are some; of the rest the smallest question there is."""

    @abstractmethod
    def _changes(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Permit]:
        """The changes that acting makes, tried."""

    def _asked(self, shard: Shard, question: Question) -> Permit:
        operation, parameters = question.operation, question.parameters
        if parameters is None:
            return self._asking.untold(shard, operation, NOTHING_TO_ASK_ABOUT)
        unless = self.unless if parameters.get("DryRun") else ""
        return self._asking.read(shard, operation, parameters, at=question.at, unless=unless)


def to_try(instances: Sequence[Instance], state: InstanceState) -> Sequence[Instance]:
    """A few machines, those in `state` first: a cloud may refuse a wrong state before all else."""
    return sorted(instances, key=lambda instance: instance.state is not state)[:MOST_TRIED]
