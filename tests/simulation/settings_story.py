"""What a story about settings says before its first event, and how its keys and networks are laid out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from tests.simulation.faults import Fault, Port
from tests.simulation.scenario import ACCOUNTS, DAY, REGIONS, START, Delivery, machine
from tests.simulation.settings import SettingsVersion
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.fleet import MachineSpec
from cloudstand.world.keys import KeyState, WorldKey
from cloudstand.world.network.parts import NetworkInventory
from cloudstand.world.network.region import Region, rule
from costguard.domain.refs import ResourceRef, Shard

OFFICE, INSIDE = "198.51.100.0/24", "10.20.0.0/16"
NOTEBOOK, GATE = "203.0.113.10", "203.0.113.11"
"""The public addresses of the first machine and of the bastion; their private ones end in 10 and 11 too."""
NOBODYS = ("10.20.1.99/32", "10.20.1.10/32", f"{NOTEBOOK}/32", "198.51.101.7/32", "10.20.2.10/32")
"""What nothing has, the first machine's own addresses, one of the internet, and the trainer's."""
_SPECS = {"aws": "SYMMETRIC_DEFAULT", "alibaba": "Aliyun_AES_256", "tencent": "AES_256"}


class SettingDeed(str, Enum):
    """One thing people do at a set time."""

    OWNER = "an owner changes something"
    UNDO = "an operator takes an action back"
    ATTACH = "the spare address is attached"
    DETACH = "the spare address is taken off"
    REWRITE = "a rule is written anew"
    ROTATE = "an owner rotates a key"
    SPEAK = "somebody speaks"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One key as a story begins. Days: its age, its period (None: off), its last rotation before the beginning."""

    name: str
    age: int = 400
    period: int | None = None
    rotated: int | None = None
    state: KeyState = KeyState.ENABLED
    tags: tuple[tuple[str, str], ...] = ()

    def made(self, shard: Shard, start: datetime) -> WorldKey:
        """The key, in the world."""
        ref = ResourceRef(shard.cloud, shard.account, shard.region, "key", f"key-{self.name}")
        return WorldKey(
            to_world(ref),
            _SPECS[shard.provider],
            created_at=start - self.age * DAY,
            state=self.state,
            aliases=[f"alias/{self.name}"],
            period_days=self.period,
            period_since=None if self.period is None else start - min(self.age, self.period - 5) * DAY,
            rotations=[] if self.rotated is None else [start - self.rotated * DAY],
            tags=dict(self.tags),
            instance="kst-1" if shard.provider == "alibaba" else "",
        )


@dataclass(frozen=True, slots=True)
class NetSpec:
    """The network of one region as a story begins.

    `open`: the ports that the first group opens to the world; `second`: who is let in to port 22 by the second one
    (empty: nobody), in which the first machine is as well; `gate`: who gets so into a third machine, with a public
    address of its own (None: there is none).
    """

    open: tuple[int, ...] = (22, 8888)
    second: tuple[str, ...] = (OFFICE,)
    spares: int = 1
    trainer: bool = True
    gate: tuple[str, ...] | None = None
    imds_v1: bool = False
    tags: tuple[tuple[str, str], ...] = ()  # of the first spare address and of the first group


@dataclass(frozen=True, slots=True)
class SettingsStory:
    """Everything decided before the first event; as `Scenario`."""

    seed: int
    cloud: str
    policy: SettingsVersion
    deliveries: tuple[Delivery, ...]
    keys: tuple[KeySpec, ...] = ()
    network: NetSpec | None = None
    changes: tuple[tuple[datetime, SettingsVersion], ...] = ()
    fault_rate: float = 0.0
    kinds: frozenset[Fault] = frozenset()
    ports: frozenset[Port] = frozenset(Port)
    switch_rate: float = 0.0
    channel_down: tuple[datetime, datetime] | None = None
    channel_proves: bool = True
    durable: bool = True
    deeds: tuple[tuple[datetime, SettingDeed], ...] = ()
    pauses: float = 0.12
    quiet_runs: int = 0
    start: datetime = START
    machines: tuple[MachineSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        """The machines follow from the rest."""
        object.__setattr__(self, "machines", _machines(self.cloud, self.network))

    @property
    def shard(self) -> Shard:
        """The one region everything is in."""
        return Shard(self.cloud, ACCOUNTS[self.cloud], REGIONS[self.cloud][0])

    @property
    def guards(self) -> tuple[str, ...]:
        """The functions that run in it."""
        return tuple(sorted({delivery.guard for delivery in self.deliveries}))


def _machines(cloud: str, network: NetSpec | None) -> tuple[MachineSpec, ...]:
    names = ("notebook", "trainer") if network is not None else ("notebook",)
    made = [machine(cloud, name) for name in names]
    if network is not None and network.gate is not None:
        made.append(replace(machine(cloud, "bastion"), public_ip=GATE, kept_address=True))
    return (replace(made[0], public_ip=NOTEBOOK, kept_address=True), *made[1:])


def laid_out(story: SettingsStory) -> tuple[NetworkInventory, dict[ResourceRef, bool]] | None:
    """The networks of a story, and whether metadata answers without a token."""
    spec = story.network
    if spec is None:
        return None
    region = Region(to_world(story.shard), story.start)
    region.vpc("training", INSIDE)
    region.subnet("public", "training", "10.20.1.0/24", public=True)
    region.subnet("private", "training", "10.20.2.0/24")
    region.group("open", "training", *(rule(f"open-{port}", port=port) for port in spec.open))
    region.group("second", "training", *(rule(f"ssh-{n}", port=22, peer=peer) for n, peer in enumerate(spec.second)))
    told = story.cloud != "tencent"
    notebook, trainer, *bastion = story.machines
    region.machine(notebook, "public", "open", "second", address=NOTEBOOK, imds_v1=spec.imds_v1 if told else None)
    if spec.trainer:
        region.machine(trainer, "private", "open", imds_v1=False if told else None)
    for other in bastion:
        region.group(
            "gate", "training", *(rule(f"gate-{n}", port=22, peer=peer) for n, peer in enumerate(spec.gate or ()))
        )
        region.machine(other, "public", "gate", address=GATE, imds_v1=False if told else None)
    for number in range(spec.spares):
        region.spare_address(f"spare-{number}", f"203.0.113.{77 + number}")
    network = region.networks()
    if spec.tags:
        tags = dict(spec.tags)
        first, *groups = network.groups
        spares = [each for each in network.addresses if each.bound_to is None]
        network = replace(
            network,
            groups=(replace(first, tags={**first.tags, **tags}), *groups),
            addresses=tuple(
                replace(each, tags={**each.tags, **tags}) if each in spares[:1] else each for each in network.addresses
            ),
        )
    return network, dict(to_product(region.imds_v1))


def every(hours: int, runs: int, guard: str, beside: int = 0, late: float = 5.0) -> tuple[Delivery, ...]:
    """Runs of one guard, so often; `beside`: so many more at the same time."""
    return tuple(
        Delivery(at + n * timedelta(seconds=1), at + n * timedelta(seconds=late), guard=guard)
        for at in (START + number * timedelta(hours=hours) for number in range(runs))
        for n in range(beside + 1)
    )
