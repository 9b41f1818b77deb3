"""A share of the simulation in the ordinary suite, and proofs that it is what it says: `python -m tests.simulation`."""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.bugs import BUGS
from tests.simulation.campaign import play, play_months
from tests.simulation.exhaustive import singles, try_named
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.hunt import last_seen, seeds_for
from tests.simulation.months import month
from tests.simulation.planting import Bug, Edit, PlantError, edited, plant
from tests.simulation.references import REFERENCES
from tests.simulation.replaying import replay
from tests.simulation.rules import load
from tests.simulation.scenario import scenario

from costguard.policy.documents.loader import load_policy

ROOT = Path(__file__).parents[2]


DIGESTS = """import sys
from tests.simulation.replaying import replay
print(*(replay(seed).digest for seed in sys.argv[1:]))"""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.simulation` in a process of its own."""
    return python("-m", "tests.simulation", *arguments)


def python(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    """Python in a process of its own."""
    return subprocess.run(  # noqa: S603 - our own modules
        [sys.executable, *arguments],
        cwd=ROOT,
        env={"PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_seed_of_the_share_breaks_a_rule() -> None:
    """What `python -m tests.simulation --seeds 1-500` begins with, which CI plays before the tests."""
    totals = play(range(1, 41))
    assert totals.violations == []
    assert totals.seeds == 40
    assert {"stop", "snapshot", "terminate", "warn"} <= set(totals.actions), (
        "a share in which nothing happens proves nothing"
    )
    assert len(totals.faults) >= 12


def test_no_month_of_the_share_breaks_a_rule() -> None:
    totals = play_months(range(1, 9))
    assert totals.violations == []
    assert {"stop", "warn"} <= set(totals.actions)
    assert len(totals.faults) >= 5


def test_two_processes_with_different_hash_seeds_see_the_same() -> None:
    seeds = ("3", "381", "b13", "w10")
    first, second = (python("-c", DIGESTS, *seeds, hash_seed=salt).stdout.split() for salt in ("1", "4242"))
    assert first == second
    assert len(set(first)) == len(seeds)


def test_a_seed_has_one_hash_whether_or_not_anybody_reads_its_trace() -> None:
    from tests.simulation.simulation import Simulation

    assert replay("7").digest == Simulation(scenario(7)).play().digest


def test_a_failing_seed_prints_the_command_that_replays_it() -> None:
    caught = command("--bugs", "no-grace", "--json")
    assert caught.returncode == 0, caught.stderr
    found = json.loads(caught.stdout)[0]
    assert 1 <= found["seed"] <= 2000
    replayed = command("--replay", str(found["seed"]), "--bug", "no-grace")
    assert replayed.returncode == 1
    assert found["violation"] in replayed.stdout
    assert "execute stop" in replayed.stdout
    assert re.search(r"^trace hash \w+$", replayed.stdout, re.MULTILINE)


def test_figures_for_machines() -> None:
    done = command("--seeds", "1-10", "--jobs", "1", "--json")
    figures = json.loads(done.stdout)
    assert (done.returncode, figures["seeds"], figures["violations"]) == (0, 14, [])  # two of budgets, two of settings
    assert figures["calls"] > figures["cloud_calls"] > 0


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_story_is_unbroken_without_faults(name: str) -> None:
    assert try_named(f"{name}:999999=LOST").violations == ()


@pytest.mark.parametrize("fault", [fault for fault in Fault if any(fault in kinds for kinds in FAULTS.values())])
def test_single_faults_of_a_short_story(fault: Fault) -> None:
    """One in forty of the exhaustive tries; all of them: `python -m tests.simulation --exhaustive`."""
    names = [name for name in singles() if name.startswith("spot:") and name.endswith(f"={fault.name}")][::40]
    assert names
    assert [(name, broken) for name in names for broken in map(str, try_named(name).violations)] == []


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_still_fits_the_source(bug: Bug) -> None:
    """Its text is there exactly once, and what comes out compiles."""
    for module in {edit.module for edit in bug.edits}:
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).read_text(encoding="utf-8")
        changed = edited(source, [edit for edit in bug.edits if edit.module == module])
        assert changed != source
        compile(changed, spec.origin, "exec")


def test_there_are_bugs_enough_and_each_has_a_name() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
    assert all(bug.rules for bug in BUGS)


def test_a_bug_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(PlantError):
        edited("if True:\n", [Edit("costguard.somewhere", "if False:", "if True:")])
    with pytest.raises(PlantError):
        plant(Bug("late", (1,), (Edit("costguard.ports", "x", "y"),)))


def test_the_policies_of_the_simulation_are_what_the_loader_makes_of_their_files() -> None:
    for drawn in (*map(scenario, range(40)), *map(month, range(25))):
        for version in (drawn.policy, *(change.version for change in drawn.changes)):
            if not version.broken:
                assert load(version.text()) == load_policy(version.text())


def test_the_page_of_rules_names_every_bug_and_only_checks_that_exist() -> None:
    page = (ROOT / "tests/simulation/README.md").read_text(encoding="utf-8")
    assert [bug.name for bug in BUGS if f"`{bug.name}`" not in page] == []
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/simulation/oracle").glob("*.py"))
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ") and line.count("|") == 4]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named
    assert sorted(name for name in named if f"def {name}(" not in code and f"class {name}" not in code) == []


def test_the_program_logs_again_once_seeds_are_played() -> None:
    """Figures are printed without its log lines; other tests of the same process want to read theirs."""
    play(range(1, 2))
    assert logging.getLogger("costguard").isEnabledFor(logging.CRITICAL)


def test_a_bug_is_looked_for_first_where_it_was_seen_last() -> None:
    seen = last_seen(
        "| `no-grace` | 13 | told |\n| `half-the-wait-before-a-mend` | s4 | told |\n| rule | check | bugs |\n"
    )
    assert seen == {"no-grace": 13, "half-the-wait-before-a-mend": 4}
    assert list(seeds_for("half-the-wait-before-a-mend", 5, seen)) == [4, 1, 2, 3, 5]
    assert list(seeds_for("no-grace", 3, seen)) == [13, 1, 2, 3]
    assert list(seeds_for("new", 3, seen)) == [1, 2, 3]
