"""What is known to fall due and stands in no daily history: renewals of prepaid terms, and fees the bill had before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum

from costguard.domain.findings import InstanceFact
from costguard.domain.money import HOURS_PER_MONTH, Bill, ExchangeRate, Money, SpendScope, converted
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing
from costguard.estimates.billed import Counting
from costguard.estimates.period import Period
from costguard.estimates.purchases import YEAR, Days, Kind, Paid, bill_day, coming_again, months_on, purchases, repeated

_BEFORE_THE_END, _AFTER_IT = (
    timedelta(days=10),
    timedelta(days=2),
)  # when a renewal is paid for, nine days before or then
_CENTS = Decimal("0.0001")


class CommitmentEvidence(str, Enum):
    """How a commitment is known: a machine's term that ends, or a fee that was charged before."""

    TERM = "term"
    CHARGED_BEFORE = "charged_before"


@dataclass(frozen=True, slots=True)
class Commitment:
    """A sum known to fall due (in `times` parts, a day apart, from `due` on) and never part of the daily history.

    `money` is all of it; None: nobody knows how much, or no rate turns `own`, as it was billed, into the currency
    asked for. `sure` False: it may fall due or not. `spread`: the cost that counts comes with the days of the term, as
    it does already. `seen` are days it was charged on before; `by_list`: no bill had it, so it is the list price.
    """

    name: str
    due: datetime
    money: Money | None
    ground: CommitmentEvidence = CommitmentEvidence.CHARGED_BEFORE
    sure: bool = True
    times: int = 1
    spread: bool = False
    by_list: bool = False
    cloud: str = ""
    account: str = ""
    ref: ResourceRef | None = None
    seen: tuple[date, ...] = ()
    own: Money | None = None

    @property
    def unknown(self) -> bool:
        """Whether it costs something that is in no figure."""
        return self.money is None and not self.spread


@dataclass(frozen=True, slots=True)
class PrepaidTerm:
    """A machine paid for in advance until `ends`; `hourly` is its list price, `auto_renew` as in `Instance`."""

    ref: ResourceRef
    instance_type: str
    ends: datetime
    auto_renew: bool | None
    hourly: Money | None = None


def terms_in(facts: Iterable[InstanceFact], scope: SpendScope) -> tuple[PrepaidTerm, ...]:
    """The machines of a scope that are paid for in advance, as far as the end of their terms is told."""
    return tuple(
        PrepaidTerm(
            one.ref, one.instance_type, one.paid_until, one.auto_renew, None if fact.rate is None else fact.rate.money
        )
        for fact in facts
        for one in [fact.instance]
        if one.billing is Billing.PREPAID and one.paid_until is not None
        if scope.holds(one.ref.cloud, one.ref.account, one.ref.region, one.tags)
    )


def known_commitments(
    bills: Sequence[Bill],
    terms: Sequence[PrepaidTerm],
    counting: Counting,
    period: Period,
    now: datetime,
    currency: str,
    rates: Sequence[ExchangeRate],
    on: Callable[[str], date],
) -> tuple[Commitment, ...]:
    """What falls due in the period and was not charged yet, on the cost basis that counts, soonest first.

    Rates are those of the date that it is `on` the bills of a cloud.
    `bills` and `terms` are of one scope. Renewals go by the inventory, fees by `coming_again`; where both speak of one
    renewal, the inventory does, for it knows whether there will be one.
    """
    bought = [(bill, purchases(bill.lines, counting)) for bill in bills]
    every = {kind: days for _, kinds in bought for kind, days in kinds.items()}
    found = [*_renewals(terms, every, counting, period, now)]
    for bill, kinds in bought:
        for kind, days in kinds.items():
            found += _fees(kind, days, bill.complete_until, period, terms)
    exchanged = (
        one if one.own is None else replace(one, money=converted(one.own, currency, on(one.cloud), rates))
        for one in found
    )
    return tuple(sorted(exchanged, key=lambda one: (one.due, one.cloud, one.account, one.name)))


def _fees(
    kind: Kind, days: Days, complete_until: datetime | None, period: Period, terms: Sequence[PrepaidTerm]
) -> Iterator[Commitment]:
    ending = [bill_day(term.ends) for term in terms if _is_of(kind, term)]
    for fee in coming_again(days, complete_until, period, committed=kind.committed):
        due = bill_day(fee.due)
        if any(ends - _BEFORE_THE_END <= due <= ends + _AFTER_IT for ends in ending):
            continue
        yield Commitment(
            name=" ".join(filter(None, (kind.service, kind.instance_type))),
            due=fee.due,
            money=None,
            sure=fee.sure,
            times=fee.times,
            cloud=kind.cloud,
            account=kind.account,
            seen=fee.seen,
            own=Money(fee.amount * fee.times, kind.currency),
        )


def _renewals(
    terms: Sequence[PrepaidTerm], bought: Mapping[Kind, Days], counting: Counting, period: Period, now: datetime
) -> Iterator[Commitment]:
    """The ends of terms that are renewed by themselves, or may be; what is not renewed commits to nothing."""
    together = Counter((term.ref.account, term.instance_type, bill_day(term.ends)) for term in terms)
    for term in terms:
        if term.auto_renew is False or term.ends <= now:
            continue
        months, before = _bought_before(term, bought)
        one = Commitment(
            name=term.ref.native_id,
            due=term.ends,
            money=None,
            ground=CommitmentEvidence.TERM,
            sure=term.auto_renew is True,
            cloud=term.ref.cloud,
            account=term.ref.account,
            ref=term.ref,
        )
        if before is not None:
            kind, day, paid = before
            each = paid.counts / together[term.ref.account, term.instance_type, bill_day(term.ends)]
            own = Money(each.quantize(_CENTS), kind.currency) if each else None
            one = replace(one, own=own, spread=own is None, seen=(day,))
        elif counting.basis == "effective":
            one = replace(one, spread=True)
        elif term.auto_renew and term.hourly is not None:
            one = replace(one, own=term.hourly.times(HOURS_PER_MONTH), by_list=True)
        yield from (replace(one, due=due) for due in repeated(term.ends, months, period.end))


def _bought_before(term: PrepaidTerm, bought: Mapping[Kind, Days]) -> tuple[int, tuple[Kind, date, Paid] | None]:
    """How many months the next term has, 0 for unknown, and what the bill had for the last one.

    One day's sum is for all machines of a kind whose terms end together. What renews itself does so for a month, as
    the one cloud that tells it documents.
    """
    ends = bill_day(term.ends)
    for months in (1,) if term.auto_renew else range(1, YEAR + 1):
        began = months_on(ends, -months)
        fitting = [
            (kind, day, paid)
            for kind, days in bought.items()
            if _is_of(kind, term)
            for day, paid in days.items()
            if began - _BEFORE_THE_END <= day <= began + _AFTER_IT
        ]
        if fitting:
            return months, min(fitting, key=lambda one: abs(one[1] - began))
    return (1 if term.auto_renew else 0), None


def _is_of(kind: Kind, term: PrepaidTerm) -> bool:
    return (kind.cloud, kind.account, kind.instance_type) == (term.ref.cloud, term.ref.account, term.instance_type)
