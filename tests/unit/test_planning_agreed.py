"""What an agreed plan has in common with a fresh one: the file chooses, the fresh plan says what is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, ref, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.rules.common import Mode
from costguard.planning import Held, Plan, Rehearsed, Transition
from costguard.planning.agreed import in_both

BEFORE = case(version=3, reason=Reason(ReasonCode.OPENED))
AFTER = case(version=3)
STEP = Transition(BEFORE, AFTER)
BUSY = Reason(ReasonCode.CAP_ACTIONS, {"allowed": 0, "used": 0})
OTHER = Reason(ReasonCode.PRICE_UNKNOWN)
MEND = Remediation(RemediationKind.RELEASE_ADDRESS, ref("eip-1", "address"))
SAVING = Saving(usd("1.00"), (("volume", usd("0.10")),), ("scarce_type",))


def plan(*steps: Transition, due: tuple[Action, ...] = (), **changes: Any) -> Plan:
    return replace(Plan("idle_gpu", "run-1", NOW, "policy-digest", (), steps, due, (), (), ()), **changes)


def action(of: Case = AFTER, **changes: Any) -> Action:
    ordinary = Action(
        action_id=f"decision-{of.case_id}",
        decision_id=f"decision-{of.case_id}",
        verb=Verb.STOP,
        subject=of.subject,
        resource=of.subject,
        run_epoch=of.run_epoch,
        case_id=of.case_id,
        rung=of.rung,
        rule=of.rule,
        rule_digest=of.rule_digest,
        saving=SAVING,
    )
    return replace(ordinary, **changes)


def of_another_machine(**changes: Any) -> Transition:
    other = case(case_id="case-2", subject=ref("i-2"), version=1, **changes)
    return Transition(replace(other, reason=Reason(ReasonCode.OPENED)), other)


def differs(what: str, planned: str, now: str) -> Reason:
    return Reason(ReasonCode.PLAN_DIFFERS, {"what": what, "planned": planned, "now": now})


def refused(agreed: Plan, fresh: Plan) -> Reason:
    """Why nothing of the one agreed action is done."""
    both = in_both(agreed, fresh)
    ((of, why),) = both.answers
    assert of == agreed.due[0]
    assert (both.plan.due, both.plan.transitions, both.left) == ((), (), ())
    assert both.refuses_all
    assert isinstance(why, Reason)
    return why


def test_what_follows_now_as_well_is_done_as_it_follows_now() -> None:
    """What a machine costs to keep, and how its price is known, is not what people chose."""
    other = of_another_machine()
    mine, its = action(), action(other.after)
    twin = replace(mine, saving=replace(SAVING, kept=(), price=HourlyRate(usd("1.00"), "list", "2026-02-01")))
    agreed = plan(STEP, other, due=(mine, its), run_id="agreed")
    fresh = plan(other, STEP, due=(its, twin), run_id="fresh")
    both = in_both(agreed, fresh)
    assert both.answers == ((mine, twin), (its, its))
    assert both.plan == fresh
    assert both.left == ()
    assert not both.refuses_all


def test_what_was_not_agreed_to_is_left_out() -> None:
    other = of_another_machine()
    both = in_both(plan(STEP, due=(action(),)), plan(STEP, other, due=(action(), action(other.after))))
    assert both.plan == plan(STEP, due=(action(),))
    assert not both.refuses_all


def test_nobody_agreed_to_what_is_next_in_line() -> None:
    """Whatever gives its room in a cap back, nothing is done instead that the file does not say."""
    other = of_another_machine()
    both = plan(STEP, other, due=(action(),), next_in_line=(action(other.after),))
    assert in_both(both, both).plan == replace(both, next_in_line=())


def test_an_action_left_out_of_the_file_is_not_done() -> None:
    other = of_another_machine()
    both = in_both(
        plan(STEP, other, due=(action(other.after),)), plan(STEP, other, due=(action(), action(other.after)))
    )
    assert both.plan.due == (action(other.after),)


@pytest.mark.parametrize(
    ("name", "planned", "said", "true"),
    [
        ("owner", "ana", "ana", "-"),
        ("mode", Mode.WARN, "warn", "enforce"),
        ("rule", "other", "other", "research"),
        ("rule_digest", "other", "other", AFTER.rule_digest),
        ("terms", "other", "other", f"{AFTER.terms[:120]}…"),
        ("run_epoch", "epoch-2", "epoch-2", "epoch-1"),
        ("rung", 2, "2", "1"),
        ("status", CaseStatus.HELD, "held", "open"),
        ("phase", Phase.CLAIMED, "claimed", "waiting"),
        ("attempt", 2, "2", "1"),
        ("failures", 2, "2", "0"),
        ("snoozed_until", NOW, str(NOW), "-"),
        ("stop_request", "request-1", "request-1", "-"),
        ("case_id", "case-2", "case-2", "case-1"),
        ("decision_id", "decision-2", "decision-2", "-"),
    ],
)
def test_a_case_that_moves_otherwise_now_does_not_move(name: str, planned: Any, said: str, true: str) -> None:
    after = replace(AFTER, **{name: planned})
    agreed = plan(Transition(BEFORE, after), due=(action(case_id=after.case_id),))
    assert refused(agreed, plan(STEP, due=(action(),))) == differs(name, said, true)
    both = in_both(replace(agreed, due=()), plan(STEP))
    assert both.left == ((after, differs(name, said, true)),)
    assert (both.answers, both.plan.transitions) == ((), ())
    assert both.refuses_all


def test_a_case_that_is_halted_now_says_why_itself() -> None:
    snoozed = Reason(ReasonCode.SNOOZED)
    halted = Transition(BEFORE, replace(AFTER, status=CaseStatus.SNOOZED, reason=snoozed))
    fresh = plan(halted, due=(action(),))
    assert refused(plan(STEP, due=(action(),)), fresh) == snoozed
    disowned = Transition(BEFORE, replace(AFTER, owner="ana"))
    assert refused(plan(disowned, due=(action(),)), fresh) == differs("owner", "ana", "-")


def test_what_was_climbed_is_compared_by_its_kinds() -> None:
    warned, stopped = ClimbedRung(Verb.WARN, NOW - 2 * DAY), ClimbedRung(Verb.STOP, NOW - DAY)
    agreed = plan(Transition(BEFORE, replace(AFTER, climbed=(warned, stopped))), due=(action(),))
    fresh = plan(Transition(BEFORE, replace(AFTER, climbed=(warned,))), due=(action(),))
    assert refused(agreed, fresh) == differs("climbed", "warn, stop", "warn")
    assert refused(fresh, agreed) == differs("climbed", "warn", "warn, stop")
    later = replace(AFTER, climbed=(replace(warned, at=NOW),))
    assert in_both(plan(Transition(BEFORE, later), due=(action(),)), fresh).plan == fresh


def test_a_case_that_moved_since_is_another_case() -> None:
    moved = Transition(replace(BEFORE, version=4), AFTER)
    assert refused(plan(STEP, due=(action(),)), plan(moved, due=(action(),))) == differs("case", "case-1 3", "case-1 4")
    opened = Transition(None, AFTER)
    assert refused(plan(opened, due=(action(),)), plan(STEP, due=(action(),))) == differs("case", "-", "case-1 3")


def test_what_is_opened_has_ids_of_its_own_each_time() -> None:
    later = replace(AFTER, case_id="case-9", decision_id="decision-9", opened_at=NOW, since=NOW)
    agreed = plan(Transition(None, AFTER), due=(action(),))
    fresh = plan(Transition(None, later), due=(action(later),))
    both = in_both(agreed, fresh)
    assert both.answers == ((action(), action(later)),)
    assert both.plan == fresh


@pytest.mark.parametrize(
    ("name", "planned", "said", "true"),
    [
        ("subject", ref("i-2"), str(ref("i-2")), str(ref())),
        ("run_epoch", "epoch-2", "epoch-2", "epoch-1"),
        ("rung", 2, "2", "1"),
        ("rule", "other", "other", "research"),
        ("rule_digest", "other", "other", AFTER.rule_digest),
        ("parameters", {"days": "1"}, "{'days': '1'}", "{}"),
        ("mend", MEND, f"{str(MEND)[:120]}…", "-"),
        ("before", {"days": "1"}, "{'days': '1'}", "{}"),
        ("copies", (ref("vol-1", "volume"),), str(ref("vol-1", "volume")), "-"),
        ("copies", (ref("v-1"), ref("v-2")), f"{ref('v-1')}, {ref('v-2')}", "-"),
        ("decision_id", "decision-2", "decision-2", "decision-case-1"),
        ("action_id", "decision-2", "decision-2", "decision-case-1"),
        ("resource", ref("i-2"), str(ref("i-2")), str(ref())),
        ("verb", Verb.TERMINATE, "terminate", "stop"),
    ],
)
def test_an_action_that_is_another_now_is_not_done(name: str, planned: Any, said: str, true: str) -> None:
    agreed = plan(STEP, due=(action(**{name: planned}),))
    assert refused(agreed, plan(STEP, due=(action(),))) == differs(name, said, true)


@pytest.mark.parametrize(
    ("saving", "said"),
    [
        (None, "-"),
        (replace(SAVING, stops_billing=usd("2.00")), f"{usd('2.00')}, scarce_type"),
        (replace(SAVING, stops_billing=None), "None, scarce_type"),
        (replace(SAVING, risks=()), str(usd("1.00"))),
    ],
)
def test_what_people_weighed_must_still_be_so(saving: Saving | None, said: str) -> None:
    agreed, fresh = plan(STEP, due=(action(saving=saving),)), plan(STEP, due=(action(),))
    assert refused(agreed, fresh) == differs("saving", said, f"{usd('1.00')}, scarce_type")
    assert refused(fresh, agreed) == differs("saving", f"{usd('1.00')}, scarce_type", said)


def test_an_action_named_twice_is_not_done_at_all() -> None:
    agreed = plan(STEP, due=(action(), action()))
    both = in_both(agreed, plan(STEP, due=(action(),)))
    twice = differs("action", "decision-case-1", "named twice")
    assert both.answers == ((action(), twice), (action(), twice))
    assert (both.plan.due, both.plan.transitions, both.left) == ((), (), ())


def test_an_action_without_its_case_is_not_done() -> None:
    agreed = plan(due=(action(),))
    assert refused(agreed, plan(STEP, due=(action(),))) == differs("case", "case-1", "-")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (finding(verdict=Verdict.COMPLIANT), Reason(ReasonCode.BUSY)),
        (finding(), differs("case", str(ref()), "-")),
        (finding(instance("i-2"), Verdict.COMPLIANT), differs("case", str(ref()), "-")),
        (finding(verdict=Verdict.COMPLIANT, check="other"), differs("case", str(ref()), "-")),
    ],
)
def test_a_case_that_is_not_there_now_says_what_was_found_instead(found: Finding, why: Reason) -> None:
    agreed = plan(STEP, due=(action(),))
    assert refused(agreed, plan(findings=(found,))) == why
    both = in_both(replace(agreed, due=()), plan(findings=(found,)))
    assert both.left == ((AFTER, why),)


def test_what_is_held_or_rehearsed_now_says_why() -> None:
    agreed = plan(STEP, due=(action(),))
    held, rehearsed = Held(action(), BUSY), Rehearsed(action(), OTHER)
    elsewhere = Held(action(of_another_machine().after), Reason(ReasonCode.DETAIL_UNREAD))
    assert refused(agreed, plan(STEP, held=(elsewhere, held))) == BUSY
    assert refused(agreed, plan(STEP, held=(elsewhere,), rehearsed=(rehearsed,))) == OTHER
    assert refused(agreed, plan(STEP, held=(held,), rehearsed=(rehearsed,))) == BUSY
    assert refused(agreed, plan(STEP, held=(held, replace(held, reason=OTHER)))) == BUSY


def test_what_is_not_due_now_says_where_its_case_stands() -> None:
    assert refused(plan(STEP, due=(action(),)), plan(STEP)) == AFTER.reason


def test_copies_of_all_volumes_are_agreed_to_one_by_one() -> None:
    copies = [action(verb=Verb.SNAPSHOT, resource=ref(name, "volume"), action_id=name) for name in ("vol-1", "vol-2")]
    both = in_both(plan(STEP, due=tuple(copies)), plan(STEP, due=tuple(reversed(copies))))
    assert both.answers == tuple((copy, copy) for copy in copies)
    assert both.plan.due == tuple(reversed(copies))


def test_of_one_case_all_is_done_or_nothing() -> None:
    one, two = (action(verb=Verb.SNAPSHOT, resource=ref(name, "volume"), action_id=name) for name in ("vol-1", "vol-2"))
    other = of_another_machine()
    third = action(other.after)
    agreed = plan(STEP, other, due=(one, replace(two, rule="other"), third))
    both = in_both(agreed, plan(STEP, other, due=(one, two, third)))
    why = differs("rule", "other", "research")
    assert [answer for _, answer in both.answers] == [why, why, third]
    assert both.plan == plan(other, due=(third,))
    assert both.left == ()


def test_a_case_that_is_refused_says_the_first_reason() -> None:
    one, two = (action(verb=Verb.SNAPSHOT, resource=ref(name, "volume"), action_id=name) for name in ("vol-1", "vol-2"))
    agreed = plan(STEP, due=(replace(one, rung=7), replace(two, rule="other")))
    both = in_both(agreed, plan(STEP, due=(one, two)))
    assert [answer for _, answer in both.answers] == [differs("rung", "7", "1")] * 2


def test_a_case_that_was_to_stay_is_not_told_as_left() -> None:
    stays = Transition(AFTER, AFTER)
    both = in_both(plan(stays), plan())
    assert both.left == ()
    assert not both.refuses_all


def test_one_case_left_behind_does_not_keep_back_the_next() -> None:
    other = of_another_machine()
    agreed = plan(Transition(BEFORE, replace(AFTER, owner="ana")), other)
    both = in_both(agreed, plan(STEP, other))
    assert [case.case_id for case, _ in both.left] == ["case-1"]
    assert both.plan.transitions == (other,)
    assert not both.refuses_all


def test_where_the_rest_stays_as_it_is_everything_was_refused() -> None:
    stays = Transition(AFTER, AFTER)
    other = of_another_machine()
    agreed = plan(stays, replace(other, after=replace(other.after, owner="ana")))
    both = in_both(agreed, plan(stays, other))
    assert both.plan.transitions == (stays,)
    assert both.refuses_all


@pytest.mark.parametrize(("length", "told"), [(120, "x" * 120), (121, "x" * 120 + "…")])
def test_a_long_value_is_cut(length: int, told: str) -> None:
    agreed = plan(Transition(BEFORE, replace(AFTER, owner="x" * length)), due=(action(),))
    assert refused(agreed, plan(STEP, due=(action(),))) == differs("owner", told, "-")
