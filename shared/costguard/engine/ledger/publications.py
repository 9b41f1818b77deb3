"""Which policy was published when, by whom and what it loosens; who agreed to it; and the last policy that was valid.

A publication is a record of its own and keeps its number. The pointer is moved by compare-and-set: of two people who
publish at once one is told to look again. The last valid policy, kept whole, is what a run falls back to while the
current one is broken.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.answers import AnswerRef
from costguard.domain.errors import InvalidInputError, LedgerError, VersionConflictError
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import PolicyText, Put, RecordStore

CODE_VALID_FOR = timedelta(minutes=15)
MOST_TRIES = 5  # of eight digits: one in 20 million
_KIND, _POINTER, _CODE = "policy_publication", "policy_pointer", "policy_code"
_CURRENT = "current"
_REF = re.compile(r"publication([1-9][0-9]{0,7})", re.ASCII)  # no case has such an id: those are 16 hexadecimal digits


@dataclass(frozen=True, slots=True)
class ApproverWord:
    """One approver's verified word for one publication. `via` says how it was verified that it is theirs."""

    by: str
    at: datetime
    via: str


@dataclass(frozen=True, slots=True)
class Publication:
    """One move of the pointer to the bundle `digest`, kept at `address`.

    `base` is the bundle in force at the time, empty where none was published and none remembered. `loosened` are the
    first loosenings in words; `loosens`, `tightens` and `otherwise` count all differences. `in_force_at` is when a run
    first decided by it.
    """

    seq: int
    digest: str
    address: str
    by: str
    at: datetime
    base: str = ""
    note: str = ""
    rollback: bool = False
    effective_at: datetime | None = None
    loosened: tuple[str, ...] = ()
    loosens: int = 0
    tightens: int = 0
    otherwise: int = 0
    agreed: tuple[ApproverWord, ...] = ()
    in_force_at: datetime | None = None


def ref_of(publication: Publication) -> AnswerRef:
    """What a button to approve it carries: its number and its hash, so that it speaks for this publication only."""
    return AnswerRef(f"publication{publication.seq}", publication.digest)


def seq_of(of: AnswerRef) -> int | None:
    """The number of the publication that such a button is about; None where it is about a case."""
    found = _REF.fullmatch(of.case_id)
    return int(found[1]) if found is not None else None


@dataclass(frozen=True, slots=True)
class _Pointer:
    seq: int
    digest: str


@dataclass(frozen=True, slots=True)
class _Code:
    """A code that was sent to one approver for one publication; the code itself is not kept."""

    digest: str
    sent_at: datetime
    tries: int = 0


