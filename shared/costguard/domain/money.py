"""Money as exact decimals that never cross currencies by accident, and spend as clouds bill it (FOCUS).

One currency becomes another by the dated rates of the policy alone; never by a rate nobody gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import Enum
from fnmatch import fnmatchcase

from costguard.domain.resources import Gap

HOURS_PER_MONTH = Decimal(730)  # 8,760 / 12, the month of cloud price pages
POLICY_PRICE = "policy"
"""The source of an hourly price that the policy gives."""
_SECONDS_PER_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in one currency (ISO 4217 code, FOCUS `billing_currency`)."""

    amount: Decimal
    currency: str

    def __add__(self, other: Money) -> Money:
        if self.currency != other.currency:
            message = f"cannot add {other.currency} to {self.currency}; keep one total per currency"
            raise ValueError(message)
        return Money(self.amount + other.amount, self.currency)

    def times(self, factor: Decimal | int) -> Money:
        """This amount `factor` times."""
        return Money(self.amount * factor, self.currency)

    def rounded(self, places: int = 2) -> Money:
        """For people to read; never feed a rounded amount back into a decision."""
        return Money(self.amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN), self.currency)

    def __str__(self) -> str:
        return f"{self.rounded().amount:,} {self.currency}"


def totals(amounts: Iterable[Money]) -> tuple[Money, ...]:
    """One sum per currency, largest first, then by currency code."""
    sums: dict[str, Decimal] = {}
    for money in amounts:
        sums[money.currency] = sums.get(money.currency, Decimal(0)) + money.amount
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Money(amount, currency) for currency, amount in ordered)


def hours(duration: timedelta) -> Decimal:
    """A duration in exact hours, for multiplying an hourly price."""
    return (
        Decimal(duration.days * 24)
        + (Decimal(duration.seconds) + Decimal(duration.microseconds) / 1_000_000) / _SECONDS_PER_HOUR
    )


@dataclass(frozen=True, slots=True)
class Discount:
    """What is off the list price of on-demand machines by contract, as the policy declares it: `share` is 0 to 1.

    An empty `account` is every account, `instance_types` are globs, empty for every type. `since` None: always.
    """

    cloud: str
    share: Decimal
    account: str = ""
    instance_types: tuple[str, ...] = ()
    since: date | None = None

    @property
    def scope(self) -> tuple[str, str, frozenset[str]]:
        """Which machines it is of; entries of one scope renew each other."""
        return self.cloud, self.account, frozenset(self.instance_types)

    def holds(self, cloud: str, account: str, instance_type: str) -> bool:
        """Whether it is of such a machine."""
        return (
            self.cloud == cloud
            and self.account in {"", account}
            and (not self.instance_types or any(fnmatchcase(instance_type, each) for each in self.instance_types))
        )


class NetSource(str, Enum):
    """How a net price is known: `BILL` is measured, `DISCOUNT` and `PRICE` are what the policy declares."""

    BILL = "bill"
    DISCOUNT = "discount"
    PRICE = "price"


@dataclass(frozen=True, slots=True)
class NetRate:
    """What one running hour costs after discounts (FOCUS: effective cost), and how we know.

    `discount` is the share off the list price, None where no list price is known beside it. `as_of` is up to when the
    bill was measured, or since when the policy says so; empty: always. `declared` is a declared discount that a
    measured one was preferred to, and that it contradicts.
    """

    money: Money
    source: NetSource
    as_of: str
    discount: Decimal | None = None
    declared: Decimal | None = None


@dataclass(frozen=True, slots=True)
class HourlyRate:
    """What one running hour costs, and how we know.

    `source` is where the number is from (`policy`, `aws-pricing`, `table`), `as_of` its ISO date.
    List price: commitments and negotiated discounts are not in it. `net` is the price after discounts, None where
    nobody knows it. Limits in money count `money`, the larger of both.
    """

    money: Money
    source: str
    as_of: str
    net: NetRate | None = None

    @property
    def is_list(self) -> bool:
        """Whether `money` is a price of the cloud; else the policy gives it."""
        return self.source != POLICY_PRICE

    def after_discounts(self, amount: Money) -> Money | None:
        """What an amount by this price comes to after discounts; None where nobody knows that."""
        if self.net is None:
            return None
        return amount if self.net.discount is None else amount.times(1 - self.net.discount)


class ChargeCategory(str, Enum):
    """FOCUS `ChargeCategory`. Refunds and corrections are `ADJUSTMENT`, vouchers and promotions `CREDIT`.

    `PURCHASE` is what is paid once for later use (a reservation, a prepaid term): it has a billed cost and no
    effective one, which comes with the usage it pays for.
    """

    USAGE = "usage"
    PURCHASE = "purchase"
    TAX = "tax"
    CREDIT = "credit"
    ADJUSTMENT = "adjustment"


