"""Who we are and whom we may become: the own keys, and roles of other accounts with keys that are renewed in time."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import AccessDeniedError
from costguard.ports import Target
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import account_id, as_documented, named, part, text
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.tencent.core.errors import NO_CREDENTIALS, WRONG_ACCOUNT

OWN = ""
"""The name of the credentials we started with."""

_WHO = "sts:GetCallerIdentity"
_ASSUME = "sts:AssumeRole"
_ROLE_LIFE = timedelta(hours=2)  # what AssumeRole gives unless asked otherwise, and every role allows
_RENEW_AFTER = _ROLE_LIFE * 0.8

Ask = Callable[[str, str, dict[str, Any]], dict[str, Any]]
"""Asks STS, with credentials of a name: an action and its parameters."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the credentials are: the number of the owning account (uin) and the principal's `qcs::` name."""

    account: str
    arn: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Issued:
    keys: Keys
    renew_at: datetime


class Roles:
    """Keys by account. `routes` says by which target an account is entered; it may be shared between sessions.

    `session` is what the sessions of roles are called.
    """

    def __init__(self, ask: Ask, keys: Keys | None, now: Callable[[], datetime], session: str = "costguard") -> None:
        self.routes: dict[str, Target] = {}
        self._ask = ask
        self._own = keys
        self._now = now
        self._session = session
        self._issued: dict[str, _Issued] = {}
        self._identity: Identity | None = None
        self._entering = threading.RLock()
        self._accounts: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    def identity(self) -> Identity:
        """Who we are, asked once.

        Raises:
            AccessDeniedError: no credentials, or Tencent Cloud does not accept them.
        """
        with self._entering:
            if self._identity is None:
                self._identity = self._who(OWN)
            return self._identity

    def keys_of(self, name: str) -> Keys:
        """The keys that go by `name`.

        Raises:
            AccessDeniedError: there are none.
        """
        if name != OWN:
            return self._issued[name].keys
        if self._own is None or not self._own.key_id or not self._own.secret:
            message = f"{_WHO}: there are no Tencent Cloud keys"
            raise AccessDeniedError(message, operation=_WHO, code=NO_CREDENTIALS)
        return self._own

    def enter(self, account: str) -> str:
        """The name of the credentials for `account`, obtained or renewed if need be.

        Raises:
            AccessDeniedError: no role to assume, it may not be assumed, or it leads to another account.
        """
        identity = self.identity()
        target = self.routes.get(account)
        if account in (OWN, identity.account) and (target is None or not target.own_role):
            return OWN
        if target is None or not target.role:
            message = (
                f"the credentials belong to account {identity.account}, not {account}, "
                "and the target names no role to assume there"
            )
            raise AccessDeniedError(message, operation=_ASSUME, code="NoRole")
        with self._entering:
            one_at_a_time = self._accounts[account]
        with one_at_a_time:
            issued = self._issued.get(account)
            if issued is None or self._now() >= issued.renew_at:
                self._assume(target, account)
        return account

    def forget(self, account: str) -> None:
        """The keys of this account are no longer accepted."""
        with self._entering:
            one_at_a_time = self._accounts[account]
        with one_at_a_time:
            issued = self._issued.get(account)
            if issued is not None:  # kept for whoever is about to send with them; renewed on entering
                self._issued[account] = _Issued(issued.keys, self._now())

    def _assume(self, target: Target, account: str) -> None:
        role = target.role.replace("{account}", account)
        arn = role if role.startswith("qcs::") else f"qcs::cam::uin/{account}:roleName/{role}"
        parameters: dict[str, Any] = {
            "RoleArn": arn,
            "RoleSessionName": self._session,
            "DurationSeconds": int(_ROLE_LIFE.total_seconds()),
        }
        if target.external_id:
            parameters["ExternalId"] = target.external_id
        # counted from before the request: by our clock the keys are then older than they are, never younger
        renew_at = self._now() + _RENEW_AFTER
        answer = self._ask(OWN, "AssumeRole", parameters)
        with as_documented(_ASSUME):
            made = part(answer, "Credentials")
            keys = Keys(named(made, "TmpSecretId"), named(made, "TmpSecretKey"), named(made, "Token"))
        trial = f"{account}?"  # not yet the account's name: nothing else can be called with it
        self._issued[trial] = _Issued(keys, renew_at)
        try:
            found = self._who(trial).account
        finally:
            del self._issued[trial]
        if found != account:
            message = f"role {without_secrets(arn)} leads to account {found}, not {account}: not used"
            raise AccessDeniedError(message, operation=_ASSUME, code=WRONG_ACCOUNT)
        self._issued[account] = _Issued(keys, renew_at)

    def _who(self, name: str) -> Identity:
        answer = self._ask(name, "GetCallerIdentity", {})
        with as_documented(_WHO):
            return Identity(
                account=account_id(answer, "AccountId"),
                arn=without_secrets(text(answer, "Arn")),
                kind=without_secrets(text(answer, "Type")),
            )
