"""From one seed to one scenario: the machines, the policy and its changes, the timetable, and what will go wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any

from tests.simulation.faults import DRAWN, Fault, Port
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import ANY_TEAM, Agreed, PolicyVersion, loosened, tightened, with_days_off
from tests.world_ports.translate import to_world

from cloudstand.world import workload
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id
from cloudstand.world.kinds import Accelerator, AcceleratorKind, Billing, ManagedBy
from cloudstand.world.money import Money
from cloudstand.world.records import OtherCharge
from costguard.domain.resources import Keeper

START = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)  # a Monday
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ACCOUNTS = {"aws": "111122223333", "alibaba": "1234567890123456", "tencent": "100012345678"}
REGIONS = {"aws": ("us-east-1", "eu-west-1"), "alibaba": ("cn-beijing", "cn-hangzhou"), "tencent": ("ap-guangzhou",)}
TYPES = {"aws": "g5g.xlarge", "alibaba": "ecs.gn7i-c8g1.2xlarge", "tencent": "GN7.2XLARGE32"}
PROTECTING_TAGS = (
    ("costguard-protect", ""),
    ("Do-Not-Stop", "yes"),
    ("do_not_delete", "TRUE"),
    ("KEEP", "please"),
    ("costguard-keep-until", "next week or so"),
    ("Costguard_Keep-Until", "2031-01-01T00:00:00Z"),
    ("protect-until", "31/12/2030"),
)
HARMLESS_TAGS = (("do-not-stop", "false"), ("keep-until", "2020-01-01"), ("note", "keep"))


@dataclass(frozen=True, slots=True)
class Change:
    """The config repo says something else from a moment on."""

    at: datetime
    version: PolicyVersion


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that starts a run: the time it is scheduled for, when it arrives, and how the process goes."""

    scheduled: datetime
    arrives: datetime
    skew: timedelta = timedelta(0)
    deadline: timedelta | None = None
    host_paused: bool = False
    saved_plan: timedelta | None = None  # planned first, applied this much later
    guard: str = "idle_gpu"
    forged: bool = False  # what is applied is not what was planned


@dataclass(frozen=True, slots=True)
class Spell:
    """For a while a machine is in use, or carries a tag that protects it."""

    machine: str
    begins: datetime
    ends: datetime
    tag: tuple[str, str] | tuple[()] = ()


@dataclass(frozen=True, slots=True)
class BillSpell:
    """For a while the bill of one cloud stands still; or with `denied` may not be read at all."""

    cloud: str
    begins: datetime
    ends: datetime
    denied: bool = False


