"""Who asked for a machine to be started again, how often that was tried, and what it came to.

One word a machine at a time. What was sent is in the intents, each under an id made of the word and its number: a
process that dies between its intent and this record has sent, or may have, what no other will send again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from costguard.cases import Case
from costguard.domain.errors import VersionConflictError
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, RecordStore, VersionCheck

_KIND = "start"
VOLUMES = "volumes"
"""What the intent of a stop keeps of its machine: the disks it had."""

STOPPED = "stopped"
"""What an answer to the news of a stop names in the place of a decision, with a number: no step waits behind it."""

START_REASON = "start again"
"""What a Keep is for that is written with the word, where its giver says nothing else."""


class StartPhase(str, Enum):
    """`SENT`: one request has left, and from there on only looking tells. The last two are final."""

    WAITING = "waiting"
    SENT = "sent"
    STARTED = "started"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Start `ref_text` (a whole id) again, which the case stopped in this run of it; tried until `until`.

    `tries` counts the requests that have left, `reason` is why the last one, or none, did it.
    """

    ref_text: str
    case_key: str
    case_id: str
    run_epoch: str
    by: str
    asked_at: datetime
    until: datetime
    phase: StartPhase = StartPhase.WAITING
    tries: int = 0
    reason: Reason | None = None
    version: int = 0

    @property
    def subject(self) -> ResourceRef:
        """The machine."""
        return ResourceRef.parse(self.ref_text)

    @property
    def is_open(self) -> bool:
        """Whether anything may still come of it."""
        return self.phase in {StartPhase.WAITING, StartPhase.SENT}

    def action_id(self, number: int) -> str:
        """The id of one try: the same for whoever makes it."""
        text = "\n".join((self.case_id, self.ref_text, self.asked_at.isoformat(), str(number)))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class StartRepository:
    """The latest word for each machine."""

    def __init__(self, store: RecordStore, audit: AuditTrail | None = None) -> None:
        self._store = store
        self._audit = audit or AuditTrail(store)

    def of(self, ref_text: str) -> tuple[StartRequest | None, VersionCheck]:
        """The latest word for a machine, and the record of it, which must stay as it is for what rests on this."""
        record = self._store.get(_KIND, ref_text)
        check = VersionCheck(_KIND, ref_text, record.version if record is not None else 0)
        if record is None:
            return None, check
        return replace(value_of(StartRequest, record), version=record.version), check

    def sent_for(self, case: Case) -> StartRequest | None:
        """The word by which this case's machine was started, or may have been."""
        request, _ = self.of(str(case.subject))
        left = request is not None and request.phase in {StartPhase.SENT, StartPhase.STARTED}
        return request if left and request is not None and request.case_id == case.case_id else None

    def ask(self, wanted: StartRequest) -> StartRequest:
        """Write a word, unless one for the machine is open; returns the one that stands."""

        def attempt() -> StartRequest:
            known, check = self.of(wanted.ref_text)
            if known is not None and known.is_open and wanted.asked_at < known.until:
                return known
            self._write(wanted, check.version, OPERATOR, wanted.asked_at)
            return wanted

        return until_uncontested(attempt, f"the start of {wanted.ref_text}")

    def open(self) -> Iterator[StartRequest]:
        """Every word that something may still come of."""
        found = (replace(value_of(StartRequest, one), version=one.version) for one in self._store.query(_KIND))
        return (request for request in found if request.is_open)

    def move(self, before: StartRequest, after: StartRequest, run_id: str, now: datetime) -> bool:
        """Write `after` in the place of `before`; False where another run, or somebody's new word, was first."""
        try:
            self._write(after, before.version, run_id, now)
        except VersionConflictError:
            return False
        return True

    def _write(self, request: StartRequest, expected: int, run_id: str, now: datetime) -> None:
        kept = replace(request, version=0)
        facts = {
            "resource": request.ref_text,
            "case_id": request.case_id,
            "by": request.by,
            "phase": request.phase.value,
            "tries": request.tries,
            "until": request.until.isoformat(),
            "reason": request.reason.code.value if request.reason is not None else "",
        }
        entry = AuditEntry(now, run_id, str(request.subject.shard), AuditWhat.START, facts)
        self._audit.commit([Put(record_of(_KIND, request.ref_text, kept), expected)], entry)
