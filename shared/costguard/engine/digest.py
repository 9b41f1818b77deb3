"""The weekly digest, gathered from the ledger, kept as one page, told once; and what any report is made of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from costguard.cases import Case
from costguard.domain.actions import Outcome
from costguard.domain.errors import ProviderError
from costguard.domain.savings import SavingsReport
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.engine.ledger.learned import ShadowRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice, news
from costguard.engine.ledger.runs import DigestRecord, LookRepository
from costguard.engine.notify.delivery import DIGEST, deliver_due
from costguard.engine.policy.in_force import decided_by
from costguard.engine.run.run import NOTICE_WAIT
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, no_progress
from costguard.engine.run.snapshots import Looked
from costguard.engine.savings import savings_report
from costguard.planning.shadows import ShadowStanding
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, Notifier, ObjectStore
from costguard.report.charts.of_facts import burn_charts, busy_chart, idle_charts
from costguard.report.charts.values import Chart
from costguard.report.facts import Refusal, ReportFacts, ScanSnapshot, figures_of
from costguard.report.notices.digest import Kept, digest_notice
from costguard.report.notices.machines import Notice as Worded
from costguard.report.page.page import Drawing, report_page
from costguard.report.words.sentences import Language

_MOST_REFUSALS = 200


def report_facts(memory: Memory, since: datetime, now: datetime, *, taken: Sequence[Looked] = ()) -> ReportFacts:
    """What the ledger holds of every guard's last run; looks `taken` now are in the place of those.

    Raises:
        LedgerError: memory failed.
    """
    looks = LookRepository(memory.store)
    anew = {one.look.guard: one for one in taken}
    kept = (anew[guard].look if guard in anew else looks.get(guard) for guard in GUARDS)
    budgets = next((one.budgets for one in taken if one.budgets is not None), None)
    cases = memory.cases.active(*GUARDS)
    return ReportFacts(
        at=now,
        since=since,
        looks=tuple(look for look in kept if look is not None),
        budgets=looks.budgets() if budgets is None else budgets,
        cases=tuple(sorted(cases, key=lambda case: (case.opened_at, case.case_id))),
        refusals=tuple(_refusals(memory, cases, since)),
        saved=savings_report(memory, since, now, now),
        live=bool(taken),
        shadows=tuple(_followed(memory, looks)),
        policies=decided_by(memory, {guard: one.policy for guard, one in anew.items()}),
    )


def of_owner(facts: ReportFacts, owner: str) -> ReportFacts:
    """The part of it that is one owner's. Budgets and gaps are everybody's."""

    def own(look: ScanSnapshot) -> ScanSnapshot:
        return replace(look, sights=tuple(one for one in look.sights if one.owner == owner), held={})

    return replace(
        facts,
        owner=owner,
        looks=tuple(map(own, facts.looks)),
        cases=tuple(case for case in facts.cases if case.owner == owner),
        refusals=tuple(one for one in facts.refusals if one.owner == owner),
        saved=None if facts.saved is None else _saved_of(facts.saved, owner),
        before=None,
        shadows=tuple(_shadow_of(one, owner) for one in facts.shadows),
    )


def _followed(memory: Memory, looks: LookRepository) -> Iterator[ShadowStanding]:
    """Those that the last run of their guard still followed."""
    for one in ShadowRepository(memory.store).all():
        look = looks.get(one.guard)
        if look is not None and one.at >= look.at:
            yield one


def _shadow_of(standing: ShadowStanding, owner: str) -> ShadowStanding:
    return replace(standing, differences=tuple(each for each in standing.differences if each.owner == owner))


def look_now(world: RunContext, *, progress: Progress = no_progress) -> Looked:
    """One look of this guard, with the code its runs look with; nothing is written anywhere."""
    return replace(runner_of(world.guard).shown(world, progress), policy=world.policy.digest)


def _refusals(memory: Memory, cases: Iterable[Case], since: datetime) -> Iterator[Refusal]:
    found = []
    for case in (*cases, *memory.cases.ended(since, *GUARDS)):
        for intent in memory.intents.for_case(case.case_id):
            at = intent.settled_at or intent.claimed_at
            if intent.outcome is Outcome.REFUSED and at >= since:
                found.append(Refusal(at, intent.action.verb, intent.action.subject, case.owner, intent.detail[:300]))
    yield from sorted(found, key=lambda one: (one.at, str(one.subject)), reverse=True)[:_MOST_REFUSALS]


def _saved_of(report: SavingsReport, owner: str) -> SavingsReport:
    from costguard.report.savings.sums import others_of

    entries = tuple(entry for entry in report.entries if entry.owner == owner)
    totals = tuple(replace(total, name="") for total in report.by_owner if total.name == owner)
    return SavingsReport(
        report.since, report.until, report.at, totals=totals, entries=entries, others=others_of(entries)
    )


_LOG = logging.getLogger(__name__)
_BACK = timedelta(days=7)
_HOLDS = timedelta(days=3)  # a digest that is later than that tells of another week
_HTML, _PNG = "text/html; charset=utf-8", "image/png"


class Drawn(Protocol):
    """A chart as a picture; `charts.Picture` is one."""

    @property
    def body(self) -> bytes:
        """The PNG."""

    @property
    def replaced(self) -> Sequence[str]:
        """Labels that no font here could draw."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a digest is made and kept with. `objects` None: the page is kept nowhere; `picture` None: no PNG is made."""

    drawing: Drawing
    picture: Callable[[Chart], Drawn] | None = None
    objects: ObjectStore | None = None


