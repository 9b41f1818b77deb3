"""NEVER rule 16: people's approval of one decision, for a while, to be used once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases.answering import Vote, enough, live_votes, with_vote
from costguard.domain.errors import InvalidInputError
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore

_KIND = "approval"


@dataclass(frozen=True, slots=True)
class Approval:
    """People's yes to exactly one decision: `votes` of different people, of whom `needed` must agree."""

    decision_id: str
    votes: tuple[Vote, ...]
    needed: int = 1
    used_at: datetime | None = None

    def valid(self, now: datetime) -> bool:
        """Whether it may be used: enough people agree at this moment."""
        return self.used_at is None and enough(self.votes, self.needed, now)

    @property
    def by(self) -> str:
        """Everybody whose word it is."""
        return ", ".join(vote.by for vote in self.votes)


class ApprovalRepository:
    """The latest approval of each decision."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def grant(self, decision_id: str, by: str, now: datetime, valid_for: timedelta) -> Approval:
        """Approve a decision in one person's name alone; takes the place of an earlier approval of the same one.

        Raises:
            InvalidInputError: it would never be valid.
        """
        if valid_for <= timedelta(0):
            message = f"an approval must be valid for some time, not {valid_for}"
            raise InvalidInputError(message)
        approval = Approval(decision_id, (Vote(by, now, now + valid_for),))

        def attempt() -> None:
            record = self._store.get(_KIND, decision_id)
            self._write(approval, record.version if record is not None else 0, now, "granted", by)

        until_uncontested(attempt, f"the approval of decision {decision_id}")
        return approval

    def vote(self, decision_id: str, vote: Vote, needed: int, now: datetime) -> Approval:
        """Add one person's yes to what others said, and return all of it. The most ever `needed` stays needed.

        Saying the same again changes nothing; after a use everybody has to say so anew.
        """

        def attempt() -> Approval:
            record = self._store.get(_KIND, decision_id)
            before = value_of(Approval, record) if record is not None else None
            version = record.version if record is not None else 0
            if before is None or before.used_at is not None:
                before = Approval(decision_id, ())
            after = Approval(decision_id, with_vote(before.votes, vote, now), max(before.needed, needed))
            if after.votes != before.votes or after.needed != before.needed:
                self._write(after, version, now, "granted" if after.valid(now) else "voted", vote.by)
            return after

        return until_uncontested(attempt, f"the approval of decision {decision_id}")

    def votes(self, decision_id: str, now: datetime) -> tuple[Vote, ...]:
        """Who has said yes to a decision and may still be counted."""
        record = self._store.get(_KIND, decision_id)
        approval = value_of(Approval, record) if record is not None else None
        return live_votes(approval.votes, now) if approval is not None and approval.used_at is None else ()

    def valid(self, decision_id: str, now: datetime) -> Approval | None:
        """The approval of a decision if it may be used now. Looking uses nothing up."""
        record = self._store.get(_KIND, decision_id)
        approval = value_of(Approval, record) if record is not None else None
        return approval if approval is not None and approval.valid(now) else None

    def valid_among(self, decision_ids: Iterable[str], now: datetime) -> Iterator[str]:
        """Those of these decisions whose approval may be used now."""
        for decision_id, record in self._store.get_many(_KIND, decision_ids).items():
            if value_of(Approval, record).valid(now):
                yield decision_id

    def use(self, decision_id: str, now: datetime) -> bool:
        """Use the approval up; of several that try, one gets True. False when there is none to use."""

        def attempt() -> bool:
            record = self._store.get(_KIND, decision_id)
            approval = value_of(Approval, record) if record is not None else None
            if record is None or approval is None or not approval.valid(now):
                return False
            self._write(replace(approval, used_at=now), record.version, now, "used", approval.by)
            return True

        return until_uncontested(attempt, f"the approval of decision {decision_id}")

    def _write(self, approval: Approval, expected: int, now: datetime, did: str, by: str) -> None:
        facts = {
            "decision_id": approval.decision_id,
            "did": did,
            "by": by,
            "expires_at": min(vote.expires_at for vote in approval.votes).isoformat(),
            "votes": len(approval.votes),
            "needed": approval.needed,
        }
        entry = AuditEntry(now, OPERATOR, "approval", AuditWhat.APPROVAL, facts)
        self._audit.commit([Put(record_of(_KIND, approval.decision_id, approval), expected)], entry)
