"""From single savings to sums by month, owner, guard and cloud, to a line a day, and to what each is made of. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from costguard.domain.money import Money, totals
from costguard.domain.savings import DaySaved, SavingCause, SavingEntry, SavingsReport, SavingsTotal
from costguard.estimates.period import Day, day_of, start_of
from costguard.planning.realised import PLACES, PricedSpan, Realised

_LONGER_THAN_A_MONTH = timedelta(days=32)
_NOTHING = Decimal(0)
_UTC = "UTC"


@dataclass(frozen=True, slots=True)
class MachineDay:
    """What one saving came to on one day of UTC, from `since` to `until` within it."""

    day: date
    since: datetime
    until: datetime
    predicted: tuple[Money, ...]
    realised: tuple[Money, ...]
    still_billed: tuple[Money, ...]
    net: tuple[Money, ...] = ()


def report_of(savings: Sequence[Realised], since: datetime, until: datetime, at: datetime) -> SavingsReport:
    """The report of these savings; what lies outside its time is in no figure, and no figure is of two causes."""
    sums = _Sums()
    by_month, by_owner, by_guard, by_cloud = _Sums(), _Sums(), _Sums(), _Sums()
    daily: dict[str, dict[int, int]] = {}
    entries: list[SavingEntry] = []
    for one in savings:
        if not _falls_in(one, since, until):
            continue
        entry = entry_of(one, since, until)
        entries.append(entry)
        start, end = max(since, entry.since), min(until, one.expected_until)
        if entry.cause is not SavingCause.COSTGUARD or start >= end:
            continue
        for total, name in (
            (sums, ""),
            (by_owner, entry.owner),
            (by_guard, entry.guard),
            (by_cloud, entry.subject.cloud),
        ):
            total.add(name, entry.action_id, entry.predicted, entry.realised, entry.still_billed, entry.realised_net)
        months, edges = _months(start, end)
        for month, *amounts in zip(months, *(_moneys(pieces, edges) for pieces in _kinds(one)), strict=True):
            by_month.add(month, entry.action_id, *amounts)
        for piece in one.realised:
            steps = daily.setdefault(piece.hourly.currency, {})
            for day, days, units in piece.by_day(start, end):
                steps[day] = steps.get(day, 0) + units
                steps[day + days] = steps.get(day + days, 0) - units
    return SavingsReport(
        since=since,
        until=until,
        at=at,
        totals=sums.lines(_most_first),
        by_month=by_month.lines(_by_name),
        by_owner=by_owner.lines(_most_first),
        by_guard=by_guard.lines(_by_name),
        by_cloud=by_cloud.lines(_by_name),
        daily=tuple(_series(daily, since, until)),
        entries=tuple(sorted(entries, key=_most_realised)),
        others=others_of(entries),
    )


def others_of(entries: Iterable[SavingEntry]) -> tuple[SavingsTotal, ...]:
    """The sums of each cause but Costguard's, and of each currency."""
    sums = _Sums()
    for one in entries:
        if one.cause is not SavingCause.COSTGUARD:
            sums.add(one.cause.value, one.action_id, one.predicted, one.realised, one.still_billed, one.realised_net)
    return tuple(replace(line, name="", cause=SavingCause(line.name)) for line in sums.lines(_by_name))


def days_of(one: Realised, since: datetime, until: datetime) -> Iterator[MachineDay]:
    """What a saving came to day by day; its days add up to what it came to in all this time."""
    start, end = max(since, one.saving.confirmed_at), min(until, one.expected_until)
    while start < end:
        day = day_of(start, _UTC)
        to = min(day.end, end)
        yield MachineDay(
            day.day,
            start,
            to,
            *(_money(pieces, start, to) for pieces in _kinds(one)),
        )
        start = to


def entry_of(one: Realised, since: datetime, until: datetime) -> SavingEntry:
    """One saving as the report has it."""
    saving, action = one.saving, one.saving.action
    worth, last = action.saving, saving.last
    replaced = last if last is not None and last.other is not None else None
    return SavingEntry(
        action_id=action.action_id,
        case_id=action.case_id,
        guard=saving.guard,
        rule=action.rule,
        verb=action.verb,
        subject=action.subject,
        name=saving.name,
        instance_type=saving.machine.instance_type if saving.machine is not None else "",
        owner=saving.owner,
        since=saving.confirmed_at,
        counted_until=one.until,
        standing=one.standing,
        worth=one.worth,
        predicted=_money(one.predicted, since, until),
        realised=_money(one.realised, since, until),
        still_billed=_money(one.kept, since, until),
        hourly=one.hourly,
        price=worth.price if worth is not None else None,
        coverage=one.coverage,
        kept=worth.kept if worth is not None else (),
        standing_since=one.standing_since,
        replaced_by=replaced.other if replaced is not None else None,
        replaced_how=replaced.how if replaced is not None else "",
        billed_anyway=one.billed_anyway,
        billed_until=one.billed_until,
        cause=saving.cause or SavingCause.UNATTRIBUTED,
        realised_net=_money(one.net, since, until),
        shared_with=one.shared_with,
    )


