"""Short stories for the wires: small fleets on one cloud or on all, for the length of one ladder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from tests.simulation.faults import Fault, Port
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import PolicyVersion
from tests.simulation.scenario import DAY, HOUR, REGIONS, START, Deed, Delivery, Scenario, Spell, machine

from cloudstand.world import workload
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing

_CLOUDS = ("aws", "alibaba", "tencent")
_DEVICES = {"aws": ("/dev/sda1", "/dev/sdf"), "alibaba": ("/dev/xvda", "/dev/xvdb"), "tencent": ("vda", "vdb")}
_TYPES = {"aws": "gp3", "alibaba": "cloud_essd", "tencent": "CLOUD_PREMIUM"}
_LADDER = RuleSpec(lasting=4, stop=20, terminate=24)
_ANY = (Fault.LOST, Fault.THROTTLED, Fault.DENIED, Fault.TRUNCATED)
_SAID = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.FREEZE, Fault.OWNER, Fault.PEOPLE, Fault.CLOCK_JUMP)
_CLOUD_PORTS = frozenset({Port.LISTING, Port.DETAILS, Port.SIGNALS, Port.ACT})


@dataclass(frozen=True, slots=True)
class WireScenario(Scenario):
    """A scenario over the wires; with `ends_unanswered` no terminate is answered, though each takes effect."""

    ends_unanswered: bool = False


def wire_story(seed: int) -> WireScenario:
    """The story of a seed: always the same."""
    random = Random(seed)  # noqa: S311 - reproducible on purpose
    return _running(random, seed) if seed % 24 == 20 else _KINDS[seed % len(_KINDS)](random, seed)


def wire_machine(cloud: str, name: str, *, disks: int = 1, **more: object) -> MachineSpec:
    """An idle machine as this cloud's emulator can show it."""
    places = _DEVICES[cloud][:disks]
    shown = tuple(Disk(100, device=place, volume_type=_TYPES[cloud]) for place in places)
    return replace(machine(cloud, name, disks=shown, public_ip=None if cloud == "tencent" else ""), **more)  # type: ignore[arg-type]


def _story(
    seed: int,
    machines: tuple[MachineSpec, ...],
    *,
    rule: RuleSpec = _LADDER,
    kinds: tuple[Fault, ...] = (),
    rate: float = 0.0,
    hours: int = 24,
    runs: int = 8,
    ports: frozenset[Port] = frozenset(Port),
    quiet: int = 0,
) -> WireScenario:
    moments = [START + number * hours * HOUR for number in range(runs)]
    return WireScenario(
        seed=seed,
        machines=machines,
        policy=PolicyVersion((rule,)),
        changes=(),
        deliveries=tuple(Delivery(scheduled=at, arrives=at + timedelta(seconds=2)) for at in moments),
        every=hours * HOUR,
        fault_rate=rate,
        kinds=frozenset(kinds),
        switch_rate=0.0,
        ports=ports,
        quiet_runs=quiet,
    )


def _one(random: Random, cloud: str = "") -> MachineSpec:
    cloud = cloud or random.choice(_CLOUDS)
    recycles = cloud == "tencent" and random.random() < 0.7
    return wire_machine(cloud, "one", disks=random.choice((1, 2)), recycles=recycles)


def _ladder(random: Random, seed: int) -> WireScenario:
    """Idle from beginning to end, and nothing goes wrong; a copy may take three days."""
    one = _one(random)
    if random.random() < 0.5:
        one = replace(one, disks=(*one.disks[:-1], replace(one.disks[-1], snapshot_takes=3 * DAY)))
    return _story(seed, (one,), runs=9)


def _unanswered(random: Random, seed: int) -> WireScenario:
    """Every other change gets no answer, whether or not it took effect."""
    kinds = (Fault.LOST, Fault.LOST_ANSWER, Fault.REFUSED, Fault.THROTTLED)
    return _story(seed, (_one(random),), kinds=kinds, rate=0.06, runs=9, ports=frozenset({Port.ACT}), quiet=3)


def _misread(random: Random, seed: int) -> WireScenario:
    """Reads that are denied, throttled, cut short or lost; beside it a machine that works."""
    cloud = random.choice(_CLOUDS)
    busy = wire_machine(cloud, "two", workload=workload.busy())
    return _story(seed, (_one(random, cloud), busy), kinds=_ANY, rate=0.05, runs=7, ports=_CLOUD_PORTS, quiet=3)


