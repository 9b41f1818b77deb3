"""A region that a service control policy denies as a whole: nothing is read, to be granted, done or ended there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.cli_sandbox import Cli

from cloudstand.aws.core.server import Refused
from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import EAST, RESEARCH, WEST, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.kinds import InstanceState
from costguard.bootstrap import open_memory, run_function
from costguard.cases.case import Case, CaseStatus
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.providers.aws.network.source import LISTINGS
from costguard.settings import Secret, Settings

DAY = timedelta(days=1)
# EC2 and KMS, of an assumed role, as they word it (IAM guide, "Troubleshoot access denied error messages")
DENIED = (
    "You are not authorized to perform this operation. "
    f"User: arn:aws:sts::{RESEARCH}:assumed-role/costguard-of-a-long-name-that-fills-the-message-by-itself/costguard "
    "is not authorized to perform: {} with an explicit deny in a service control policy: "
    "arn:aws:organizations::999988887777:policy/o-a1b2c3d4e5/service_control_policy/p-a1b2c3d4"
)
EC2 = ("DescribeInstances", "DescribeVolumes", "DescribeAddresses", *sorted({one.operation for one in LISTINGS}))
POLICY = """\
version: 1
mode: enforce
calendar: none
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1, eu-west-1]}]
idle_gpu: [{name: all, then: [warn, {stop: {wait: 24h}}]}]
kms_rotation: [{name: yearly, rotate_every: 365d}]
network_audit: [{name: gpu-hosts, forbid: [public_ip]}]
notify: {default: 'slack:#gpu-costs', answers: {slack_team: T0SANDBOX, approvers: [U0PLATFM1, U0FINOPS1]}}
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    began = STARTS_AT - 20 * DAY
    fleet = (
        aws_machine("notebook", "g5g.xlarge", does.idle(), began),
        aws_machine("west", "g5g.xlarge", does.idle(), began, region=WEST),
    )
    with Sandbox.start(fleet) as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


@contextmanager
def denying(sandbox: Sandbox, *actions: str, region: str = WEST, message: str = DENIED) -> Iterator[None]:
    """The organisation denies these there while the context lasts."""
    kms = [Refused("kms", "ListKeys", "AccessDeniedException", message.format("kms:ListKeys"), region=region)]
    ec2 = [Refused("ec2", one, "UnauthorizedOperation", message.format(f"ec2:{one}"), region=region) for one in actions]
    sandbox.gateway.refused.extend([*ec2, *(kms if len(actions) == len(EC2) else [])])
    try:
        yield
    finally:
        sandbox.gateway.refused.clear()


def looked(cli: Cli, *command: str) -> tuple[int, Any]:
    told = cli(*command, "--json", "--policy", str(cli.folder / "costguard.yaml"), ledger=command != ("keys",))
    assert told.out, told.err
    return told.status, told.json


def test_a_closed_region_is_no_gap(cli: Cli) -> None:
    with denying(cli.sandbox, *EC2):
        for command in (("plan", "--guard", "idle_gpu"), ("networks",), ("keys",)):
            status, told = looked(cli, *command)
            assert told["gaps"] == [], command
            assert status != Exit.GAPS


def test_one_denied_operation_closes_no_region(cli: Cli) -> None:
    """A policy of the organisation about DescribeInstances alone: the region may hold machines, and is a gap."""
    with denying(cli.sandbox, "DescribeInstances"):
        status, told = looked(cli, "plan", "--guard", "idle_gpu")

    assert status == Exit.GAPS
    (gap,) = told["gaps"]
    assert gap["region_id"] == WEST
    assert "no grant helps" in gap["fix"]


def test_a_role_without_the_permissions_closes_no_region(cli: Cli) -> None:
    """What a grant mends is a gap, with the grant that mends it."""
    with denying(cli.sandbox, *EC2, message="User is not authorized to perform: {}"):
        status, told = looked(cli, "plan", "--guard", "idle_gpu")

    assert status == Exit.GAPS
    assert [gap["fix"] for gap in told["gaps"]] == ["grant ec2:DescribeInstances to these credentials"]


def test_an_account_that_answers_nowhere_is_no_closed_region(cli: Cli) -> None:
    """EC2 denied everywhere is nothing to be silent about."""
    with denying(cli.sandbox, *EC2), denying(cli.sandbox, *EC2, region=EAST):
        cli.sandbox.gateway.refused.extend(
            Refused("ec2", one, "UnauthorizedOperation", DENIED.format(f"ec2:{one}")) for one in EC2
        )
        status, told = looked(cli, "plan", "--guard", "idle_gpu")

    assert status == Exit.GAPS
    assert {gap["region_id"] for gap in told["gaps"]} == {EAST, WEST}


def test_the_doctor_says_which_regions_to_leave_out_and_bars_nothing(cli: Cli) -> None:
    with denying(cli.sandbox, *EC2):
        status, told = looked(cli, "doctor")

    (found,) = (one for one in told["checks"] if one["check"] == "regions")
    assert (found["code"], found["verdict"], found["details"]) == ("regions_closed", "warning", [])
    assert "Narrow `regions`" in found["fix"]
    assert WEST in found["words"]
    of_services = {one["check"]: one["code"] for one in told["checks"] if one["check"] in {"keys", "networks"}}
    assert of_services == {"keys": "keys_read", "networks": "networks_read"}  # asked of the region that is open
    assert status == Exit.OK
    assert told["safe_to_enforce"] is True


def test_a_case_in_a_region_that_is_closed_later_waits(sandbox: Sandbox, tmp_path: Path) -> None:
    """Its machine runs on unseen: nothing is done to it, and its case does not end as if it were gone."""
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    ledger = Secret(f"sqlite:///{tmp_path / 'ledger.db'}")

    settings = replace(sandbox.settings(Settings(policy=str(tmp_path))), ledger=ledger)

    def run() -> dict[str, Any]:
        return run_function("idle_gpu", f"run {sandbox.clock.now()}", None, settings, sandbox.clock)

    def case_in_the_west() -> Case:
        memory = open_memory(settings)
        with closing(memory.store):
            (found,) = (one for one in memory.cases.active("idle_gpu") if one.subject.region == WEST)
            return found

    def running() -> set[str]:
        return {one.spec.name for one in sandbox.world.machines.values() if one.state is InstanceState.RUNNING}

    run()
    before = case_in_the_west()
    with denying(sandbox, *EC2):
        for _ in range(3):
            sandbox.advance(DAY)
            assert run()["gaps"] == 0
        held = case_in_the_west()
    assert (held.case_id, held.status, held.rung) == (before.case_id, CaseStatus.HELD, before.rung)
    assert running() == {"west"}  # the notebook's case went on

    sandbox.advance(DAY)
    run()
    assert running() == set()  # open again, it was seen idle and noticed long ago
