"""`costguard budgets` on a small sandbox: what it shows, what it writes (nothing), and its exit statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.builders import usd
from tests.contract.cli_sandbox import Answered, Cli
from tests.words.said import says
from tests.world_ports.translate import to_world

from cloudstand.aws.core.server import Refused
from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.money import ChargeCategory
from cloudstand.world.records import OtherCharge
from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.report.words.sentences import phrase

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/budgets.schema.json").read_text(encoding="utf-8"))
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


def asked(cli: Cli, *words: str, no_ledger: bool = False) -> Answered:
    return cli("budgets", *words, "--policy", str(cli.folder / "costguard.yaml"), ledger=not no_ledger)


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
    assert phrase("budgets_title", count=2) in told.out
    assert "██████████ 110.2 %" in told.out
    assert says(told.out, "budgets_fresh", until="2026-03-04 00:00 UTC", cloud="aws", age="33 h")
    assert [path.name for path in cli.folder.iterdir()] == ["costguard.yaml"]
    assert (len(cli.sandbox.world.history), len(cli.sandbox.slack.posted)) == (happened, posted)


def test_a_ledger_that_is_there_is_only_read(cli: Cli) -> None:
    """Neither the bill nor the meter is kept: that is a run's business."""
    with closing(open_ledger(cli.ledger)):
        pass

    assert asked(cli, "--json").status == Exit.SPENT

    with closing(open_ledger(cli.ledger)) as store:
        assert [list(store.query(kind)) for kind in ("bill", "bill_month", "meter", "notice", "run")] == [[]] * 5


def test_one_budget_is_explained_in_either_language(cli: Cli) -> None:
    told, chinese = asked(cli, "explain", "research"), asked(cli, "explain", "research", "--lang", "zh")

    assert (told.status, chinese.status) == (Exit.SPENT, Exit.SPENT)
    assert "On aws\n" in told.out
    assert says(told.out, "budgets_of_cloud", billed="30.24 USD", until="2026-03-04 00:00 UTC", age="33 h")
    assert "09:00 UTC from aws-cost-explorer." in told.out
    assert phrase("budgets_steps_wait") in told.out
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


TRUSTING = BUDGETS.replace("at: {100%", "trust: {estimated_at_most: 60%}, at: {100%")


def test_a_plan_of_a_spent_budget_is_shown_applied_once_and_told_of_afterwards(cli: Cli) -> None:
    (cli.folder / "costguard.yaml").write_text(POLICY + TRUSTING, encoding="utf-8")
    policy, plan = ("--policy", str(cli.folder / "costguard.yaml")), str(cli.folder / "plan.json")

    planned = cli("plan", "--guard", "budget", "--out", plan, *policy)
    applied, again = (cli("apply", "--plan", plan, *policy) for _ in range(2))

    assert planned.status == Exit.DUE
    assert "Budgets (2)" in planned.out
    assert says(planned.out, "plan_total", findings=1, due=1, held=0)
    assert (applied.status, again.status) == (Exit.OK, Exit.REFUSED)
    assert "it was applied already" in again.err
    cases, why = cli("cases", "--json").json, cli("why", cli.id_of("notebook"), *policy)
    assert [(case["guard"], case["rule"]) for case in cases["cases"]] == [("budget", "research@100%")]
    assert "research@100%" in why.out
    assert phrase("budgets_cases", names="notebook") in asked(cli, "explain", "research").out
    looked = cli("why", cli.id_of("notebook"), "--scan", "--json", *policy)
    assert (looked.json["finding"]["verdict"], looked.json["finding"]["reason"]) == ("violation", "budget_idle")


def test_a_plan_is_refused_once_its_budget_is_not_sure(cli: Cli) -> None:
    (cli.folder / "costguard.yaml").write_text(POLICY + TRUSTING, encoding="utf-8")
    policy, plan = ("--policy", str(cli.folder / "costguard.yaml")), str(cli.folder / "plan.json")
    assert cli("plan", "--guard", "budget", "--out", plan, *policy).status == Exit.DUE

    with no_bill(cli):
        told = cli("apply", "--plan", plan, *policy)

    assert told.status == Exit.REFUSED
    assert says(told.err, "bill_unread", "reasons")
    assert "research@100%: " in told.err


