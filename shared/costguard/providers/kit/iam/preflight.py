"""Permissions, learnt from answers: of dry runs where a cloud has them, and elsewhere of reads for next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError, ProviderError
from costguard.domain.refs import Shard
from costguard.ports import Permit
from costguard.providers.kit.iam.operations import Operation

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
