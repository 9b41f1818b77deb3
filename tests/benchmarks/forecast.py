"""How far forecasts of a month's spend are off, 5, 10 and 20 days into it: the product's, and what else could be done.

`python tests/benchmarks/forecast.py --data DIR` from the repository's root. DIR holds real series, none of which is
part of this repository: `forecast/*.csv`, hourly, a column `hour` that counts and one column a series (of the first
file `gpus_active_requested`); and, where there, `gpu_util/philly_node_sequence.csv.gz` (time, active, total; by the
minute) and `billing/focus_1.0_sample_1000.csv` (FOCUS 1.0). `held_out/*.csv`, each a family of daily series: a column
`day` and one column a series, empty before it began; a file whose name ends in `-fitted.csv` holds series on which
something of the method was chosen, the others none. Of a family of a dozen series and more, sums of every sixth are
played as well, and the sum of all. `--every N`: only each Nth month of these. `--smoke`: made-up series instead, in
seconds, among them steady ones that take steps, each of its own and all at once. No figure fails the run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import platform
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from statistics import fmean, median

from costguard.domain.money import Money
from costguard.estimates.billed import DailySpend
from costguard.estimates.forecast import Forecast, forecast
from costguard.estimates.period import Period
from costguard.estimates.seasonal import ahead
from costguard.estimates.spent import Spent

MONTH, DAY_HOURS, WEEK = 30, 24, 7
HISTORY = 63  # days of bill the product keeps
HISTORIES = (21, 35, HISTORY)
DOZEN, SIXTH = 12, 6
ORIGINS = (5, 10, 20)
LAGS = (0, 2)  # days the daily history ends before now: what a bill that is a day and more behind leaves
START = datetime(2026, 1, 5, tzinfo=timezone.utc)  # the series say no date; of a weekday they show nothing either
MOST_NODES = 420  # of Philly; a few values lie above
DAY = timedelta(days=1)
NOTHING = Money(Decimal(0), "USD")
Method = Callable[[Sequence[float], int, int], float]
"""Daily history, how many of its days lie in the month, days left → what they will cost."""


@dataclass(frozen=True)
class Series:
    """Hourly demand, whole days."""

    name: str
    hourly: Sequence[float]

    @property
    def daily(self) -> list[float]:
        """By the day."""
        return [sum(self.hourly[at : at + DAY_HOURS]) for at in range(0, len(self.hourly), DAY_HOURS)]


@dataclass(frozen=True)
class Try:
    """One forecast of one month of one series, and what came. The interval is the product's alone."""

    series: str
    expected: float
    real: float
    low: float = 0.0
    high: float = 0.0
    method: str = ""
    tested: int = 0
    held: int = 0

    @property
    def missed(self) -> float:
        return abs(self.expected - self.real)


def last_month(past: Sequence[float], gone: int, left: int) -> float:
    return sum(past[-gone - MONTH : -gone]) * (gone + left) / MONTH - sum(past[-gone:])


def run_rate(past: Sequence[float], gone: int, left: int) -> float:
    return fmean(past[-gone:]) * left


def last_days(count: int) -> Method:
    return lambda past, _, left: fmean(past[-count:]) * left


def seasonal_naive(past: Sequence[float], _: int, left: int) -> float:
    return sum(past[-WEEK + day % WEEK] for day in range(left))


def smoothed(alpha: float) -> Method:
    def method(past: Sequence[float], _: int, left: int) -> float:
        level = past[0]
        for value in past[1:]:
            level += alpha * (value - level)
        return level * left

    return method


def weekdays(middle: Callable[[Iterable[float]], float], days: int) -> Method:
    """Each weekday's usual part of a week's mean, times the level of the last days."""

    def method(past: Sequence[float], _: int, left: int) -> float:
        weeks = [past[len(past) - at - WEEK : len(past) - at] for at in range(0, 4 * WEEK, WEEK)]
        shape = [middle([week[place] / (fmean(week) or 1.0) for week in weeks]) for place in range(WEEK)]
        mean = fmean(shape) or 1.0
        return sum(fmean(past[-days:]) * shape[day % WEEK] / mean for day in range(left))

    return method


def holt_winters(past: Sequence[float], _: int, left: int) -> float:
    """Damped trend, multiplicative weekdays: 0.3 for the level, 0.05 trend, 0.2 weekdays, damped by 0.9."""
    level, trend = fmean(past[:WEEK]), 0.0
    shape = [value / level if level else 1.0 for value in past[:WEEK]]
    for at, value in enumerate(past[WEEK:]):
        seasonal = shape[at % WEEK] or 1e-9
        before, level = level, 0.3 * value / seasonal + 0.7 * (level + 0.9 * trend)
        trend = 0.05 * (level - before) + 0.95 * 0.9 * trend
        shape[at % WEEK] = 0.2 * (value / level if level else 1.0) + 0.8 * seasonal
    damped = [sum(0.9**step for step in range(1, day + 2)) * trend for day in range(left)]
    at = len(past) - WEEK
    return sum(max((level + damped[day]) * shape[(at + day) % WEEK], 0.0) for day in range(left))


