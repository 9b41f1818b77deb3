"""The functions in a process that behaves as SCF's Python runtimes do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tencentcloud.common.common_client import CommonClient
from tencentcloud.common.credential import Credential
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tests.host_runtimes import PROBE, RoleKey, SmallScf

from cloudstand.clock import RunningClock
from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World

ROOT = Path(__file__).parents[2]
SAMPLE = json.loads((ROOT / "events/scf/idle_gpu.json").read_bytes())
ROLE = RoleKey("AKID-MadeUpKeyIdOfTheRole_0123456789", "made-up-secret-of-the-role=", "made-up-token-of-the-role")
LATER = RoleKey("AKID-MadeUpKeyIdLaterOn_0123456789", "made-up-secret-later-on=", "made-up-token-later-on")
SLACK_TOKEN = "made-up-token-0123456789"

Start = Callable[..., SmallScf]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallScf]:
    """One function for the whole module: most tests meet a process that served others."""
    folder = tmp_path_factory.mktemp("scf")
    (folder / "probe.py").write_text(PROBE, "utf-8")
    environ = {"COSTGUARD_SLACK_TOKEN": SLACK_TOKEN, "COSTGUARD_POLICY": "costguard.yaml"}
    with SmallScf(folder, folder / "log", "probe.handler", environ, ROLE) as function:
        yield function


@pytest.fixture
def function(warm: SmallScf) -> SmallScf:
    warm.shall("")
    warm.role = ROLE
    return warm


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a function of its own: the probe, or the module given."""
    with ExitStack() as running:

        def begin(module: str = PROBE, **more: Any) -> SmallScf:
            (tmp_path / "probe.py").write_text(module, "utf-8")
            return running.enter_context(SmallScf(tmp_path, tmp_path / "log", "probe.handler", **more))

        yield begin


def test_a_timers_event_is_answered_with_the_summary(function: SmallScf) -> None:
    told = function.invoke(SAMPLE)

    assert told.kind == "response", told.log
    assert (told.body["host"], told.body["function"]) == ("scf", "idle_gpu")
    assert (told.body["scheduled_at"], told.body["scheduled_at_assumed"]) == ("2026-03-02T09:17:00+00:00", False)
    assert (told.body["findings"], told.body["held"]) == ({"violation": 1}, 1)
    assert told.body["foreign"] == []  # what is not in this host's bundle, or not needed to answer


@pytest.mark.parametrize(("seconds", "most"), [(900, 810), (60, 40), (3, 1.5)])
def test_the_deadline_is_the_time_limit_less_the_time_to_report(function: SmallScf, seconds: int, most: float) -> None:
    left = function.invoke(SAMPLE, seconds=seconds).body["seconds_left"]
    assert most - 30 < left <= most


def test_log_lines_are_json_and_written_once(function: SmallScf) -> None:
    """The runtime has a handler of its own on the root logger, at DEBUG."""
    told = function.invoke(SAMPLE, request_id="b883ca3a-ee61-11e9-8f0c-5254008a4f10")

    started, finished = told.log_lines()
    assert (started["message"], finished["message"]) == ("run started", "run finished")
    assert {started["request_id"], finished["request_id"]} == {"b883ca3a-ee61-11e9-8f0c-5254008a4f10"}
    assert started["run_id"] == finished["run_id"] == told.body["run_id"]
    assert started["host"] == "scf"
    assert told.log.count("run finished") == 1


def test_a_duplicate_event_is_the_same_run_in_the_same_warm_process(function: SmallScf) -> None:
    first, second = function.invoke(SAMPLE), function.invoke(SAMPLE)
    later = function.invoke({**SAMPLE, "Time": "2026-03-02T10:17:00Z"})

    assert first.body["run_id"] == second.body["run_id"] != later.body["run_id"]
    calls = [told.body["calls"] for told in (first, second, later)]
    assert calls == [calls[0], calls[0] + 1, calls[0] + 2]


def test_a_failure_is_told_with_its_type_and_the_process_lives_on(function: SmallScf) -> None:
    """Where it says so: in the stack, since the platform's own message is always the same."""
    function.shall("fail")
    told = function.invoke(SAMPLE)

    assert (told.kind, told.body["statusCode"]) == ("error", 430)
    assert told.body["errorMessage"] == "user code exception caught"
    assert told.body["stackTrace"].endswith("UnavailableError: ecs:DescribeInstances: no answer")
    assert [line["message"] for line in told.log_lines()] == ["run started", "run failed"]
    function.shall("")
    assert function.invoke(SAMPLE).kind == "response"


