"""NEVER rule 16: an owner's approval of one decision, for a while, to be used once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.errors import InvalidInputError
from costguard.engine.repositories.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.repositories.codec import record_of, value_of
from costguard.engine.repositories.contention import until_uncontested
from costguard.ports import Put, RecordStore

_KIND = "approval"


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's yes to exactly one decision."""

    decision_id: str
    by: str
    granted_at: datetime
    expires_at: datetime
    used_at: datetime | None = None

    def valid(self, now: datetime) -> bool:
        """Whether it may still be used."""
        return self.used_at is None and now < self.expires_at


class ApprovalRepository:
    """The latest approval of each decision."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def grant(self, decision_id: str, by: str, now: datetime, valid_for: timedelta) -> Approval:
        """Approve a decision; takes the place of an earlier approval of the same one.

        Raises:
            InvalidInputError: it would never be valid.
        """
        if valid_for <= timedelta(0):
            message = f"an approval must be valid for some time, not {valid_for}"
            raise InvalidInputError(message)
        approval = Approval(decision_id, by, now, now + valid_for)

        def attempt() -> None:
            record = self._store.get(_KIND, decision_id)
            self._write(approval, record.version if record is not None else 0, now, "granted")

        until_uncontested(attempt, f"the approval of decision {decision_id}")
        return approval

    def valid(self, decision_id: str, now: datetime) -> Approval | None:
        """The approval of a decision if it may be used now. Looking uses nothing up."""
        record = self._store.get(_KIND, decision_id)
        approval = value_of(Approval, record) if record is not None else None
        return approval if approval is not None and approval.valid(now) else None

    def use(self, decision_id: str, now: datetime) -> bool:
        """Use the approval up; of several that try, one gets True. False when there is none to use."""

        def attempt() -> bool:
            record = self._store.get(_KIND, decision_id)
            approval = value_of(Approval, record) if record is not None else None
            if record is None or approval is None or not approval.valid(now):
                return False
            self._write(replace(approval, used_at=now), record.version, now, "used")
            return True

        return until_uncontested(attempt, f"the approval of decision {decision_id}")

    def _write(self, approval: Approval, expected: int, now: datetime, did: str) -> None:
        facts = {
            "decision_id": approval.decision_id,
            "did": did,
            "by": approval.by,
            "expires_at": approval.expires_at.isoformat(),
        }
        entry = AuditEntry(now, OPERATOR, "approval", AuditWhat.APPROVAL, facts)
        self._audit.commit([Put(record_of(_KIND, approval.decision_id, approval), expected)], entry)