class Deed(str, Enum):
    """One thing an owner does to a machine at a set time."""

    START = "start"
    STOP = "stop"
    ATTACH = "attach a volume"
    DELETE_COPY = "delete a snapshot"
    BAR_TERMINATE = "set termination protection"
    LET_TERMINATE = "lift termination protection"
    BAR_STOP = "set stop protection"
    LET_STOP = "lift stop protection"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything decided before the first event.

    `quiet_runs` daily ones follow once faults have stopped: 3 for every claim to be resolved, 16 for the whole ladder.
    """

    seed: int
    machines: tuple[MachineSpec, ...]
    policy: PolicyVersion
    changes: tuple[Change, ...]
    deliveries: tuple[Delivery, ...]
    every: timedelta
    fault_rate: float
    kinds: frozenset[Fault]
    switch_rate: float
    ports: frozenset[Port] = frozenset(Port)
    channel_down: tuple[datetime, datetime] | None = None
    channel_proves: bool = True
    durable: bool = True
    silences: tuple[tuple[str, datetime, datetime], ...] = ()
    owner_times: tuple[tuple[datetime, str], ...] = ()
    spells: tuple[Spell, ...] = ()
    approvals: tuple[tuple[datetime, str], ...] = ()
    clicks: tuple[datetime, ...] = ()
    deeds: tuple[tuple[datetime, str, Deed], ...] = ()
    approves: bool = False  # people press Approve, wherever it is offered, and nothing else
    pauses: float = 0.12  # the share of what people say
    quiet_runs: int = 3
    start: datetime = START
    bill_spells: tuple[BillSpell, ...] = ()
    charges: tuple[tuple[datetime, OtherCharge], ...] = ()  # put on the bill at these moments, some for times long past

    @property
    def end(self) -> datetime:
        """When faults stop."""
        return max(delivery.arrives for delivery in self.deliveries)

    @property
    def guards(self) -> tuple[str, ...]:
        """The functions that run in it."""
        return tuple(sorted({delivery.guard for delivery in self.deliveries}, reverse=True))


def machine(cloud: str, name: str, region: str = "", **more: Any) -> MachineSpec:
    """An idle machine of ten days, owned by research, with one disk."""
    region = region or REGIONS[cloud][0]
    currency = "USD" if cloud == "aws" else "CNY"
    ordinary = MachineSpec(
        cloud=cloud,
        account=ACCOUNTS[cloud],
        region=region,
        native_id=made_up_id(cloud, "instance", region, name),
        instance_type=TYPES[cloud],
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 1),
        hourly=Money(Decimal("1.50"), currency),
        launched_at=START - 10 * DAY,
        workload=workload.idle(),
        name=name,
        tags={"team": "research"},
    )
    return replace(ordinary, **more)


def scenario(seed: int) -> Scenario:
    """The scenario of a seed: always the same."""
    if seed % 50 == 27:
        from tests.simulation.close_ups import leave

        return with_clicks(leave(Random(seed), seed), always=True)  # noqa: S311 - reproducible on purpose
    if seed % 10 == 7:
        from tests.simulation.close_ups import answered

        return with_clicks(answered(Random(seed), seed), always=True)  # noqa: S311 - reproducible on purpose
    if seed % 10 == 3:
        from tests.simulation.close_ups import guarded

        return with_clicks(guarded(Random(seed), seed))  # noqa: S311 - reproducible on purpose
    from tests.simulation.sparing import with_rollout, with_sparing

    made = with_rollout(with_sparing(with_clicks(_scenario(seed))))
    if seed % 10 == 4:
        from tests.simulation.forging import with_forgeries

        return with_forgeries(made)
    return made


def with_clicks(made: Scenario, *, always: bool = False) -> Scenario:
    """The same where people may answer in the chat too, by a policy that says whose answers count."""
    random = Random(made.seed * 7 + 5)  # noqa: S311 - reproducible on purpose
    clicks, two = always or random.random() < 0.5, random.random() < 0.4
    drawn = Random(f"apart {made.seed}").random()  # noqa: S311 - of its own: what else is drawn stays
    apart = clicks and drawn < (0.6 if made.approves else 0.3)

    def answered(version: PolicyVersion) -> PolicyVersion:
        return replace(version, clicks=clicks, two=clicks and two, apart=apart)

    changes = tuple(replace(change, version=answered(change.version)) for change in made.changes)
    count = random.choice((2, 6, 12)) * (3 if always else 1)
    moments = [_click(random, made) for _ in range(count)] if clicks else []
    return replace(made, policy=answered(made.policy), changes=changes, clicks=tuple(moments))


def _click(random: Random, made: Scenario) -> datetime:
    """Any time, or just while a run is at work."""
    if random.random() < 0.5:
        return made.start + (made.end - made.start) * random.random()
    return random.choice(made.deliveries).arrives + random.random() * timedelta(minutes=1)


def _scenario(seed: int) -> Scenario:
    random = Random(seed)  # noqa: S311 - reproducible on purpose
    if random.random() < 0.4:
        from tests.simulation.close_ups import close_up

        return close_up(random, seed)
    every = random.choice((6, 12, 24, 24, 24)) * HOUR
    machines = _machines(random, every)
    policy = _policy(random, machines)
    deliveries = _deliveries(random, every)
    end = max(delivery.arrives for delivery in deliveries)
    kinds = frozenset(fault for fault in DRAWN if random.random() < 0.35)
    return Scenario(
        seed=seed,
        machines=machines,
        policy=policy,
        changes=(*_calendar_gone(policy, end), *_changes(random, policy, machines, end)),
        deliveries=deliveries,
        every=every,
        fault_rate=random.choice((0.0, 0.002, 0.005, 0.01, 0.02, 0.04)),
        kinds=kinds,
        switch_rate=random.choice((0.0, 0.05, 0.3)),
        channel_down=_span(random, end, DAY) if random.random() < 0.08 else None,
        channel_proves=random.random() >= 0.03,
        durable=random.random() >= 0.02,
        silences=tuple(
            (one.native_id, *_span(random, end, random.choice((HOUR, 6 * HOUR, DAY))))
            for one in machines
            if random.random() < 0.08
        ),
        owner_times=tuple(
            (_moment(random, end), random.choice(machines).native_id)
            for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3)))
        ),
        spells=tuple(_spell(random, one, end) for one in machines if random.random() < 0.12),
        quiet_runs=random.choices((0, 3, 16), (62, 33, 5))[0],
    )


def _moment(random: Random, end: datetime) -> datetime:
    return START + (end - START) * random.random()


def _span(random: Random, end: datetime, length: timedelta) -> tuple[datetime, datetime]:
    begin = _moment(random, end)
    return begin, begin + length


def _spell(random: Random, one: MachineSpec, end: datetime) -> Spell:
    begins, ends = _span(random, end, random.choice((6, 13, 25, 49)) * HOUR)
    return Spell(one.native_id, begins, ends, random.choice((*PROTECTING_TAGS, (), (), (), (), ())))


def _machines(random: Random, every: timedelta) -> tuple[MachineSpec, ...]:
    count = random.choices((1, 2, 3, 4), (50, 32, 13, 5))[0]
    clouds = random.choice((("aws",), ("aws",), ("alibaba",), ("tencent",), ("aws", "alibaba", "tencent")))
    return tuple(_one_machine(random, random.choice(clouds), f"m{number}", every) for number in range(count))


def _one_machine(random: Random, cloud: str, name: str, every: timedelta) -> MachineSpec:
    made = machine(cloud, name, random.choice(REGIONS[cloud]))
    made = replace(made, workload=_load(random), tags=_tags(random), disks=_disks(random))
    if random.random() < 0.08:
        made = replace(made, launched_at=START - random.random() * DAY)
    if random.random() < 0.1:
        made = replace(made, hourly=random.choice((None, Money(Decimal(30), "USD"), Money(Decimal(1), "EUR"))))
    if random.random() < 0.12:
        made = replace(made, local_disk_gib=random.choice((900.0, None)))
    if random.random() < 0.1:
        made = replace(made, accelerator=replace(made.accelerator, count=2))
    if random.random() < 0.12:
        made = _special(random, cloud, made)
    del every
    return made


def _special(random: Random, cloud: str, made: MachineSpec) -> MachineSpec:
    what = random.randrange(8)
    if what == 0:
        return replace(made, billing=random.choice((Billing.PREPAID, Billing.RESERVED, Billing.UNKNOWN)))
    if what == 1:
        keeper = random.choice((Keeper.AUTOSCALING, Keeper.KUBERNETES, Keeper.COSTGUARD, Keeper.CLOUD_SERVICE))
        return replace(made, managed_by=ManagedBy(to_world(keeper), "group"))
    if what in {2, 3} and cloud == "aws":
        return replace(made, one_time_spot=True, billing=Billing.SPOT)
    if what in {2, 3} and cloud == "tencent":
        return replace(made, recycles=True)
    if what in {2, 3}:
        return replace(made, stop_keeps_billing=True)
    if what == 4:
        return replace(made, protections=("termination_protection",))
    if what == 5:
        return replace(made, disks=())
    if what == 6:
        return replace(made, no_capacity=True)
    return replace(made, kept_address=True)


def _load(random: Random) -> workload.Workload:
    what = random.random()
    at = START + 6 * DAY * random.random()
    if what < 0.68:
        return workload.idle()
    if what < 0.74:
        return workload.busy()
    if what < 0.80:
        return workload.comes_back(at)
    if what < 0.86:
        return workload.busy_until(at)
    if what < 0.90:
        return workload.one_spike(at)
    if what < 0.94:
        return workload.partly_idle(0)
    if what < 0.97:
        return workload.no_data()
    return workload.agent_dies(at) if what < 0.985 else workload.stuck_exporter()


def _tags(random: Random) -> dict[str, str]:
    tags = {"team": random.choice(("research", "research", "research", "research", "product", ""))}
    if random.random() < 0.05:
        tags.update([random.choice(PROTECTING_TAGS)])
    if random.random() < 0.05:
        tags.update([random.choice(HARMLESS_TAGS)])
    return tags


def _disks(random: Random) -> tuple[Disk, ...]:
    count = random.choice((1, 1, 1, 2, 3))
    disks = [Disk(random.choice((100, 100, 2000)), device=f"/dev/sd{letter}") for letter in "abc"[:count]]
    if random.random() < 0.06:
        disks[-1] = replace(disks[-1], snapshots_fail=True)
    if random.random() < 0.06:
        disks[-1] = replace(disks[-1], snapshot_takes=DAY)
    return tuple(disks)


def _rule(random: Random, name: str, team: str) -> RuleSpec:
    """One of a hundred rules: enough to vary, few enough to be compiled once."""
    random = Random(random.randrange(100))  # noqa: S311 - reproducible on purpose
    ordinary = random.random() < 0.5
    pick = random.choice
    rule = RuleSpec(
        name=name,
        team=team,
        mode=pick(("enforce",) * 8 + ("warn", "observe")),
        lasting=pick((4, 4, 12, 24)),
        stop=pick((1, 6, 24, 24)),
        terminate=pick((24, 24, 24, 48, None)),
    )
    if ordinary:
        return rule
    return replace(
        rule,
        actions=pick((0, 1, 1, 2, 10)),
        share_percent=pick((0, 10, 30, 100, 100)),
        usd=pick((0, 2, 1000, 1000, None)),
        cny=pick((0, 2, 1000, 1000)),
        local_disk=pick(("ask", "keep", "lose")),
        unstoppable=pick(("hold", "terminate")),
        terminations=pick((None, None, 0, 1, 2)),
    )


def _policy(random: Random, machines: tuple[MachineSpec, ...]) -> PolicyVersion:
    rules = [_rule(random, "research", "research")]
    if random.random() < 0.4:
        rules.append(_rule(random, "product", "product"))
    if random.random() < 0.2:
        rules.append(_rule(random, "everyone", random.choice(("research", ANY_TEAM))))
    version = PolicyVersion(tuple(rules), working_hours=random.random() < 0.1)
    version = with_days_off(Random(f"{rules} off"), version, START)  # noqa: S311 - of its own, as below
    if random.random() < 0.05:
        version = replace(version, exceptions=(Agreed(str(machines[0].ref), START + random.choice((1, 4, 40)) * DAY),))
    if random.random() < 0.03:
        version = replace(version, protected_accounts=(machines[-1].account,))
    return version


def _calendar_gone(policy: PolicyVersion, end: datetime) -> tuple[Change, ...]:
    """In half of the stories with working hours they are taken out, which every further change puts back."""
    random = Random(f"{policy.rules} {end}")  # noqa: S311 - of its own: what else is drawn stays as it was
    if not policy.working_hours or random.random() < 0.5:
        return ()
    return (Change(_moment(random, end), replace(policy, working_hours=False)),)


def _changes(
    random: Random, policy: PolicyVersion, machines: tuple[MachineSpec, ...], end: datetime
) -> tuple[Change, ...]:
    if random.random() < 0.75:
        return ()
    changes = []
    for at in sorted(_moment(random, end) for _ in range(random.choice((1, 1, 2, 3)))):
        what = random.randrange(7)
        first, *others = policy.rules
        if what == 0:
            policy = replace(policy, rules=(tightened(first), *others))
        elif what == 1:
            policy = replace(policy, rules=(loosened(first), *others))
        elif what == 2:
            policy = replace(
                policy, rules=(replace(first, mode=random.choice(("observe", "warn", "enforce"))), *others)
            )
        elif what == 3:
            agreed = Agreed(str(random.choice(machines).ref), at.replace(microsecond=0) + 30 * DAY)
            policy = replace(policy, exceptions=(agreed,))
        elif what == 4:
            policy = replace(policy, broken=True)
        elif what == 5:
            policy = replace(policy, broken=False, exceptions=())
        else:
            policy = replace(policy, rules=(replace(first, actions=random.choice((0, 1))), *others))
        changes.append(Change(at, policy))
    return tuple(changes)


def _deliveries(random: Random, every: timedelta) -> tuple[Delivery, ...]:
    skewed = random.random() < 0.3
    crowd = random.choice((1, 1, 1, 1, 1, 2, 3))
    deliveries = []
    times = random.choice((3, 4, 5, 6, 8))
    crowded = random.randrange(times) if random.random() < 0.06 else -1  # eight at once, once
    for number in range(times):
        scheduled = START + number * every
        copies = 8 if number == crowded else random.randint(1, crowd)
        for copy in range(copies):
            twin = copy > 0 and random.random() < 0.5  # the same event again; else another run beside it
            deliveries.append(
                Delivery(
                    scheduled=scheduled if copy == 0 or twin else scheduled + copy * timedelta(seconds=1),
                    arrives=scheduled + _lateness(random, every),
                    skew=timedelta(minutes=20 * random.random() - 10) if skewed else timedelta(0),
                    deadline=timedelta(seconds=random.choice((1, 5, 20))) if random.random() < 0.03 else None,
                    host_paused=random.random() < 0.01,
                    saved_plan=random.choice((60, 900, 7200)) * timedelta(seconds=1)
                    if random.random() < 0.02
                    else None,
                )
            )
    return tuple(deliveries)


def _lateness(random: Random, every: timedelta) -> timedelta:
    what = random.random()
    if what < 0.85:
        return timedelta(seconds=30 * random.random())
    return timedelta(minutes=10 * random.random()) if what < 0.97 else every * 2 * random.random()
