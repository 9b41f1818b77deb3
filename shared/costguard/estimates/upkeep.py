"""What Costguard itself costs a month: amounts of things at dated list prices, and what nobody can say. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum

from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Money, totals

HOURS_PER_MONTH = Decimal(730)  # as price pages count
DAYS_PER_MONTH = HOURS_PER_MONTH / 24
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))  # minute, hour, day, month, weekday; 7 is Sunday as well as 0
_FIELDS = len(_BOUNDS)


class Item(str, Enum):
    """What is paid for."""

    FUNCTION_TIME = "function_time"
    FUNCTION_CALLS = "function_calls"
    FUNCTION_PACKAGE = "function_package"
    PHASES = "phases"
    RUN_FIGURES = "run_figures"
    ALARMS = "alarms"
    METRICS_READ = "metrics_read"
    BILLS_READ = "bills_read"
    SECRETS = "secrets"
    SECRET_STORE = "secret_store"  # noqa: S105 - the name of a line
    SECRET_READS = "secret_reads"  # noqa: S105 - as above
    KEYS = "keys"
    LEDGER = "ledger"
    LEDGER_WRITES = "ledger_writes"
    LEDGER_READS = "ledger_reads"
    LEDGER_STORAGE = "ledger_storage"
    LEDGER_BACKUP = "ledger_backup"
    LOGS_WRITTEN = "logs_written"
    LOGS_KEPT = "logs_kept"
    LOG_PARTITIONS = "log_partitions"
    OBJECTS_KEPT = "objects_kept"
    OBJECT_REQUESTS = "object_requests"
    REQUESTS = "requests"


class Unknown(str, Enum):
    """Why an amount is not known; an unknown one is never 0."""

    NO_PRICE = "no_price"
    """No page of the vendor that could be read has the price."""
    OTHER_REGION = "other_region"
    """The page has no price of this region."""
    BEYOND_PACKAGE = "beyond_package"
    """More than the package holds, and no page has the price beyond it."""
    DEPENDS = "depends"
    """It grows with something that no option tells."""


@dataclass(frozen=True, slots=True)
class ListPrice:
    """What a vendor asks for one unit: the page that says so, and the date of its edition, or `undated`."""

    amount: Decimal
    source: str
    as_of: str
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One thing that is paid for. `price` None where that is `unknown`, which says why; `unit` is of the quantity."""

    item: Item
    quantity: Decimal
    unit: str
    price: ListPrice | None = None
    unknown: Unknown | None = None

    @property
    def amount(self) -> Money | None:
        """A month of it, exact; None where it is not known."""
        return Money(self.quantity * self.price.amount, self.price.currency) if self.price is not None else None


@dataclass(frozen=True, slots=True)
class Assumed:
    """What nobody knows before it runs, and what is taken for it; each is an option of the command."""

    machines: int = 20
    cards: int = 1
    budgets: int = 1
    run_time: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        for name, value in (("machines", self.machines), ("budgets", self.budgets)):
            if value < 0:
                message = f"--{name} {value}: expected a number from 0"
                raise InvalidInputError(message)
        if self.cards < 1:
            message = f"--cards {self.cards}: a GPU machine has one card at least"
            raise InvalidInputError(message)
        if not timedelta(0) < self.run_time <= timedelta(seconds=900):
            message = f"--run-seconds {self.run_time.total_seconds():.0f}: a run takes from 1 to 900 seconds"
            raise InvalidInputError(message)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """A month of Costguard in one cloud. `region` is the one whose prices stand here."""

    cloud: str
    region: str
    assumed: Assumed
    lines: Sequence[CostLine]

    @property
    def known(self) -> Sequence[Money]:
        """The sum of what is known, one a currency."""
        return totals(line.amount for line in self.lines if line.amount is not None)

    @property
    def unknown(self) -> Sequence[CostLine]:
        """What is paid for as well, nobody can say how much."""
        return tuple(line for line in self.lines if line.amount is None)


def starts_a_month(schedule: str) -> Decimal:
    """How often five cron fields in UTC start something in a month of 730 hours.

    Raises:
        InvalidInputError: it is no such schedule.
    """
    fields = schedule.split()
    if len(fields) != _FIELDS:
        message = f"{schedule!r}: expected five cron fields: minute hour day month weekday, such as 17 * * * *"
        raise InvalidInputError(message)
    numbers = [_numbers(field, bounds, schedule) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    minutes, hours, days, months, weekdays = numbers
    if fields[2] != "*" and fields[4] != "*":
        message = f"{schedule!r} names days of the month and of the week; hosts differ on which counts"
        raise InvalidInputError(message)
    a_day = Decimal(len(minutes) * len(hours))
    of_days = DAYS_PER_MONTH
    if fields[2] != "*":
        of_days = Decimal(len(days))
    elif fields[4] != "*":
        of_days = DAYS_PER_MONTH * len({day % 7 for day in weekdays}) / 7
    return a_day * of_days * len(months) / 12


def _numbers(field: str, bounds: tuple[int, int], schedule: str) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        try:
            low, high = bounds if span == "*" else (int(first), int(last) if dash else int(first))
            every = int(step) if step else 1
        except ValueError:
            low, high, every = 1, 0, 0
        if not (bounds[0] <= low <= high <= bounds[1] and every > 0):
            message = f"{schedule!r}: {part!r} is no cron field from {bounds[0]} to {bounds[1]}"
            raise InvalidInputError(message)
        found.update(range(low, high + 1, every))
    return frozenset(found)
