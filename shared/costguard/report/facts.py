"""What a report is made of: what the last runs saw, as values small enough to keep, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from costguard.cases import Case
from costguard.domain.actions import Verb
from costguard.domain.findings import Standing, Verdict
from costguard.domain.money import Money, totals
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap
from costguard.domain.savings import SavingsReport
from costguard.planning.shadows import ShadowStanding
from costguard.report.guard_views import VIEWS, Subjects
from costguard.report.policy.provenance import DecidedBy

_IDLE = frozenset({ReasonCode.IDLE, ReasonCode.BUDGET_IDLE})
_NEVER_RUN = frozenset({ReasonCode.NOT_RUNNING})
_ONE_DAY = timedelta(days=1)
_QUIET = 5.0  # percent, below which rules call a card idle unless they say otherwise
_UNSEEN = frozenset({"accounts", "regions", "inventory"})
STALE = timedelta(days=2)
"""A look that old no longer says how things are; every guard runs at least daily."""


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """What the last run of a guard found of one thing.

    `hourly` is its list price, None where unknown. `busiest` is the highest GPU utilisation in the window that was
    judged, in percent, `coverage` its worst share of samples. `busy` are each day's highest from `first_day` on, None
    where nothing was measured. `standing` is what may be done about an idle machine's cost, None where it is not known.
    """

    ref: ResourceRef
    check: str
    verdict: Verdict
    reason: Reason
    name: str = ""
    instance_type: str = ""
    owner: str = ""
    rule: str = ""
    hourly: Money | None = None
    price_source: str = ""
    busiest: float | None = None
    coverage: float | None = None
    since: datetime | None = None
    first_day: date | None = None
    busy: tuple[float | None, ...] = ()
    hourly_net: Money | None = None
    standing: Standing | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it was measured and idle, whatever may be done about it."""
        if self.verdict is Verdict.VIOLATION:
            return self.reason.code in _IDLE
        said = self.reason.facts.get("utilisation", "")
        return self.verdict is Verdict.EXEMPT and said == ReasonCode.IDLE.value

    @property
    def may_not_be_touched(self) -> bool:
        """Whether it is shown and no more."""
        return self.verdict is Verdict.EXEMPT

    @property
    def runs(self) -> bool:
        """Whether it ran when it was looked at."""
        return self.reason.code not in _NEVER_RUN

    @property
    def a_day(self) -> Money | None:
        """What it costs a day while it runs."""
        return None if self.hourly is None else self.hourly.times(24)

    @property
    def quiet_since(self) -> datetime | None:
        """From when on every day was quiet; the first such day is left out, as it may not have been measured whole."""
        quiet = 0
        for value in reversed(self.busy):
            if value is None or value > _QUIET:
                break
            quiet += 1
        if self.first_day is None or quiet <= 1:
            return None
        day = self.first_day + _ONE_DAY * (len(self.busy) - quiet + 1)
        return datetime(day.year, day.month, day.day, tzinfo=timezone.utc)

    def on(self, day: date) -> float | None:
        """The highest utilisation of that day, None where it was not measured."""
        if self.first_day is None:
            return None
        place = (day - self.first_day).days
        return self.busy[place] if 0 <= place < len(self.busy) else None


