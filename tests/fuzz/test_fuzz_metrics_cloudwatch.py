"""CloudWatch's answers, damaged: an instance may only ever look less idle for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import LONG, attempt, fuzz
from tests.fuzz.mutations import MOMENTS, Mutated, junk, mutated

from costguard.domain.errors import TruncatedReadError
from costguard.domain.findings import Verdict
from costguard.domain.resources import Inventory
from costguard.domain.signals import HOUR, SignalName, floor_hour
from costguard.guards.idle.judge import examine, judge_instance
from costguard.guards.rules.idle import IdleBounds
from costguard.ports import SignalReport
from costguard.providers.aws.compute.metrics import AwsSignals

HOURS = 6
MACHINE = replace(b.instance("i-1"), accelerator=replace(b.T4, count=2.0))
OTHER = b.instance("i-2")
RULE = b.rule(
    idle=IdleBounds(lasting=timedelta(hours=HOURS), cpu_max_below_percent=10.0, network_max_below_bytes_per_second=1e5)
)
SINCE = b.NOW - timedelta(hours=HOURS)
START = floor_hour(SINCE)
SIGNALS = frozenset({SignalName.GPU, SignalName.CPU, SignalName.NETWORK})
IDLE = {"nvidia_smi_utilization_gpu": 1.0, "CPUUtilization": 2.0, "NetworkIn": 600.0, "NetworkOut": 600.0}

Busy = tuple[str, str, int]
"""The metric, the card and the hour in which i-1 was busy."""
BUSY: list[Busy | None] = [
    ("nvidia_smi_utilization_gpu", "0", 2), ("nvidia_smi_utilization_gpu", "1", HOURS), ("CPUUtilization", "", 3),
    ("NetworkIn", "", 1),
]  # fmt: skip


def listed() -> list[dict[str, Any]]:
    """ListMetrics: two cards of i-1, one of i-2, as the agent names them."""
    return [
        {
            "Namespace": "CWAgent",
            "MetricName": "nvidia_smi_utilization_gpu",
            "Dimensions": [{"Name": "InstanceId", "Value": one}, {"Name": "index", "Value": card}],
        }
        for one, card in (("i-1", "0"), ("i-1", "1"), ("i-2", "0"))
    ]


def answered(queries: Sequence[Mapping[str, Any]], busy: Busy | None) -> dict[str, Any]:
    """GetMetricData: a sample a minute, idle but for one hour of one metric of i-1."""
    return {"MetricDataResults": [_result(query, busy) for query in queries], "Messages": []}


def _result(query: Mapping[str, Any], busy: Busy | None) -> dict[str, Any]:
    metric, wants = query["MetricStat"]["Metric"], query["MetricStat"]["Stat"]
    dimensions = {str(pair["Name"]): str(pair["Value"]) for pair in metric["Dimensions"]}
    known = metric["MetricName"] in IDLE and dimensions.get("InstanceId") in {"i-1", "i-2"}
    cards = {"i-1": {"", "0", "1"}, "i-2": {"", "0"}}.get(dimensions.get("InstanceId", ""), set())
    hours = range(HOURS + 1) if known and dimensions.get("index", "") in cards else range(0)
    values = []
    for hour in hours:
        mine = (metric["MetricName"], dimensions.get("index", ""), hour) == busy and dimensions["InstanceId"] == "i-1"
        high = 9e9 if metric["MetricName"].startswith("Network") else 80.0
        maximum = high if mine else IDLE[metric["MetricName"]]
        values.append(maximum if wants == "Maximum" else 30.0 if hour == HOURS else 60.0)
    return {
        "Id": query["Id"],
        "Label": metric["MetricName"],
        "Timestamps": [START + hour * HOUR for hour in hours],
        "Values": values,
        "StatusCode": "Complete",
    }


class Canned:
    """A cloud that answers as `change` leaves its answers."""

    def __init__(self, busy: Busy | None, listing: Any = None, answer: Any = None) -> None:
        self.busy = busy
        self.listing = listed() if listing is None else listing
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []

    def pages(self, *_: Any, **__: Any) -> Iterator[Sequence[Any]]:
        if not isinstance(self.listing, list):  # as AwsSession.pages does
            raise TruncatedReadError("no list")
        yield self.listing

    def call(self, *_: Any, **params: Any) -> Mapping[str, Any]:
        self.asked.append(params)
        if self.answer is not None and len(self.asked) == 1:
            found: Mapping[str, Any] = self.answer
            return found
        return answered(params["MetricDataQueries"], self.busy)


def read(cloud: Canned) -> SignalReport:
    report = attempt("cloudwatch", lambda: AwsSignals(cloud, SIGNALS).read([MACHINE, OTHER], SINCE, b.NOW))
    assert report is not None
    return report


def verdict(report: SignalReport, *, coverage: float = 1.0) -> Verdict:
    """What the guard says of i-1, by a rule that wants every sample unless told otherwise."""
    rule = replace(RULE, idle=replace(RULE.idle, min_coverage=coverage))
    found = attempt(
        "cloudwatch, judged",
        lambda: examine(
            Inventory(MACHINE.ref.shard, (MACHINE,)),
            report.readings,
            {},
            (),
            {RULE.idle.lasting},
            b.NOW,
            usage_since=SINCE,
        ).instances[0],
    )
    assert found is not None
    return judge_instance(found, rule, b.NOW).verdict


def whole_answer(busy: Busy | None) -> dict[str, Any]:
    """What the first call is answered; the queries are told by a run without damage."""
    cloud = Canned(busy)
    AwsSignals(cloud, SIGNALS).read([MACHINE, OTHER], SINCE, b.NOW)
    return answered(cloud.asked[0]["MetricDataQueries"], busy)


def test_the_machine_is_idle_until_one_series_says_otherwise() -> None:
    assert verdict(read(Canned(None))) is Verdict.VIOLATION
    for busy in BUSY:
        assert verdict(read(Canned(busy))) is Verdict.COMPLIANT


@fuzz(quick=30)
@given(st.sampled_from(BUSY), st.data())
def test_no_lost_or_damaged_point_makes_a_busy_machine_idle(busy: Busy, data: st.DataObject) -> None:
    """Any damage to the answer, unless it states another number for the busy hour.

    By a rule of full coverage: below it, an hour of which nothing at all arrived is what the policy calls bearable.
    """
    whole = whole_answer(busy)
    damaged: Mutated = data.draw(mutated(whole, most=2))
    found = verdict(read(Canned(busy, answer=damaged.document)))
    if found is Verdict.VIOLATION:
        assert _restated(damaged.document, whole), f"the busy hour was lost: {damaged.steps}"


def _restated(document: Any, whole: Any) -> bool:
    """Whether the busy number alone became another plain number, all else in its place."""
    before = [
        (result["Id"], moment, value) for result in whole["MetricDataResults"] for moment, value in _points(result)
    ]
    after = [
        (result["Id"], moment, value) for result in document["MetricDataResults"] for moment, value in _points(result)
    ]
    peak = max((point for point in before if point[0].startswith("m")), key=lambda point: point[2])
    return any(
        point[:2] == peak[:2]
        and isinstance(point[2], (int, float))
        and not isinstance(point[2], bool)
        and point[2] >= 0
        for point in after
    )


def _points(result: Mapping[str, Any]) -> Iterator[tuple[datetime, Any]]:
    return zip(result["Timestamps"], result["Values"], strict=True)


@fuzz(quick=20)
@given(st.sampled_from(BUSY), mutated(listed(), most=2))
def test_no_damaged_listing_makes_a_busy_machine_idle(busy: Busy, damaged: Mutated) -> None:
    """A card that is not listed is a card nobody measured."""
    assert verdict(read(Canned(busy, listing=damaged.document))) is not Verdict.VIOLATION


@fuzz(quick=15)
@given(st.one_of(junk(), st.fixed_dictionaries({"MetricDataResults": junk()})))
def test_anything_as_an_answer_leaves_the_machine_unmeasured(answer: Any) -> None:
    report = read(Canned(BUSY[0], answer={} if answer is None else answer))
    assert verdict(report) is Verdict.UNMEASURED
    for gap in report.gaps:
        gap.detail.encode()


VALUES: list[Any] = [
    None,
    True,
    False,
    "1.0",
    "NaN",
    float("nan"),
    float("inf"),
    -1,
    -0.001,
    10**400,
    101,
    [],
    {},
    *MOMENTS,
]
STAMPS: list[Any] = [*MOMENTS, None, "2026-03-01T00:00:00Z", 1.7e9, START - 30 * HOUR, START + 30 * HOUR, True, []]


@pytest.mark.parametrize("busy", [each for each in BUSY if each])
@pytest.mark.parametrize("key", ["Values", "Timestamps"])
@pytest.mark.parametrize("only_peak", [True, False] if LONG else [True])
def test_no_wrong_value_in_any_place_makes_a_busy_machine_idle(busy: Busy, key: str, only_peak: bool) -> None:  # noqa: FBT001
    whole = whole_answer(busy)
    for number, result in enumerate(whole["MetricDataResults"]):
        for wrong in VALUES if key == "Values" else STAMPS:
            for index in (busy[2],) if only_peak else range(0, HOURS + 1, 3):
                if index >= len(result[key]) or (wrong == 101 and busy[0] == "NetworkIn"):
                    continue  # 101 is a fine number of bytes
                document = deepcopy(whole)
                document["MetricDataResults"][number][key][index] = wrong
                assert verdict(read(Canned(busy, answer=document))) is not Verdict.VIOLATION, (result["Id"], wrong)


@pytest.mark.parametrize("busy", [each for each in BUSY if each])
def test_a_hour_counted_but_without_its_maximum_is_not_idle(busy: Busy) -> None:
    """Even by a rule that bears missing hours: the samples of this one were seen, and only their height was lost."""
    whole = whole_answer(busy)
    for result in whole["MetricDataResults"]:
        if result["Id"].startswith("m") and result["Label"] == busy[0]:
            del result["Timestamps"][busy[2]], result["Values"][busy[2]]
    assert verdict(read(Canned(busy, answer=whole)), coverage=0.80) is Verdict.UNMEASURED


IDS = ["", "m", "x0", "m99", "m" + "9" * 5000, "m-1", "m٠", "m²", "m0 ", "s0", 0, None, ["m0"], "m0\x00"]  # noqa: RUF001


@pytest.mark.parametrize("wrong", IDS, ids=lambda value: ascii(value)[:12])
def test_a_result_under_another_id_is_a_result_missing(wrong: Any) -> None:
    for number, result in enumerate(whole_answer(BUSY[0])["MetricDataResults"]):
        document = whole_answer(BUSY[0])
        document["MetricDataResults"][number]["Id"] = wrong
        found = verdict(read(Canned(BUSY[0], answer=document)))
        assert found is not Verdict.VIOLATION
        assert found is Verdict.UNMEASURED or result["Id"] == wrong or number >= 4


@pytest.mark.parametrize("status", ["PartialData", "InternalError", "Forbidden", "", None, "complete", 1, "\ud800"])
def test_a_failure_is_not_forgotten_for_a_second_result_of_the_same_id(status: Any) -> None:
    """Whichever of the two comes first."""
    for order in (1, -1):
        document = whole_answer(BUSY[0])
        first = document["MetricDataResults"][0]
        pair = [
            {**first, "StatusCode": status, "Timestamps": [], "Values": []},
            {**first, "Timestamps": [], "Values": []},
        ]
        document["MetricDataResults"] = [*pair[::order], *document["MetricDataResults"][1:]]
        assert verdict(read(Canned(BUSY[0], answer=document)), coverage=0.8) is Verdict.UNMEASURED


def test_a_page_that_names_itself_as_the_next_ends() -> None:
    document = {**whole_answer(BUSY[0]), "NextToken": "again"}

    class Endless(Canned):
        def call(self, *_: Any, **__: Any) -> Mapping[str, Any]:
            return document

    assert verdict(read(Endless(BUSY[0]))) is Verdict.UNMEASURED
