"""Bills for budgets, of this period and the one before: who pays, what is read anew, and what still serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

from costguard.domain.errors import ProviderError
from costguard.domain.money import Bill, SpendReport, SpendScope
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap
from costguard.engine.ledger.budgets import BillRepository, BudgetPeriodKnown, BudgetPeriodRepository
from costguard.engine.run.scan import gap_of
from costguard.estimates.billed import condensed
from costguard.estimates.period import Period
from costguard.guards.budget.alerts import scope_id
from costguard.guards.budget.judge import BudgetStatus
from costguard.guards.budget.rules import BudgetRule, period_at, period_before
from costguard.ports import RecordStore, SpendSource, Target, Workers


@dataclass(frozen=True, slots=True)
class OpenPeriod:
    """A period that is over and not judged for good: `rule` with the amount it had then, and its name then."""

    rule: BudgetRule
    period: Period
    known_as: str


def open_before(store: RecordStore, rules: Iterable[BudgetRule], now: datetime) -> Iterator[OpenPeriod]:
    """The period before the present one of each budget that was seen in it.

    A budget that is new has none: what was spent before it was written is nobody's threshold.
    """
    in_force = tuple(rules)
    names = frozenset(rule.name for rule in in_force)
    for rule in in_force:
        period = period_before(rule.period, now)
        if period is None:
            continue
        then = _then(rule, BudgetPeriodRepository(store).of(scope_id(rule), period.key), names)
        if then is not None and not then.closed:
            yield OpenPeriod(replace(rule, amount=then.amount), period, then.name)


def see_periods(store: RecordStore, rules: Iterable[BudgetRule], now: datetime) -> None:
    """Remember how much each budget is in its present period.

    Raises:
        LedgerError: memory failed.
    """
    known = BudgetPeriodRepository(store)
    for rule in rules:
        period = period_at(rule.period, now)
        if period is not None:
            known.see(scope_id(rule), period.key, rule.name, rule.amount, now)


def close_periods(store: RecordStore, before: Iterable[tuple[OpenPeriod, BudgetStatus]]) -> None:
    """Judge no more what was judged by bills that are final.

    Raises:
        LedgerError: memory failed.
    """
    for one, status in before:
        if status.final:
            BudgetPeriodRepository(store).close(scope_id(one.rule), one.period.key, one.known_as)


def _then(rule: BudgetRule, known: Mapping[str, BudgetPeriodKnown], names: frozenset[str]) -> BudgetPeriodKnown | None:
    """The budget as it was then: of its name, or of one that no budget has any more, for it may have been renamed."""
    if rule.name in known:
        return known[rule.name]
    gone = [one for one in known.values() if one.name not in names]
    return max(gone, key=lambda one: (one.amount == rule.amount, one.seen_at), default=None)


READ_EVERY = timedelta(hours=8)  # no vendor renews its bill more often, and one charges for each request
HISTORY = timedelta(days=63)  # nine weeks: what a forecast by weekdays learns from
_WITHIN_A_DAY = timedelta(days=1)  # China's first of a month begins on the last day of the month before, by UTC

Heard = Callable[[Target, SpendScope, SpendReport, datetime], None]
"""What else listens to a report before it is condensed: it tells of single machines, and the ledger's bill does not."""


@dataclass(frozen=True, slots=True)
class Bills:
    """The bills of each scope, one a payer. `gaps` are what could not be read now, `unread` clouds never read yet."""

    of: Mapping[SpendScope, tuple[Bill, ...]]
    gaps: Mapping[SpendScope, tuple[Gap, ...]]
    unread: Mapping[SpendScope, tuple[str, ...]]


def payers(targets: Sequence[Target], members: Mapping[Target, Sequence[str]]) -> tuple[Target, ...]:
    """The targets whose bills together hold every charge once: an account in an organisation read whole is left out.

    `members` are the accounts found for each target.
    """
    inside = {
        (target.cloud, account) for target in targets if target.organisation for account in members.get(target, ())
    }
    return tuple(target for target in targets if target.organisation or (target.cloud, target.account) not in inside)


