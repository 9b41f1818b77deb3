"""Requests that were taken already: each signed request counts once, however often it is sent.

Nonces stand in 256 records, by their first two letters; whoever adds one takes the old ones of its record away, so that
nothing grows and nothing has to be swept by itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.errors import UnavailableError
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore

_KIND = "nonce"
KEPT_FOR = timedelta(minutes=15)  # the window is 5 minutes either way, and two instances' clocks may differ
_MOST = 500  # in one record, some 50 KB: 128,000 signed requests within the window


@dataclass(frozen=True, slots=True)
class _Taken:
    nonce: str
    at: datetime


@dataclass(frozen=True, slots=True)
class _Nonces:
    taken: tuple[_Taken, ...] = ()


def nonce_of(signature: str, timestamp: str) -> str:
    """What a signed request is known by."""
    return hashlib.sha256(f"{timestamp}\n{signature}".encode()).hexdigest()


class NonceRepository:
    """Remembers what was taken, for as long as its signature would be accepted."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def take(self, nonce: str, now: datetime) -> bool:
        """True for the first who takes it, False for everybody after.

        Raises:
            UnavailableError: so many were taken lately that no more can be remembered.
        """

        def attempt() -> bool:
            key = nonce[:2]
            record = self._store.get(_KIND, key)
            known = value_of(_Nonces, record).taken if record is not None else ()
            live = tuple(taken for taken in known if now - taken.at < KEPT_FOR)
            if any(taken.nonce == nonce for taken in live):
                return False
            if len(live) >= _MOST:
                raise UnavailableError("too many signed requests within a few minutes; try again later")
            put = record_of(_KIND, key, _Nonces((*live, _Taken(nonce, now))))
            self._store.transact([Put(put, record.version if record is not None else 0)])
            return True

        return until_uncontested(attempt, "the nonces")
