"""The functions in a process that behaves as Function Compute's Python runtimes do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aliyunsdkcore.client import AcsClient
from aliyunsdkcore.request import CommonRequest
from tests.host_runtimes import PROBE, RoleKey, SmallFunctionCompute

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import RunningClock
from cloudstand.fleets import alibaba_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World

ROOT = Path(__file__).parents[2]
SAMPLE = json.loads((ROOT / "events/fc/idle_gpu.json").read_bytes())
ROLE = RoleKey("STS.NSxMadeUpKeyIdOfTheRole", "made-up-secret-of-the-role", "CAISmade-up-token-of-the-role")
LATER = RoleKey("STS.NSxMadeUpKeyIdLaterOn", "made-up-secret-later-on", "CAISmade-up-token-later-on")
SLACK_TOKEN = "made-up-token-0123456789"

Start = Callable[..., SmallFunctionCompute]


@pytest.fixture(scope="module", params=["python3.10", "python3.12"])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def warm(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallFunctionCompute]:
    """One function of each runtime for the whole module: most tests meet a process that served others."""
    folder = tmp_path_factory.mktemp(runtime)
    (folder / "probe.py").write_text(PROBE, "utf-8")
    environ = {"COSTGUARD_SLACK_TOKEN": SLACK_TOKEN, "COSTGUARD_POLICY": "costguard.yaml"}
    with SmallFunctionCompute(folder, folder / "log", "probe.handler", environ, ROLE, runtime) as function:
        yield function


@pytest.fixture
def function(warm: SmallFunctionCompute) -> SmallFunctionCompute:
    warm.shall("")
    warm.role = ROLE
    return warm


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a function of its own: the probe, or the module given."""
    with ExitStack() as running:

        def begin(module: str = PROBE, **more: Any) -> SmallFunctionCompute:
            (tmp_path / "probe.py").write_text(module, "utf-8")
            about = {"handler": "probe.handler", **more}
            return running.enter_context(SmallFunctionCompute(tmp_path, tmp_path / "log", **about))

        yield begin


def test_a_timers_event_is_answered_with_the_summary(function: SmallFunctionCompute) -> None:
    told = function.invoke(SAMPLE)

    assert told.kind == "response", told.log
    assert (told.body["host"], told.body["function"]) == ("fc", "idle_gpu")
    assert (told.body["scheduled_at"], told.body["scheduled_at_assumed"]) == ("2026-03-02T09:17:00+00:00", False)
    assert (told.body["findings"], told.body["held"]) == ({"violation": 1}, 1)
    assert told.body["foreign"] == []  # what is not in this host's bundle, or not needed to answer


@pytest.mark.parametrize(("seconds", "most"), [(900, 810), (60, 40), (3, 1.5)])
def test_the_deadline_is_the_functions_own_timeout_less_the_time_to_report(
    function: SmallFunctionCompute, seconds: int, most: float
) -> None:
    """As text in the context of the older runtime, which passes a header on."""
    left = function.invoke(SAMPLE, seconds=seconds).body["seconds_left"]
    assert most - 30 < left <= most


def test_log_lines_are_json_and_written_once(function: SmallFunctionCompute) -> None:
    told = function.invoke(SAMPLE, request_id="1-65362416-68afb557d64a2e283eccebce")

    started, finished = told.log_lines()
    assert (started["message"], finished["message"]) == ("run started", "run finished")
    assert {started["request_id"], finished["request_id"]} == {"1-65362416-68afb557d64a2e283eccebce"}
    assert started["run_id"] == finished["run_id"] == told.body["run_id"]
    assert started["host"] == "fc"
    assert told.log.count("run finished") == 1


