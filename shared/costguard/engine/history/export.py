"""Recorded use from the live sources into files of the long format: a day of a shard at a time, and resumable.

A file appears whole or not at all, and is named in the journal after it is there; what the journal names is not asked
for again. A day with a gap is not written: half of it could pass for quiet.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Instance, InstanceState
from costguard.domain.signals import HOUR, SignalHistory
from costguard.engine.history.book import SIGNALS
from costguard.engine.history.files import HOURLY_COLUMNS
from costguard.engine.history.history import INSTANCE_COLUMNS
from costguard.engine.run.scan import CloudReaders, Progress, discovered, gap_of, no_progress
from costguard.ports import Target

JOURNAL, INSTANCES = "journal.jsonl", "instances.csv"
_ONE_DAY = timedelta(days=1)
_WORDS = {meant: word for word, meant in SIGNALS.items()}
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export left: parts written now, parts that were there already, and what could not be read."""

    machines: int
    series: int
    written: int
    kept: int
    gaps: tuple[tuple[str, Gap], ...] = ()


def export_history(
    readings: Mapping[str, CloudReaders],
    targets: Sequence[Target],
    folder: Path,
    days: int,
    now: datetime,
    progress: Progress = no_progress,
) -> Exported:
    """The last `days` whole days of UTC of every shard, into `folder`.

    Raises:
        InvalidInputError: the folder cannot be written, or its journal is not one.
    """
    try:
        folder.mkdir(exist_ok=True)
        return _exported(readings, targets, folder, tuple(_last_days(days, now)), progress)
    except OSError as err:
        message = f"{folder}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err


def _exported(
    readings: Mapping[str, CloudReaders],
    targets: Sequence[Target],
    folder: Path,
    days: Sequence[date],
    progress: Progress,
) -> Exported:
    found = discovered(readings, targets)
    gaps: list[tuple[str, Gap]] = [("", gap) for gap in found.gaps]
    done, rows, written, kept, machines = _journal(folder), list[tuple[str, ...]](), 0, 0, 0
    series: set[tuple[ResourceRef, str, str]] = set()
    total, place = len(found.shards) * len(days), 0
    for shard in found.shards:
        reading = readings[shard.cloud]
        instances, rates, shard_gaps = _inventory(reading, shard)
        gaps += [("", gap) for gap in shard_gaps]
        rows += [_instance_row(each, rates.get(each.ref)) for each in instances]
        machines += len(instances)
        for day in days:
            place += 1
            progress(place, total, f"{shard} {day}")
            name = part_name(shard, day)
            if name in done and (folder / name).is_file():
                kept += 1
                continue
            histories, day_gaps = _day(reading, shard, instances, day)
            gaps += [(day.isoformat(), gap) for gap in day_gaps]
            if histories is None:
                continue
            if histories:
                _put(folder / name, gzip.compress(_part(histories, day).encode(), mtime=0))
                _note(folder, name)
                series.update((ref, each.name.value, each.device) for ref, each in histories)
                written += 1
    if rows:
        _put(folder / INSTANCES, _table(INSTANCE_COLUMNS, rows).encode())
    return Exported(machines, len(series), written, kept, tuple(gaps))


def part_name(shard: Shard, day: date) -> str:
    """What the file of one day of one shard is called; by name they are in the order of time."""
    parts = (shard.cloud, shard.account, shard.region or "all")
    return f"history_{'_'.join(_UNSAFE.sub('-', part) for part in parts)}_{day.isoformat()}.csv.gz"


def _last_days(count: int, now: datetime) -> Iterator[date]:
    today = now.astimezone(timezone.utc).date()
    for back in range(count, 0, -1):
        yield today - back * _ONE_DAY


