"""`costguard savings`: the figures, where each is from, and three shapes for machines. It asks no cloud."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from tests.builders import ref, usd
from tests.docs_zh.in_step import facts_of
from tests.savings_builders import DAY, HOUR, MIDNIGHT, RATE, charge, ended, saving

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers import open_ledger
from costguard.cli.exits import Exit
from costguard.cli.look.savings import savings
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.domain.actions import Saving, Verb
from costguard.domain.money import Money, SpendScope
from costguard.domain.savings import MachineBill, SavingChange, SavingStanding
from costguard.engine.ledger.memory import Memory
from costguard.engine.savings import savings_report
from costguard.report.savings import focus as savings_focus
from costguard.settings import Secret, load_settings

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/savings.schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
ALONE = typer.Typer()  # this command without the others, which take longer to put together than it takes to run
ALONE.command()(savings)
NOW = MIDNIGHT + 4 * DAY
YUAN = Money(Decimal(20), "CNY")
Run = Callable[..., tuple[int, str, str]]


def remembered(memory: Memory) -> None:
    """One still stopped, one replaced, one in yuan without a known price of its snapshots, one without any price."""
    away = SavingChange(SavingStanding.REPLACED, MIDNIGHT + 12 * HOUR, ref("i-9"), "name")
    unclear = SavingChange(SavingStanding.UNSEEN, MIDNIGHT + 2 * DAY)
    dear = Saving(YUAN, (("snapshot", None),), price=replace(RATE, money=YUAN, source="policy"))
    for one in (
        saving("i-1"),
        replace(saving("i-2", verb=Verb.TERMINATE), changes=(away,), owner="nlp"),
        replace(saving("i-3", worth=dear), guard="budget"),
        replace(saving("i-4", worth=Saving(None)), name="=cmd()", owner=""),
        replace(saving("i-5", MIDNIGHT + DAY, owner=""), changes=(unclear,)),
    ):
        memory.savings.record(one)
    memory.savings.looked([ref().shard], NOW)
    spent = (charge(MIDNIGHT - DAY, "72"), charge(MIDNIGHT + DAY, "42"))
    memory.savings.put_bill(MachineBill(ref("i-1"), SpendScope(), spent, MIDNIGHT + 3 * DAY, "tencent-billing"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A ledger file and a policy that no test changes."""
    folder = tmp_path_factory.mktemp("savings")
    ledger = f"sqlite:///{folder / 'ledger.db'}"
    store = open_ledger(ledger)
    remembered(Memory.over(store))
    store.close()
    (folder / "costguard.yaml").write_text(
        "version: 1\nexchange_rates: [{from: USD, to: CNY, rate: 7.1, since: 2026-01-01}]\n"
        "budgets: [{name: all, monthly: 9000 USD}]\n",
        encoding="utf-8",
    )
    settings = replace(load_settings({}), ledger=Secret(ledger), policy=str(folder / "costguard.yaml"))
    return Program(settings=lambda: settings, clock=MovedClock(NOW))


@pytest.fixture
def costguard(desk: Program, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = run(arguments, commands=ALONE, program=desk)
        return (status, *capfd.readouterr())

    return call


def answered(costguard: Run, *arguments: str) -> Any:
    status, out, err = costguard(*arguments, "--json")
    assert (status, err) == (Exit.OK, "")
    told = json.loads(out)
    VALID.validate(told)
    return told


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_documented_json_has_a_total_for_each_currency_and_every_action(costguard: Run) -> None:
    told = answered(costguard)
    totals = {line["realised"]["currency"]: line["realised"]["amount"] for line in told["totals"]}
    assert {currency: float(amount) for currency, amount in totals.items()} == {"CNY": 1920.0, "USD": 300.0}
    assert [action["standing"] for action in told["actions"] if action["id"].endswith("i-2")] == ["replaced"]
    first = next(action for action in told["actions"] if action["id"].endswith(":i-1"))
    assert (first["billed_anyway"]["amount"], float(first["realised"][0]["amount"])) == ("30.0", 210.0)
    assert (first["price_source"], first["price_as_of"]) == ("aws-pricing", "2026-03-09")
    assert told["converted"] is None


def test_people_see_sums_by_month_owner_guard_and_cloud(costguard: Run) -> None:
    status, out, _ = costguard()
    assert status == Exit.OK
    for part in ("By month (UTC)", "By owner", "By guard", "By cloud", "Actions (5)", "2026-03", "(no owner)", "nlp"):
        assert part in out
    assert "replaced by i-9 (same owner, type and name) 2026-03-10 12:00 UTC" in " ".join(out.split())
    assert "the bill has 30.00 USD all the same" in out
    assert "Counted as nothing, for nobody knows what the machine costs: 1." in out
    assert "Counted only up to the last look, for no run has looked since: 1." in out


def test_in_chinese_the_figures_are_the_same(costguard: Run) -> None:
    _, out, _ = costguard("--lang", "zh")
    assert "已实现 1,920.00 CNY" in out
    assert "按负责人" in out
    assert answered(costguard, "--lang", "zh")["totals"] == answered(costguard)["totals"]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--owner", "nlp"), ["i-2"]),
        (("--team", "nlp"), ["i-2"]),
        (("--guard", "budget"), ["i-3"]),
        (("--since", "2026-03-11", "--until", "2026-03-12"), ["i-1", "i-2", "i-3", "i-4", "i-5"]),
        (("--until", "2026-03"), []),
    ],
)
def test_only_what_is_asked_for_is_shown(costguard: Run, options: tuple[str, ...], ids: list[str]) -> None:
    told = answered(costguard, *options)
    assert sorted(action["id"].rpartition(":")[2] for action in told["actions"]) == ids


