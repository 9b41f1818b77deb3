"""Commands that take a policy take one in git, of the repository that the current folder is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW
from tests.git_rig import Repository

from costguard.bootstrap import read_policy, run_function
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.settings import Secret, Settings

MAIN = b"""\
version: 1
mode: observe
notify: {default: "slack:#gpus", answers: {slack_team: T0123ABCD, approvers: [U0APPROV1, U0APPROV2]}}
idle_gpu:
  - name: research
    then: [warn, {stop: {wait: 24h}}]
"""
LOOSER = MAIN.replace(b"24h", b"1h")
TESTS = b"""\
version: 1
tests:
  - name: what is not measured is left alone
    at: "2026-03-10T12:30:00Z"
    instance: {cloud: aws, account: "111122223333", region: us-east-1, type: g5.xlarge}
    expect: {verdict: unmeasured}
"""


class Watch:
    def now(self) -> Any:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """`main~1` says 24 hours, `main` says 1; the folder `checkout` is as `main~1` was."""
    made = Repository.made(tmp_path / "here")
    made.commit({"policy/costguard.yaml": MAIN, "policy/tests/a.yaml": TESTS})
    made.commit({"policy/costguard.yaml": LOOSER})
    (made.folder / "checkout").mkdir()
    (made.folder / "checkout" / "costguard.yaml").write_bytes(MAIN)
    monkeypatch.chdir(made.folder)
    return made


def test_a_check_names_the_commit(here: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    commit = here.git("rev-parse", "main")

    assert run(["policy", "check", "git:main:policy"]) == Exit.OK
    assert f"git {commit}" in capfd.readouterr().out
    assert run(["policy", "check", "git:main:policy", "--json"]) == Exit.OK
    assert json.loads(capfd.readouterr().out)["commit"] == commit
    assert run(["policy", "check", "checkout", "--json"]) == Exit.OK
    assert json.loads(capfd.readouterr().out)["commit"] is None


def test_two_revisions_or_a_revision_and_a_checkout_are_compared(
    here: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    assert here.folder.is_dir()
    assert run(["policy", "diff", "git:main~1:policy", "git:main:policy"]) == Exit.DUE
    assert "warn → stop 1h" in capfd.readouterr().out
    assert run(["policy", "diff", "git:main~1:policy", "checkout"]) == Exit.OK


def test_the_option_and_the_setting_name_a_commit_too(here: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests beside the policy are those of its commit: the folder has none."""
    program = Program(settings=lambda: Settings(policy="git:main~1:policy"))

    for arguments, given in (([], program), (["--policy", "git:main~1:policy"], None)):
        assert run(["policy", "test", *arguments, "--json"], program=given) == Exit.OK
        assert json.loads(capfd.readouterr().out)["tests"][0]["path"] == "git:main~1:policy/tests/a.yaml"
    (here.folder / "machine.yaml").write_text(
        'instance: {cloud: aws, account: "111122223333", region: us-east-1, type: g5.xlarge}\n', encoding="utf-8"
    )
    assert run(["policy", "explain", "machine.yaml", "--policy", "git:main:policy", "--json"]) == Exit.OK
    assert json.loads(capfd.readouterr().out)["rules"][0]["name"] == "research"


def test_a_back_test_reads_the_policy_of_a_commit(here: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    assert here.folder.is_dir()
    assert run(["policy", "backtest", "git:gone", "--history", "none"]) == Exit.BAD_INPUT
    assert "git finds no commit 'gone'" in capfd.readouterr().err


def test_a_run_here_decides_by_a_commit(here: Repository, tmp_path: Path) -> None:
    """As `costguard invoke` runs it; a function on a host has refused the setting already."""
    settings = Settings(policy="git:main:policy", ledger=Secret(f"sqlite:///{tmp_path / 'ledger.sqlite3'}"))

    done = run_function("digest", "run-1", None, settings, Watch())

    assert here.folder.is_dir()
    assert done["policy"] == read_policy(settings).digest


def test_a_commit_is_not_laid_out_anew(here: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    assert here.folder.is_dir()
    assert run(["policy", "fmt", "git:main:policy", "--check"]) == Exit.OK
    assert run(["policy", "fmt", "git:main:policy"]) == Exit.BAD_INPUT
    assert "a commit is not written to" in capfd.readouterr().err


def test_publishing_a_commit_notes_it(here: Repository, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = Program(settings=lambda: Settings(policy=f"published:{tmp_path / 'published'}"), clock=Watch())
    ledger = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"

    def told(*arguments: str) -> Any:
        assert run(["policy", *arguments, "--ledger", ledger, "--json"], program=program) == Exit.OK
        return json.loads(capfd.readouterr().out)

    told("publish", "git:main~1:policy", "--by", "ci", "--note", "PR 3")
    assert (
        told("publish", "git:main:policy", "--by", "ci")["published"]["note"] == f"git {here.git('rev-parse', 'main')}"
    )
    assert told("history")["publications"][0]["note"] == "PR 3"


def test_a_host_that_is_not_listed_is_told_with_the_setting(
    here: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    assert here.folder.is_dir()
    for command in (["check"], ["diff", "checkout"], ["publish"], ["fmt", "--check"]):
        assert run(["policy", *command, "git+https://github.com/acme/policy@main"]) == Exit.BAD_INPUT
        assert "set COSTGUARD_GIT_HOSTS" in capfd.readouterr().err
