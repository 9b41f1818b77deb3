"""Reading recorded use: three forms, one meaning, and nothing wrong that passes for quiet."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.backtest import Machine, Run
from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Money
from costguard.domain.resources import Billing, Keeper
from costguard.domain.signals import SignalName, Statistic
from costguard.engine.history.book import Book, parse_moment
from costguard.engine.history.history import HistoryFiles, read_record

ONE = "aws:111122223333:us-east-1:instance:i-1"
HEADER = "time,resource_id,signal,device,value\n"
HOURLY = "time,resource_id,signal,device,value,samples\n"
INSTANCES = "resource_id,instance_type,accelerators,owner,tags,hourly_price,currency,runs\n"
START = datetime(2026, 11, 1, tzinfo=timezone.utc)


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file and say where."""

    def written(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return str(path)

    return written


Put = Callable[[str, str], str]


def row(minute: int, value: object, *, signal: str = "gpu_percent", device: str = "0", of: str = ONE) -> str:
    moment = (START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment},{of},{signal},{device},{value}\n"


def only(record: HistoryFiles) -> Machine:
    (machine,) = record.machines
    return machine


def test_minutes_become_hourly_maxima_with_their_counts(put: Put) -> None:
    text = HEADER + row(0, 1.5) + row(59, 80) + row(60, 0.0) + row(200, "3e0")

    (history,) = only(read_record([put("h.csv.gz", text)])).histories

    assert (history.name, history.device, history.start) == (SignalName.GPU, "0", START)
    assert list(history.samples) == [2, 1, 0, 1]
    assert list(history.maxima[:2]) == [80.0, 0.0]
    assert math.isnan(history.maxima[2])
    assert history.maxima[3] == 3.0


def test_hours_count_their_samples(put: Put) -> None:
    text = HOURLY + row(0, 7).strip() + ",60\n" + row(60, 0).strip() + ",12\n"

    (history,) = only(read_record([put("h.csv", text)])).histories

    assert (list(history.maxima), list(history.samples)) == ([7.0, 0.0], [60, 12])


def test_a_series_goes_on_in_the_next_file_of_a_folder(put: Put, tmp_path: Path) -> None:
    put("b.csv", HEADER + row(30, 9))
    put("a.csv", HEADER + row(0, 2))

    (history,) = only(read_record([str(tmp_path)])).histories

    assert (list(history.maxima), list(history.samples)) == ([9.0], [2])


def test_a_file_that_goes_back_in_time_is_an_error(put: Put) -> None:
    files = [put("b.csv", HEADER + row(30, 9)), put("a.csv", HEADER + row(30, 2))]

    with pytest.raises(InvalidInputError, match=r"a\.csv: time: .* stands twice"):
        read_record(files)


def test_what_cannot_be_is_counted_each_time_it_stands_there(put: Put) -> None:
    """In the second series, where times and values were met before."""
    first = "".join(row(minute, 3) for minute in range(3))
    second = row(0, 3, device="1") + row(1, 101, device="1") + row(2, 101, device="1")

    record = read_record([put("h.csv", HEADER + first + second)])

    assert record.doubted == 2


def test_offsets_and_quotes_mean_the_same(put: Put) -> None:
    text = HEADER + row(0, 1) + f'2026-11-01T08:01:00+08:00,"{ONE}","gpu_percent","0","2"\r\n'

    (history,) = only(read_record([put("h.csv", text)])).histories

    assert list(history.samples) == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,resource_id,signal,device,value,extra\n", "h.csv:1: header: unknown column 'extra'"),
        ("time,resource_id,signal,value\n", "h.csv:1: header: columns time,resource_id,signal,value"),
        (HEADER + row(0, 1) + "\n" + row(0, 1), "h.csv:4: time: 2026-11-01T00:00:00+00:00 stands twice"),
        (HEADER + row(5, 1) + row(4, 1), "h.csv:3: time: 2026-11-01T00:04:00+00:00 comes after"),
        (HEADER + f"2026-11-01T00:00:00,{ONE},gpu_percent,0,1\n", "h.csv:2: time: '2026-11-01T00:00:00' does not say"),
        (HEADER + f"2026-13-01T00:00:00Z,{ONE},gpu_percent,0,1\n", "h.csv:2: time: "),
        (HEADER + row(0, "1_0"), "h.csv:2: value: '1_0' is no number"),
        (HEADER + row(0, ""), "h.csv:2: value: '' is no number"),
        (HEADER + row(0, 1, signal="gpu"), "h.csv:2: signal: 'gpu' is no signal"),
        (HEADER + "2026-11-01T00:00:00Z,1\n", "h.csv:2: "),
        (HEADER + row(0, 1).replace(ONE, ONE + ",x"), "h.csv:2: 6 fields; expected 5"),
        (HEADER + row(0, 1) + row(0, 1, of="i-1"), "'i-1' is not a resource id"),
        (HOURLY + row(30, 1).strip() + ",60\n", "h.csv:2: time: a row that counts samples is of a whole hour"),
        (HOURLY + row(0, 1).strip() + ",0\n", "h.csv:2: samples: '0' is not a number of samples"),
        ("", "h.csv:1: header: the file is empty"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_field(text: str, said: str, put: Put) -> None:
    with pytest.raises(InvalidInputError) as told:
        read_record([put("h.csv", text)])

    assert said in str(told.value)


def test_what_cannot_be_makes_its_hour_unbelievable_and_is_counted(put: Put) -> None:
    text = HEADER + row(0, -1) + row(1, 3) + row(60, "nan") + row(61, 2) + row(120, 101) + row(180, 100.5)

    record = read_record([put("h.csv", text)])
    (history,) = only(record).histories

    assert list(history.maxima) == [math.inf, 2.0, math.inf, 100.5]
    assert list(history.samples) == [2, 1, 1, 1]
    assert [(doubt.line, doubt.field, doubt.value) for doubt in record.doubts] == [
        (2, "value", "-1"),
        (4, "value", "nan"),
        (6, "value", "101"),
    ]


def test_the_machines_file_says_what_they_are(put: Put) -> None:
    runs = "2026-11-01T00:00:00Z/2026-11-02T00:00:00Z 2026-11-03T08:00:00+08:00/"
    listed = INSTANCES + f'{ONE},p4d.24xlarge,8,nlp,"{{""team"": ""x""}}",32.77,USD,{runs}\n'

    machine = only(read_record([put("h.csv", HEADER + row(0, 1)), put("i.csv", listed)]))

    assert (machine.instance.instance_type, machine.instance.accelerator.count) == ("p4d.24xlarge", 8)
    assert machine.rate is not None
    assert machine.rate.money == Money(Decimal("32.77"), "USD")
    assert (machine.owner, dict(machine.instance.tags)) == ("nlp", {"team": "x"})
    assert machine.runs == (Run(START, START + timedelta(days=1)), Run(START + timedelta(days=2)))


def test_who_keeps_and_how_it_is_paid_are_read_too(put: Put) -> None:
    header = "resource_id,instance_type,accelerators,billing,managed_by,accelerator_kind\n"
    listed = header + f"{ONE},g5.xlarge,0.25,spot,kubernetes/train,amd_gpu\n"

    instance = only(read_record([put("i.csv", listed), put("h.csv", HEADER + row(0, 1))])).instance

    assert instance.billing is Billing.SPOT
    assert instance.managed_by is not None
    assert (instance.managed_by.keeper, instance.managed_by.name) == (Keeper.KUBERNETES, "train")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("x,g5,1,,,,,", "i.csv:2: resource_id: 'x' is not a resource id"),
        (f"{ONE},g5,0,,,,,", "i.csv:2: accelerators: '0' is not a number of cards"),
        (f"{ONE},g5,1,,[],,,", "i.csv:2: tags: expected a JSON object"),
        (f"{ONE},g5,1,,,5,,", "i.csv:2: hourly_price: '5' '' is no price"),
        (f"{ONE},g5,1,,,,,2026-11-01T00:00:00Z", "i.csv:2: runs: "),
        (f"{ONE},g5,1,,,,,2026-11-02T00:00:00Z/2026-11-01T00:00:00Z", "i.csv:2: runs: "),
        (f"{ONE},g5,1,,,,", "i.csv:2: 7 fields; the header has 8"),
        (f"{ONE},g5,1,,,,,\n{ONE},g5,1,,,,,", f"i.csv:3: resource_id: {ONE} stands twice"),
    ],
)
def test_a_wrong_machine_is_told_with_file_line_and_field(cells: str, said: str, put: Put) -> None:
    with pytest.raises(InvalidInputError) as told:
        read_record([put("i.csv", INSTANCES + cells + "\n"), put("h.csv", HEADER + row(0, 1))])

    assert said in str(told.value)