def test_a_duplicate_event_is_the_same_run_in_the_same_warm_process(function: SmallFunctionCompute) -> None:
    first, second = function.invoke(SAMPLE), function.invoke(SAMPLE)
    later = function.invoke({**SAMPLE, "triggerTime": "2026-03-02T10:17:00Z"})

    assert first.body["run_id"] == second.body["run_id"] != later.body["run_id"]
    calls = [told.body["calls"] for told in (first, second, later)]
    assert calls == [calls[0], calls[0] + 1, calls[0] + 2]


def test_a_failure_is_told_with_its_type_and_the_process_lives_on(function: SmallFunctionCompute) -> None:
    function.shall("fail")
    told = function.invoke(SAMPLE)

    assert told.kind == "error"
    assert (told.body["errorType"], told.body["errorMessage"]) == (
        "UnavailableError",
        "ecs:DescribeInstances: no answer",
    )
    assert told.body["stackTrace"][-1][2] == "in run"
    assert [line["message"] for line in told.log_lines()] == ["run started", "run failed"]
    function.shall("")
    assert function.invoke(SAMPLE).kind == "response"


def test_a_failed_event_comes_again_and_is_the_same_run(function: SmallFunctionCompute) -> None:
    function.shall("fail once")
    failed, done = function.invoke_later(SAMPLE)
    assert (failed.kind, done.kind) == ("error", "response")
    assert failed.log_lines()[0]["run_id"] == done.body["run_id"]

    function.shall("fail")
    assert [told.kind for told in function.invoke_later(SAMPLE)] == ["error"] * 4


@pytest.mark.parametrize("event", [{"Records": []}, {"triggerTime": "2026-03-02T09:17:00Z", "payload": '{"a": 1}'}])
def test_an_unknown_event_is_an_error_that_names_what_is_expected(
    function: SmallFunctionCompute, event: dict[str, Any]
) -> None:
    told = function.invoke(event)
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")
    assert "host fc expects the bytes of a timer trigger's event" in told.body["errorMessage"]


def test_bytes_that_are_no_json_are_an_error_of_ours(function: SmallFunctionCompute) -> None:
    told = function.invoke(b"{not json")
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")


def test_an_event_by_hand_may_be_empty(function: SmallFunctionCompute) -> None:
    assert function.invoke(b"").body["scheduled_at_assumed"] is True


def test_a_summary_that_is_no_json_is_an_error(function: SmallFunctionCompute) -> None:
    function.shall("no json")
    told = function.invoke(SAMPLE)
    assert (told.kind, told.body["errorType"]) == ("error", "TypeError")


def test_secrets_stay_out_of_the_answer_and_the_log(function: SmallFunctionCompute) -> None:
    """The runtime itself writes the error to the log, past every formatter of ours."""
    function.shall("leak")
    told = function.invoke(SAMPLE)

    assert (told.kind, told.body["errorType"]) == ("error", "RunFailedError")
    assert told.body["errorMessage"] == "UnavailableError: refused *** *** ***"
    for secret in (SLACK_TOKEN, ROLE.secret, ROLE.token):
        assert secret not in json.dumps(told.body)
        assert secret not in function.log_text()


def test_libraries_write_warnings_only_and_no_secrets(function: SmallFunctionCompute) -> None:
    """The runtime leaves the root logger at INFO."""
    function.shall("chat")
    log = function.invoke(SAMPLE).log

    assert "[WARNING] sent at level 30 with *** *** ***" in log
    assert "at level 20" not in log
    assert "at level 10" not in log
    assert log.count("unknown to us: ") == 3
    assert not [word for word in ("made-up", "made_up", "madeup") if word in log]


def test_a_warm_process_uses_the_newest_keys_that_the_call_brings(function: SmallFunctionCompute, runtime: str) -> None:
    """The environment is written when the instance starts; on Python 3.12 nothing newer is handed over."""
    assert function.invoke(SAMPLE).body["alibaba"] == ROLE.digest()

    function.role = LATER
    told = function.invoke(SAMPLE)

    assert told.body["alibaba"] == (LATER if runtime == "python3.10" else ROLE).digest()


