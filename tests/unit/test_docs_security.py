"""The threat model names tests that exist, and workflows and linters are as it says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def workflow(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text("utf-8"))


def test_every_threat_has_a_control_and_tests_that_exist() -> None:
    table = PAGE.partition("| threat | control | tests |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ") and "---" not in line]
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert len(rows) > 10
    for threat, control, tests in rows:
        named = re.findall(r"`(test_\w+)`", tests)
        assert control, threat
        assert named, threat
        assert [name for name in named if f"def {name}(" not in code] == [], threat


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit(path: Path) -> None:
    used = [line for line in path.read_text("utf-8").splitlines() if re.match(r"\s*(?:- )?uses:", line)]
    assert used
    for line in used:
        assert re.search(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # \S+$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_may_more_than_it_says(path: Path) -> None:
    """Nothing by default; writing and signing only in the jobs of a release that do nothing else."""
    told = workflow(path)
    assert told["permissions"] == {}
    assert "pull_request_target" not in told.get(True, told.get("on", {}))
    may = {name: job["permissions"] for name, job in told["jobs"].items()}
    for name, permissions in may.items():
        steps = json.dumps(told["jobs"][name]["steps"])
        if set(permissions.values()) != {"read"}:
            assert (path.stem, name) in {("release", "attest"), ("release", "publish"), ("release", "release")}
            assert "checkout" not in steps  # nothing of the repository runs where it may write or sign
        assert "secrets." not in steps


def test_both_scripts_of_the_checks_can_be_started() -> None:
    for name in ("run", "security"):
        assert os.access(ROOT / ".ci" / name, os.X_OK)
    assert ".ci/run" in json.dumps(workflow(ROOT / ".github/workflows/ci.yml"))


def test_the_baseline_of_secrets_names_files_of_this_project_alone() -> None:
    """No path of a machine, each row with its file, kind and hash, and why they are none."""
    baseline = json.loads((ROOT / ".secrets.baseline").read_text("utf-8"))
    assert baseline["why"]
    for row in baseline["audited"]:
        assert set(row) == {"file", "type", "hash"}
        assert not row["file"].startswith(("/", "~", ".."))
        assert re.fullmatch(r"[0-9a-f]{40}", row["hash"])


def test_every_rule_that_bandit_leaves_out_has_its_reason() -> None:
    lines = (ROOT / ".bandit.yaml").read_text("utf-8").splitlines()
    skipped = [line for line in lines if re.match(r"\s+- B\d{3}", line)]
    assert skipped
    assert all(re.search(r"- B\d{3} # .{10,}", line) for line in skipped)
