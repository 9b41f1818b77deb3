"""`costguard budgets` on a small sandbox: what it shows, what it writes (nothing), and its exit statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.contract.cli_sandbox import Answered, Cli

from costguard.cli.exits import Exit
from costguard.sandbox.aws.server import Refused
from costguard.sandbox.fleets import aws_machine
from costguard.sandbox.sandbox import STARTS_AT, Sandbox
from costguard.sandbox.world import workload as does

SCHEMA = json.loads(files("costguard.report").joinpath("budgets.schema.json").read_text(encoding="utf-8"))
DAY = timedelta(days=1)
POLICY = """\
version: 1
mode: enforce
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: all}]
notify: {default: 'slack:#gpu-costs'}
"""
BUDGETS = """\
budgets:
  - {name: company, yearly: 50000 USD}
  - {name: research, covers: {tags: {team: research}}, monthly: 40 USD, at: {100%: [warn, stop_idle]}}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Since ten days one idle machine of 0.42 USD an hour; now it is March 5, and 40 USD are spent."""
    tags = {"team": "research"}
    machine = aws_machine("notebook", "g5g.xlarge", does.idle(), STARTS_AT - 10 * DAY, tags=tags)
    with Sandbox.start([machine], STARTS_AT + 3 * DAY) as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "costguard.yaml").write_text(POLICY + BUDGETS, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


def asked(cli: Cli, *words: str) -> Answered:
    return cli("budgets", *words, "--policy", str(cli.folder / "costguard.yaml"))


@contextmanager
def no_bill(cli: Cli) -> Iterator[None]:
    cli.sandbox.gateway.refused.append(Refused("ce", "GetCostAndUsage", "AccessDeniedException", "no"))
    try:
        yield
    finally:
        cli.sandbox.gateway.refused.clear()


def test_a_spent_budget_is_status_16_and_the_documented_json(cli: Cli) -> None:
    told = asked(cli, "--json")

    assert told.status == Exit.SPENT
    jsonschema.validate(told.json, SCHEMA)
    company, research = told.json["budgets"]
    assert company["history"][0]["day"] < "2026-03-01"
    assert float(research["spent"]["share_percent"]) > 100
    assert [part["source"] for part in research["clouds"]] == ["aws-cost-explorer"]
    assert [(each["name"], each["hourly"]["currency"]) for each in research["machines"]] == [("notebook", "USD")]


def test_people_are_shown_a_table_and_nothing_is_written_anywhere(cli: Cli) -> None:
    happened, posted = len(cli.sandbox.world.history), len(cli.sandbox.slack.posted)

    told = asked(cli)

    assert told.status == Exit.SPENT
    assert "Budgets (2)" in told.out
    assert "██████████ 110.2 %" in told.out
    assert "Billed up to 2026-03-04 00:00 UTC by aws, 33 h ago" in told.out
    assert [path.name for path in cli.folder.iterdir()] == ["costguard.yaml"]
    assert (len(cli.sandbox.world.history), len(cli.sandbox.slack.posted)) == (happened, posted)


def test_one_budget_is_explained_in_either_language(cli: Cli) -> None:
    told, chinese = asked(cli, "explain", "research"), asked(cli, "explain", "research", "--lang", "zh")

    assert (told.status, chinese.status) == (Exit.SPENT, Exit.SPENT)
    assert "On aws\n" in told.out
    assert "30.24 USD billed up to 2026-03-04 00:00 UTC, 33 h ago" in told.out
    assert "09:00 UTC from aws-cost-explorer." in told.out
    assert "While the figures are not sure, none of these begins." in told.out
    assert "notebook, g5g.xlarge: 33 h at 0.42 USD = 13.86 USD" in told.out
    assert "company" not in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    assert "应计明细（按机器）" in chinese.out


def test_a_bill_that_cannot_be_read_is_status_11_and_named(cli: Cli) -> None:
    with no_bill(cli):
        told = asked(cli, "explain", "company", "--json")

    assert told.status == Exit.GAPS
    (one,) = told.json["budgets"]
    assert (one["spent"]["lower_bound"], one["sure"], one["unread_clouds"]) == (True, False, ["aws"])
    assert {gap["what"] for gap in told.json["gaps"]} == {"bill"}


def test_what_is_spent_for_certain_wins_over_what_could_not_be_read(cli: Cli) -> None:
    with no_bill(cli):
        told = asked(cli)

    assert told.status == Exit.SPENT
    assert "≥ 4" in told.out
    assert "the bill not read (permission denied)" in told.out


def test_without_a_budget_an_example_is_shown(cli: Cli) -> None:
    (cli.folder / "costguard.yaml").write_text(POLICY, encoding="utf-8")

    told, as_json = asked(cli), asked(cli, "--json")

    assert (told.status, as_json.status) == (Exit.OK, Exit.OK)
    assert "  - {name: all, monthly: 5000 USD, alert_at: [50%, 80%, 100%]}" in told.out
    assert as_json.json["budgets"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "nobody"), "the policy has no budget 'nobody'; there is company, research"),
        (("--json", "explain", "research"), "options go behind the command"),
    ],
)
def test_bad_input_is_told_in_one_line(cli: Cli, words: tuple[str, ...], said: str) -> None:
    told = asked(cli, *words)

    assert told.status == Exit.BAD_INPUT
    assert said in told.err
    assert len(told.err.splitlines()) == 1
