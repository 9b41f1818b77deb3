"""The published JSON Schemas accept what the loader accepts, and refuse forms that it refuses."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.policy.schema import SchemaFile
from costguard.policy.documents.loader import check_policy
from costguard.policy.schema.documents import FILES, schema_of
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain
from costguard.ports import PolicyText

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
FOLDERS = ("infra/config-repo", "shared/costguard/cli/demo/demo-policy")
NAMED = re.compile(r"# ((?:policies/|tests/)?[a-z]+\.yaml)\n")


@cache
def validator(file: str) -> Draft202012Validator:
    schema = schema_of(file)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def as_json(text: str) -> Any:
    document = read_yaml("x.yaml", text)
    assert document.root is not None
    return json.loads(json.dumps(plain(document.root)))


def kind_of(path: str) -> str:
    folder = path.partition("/")[0]
    return folder if folder in {"policies", "tests"} else Path(path).stem


SHIPPED = [
    (kind_of(str(path.relative_to(ROOT / folder))), path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.yaml"))
    if not path.is_relative_to(ROOT / folder / ".github")
]
SHIPPED += [
    (kind_of(named[1]) if (named := NAMED.match(block)) else "costguard", block, f"block {index}")
    for index, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
]


@pytest.mark.parametrize(("file", "text"), [row[:2] for row in SHIPPED], ids=[row[2] for row in SHIPPED])
def test_every_shipped_example_is_accepted(file: str, text: str) -> None:
    errors = [f"{list(error.path)}: {error.message[:200]}" for error in validator(file).iter_errors(as_json(text))]

    assert errors == []


RULE = "version: 1\nidle_gpu: [{{name: a, {}}}]\n"
WRONG = (
    "version: 2\nidle_gpu: [{name: a}]\n",
    "mode: observe\nidle_gpu: [{name: a}]\n",
    "version: 1\nmdoe: observe\nidle_gpu: [{name: a}]\n",
    "version: 1\nmode: destroy\nidle_gpu: [{name: a}]\n",
    "version: 1\nidle_gpu: [{mode: observe}]\n",
    RULE.format("idle_when_all: {lasting: 24}"),
    RULE.format("idle_when_all: {every_gpu_max_below: 0.05}"),
    RULE.format("idle_when_all: {network_max_below: 50}"),
    RULE.format("idle_when_all: {power_max_below: 80}"),
    RULE.format("then: []"),
    RULE.format("then: [destroy]"),
    RULE.format("then: [{stop: {after: 24h}}]"),
    RULE.format("then: warn"),
    RULE.format("safety: {actions_per_day: ten}"),
    RULE.format("safety: {actions_per_day: -1}"),
    RULE.format("safety: {hourly_cost_stopped_per_day: [200]}"),
    RULE.format("safety: {hourly_cost_stopped_per_day: []}"),
    RULE.format("safety: {local_disk: maybe}"),
    RULE.format("safety: {fleet_share_per_day: 10}"),
    RULE.format("applies_when_all: {}"),
    RULE.format("applies_when_all: {clouds: [azure]}"),
    RULE.format("applies_when_all: {regions: us-east-1}"),
    RULE.format("applies_when_all: {regions: []}"),
    RULE.format('applies_when_all: {instance_types: ["a b"]}'),
    RULE.format("applies_when_all: {billing: [free]}"),
    RULE.format("except_when_any: []"),
    "version: 1\naccounts: [{cloud: aws, id: 111122223333, regions: all}]\nidle_gpu: [{name: a}]\n",
    'version: 1\naccounts: [{cloud: aws, id: "111122223333"}]\nidle_gpu: [{name: a}]\n',
    'version: 1\naccounts: [{cloud: aws, id: "111122223333", regions: []}]\nidle_gpu: [{name: a}]\n',
    "version: 1\ncalendar: {zone: UTC}\nidle_gpu: [{name: a}]\n",
    "version: 1\ncalendar: {zone: UTC, hours: 10-18}\nidle_gpu: [{name: a}]\n",
    'version: 1\nnotify: {default: "#gpu"}\nidle_gpu: [{name: a}]\n',
    "version: 1\nprices: [{cloud: aws, instance_types: [p5.*], hourly: 38}]\nidle_gpu: [{name: a}]\n",
    "version: 1\nbudgets: [{name: a, monthly: 5000}]\n",
    "version: 1\nbudgets: [{name: a, monthly: 5000 USD, at: {100: [warn]}}]\n",
    "version: 1\nbudgets: [{name: a, monthly: 5000 USD, at: {100%: [explode]}}]\n",
    "version: 1\nkms_rotation: [{name: a, rotate_every: 90}]\n",
    "version: 1\nkms_rotation: [{name: a, means: [magic]}]\n",
    "version: 1\nnetwork_audit: [{name: a}]\n",
    "version: 1\nnetwork_audit: [{name: a, forbid: [everything]}]\n",
    "version: 1\nnetwork_audit: [{name: a, forbid: [public_ip], ports: [70000]}]\n",
    "version: 1\nnetwork_audit: [{name: a, forbid: [public_ip], trusted: [everybody]}]\n",
    'version: 1\nidle_gpu: [{name: a}]\nexceptions: [{owner: a, reason: b, approver: c, expires: "2026-12-01"}]\n',
    "version: 1\nidle_gpu: [{name: a}]\nowners: [{owns: {tags: {team: a}}}]\n",
)


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_form_is_refused_as_the_loader_refuses_it(text: str) -> None:
    assert check_policy(PolicyText({"costguard.yaml": text}, "r"))[0] is None

    assert list(validator("costguard").iter_errors(as_json(text)))


@pytest.mark.parametrize("file", FILES)
def test_every_key_is_explained(file: str) -> None:
    """Editors show it beside the key."""
    for name, model in schema_of(file)["$defs"].items():
        assert model["description"], name
        assert all(key["description"] for key in model["properties"].values()), name
        assert model["additionalProperties"] is False


def test_the_command_prints_each(capfd: pytest.CaptureFixture[str]) -> None:
    assert [each.value for each in SchemaFile] == list(FILES)
    assert run(["policy", "schema", "owners"]) == Exit.OK
    assert json.loads(capfd.readouterr().out) == schema_of("owners")
