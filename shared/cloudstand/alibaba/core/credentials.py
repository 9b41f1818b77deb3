"""Access keys of users, and the temporary ones that AssumeRole hands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from threading import Lock

from cloudstand.wire.keys import Keys

_USER = "costguard"


@dataclass(frozen=True, slots=True)
class Credential:
    """Keys and whose they are. `expires_at` None is a user's; a role's session has a role and a session name."""

    keys: Keys
    account: str
    role: str = ""
    session: str = ""
    expires_at: datetime | None = None

    @property
    def arn(self) -> str:
        """How the cloud names the caller."""
        if self.role:
            return f"acs:ram::{self.account}:assumed-role/{self.role}/{self.session}"
        return f"acs:ram::{self.account}:user/{_USER}"


class Credentials:
    """One RAM user in each account, and the sessions begun since. Serves many threads.

    Root keys have no place here: the cloud lets no root account assume a role.
    """

    def __init__(self, accounts: Sequence[str]) -> None:
        self._lock = Lock()
        self._begun = 0
        self._users = {account: Credential(_keys_of_user(account), account) for account in accounts}
        self._known = {user.keys.key_id: user for user in self._users.values()}

    def user(self, account: str) -> Credential:
        """The user of one account.

        Raises:
            KeyError: there is no such account.
        """
        return self._users[account]

    def find(self, key_id: str) -> Credential | None:
        """Whose key this is."""
        with self._lock:
            return self._known.get(key_id)

    def begin(self, account: str, role: str, session: str, expires_at: datetime) -> Credential:
        """A session of a role, with keys of its own."""
        with self._lock:
            self._begun += 1
            words = ("session", account, role, session, str(self._begun))
            keys = Keys(f"STS.{_made_up(12, *words)}", _made_up(22, "secret", *words), f"{_made_up(48, *words)}+/==")
            begun = self._known[keys.key_id] = Credential(keys, account, role, session, expires_at)
            return begun


def _keys_of_user(account: str) -> Keys:
    return Keys(f"LTAI{_made_up(10, 'key', account)}", _made_up(15, "secret", account))


def _made_up(size: int, *words: str) -> str:
    return blake2b("/".join(words).encode(), digest_size=size).hexdigest()