def test_a_machine_that_no_file_describes_is_replayed_with_its_cards(put: Put) -> None:
    record = read_record([put("h.csv", HEADER + row(0, 1) + row(0, 1, device="1"))])

    assert record.unlisted == 1
    assert (only(record).instance.accelerator.count, only(record).rate) == (2, None)


def answer(values: list[Any], **labels: str) -> str:
    metric = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "instance_id": "i-1", "gpu": "0", **labels}
    result = [{"metric": metric, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_prometheus_range_answers_are_read(put: Put) -> None:
    listed = put("i.csv", INSTANCES + f"{ONE},g5,1,,,,,\n")
    at = int(START.timestamp())

    machine = only(read_record([listed, put("p.json.gz", answer([[at, "0"], [at + 60.5, "NaN"], [at + 120, "12.5"]]))]))

    (history,) = machine.histories
    assert (history.name, list(history.maxima), list(history.samples)) == (SignalName.GPU, [12.5], [2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "p.json: not JSON"),
        ('{"status": "error"}', "p.json: status: not a successful answer"),
        (json.dumps({**json.loads(answer([])), "warnings": ["cut"]}), "p.json: warnings: something was left out"),
        (json.dumps({**json.loads(answer([])), "isPartial": True}), "p.json: isPartial: "),
        ('{"status": "success", "data": {"resultType": "vector", "result": []}}', "data.resultType: expected a matrix"),
        (answer([[1793491200, 5]]), "data.result[0].values[0]: expected [Unix seconds, text]"),
        (answer([[1793491200, "5"], [1793491200, "5"]]), "data.result[0].values[1]: "),
        (answer([], instance_id="i-2"), "data.result[0]: no machine 'i-2'"),
        (answer([], __name__="up"), "data.result[0]: metric 'up' is not known"),
    ],
)
def test_half_an_answer_of_prometheus_is_none(text: str, said: str, put: Put) -> None:
    with pytest.raises(InvalidInputError) as told:
        read_record([put("i.csv", INSTANCES + f"{ONE},g5,1,,,,,\n"), put("p.json", text)])

    assert said in str(told.value)


def test_cloudwatch_columns_are_read_in_any_order(put: Put) -> None:
    listed = put("i.csv", INSTANCES + f"{ONE},g5,1,,,,,\n")
    text = "timestamp,i-1 nvidia_smi_utilization_gpu 0,i-1 CPUUtilization\n"
    text += "2026-11-01 00:05:00,3,\n2026/11/01 00:00,1,2.5\n"

    machine = only(read_record([listed, put("c.csv", text)], cloudwatch_utc=True))

    found = {history.name: (list(history.maxima), list(history.samples)) for history in machine.histories}
    assert found == {SignalName.GPU: ([3.0], [2]), SignalName.CPU: ([2.5], [1])}


def test_cloudwatch_times_without_a_zone_are_an_error_until_somebody_says_utc(put: Put) -> None:
    files = [put("i.csv", INSTANCES + f"{ONE},g5,1,,,,,\n")]
    files.append(put("i-1__CPUUtilization.csv", "timestamp,value\n2026-11-01 00:00:00,1\n"))

    with pytest.raises(InvalidInputError, match=r":2: timestamp: .*--cloudwatch-utc"):
        read_record(files)
    assert only(read_record(files, cloudwatch_utc=True)).histories[0].name is SignalName.CPU


def test_the_mean_over_cards_keeps_its_name(put: Put) -> None:
    (history,) = only(
        read_record([put("h.csv", HEADER + row(0, 1, signal="gpu_mean_of_cards_percent", device=""))])
    ).histories

    assert history.statistic is Statistic.MEAN_OF_CARDS


class _Column(list[Any]):
    """A column of a batch, as much of pyarrow's as is asked for."""

    null_count = 0

    def __init__(self, values: list[Any], tz: str | None = None) -> None:
        super().__init__(values)
        self.type = SimpleNamespace(tz=tz, timestamp=bool(values) and isinstance(values[0], datetime))

    def cast(self, kind: str, *, safe: bool = True) -> _Column:
        del safe
        return self if kind == "us" else _Column([int(moment.timestamp() * 1_000_000) for moment in self])

    def to_pylist(self) -> list[Any]:
        return list(self)


def arrow(batches: list[list[_Column]], header: str = HEADER) -> Callable[[str], Any]:
    """What stands in for pyarrow: a file of these batches."""
    shown = SimpleNamespace(
        types=SimpleNamespace(is_timestamp=lambda kind: kind.timestamp),
        timestamp=lambda unit, tz: unit if tz else None,
        int64=lambda: "int64",
        ParquetFile=lambda _: SimpleNamespace(
            schema_arrow=SimpleNamespace(names=header.strip().split(",")),
            iter_batches=lambda batch_size: (
                SimpleNamespace(column=columns.__getitem__) for columns in batches if batch_size
            ),
        ),
    )
    return lambda _: shown


def batch(time: Any, value: Any, *more: Any, tz: str | None = "UTC") -> list[_Column]:
    return [_Column([time], tz), *(_Column([cell]) for cell in (ONE, "gpu_percent", "0", value, *more))]


def test_parquet_has_the_same_columns_in_their_own_types(put: Put) -> None:
    load = arrow([batch(START, 4.5), batch(START + timedelta(minutes=1), 7), batch("2026-11-01T00:02:00Z", 1.0)])

    (history,) = only(read_record([put("h.parquet", "")], load=load)).histories

    assert (list(history.maxima), list(history.samples)) == ([7.0], [3])


@pytest.mark.parametrize(
    ("made", "header", "said"),
    [
        ([batch(START, 1.0, tz=None)], HEADER, "h.parquet:1: time: this column of times does not say its zone"),
        ([batch(START, 1.0), batch(START, 1.0)], HEADER, "h.parquet:2: time: "),
        ([batch("2026-11-01", 1.0)], HEADER, "h.parquet:1: time: '2026-11-01' is no time"),
        ([batch(START, None)], HEADER, "h.parquet:1: value: None is no number"),
        ([batch(START, 1.0, 0)], HOURLY, "h.parquet:1: samples: 0 is not a number"),
        ([batch(START + timedelta(minutes=1), 1.0, 60)], HOURLY, "h.parquet:1: time: a row that counts"),
        ([], "time,oops", "h.parquet:1: header: unknown column 'oops'"),
    ],
)
def test_parquet_is_read_as_strictly(made: list[list[_Column]], header: str, said: str, put: Put) -> None:
    with pytest.raises(InvalidInputError) as told:
        read_record([put("h.parquet", "")], load=arrow(made, header))

    assert said in str(told.value)


def test_without_pyarrow_parquet_says_what_to_install(put: Put) -> None:
    def missing(_: str) -> Any:
        raise ImportError

    with pytest.raises(InvalidInputError, match=r"needs pyarrow: pip install 'gpu-costguard\[history\]'"):
        read_record([put("h.parquet", "")], load=missing)


@pytest.mark.parametrize("name", ["h.txt", "none.csv"])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(name)):
        read_record([str(tmp_path / name)])


