"""What the engine remembers, as one bundle, and the views of it that a plan depends on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from costguard.cases import Case, Phase, subject_in
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import VersionConflictError
from costguard.domain.money import totals
from costguard.engine.ledger.approvals import (
    DISOWNED_KIND,
    ApprovalRepository,
    DisownedRepository,
    ExpediteRepository,
    NonceRepository,
)
from costguard.engine.ledger.audit.audit import AuditTrail
from costguard.engine.ledger.caps import CapRepository, cap_name
from costguard.engine.ledger.cases import CASE_KIND, CaseRepository
from costguard.engine.ledger.intents import ENGAGED, IntentRepository
from costguard.engine.ledger.learned import ACCOUNT_KIND, IdentityRepository, LaunchRepository
from costguard.engine.ledger.notices import NOTICE_KIND
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.ledger.publications import PolicyRepository
from costguard.engine.ledger.runs import RunRepository
from costguard.engine.ledger.savings import MeterRepository, SavingsRepository
from costguard.engine.ledger.snoozes import SNOOZE, SWITCH, KeepTagRepository, KillSwitch, SnoozeRepository
from costguard.engine.ledger.starts import StartRepository
from costguard.planning import CapUse, ClaimView, NoticeView
from costguard.planning.rails import account_key
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.ports.records import Name

if TYPE_CHECKING:
    from costguard.engine.ledger.budgets import BillRepository, FreezeRepository
    from costguard.engine.ledger.exceptions import ExceptionRepository

_LOG = logging.getLogger(__name__)
_LEAST_SETTLED_FIRST = (
    None,
    Outcome.UNKNOWN,
    Outcome.ACCEPTED,
    Outcome.TOOK_EFFECT,
    Outcome.HAD_NO_EFFECT,
    Outcome.REFUSED,
)


@dataclass(frozen=True, slots=True)
class Memory:
    """The repositories above one store."""

    store: RecordStore
    cases: CaseRepository
    caps: CapRepository
    intents: IntentRepository
    outbox: OutboxRepository
    snoozes: SnoozeRepository
    approvals: ApprovalRepository
    haste: ExpediteRepository
    disowned: DisownedRepository
    nonces: NonceRepository
    switch: KillSwitch
    savings: SavingsRepository
    runs: RunRepository
    policies: PolicyRepository
    meter: MeterRepository
    launches: LaunchRepository
    identity: IdentityRepository
    keep_tags: KeepTagRepository
    starts: StartRepository
    audit: AuditTrail

    @classmethod
    def over(cls, store: RecordStore, audit: AuditTrail | None = None) -> Memory:
        """All repositories on `store`; those that write into a run's chains know of each other what they wrote last."""
        audit = audit or AuditTrail(store)
        return cls(
            store=store,
            audit=audit,
            cases=CaseRepository(store, audit),
            caps=CapRepository(store),
            intents=IntentRepository(store, audit),
            outbox=OutboxRepository(store),
            snoozes=SnoozeRepository(store),
            approvals=ApprovalRepository(store),
            haste=ExpediteRepository(store),
            disowned=DisownedRepository(store),
            nonces=NonceRepository(store),
            switch=KillSwitch(store),
            savings=SavingsRepository(store),
            runs=RunRepository(store),
            policies=PolicyRepository(store),
            meter=MeterRepository(store),
            launches=LaunchRepository(store),
            identity=IdentityRepository(store),
            keep_tags=KeepTagRepository(store, audit),
            starts=StartRepository(store, audit),
        )

    def read_together(self, names: Iterable[Name]) -> Memory:
        """The same memory; these records of it are read now, in one request, and each is given once.

        Raises:
            LedgerError: they could not be read.
        """
        store = ReadTogether(self.store, names)
        return Memory.over(store, self.audit.through(store))

    @property
    def bills(self) -> BillRepository:
        """Those of budgets; loaded for the guard that reads them."""
        from costguard.engine.ledger.budgets import BillRepository

        return BillRepository(self.store)

    @property
    def freezes(self) -> FreezeRepository:
        """Launch freezes, likewise."""
        from costguard.engine.ledger.budgets import FreezeRepository

        return FreezeRepository(self.store)

    @property
    def exceptions(self) -> ExceptionRepository:
        """Exceptions that somebody asked for; loaded where one is."""
        from costguard.engine.ledger.exceptions import ExceptionRepository

        return ExceptionRepository(self.store)


def before_a_claim(guard: str, case: Case, cap: str) -> tuple[Name, ...]:
    """What is read before a case is claimed for an action that counts against `cap`."""
    return SWITCH, (CASE_KIND, case.key), cap_name(guard, cap)


