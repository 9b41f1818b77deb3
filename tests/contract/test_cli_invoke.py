"""`costguard invoke`: the deployed function, called as each host would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.cli_sandbox import Cli

from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(sandbox, tmp_path, capfd)


def event(cli: Cli, host: str, hour: int, function: str = "idle_gpu") -> str:
    """The host's sample event, for another hour: one event is one run."""
    text = (ROOT / "events" / host / f"{function}.json").read_text(encoding="utf-8")
    path = cli.folder / f"{host}.json"
    path.write_text(text.replace("T09:", f"T{hour:02}:"), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("host", "hour"), [("lambda", 9), ("fc", 10), ("scf", 11)])
def test_one_function_serves_every_host(cli: Cli, host: str, hour: int) -> None:
    """Told by the event or said aloud: the same run, and log lines never mix with the answer."""
    path = event(cli, host, hour)

    told = cli("invoke", "idle_gpu", "--event", path, "--json", ledger=False)
    again = cli("invoke", "idle_gpu", "--event", path, "--host", host, ledger=False)

    assert told.status == Exit.OK  # what a rail holds in every run is no failure of this one
    assert told.json["held"] == 1
    assert told.json["instances_seen"] == 29
    assert told.json["scheduled_at"] == f"2026-03-02T{hour:02}:17:00+00:00"
    assert f'"host":"{host}"' in told.err.replace(": ", ":")
    assert again.status == Exit.OK
    assert "already" in again.out


@pytest.mark.parametrize(("host", "hour"), [("lambda", 9), ("fc", 10), ("scf", 11)])
def test_budgets_are_told_on_every_host_by_their_share(cli: Cli, host: str, hour: int) -> None:
    """Budgets are counted and named, not machines that no budget asks for."""
    path = event(cli, host, hour, "budget")

    told = cli("invoke", "budget", "--event", path, "--json", ledger=False)
    again = cli("invoke", "budget", "--event", path, "--host", host, ledger=False)

    assert told.status == Exit.OK
    assert told.json["guard"] == "budget"
    assert sum(told.json["findings"].values()) == len(told.json["budgets"]) > 0
    assert {one["spent"]["currency"] for one in told.json["budgets"].values()} <= {"USD", "CNY"}
    assert again.status == Exit.OK
    assert "already" in again.out


def test_people_read_how_far_each_budget_is_spent(cli: Cli) -> None:
    told = cli("invoke", "budget", "--event", event(cli, "lambda", 12, "budget"), ledger=False)

    assert " % of " not in told.out
    assert re.search(r"^  research: \d+(\.\d)? %, .* of .* in 2026-03, ", told.out, re.MULTILINE)
    assert re.search(r"^  within bounds +\d+$", told.out, re.MULTILINE)
    assert re.search(r"^  alerts told now +\d+$", told.out, re.MULTILINE)


@pytest.mark.parametrize("host", ["lambda", "fc", "scf"])
def test_a_request_is_signed_when_it_is_called_and_answered_as_on_its_host(cli: Cli, host: str) -> None:
    """Slack's command from the sample file: its signature could not have stood there."""
    path = str(ROOT / "events" / host / "slack_actions.json")

    told = cli("invoke", "slack_actions", "--event", path, ledger=False)
    as_json = cli("invoke", "slack_actions", "--event", path, "--json", ledger=False)

    assert (told.status, told.out.splitlines()[0]) == (Exit.OK, "HTTP 200")
    assert as_json.json["statusCode"] == 200
    assert ("isBase64Encoded" in as_json.json) is (host != "scf")
    assert "received before" in json.loads(as_json.json["body"])["text"]  # the sandbox's clock stands: the same proof


def test_a_request_that_is_refused_has_a_status_of_its_own(cli: Cli) -> None:
    event = json.loads((ROOT / "events/lambda/slack_actions.json").read_bytes())
    path = cli.folder / "other.json"
    path.write_text(json.dumps({**event, "rawPath": "/admin"}), encoding="utf-8")

    told = cli("invoke", "slack_actions", "--event", str(path), ledger=False)

    assert (told.status, told.out) == (Exit.HELD, "HTTP 404\nnot found\n")


def test_another_hosts_event_is_refused(cli: Cli) -> None:
    told = cli("invoke", "idle_gpu", "--event", event(cli, "fc", 9), "--host", "lambda", ledger=False)

    assert told.status == Exit.BAD_INPUT
    assert told.out == ""
    assert "host lambda expects an EventBridge event" in told.err


@pytest.mark.parametrize("function", ["nope", "../idle_gpu", ""])
def test_an_unknown_function_is_bad_input(cli: Cli, function: str) -> None:
    told = cli("invoke", function, "--event", event(cli, "scf", 9), ledger=False)

    assert told.status == Exit.BAD_INPUT
    assert "there is budget, " in told.err


def test_an_event_that_is_not_there_is_bad_input(cli: Cli) -> None:
    told = cli("invoke", "idle_gpu", "--event", "nowhere.json", ledger=False)

    assert told.status == Exit.BAD_INPUT
    assert told.err == "costguard: nowhere.json: cannot be read: No such file or directory\n"


def test_the_nearest_handler_is_the_one_called(tmp_path: Path) -> None:
    """In a process of its own, with the environment's settings: the file of this folder, not the package's."""
    folder = tmp_path / "functions" / "greet"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text(
        "def handler(event, context):\n"
        "    print('a log line')\n"
        "    return {'run_id': context['request_id'], 'scheduled_at': event['Time'], 'due': 0}\n",
        encoding="utf-8",
    )
    (tmp_path / "below").mkdir()
    command = [sys.executable, "-m", "costguard.cli.main", "invoke", "greet", "--event", "-", "--json"]
    sent = json.dumps({"Type": "Timer", "TriggerName": "t", "Time": "2026-03-02T09:17:00+00:00", "Message": ""})

    done = subprocess.run(  # noqa: S603 - fixed text, our interpreter
        command,
        cwd=tmp_path / "below",
        env={"PATH": os.environ["PATH"]},
        input=sent,
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout)["run_id"] == "by-hand"
    assert done.stderr == "a log line\n"


def test_a_file_without_a_handler_says_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "functions" / "empty"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text("# nothing\n", encoding="utf-8")
    command = [sys.executable, "-m", "costguard.cli.main", "invoke", "empty", "--event", "-"]

    done = subprocess.run(command, cwd=tmp_path, input="{}", capture_output=True, text=True, check=False)  # noqa: S603

    assert done.returncode == Exit.BAD_INPUT
    assert "assigns no `handler`; expected `handler = build_handler('empty')`" in done.stderr
