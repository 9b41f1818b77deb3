"""`costguard sandbox up`: a process that serves the demo's world, and the page that tries all four guards."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from tests.contract.cli_sandbox import Answered, logging_as_before
from tests.docs_zh.in_step import facts_of

from cloudstand.clouds import PORTS, STARTS_AT
from cloudstand.demo import freezes as demo_freezes
from costguard.cli.demo.story import DEMO_POLICY
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.cli.sandbox.commands import shown
from costguard.cli.sandbox.running import serve
from costguard.report.words.sentences import Language
from costguard.settings import Settings, load_settings

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
COSTGUARD = Path(sys.executable).with_name("costguard")
CLOUDS = {"aws", "alibaba", "tencent"}
_ADDRESS = "http://127.0.0.1:8900"
_HEADING = "## Try all four guards on it\n"
_TIME = re.compile(r"\b\d\d:\d\d UTC")  # a busy machine takes minutes where the page shows none


@contextmanager
def _up(folder: Path) -> Iterator[dict[str, Any]]:
    """What it says of itself, while it runs; interrupted at the end, as a shell does to a job in the background."""
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    command = [str(COSTGUARD), "sandbox", "up", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            assert process.stdout is not None
            yield json.loads(_document(process.stdout))
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == Exit.OK


def _document(lines: Iterator[str] | Any) -> str:
    """The JSON that it prints once it listens; without it, all that it said."""
    said = ""
    for line in lines:
        said += line
        if line == "}\n":
            break
    return said


def _blocks() -> list[tuple[str, str]]:
    """Commands and what the page shows of their output, in order, without the one that begins it all."""
    section = PAGE.read_text(encoding="utf-8").partition(_HEADING)[2].partition("\n## ")[0]
    blocks = re.findall(r"```(sh|text)\n(.*?)```", section, re.DOTALL)
    assert blocks[0] == ("sh", "costguard sandbox up --port 8900\n")
    return blocks[1:]


def _asked(url: str, body: object = None) -> Any:
    request = Request(url, data=None if body is None else json.dumps(body).encode())  # noqa: S310 - loopback
    with urlopen(request, timeout=10) as answer:  # noqa: S310
        return json.loads(answer.read())


class Shell:
    """A reader of the page at a terminal: what it sets, writes and runs, with every command in this process."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str]) -> None:
        self._url, self._capture = url, capture
        self.environment = {"COSTGUARD_LOG_LEVEL": "WARNING"}

    def run(self, block: str) -> str:
        """What its commands print."""
        self._capture.readouterr()
        lines = iter(block.replace(_ADDRESS, self._url).splitlines())
        for line in lines:
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                self.environment[name] = value
            elif line.startswith("cat > "):
                file = line.removeprefix("cat > ").removesuffix(" <<'END'")
                Path(file).write_text("\n".join(iter(lambda: next(lines), "END")), encoding="utf-8")
            elif line == "echo '{}' > now.json":
                Path("now.json").write_text("{}", encoding="utf-8")
            else:
                self._costguard(*shlex.split(line))
        return self._capture.readouterr().out

    def _costguard(self, program: str, *arguments: str) -> None:
        assert program == "costguard"
        with logging_as_before():
            status = run(arguments, program=Program(settings=lambda: load_settings(self.environment)))
        assert status == (Exit.DUE if arguments[0] == "plan" else Exit.OK), self._capture.readouterr().err


@pytest.mark.slow  # every command of the page over days of runs, by real HTTP
def test_the_page_is_so_over_real_http_from_the_notice_to_the_stop_and_from_the_freeze_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another process serves, and every name and figure that the page shows is printed."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    printed = ""
    with _up(tmp_path) as sandbox:
        shell = Shell(sandbox["url"], capfd)
        for kind, text in _blocks():
            if kind == "sh":
                printed = shell.run(text)
            else:
                assert facts_of(_TIME.sub("", text)) - facts_of(_TIME.sub("", printed)) == Counter(), printed
        _see(sandbox)
    assert sorted(path.name for path in folder.iterdir()) == ["freeze.yaml", "now.json", "plan.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["here"]  # no ledger was left behind


def _see(sandbox: dict[str, Any]) -> None:
    """What became of AWS, as any other program sees it."""
    aws = sandbox["clouds"]["aws"]
    keys = {"aws_access_key_id": aws["access_key_id"], "aws_secret_access_key": aws["access_key_secret"]}
    session = boto3.Session(**keys, region_name="us-east-1")
    machines: Any = session.client("ec2", endpoint_url=aws["url"])
    kms: Any = session.client("kms", endpoint_url=aws["url"])
    organisation: Any = session.client("organizations", endpoint_url=aws["url"])
    named = {"Name": "tag:Name", "Values": ["thesis-notebook"]}
    reserved = machines.describe_instances(Filters=[named])["Reservations"]
    assert [each["State"]["Name"] for one in reserved for each in one["Instances"]] == ["stopped"]
    aliases = {each["AliasName"]: each["TargetKeyId"] for each in kms.list_aliases()["Aliases"]}
    rotation = kms.get_key_rotation_status(KeyId=aliases["alias/checkpoints"])
    assert (rotation["KeyRotationEnabled"], rotation["RotationPeriodInDays"]) == (True, 90)
    groups = machines.describe_security_groups()["SecurityGroups"]
    opened = {
        (entry["FromPort"], address["CidrIp"])
        for group in groups
        if group["GroupName"] == "notebooks"
        for entry in group["IpPermissions"]
        for address in entry["IpRanges"]
    }
    assert opened == {(22, "198.51.100.0/24"), (8888, "198.51.100.0/24")}
    where = {"TargetId": "444455556666", "Filter": "SERVICE_CONTROL_POLICY"}
    attached = organisation.list_policies_for_target(**where)["Policies"]
    assert "p-nonewgpus" in {each["Id"] for each in attached}
    for client in (machines, kms, organisation):
        client.close()


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, Any]]:
    with serve() as sandbox:
        yield _asked(f"{sandbox.endpoint_url}/_sandbox/settings")


