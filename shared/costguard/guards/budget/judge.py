"""How far is this budget spent, how sure is that, and where will it end? Never more sure than the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import add

from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import Bill, ExchangeRate, Money, SpendLine, hours, totals
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ScopeRef
from costguard.domain.resources import Gap
from costguard.estimates.billed import Charge, DailySpend, charges, daily, in_currency, is_usage
from costguard.estimates.burn import Metered, MeteredFleet, Surge, burning, floor_of, priced_in, surge
from costguard.estimates.commitments import Commitment, PrepaidTerm, known_commitments
from costguard.estimates.forecast import Forecast, forecast
from costguard.estimates.period import Day, Period, date_in, days_between
from costguard.estimates.reconcile import Reconciled, Unexplained, reconciled, unexplained
from costguard.estimates.spent import RunRate, Spent, billed_parts, rest_rate, spent
from costguard.estimates.traces import CategorySum, MachineHours, by_category, by_machine, dearest_first, rates_used
from costguard.guards import BUDGET
from costguard.guards.budget.rules import BudgetRule, period_at
from costguard.guards.budget.steps import BudgetStanding
from costguard.guards.rules.idle import SPENT, percent_words

NAME = BUDGET
CHECK = SPENT
_LEARNS_FROM = timedelta(days=14)  # days of metering that are held against the bill
_HOUR, _ONE_DAY = timedelta(hours=1), timedelta(days=1)
_MONTH_HOURS, _LONGEST_HOURS = Decimal(730), Decimal(24 * 3660)  # beyond ten years a number of hours says nothing

Counting = tuple[tuple[Charge, ...], tuple[Charge, ...]]
"""What counts of a cloud's bills in the budget's currency, and in its own what no rate was given for."""


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """All that one run knows about the spend of one scope.

    `unread` are clouds of the scope whose bill was never read; `gaps` what could not be read now, of bills and of what
    runs. `metered` is what ran in the scope, since `metered_since` without a hole; `known` all that was ever metered,
    `listed` everything in an inventory. `terms` are the machines in the scope that are paid for in advance.
    """

    bills: tuple[Bill, ...]
    unread: tuple[str, ...]
    metered: tuple[Metered, ...]
    metered_since: datetime | None
    known: MeteredFleet
    listed: MeteredFleet
    gaps: tuple[Gap, ...] = ()
    terms: tuple[PrepaidTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudPart:
    """One cloud's part of a budget, and what it rests on; money in the budget's currency but `unconverted`.

    `reckoned_since` is from when on the bill no longer speaks alone; `machines` are those that `spent.accrued` adds up.
    `categories` are what was billed in the period by kind, counted or not, in the bill's own currency.
    """

    cloud: str
    spent: Spent
    rest: RunRate | None
    burn_per_hour: Money
    reconciled: Reconciled | None
    unexplained: tuple[Unexplained, ...]
    complete_until: datetime | None
    read_at: datetime
    source: str
    reckoned_since: datetime
    unconverted: tuple[Money, ...] = ()
    categories: tuple[CategorySum, ...] = ()
    machines: tuple[MachineHours, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """Where a budget stands now. `period` None: a dated budget outside its dates, of which nothing else is said.

    `doubts` are why nothing may be stopped for it, in order of weight; where `unread` names a cloud the figures are
    a lower bound. `full_in` is how long until all of it is spent as it burns now, None where it is or never will be.
    `history` are the days that every bill holds in full; `unbilled` machines of clouds without any bill; `rates` the
    rates of exchange that were used; `gaps` what of it could not be read now. `over`: the period is, so that nothing
    but alerts may follow from it; `final`: no bill of it changes any more.
    """

    rule: BudgetRule
    period: Period | None
    parts: tuple[CloudPart, ...] = ()
    spent: Spent | None = None
    burn_per_hour: Money | None = None
    forecast: Forecast | None = None
    surge: Surge | None = None
    doubts: tuple[Reason, ...] = ()
    unread: tuple[str, ...] = ()
    history: tuple[DailySpend, ...] = ()
    unbilled: tuple[MachineHours, ...] = ()
    rates: tuple[ExchangeRate, ...] = ()
    gaps: tuple[Gap, ...] = ()
    over: bool = False
    final: bool = False

    @property
    def machines(self) -> tuple[MachineHours, ...]:
        """All that the accrued part of the spend adds up, dearest first."""
        return dearest_first((*self.unbilled, *(one for part in self.parts for one in part.machines)))

    @property
    def share(self) -> Decimal:
        """Spent of the amount, 1 is all of it."""
        return Decimal(0) if self.spent is None else self.spent.total.amount / self.rule.amount.amount

    @property
    def full_in(self) -> timedelta | None:
        """How long until 100 % as it burns now."""
        if self.spent is None or self.burn_per_hour is None or self.burn_per_hour.amount <= 0:
            return None
        left = self.rule.amount.amount - self.spent.total.amount
        if left <= 0:
            return None
        return timedelta(hours=float(min(left / self.burn_per_hour.amount, _LONGEST_HOURS)))

    @property
    def standing(self) -> BudgetStanding | None:
        """What its steps go by; None outside its period, and once that is over."""
        if self.period is None or self.over:
            return None
        known = self.share if self.spent is not None and not self.unread else None
        return BudgetStanding(self.rule, known, self.doubts[0] if self.doubts else None)


def assess(
    rule: BudgetRule,
    facts: ScopeFacts,
    rates: Sequence[ExchangeRate],
    now: datetime,
    period: Period | None = None,
) -> BudgetStatus:
    """Where one budget stands, from bills as they are and what ran since.

    In the period of `now`, or in the one given, which may be over: then there is no burn and no forecast of it.
    """
    period = period or period_at(rule.period, now)
    if period is None:
        return BudgetStatus(rule, None)
    over = period.end <= now
    now = min(now, period.end)
    currency = rule.amount.currency
    zones = {bill.cloud: bill.zone or period.zone for bill in facts.bills}

    def today(cloud: str) -> date:
        return date_in(zones.get(cloud, period.zone), now - timedelta.resolution if over else now)

    priced, without_rate = priced_in(facts.metered, currency, rates, today)
    clouds = sorted(zones)
    counting = {cloud: _charges(cloud, rule, facts, rates, _dated(zones[cloud], period)) for cloud in clouds}
    parts = tuple(_part(cloud, rule, period, facts, priced, counting[cloud], now) for cloud in clouds)
    unbilled = [one for one in priced if one.ref.cloud not in clouds]
    whole = [part.spent for part in parts]
    if unbilled or not whole:
        whole.append(
            spent((), unbilled, None, facts.known, since=period.start, complete_until=None, now=now, currency=currency)
        )
    total = reduce(add, whole)
    burn = reduce(add, (part.burn_per_hour for part in parts), burning(unbilled, now).of(currency))
    days = _billed_days(facts, period, parts, [charge for _, left in counting.values() for charge in left])
    usage = [charge for given, _ in counting.values() for charge in given if is_usage(charge.line)]
    history = daily(usage, days, currency)
    monthly = rule.amount.times(_MONTH_HOURS / period.hours) if period.hours else rule.amount
    due = () if over else known_commitments(facts.bills, facts.terms, rule.counted, period, now, currency, rates, today)
    known_since = None if over else facts.metered_since
    leap = None if known_since is None else surge(priced, now, known_since, floor_of(monthly))
    new = any(part.rest is not None and part.rest.is_new for part in parts)
    return BudgetStatus(
        rule=rule,
        period=period,
        parts=parts,
        spent=total,
        burn_per_hour=None if over else burn,
        forecast=forecast(history, total, burn, due, period, now, surging=leap is not None, new=new),
        surge=leap,
        doubts=tuple(_doubts(rule, facts, parts, total, without_rate, now)),
        unread=facts.unread,
        history=history,
        unbilled=by_machine(unbilled, period.start, now),
        rates=rates_used(_currencies(rule, facts, due, period, zones, today), currency, rates),
        gaps=facts.gaps,
        over=over,
        final=_is_final(facts, period),
    )


def judge(status: BudgetStatus) -> Finding:
    """A budget that is spent is a violation; one nobody can be sure of is unmeasured until it surely is."""
    rule = status.rule
    facts = {"budget": rule.name, "share_percent": percent_words(status.share.quantize(Decimal("0.0001")))}
    verdict, reason = Verdict.COMPLIANT, Reason(ReasonCode.BUDGET_WITHIN, facts)
    if status.period is None:
        verdict = Verdict.EXEMPT
    elif status.share >= 1:
        verdict, reason = Verdict.VIOLATION, Reason(ReasonCode.BUDGET_REACHED, {**facts, "at_percent": "100"})
    elif status.unread and status.doubts:
        verdict, reason = Verdict.UNMEASURED, status.doubts[0]
    return Finding(NAME, CHECK, rule.name, rule.digest, ScopeRef(rule.name), verdict, reason, name=rule.name)


def _part(
    cloud: str,
    rule: BudgetRule,
    period: Period,
    facts: ScopeFacts,
    metered: Sequence[Metered],
    counting: Counting,
    now: datetime,
) -> CloudPart:
    """What one cloud adds. Of several payers the bill that is furthest behind says how far all of them go."""
    bills = [bill for bill in facts.bills if bill.cloud == cloud]
    complete = _furthest_behind(bills)
    given, left = counting
    mine = [one for one in metered if one.ref.cloud == cloud]
    currency = rule.amount.currency
    zone = period.zone
    since = min(bill.since for bill in bills)
    days = tuple(days_between(since, complete, zone)) if complete is not None else ()
    both = tuple(day for day in days if facts.metered_since is not None and day.start >= facts.metered_since)
    learnt = reconciled(given, mine, both[-_LEARNS_FROM.days :], facts.known, currency)
    rest = rest_rate(given, days, facts.known, currency)
    factor = learnt.factor if learnt is not None else Decimal(1)
    total = spent(
        given,
        mine,
        rest,
        facts.known,
        since=period.start,
        complete_until=complete,
        now=now,
        currency=currency,
        factor=factor,
        spread=learnt.spread if learnt is not None else Decimal(0),
        metered_since=facts.metered_since,
    )
    burn = burning(mine, now).of(currency).times(factor)
    reckoned_since = min(max(complete or period.start, period.start), now)
    own = billed_parts(given, mine, facts.known, period.start, reckoned_since, facts.metered_since)
    return CloudPart(
        cloud=cloud,
        spent=total,
        rest=rest,
        burn_per_hour=burn + rest.per_hour if rest is not None else burn,
        reconciled=learnt,
        unexplained=unexplained(given, [day for day in days if period.holds(day.start)], facts.listed),
        complete_until=complete,
        read_at=min(bill.read_at for bill in bills),
        source=", ".join(sorted({bill.source for bill in bills})),
        reckoned_since=reckoned_since,
        unconverted=totals(money for one in left for money in _in_period(one, period)),
        categories=by_category(_lines(bills), rule.counted, period.start, reckoned_since, own),
        machines=by_machine(mine, reckoned_since, now, factor),
    )


def _currencies(
    rule: BudgetRule,
    facts: ScopeFacts,
    due: Sequence[Commitment],
    period: Period,
    zones: Mapping[str, str],
    today: Callable[[str], date],
) -> Iterator[tuple[str, date]]:
    """What has to be exchanged for this period, and on which days."""
    for bill in facts.bills:
        for charge in charges(bill.lines, rule.counted):
            if period.start < charge.line.charge_period_end and charge.line.charge_period_start < period.end:
                yield charge.money.currency, _dated(zones[bill.cloud], period)(charge.line)
    yield from ((one.hourly.currency, today(one.ref.cloud)) for one in facts.metered if one.hourly is not None)
    yield from ((one.own.currency, today(one.cloud)) for one in due if one.own is not None)


def _in_period(charge: Charge, period: Period) -> Iterator[Money]:
    """What of it the period has to answer for: a rate may be young, and the bill was read for weeks before it."""
    amount = charge.part(period.start, period.end)
    if amount:
        yield Money(amount, charge.money.currency)


def _lines(bills: Sequence[Bill]) -> Iterator[SpendLine]:
    return (line for bill in bills for line in bill.lines)


def _dated(zone: str, period: Period) -> Callable[[SpendLine], date]:
    """On which day a charge is, for rates of exchange: the day of the bill's own calendar that it begins on.

    China's first of a month begins on the last day before it in UTC. A day of the bill in which the period begins is
    at its first day, as no more of it is in the period.
    """
    first = date_in(period.zone, period.start)

    def dated(line: SpendLine) -> date:
        own = date_in(zone, line.charge_period_start)
        return max(own, first) if line.charge_period_start < period.start < line.charge_period_end else own

    return dated


def _charges(
    cloud: str,
    rule: BudgetRule,
    facts: ScopeFacts,
    rates: Sequence[ExchangeRate],
    on: Callable[[SpendLine], date],
) -> Counting:
    counting = charges(_lines([bill for bill in facts.bills if bill.cloud == cloud]), rule.counted)
    return in_currency(counting, rule.amount.currency, rates, on)


def _is_final(facts: ScopeFacts, period: Period) -> bool:
    """Whether no bill adds anything to the period any more.

    Where the period and the bill count days in different zones, its last hours are in a day of the month after: they
    are complete long before the month before is final.
    """
    moments = [bill.final_until for bill in facts.bills]
    known = [moment for moment in moments if moment is not None]
    complete = _furthest_behind(facts.bills)
    whole = not facts.unread and bool(known) and len(known) == len(moments)
    return whole and complete is not None and complete >= period.end and period.end - min(known) < _ONE_DAY


def _furthest_behind(bills: Sequence[Bill]) -> datetime | None:
    moments = [bill.complete_until for bill in bills]
    known = [moment for moment in moments if moment is not None]
    return min(known) if known and len(known) == len(moments) else None


def _billed_days(
    facts: ScopeFacts, period: Period, parts: Sequence[CloudPart], left: Sequence[Charge]
) -> tuple[Day, ...]:
    """The days that every bill holds in full, from the first on that all of them were read for and had a rate for."""
    moments = [part.complete_until for part in parts]
    known = [moment for moment in moments if moment is not None]
    if not known or len(known) < len(moments) or facts.unread:
        return ()
    since = max((*(bill.since for bill in facts.bills), *(charge.line.charge_period_end for charge in left)))
    return tuple(days_between(since, min(known), period.zone))


def _doubts(
    rule: BudgetRule,
    facts: ScopeFacts,
    parts: Sequence[CloudPart],
    total: Spent,
    without_rate: Sequence[str],
    now: datetime,
) -> Iterator[Reason]:
    """Why nothing may be stopped for this budget, the weightiest first. NEVER rule 13."""
    silent = [part.cloud for part in parts if part.complete_until is None]
    gap = next((gap for gap in facts.gaps if gap.what == "bill"), None)
    if facts.unread or silent or gap is not None:
        cause = gap.detail if gap is not None else ", ".join((*facts.unread, *silent))
        yield Reason(ReasonCode.BILL_UNREAD, {"cause": cause})
    oldest = min((part.complete_until for part in parts if part.complete_until is not None), default=None)
    if oldest is not None and now - oldest > rule.trust.bill_not_older_than:
        allowed = round(rule.trust.bill_not_older_than / _HOUR)
        yield Reason(ReasonCode.BILL_STALE, {"age_hours": round((now - oldest) / _HOUR), "allowed_hours": allowed})
    foreign = sorted({*without_rate, *(money.currency for part in parts for money in part.unconverted)})
    if foreign:
        yield Reason(ReasonCode.CURRENCY_WITHOUT_RATE, {"currency": ", ".join(foreign)})
    blind = next((gap for gap in facts.gaps if gap.what != "bill"), None)
    if blind is not None:
        yield Reason(ReasonCode.BURN_INCOMPLETE, {"shard": str(blind.shard)})
    unpriced = {ref for part in parts for ref in part.spent.unpriced} | set(total.unpriced)
    if unpriced:
        yield Reason(ReasonCode.BURN_UNPRICED, {"machines": len(unpriced)})
    if total.estimated_share > rule.trust.estimated_share or not total.rest_is_known:
        estimated = percent_words(total.estimated_share.quantize(Decimal("0.001")))
        allowed_share = percent_words(rule.trust.estimated_share)
        yield Reason(ReasonCode.BILL_ESTIMATED, {"estimated_percent": estimated, "allowed_percent": allowed_share})


def age_of_bill(status: BudgetStatus, now: datetime) -> Decimal | None:
    """How many hours the oldest bill is behind; None where one says nothing."""
    moments = [part.complete_until for part in status.parts]
    known = [moment for moment in moments if moment is not None]
    return hours(now - min(known)) if known and len(known) == len(moments) else None
