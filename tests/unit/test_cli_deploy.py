"""`costguard deploy`: what it runs, what it shows before it changes anything, and what it refuses."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.deploying.changes import MEMORY, Change, changes_in
from costguard.domain.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
TABLE = ("aws_dynamodb_table.ledger", "aws_dynamodb_table")
ROLE = ('aws_iam_role.function["idle_gpu"]', "aws_iam_role")
OUTPUTS = {
    "policy_source": {"value": "s3://acme-policy/costguard?region=eu-central-1", "sensitive": False},
    "ledger": {"value": "dynamodb://costguard?region=eu-central-1", "sensitive": False},
    "answer_url": {"value": "https://abc.lambda-url.example.com/", "sensitive": False},
    "key": {"value": "hush", "sensitive": True},
}


WITH_PASSWORD = {
    **OUTPUTS,
    "ledger": {"value": "postgresql://costguard@pgm-1.pg.rds.aliyuncs.com:5432/costguard"},
    "ledger_from_desk": {"value": "postgresql://costguard@pgm-1o.pg.rds.aliyuncs.com:5432/costguard"},
}
NO_OTHER_END: Mapping[str, int] = {}


def planned(*changes: tuple[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    """A plan as `terraform show -json` documents it."""
    listed = [
        {"address": address, "mode": "managed", "type": kind, "change": {"actions": list(actions)}}
        for (address, kind), actions in changes
    ]
    return {"format_version": "1.2", "resource_changes": listed}


@dataclass
class Fake:
    """A program that stands for Terraform: it notes how it was called, and answers as told."""

    folder: Path

    def answers(
        self,
        plan: Mapping[str, Any],
        /,
        *,
        changes: bool = True,
        status: Mapping[str, int] = NO_OTHER_END,
        outputs: Mapping[str, Any] = OUTPUTS,
    ) -> Fake:
        """What it says from now on; `status` by command is what that ends with."""
        ends = {"plan": 2 if changes else 0, **status}
        program = f"""\
