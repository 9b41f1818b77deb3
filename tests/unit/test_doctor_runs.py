"""The doctor on a deployed set-up: do the functions run that the policy needs, and by this policy?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import NOW, policy, rule

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.actions import Verb
from costguard.domain.errors import LedgerError
from costguard.engine.doctor.settings import examine_runs
from costguard.engine.ledger.memory import Memory
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode, Step
from costguard.policy.model.policy import Policy
from costguard.policy.sections import SECTIONS, guards_in
from costguard.report.doctor.checks import Code, DoctorCheck, RunFault, RunTold
from costguard.report.doctor.views import check_lines

MINUTE = timedelta(minutes=1)
BOTH = policy(kms_rotation=(KeyRule("keys", Mode.OBSERVE, KeySelector()),))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    found = Memory.over(open_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}"))
    yield found
    found.store.close()


def ran(memory: Memory, guard: str, ago: timedelta, *, ends: bool = True, by: str = "policy-digest") -> None:
    runs, run_id = memory.runs.deciding_by(by), f"{guard}-{ago}"
    runs.begin(run_id, guard, NOW - ago)
    if ends:
        runs.finish(run_id, {}, NOW - ago + MINUTE)


def asked(memory: Memory, of: Policy = BOTH, *, shared: bool = True) -> DoctorCheck:
    (found,) = examine_runs(memory, of, NOW, shared=shared)
    return found


def test_functions_that_run_as_scheduled_are_in_order(memory: Memory) -> None:
    ran(memory, "idle_gpu", 40 * MINUTE)
    ran(memory, "kms_rotation", timedelta(hours=20))

    found = asked(memory)

    assert (found.code, found.facts["functions"]) == (Code.RUNS_RECENT, "idle_gpu, kms_rotation")
    assert found.facts["since"] == (NOW - timedelta(hours=20)).isoformat(timespec="minutes")


def test_a_function_that_never_ran_is_named_beside_one_that_does(memory: Memory) -> None:
    ran(memory, "idle_gpu", 40 * MINUTE)

    found = asked(memory)

    assert found.code is Code.RUNS_MISSED
    assert [(one.where, one.said) for one in found.details] == [("kms_rotation", RunTold(RunFault.NEVER_RAN))]


@pytest.mark.parametrize("guard", ["idle_gpu", "kms_rotation"])
def test_each_function_may_miss_two_runs_and_no_more(memory: Memory, guard: str) -> None:
    for name in guards_in(BOTH):
        ran(memory, name, SECTIONS[name].late_after if name == guard else MINUTE)
    assert asked(memory).code is Code.RUNS_RECENT


def test_one_that_has_not_run_for_hours_is_missed(memory: Memory) -> None:
    ran(memory, "idle_gpu", timedelta(hours=3, minutes=1))
    found = asked(memory, policy())

    assert found.code is Code.RUNS_MISSED
    assert found.details[0].said == RunTold(RunFault.NOT_LATELY, NOW - timedelta(hours=3, minutes=1))


def test_a_run_that_did_not_end_is_told_once_it_cannot_be_going_on(memory: Memory) -> None:
    ran(memory, "idle_gpu", timedelta(minutes=61), ends=False)
    found = asked(memory, policy())

    assert found.code is Code.RUNS_UNENDED
    assert found.details[0].said == RunTold(RunFault.DID_NOT_END, NOW - timedelta(minutes=61))


def test_a_run_that_may_still_go_on_is_in_order(memory: Memory) -> None:
    ran(memory, "idle_gpu", timedelta(minutes=14), ends=False)
    assert asked(memory, policy()).code is Code.RUNS_RECENT


def test_runs_by_another_policy_are_told(memory: Memory) -> None:
    ran(memory, "idle_gpu", MINUTE, by="0123456789abcdef")

    found = asked(memory, policy())

    assert found.code is Code.RUNS_OTHER_POLICY
    assert found.details[0].said == RunTold(RunFault.OTHER_POLICY, policy="0123456789ab")


def test_a_policy_that_waits_explains_runs_by_the_one_before(memory: Memory) -> None:
    runs = memory.runs.deciding_by("before", "bundle-1", "bundle-2")
    runs.begin("run", "idle_gpu", NOW - MINUTE)
    runs.finish("run", {}, NOW)
    assert asked(memory, policy()).code is Code.RUNS_RECENT


def test_a_wait_that_becomes_longer_as_runs_come_is_told_with_what_it_becomes(memory: Memory) -> None:
    for day in (3, 2, 1, 0):
        ran(memory, "idle_gpu", timedelta(days=day, minutes=10, seconds=day))
    ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=36)))

    found = asked(memory, policy(rule(ladder=ladder)))

    assert (found.code, found.details[0].where) == (Code.RUNS_STRETCH_WAITS, "research")
    told = found.details[0].said
    assert isinstance(told, RunTold)
    assert told.wait is not None
    assert (told.wait.every, told.wait.becomes) == (timedelta(hours=24), timedelta(hours=48))
    assert list(check_lines(found))[-1] == "research: stop: 36h becomes 48h with a run every 24h"


def test_waits_of_whole_runs_are_in_order_and_a_run_by_hand_changes_nothing(memory: Memory) -> None:
    for ago in (76, 52, 28, 25, 4):
        ran(memory, "idle_gpu", timedelta(hours=ago))
    assert asked(memory, policy()).code is Code.RUNS_RECENT


def test_a_daily_function_is_missed_once_a_day_and_three_hours_are_over(memory: Memory) -> None:
    for ago in (72, 48, 24):
        ran(memory, "idle_gpu", timedelta(hours=ago + 3))
    assert asked(memory, policy()).code is Code.RUNS_RECENT
    for ago in (72, 48, 24):
        ran(memory, "kms_rotation", timedelta(hours=ago + 3, minutes=1))
    assert asked(memory).code is Code.RUNS_MISSED


def test_two_runs_do_not_tell_how_often_they_come(memory: Memory) -> None:
    ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=36)))
    for ago in (24, 0):
        ran(memory, "idle_gpu", timedelta(hours=ago, minutes=1))
    assert asked(memory, policy(rule(ladder=ladder))).code is Code.RUNS_RECENT


def test_where_nothing_is_deployed_nothing_is_asked(memory: Memory) -> None:
    assert list(examine_runs(memory, policy(), NOW, shared=False)) == []
    assert asked(memory, policy()).code is Code.RUNS_NONE, "others can reach the ledger, and none did"
    ran(memory, "idle_gpu", MINUTE)
    assert asked(memory, policy(), shared=False).code is Code.RUNS_RECENT


def test_a_ledger_that_does_not_open_is_told_of_elsewhere() -> None:
    assert list(examine_runs(LedgerError("gone"), policy(), NOW, shared=True)) == []