def test_a_failed_event_comes_again_and_is_the_same_run(function: SmallScf) -> None:
    """Timers are asynchronous: after an error SCF delivers twice more."""
    function.shall("fail once")
    failed, done = function.invoke_later(SAMPLE)
    assert (failed.kind, done.kind) == ("error", "response")
    assert failed.log_lines()[0]["run_id"] == done.body["run_id"]

    function.shall("fail")
    assert [told.kind for told in function.invoke_later(SAMPLE)] == ["error"] * 3


@pytest.mark.parametrize("event", [{"Records": []}, {**SAMPLE, "Message": '{"dry_run": true}'}, ["Timer"]])
def test_an_unknown_event_is_an_error_that_names_what_is_expected(function: SmallScf, event: object) -> None:
    told = function.invoke(event)
    assert told.kind == "error"
    assert "InvalidInputError: function event: found" in told.body["stackTrace"]
    assert "host scf expects a timer trigger's event" in told.body["stackTrace"]


def test_an_event_that_is_no_json_never_reaches_the_function(function: SmallScf) -> None:
    told = function.invoke(b"{not json")
    assert (told.kind, told.log_lines()) == ("error", [])


def test_a_summary_that_is_no_json_is_an_error(function: SmallScf) -> None:
    function.shall("no json")
    told = function.invoke(SAMPLE)
    assert told.kind == "error"
    assert "TypeError: Object of type set is not JSON serializable" in told.body["stackTrace"]


def test_secrets_stay_out_of_the_answer_and_the_log(function: SmallScf) -> None:
    """The platform writes whatever is answered to the log, and hands the role's keys over in the context too."""
    function.shall("leak")
    told = function.invoke(SAMPLE)

    assert told.kind == "error"
    assert told.body["stackTrace"].endswith("RunFailedError: UnavailableError: refused *** *** ***")
    for secret in (SLACK_TOKEN, ROLE.key_id, ROLE.secret, ROLE.token):
        assert secret not in json.dumps(told.body)
        assert secret not in function.log_text()


def test_libraries_write_warnings_only_and_no_secrets(function: SmallScf) -> None:
    """The runtime leaves the root logger at DEBUG, where SDKs write requests whole."""
    function.shall("chat")
    log = function.invoke(SAMPLE).log

    assert "sent at level 30 with *** *** ***" in log
    assert "at level 20" not in log
    assert "at level 10" not in log
    assert log.count("unknown to us: ") == 3
    assert not [word for word in ("made-up", "made_up", "madeup") if word in log]


def test_a_warm_process_uses_the_newest_keys_of_its_role(function: SmallScf) -> None:
    """The runtime writes what each call brings into the environment, and the settings are read with each call."""
    assert function.invoke(SAMPLE).body["tencent"] == ROLE.digest()
    function.role = LATER
    assert function.invoke(SAMPLE).body["tencent"] == LATER.digest()


def test_a_function_without_a_role_has_no_keys(start: Start) -> None:
    assert "tencent" not in start().invoke(SAMPLE).body


def test_wrong_settings_are_an_error_of_the_call_not_a_crash(start: Start) -> None:
    told = start(environ={"COSTGUARD_PAUSE": "1"}).invoke(SAMPLE)
    assert told.kind == "error"
    assert "did you mean COSTGUARD_PAUSED?" in told.body["stackTrace"]


def test_a_ledger_that_the_instance_would_lose_is_refused(start: Start) -> None:
    told = start(environ={"COSTGUARD_LEDGER": "sqlite:////tmp/costguard.sqlite3"}).invoke(SAMPLE)
    assert "which host scf loses with the function's instance" in told.body["stackTrace"]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("raise RuntimeError('while importing')\n", "while importing"),
        ("def handler(:\n", "invalid syntax"),
        ("", "has no attribute 'handler'"),
    ],
)
def test_a_function_that_cannot_be_loaded_fails_every_call(start: Start, module: str, words: str) -> None:
    function = start(module)
    for _ in range(2):
        told = function.invoke(SAMPLE)
        assert told.kind == "error"
        assert words in told.body["stackTrace"]


def test_a_process_that_exits_is_an_error_and_the_next_event_starts_another(start: Start) -> None:
    function = start()
    function.shall("exit")
    ended = function.invoke(SAMPLE)
    assert (ended.kind, ended.body["statusCode"]) == ("exited", 439)
    function.shall("")
    assert function.invoke(SAMPLE).body["calls"] == 1


