"""The function edge in process: one handler, three hosts, a run passed in."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.faas.handler import Handler, RunFailedError, build_handler
from costguard.faas.invocation import Host
from costguard.faas.local import context_of, invoke
from costguard.settings import Secret, Settings

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 2, 9, 17, 42, tzinfo=timezone.utc)
HOSTS = (Host.LAMBDA, Host.FC, Host.SCF)
SUMMARY: dict[str, object] = {
    "run_id": "as the engine says",
    "duplicate": False,
    "findings": {"violation": 2, "compliant": 5, "unmeasured": 1},
    "due": 2,
    "done": 1,
    "held": 1,
    "gaps": 3,
}
TOKEN = "made-up-token-0123456789"


class Ticking:
    """A clock that moves half a second each time it is read."""

    def __init__(self) -> None:
        self._at = NOW

    def now(self) -> datetime:
        self._at += timedelta(seconds=0.5)
        return self._at

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class FakeRun:
    """Remembers what it was asked, and answers or raises."""

    def __init__(self, answer: Mapping[str, object] | BaseException = SUMMARY) -> None:
        self.answer = answer
        self.calls: list[tuple[str, str, datetime | None, Settings]] = []

    def __call__(
        self, function: str, run_id: str, deadline: datetime | None, settings: Settings, _clock: object
    ) -> Mapping[str, object]:
        self.calls.append((function, run_id, deadline, settings))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def sample(host: Host, function: str = "idle_gpu") -> bytes:
    return (ROOT / "events" / host.value / f"{function}.json").read_bytes()


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def handler_with(run: FakeRun, stream: io.StringIO, settings: Settings | None = None) -> Handler:
    return build_handler("idle_gpu", run=run, settings=lambda: settings or Settings(), clock=Ticking(), stream=stream)


@pytest.mark.parametrize("host", HOSTS)
def test_one_handler_serves_every_host(host: Host) -> None:
    run, stream = FakeRun(), io.StringIO()

    answer = invoke(handler_with(run, stream), sample(host), Ticking())

    [(function, run_id, deadline, _settings)] = run.calls
    assert function == "idle_gpu"
    assert deadline is not None
    assert timedelta(minutes=13) < deadline - NOW < timedelta(minutes=14)
    assert answer == {
        **SUMMARY,
        "run_id": run_id,
        "scheduled_at": "2026-03-02T09:17:00+00:00",
        "scheduled_at_assumed": False,
    }
    assert json.loads(json.dumps(answer)) == answer


def test_a_duplicate_event_is_the_same_run() -> None:
    run, stream = FakeRun(), io.StringIO()
    handler = handler_with(run, stream)
    for _ in range(2):
        invoke(handler, sample(Host.LAMBDA), Ticking())
    invoke(handler, sample(Host.SCF), Ticking())
    assert len({run_id for _, run_id, _, _ in run.calls}) == 1


def test_every_host_logs_the_same_keys() -> None:
    """Powertools writes them on Lambda, the standard library elsewhere."""
    shapes = {}
    for host in HOSTS:
        stream = io.StringIO()
        invoke(handler_with(FakeRun(), stream), sample(host), Ticking())
        lines = [line for line in lines_of(stream) if "_aws" not in line]
        assert [line["message"] for line in lines] == ["run started", "run finished"]
        assert {line["host"] for line in lines} == {host.value}
        shapes[host] = [sorted(line) for line in lines]
    assert shapes[Host.LAMBDA] == shapes[Host.FC] == shapes[Host.SCF]


@pytest.mark.parametrize("host", HOSTS)
def test_the_hosts_own_log_handler_does_not_write_every_line_again(host: Host) -> None:
    hosts_own, ours = io.StringIO(), io.StringIO()
    there = logging.StreamHandler(hosts_own)
    logging.getLogger().addHandler(there)
    try:
        invoke(handler_with(FakeRun(), ours), sample(host), Ticking())
    finally:
        logging.getLogger().removeHandler(there)
    assert "run finished" in ours.getvalue()
    assert hosts_own.getvalue() == ""


def test_a_failure_is_logged_in_the_same_shape_and_raised_on_every_host() -> None:
    shapes = {}
    for host in HOSTS:
        stream = io.StringIO()
        failing = handler_with(FakeRun(UnavailableError("no answer from ec2")), stream)
        with pytest.raises(UnavailableError, match="no answer from ec2"):
            invoke(failing, sample(host), Ticking())
        line = lines_of(stream)[-1]
        assert (line["level"], line["message"], line["exception_name"]) == ("ERROR", "run failed", "UnavailableError")
        assert "no answer from ec2" in line["exception"]
        shapes[host] = sorted(line)
    assert shapes[Host.LAMBDA] == shapes[Host.FC] == shapes[Host.SCF]


def test_on_lambda_a_finished_run_is_told_in_metrics() -> None:
    stream = io.StringIO()
    invoke(handler_with(FakeRun(), stream), sample(Host.LAMBDA), Ticking())

    [metrics] = [line for line in lines_of(stream) if "_aws" in line]
    [declared] = metrics["_aws"]["CloudWatchMetrics"]
    assert (declared["Namespace"], metrics["service"], metrics["function"]) == ("Costguard", "costguard", "idle_gpu")
    assert [sorted(dimensions) for dimensions in declared["Dimensions"]] == [["function", "service"]], "as alarms ask"
    values = {entry["Name"]: (metrics[entry["Name"]], entry["Unit"]) for entry in declared["Metrics"]}
    assert values == {
        "Findings": ([8.0], "Count"),
        "Due": ([2.0], "Count"),
        "Done": ([1.0], "Count"),
        "Held": ([1.0], "Count"),
        "Gaps": ([3.0], "Count"),
        "UnmeasuredPercent": ([12.5], "Percent"),
        "DurationSeconds": ([0.5], "Seconds"),
    }


@pytest.mark.parametrize("host", HOSTS)
def test_lines_and_figures_say_whose_they_are(host: Host) -> None:
    """Two deployments in one region would else hide from each other's alarms that one of them is silent."""
    stream = io.StringIO()
    named = Settings(deployment="gpu-watch")
    handler = build_handler("idle_gpu", run=FakeRun(), settings=lambda: named, clock=Ticking(), stream=stream)

    invoke(handler, sample(host), Ticking())

    told = [(line["service"], "_aws" in line) for line in lines_of(stream)]
    assert told == [("gpu-watch", False)] * 2 + [("gpu-watch", True)] * (host is Host.LAMBDA)


