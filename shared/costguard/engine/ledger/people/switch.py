"""NEVER rule 20: the kill switch in the ledger. What cannot be read counts as paused, by its caller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore, VersionCheck

_KIND, _KEY = "switch", "all"


@dataclass(frozen=True, slots=True)
class SwitchState:
    """Whether everything is paused, and who last said so, why and when; `at` None means that nobody ever did."""

    paused: bool
    by: str = ""
    reason: str = ""
    at: datetime | None = None


class KillSwitch:
    """One switch for everything that uses this ledger."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def state(self) -> SwitchState:
        """The switch as it is now.

        Raises:
            LedgerError: it cannot be read; act as if it were set.
        """
        return self._read()[0]

    def seen(self) -> tuple[SwitchState, VersionCheck]:
        """The switch as it is now, and what fails a transaction once anybody turns it.

        Raises:
            LedgerError: it cannot be read; act as if it were set.
        """
        state, version = self._read()
        return state, VersionCheck(_KIND, _KEY, version)

    def pause(self, by: str, reason: str, now: datetime) -> None:
        """Stop everything that has not been claimed. Always wins over a resume at the same time."""
        until_uncontested(lambda: self._turn(by, reason, now, paused=True), "the kill switch")

    def resume(self, by: str, reason: str, now: datetime) -> None:
        """Go on.

        Raises:
            VersionConflictError: somebody turned the switch at this moment: look again before going on.
        """
        self._turn(by, reason, now, paused=False)

    def _turn(self, by: str, reason: str, now: datetime, *, paused: bool) -> None:
        put = Put(record_of(_KIND, _KEY, SwitchState(paused, by, reason, now)), self._read()[1])
        facts = {"paused": paused, "by": by, "reason": reason}
        self._audit.commit([put], AuditEntry(now, OPERATOR, "switch", AuditWhat.SWITCH, facts))

    def _read(self) -> tuple[SwitchState, int]:
        record = self._store.get(_KIND, _KEY)
        if record is None:
            return SwitchState(paused=False), 0
        if not isinstance(record.body.get("paused"), bool):
            message = f"the kill switch cannot be read: {record.body.get('paused')!r} is neither on nor off"
            raise LedgerError(message)
        return value_of(SwitchState, record), record.version
