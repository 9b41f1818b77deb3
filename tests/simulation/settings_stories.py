"""From one seed to one story of keys, of networks or of both: the settings, the policy, people and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

from tests.simulation.faults import DRAWN, Fault, Port
from tests.simulation.scenario import DAY, HOUR, START
from tests.simulation.settings import KEYS, NETWORKS, NetRuleSpec, SettingsVersion
from tests.simulation.settings_parts import (
    CLOUDS,
    WORLD,
    calm_policy,
    drawn_changes,
    drawn_deeds,
    drawn_deliveries,
    drawn_keys,
    drawn_network,
    drawn_policy,
    span,
)
from tests.simulation.settings_story import (
    GATE,
    INSIDE,
    NOBODYS,
    NOTEBOOK,
    OFFICE,
    NetSpec,
    SettingDeed,
    SettingsStory,
    every,
)

_DOUBTS = frozenset({Fault.LOST, Fault.LOST_ANSWER, Fault.CRASH_AFTER, Fault.CRASH_BEFORE})


def settings_story(seed: int) -> SettingsStory:
    """The story of a seed: always the same."""
    random = Random(f"settings {seed}")  # noqa: S311 - reproducible on purpose
    if random.random() < 0.5:
        return random.choice(_CLOSE_UPS)(random, seed)
    cloud = random.choice(CLOUDS)
    what = random.random()
    guards = (KEYS,) if what < 0.35 else (NETWORKS,) if what < 0.9 else (KEYS, NETWORKS)
    hours, runs = random.choice(((24, 5), (24, 7), (12, 8), (12, 6), (6, 9)))
    deliveries = tuple(one for guard in guards for one in drawn_deliveries(random, guard, hours, runs))
    end = START + hours * runs * HOUR
    policy = drawn_policy(random, cloud, guards)
    return SettingsStory(
        seed=seed,
        cloud=cloud,
        policy=policy,
        deliveries=tuple(sorted(deliveries, key=lambda one: one.arrives)),
        keys=drawn_keys(random) if KEYS in guards else (),
        network=drawn_network(random) if NETWORKS in guards else None,
        changes=drawn_changes(random, cloud, policy, end) if random.random() < 0.35 else (),
        fault_rate=random.choice((0.0, 0.005, 0.01, 0.02, 0.04)),
        kinds=frozenset(fault for fault in DRAWN if random.random() < 0.35),
        switch_rate=random.choice((0.0, 0.05, 0.3)),
        channel_down=span(random, end) if random.random() < 0.08 else None,
        channel_proves=random.random() >= 0.03,
        durable=random.random() >= 0.02,
        deeds=drawn_deeds(random, end, random.choice((0, 0, 1, 2, 4)), tuple(SettingDeed)),
        quiet_runs=random.choices((0, 3, 8), (50, 20, 30))[0],
    )


# -- close-ups: one thing that happens at the wrong moment ---------------------------------------


def _doubt(random: Random, seed: int) -> SettingsStory:
    """Calls whose answers are lost, and then whoever looks next."""
    cloud = random.choice(CLOUDS)
    guard = random.choice((KEYS, NETWORKS))
    policy = calm_policy(random, guard)
    return SettingsStory(
        seed=seed,
        cloud=cloud,
        policy=policy,
        deliveries=every(random.choice((12, 24)), 6, guard, beside=random.choice((0, 0, 1))),
        keys=drawn_keys(random) if guard == KEYS else (),
        network=drawn_network(random) if guard == NETWORKS else None,
        fault_rate=random.choice((0.04, 0.08)),
        kinds=frozenset({*random.sample(sorted(_DOUBTS), 2), Fault.STALE, Fault.MISSING}),
        ports=frozenset({Port.ACT, Port.DETAILS, Port.LISTING}),
        deeds=drawn_deeds(random, START + 6 * DAY, 2, (SettingDeed.UNDO, SettingDeed.OWNER)),
        quiet_runs=random.choice((0, 3, 8)),
    )


def _two_ways(random: Random, seed: int) -> SettingsStory:
    """Two rules, each the other's only company, and runs at once that close one each, or one that reads what is old."""
    stale = random.random() < 0.3
    many = random.choice((1, 2, 5, 5))
    rule = NetRuleSpec(ports=(22, 8888), wait=random.choice((6, 24)), actions=5 if stale else many)
    second = random.choice(((WORLD,), (WORLD,), (WORLD,), (OFFICE,), (INSIDE,), ()))
    hours = random.choice((12, 24))
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=SettingsVersion(networks=(rule,)),
        deliveries=every(hours, 5, NETWORKS, beside=random.choice((0, 1, 1, 2)), late=random.choice((2, 4, 6))),
        network=NetSpec(
            open=random.choice(((22,), (22,), (22, 8888), (8888,))),
            second=(WORLD,) if stale else second,
            trainer=random.random() < 0.5,
        ),
        fault_rate=0.12 if stale else random.choice((0.0, 0.0, 0.02)),
        kinds=frozenset({Fault.STALE} if stale else {Fault.OWNER, Fault.STALE, Fault.LOST_ANSWER}),
        switch_rate=random.choice((0.3, 0.6)),
        deeds=drawn_deeds(
            random, START + 5 * hours * HOUR, random.choice((0, 2)), (SettingDeed.REWRITE, SettingDeed.UNDO)
        ),
    )