@pytest.mark.parametrize("host", HOSTS)
def test_the_figures_of_budgets_reach_the_host_and_its_log(host: Host) -> None:
    """Findings are budgets there; what no log line counts is in the answer alone."""
    told = {**SUMMARY, "findings": {"compliant": 2, "violation": 1}, "alerts": 1, "budgets": {"all": {"sure": True}}}
    run, stream = FakeRun(told), io.StringIO()
    handler = build_handler("budget", run=run, settings=Settings, clock=Ticking(), stream=stream)

    answer = invoke(handler, sample(host, "budget"), Ticking())

    assert answer["budgets"] == {"all": {"sure": True}}
    assert [function for function, *_ in run.calls] == ["budget"]
    finished = [line for line in lines_of(stream) if line.get("message") == "run finished"]
    assert [line["findings"] for line in finished] == [3]


@pytest.mark.parametrize("host", HOSTS)
def test_a_run_done_before_counts_nothing(host: Host) -> None:
    stream = io.StringIO()
    invoke(handler_with(FakeRun({"run_id": "x", "duplicate": True}), stream), sample(host), Ticking())
    lines = lines_of(stream)
    assert not [line for line in lines if "_aws" in line]
    assert lines[-1]["duplicate"] is True


def test_a_fleet_of_nothing_has_no_share_unmeasured() -> None:
    stream = io.StringIO()
    invoke(handler_with(FakeRun({**SUMMARY, "findings": {}}), stream), sample(Host.FC), Ticking())
    assert "unmeasured_percent" not in lines_of(stream)[-1]