OTHERS: Mapping[str, Method] = {
    "last month": last_month,
    "run rate of the month": run_rate,
    "last day": last_days(1),
    "last 7 days": last_days(7),
    "last 28 days": last_days(28),
    "seasonal naive": seasonal_naive,
    "smoothing 0.3": smoothed(0.3),
    "weekday means × 7 days": weekdays(fmean, 7),
    "weekday medians × 7 days": weekdays(median, 7),
    "weekday medians × 14 days": weekdays(median, 14),
    "damped Holt-Winters": holt_winters,
}


def tries(series: Series, gone: int, method: Method) -> Iterator[Try]:
    """Every month of thirty days that has thirty before it, whatever day it begins on."""
    daily = series.daily
    for start in range(MONTH, len(daily) - MONTH + 1):
        so_far = sum(daily[start : start + gone])
        coming = method(daily[: start + gone], gone, MONTH - gone)
        yield Try(series.name, so_far + coming, sum(daily[start : start + MONTH]))


def product_tries(series: Series, gone: int, lag: int, history: int = HISTORY, every: int = 1) -> Iterator[Try]:
    """The same by `costguard.estimates.forecast`; what is spent is known, its days only up to `lag` days ago.

    A month is left out that nothing was spent before or in: a forecast of nothing holds, and says nothing.
    """
    daily = series.daily
    for start in range(MONTH, len(daily) - MONTH + 1, every):
        if not any(daily[start + gone - 2 * WEEK : start + gone]) or not any(daily[start : start + MONTH]):
            continue
        burn = series.hourly[(start + gone) * DAY_HOURS - 1]
        told = product(daily[: start + gone], burn, start, gone, lag, history)
        real = sum(daily[start : start + MONTH])
        bounds = float(told.low.amount), float(told.high.amount)
        yield Try(series.name, float(told.expected.amount), real, *bounds, told.method, told.tested, told.held)


def product(past: Sequence[float], burn: float, start: int, gone: int, lag: int, history: int = HISTORY) -> Forecast:
    """`burn` is of the last hour; whether it is a surge is told by no meter here, so it is not."""
    now = START + DAY * (start + gone)
    period = Period("a month", START + DAY * start, START + DAY * (start + MONTH))
    billed = len(past) - lag
    first = max(billed - history, 0)
    days = [DailySpend((START + DAY * at).date(), money(past[at])) for at in range(first, billed)]
    ran = money(sum(past[billed:]) / (lag * DAY_HOURS)) if lag else None
    so_far = Spent(money(sum(past[start:])), NOTHING, NOTHING, NOTHING, now - DAY * lag, unbilled_per_hour=ran)
    told = forecast(days, so_far, money(burn), (), period, now)
    if told is None:
        raise RuntimeError("no forecast inside of its period")
    return told


def money(value: float) -> Money:
    return Money(Decimal(str(round(value, 6))), "USD")


def burn_misses(series: Series, gone: int, weight: float) -> Iterator[float]:
    """Misses as a share of the month, where an hour burns more than any of the past 28 days in the mean.

    `weight` is what that hour counts for in the days to come; the rest is the product's method.
    """
    daily = series.daily
    for start in range(MONTH, len(daily) - MONTH + 1):
        past, whole = daily[max(start + gone - HISTORY, 0) : start + gone], sum(daily[start : start + MONTH])
        a_day = fmean(ahead(past, MONTH - gone))
        for hour in range(3, DAY_HOURS, 3):
            at = (start + gone) * DAY_HOURS + hour
            burn = series.hourly[at - 1] * DAY_HOURS
            if burn > max(past[-28:]):
                left = (start + MONTH) * DAY_HOURS - at
                expected = ((1 - weight) * a_day + weight * burn) / DAY_HOURS * left
                yield abs(expected - sum(series.hourly[at : at + left])) / whole


def wape(found: Sequence[Try]) -> float:
    """Misses over what came, of each series, and their mean: no series outweighs another by its size."""
    names = sorted({one.series for one in found})
    return fmean(
        sum(one.missed for one in found if one.series == name) / sum(one.real for one in found if one.series == name)
        for name in names
    )


def mape(found: Sequence[Try]) -> float:
    return fmean(one.missed / one.real for one in found)


def coverage(found: Sequence[Try]) -> float:
    return fmean(one.low <= one.real <= one.high for one in found)


