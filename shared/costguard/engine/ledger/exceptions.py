"""Exceptions that are kept in the ledger: what was asked for, and what was agreed to, which is a Keep with an approver.

A question is kept by the case it came from. Agreeing to it uses it up and writes the Keep in one transaction: whatever
heeds a Keep (plans, the last look before a call, tags for other deployments) heeds the exception from that moment on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from costguard.cases.answering import Vote
from costguard.cases.excepting import AskPhase, ExceptionAsk
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.ledger.snoozes import SNOOZE, Snooze
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import IN_LEDGER, Exemption
from costguard.ports import Put, RecordStore

_KIND = "exception_ask"


class ExceptionRepository:
    """The latest question of each case."""

    def __init__(self, store: RecordStore, audit: AuditTrail | None = None) -> None:
        self._store = store
        self._audit = audit or AuditTrail(store)

    def of(self, case_id: str) -> ExceptionAsk | None:
        """What was last asked for in a case."""
        return self._read(case_id)[0]

    def all(self) -> Iterator[ExceptionAsk]:
        """Every question, whatever came of it."""
        return (value_of(ExceptionAsk, record) for record in self._store.query(_KIND))

    def ask(self, wanted: ExceptionAsk) -> ExceptionAsk | None:
        """Write a question, unless one is open in that case; returns that."""

        def attempt() -> ExceptionAsk | None:
            known, version = self._read(wanted.case_id)
            if known is not None and known.is_open(wanted.asked_at):
                return known
            self._audit.commit([self._put(wanted, version)], _entry(wanted, "asked", wanted.asked_at))
            return None

        return until_uncontested(attempt, f"the exception of {wanted.ref_text}")

    def agree(self, ask: ExceptionAsk, vote: Vote, said_by: str, now: datetime) -> ExceptionAsk | None:
        """Add an approver's word; with the last that is needed the resource is left alone from now on.

        Returns the question as it is afterwards; None where it is not that one any more, or is kept for longer anyway.
        """

        def attempt() -> ExceptionAsk | None:
            known, version = self._read(ask.case_id)
            if known is None or known.of != ask.of or not known.is_open(now):
                return known if known is not None and known.of == ask.of else None
            after = known.agreed_by(vote, now)
            writes, done = [self._put(after, version)], "voted"
            if after.phase is AskPhase.AGREED:
                record = self._store.get(SNOOZE, ask.ref_text)
                kept = value_of(Snooze, record) if record is not None else None
                if kept is not None and kept.until >= ask.until:
                    return None
                agreed = Snooze(ask.ref_text, ask.until, ask.by, ask.reason, now, said_by, ask.owner)
                writes.append(Put(record_of(SNOOZE, ask.ref_text, agreed), record.version if record is not None else 0))
                done = "agreed"
            self._audit.commit(writes, _entry(after, done, now, vote.by))
            return after

        return until_uncontested(attempt, f"the exception of {ask.ref_text}")

    def opened(self, ask: ExceptionAsk, request: str, now: datetime) -> None:
        """Note where the change of the policy is that was opened for a question; whatever else came of it stays."""

        def attempt() -> None:
            known, version = self._read(ask.case_id)
            if known is None or known.of != ask.of:
                return
            after = replace(known, request=request)
            self._audit.commit([self._put(after, version)], _entry(after, f"opened {request}", now))

        until_uncontested(attempt, f"the exception of {ask.ref_text}")

    def close(self, ask: ExceptionAsk, by: str, now: datetime) -> bool:
        """Take a question back; False where nothing could come of it any more."""

        def attempt() -> bool:
            known, version = self._read(ask.case_id)
            if known is None or known.of != ask.of or not known.is_open(now):
                return False
            closed = replace(known, phase=AskPhase.CLOSED)
            self._audit.commit([self._put(closed, version)], _entry(closed, f"taken back by {by}", now))
            return True

        return until_uncontested(attempt, f"the exception of {ask.ref_text}")

    def _read(self, case_id: str) -> tuple[ExceptionAsk | None, int]:
        record = self._store.get(_KIND, case_id)
        return (None, 0) if record is None else (value_of(ExceptionAsk, record), record.version)

    @staticmethod
    def _put(ask: ExceptionAsk, version: int) -> Put:
        return Put(record_of(_KIND, ask.case_id, ask), version)


def exemption_of(keep: Snooze) -> Exemption:
    """One that was agreed to, as those of a policy are."""
    whose = Selector(resources=(keep.ref_text,))
    return Exemption(whose, keep.owner, keep.reason, keep.approver, keep.until, IN_LEDGER)


def _entry(ask: ExceptionAsk, did: str, now: datetime, approver: str = "") -> AuditEntry:
    facts = {
        "exception": str(ask.of),
        "resource": ask.ref_text,
        "did": did,
        "by": ask.by,
        "until": ask.until.isoformat(),
        "needed": ask.needed,
        "votes": len(ask.votes),
        **({"approver": approver} if approver else {"reason": ask.reason}),
    }
    return AuditEntry(now, OPERATOR, "exception", AuditWhat.APPROVAL, facts)
