"""The verdict: idle only when everything named was seen below its bound over the whole window."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import DAY, NOW, fact, history, instance, rule

from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    InstanceState,
    Inventory,
    Keeper,
    ManagedBy,
)
from costguard.domain.signals import SignalName, Statistic
from costguard.guards.idle.judge import examine, gentlest_rule, judge_instance
from costguard.guards.rules.common import Mode, Selector
from costguard.guards.rules.idle import IdleBounds, IdleRule

TWO_CARDS = instance(accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 2))
WITH_CPU = rule(idle=IdleBounds(cpu_max_below_percent=10.0))


def verdict_of(examined: InstanceFact, applied: IdleRule | None = None) -> tuple[Verdict, ReasonCode]:
    finding = judge_instance(examined, applied or rule(), NOW)
    return finding.verdict, finding.reason.code


def test_quiet_over_the_whole_window_is_idle() -> None:
    assert verdict_of(fact()) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_one_spike_in_the_window_is_busy() -> None:
    assert verdict_of(fact(None, history(spikes={20: 80.0}))) == (Verdict.COMPLIANT, ReasonCode.BUSY)


def test_a_spike_before_the_window_does_not_count() -> None:
    assert verdict_of(fact(None, history(spikes={30: 80.0}))) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_exactly_the_bound_is_busy() -> None:
    assert verdict_of(fact(None, history(value=5.0)))[0] is Verdict.COMPLIANT


def test_no_device_metric_is_unmeasured_however_quiet_the_cpu() -> None:
    quiet_cpu = fact(None, history(SignalName.CPU, "", value=0.1))
    assert verdict_of(quiet_cpu, WITH_CPU) == (Verdict.UNMEASURED, ReasonCode.NO_DEVICE_METRIC)


def test_missing_samples_are_not_idle() -> None:
    assert verdict_of(fact(None, history(missing=(5, 6)))) == (Verdict.UNMEASURED, ReasonCode.LOW_COVERAGE)


def test_one_datapoint_in_the_window_is_not_idle() -> None:
    """A famous tool called one datapoint of 336 idle."""
    lone = history(missing=tuple(range(1, 24)), per_hour=1)
    lone.samples[-1] = 1
    assert verdict_of(fact(None, lone))[0] is Verdict.UNMEASURED


def test_an_agent_that_died_is_stale() -> None:
    dead = history(missing=(0,), per_hour=60)
    assert verdict_of(fact(None, dead)) == (Verdict.UNMEASURED, ReasonCode.STALE)


def test_a_series_is_as_late_as_it_may_be_itself_whatever_is_read_beside_it() -> None:
    """Its newest sample ended ten minutes ago; its source documents five."""
    late = history()
    late.samples[-1] -= 10
    assert verdict_of(fact(None, late)) == (Verdict.UNMEASURED, ReasonCode.STALE)
    assert verdict_of(fact(None, replace(late, delay=timedelta(minutes=10))))[0] is Verdict.VIOLATION


def test_what_was_recorded_without_a_delay_of_each_series_counts_that_of_the_reading() -> None:
    late = history()
    late.samples[-1] -= 4
    seen = fact(None, late)
    bare = tuple(replace(signal, delay=None) for signal in seen.readings[0].signals)
    before = replace(seen, readings=(replace(seen.readings[0], signals=bare),))
    assert verdict_of(before)[0] is Verdict.VIOLATION
    assert verdict_of(replace(before, documented_delay=timedelta(0))) == (Verdict.UNMEASURED, ReasonCode.STALE)


def test_a_failed_read_is_unmeasured() -> None:
    assert verdict_of(fact(unread=True)) == (Verdict.UNMEASURED, ReasonCode.SIGNALS_UNREAD)


def test_younger_than_the_window_is_unmeasured() -> None:
    young = instance(launched_at=NOW - timedelta(hours=23))
    assert verdict_of(fact(young)) == (Verdict.UNMEASURED, ReasonCode.TOO_YOUNG)


def test_a_silent_card_leaves_the_instance_unmeasured() -> None:
    assert verdict_of(fact(TWO_CARDS)) == (Verdict.UNMEASURED, ReasonCode.DEVICE_MISSING)


def test_every_card_idle_is_idle() -> None:
    both = fact(TWO_CARDS, history(), history(device="1"))
    assert verdict_of(both) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_some_cards_idle_is_reported_and_never_acted_on() -> None:
    finding = judge_instance(fact(TWO_CARDS, history(), history(device="1", value=90.0)), rule(), NOW)
    assert (finding.verdict, finding.reason.code) == (Verdict.COMPLIANT, ReasonCode.PARTLY_IDLE)
    assert finding.reason.facts == {"idle_cards": 1, "cards": 2}


def test_idle_cards_beside_a_busy_one_are_partly_idle_however_busy_the_cpu() -> None:
    feeding = history(SignalName.CPU, "", value=90.0)
    both = fact(TWO_CARDS, history(), history(device="1", value=90.0), feeding)
    assert verdict_of(both, WITH_CPU) == (Verdict.COMPLIANT, ReasonCode.PARTLY_IDLE)


def test_idle_cards_under_a_busy_cpu_are_busy() -> None:
    busy_cpu = fact(None, history(), history(SignalName.CPU, "", value=50.0))
    assert verdict_of(busy_cpu, WITH_CPU) == (Verdict.COMPLIANT, ReasonCode.BUSY)


def test_a_named_signal_that_is_not_sent_is_unmeasured() -> None:
    assert verdict_of(fact(None, history()), WITH_CPU) == (Verdict.UNMEASURED, ReasonCode.SIGNAL_MISSING)


def test_a_signal_the_rule_does_not_name_is_not_needed() -> None:
    """A card that reads something is believed, whatever the CPU does: the rule's writer asked for no more."""
    working = fact(None, history(value=1.0), history(SignalName.CPU, "", value=99.0))
    assert verdict_of(working) == (Verdict.VIOLATION, ReasonCode.IDLE)


