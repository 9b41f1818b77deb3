"""`python -m tests.schemas [--check]`: write the schema files of JSON answers from the shapes that the code declares.

`costguard.report.*.shapes` are typed dictionaries: mypy holds the functions that make the answers to them, pydantic
makes the schemas. With `--check` nothing is written, and files that are not what the shapes say are named.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from costguard.report.backtest.shapes import BackTest
from costguard.report.budget.shapes import Budgets
from costguard.report.doctor.shapes import Doctor
from costguard.report.keys.shapes import Keys
from costguard.report.network.shapes import Networks
from costguard.report.page.shapes import Report
from costguard.report.plan.shapes import Cases, Plan, Rollout, Shadows, Why
from costguard.report.policy.shapes import PolicyDiff, PolicyExplain, PolicyPlan, PolicyTest
from costguard.report.savings.shapes import DeployCost, Explained, Savings
from costguard.report.waste.shapes import Waste

FOLDER = Path(__file__).parents[1] / "shared/costguard/report/schemas"
ANSWERS: Mapping[str, tuple[str, Any]] = {
    "backtest": ("costguard policy backtest --json", BackTest),
    "budgets": ("costguard budgets --json", Budgets),
    "cases": ("costguard cases --json", Cases),
    "deploy_cost": ("costguard deploy --cost --json", DeployCost),
    "doctor": ("costguard doctor --json", Doctor),
    "keys": ("costguard keys --json", Keys),
    "networks": ("costguard networks --json", Networks),
    "plan": ("costguard plan --json", Plan),
    "policy_diff": ("costguard policy diff --json", PolicyDiff),
    "policy_explain": ("costguard policy explain --json", PolicyExplain),
    "policy_plan": ("costguard policy plan --json", PolicyPlan),
    "policy_test": ("costguard policy test --json", PolicyTest),
    "report": ("costguard report --json", Report),
    "savings": ("costguard savings --json", Savings | Explained),
    "scan": ("costguard scan --json", Waste),
    "rollout": ("costguard rollout --json", Rollout),
    "shadows": ("costguard shadows --json", Shadows),
    "why": ("costguard why --json", Why),
}
_INNERMOST = re.compile(r"[\[{][^\[\]{}]*[\]}]")  # said in one line, where it is short
_LONG = 160
_CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class _Short(GenerateJsonSchema):
    """Without a title a field, which would say its name again; null beside a type in one line."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as the library calls it
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        inner = self.generate_inner(schema["schema"])
        if "enum" in inner:
            return {"enum": [*inner["enum"], None]}
        if "type" in inner:
            return {**inner, "type": [inner["type"], "null"]}
        return super().nullable_schema(schema)


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of an answer."""
    title, shape = ANSWERS[name]
    # A list, as pydantic gives a configuration to what holds typed dictionaries, and refuses it for one alone.
    several: Any = GenericAlias(list, (shape,))
    made = TypeAdapter(several, config=_CONFIG).json_schema(schema_generator=_Short)
    defined = made.get("$defs", {})
    for part in defined.values():
        part.pop("title", None)
    top = made["items"]
    if "$ref" in top:
        top = defined.pop(top["$ref"].removeprefix("#/$defs/"))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made by `python -m tests.schemas` from the shapes in costguard.report; not edited by hand.",
        "title": title,
        **top,
        **({"$defs": defined} if defined else {}),
    }


def text_of(name: str) -> str:
    """The schema as its file has it."""
    text = json.dumps(schema_of(name), indent=2, ensure_ascii=False)
    text = re.sub(r"(\\n)+", " ", text)  # of docstrings
    return _INNERMOST.sub(lambda found: " ".join(found[0].split()) if len(found[0]) < _LONG else found[0], text) + "\n"


def outdated() -> list[Path]:
    """Files that are missing, or are not what the shapes say, or belong to no answer."""
    made = {FOLDER / f"{name}.schema.json": text_of(name) for name in ANSWERS}
    wrong = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return sorted([*wrong, *(set(FOLDER.glob("*.schema.json")) - made.keys())])


def main() -> int:
    """Write the files, or with `--check` name those that are out of date and return 1."""
    options = argparse.ArgumentParser(prog="python -m tests.schemas", description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; 1 where a file is out of date")
    if options.parse_args().check:
        wrong = outdated()
        sys.stdout.writelines(f"{path.name} is not what the shapes say\n" for path in wrong)
        return 1 if wrong else 0
    for name in ANSWERS:
        (FOLDER / f"{name}.schema.json").write_text(text_of(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
