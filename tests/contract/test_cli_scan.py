"""`costguard scan` on the demo's fleet: money by owner, evidence, what is unmeasured, and the proof."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.cli_sandbox import Cli

from cloudstand.aws.core.server import Refused
from costguard.cli.demo.story import DEMO_POLICY
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.report.words.sentences import phrase


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(sandbox, tmp_path, capfd)


def refused(action: str, region: str | None = None, service: str = "ec2") -> Refused:
    return Refused(service, action, "UnauthorizedOperation", "You are not authorized.", region=region)


def test_a_scan_tells_owners_costs_evidence_and_that_nothing_was_changed(cli: Cli) -> None:
    told = cli("scan", ledger=False)

    assert told.status == Exit.OK
    assert told.err == ""
    assert "29 accelerator instances among 29 instances" in told.out
    assert "0 calls that can change anything" in told.out
    for said in (
        "infrastructure",
        "thesis-notebook",
        "GPU 2x ≤ 0 %",
        "DCGM",
        "ec2:DescribeInstances",
    ):
        assert said in told.out
    assert all(line == line.rstrip() for line in told.out.splitlines())


def test_a_scan_as_json_adds_up(cli: Cli) -> None:
    """What is never touched is counted like everything else; what is unmeasured is named with its cure."""
    told = cli("scan", "--json", "--days", "7", ledger=False)

    report = told.json
    machines = {machine["name"]: machine for machine in report["instances"]}
    assert told.status == Exit.OK
    assert (report["since"], report["until"]) == ("2026-02-23T09:00:00Z", "2026-03-02T09:00:00Z")
    assert report["proof"]["changing_calls"] == 0
    assert report["proof"]["calls"] > 10
    assert sum(owner["instances"] for owner in report["owners"]) == len(machines) == 29
    assert machines["reserved-capacity"]["never_touched"]
    assert machines["reserved-capacity"]["idle_hours"] == 168
    assert machines["pretraining-a"]["idle_hours"] == 0
    assert {group["reason"] for group in report["unmeasured"]} == {"no_device_metric", "low_coverage", "too_young"}
    assert all(group["fix"] for group in report["unmeasured"])


def test_regions_and_accounts_can_be_chosen(cli: Cli) -> None:
    one_region = cli("scan", "--json", "--days", "1", "--region", "eu-west-1", ledger=False).json
    one_account = cli("scan", "--json", "--days", "1", "--account", "444455556666", ledger=False).json

    assert {machine["id"].split(":")[2] for machine in one_region["instances"]} == {"eu-west-1"}
    assert {machine["id"].split(":")[1] for machine in one_region["instances"]} == {"111122223333", "444455556666"}
    assert {machine["id"].split(":")[1] for machine in one_account["instances"]} == {"444455556666"}


def test_every_machine_goes_into_the_csv(cli: Cli) -> None:
    path = cli.folder / "idle.csv"

    shown = cli("scan", "--days", "1", "--csv", str(path), ledger=False)
    printed = cli("scan", "--days", "1", "--csv", "-", ledger=False)

    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert "Most expensive idle instances" in shown.out
    assert len(rows) == 29
    assert list(csv.DictReader(io.StringIO(printed.out))) == rows
    assert cli("scan", "--csv", "-", "--json", ledger=False).status == Exit.BAD_INPUT
    assert "cannot be written" in cli("scan", "--csv", str(cli.folder / "no" / "x.csv"), ledger=False).err


def test_a_denied_region_is_a_gap_with_its_permission_and_the_rest_is_told(cli: Cli) -> None:
    cli.sandbox.gateway.refused.append(refused("DescribeInstances", "eu-west-1"))
    try:
        told = cli("scan", "--json", "--days", "1", ledger=False)
    finally:
        cli.sandbox.gateway.refused.clear()

    assert told.status == Exit.GAPS
    assert {(gap["region_id"], gap["kind"]) for gap in told.json["gaps"]} == {("eu-west-1", "denied")}
    assert all("ec2:DescribeInstances" in gap["fix"] for gap in told.json["gaps"])
    assert {machine["id"].split(":")[2] for machine in told.json["instances"]} == {
        *("us-east-1", "cn-hangzhou", "ap-guangzhou"),
    }


def test_where_nothing_can_be_read_there_is_no_answer(cli: Cli) -> None:
    only_aws = cli.folder / "costguard.yaml"
    only_aws.write_text(
        "version: 1\n"
        "accounts: [{cloud: aws, id: '111122223333', regions: all}]\n"
        "idle_gpu: [{name: all, then: [warn]}]\n"
        "notify: {default: 'slack:#gpu-costs'}\n",
        encoding="utf-8",
    )
    cli.sandbox.gateway.refused.append(refused("DescribeRegions"))
    try:
        told = cli("scan", "--policy", str(only_aws), ledger=False)
    finally:
        cli.sandbox.gateway.refused.clear()

    assert told.status == Exit.UNAVAILABLE
    assert told.out == ""
    assert "nothing could be read" in told.err
    assert "ec2:DescribeRegions" in told.err


def test_a_policy_may_be_given_and_the_words_may_be_chinese(cli: Cli) -> None:
    policy = cli.folder / "costguard.yaml"
    policy.write_text(
        "version: 1\nmode: observe\n"
        "accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]\n"
        "idle_gpu: [{name: all, then: [warn]}]\n",
        encoding="utf-8",
    )

    told = cli("scan", "--policy", str(policy), "--lang", "zh", ledger=False)

    assert told.status == Exit.OK
    assert "共 5 台加速实例" in told.out


def test_the_page_for_who_pays_is_written_and_makes_up_nothing(cli: Cli) -> None:
    page = cli.folder / "waste.html"
    told = cli("scan", "--html", str(page), "--days", "8", ledger=False)

    assert told.status == Exit.OK
    assert phrase("first_written", file=str(page)) in " ".join(told.out.split())
    text = page.read_text("utf-8")
    for said in ("first_wasted", "first_confidence", "first_reclaimed", "first_teams", "first_excluded"):
        assert phrase(said) in text
    assert phrase("first_window_week") in text
    assert phrase("first_window_month") not in text
    assert phrase("first_less_than_a_month", days="8") in text
    assert phrase("first_net_unknown") in text, "no discount is declared"
    assert "0 calls that can change anything" in text


def test_the_first_digest_is_that_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept where digests are, and told to the default channel by the same figures."""
    kept, page = cli.folder / "kept", cli.folder / "waste.html"
    kept.mkdir()
    monkeypatch.setenv("COSTGUARD_REPORTS", str(kept))
    assert cli("scan", "--html", str(page), "--days", "8", "--policy", str(DEMO_POLICY), ledger=False).status == Exit.OK
    heard = len(cli.sandbox.slack.posted)

    told = cli("digest", "--first", "--days", "8", "--json")

    assert (told.status, told.json["delivered"], told.json["pages_kept"]) == (Exit.OK, 1, 1)
    (file,) = kept.rglob("*.html")
    before_the_proof = [each.read_text("utf-8").partition("<footer")[0] for each in (file, page)]
    assert before_the_proof[0] == before_the_proof[1], "only the count of calls may differ: some answers are kept"
    (posted,) = cli.sandbox.slack.posted[heard:]
    assert posted.channel == "#gpu-costs"
    (notice,) = told.json["told"]
    assert [title for title, _ in notice["fields"]] == [
        phrase(f"first_{each}") for each in ("wasted", "net", "confidence", "reclaimed")
    ]
    assert all(figure in page.read_text("utf-8") for _, figure in notice["fields"])