@pytest.mark.parametrize(
    "options", [("--since", "soon"), ("--since", "2026-13"), ("--since", "2026-03-20"), ("--currency", "yuan")]
)
def test_what_cannot_be_meant_is_refused(costguard: Run, options: tuple[str, ...]) -> None:
    status, out, err = costguard(*options)
    assert (status, out) == (Exit.BAD_INPUT, "")
    assert options[0] in err


def test_one_more_total_names_its_rates_and_changes_no_other(costguard: Run) -> None:
    told = answered(costguard, "--currency", "CNY")
    assert float(told["converted"]["realised"]["amount"]) == pytest.approx(1920 + 300 * 7.1)
    assert told["converted"]["rates"] == [{"base": "USD", "quote": "CNY", "rate": "7.1", "since": "2026-01-01"}]
    assert told["totals"] == answered(costguard)["totals"]
    assert "1 USD = 7.1 CNY since 2026-01-01" in costguard("--currency", "CNY")[1]


def test_without_a_rate_there_is_no_such_total(costguard: Run) -> None:
    told = answered(costguard, "--currency", "EUR")
    assert (told["converted"]["realised"], told["converted"]["without"]) == (None, ["CNY", "USD"])
    assert "the policy gives no rate for CNY, USD" in costguard("--currency", "EUR")[1]


def test_one_action_is_explained_down_to_its_days(costguard: Run) -> None:
    _, out, _ = costguard("--explain", "case-i-1-stop")
    told = " ".join(out.split())
    for part in (
        "Case case-i-1 of guard idle_gpu, rule research.",
        "Price: 3.00 USD an hour, from aws-pricing, as of 2026-03-09.",
        "Stays billed: disks, 0.50 USD an hour.",
        "Net: 3.00 USD - 0.50 USD = 2.50 USD an hour.",
        "Counted: 96 h, from 2026-03-10 00:00 UTC to 2026-03-14 00:00 UTC. still stopped.",
        "Predicted: 240.00 USD, had nothing happened since.",
        "Realised: 210.00 USD.",
        "Compared with the bill up to 2026-03-13 00:00 UTC: 30.00 USD billed all the same, and taken off.",
        "costguard why case-i-1 --guard idle_gpu",
    ):
        assert part in told
    days = answered(costguard, "--explain", "case-i-1-stop")["days"]
    assert [float(day["realised"][0]["amount"]) for day in days] == [60.0, 30.0, 60.0, 60.0]


def test_the_documentation_shows_an_action_as_it_is_explained(costguard: Run) -> None:
    text = (Path(__file__).parents[2] / "docs" / "savings.md").read_text(encoding="utf-8")
    shown = text.partition("```text\n")[2].partition("```")[0]
    assert len(shown.splitlines()) == 15
    assert facts_of(shown) - facts_of(costguard("--explain", "case-i-1-stop")[1]) == Counter()


def test_an_action_that_saved_nothing_known_is_not_explained(costguard: Run) -> None:
    status, _, err = costguard("--explain", "case-i-8-stop")
    assert (status, "no action case-i-8-stop saved anything" in err) == (Exit.BAD_INPUT, True)


