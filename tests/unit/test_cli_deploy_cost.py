"""`costguard deploy --cost`: what the guard itself costs a month, before anybody agrees to it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests import schemas
from tests.infra.parity_hcl import read_folder

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.deploying.upkeep import ALARMS_OF_A_DAILY, ALARMS_OF_A_FUNCTION, FIGURES, upkeep
from costguard.cli.operate.deploying.variables import READ, variables_of
from costguard.domain.errors import InvalidInputError
from costguard.estimates.upkeep import Assumed, CostLine, Item, Upkeep, starts_a_month
from costguard.faas.handler import _figures
from costguard.report.savings.upkeep import upkeep_lines, upkeep_table
from costguard.report.words.sentences import Language

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
CLOUDS = ("aws", "alibaba", "tencent")


def cost(cloud: str = "aws", assumed: Assumed | None = None, **variables: Any) -> Upkeep:
    return upkeep(cloud, FUNCTIONS, variables, assumed or Assumed())


def line(found: Upkeep, item: Item) -> CostLine:
    (one,) = [line for line in found.lines if line.item is item]
    return one


def told(capfd: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run(["deploy", *more, "--cost", "--json"]) == Exit.OK
    answer: dict[str, Any] = json.loads(capfd.readouterr().out)
    jsonschema.validate(answer, schemas.schema_of("deploy_cost"))
    return answer


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_cost_is_said_without_a_cloud_a_bundle_or_terraform(cloud: str, capfd: pytest.CaptureFixture[str]) -> None:
    answer = told(capfd, cloud, "--terraform", "no-such-program")

    known = sum(Decimal(one["monthly_cost"]["amount"]) for one in answer["lines"] if one["monthly_cost"])
    assert abs(known - Decimal(answer["known"][0]["amount"])) < Decimal("0.01")
    assert all(one["source"] and one["as_of"] for one in answer["lines"] if one["monthly_cost"])


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_nobody_knows_is_named_and_never_zero(cloud: str, capfd: pytest.CaptureFixture[str]) -> None:
    answer = told(capfd, cloud)

    unknown = [one for one in answer["lines"] if one["monthly_cost"] is None]
    assert answer["complete"] is (not unknown)
    assert all(one["unknown"] and one["unit_price"] is None for one in unknown)
    assert all(one["words"] in answer["words"][1] for one in unknown)


def test_people_get_a_table_in_their_language(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["deploy", "aws", "--cost"]) == Exit.OK
    assert "machine metrics read" in capfd.readouterr().out
    assert run(["deploy", "aws", "--cost", "--lang", "zh"]) == Exit.OK
    assert "读取的机器监控指标" in capfd.readouterr().out


def test_metrics_grow_with_machines_cards_and_runs() -> None:
    """docs/signals.md: of a machine with eight cards 46 metrics a run are read, at 0.01 USD for 1,000."""
    read = line(cost(assumed=Assumed(machines=10, cards=8)), Item.METRICS_READ)
    assert read.amount is not None
    assert (read.quantity, read.amount.amount) == (Decimal(10 * 46 * 730), Decimal("3.358"))

    seldom = line(
        cost(assumed=Assumed(machines=10, cards=8), schedules={"idle_gpu": "17 */2 * * *"}), Item.METRICS_READ
    )
    assert seldom.quantity == read.quantity / 2
    assert not [each for each in cost(assumed=Assumed(machines=0)).lines if each.item is Item.METRICS_READ]


def test_functions_are_paid_by_time_and_memory() -> None:
    """Three hourly functions of 512 MiB for 900 s each: docs/deploy-aws.md has 16.43 USD."""
    hourly = ["idle_gpu", "budget", "network_audit"]
    found = line(cost(assumed=Assumed(run_time=timedelta(seconds=900)), functions=hourly), Item.FUNCTION_TIME)
    assert found.amount is not None
    assert str(found.amount) == "16.43 USD"
    arm = line(cost(functions=hourly, architecture="arm64"), Item.FUNCTION_TIME)
    x86 = line(cost(functions=hourly), Item.FUNCTION_TIME)
    assert arm.amount is not None
    assert x86.amount is not None
    assert arm.amount.amount < x86.amount.amount


def test_what_is_not_deployed_is_not_paid() -> None:
    assert [each for each in cost(functions=["idle_gpu"]).lines if each.item is Item.BILLS_READ] == []
    assert line(cost(functions=["idle_gpu"]), Item.ALARMS).quantity == 3 + 2 + 3


def test_alarms_and_figures_are_counted_as_the_module_and_the_program_make_them() -> None:
    alarms = (ROOT / "infra/aws/alarms.tf").read_text("utf-8")
    of_functions = re.search(r"functions_alarms = \{\n(.*?)\n  \}\n", alarms, re.DOTALL)
    assert of_functions is not None
    assert len(re.findall(r"^    \w+ = \{$", of_functions[1], re.MULTILINE)) == ALARMS_OF_A_FUNCTION
    dead_man = (ROOT / "infra/aws/dead_man.tf").read_text("utf-8")
    assert (alarms + dead_man).count('resource "aws_cloudwatch_metric_alarm" "') == 5
    assert ALARMS_OF_A_DAILY == 2, "missed and dead-man"
    assert line(cost(), Item.ALARMS).quantity == 32

    summary = {"findings": {"compliant": 1}, "due": 0, "done": 0, "held": 0, "gaps": 0}
    assert len(_figures(summary) | {"duration_seconds": 1.0}) == FIGURES


def test_secrets_that_share_a_name_are_paid_once() -> None:
    secrets = {
        "COSTGUARD_SLACK_TOKEN": "costguard/slack#token",
        "COSTGUARD_SLACK_SIGNING_SECRET": "costguard/slack#key",
    }
    assert line(cost(secrets=secrets), Item.SECRETS).quantity == 1


def test_the_store_of_secrets_is_what_alibaba_asks_most_for() -> None:
    """docs/deploy-alibaba.md: an instance of KMS with a key and three secrets is 154 USD."""
    secrets = {f"COSTGUARD_{name}": name for name in ("A", "B", "C")}
    found = cost("alibaba", secrets=secrets, region="cn-hangzhou")
    kept = (Item.SECRET_STORE, Item.KEYS, Item.SECRETS)
    asked = sum(each.amount.amount for each in found.lines if each.item in kept and each.amount)
    assert round(asked) == 154
    ledger = [each.amount for each in found.lines if each.item in {Item.LEDGER, Item.LEDGER_STORAGE}]
    assert round(sum(each.amount for each in ledger if each), 1) == Decimal("21.6")


def test_without_the_dear_parts_they_are_not_paid() -> None:
    """Each is a variable, and a page says what is lost without it."""
    without = cost("alibaba", secret_store="bucket", region="cn-hangzhou")
    assert {each.item for each in without.lines}.isdisjoint({Item.SECRET_STORE, Item.KEYS, Item.SECRETS})
    assert sum(each.amount for each in without.known) < 25
    assert Item.LEDGER_BACKUP not in {each.item for each in cost(ledger_backup=False).lines}
    for cloud, name in (("alibaba", "secret_store"), ("aws", "ledger_backup"), ("aws", "log_retention_days")):
        assert f"`{name}`" in (ROOT / f"docs/deploy-{cloud}.md").read_text("utf-8")


def test_a_region_without_a_price_has_none() -> None:
    for cloud, region in (("alibaba", "eu-central-1"), ("tencent", "ap-tokyo")):
        ledger = line(cost(cloud, region=region), Item.LEDGER)
        assert ledger.amount is None
        assert ledger.unknown is not None


def test_more_calls_than_are_free_have_no_made_up_price() -> None:
    read = line(cost("tencent", Assumed(machines=1000)), Item.METRICS_READ)
    assert read.amount is None
    assert read.unknown is not None
    free = line(cost("tencent"), Item.METRICS_READ)
    assert free.amount is not None
    assert free.amount.amount == 0


@pytest.mark.parametrize(
    ("schedule", "starts"),
    [
        ("17 * * * *", Decimal(730)),
        ("23 5 * * *", Decimal(730) / 24),
        ("0,30 8-11 * * *", Decimal(730) / 24 * 8),
        ("11 1 * * 1", Decimal(730) / 24 / 7),
        ("11 1 * * 0,7", Decimal(730) / 24 / 7),
        ("0 0 1 * *", Decimal(1)),
        ("0 0 1 */3 *", Decimal(4) / 12),
        ("*/20 * * * *", Decimal(2190)),
    ],
)
def test_a_schedule_starts_so_often_in_a_month(schedule: str, starts: Decimal) -> None:
    assert abs(starts_a_month(schedule) - starts) < Decimal("0.0001")


@pytest.mark.parametrize(
    "schedule", ["", "* * * *", "60 * * * *", "a * * * *", "*/0 * * * *", "5-1 * * * *", "0 0 1 * 1"]
)
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(InvalidInputError, match=r"cron field|days of the month"):
        starts_a_month(schedule)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--machines", "-1"), "--machines -1"),
        (("--cards", "0"), "--cards 0"),
        (("--budgets", "-1"), "--budgets -1"),
        (("--run-seconds", "901"), "from 1 to 900 seconds"),
        (("--var", "functions"), "expected NAME=VALUE"),
        (("--var-file", "nowhere.tfvars"), "nowhere.tfvars: not there"),
        (("--infra", "nowhere"), "no Terraform module"),
    ],
)
def test_a_wrong_size_is_refused(more: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["deploy", "aws", "--cost", *more]) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err


def test_a_function_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="there is no function idle_tpu"):
        cost(functions=["idle_tpu"])


@pytest.mark.parametrize("cloud", CLOUDS)
def test_variables_are_those_of_the_modules(cloud: str) -> None:
    declared = {
        block.labels[0]: block.arguments["type"]
        for file in read_folder(ROOT / "infra" / cloud).values()
        for block in file.inner("variable")
    }
    ours = {name: kind for name, kind in READ.items() if name in declared}
    assert {name: declared[name] for name in ours} == ours
    assert set(READ) - set(ours) <= {"secret_store"} if cloud == "aws" else "name" in ours


def test_variables_of_a_plan_are_those_that_it_tells() -> None:
    plan: Mapping[str, Any] = {"variables": {"functions": {"value": ["idle_gpu"]}, "tags": {"value": {}}}}
    assert variables_of(plan) == {"functions": ["idle_gpu"]}
    assert variables_of({}) == {}


SECRETS = {f"COSTGUARD_{name}": f"costguard-{name}" for name in ("LEDGER", "SLACK_TOKEN", "SLACK_SIGNING_SECRET")}
OF_PAGE: Mapping[str, Mapping[str, Any]] = {
    "aws": {"region": "us-east-1", "secrets": {name: at for name, at in SECRETS.items() if "SLACK" in name}},
    "alibaba": {"region": "cn-hangzhou", "secrets": SECRETS},
    "tencent": {"region": "ap-guangzhou", "secrets": SECRETS},
}


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_page_of_a_deployment_shows_what_the_command_says(cloud: str, language: Language) -> None:
    """Where this fails: put what it expects between the two marks of the page."""
    page = ROOT / "docs" / ("zh" if language is Language.ZH else "") / f"deploy-{cloud}.md"
    shown = page.read_text("utf-8").partition("<!-- cost -->\n")[2].partition("<!-- end of cost -->\n")[0]
    found = upkeep(cloud, FUNCTIONS, OF_PAGE[cloud], Assumed())
    table = upkeep_table(found, language)
    titles = [column.title for column in table.columns]
    rows = [titles, ["---"] * len(titles), *table.rows]
    wanted = (
        "".join(f"| {' | '.join(row)} |\n" for row in rows)
        + "\n"
        + "".join(f"* {said}\n" for said in upkeep_lines(found, language))
    )
    assert shown == wanted, wanted


@pytest.mark.skipif(shutil.which("terraform") is None, reason="Terraform reads files of variables")
def test_files_of_variables_are_read_as_terraform_reads_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "production.tfvars"
    given.write_text(
        'region = "cn-hangzhou"\nfunctions = ["idle_gpu"] # alone\nunknown_here = 1\n'
        'secrets = { COSTGUARD_LEDGER = "costguard/ledger" }\n',
        encoding="utf-8",
    )
    answer = told(capfd, "alibaba", "--var-file", str(given), "--var", "log_retention_days=30", "--var", "name=other")

    kept = {one["item"]: one for one in answer["lines"]}
    assert answer["region_id"] == "cn-hangzhou"
    assert kept["ledger"]["monthly_cost"]["amount"] == "18.1405"
    assert Decimal(kept["alarms"]["quantity"]) == 8