@dataclass(frozen=True, slots=True)
class ScanSnapshot:
    """What one run of a guard saw. `seen` counts its subjects; `held` counts what rails kept from happening, by reason.

    `left_out` are findings that were too many to keep.
    """

    guard: str
    run_id: str
    at: datetime
    seen: int
    sights: tuple[ResourceSnapshot, ...] = ()
    gaps: tuple[Gap, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    due: int = 0
    rehearsed: int = 0
    left_out: int = 0
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """Where one budget stood at `at`. `days` are what each day of the period cost, as far as every bill holds it whole.

    `best`, `expected` and `worst` are what the period will have cost. `unread` are clouds whose bill is not in it.
    """

    name: str
    at: datetime
    period: str
    first: date
    last: date
    amount: Money
    spent: Money
    days: tuple[tuple[date, Decimal], ...] = ()
    billed: Money | None = None
    burn_per_hour: Money | None = None
    best: Money | None = None
    expected: Money | None = None
    worst: Money | None = None
    unread: tuple[str, ...] = ()
    doubts: tuple[Reason, ...] = ()

    @property
    def share(self) -> Decimal:
        """Spent of the amount, 1 is all of it."""
        return self.spent.amount / self.amount.amount if self.amount.amount else Decimal(1)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was to be done and was not: refused by a cloud, with its own words."""

    at: datetime
    verb: Verb
    subject: ResourceRef
    owner: str
    detail: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What the next digest compares with. Amounts are by currency."""

    at: datetime
    wasted_a_day: tuple[Money, ...] = ()
    untouchable_a_day: tuple[Money, ...] = ()
    idle: int = 0
    untouchable: int = 0
    unmeasured: int = 0
    running: int = 0
    saved: tuple[Money, ...] = ()
    unseen: int = 0
    spent_shares: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Everything that a report or a digest says, from `since` to `at`.

    `owner` None means all. `idle_since` is when each idle machine was first found so. `before` are the figures of the
    digest before this one. `policies` are those that the looks were judged by, `shadows` the rules in the shadow that
    the last runs followed.
    """

    at: datetime
    since: datetime
    looks: tuple[ScanSnapshot, ...] = ()
    budgets: tuple[BudgetSnapshot, ...] = ()
    cases: tuple[Case, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    saved: SavingsReport | None = None
    before: Figures | None = None
    owner: str | None = None
    live: bool = False
    shadows: tuple[ShadowStanding, ...] = ()
    policies: tuple[DecidedBy, ...] = ()

    def look(self, guard: str) -> ScanSnapshot | None:
        """The last look of a guard."""
        return next((one for one in self.looks if one.guard == guard), None)

    @property
    def machines(self) -> tuple[ResourceSnapshot, ...]:
        """Every machine that was seen, once: as the idle guard judged it, else as a budget's steps did."""
        return tuple(_once(self._sights(Subjects.MACHINES)))

    @property
    def running(self) -> tuple[ResourceSnapshot, ...]:
        """The machines that ran."""
        return tuple(one for one in self.machines if one.runs)

    @property
    def idle(self) -> tuple[ResourceSnapshot, ...]:
        """What is idle, dearest first in each currency, also what may not be touched."""
        return tuple(sorted((one for one in self.running if one.is_idle), key=_dearest))

    @property
    def unmeasured(self) -> tuple[ResourceSnapshot, ...]:
        """Running machines that nobody can say anything of."""
        return tuple(one for one in self.running if _not_measured(one))

    @property
    def keys(self) -> tuple[ResourceSnapshot, ...]:
        """What was found of keys."""
        return self._sights(Subjects.KEYS)

    @property
    def networks(self) -> tuple[ResourceSnapshot, ...]:
        """What was found of networks."""
        return self._sights(Subjects.NETWORKS)

    @property
    def ways_in(self) -> tuple[ResourceSnapshot, ...]:
        """Findings that name a whole way from the internet into a machine."""
        return tuple(one for one in self.networks if one.reason.facts.get("path"))

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the last runs could not read, each once."""
        return tuple(dict.fromkeys(gap for look in self.looks for gap in look.gaps))

    @property
    def unseen(self) -> tuple[Gap, ...]:
        """Gaps that hide whole accounts or regions, each place once."""
        by_place = {str(gap.shard): gap for gap in self.gaps if gap.what in _UNSEEN}
        return tuple(by_place[place] for place in sorted(by_place))

    @property
    def stale(self) -> tuple[ScanSnapshot, ...]:
        """Looks that are too old to say how things are now."""
        return tuple(one for one in self.looks if self.at - one.at > STALE)

    @property
    def held(self) -> Mapping[str, int]:
        """How often each rail kept something from happening in the last runs."""
        counted: dict[str, int] = {}
        for look in self.looks:
            for code, count in look.held.items():
                counted[code] = counted.get(code, 0) + count
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    @property
    def owners(self) -> tuple[str, ...]:
        """Everybody whom anything here belongs to."""
        named = {one.owner for one in (*self.machines, *self.keys, *self.networks) if one.owner}
        return tuple(sorted(named | {case.owner for case in self.cases if case.owner}))

    @property
    def has_nothing(self) -> bool:
        """Whether no run has left anything to tell of."""
        return not self.looks and not self.budgets and not self.cases

    def idle_since(self, sight: ResourceSnapshot) -> datetime | None:
        """Since when it is known to be idle: by its case, by the window that was judged, or by quiet days before."""
        opened = [case.opened_at for case in self.cases if case.subject == sight.ref and case.check == sight.check]
        known = (sight.since, sight.quiet_since)
        return min((*opened, *(each for each in known if each is not None)), default=None)

    def looks_at(self, subjects: Subjects) -> tuple[ScanSnapshot, ...]:
        """The last looks of the guards that are about these, in the order of their table."""
        looks = (self.look(guard) for guard, view in VIEWS.items() if view.subjects is subjects)
        return tuple(look for look in looks if look is not None)

    def _sights(self, subjects: Subjects) -> tuple[ResourceSnapshot, ...]:
        return tuple(one for look in self.looks_at(subjects) for one in look.sights)


def figures_of(facts: ReportFacts) -> Figures:
    """What the next digest is to compare with."""
    idle = facts.idle
    return Figures(
        at=facts.at,
        wasted_a_day=a_day(idle),
        untouchable_a_day=a_day(one for one in idle if one.may_not_be_touched),
        idle=len(idle),
        untouchable=sum(one.may_not_be_touched for one in idle),
        unmeasured=len(facts.unmeasured),
        running=len(facts.running),
        saved=() if facts.saved is None else tuple(total.realised for total in facts.saved.totals),
        unseen=len(facts.unseen),
        spent_shares={one.name: one.share.quantize(Decimal("0.0001")) for one in facts.budgets},
    )


def a_day(sights: Iterable[ResourceSnapshot]) -> tuple[Money, ...]:
    """What these cost a day, one sum a currency; what has no price is in none."""
    return totals(cost for one in sights if (cost := one.a_day) is not None)


def a_day_net(sights: Iterable[ResourceSnapshot]) -> tuple[Money, ...]:
    """The same after discounts; of what no discount is known, nothing is in it."""
    return totals(one.hourly_net.times(24) for one in sights if one.hourly_net is not None)


def days_shown(facts: ReportFacts, most: int = 28) -> tuple[date, ...]:
    """The days that any machine was measured on, without a hole, at most so many of the last."""
    known = [
        one.first_day + _ONE_DAY * at
        for one in facts.machines
        if one.first_day is not None
        for at, value in enumerate(one.busy)
        if value is not None
    ]
    if not known:
        return ()
    last = max(known)
    first = max(min(known), last - _ONE_DAY * (most - 1))
    return tuple(first + _ONE_DAY * number for number in range((last - first).days + 1))


def _once(sights: Iterable[ResourceSnapshot]) -> Iterator[ResourceSnapshot]:
    seen: set[ResourceRef] = set()
    for one in sights:
        if one.ref not in seen:
            seen.add(one.ref)
            yield one


def _not_measured(sight: ResourceSnapshot) -> bool:
    if sight.verdict is Verdict.UNMEASURED:
        return True
    said = str(sight.reason.facts.get("utilisation", ""))
    return sight.verdict is Verdict.EXEMPT and said not in {"", *(code.value for code in _MEASURED)}


_MEASURED = frozenset({ReasonCode.IDLE, ReasonCode.BUSY, ReasonCode.PARTLY_IDLE})


def _dearest(sight: ResourceSnapshot) -> tuple[bool, str, Decimal, str]:
    cost = sight.hourly
    if cost is None:
        return (True, "", Decimal(0), str(sight.ref))
    return (False, cost.currency, -cost.amount, str(sight.ref))