def test_a_broken_gzip_is_no_short_history(put: Put, tmp_path: Path) -> None:
    path = Path(put("h.csv.gz", HEADER + "".join(row(minute, 1) for minute in range(300))))
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(InvalidInputError, match=r"h\.csv\.gz: cannot be read"):
        read_record([str(tmp_path)])


@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0.0, 4.0, 99.0, -3.0, math.nan]))))
def test_reduction_equals_looking_at_every_row(rows: list[tuple[int, float]]) -> None:
    book = Book()
    series = book.series(ONE, "gpu_percent", "0")
    kept = dict(sorted(rows))
    for minute, value in kept.items():
        book.add(series, START.timestamp() + 60 * minute, value, 1)

    history = series.history("test")

    base = int((history.start - START) / timedelta(hours=1)) if history.samples else 0
    for place, (highest, count) in enumerate(zip(history.maxima, history.samples, strict=True), start=base):
        inside = [value for minute, value in kept.items() if minute // 60 == place and not math.isnan(value)]
        assert count == len(inside)
        if inside:
            assert highest == (math.inf if min(inside) < 0 else max(inside))
        else:
            assert math.isnan(highest)


@pytest.mark.parametrize("text", ["2026-11-01", "2026-11-01T00:00:00.Z", "1793491200", "9999-01-01T00:00:00Z"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|not of these"):
        parse_moment(text)