@dataclass(frozen=True, slots=True)
class FirstPage:
    """The first digest, made of what the clouds showed: its page, its notice once it is kept, and what it counted."""

    page: str
    notice: Callable[[Kept], Worded]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ToTell:
    """One notice of a digest: `owner` is empty where it is of all."""

    channel: str
    owner: str
    notice: Worded


@dataclass(frozen=True, slots=True)
class DigestRun:
    """What a digest told and kept. `duplicate`: it was sent before, and nothing was sent again.

    `counts` are of machines and places: `idle`, `unmeasured`, `gaps`.
    """

    run_id: str
    counts: Mapping[str, int] = field(default_factory=dict)
    told: tuple[ToTell, ...] = ()
    kept: Kept = field(default_factory=Kept)
    delivered: int = 0
    duplicate: bool = False


def plan_digest(memory: Memory, policy: Policy, run_id: str, now: datetime, language: Language) -> DigestRun:
    """What would be told; nothing is written and nobody is told.

    Raises:
        LedgerError: memory failed.
    """
    facts = _facts(memory, run_id, now)
    return DigestRun(run_id, _counts(facts), tuple(_to_tell(facts, policy, Kept(), language)))


def run_digest(
    memory: Memory,
    policy: Policy,
    notifier: Notifier,
    clock: Clock,
    run_id: str,
    means: Means,
    language: Language = Language.EN,
) -> DigestRun:
    """One whole digest. A run id that was completed before does nothing: events are delivered more than once.

    A page that could not be kept is said in the notices, and does not keep them back.

    Raises:
        LedgerError: memory failed.
    """
    now = clock.now()
    if not memory.runs.begin(run_id, DIGEST, now):
        return DigestRun(run_id, duplicate=True)
    facts = _facts(memory, run_id, now)
    kept = _kept(facts, run_id, means, language)
    told = tuple(_to_tell(facts, policy, kept, language))
    delivered = _delivered(memory, policy, notifier, clock, run_id, told, language)
    LookRepository(memory.store).keep_digest(DigestRecord(run_id, figures_of(facts), kept.page, len(told)))
    done = DigestRun(run_id, _counts(facts), told, kept, delivered=delivered)
    memory.runs.finish(run_id, digest_summary(done), clock.now())
    return done


def run_first(
    memory: Memory,
    policy: Policy,
    notifier: Notifier,
    clock: Clock,
    run_id: str,
    means: Means,
    first: FirstPage,
    language: Language = Language.EN,
) -> DigestRun:
    """The first digest: the page of day one, kept where every digest's is, told to the default channel.

    Raises:
        LedgerError: memory failed.
    """
    now = clock.now()
    if not memory.runs.begin(run_id, DIGEST, now):
        return DigestRun(run_id, duplicate=True)
    kept = _page_kept(first.page, _name_of(now, run_id), means)
    told = (ToTell(policy.default_channel, "", first.notice(kept)),)
    delivered = _delivered(memory, policy, notifier, clock, run_id, told, language)
    done = DigestRun(run_id, first.counts, told, kept, delivered=delivered)
    memory.runs.finish(run_id, digest_summary(done), clock.now())
    return done


