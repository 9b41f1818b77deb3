"""Recorded use out of live sources: whole days or none, and what was fetched once is not fetched again."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import typer
from tests.builders import SHARD, instance, usd

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.history import app
from costguard.domain.errors import AccessDeniedError, InvalidInputError, UnavailableError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail, InstanceState, Inventory, Volume
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading
from costguard.engine.history.export import JOURNAL, Exported, export_history, part_name
from costguard.engine.history.history import read_record
from costguard.engine.run.scan import CloudReaders
from costguard.ports import Discovery, SignalReport, Target

NOW = datetime(2026, 3, 10, 9, 30, tzinfo=timezone.utc)


@dataclass
class Cloud:
    """One shard of machines; it may refuse days, and remembers what it was asked for."""

    instances: tuple[Instance, ...] = (instance(tags={"team": "nlp"}),)
    gaps_on: set[int] = field(default_factory=set)
    breaks_on: set[int] = field(default_factory=set)
    denied: bool = False
    asked: list[int] = field(default_factory=list)

    def discover(self, target: Target) -> Discovery:
        del target
        return Discovery((SHARD,))

    def inventory(self, shard: Shard) -> Inventory:
        if self.denied:
            raise AccessDeniedError("no", operation="ec2:DescribeInstances")
        return Inventory(shard, self.instances)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        raise NotImplementedError(refs)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        raise NotImplementedError(ref, wanted)

    def signals(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        assert until - since == timedelta(days=1)
        self.asked.append(since.day)
        if since.day in self.breaks_on:
            raise UnavailableError("the line broke")
        if since.day in self.gaps_on:
            return SignalReport({}, (Gap(SHARD, "signals", GapKind.THROTTLED, "slow down"),))
        # an hour before and one after the day are in the answer too, as some sources give them
        hours = [float(hour) for hour in range(26)]
        history = SignalHistory(
            SignalName.GPU, "0", since - HOUR, array("d", hours), array("I", [60] * 25 + [0]), "test"
        )
        return SignalReport({one.ref: SignalReading((history,), timedelta(0)) for one in instances})


class _Inventory:
    def __init__(self, cloud: Cloud) -> None:
        self.discover, self.read, self.details = cloud.discover, cloud.inventory, cloud.details
        self.protections = cloud.protections


class _Signals:
    def __init__(self, cloud: Cloud) -> None:
        self.read = cloud.signals


class _Prices:
    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        return {one.ref: HourlyRate(usd("1.3453200000"), "test", "2026-01-01") for one in instances}

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        raise NotImplementedError(detail)

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        raise NotImplementedError(volume)


def export(cloud: Cloud, folder: Path, days: int = 3) -> Exported:
    reading = CloudReaders(_Inventory(cloud), _Signals(cloud), _Prices())
    return export_history({"aws": reading}, [Target("aws")], folder, days, NOW)


def test_what_was_exported_is_what_is_read(tmp_path: Path) -> None:
    done = export(Cloud(), tmp_path / "out")

    (machine,) = read_record([str(tmp_path / "out")]).machines
    (history,) = machine.histories
    assert (done.machines, done.series, done.written, done.gaps) == (1, 1, 3, ())
    assert (history.start, len(history.maxima)) == (datetime(2026, 3, 7, tzinfo=timezone.utc), 72)
    assert list(history.maxima[:24]) == [float(hour) for hour in range(1, 25)]
    assert set(history.samples) == {60}
    assert machine.rate is not None
    assert machine.rate.money == usd("1.3453200000")
    assert dict(machine.instance.tags) == {"team": "nlp"}


def test_a_day_that_broke_is_fetched_again_and_no_other(tmp_path: Path) -> None:
    cloud = Cloud(gaps_on={8}, breaks_on={9})
    first = export(cloud, tmp_path)
    mended = Cloud()
    second = export(mended, tmp_path)

    assert (first.written, [day for day, _ in first.gaps]) == (1, ["2026-03-08", "2026-03-09"])
    assert (second.written, second.kept) == (2, 1)
    assert mended.asked == [8, 9]


def test_half_a_file_and_half_a_line_of_the_journal_count_for_nothing(tmp_path: Path) -> None:
    """Interrupted while the second day was noted: it is fetched again, the first is not."""
    export(Cloud(), tmp_path, days=2)
    journal = tmp_path / JOURNAL
    journal.write_text(journal.read_text("utf-8")[:-9], "utf-8")
    again = Cloud()

    done = export(again, tmp_path, days=2)

    assert (done.kept, again.asked) == (1, [9])
    assert len(journal.read_text("utf-8").splitlines()) == 2


def test_a_file_that_was_taken_away_is_fetched_again(tmp_path: Path) -> None:
    export(Cloud(), tmp_path, days=2)
    (tmp_path / part_name(SHARD, (NOW - timedelta(days=2)).date())).unlink()
    again = Cloud()

    export(again, tmp_path, days=2)

    assert again.asked == [8]


def test_somebody_elses_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text('["other"]\n', "utf-8")

    with pytest.raises(InvalidInputError, match=r"journal\.jsonl:1: "):
        export(Cloud(), tmp_path)


def test_a_shard_that_cannot_be_listed_is_a_gap(tmp_path: Path) -> None:
    done = export(Cloud(denied=True), tmp_path)

    assert (done.machines, done.written) == (0, 0)
    assert [gap.kind for _, gap in done.gaps] == [GapKind.DENIED]


def test_what_is_gone_is_not_in_it_and_what_is_new_has_no_day_before_its_first(tmp_path: Path) -> None:
    gone = instance("i-2", state=InstanceState.TERMINATED)
    new = instance("i-3", created_at=datetime(2026, 3, 9, 12, tzinfo=timezone.utc))
    cloud = Cloud((gone, new))

    done = export(cloud, tmp_path)

    assert (done.machines, done.written, cloud.asked) == (1, 1, [9])


def test_the_command_goes_where_it_is_told(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    alone = typer.Typer()
    alone.add_typer(app, name="history")

    status = run(["history", "export", "--out", str(tmp_path / "no" / "where")], alone)

    assert status == Exit.BAD_INPUT
    assert "no such folder" in capfd.readouterr().err
    assert json.dumps(list(map(str, tmp_path.iterdir()))) == "[]"
