"""`costguard history export` over the clouds' own wires: it goes on where it was cut short, and is replayed."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.cli_sandbox import Cli
from tests.scenario.stage import START, idle_machine

from cloudstand.aws.core.server import Refused
from cloudstand.world import workload
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.sandbox.running import Sandbox

POLICY = """\
version: 1
idle_gpu:
  - name: research
    idle_when_all: {lasting: 3h, every_gpu_max_below: 5%}
    then: [warn, {stop: {wait: 2h}}]
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    fleet = (
        idle_machine("notebook", tags={"team": "nlp"}),
        idle_machine("trainer", does=workload.busy()),
        idle_machine("lab", cloud="alibaba"),
        idle_machine("render", cloud="tencent"),
    )
    with Sandbox.start(fleet, START) as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(sandbox, tmp_path, capfd)


def rows(path: Path) -> list[dict[str, str]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def test_an_export_that_was_cut_short_goes_on_where_it_was(cli: Cli, tmp_path: Path) -> None:
    """One cloud refuses its metrics: the other's days are kept, and are not asked for a second time."""
    out = tmp_path / "history"
    refused = Refused("cloudwatch", "GetMetricData", "AccessDeniedException", "You are not authorized.", region=None)
    cli.sandbox.gateway.refused.append(refused)
    try:
        first = cli("history", "export", "--days", "2", "--out", str(out), ledger=False)
    finally:
        cli.sandbox.gateway.refused.clear()

    assert first.status == Exit.GAPS
    assert "2026-02-28" in first.out
    assert {path.name.split("_")[1] for path in out.glob("*.csv.gz")} == {"alibaba", "tencent"}
    written = {path.name: path.stat().st_mtime_ns for path in out.glob("*.csv.gz")}

    again = cli("history", "export", "--days", "2", "--out", str(out), "--json", ledger=False)
    assert again.status == Exit.OK
    assert (again.json["machines"], again.json["kept"], again.json["gaps"]) == (4, len(written), [])
    assert again.json["written"] >= 2
    assert {name: (out / name).stat().st_mtime_ns for name in written} == written

    once_more = cli("history", "export", "--days", "2", "--out", str(out), "--json", ledger=False)
    assert (once_more.json["written"], once_more.json["kept"]) == (0, again.json["kept"] + again.json["written"])
    journal = [json.loads(line)["part"] for line in (out / "journal.jsonl").read_text("utf-8").splitlines()]
    assert sorted(journal) == sorted(path.name for path in out.glob("*.csv.gz"))


def test_what_is_exported_is_the_documented_csv_and_is_replayed(
    cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "history"
    assert cli("history", "export", "--days", "2", "--out", str(out), ledger=False).status == Exit.OK

    machines = {row["name"]: row for row in rows(out / "instances.csv")}
    assert set(machines) == {"notebook", "trainer", "lab", "render"}
    assert json.loads(machines["notebook"]["tags"])["team"] == "nlp"
    (day,) = out.glob("history_aws_111122223333_us-east-1_2026-03-01.csv.gz")
    told = rows(day)
    assert list(told[0]) == ["time", "resource_id", "signal", "device", "value", "samples"]
    of_notebook = [row for row in told if row["resource_id"] == machines["notebook"]["resource_id"]]
    gpu = [row for row in of_notebook if row["signal"] == "gpu_percent"]
    assert [row["time"] for row in gpu] == [f"2026-03-01T{hour:02}:00:00Z" for hour in range(24)]
    assert {float(row["value"]) for row in gpu} == {0.0}

    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    assert run(["policy", "backtest", str(policy), "--history", str(out), "--json"]) == Exit.OK
    total = json.loads(capfd.readouterr().out)["new"]["total"]
    assert (total["machines"], total["stops"]) == (4, 3)
