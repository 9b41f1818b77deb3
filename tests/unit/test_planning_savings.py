"""What a step is worth and what it risks, told before it is done."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import T4, detail, fact, finding, instance, usd, volume

from costguard.domain.actions import Saving, Verb
from costguard.domain.money import HourlyRate, Money
from costguard.domain.resources import Instance, InstanceDetail, InstanceState
from costguard.planning.savings import confirmed_saving, copying_risk, risks_of, saving_of

RATE = HourlyRate(usd("3.06"), "test", "2026-01-01")
TEST_RATE = HourlyRate(usd("1.00"), "test", "2026-01-01")
KEPT: tuple[tuple[str, Money | None], ...] = (("volume", usd("0.02")), ("snapshot", None))


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.STOP, Verb.TERMINATE])
def test_a_running_machine_saves_its_rate_beside_what_stays_billed(verb: Verb) -> None:
    scarce = instance(accelerator=replace(T4, model="A100"))
    assert saving_of(verb, fact(scarce), KEPT) == Saving(usd("1.00"), KEPT, ("scarce_type",), TEST_RATE)


@pytest.mark.parametrize("verb", [Verb.SNAPSHOT, Verb.START])
def test_a_copy_saves_nothing_by_itself(verb: Verb) -> None:
    assert saving_of(verb, fact(), KEPT) is None


def test_a_stopped_machine_has_saved_its_rate_already() -> None:
    assert saving_of(Verb.TERMINATE, fact(instance(state=InstanceState.STOPPED)), KEPT) == Saving(
        None, KEPT, price=TEST_RATE
    )


def test_an_unknown_price_saves_an_unknown_amount() -> None:
    assert saving_of(Verb.STOP, fact(rate=None), None) == Saving(None)


def test_what_was_not_seen_saves_nothing_that_could_be_told() -> None:
    assert saving_of(Verb.STOP, None, KEPT) is None


def test_a_stop_seen_complete_saves_the_rate_last_known() -> None:
    assert confirmed_saving(finding(rate=RATE), KEPT) == Saving(usd("3.06"), KEPT, price=RATE)


def test_a_stop_of_unknown_price_is_confirmed_all_the_same() -> None:
    assert confirmed_saving(finding(rate=None), KEPT) == Saving(None, KEPT)
    assert confirmed_saving(None, ()) == Saving(None)


def test_a_stop_that_the_cloud_bills_on_saves_nothing() -> None:
    """Tencent keeps charging unless asked; some types of Alibaba ignore the economical stop."""
    assert confirmed_saving(finding(rate=RATE), KEPT, billed_while_stopped=True) == Saving(None, KEPT, price=RATE)


@pytest.mark.parametrize(
    ("machine", "risks"),
    [
        (instance(), ()),
        (instance(local_disk_gib=0.5), ("local_disk_lost",)),
        (instance(local_disk_gib=None), ("local_disk_lost",)),
        (instance(public_ip="203.0.113.7"), ("public_ip_lost",)),
        (instance(public_ip="203.0.113.7", public_ip_is_kept=True), ()),
        (instance(public_ip="", public_ip_is_kept=False), ()),
        (instance(accelerator=replace(T4, model="NVIDIA h100 80GB")), ("scarce_type",)),
    ],
)
def test_what_a_stop_may_lose_is_named(machine: Instance, risks: tuple[str, ...]) -> None:
    assert risks_of(machine) == risks


@pytest.mark.parametrize(
    "model",
    ["A100", "A800", "H100", "H200", "H800", "H20", "B200", "B300", "GB200", "V100", "L20", "Trainium2"],
)
def test_a_model_that_clouds_run_short_of_may_not_start_again(model: str) -> None:
    assert risks_of(instance(accelerator=replace(T4, model=model))) == ("scarce_type",)


def test_all_risks_are_told_together() -> None:
    machine = instance(local_disk_gib=None, public_ip="203.0.113.7", accelerator=replace(T4, model="V100"))
    assert risks_of(machine) == ("local_disk_lost", "public_ip_lost", "scarce_type")


ENDS_RUNNING = (Verb.WARN, Verb.SNAPSHOT, Verb.TERMINATE)
TWO = (volume("vol-1"), volume("vol-2"))


@pytest.mark.parametrize(
    ("ahead", "found", "risks"),
    [
        (ENDS_RUNNING, None, ("crash_consistent",)),
        (ENDS_RUNNING, detail(), ("crash_consistent",)),
        (ENDS_RUNNING, detail(volumes=TWO), ("crash_consistent_each",)),
        (ENDS_RUNNING, detail(volumes=TWO, copied_together=True), ("crash_consistent_together",)),
        ((Verb.SNAPSHOT, Verb.STOP), detail(), ("crash_consistent",)),
        ((Verb.WARN, Verb.STOP, Verb.WARN, Verb.SNAPSHOT, Verb.TERMINATE), detail(volumes=TWO), ()),
        ((Verb.WARN, Verb.STOP), detail(volumes=TWO), ()),
    ],
)
def test_copies_made_while_a_machine_runs_are_said_to_be_crash_consistent(
    ahead: tuple[Verb, ...], found: InstanceDetail | None, risks: tuple[str, ...]
) -> None:
    assert copying_risk(ahead, instance(), found) == risks


def test_copies_of_a_stopped_machine_are_not_said_to_be_crash_consistent() -> None:
    assert copying_risk(ENDS_RUNNING, instance(state=InstanceState.STOPPED), detail()) == ()
