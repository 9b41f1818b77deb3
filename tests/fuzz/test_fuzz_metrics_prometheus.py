"""Prometheus' answers, damaged: an instance may only ever look less idle for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import LONG, attempt, frozen, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated, texts

from costguard.adapters.signal_sources.combined import CombinedSignals
from costguard.adapters.signal_sources.http import HttpAnswer
from costguard.adapters.signal_sources.prometheus import PrometheusSignals, series_in
from costguard.domain.errors import ProviderError
from costguard.domain.findings import Verdict
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Inventory
from costguard.domain.signals import HOUR, SignalName, SignalReading, floor_hour
from costguard.guards.idle.judge import examine, judge_instance
from costguard.guards.rules.idle import IdleBounds
from costguard.policy.model.policy import Prometheus
from costguard.ports import SignalReport

HOURS = 6
MACHINE = replace(b.instance("i-1"), accelerator=replace(b.T4, count=2.0))
OTHER = b.instance("i-2")
RULE = b.rule(idle=IdleBounds(lasting=timedelta(hours=HOURS), cpu_max_below_percent=10.0))
SINCE = b.NOW - timedelta(hours=HOURS)
SIGNALS = frozenset({SignalName.GPU, SignalName.CPU})
START = floor_hour(SINCE).timestamp()
WHOLE_HOURS = [START + 3600 * (hour + 1) for hour in range(HOURS)]


def answer_to(form: Mapping[str, str], busy: tuple[str, str, int] | None) -> dict[str, Any]:
    """A scrape a minute, all idle but for one hour of one series of i-1: (question, gpu, hour)."""
    query = form["query"]
    question = next(name for name in ("GPU_UTIL", "ENGINE_ACTIVE", "nvidia_smi", "node_cpu") if name in query)
    devices = [("i-1", ""), ("i-2", "")] if question == "node_cpu" else [("i-1", "0"), ("i-1", "1"), ("i-2", "0")]
    result = []
    for instance, gpu in devices:
        for part, usual in (("maximum", 1.0), ("samples", 60.0), ("density", 5.0)):
            labels = {"instance_id": f"{instance}:9400", "gpu": gpu, "costguard_part": part}
            hit = busy is not None and part == "maximum" and (question, gpu) == busy[:2] and instance == "i-1"
            if "start" in form:
                points = [
                    [moment, str(90.0 if hit and busy is not None and hour == busy[2] else usual)]
                    for hour, moment in enumerate(WHOLE_HOURS)
                ]
                result.append({"metric": labels, "values": points})
            else:
                now = 30.0 if part == "samples" else 90.0 if hit and busy is not None and busy[2] == HOURS else usual
                point: list[Any] = [b.NOW.timestamp(), str(now)]
                result.append({"metric": labels, "value": point})
    kind = "matrix" if "start" in form else "vector"
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def question_of(form: Mapping[str, str]) -> str:
    name = next(name for name in ("GPU_UTIL", "ENGINE_ACTIVE", "nvidia_smi", "node_cpu") if name in form["query"])
    return f"{name} {'range' if 'start' in form else 'now'}"


FORMS = [
    f"{name} {span}" for name in ("GPU_UTIL", "ENGINE_ACTIVE", "nvidia_smi", "node_cpu") for span in ("range", "now")
]


def read(bodies: Mapping[str, bytes], busy: tuple[str, str, int] | None, status: int = 200) -> SignalReport:
    """The report over a server whose answers to some questions are `bodies`."""

    def post(path: str, form: Mapping[str, str]) -> HttpAnswer:
        assert path.startswith("/api/v1/query")
        body = bodies.get(question_of(form))
        if body is None:
            return HttpAnswer(200, json.dumps(answer_to(form, busy)).encode())
        return HttpAnswer(status, body)

    source = PrometheusSignals(Prometheus("http://prom"), post, SIGNALS)
    report = attempt("prometheus", lambda: CombinedSignals([source]).read([MACHINE, OTHER], SINCE, b.NOW))
    assert report is not None
    return report


def verdict(readings: Mapping[ResourceRef, SignalReading], *, coverage: float = 0.95) -> Verdict:
    """What the guard says of i-1."""
    rule = replace(RULE, idle=replace(RULE.idle, min_coverage=coverage))
    inventory = Inventory(MACHINE.ref.shard, (MACHINE,))
    found = attempt(
        "prometheus, judged",
        lambda: examine(inventory, readings, {}, (), {RULE.idle.lasting}, b.NOW, usage_since=SINCE).instances[0],
    )
    assert found is not None
    return judge_instance(found, rule, b.NOW).verdict


def range_form(name: str) -> dict[str, str]:
    return {"query": name.split(maxsplit=1)[0], **({"start": "0"} if name.endswith("range") else {})}


BUSY = [
    ("GPU_UTIL", "0", 2),
    ("GPU_UTIL", "1", 0),
    ("ENGINE_ACTIVE", "1", 5),
    ("GPU_UTIL", "0", HOURS),
    ("node_cpu", "", 3),
]


def test_the_machine_is_idle_until_one_series_says_otherwise() -> None:
    assert verdict(read({}, None).readings) is Verdict.VIOLATION
    assert verdict(read({}, None).readings, coverage=1.0) is Verdict.VIOLATION
    for busy in BUSY:
        assert verdict(read({}, busy).readings) is Verdict.COMPLIANT


@fuzz(quick=25)
@given(st.sampled_from(BUSY), st.sampled_from(FORMS), st.data())
def test_no_lost_or_damaged_point_makes_a_busy_machine_idle(
    busy: tuple[str, str, int], name: str, data: st.DataObject
) -> None:
    """Anything may happen to one of the six answers, but that it states another number in the busy place.

    Rules of full coverage: below it, an hour of which nothing at all arrived is what policy calls bearable.
    """
    whole = answer_to(range_form(name), busy)
    damaged: Mutated = data.draw(mutated(whole, json_junk(), most=2))
    body = json.dumps(damaged.document, default=str).encode()
    found = verdict(read({name: body}, busy).readings, coverage=1.0)
    if found is Verdict.VIOLATION:
        assert _says_otherwise(damaged.document, whole, busy, name), "the busy hour was lost"


def _says_otherwise(document: Any, whole: Any, busy: tuple[str, str, int], name: str) -> bool:
    """Whether the whole series that tells of the busy hour is gone from a well-formed answer, or says a number."""
    if not name.startswith(busy[0]):
        return False
    told = [
        (entry["metric"].get("gpu", ""), point)
        for entry in _series(document)
        if entry["metric"].get("costguard_part") == "maximum"
        and str(entry["metric"].get("instance_id")).startswith("i-1")
        for point in entry.get("values") or [entry.get("value")]
    ]
    moment = b.NOW.timestamp() if busy[2] == HOURS else WHOLE_HOURS[busy[2]]
    there = [point for gpu, point in told if gpu == busy[1] and point and float(point[0]) == moment]
    engines = busy[0] != "node_cpu"
    gone_whole = engines and not any(gpu == busy[1] for gpu, _ in told)
    return bool(there) or gone_whole or frozen(document) == frozen(whole)


def _series(document: Any) -> Sequence[Any]:
    result = document["data"]["result"]
    assert isinstance(result, list)
    return result


@fuzz(quick=15)
@given(st.sampled_from(FORMS), st.data())
def test_what_is_damaged_for_one_machine_never_spreads_as_idleness(name: str, data: st.DataObject) -> None:
    """i-1 is never measured at all by this server; whatever it says of i-2 tells nothing of i-1."""
    whole = answer_to(range_form(name), None)
    whole["data"]["result"] = [each for each in whole["data"]["result"] if each["metric"]["instance_id"] == "i-2:9400"]
    damaged: Mutated = data.draw(mutated(whole, json_junk()))
    empty = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}).encode()
    vector = empty.replace(b"matrix", b"vector")
    bodies = {form: empty if form.endswith("range") else vector for form in FORMS}
    bodies[name] = json.dumps(damaged.document, default=str).encode()
    assert verdict(read(bodies, None).readings) is not Verdict.VIOLATION


@pytest.mark.parametrize("busy", BUSY)
def test_an_hour_scraped_but_without_its_maximum_is_not_idle(busy: tuple[str, str, int]) -> None:
    """Even by a rule that bears missing hours, and even though the other measure of the card was calm."""
    name = f"{busy[0]} {'now' if busy[2] == HOURS else 'range'}"
    document = answer_to(range_form(name), busy)
    for entry in document["data"]["result"]:
        labels = entry["metric"]
        if (labels["instance_id"], labels["gpu"], labels["costguard_part"]) == ("i-1:9400", busy[1], "maximum"):
            if "values" in entry:
                del entry["values"][busy[2]]
            else:
                document["data"]["result"].remove(entry)
                break
    readings = read({name: json.dumps(document).encode()}, busy).readings
    assert verdict(readings, coverage=0.80) is Verdict.UNMEASURED


VALUES: list[Any] = [
    "NaN",
    "+Inf",
    "-Inf",
    "-1",
    "1e999",
    "1e308",
    "9" * 5000,
    "",
    "x",
    None,
    True,
    [],
    {},
    10**30,
    10**400,
    "0x1",
    "１",  # noqa: RUF001
]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value)[:10])
@pytest.mark.parametrize("part", [0, 1])
def test_no_value_in_any_place_makes_a_busy_machine_idle(name: str, value: Any, part: int) -> None:
    """In the place of every number and of every time, one after the other."""
    busy = BUSY[0]
    whole = answer_to(range_form(name), busy)
    for index, entry in enumerate(whole["data"]["result"]):
        if not entry["metric"]["instance_id"].startswith("i-1"):
            continue
        document = deepcopy(whole)
        damaged = document["data"]["result"][index]
        points = damaged["values"] if "values" in damaged else [damaged["value"]]
        points[min(2, len(points) - 1)][part] = value
        readings = read({name: json.dumps(document).encode()}, busy).readings
        assert verdict(readings) is not Verdict.VIOLATION


BODIES = {
    "lists": b"[" * 60_000,
    "closed lists": b"[" * 30_000 + b"]" * 30_000,
    "result of lists": b'{"status":"success","data":{"resultType":"matrix","result":'
    + b"[" * 9_000
    + b"]" * 9_000
    + b"}}",
    "objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "integer": b'{"status":"success","data":' + b"9" * 60_000 + b"}",
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "nothing": b"",
    "null": b"null",
    "utf-16": '{"status":"success"}'.encode("utf-16"),
    "cut": b'{"status":"success","data":{"resultType":"matrix","result":[',
    "half surrogate": b'{"status":"error","error":"\\ud800\\u001b[31m","errorType":"\\ud800"}',
    "long error": b'{"status":"error","error":"' + b"x" * 60_000 + b'"}',
    "result is text": b'{"status":"success","data":{"resultType":"matrix","result":""}}',
    "result is an object": b'{"status":"success","data":{"resultType":"matrix","result":{}}}',
    "result is false": b'{"status":"success","data":{"resultType":"matrix","result":false}}',
    "scalar": b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}',
}


@pytest.mark.parametrize("body", sorted(BODIES))
@pytest.mark.parametrize("status", [200, 400, 401, 429, 503, 0, -1, 999])
def test_no_body_and_status_passes_for_an_answer(body: str, status: int) -> None:
    answer = HttpAnswer(status, BODIES[body])
    found = attempt("prometheus", lambda: series_in(answer, operation="x"), ProviderError, measure=LONG)
    assert found is None
    for name in FORMS:
        report = read({name: BODIES[body]}, BUSY[0], status)
        assert verdict(report.readings) is Verdict.UNMEASURED
        assert report.gaps
        for gap in report.gaps:
            gap.detail.encode()


@fuzz(quick=15)
@given(
    st.one_of(st.binary(max_size=200), texts().map(lambda text: text.encode("utf-8", "surrogatepass"))),
    st.sampled_from(FORMS),
)
def test_any_bytes_leave_the_machine_unmeasured(raw: bytes, name: str) -> None:
    assert verdict(read({name: raw}, BUSY[0]).readings) is Verdict.UNMEASURED
    assert b.NOW - SINCE == HOURS * HOUR
