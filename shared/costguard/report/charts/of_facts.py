"""From facts to the charts that show them: which rows, in which order, under which words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from costguard.domain.findings import Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import FactValue
from costguard.domain.savings import SavingsReport
from costguard.report.charts.values import Ages, BarChart, BurnDown, HeatMap, OverTime, Said
from costguard.report.facts import BudgetSnapshot, ReportFacts, ResourceSnapshot, days_shown
from costguard.report.words.sentences import Language, clean, in_digest

MOST_ROWS = 40
_MOST_TEAMS, _MOST_TYPES = 12, 6
_BOUNDS = (5.0, 20.0, 40.0, 60.0, 80.0)
_ONE_DAY = timedelta(days=1)
_LEAST_DAYS = 2  # a line of one day is none


def said(key: str, language: Language, /, **facts: FactValue) -> Said:
    """A label of a chart: in English where no font can draw it."""
    return Said(in_digest(key, language, **facts), in_digest(key, Language.EN, **facts))


def busy_chart(facts: ReportFacts, language: Language) -> HeatMap | None:
    """Machines by day, the least busy and dearest first; None where nothing was measured."""
    days = days_shown(facts)
    shown = busy_rows(facts)[:MOST_ROWS]
    if not days or not shown:
        return None
    steps = [*(f"≤ {bound:g} %" for bound in _BOUNDS), f"> {_BOUNDS[-1]:g} %"]
    return HeatMap(
        title=said("busy_title", language),
        rows=tuple(_named(one) for one in shown),
        days=days,
        cells=tuple(tuple(one.on(day) for day in days) for one in shown),
        steps=tuple(Said(step, step.replace("≤", "<=")) for step in steps),
        bounds=_BOUNDS,
        missing=said("busy_missing", language),
    )


def busy_rows(facts: ReportFacts) -> Sequence[ResourceSnapshot]:
    """The machines that were measured on any day: idle ones first, dearest first."""
    measured = [one for one in facts.machines if any(value is not None for value in one.busy)]
    return sorted(measured, key=lambda one: (not one.is_idle, -(one.hourly.amount if one.hourly else 0), str(one.ref)))


def saved_charts(facts: ReportFacts, language: Language) -> Iterator[OverTime]:
    """One chart a currency that anything was saved in."""
    report = facts.saved
    for currency in report.currencies if report is not None else ():
        if report is None:
            continue
        daily = [one for one in report.daily if one.realised.currency == currency]
        begun = min((entry.since.date() for entry in report.entries), default=report.since.date()) - _ONE_DAY
        daily = [one for one in daily if one.day >= begun]
        if len(daily) >= _LEAST_DAYS:
            days = tuple(one.day for one in daily)
            yield OverTime(
                title=said("saved_title", language, currency=currency),
                days=days,
                promised=tuple(_promised(report, currency, days)),
                came_true=tuple(_summed([one.realised.amount for one in daily])),
                promised_label=said("saved_promised_label", language),
                came_true_label=said("saved_true_label", language),
            )


def burn_charts(facts: ReportFacts, language: Language) -> Iterator[tuple[BudgetSnapshot, BurnDown]]:
    """One chart a budget, the most spent first."""
    for one in sorted(facts.budgets, key=lambda each: (-each.share, each.name)):
        yield one, _burn_down(one, language)


def idle_charts(facts: ReportFacts, language: Language) -> Iterator[BarChart]:
    """One chart a currency: teams from the dearest on, types as parts."""
    priced = [(one, cost) for one in facts.idle if (cost := one.a_day) is not None]
    for currency in sorted({cost.currency for _, cost in priced}):
        mine = [(one, cost.amount) for one, cost in priced if cost.currency == currency]
        types = _largest([(one.instance_type, amount) for one, amount in mine])
        teams = _largest([(one.owner, amount) for one, amount in mine])[:_MOST_TEAMS]
        kept, more = types[:_MOST_TYPES], len(types) > _MOST_TYPES
        values = []
        for team in teams:
            of_team = [(one.instance_type, amount) for one, amount in mine if one.owner == team]
            row = [float(sum((amount for kind, amount in of_team if kind == each), Decimal(0))) for each in kept]
            other = float(sum((amount for kind, amount in of_team if kind not in kept), Decimal(0)))
            values.append((*row, other) if more else tuple(row))
        parts = [_plain(each) for each in kept]
        yield BarChart(
            title=said("idle_title", language, currency=currency),
            rows=tuple(_plain(team) if team else said("idle_nobody", language) for team in teams),
            parts=(*parts, said("idle_other", language)) if more else tuple(parts),
            values=tuple(values),
        )


def keys_chart(facts: ReportFacts, language: Language) -> Ages | None:
    """Keys whose age is told, the oldest first; None where no cloud tells one."""
    aged = [(one, age) for one in facts.keys if (age := key_age(one)) is not None]
    shown = sorted(aged, key=lambda pair: (-pair[1], str(pair[0].ref)))[:MOST_ROWS]
    if not shown:
        return None
    return Ages(
        title=said("keys_title", language),
        rows=tuple(_named(one) for one, _ in shown),
        days=tuple(age for _, age in shown),
        allowed=tuple(_number(one, "wanted_days") for one, _ in shown),
        late=tuple(one.verdict is Verdict.VIOLATION for one, _ in shown),
        fine_label=said("keys_fine", language),
        late_label=said("keys_late", language),
        allowed_label=said("keys_allowed", language),
    )


def key_age(sight: ResourceSnapshot) -> float | None:
    """Days since it was given new material, None where nobody tells."""
    return _number(sight, "age_days")


def _number(sight: ResourceSnapshot, fact: str) -> float | None:
    value = sight.reason.facts.get(fact)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None


def _burn_down(one: BudgetSnapshot, language: Language) -> BurnDown:
    amount = float(one.amount.amount)
    left, points = one.amount.amount, [(one.first, amount)]
    for day, spent in one.days:
        if one.first <= day <= one.last:
            left -= spent
            points.append((day + _ONE_DAY, float(left)))
    today = min(max(one.at.astimezone(timezone.utc).date(), points[-1][0]), one.last + _ONE_DAY)
    now_left = float(one.amount.amount - one.spent.amount)
    points = [point for point in points if point[0] < today or today == one.first]
    points.append((today, now_left))
    return BurnDown(
        title=said("burn_title", language, name=one.name, currency=one.amount.currency),
        first=one.first,
        last=one.last,
        amount=amount,
        left=tuple(points),
        ends=_ends(one),
        left_label=said("burn_left", language),
        even_label=said("burn_even", language),
        band_label=said("burn_band", language),
    )


def _ends(one: BudgetSnapshot) -> tuple[float, float, float] | None:
    if one.best is None or one.expected is None or one.worst is None:
        return None

    def left(spent: Money) -> float:
        return float(one.amount.amount - spent.amount)

    return (left(one.best), left(one.expected), left(one.worst))


def _promised(report: SavingsReport, currency: str, days: Sequence[date]) -> Iterator[float]:
    """What was expected, spread evenly from when each action was seen complete to the report's end."""
    for day in days:
        end = datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + _ONE_DAY
        total = Decimal(0)
        for entry in report.entries:
            begin = max(entry.since, report.since)
            length = (report.until - begin).total_seconds()
            passed = min(max((end - begin).total_seconds(), 0.0), length)
            part = Decimal(str(passed / length)) if length > 0 else Decimal(1)
            total += sum((money.amount * part for money in entry.predicted if money.currency == currency), Decimal(0))
        yield float(total)


def _summed(amounts: Sequence[Decimal]) -> Iterator[float]:
    total = Decimal(0)
    for amount in amounts:
        total += amount
        yield float(total)


def _largest(amounts: Sequence[tuple[str, Decimal]]) -> list[str]:
    sums: dict[str, Decimal] = {}
    for name, amount in amounts:
        sums[name] = sums.get(name, Decimal(0)) + amount
    return sorted(sums, key=lambda name: (-sums[name], name))


def _named(sight: ResourceSnapshot) -> Said:
    return Said(clean(sight.name) or clean(sight.ref.native_id), clean(sight.ref.native_id))


def _plain(text: str) -> Said:
    return Said(clean(text), clean(text))