class PricingCategory(str, Enum):
    """FOCUS `PricingCategory`: at list or negotiated price, at a market price (spot), or under a commitment."""

    STANDARD = "standard"
    DYNAMIC = "dynamic"
    COMMITTED = "committed"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class SpendLine:
    """One charge, or the sum of charges alike, over one charge period (aware, UTC; `charge_period_end` is outside it).

    `billed_cost` is what the invoice says, `effective_cost` after discounts and with commitments amortised over what
    they pay for; both are negative for credits and refunds, in the same currency. `service_name` is the vendor's own
    word (`AmazonEC2`, `ecs`, `p_cvm`). What a vendor does not tell for a charge stays empty: such a charge matches no
    scope that asks for it. `accelerated`: the charge is for machines or platforms with accelerators (a GPU instance,
    SageMaker, PAI, TI-ONE). `resource_id` is the vendor's native id. `list_cost` is what a use outside commitments
    would have cost at list price, in the same currency; None where the bill does not tell it.
    """

    cloud: str
    billing_account_id: str
    sub_account_id: str
    region_id: str
    service_name: str
    charge_category: ChargeCategory
    charge_period_start: datetime
    charge_period_end: datetime
    billed_cost: Money
    effective_cost: Money
    pricing_category: PricingCategory = PricingCategory.STANDARD
    instance_type: str = ""
    resource_id: str = ""
    resource_name: str = ""
    accelerated: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    list_cost: Money | None = None


@dataclass(frozen=True, order=True, slots=True)
class SpendScope:
    """A slice of spend: everything given must hold. Exact words, never patterns; of a list, any one.

    `tags` are pairs in order of their keys, each of which must be there with this value. An empty tuple of clouds,
    accounts or regions holds nothing; None leaves that part open.
    """

    clouds: tuple[str, ...] | None = None
    accounts: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    tags: tuple[tuple[str, str], ...] = ()

    def holds(self, cloud: str, account: str, region: str, tags: Mapping[str, str]) -> bool:
        """Whether something of this cloud, account and region, with these tags, is in the slice."""
        return (
            (self.clouds is None or cloud in self.clouds)
            and (self.accounts is None or account in self.accounts)
            and (self.regions is None or region in self.regions)
            and all(key in tags and tags[key] == value for key, value in self.tags)
        )

    def holds_line(self, line: SpendLine) -> bool:
        """Whether a charge is in the slice."""
        return self.holds(line.cloud, line.sub_account_id, line.region_id, line.tags)

    def touches(self, cloud: str) -> bool:
        """Whether anything of this cloud can be in the slice."""
        return self.clouds is None or cloud in self.clouds


@dataclass(frozen=True, slots=True)
class SpendReport:
    """The charges of one scope as one payer's bill shows them.

    Every charge before `complete_until` is in `lines`; later ones may be, in part, and prove nothing. None: the bill
    says nothing yet (a month that is still being prepared), which is not zero. A report with a gap is not to be relied
    on for being complete. `source` names where the figures are from (`aws-cost-explorer`). `zone` is the one
    whose days the bill counts in, empty where nobody tells. Before `final_until`, the begin of a month, the vendor's
    documents promise that no charge is added any more; None: nobody promises anything.
    """

    lines: tuple[SpendLine, ...]
    complete_until: datetime | None
    read_at: datetime
    source: str
    gaps: tuple[Gap, ...] = ()
    zone: str = ""
    final_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """The charges of one scope as one payer's bill showed them at `read_at`, summed by day and kind.

    `since` is from when on they were ever read. Resources, regions and tags are gone; account, service and type stay
    where accelerators were charged for. `complete_until`, `zone` and `final_until` as in `SpendReport`.
    """

    cloud: str
    lines: tuple[SpendLine, ...]
    since: datetime
    complete_until: datetime | None
    read_at: datetime
    source: str
    zone: str = ""
    final_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class VendorBudget:
    """A budget somebody set up in the cloud's own console, so that it can be adopted.

    `period` is `monthly`, `quarterly`, `yearly`, `daily` or `dated`; thresholds are percentages of `amount` ("80")
    of actual and of forecast spend. `counts_credits` and `counts_tax` say whether those lower or raise its spend,
    `amortised` whether commitments are spread; None where the cloud does not say. `unsupported` says what of it
    Costguard cannot express; empty: all of it can be.
    """

    cloud: str
    account: str
    name: str
    amount: Money
    period: str
    scope: SpendScope
    actual_thresholds: tuple[str, ...] = ()
    forecast_thresholds: tuple[str, ...] = ()
    spent: Money | None = None
    amortised: bool | None = None
    counts_credits: bool | None = None
    counts_tax: bool | None = None
    unsupported: str = ""


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """What one unit of `base` is worth in `quote` from the day `since` on, until a later rate of the same pair."""

    base: str
    quote: str
    rate: Decimal
    since: date


def converted(money: Money, currency: str, on: date, rates: Sequence[ExchangeRate]) -> Money | None:
    """`money` in `currency` by the rate that held on that day; None where there was none.

    A pair is used in either direction; nothing is converted over a third currency.
    """
    if money.currency == currency:
        return money
    latest = rate_on(money.currency, currency, on, rates)
    if latest is None:
        return None
    factor = latest.rate if latest.base == money.currency else 1 / latest.rate
    return Money(money.amount * factor, currency)


def rate_on(one: str, other: str, on: date, rates: Sequence[ExchangeRate]) -> ExchangeRate | None:
    """The rate between two currencies, in either direction, that held on that day."""
    held = [rate for rate in rates if rate.since <= on and {rate.base, rate.quote} == {one, other}]
    return max(held, key=lambda rate: rate.since, default=None)
