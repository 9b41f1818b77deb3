"""What the engine remembers, as one bundle, and the views of it that a plan depends on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from costguard.cases import Case, Phase, subject_in
from costguard.domain.actions import Outcome
from costguard.domain.errors import VersionConflictError
from costguard.domain.money import totals
from costguard.engine.ledger.approvals import (
    ApprovalRepository,
    DisownedRepository,
    ExpediteRepository,
    NonceRepository,
)
from costguard.engine.ledger.audit.audit import AuditTrail
from costguard.engine.ledger.caps import CapRepository
from costguard.engine.ledger.cases import CaseRepository, IntentRepository
from costguard.engine.ledger.learned import IdentityRepository, LaunchRepository
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.ledger.publications import PolicyRepository
from costguard.engine.ledger.runs import RunRepository
from costguard.engine.ledger.savings import MeterRepository, SavingsRepository
from costguard.engine.ledger.snoozes import KeepTagRepository, KillSwitch, SnoozeRepository
from costguard.engine.ledger.starts import StartRepository
from costguard.planning import CapUse, ClaimView, NoticeView
from costguard.ports import RecordStore

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

    @classmethod
    def over(cls, store: RecordStore) -> Memory:
        """All repositories on `store`; those that write into a run's chains know of each other what they wrote last."""
        audit = AuditTrail(store)
        return cls(
            store=store,
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


def claim_views(memory: Memory, cases: tuple[Case, ...], notices: Mapping[str, NoticeView]) -> dict[str, ClaimView]:
    """What became of the intents of every claim under way, by decision id.

    A decision to tell has its notice, and never an intent: of thousands that wait for a channel none is looked up.
    """
    views: dict[str, ClaimView] = {}
    for case in cases:
        if case.phase is Phase.WAITING or case.decision_id in notices:
            continue
        intents = [
            intent for intent in memory.intents.for_case(case.case_id) if intent.action.decision_id == case.decision_id
        ]
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