Ask = Callable[..., Answered]


@pytest.fixture
def ask(served: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> Ask:
    """A command that follows it."""

    def asked(*arguments: str, **environment: str) -> Answered:
        settings = {"COSTGUARD_SANDBOX": served["url"], "AWS_ENDPOINT_URL": "https://ec2.example.com", **environment}
        capfd.readouterr()
        with logging_as_before():
            status = run(arguments, program=Program(settings=lambda: load_settings(settings)))
        return Answered(arguments[0], status, *capfd.readouterr())

    return asked


def test_it_begins_where_the_demo_does_and_one_call_moves_the_time_of_all_its_parts(
    served: dict[str, Any], ask: Ask
) -> None:
    before = ask("sandbox", "clock", "--json").json["now"]
    assert before.startswith(f"{STARTS_AT:%Y-%m-%dT}")
    assert _asked(f"{served['url']}/_sandbox/advance", {"seconds": 3600})["now"] > before
    for cloud in served["clouds"].values():
        assert _asked(f"{cloud['url']}/_sandbox/state")["now"] > before
    assert ask("sandbox", "clock", "--json").json["now"] > before


def test_every_guards_subjects_are_on_every_cloud(ask: Ask) -> None:
    keys, networks = ask("keys", "--json").json, ask("networks", "--json").json
    assert {key["cloud"] for key in keys["keys"]} == CLOUDS
    assert {each["cloud"] for each in networks["findings"] if each["verdict"] == "violation"} == CLOUDS
    assert (keys["gaps"], networks["gaps"]) == ([], [])
    budgets = ask("budgets", "--json").json["budgets"]
    assert {bill["cloud"] for bill in budgets[0]["clouds"]} == CLOUDS
    assert ask("doctor", "--json").json["safe_to_enforce"]


@pytest.mark.parametrize(("cloud", "before"), [((), PORTS - 1), (("tencent",), 0)])
def test_a_port_that_is_taken_is_told(cloud: tuple[str, ...], before: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a whole sandbox the last one, Slack's, as well."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        first = listener.getsockname()[1] - before
        assert run(["sandbox", "up", *cloud, f"--port={first}"], program=Program(settings=Settings)) == Exit.BAD_INPUT
    assert f"costguard: port {first}: " in capfd.readouterr().err


def test_a_function_of_this_folder_runs_in_the_sandbox_and_not_by_its_own_file(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file would read this process's environment, clock and credentials."""
    folder = tmp_path / "functions" / "kms_rotation"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text("def handler(event, context):\n    raise SystemExit('called')\n")
    (tmp_path / "now.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    told = ask("invoke", "kms_rotation", "--event", "now.json", "--json")
    assert told.json["scheduled_at"].startswith(f"{STARTS_AT:%Y-%m-%dT}")
    assert told.json["keys_seen"] > 0


def test_every_launch_freeze_of_the_list_can_be_looked_at(ask: Ask, tmp_path: Path) -> None:
    """On three clouds, of an organisation and of a group: what the sandbox says that a freeze may name is there."""
    rows = re.findall(r"^\| (\w+) \| (\w+) \| `(.+)` \| `(.+)` \|$", str(demo_freezes.__doc__), re.MULTILINE)
    assert {(cloud, via) for cloud, via, _, _ in rows} == {(c, v) for c in CLOUDS for v in ("organisation", "group")}
    policy = tmp_path / "freezes.yaml"
    named = [
        {"name": f"{cloud}-{via}", "cloud": cloud, "via": via, "policy": attached, "target": target}
        for cloud, via, attached, target in rows
    ]
    step = {"freeze": {"of": [each["name"] for each in named]}}
    budget = {"name": "everything", "monthly": "900000 CNY", "at": {"100%": [step]}}
    accounts = (DEMO_POLICY / "costguard.yaml").read_text(encoding="utf-8")
    policy.write_text(f"{accounts}\nlaunch_freezes: {json.dumps(named)}\nbudgets: {json.dumps([budget])}\n")
    told = ask("doctor", "--policy", str(policy), "--json").json["checks"]
    freezes = [check for check in told if check["target"] in {each["name"] for each in named}]
    assert [check["verdict"] for check in freezes] == ["ok"] * len(rows), freezes


def test_people_are_shown_the_setting_and_every_address(
    served: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a whole sandbox there is one a process, so that what it prints is made of the one that runs."""
    lines = "\n".join(shown(served, Language.EN))
    assert f"  export COSTGUARD_SANDBOX={served['url']}\n" in lines
    assert all(f"{cloud['url']}  {cloud['access_key_id']}  " in lines for cloud in served["clouds"].values())
    assert run(["sandbox", "up"], program=Program(settings=Settings)) == Exit.BAD_INPUT
    assert "another sandbox runs in this process" in capfd.readouterr().err