def test_a_run_that_is_ended_in_the_middle_is_the_same_run_when_retried(start: Start) -> None:
    function = start(role=ROLE)
    function.shall("hang")
    assert function.invoke(SAMPLE, seconds=60).kind == "hangs"
    ended = function.time_is_up()
    assert (ended.body["statusCode"], ended.body["errorMessage"]) == (433, "Invoking task timed out after 60 seconds")

    function.shall("")
    told = function.invoke(SAMPLE)

    assert told.body["calls"] == 1
    assert {line["run_id"] for line in (*ended.log_lines(), *told.log_lines())} == {told.body["run_id"]}


@pytest.mark.parametrize("name", ["idle_gpu", "budget"])
def test_the_shipped_function_is_loaded_and_refuses_an_unknown_event(tmp_path: Path, name: str) -> None:
    shutil.copy(ROOT / f"functions/{name}/handler.py", tmp_path)
    with SmallScf(tmp_path, tmp_path / "log") as function:
        told = function.invoke({"Records": []})
    assert told.kind == "error"
    assert "InvalidInputError" in told.body["stackTrace"]


GUARDED = """
version: 1
mode: observe
accounts:
  - {cloud: tencent, id: "100012345678", regions: [ap-guangzhou], organisation: true,
     role: costguard, external_id: made-up-external-id}
idle_gpu:
  - name: all
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn]
"""
MEMBER = "200012345678"


@pytest.fixture
def tencent() -> Iterator[tuple[TencentEmulator, RunningClock]]:
    """Two accounts with a machine each, in real time."""
    clock = RunningClock()
    since = clock.now() - timedelta(days=30)
    fleet = [
        tencent_machine("notebook", does.idle(), since),
        tencent_machine("training", does.busy(), since, account=MEMBER),
    ]
    with TencentEmulator(WorldDoor(World(fleet, clock.now()), clock), external_id="made-up-external-id") as emulator:
        yield emulator, clock


def role_of(emulator: TencentEmulator) -> RoleKey:
    """What SCF does for a function with an execution role: temporary keys in the function's account."""
    http = HttpProfile(protocol="http", endpoint=urlsplit(emulator.url).netloc)
    keys = Credential(emulator.keys.key_id, emulator.keys.secret)
    client = CommonClient("sts", "2018-08-13", keys, "ap-guangzhou", ClientProfile(httpProfile=http))
    asked = {
        "RoleArn": f"qcs::cam::uin/{TENCENT_ACCOUNT}:roleName/costguard",
        "RoleSessionName": "scf",
        "ExternalId": "made-up-external-id",
    }
    found = client.call_json("AssumeRole", asked)["Response"]["Credentials"]
    return RoleKey(found["TmpSecretId"], found["TmpSecretKey"], found["Token"])


def test_the_shipped_function_guards_tencent_cloud_with_the_keys_of_its_role(
    tmp_path: Path, tencent: tuple[TencentEmulator, RunningClock]
) -> None:
    """Nothing is passed in: the file that is deployed, its policy beside it, and a cloud behind one address."""
    emulator, clock = tencent
    shutil.copy(ROOT / "functions/idle_gpu/handler.py", tmp_path)
    (tmp_path / "costguard.yaml").write_text(GUARDED, "utf-8")
    environ = {"COSTGUARD_POLICY": "costguard.yaml", "COSTGUARD_TENCENT_ENDPOINT": emulator.url}
    first = role_of(emulator)

    with SmallScf(tmp_path, tmp_path / "log", environ=environ, role=first) as function:
        told = function.invoke(SAMPLE)
        clock.advance(timedelta(hours=13))  # the keys of the first call have ended
        function.role = role_of(emulator)
        warm = function.invoke({**SAMPLE, "Time": "2026-03-02T10:17:00Z"})

    for one in (told, warm):
        assert one.kind == "response", one.log
        assert (one.body["instances_seen"], one.body["gaps"], one.body["done"]) == (2, 0, 0), one.log
        assert one.body["findings"] == {"compliant": 1, "violation": 1}
    asked = {call.account for call in emulator.calls if call.action == "DescribeInstances"}
    assert asked == {TENCENT_ACCOUNT, MEMBER}
    for secret in (first.secret, first.token, function.role.secret, function.role.token, "X-TC-"):
        assert secret not in function.log_text()
