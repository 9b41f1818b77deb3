"""Who may call: the accounts of one organisation, their keys, and the temporary ones that AssumeRole gives out."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b, sha256
from threading import Lock

from cloudstand.tencent.core.errors import ApiError
from cloudstand.wire.keys import Keys

_ROLE_ARN = re.compile(r"qcs::cam::uin/(\d+):(?:roleName/([\w+=,.@-]+)|role/(?:tencentcloudServiceRole/)?(\d+))")
LONGEST_SESSION = timedelta(seconds=43_200)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose key it is. `role` and `session` are those of an assumed role, `assumed_by` the account it began in."""

    account: str
    keys: Keys
    role: str = ""
    session: str = ""
    assumed_by: str = ""
    expires_at: datetime | None = None

    @property
    def role_id(self) -> str:
        """The number of the role."""
        return role_id(self.account, self.role)


class Accounts:
    """Serves many threads. The first account leads the organisation; `role` may be assumed in each of them."""

    def __init__(self, accounts: Sequence[str], *, role: str, external_id: str) -> None:
        self.accounts = tuple(accounts)
        self._role = role
        self._external_id = external_id
        self._keys = {account: _keys_of(account) for account in self.accounts}
        self._identities = {keys.key_id: Identity(account, keys) for account, keys in self._keys.items()}
        self._issued = 0
        self._lock = Lock()

    @property
    def management(self) -> str:
        """The account that leads the organisation."""
        return self.accounts[0]

    def keys_of(self, account: str) -> Keys:
        """The lasting key of an account."""
        return self._keys[account]

    def identity(self, key_id: str) -> Identity | None:
        """Whose key this is; None when nobody's."""
        with self._lock:
            return self._identities.get(key_id)

    def assume(
        self, arn: str, session: str, external_id: str, lasts: timedelta, by: Identity, now: datetime
    ) -> Identity:
        """A temporary identity in the account of the role.

        Raises:
            ApiError: there is no such role, or it may not be assumed so.
        """
        account = self._account_of(arn)
        if lasts > LONGEST_SESSION or lasts <= timedelta(0):
            raise ApiError("InvalidParameter.OverTimeError", "DurationSeconds is too long.", "过期时间超过阈值。")
        if self._external_id and not hmac.compare_digest(external_id.encode(), self._external_id.encode()):
            raise ApiError("UnauthorizedOperation", "the role may not be assumed: ExternalId differs", "未授权操作。")
        with self._lock:
            self._issued += 1
            keys = _temporary_keys(account, session, self._issued)
            expires_at = (now + lasts).replace(microsecond=0)
            identity = Identity(account, keys, self._role, session, by.assumed_by or by.account, expires_at)
            self._identities[keys.key_id] = identity
        return identity

    def _account_of(self, arn: str) -> str:
        found = _ROLE_ARN.fullmatch(arn)
        if found is None:
            raise ApiError("InvalidParameter.ParamError", f"{arn} is no role.", "参数错误。")
        account, name, number = found.groups()
        if account not in self._keys:
            raise ApiError("InvalidParameter.AccountNotAvaliable", f"there is no account {account}.", "账号不存在。")
        if name != self._role and number != role_id(account, self._role):
            raise ApiError("ResourceNotFound.RoleNotFound", "the role does not exist.", "账号对应的角色不存在。")
        return account


def role_id(account: str, role: str) -> str:
    """A role's number, which always belongs to the same name."""
    digest = int.from_bytes(blake2b(f"{account}/{role}".encode(), digest_size=6).digest(), "big")
    return f"46116860184{digest % 10**8:08d}"


def _keys_of(account: str) -> Keys:
    digest = blake2b(account.encode(), digest_size=32).hexdigest()
    return Keys(f"AKID{digest[:32]}", digest[32:])


def _temporary_keys(account: str, session: str, number: int) -> Keys:
    digest = sha256(f"{account}/{session}/{number}".encode()).hexdigest()
    token = sha256(f"token/{digest}".encode()).hexdigest() * 3
    return Keys(f"AKID{digest[:32]}", digest[32:], token)