def _nobody_there(random: Random, seed: int) -> SettingsStory:
    """Beside the rule that opens a port to the world another lets in who may be nobody at all, or a bastion."""
    pick = random.choice
    second = pick((*NOBODYS, INSIDE, INSIDE, OFFICE, "10.20.1.11/32", *(f"{GATE}/32",) * 3))
    rule = NetRuleSpec(
        ports=(22, 8888),
        trusted=pick(((OFFICE,), (OFFICE,), (), (OFFICE, INSIDE), (OFFICE, INSIDE), (OFFICE, "203.0.113.0/24"))),
        wait=pick((6, 24)),
    )
    outer = NetRuleSpec("addresses", forbid=("public_ip",), mend=("detach_address",), trusted=rule.trusted, wait=6)
    return SettingsStory(
        seed=seed,
        cloud=pick(CLOUDS),
        policy=SettingsVersion(networks=pick(((rule,), (rule,), (rule, outer), (outer,)))),
        deliveries=every(pick((12, 24)), 5, NETWORKS, beside=pick((0, 0, 1))),
        network=NetSpec(
            open=pick(((22,), (22, 8888), (8888,))),
            second=(second,),
            trainer=random.random() < 0.7,
            gate=pick((None, (WORLD,), (OFFICE,), (NOBODYS[0],), (f"{NOTEBOOK}/32",), (INSIDE, OFFICE))),
        ),
        fault_rate=pick((0.0, 0.0, 0.02)),
        kinds=frozenset({Fault.STALE, Fault.OWNER}),
        quiet_runs=pick((0, 8)),
    )


def _spare(random: Random, seed: int) -> SettingsStory:
    """Addresses that are attached and taken off again between looks and while runs are at work."""
    rule = NetRuleSpec(
        "addresses",
        forbid=("unattached_public_address",),
        mend=("release_address",),
        unattached=random.choice((12, 48, 72)),
        wait=random.choice((6, 24)),
        actions=random.choice((1, 5)),
        keep=random.choice(((), (), ("203.0.113.77",))),
    )
    hours = random.choice((6, 12, 24))
    end = START + 9 * hours * HOUR
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=SettingsVersion(networks=(rule,)),
        deliveries=every(hours, 9, NETWORKS, beside=random.choice((0, 0, 1))),
        network=NetSpec(spares=random.choice((1, 2, 3))),
        fault_rate=random.choice((0.0, 0.01, 0.03)),
        kinds=frozenset({Fault.OWNER, Fault.FREEZE, Fault.TRUNCATED, Fault.STALE, Fault.MISSING}),
        switch_rate=random.choice((0.0, 0.3)),
        deeds=drawn_deeds(random, end, random.choice((0, 2, 4)), (SettingDeed.ATTACH, SettingDeed.DETACH)),
        quiet_runs=random.choice((0, 8)),
    )


def _used_once(random: Random, seed: int) -> SettingsStory:
    """An address that only a last look sees in use: attached just before it, and taken off before the next run."""
    rule = NetRuleSpec(
        "addresses",
        forbid=("unattached_public_address",),
        mend=("release_address",),
        unattached=random.choice((24, 48)),
        wait=6,
        actions=5,
    )
    runs = 10
    attached = (
        (START + 12 * n * HOUR + timedelta(seconds=12 * random.random()), SettingDeed.ATTACH) for n in range(runs)
    )
    taken_off = ((START + (12 * n + 6) * HOUR, SettingDeed.DETACH) for n in range(runs))
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=SettingsVersion(networks=(rule,)),
        deliveries=every(12, runs, NETWORKS),
        network=NetSpec(spares=random.choice((1, 2))),
        fault_rate=0.0,
        kinds=frozenset(),
        deeds=tuple(
            sorted(one for pair in zip(attached, taken_off, strict=True) if random.random() < 0.4 for one in pair)
        ),
        quiet_runs=random.choice((0, 8)),
    )