def test_both_the_newest_keys_and_those_of_the_environment_are_blanked(start: Start) -> None:
    old = "os.environ['ALIBABA_CLOUD_ACCESS_KEY_SECRET'], os.environ['ALIBABA_CLOUD_SECURITY_TOKEN']"
    function = start(PROBE.replace("settings.secrets()", f"({old}, *settings.secrets())"), role=ROLE)
    function.shall("")
    assert function.invoke(SAMPLE).kind == "response"

    function.role = LATER
    function.shall("leak")
    told = function.invoke(SAMPLE)

    assert told.body["errorMessage"] == "UnavailableError: refused *** *** *** ***"
    assert "made-up" not in function.log_text()


def test_a_key_that_people_configured_goes_before_the_roles(start: Start) -> None:
    """Otherwise another account would be guarded than the one they meant."""
    own = RoleKey("LTAI5tMadeUpByPeople", "made-up-secret-of-people")
    environ = {"ALIBABA_CLOUD_ACCESS_KEY_ID": own.key_id, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": own.secret}
    function = start(role=RoleKey(), environ=environ)
    function.invoke(b"{}")
    function.role = ROLE
    assert function.invoke(b"{}").body["alibaba"] == own.digest()


def test_a_role_whose_keys_are_kept_out_of_the_environment_is_used_all_the_same(start: Start) -> None:
    """The platform can be told to inject keys into requests only."""
    function = start(role=RoleKey())
    assert "alibaba" not in function.invoke(SAMPLE).body  # no role: three empty texts
    function.role = RoleKey(ROLE.key_id, ROLE.secret)
    assert "alibaba" not in function.invoke(SAMPLE).body  # a temporary key without its token is none
    function.role = ROLE
    assert function.invoke(SAMPLE).body["alibaba"] == ROLE.digest()


def test_wrong_settings_are_an_error_of_the_call_not_a_crash(start: Start) -> None:
    told = start(environ={"COSTGUARD_PAUSE": "1"}).invoke(SAMPLE)
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")
    assert "did you mean COSTGUARD_PAUSED?" in told.body["errorMessage"]


def test_a_ledger_that_the_instance_would_lose_is_refused(start: Start) -> None:
    told = start(environ={"COSTGUARD_LEDGER": "sqlite:////tmp/costguard.sqlite3"}).invoke(SAMPLE)
    assert "which host fc loses with the function's instance" in told.body["errorMessage"]


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("import no_such_module\n", "ImportModuleError"),
        ("raise RuntimeError('while importing')\n", "UserCodeError"),
        ("def handler(:\n", "UserCodeSyntaxError"),
        ("", "HandlerNotFound"),
    ],
)
def test_a_function_that_cannot_be_loaded_fails_every_call(start: Start, module: str, kind: str) -> None:
    function = start(module)
    for _ in range(2):
        told = function.invoke(SAMPLE)
        assert (told.kind, told.body["errorType"]) == ("error", kind)


def test_a_process_that_exits_is_an_error_and_the_next_event_starts_another(start: Start) -> None:
    function = start()
    function.shall("exit")
    assert function.invoke(SAMPLE).kind == "exited"
    function.shall("")
    assert function.invoke(SAMPLE).body["calls"] == 1


def test_a_run_that_is_ended_in_the_middle_is_the_same_run_when_retried(start: Start) -> None:
    function = start(role=ROLE)
    function.shall("hang")
    assert function.invoke(SAMPLE, seconds=60).kind == "hangs"
    ended = function.time_is_up()
    assert ended.body == {"errorMessage": "Function timed out after 60 seconds"}
    assert "Dumping stack trace after function timeout" in ended.log

    function.shall("")
    told = function.invoke(SAMPLE)

    assert told.body["calls"] == 1
    assert {line["run_id"] for line in (*ended.log_lines(), *told.log_lines())} == {told.body["run_id"]}