def real_series(folder: Path) -> Iterator[Series]:
    """What DIR holds, as the first lines of this file say.

    Raises:
        SystemExit: there is nothing to read.
    """
    files = sorted((folder / "forecast").glob("*.csv"))
    if not files:
        raise SystemExit(f"{folder}/forecast/*.csv: no such file")  # noqa: EM102 - told to who started it
    for path in files:
        with path.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        names = [name for name in rows[0] if name != "hour"]
        if "gpus_active_requested" in names:
            names = ["gpus_active_requested"]
        for name in names:
            yield _whole_days(name, [float(row[name] or 0) for row in rows])
    philly = folder / "gpu_util/philly_node_sequence.csv.gz"
    if philly.is_file():
        yield _philly(philly)


def _whole_days(name: str, hourly: Sequence[float]) -> Series:
    return Series(name, hourly[: len(hourly) // DAY_HOURS * DAY_HOURS])


def _philly(path: Path) -> Series:
    """The mean of each hour; an hour that nobody recorded is like the one before."""
    sums: dict[datetime, list[float]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            active = float(row["active"] or -1)
            if 0 <= active <= MOST_NODES:
                hour = datetime.strptime(row["time"][:13], "%Y-%m-%d %H").replace(tzinfo=timezone.utc)
                sums.setdefault(hour, []).append(active)
    first, last = min(sums), max(sums)
    hourly: list[float] = []
    for at in range(int((last - first) / timedelta(hours=1)) + 1):
        values = sums.get(first + timedelta(hours=at))
        hourly.append(fmean(values) if values else hourly[-1])
    return _whole_days("Philly, active nodes", hourly)


def families(folder: Path) -> Iterator[tuple[str, list[Series]]]:
    """The families of daily series, those with something chosen on them first, and the totals of each large one."""
    files = sorted((folder / "held_out").glob("*.csv"), key=lambda path: (not path.stem.endswith("-fitted"), path.stem))
    for path in files:
        with path.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        names = [name for name in rows[0] if name != "day"]
        found = [_daily(name, [float(row[name] or 0) for row in rows]) for name in names]
        yield path.stem, found
        if len(found) >= DOZEN:
            yield f"{path.stem}, totals", list(totals(found))


def totals(parts: Sequence[Series]) -> Iterator[Series]:
    """Every sixth series added up, and all of them."""
    for name, these in (*((f"every 6th from {at}", parts[at::SIXTH]) for at in range(SIXTH)), ("all", parts)):
        yield Series(name, [sum(hour) for hour in zip(*(one.hourly for one in these), strict=True)])


def _daily(name: str, daily: Sequence[float]) -> Series:
    return Series(name, [value / DAY_HOURS for value in daily for _ in range(DAY_HOURS)])


def made_up_families() -> Iterator[tuple[str, list[Series]]]:
    """A dozen steady scopes: each takes a step of its own; the same, and one of all; of each the totals."""
    chance = random.Random(7)  # noqa: S311 - not for secrets
    for name, shared in (("steady with steps", 1.0), ("steady with a shared shock", 0.8)):
        found = []
        for scope in range(DOZEN):
            step, size = chance.randrange(60, 120), math.exp(chance.gauss(0, 0.5))
            days = [
                100 * (size if day >= step else 1.0) * (shared if day >= 70 else 1.0) * chance.gauss(1, 0.01)
                for day in range(130)
            ]
            found.append(_daily(f"scope {scope}", days))
        yield name, found
        yield f"{name}, totals", list(totals(found))


def made_up_series() -> Iterator[Series]:
    """Wandering, and with weekends at a third."""
    chance = random.Random(5)  # noqa: S311 - not for secrets
    for name, weekend in (("wandering", 1.0), ("weekdays", 0.33)):
        level, hourly = 100.0, []
        for hour in range(80 * DAY_HOURS):
            level *= math.exp(chance.gauss(0, 0.005))
            hourly.append(level * (weekend if hour // DAY_HOURS % WEEK >= WEEK - 2 else 1.0))
        yield Series(name, hourly)


def bill_days(path: Path) -> list[float]:
    """Effective cost by the day of a FOCUS bill: usage alone."""
    days: dict[str, float] = {}
    with path.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            if row["ChargeCategory"] == "Usage" and row["ProviderName"] == "AWS":
                day = row["ChargePeriodStart"][:10]
                days[day] = days.get(day, 0.0) + float(row["EffectiveCost"])
    return [days[day] for day in sorted(days)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, metavar="DIR", help="a folder with real series, as said above")
    what.add_argument("--smoke", action="store_true", help="made-up series, in seconds")
    parser.add_argument("--every", type=int, default=7, metavar="N", help="each Nth month of the families (7)")
    given = parser.parse_args()
    series = list(made_up_series() if given.smoke else real_series(given.data))
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    for one in series:
        print(f"  {one.name}: {len(one.daily)} days, {len(one.daily) - 2 * MONTH + 1} months of {MONTH} days")
    print(f"\n| method | {' | '.join(f'WAPE, MAPE at {gone} days' for gone in ORIGINS)} |")
    for name, method in OTHERS.items():
        cells = []
        for gone in ORIGINS:
            found = [one for each in series for one in tries(each, gone, method)]
            cells.append(f"{wape(found):.1%}, {mape(found):.1%}")
        print(f"| {name} | {' | '.join(cells)} |")
    for lag in LAGS:
        _print_product(series, lag)
    _print_burn(series)
    _print_families(made_up_families() if given.smoke else families(given.data), 30 if given.smoke else given.every)
    bill = given.data / "billing/focus_1.0_sample_1000.csv" if given.data else None
    if bill is not None and bill.is_file():
        _print_bill(bill_days(bill))


def _print_product(series: Sequence[Series], lag: int) -> None:
    cells, bounds, by_series = [], [], []
    began, count = time.perf_counter(), 0
    for gone in ORIGINS:
        found = [one for each in series for one in product_tries(each, gone, lag)]
        count += len(found)
        wide = fmean((one.high - one.low) / 2 / one.real for one in found)
        cells.append(f"{wape(found):.1%}, {mape(found):.1%}")
        bounds.append(f"{coverage(found):.0%} within ±{wide:.0%}")
        worst = min((coverage([one for one in found if one.series == each.name]), each.name) for each in series)
        by_series.append(f"{worst[0]:.0%} ({worst[1]})")
    took = (time.perf_counter() - began) / count
    print(f"| **costguard**, history ends {lag} days ago | {' | '.join(cells)} |")
    print(f"| its 80 % interval held, and its mean half width | {' | '.join(bounds)} |")
    print(f"| held least often | {' | '.join(by_series)} |")
    print(f"  {took * 1000:.1f} ms a forecast, back-test included")


def _print_families(found: Iterable[tuple[str, list[Series]]], every: int) -> None:
    print(f"\n80 % confidence, series of families, each {every}th month; held (least of one series), half width, WAPE:")
    print(f"| family | history, lag | {' | '.join(f'at {gone} days' for gone in ORIGINS)} |")
    for family, series in found:
        picked: dict[str, int] = {}
        for history in HISTORIES:
            for lag in LAGS:
                cells = []
                for gone in ORIGINS:
                    tried = [one for each in series for one in product_tries(each, gone, lag, history, every)]
                    tried = [one for one in tried if one.tested]
                    for one in tried:
                        picked[one.method] = picked.get(one.method, 0) + 1
                    cells.append(_cell(tried))
                print(f"| {family} | {history} d, {lag} d | {' | '.join(cells)} |")
        count = sum(picked.values()) or 1
        print(f"  {', '.join(f'{name} {of / count:.0%}' for name, of in sorted(picked.items()))}")


def _cell(tried: Sequence[Try]) -> str:
    if not tried:
        return "-"
    names = sorted({one.series for one in tried})
    by_series = [coverage([one for one in tried if one.series == name]) for name in names]
    wide = median((one.high - one.low) / 2 / max(one.real, 1e-9) for one in tried)
    own = sum(one.held for one in tried) / sum(one.tested for one in tried)
    return f"{fmean(by_series):.0%} ({min(by_series):.0%}), ±{wide:.0%}, {wape(tried):.1%}, own past {own:.0%}"


def _print_burn(series: Sequence[Series]) -> None:
    print("\nan hour above every day of the past four weeks, and what it should count for in the days to come:")
    print(f"| weight | {' | '.join(f'MAPE at {gone} days' for gone in ORIGINS)} |")
    for weight in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0):
        found = [[miss for each in series for miss in burn_misses(each, gone, weight)] for gone in ORIGINS]
        print(f"| {weight} | {' | '.join(f'{fmean(misses):.1%} of {len(misses)}' for misses in found)} |")


def _print_bill(daily: Sequence[float]) -> None:
    real = sum(daily)
    print(f"\nFOCUS sample: {len(daily)} days of one month, {real:.2f} USD of usage; no month before it")
    for gone in ORIGINS:
        told = product(daily[:gone], daily[gone - 1] / DAY_HOURS, 0, gone, 0)
        rate = sum(daily[:gone]) + run_rate(daily[:gone], gone, len(daily) - gone)
        print(
            f"  at {gone} days: costguard {told.expected} ({told.low} to {told.high}, {told.method}), "
            f"run rate of the month {rate:.2f}"
        )


if __name__ == "__main__":
    main()
