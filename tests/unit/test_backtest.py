"""What a policy would have done to recorded use: the same as the slow way, and honest about what nobody knows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import instance, policy, rule, usd
from tests.unit.backtest_reference import lived

from costguard.backtest import (
    HORIZONS,
    Grid,
    Machine,
    Regret,
    Replay,
    Run,
    Terms,
    frontier,
    marked,
    replay,
    tallied,
)
from costguard.domain.actions import Verb
from costguard.domain.money import HourlyRate, Money
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing
from costguard.domain.signals import HOUR, SignalHistory, SignalName, Statistic
from costguard.guards.rules.common import Mode, Selector, Step
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.policy.model.policy import Exemption, Owner, Policy
from costguard.policy.model.working_time import WorkingCalendar

START = datetime(2026, 3, 2, tzinfo=timezone.utc)  # a Monday
RATE = HourlyRate(usd("2.50"), "test", "2026-01-01")
STOP_ONLY = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=2)))


def series(values: Sequence[float | None], name: SignalName = SignalName.GPU, device: str = "0") -> SignalHistory:
    """An hour a value; None was not measured."""
    maxima = array("d", [math.nan if value is None else value for value in values])
    return SignalHistory(name, device, START, maxima, array("I", [0 if v is None else 60 for v in values]), "test")


def machine(*values: float | None, native_id: str = "i-1", runs: tuple[Run, ...] = ()) -> Machine:
    return Machine(instance(native_id), RATE, (series(values),), runs)


def until(hours: int) -> Terms:
    return Terms(START, START + hours * HOUR)


def quick(name: str = "quick", **changes: object) -> IdleRule:
    """Idle for 3 hours, warned, stopped 2 hours later."""
    return rule(name, **{"idle": IdleBounds(lasting=3 * HOUR), "ladder": STOP_ONLY, **changes})


def one(of: Machine, terms: Terms, under: Policy | None = None) -> Replay:
    (found,) = replay(under or policy(quick()), [of], terms)
    return found


def test_an_idle_machine_is_stopped_after_its_window_and_its_wait() -> None:
    """Idle for 3 hours at 03:00, warned then, stopped at 05:00; busy again at 09:00."""
    found = one(machine(*[0.0] * 9, 80.0, *[0.0] * 2), until(12))

    (stop,) = found.stops
    assert (stop.at, stop.back_at) == (START + 5 * HOUR, START + 9 * HOUR)
    assert (stop.idle_hours, stop.unmeasured_hours) == (4, 0)
    assert dict(zip(HORIZONS, stop.regrets, strict=True)) == {
        1: Regret.NO,
        6: Regret.YES,
        24: Regret.YES,
        72: Regret.YES,
    }


def test_use_exactly_at_a_horizons_end_is_not_within_it() -> None:
    """Stopped at 05:00, busy from 11:00 on: six quiet hours lie between."""
    (stop,) = one(machine(*[0.0] * 11, 90.0), until(12)).stops

    assert stop.regrets[:3] == (Regret.NO, Regret.NO, Regret.YES)


def test_a_value_that_cannot_be_leaves_a_busy_machine_unmeasured() -> None:
    """Busy in the first hour, nonsense in the second: the judge believes nothing of a window that holds it."""
    found = one(machine(90.0, -1.0, *[0.0] * 6), until(8))

    assert found.unmeasured_hours == 3


def test_a_record_that_ends_is_never_no_regret() -> None:
    (stop,) = one(machine(*[0.0] * 12), until(12)).stops

    assert stop.back_at is None
    assert stop.regrets == (Regret.NO, Regret.NO, Regret.UNDETERMINED, Regret.UNDETERMINED)


def test_a_hole_in_the_record_is_neither_idle_nor_no_regret() -> None:
    (stop,) = one(machine(*[0.0] * 6, None, *[0.0] * 20), until(27)).stops

    assert (stop.idle_hours, stop.unmeasured_hours) == (21, 1)
    assert stop.regrets == (Regret.NO, Regret.UNDETERMINED, Regret.UNDETERMINED, Regret.UNDETERMINED)


def test_use_behind_a_hole_is_a_regret_all_the_same() -> None:
    (stop,) = one(machine(*[0.0] * 6, None, 90.0, 0.0), until(9)).stops

    assert stop.back_at == START + 7 * HOUR
    assert stop.regrets == (Regret.NO, Regret.YES, Regret.YES, Regret.YES)


def test_nobody_misses_what_its_own_people_stopped() -> None:
    """Stopped by its people three hours after ours: nothing is reclaimed from then on, and nothing regretted."""
    runs = (Run(START, START + 8 * HOUR), Run(START + 20 * HOUR))
    of = machine(*[0.0] * 8, *[None] * 12, *[90.0] * 10, runs=runs)

    (stop,) = one(of, until(30)).stops

    assert (stop.counted_until, stop.idle_hours) == (START + 8 * HOUR, 3)
    assert set(stop.regrets) == {Regret.NO}


def test_after_use_came_back_the_machine_is_young_again() -> None:
    """Two stops: the window after the return begins anew."""
    of = machine(*[0.0] * 6, 90.0, *[0.0] * 9)

    first, second = one(of, until(16)).stops

    assert (first.at, first.back_at) == (START + 5 * HOUR, START + 6 * HOUR)
    assert second.at == START + 12 * HOUR  # busy to 07:00, idle for 3 hours at 10:00, stopped 2 hours later


def test_a_ladder_to_the_end_counts_what_came_back_too_late() -> None:
    ladder = (*STOP_ONLY, Step(Verb.TERMINATE, timedelta(hours=4)))
    gone = one(machine(*[0.0] * 20, 90.0), until(21), policy(quick(ladder=ladder)))

    total = tallied([gone], "digest").total

    assert (total.terminations, total.came_back_terminated) == (1, 1)
    assert gone.stops[0].terminated_at == START + 12 * HOUR  # stop seen at 06, told at 07, copied at 11, then gone


def test_a_rule_that_only_observes_is_replayed_as_if_it_enforced() -> None:
    observing = policy(quick(mode=Mode.OBSERVE), mode=Mode.OBSERVE)

    assert one(machine(*[0.0] * 12), until(12), observing).stops


def test_where_rules_overlap_the_modes_as_written_say_which_counts() -> None:
    """The one that observes is the gentler, as it is live; in earnest the other would be."""
    gentle = quick("gentle", mode=Mode.OBSERVE)
    slow = quick("slow", idle=IdleBounds(lasting=9 * HOUR))

    found = one(machine(*[0.0] * 12), until(12), policy(slow, gentle))

    assert (found.rule, [stop.at for stop in found.stops]) == ("gentle", [START + 5 * HOUR])


def test_what_is_exempt_is_shown_and_not_stopped() -> None:
    prepaid = replace(machine(*[0.0] * 12), instance=instance(billing=Billing.PREPAID))

    found = one(prepaid, until(12))

    assert (found.exempt, found.stops, found.idle_hours) == ("prepaid", (), 12)
    assert tallied([found], "digest").total.exempt == 1


def test_what_no_run_could_judge_is_unmeasured() -> None:
    found = one(machine(*[0.0, None] * 10), until(20))

    assert (found.stops, found.judged) == ((), False)
    assert found.unmeasured_hours > 0
    assert tallied([found], "digest").total.unmeasured == 1


def test_waits_run_in_the_policys_working_hours() -> None:
    """Idle at 03:00; two working hours from 10:00 on end at noon."""
    office = WorkingCalendar("UTC", frozenset(range(5)), time(10), time(18))

    (stop,) = one(machine(*[0.0] * 20), until(20), policy(quick(), calendar=office)).stops

    assert stop.at == START + 12 * HOUR


def test_money_stands_by_currency_and_unpriced_hours_beside_it() -> None:
    yuan = HourlyRate(Money(Decimal(7), "CNY"), "test", "2026-01-01")
    idle = [0.0] * 12
    fleet = [
        machine(*idle, native_id="i-1"),
        replace(machine(*idle, native_id="i-2"), rate=yuan),
        replace(machine(*idle, native_id="i-3"), rate=None, owner="vision"),
    ]

    found = tallied(replay(policy(quick()), fleet, until(12)), "digest")

    assert {str(money) for money in found.total.reclaimed} == {"17.50 USD", "49.00 CNY"}
    assert (found.total.reclaimed_hours, found.total.unpriced_hours) == (21, 7)
    assert [(each.name, each.stops) for each in found.by_team] == [("", 2), ("vision", 1)]


def test_a_machine_under_no_rule_is_counted_apart() -> None:
    other = policy(quick(applies_to=Selector(instance_types=("p5.*",))))

    found = tallied(replay(other, [machine(*[0.0] * 12)], until(12)), "digest")

    assert (found.unmatched, found.total.machines) == (1, 0)


def test_the_policys_owners_name_the_team_where_the_record_does_not() -> None:
    owned = policy(quick(), owners=(Owner("nlp", Selector()),))

    assert one(machine(*[0.0] * 12), until(12), owned).team == "nlp"


def test_a_longer_window_regrets_less_and_reclaims_less() -> None:
    """Quiet for six hours between bursts, then for a day."""
    of = machine(*[*[0.0] * 6, 90.0] * 4, *[0.0] * 24, 90.0)
    grid = Grid(windows=(3 * HOUR, 10 * HOUR))

    short, long = marked(tuple(frontier(policy(quick()), [of], until(53), grid)))

    assert [short.tally.stops, long.tally.stops] == [5, 1]
    assert short.tally.regrets[2].yes > long.tally.regrets[2].yes
    assert short.tally.reclaimed_hours > long.tally.reclaimed_hours
    assert short.best
    assert long.best


VALUES = st.sampled_from([0.0, 0.0, 0.0, 3.0, 5.0, 40.0, 100.0, math.nan, -1.0, 130.0])
PLAUSIBLE = st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 4.9, 5.0, 60.0, math.nan])


@st.composite
def records(draw: st.DrawFn) -> Machine:
    """One machine with one or two cards, perhaps a CPU; holes, thin hours, and now and then what cannot be."""
    length = draw(st.integers(1, 60))
    cards = draw(st.sampled_from([1.0, 1.0, 2.0]))
    values = draw(st.sampled_from([PLAUSIBLE, PLAUSIBLE, PLAUSIBLE, VALUES]))
    named = [(SignalName.GPU, str(card)) for card in range(draw(st.sampled_from([int(cards), int(cards), 1])))]
    named += draw(st.sampled_from([[], [(SignalName.CPU, "")]]))
    mean = draw(st.integers(0, 9)) == 0
    histories = []
    for name, device in named:
        maxima = [draw(values)] if length == 1 else draw(_patched(length, values))
        samples = [0 if math.isnan(value) else draw(st.sampled_from([60] * 9 + [57, 56, 12])) for value in maxima]
        begins = START + draw(st.sampled_from([0, 0, 0, 2])) * HOUR
        kind = Statistic.MEAN_OF_CARDS if mean and name is SignalName.GPU else Statistic.DEVICE
        histories.append(SignalHistory(name, device, begins, array("d", maxima), array("I", samples), "test", kind))
    marks = sorted(draw(st.sets(st.integers(0, 2 * length), max_size=4)))
    runs = tuple(Run(_half(a), _half(b)) for a, b in zip(marks[::2], marks[1::2], strict=False))
    if len(marks) % 2:
        runs = (*runs, Run(_half(marks[-1])))
    cannot = draw(st.sampled_from([""] * 8 + ["one_time_spot"]))
    tags = draw(st.sampled_from([{}] * 6 + [{"keep-until": "2026-03-03"}]))
    shown = instance(accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", cards), cannot_stop=cannot, tags=tags)
    return Machine(shown, RATE, tuple(histories), runs)


@st.composite
def _patched(draw: st.DrawFn, length: int, values: st.SearchStrategy[float]) -> list[float]:
    """Stretches of one value: single hours at random are never idle long enough."""
    maxima: list[float] = []
    while len(maxima) < length:
        maxima += [draw(values)] * draw(st.sampled_from([1, 1, 2, 4, 9, 20]))
    return maxima[:length]


def _half(mark: int) -> datetime:
    return START + mark * timedelta(minutes=30)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    waits = [timedelta(hours=hours) for hours in (1, 2, 5)]
    ladder = [Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, draw(st.sampled_from(waits)))]
    ladder += draw(st.sampled_from([[], [], [Step(Verb.TERMINATE, draw(st.sampled_from(waits)))]]))
    bounds = IdleBounds(
        lasting=draw(st.sampled_from([HOUR, 2 * HOUR, 3 * HOUR, timedelta(minutes=90), 8 * HOUR])),
        cpu_max_below_percent=draw(st.sampled_from([None, None, 10.0])),
    )
    other = draw(st.sampled_from([(), (), (rule("longer", idle=IdleBounds(lasting=7 * HOUR)),)]))
    limits = replace(rule().limits, unstoppable_may_terminate=draw(st.booleans()))
    office = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(9), time(18))
    agreed = Exemption(Selector(), "nlp", "until tomorrow", "lead", START + 30 * HOUR)
    return policy(
        rule(idle=bounds, ladder=tuple(ladder), limits=limits),
        *other,
        calendar=draw(st.sampled_from([None, None, office])),
        exemptions=draw(st.sampled_from([(), (), (), (), (agreed,)])),
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(records(), policies(), st.sampled_from([1, 1, 2, 5]), st.integers(0, 5), st.integers(20, 64))
def test_the_replay_equals_the_slow_and_obvious_way(
    of: Machine, under: Policy, every: int, first: int, last: int
) -> None:
    terms = Terms(START + first * HOUR, START + last * HOUR, every * HOUR)

    found, slow = one(of, terms, under), lived(under, of, terms)

    assert list(found.stops) == slow.stops
    assert (found.judged, found.unmeasured_hours) == (slow.judged, slow.unmeasured)


def test_a_run_every_half_hour_is_none_that_hourly_maxima_can_show() -> None:
    with pytest.raises(ValueError, match="whole hours"):
        Terms(START, START + HOUR, timedelta(minutes=30))
