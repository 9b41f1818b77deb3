"""The whole provider on the emulator sees the world as the world's own ports show it, and changes it as asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.contract.alibaba_world import HOUR, MINUTE, NOW, patient_pacer
from tests.network_places import address, card, place
from tests.world_ports.inventory import WorldInventory, WorldSignals
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.fleets import ALIBABA_ACCOUNT, HANGZHOU, alibaba_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World as Clouds
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.keys import WorldKey
from cloudstand.world.kinds import Billing
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import RefusedError
from costguard.domain.money import Money, SpendScope
from costguard.domain.network import AddressState
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import InstanceState, SnapshotState
from costguard.domain.signals import SignalHistory, SignalName
from costguard.ports import Target
from costguard.providers.alibaba.billing.prices import AlibabaPrices
from costguard.providers.alibaba.billing.source import AlibabaSpend
from costguard.providers.alibaba.compute.audit_log import AlibabaAuditLog
from costguard.providers.alibaba.compute.executor import AlibabaExecutor
from costguard.providers.alibaba.compute.instance_types import AlibabaTypes
from costguard.providers.alibaba.compute.metrics import AlibabaSignals
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS, REACH
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.alibaba.kms.rotation import AlibabaKeyRotator
from costguard.providers.alibaba.kms.source import AlibabaKeys
from costguard.providers.kit.iam.permissions import ACTING, READING, SPENDING, Feature, Purpose

DAY = 24 * HOUR
MEMBER = "1098765432109876"
GPU, POWER, CPU, NETWORK = SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK


def fleet(cloud: str = "alibaba") -> list[MachineSpec]:
    before = NOW - 9 * DAY
    data = Disk(200, "/dev/xvdb", "cloud_essd", deleted_with_instance=False)
    return [
        alibaba_machine("idle", does.idle(), before, cloud=cloud, disks=(Disk(40, "/dev/xvda", "cloud_essd"), data)),
        alibaba_machine("busy", does.busy(), before, "ecs.gn6i-c4g1.xlarge", cloud=cloud),
        alibaba_machine("spiky", does.one_spike(NOW - 3 * HOUR), before, cloud=cloud),
        alibaba_machine("unseen", does.no_data(), before, cloud=cloud),
        alibaba_machine("died", does.agent_dies(NOW - 90 * MINUTE), before, cloud=cloud),
        alibaba_machine("local", does.idle(), before, "ecs.gn5-c4g1.xlarge", cloud=cloud),
        alibaba_machine("prepaid", does.idle(), before, cloud=cloud, billing=Billing.PREPAID),
        alibaba_machine("spot", does.idle(), before, cloud=cloud, billing=Billing.SPOT),
        alibaba_machine("kept", does.idle(), before, cloud=cloud, kept_address=True, tags={"team": "nlp"}),
        alibaba_machine("guarded", does.idle(), before, cloud=cloud, protections=("termination_protection",)),
        alibaba_machine("member", does.idle(), before, cloud=cloud, account=MEMBER),
    ]


class Stage:
    """A fleet, its truth, and our provider on the emulator that shows it."""

    def __init__(self, cloud: str = "alibaba") -> None:
        self.clock = MovedClock(NOW)
        self.world = Clouds(fleet(cloud), NOW)
        self.emulator = AlibabaEmulator(WorldDoor(self.world, self.clock), cloud=cloud)
        self.session = AlibabaSession(
            cloud=cloud,
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=patient_pacer(),
            now=self.clock.now,
        )
        self.acting = self.session.acting()
        self.shard = Shard(cloud, ALIBABA_ACCOUNT, HANGZHOU)
        self.inventory = AlibabaInventory(self.session, catalogue=AlibabaTypes())

    def close(self) -> None:
        self.session.close()
        self.acting.close()
        self.emulator.close()

    def ref(self, name: str) -> ResourceRef:
        return to_product(next(spec.ref for spec in self.world.fleet if spec.name == name))

    def act(self, verb: Verb, ref: ResourceRef, resource: ResourceRef | None = None) -> str:
        action = Action("a", "decision-1", verb, ref, resource or ref, "e", "case-1", 1, "rule", "digest")
        return AlibabaExecutor(self.acting).execute(action).native_id

    def pass_(self, step: timedelta) -> None:
        self.world.tick(self.clock.advance(step))


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    try:
        yield made
    finally:
        made.close()


def test_every_machine_is_seen_as_the_world_shows_it(stage: Stage) -> None:
    ours = {one.ref: one for one in stage.inventory.read(stage.shard).instances}
    theirs = {one.ref: one for one in WorldInventory(stage.world, stage.clock).read(stage.shard).instances}

    assert set(ours) == set(theirs)
    for ref, wanted in theirs.items():
        found = ours[ref]
        for name in (
            *("state", "billing", "run_epoch", "launched_at", "created_at", "name", "zone", "tags", "local_disk_gib"),
            *("protected_by", "managed_by", "billed_while_stopped", "public_ip_is_kept", "operating_system"),
        ):
            assert getattr(found, name) == getattr(wanted, name), f"{wanted.name}: {name}"
        assert (found.accelerator.kind, found.accelerator.count) == (wanted.accelerator.kind, wanted.accelerator.count)


def test_the_closer_look_shows_what_the_world_holds(stage: Stage) -> None:
    refs = [one.ref for one in stage.inventory.read(stage.shard).instances]
    ours = stage.inventory.details(refs)

    for ref, wanted in WorldInventory(stage.world, stage.clock).details(refs).items():
        found = ours[ref]
        assert sorted(found.volumes, key=str) == sorted(wanted.volumes, key=str)
        assert (found.kept_addresses, found.protected_by) == (wanted.kept_addresses, wanted.protected_by)


def values(history: SignalHistory) -> list[float]:
    return [-1.0 if math.isnan(value) else value for value in history.maxima]


def test_signals_are_the_worlds_own(stage: Stage) -> None:
    """CPU and network come by the minute here and every five there: the same values, counted more often."""
    stage.pass_(25 * MINUTE)
    now, since = stage.clock.now(), NOW - 3 * HOUR - 20 * MINUTE
    instances = stage.inventory.read(stage.shard).instances
    ours = AlibabaSignals(stage.session, frozenset({GPU, POWER, CPU, NETWORK})).read(instances, since, now)
    theirs = WorldSignals(stage.world, stage.clock).read(instances, since, now)

    assert ours.gaps == ()
    for instance in instances:
        found = {(one.name, one.device): one for one in ours.readings[instance.ref].histories}
        wanted = {(one.name, one.device): one for one in theirs.readings[instance.ref].histories}
        assert set(found) == set(wanted), instance.name
        for key, history in wanted.items():
            assert found[key].start == history.start
            assert values(found[key]) == pytest.approx(values(history), abs=1e-3), (instance.name, key)
            each = 1 if key[0] in (GPU, POWER) else 5
            assert list(found[key].samples) == [count * each for count in history.samples]


FURTHER = "203.0.113.8"


def with_two_addresses(stage: Stage, name: str) -> ResourceRef:
    """Beside its own address it has one on a further card."""
    ref = stage.ref(name)
    further = card("eni-2", ref.native_id, stage.shard, primary=False, public_ips=(("10.0.0.7", FURTHER),))
    bound = address("eip-2", stage.shard, ip=FURTHER, state=AddressState.IN_USE, bound_to=further.ref)
    stage.world.networks.place(to_world(place(cards=[further], shard=stage.shard, addresses=(bound,))))
    return ref


def test_two_busy_addresses_are_all_the_worlds_traffic(stage: Stage) -> None:
    ref = with_two_addresses(stage, "kept")
    (asked,) = [one for one in stage.inventory.read(stage.shard).instances if one.ref == ref]
    report = AlibabaSignals(stage.session, frozenset({NETWORK})).read([asked], NOW - 3 * HOUR, NOW)
    (wanted,) = WorldSignals(stage.world, stage.clock).read([asked], NOW - 3 * HOUR, NOW).readings[ref].histories[-1:]

    assert asked.further_public_ips == (FURTHER,)
    (found,) = report.readings[ref].histories
    assert found.name is wanted.name is NETWORK
    assert values(found) == pytest.approx(values(wanted), abs=1e-3)
    assert list(found.samples) == [60, 60, 60]


def test_an_address_without_points_leaves_the_network_unmeasured(stage: Stage) -> None:
    """What goes over it is nobody's guess."""
    ref = with_two_addresses(stage, "kept")
    stage.emulator.networks.unmeasured.add(FURTHER)
    for asked in (
        next(one for one in stage.inventory.read(stage.shard).instances if one.ref == ref),
        stage.inventory.details([ref])[ref].instance,
    ):
        report = AlibabaSignals(stage.session, frozenset({NETWORK})).read([asked], NOW - 3 * HOUR, NOW)
        (found,) = report.readings[ref].histories
        assert list(found.samples) == [0, 0, 0]