def _neighbours(random: Random, seed: int) -> WireScenario:
    """Several in a shard, of which some work and some are another team's, and one in another region."""
    cloud = random.choice(_CLOUDS)
    machines = (
        _one(random, cloud),
        wire_machine(cloud, "busy", workload=workload.busy()),
        wire_machine(cloud, "other", tags={"team": "product"}),
        wire_machine(cloud, "kept", protections=("termination_protection",)),
        wire_machine(
            cloud, "far", region=REGIONS[cloud][-1], workload=random.choice((workload.idle(), workload.busy()))
        ),
    )
    return _story(seed, machines, runs=7)


def _capped(random: Random, seed: int) -> WireScenario:
    """Idle machines and a cap for one of them a day; answers to stops are lost."""
    cloud = random.choice(_CLOUDS)
    machines = tuple(wire_machine(cloud, f"m{number}") for number in range(3))
    rule = replace(_LADDER, stop=6, terminate=None, actions=1, lasting=4)
    kinds = (Fault.LOST_ANSWER, Fault.REFUSED)
    return _story(seed, machines, rule=rule, kinds=kinds, rate=0.1, hours=4, runs=8, ports=frozenset({Port.ACT}))


def _used(random: Random, seed: int) -> WireScenario:
    """Work that comes or ends at any hour of the day, also just before a run."""
    one = _one(random)
    moment = START + random.choice((1, 2, 3)) * DAY - random.random() * 12 * HOUR
    load = random.choice((workload.comes_back(moment), workload.busy_until(moment), workload.one_spike(moment)))
    rule = replace(_LADDER, lasting=random.choice((4, 12, 24)))
    return _story(seed, (replace(one, workload=load),), rule=rule, runs=7)


def _again(random: Random, seed: int) -> WireScenario:
    """Started again by its owner after the stop or the copies."""
    one = _one(random)
    moment = START + random.choice((3, 4, 5)) * DAY + 12 * HOUR
    return replace(_story(seed, (one,), runs=12), deeds=((moment, one.native_id, Deed.START),))


def _running(random: Random, seed: int) -> WireScenario:
    """One that cannot stop, with two disks: copied while it runs. Copies take a day, or their answers are lost."""
    one = replace(wire_machine("aws", "one", disks=2), one_time_spot=True, billing=Billing.SPOT)
    kinds = random.choice(((), (Fault.LOST_ANSWER,), (Fault.LOST, Fault.LOST_ANSWER, Fault.OWNER)))
    if random.random() < 0.5:
        one = replace(one, disks=(one.disks[0], replace(one.disks[1], snapshot_takes=DAY)))
    rule = replace(_LADDER, unstoppable="terminate")
    return _story(seed, (one,), rule=rule, kinds=kinds, rate=0.1, runs=7, ports=frozenset({Port.ACT}), quiet=3)


def _ending(random: Random, seed: int) -> WireScenario:
    """On Tencent Cloud, to an end that is not answered."""
    one = wire_machine("tencent", "one", disks=random.choice((1, 2)), recycles=True)
    return replace(_story(seed, (one,)), ends_unanswered=True)


def _met(random: Random, seed: int) -> WireScenario:
    """The owner at work just before a change arrives."""
    return _story(seed, (_one(random),), kinds=(Fault.OWNER,), rate=0.06, runs=8, ports=frozenset({Port.ACT}))


def _crowded(random: Random, seed: int) -> WireScenario:
    """Everything at once: crashes, owners, people, and the wires."""
    machines = tuple(_one(random, cloud) for cloud in random.sample(_CLOUDS, random.choice((1, 2, 3))))
    kinds = tuple(fault for fault in (*_ANY, *_SAID, Fault.LOST_ANSWER, Fault.REFUSED) if random.random() < 0.5)
    story = _story(seed, machines, kinds=kinds, rate=random.choice((0.005, 0.02)), quiet=random.choice((0, 3)))
    begins = START + random.random() * 5 * DAY
    tag = random.choice((("keep", "yes"), ()))
    return replace(story, spells=(Spell(machines[0].native_id, begins, begins + 13 * HOUR, tag),))


_KINDS: tuple[Callable[[Random, int], WireScenario], ...] = (
    *(_ladder, _unanswered, _misread, _neighbours, _capped, _ending),
    *(_unanswered, _used, _again, _crowded, _misread, _met),
)