def _delivered(
    memory: Memory,
    policy: Policy,
    notifier: Notifier,
    clock: Clock,
    run_id: str,
    told: Sequence[ToTell],
    language: Language,
) -> int:
    for one in told:
        memory.outbox.enqueue(_notice(one, run_id, clock.now()))
    delivered = deliver_due(
        memory.outbox, notifier, clock, max_wait=NOTICE_WAIT, language=language, most=policy.messages_per_day
    )
    return sum(one.case_key == DIGEST for one in delivered)


def _counts(facts: ReportFacts) -> Mapping[str, int]:
    figures = figures_of(facts)
    return {"idle": figures.idle, "unmeasured": figures.unmeasured, "gaps": len(facts.gaps)}


def digest_summary(done: DigestRun) -> dict[str, Any]:
    """The figures of a digest for logs, metrics and the caller of a function."""
    if done.duplicate:
        return {"run_id": done.run_id, "guard": DIGEST, "duplicate": True}
    return {
        "run_id": done.run_id,
        "guard": DIGEST,
        "duplicate": False,
        "notices": len(done.told),
        "delivered": done.delivered,
        "not_done": 0,
        "pages_kept": int(bool(done.kept.page)),
        "kept_at": done.kept.page,
        **done.counts,
    }


def _facts(memory: Memory, run_id: str, now: datetime) -> ReportFacts:
    before = LookRepository(memory.store).digest_before(run_id)
    facts = report_facts(memory, now - _BACK, now)
    return replace(facts, before=None if before is None else before.figures)


def _to_tell(facts: ReportFacts, policy: Policy, kept: Kept, language: Language) -> Iterator[ToTell]:
    """All of it for the default channel; its own part for every team that has a channel of its own."""
    if policy.default_channel:
        yield ToTell(policy.default_channel, "", digest_notice(facts, kept, language))
    for owner in facts.owners:
        channel = channel_of(owner, policy)
        if channel and channel != policy.default_channel:
            yield ToTell(channel, owner, digest_notice(of_owner(facts, owner), kept, language))


def _kept(facts: ReportFacts, run_id: str, means: Means, language: Language) -> Kept:
    if means.objects is None:
        return Kept()
    name = _name_of(facts.at, run_id)
    kept = _page_kept(report_page(facts, language, means.drawing), name, means)
    chart = _main_chart(facts, language)
    if not kept.page or chart is None or means.picture is None:
        return kept
    try:
        picture = means.picture(chart)
        if picture.replaced:
            _LOG.warning("no font for some labels of a chart", extra={"labels": len(picture.replaced)})
        return replace(kept, chart=means.objects.put(f"{name}.png", picture.body, _PNG))
    except ProviderError as err:
        _LOG.warning("the digest's page could not be kept", extra={"operation": err.operation, "code": err.code})
        return Kept(why_not=str(err))


def _name_of(at: datetime, run_id: str) -> str:
    year, week, _ = at.isocalendar()
    return f"digests/{year}-W{week:02d}-{run_id[:12]}"


def _page_kept(page: str, name: str, means: Means) -> Kept:
    if means.objects is None:
        return Kept()
    try:
        return Kept(page=means.objects.put(f"{name}.html", page.encode(), _HTML))
    except ProviderError as err:
        _LOG.warning("the digest's page could not be kept", extra={"operation": err.operation, "code": err.code})
        return Kept(why_not=str(err))


def _main_chart(facts: ReportFacts, language: Language) -> Chart | None:
    """What costs most: idle machines; else the first budget; else how busy the fleet was."""
    burns = (chart for _, chart in burn_charts(facts, language))
    return next(idle_charts(facts, language), None) or next(burns, None) or busy_chart(facts, language)


def _notice(one: ToTell, run_id: str, now: datetime) -> OutboxNotice:
    notice_id = f"{DIGEST}/{run_id}/{one.channel}/{one.owner}"
    return news(notice_id, one.channel, one.notice, now, case_key=DIGEST, holds_until=now + _HOLDS)