def _inventory(
    reading: CloudReaders, shard: Shard
) -> tuple[tuple[Instance, ...], Mapping[ResourceRef, HourlyRate], tuple[Gap, ...]]:
    try:
        inventory = reading.inventory.read(shard)
    except ProviderError as err:
        return (), {}, (gap_of(err, shard, "inventory"),)
    there = {each.ref: each for each in inventory.instances if each.state is not InstanceState.TERMINATED}
    try:
        rates = reading.prices.rates(tuple(there.values())) if there else {}
    except ProviderError as err:
        return tuple(there.values()), {}, (*inventory.gaps, gap_of(err, shard, "prices"))
    return tuple(there.values()), rates, inventory.gaps


def _day(
    reading: CloudReaders, shard: Shard, instances: Sequence[Instance], day: date
) -> tuple[list[tuple[ResourceRef, SignalHistory]] | None, tuple[Gap, ...]]:
    """Every series of the day; None where anything of it could not be read."""
    since = datetime.combine(day, time(0), timezone.utc)
    there = [each for each in instances if each.created_at is None or each.created_at < since + _ONE_DAY]
    if not there:
        return [], ()
    try:
        report = reading.signals.read(there, since, since + _ONE_DAY)
    except ProviderError as err:
        return None, (gap_of(err, shard, "signals"),)
    if report.gaps:
        return None, report.gaps
    return [(ref, each) for ref, found in report.readings.items() for each in found.histories], ()


def _part(histories: Sequence[tuple[ResourceRef, SignalHistory]], day: date) -> str:
    since = datetime.combine(day, time(0), timezone.utc)
    rows: list[tuple[str, ...]] = []
    for ref, history in histories:
        word = _WORDS.get((history.name, history.statistic), f"{history.name.value}_percent")
        for place, (highest, count) in enumerate(zip(history.maxima, history.samples, strict=True)):
            moment = history.start + place * HOUR
            if count and not math.isnan(highest) and since <= moment < since + _ONE_DAY:
                stamp = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
                rows.append((stamp, str(ref), word, history.device, repr(highest), str(min(count, 3600))))
    return _table(HOURLY_COLUMNS, rows)


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((columns, *rows))
    return out.getvalue()


def _instance_row(instance: Instance, rate: HourlyRate | None) -> tuple[str, ...]:
    keeper = instance.managed_by
    return (
        str(instance.ref),
        instance.instance_type,
        f"{max(instance.accelerator.count, 0.01):g}",
        instance.accelerator.kind.value,
        instance.name,
        "",
        json.dumps(dict(instance.tags), ensure_ascii=False) if instance.tags else "",
        instance.billing.value,
        instance.resource_group,
        "" if keeper is None else f"{keeper.keeper.value}/{keeper.name}",
        instance.cannot_stop,
        "" if rate is None else f"{rate.money.amount:f}",
        "" if rate is None else rate.money.currency,
        "",
    )


def _put(path: Path, body: bytes) -> None:
    """The whole file at once: who is interrupted leaves the one before, or none."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(body)
    part.replace(path)


def _note(folder: Path, name: str) -> None:
    with (folder / JOURNAL).open("a", encoding="utf-8") as journal:
        journal.write(json.dumps({"part": name}) + "\n")


def _journal(folder: Path) -> frozenset[str]:
    """The parts that are done; a last line cut short by an interruption counts for nothing.

    Raises:
        InvalidInputError: a line before the last is none of ours.
    """
    path = folder / JOURNAL
    if not path.is_file():
        return frozenset()
    text = path.read_text("utf-8", errors="replace")
    lines = text.splitlines()
    found = set()
    for number, line in enumerate(lines, start=1):
        try:
            found.add(str(json.loads(line)["part"]))
        except (ValueError, TypeError, KeyError) as err:
            if number < len(lines) or text.endswith("\n"):
                message = (
                    f"{path}:{number}: not a line of an export's journal; take another folder, or remove this file"
                )
                raise InvalidInputError(message) from err
            path.write_text("".join(f"{one}\n" for one in lines[:-1]), "utf-8")
    return frozenset(found)
