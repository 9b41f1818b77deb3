"""What docs/policy.md shows of a change from edit to live is what git, the scripts of CI and the commands print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs_zh.in_step import facts_of
from tests.edit_to_live import PAGE, lived, shown

from costguard.cli.policy.init import starter_files

BLOCKS = shown(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(lived(BLOCKS, tmp_path_factory.mktemp("edit")))


def test_every_step_has_the_figures_that_the_page_shows(came: list[str]) -> None:
    assert [facts_of(block) for block in came] == [facts_of(block) for block in BLOCKS]


@pytest.mark.release
def test_every_step_is_as_the_page_shows_it_word_for_word(came: list[str]) -> None:
    """Where this fails and the change is meant: `python -m tests.edit_to_live`, and read the difference."""
    assert [block.splitlines() for block in came] == [block.splitlines() for block in BLOCKS]


@pytest.mark.release
def test_the_page_shows_all_that_a_reviewer_and_approvers_see() -> None:
    """So that no step is lost when the page is written anew."""
    page = "".join(BLOCKS)

    for seen in (
        "The policy is valid",
        "0 of 7 files; the policy means the same.",
        "5 tests: 5 passed, 0 failed.",
        "1 loosen, 0 tighten, 0 do neither.",
        "| its wait begins anew | 1 |",
        "### Back-test of a policy",
        "fix: write 1h if hours were meant",
        "as number 2 at oss://acme-policy/costguard",
        "[ Approve ]",
        "is noted. 1 more must agree",
        "Nothing was changed.",
        "U0456EFGH approves",
        "Approved by U0123ABCD, U0456EFGH.",
        ", published number 2.",
        "as number 3.",
    ):
        assert seen in page, seen


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What `policy init` writes, as files."""
    root = tmp_path / "policy"
    for name, text in starter_files(zone="none").items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("status", [1, 11])
def test_ci_fails_where_a_command_fails_and_not_where_something_loosens(repository: Path, status: int) -> None:
    """10 is for the reviewer to judge; whatever else is not 0 ends the check, wherever it comes."""
    steps = ("check", "fmt", "test", "diff", "plan", "backtest")
    (repository / "fleet.json").touch()
    (repository / "history").mkdir()

    def checked(ends: dict[str, int]) -> tuple[int, list[str]]:
        program = repository.parent / "bin" / "costguard"
        program.parent.mkdir(exist_ok=True)
        answers = "".join(f"{step}) status={ends.get(step, 0)};; " for step in steps)
        program.write_text(
            "#!/bin/sh\n"
            'echo "$2" >> asked; status=0\n'
            'if [ "$2" = backtest ]; then echo backtest > policy-backtest.md; fi\n'
            f'case "$2" in {answers}esac\n'
            "exit $status\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        (repository / "asked").unlink(missing_ok=True)
        done = subprocess.run(
            ["/bin/sh", "ci/check.sh", "../before"],
            cwd=repository,
            env={"PATH": f"{program.parent}:{os.defpath}"},
            capture_output=True,
            check=False,
        )
        return done.returncode, (repository / "asked").read_text(encoding="utf-8").split()

    assert checked({"diff": 10, "plan": 10}) == (0, list(steps))
    for number, step in enumerate(steps):
        ended, asked = checked({step: status})
        assert ended != 0, step
        assert asked == list(steps[: number + 1])


def test_the_scripts_need_no_more_than_a_plain_shell(repository: Path) -> None:
    dash = shutil.which("dash") or "/bin/sh"
    for script in sorted((repository / "ci").glob("*.sh")):
        assert subprocess.run([dash, "-n", str(script)], check=False).returncode == 0  # noqa: S603 - the script under test