def read_bills(
    spends: Mapping[str, SpendSource],
    targets: Sequence[Target],
    scopes: Mapping[SpendScope, datetime],
    repository: BillRepository,
    workers: Workers,
    now: datetime,
    *,
    remember: bool = True,
    heard: Heard | None = None,
) -> Bills:
    """The bills of each scope from the moment given on, and far enough back to forecast; read anew where due.

    A bill that cannot be read leaves the older reading in force, and a gap. `remember` False writes nothing. `heard` is
    given every whole report that was read anew, and from when on it holds charges.
    """
    of: dict[SpendScope, list[Bill]] = {scope: [] for scope in scopes}
    gaps: dict[SpendScope, list[Gap]] = {scope: [] for scope in scopes}
    unread: dict[SpendScope, list[str]] = {scope: [] for scope in scopes}
    tasks = []
    for target in targets:
        wanted = {scope: since for scope, since in scopes.items() if scope.touches(target.cloud)}
        tasks.append(
            partial(_of_payer, spends[target.cloud], target, wanted, repository, now, remember=remember, heard=heard)
        )
    for place, found in workers.each(tasks):
        for scope, bill, new_gaps in found:
            gaps[scope].extend(new_gaps)
            if bill is not None:
                of[scope].append(bill)
            else:
                unread[scope].append(targets[place].cloud)
    return Bills(
        {scope: tuple(sorted(bills, key=lambda bill: (bill.cloud, bill.source))) for scope, bills in of.items()},
        {scope: tuple(each) for scope, each in gaps.items()},
        {scope: tuple(sorted(set(each))) for scope, each in unread.items()},
    )


_Found = tuple[SpendScope, "Bill | None", tuple[Gap, ...]]


def _of_payer(
    source: SpendSource,
    target: Target,
    scopes: Mapping[SpendScope, datetime],
    repository: BillRepository,
    now: datetime,
    *,
    remember: bool,
    heard: Heard | None,
) -> list[_Found]:
    known = {scope: repository.get(target, scope) for scope in scopes}
    due: dict[datetime, list[SpendScope]] = {}
    for scope, since in scopes.items():
        begin = _begin(known[scope], since, now)
        if begin is not None:
            due.setdefault(begin, []).append(scope)
    found: dict[SpendScope, _Found] = {scope: (scope, known[scope], ()) for scope in scopes}
    for begin, asked in due.items():
        try:
            reports = source.read(target, asked, begin, now)
        except ProviderError as err:
            gap = gap_of(err, Shard(target.cloud, target.account), "bill")
            found.update({scope: (scope, known[scope], (gap,)) for scope in asked})
            continue
        for scope in asked:
            report = reports[scope]
            if report.gaps:  # what is not whole replaces nothing
                gaps = tuple(replace(gap, what="bill") for gap in report.gaps)  # vendors say "billing" of instances too
                found[scope] = (scope, known[scope], gaps)
                continue
            bill = renewed(known[scope], target, report, begin)
            found[scope] = (scope, bill, ())
            if remember:
                repository.put(target, scope, bill, begin)
                if heard is not None:
                    heard(target, scope, report, begin)
    return list(found.values())


def renewed(known: Bill | None, target: Target, report: SpendReport, begin: datetime) -> Bill:
    """What was known, with the months from `begin` on replaced by what was read of them.

    A day that began before: in China the first of a month begins in the month before it, by UTC.
    """
    before = [line for line in (known.lines if known else ()) if line.charge_period_end <= begin]
    anew = [line for line in condensed(report.lines) if line.charge_period_end > begin]
    since = begin if known is None else min(begin, known.since)
    return Bill(
        cloud=target.cloud,
        lines=(*before, *anew),
        since=since,
        complete_until=report.complete_until,
        read_at=report.read_at,
        source=report.source,
        zone=report.zone,
        final_until=report.final_until,
    )


def _begin(known: Bill | None, since: datetime, now: datetime) -> datetime | None:
    """From when on the bill is read; None where the last reading still serves."""
    wanted = _month(min(since, now - HISTORY))
    if known is None or known.since > wanted:
        return wanted
    if known.complete_until is not None and now - known.read_at < READ_EVERY:
        return None
    current = _month(now)
    if known.final_until is None:
        begin = _month(current - _WITHIN_A_DAY)
    else:  # what was final when it was read last needs no other reading; what became final since, one more
        begin = min(current, _month(known.final_until + _WITHIN_A_DAY))
    if known.complete_until is None:
        return begin
    return max(wanted, min(begin, _month(known.complete_until)))  # what stood open then may be billed by now


def _month(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
