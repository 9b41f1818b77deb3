"""Sessions that sign with keys they hold, and renew those of roles: of a cloud whose SDK does neither well."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from costguard.domain.errors import AccessDeniedError, InvalidInputError, ProviderError
from costguard.domain.refs import Shard
from costguard.providers.kit.core.credentials import NO_CREDENTIALS, Keys
from costguard.providers.kit.core.fields import Fields, as_documented, part
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.session import ASSUME, OWN, WHO, Common, Nature, Session


def no_clock() -> datetime:
    """The clock of a session that enters no account: nobody asks it.

    Raises:
        InvalidInputError: somebody does.
    """
    message = "this session takes no roles"
    raise InvalidInputError(message)


@dataclass(frozen=True, slots=True)
class Entered:
    """Keys for one account; `renew_at` None: those we started with, which nobody here can renew."""

    account: str
    keys: Keys
    renew_at: datetime | None = None


class SigningSession(Session[Entered, Gate]):
    """A session that signs with keys it holds; None: there are none. `now` is the clock on the wall."""

    def __init__(
        self, nature: Nature, endpoint: str, keys: Keys | None, now: Callable[[], datetime], common: Common
    ) -> None:
        self._keys = keys
        self.now = now
        super().__init__(nature, endpoint, common)

    def _begin(self) -> None:
        super()._begin()
        self._entered: dict[str, Entered] = {}

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """As of every session; a read whose role's keys are no longer accepted is sent once more, with fresh ones."""
        self._check(service, operation, parameters)
        region = shard.region or self.home_region
        entered = self._enter(shard.account)
        try:
            return self._send(entered, region, service, operation, parameters)
        except ProviderError as err:
            changes = self._operations[f"{service}:{operation}"].changes_something
            if entered.renew_at is None or not self._nature.is_stale(err) or changes:
                raise
            self._forget(entered)  # they ended early, or our clock is behind
        return self._send(self._enter(shard.account), region, service, operation, parameters)

    def _new_gate(self) -> Gate:
        return Gate(self._operations, may_change=self.may_change, may_dry_run=self.may_dry_run)

    def _own(self, operation: str = WHO) -> Entered:
        if self._keys is None or not self._keys.key_id or not self._keys.secret:
            message = f"{operation}: there are no credentials for {self._nature.name}"
            raise AccessDeniedError(message, operation=operation, code=NO_CREDENTIALS)
        return Entered(OWN, self._keys)

    def _held(self, account: str) -> Entered | None:
        entered = self._entered.get(account)
        return entered if entered is None or entered.renew_at is None or self.now() < entered.renew_at else None

    def _forget(self, entered: Entered) -> None:
        with self._entering:
            if self._entered.get(entered.account) is entered:
                del self._entered[entered.account]

    def _take(self, account: str, asked: Mapping[str, Any]) -> tuple[Entered, Callable[[], Entered]]:
        asked_at = self.now()
        answer = self._ask_sts(self._own(), "AssumeRole", asked)
        with as_documented(ASSUME):
            entered = Entered(account, *self._issued(part(answer, "Credentials"), asked_at))

        def keep() -> Entered:
            self._entered[account] = entered
            return entered

        return entered, keep

    @abstractmethod
    def _issued(self, credentials: Fields, asked_at: datetime) -> tuple[Keys, datetime]:
        """The keys in an answer of AssumeRole that was asked for at a time, and when to renew them."""
