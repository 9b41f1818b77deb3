"""A plan of mends says all that it was made of, and what each case was shown decides where it stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import DAY, NOW, SHARD, policy, ref, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.cases.remediation import remediation_terms
from costguard.domain.actions import Action, Outcome, Saving, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.keys import (
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    Rotatability,
    RotationSetting,
)
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ScopeRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode, Protection, Selector
from costguard.planning import CapUse, ClaimView, Plan, RuleLimit
from costguard.planning.plan import NoticeView
from costguard.planning.rails import key_exception, setting_bar
from costguard.planning.remediation import NOTICES_A_RUN, Judged, RemediationInputs, build_remediation_plan
from costguard.policy.model.policy import Account, Exemption

RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1", actions_per_day=2)
KILLED = Reason(ReasonCode.KILL_SWITCH, {"by": "host"})
PROTECTED = Reason(ReasonCode.PROTECTED_TAG, {"tag": "keep"})
OFF = Reason(ReasonCode.KEY_ROTATION_OFF)
GAP = Gap(SHARD, "keys", GapKind.DENIED, "denied")
ACCOUNT = "111122223333"


def judged(name: str = "k-1", rule: KeyRule = RULE, **changes: Any) -> Judged:
    key = ref(name, "key")
    rate = changes.pop("rate", None)
    verdict = changes.pop("verdict", Verdict.VIOLATION)
    finding = Finding("kms_rotation", "rotation", rule.name, rule.digest, key, verdict, OFF, run_epoch="e1", rate=rate)
    return replace(Judged(finding, rule, Remediation(RemediationKind.SET_ROTATION, key, {"days": "90"})), **changes)


def plan(*found: Judged, rules: tuple[KeyRule, ...] = (RULE,), **changes: Any) -> Plan:
    ordinary = RemediationInputs("kms_rotation", "run", NOW, "p1", found, {SHARD: True}, rules)
    return build_remediation_plan(replace(ordinary, **changes))


def case_of(one: Judged, **changes: Any) -> Case:
    """Its case, of which people were told a day ago."""
    (step,) = plan(one).transitions
    told = (ClimbedRung(Verb.WARN, NOW - DAY),)
    return replace(step.after, **{"rung": 1, "climbed": told, "since": NOW - DAY, "decision_id": "", **changes})


def only(made: Plan) -> Case:
    (step,) = made.transitions
    return step.after


def test_a_plan_says_what_it_was_made_of() -> None:
    made = plan(judged(), gaps=(GAP,), seen=7)

    assert (made.guard, made.run_id, made.planned_at, made.policy_digest) == ("kms_rotation", "run", NOW, "p1")
    assert (made.findings, made.gaps, made.instances_seen) == ((judged().finding,), (GAP,), 7)
    assert made.limits == (RuleLimit("ninety-days", 2, (Money(Decimal(0), "USD"),)),)
    assert plan().instances_seen == 0


def test_an_action_is_bound_to_its_case_and_rule() -> None:
    case = case_of(judged())
    made = plan(judged(), cases=(case,))

    (action,) = made.due
    after = only(made)
    assert after.decision_id
    assert action == Action(
        action_id=after.decision_id,
        decision_id=after.decision_id,
        verb=Verb.MEND,
        subject=ref("k-1", "key"),
        resource=ref("k-1", "key"),
        run_epoch="e1",
        case_id=case.case_id,
        rung=1,
        rule="ninety-days",
        rule_digest="d1",
        saving=None,
        mend=judged().mend,
    )
    assert (made.transitions[0].before, plan(judged()).transitions[0].before) == (case, None)


def test_a_warning_promises_the_mend_that_nothing_stands_in_the_way_of() -> None:
    (action,) = plan(judged()).due
    assert (action.verb, action.mend) == (Verb.WARN, judged().mend)


ADDRESS_RATE = HourlyRate(usd("0.005"), "test", "2026-01-01")


@pytest.mark.parametrize(
    ("kind", "rate", "saving"),
    [
        (RemediationKind.RELEASE_ADDRESS, ADDRESS_RATE, Saving(usd("0.005"), price=ADDRESS_RATE)),
        (RemediationKind.RELEASE_ADDRESS, None, Saving(stops_billing=None)),
        (RemediationKind.SET_ROTATION, ADDRESS_RATE, None),
    ],
)
def test_only_an_address_that_is_released_saves_something(
    kind: RemediationKind, rate: HourlyRate | None, saving: Saving | None
) -> None:
    one = judged(rate=rate)
    mended = replace(one, mend=Remediation(kind, ref("k-1", "key"), {"days": "90"}))

    assert [action.saving for action in plan(mended).due] == [saving]
    assert [action.saving for action in plan(replace(one, mend=None)).due] == [None]


def test_what_the_caps_hold_says_how_many_are_allowed() -> None:
    many = tuple(judged(f"k-{n:03}") for n in range(NOTICES_A_RUN + 1))
    told = plan(*many)
    mended = plan(judged(), cases=(case_of(judged()),), caps={RULE.name: CapUse(actions=2)})

    assert (len(told.due), NOTICES_A_RUN) == (20, 20)
    assert [held.reason for held in told.held] == [Reason(ReasonCode.CAP_ACTIONS, {"allowed": 20, "used": 20})]
    assert [held.reason for held in mended.held] == [Reason(ReasonCode.CAP_ACTIONS, {"allowed": 2, "used": 2})]


def test_a_case_beyond_the_cap_is_kept_as_held() -> None:
    case = case_of(judged())
    made = plan(judged(), cases=(case,), caps={RULE.name: CapUse(actions=2)})

    (step,) = made.transitions
    assert (step.before, step.after.status, step.after.reason) == (case, CaseStatus.HELD, made.held[0].reason)
    assert made.held[0].action.case_id == case.case_id


def test_a_new_case_under_a_kill_switch_is_remembered_as_held() -> None:
    made = plan(judged(), stop_all=KILLED)

    (step,) = made.transitions
    assert (step.before, step.after.status, step.after.reason) == (None, CaseStatus.HELD, KILLED)
    assert [held.action.verb for held in made.held] == [Verb.WARN]


def test_a_notice_under_a_rule_that_only_warns_is_sent() -> None:
    warns = replace(RULE, mode=Mode.WARN)

    assert [action.verb for action in plan(judged(rule=warns), rules=(warns,)).due] == [Verb.WARN]


def test_a_case_that_waits_is_told_apart_from_what_it_was() -> None:
    case = case_of(judged(), since=NOW - timedelta(minutes=1), status=CaseStatus.HELD)

    (step,) = plan(judged(), cases=(case,)).transitions

    assert (step.before, step.after.status) == (case, CaseStatus.OPEN)


def test_a_case_of_what_something_stands_in_the_way_of_promises_nothing() -> None:
    assert only(plan(judged(bar=PROTECTED))).terms == remediation_terms(RULE, None)
    assert only(plan(judged())).terms == remediation_terms(RULE, judged().mend)


def test_a_rule_without_a_limit_of_its_own_does_nothing() -> None:
    made = plan(judged(), rules=())

    assert [held.reason for held in made.held] == [Reason(ReasonCode.RULE_GONE, {"rule": "ninety-days"})]


def test_one_that_waits_is_held_or_is_rehearsed_hides_no_other() -> None:
    """By gravity: one still waiting, one held, one rehearsed, one due."""
    watch = replace(RULE, name="watch", mode=Mode.OBSERVE, digest="d2")
    waits, bars, shows = judged("k-1", gravity=9), judged("k-2", gravity=8), judged("k-3", watch, gravity=7)
    bars = replace(bars, bar=PROTECTED)
    cases = (case_of(waits, since=NOW - timedelta(minutes=1)), case_of(replace(bars, bar=None)))

    made = plan(waits, bars, shows, judged("k-4"), rules=(RULE, watch), cases=cases)

    assert [one.action.subject.native_id for one in made.held] == ["k-2"]
    assert [(one.action.subject.native_id, one.action.verb) for one in made.rehearsed] == [("k-3", Verb.WARN)]
    assert [one.subject.native_id for one in made.due] == ["k-4"]
    assert len(made.transitions) == 4


def test_violations_come_before_the_rest_and_the_gravest_first() -> None:
    calm = judged("k-0", gravity=9)
    fine = replace(calm, finding=replace(calm.finding, verdict=Verdict.COMPLIANT))
    gone = case_of(judged("k-9"))

    made = plan(fine, judged("k-2"), judged("k-1"), judged("k-3", gravity=-1), cases=(case_of(calm), gone))

    assert [step.after.subject.native_id for step in made.transitions] == ["k-1", "k-2", "k-3", "k-0", "k-9"]
    plain = replace(fine, gravity=Judged(fine.finding, None).gravity)
    made = plan(plain, judged("k-3", gravity=-1), cases=(case_of(calm), gone, case_of(judged("k-3"))))
    assert [step.after.subject.native_id for step in made.transitions] == ["k-3", "k-0", "k-9"]
    assert plain.gravity == 0


def test_what_is_no_resource_is_passed_over() -> None:
    odd = replace(judged(), finding=replace(judged().finding, subject=ScopeRef("all")))

    assert [action.subject for action in plan(odd, judged()).due] == [ref("k-1", "key")]


# what a case was shown


def test_a_snooze_holds_until_it_is_over() -> None:
    case = case_of(judged())
    snoozes = {str(ref("k-1", "key")): NOW + timedelta(seconds=1)}

    assert only(plan(judged(), cases=(case,), snoozes=snoozes)).status is CaseStatus.SNOOZED
    over = plan(judged(), cases=(case,), snoozes=dict.fromkeys(snoozes, NOW))
    assert [action.verb for action in over.due] == [Verb.MEND]


def under_way(rung: int, **changes: Any) -> Case:
    return case_of(judged(), rung=rung, phase=Phase.CONFIRMING, decision_id="decided", **changes)


@pytest.mark.parametrize(
    ("notice", "climbed"),
    [(NoticeView(NOW - timedelta(minutes=5)), True), (NoticeView(None), False), (None, False)],
)
def test_a_delivered_notice_is_a_rung_climbed(notice: NoticeView | None, climbed: bool) -> None:  # noqa: FBT001
    notices = {} if notice is None else {"decided": notice}
    told = under_way(0, climbed=(), since=NOW - timedelta(minutes=10))

    after = only(plan(judged(), cases=(told,), notices=notices))

    assert (after.rung, bool(after.climbed)) == ((1, True) if climbed else (0, False))


def test_what_became_of_an_undelivered_notice_is_seen() -> None:
    """One that is refused for good, one whose dates are past, one that is still being sent."""
    told = under_way(0, climbed=(), since=NOW - timedelta(minutes=10))
    sent = [
        only(plan(judged(), cases=(told,), notices={"decided": notice}))
        for notice in (NoticeView(None, dead=True), NoticeView(None, late=True), NoticeView(None))
    ]

    assert len({(one.phase, one.status, one.reason.code) for one in sent}) > 1
    assert sent[2].phase is Phase.CONFIRMING
    assert sent[0] != sent[2]
    assert sent[1] != sent[2]


def test_a_notice_that_nobody_knows_of_is_neither_dead_nor_late() -> None:
    told = under_way(0, climbed=(), since=NOW - timedelta(minutes=10))

    after = only(plan(judged(), cases=(told,), claims={"decided": ClaimView(None, "")}))

    assert (after.status, after.reason) == (CaseStatus.HELD, Reason(ReasonCode.NOTICE_UNDELIVERED, {"dead": 0}))


@pytest.mark.parametrize(
    ("claims", "code"),
    [({"decided": ClaimView(None, "r-1")}, ReasonCode.OUTCOME_UNKNOWN), ({}, ReasonCode.NOT_TAKEN_EFFECT)],
)
def test_a_mend_that_was_sent_and_one_that_never_was_are_told_apart(
    claims: dict[str, ClaimView], code: ReasonCode
) -> None:
    after = only(plan(judged(), cases=(under_way(1),), claims=claims))

    assert (after.status, after.reason.code) == (CaseStatus.HELD, code)


@pytest.mark.parametrize(("outcome", "mended"), [(None, True), (Outcome.REFUSED, False)])
def test_what_is_as_it_was_asked_after_a_mend_was_mended_unless_the_mend_was_refused(
    outcome: Outcome | None,
    mended: bool,  # noqa: FBT001
) -> None:
    fine = replace(judged(), finding=replace(judged().finding, verdict=Verdict.COMPLIANT))

    after = only(plan(fine, cases=(under_way(1),), claims={"decided": ClaimView(outcome, "r-1")}))

    assert (after.reason.code is ReasonCode.MENDED) is mended


def test_a_closed_account_ends_its_cases() -> None:
    case = case_of(judged())
    after = only(plan(cases=(case,), shards={}, closed_accounts=frozenset({ACCOUNT})))

    assert (after.status, after.reason) == (CaseStatus.CLOSED, Reason(ReasonCode.VANISHED, {"account": ACCOUNT}))


def test_what_nobody_found_in_a_whole_shard_is_gone_and_elsewhere_it_is_unread() -> None:
    case = case_of(judged())
    gone, unread, partly = (only(plan(cases=(case,), shards=shards)) for shards in ({SHARD: True}, {}, {SHARD: False}))

    assert (gone.status, gone.reason.code) == (CaseStatus.CLOSED, ReasonCode.VANISHED)
    assert (unread.status, unread.reason.code) == (CaseStatus.HELD, ReasonCode.ACCOUNT_UNREAD)
    assert (partly.status, partly.reason.code) == (CaseStatus.HELD, ReasonCode.SHARD_INCOMPLETE)


def test_the_grace_is_counted_by_the_policys_calendar() -> None:
    def never(since: datetime, wait: timedelta, /, *, first_stop: bool = False) -> datetime:
        del first_stop
        return since + wait + 365 * DAY

    assert plan(judged(), cases=(case_of(judged()),), grace_end=never).due == ()


def test_a_case_that_is_held_shows_what_it_would_do() -> None:
    """A finding that cannot be measured holds it; what would come is the mend, or the warning before it."""
    blind = replace(judged(), finding=replace(judged().finding, verdict=Verdict.UNMEASURED))
    (told,) = plan(blind, cases=(case_of(judged()),)).held
    (untold,) = plan(blind, cases=(case_of(judged(), rung=0, climbed=()),)).held

    assert (told.action.verb, told.reason.code) == (Verb.MEND, ReasonCode.UNMEASURED)
    assert (told.action.mend, told.action.rung) == (judged().mend, 1)
    assert told.action.decision_id == decision_id(case_of(judged()))
    assert untold.action.verb is Verb.WARN
    assert plan(blind, cases=(case_of(judged(), rung=2),)).held == ()
    assert plan(cases=(case_of(judged()),), shards={}).held == ()


# what the house keeps from being changed

KEY = EncryptionKey(
    ref=ref("k-1", "key"),
    spec="SYMMETRIC_DEFAULT",
    usage=KeyUsage.ENCRYPT,
    origin=KeyOrigin.CLOUD,
    state=KeyState.ENABLED,
    manager=KeyManager.CUSTOMER,
    rotation=RotationSetting(automatic=False),
    rotatability=Rotatability(frozenset()),
)


def agreed(*resources: str, until: datetime = NOW + DAY, **selects: Any) -> Exemption:
    return Exemption(Selector(resources=resources or None, **selects), "nlp", "audit", "platform lead", until)


def barred(tags: dict[str, str] | None = None, **house: Any) -> Reason | None:
    return setting_bar(ref("k-1", "key"), tags or {}, policy(**house), NOW)


def test_a_setting_is_kept_by_tag_until_it_is_over_and_by_account() -> None:
    assert barred() is None
    assert barred({"Keep": "yes"}) == Reason(ReasonCode.PROTECTED_TAG, {"tag": "Keep", "value": "yes"})
    assert barred({"Keep": "yes"}, protection=Protection(accounts=(ACCOUNT,))) == barred({"Keep": "yes"})
    assert barred({"keep-until": "2020-01-01"}) is None
    assert barred({"keep-until": "2031-01-01"}) is not None
    listed = Reason(ReasonCode.PROTECTED_ACCOUNT, {"account": ACCOUNT})
    assert barred(protection=Protection(accounts=(ACCOUNT,))) == listed
    assert barred(accounts=(Account("aws", ACCOUNT, None, protected=True),)) == listed


def excepted(*exemptions: Exemption) -> Reason | None:
    return key_exception(KEY, policy(exemptions=exemptions), NOW)


@pytest.mark.parametrize("name", ["k-1", str(ref("k-1", "key"))])
def test_a_key_is_excepted_by_its_own_id_alone(name: str) -> None:
    facts = {"reason": "audit", "approver": "platform lead", "until": "2026-03-11T12:30+00:00"}

    assert excepted(agreed("k-9"), agreed(accounts=(ACCOUNT,)), agreed("other", name)) == Reason(
        ReasonCode.EXCEPTION, facts
    )
    assert excepted(agreed("k-9"), agreed(accounts=(ACCOUNT,))) is None
    assert excepted(agreed(name, until=NOW)) is None
