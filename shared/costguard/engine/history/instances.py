"""The machines of a history: what each is, costs, whose it is, and when it ran."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from costguard.backtest import Machine, Run
from costguard.domain.errors import InvalidInputError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceState,
    Keeper,
    ManagedBy,
)
from costguard.engine.history.book import wrong
from costguard.engine.history.times import parse_moment

NEEDED = ("resource_id", "instance_type", "accelerators")
INSTANCE_COLUMNS = (
    *NEEDED,
    *("accelerator_kind", "name", "owner", "tags", "billing", "resource_group", "managed_by", "cannot_stop"),
    *("hourly_price", "currency", "runs"),
)
_PRICE = re.compile(r"\d{1,9}(?:\.\d{1,18})?", re.ASCII)
_COUNT = re.compile(r"\d{1,3}(?:\.\d{1,4})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}")
_SOURCE = "history"


def read_instances(header: Sequence[str], lines: Iterator[str], path: str) -> dict[str, Machine]:
    """Machines without histories, by resource id.

    Raises:
        InvalidInputError: a column, a row or a field is wrong, or a machine stands twice; with file, line and field.
    """
    unknown = [name for name in header if name not in INSTANCE_COLUMNS]
    missing = [name for name in NEEDED if name not in header]
    if unknown or missing or len(set(header)) != len(header):
        what = f"unknown column {unknown[0]!r}" if unknown else f"column {missing[0]!r} is missing" if missing else ""
        expected = f"expected {','.join(INSTANCE_COLUMNS)}, of which {', '.join(NEEDED)} are needed"
        raise wrong(path, 1, "header", f"{what or 'a column stands twice'}; {expected}")
    found: dict[str, Machine] = {}
    for number, cells in enumerate(csv.reader(lines, strict=True), start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise wrong(path, number, "", f"{len(cells)} fields; the header has {len(header)}")
        machine = _machine(dict(zip(header, cells, strict=True)), path, number)
        key = str(machine.instance.ref)
        if key in found:
            raise wrong(path, number, "resource_id", f"{key} stands twice")
        found[key] = machine
    return found


def unlisted(resource_id: str, cards: int) -> Machine:
    """A machine of which only its use is known: on demand, at an unknown price.

    Raises:
        InvalidInputError: it is no resource id.
    """
    return Machine(_instance(ResourceRef.parse(resource_id), {}, float(max(cards, 1))), None, ())


def _machine(row: Mapping[str, str], path: str, number: int) -> Machine:
    try:
        ref = ResourceRef.parse(row["resource_id"])
    except InvalidInputError as err:
        raise wrong(path, number, "resource_id", str(err)) from err
    count = row["accelerators"]
    if _COUNT.fullmatch(count) is None or not float(count):
        raise wrong(path, number, "accelerators", f"{count[:60]!r} is not a number of cards, such as 8 or 0.25")
    field = ""
    try:
        field = "tags"
        tags = _tags(row.get(field, ""))
        field = "runs"
        runs = _runs(row.get(field, ""))
        field = "hourly_price"
        rate = _rate(row.get(field, ""), row.get("currency", ""))
        field = "managed_by"
        keeper = _keeper(row.get(field, ""))
        field = "billing"
        billing = _choice(row.get(field, "") or Billing.ON_DEMAND.value, Billing)
        field = "accelerator_kind"
        kind = _choice(row.get(field, "") or AcceleratorKind.NVIDIA_GPU.value, AcceleratorKind)
    except ValueError as err:
        raise wrong(path, number, field, str(err)) from err
    instance = _instance(ref, row, float(count), kind, Billing(billing), tags, keeper)
    return Machine(instance, rate, (), runs, row.get("owner", ""))


def _instance(
    ref: ResourceRef,
    row: Mapping[str, str],
    count: float,
    kind: str = AcceleratorKind.NVIDIA_GPU.value,
    billing: Billing = Billing.ON_DEMAND,
    tags: Mapping[str, str] | None = None,
    keeper: ManagedBy | None = None,
) -> Instance:
    return Instance(
        ref=ref,
        instance_type=row.get("instance_type", ""),
        accelerator=Accelerator(AcceleratorKind(kind), "", count),
        state=InstanceState.RUNNING,
        billing=billing,
        run_epoch="",
        launched_at=None,
        name=row.get("name", ""),
        tags=tags or {},
        managed_by=keeper,
        cannot_stop=row.get("cannot_stop", ""),
        resource_group=row.get("resource_group", ""),
    )


def _choice(text: str, choices: type[Billing | AcceleratorKind]) -> str:
    known = [choice.value for choice in choices]
    if text not in known:
        message = f"{text[:60]!r} is none of {', '.join(known)}"
        raise ValueError(message)
    return text


def _tags(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        tags = json.loads(text)
    except (ValueError, RecursionError):
        tags = None
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise ValueError('expected a JSON object of texts, such as {"team": "nlp"}')
    return tags


def _runs(text: str) -> tuple[Run, ...]:
    """`2026-11-01T00:00:00Z/2026-11-03T10:00:00Z 2026-11-05T08:00:00Z/` : each from/to, the last one may be open."""
    runs: list[Run] = []
    for part in text.split():
        since, slash, until = part.partition("/")
        if not slash:
            message = f"{part[:60]!r} is no stretch of time; expected FROM/TO, TO empty while it goes on"
            raise ValueError(message)
        run = Run(parse_moment(since), parse_moment(until) if until else None)
        before = runs[-1].until if runs else run.since
        if before is None or run.since < before or (run.until is not None and run.until <= run.since):
            message = f"{part[:60]!r} ends before it begins, or overlaps the one before"
            raise ValueError(message)
        runs.append(run)
    return tuple(runs)


def _rate(price: str, currency: str) -> HourlyRate | None:
    if not price and not currency:
        return None
    if _PRICE.fullmatch(price) is None or _CURRENCY.fullmatch(currency) is None:
        message = f"{price[:30]!r} {currency[:30]!r} is no price; expected 12.50 and in `currency` USD, or both empty"
        raise ValueError(message)
    return HourlyRate(Money(Decimal(price), currency), _SOURCE, "")


def _keeper(text: str) -> ManagedBy | None:
    if not text:
        return None
    kind, _, name = text.partition("/")
    known = [keeper.value for keeper in Keeper]
    if kind not in known:
        message = f"{text[:60]!r}: expected KIND/NAME with KIND one of {', '.join(known)}"
        raise ValueError(message)
    return ManagedBy(Keeper(kind), name)
