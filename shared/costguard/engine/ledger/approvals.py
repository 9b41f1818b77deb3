"""What people agree to: approvals, asking for haste, single-use links, and answers that were disowned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases.answering import Vote, enough, live_votes, with_vote
from costguard.domain.answers import AnswerRef
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, RecordStore, VersionCheck

_KIND = "approval"


@dataclass(frozen=True, slots=True)
class Approval:
    """People's yes to exactly one decision: `votes` of different people, of whom `needed` must agree.

    `apart`: one of them has to be an approver apart from its owner and from whoever asked, see `enough`.
    """

    decision_id: str
    votes: tuple[Vote, ...]
    needed: int = 1
    used_at: datetime | None = None
    apart: bool = False

    def valid(self, now: datetime) -> bool:
        """Whether it may be used: enough people agree at this moment."""
        return self.used_at is None and enough(self.votes, self.needed, now, apart=self.apart)

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

    def vote(self, decision_id: str, vote: Vote, needed: int, now: datetime, *, apart: bool = False) -> Approval:
        """Add one person's yes to what others said, and return all of it. The most that was ever needed stays needed.

        Saying the same again changes nothing; after a use everybody has to say so anew.
        """

        def attempt() -> Approval:
            record = self._store.get(_KIND, decision_id)
            before = value_of(Approval, record) if record is not None else None
            version = record.version if record is not None else 0
            if before is None or before.used_at is not None:
                before = Approval(decision_id, ())
            votes, most = with_vote(before.votes, vote, now), max(before.needed, needed)
            after = Approval(decision_id, votes, most, apart=before.apart or apart)
            if after != before:
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
            "roles": ", ".join(vote.role.value or "unlisted" for vote in approval.votes),
            "approver_needed": approval.apart,
        }
        entry = AuditEntry(now, OPERATOR, "approval", AuditWhat.APPROVAL, facts)
        self._audit.commit([Put(record_of(_KIND, approval.decision_id, approval), expected)], entry)


_EXPEDITE_KIND = "haste"  # key: `AnswerRef` as text, so that those of one case stand together


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
            record = self._store.get(_EXPEDITE_KIND, str(of))
            before = value_of(ExpediteRequest, record) if record is not None else ExpediteRequest(of, ())
            after = ExpediteRequest(of, with_vote(before.votes, vote, now), max(before.needed, needed))
            if after != before:
                put = Put(record_of(_EXPEDITE_KIND, str(of), after), record.version if record is not None else 0)
                self._audit.commit([put], _entry(after, vote.by, now))
            return after

        return until_uncontested(attempt, f"the wish to stop {of} now")

    def of_case(self, case_id: str, now: datetime) -> tuple[ExpediteRequest, ...]:
        """What is wanted of one case, and by whom, as far as it still counts."""
        found = (value_of(ExpediteRequest, record) for record in self._store.query(_EXPEDITE_KIND, f"{case_id}/"))
        return tuple(request for request in found if live_votes(request.votes, now))

    def granted(self, now: datetime) -> frozenset[AnswerRef]:
        """The notices whose stop enough people want now."""
        found = (value_of(ExpediteRequest, record) for record in self._store.query(_EXPEDITE_KIND))
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


_NONCES_KIND = "nonce"
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
            record = self._store.get(_NONCES_KIND, key)
            known = value_of(_Nonces, record).taken if record is not None else ()
            live = tuple(taken for taken in known if now - taken.at < KEPT_FOR)
            if any(taken.nonce == nonce for taken in live):
                return False
            if len(live) >= _MOST:
                raise UnavailableError("too many signed requests within a few minutes; try again later")
            put = record_of(_NONCES_KIND, key, _Nonces((*live, _Taken(nonce, now))))
            self._store.transact([Put(put, record.version if record is not None else 0)])
            return True

        return until_uncontested(attempt, "the nonces")


DISOWNED_KIND = "disowned"


@dataclass(frozen=True, slots=True)
class Disowned:
    """The names of owners that count no more for the resource `ref_text`; who said the last of it, and when."""

    ref_text: str
    owners: tuple[str, ...]
    by: str
    at: datetime


class DisownedRepository:
    """One record for each resource that anybody disowned."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def add(self, ref_text: str, owner: str, by: str, now: datetime) -> bool:
        """Pass `owner` over from now on; False, and nothing changed, where they were passed over before."""

        def attempt() -> bool:
            record = self._store.get(DISOWNED_KIND, ref_text)
            known = value_of(Disowned, record).owners if record is not None else ()
            if owner in known:
                return False
            said = Disowned(ref_text, (*known, owner), by, now)
            put = Put(record_of(DISOWNED_KIND, ref_text, said), record.version if record is not None else 0)
            facts = {"resource": ref_text, "did": "disowned", "owner": owner, "by": by}
            self._audit.commit([put], AuditEntry(now, OPERATOR, "disowned", AuditWhat.SNOOZE, facts))
            return True

        return until_uncontested(attempt, f"whose {ref_text} is not")

    def of(self, ref_text: str) -> tuple[frozenset[str], VersionCheck]:
        """The names passed over for one resource, and what fails a transaction once anybody adds to them."""
        record = self._store.get(DISOWNED_KIND, ref_text)
        names = frozenset(value_of(Disowned, record).owners) if record is not None else frozenset[str]()
        return names, VersionCheck(DISOWNED_KIND, ref_text, record.version if record is not None else 0)

    def all(self) -> Mapping[str, frozenset[str]]:
        """By resource id the names that count no more."""
        found = (value_of(Disowned, record) for record in self._store.query(DISOWNED_KIND))
        return {disowned.ref_text: frozenset(disowned.owners) for disowned in found}