@pytest.mark.parametrize("value", [math.inf, 101.0, -1.0])
def test_implausible_values_are_unmeasured(value: float) -> None:
    assert verdict_of(fact(None, history(spikes={3: value}))) == (Verdict.UNMEASURED, ReasonCode.IMPLAUSIBLE)


def test_a_mean_over_cards_tightens_the_bound_by_their_number() -> None:
    mean = history(value=3.0, device="", statistic=Statistic.MEAN_OF_CARDS)
    assert verdict_of(fact(TWO_CARDS, mean))[0] is Verdict.COMPLIANT
    low = history(value=2.4, device="", statistic=Statistic.MEAN_OF_CARDS)
    assert verdict_of(fact(TWO_CARDS, low))[0] is Verdict.VIOLATION


def test_a_stopped_machine_is_not_judged() -> None:
    assert verdict_of(fact(instance(state=InstanceState.STOPPED))) == (Verdict.COMPLIANT, ReasonCode.NOT_RUNNING)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"billing": Billing.PREPAID}, ReasonCode.PREPAID),
        ({"billing": Billing.RESERVED}, ReasonCode.RESERVED),
        ({"billing": Billing.UNKNOWN}, ReasonCode.BILLING_UNKNOWN),
        ({"managed_by": ManagedBy(Keeper.AUTOSCALING, "train")}, ReasonCode.AUTOSCALED),
        ({"managed_by": ManagedBy(Keeper.KUBERNETES, "prod")}, ReasonCode.KUBERNETES),
        ({"managed_by": ManagedBy(Keeper.COSTGUARD, "self")}, ReasonCode.COSTGUARD_ITSELF),
        ({"protected_by": ("termination_protection",)}, ReasonCode.PROTECTED_BY_CLOUD),
    ],
)
def test_what_may_not_be_touched_is_shown_with_its_use(changes: dict[str, Any], code: ReasonCode) -> None:
    finding = judge_instance(fact(instance(**changes)), rule(), NOW)
    assert (finding.verdict, finding.reason.code) == (Verdict.EXEMPT, code)
    assert finding.reason.facts["utilisation"] == "idle"


def test_where_rules_overlap_the_gentlest_decides() -> None:
    harsh, gentle = rule("a-harsh"), rule("b-gentle", mode=Mode.OBSERVE)
    assert gentlest_rule(instance(), (harsh, gentle)) == gentle


def test_an_empty_selector_list_matches_nothing() -> None:
    nobody = rule(applies_to=Selector(instance_types=()))
    assert gentlest_rule(instance(), (nobody,)) is None
    assert gentlest_rule(instance(), (rule(applies_to=Selector(tags={})),)) is None


def test_no_rule_means_exempt() -> None:
    assert judge_instance(fact(), None, NOW).reason.code is ReasonCode.NO_RULE


@given(
    hours=st.sets(st.integers(0, 24), max_size=25),
    spikes=st.dictionaries(st.integers(0, 24), st.floats(0, 100), max_size=3),
)
def test_idle_is_said_only_of_full_quiet_windows(hours: set[int], spikes: dict[int, float]) -> None:
    """Property: whatever is missing or loud in the window, "idle" needs coverage and silence."""
    measured = history(missing=tuple(hours), spikes={ago: v for ago, v in spikes.items() if ago not in hours})
    finding = judge_instance(fact(None, measured), rule(), NOW)
    if finding.verdict is Verdict.VIOLATION:
        assert len(hours - {24}) * 60 <= 0.05 * 24.5 * 60 + 30
        assert all(value < 5.0 for ago, value in spikes.items() if ago not in hours)


def test_usage_counts_idle_and_observed_hours() -> None:
    used = fact(None, history(spikes={3: 50.0}, missing=(10,)), usage_since=NOW - DAY).usage
    assert used is not None
    assert (used.observed_hours, used.idle_hours) == (22, 21)
    assert used.running_hours == pytest.approx(24.0)


def test_usage_counts_single_idle_cards() -> None:
    used = fact(TWO_CARDS, history(), history(device="1", value=90.0), usage_since=NOW - DAY).usage
    assert used is not None
    assert (used.idle_hours, used.partly_idle_card_hours) == (0, 23)


def test_a_machine_listed_twice_counts_once() -> None:
    """A page that came twice would double the fleet, and with it what a share of it allows."""
    seen_twice = Inventory(instance().ref.shard, (instance(), instance(name="later")), instances_seen=2)
    examined = examine(seen_twice, {}, {}, (), {timedelta(hours=24)}, NOW)
    assert [one.instance.name for one in examined.instances] == ["later"]
