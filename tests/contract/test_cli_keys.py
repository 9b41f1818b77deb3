"""`costguard keys` on the demo's sandbox: the same through three wires as in the world, and nothing ever done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.contract.cli_sandbox import Cli
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.keys import WorldKeys
from tests.world_ports.translate import to_world

from cloudstand.aws.core.server import Refused
from cloudstand.clouds import STARTS_AT
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.keys import demo_keys
from cloudstand.fleets import EAST, PRODUCT, RESEARCH
from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.domain.refs import Shard
from costguard.engine.guards.keys.look import look_at_keys
from costguard.engine.run.scan import CloudReaders
from costguard.policy.documents.loader import load_policy
from costguard.ports import Target

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/keys.schema.json").read_text(encoding="utf-8"))
PLAN_SCHEMA = json.loads(files("costguard.report").joinpath("schemas/plan.schema.json").read_text(encoding="utf-8"))
NOTIFY = "notify: {default: 'slack:#gpu-costs'}\nkms_rotation:\n"
CLOUDS = ("aws", "alibaba", "tencent")
REGIONS = {"aws": "us-east-1, eu-west-1", "alibaba": "cn-hangzhou", "tencent": "ap-guangzhou"}
ACCOUNTS = {"aws": "111122223333", "alibaba": "1234567890123456", "tencent": "100012345678"}
POLICY = (
    "version: 1\nmode: enforce\naccounts:\n"
    + "".join(
        f"  - {{cloud: {cloud}, id: '{ACCOUNTS[cloud]}', regions: [{REGIONS[cloud]}], organisation: true, "
        "role: costguard, external_id: costguard-sandbox}\n"
        for cloud in CLOUDS
    )
    + """\
kms_rotation:
  - {name: ninety-days, rotate_every: 90d, except_when_any: [{aliases: ["release-*"]}]}
  - {name: releases, applies_when_all: {aliases: ["release-*"]}, rotate_every: 180d, means: [on_demand]}
"""
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """The demo's keys, and of its fleet the machines whose disks name one, with one in each account of AWS."""
    fleet = demo_fleet(STARTS_AT)
    named = [spec for spec in fleet if any(disk.key_id for disk in spec.disks)]
    others = [
        next(spec for spec in fleet if (spec.account, spec.region) == (account, EAST))
        for account in (RESEARCH, PRODUCT)
    ]
    with Sandbox.start([*named, *others]) as running:
        for key in demo_keys(STARTS_AT):
            running.world.keys.add(key)
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


def policy_of(cli: Cli) -> tuple[str, str]:
    return "--policy", str(cli.folder / "costguard.yaml")


def test_three_wires_tell_what_is_in_the_world_and_the_documented_json(cli: Cli) -> None:
    happened = len(cli.sandbox.world.keys.history)

    told = cli("keys", "--json", *policy_of(cli), ledger=False)

    assert told.status == Exit.OK
    jsonschema.validate(told.json, SCHEMA)
    through_wires = {
        (
            key["id"],
            key["owner"],
            tuple(sorted(key["used_by"])),
            finding["check"],
            finding["verdict"],
            finding["reason"],
        )
        for key in told.json["keys"]
        for finding in key["findings"]
    }
    assert through_wires == _in_the_world(cli)
    assert told.json["keys_seen"] == 25
    assert len(cli.sandbox.world.keys.history) == happened


def _in_the_world(cli: Cli) -> set[tuple[object, ...]]:
    world, clock = cli.sandbox.world, cli.sandbox.clock
    reading = CloudReaders(WorldInventory(world, clock), WorldSignals(world, clock), WorldPrices(world))
    looked = look_at_keys(
        dict.fromkeys(CLOUDS, reading),
        dict.fromkeys(CLOUDS, WorldKeys(world, clock)),
        [Target(cloud, organisation=True) for cloud in CLOUDS],
        load_policy(FilePolicySource(str(cli.folder / "costguard.yaml")).read()),
        clock,
    )
    return {
        (
            str(line.key.ref),
            line.finding.owner,
            tuple(sorted(map(str, line.key.used_by))),
            line.finding.check,
            line.finding.verdict.value,
            line.finding.reason.code.value,
        )
        for line in looked.report.lines
    }