def before_a_call(case: Case) -> tuple[Name, ...]:
    """What is read after that, just before a call: people's word, the notice that it rests on, who has the subject."""
    subject = str(case.subject)
    notices = (rung.notice for rung in case.climbed[::-1] if rung.verb is Verb.WARN)
    notice = next(notices, "")
    return (
        SWITCH,
        (SNOOZE, subject),
        (DISOWNED_KIND, subject),
        (ACCOUNT_KIND, account_key(case.subject)),
        (ENGAGED, subject),
        *(((NOTICE_KIND, notice),) if notice else ()),
    )


class ReadTogether:
    """A store of which these records were read in one request: each is given once, and none after a write.

    What is asked a second time is asked of the store again, as is what was not named: naming too little costs requests,
    and never an answer. For one thread.
    """

    def __init__(self, store: RecordStore, names: Iterable[Name]) -> None:
        wanted = list(names)
        found = store.get_each(wanted)
        self._store = store
        self._read = {name: found.get(name) for name in wanted}

    @property
    def durable(self) -> bool:
        """Whether records outlive the process."""
        return self._store.durable

    def get(self, kind: str, key: str) -> Record | None:
        """The record as it was read with the others, or as it is now."""
        return self._read.pop((kind, key)) if (kind, key) in self._read else self._store.get(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        """The same of several."""
        return {key: record for (_, key), record in self.get_each((kind, key) for key in keys).items()}

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        """The same of several kinds."""
        wanted = list(names)
        known = {name: self._read.pop(name) for name in dict.fromkeys(wanted) if name in self._read}
        left = [name for name in wanted if name not in known]
        found = {name: record for name, record in known.items() if record is not None}
        return {**found, **(self._store.get_each(left) if left else {})}

    def put(self, record: Record, expect_version: int) -> Record:
        """Write to the store."""
        self._read.clear()
        return self._store.put(record, expect_version)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Ask the store."""
        return self._store.query(kind, prefix, after)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        """Write to the store."""
        self._read.clear()
        self._store.transact(operations)

    def close(self) -> None:
        """Nothing: the store is somebody else's."""


def claim_views(memory: Memory, cases: tuple[Case, ...], notices: Mapping[str, NoticeView]) -> dict[str, ClaimView]:
    """What became of the intents of every claim under way, by decision id.

    A decision to tell has its notice, and never an intent: of thousands that wait for a channel none is looked up.
    """
    views: dict[str, ClaimView] = {}
    claims = [case for case in cases if case.phase is not Phase.WAITING and case.decision_id not in notices]
    found = memory.intents.of_decisions(claims)
    for case in claims:
        intents = found.get(case.case_id, ())
        if intents:
            answered = (intent.receipt.request_id for intent in intents if intent.receipt is not None)
            least = min((intent.outcome for intent in intents), key=_LEAST_SETTLED_FIRST.index)
            views[case.decision_id] = ClaimView(least, next(answered, ""))
    return views


def notice_views(memory: Memory, cases: tuple[Case, ...], now: datetime) -> dict[str, NoticeView]:
    """What became of every current notice, by decision id; only a proven delivery has a time."""
    views: dict[str, NoticeView] = {}
    for decision, notice in memory.outbox.get_many(case.decision_id for case in cases if case.decision_id).items():
        proven = notice.delivered_at if notice.proven else None
        views[decision] = NoticeView(
            proven, dead=notice.state == "dead", late=notice.is_late(now), announced=notice.announced
        )
    return views


def cap_views(memory: Memory, guard: str, caps: Iterable[str], now: datetime) -> dict[str, CapUse]:
    """What was used of each of these caps, by name (`planning.cap_of`), in the last 24 hours."""
    views: dict[str, CapUse] = {}
    for name in caps:
        reserved = memory.caps.reservations(guard, name, now)
        hourly = totals(one.cost for one in reserved if one.cost is not None)
        subjects = frozenset(subject_in(one.claim.key) for one in reserved if one.claim is not None)
        views[name] = CapUse(len(reserved), hourly, subjects)
    return views


def note(memory: Memory, before: Case, after: Case, run_id: str, now: datetime) -> None:
    """Write how a case stands after something was sent; where another run moved it meanwhile, that stands.

    What was sent is in its intent or in the outbox, and later runs find out by looking.
    """
    try:
        memory.cases.commit(before, after, run_id=run_id, now=now)
    except VersionConflictError:
        _LOG.warning("another run moved this case meanwhile", extra={"case": before.case_id})
