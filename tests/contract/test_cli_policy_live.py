"""`costguard policy plan` and `explain` against a fleet that answers, with the vendors' own SDKs between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from tests.contract.cli_sandbox import Cli

from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import RESEARCH, aws_machine
from cloudstand.world import workload
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox

SCHEMAS = Path(__file__).parents[2] / "shared/costguard/report/schemas"
OLD = f"""\
version: 1
mode: enforce
accounts: [{{cloud: aws, id: "{RESEARCH}", regions: [us-east-1], role: costguard, external_id: costguard-sandbox}}]
notify: {{default: "slack:#gpu"}}
idle_gpu: [{{name: nobody, applies_when_all: {{tags: {{team: nobody}}}}}}]
"""
NEW = OLD.replace("{name: nobody", "{name: all, idle_when_all: {lasting: 12h}}, {name: nobody")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    began = STARTS_AT - timedelta(days=10)
    tags = {"team": "nlp"}
    with Sandbox.start((aws_machine("notebook", "g5g.xlarge", workload.idle(), began, tags=tags),)) as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "old.yaml").write_text(OLD, encoding="utf-8")
    (tmp_path / "new.yaml").write_text(NEW, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


def test_one_look_serves_both_policies_and_the_recording(cli: Cli) -> None:
    old, new, fleet = (str(cli.folder / name) for name in ("old.yaml", "new.yaml", "fleet.json"))

    live = cli("policy", "plan", new, "--policy", old, "--record", fleet, "--json")
    again = cli("policy", "plan", new, "--policy", old, "--recorded", fleet, "--json")

    assert (live.status, again.status) == (Exit.DUE, Exit.DUE)
    jsonschema.validate(live.json, json.loads((SCHEMAS / "policy_plan.schema.json").read_text(encoding="utf-8")))
    assert [(change["name"], change["turn"]) for change in live.json["changes"]] == [("notebook", "opens")]
    assert again.json == live.json


def test_a_recording_knows_how_far_a_rollout_has_come(cli: Cli) -> None:
    """Nobody was told of its steps: what the new policy would open is only observed, live and from the file."""
    old, fleet, new = str(cli.folder / "old.yaml"), str(cli.folder / "fleet.json"), cli.folder / "new.yaml"
    steps = "{mode: warn, since: 2026-01-05}, {mode: enforce, since: 2026-01-19}"
    new.write_text(f"{NEW}rollout: [{{team: '*', steps: [{steps}]}}]\n", encoding="utf-8")

    live = cli("policy", "plan", str(new), "--policy", old, "--record", fleet, "--json")
    again = cli("policy", "plan", str(new), "--policy", old, "--recorded", fleet, "--json")

    assert again.json == live.json
    assert '"rehearsed"' in json.dumps(live.json["changes"])


def test_other_accounts_are_another_look(cli: Cli) -> None:
    """The new policy guards another region, so each is planned over what it would read itself."""
    other = cli.folder / "other.yaml"
    other.write_text(NEW.replace("us-east-1", "eu-west-1"), encoding="utf-8")

    told = cli("policy", "plan", str(cli.folder / "new.yaml"), "--policy", str(other), "--json")

    assert [(change["name"], change["turn"]) for change in told.json["changes"]] == [("notebook", "opens")]


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_machine_that_exists_is_explained(cli: Cli, by: str) -> None:
    resource = "notebook" if by == "name" else f"aws:{RESEARCH}:us-east-1:instance:{cli.id_of('notebook')}"

    told = cli("policy", "explain", resource, "--policy", str(cli.folder / "new.yaml"), "--json")

    assert told.status == Exit.OK
    jsonschema.validate(told.json, json.loads((SCHEMAS / "policy_explain.schema.json").read_text(encoding="utf-8")))
    assert told.json["rule"] == "all"
    assert told.json["owners"] == [{"name": "nlp", "source": "tag"}]


def test_a_machine_that_nobody_saw_is_bad_input(cli: Cli) -> None:
    told = cli("policy", "explain", "i-0000", "--policy", str(cli.folder / "new.yaml"))

    assert told.status == Exit.BAD_INPUT
    assert "no accelerator machine 'i-0000' was seen" in told.err