def test_metrics_cost_no_more_requests_than_their_pages(stage: Stage) -> None:
    """Nine cards of 1,440 minutes each are nine pages of 1,440 points; the one nobody measures has none."""
    instances = stage.inventory.read(stage.shard).instances
    AlibabaSignals(stage.session, frozenset({GPU})).read(instances, NOW - DAY, NOW)

    calls = {one.operation: one.calls for one in stage.session.calls_made()}
    assert calls["cms:DescribeMetricList"] == 9


def test_denied_metrics_leave_every_machine_unmeasured_and_say_why(stage: Stage) -> None:
    instances = stage.inventory.read(stage.shard).instances
    stage.emulator.allowed[ALIBABA_ACCOUNT] = {"ecs:DescribeInstances"}

    report = AlibabaSignals(stage.session, frozenset({GPU})).read(instances, NOW - DAY, NOW)

    assert report.readings == {}
    assert [gap.fix for gap in report.gaps] == [
        "grant cms:DescribeMetricList and cms:QueryMetricList to these credentials"
    ]


@pytest.mark.parametrize(
    ("cloud", "idle", "spot"), [("alibaba", "12.7", "5.08"), ("alibaba-intl", "1.763889", "0.705556")]
)
def test_prices_are_in_the_currency_of_the_site(cloud: str, idle: str, spot: str) -> None:
    stage = Stage(cloud)
    currency = "CNY" if cloud == "alibaba" else "USD"
    try:
        instances = stage.inventory.read(stage.shard).instances
        prices = AlibabaPrices(stage.session, (), now=NOW)
        rates = prices.rates(instances)
        detail = stage.inventory.details([stage.ref("kept")])[stage.ref("kept")]
        kept = prices.kept_hourly(detail)
    finally:
        stage.close()

    assert rates[stage.ref("idle")].money == Money(Decimal(idle), currency)
    assert rates[stage.ref("spot")].money == Money(Decimal(spot), currency)
    assert [line for line, _ in kept] == ["volume", "public_address"]
    assert kept[0][1] is not None
    assert kept[0][1].currency == currency


