"""Narrow scenarios: few machines, faults of one kind, and one thing that happens at the wrong moment.

Where a wide scenario seldom gets to, these go often: doubt about one call and then the owner, a cap that is
just used up, a policy that changes while a run is at work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

from tests.simulation.faults import Fault, Port
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import OWNED, PolicyVersion, loosened
from tests.simulation.scenario import DAY, HOUR, START, Change, Deed, Delivery, Scenario, Spell, machine

from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing

_CLOUDS = ("aws", "alibaba", "tencent")
_LADDER = RuleSpec(lasting=4, stop=20, terminate=24)
_DOUBTS = (
    Fault.CRASH_AFTER,
    Fault.CRASH_BEFORE,
    Fault.LOST_ANSWER,
    Fault.LOST_ANSWER,
    Fault.LOST,
    Fault.LOST,
    Fault.STALE,
    Fault.FREEZE,
)


def close_up(random: Random, seed: int) -> Scenario:
    """One of them."""
    return random.choice(_KINDS)(random, seed)


def _story(
    random: Random,
    seed: int,
    machines: tuple[MachineSpec, ...],
    *,
    rule: RuleSpec = _LADDER,
    kinds: tuple[Fault, ...] = (),
    rate: float = 0.0,
    hours: int = 24,
    runs: int = 10,
    beside: int = 0,
) -> Scenario:
    every = hours * HOUR
    deliveries = tuple(
        Delivery(scheduled=at + n * timedelta(seconds=1), arrives=at + timedelta(seconds=5 * random.random()))
        for at in (START + number * every for number in range(runs))
        for n in range(beside + 1)
    )
    return Scenario(
        seed=seed,
        machines=machines,
        policy=PolicyVersion((rule,)),
        changes=(),
        deliveries=deliveries,
        every=every,
        fault_rate=rate,
        kinds=frozenset(kinds),
        switch_rate=0.4 if beside else 0.0,
        quiet_runs=random.choices((0, 3, 16), (65, 25, 10))[0],
    )


def _one(random: Random) -> MachineSpec:
    disks = random.choice(((Disk(100),), (Disk(100),), (Disk(100), Disk(100, device="/dev/sdb")), ()))
    cloud = random.choice(_CLOUDS)
    return machine(cloud, "one", disks=disks, recycles=cloud == "tencent" and random.random() < 0.5)


def answered(random: Random, seed: int) -> Scenario:
    """People at the buttons all day long: at every moment between the runs, and while they are at work."""
    slow = random.random() < 0.5
    disks = (replace(Disk(100), snapshot_takes=DAY + 8 * HOUR),) if slow else (Disk(100),)
    one = replace(_one(random), disks=disks, local_disk_gib=random.choice((0.0, 0.0, 900.0)))
    rule = replace(_LADDER, stop=random.choice((20, 44)))
    return _story(random, seed, (one,), rule=rule, kinds=(Fault.PEOPLE,), rate=0.01, hours=6, runs=30)


def leave(random: Random, seed: int) -> Scenario:
    """Local disks that people of all kinds give leave to lose, while runs are at work and caps, rules and use vary."""
    team = random.choice((OWNED, OWNED, "product"))
    sizes = random.choice(((900.0,), (None,), (900.0, 900.0)))
    machines = tuple(
        machine(random.choice(_CLOUDS), f"m{number}", local_disk_gib=size, tags={"team": team})
        for number, size in enumerate(sizes)
    )
    rule = replace(
        _LADDER,
        team=team,
        stop=6,
        terminate=None,
        actions=random.choice((0, 1, 10, 10, 10)),
        usd=random.choice((0, 1000, 1000, 1000)),
        cny=random.choice((0, 1000, 1000, 1000)),
    )
    kinds = (Fault.OWNER,) if random.random() < 0.5 else ()
    story = _story(random, seed, machines, rule=rule, kinds=kinds, rate=0.003, hours=6, runs=20)
    changes: tuple[Change, ...] = ()
    if random.random() < 0.4:
        at = START + random.random() * (story.end - START)
        changes = (Change(at, replace(story.policy, rules=(replace(rule, stop=random.choice((3, 12))),))),)
    return replace(story, changes=changes, approves=True)


def guarded(random: Random, seed: int) -> Scenario:
    """Termination or stop protection that is set and lifted between the steps of a ladder; nothing else goes wrong."""
    one = machine(random.choice(_CLOUDS), "one")
    bar, let = Deed.BAR_TERMINATE, Deed.LET_TERMINATE
    if one.cloud == "aws" and random.random() < 0.6:
        bar, let = Deed.BAR_STOP, Deed.LET_STOP
    story = _story(random, seed, (one,), rule=replace(_LADDER, terminate=72), runs=16)
    alone = replace(story.policy, terminate_alone=random.random() < 0.85)
    set_at = story.start + 12 * HOUR + random.choice((-1, 0, 1, 2, 3, 4, 5, 6)) * DAY
    lifted = set_at + random.choice((1, 2, 3, 4)) * DAY
    deeds = ((set_at, one.native_id, bar), (lifted, one.native_id, let))
    return replace(story, policy=alone, deeds=deeds)


def _doubt(random: Random, seed: int) -> Scenario:
    """One kind of failure, and a spell of use or protection somewhere."""
    one = _one(random)
    hours, runs = random.choice(((6, 16), (12, 13), (24, 12)))
    rule = replace(_LADDER, stop=random.choice((6, 20)))
    story = _story(
        random,
        seed,
        (one,),
        rule=rule,
        kinds=(random.choice(_DOUBTS),),
        rate=random.choice((0.02, 0.05)),
        hours=hours,
        runs=runs,
    )
    begins = START + random.random() * (story.end - START)
    keeps = Spell(
        one.native_id, begins, begins + random.choice((6, 13, 25)) * HOUR, random.choice(((), (), ("keep", "yes")))
    )
    return replace(story, spells=(keeps,))


def _owner(random: Random, seed: int) -> Scenario:
    """The owner at every other boundary of the calls that matter."""
    return _story(random, seed, (_one(random),), kinds=(Fault.OWNER,), rate=random.choice((0.01, 0.03)))


def _unanswered(random: Random, seed: int) -> Scenario:
    """Every other call to the cloud gets no answer, whether or not it took effect; nothing else goes wrong."""
    kinds = (Fault.LOST, Fault.LOST_ANSWER)
    story = _story(random, seed, (_one(random),), kinds=kinds, rate=0.06, runs=14)
    return replace(story, ports=frozenset({Port.ACT}), quiet_runs=3)


def _spoken(random: Random, seed: int) -> Scenario:
    """Snoozes, pauses and approvals at every moment of a run."""
    one = replace(_one(random), local_disk_gib=random.choice((0.0, 0.0, 900.0)))
    return _story(
        random, seed, (one,), kinds=(Fault.PEOPLE,), rate=0.03, hours=12, runs=9, rule=replace(_LADDER, stop=6)
    )


def _capped(random: Random, seed: int) -> Scenario:
    """Several idle machines, a cap for one or two, and runs side by side or every six hours."""
    machines = tuple(machine("aws", f"m{number}") for number in range(random.choice((2, 3, 4))))
    rule = replace(
        _LADDER,
        stop=6,
        terminate=None,
        actions=random.choice((1, 2, 10)),
        share_percent=random.choice((30, 60, 100)),
        usd=random.choice((2, 4, 1000)),
    )
    beside = random.choice((0, 1, 3))
    return _story(
        random, seed, machines, rule=rule, hours=6, runs=5, beside=beside, kinds=(Fault.DUPLICATED,), rate=0.02
    )


def _raced(random: Random, seed: int) -> Scenario:
    """A cap for one, and runs side by side that see another half of the fleet each: no two plan the same."""
    machines = tuple(machine("aws", region, region) for region in ("us-east-1", "eu-west-1"))
    rule = replace(_LADDER, stop=6, terminate=None, actions=1)
    kinds = (Fault.DENIED, Fault.THROTTLED)
    story = _story(random, seed, machines, rule=rule, hours=12, runs=4, beside=3, kinds=kinds, rate=0.3)
    return replace(story, ports=frozenset({Port.LISTING}), switch_rate=0.8)


def _half_listed(random: Random, seed: int) -> Scenario:
    """Listings that end early, repeat themselves, are denied or leave machines out."""
    kinds = (Fault.TRUNCATED, Fault.REPEATING_TOKEN, Fault.MISSING, Fault.DENIED, Fault.DUPLICATED)
    machines = (_one(random), machine("aws", "two"))
    return _story(random, seed, machines, kinds=kinds, rate=0.06)


def _changed(random: Random, seed: int) -> Scenario:
    """The policy changes while a run is at work."""
    story = _story(random, seed, (_one(random),), runs=6)
    first = story.policy.rules[0]
    changed = random.choice(
        (
            loosened(first),
            replace(first, mode="observe"),
            replace(first, stop=48),
            replace(first, actions=0),
            replace(first, lasting=12),
        )
    )
    at = START + random.randrange(1, 6) * DAY + timedelta(seconds=25 * random.random())
    return replace(story, changes=(Change(at, PolicyVersion((changed,))),))


def _again(random: Random, seed: int) -> Scenario:
    """Started again after the stop or the copies, and left idle for another ladder or stopped before any run saw it."""
    one = machine(random.choice(_CLOUDS), "one")
    story = _story(random, seed, (one,), runs=16)
    moment = START + random.choice((3, 4, 5, 6, 7)) * DAY + 12 * HOUR
    stopped = (moment + random.choice((1, 5)) * HOUR, one.native_id, Deed.STOP)
    return replace(story, deeds=((moment, one.native_id, Deed.START), *random.choice(((), (stopped,)))))


def _copies(random: Random, seed: int) -> Scenario:
    """Copies that take a day or are deleted, and volumes that come late, before the terminate.

    Behind a stop, or of a machine that cannot stop.
    """
    slow = random.choice((timedelta(0), HOUR, DAY, 2 * DAY))
    disks = (Disk(100), Disk(100, device="/dev/sdb", snapshot_takes=slow))
    cloud = random.choice(_CLOUDS)
    one, rule = machine(cloud, "one", disks=disks), replace(_LADDER, stop=6)
    if cloud == "aws" and seed % 2:  # copied while it runs, as one set
        one = replace(one, one_time_spot=True, billing=Billing.SPOT)
        rule = replace(rule, unstoppable="terminate")
    story = _story(random, seed, (one,), rule=rule, hours=random.choice((6, 12, 24)), runs=14)
    if slow > HOUR:
        return story
    moments = sorted(START + (story.end - START) * (0.2 + 0.5 * random.random()) for _ in range(3))
    deed = random.choice((Deed.ATTACH, Deed.DELETE_COPY))
    return replace(story, deeds=tuple((moment, one.native_id, deed) for moment in moments))


def _silent(random: Random, seed: int) -> Scenario:
    """The agent dies an hour or two before a stop is due: enough was measured, but not lately. Or it loses samples."""
    one = _one(random)
    story = _story(random, seed, (one,), rule=replace(_LADDER, lasting=24), runs=6)
    dies = START + random.choice((1, 2)) * DAY - timedelta(minutes=random.randrange(15, 140))
    if random.random() < 0.5:
        return _lossy(random, seed, one)
    return replace(story, silences=((one.native_id, dies, dies + 4 * HOUR),))


def _lossy(random: Random, seed: int, one: MachineSpec) -> Scenario:
    """From a run on the agent gets one sample in five through, and the run is frozen somewhere on its way to the call.

    For seven hours: in a window of one hour alone it looks like an agent that measures every five minutes.
    """
    story = _story(random, seed, (one,), rule=replace(_LADDER, lasting=1), kinds=(Fault.FREEZE,), rate=0.04, runs=5)
    minute = timedelta(minutes=1)
    begins = START + random.choice((1, 2)) * DAY
    lost = tuple(
        (one.native_id, begins + place * minute, begins + (place + 4) * minute) for place in range(1, 7 * 60, 5)
    )
    return replace(story, silences=lost, ports=frozenset({Port.DETAILS, Port.STORE, Port.LOAD}))


def _paused(random: Random, seed: int) -> Scenario:
    """Somebody sets the kill switch while a run takes its last look."""
    story = _story(random, seed, (_one(random),), kinds=(Fault.PEOPLE,), rate=0.03, runs=8)
    return replace(story, ports=frozenset({Port.DETAILS, Port.SIGNALS}), pauses=1.0)


_KINDS: tuple[Callable[[Random, int], Scenario], ...] = (
    *(_doubt, _doubt, _doubt, _owner, _owner, _spoken, _spoken, _unanswered),
    *(_capped, _capped, _raced, _half_listed, _changed, _again, _copies, _copies, _silent, _paused),
)
