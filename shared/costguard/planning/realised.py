"""What is realised of a saving: as far as it was seen, net of what stays billed, each machine's hours once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

from costguard.domain.actions import Verb
from costguard.domain.money import Money, hours, totals
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Billing
from costguard.domain.savings import FINAL, Coverage, MachineBill, RecordedSaving, SavingStanding, Worth
from costguard.estimates.coverage import uncovered_before

HORIZON = timedelta(days=90)
"""How long a saving counts: nobody can say of a machine idle today that it would still run next season."""

UNSEEN_AFTER = timedelta(hours=50)  # two daily runs and some
LEAST_BEYOND = Decimal("0.01")  # of a unit of money
TOLERANCE = Decimal("0.02")  # of what a charge period should have saved: bills round
PLACES = 10  # decimals at which parts of a piece end, so that they add up to the piece exactly
_TICK = timedelta(microseconds=1)
_TICKS_AN_HOUR = timedelta(hours=1) // _TICK
_A_TRIFLE = 1_000_000  # a millionth of a unit is added, as a price that was divided ends after 28 digits
_TICKS_A_DAY = 24 * _TICKS_AN_HOUR
_COMMITTED = frozenset({Billing.RESERVED, Billing.PREPAID, Billing.UNKNOWN})
_ON = {Verb.STOP: SavingStanding.STOPPED, Verb.TERMINATE: SavingStanding.TERMINATED}


@dataclass(frozen=True, slots=True)
class PricedSpan:
    """A stretch of time at one price an hour; `until` is outside it."""

    since: datetime
    until: datetime
    hourly: Money

    def part(self, since: datetime, until: datetime) -> Decimal:
        """How much of it falls between two moments; parts that follow each other add up to the whole exactly."""
        if since >= until:
            return Decimal(0)
        (whole,) = self.parts((since, until))
        return whole

    def parts(self, edges: Sequence[datetime]) -> list[Decimal]:
        """The same of each stretch between these moments, which are in order."""
        worth = self._worth()
        at_edges = [worth(self._ticks(edge)) for edge in edges]
        return [Decimal(after - before).scaleb(-PLACES) for before, after in pairwise(at_edges)]

    def by_day(self, since: datetime, until: datetime) -> Iterator[tuple[int, int, int]]:
        """Its part of each day of UTC between two moments: a day's ordinal, for how many days, units of 1E-10 on each.

        As `part` has it day by day, and whole days at once where they come to as much: a fleet's year has millions.
        """
        begin, end = self._ticks(since), self._ticks(until)
        if begin >= end:
            return
        worth, ordinal = self._worth(), max(since, self.since).astimezone(timezone.utc).toordinal()
        midnight = datetime.combine(date.fromordinal(ordinal + 1), time(0), tzinfo=timezone.utc)
        edge = min((midnight - self.since) // _TICK, end)
        yield ordinal, 1, worth(edge) - worth(begin)
        days, ordinal = (end - edge) // _TICKS_A_DAY, ordinal + 1
        if self._is_whole_a_day() and days:
            yield ordinal, days, worth(edge + _TICKS_A_DAY) - worth(edge)
        else:
            for day in range(days):
                at = edge + day * _TICKS_A_DAY
                yield ordinal + day, 1, worth(at + _TICKS_A_DAY) - worth(at)
        last = edge + days * _TICKS_A_DAY
        if last < end:
            yield ordinal + days, 1, worth(end) - worth(last)

    def _is_whole_a_day(self) -> bool:
        """Whether a day comes to whole units, so that each comes to as many as the one before."""
        amount, per = self.hourly.amount.as_integer_ratio()
        left_over: int = amount * 24 * 10**PLACES % per
        return left_over == 0

    def _worth(self) -> Callable[[int], int]:
        """What it comes to after so many ticks, in whole units of the last place, rounded down."""
        amount, per = self.hourly.amount.as_integer_ratio()
        amount, per = amount * 10**PLACES * _A_TRIFLE, per * _TICKS_AN_HOUR
        return lambda ticks: (amount * ticks + per) // (per * _A_TRIFLE)

    def _ticks(self, moment: datetime) -> int:
        return max(min(moment, self.until) - self.since, timedelta(0)) // _TICK


@dataclass(frozen=True, slots=True)
class Realised:
    """What one saving came to, as pieces of time. `until` is how far it counts, `expected_until` how far it was to.

    `hourly` is what stops billing less what commitments cover; `predicted` and `realised` are net of `kept`. They are
    in one currency; `kept` may be in others too, which are then not taken off. `net` is `realised` after discounts.
    """

    saving: RecordedSaving
    standing: SavingStanding
    standing_since: datetime
    until: datetime
    expected_until: datetime
    worth: Worth
    hourly: Money | None
    coverage: Coverage | None
    predicted: tuple[PricedSpan, ...]
    realised: tuple[PricedSpan, ...]
    kept: tuple[PricedSpan, ...]
    billed_anyway: Money | None = None
    billed_until: datetime | None = None
    shared_with: str = ""
    net: tuple[PricedSpan, ...] = ()


def realise(
    savings: Iterable[RecordedSaving],
    looks: Mapping[Shard, datetime],
    bills: Mapping[ResourceRef, MachineBill],
    now: datetime,
) -> tuple[Realised, ...]:
    """What every saving came to by `now`; `looks` are the last complete looks at each shard that were remembered.

    Give all savings there are: a machine's hours belong to one of them at a time.
    """
    of_subject: dict[ResourceRef, list[RecordedSaving]] = {}
    for saving in savings:
        of_subject.setdefault(saving.action.subject, []).append(saving)
    return tuple(
        _one(turn, looks, bills.get(subject), now)
        for subject, each in sorted(of_subject.items())
        for turn in _turns(each)
    )


@dataclass(frozen=True, slots=True)
class _Turn:
    """One saving and its place among those of its machine: counted from `anchor` on, until `to` at most."""

    saving: RecordedSaving
    anchor: datetime
    to: datetime | None = None
    shared_with: str = ""
    replaced_at: datetime | None = None


def _turns(of_machine: Sequence[RecordedSaving]) -> Iterator[_Turn]:
    """The savings of one machine, so that no hour is in two of them.

    A termination goes on where the stop of the same run ends, for what is left of its time and only if nothing
    replaced the machine. A second stop of the same run has no hours of its own. A stop of a later run ends whatever
    was before it.
    """
    order = sorted(
        of_machine, key=lambda one: (one.confirmed_at, one.action.verb is Verb.TERMINATE, one.action.action_id)
    )
    held: list[_Turn] = []
    shared: list[_Turn] = []
    for saving in order:
        before = held[-1] if held else None
        if before is None:
            held.append(_Turn(saving, saving.confirmed_at))
            continue
        same_run = before.saving.action.run_epoch == saving.action.run_epoch
        if same_run and (saving.action.verb is not Verb.TERMINATE or before.saving.action.verb is Verb.TERMINATE):
            shared.append(_Turn(saving, saving.confirmed_at, saving.confirmed_at, before.saving.action.action_id))
            continue
        held[-1] = _Turn(before.saving, before.anchor, saving.confirmed_at, "", before.replaced_at)
        last = before.saving.last
        replaced = last.at if same_run and last is not None and last.standing is SavingStanding.REPLACED else None
        held.append(_Turn(saving, before.anchor if same_run else saving.confirmed_at, None, "", replaced))
    yield from held
    yield from shared


def _one(turn: _Turn, looks: Mapping[Shard, datetime], bill: MachineBill | None, now: datetime) -> Realised:
    saving = turn.saving
    start = saving.confirmed_at
    over = turn.anchor + HORIZON
    to = min(over, now) if turn.to is None else min(over, now, turn.to)
    expected_until = start if turn.replaced_at is not None else max(start, to)
    proven = _proven(saving, looks, now)
    ended = saving.ended_at
    until = max(start, min(expected_until, proven, ended if ended is not None else expected_until))
    worth, coverage, hourly = _worth(saving, bill)
    kept = _kept(saving)
    net = _net(hourly, kept)
    foreseen = _net(_covered(saving, saving.coverage), kept)
    realised, beyond = _by_the_bill(net, hourly, kept, start, until, bill)
    paid = _after_discounts(saving, hourly)
    discounted, _ = _by_the_bill(_net(paid, kept), paid, kept, start, until, bill)
    standing, since = _standing(turn, until, over, proven, now)
    return Realised(
        saving=saving,
        standing=standing,
        standing_since=since,
        until=until,
        expected_until=expected_until,
        worth=worth,
        hourly=hourly,
        coverage=coverage,
        predicted=() if foreseen is None else (PricedSpan(start, expected_until, foreseen),),
        realised=realised,
        kept=tuple(PricedSpan(start, until, money) for money in kept),
        billed_anyway=beyond,
        billed_until=_compared_until(hourly, start, until, bill),
        shared_with=turn.shared_with,
        net=discounted,
    )


def _proven(saving: RecordedSaving, looks: Mapping[Shard, datetime], now: datetime) -> datetime:
    """Up to when it is known to go on. An address that was released never comes back."""
    if saving.action.verb is Verb.MEND:
        return now
    last = saving.last
    if last is not None and last.standing is SavingStanding.UNSEEN:
        return max(saving.confirmed_at, last.at)
    return max(saving.confirmed_at, looks.get(saving.action.subject.shard, saving.confirmed_at))


def _standing(
    turn: _Turn, until: datetime, over: datetime, proven: datetime, now: datetime
) -> tuple[SavingStanding, datetime]:
    saving, last = turn.saving, turn.saving.last
    if turn.shared_with:
        return SavingStanding.SHARED, saving.confirmed_at
    if turn.replaced_at is not None:
        return SavingStanding.REPLACED, turn.replaced_at
    if last is not None and last.standing in FINAL and last.at <= until:
        return last.standing, last.at
    if turn.to is not None and turn.to <= until:
        return SavingStanding.HANDED_OVER, turn.to
    if over <= until:
        return SavingStanding.OVER, over
    if (
        turn.to is not None
        or now - proven > UNSEEN_AFTER
        or (last is not None and last.standing is SavingStanding.UNSEEN)
    ):
        return SavingStanding.UNSEEN, until
    return _ON.get(saving.action.verb, SavingStanding.RELEASED), saving.confirmed_at


def _worth(saving: RecordedSaving, bill: MachineBill | None) -> tuple[Worth, Coverage | None, Money | None]:
    """What the hourly figure rests on, and the figure after commitments: the stronger word of ledger and bill."""
    known = [one for one in (saving.coverage, uncovered_before(bill, saving.confirmed_at)) if one is not None]
    coverage = min(known, key=lambda one: one.uncovered, default=None)
    worth = saving.action.saving
    if saving.billed_on:
        return Worth.BILLED_ON, coverage, None
    if saving.machine is not None and saving.machine.billing in _COMMITTED:
        return Worth.COVERED, coverage, None
    if worth is None or worth.stops_billing is None:
        return Worth.UNPRICED, coverage, None
    if coverage is None or coverage.uncovered >= 1:
        return Worth.PRICED, coverage, worth.stops_billing
    hourly = worth.stops_billing.times(coverage.uncovered)
    return (Worth.PARTLY_COVERED if coverage.uncovered > 0 else Worth.COVERED), coverage, hourly


def _covered(saving: RecordedSaving, coverage: Coverage | None) -> Money | None:
    """What it was expected to stop, an hour, by what was known then."""
    worth = saving.action.saving
    committed = saving.machine is not None and saving.machine.billing in _COMMITTED
    if worth is None or worth.stops_billing is None or committed or saving.billed_on:
        return None
    return worth.stops_billing if coverage is None else worth.stops_billing.times(min(coverage.uncovered, Decimal(1)))


def _after_discounts(saving: RecordedSaving, hourly: Money | None) -> Money | None:
    """What stops billing, as it is paid; None where no discount was known."""
    worth = saving.action.saving
    if hourly is None or worth is None or worth.price is None:
        return None
    return worth.price.after_discounts(hourly)


def _kept(saving: RecordedSaving) -> tuple[Money, ...]:
    """What goes on being billed, an hour, one sum a currency; at what price nobody knows is left out."""
    lines = saving.action.saving.kept if saving.action.saving is not None else ()
    return totals(cost for _, cost in lines if cost is not None)


def _net(hourly: Money | None, kept: Sequence[Money]) -> Money | None:
    """What is saved an hour; never less than nothing, for nothing was spent on it that was not before."""
    if hourly is None:
        return None
    off = sum((money.amount for money in kept if money.currency == hourly.currency), Decimal(0))
    return Money(max(hourly.amount - off, Decimal(0)), hourly.currency)


def _by_the_bill(
    net: Money | None,
    hourly: Money | None,
    kept: Sequence[Money],
    start: datetime,
    until: datetime,
    bill: MachineBill | None,
) -> tuple[tuple[PricedSpan, ...], Money | None]:
    """What is saved after what the bill shows all the same, and the sum of that.

    Compared are charge periods that lie within the saved time and that the bill holds in full. Disks that some bills
    have under the machine's own id are no surprise, so what is kept is allowed for.
    """
    if net is None or hourly is None:
        return (), None
    beyond = {} if bill is None or start >= until else dict(_beyond(hourly, kept, start, until, bill))
    if not beyond:
        return (PricedSpan(start, until, net),), None
    edges = sorted({start, until, *(edge for period in beyond for edge in period)})
    pieces = []
    for since, to in pairwise(edges):
        off = sum(
            (amount / hours(ends - begins) for (begins, ends), amount in beyond.items() if begins <= since < ends),
            Decimal(0),
        )
        pieces.append(PricedSpan(since, to, Money(max(net.amount - off, Decimal(0)), net.currency)))
    return tuple(pieces), Money(sum(beyond.values(), Decimal(0)), net.currency)


def _compared_until(
    hourly: Money | None, start: datetime, until: datetime, bill: MachineBill | None
) -> datetime | None:
    """How far the bill speaks; one in another currency than the price says nothing."""
    if bill is None or hourly is None or bill.complete_until <= start:
        return None
    alike = all(charge.billed.currency == hourly.currency for charge in bill.charges)
    return min(bill.complete_until, until) if alike else None


def _beyond(
    hourly: Money, kept: Sequence[Money], start: datetime, until: datetime, bill: MachineBill
) -> Iterator[tuple[tuple[datetime, datetime], Decimal]]:
    """The charge periods in which more was billed than stays billed, with how much more."""
    costs: dict[tuple[datetime, datetime], Decimal] = {}
    for charge in bill.charges:
        inside = start <= charge.start < charge.end <= min(until, bill.complete_until)
        for_it = [money.amount for money in (charge.billed, charge.effective) if money.currency == hourly.currency]
        if inside and for_it:
            period = charge.start, charge.end
            costs[period] = costs.get(period, Decimal(0)) + max(for_it)
    allowed = sum((money.amount for money in kept if money.currency == hourly.currency), Decimal(0))
    for period, cost in costs.items():
        length = hours(period[1] - period[0])
        more = cost - allowed * length
        if more > max(LEAST_BEYOND, hourly.amount * length * TOLERANCE):
            yield period, more
