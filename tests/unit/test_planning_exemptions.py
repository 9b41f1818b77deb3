"""Who the house itself protects, and what stays visible of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import NOW, fact, finding, instance, policy, shard_facts

from costguard.domain.findings import Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Billing, Instance, Keeper, ManagedBy
from costguard.guards.rules.common import Protection, Selector
from costguard.planning import PlanInputs, build_plan, exemption, judge_all
from costguard.planning.rails import overlaid
from costguard.policy.model.policy import Account, Exemption, Owner

ACCOUNT = "111122223333"
AGREED = Exemption(Selector(), "nlp", "training run", "platform lead", NOW + timedelta(hours=1))


def kept(code: ReasonCode, **facts: FactValue) -> Reason:
    return Reason(code, facts)


def account(account_id: str, *, protected: bool) -> Account:
    return Account("aws", account_id, None, protected=protected)


@pytest.mark.parametrize(
    ("machine", "house", "why"),
    [
        (
            instance(managed_by=ManagedBy(Keeper.AUTOSCALING, "asg-1")),
            {},
            kept(ReasonCode.AUTOSCALED, manager="asg-1"),
        ),
        (instance(billing=Billing.PREPAID), {}, kept(ReasonCode.PREPAID)),
        (instance(tags={"Keep": "yes"}), {}, kept(ReasonCode.PROTECTED_TAG, tag="Keep", value="yes")),
        (
            instance(tags={"keep-until": "2026-03-10T12:31:00+00:00"}),
            {},
            kept(ReasonCode.PROTECTED_TAG, tag="keep-until", value="2026-03-10T12:31:00+00:00"),
        ),
        (
            instance(),
            {"protection": Protection(accounts=(ACCOUNT,))},
            kept(ReasonCode.PROTECTED_ACCOUNT, account=ACCOUNT),
        ),
        (
            instance(),
            {"accounts": (account("9", protected=False), account(ACCOUNT, protected=True))},
            kept(ReasonCode.PROTECTED_ACCOUNT, account=ACCOUNT),
        ),
        (
            instance(),
            {"exemptions": (AGREED,)},
            kept(
                ReasonCode.EXCEPTION,
                reason="training run",
                approver="platform lead",
                until="2026-03-10T13:30+00:00",
            ),
        ),
    ],
)
def test_an_exemption_says_by_whose_word(machine: Instance, house: dict[str, Any], why: Reason) -> None:
    assert exemption(machine, policy(**house), NOW) == why


@pytest.mark.parametrize(
    "house",
    [
        {"protection": Protection(accounts=(ACCOUNT,))},
        {"accounts": (account(ACCOUNT, protected=True),)},
        {"exemptions": (AGREED,)},
    ],
)
def test_a_keep_by_tag_is_named_only_where_nothing_else_protects(house: dict[str, Any]) -> None:
    """It ends by itself, and a case under it waits for that; whatever else protects ends the case."""
    kept_for_now = instance(tags={"costguard:keep-until": "2026-03-11T12:30:00+00:00"})
    protected = instance(tags={**kept_for_now.tags, "Keep": "yes"})
    by_tag = kept(ReasonCode.KEPT_BY_TAG, tag="costguard:keep-until", until="2026-03-11T12:30+00:00")
    assert exemption(kept_for_now, policy(), NOW) == by_tag
    assert exemption(kept_for_now, policy(**house), NOW) == exemption(instance(), policy(**house), NOW)
    assert exemption(protected, policy(**house), NOW) == kept(ReasonCode.PROTECTED_TAG, tag="Keep", value="yes")


@pytest.mark.parametrize(
    "house",
    [
        {},
        {"accounts": (account(ACCOUNT, protected=False), account("9", protected=True))},
        {"protection": Protection(accounts=("9",))},
        {"exemptions": (Exemption(Selector(), "nlp", "over", "platform lead", NOW),)},
        {"exemptions": (Exemption(Selector(regions=()), "nlp", "elsewhere", "platform lead", NOW + timedelta(1)),)},
    ],
)
def test_nobody_elses_word_counts(house: dict[str, Any]) -> None:
    assert exemption(instance(), policy(**house), NOW) is None


def test_an_expired_exception_does_not_hide_one_that_holds() -> None:
    over = Exemption(Selector(), "nlp", "over", "platform lead", NOW)
    why = exemption(instance(), policy(exemptions=(over, AGREED)), NOW)
    assert why is not None
    assert why.facts["reason"] == "training run"


def test_an_exempt_machine_still_shows_what_was_measured() -> None:
    """Idle and exempt is money too."""
    found = overlaid(finding(owner="nlp"), instance(), policy(exemptions=(AGREED,)), NOW)
    assert found.verdict is Verdict.EXEMPT
    assert found.owner == "nlp"
    assert found.reason == kept(
        ReasonCode.EXCEPTION,
        reason="training run",
        approver="platform lead",
        until="2026-03-10T13:30+00:00",
        utilisation="idle",
    )


def test_what_is_exempt_already_keeps_its_own_reason() -> None:
    found = finding(verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.NO_RULE))
    assert overlaid(found, instance(), policy(exemptions=(AGREED,)), NOW) == found


def test_every_finding_names_its_owner() -> None:
    mine, theirs = instance("i-1"), instance("i-2", tags={"team": "vision"})
    house = policy(owners=(Owner("nlp", Selector(resources=("i-1",))),))
    found = judge_all(house, (shard_facts(fact(mine), fact(theirs)),), NOW)
    assert [(one.subject, one.owner) for one in found] == [(mine.ref, "nlp"), (theirs.ref, "vision")]


def test_an_exception_holds_at_the_moment_that_machines_are_judged_for() -> None:
    (found,) = judge_all(policy(exemptions=(AGREED,)), (shard_facts(fact()),), NOW)
    assert (found.verdict, found.reason.code) == (Verdict.EXEMPT, ReasonCode.EXCEPTION)


def test_a_plan_rests_on_the_verdicts_that_it_is_given() -> None:
    """What was scanned once is judged once; only owners and exemptions are laid over anew."""
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(fact()),))
    busy = finding(verdict=Verdict.COMPLIANT)
    assert [each.verdict for each in build_plan(given).findings] == [Verdict.VIOLATION]
    assert [each.verdict for each in build_plan(replace(given, verdicts=(busy,))).findings] == [Verdict.COMPLIANT]