def test_a_plan_is_refused_once_no_budget_asks_for_it(cli: Cli) -> None:
    """A refund has come between, and the budget is within its bounds again."""
    (cli.folder / "costguard.yaml").write_text(POLICY + TRUSTING, encoding="utf-8")
    policy, plan = ("--policy", str(cli.folder / "costguard.yaml")), str(cli.folder / "plan.json")
    assert cli("plan", "--guard", "budget", "--out", plan, *policy).status == Exit.DUE
    day, where = STARTS_AT.replace(hour=0) - DAY, ("aws", "111122223333", "us-east-1", "refund")
    refund = OtherCharge(
        *where, ChargeCategory.ADJUSTMENT, day, day + DAY, to_world(usd("-20")), tags={"team": "research"}
    )
    cli.sandbox.world.charge(refund)
    try:
        told = cli("apply", "--plan", plan, *policy)
    finally:
        cli.sandbox.world.other_charges.remove(refund)

    assert told.status == Exit.REFUSED
    assert "no budget asks for it now (research@100%); plan again" in told.err


def test_a_plan_that_could_not_read_a_bill_is_status_11(cli: Cli) -> None:
    with no_bill(cli):
        told = cli("plan", "--guard", "budget", "--json", "--policy", str(cli.folder / "costguard.yaml"))

    assert told.status == Exit.GAPS
    assert [gap["what"] for gap in told.json["gaps"]] == ["bill"]
    assert told.json["due"] == []


def console_budget(cli: Cli, name: str, **changes: Any) -> None:
    """Somebody sets up a budget in the AWS console."""
    budget = {
        "BudgetName": name,
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "500.0", "Unit": "USD"},
        **changes,
    }
    told = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80.0}
    cli.sandbox.gateway.billing.budgets.set_up("111122223333", budget, [told])


def test_a_clouds_own_budgets_become_a_policy_that_loads(cli: Cli) -> None:
    tag = {"Tags": {"Key": "team", "Values": ["research"], "MatchOptions": ["EQUALS"]}}
    console_budget(cli, "Research: monthly", FilterExpression=tag)
    console_budget(cli, "company", AutoAdjustData={"AutoAdjustType": "HISTORICAL"})
    console_budget(cli, "a day", TimeUnit="DAILY")
    try:
        told, as_json = asked(cli, "adopt", no_ledger=True), asked(cli, "adopt", "--json", no_ledger=True)
    finally:
        cli.sandbox.gateway.billing.budgets.there.clear()

    assert (told.status, as_json.status) == (Exit.OK, Exit.OK)
    policy = load_policy(PolicyText({"costguard.yaml": POLICY, "policies/adopted.yaml": told.out}, "r"))
    company, research = (policy.budget(name) for name in ("company-2", "Research-monthly"))
    assert company is not None
    assert research is not None
    assert (research.mode, research.amount, research.alert_at) == (Mode.OBSERVE, usd("500"), (Decimal("0.8"),))
    assert (research.covers.clouds, research.covers.tags) == (("aws",), (("team", "research"),))
    assert len(policy.budgets) == 2
    assert "  # named company-2 here\n" in told.out
    assert "  # not the same here: an amount that AWS adjusts by itself" in told.out
    assert "  # cannot be a budget here: it is daily, which is no period here" in told.out
    assert json.loads(as_json.out)["policy"] == told.out


def test_console_budgets_that_cannot_be_read_are_status_11(cli: Cli) -> None:
    cli.sandbox.gateway.refused.append(Refused("budgets", "DescribeBudgets", "AccessDeniedException", "no"))
    try:
        told = asked(cli, "adopt", no_ledger=True)
    finally:
        cli.sandbox.gateway.refused.clear()

    assert told.status == Exit.GAPS
    assert "# aws:111122223333: the cloud's own budgets not read (permission denied)" in told.out


def test_a_cloud_without_an_account_has_nothing_to_adopt(cli: Cli) -> None:
    told, none = asked(cli, "adopt", "--cloud", "tencent", no_ledger=True), asked(cli, "adopt", no_ledger=True)

    assert told.status == Exit.BAD_INPUT
    assert "no account of 'tencent' is guarded; there is aws" in told.err
    assert (none.status, none.out) == (Exit.OK, f"# {phrase('adopt_none')}\n")