class PublicationRepository:
    """Publications in order, and the pointer."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def latest(self) -> Publication | None:
        """The publication that the pointer names; None before the first.

        Raises:
            LedgerError: pointer and publication do not fit together.
        """
        record = self._store.get(_POINTER, _CURRENT)
        if record is None:
            return None
        pointer = value_of(_Pointer, record)
        found = self.get(pointer.seq)
        if found is None or found.digest != pointer.digest:
            message = f"the pointer to the published policy is damaged: publication {pointer.seq} is not what it names"
            raise LedgerError(message)
        return found

    def get(self, seq: int) -> Publication | None:
        """One publication by its number, from 1."""
        record = self._store.get(_KIND, _key(seq))
        return value_of(Publication, record) if record is not None else None

    def all(self) -> tuple[Publication, ...]:
        """Every publication, the first one first."""
        return tuple(value_of(Publication, record) for record in self._store.query(_KIND))

    def in_force(self) -> Publication | None:
        """The last publication that a run has decided by."""
        last = self.latest()
        for seq in range(last.seq if last is not None else 0, 0, -1):
            found = self.get(seq)
            if found is not None and found.in_force_at is not None:
                return found
        return None

    def publish(self, after: int, publication: Publication) -> Publication:
        """Move the pointer from publication `after` (0: none yet) to the next one, and return it with its number.

        Raises:
            InvalidInputError: somebody else moved it meanwhile.
        """
        record = self._store.get(_POINTER, _CURRENT)
        before = value_of(_Pointer, record) if record is not None else _Pointer(0, "")
        made = replace(publication, seq=after + 1)
        facts = {
            "did": "rolled_back" if made.rollback else "published",
            "seq": made.seq,
            "by": made.by,
            "from": before.digest,
            "to": made.digest,
            "address": made.address,
            "note": made.note,
            "loosens": made.loosens,
            "effective_at": made.effective_at.isoformat() if made.effective_at is not None else None,
        }
        puts = (
            Put(record_of(_KIND, _key(made.seq), made), 0),
            Put(
                record_of(_POINTER, _CURRENT, _Pointer(made.seq, made.digest)),
                record.version if record is not None else 0,
            ),
        )
        message = "somebody else published meanwhile; look at `costguard policy history`, then publish again"
        if before.seq != after:
            raise InvalidInputError(message)
        try:
            self._audit.commit(puts, _entry(made.at, facts))
        except VersionConflictError as err:
            raise InvalidInputError(message) from err
        return made

    def settle(self, seq: int, now: datetime) -> None:
        """Note that a run decides by this publication; the first time counts. Safe to repeat."""

        def attempt() -> None:
            record = self._store.get(_KIND, _key(seq))
            found = value_of(Publication, record) if record is not None else None
            if record is None or found is None or found.in_force_at is not None:
                return
            facts = {"did": "in_force", "seq": seq, "to": found.digest}
            put = Put(record_of(_KIND, _key(seq), replace(found, in_force_at=now)), record.version)
            self._audit.commit([put], _entry(now, facts))

        until_uncontested(attempt, f"publication {seq}")

    def agree(self, seq: int, agreement: ApproverWord) -> Publication:
        """Add one person's verified word; saying it again changes nothing.

        Raises:
            LedgerError: there is no such publication.
        """

        def attempt() -> Publication:
            record = self._store.get(_KIND, _key(seq))
            if record is None:
                message = f"publication {seq} was never made"
                raise LedgerError(message)
            found = value_of(Publication, record)
            if any(each.by == agreement.by for each in found.agreed):
                return found
            after = replace(found, agreed=(*found.agreed, agreement))
            facts = {"did": "agreed", "seq": seq, "to": found.digest, "by": agreement.by, "via": agreement.via}
            put = Put(record_of(_KIND, _key(seq), after), record.version)
            self._audit.commit([put], _entry(agreement.at, facts))
            return after

        return until_uncontested(attempt, f"publication {seq}")

    def send_code(self, seq: int, person: str, code: str, now: datetime) -> None:
        """Remember that this code goes to this person; an earlier one counts no more."""
        key = _code_key(seq, person)

        def attempt() -> None:
            record = self._store.get(_CODE, key)
            sent = _Code(_code_digest(seq, person, code), now)
            self._store.put(record_of(_CODE, key, sent), record.version if record is not None else 0)

        until_uncontested(attempt, f"the code for {person}")

    def code_fits(self, seq: int, person: str, code: str, now: datetime) -> bool:
        """Whether this is the code that was sent; each look uses up one of its tries, and a right one all of them."""
        key = _code_key(seq, person)

        def attempt() -> bool:
            record = self._store.get(_CODE, key)
            sent = value_of(_Code, record) if record is not None else None
            if record is None or sent is None or sent.tries >= MOST_TRIES:
                return False
            fits = sent.digest == _code_digest(seq, person, code) and now - sent.sent_at <= CODE_VALID_FOR
            tried = replace(sent, tries=MOST_TRIES if fits else sent.tries + 1)
            self._store.put(record_of(_CODE, key, tried), record.version)
            return fits

        return until_uncontested(attempt, f"the code for {person}")


def _entry(at: datetime, facts: Mapping[str, object]) -> AuditEntry:
    return AuditEntry(at, OPERATOR, "policy", AuditWhat.POLICY, facts)


def _key(seq: int) -> str:
    return f"{seq:08}"


def _code_key(seq: int, person: str) -> str:
    return f"{_key(seq)}/{person}"


def _code_digest(seq: int, person: str, code: str) -> str:
    return hashlib.sha256(f"{_code_key(seq, person)}\n{code}".encode()).hexdigest()


_POLICIES_KIND, _PLAIN, _PUBLISHED = "policy", "last_good", "last_good_published"


@dataclass(frozen=True, slots=True)
class GoodPolicy:
    """The files of a policy that passed every check, and when it was last read."""

    files: Mapping[str, str]
    revision: str
    origin: str
    read_at: datetime

    @property
    def text(self) -> PolicyText:
        """As a policy source hands it over."""
        return PolicyText(self.files, self.revision, self.origin)


class PolicyRepository:
    """Remembers one policy; of published ones another, so that no other file can ever stand in for them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.published = PublicationRepository(store)

    def remember(self, text: PolicyText, now: datetime, *, published: bool = False) -> None:
        """Keep `text` as the last good policy; safe to repeat."""
        key = _PUBLISHED if published else _PLAIN

        def attempt() -> None:
            known = self._store.get(_POLICIES_KIND, key)
            good = GoodPolicy(dict(text.files), text.revision, text.origin, now)
            self._store.put(record_of(_POLICIES_KIND, key, good), known.version if known is not None else 0)

        until_uncontested(attempt, "the last good policy")

    def last_good(self, *, published: bool = False) -> GoodPolicy | None:
        """The last one remembered, however old."""
        record = self._store.get(_POLICIES_KIND, _PUBLISHED if published else _PLAIN)
        return value_of(GoodPolicy, record) if record is not None else None
