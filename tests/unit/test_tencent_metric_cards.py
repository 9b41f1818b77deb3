"""Cards one by one, where Monitor declares a dimension for them and answers by it; else the mean over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.unit.tencent_monitor import DAY, HOUR, KNOWN, NOW, SHARD, SINCE, Monitor, box, by_card

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError, ThrottledError, UnavailableError
from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, GapKind, Instance
from costguard.domain.signals import SignalHistory, SignalName, Statistic
from costguard.ports import SignalReport
from costguard.providers.tencent.compute.metric_calls import LESSER, Pages
from costguard.providers.tencent.compute.metrics import TencentSignals

GPU = frozenset({SignalName.GPU})
DECLARED = ("unInstanceId", "minorNumber")
Value = Callable[[Mapping[str, str], datetime], "float | None"]


def cards_of(*values: float | None, names: tuple[str, str] = DECLARED, mean: float | None = None) -> Value:
    """Each card its own value, asked for by these names; the machine alone has their mean."""
    known = [value for value in values if value is not None]
    over_all = sum(known) / max(1, len(values)) if mean is None else mean

    def value(asked: Mapping[str, str], _: datetime) -> float | None:
        if set(asked) == {"InstanceId"}:
            return over_all
        if set(asked) != set(names):
            return None
        number = int(asked[names[1]])
        return values[number] if number < len(values) else None

    return value


def read(
    monitor: Monitor, *machines: Instance, signals: frozenset[SignalName] = GPU, source: TencentSignals | None = None
) -> SignalReport:
    return (source or TencentSignals(monitor, signals)).read(machines or (box(cards=4),), SINCE, NOW)


def told(report: SignalReport, machine: str = "ins-1") -> dict[str, SignalHistory]:
    """The histories of one machine, by device."""
    (reading,) = [found for ref, found in report.readings.items() if ref.native_id == machine]
    return {one.device: one for one in reading.histories}


def asked_by_card(monitor: Monitor) -> list[Mapping[str, Any]]:
    return [asked for asked in monitor.asked if len(asked["Instances"][0]["Dimensions"]) > 1]


def asked_by_machine(monitor: Monitor) -> list[Mapping[str, Any]]:
    return [asked for asked in monitor.asked if len(asked["Instances"][0]["Dimensions"]) == 1]


def test_every_card_is_read_for_itself() -> None:
    monitor = Monitor(cards_of(0.0, 3.0, 91.0, 0.0), known=by_card())
    found = told(read(monitor))
    assert {device: set(one.maxima) for device, one in found.items()} == {
        "0": {0.0},
        "1": {3.0},
        "2": {91.0},
        "3": {0.0},
    }
    assert {one.statistic for one in found.values()} == {Statistic.DEVICE}
    assert {(tuple(one.samples), one.documented_per_hour) for one in found.values()} == {((60, 60, 20), 60)}
    assert asked_by_machine(monitor) == [], "no call for a mean that nobody needs"
    assert asked_by_card(monitor)[0]["Instances"][0]["Dimensions"] == [
        {"Name": "unInstanceId", "Value": "ins-1"},
        {"Name": "minorNumber", "Value": "0"},
    ]


@pytest.mark.parametrize(
    "dimensions",
    [
        {},
        {"Dimensions": None},
        {"Dimensions": []},
        {"Dimensions": [{"Dimensions": ["InstanceId"]}]},
        {"Dimensions": [{"Dimensions": ["vm_uuid"]}]},
        {"Dimensions": [{"Dimensions": ["minorNumber"]}]},
        {"Dimensions": [{"Dimensions": ["minorNumber", "vm_uuid"]}]},
        {"Dimensions": [{"Dimensions": ["minorNumber", "name", "unInstanceId"]}]},
        {"Dimensions": ["minorNumber"]},
        {"Dimensions": [{"Dimensions": None}]},
    ],
    ids=str,
)
def test_no_card_is_asked_for_where_none_is_declared(dimensions: dict[str, Any]) -> None:
    """Not one call more than for the mean."""
    plain = Monitor(cards_of(1.0, 1.0, 1.0, 1.0))
    read(plain)
    monitor = Monitor(cards_of(1.0, 1.0, 1.0, 1.0), known=by_card(dimensions))
    assert told(read(monitor))[""].statistic is Statistic.MEAN_OF_CARDS
    assert monitor.asked == plain.asked
    assert len(monitor.asked) == 1


@pytest.mark.parametrize("count", [0.25, 1, 1.5, 2.5])
def test_one_card_or_a_share_of_one_is_asked_for_as_a_machine(count: float) -> None:
    monitor = Monitor(cards_of(1.0), known=by_card())
    assert set(told(read(monitor, box(cards=count)))) == {""}
    assert asked_by_card(monitor) == []


def test_other_signals_and_what_is_only_shown_are_asked_for_by_machine() -> None:
    monitor = Monitor(cards_of(1.0, 1.0), known=by_card())
    shown = frozenset({SignalName.POWER, SignalName.CPU})
    read(monitor, box(cards=2), source=TencentSignals(monitor, GPU, shown))
    assert {asked["MetricName"] for asked in asked_by_card(monitor)} == {"GpuUtil"}
    assert {asked["MetricName"] for asked in asked_by_machine(monitor)} == {"Gpupowdraw", "CpuUsage"}


def test_power_that_a_rule_names_is_read_by_card() -> None:
    monitor = Monitor(cards_of(30.0, 55.0), known=by_card())
    report = read(monitor, box(cards=2), signals=frozenset({SignalName.POWER}))
    assert {device: set(one.maxima) for device, one in told(report).items()} == {"0": {30.0}, "1": {55.0}}


def test_the_documented_name_of_the_machine_is_tried_after_the_declared_one() -> None:
    """Pages ask for `InstanceId` where Monitor declares `vm_uuid`: names of its own may not be what it takes."""
    monitor = Monitor(cards_of(0.0, 91.0, names=("InstanceId", "minorNumber")), known=by_card())
    source = TencentSignals(monitor, GPU)
    assert set(told(read(monitor, box(cards=2), source=source))["1"].maxima) == {91.0}

    monitor.asked.clear()
    read(monitor, box(cards=2), source=source)
    names = {tuple(pair["Name"] for pair in asked["Instances"][0]["Dimensions"]) for asked in monitor.asked}
    assert names == {("InstanceId", "minorNumber")}, "what answered is not looked for again"


def refused(asked: Mapping[str, str], _: datetime) -> float | None:
    if set(asked) != {"InstanceId"}:
        message = "no such dimension"
        raise RefusedError(message, operation="monitor:GetMonitorData", code="InvalidParameterValue")
    return 2.0


def test_where_cards_are_refused_the_mean_is_read_and_they_are_not_asked_for_again() -> None:
    monitor = Monitor(refused, known=by_card())
    source = TencentSignals(monitor, GPU)
    machines = [box(f"ins-{number}", cards=8) for number in range(20)]
    found = told(read(monitor, *machines, source=source), "ins-7")
    assert {device: (one.statistic, set(one.maxima)) for device, one in found.items()} == {
        "": (Statistic.MEAN_OF_CARDS, {2.0})
    }
    assert len(asked_by_card(monitor)) == 2, "each spelling once"

    monitor.asked.clear()
    assert read(monitor, *machines, source=source).gaps == ()
    assert asked_by_card(monitor) == []


def test_where_no_card_answers_the_mean_is_read_after_a_few_questions() -> None:
    monitor = Monitor(cards_of(None, None, mean=2.0), known=by_card())
    machines = [box(f"ins-{number}", cards=2) for number in range(30)]
    report = read(monitor, *machines)
    assert all(set(told(report, one.ref.native_id)) == {""} for one in machines)
    assert len(asked_by_card(monitor)) <= 6


def test_a_few_machines_without_an_agent_hide_no_cards() -> None:
    dead = {"ins-0", "ins-1"}
    answers = cards_of(0.0, 91.0)

    def value(asked: Mapping[str, str], at: datetime) -> float | None:
        return None if next(iter(asked.values())) in dead else answers(asked, at)

    machines = [box(f"ins-{number}", cards=2) for number in range(4)]
    report = read(Monitor(value, known=by_card()), *machines)
    assert [len(report.readings[one.ref].histories) for one in machines] == [0, 0, 2, 2]


@pytest.mark.parametrize("silent", [0, 2, 3])
def test_a_silent_card_leaves_the_mean_over_all(silent: int) -> None:
    """The others alone are no word on the machine: nothing is idle by some of its cards."""
    values: list[float | None] = [0.0, 0.0, 0.0, 0.0]
    values[silent] = None
    monitor = Monitor(cards_of(*values, mean=11.0), known=by_card())
    found = told(read(monitor))
    assert {device: (one.statistic, set(one.maxima)) for device, one in found.items()} == {
        "": (Statistic.MEAN_OF_CARDS, {11.0})
    }
    assert all(span(asked) <= HOUR for asked in asked_by_card(monitor)), "seen in the last hour already"


def since(moment: datetime, late: Value, before: Value) -> Value:
    return lambda asked, at: (late if at >= moment else before)(asked, at)


def test_cards_that_began_late_leave_the_mean_that_did_not() -> None:
    late = since(NOW - HOUR, cards_of(0.0, 0.0), cards_of(None, None, mean=4.0))
    found = told(read(Monitor(late, known=by_card()), box(cards=2)))
    assert {device: (one.statistic, tuple(one.samples)) for device, one in found.items()} == {
        "": (Statistic.MEAN_OF_CARDS, (60, 60, 20))
    }


def test_cards_stand_where_the_mean_is_as_partial() -> None:
    """A machine that was off has points of neither: which cards were idle since is still told."""
    nothing = cards_of(None, None, mean=math.nan)

    def off(asked: Mapping[str, str], at: datetime) -> float | None:
        value = nothing(asked, at)
        return None if value is None or math.isnan(value) else value

    found = told(read(Monitor(since(NOW - HOUR, cards_of(0.0, 9.0), off), known=by_card()), box(cards=2)))
    assert set(found) == {"0", "1"}
    assert list(found["0"].samples) == [0, 40, 20]


def test_a_busy_card_is_seen_in_the_mean_that_stands_for_it() -> None:
    """Should the mean be none: it is taken for at least what a card that was seen at work makes of it."""
    busy = since(NOW - HOUR, cards_of(0.0, 80.0, mean=1.0), cards_of(None, None, mean=1.0))
    found = told(read(Monitor(busy, known=by_card()), box(cards=2)))
    assert list(found[""].maxima) == [1.0, 40.0, 40.0]


def overlooked(asked: Mapping[str, str], _: datetime) -> float | None:
    return 3.0 if "ins-1" in asked.values() else None


def from_one(asked: Mapping[str, str], _: datetime) -> float | None:
    if set(asked) == {"InstanceId"}:
        return 3.0
    return 3.0 if asked["minorNumber"] in {"1", "2"} else None


def from_one_with_a_ghost(asked: Mapping[str, str], _: datetime) -> float | None:
    if set(asked) == {"InstanceId"}:
        return 3.0
    return 0.0 if asked["minorNumber"] in {"0", "1", "2"} else None


@pytest.mark.parametrize("value", [overlooked, from_one, from_one_with_a_ghost])
def test_a_card_that_cannot_be_there_and_answers_takes_all_cards_their_word(value: Value) -> None:
    """A monitor that overlooks the number of the card tells the mean under each, and a mean has a bound of its own."""
    found = told(read(Monitor(value, known=by_card()), box(cards=2)))
    assert {device: (one.statistic, set(one.maxima)) for device, one in found.items()} == {
        "": (Statistic.MEAN_OF_CARDS, {3.0})
    }


def test_a_refusal_of_the_card_that_cannot_be_there_is_as_good_as_silence() -> None:
    answers = cards_of(0.0, 91.0)

    def value(asked: Mapping[str, str], at: datetime) -> float | None:
        if asked.get("minorNumber") == "2":
            message = "no such card"
            raise RefusedError(message, operation="monitor:GetMonitorData", code="InvalidParameterValue")
        return answers(asked, at)

    assert set(told(read(Monitor(value, known=by_card()), box(cards=2)))) == {"0", "1"}


@pytest.mark.parametrize("error", [ThrottledError, UnavailableError])
def test_nobody_knows_of_a_card_that_cannot_be_there_while_the_question_fails(error: type[ProviderError]) -> None:
    answers = cards_of(0.0, 91.0)

    def value(asked: Mapping[str, str], at: datetime) -> float | None:
        if asked.get("minorNumber") == "2":
            message = "later"
            raise error(message, operation="monitor:GetMonitorData")
        return answers(asked, at)

    assert set(told(read(Monitor(value, known=by_card()), box(cards=2)))) == {""}


@pytest.mark.parametrize("error", [ThrottledError, UnavailableError])
def test_a_passing_fault_leaves_the_mean_and_is_not_remembered(error: type[ProviderError]) -> None:
    answers, failing = cards_of(0.0, 91.0), [True]

    def value(asked: Mapping[str, str], at: datetime) -> float | None:
        if failing[0] and set(asked) != {"InstanceId"}:
            message = "later"
            raise error(message, operation="monitor:GetMonitorData")
        return answers(asked, at)

    monitor = Monitor(value, known=by_card())
    source = TencentSignals(monitor, GPU)
    assert set(told(read(monitor, box(cards=2), source=source))) == {""}
    failing[0] = False
    assert set(told(read(monitor, box(cards=2), source=source))) == {"0", "1"}


def test_a_fault_between_the_calls_for_cards_leaves_the_mean() -> None:
    """Half the calls of a machine's cards fail: what came of the others is no whole machine."""
    answers = cards_of(0.0, 0.0, mean=4.0)
    early = NOW - 2 * DAY

    def value(asked: Mapping[str, str], at: datetime) -> float | None:
        if set(asked) != {"InstanceId"} and at < early + 6 * HOUR:
            message = "later"
            raise UnavailableError(message, operation="monitor:GetMonitorData")
        return answers(asked, at)

    source = TencentSignals(Monitor(value, known=by_card()), GPU, pages=Pages(LESSER))
    found = told(source.read([box(cards=2)], early, NOW))
    assert {device: set(one.maxima) for device, one in found.items()} == {"": {4.0}}


