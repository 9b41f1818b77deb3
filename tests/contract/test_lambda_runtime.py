"""The functions through `awslambdaric`, which Lambda itself runs, against a Runtime API on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.runtime_api import SmallLambda

from costguard.cli.sandbox.running import Sandbox

ROOT = Path(__file__).parents[2]
SAMPLE = json.loads((ROOT / "events/lambda/idle_gpu.json").read_bytes())

PROBE = '''"""A function whose run is told by the trigger of the test: see `run`."""

import http.client, json, os, sys, threading

from costguard.domain.errors import UnavailableError
from costguard.faas.handler import build_handler

calls = 0

def run(function, run_id, deadline, settings, clock):
    global calls
    calls += 1
    what = settings.policy
    if what == "fail":
        raise UnavailableError("ec2:DescribeInstances: no answer")
    if what == "leak":
        raise UnavailableError("refused " + settings.slack_token.reveal())
    if what == "exit":
        sys.exit(3)
    if what == "hang":
        said = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
        said.request("POST", "/told-by-the-function", "{}")
        said.getresponse().read()
        threading.Event().wait()
    left = (deadline - clock.now()).total_seconds()
    return {"run_id": run_id, "findings": {"violation": 1}, "due": 0, "done": 0, "held": 1, "gaps": 0,
            "calls": calls, "seconds_left": left, "host": settings.host}

handler = build_handler("idle_gpu", run=run)
'''

Start = Callable[..., SmallLambda]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a function: the probe, or the module given; `policy` tells the probe what to do."""
    with ExitStack() as running:

        def begin(module: str = PROBE, *, handler: str = "probe.handler", **environ: str) -> SmallLambda:
            (tmp_path / "probe.py").write_text(module, "utf-8")
            return running.enter_context(SmallLambda(tmp_path, handler, tmp_path / "log", environ))

        yield begin


def test_a_scheduled_event_is_answered_with_the_summary(start: Start) -> None:
    function = start()

    told = function.invoke(SAMPLE, seconds=900)

    assert told.kind == "response"
    assert told.body["host"] == "lambda"
    assert told.body["scheduled_at"] == "2026-03-02T09:17:00+00:00"
    assert (told.body["findings"], told.body["held"]) == ({"violation": 1}, 1)
    assert 700 < told.body["seconds_left"] <= 810  # 90 s before Lambda would end it, less what starting took


def test_log_lines_and_metrics_are_json_and_written_once(start: Start) -> None:
    function = start()
    function.invoke(SAMPLE, request_id="request-of-the-test")
    function.end_process()

    started, finished, metrics = function.log_lines()
    assert (started["message"], finished["message"]) == ("run started", "run finished")
    assert started["request_id"] == finished["request_id"] == "request-of-the-test"
    assert started["run_id"] == finished["run_id"] != ""
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Costguard"
    assert function.log_text().count("run finished") == 1


def test_a_duplicate_event_is_the_same_run_in_the_same_warm_process(start: Start) -> None:
    function = start()
    first = function.invoke(SAMPLE, request_id="first")
    second = function.invoke(SAMPLE, request_id="second")
    later = function.invoke({**SAMPLE, "time": "2026-03-02T10:17:00Z"})

    assert [told.body["calls"] for told in (first, second, later)] == [1, 2, 3]
    assert first.body["run_id"] == second.body["run_id"] != later.body["run_id"]
    function.end_process()
    requests = [line["request_id"] for line in function.log_lines() if line.get("message") == "run finished"]
    assert requests == ["first", "second", "request-3"]


def test_a_failure_is_told_to_lambda_with_its_type(start: Start) -> None:
    function = start(COSTGUARD_POLICY="fail")

    told = function.invoke(SAMPLE)

    assert told.kind == "error"
    assert told.body["errorType"] == "UnavailableError"
    assert told.body["errorMessage"] == "ec2:DescribeInstances: no answer"
    assert function.invoke(SAMPLE).kind == "error"  # the process lives on
    function.end_process()
    assert {line["message"] for line in function.log_lines()} == {"run started", "run failed"}


def test_an_unknown_event_is_an_error_that_names_what_is_expected(start: Start) -> None:
    told = start().invoke({"Records": []})
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")
    assert "host lambda expects an EventBridge event" in told.body["errorMessage"]