def test_a_first_digest_that_nobody_would_get_is_refused_before_anything_is_read(cli: Cli) -> None:
    written = cli.folder / "policy.yaml"
    written.write_text("version: 1\nidle_gpu: [{name: all}]\n", "utf-8")

    told = cli("digest", "--first", "--policy", str(written))

    assert told.status == Exit.BAD_INPUT
    assert "no default channel" in told.err
    assert not (cli.folder / "ledger.db").exists(), "nothing was begun"


def test_a_declared_discount_is_on_the_page(cli: Cli) -> None:
    text = "version: 1\nidle_gpu: [{name: all}]\nprices: [{cloud: aws, discount: 30%}]\n"
    written, page = cli.folder / "policy.yaml", cli.folder / "waste.html"
    written.write_text(text, "utf-8")

    told = cli("scan", "--html", str(page), "--policy", str(written), "--json", ledger=False)

    total = told.json["total"]
    (listed,) = [each for each in total["idle_cost"] if each["currency"] == "USD"]
    (net,) = [each for each in total["idle_cost_effective"] if each["currency"] == "USD"]
    assert 0 < float(net["amount"]) < float(listed["amount"])
    assert total["without_effective"] > 0, "capacity that is reserved has no discount"
    priced = [each for each in told.json["instances"] if each["effective_price"] is not None]
    assert {each["effective_price"]["source"] for each in priced} == {"discount"}
    assert f"{float(net['amount']):,.2f} USD" in page.read_text("utf-8")


def test_a_page_that_cannot_be_written_is_said_before_anything_is_read(cli: Cli) -> None:
    told = cli("scan", "--html", "nowhere/waste.html", ledger=False)

    assert told.status == Exit.BAD_INPUT
    assert "nowhere/waste.html: cannot be written" in told.err
