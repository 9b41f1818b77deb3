"""How much of what a deployment takes in a month: from function.yaml files, variables and the size of the fleet.

What stands here follows infra/CLOUD: how many alarms a function has, what a run writes and reads. What is taken for the
rest, because nobody knows it before it runs, is named below; the page of each deployment shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from costguard.cli.operate.deploying import list_prices as prices
from costguard.domain.errors import InvalidInputError
from costguard.estimates.upkeep import (
    DAYS_PER_MONTH,
    HOURS_PER_MONTH,
    Assumed,
    CostLine,
    Item,
    ListPrice,
    Unknown,
    Upkeep,
    starts_a_month,
)

FIGURES = 7
"""What a finished run writes as metrics (faas/handler.py): findings, due, done, held, gaps, unmeasured, duration."""
ALARMS_OF_A_FUNCTION, ALARMS_OF_A_DAILY = 3, 2
"""infra/aws: errors, throttles and duration of each; missed and dead-man of what starts every day."""
ALARMS_ON_LINES = 3
"""infra/aws: notices lost, notices that wait, dead letters. Further ones: the digest, and two on requests."""
LEDGER_WRITES_A_RUN, LEDGER_READS_A_RUN = 500, 1_000
LOG_GB_A_RUN = Decimal("0.00025")
OBJECT_GB = Decimal(1)
LEDGER_GB = Decimal(1)
ANSWERS_A_MONTH, SECONDS_AN_ANSWER = 1_000, Decimal(1)
_HOURS_A_DAY = 24
_METRICS_OF_A_MACHINE, _METRICS_OF_A_CARD = 14, 4
"""docs/signals.md: of the machine CPU 2, network 4 and disks 8; of each card its use 2 and its power 2."""
_CALLS_OF_A_MACHINE = 7
"""CloudMonitor and Monitor: a page for CPU, up to six for network; the rest is read for many machines in one."""
_GIB = 1024
_FC_DISK_CU = Decimal("0.5") * Decimal("0.05")  # 512 MB, at 0.05 CU for a GB and second


@dataclass(frozen=True, slots=True)
class Function:
    """What its function.yaml says of one that is deployed: `starts` a month, what it reads of a cloud.

    `schedule` is None where requests start it.
    """

    name: str
    schedule: str | None
    memory_mib: int
    starts: Decimal
    reading: frozenset[str]

    @property
    def daily(self) -> bool:
        """Whether it starts on every day."""
        return self.schedule is not None and self.schedule.split()[2:] == ["*", "*", "*"]


def upkeep(cloud: str, functions: Path, variables: Mapping[str, Any], assumed: Assumed) -> Upkeep:
    """What a month of it costs at list price. `functions` is the folder of that name; of `variables` the module's own.

    Raises:
        InvalidInputError: there is no such function, or a schedule is none.
    """
    deployed = tuple(_deployed(functions, variables))
    lines, region = _CLOUDS[cloud], str(variables.get("region") or "")
    return Upkeep(cloud, region, assumed, tuple(line for line in lines(deployed, variables, assumed) if line.quantity))


def _deployed(folder: Path, variables: Mapping[str, Any]) -> Iterator[Function]:
    known = {path.parent.name: path for path in sorted(folder.glob("*/function.yaml"))}
    chosen, schedules = variables.get("functions"), variables.get("schedules") or {}
    wrong = sorted({*(chosen or ()), *schedules} - set(known))
    if wrong or not known:
        message = f"there is no function {', '.join(wrong)} in {folder}; there is {', '.join(known) or 'none'}"
        raise InvalidInputError(message)
    for name, path in known.items():
        if chosen is None or name in chosen:
            said = _said(path)
            schedule = schedules.get(name) or said.get("schedule")
            starts = starts_a_month(schedule) if schedule else Decimal(ANSWERS_A_MONTH)
            yield Function(
                name, schedule, said["memory_mib"], starts, frozenset(said["needs"]["permissions"]["reading"])
            )


def _said(path: Path) -> Mapping[str, Any]:
    from costguard.policy.syntax.yaml12 import read_yaml
    from costguard.policy.syntax.yaml_nodes import plain

    root = read_yaml(str(path), path.read_text(encoding="utf-8")).root
    said = plain(root) if root is not None else None
    if not isinstance(said, dict):
        message = f"{path}: not what functions/function.schema.json describes"
        raise InvalidInputError(message)
    return said


def _runs(functions: Sequence[Function]) -> Decimal:
    return sum((one.starts for one in functions if one.schedule), Decimal(0))


def _seconds(one: Function, assumed: Assumed) -> Decimal:
    return one.starts * (Decimal(str(assumed.run_time.total_seconds())) if one.schedule else SECONDS_AN_ANSWER)


def _gib_seconds(functions: Sequence[Function], assumed: Assumed) -> Decimal:
    return sum((_seconds(one, assumed) * one.memory_mib / _GIB for one in functions), Decimal(0))


def _secret_names(variables: Mapping[str, Any]) -> int:
    return len({str(at).partition("#")[0] for at in (variables.get("secrets") or {}).values()})


def _log_months(variables: Mapping[str, Any]) -> Decimal:
    return Decimal(variables.get("log_retention_days") or 90) / DAYS_PER_MONTH


def _machine_runs(functions: Sequence[Function], assumed: Assumed) -> Decimal:
    """How often a month machines' metrics are read; what reads bills reads them only once a budget is overspent."""
    always = (one.starts for one in functions if "metrics" in one.reading and "billing" not in one.reading)
    return sum(always, Decimal(0)) * assumed.machines


