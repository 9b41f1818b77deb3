"""COSTGUARD_SANDBOX: a sandbox's clouds, ledger and time, from this machine alone, and never in a real run."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.cli_sandbox import logging_as_before

from cloudstand.clock import MovedClock
from cloudstand.wire.control import Control
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer
from costguard.bootstrap import open_run_context, own_clock, settings_and_clock
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.faas.handler import build_handler
from costguard.settings import Access, AccessKey, Secret, Settings, load_settings

THEN = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
REAL = {
    "AWS_ENDPOINT_URL": "https://ec2.example.com",
    "AWS_PROFILE": "production",
    "COSTGUARD_ALIBABA_ENDPOINT": "https://ecs.example.com",
    "ALIBABA_CLOUD_ACCESS_KEY_ID": "real-id",
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "real-secret",
    "TENCENTCLOUD_SECRETID": "real-id",
    "TENCENTCLOUD_SECRETKEY": "real-secret",
    "COSTGUARD_LEDGER": "postgresql://costguard:real-secret@ledger.example.com/costguard",
    "COSTGUARD_SLACK_TOKEN": "secret:aws:real-slack?region=eu-west-1",
    "COSTGUARD_SMTP_URL": "smtps://mail.example.com:465",
    "COSTGUARD_MAIL_FROM": "costguard@example.com",
    "COSTGUARD_WEBHOOK_SECRET": "real-secret-of-webhooks",
    "COSTGUARD_ROBOTS": '{"feishu:research": {"hook": "https://open.feishu.cn/real", "secret": "real-secret"}}',
    "COSTGUARD_AWS_ROLE": "costguard-real",
    "COSTGUARD_REPORTS": "s3://real-bucket/digests",
}


def described(url: str) -> dict[str, Any]:
    """What a sandbox at `url` says of itself."""
    cloud = {"url": url, "access_key_id": "made-up-id", "access_key_secret": "made-up-secret"}
    return {
        "schema": 1,
        "sandbox": "costguard",
        "url": url,
        "now": THEN.isoformat(),
        "ledger": "sqlite:////tmp/costguard-sandbox-a1/ledger.db",
        "clouds": {"aws": cloud, "alibaba": cloud, "tencent": cloud},
        "slack": {"url": f"{url}/api/", "token": "made-up-token", "signing_secret": "made-up-signing"},
    }


@contextmanager
def sandbox(change: Callable[[dict[str, Any]], None] = lambda _: None) -> Iterator[WireServer]:
    """One that says of itself what `change` makes of the truth."""
    with WireServer(lambda _: Answer(200, b"a cloud's own answer")) as server:
        said = described(server.url)
        change(said)
        server.control = Control(MovedClock(THEN), None, [], {"settings": lambda: said})
        yield server


def followed(url: str, **environment: str) -> Settings:
    return load_settings({"COSTGUARD_SANDBOX": url, **environment})


def test_clouds_keys_slack_ledger_and_time_are_the_sandboxs() -> None:
    with sandbox() as server:
        settings, clock = settings_and_clock(followed(server.url, **REAL))

    key = AccessKey("made-up-id", Secret("made-up-secret"))
    cloud = Access(endpoint_url=server.url, key=key)
    assert (settings.aws, settings.alibaba, settings.tencent) == (cloud, cloud, cloud)
    assert settings.ledger.reveal() == "sqlite:////tmp/costguard-sandbox-a1/ledger.db"
    assert (settings.slack_url, settings.slack_token.reveal()) == (f"{server.url}/api/", "made-up-token")
    assert THEN <= clock.now() < THEN + 60 * SECOND


def test_its_time_runs_on() -> None:
    with sandbox() as server:
        _, clock = settings_and_clock(followed(server.url))
    first = clock.now()
    assert first <= clock.now()
    assert clock.now().utcoffset() == timedelta(0)


def test_nothing_of_a_real_account_is_left_before_the_sandbox_was_even_asked() -> None:
    settings = followed("http://127.0.0.1:8900", **REAL)
    assert "real" not in repr(settings)
    assert not [secret for secret in settings.secrets() if "real" in secret]
    assert settings.slack_token.reference is None
    assert {settings.access(cloud).endpoint_url for cloud in ("aws", "alibaba", "tencent")} == {"http://127.0.0.1:8900"}
    assert all(settings.access(cloud).key is not None for cloud in ("aws", "alibaba", "tencent"))
    assert settings.ledger == Secret("memory:")


def test_policy_language_and_kill_switch_are_still_the_environments() -> None:
    said = {"COSTGUARD_POLICY": "policies", "COSTGUARD_LANG": "zh", "COSTGUARD_PAUSED": "1"}
    settings = followed("http://127.0.0.1:8900", **said)
    assert (settings.policy, settings.language, settings.paused) == ("policies", "zh", True)


@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.5:8900",
        "http://localhost:8900",  # a name: whoever resolves it decides
        "http://127.0.0.2:8900",
        "https://127.0.0.1:8900",
        "http://127.0.0.1",
        "http://127.0.0.1:8900/proxy",
        "http://127.0.0.1:8900@time.example.com",
        "http://127.0.0.1.example.com:8900",
        "http://[::1]:8900",
        "sandbox",
    ],
)
def test_time_is_taken_from_this_machine_alone(address: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"COSTGUARD_SANDBOX is no sandbox of this machine, expected http://127"
    ):
        followed(address)


@pytest.mark.parametrize("mark", ["AWS_LAMBDA_FUNCTION_NAME", "FC_FUNCTION_NAME", "TENCENTCLOUD_RUNENV"])
def test_a_function_never_follows_one(mark: str) -> None:
    with pytest.raises(InvalidInputError, match=r"COSTGUARD_SANDBOX is set, and host \w+ guards real accounts; unset"):
        followed("http://127.0.0.1:8900", **{mark: "costguard"})


def _put(*path: str, to: object) -> Callable[[dict[str, Any]], None]:
    def change(said: dict[str, Any]) -> None:
        *way, last = path
        for part in way:
            said = said[part]
        said[last] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _put("sandbox", to="another"),
        lambda said: said.pop("sandbox"),
        _put("clouds", "aws", "url", to="https://ec2.us-east-1.amazonaws.com"),
        _put("clouds", "alibaba", "url", to="http://127.0.0.1.example.com:80"),
        _put("clouds", "tencent", "url", to="http://10.0.0.5:8902"),
        _put("clouds", "aws", "access_key_id", to=""),  # without one the SDK would look for a real one
        _put("slack", "url", to="https://slack.com/api/"),
        _put("ledger", to="postgresql://ledger.example.com/costguard"),
        _put("ledger", to="sqlite:////home/somebody/costguard.sqlite3"),
        _put("ledger", to="sqlite:////tmp/costguard-sandbox-a1/../costguard.sqlite3"),
        _put("ledger", to="sqlite:////tmp/costguard-sandbox-a1/..%2F..%2Fhome%2Fledger.db"),
        _put("ledger", to="sqlite:////home/ledger.db?costguard-sandbox-a1/ledger.db"),
        _put("ledger", to="sqlite:///costguard-sandbox-a1/ledger.db"),
        _put("now", to="2026-03-02T09:00:00"),
        _put("now", to=1772442000),
    ],
)
def test_what_leads_anywhere_else_is_no_sandbox(change: Callable[[dict[str, Any]], None]) -> None:
    with sandbox(change) as server, pytest.raises(InvalidInputError, match="what answers there is no sandbox"):
        settings_and_clock(followed(server.url))


def test_another_server_is_no_sandbox_and_is_not_followed_elsewhere() -> None:
    def moved(_: Request) -> Answer:
        return Answer(302, json.dumps(described("http://127.0.0.1:1")).encode(), headers={"Location": elsewhere.url})

    with sandbox() as elsewhere, WireServer(moved) as server:
        with pytest.raises(InvalidInputError, match="what answers there is no sandbox"):
            settings_and_clock(followed(server.url))
        assert elsewhere.requests == 0


def test_a_sandbox_that_is_gone_ends_a_command_and_no_other_time_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(UnavailableError, match="no sandbox answers"):
        settings_and_clock(followed(closed))
    assert run(["budgets"], program=Program(settings=lambda: followed(closed))) == Exit.UNAVAILABLE
    assert "start it with `costguard sandbox up`, or unset COSTGUARD_SANDBOX" in capfd.readouterr().err


def test_a_real_run_asks_nobody_for_the_time_even_where_a_sandbox_stands_in_for_a_cloud() -> None:
    with sandbox() as server:
        settings = load_settings({"AWS_ENDPOINT_URL": server.url, "COSTGUARD_ALIBABA_ENDPOINT": server.url})
        found, clock = settings_and_clock(settings)
        before = datetime.now(timezone.utc)
        assert before <= clock.now() <= datetime.now(timezone.utc)
        assert found is settings
        assert server.requests == 0


def test_nothing_runs_on_the_walls_time_in_a_sandbox() -> None:
    """Whoever was not handed the sandbox's clock does not fall back to the wall's."""
    settings = followed("http://127.0.0.1:8900")
    with pytest.raises(InvalidInputError, match="COSTGUARD_SANDBOX is followed by the `costguard` program alone"):
        own_clock(settings)
    with pytest.raises(InvalidInputError, match="followed by"), open_run_context(settings, "idle_gpu"):
        raise AssertionError("nothing is opened")


def test_a_handler_that_is_called_without_the_program_refuses() -> None:
    handler = build_handler("idle_gpu", settings=lambda: followed("http://127.0.0.1:8900"))
    with logging_as_before(), pytest.raises(InvalidInputError, match="followed by"):
        handler({}, None)


@pytest.mark.parametrize("ledger", ["postgresql://ledger.example.com/costguard", "sqlite:///costguard.sqlite3"])
def test_a_real_ledger_is_never_opened_at_a_made_up_time(ledger: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Else a run would hand what waits in its outbox to made-up people, and count the grace from that."""
    with sandbox() as server:
        program = Program(settings=lambda: followed(server.url))
        assert run(["cases", "--ledger", ledger], program=program) == Exit.BAD_INPUT
    assert "a sandbox keeps its own ledger; leave --ledger out" in capfd.readouterr().err


def test_every_command_says_that_nothing_is_real(capfd: pytest.CaptureFixture[str]) -> None:
    with sandbox() as server:
        assert run(["sandbox", "clock"], program=Program(settings=lambda: followed(server.url))) == Exit.OK
        out, err = capfd.readouterr()
    assert err == f"In the sandbox at {server.url} it is 2026-03-02 09:00 UTC: nothing here is real.\n"
    assert out == "In the sandbox it is 2026-03-02 09:00 UTC.\n"


@pytest.mark.parametrize("command", ["clock", "messages"])
def test_without_a_sandbox_there_is_no_clock_to_move(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", command], program=Program(settings=Settings)) == Exit.BAD_INPUT
    assert "COSTGUARD_SANDBOX names no sandbox" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("step", "said"), [("-1h", "is negative"), ("soon", "--advance: "), ("99999d", "longer than ten years")]
)
def test_time_goes_forward_only_and_not_for_ever(step: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    with sandbox() as server:
        arguments = ["sandbox", "clock", f"--advance={step}"]
        assert run(arguments, program=Program(settings=lambda: followed(server.url))) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err