def test_a_short_call_for_cards_that_fails_leaves_the_mean_too() -> None:
    """However little of the window it is: the other parts of it were read, and this one was not."""

    def short(answer: dict[str, Any]) -> None:
        series = answer["DataPoints"][0]
        if len(series["Dimensions"]) > 1 and 0 < len(series["Values"]) < 50:
            message = "later"
            raise UnavailableError(message, operation="monitor:GetMonitorData")

    monitor = Monitor(cards_of(0.0, 0.0, mean=4.0), short, known=by_card())
    found = told(TencentSignals(monitor, GPU, pages=Pages(LESSER)).read([box(cards=2)], NOW - DAY, NOW))
    assert {device: set(one.maxima) for device, one in found.items()} == {"": {4.0}}


def test_denied_is_a_gap_as_it_is_of_the_mean() -> None:
    def value(_: Mapping[str, str], __: datetime) -> float | None:
        message = "no"
        raise AccessDeniedError(message, operation="monitor:GetMonitorData", code="UnauthorizedOperation")

    report = read(Monitor(value, known=by_card()), box(cards=2))
    assert (report.readings, [gap.kind for gap in report.gaps]) == ({}, [GapKind.DENIED])


def test_a_series_that_names_no_card_is_none_of_a_card() -> None:
    def nameless(answer: dict[str, Any]) -> None:
        for series in answer["DataPoints"]:
            if len(series["Dimensions"]) > 1:
                series["Dimensions"] = [pair for pair in series["Dimensions"] if pair["Name"] != "minorNumber"]

    found = told(read(Monitor(cards_of(0.0, 0.0, mean=4.0), nameless, known=by_card()), box(cards=2)))
    assert {device: set(one.maxima) for device, one in found.items()} == {"": {4.0}}


