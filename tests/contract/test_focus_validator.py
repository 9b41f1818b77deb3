"""The savings export against the public validator of FOCUS: `focus-validator`, by `.ci/focus` in its own environment.

It has the rules of FOCUS 1.2; those of later versions it would fetch from the network, so they are not proven here.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.builders import policy, rule
from tests.savings_builders import saving
from tests.scenario.stage import CLOUDS, START, Stage, idle_machine

from costguard.cli.files import write_csv
from costguard.domain.actions import Verb
from costguard.engine.savings import realised_now
from costguard.report.savings.focus import FOCUS_VERSION, focus_rows
from costguard.report.tables import Table

VENV = Path(__file__).parents[2] / ".venv-ci-focus"
pytestmark = pytest.mark.skipif(
    not (VENV / "stamp").is_file(),
    reason="NOT PROVEN HERE: no validator of FOCUS; run .ci/focus (Python 3.12 or newer)",
)

MODEL = f"{FOCUS_VERSION}.0.1"  # the rules that the validator brings
WHAT_WE_KNOW = (  # of a price list, tags, commitments and the like these rows say nothing
    "SUB_ACCOUNT_SUPPORTED,REGION_SUPPORTED,BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED,"
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED"
)
NO_INVOICE = "InvoiceId-C-005-C"
"""Not null where a charge is on an invoice: the validator shows it for every null, and counts it in an alternative of
two, of which the other (null where there is no invoice) holds."""

# CSV names no types, and the validator would take account ids for numbers: what is meant is said here.
TYPED = """
import sys, polars
rows = polars.read_csv(sys.argv[1], infer_schema=False)
numbers = [name for name in rows.columns if name.endswith("Cost") or name == "PricingQuantity"]
rows.with_columns(polars.col(name).cast(polars.Float64) for name in numbers).write_parquet(sys.argv[2])
"""


ONE_OF_A_LIST = ("ChargeCategory", "ChargeClass", "ChargeFrequency", "ServiceCategory", "ServiceSubcategory")


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A machine stopped in the sandbox of each cloud and seen so for two days, and an address released, as one file."""
    tables = [_saved(tmp_path_factory.mktemp(cloud), cloud) for cloud in CLOUDS]
    return Table("", tables[0].columns, tuple(row for table in tables for row in table.rows))


def _saved(folder: Path, cloud: str) -> Table:
    stage = Stage(folder, idle_machine(cloud=cloud), under=policy(rule()))
    stage.days(range(5))
    machine = stage.ref()
    address = replace(machine, kind="address", native_id="eip-1")
    stage.memory.savings.record(saving(subject=address, at=START, verb=Verb.MEND, case_id="of-an-address"))
    now = stage.clock.now()
    table = focus_rows(realised_now(stage.memory, now, owner="", guard=""), START, now)
    stage.close()
    return table


def test_every_row_passes_the_public_validator(export: Table, tmp_path: Path) -> None:
    """Machines and addresses apart: of values from a list it misses a wrong one among right ones."""
    names = [column.key for column in export.columns]
    kinds = {row[names.index("ServiceCategory")] for row in export.rows}
    assert kinds == {"Compute", "Networking"}
    for kind in kinds:
        rows = tuple(row for row in export.rows if row[names.index("ServiceCategory")] == kind)
        assert len(rows) >= len(CLOUDS)
        assert all(len({row[names.index(name)] for row in rows}) == 1 for name in ONE_OF_A_LIST)

        assert failures(Table("", export.columns, rows), tmp_path) == {NO_INVOICE}


@pytest.mark.parametrize(
    ("column", "value"),
    [("ChargeCategory", "Saving"), ("ServiceSubcategory", "GPU"), ("BillingCurrency", "")],
)
def test_the_validator_does_find_what_is_wrong(export: Table, tmp_path: Path, column: str, value: str) -> None:
    at = [each.key for each in export.columns].index(column)
    wrong = tuple((*row[:at], value, *row[at + 1 :]) for row in export.rows)

    found = failures(Table("", export.columns, wrong), tmp_path)

    assert any(name.startswith(f"{column}-C-") for name in found)


def failures(table: Table, folder: Path) -> set[str]:
    """The rules that do not hold; the validator reads a list of currencies beside its own code, so it runs there."""
    csv, typed, told = folder / "focus.csv", folder / "focus.parquet", folder / "told.xml"
    write_csv(str(csv), table)
    python = VENV / "bin" / "python"
    subprocess.run([python, "-c", TYPED, csv, typed], check=True, timeout=120)  # noqa: S603 - our own words
    (beside,) = VENV.glob("lib/python3.*/site-packages")
    words = (
        "--data-file",
        typed,
        "--validate-version",
        MODEL,
        "--block-download",
        "--applicability-criteria",
        WHAT_WE_KNOW,
    )
    to = ("--output-type", "unittest", "--output-destination", told)
    subprocess.run(  # noqa: S603 - our own words
        [python, "-m", "focus_validator.main", *words, *to], cwd=beside, check=False, capture_output=True, timeout=300
    )
    suites = ET.parse(told)  # noqa: S314 - written by the validator a moment ago
    assert len(suites.findall(".//testcase")) > 500
    return {str(each.get("name")) for each in suites.iter("failure")}
