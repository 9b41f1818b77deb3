"""The list of explained survivors fits the source and the last recorded run, without running a mutant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mutation.explained import (
    LEAST_KILLED_PERCENT,
    MOST_EXPLAINED_PERCENT,
    Survivor,
    differences,
    explained,
    last_run,
    stale,
)
from tests.mutation.mutants import Mutant
from tests.mutation.tree import digests, judges, sources

REAL = explained()[0]


def test_every_explained_line_still_stands_in_its_function() -> None:
    assert stale(explained()) == []


def test_no_survivor_is_explained_twice() -> None:
    assert [key for key, times in Counter(each.key for each in explained()).items() if times > 1] == []


def test_few_mutants_are_explained_away() -> None:
    listed = sum(each.times for each in explained())
    assert listed <= last_run()["mutants"] * MOST_EXPLAINED_PERCENT / 100


def test_the_recorded_run_left_only_what_is_explained() -> None:
    """An explanation goes with its line; what survives in lines that came since, the next run tells (`--check`)."""
    run = last_run()
    assert run["killed_percent"] >= LEAST_KILLED_PERCENT
    known = [each for each in explained() if each.module in run["modules"]]  # of a module that came since, nothing ran
    assert run["survived"] + run["timeouts"] >= sum(each.times for each in known)
    assert run["mutants"] == run["killed"] + run["survived"] + run["timeouts"]
    for count in ("mutants", "killed", "survived", "timeouts"):
        assert run[count] == sum(module[count] for module in run["modules"].values())


def test_the_recorded_run_judged_both_packages() -> None:
    packages = {module.partition("/")[0] for module in last_run()["modules"]}
    assert packages == {"cases", "planning"}


@pytest.mark.parametrize(
    ("entry", "misfit"),
    [
        (replace(REAL, module="cases/gone.py"), "no such module"),
        (replace(REAL, function="gone"), "no such function"),
        (replace(REAL, line="if gone:"), "the line is gone"),
        (replace(REAL, times=99), "the line is gone"),
        (replace(REAL, why=" "), "explains nothing"),
        (replace(REAL, becomes=REAL.line), "explains nothing"),
    ],
)
def test_an_entry_that_does_not_fit_is_told(entry: Survivor, misfit: str) -> None:
    (told,) = stale([entry])
    assert misfit in told


def test_a_survivor_is_known_by_its_words_and_its_number() -> None:
    one = Survivor("cases/case.py", "ladder", "a is b", "a is not b", "they are the same")
    lives = Mutant("cases/case.py", "ladder", "survived", "a is b", "a is not b")
    other = replace(lives, becomes="None")
    killed = replace(lives, status="killed")
    assert differences([lives, killed], [one]) == ([], [])
    assert differences([lives, other], [one]) == ([("cases/case.py", "ladder", "a is b", "None")], [])
    assert differences([lives, lives], [one]) == ([one.key], [])
    assert differences([killed], [one]) == ([], [one.key])


@pytest.mark.parametrize("status", ["survived", "timeout", "no tests", "suspicious", "segfault"])
def test_only_a_failing_test_kills(status: str) -> None:
    assert not Mutant("cases/case.py", "ladder", status).killed


def test_a_digest_is_of_what_the_code_does(tmp_path: Path) -> None:
    texts = {
        "plain": "def f(x):\n    return x > 1\n",
        "said": '"""Told."""\n# why\ndef f(x):\n    """Told."""\n    return (x > 1)\n',
        "moved": "def f(x):\n    return x >= 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    found = digests({name: tmp_path / name for name in texts})
    assert found["plain"] == found["said"]
    assert found["plain"] != found["moved"]


def test_the_mutated_modules_and_their_judges_are_found() -> None:
    assert {"cases/advance.py", "planning/rails.py"} <= set(sources())
    assert {"tests/unit/test_cases.py", "tests/unit/test_planning.py", "tests/builders.py"} <= set(judges())