def test_a_series_that_names_a_card_is_no_mean() -> None:
    """Asked for a machine, one card of it may be the idle one."""

    def one_card(answer: dict[str, Any]) -> None:
        for series in answer["DataPoints"]:
            series["Dimensions"] = [*series["Dimensions"], {"Name": "minorNumber", "Value": "0"}]

    assert told(read(Monitor(change=one_card))) == {}


def test_a_card_with_two_series_is_no_answer() -> None:
    def doubled(answer: dict[str, Any]) -> None:
        if len(answer["DataPoints"][0]["Dimensions"]) > 1:
            answer["DataPoints"].append(answer["DataPoints"][0])

    assert set(told(read(Monitor(cards_of(0.0, 0.0), doubled, known=by_card()), box(cards=2)))) == {""}


def test_an_impossible_value_of_a_card_is_kept_as_infinite() -> None:
    found = told(read(Monitor(cards_of(0.0, 101.0), known=by_card()), box(cards=2)))
    assert set(found["1"].maxima) == {math.inf}


def test_what_monitor_declares_is_asked_once_an_account() -> None:
    """One account may have what another has not; of its regions nobody says that they differ."""
    asked = []

    class Accounts(Monitor):
        def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
            if action == "DescribeBaseMetrics":
                asked.append(shard.account)
                return by_card() if shard.account == SHARD.account else KNOWN
            return super().call(SHARD, service, action, **parameters)

    source = TencentSignals(Accounts(cards_of(0.0, 91.0)), GPU)
    mine, theirs = box(cards=2), box("ins-2", cards=2)
    theirs = replace(theirs, ref=replace(theirs.ref, account="100087654321"))
    elsewhere = replace(mine, ref=replace(mine.ref, region="ap-shanghai"))
    devices = [
        {one.device for found in source.read([machine], SINCE, NOW).readings.values() for one in found.histories}
        for machine in (mine, theirs, elsewhere)
    ]
    assert devices == [{"0", "1"}, {""}, {"0", "1"}]
    assert asked == [SHARD.account, "100087654321"]