#!{sys.executable} -IS
import json, sys
with open({str(self.folder / "calls")!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
what = sys.argv[2]
told = {{"show": {json.dumps(json.dumps(plan))}, "output": {json.dumps(json.dumps(outputs))}}}
print(told.get(what, "terraform speaks of " + what))
sys.exit({ends!r}.get(what, 0))
"""
        self.program.write_text(program, encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        return self

    @property
    def program(self) -> Path:
        return self.folder / "terraform"

    @property
    def calls(self) -> list[list[str]]:
        calls = self.folder / "calls"
        return [json.loads(line) for line in calls.read_text("utf-8").splitlines()] if calls.exists() else []

    @property
    def commands(self) -> list[str]:
        return [call[1] for call in self.calls]

    def deploy(self, *more: str, cloud: str = "aws") -> int:
        bundles = self.folder / "bundles"
        bundles.mkdir(exist_ok=True)
        return run(["deploy", cloud, "--terraform", str(self.program), "--bundles", str(bundles), *more])


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path).answers(planned((ROLE, ["create"]), (TABLE, ["create"])))


def test_what_would_change_is_shown_and_nothing_is_changed(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy("--plan-only", "--var", "region=eu-central-1") == Exit.DUE

    said = capfd.readouterr()
    assert "aws_dynamodb_table.ledger" in said.out
    assert "2 to create." in said.out
    assert "terraform speaks of plan" in said.err
    assert fake.commands == ["init", "plan", "show"]
    plan = fake.calls[1]
    assert plan[0] == f"-chdir={ROOT / 'infra' / 'aws'}"
    assert f"-var=bundles={(fake.folder / 'bundles').resolve()}" in plan
    assert "-var=region=eu-central-1" in plan
    assert "-input=false" in plan


def test_what_it_costs_stands_before_the_question(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    plan = planned((ROLE, ["create"]))
    fake.answers({**plan, "variables": {"functions": {"value": ["idle_gpu"]}, "region": {"value": "eu-central-1"}}})

    assert fake.deploy("--plan-only", "--machines", "1") == Exit.DUE
    assert "What Costguard itself costs a month on aws" in capfd.readouterr().out
    assert fake.deploy("--plan-only", "--machines", "1", "--json") == Exit.DUE
    cost = json.loads(capfd.readouterr().out)["cost"]
    assert (cost["region_id"], cost["assumed"]["machines"]) == ("eu-central-1", 1)
    assert {line["item"] for line in cost["lines"]}.isdisjoint({"bills_read"}), "what the plan deploys, no more"


def test_what_was_agreed_to_is_what_is_applied(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy("--yes", "--json") == Exit.OK

    told = json.loads(capfd.readouterr().out)
    assert (told["applied"], [each["change"] for each in told["changes"]]) == (True, ["create", "create"])
    assert fake.commands == ["init", "plan", "show", "apply", "output"]
    (into,) = [word.removeprefix("-out=") for word in fake.calls[1] if word.startswith("-out=")]
    assert fake.calls[3][-1] == fake.calls[2][-1] == into, "the very plan that was shown"
    assert not Path(into).parent.exists(), "a plan may hold what nobody else should read"
    assert "key" not in told["outputs"], "what the module calls sensitive is not told"


def test_people_are_told_what_is_left_to_do(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy("--yes") == Exit.OK

    said = capfd.readouterr().out
    assert "costguard policy publish DIR --to 's3://acme-policy/costguard?region=eu-central-1'" in said
    assert "costguard doctor" in said
    assert "https://abc.lambda-url.example.com/" in said
    assert "hush" not in said


def test_an_address_that_lacks_its_password_is_not_told_as_one_to_use(
    fake: Fake, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.answers(planned(), changes=False, outputs=WITH_PASSWORD)
    assert fake.deploy("--yes", cloud="alibaba") == Exit.OK

    said = capfd.readouterr().out
    assert "Set COSTGUARD_LEDGER first" in said
    assert "costguard policy publish DIR --to 's3://acme-policy/costguard?region=eu-central-1' --by NAME" in said
    assert "--ledger" not in said


def test_nothing_to_change_applies_nothing(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers(planned(), changes=False)

    assert fake.deploy("--yes") == Exit.OK

    assert "Nothing would change." in capfd.readouterr().out
    assert fake.commands == ["init", "plan", "output"]


@pytest.mark.parametrize("actions", [["delete"], ["delete", "create"], ["create", "delete"], ["forget"]])
def test_the_ledger_is_not_destroyed_by_the_way(
    fake: Fake, capfd: pytest.CaptureFixture[str], actions: list[str]
) -> None:
    fake.answers(planned((TABLE, actions), (ROLE, ["update"])))

    assert fake.deploy("--yes") == Exit.REFUSED
    assert "would destroy what Costguard remembers: aws_dynamodb_table.ledger" in capfd.readouterr().out
    assert "apply" not in fake.commands

    assert fake.deploy("--yes", "--lose-memory") == Exit.OK
    assert "apply" in fake.commands


def test_nobody_at_the_keyboard_agrees_to_nothing(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy() == Exit.BAD_INPUT
    assert "add --yes, or --plan-only" in capfd.readouterr().err
    assert fake.calls == []


@pytest.mark.parametrize("command", ["init", "plan", "show", "apply"])
def test_a_terraform_that_fails_ends_it(fake: Fake, capfd: pytest.CaptureFixture[str], command: str) -> None:
    fake.answers(planned((ROLE, ["create"])), status={command: 1})

    assert fake.deploy("--yes") == Exit.UNAVAILABLE

    assert f"terraform {command} ended with status 1" in capfd.readouterr().err
    assert fake.commands[-1] == command


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--var", "region"), "expected NAME=VALUE"),
        (("--var-file", "nowhere.tfvars"), "nowhere.tfvars: not there"),
        (("--infra", "nowhere"), "no Terraform module"),
        (("--terraform", "no-such-program"), "no program 'no-such-program' is here"),
    ],
)
def test_a_wrong_option_is_told_before_anything_runs(
    fake: Fake, capfd: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    assert fake.deploy("--yes", *more) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err
    assert fake.calls == []


def test_there_are_three_clouds(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy("--yes", cloud="azure") == Exit.BAD_INPUT
    assert "there is aws, alibaba, tencent" in capfd.readouterr().err


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"format_version": "2.0", "resource_changes": []},
        {"format_version": "1.2", "resource_changes": {}},
        {"format_version": "1.2", "resource_changes": [{"address": "a"}]},
        planned((ROLE, ["transmogrify"])),
        planned((ROLE, [])),
    ],
)
def test_a_plan_that_nobody_understands_is_not_applied(plan: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="of a form that is not known"):
        changes_in(plan)


def test_what_is_only_read_or_stays_is_no_change() -> None:
    read = {"address": "data.aws_region.here", "mode": "data", "type": "aws_region", "change": {"actions": ["read"]}}
    plan = planned((ROLE, ["no-op"]))
    plan["resource_changes"].append(read)

    assert changes_in(plan) == ()


def test_what_loses_most_comes_first() -> None:
    found = changes_in(planned((ROLE, ["create"]), (TABLE, ["delete"]), (("b", "x"), ["update"])))
    assert [each.change for each in found] == [Change.DELETE, Change.UPDATE, Change.CREATE]


@pytest.mark.parametrize("cloud", ["aws", "alibaba", "tencent"])
def test_every_module_keeps_its_memory_in_something_this_knows(cloud: str) -> None:
    """Should a module keep its ledger or policies in something else: that must be guarded too."""
    text = "".join(path.read_text("utf-8") for path in (ROOT / "infra" / cloud).glob("*.tf"))
    assert sum(f'resource "{kind}"' in text for kind in MEMORY) >= 2
