"""How much of what idles can be reclaimed, waits for somebody's yes, or may not be touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import NOW, fact, finding, instance, policy, rule, shard_facts, usd

from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, Standing, Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.rules.common import Consent, Mode, Scarce, Step
from costguard.guards.rules.idle import IdleRule
from costguard.planning import judge_all
from costguard.planning.rails import standing_of
from costguard.report.waste.reclaim import reclaim_facts, reclaim_json, reclaim_lines, reclaim_of
from costguard.report.words.sentences import Language

RECLAIMABLE, WAITS, UNTOUCHABLE = Standing
DISK = instance(local_disk_gib=250.0)
SCARCE = instance(accelerator=replace(instance().accelerator, model="H100"))


def limited(**changes: Any) -> IdleRule:
    return rule(limits=replace(rule().limits, **changes))


@pytest.mark.parametrize(
    ("machine", "under", "standing"),
    [
        (instance(), rule(), RECLAIMABLE),
        (instance(), rule(mode=Mode.OBSERVE), RECLAIMABLE),
        (DISK, rule(), WAITS),
        (replace(DISK, local_disk_gib=None), rule(), WAITS),
        (DISK, limited(local_disk=Consent.LOSE), RECLAIMABLE),
        (DISK, limited(local_disk=Consent.KEEP), UNTOUCHABLE),
        (instance(), rule(ladder=(Step(Verb.WARN, timedelta(0)),)), UNTOUCHABLE),
        (instance(cannot_stop="one_time_spot"), rule(), UNTOUCHABLE),
        (instance(cannot_stop="one_time_spot"), limited(unstoppable_may_terminate=True), RECLAIMABLE),
        (instance(), None, UNTOUCHABLE),
        (SCARCE, rule(), WAITS),
        (SCARCE, limited(scarce=Scarce.STOP), RECLAIMABLE),
        (SCARCE, limited(scarce=Scarce.HOLD), UNTOUCHABLE),
    ],
)
def test_an_idle_machine_stands_as_the_steps_of_its_rule_and_its_disk_let_it(
    machine: Instance, under: IdleRule | None, standing: Standing
) -> None:
    assert standing_of(finding(machine), machine, under) is standing


def test_what_is_kept_or_never_touched_is_untouchable_whatever_its_disk() -> None:
    spared = Reason(ReasonCode.PROTECTED_TAG, {"utilisation": "idle"})
    assert standing_of(finding(DISK, Verdict.EXEMPT, reason=spared), DISK, rule()) is UNTOUCHABLE
    assert standing_of(finding(), instance(), rule(), kept=True) is UNTOUCHABLE


@pytest.mark.parametrize(
    "judged",
    [
        finding(verdict=Verdict.COMPLIANT),
        finding(verdict=Verdict.UNMEASURED),
        finding(verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.PROTECTED_TAG, {"utilisation": "busy"})),
        finding(verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.PROTECTED_TAG)),
    ],
)
def test_what_was_not_measured_to_idle_stands_nowhere(judged: Finding) -> None:
    """Nobody is promised money that may be at work."""
    assert standing_of(judged, instance(), rule()) is None


def test_a_stopped_machine_is_no_money_to_reclaim() -> None:
    stopped = instance(state=InstanceState.STOPPED)
    assert standing_of(finding(stopped), stopped, rule()) is None


def test_what_is_judged_says_where_it_stands_and_a_keep_counts_until_it_ends() -> None:
    facts = (shard_facts(fact(DISK)),)
    name = str(DISK.ref)
    for kept, standing in (({}, WAITS), ({name: NOW + timedelta(hours=1)}, UNTOUCHABLE), ({name: NOW}, WAITS)):
        assert judge_all(policy(rule()), facts, NOW, snoozes=kept)[0].standing is standing


MIXED = (
    (RECLAIMABLE, usd("1")),
    (RECLAIMABLE, Money(Decimal(7), "CNY")),
    (WAITS, usd("2")),
    (WAITS, None),
    (UNTOUCHABLE, None),
    (None, usd("100")),
)


def test_currencies_are_never_summed_and_an_unknown_price_is_no_zero() -> None:
    said = reclaim_json(reclaim_of(MIXED))
    assert said["reclaimable"]["a_day"] == [
        {"amount": "168", "currency": "CNY"},
        {"amount": "24", "currency": "USD"},
    ]
    assert (said["waits_for_approval"]["machines"], said["waits_for_approval"]["unpriced"]) == (2, 1)
    assert said["untouchable"] == {"machines": 1, "a_day": [], "unpriced": 1}


def test_each_standing_is_a_sentence_in_both_languages() -> None:
    english, chinese = (reclaim_lines(reclaim_of(MIXED), language) for language in Language)
    assert english == (
        "Reclaimable by the steps of the policy: 168.00 CNY + 24.00 USD a day (2 machines).",
        (
            "Waits for an approval, because a local disk will be empty or a type may not start again: 48.00 USD a day"
            " (2 machines, 1 without a known price)."
        ),
        (
            "May not be touched (protected, managed, prepaid, kept, or barred by its rule): an unknown amount a day"
            " (1 machine)."
        ),
    )
    assert len(chinese) == 3
    assert "每天 48.00 USD" in chinese[1]
    assert reclaim_lines(reclaim_of(())) == ()


def test_facts_of_a_check_name_each_currency_and_what_has_no_price() -> None:
    facts = reclaim_facts(reclaim_of(MIXED))
    assert facts["reclaimable_a_day"] == "168.00 CNY + 24.00 USD"
    assert (facts["untouchable_a_day"], facts["unpriced"]) == ("?", 2)
    assert reclaim_facts(reclaim_of([(WAITS, usd("1"))]))["reclaimable_a_day"] == "0"