def test_a_plan_for_keys_shows_people_what_is_worth_a_look_and_writes_nothing(cli: Cli) -> None:
    told = cli("plan", "--guard", "kms_rotation", *policy_of(cli))

    assert told.status == Exit.OK
    assert "Findings (14)" in told.out
    assert "14 findings, 0 due, 0 held, 7 rehearsed, 0 gaps." in told.out
    assert "training-data" not in told.out
    assert not (cli.folder / "ledger.db").exists()


def test_a_plan_that_enforces_is_shown_applied_and_seen_to_have_taken_effect(cli: Cli) -> None:
    only = "  - {name: ninety-days, mode: enforce, applies_when_all: {aliases: [checkpoints]}}\n"
    (cli.folder / "costguard.yaml").write_text(POLICY.partition("kms_rotation:")[0] + NOTIFY + only, encoding="utf-8")
    key = next(
        key for key in cli.sandbox.world.keys.of(to_world(Shard("aws", RESEARCH, EAST))) if "checkpoints" in key.aliases
    )
    planned = ("plan", "--guard", "kms_rotation", *policy_of(cli), "--out", str(cli.folder / "plan.json"))
    applied = ("apply", "--plan", str(cli.folder / "plan.json"), *policy_of(cli))

    warned = cli(*planned, "--json")
    assert warned.status == Exit.DUE
    jsonschema.validate(warned.json, PLAN_SCHEMA)
    assert [(due["verb"], due["mend"]["kind"]) for due in warned.json["due"]] == [("warn", "set_rotation")]
    assert cli(*applied).status == Exit.OK

    cli.sandbox.clock.advance(timedelta(hours=25))
    assert "rotate it by itself every 90 days" in cli(*planned).out
    periods = [key.period_days]
    assert cli(*applied).status == Exit.OK
    assert [*periods, key.period_days] == [None, 90]
    again = cli("plan", "--guard", "kms_rotation", *policy_of(cli), "--json")
    assert (again.json["due"], again.json["held"]) == ([], [])
    assert "Asked for" in cli("cases", "--guard", "kms_rotation").out
    action = warned_action(cli)
    back = cli("undo", action, *policy_of(cli))
    assert (back.status, "there is no way back from set_rotation" in back.err) == (Exit.BAD_INPUT, True)


def warned_action(cli: Cli) -> str:
    """The id of the action that the last plan was to do."""
    written = json.loads((cli.folder / "plan.json").read_text(encoding="utf-8"))
    action: str = written["due"][0]["action_id"]
    return action


def test_a_region_that_could_not_be_read_is_status_11_and_the_rest_is_shown(cli: Cli) -> None:
    denied = Refused("kms", "ListKeys", "AccessDeniedException", "no", region="eu-west-1")
    cli.sandbox.gateway.refused.append(denied)
    try:
        told = cli("keys", "--json", *policy_of(cli), ledger=False)
    finally:
        cli.sandbox.gateway.refused.clear()

    assert told.status == Exit.GAPS
    assert {(gap["region_id"], gap["what"], gap["kind"]) for gap in told.json["gaps"]} == {
        ("eu-west-1", "keys", "denied")
    }
    assert told.json["keys_seen"] == 23


def test_the_function_runs_as_its_host_would_call_it(cli: Cli) -> None:
    event = Path(__file__).parents[2] / "events/scf/kms_rotation.json"

    told = cli("invoke", "kms_rotation", "--event", str(event), ledger=False)

    assert told.status == Exit.OK
    assert "as asked" in told.out
    assert "keys seen" in told.out
