"""What people hold back: snoozes, keep links and tags, and the kill switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from costguard.domain.errors import InvalidInputError, LedgerError, VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, RecordStore, VersionCheck

SNOOZE = "snooze"


@dataclass(frozen=True, slots=True)
class Snooze:
    """Leave the resource `ref_text` (a whole id) alone before `until`; who asked, why, and when.

    With an `approver` it is an exception that was agreed to, of a machine of `owner`.
    """

    ref_text: str
    until: datetime
    by: str
    reason: str
    at: datetime
    approver: str = ""
    owner: str = ""


class SnoozeRepository:
    """The latest snooze of each resource."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def set(self, snooze: Snooze) -> None:
        """Remember a snooze in the place of any earlier one of the same resource.

        Raises:
            InvalidInputError: not a resource id, or an end that is not after its beginning.
        """
        self._check(snooze)
        self._write(snooze, snooze.at)

    def lengthen(self, snooze: Snooze) -> Snooze:
        """Remember a snooze unless the resource has one that ends no earlier; returns the one that holds.

        Raises:
            InvalidInputError: as `set`.
        """
        self._check(snooze)

        def attempt() -> Snooze:
            record = self._store.get(SNOOZE, snooze.ref_text)
            known = value_of(Snooze, record) if record is not None else None
            if known is not None and known.until >= snooze.until:
                return known
            put = Put(record_of(SNOOZE, snooze.ref_text, snooze), record.version if record is not None else 0)
            self._audit.commit([put], _entry(snooze, snooze.at))
            return snooze

        return until_uncontested(attempt, f"the snooze of {snooze.ref_text}")

    def clear(self, ref_text: str, by: str, now: datetime) -> bool:
        """End a snooze now; False if none was active."""
        record = self._store.get(SNOOZE, ref_text)
        snooze = value_of(Snooze, record) if record is not None else None
        if snooze is None or snooze.until <= now:
            return False
        self._write(replace(snooze, until=now, by=by, reason="cleared"), now)
        return True

    def all(self) -> Mapping[str, Snooze]:
        """The latest of each resource, by its id, whether it still holds or not."""
        snoozes = (value_of(Snooze, record) for record in self._store.query(SNOOZE))
        return {snooze.ref_text: snooze for snooze in snoozes}

    def active(self, now: datetime) -> Mapping[str, Snooze]:
        """Every snooze whose end is after `now`, by resource id."""
        return {ref: snooze for ref, snooze in self.all().items() if snooze.until > now}

    def of(self, ref_text: str, now: datetime) -> tuple[Snooze | None, VersionCheck]:
        """The active snooze of one resource, and what fails a transaction once anybody says otherwise."""
        record = self._store.get(SNOOZE, ref_text)
        snooze = value_of(Snooze, record) if record is not None else None
        active = snooze if snooze is not None and snooze.until > now else None
        return active, VersionCheck(SNOOZE, ref_text, record.version if record is not None else 0)

    @staticmethod
    def _check(snooze: Snooze) -> None:
        ResourceRef.parse(snooze.ref_text)
        if snooze.until <= snooze.at:
            message = f"a snooze ends after it begins; {snooze.until.isoformat()} is not after {snooze.at.isoformat()}"
            raise InvalidInputError(message)

    def _write(self, snooze: Snooze, now: datetime) -> None:
        def attempt() -> None:
            record = self._store.get(SNOOZE, snooze.ref_text)
            put = Put(record_of(SNOOZE, snooze.ref_text, snooze), record.version if record is not None else 0)
            self._audit.commit([put], _entry(snooze, now))

        until_uncontested(attempt, f"the snooze of {snooze.ref_text}")


def _entry(snooze: Snooze, now: datetime) -> AuditEntry:
    facts = {"resource": snooze.ref_text, "until": snooze.until.isoformat(), "by": snooze.by, "reason": snooze.reason}
    if snooze.approver:
        facts["approver"] = snooze.approver
    return AuditEntry(now, OPERATOR, "snooze", AuditWhat.SNOOZE, facts)


_KEEP_TAGS_KIND = "keep_tag"


@dataclass(frozen=True, slots=True)
class KeepTag:
    """What was last written on the machine `ref_text`, or was to be: a Keep until then.

    `was` is what stood there of ours before; None once it is known to be gone. `problem` says why it is not known to be
    written; empty where it is.
    """

    ref_text: str
    until: datetime
    at: datetime
    was: datetime | None = None
    problem: str = ""


class KeepTagRepository:
    """The latest of each machine."""

    def __init__(self, store: RecordStore, audit: AuditTrail | None = None) -> None:
        self._store = store
        self._audit = audit or AuditTrail(store)

    def all(self) -> Mapping[str, KeepTag]:
        """By the machine's whole id."""
        return {record.key: value_of(KeepTag, record) for record in self._store.query(_KEEP_TAGS_KIND)}

    def note(self, tag: KeepTag, run_id: str, unchanged: Sequence[VersionCheck] = ()) -> bool:
        """Write it, with an entry of the audit; False where somebody else wrote, or `unchanged` did not hold."""
        record = self._store.get(_KEEP_TAGS_KIND, tag.ref_text)
        put = Put(record_of(_KEEP_TAGS_KIND, tag.ref_text, tag), record.version if record is not None else 0)
        shard = ResourceRef.parse(tag.ref_text).shard
        facts = {"resource": tag.ref_text, "until": tag.until.isoformat(), "problem": tag.problem}
        try:
            self._audit.commit([put, *unchanged], AuditEntry(tag.at, run_id, str(shard), AuditWhat.KEEP_TAG, facts))
        except VersionConflictError:
            return False
        return True

    def settle(self, tag: KeepTag, run_id: str, now: datetime, problem: str = "") -> None:
        """What came of it."""
        was = tag.was if problem else None
        self.note(replace(tag, at=now, was=was, problem=problem), run_id)


_KEEP_LINKS_KIND = "keep_link"


@dataclass(frozen=True, slots=True)
class _Used:
    at: datetime
    decision_id: str


class KeepLinkRepository:
    """Remembers links by a digest of their token, which is itself no way to use one."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def used(self, token: str) -> bool:
        """Whether it was used before."""
        return self._store.get(_KEEP_LINKS_KIND, _key(token)) is not None

    def use(self, token: str, decision_id: str, now: datetime) -> bool:
        """Use it up; of several that try, one gets True."""
        try:
            self._store.transact([Put(record_of(_KEEP_LINKS_KIND, _key(token), _Used(now, decision_id)), 0)])
        except VersionConflictError:
            return False
        return True


def _key(token: str) -> str:
    return sha256(token.encode()).hexdigest()[:32]


SWITCH = ("switch", "all")


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
        return state, VersionCheck(*SWITCH, version)

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
        put = Put(record_of(*SWITCH, SwitchState(paused, by, reason, now)), self._read()[1])
        facts = {"paused": paused, "by": by, "reason": reason}
        self._audit.commit([put], AuditEntry(now, OPERATOR, "switch", AuditWhat.SWITCH, facts))

    def _read(self) -> tuple[SwitchState, int]:
        record = self._store.get(*SWITCH)
        if record is None:
            return SwitchState(paused=False), 0
        if not isinstance(record.body.get("paused"), bool):
            message = f"the kill switch cannot be read: {record.body.get('paused')!r} is neither on nor off"
            raise LedgerError(message)
        return value_of(SwitchState, record), record.version
