"""The demo's outline: its fleet shows every kind of machine, its policy loads, its days pass in order."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase

import pytest
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.setting import BareWorld
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import aws_fleet
from cloudstand.world.kinds import AcceleratorKind, Keeper
from costguard.cli.demo.story import EVENTS, Buttons, demo_policy, live
from costguard.domain.actions import Verb
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, Launch
from costguard.guards.rules.common import Consent, Mode
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.ownership import OwnerSource, owner_of

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


def bare_world() -> BareWorld:
    return BareWorld(aws_fleet(NOW), NOW)


def test_a_moved_clock_goes_forward_only() -> None:
    clock = MovedClock(NOW)
    clock.sleep(90)
    assert clock.now() == NOW + timedelta(seconds=90)
    assert clock.move_to(NOW + timedelta(days=1)) == NOW + timedelta(days=1)
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(timedelta(seconds=-1))
    with pytest.raises(ValueError, match="aware"):
        MovedClock(datetime(2026, 3, 2, 9, 0))  # noqa: DTZ001 - the naive time is the point


def test_the_demo_fleet_stands_in_two_accounts_and_two_regions() -> None:
    fleet = aws_fleet(NOW)
    assert len({(spec.account, spec.region) for spec in fleet}) == 4
    assert len({spec.native_id for spec in fleet}) == len(fleet) == 21


def test_the_demo_fleet_shows_every_kind() -> None:
    fleet = aws_fleet(NOW)
    assert {spec.billing for spec in fleet} >= {Billing.ON_DEMAND, Billing.SPOT, Billing.RESERVED}
    assert {spec.managed_by.keeper for spec in fleet if spec.managed_by} == {Keeper.AUTOSCALING, Keeper.KUBERNETES}
    assert {spec.accelerator.kind for spec in fleet} == {AcceleratorKind.NVIDIA_GPU, AcceleratorKind.NEURON}
    assert any(spec.one_time_spot for spec in fleet)
    assert any(not spec.workload.agent for spec in fleet)
    assert any(spec.workload.agent_dies_at for spec in fleet)
    assert any(spec.workload.spikes for spec in fleet)
    assert any(spec.workload.idle_cards for spec in fleet)
    assert any("costguard-protect" in spec.tags for spec in fleet)
    assert any("termination_protection" in spec.protections for spec in fleet)
    assert any(spec.kept_address and len(spec.disks) == 2 for spec in fleet)
    assert any(NOW - spec.launched_at < timedelta(hours=24) for spec in fleet)
    assert {bool(spec.local_disk_gib) for spec in fleet} == {True, False}


def test_every_machine_of_the_demo_has_a_rule_an_owner_and_a_price() -> None:
    policy = load_policy(demo_policy())
    world = bare_world().world
    inventory = WorldInventory(world, MovedClock(NOW))
    for shard in sorted({spec.shard for spec in world.fleet}):
        for instance in inventory.read(to_product(shard)).instances:
            matching = [rule.name for rule in policy.idle_gpu if rule.applies_to.matches(instance)]
            assert len(matching) == 1, (instance.name, matching)
            by = world.machines[instance.ref.native_id].spec.launched_by
            launch = Launch(by, NOW, "event") if by else None
            assert owner_of(instance, policy, launch=launch)[1] is OwnerSource.OWNERS, instance.name
    assert all(spec.hourly is not None for spec in world.fleet)


def test_the_demo_policy_enforces_on_working_days_and_asks_for_local_disks_of_product() -> None:
    policy = load_policy(demo_policy())
    assert policy.mode is Mode.ENFORCE
    assert policy.calendar is not None
    assert policy.calendar.weekdays == frozenset(range(5))
    research, product, platform = (policy.rule(name) for name in ("research", "product", "platform"))
    assert research is not None
    assert product is not None
    assert platform is not None
    assert [step.verb for step in research.ladder] == [Verb.WARN, Verb.STOP, Verb.TERMINATE]
    assert [step.wait for step in research.ladder[1:]] == [timedelta(hours=24), timedelta(days=5)]
    assert (product.limits.local_disk, platform.mode) == (Consent.ASK, Mode.WARN)
    guarded = {account.id for account in policy.accounts}
    assert any(fnmatchcase(aws_fleet(NOW)[0].account, pattern) for pattern in guarded)


def test_days_pass_in_order_and_people_act_an_hour_before_the_run() -> None:
    sandbox = bare_world()
    runs: list[datetime] = []
    snoozed: list[tuple[ResourceRef, timedelta, datetime]] = []
    approved: list[tuple[ResourceRef, datetime]] = []
    started: list[tuple[ResourceRef, datetime]] = []

    def run_day(now: datetime) -> int:
        runs.append(now)
        return len(runs)

    lived = list(
        live(
            sandbox,
            run_day,
            Buttons(
                lambda ref, how_long: snoozed.append((ref, how_long, sandbox.clock.now())),
                lambda ref: approved.append((ref, sandbox.clock.now())),
                lambda ref: started.append((ref, sandbox.clock.now())),
            ),
        )
    )
    assert runs == [NOW + number * timedelta(days=1) for number in range(13)]
    assert [day.result for day in lived] == list(range(1, 14))
    ((ref, how_long, at),) = snoozed
    assert (how_long, at) == (timedelta(days=14), NOW + timedelta(days=2) - timedelta(hours=1))
    assert ref == sandbox.machine("ablation-runs")
    assert approved == [(sandbox.machine("batch-transcoder"), at)]
    assert started == [(sandbox.machine("staging-inference"), NOW + timedelta(days=6) - timedelta(hours=1))]
    assert sum(len(day.events) for day in lived) == len(EVENTS)


def test_a_story_about_no_such_machine_is_an_error() -> None:
    with pytest.raises(LookupError, match="nobody"):
        bare_world().machine("nobody")