def _aws(functions: Sequence[Function], variables: Mapping[str, Any], assumed: Assumed) -> Iterator[CostLine]:
    def line(item: Item, quantity: Decimal | int, unit: str, price: str) -> CostLine:
        return CostLine(item, Decimal(quantity), unit, prices.AWS[price])

    runs, starts = _runs(functions), sum((one.starts for one in functions), Decimal(0))
    timed, asked = [one for one in functions if one.schedule], [one for one in functions if not one.schedule]
    arch = str(variables.get("architecture") or "x86_64")
    yield line(Item.FUNCTION_TIME, _gib_seconds(functions, assumed), "gib_seconds", f"gib_second_{arch}")
    yield line(Item.FUNCTION_CALLS, starts, "calls", "call")
    if variables.get("distributed"):
        yield CostLine(Item.PHASES, Decimal(1), "months", unknown=Unknown.DEPENDS)
    # A custom metric is paid for each hour in which it is written.
    written = sum((min(one.starts, HOURS_PER_MONTH) / HOURS_PER_MONTH for one in timed), Decimal(0))
    yield line(Item.RUN_FIGURES, FIGURES * written, "metrics", "metric")
    daily = sum(one.daily for one in timed)
    digest = any(one.name == "digest" for one in timed) and daily > 0
    alarms = ALARMS_OF_A_FUNCTION * len(functions) + ALARMS_OF_A_DAILY * daily + ALARMS_ON_LINES
    yield line(Item.ALARMS, alarms + digest + 2 * bool(asked), "alarms", "alarm")
    metrics = _METRICS_OF_A_MACHINE + _METRICS_OF_A_CARD * assumed.cards
    yield line(Item.METRICS_READ, _machine_runs(functions, assumed) * metrics, "metrics", "metric_read")
    if any("billing" in one.reading for one in functions):
        yield line(Item.BILLS_READ, 3 * DAYS_PER_MONTH * assumed.budgets, "requests", "bill_read")
    secrets = _secret_names(variables)
    yield line(Item.SECRETS, secrets, "secrets", "secret")
    yield line(Item.SECRET_READS, secrets * starts, "requests", "secret_read")
    yield line(Item.KEYS, bool(variables.get("log_key_arn")), "keys", "key")
    yield line(Item.LEDGER_WRITES, LEDGER_WRITES_A_RUN * runs, "units", "write")
    yield line(Item.LEDGER_READS, LEDGER_READS_A_RUN * runs, "units", "read")
    yield line(Item.LEDGER_STORAGE, LEDGER_GB, "gb_months", "ledger_gb_month")
    if variables.get("ledger_backup") is not False:
        yield line(Item.LEDGER_BACKUP, LEDGER_GB, "gb_months", "backup_gb_month")
    yield line(Item.LOGS_WRITTEN, LOG_GB_A_RUN * starts, "gb", "log_gb")
    yield line(Item.LOGS_KEPT, LOG_GB_A_RUN * starts * _log_months(variables), "gb_months", "log_gb_month")
    yield line(Item.OBJECTS_KEPT, OBJECT_GB, "gb_months", "object_gb_month")
    yield line(Item.OBJECT_REQUESTS, 3 * starts, "requests", "object_get")
    yield line(Item.REQUESTS, starts, "requests", "start")


def _alibaba(functions: Sequence[Function], variables: Mapping[str, Any], assumed: Assumed) -> Iterator[CostLine]:
    timed = [one for one in functions if one.schedule]
    units = sum(
        (_seconds(one, assumed) * (_fc_cores(one) + Decimal(one.memory_mib) / _GIB * Decimal("0.15") + _FC_DISK_CU))
        for one in functions
    )
    yield CostLine(Item.FUNCTION_TIME, Decimal(units), "cu", prices.ALIBABA["cu"])
    yield from _alibaba_ledger(str(variables.get("region") or ""))
    if variables.get("secret_store") != "bucket":
        secrets = _secret_names(variables) or 1  # the ledger's address is one, always
        yield CostLine(Item.SECRET_STORE, DAYS_PER_MONTH, "days", prices.ALIBABA["kms_instance_day"])
        yield CostLine(Item.SECRET_STORE, DAYS_PER_MONTH, "qps_days", prices.ALIBABA["kms_qps_day"])
        yield CostLine(Item.KEYS, DAYS_PER_MONTH, "key_days", prices.ALIBABA["kms_key_day"])
        yield CostLine(Item.SECRETS, secrets * DAYS_PER_MONTH, "secret_days", prices.ALIBABA["kms_secret_day"])
    starts = sum((one.starts for one in functions), Decimal(0))
    yield CostLine(Item.LOGS_WRITTEN, LOG_GB_A_RUN * starts, "gb", prices.ALIBABA["log_gb"])
    yield CostLine(
        Item.LOGS_KEPT, LOG_GB_A_RUN * starts * _log_months(variables), "gb_months", unknown=Unknown.NO_PRICE
    )
    yield _metric_calls(functions, assumed)
    yield CostLine(Item.ALARMS, Decimal(4 * len(functions) + 4 * len(timed)), "alarms", unknown=Unknown.NO_PRICE)
    yield CostLine(Item.OBJECTS_KEPT, OBJECT_GB, "gb_months", unknown=Unknown.NO_PRICE)