def test_a_machine_goes_down_the_whole_ladder(stage: Stage) -> None:
    """Stop, verify the bill, copy every disk, see it complete, release: and the disk that was to stay stays."""
    idle = stage.ref("idle")
    before = stage.inventory.details([idle])[idle]
    stage.act(Verb.STOP, idle)
    stage.pass_(5 * MINUTE)
    stopped = stage.inventory.details([idle])[idle].instance
    assert (stopped.state, stopped.billed_while_stopped) == (InstanceState.STOPPED, False)
    assert stopped.run_epoch == before.instance.run_epoch

    made = {stage.act(Verb.SNAPSHOT, idle, volume.ref) for volume in before.volumes}
    stage.pass_(HOUR)
    seen = stage.inventory.details([idle])[idle]
    assert {one.ref.native_id for one in seen.snapshots} == made
    assert {(one.state, one.decision_id) for one in seen.snapshots} == {(SnapshotState.COMPLETED, "decision-1")}
    assert {one.volume for one in seen.snapshots} == {volume.ref for volume in before.volumes}

    stage.act(Verb.TERMINATE, idle)
    stage.pass_(5 * MINUTE)
    assert stage.inventory.details([idle]) == {}
    left = {volume.native_id for volume in stage.world.volumes.values() if volume.deleted_at is None}
    assert {volume.ref.native_id for volume in before.volumes} & left == {
        volume.ref.native_id for volume in before.volumes if not volume.deleted_with_instance
    }


@pytest.mark.parametrize("name", ["local", "prepaid"])
def test_a_stop_that_saves_nothing_is_seen(stage: Stage, name: str) -> None:
    ref = stage.ref(name)
    stage.act(Verb.STOP, ref)
    stage.pass_(5 * MINUTE)

    assert stage.inventory.details([ref])[ref].instance.billed_while_stopped


@pytest.mark.parametrize("name", ["prepaid", "guarded", "busy"])
def test_what_is_prepaid_protected_or_running_is_not_released(stage: Stage, name: str) -> None:
    if name != "busy":
        stage.act(Verb.STOP, stage.ref(name))
        stage.pass_(5 * MINUTE)

    with pytest.raises(RefusedError):
        stage.act(Verb.TERMINATE, stage.ref(name))
    stage.pass_(5 * MINUTE)
    assert stage.world.machines[stage.ref(name).native_id].terminate_requested_at is None