def test_the_csv_has_a_row_an_action_that_a_spreadsheet_does_not_run(costguard: Run, tmp_path: Path) -> None:
    status, out, _ = costguard("--csv", "-")
    assert status == Exit.OK
    told = {row["action_id"]: row for row in rows(out)}
    assert len(told) == 5
    assert (told["case-i-3-stop"]["currency"], float(told["case-i-3-stop"]["realised"])) == ("CNY", 1920.0)
    assert told["case-i-4-stop"]["name"] == "'=cmd()"
    assert (told["case-i-4-stop"]["currency"], told["case-i-4-stop"]["realised"]) == ("", "")
    costguard("--csv", str(tmp_path / "saved.csv"))
    assert rows((tmp_path / "saved.csv").read_text(encoding="utf-8")) == rows(out)


def test_the_focus_rows_charge_nothing_and_add_up_to_what_was_realised(costguard: Run) -> None:
    told = rows(costguard("--focus", "-")[1])
    assert list(told[0]) == [
        *savings_focus.MANDATORY,
        *savings_focus.CONDITIONAL,
        *savings_focus.RECOMMENDED,
        *savings_focus.OWN,
    ]
    for cost in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"):
        assert {row[cost] for row in told} == {"0.00"}
    assert {row["ChargeCategory"] for row in told} == {"Adjustment"}
    sums: dict[str, float] = {}
    for row in told:
        sums[row["BillingCurrency"]] = sums.get(row["BillingCurrency"], 0) + float(row["x_RealisedSaving"])
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    assert sums == pytest.approx({"CNY": 1920.0, "USD": 300.0})
    of_first = [row for row in told if row["ResourceId"] == "i-1"]
    assert [row["ChargePeriodStart"][:10] for row in of_first] == [f"2026-03-1{day}" for day in range(4)]
    assert (of_first[0]["ProviderName"], of_first[0]["ServiceCategory"], of_first[0]["x_PriceSource"]) == (
        "AWS",
        "Compute",
        "aws-pricing",
    )


def test_every_column_of_our_own_says_so() -> None:
    assert all(name.startswith("x_") for name in savings_focus.OWN)
    assert not any(name.startswith("x_") for name in (*savings_focus.MANDATORY, *savings_focus.CONDITIONAL))


def test_a_later_version_of_focus_has_its_columns_and_an_unknown_one_is_refused(costguard: Run) -> None:
    earlier, later = (rows(costguard("--focus", "-", "--focus-version", version)[1]) for version in ("1.2", "1.3"))
    assert len(earlier) == len(later)
    assert set(later[0]) - set(earlier[0]) == {"HostProviderName", "ServiceProviderName"}
    assert {(row["ProviderName"], row["HostProviderName"], row["ServiceProviderName"]) for row in later} == {
        ("AWS", "AWS", "AWS")
    }
    assert rows(costguard("--focus", "-")[1]) == earlier

    status, out, err = costguard("--focus", "-", "--focus-version", "0.9")
    assert (status, out) == (Exit.BAD_INPUT, "")
    assert "--focus-version 0.9: expected 1.2 or 1.3" in " ".join(err.split())


def test_standard_output_goes_to_one_and_files_where_folders_are(costguard: Run, tmp_path: Path) -> None:
    assert costguard("--json", "--csv", "-")[0] == Exit.BAD_INPUT
    assert costguard("--focus", "-", "--csv", "-")[0] == Exit.BAD_INPUT
    assert costguard("--csv", str(tmp_path / "missing" / "saved.csv"))[0] == Exit.BAD_INPUT


def test_it_is_a_command_of_the_program(desk: Program, capfd: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert run(["savings", "--json"], program=desk) == Exit.OK
    VALID.validate(json.loads(capfd.readouterr().out))


def test_what_was_never_saved_is_said_in_a_sentence(costguard: Run) -> None:
    assert "Nothing that saves was seen complete" in costguard("--until", "2026-03")[1]


def test_the_report_for_others_is_the_same() -> None:
    """What a digest and a page read."""
    store = open_ledger("memory:")
    memory = Memory.over(store)
    remembered(memory)
    report = savings_report(memory, MIDNIGHT, NOW, NOW)
    assert [(line.name, line.realised) for line in report.by_owner] == [
        ("vision", Money(Decimal(1920), "CNY")),
        ("vision", usd("210")),
        ("", usd("60")),
        ("nlp", usd("30")),
    ]
    assert len(report.daily) == 8
    assert ended(saving(), SavingStanding.GONE, NOW).ended_at == NOW
    assert savings_report(memory, MIDNIGHT, NOW, NOW, owner="nlp").totals[0].realised == usd("30")
    store.close()
