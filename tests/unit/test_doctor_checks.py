"""What the doctor's findings mean for enforcing, question by question, as tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import NOW, SHARD, fact, history, instance, policy, rule, shard_facts, snapshot

from costguard.domain.actions import Verb
from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    InvalidInputError,
    LedgerError,
    NewerSchemaError,
    OutcomeUnknownError,
    UnavailableError,
)
from costguard.domain.findings import Finding, InstanceFact, ShardFacts
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Shard, Subject
from costguard.domain.resources import Billing, Gap, GapKind, InstanceState
from costguard.engine.doctor.checks import (
    LedgerSeen,
    Traces,
    caller_check,
    channel_check,
    clock_check,
    ledger_check,
    measured_check,
    other_check,
    permissions_check,
    policy_check,
    regions_check,
    switch_check,
    verbs_of,
)
from costguard.engine.ledger.snoozes import SwitchState
from costguard.guards.rules.common import Limits, Mode, Selector, Step
from costguard.planning import judge_all
from costguard.policy.model.policy import Owner, Policy
from costguard.policy.remarks import Remark
from costguard.ports import Caller, Permit
from costguard.report.doctor.checks import Code, Detail, Diagnosis, DoctorCheck, DoctorQuestion, Health, gravest

T = "aws:111122223333"
ME = Caller("aws", "111122223333", "arn:aws:iam::111122223333:user/ops")
WEST = Shard("aws", "111122223333", "eu-west-1")
STOPS = frozenset({"stop"})


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (ME, Code.CALLER_KNOWN),
        (AccessDeniedError("no"), Code.CALLER_REFUSED),
        (InvalidInputError("another partition"), Code.CALLER_REFUSED),
        (UnavailableError("down"), Code.CALLER_UNTOLD),
    ],
)
def test_credentials_that_nobody_accepts_bar(found: Caller | CostguardError, code: Code) -> None:
    assert caller_check(T, found).code is code


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (0, Code.CLOCK_RIGHT),
        (120, Code.CLOCK_RIGHT),
        (-120, Code.CLOCK_RIGHT),
        (121, Code.CLOCK_OFF),
        (-300, Code.CLOCK_OFF),
        (301, Code.CLOCK_WRONG),
        (-301, Code.CLOCK_WRONG),
        (86_400 * 365, Code.CLOCK_WRONG),
    ],
)
def test_a_clock_off_by_more_than_five_minutes_bars(seconds: int, code: Code) -> None:
    check = clock_check("aws", timedelta(seconds=seconds))

    assert check.code is code
    assert check.facts["skew_seconds"] == abs(seconds)


def test_a_clock_is_behind_when_the_clouds_is_later() -> None:
    assert clock_check("aws", timedelta(minutes=3)).facts["direction"] == "behind"
    assert clock_check("aws", timedelta(minutes=-3)).facts["direction"] == "ahead"
    assert clock_check("aws", None).code is Code.CLOCK_UNTOLD


def gap(what: str, kind: GapKind = GapKind.UNAVAILABLE, shard: Shard = WEST) -> Gap:
    return Gap(shard, what, kind, "said", "do")


@pytest.mark.parametrize(
    ("inside", "outside", "code"),
    [
        ((), (), Code.REGIONS_ANSWER),
        ((gap("inventory"),), (), Code.REGIONS_UNREAD),
        ((gap("inventory", GapKind.DENIED),), (), Code.REGIONS_DENIED),
        ((), (gap("accounts", GapKind.DENIED),), Code.REGIONS_DENIED),
        ((), (gap("regions", GapKind.UNREADABLE),), Code.REGIONS_UNREAD),
        ((gap("signals", GapKind.THROTTLED),), (), Code.REGIONS_UNREAD),
        ((gap("prices", GapKind.DENIED),), (), Code.REGIONS_ANSWER),  # the missing permission is told as one
    ],
)
def test_a_region_that_does_not_answer_in_full_is_never_called_safe(
    inside: tuple[Gap, ...], outside: tuple[Gap, ...], code: Code
) -> None:
    shards = (shard_facts(fact()), shard_facts(shard=WEST, gaps=inside))

    check = regions_check(T, shards, outside)

    assert check.code is code
    assert {detail.said for detail in check.details} == {*inside, *outside}


def test_a_region_that_the_organisation_closes_bars_nothing_and_is_to_be_left_out() -> None:
    shards, closed = (shard_facts(fact()),), (Shard("aws", WEST.account, "eu-west-3"), WEST)

    check = regions_check(T, shards, (), closed)

    assert (check.code, check.health) == (Code.REGIONS_CLOSED, Health.WARNING)
    assert (check.facts["closed"], check.facts["closed_names"]) == (2, "eu-west-1, eu-west-3")
    assert check.details == ()  # nothing is to be granted


@pytest.mark.parametrize(
    ("kind", "code"), [(GapKind.DENIED, Code.REGIONS_DENIED), (GapKind.UNAVAILABLE, Code.REGIONS_UNREAD)]
)
def test_a_closed_region_hides_no_other_that_does_not_answer(kind: GapKind, code: Code) -> None:
    shards = (shard_facts(fact()), shard_facts(shard=WEST, gaps=(gap("inventory", kind),)))

    assert regions_check(T, shards, (), (Shard("aws", WEST.account, "eu-west-3"),)).code is code


def test_what_answered_is_counted_and_named() -> None:
    shards = (shard_facts(fact()), shard_facts(shard=WEST, gaps=(gap("inventory"),)))
    other = gap("accounts", shard=Shard("aws", "444455556666"))

    facts = regions_check(T, shards, (other,)).facts

    assert (facts["answered"], facts["asked"], facts["names"]) == (1, 3, "us-east-1")
    assert regions_check(T, (), ()).code is Code.REGIONS_NONE


def permit(operation: str, feature: str, *, allowed: bool | None = True, shard: Shard = SHARD) -> Permit:
    return Permit(shard, operation, allowed, "said", "grant it", feature)


READ = permit("ec2:DescribeInstances", "inventory")


@pytest.mark.parametrize(
    ("permits", "code"),
    [
        ([READ], Code.PERMISSIONS_GRANTED),
        ([], Code.PERMISSIONS_UNREAD),
        ([READ, permit("cloudwatch:ListMetrics", "metrics", allowed=False)], Code.PERMISSIONS_MISSING),
        ([READ, permit("ec2:StopInstances", "stop", allowed=False)], Code.PERMISSIONS_MISSING),
        ([READ, permit("x:Unknown", "", allowed=False)], Code.PERMISSIONS_MISSING),
        ([READ, permit("ec2:TerminateInstances", "terminate", allowed=False)], Code.PERMISSIONS_GRANTED),
        ([READ, permit("ec2:StartInstances", "start", allowed=False)], Code.PERMISSIONS_WANTED),
        ([READ, permit("pricing:GetProducts", "prices", allowed=False)], Code.PERMISSIONS_WANTED),
        ([READ, permit("ec2:StopInstances", "stop", allowed=None)], Code.PERMISSIONS_UNTOLD),
        ([READ, permit("ec2:TerminateInstances", "terminate", allowed=None)], Code.PERMISSIONS_GRANTED),
    ],
)
def test_a_missing_permission_bars_where_these_ladders_need_it(permits: list[Permit], code: Code) -> None:
    assert permissions_check(T, permits, [], STOPS).code is code


def test_what_one_region_told_of_an_account_need_not_be_told_by_another() -> None:
    told, untold = permit("ec2:StopInstances", "stop"), permit("ec2:StopInstances", "stop", allowed=None, shard=WEST)
    elsewhere = replace(untold, shard=Shard("aws", "444455556666", "eu-west-1"))

    assert permissions_check(T, [told, untold], [], STOPS).code is Code.PERMISSIONS_GRANTED
    assert permissions_check(T, [told, elsewhere], [], STOPS).code is Code.PERMISSIONS_UNTOLD


def test_a_denial_in_one_region_is_not_made_good_by_another() -> None:
    told, denied = permit("ec2:StopInstances", "stop"), permit("ec2:StopInstances", "stop", allowed=False, shard=WEST)

    check = permissions_check(T, [told, denied], [], STOPS)

    assert check.code is Code.PERMISSIONS_MISSING
    assert check.details == (Detail(f"{WEST} ec2:StopInstances", "said", "grant it"),)


def test_where_nothing_could_be_asked_it_could_not_be_told_and_a_denial_still_bars() -> None:
    failure = Detail(str(WEST), "down")
    denied = permit("ec2:StopInstances", "stop", allowed=False)

    assert permissions_check(T, [READ], [failure], STOPS).code is Code.PERMISSIONS_UNREAD
    assert permissions_check(T, [READ, denied], [failure], STOPS).code is Code.PERMISSIONS_MISSING


def test_a_dry_run_that_may_have_been_carried_out_bars_above_all() -> None:
    check = permissions_check(T, [READ], [OutcomeUnknownError("it may have taken effect")], STOPS)

    assert check.code is Code.PERMISSIONS_UNSAFE
    assert check.facts["detail"] == "it may have taken effect"


def test_the_verbs_are_those_of_the_ladders_with_what_they_imply() -> None:
    stop = rule(ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=24))))
    warns = rule(ladder=(Step(Verb.WARN, timedelta(0)),))
    unstoppable = replace(rule(), limits=Limits(unstoppable_may_terminate=True))

    assert verbs_of([warns]) == frozenset()
    assert verbs_of([stop, warns]) == STOPS
    assert verbs_of([rule(mode=Mode.OBSERVE)]) == {"stop", "snapshot", "terminate"}
    assert verbs_of([unstoppable]) == {"stop", "snapshot", "terminate"}


IDLE = fact()
SILENT = fact(unread=True)
YOUNG = fact(instance("i-young", launched_at=NOW - timedelta(hours=1)))
RESERVED = fact(instance("i-kept", billing=Billing.RESERVED))
STOPPED = fact(instance("i-stopped", state=InstanceState.STOPPED))


@pytest.mark.parametrize(
    ("facts", "code", "share"),
    [
        ((IDLE,), Code.MEASURED_ALL, 100),
        ((IDLE, RESERVED, STOPPED), Code.MEASURED_ALL, 100),
        ((), Code.MEASURED_NOTHING_RUNS, None),
        ((STOPPED,), Code.MEASURED_NOTHING_RUNS, None),
        ((SILENT,), Code.MEASURED_NONE, 0),
        ((YOUNG,), Code.MEASURED_PARTLY, 0),  # it will be judged once it has run long enough
        ((RESERVED, replace(SILENT, instance=instance("i-2"))), Code.MEASURED_PARTLY, 50),
    ],
)
def test_a_guard_that_sees_not_one_machine_is_blind(
    facts: tuple[InstanceFact, ...], code: Code, share: int | None
) -> None:
    check = measured_check(T, (shard_facts(*facts),), _judged(facts, policy()))

    assert check.code is code
    assert check.facts.get("share_percent") == share


def test_the_unmeasured_are_named_with_their_reason_also_where_they_are_never_touched() -> None:
    silent = fact(instance("i-silent", billing=Billing.PREPAID, name="idle?"), history(hours=1, missing=(0, 1)))

    check = measured_check(T, (shard_facts(IDLE, silent),), _judged((IDLE, silent), policy()))

    (detail,) = check.details
    assert detail.where == "aws:111122223333:us-east-1:instance:i-silent idle?"
    assert isinstance(detail.said, Reason)
    assert detail.said.code is ReasonCode.NO_DATA


def test_machines_without_a_rule_count_apart() -> None:
    nobody = policy(rule(applies_to=Selector(tags={"team": "nobody"})))

    check = measured_check(T, (shard_facts(IDLE),), _judged((IDLE,), nobody))

    assert check.code is Code.MEASURED_NOTHING_RUNS
    assert check.facts["no_rule"] == 1


def test_nothing_read_is_not_nothing_running() -> None:
    unread = ShardFacts(SHARD, (), (gap("inventory"),))

    assert measured_check(T, (unread,), {}).code is Code.MEASURED_UNREAD
    assert measured_check(T, (), {}).code is Code.MEASURED_UNREAD


def _judged(facts: tuple[InstanceFact, ...], rules: Policy) -> dict[Subject, Finding]:
    return {finding.subject: finding for finding in judge_all(rules, (shard_facts(*facts),), NOW)}


@pytest.mark.parametrize(
    ("traces", "code"),
    [
        (Traces(), Code.OTHER_NOT_SEEN),
        (Traces(3, 3, 4, 4), Code.OTHER_NOT_SEEN),
        (Traces(unread=(Detail("x", "down"),)), Code.OTHER_UNREAD),
        (Traces(3, 3, 4, 4, (snapshot(),)), Code.OTHER_SEEN),
        (Traces(3, 3, 4, 4, (snapshot(),), (Detail("x", "down"),)), Code.OTHER_SEEN),
    ],
)
def test_a_snapshot_of_a_strangers_decision_bars(traces: Traces, code: Code) -> None:
    assert other_check(T, traces).code is code


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (LedgerSeen("sqlite", durable=True), Code.LEDGER_READY),
        (LedgerSeen("sqlite", durable=True, is_new=True), Code.LEDGER_NEW),
        (LedgerSeen("memory"), Code.LEDGER_FORGETFUL),
        (LedgerSeen("postgresql", error=LedgerError("no route")), Code.LEDGER_UNUSABLE),
        (LedgerSeen("sqlite", durable=True, error=NewerSchemaError("schema 9")), Code.LEDGER_NEWER),
    ],
)
def test_a_ledger_that_does_not_last_or_answer_bars(seen: LedgerSeen, code: Code) -> None:
    assert ledger_check(seen).code is code


@pytest.mark.parametrize(
    ("read", "remarks", "code"),
    [
        (policy(every_hour_counts=True), (), Code.POLICY_ENFORCES),
        (policy(), (), Code.POLICY_NO_CALENDAR),
        (policy(rule(mode=Mode.WARN)), (), Code.POLICY_GENTLE),
        (policy(every_hour_counts=True), (Remark("rule research", "odd"),), Code.POLICY_REMARKED),
        (InvalidInputError("costguard.yaml:3:1: wrong"), (), Code.POLICY_INVALID),
    ],
)
def test_an_invalid_policy_bars(read: Policy | InvalidInputError, remarks: tuple[Remark, ...], code: Code) -> None:
    assert policy_check(read, remarks).code is code


SLACK = frozenset({"slack"})
NLP = Owner("nlp", Selector(), "console:")


@pytest.mark.parametrize(
    ("said", "proving", "code"),
    [
        (policy(), SLACK, Code.CHANNEL_PROVES),
        (policy(default_channel="#gpu"), SLACK, Code.CHANNEL_PROVES),
        (policy(), frozenset(), Code.CHANNEL_MISSING),
        (policy(default_channel=""), SLACK, Code.CHANNEL_MISSING),
        (policy(default_channel="console:"), SLACK, Code.CHANNEL_MISSING),
        (policy(owners=(NLP,)), SLACK, Code.CHANNEL_PARTLY),
        (policy(owners=(replace(NLP, channel=""),)), SLACK, Code.CHANNEL_PROVES),
        (policy(default_channel="", owners=(replace(NLP, channel="slack:#nlp"),)), SLACK, Code.CHANNEL_PARTLY),
    ],
)
def test_without_a_channel_that_proves_delivery_nothing_would_be_stopped(
    said: Policy, proving: frozenset[str], code: Code
) -> None:
    assert channel_check(said, proving).code is code


@pytest.mark.parametrize(
    ("state", "host_paused", "code"),
    [
        (SwitchState(paused=False), False, Code.SWITCH_OPEN),
        (SwitchState(paused=True, by="ops", reason="incident"), False, Code.SWITCH_PAUSED),
        (SwitchState(paused=False), True, Code.SWITCH_PAUSED),
        (LedgerError("neither on nor off"), False, Code.SWITCH_UNREADABLE),
        (LedgerError("neither on nor off"), True, Code.SWITCH_UNREADABLE),
    ],
)
def test_a_switch_that_cannot_be_read_bars(state: SwitchState | LedgerError, host_paused: bool, code: Code) -> None:  # noqa: FBT001 - a column of the table
    assert switch_check(state, host_paused=host_paused).code is code


@pytest.mark.parametrize(
    ("healths", "worst"),
    [
        ([], Health.COULD_NOT_TELL),
        ([Health.OK], Health.OK),
        ([Health.WARNING, Health.OK], Health.WARNING),
        ([Health.COULD_NOT_TELL, Health.WARNING], Health.COULD_NOT_TELL),
        ([Health.OK, Health.BARS, Health.COULD_NOT_TELL], Health.BARS),
    ],
)
def test_the_gravest_check_decides_and_nothing_asked_is_not_safe(healths: list[Health], worst: Health) -> None:
    assert gravest(healths) is worst


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.value)
def test_only_up_to_a_warning_is_it_safe(code: Code) -> None:
    check = DoctorCheck(code)

    assert Diagnosis(NOW, (check,)).safe is (check.health in {Health.OK, Health.WARNING})
    assert code.value.startswith(check.question.value.split("_")[0]) or check.question is DoctorQuestion.KILL_SWITCH
