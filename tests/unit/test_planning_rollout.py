"""How far a rollout lets each team and account go: what is not known, or holds no more, leaves the gentler mode."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from tests.builders import DAY, NOW, fact, instance, policy, rule, shard_facts

from costguard.domain.actions import Verb
from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.common import Mode
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.planning.rollout import (
    NO_ROLLOUT,
    Rollout,
    RolloutStanding,
    announcement_id,
    announcement_ids,
    begins,
    mode_of,
    standings,
)
from costguard.planning.shadows import ShadowStanding, ShadowTally, TeamTally
from costguard.policy.model.policy import Policy, RolloutEntry, RolloutStep, Shadows
from costguard.policy.model.working_time import WorkingCalendar

HERE = "111122223333"
WORKDAY = (time(9), time(17))
TODAY = NOW.date()
WARN = RolloutStep(Mode.WARN, TODAY - 14 * DAY)
ENFORCE = RolloutStep(Mode.ENFORCE, TODAY)
ASKS = replace(ENFORCE, regret_below=Decimal("0.10"), in_shadow="sooner")
SOONER = rule(name="sooner")


def under(*entries: RolloutEntry, **changes: object) -> Policy:
    return policy(rollout=entries, shadows=Shadows((SOONER,)), **changes)


def nlp(*steps: RolloutStep) -> RolloutEntry:
    return RolloutEntry("nlp", steps=steps)


def told(of: Policy, at: datetime = NOW - 2 * DAY) -> dict[str, datetime]:
    return dict.fromkeys(announcement_ids(of), at)


def tally(*by: TeamTally, at: datetime = NOW - DAY, digest: str = SOONER.digest) -> ShadowStanding:
    return ShadowStanding("idle_gpu", "sooner", digest, NOW - 20 * DAY, at, compared=9, by=by)


def of_nlp(regretted: int, fine: int) -> TeamTally:
    return TeamTally("nlp", HERE, ShadowTally(busy_within_a_day=regretted, busy_later=fine))


def standing(of: Policy, *shadows: ShadowStanding, sent: dict[str, datetime] | None = None) -> RolloutStanding:
    (found,) = standings(of, shadows, told(of) if sent is None else sent, NOW)
    return found


def test_without_a_rollout_a_policy_means_what_it_meant() -> None:
    assert NO_ROLLOUT.of("nlp", HERE) == (Mode.ENFORCE, None)
    assert mode_of("nlp", HERE, policy(), (), {}, NOW) is Mode.ENFORCE
    assert mode_of("nlp", HERE, policy(mode=Mode.WARN), (), {}, NOW) is Mode.WARN


@pytest.mark.parametrize(
    ("now", "mode"),
    [(-15, Mode.OBSERVE), (-14, Mode.WARN), (-1, Mode.WARN), (0, Mode.ENFORCE), (300, Mode.ENFORCE)],
)
def test_a_step_is_taken_on_its_day_and_not_sooner(now: int, mode: Mode) -> None:
    of, midnight = under(nlp(WARN, ENFORCE)), datetime(NOW.year, NOW.month, NOW.day, tzinfo=timezone.utc)
    sent = told(of, NOW - 30 * DAY)
    assert mode_of("nlp", HERE, of, (), sent, midnight + now * DAY) is mode
    assert mode_of("nlp", HERE, of, (), sent, midnight + now * DAY - timedelta(seconds=1)) <= mode


def test_a_day_begins_where_the_calendar_lives() -> None:
    zone = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), *WORKDAY)
    assert begins(RolloutStep(Mode.WARN, date(2026, 12, 7)), policy(calendar=zone)) == datetime(
        2026, 12, 6, 16, tzinfo=timezone.utc
    )


def test_what_no_entry_covers_is_only_observed() -> None:
    of = under(nlp(WARN, ENFORCE))
    found = Rollout(tuple(standings(of, (), told(of), NOW)))
    mode, why = found.of("vision", HERE)
    assert mode is Mode.OBSERVE
    assert why is not None
    assert why.code is ReasonCode.ROLLOUT_UNLISTED
    assert found.of("", HERE)[0] is Mode.OBSERVE
    assert found.of("nlp", HERE) == (Mode.ENFORCE, None)


def test_the_rest_is_whatever_no_other_entry_covers() -> None:
    of = under(RolloutEntry("*", steps=(WARN, ENFORCE)), nlp(WARN))
    assert mode_of("vision", HERE, of, (), told(of), NOW) is Mode.ENFORCE
    assert mode_of("nlp", HERE, of, (), told(of), NOW) is Mode.WARN, "the rest says nothing of who has an entry"


def test_of_all_entries_that_cover_a_machine_the_gentlest_counts() -> None:
    of = under(nlp(WARN, ENFORCE), RolloutEntry(account=HERE, steps=(WARN,)))
    assert mode_of("nlp", HERE, of, (), told(of), NOW) is Mode.WARN
    assert mode_of("nlp", "444455556666", of, (), told(of), NOW) is Mode.ENFORCE
    both = under(RolloutEntry("nlp", HERE, (WARN,)), nlp(WARN, ENFORCE))
    assert mode_of("nlp", HERE, both, (), told(both), NOW) is Mode.WARN


def test_a_step_nobody_was_told_of_is_not_taken() -> None:
    of = under(nlp(WARN, ENFORCE))
    only_first = {announcement_id(of.rollout[0], WARN): NOW - 14 * DAY}
    found = standing(of, sent=only_first)
    assert (found.allowed, found.step, found.announce) == (Mode.WARN, ENFORCE, True)
    assert found.held is not None
    assert found.held.code is ReasonCode.ROLLOUT_UNTOLD


def test_it_waits_a_day_from_the_proven_delivery() -> None:
    of = under(nlp(WARN, ENFORCE))
    first, second = announcement_ids(of)
    late = standing(of, sent={first: NOW - 14 * DAY, second: NOW - timedelta(hours=23)})
    assert late.allowed is Mode.WARN
    assert late.held is not None
    assert late.held.code is ReasonCode.ROLLOUT_TOLD
    assert standing(of, sent={first: NOW - 14 * DAY, second: NOW - DAY}).allowed is Mode.ENFORCE


def test_days_that_are_long_past_skip_no_step() -> None:
    """Published late: the first step is announced and lived, and only then the second one announced."""
    old = (replace(WARN, since=TODAY - 60 * DAY), replace(ENFORCE, since=TODAY - 30 * DAY))
    of = under(nlp(*old))
    first, _ = announcement_ids(of)
    fresh = standing(of, sent={})
    assert (fresh.allowed, fresh.step, fresh.announce) == (Mode.OBSERVE, old[0], True)
    lived = standing(of, sent={first: NOW - 2 * DAY})
    assert (lived.allowed, lived.step, lived.announce) == (Mode.WARN, old[1], True)


@pytest.mark.parametrize(
    ("shadows", "code"),
    [
        ((), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(),), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(of_nlp(0, 9)),), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(TeamTally("vision", HERE, ShadowTally(busy_later=100))),), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(of_nlp(0, 20), at=NOW - 8 * DAY),), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(of_nlp(0, 20), digest="of a rule that said something else"),), ReasonCode.ROLLOUT_UNMEASURED),
        ((tally(of_nlp(2, 18)),), ReasonCode.ROLLOUT_REGRET),
        ((tally(of_nlp(1, 19)),), None),
        ((tally(of_nlp(1, 9), TeamTally("nlp", "444455556666", ShadowTally(stopped=10))),), None),
        ((tally(of_nlp(0, 10), TeamTally("vision", HERE, ShadowTally(busy_within_a_day=99))),), None),
    ],
)
def test_a_condition_that_does_not_hold_or_was_not_measured_holds_the_step_back(
    shadows: tuple[ShadowStanding, ...], code: ReasonCode | None
) -> None:
    found = standing(under(nlp(WARN, ASKS)), *shadows)
    assert (None if found.held is None else found.held.code) is code
    assert found.allowed is (Mode.ENFORCE if code is None else Mode.WARN)
    assert found.announce is False, "what is held back for its condition is not announced"


def test_a_step_above_the_policy_is_held_and_said_to_be() -> None:
    found = standing(under(nlp(WARN, ENFORCE), mode=Mode.WARN))
    assert found.allowed is Mode.WARN
    assert found.held is not None
    assert found.held.code is ReasonCode.ROLLOUT_ABOVE_POLICY


def planned(rollout: Rollout) -> Plan:
    found = fact(instance(tags={"owner": "nlp"}))
    return build_plan(PlanInputs("idle_gpu", "run-1", NOW, policy(rule()), (shard_facts(found),), rollout=rollout))


def test_a_plan_acts_on_no_team_that_observes() -> None:
    of = under(nlp(WARN, ENFORCE))
    observed = planned(Rollout(tuple(standings(of, (), {}, NOW))))
    assert not observed.due
    assert [step.after.mode for step in observed.transitions] == [Mode.OBSERVE]
    assert [each.reason.code for each in observed.rehearsed] == [ReasonCode.ROLLOUT]
    enforced = planned(Rollout(tuple(standings(of, (), told(of), NOW))))
    assert [action.verb for action in enforced.due] == [Verb.WARN]
    assert [step.after.rule_digest for step in enforced.transitions] == [
        step.after.rule_digest for step in observed.transitions
    ], "a rollout changes the mode and leaves the rule"