@pytest.mark.parametrize("host", HOSTS)
def test_an_unknown_event_runs_nothing(host: Host) -> None:
    run, stream = FakeRun(), io.StringIO()
    with pytest.raises(InvalidInputError, match=f"host {host.value} expects"):
        invoke(handler_with(run, stream), b'{"Records": []}', Ticking(), host=host)
    assert run.calls == []
    assert lines_of(stream)[-1]["message"] == "run failed"


def test_wrong_settings_run_nothing_and_are_logged() -> None:
    def wrong() -> Settings:
        raise InvalidInputError("environment: COSTGUARD_PAUSE is no setting")

    run, stream = FakeRun(), io.StringIO()
    handler = build_handler("idle_gpu", run=run, settings=wrong, clock=Ticking(), stream=stream)
    with pytest.raises(InvalidInputError, match="COSTGUARD_PAUSE"):
        handler({}, context_of(Host.SCF, Ticking()))
    assert run.calls == []
    [line] = lines_of(stream)
    assert (line["message"], line["host"]) == ("run failed", "scf")


def test_the_mark_of_the_host_goes_before_the_shape_of_the_event() -> None:
    run, stream = FakeRun(), io.StringIO()
    handler = handler_with(run, stream, Settings(host="lambda"))
    with pytest.raises(InvalidInputError, match="host lambda expects"):
        handler(sample(Host.FC), context_of(Host.FC, Ticking()))
    assert run.calls == []


def test_a_process_that_is_asked_to_exit_exits() -> None:
    stream = io.StringIO()
    with pytest.raises(SystemExit):
        invoke(handler_with(FakeRun(SystemExit(3)), stream), sample(Host.FC), Ticking())
    assert lines_of(stream)[-1]["message"] == "run started"


@pytest.mark.parametrize("host", HOSTS)
def test_secrets_leave_neither_by_the_log_nor_by_the_error(host: Host) -> None:
    settings = Settings(slack_token=Secret(TOKEN), ledger=Secret("postgresql://keeper:pa55%20word@db/costguard"))
    stream = io.StringIO()
    cause = ConnectionError(f"could not connect to postgresql://keeper:pa55%20word@db with {TOKEN}, pa55 word")
    failure = UnavailableError("slack refused https://s3.test/x?X-Amz-Signature=abcdef0123")
    failure.__cause__ = cause

    with pytest.raises(RunFailedError) as caught:
        invoke(handler_with(FakeRun(failure), stream, settings), sample(host), Ticking())

    for text in (stream.getvalue(), str(caught.value), repr(caught.value.__cause__)):
        for secret in (TOKEN, "pa55", "abcdef0123"):
            assert secret not in text
    assert "UnavailableError: slack refused https://s3.test/x?X-Amz-Signature=***" in str(caught.value)
    assert caught.value.__suppress_context__


def test_building_a_handler_imports_neither_a_cloud_nor_an_engine_and_running_it_no_other_guard() -> None:
    """A host imports the function before its first call; that must stay small. Words wait for something to say."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'functions/idle_gpu')!r}); import handler; "
        "heavy = {'boto3', 'botocore', 'sqlalchemy', 'pydantic', 'slack_sdk', 'aws_lambda_powertools', 'moto', "
        "'ruamel', 'typer', 'rich', 'costguard.engine.run.run'}; print(sorted(heavy & set(sys.modules))); "
        "import costguard.engine.run.run, costguard.policy.model.policy; guards = 'costguard.guards.'; "
        "print([name for name in sys.modules if name in {guards + 'budget.judge', guards + 'keys.judge', "
        "guards + 'network.judge', guards + 'network.reachability.exposure', "
        "'sqlalchemy', 'boto3'}]); "
        "from costguard.report.words import catalogue; print(catalogue._read.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split("\n") == ["[]", "[]", "0", ""]