def _rotated(random: Random, seed: int) -> SettingsStory:
    """Keys that people rotate, by themselves or by a period, while a run has planned to change just that."""
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=calm_policy(random, KEYS),
        deliveries=every(12, 6, KEYS, beside=random.choice((0, 1))),
        keys=drawn_keys(random),
        fault_rate=random.choice((0.1, 0.3)),
        kinds=frozenset({Fault.OWNER}),
        ports=frozenset({Port.DETAILS, Port.LISTING, Port.LOAD}),
        switch_rate=random.choice((0.0, 0.3)),
        quiet_runs=random.choice((0, 3)),
    )


def _word(random: Random, seed: int) -> SettingsStory:
    """Somebody snoozes, pauses or takes back just as something is done, or rotates a key that was announced."""
    guard = random.choice((KEYS, NETWORKS, NETWORKS))
    kinds = (SettingDeed.SPEAK, SettingDeed.ROTATE if guard == KEYS else SettingDeed.UNDO)
    end = START + 6 * DAY
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=calm_policy(random, guard),
        deliveries=every(24, 6, guard, beside=random.choice((0, 1))),
        keys=drawn_keys(random) if guard == KEYS else (),
        network=drawn_network(random) if guard == NETWORKS else None,
        fault_rate=random.choice((0.02, 0.05)),
        kinds=frozenset({Fault.PEOPLE}),
        switch_rate=random.choice((0.0, 0.3)),
        pauses=random.choice((0.1, 0.3)),
        deeds=drawn_deeds(random, end, random.choice((1, 3)), kinds),
        quiet_runs=random.choice((0, 8)),
    )


def _rule_change(random: Random, seed: int) -> SettingsStory:
    """The policy says something else between a notice and what it announced."""
    guard = random.choice((KEYS, NETWORKS))
    cloud, policy = random.choice(CLOUDS), calm_policy(random, guard)
    return SettingsStory(
        seed=seed,
        cloud=cloud,
        policy=policy,
        deliveries=every(24, 6, guard, beside=random.choice((0, 1))),
        keys=drawn_keys(random) if guard == KEYS else (),
        network=drawn_network(random) if guard == NETWORKS else None,
        changes=drawn_changes(random, cloud, policy, START + 5 * DAY),
        fault_rate=random.choice((0.0, 0.01, 0.03)),
        kinds=frozenset({Fault.FREEZE, Fault.LOST, Fault.BROKEN}),
        ports=frozenset({Port.POLICY, Port.SEND, Port.STORE}),
        quiet_runs=random.choice((0, 8)),
    )


def _taken_back(random: Random, seed: int) -> SettingsStory:
    """What is done is taken back, by two people at once, and at times refused first."""
    mends = ("revoke_rule", "narrow_rule") if random.random() < 0.5 else ("revoke_rule",)
    hosts = NetRuleSpec(forbid=("open_admin_port", "imds_v1"), mend=(*mends, "require_imdsv2"), narrow_to=(OFFICE,))
    outer = NetRuleSpec("addresses", forbid=("public_ip",), mend=("detach_address",))
    both, spoken = random.random() < 0.5, random.random() < 0.3
    return SettingsStory(
        seed=seed,
        cloud=random.choice(CLOUDS),
        policy=SettingsVersion(networks=(hosts, outer) if both else (hosts,)),
        deliveries=every(24, 6, NETWORKS),
        network=NetSpec(open=(8888, 6006), second=random.choice(((OFFICE,), (INSIDE,))), imds_v1=True),
        fault_rate=0.12 if spoken else random.choice((0.0, 0.03, 0.06)),
        kinds=frozenset({Fault.PEOPLE} if spoken else {*_DOUBTS, Fault.REFUSED, Fault.PEOPLE, Fault.OWNER}),
        ports=frozenset({Port.LOAD} if spoken else {Port.ACT, Port.STORE, Port.LOAD}),
        switch_rate=random.choice((0.0, 0.3, 0.6)),
        pauses=0.6 if spoken else 0.2,
        deeds=tuple(
            (START + DAY + (n + random.random()) * 20 * HOUR, SettingDeed.UNDO) for n in range(random.choice((2, 4, 6)))
        ),
    )


_CLOSE_UPS: tuple[Callable[[Random, int], SettingsStory], ...] = (
    _doubt,
    _two_ways,
    _nobody_there,
    _spare,
    _used_once,
    _rotated,
    _word,
    _rule_change,
    _taken_back,
)
