"""`costguard doctor` on a small sandbox: safe, not safe, could not tell; and that nothing was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.contract.cli_sandbox import Answered, Cli

from cloudstand.aws.core.server import Refused
from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.kinds import InstanceState
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.cli.sandbox.running import Sandbox
from costguard.ports import Clock
from costguard.settings import Secret, Settings

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/doctor.schema.json").read_text(encoding="utf-8"))
DAY = timedelta(days=1)
POLICY = """\
version: 1
mode: enforce
calendar: none
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: all, then: [warn, {stop: {wait: 24h}}]}]
notify: {default: 'slack:#gpu-costs'}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    began = STARTS_AT - 20 * DAY
    fleet = (
        aws_machine("notebook", "g5g.xlarge", does.idle(), began),
        aws_machine(
            "stopped",
            "g5g.xlarge",
            does.idle(),
            began,
            state=InstanceState.STOPPED,
            stopped_since=STARTS_AT - DAY,
        ),
    )
    with Sandbox.start(fleet) as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


def asked(cli: Cli, *options: str) -> Answered:
    return cli("doctor", "--json", "--policy", str(cli.folder / "costguard.yaml"), *options)


def codes(answered: Answered) -> dict[str, str]:
    jsonschema.validate(answered.json, SCHEMA)
    return {check["check"]: check["code"] for check in answered.json["checks"]}


def check(answered: Answered, question: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in answered.json["checks"] if one["check"] == question)
    return found


def test_a_deployment_in_order_is_safe_and_nothing_was_changed(cli: Cli) -> None:
    happened, posted = len(cli.sandbox.world.history), len(cli.sandbox.slack.posted)
    cli.sandbox.gateway.calls.clear()

    told = asked(cli)

    assert told.status == Exit.OK
    assert told.json["safe_to_enforce"] is True
    assert codes(told) == {
        "caller": "caller_known",
        "clock": "clock_right",
        "regions": "regions_answer",
        "permissions": "permissions_granted",
        "measured": "measured_all",
        "reclaim": "reclaim_known",
        "other_deployment": "other_not_seen",
        "policy": "policy_enforces",
        "channel": "channel_proves",
        "ledger": "ledger_new",
        "kill_switch": "switch_open",
    }
    assert told.json["proof"]["dry_runs"] == 5
    assert told.json["proof"]["calls"] == len(cli.sandbox.gateway.calls)
    assert (len(cli.sandbox.world.history), len(cli.sandbox.slack.posted)) == (happened, posted)
    assert [path.name for path in cli.folder.iterdir()] == ["costguard.yaml"]


def test_a_missing_permission_is_status_15_and_named(cli: Cli) -> None:
    with refusing(cli, "StopInstances"):
        told = asked(cli)

    assert told.status == Exit.UNSAFE
    assert codes(told)["permissions"] == "permissions_missing"
    (missing,) = check(told, "permissions")["details"]
    assert missing["where"] == "aws:111122223333:us-east-1 ec2:StopInstances"
    assert missing["fix"] == "grant ec2:StopInstances to these credentials"


def test_a_region_that_does_not_answer_is_status_11(cli: Cli) -> None:
    with refusing(cli, "DescribeInstances", code="InternalFailure"):
        told = asked(cli)

    assert told.status == Exit.GAPS
    assert told.json["verdict"] == "could_not_tell"
    assert codes(told)["regions"] == "regions_unread"


def test_an_invalid_policy_a_forgetful_ledger_and_no_channel_all_bar(
    cli: Cli, capfd: pytest.CaptureFixture[str]
) -> None:
    """No cloud is asked where nothing names one."""
    (cli.folder / "costguard.yaml").write_text("version: 2\n", encoding="utf-8")
    settings = Settings(policy=str(cli.folder), ledger=Secret("memory:"), paused=True)
    clock: Clock = cli.sandbox.clock

    status = run(["doctor", "--lang", "zh"], program=Program(settings=lambda: settings, clock=clock))

    out = capfd.readouterr().out
    assert status == Exit.UNSAFE
    assert "策略无效" in out
    assert "账本（memory）会随进程消失" in out
    assert "由 COSTGUARD_PAUSED 设置" in out
    assert out.splitlines()[-1] == "请勿执行（enforce）：3 项检查中有 2 项不允许。"


def test_a_ledger_that_cannot_be_read_is_told_with_everything_else(cli: Cli) -> None:
    (cli.folder / "ledger.db").write_bytes(b"this is no database" * 100)

    told = asked(cli)

    assert told.status == Exit.UNSAFE
    assert {name: code for name, code in codes(told).items() if name in {"ledger", "kill_switch", "measured"}} == {
        "ledger": "ledger_unusable",
        "kill_switch": "switch_unreadable",
        "measured": "measured_all",
    }


def test_people_read_each_check_with_its_verdict_and_the_one_that_decides_last(cli: Cli) -> None:
    with refusing(cli, "StopInstances"):
        told = cli("doctor", "--policy", str(cli.folder / "costguard.yaml"))

    lines = told.out.splitlines()
    assert told.status == Exit.UNSAFE
    assert any(line.startswith("DO NOT ENFORCE  aws:111122223333: Permissions are missing") for line in lines)
    assert any("grant ec2:StopInstances" in line for line in lines)
    assert lines[-2].endswith("0 that can change anything.")
    assert lines[-1].startswith("Do not enforce: ")


def test_a_snapshot_of_another_deployment_is_status_15(cli: Cli) -> None:
    """The last of this module: the snapshot stays."""
    world = cli.sandbox.world
    (volume,) = world.volumes_of(cli.id_of("stopped"))
    world.create_snapshot(volume.native_id, "a stranger", tags={"costguard:decision-id": "decision-of-others"})

    told = asked(cli)

    assert told.status == Exit.UNSAFE
    assert codes(told)["other_deployment"] == "other_seen"
    assert check(told, "other_deployment")["details"][0]["words"] == "decision-of-others"


class refusing:  # noqa: N801 - reads as a word of the sentence
    """EC2 refuses one operation while the context lasts."""

    def __init__(self, cli: Cli, action: str, code: str = "UnauthorizedOperation") -> None:
        self._cli = cli
        self._refused = Refused("ec2", action, code, "You are not authorized.")

    def __enter__(self) -> None:
        self._cli.sandbox.gateway.refused.append(self._refused)

    def __exit__(self, *_: object) -> None:
        self._cli.sandbox.gateway.refused.clear()