def test_an_event_that_is_no_json_never_reaches_the_function(start: Start) -> None:
    told = start().invoke(b"{not json")
    assert (told.kind, told.body["errorType"]) == ("error", "Runtime.UnmarshalError")


def test_wrong_settings_are_an_error_of_the_call_not_a_crash(start: Start) -> None:
    told = start(COSTGUARD_PAUSE="1").invoke(SAMPLE)
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")
    assert "did you mean COSTGUARD_PAUSED?" in told.body["errorMessage"]


def test_a_secret_in_an_error_stays_out_of_the_answer_and_the_log(start: Start) -> None:
    """The runtime client itself prints the error with its traceback, past every formatter."""
    function = start(COSTGUARD_POLICY="leak", COSTGUARD_SLACK_TOKEN="made-up-token-0123456789")

    told = function.invoke(SAMPLE)
    function.end_process()

    assert (told.kind, told.body["errorType"]) == ("error", "RunFailedError")
    assert told.body["errorMessage"] == "UnavailableError: refused ***"
    assert "made-up-token" not in json.dumps(told.body)
    assert "run failed" in function.log_text()
    assert "made-up-token" not in function.log_text()


@pytest.mark.parametrize(
    ("module", "handler", "kind"),
    [
        ("import no_such_module\n", "probe.handler", "Runtime.ImportModuleError"),
        ("raise RuntimeError('while importing')\n", "probe.handler", "RuntimeError"),
        ("def handler(:\n", "probe.handler", "Runtime.UserCodeSyntaxError"),
        ("", "probe.handler", "Runtime.HandlerNotFound"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_init_error(start: Start, module: str, handler: str, kind: str) -> None:
    function = start(module, handler=handler)
    told = function.invoke(SAMPLE)
    assert (told.kind, told.error_type) == ("init_error", kind)
    assert function.told().kind == "exited"


def test_a_process_that_exits_says_nothing_and_the_next_event_starts_another(start: Start) -> None:
    function = start(COSTGUARD_POLICY="exit")
    assert function.invoke(SAMPLE).body == 3
    again = function.invoke(SAMPLE)
    assert (again.kind, again.body) == ("exited", 3)


def test_a_run_that_is_ended_in_the_middle_is_the_same_run_when_retried(start: Start, tmp_path: Path) -> None:
    """Lambda ends the process at the timeout and delivers the event again to a new one."""
    function = start(COSTGUARD_POLICY="hang")
    assert function.invoke(SAMPLE).kind == "told-by-the-function"
    function.end_process()
    assert function.told().kind == "exited"

    (tmp_path / "probe.py").write_text(PROBE.replace('"hang"', '"no longer"'), "utf-8")
    told = function.invoke(SAMPLE)

    assert told.kind == "response"
    runs = [line["run_id"] for line in function.log_lines() if line.get("message") == "run started"]
    assert len(runs) == 2
    assert set(runs) == {told.body["run_id"]}


def test_the_shipped_function_guards_a_fleet(tmp_path: Path) -> None:
    """Nothing is passed in: the file that is deployed, its own run, and clouds behind one address."""
    shutil.copy(ROOT / "functions/idle_gpu/handler.py", tmp_path)
    with Sandbox.start() as sandbox:
        environ = {
            "AWS_ENDPOINT_URL": sandbox.endpoint_url,
            "AWS_ACCESS_KEY_ID": sandbox.credentials.access_key_id,
            "AWS_SECRET_ACCESS_KEY": sandbox.credentials.secret_access_key,
            "COSTGUARD_LEDGER": "memory:",
        }
        with SmallLambda(tmp_path, "handler.handler", tmp_path / "log", environ) as function:
            told = function.invoke(SAMPLE)
            assert told.kind == "response", function.log_text()
            assert told.body["guard"] == "idle_gpu"
            assert told.body["instances_seen"] > 0
            assert (told.body["done"], told.body["duplicate"]) == (0, False)
            function.end_process()
            assert [line["message"] for line in function.log_lines() if line.get("message", "").startswith("run ")] == [
                "run started",
                "run finished",
            ]


@pytest.mark.parametrize("name", ["idle_gpu", "budget"])
def test_the_shipped_function_is_loaded_and_refuses_an_unknown_event(tmp_path: Path, name: str) -> None:
    shutil.copy(ROOT / f"functions/{name}/handler.py", tmp_path)
    with SmallLambda(tmp_path, "handler.handler", tmp_path / "log") as function:
        told = function.invoke({"Records": []})
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")
