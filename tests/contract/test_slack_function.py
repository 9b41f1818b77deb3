"""The shipped `slack_actions` on three hosts: the file that is deployed, clicks signed as Slack does, one ledger."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledger_servers import dynamodb_server, dynamodb_test_client
from tests.host_runtimes import SmallFunctionCompute, SmallScf
from tests.runtime_api import SmallLambda
from tests.slack_rig import HOUR, KEEP_24H, OWNER, POLICY, Office, Rig, Watch, stopping_case

from cloudstand.slack.stand_in import SlackRequest
from costguard.engine.ledger.memory import Memory
from costguard.providers.aws.core.store import DynamoDbLedger

ROOT = Path(__file__).parents[2]
AWS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}


class RunningWatch(Watch):
    """The time of the processes under test."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)


class Shared(Rig):
    """As the rig of the unit tests, over a ledger that several processes reach."""

    def __init__(self, folder: Path, office: Office, memory: Memory) -> None:
        super().__init__(folder, office)
        self.memory.store.close()
        self.memory = memory


@pytest.fixture(scope="module")
def ledger() -> Iterator[tuple[str, DynamoDbLedger]]:
    """One table."""
    with dynamodb_server() as (_, url):
        client = dynamodb_test_client(url)
        table = DynamoDbLedger(client, "answers")
        table.create_table()
        yield f"dynamodb://answers?region=us-east-1&endpoint_url={url}", table


@pytest.fixture
def office() -> Iterator[Office]:
    shared = Office(RunningWatch())
    yield shared
    shared.slack.close()


Deliver = Callable[[SlackRequest], dict[str, Any]]


@contextmanager
def running(host: str, folder: Path, environ: dict[str, str]) -> Iterator[tuple[Deliver, Callable[[], str]]]:
    """The function on one host: what it answers to a request, and its log."""
    shutil.copy(ROOT / "functions/slack_actions/handler.py", folder)
    with ExitStack() as opened:
        log = folder / "log"
        if host == "lambda":
            function: Any = opened.enter_context(SmallLambda(folder, "handler.handler", log, environ))
        elif host == "fc":
            function = opened.enter_context(SmallFunctionCompute(folder, log, environ=environ))
        else:
            function = opened.enter_context(SmallScf(folder, log, environ=environ))

        def deliver(request: SlackRequest) -> dict[str, Any]:
            told = function.invoke(event_of(host, request), seconds=60)
            assert told.kind == "response", function.log_text()
            answer: dict[str, Any] = told.body
            return answer

        yield deliver, function.log_text


def event_of(host: str, request: SlackRequest) -> dict[str, Any]:
    """The request in the host's own form: names of headers in small letters, or as they came."""
    sample: dict[str, Any] = json.loads((ROOT / f"events/{host}/slack_actions.json").read_bytes())
    small = {name.lower(): value for name, value in request.headers.items()}
    if host == "fc":
        return {**sample, "headers": dict(request.headers), "body": base64.b64encode(request.body).decode()}
    return {**sample, "headers": small, "body": request.body.decode()}


def test_a_click_is_taken_once_by_the_shipped_function(
    tmp_path: Path, ledger: tuple[str, DynamoDbLedger], office: Office
) -> None:
    """On Lambda, with a ledger that instances share; what follows a request's reading is the same on each host."""
    url, table = ledger
    rig = Shared(tmp_path, office, Memory.over(table))
    machine = stopping_case().subject
    ts = rig.told(stopping_case())
    environ = {
        **AWS,
        "COSTGUARD_LEDGER": url,
        "COSTGUARD_POLICY": str(tmp_path / "costguard.yaml"),
        "COSTGUARD_SLACK_TOKEN": rig.slack.token,
        "COSTGUARD_SLACK_URL": rig.slack.base_url,
        "COSTGUARD_SLACK_SIGNING_SECRET": rig.slack.signing_secret,
    }
    click = rig.slack.press(ts, KEEP_24H, OWNER)
    forged = click._replace(body=click.body + b"&x=1")

    with running("lambda", tmp_path, environ) as (deliver, log):
        refused, taken, again = deliver(forged), deliver(click), deliver(click)
        log_text = log()

    assert (refused["statusCode"], taken["statusCode"], again["statusCode"]) == (401, 200, 200)
    assert (taken["body"], "received before" in again["body"]) == ("", True)
    kept = rig.memory.snoozes.active(office.clock.now())[str(machine)]
    assert kept.until - kept.at == 24 * HOUR
    assert kept.by == "u0owner01 (slack:T0SANDBOX/U0OWNER01)"
    assert [whisper.text.partition(" until")[0] for whisper in rig.slack.whispers] == ["notebook is kept"]
    for secret in (rig.slack.signing_secret, rig.slack.token, "response_url", "sandbox-verification-token"):
        assert secret not in log_text


@pytest.mark.parametrize("host", ["fc", "scf"])
def test_a_request_is_proven_by_its_bytes_on_the_other_hosts(host: str, tmp_path: Path, office: Office) -> None:
    """FC brings bytes of JSON with a body in base64, SCF an object with text; nothing here outlives the instance."""
    slack = office.slack
    (tmp_path / "costguard.yaml").write_text(POLICY, "utf-8")
    environ = {"COSTGUARD_POLICY": "costguard.yaml", "COSTGUARD_SLACK_SIGNING_SECRET": slack.signing_secret}
    asked = slack.signed({"ssl_check": "1", "note": "实例 +&="})
    command = slack.slash("/costguard", "status", OWNER)

    with running(host, tmp_path, environ) as (deliver, log):
        proven, forged = deliver(asked), deliver(asked._replace(body=asked.body + b"x"))
        told = deliver(command)
        log_text = log()

    assert (proven["statusCode"], proven["body"]) == (200, "")
    assert forged["statusCode"] == 401
    assert (told["statusCode"], told["headers"]["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert "please try again" in json.loads(told["body"])["text"]
    assert "answers need a ledger that outlives the function's instance" in log_text
    assert "Traceback" not in json.dumps([proven, forged, told])
    assert slack.signing_secret not in log_text