def test_a_second_look_reads_as_the_first() -> None:
    """The last look before a stop is one more reading, of one machine of those that were scanned."""
    source = TencentSignals(Monitor(cards_of(0.0, 3.0, 2.0, 0.0), known=by_card()), GPU)
    machines = [box(f"ins-{number}", cards=4) for number in range(12)]
    scanned = source.read(machines, SINCE, NOW).readings
    for machine in machines:
        assert source.read([machine], SINCE, NOW).readings[machine.ref] == scanned[machine.ref]


def test_a_look_in_the_middle_of_a_minute_asks_for_whole_ones() -> None:
    """Questions are moved down to a period: a point before what was asked for would be no answer."""
    source = TencentSignals(Monitor(cards_of(0.0, 3.0), known=by_card()), GPU)
    report = source.read([box(cards=2)], SINCE, NOW + timedelta(seconds=37))
    assert set(told(report)) == {"0", "1"}


@pytest.mark.parametrize("days", [16, 40])
def test_older_windows_are_read_by_card_as_well(days: int) -> None:
    source = TencentSignals(Monitor(cards_of(0.0, 3.0), known=by_card()), GPU)
    assert set(told(source.read([box(cards=2)], NOW - days * DAY, NOW))) == {"0", "1"}


def test_calls_for_cards_are_full() -> None:
    """Twenty machines of eight cards over a day: 160 series of 1,460 points fill 33 larger pages."""
    monitor = Monitor(cards_of(*[0.0] * 8), known=by_card())
    machines = [box(f"ins-{number}", cards=8) for number in range(20)]
    report = TencentSignals(monitor, GPU).read(machines, NOW - DAY, NOW)
    assert all(len(found.histories) == 8 for found in report.readings.values())
    whole = [asked for asked in monitor.asked if span(asked) > HOUR]
    assert len(whole) <= 1.05 * 160 * 1460 / 7200 + 1
    assert len(monitor.asked) - len(whole) <= 6, "one machine first; four calls for the last hour; one for no card"


def span(asked: Mapping[str, Any]) -> timedelta:
    return datetime.fromisoformat(asked["EndTime"]) - datetime.fromisoformat(asked["StartTime"])


def test_other_devices_than_nvidia_cards_are_not_asked_for() -> None:
    monitor = Monitor(cards_of(0.0, 0.0), known=by_card())
    read(monitor, box(accelerator=Accelerator(AcceleratorKind.FPGA, "", 2)))
    assert monitor.asked == []
