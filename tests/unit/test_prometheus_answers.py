"""Prometheus answers that are not whole: each becomes a gap, or an hour nobody can take for idle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from costguard.adapters.signal_sources.http import HttpAnswer
from costguard.adapters.signal_sources.prometheus import PrometheusSignals
from costguard.domain.errors import InvalidInputError, ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, GapKind, Instance, InstanceState
from costguard.domain.signals import SignalName
from costguard.policy.model.policy import Prometheus
from costguard.ports import SignalReport

UNTIL = datetime(2026, 3, 3, 12, tzinfo=timezone.utc)
SINCE = UNTIL - timedelta(hours=3)
ENDS = [(SINCE + timedelta(hours=hour)).timestamp() for hour in (1, 2, 3)]


class ScriptedServer:
    """Answers every query alike, and keeps what it was asked."""

    def __init__(self, answer: HttpAnswer | ProviderError) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def post_form(self, path: str, form: Mapping[str, str]) -> HttpAnswer:
        self.asked.append((path, form))
        if isinstance(self.answer, ProviderError):
            raise self.answer
        return self.answer


def instance(native_id: str = "i-0a") -> Instance:
    return Instance(
        ref=ResourceRef("aws", "111122223333", "us-east-1", "instance", native_id),
        instance_type="g5.xlarge",
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10G", 1),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="1",
        launched_at=SINCE,
    )


def series(part: str, values: list[str], *, times: list[float] | None = None, **labels: str) -> dict[str, Any]:
    metric = {"instance_id": "i-0a", "gpu": "0", "costguard_part": part, **labels}
    return {"metric": metric, "values": [list(pair) for pair in zip(times or ENDS, values, strict=True)]}


def success(*result: dict[str, Any], **more: object) -> HttpAnswer:
    document = {"status": "success", "data": {"resultType": "matrix", "result": list(result)}, **more}
    return HttpAnswer(200, json.dumps(document).encode())


def whole(maxima: list[str]) -> HttpAnswer:
    return success(series("maximum", maxima), series("samples", ["60"] * 3), series("density", ["5"] * 3))


def read(answer: HttpAnswer | ProviderError, *instances: Instance) -> SignalReport:
    source = PrometheusSignals(Prometheus("http://prometheus.test"), ScriptedServer(answer).post_form, [SignalName.GPU])
    return source.read(instances or (instance(),), SINCE, UNTIL)


def test_a_whole_answer_is_read() -> None:
    report = read(whole(["0", "1.5", "0"]))
    (history,) = report.readings[instance().ref].histories
    assert list(history.maxima) == [0.0, 1.5, 0.0]
    assert list(history.samples) == [60, 60, 60]
    assert report.gaps == ()


def test_nothing_found_is_an_empty_reading_and_no_gap() -> None:
    report = read(success())
    assert report.readings[instance().ref].histories == ()
    assert report.gaps == ()


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1"])
def test_what_is_no_number_is_an_implausible_hour(value: str) -> None:
    (history,) = read(whole(["0", value, "0"])).readings[instance().ref].histories
    assert history.maxima[1] == math.inf


def test_an_hour_that_was_scraped_but_has_no_maximum_is_implausible() -> None:
    (history,) = (
        read(success(series("samples", ["60"] * 3), series("density", ["5"] * 3))).readings[instance().ref].histories
    )
    assert list(history.maxima) == [math.inf] * 3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"mat'), GapKind.TRUNCATED),
        (HttpAnswer(200, b"<html>sign in</html>"), GapKind.UNREADABLE),
        (HttpAnswer(200, b""), GapKind.UNREADABLE),
        (HttpAnswer(200, b"[]"), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"error","errorType":"execution","error":"too many samples"}'), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success"}'), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success","data":null}'), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}'), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"matrix","result":[{}]}}'), GapKind.UNREADABLE),
        (success(series("maximum", ["0"] * 3), status="error", error="aborted"), GapKind.UNREADABLE),
        (success(warnings=["a store is unreachable"]), GapKind.TRUNCATED),
        (success(infos=["ignored histograms"]), GapKind.TRUNCATED),
        (success(isPartial=True), GapKind.TRUNCATED),
        (success(series("maximum", ["many"] * 3)), GapKind.UNREADABLE),
        (success(series("samples", ["NaN"] * 3)), GapKind.UNREADABLE),
        (success(series("samples", ["-1"] * 3)), GapKind.UNREADABLE),
        (success(series("samples", ["1e308"] * 3)), GapKind.UNREADABLE),
        (success(series("density", ["1e30"] * 3)), GapKind.UNREADABLE),
        (success(series("maximum", ["1_0"] * 3)), GapKind.UNREADABLE),
        (success(series("maximum", ["１"] * 3)), GapKind.UNREADABLE),  # noqa: RUF001
        (success({"metric": {}, "values": [[ENDS[0], True]]}), GapKind.UNREADABLE),
        (success({"metric": {}, "values": [[10**400, "0"]]}), GapKind.UNREADABLE),
        (success({"metric": {}, "values": ""}), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"matrix","result":""}}'), GapKind.UNREADABLE),
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"matrix","result":{}}}'), GapKind.UNREADABLE),
        (success(series("another", ["1"] * 3)), GapKind.UNREADABLE),
        (success(series("maximum", ["0"] * 3, instance_id="i-0other")), GapKind.UNREADABLE),
        (success(series("maximum", ["0"] * 3, times=[end - 900 for end in ENDS])), GapKind.UNREADABLE),
        (success(series("maximum", ["0"], times=[ENDS[1] + 900])), GapKind.UNREADABLE),
        (success(series("maximum", ["0"] * 3, times=[end + 3600 for end in ENDS])), GapKind.UNREADABLE),
        (HttpAnswer(400, b'{"status":"error","errorType":"bad_data","error":"parse error"}'), GapKind.UNREADABLE),
        (HttpAnswer(302, b""), GapKind.UNREADABLE),
        (HttpAnswer(401, b"no"), GapKind.DENIED),
        (HttpAnswer(403, b'{"status":"error"}'), GapKind.DENIED),
        (HttpAnswer(422, b'{"status":"error","errorType":"execution","error":"too many"}'), GapKind.UNREADABLE),
        (HttpAnswer(429, b""), GapKind.THROTTLED),
        (HttpAnswer(503, b'{"status":"error","errorType":"timeout","error":"query timed out"}'), GapKind.UNAVAILABLE),
        (UnavailableError("refused"), GapKind.UNAVAILABLE),
        (TruncatedReadError("cut"), GapKind.TRUNCATED),
    ],
)
def test_an_answer_that_is_not_whole_leaves_the_instance_absent_and_says_why(
    answer: HttpAnswer | ProviderError, kind: GapKind
) -> None:
    report = read(answer)
    assert report.readings == {}
    assert [(gap.what, gap.kind) for gap in report.gaps] == [("signals", kind)]
    assert report.gaps[0].shard == instance().ref.shard
    assert "i-0a" in report.gaps[0].detail
    assert report.gaps[0].fix


def test_a_server_that_does_not_answer_is_asked_once_and_everything_is_unread() -> None:
    server = ScriptedServer(UnavailableError("refused"))
    source = PrometheusSignals(Prometheus("http://prometheus.test"), server.post_form)
    report = source.read([instance(f"i-0{number}") for number in range(120)], SINCE, UNTIL)
    assert len(server.asked) == 1
    assert report.readings == {}
    assert "117 more" in report.gaps[0].detail


def test_control_characters_in_a_servers_error_do_not_reach_the_report() -> None:
    answer = HttpAnswer(400, json.dumps({"status": "error", "error": "bad\x1b[31m\u202ename"}).encode())
    detail = read(answer).gaps[0].detail
    assert detail.isprintable()


def test_ids_are_quoted_for_the_pattern_and_for_the_query() -> None:
    server = ScriptedServer(success())
    source = PrometheusSignals(Prometheus("http://prometheus.test"), server.post_form, [])
    source.read([instance('i-0."}) or vector(0)')], SINCE, UNTIL)
    query = server.asked[0][1]["query"]
    assert 'instance_id=~"(?:i\\\\-0\\\\.\\"\\\\}\\\\)\\\\ or\\\\ vector\\\\(0\\\\))(?:[.:].*)?"' in query


def test_no_instances_ask_nothing() -> None:
    server = ScriptedServer(success())
    source = PrometheusSignals(Prometheus("http://prometheus.test"), server.post_form)
    assert source.read([], SINCE, UNTIL) == SignalReport({})
    assert server.asked == []


def test_gpu_is_read_even_if_nothing_is_named() -> None:
    server = ScriptedServer(success())
    PrometheusSignals(Prometheus("http://prometheus.test"), server.post_form, []).read([instance()], SINCE, UNTIL)
    asked = " ".join(form["query"] for _, form in server.asked)
    assert "DCGM_FI_DEV_GPU_UTIL" in asked
    assert "node_cpu" not in asked


def test_a_label_that_is_no_label_is_refused_with_the_fix() -> None:
    with pytest.raises(InvalidInputError, match="such as instance_id"):
        PrometheusSignals(
            Prometheus("http://prometheus.test", instance_label='x"}'), ScriptedServer(success()).post_form
        )


@pytest.mark.parametrize(
    ("density", "samples", "covered"),
    [("20", "240", 60), ("20", "120", 30), ("5", "57", 57), ("6", "60", 60), ("7", "80", 60), ("1", "12", 12)],
)
def test_samples_are_counted_in_minutes_whatever_the_scrape_interval(density: str, samples: str, covered: int) -> None:
    answer = success(series("maximum", ["0"] * 3), series("samples", [samples] * 3), series("density", [density] * 3))
    (history,) = read(answer).readings[instance().ref].histories
    assert history.samples[0] == covered


def test_a_server_that_lost_four_scrapes_of_five_is_known_by_its_densest_five_minutes() -> None:
    answer = success(
        series("maximum", ["0"] * 3), series("samples", ["60", "12", "12"]), series("density", ["5", "1", "1"])
    )
    (history,) = read(answer).readings[instance().ref].histories
    assert history.over(SINCE + timedelta(hours=1), UNTIL).coverage < 0.25


def test_how_late_a_job_may_begin_and_not_be_seen() -> None:
    """Six minutes where the cards are scraped every minute or oftener, fifteen where it is every five."""
    found = {}
    for density, samples in (("20", "240"), ("5", "60"), ("1", "12")):
        counted = series("samples", [samples] * 3), series("density", [density] * 3)
        reading = read(success(series("maximum", ["0"] * 3), *counted)).readings[instance().ref]
        (history,) = reading.histories
        found[density] = history.over(SINCE, UNTIL, reading.documented_delay).unseen / timedelta(minutes=1)
    assert found == {"20": 6, "5": 6, "1": 15}


def test_a_slow_scrape_may_be_as_late_as_two_scrapes() -> None:
    answer = success(series("maximum", ["0"] * 3), series("samples", ["12"] * 3), series("density", ["1"] * 3))
    assert read(answer).readings[instance().ref].documented_delay == timedelta(minutes=10)
    assert read(whole(["0"] * 3)).readings[instance().ref].documented_delay == timedelta(minutes=5)


def test_a_negative_value_of_one_measure_is_not_hidden_by_the_other() -> None:
    """Both questions about the card are answered; one of them cannot be believed."""

    def post(path: str, form: Mapping[str, str]) -> HttpAnswer:
        assert path == "/api/v1/query_range"
        return whole(["-1"] * 3) if "GPU_UTIL" in form["query"] else whole(["0"] * 3)

    report = PrometheusSignals(Prometheus("http://prometheus.test"), post, [SignalName.GPU]).read(
        [instance()], SINCE, UNTIL
    )
    (history,) = report.readings[instance().ref].histories
    assert list(history.maxima) == [math.inf] * 3


def test_what_is_only_shown_and_cannot_be_read_leaves_nobody_unread() -> None:
    """Nor is it asked of the next batch, which would wait for the same refusal."""
    asked: list[str] = []

    def post(path: str, form: Mapping[str, str]) -> HttpAnswer:
        del path
        asked.append(form["query"])
        if "DCGM_FI_DEV_GPU_UTIL" in form["query"]:
            return whole(["0", "1.5", "0"]) if "0a" in form["query"] else success()
        if "node_cpu" in form["query"]:
            raise UnavailableError("too heavy")
        return success()

    source = PrometheusSignals(Prometheus("http://prometheus.test"), post, [SignalName.GPU], [SignalName.CPU])
    report = source.read([instance(), *(instance(f"i-1{number}") for number in range(40))], SINCE, UNTIL)

    assert [one.name for one in report.readings[instance().ref].histories] == [SignalName.GPU]
    assert len(report.readings) == 41
    assert report.gaps == ()
    assert sum("node_cpu" in query for query in asked) == 1
