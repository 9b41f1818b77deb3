"""Who asked not to wait any longer for a stop that a notice announced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from costguard.cases.answering import Vote, enough, live_votes, with_vote
from costguard.domain.answers import AnswerRef
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore

_KIND = "haste"  # key: `AnswerRef` as text, so that those of one case stand together


@dataclass(frozen=True, slots=True)
class ExpediteRequest:
    """Who wants the stop that one notice announced now; `needed` of them must agree."""

    of: AnswerRef
    votes: tuple[Vote, ...]
    needed: int = 1


class ExpediteRepository:
    """What people said to each notice. It ends no wait but that of the stop behind the notice, see `cases.advance`."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def vote(self, of: AnswerRef, vote: Vote, needed: int, now: datetime) -> ExpediteRequest:
        """Add one person's word to what others said, and return all of it. The most ever `needed` stays needed."""

        def attempt() -> ExpediteRequest:
            record = self._store.get(_KIND, str(of))
            before = value_of(ExpediteRequest, record) if record is not None else ExpediteRequest(of, ())
            after = ExpediteRequest(of, with_vote(before.votes, vote, now), max(before.needed, needed))
            if after != before:
                put = Put(record_of(_KIND, str(of), after), record.version if record is not None else 0)
                self._audit.commit([put], _entry(after, vote.by, now))
            return after

        return until_uncontested(attempt, f"the wish to stop {of} now")

    def of_case(self, case_id: str, now: datetime) -> tuple[ExpediteRequest, ...]:
        """What is wanted of one case, and by whom, as far as it still counts."""
        found = (value_of(ExpediteRequest, record) for record in self._store.query(_KIND, f"{case_id}/"))
        return tuple(request for request in found if live_votes(request.votes, now))

    def granted(self, now: datetime) -> frozenset[AnswerRef]:
        """The notices whose stop enough people want now."""
        found = (value_of(ExpediteRequest, record) for record in self._store.query(_KIND))
        return frozenset(request.of for request in found if enough(request.votes, request.needed, now))


def _entry(request: ExpediteRequest, by: str, now: datetime) -> AuditEntry:
    done = enough(request.votes, request.needed, now)
    facts = {
        "case_id": request.of.case_id,
        "decision_id": request.of.decision_id,
        "did": "asked to stop now" if done else "voted to stop now",
        "by": by,
        "votes": len(request.votes),
        "needed": request.needed,
    }
    return AuditEntry(now, OPERATOR, "haste", AuditWhat.APPROVAL, facts)