def _fc_cores(one: Function) -> Decimal:
    """As infra/alibaba gives them, in steps of 0.05: half a core for a GiB, a whole one where people wait."""
    return Decimal(math.ceil(one.memory_mib / _GIB / (2 if one.schedule else 1) * 20)) / 20


def _alibaba_ledger(region: str) -> Iterator[CostLine]:
    """Half a capacity unit all the time, and 20 GB."""
    mainland = region.startswith("cn-") and region != "cn-hongkong"
    asked = prices.ALIBABA_LEDGER.get("cn" if mainland else region)
    hour, stored = asked or (None, None)
    unknown = None if asked else Unknown.OTHER_REGION
    yield CostLine(Item.LEDGER, HOURS_PER_MONTH / 2, "rcu_hours", hour, unknown)
    yield CostLine(Item.LEDGER_STORAGE, 20 * HOURS_PER_MONTH, "gb_hours", stored, unknown)


def _metric_calls(functions: Sequence[Function], assumed: Assumed) -> CostLine:
    calls = _machine_runs(functions, assumed) * _CALLS_OF_A_MACHINE
    beyond = calls > prices.FREE_METRIC_CALLS
    free = ListPrice(Decimal(0), "docs/signals.md", "undated")
    unknown = Unknown.BEYOND_PACKAGE if beyond else None
    return CostLine(Item.METRICS_READ, calls, "calls", None if beyond else free, unknown)


def _tencent(functions: Sequence[Function], variables: Mapping[str, Any], assumed: Assumed) -> Iterator[CostLine]:
    used, starts = _gib_seconds(functions, assumed), sum((one.starts for one in functions), Decimal(0))
    yield CostLine(Item.FUNCTION_PACKAGE, Decimal(1), "months", prices.TENCENT["package"])
    beyond = used > prices.TENCENT_PACKAGE_GIB_SECONDS or starts > prices.TENCENT_PACKAGE_CALLS
    yield CostLine(
        Item.FUNCTION_TIME,
        max(Decimal(0), used - prices.TENCENT_PACKAGE_GIB_SECONDS) if beyond else Decimal(0),
        "gib_seconds",
        unknown=Unknown.BEYOND_PACKAGE,
    )
    here = str(variables.get("region") or "") == prices.TENCENT_LEDGER_REGION
    unknown = None if here else Unknown.OTHER_REGION
    memory, storage = (prices.TENCENT[name] if here else None for name in ("ledger_gib_hour", "ledger_gb_hour"))
    yield CostLine(Item.LEDGER, 2 * HOURS_PER_MONTH, "gib_hours", memory, unknown)
    yield CostLine(Item.LEDGER_STORAGE, 10 * HOURS_PER_MONTH, "gb_hours", storage, unknown)
    secrets = _secret_names(variables) or 1  # the ledger's address is one, always
    yield CostLine(Item.SECRETS, Decimal(secrets), "secrets", prices.TENCENT["secret"])
    yield CostLine(Item.SECRET_READS, secrets * starts, "requests", prices.TENCENT["secret_read"])
    written, quarter = LOG_GB_A_RUN * starts, Decimal("0.25")
    price = prices.TENCENT["log_gb_indexed"]
    both = ListPrice(price.amount + prices.TENCENT["log_gb_written"].amount * quarter, price.source, price.as_of)
    yield CostLine(Item.LOGS_WRITTEN, written, "gb", both)
    kept = written / DAYS_PER_MONTH * (1 + quarter) * Decimal(variables.get("log_retention_days") or 90)
    yield CostLine(Item.LOGS_KEPT, kept * DAYS_PER_MONTH, "gb_days", prices.TENCENT["log_gb_day"])
    partitions = len(functions) * DAYS_PER_MONTH
    yield CostLine(Item.LOG_PARTITIONS, partitions, "partition_days", prices.TENCENT["log_partition_day"])
    yield _metric_calls(functions, assumed)
    if variables.get("alarm_mail"):
        yield CostLine(Item.ALARMS, Decimal(7 * len(functions)), "alarms", unknown=Unknown.NO_PRICE)
    yield CostLine(Item.OBJECTS_KEPT, OBJECT_GB, "gb_months", unknown=Unknown.NO_PRICE)


_CLOUDS = {"aws": _aws, "alibaba": _alibaba, "tencent": _tencent}
