"""`costguard policy init` writes a repository that passes its own checks; `fmt` changes no meaning."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.policy_init import starter_files
from costguard.policy.formatting import formatted
from costguard.policy.loader import load_policy
from costguard.policy_sources.files import FilePolicySource

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "infra" / "config-repo"


def test_the_repository_holds_exactly_what_init_writes() -> None:
    """Where this fails: `costguard policy init infra/config-repo --force`, and delete what is too much."""
    there = {
        path.relative_to(STARTER).as_posix(): path.read_text(encoding="utf-8")
        for path in STARTER.rglob("*")
        if path.is_file()
    }

    assert there == starter_files()


def test_the_starter_passes_its_own_checks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "policy"

    assert run(["policy", "init", str(folder)]) == Exit.OK
    assert run(["policy", "check", str(folder)]) == Exit.OK
    assert run(["policy", "fmt", str(folder), "--check"]) == Exit.OK
    assert run(["policy", "test", "--policy", str(folder)]) == Exit.OK
    assert "3 tests: 3 passed, 0 failed." in capfd.readouterr().out
    assert stat.S_IMODE((folder / "ci" / "check.sh").stat().st_mode) & stat.S_IXUSR
    for name in (".github/workflows/policy.yml", ".gitlab-ci.yml"):
        text = (folder / name).read_text(encoding="utf-8")
        assert YAML(typ="safe").load(text)
        assert "sh ci/check.sh" in text


def test_nothing_is_overwritten_without_saying_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "owners.yaml").write_text("- {name: ours, owns: {tags: {team: a}}}\n", encoding="utf-8")

    assert run(["policy", "init", str(tmp_path)]) == Exit.BAD_INPUT
    assert "owners.yaml" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["owners.yaml"]

    assert run(["policy", "init", str(tmp_path), "--force", "--json"]) == Exit.OK
    assert json.loads(capfd.readouterr().out)["overwritten"] == ["owners.yaml"]
    assert run(["policy", "init", str(tmp_path)]) == Exit.OK  # what is the same is no loss


MESSY = """\
# at the top
version:   1
mode: 'observe'      # kept
idle_gpu:
- name:  "a"
  # before the ladder
  then: [ warn, {stop:  {wait: 24h} } ]

  applies_when_all: { tags: {team: "research"} }
# at the end
"""
NEAT = """\
# at the top
version: 1
mode: 'observe'      # kept
idle_gpu:
  - name: "a"
  # before the ladder
    then: [warn, {stop: {wait: 24h}}]

    applies_when_all: {tags: {team: "research"}}
# at the end
"""


def test_a_layout_keeps_comments_order_and_quotes() -> None:
    assert formatted("a.yaml", MESSY) == NEAT
    assert formatted("a.yaml", NEAT) == NEAT


@pytest.mark.parametrize("text", ["[]", "# why\n[]\n", "# a\n[ {a: b} ]   \n\n", "{a: 1}\n", "- 0.50\n- 1e3\n- no\n"])
def test_a_layout_is_stable_and_says_the_same(text: str) -> None:
    once = formatted("a.yaml", text)

    assert once is not None
    assert formatted("a.yaml", once) == once


def test_files_are_laid_out_only_when_asked_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "costguard.yaml"
    path.write_text(MESSY, encoding="utf-8")
    before = load_policy(FilePolicySource(tmp_path).read()).digest

    assert run(["policy", "fmt", str(tmp_path), "--check"]) == Exit.DUE
    assert path.read_text(encoding="utf-8") == MESSY
    assert "costguard.yaml: would be laid out anew" in capfd.readouterr().out

    assert run(["policy", "fmt", str(tmp_path)]) == Exit.OK
    assert path.read_text(encoding="utf-8") == NEAT
    assert load_policy(FilePolicySource(tmp_path).read()).digest == before
    assert run(["policy", "fmt", str(path), "--check"]) == Exit.OK


def test_an_invalid_policy_is_not_laid_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "costguard.yaml"
    path.write_text(MESSY.replace("version:   1", "version:   7"), encoding="utf-8")

    assert run(["policy", "fmt", str(path)]) == Exit.BAD_INPUT
    assert "version:   7" in path.read_text(encoding="utf-8")
    assert f"{path}:2:12: version" in capfd.readouterr().err