@dataclass(slots=True)
class _Line:
    predicted: Decimal = _NOTHING
    realised: Decimal = _NOTHING
    still_billed: Decimal = _NOTHING
    actions: set[str] = field(default_factory=set)
    net: Decimal = _NOTHING
    net_actions: set[str] = field(default_factory=set)


_Order = Callable[[SavingsTotal], tuple[object, ...]]


class _Sums:
    """Sums by name and currency, as they are added."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}

    def add(
        self,
        name: str,
        action_id: str,
        predicted: Iterable[Money],
        realised: Iterable[Money],
        still_billed: Iterable[Money],
        net: Iterable[Money],
    ) -> None:
        for money in predicted:
            self._line(name, money, action_id).predicted += money.amount
        for money in realised:
            self._line(name, money, action_id).realised += money.amount
        for money in still_billed:
            self._line(name, money, action_id).still_billed += money.amount
        for money in net:
            line = self._line(name, money, action_id)
            line.net += money.amount
            line.net_actions.add(action_id)

    def lines(self, order: _Order) -> tuple[SavingsTotal, ...]:
        found = (
            SavingsTotal(
                name,
                Money(line.predicted, currency),
                Money(line.realised, currency),
                Money(line.still_billed, currency),
                len(line.actions),
                realised_net=Money(line.net, currency) if line.net_actions else None,
                net_actions=len(line.net_actions),
            )
            for (name, currency), line in self._lines.items()
        )
        return tuple(sorted(found, key=order))

    def _line(self, name: str, money: Money, action_id: str) -> _Line:
        line = self._lines.get((name, money.currency))
        if line is None:
            line = self._lines[name, money.currency] = _Line()
        line.actions.add(action_id)
        return line


def _falls_in(one: Realised, since: datetime, until: datetime) -> bool:
    return one.saving.confirmed_at <= until and since < max(one.expected_until, one.standing_since)


def _money(pieces: Sequence[PricedSpan], since: datetime, until: datetime) -> tuple[Money, ...]:
    """What of the pieces falls into this time, one sum a currency; currencies of nothing stay, with zero."""
    (whole,) = _moneys(pieces, (since, until))
    return whole


def _moneys(pieces: Sequence[PricedSpan], edges: Sequence[datetime]) -> list[tuple[Money, ...]]:
    """The same for each stretch between these moments."""
    if not pieces:
        return [()] * (len(edges) - 1)
    each = [[Money(part, piece.hourly.currency) for part in piece.parts(edges)] for piece in pieces]
    return [(money,) for money in each[0]] if len(each) == 1 else [totals(parts) for parts in zip(*each, strict=True)]


def _kinds(one: Realised) -> tuple[Sequence[PricedSpan], ...]:
    return one.predicted, one.realised, one.kept, one.net


def _months(since: datetime, until: datetime) -> tuple[list[str], list[datetime]]:
    """The months of UTC that this time touches, and the moments that bound its part in each."""
    month, edges = since.astimezone(timezone.utc).date().replace(day=1), [since]
    names = []
    while edges[-1] < until:
        names.append(f"{month.year}-{month.month:02}")
        month = (month + _LONGER_THAN_A_MONTH).replace(day=1)
        edges.append(min(start_of(month, _UTC), until))
    return names, edges


def _series(daily: Mapping[str, Mapping[int, int]], since: datetime, until: datetime) -> Iterator[DaySaved]:
    """Every day of the time, for each currency; given is by how much each day differs from the one before."""
    for currency, steps in sorted(daily.items()):
        day, units = since, 0
        while day < until:
            current: Day = day_of(day, _UTC)
            units += steps.get(current.day.toordinal(), 0)
            yield DaySaved(current.day, Money(Decimal(units).scaleb(-PLACES) if units else _NOTHING, currency))
            day = current.end


def _by_name(line: SavingsTotal) -> tuple[object, ...]:
    return (line.name, line.currency)


def _most_first(line: SavingsTotal) -> tuple[object, ...]:
    return (-line.realised.amount, -line.predicted.amount, line.name, line.currency)


def _most_realised(entry: SavingEntry) -> tuple[object, ...]:
    most = max(entry.realised, key=lambda money: money.amount, default=None)
    return (
        most is None,
        "" if most is None else most.currency,
        -most.amount if most else 0,
        entry.since,
        entry.action_id,
    )