@pytest.mark.parametrize("name", ["idle_gpu", "budget"])
def test_the_shipped_function_is_loaded_and_refuses_an_unknown_event(tmp_path: Path, name: str) -> None:
    shutil.copy(ROOT / f"functions/{name}/handler.py", tmp_path)
    with SmallFunctionCompute(tmp_path, tmp_path / "log") as function:
        told = function.invoke({"Records": []})
    assert (told.kind, told.body["errorType"]) == ("error", "InvalidInputError")


GUARDED = """
version: 1
mode: observe
accounts:
  - {cloud: alibaba, id: "1234567890123456", regions: [cn-hangzhou], organisation: true,
     role: costguard, external_id: made-up-external-id}
idle_gpu:
  - name: all
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn]
"""


@pytest.fixture
def alibaba() -> Iterator[tuple[AlibabaEmulator, RunningClock]]:
    """Two accounts with a machine each, in real time."""
    clock, member = RunningClock(), "2345678901234567"
    since = clock.now() - timedelta(days=30)
    fleet = [
        alibaba_machine("notebook", does.idle(), since),
        alibaba_machine("training", does.busy(), since, account=member),
    ]
    with AlibabaEmulator(WorldDoor(World(fleet, clock.now()), clock), external_id="made-up-external-id") as emulator:
        yield emulator, clock


def role_of(emulator: AlibabaEmulator) -> RoleKey:
    """What Function Compute does for a function with a role: temporary keys in the function's account."""
    request = CommonRequest(domain=emulator.url, version="2015-04-01", action_name="AssumeRole")
    request.add_query_param("RoleArn", f"acs:ram::{emulator.accounts[0]}:role/costguard")
    request.add_query_param("RoleSessionName", "fc")
    request.add_query_param("ExternalId", "made-up-external-id")
    client = AcsClient(emulator.keys.key_id, emulator.keys.secret, "cn-hangzhou")
    found = json.loads(client.do_action_with_exception(request))["Credentials"]
    return RoleKey(found["AccessKeyId"], found["AccessKeySecret"], found["SecurityToken"])


def test_the_shipped_function_guards_alibaba_cloud_with_the_keys_of_its_role(
    tmp_path: Path, alibaba: tuple[AlibabaEmulator, RunningClock]
) -> None:
    """Nothing is passed in: the file that is deployed, its policy beside it, and a cloud behind one address."""
    emulator, clock = alibaba
    shutil.copy(ROOT / "functions/idle_gpu/handler.py", tmp_path)
    (tmp_path / "costguard.yaml").write_text(GUARDED, "utf-8")
    environ = {"COSTGUARD_POLICY": "costguard.yaml", "COSTGUARD_ALIBABA_ENDPOINT": emulator.url}
    first, later = role_of(emulator), {**SAMPLE, "triggerTime": "2026-03-02T10:17:00Z"}

    with SmallFunctionCompute(tmp_path, tmp_path / "log", environ=environ, role=first) as function:
        told = function.invoke(SAMPLE)
        clock.advance(timedelta(hours=37))  # the keys that the instance started with have ended
        function.role = role_of(emulator)
        warm = function.invoke(later)
        function.runtime = "python3.12"  # which brings none
        without = function.invoke({**SAMPLE, "triggerTime": "2026-03-02T11:17:00Z"})

    for one in (told, warm):
        assert one.kind == "response", one.log
        assert (one.body["instances_seen"], one.body["gaps"], one.body["done"]) == (2, 0, 0), one.log
        assert one.body["findings"] == {"compliant": 1, "violation": 1}
    assert {call.account for call in emulator.calls if call.action == "DescribeInstances"} == set(emulator.accounts)
    assert without.kind == "error"  # never nothing found
    assert "no instance was seen, and not everything could be read" in without.body["errorMessage"]
    assert "could not be read" in function.log_text()
    for secret in (first.secret, first.token, function.role.secret, function.role.token, "SecurityToken="):
        assert secret not in function.log_text()