def test_a_snapshot_sent_twice_for_one_decision_is_made_once(stage: Stage) -> None:
    """Nothing here sends twice; a proxy on the way might."""
    idle = stage.ref("idle")
    volume = stage.inventory.details([idle])[idle].volumes[0].ref

    assert stage.act(Verb.SNAPSHOT, idle, volume) == stage.act(Verb.SNAPSHOT, idle, volume)
    assert len(stage.world.snapshots) == 1


def granted(features: frozenset[Feature]) -> set[str]:
    allowed = (one for one in policy_document(features)["Statement"] if one["Effect"] == "Allow")
    return {action for one in allowed for action in one["Action"]}


def test_the_generated_policies_are_enough_and_no_more(stage: Stage) -> None:
    idle = stage.ref("idle")
    stage.emulator.allowed[ALIBABA_ACCOUNT] = granted(READING)
    found = stage.inventory.discover(Target("alibaba", regions=(HANGZHOU,)))
    inventory = stage.inventory.read(stage.shard)
    detail = stage.inventory.details([idle])[idle]
    report = AlibabaSignals(stage.session, frozenset({GPU})).read(inventory.instances, NOW - HOUR, NOW)
    rates = AlibabaPrices(stage.session, (), now=NOW).rates(inventory.instances)
    assert (found.gaps, inventory.gaps, report.gaps, len(rates)) == ((), (), (), len(inventory.instances))
    assert AlibabaAuditLog(stage.session, now=stage.clock.now).launches(inventory.instances).gaps == ()

    stage.emulator.allowed[ALIBABA_ACCOUNT] = granted(SPENDING)
    spend, payer = AlibabaSpend(stage.session, now=stage.clock.now), Target("alibaba")
    (bill,) = spend.read(payer, [SpendScope()], NOW - 2 * DAY, NOW).values()
    assert (bill.gaps, list(spend.budgets(payer))) == ((), [])

    stage.emulator.allowed[ALIBABA_ACCOUNT] = granted(ACTING)
    stage.act(Verb.STOP, idle)
    stage.pass_(5 * MINUTE)
    stage.act(Verb.SNAPSHOT, idle, detail.volumes[0].ref)
    stage.act(Verb.START, idle)
    stage.pass_(HOUR)
    stage.act(Verb.STOP, idle)
    stage.pass_(HOUR)
    stage.act(Verb.TERMINATE, idle)

    sent = {call.operation for call in (*stage.session.calls_made(), *stage.acting.calls_made())}
    needless = {"sts:AssumeRole", "resourcedirectory:ListAccounts", "vpc:DescribeEipAddresses"}
    keys = {name for name in OPERATIONS if name.startswith("kms:")}
    networks = {name for name, one in OPERATIONS.items() if one.feature is Feature.NETWORK}
    assert sent == set(OPERATIONS) - needless - keys - networks


def test_the_generated_policies_for_keys_are_enough_and_no_more(stage: Stage) -> None:
    ref = ResourceRef("alibaba", ALIBABA_ACCOUNT, HANGZHOU, "key", "key-hzz62f1cb66fa42qo0000")
    stage.world.keys.add(WorldKey(to_world(ref), "Aliyun_AES_256", NOW - DAY, instance="kst-1"))
    rotating = stage.session.only_for(Purpose.ROTATE)
    source, rotator = AlibabaKeys(rotating), AlibabaKeyRotator(rotating)
    stage.emulator.allowed[ALIBABA_ACCOUNT] = granted(frozenset({Feature.KEYS}))
    inventory = source.read(stage.shard)
    (key,) = inventory.keys
    assert inventory.gaps == ()

    stage.emulator.kms.unopened.add(ALIBABA_ACCOUNT)
    assert source.read(stage.shard).keys == ()
    stage.emulator.kms.unopened.clear()
    rotating.call(stage.shard, "kms", "DescribeRegions")

    stage.emulator.allowed[ALIBABA_ACCOUNT] = granted(frozenset({Feature.ROTATE}))
    rotator.set_period(key, 90)
    rotator.rotate(key)
    sent = {call.operation for call in rotating.calls_made()}
    rotating.close()
    assert sent == set(REACH[Purpose.ROTATE]) - {"sts:AssumeRole"}
