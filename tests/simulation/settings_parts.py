"""What stories about settings are drawn from: keys, networks, rules, their changes, people and timetables."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from tests.simulation.rules import Agreed
from tests.simulation.scenario import ACCOUNTS, DAY, HARMLESS_TAGS, HOUR, PROTECTING_TAGS, REGIONS, START, Delivery
from tests.simulation.settings import KEYS, NETWORKS, KeyRuleSpec, NetRuleSpec, SettingsVersion
from tests.simulation.settings_story import INSIDE, OFFICE, KeySpec, NetSpec, SettingDeed
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.network.names import network_ref
from costguard.domain.keys import KeyState
from costguard.domain.refs import ResourceRef, Shard

CLOUDS = ("aws", "aws", "alibaba", "tencent")
WORLD = "0.0.0.0/0"


def drawn_keys(random: Random) -> tuple[KeySpec, ...]:
    """One to three keys."""
    made = []
    for number in range(random.choice((1, 1, 2, 3))):
        period = random.choice((None, None, 365, 90, 90))
        key = KeySpec(f"k{number}", period=period, rotated=random.choice((None, 200, 200, 30)))
        what = random.random()
        if what < 0.08:
            key = replace(
                key, state=to_world(random.choice((KeyState.DISABLED, KeyState.PENDING_DELETION, KeyState.UNKNOWN)))
            )
        elif what < 0.2:
            key = replace(key, tags=(random.choice(PROTECTING_TAGS),))
        elif what < 0.25:
            key = replace(key, tags=(random.choice(HARMLESS_TAGS),))
        elif what < 0.5:
            key = replace(key, tags=(("team", "research"),))
        made.append(key)
    return tuple(made)


def drawn_network(random: Random) -> NetSpec:
    """One network."""
    tags = (random.choice((*PROTECTING_TAGS, *HARMLESS_TAGS)),) if random.random() < 0.12 else ()
    return NetSpec(
        open=random.choice(((22, 8888), (22, 8888), (8888,), (22,), (8888, 6006))),
        second=random.choice(((OFFICE,), (OFFICE,), (INSIDE,), (WORLD,), (WORLD, OFFICE), ())),
        spares=random.choice((1, 1, 2, 3)),
        trainer=random.random() < 0.6,
        imds_v1=random.random() < 0.4,
        tags=tags,
    )


def key_rule(random: Random, name: str, team: str = "") -> KeyRuleSpec:
    pick = random.choice
    return KeyRuleSpec(
        name,
        team,
        mode=pick(("enforce",) * 6 + ("warn", "observe")),
        every=pick((90, 90, 180)),
        automatic=pick((True, True, True, False)),
        wait=pick((6, 24, 24, 48)),
        actions=pick((10, 10, 1, 0)),
    )


def hosts_rule(random: Random, cloud: str) -> NetRuleSpec:
    pick = random.choice
    forbid, mend = ["open_admin_port"], [pick(("revoke_rule", "revoke_rule", "narrow_rule"))]
    if random.random() < 0.3 and cloud != "tencent":
        forbid.append("imds_v1")
        mend.append("require_imdsv2")
    return NetRuleSpec(
        mode=pick(("enforce",) * 6 + ("warn", "observe")),
        forbid=tuple(forbid),
        mend=tuple(mend),
        ports=pick(((8888,), (22, 8888), (22, 8888), (22,), (8888, 6006))),
        narrow_to=(OFFICE,) if "narrow_rule" in mend else (),
        keep=(_opening(cloud, pick((22, 8888))),) if random.random() < 0.12 else (),
        wait=pick((6, 24, 24, 48)),
        actions=pick((5, 5, 1, 0)),
    )


def _opening(cloud: str, port: int) -> str:
    """The id of the rule that opens a port; on Tencent Cloud, where ids are places, the group's."""
    shard = Shard(cloud, ACCOUNTS[cloud], REGIONS[cloud][0])
    if shard.provider == "tencent":
        return network_ref(to_world(shard), "security_group", "open").native_id
    return network_ref(to_world(shard), "rule", f"open/open-{port}").native_id


def addresses_rule(random: Random) -> NetRuleSpec:
    pick = random.choice
    forbid, mend = ["unattached_public_address"], ["release_address"]
    if random.random() < 0.35:
        forbid.append("public_ip")
        mend.append("detach_address")
    return NetRuleSpec(
        "addresses",
        mode=pick(("enforce",) * 6 + ("warn", "observe")),
        forbid=tuple(forbid),
        mend=tuple(mend),
        unattached=pick((12, 24, 48)),
        wait=pick((6, 24)),
        actions=pick((5, 5, 1)),
        keep=pick(((), (), (), ("203.0.113.77",), ("203.0.113.10",))),
    )


def drawn_policy(random: Random, cloud: str, guards: tuple[str, ...]) -> SettingsVersion:
    version = SettingsVersion()
    if KEYS in guards:
        keys: tuple[KeyRuleSpec, ...] = (key_rule(random, "ninety-days"),)
        if random.random() < 0.3:
            keys = (*keys, key_rule(random, "research", "research"))
        version = replace(version, keys=keys)
    if NETWORKS in guards:
        what = random.random()
        hosts, outer = hosts_rule(random, cloud), addresses_rule(random)
        version = replace(version, networks=(hosts,) if what < 0.4 else (outer,) if what < 0.65 else (hosts, outer))
    if random.random() < 0.03:
        version = replace(version, protected_accounts=(ACCOUNTS[cloud],))
    return version


def calm_policy(random: Random, guard: str) -> SettingsVersion:
    """A policy that lets something be done soon."""
    wait = random.choice((6, 24))
    if guard == KEYS:
        return SettingsVersion(keys=(KeyRuleSpec(wait=wait, actions=random.choice((10, 10, 1))),))
    hosts = NetRuleSpec(ports=random.choice(((8888,), (22, 8888))), wait=wait, actions=random.choice((5, 5, 1)))
    outer = NetRuleSpec(
        "addresses",
        forbid=("unattached_public_address",),
        mend=("release_address",),
        unattached=random.choice((12, 24)),
        wait=wait,
    )
    return SettingsVersion(networks=random.choice(((hosts,), (hosts, outer))))


def _somebodys(cloud: str, policy: SettingsVersion) -> ResourceRef:
    """What an exception is agreed for: the first key, else the first spare address."""
    shard = Shard(cloud, ACCOUNTS[cloud], REGIONS[cloud][0])
    if policy.keys:
        return ResourceRef(shard.cloud, shard.account, shard.region, "key", "key-k0")
    return to_product(network_ref(to_world(shard), "address", "spare-0"))


def drawn_changes(
    random: Random, cloud: str, policy: SettingsVersion, end: datetime
) -> tuple[tuple[datetime, SettingsVersion], ...]:
    """Rules made gentler or harsher, emptied of what they may do, or a document that is none."""
    made: list[tuple[datetime, SettingsVersion]] = []
    now = policy
    for at in sorted(_moment(random, end) for _ in range(random.choice((1, 1, 2)))):
        what = random.randrange(7)
        if what == 6:
            now = replace(now, broken=True)
        elif what == 5 and now.exceptions == ():
            agreed = Agreed(str(_somebodys(cloud, policy)), at.replace(microsecond=0) + 9 * DAY)
            now = replace(now, broken=False, exceptions=(agreed,))
        else:
            now = replace(_other(random, now, what), broken=False)
        made.append((at, now))
    return tuple(made)


def _other(random: Random, version: SettingsVersion, what: int) -> SettingsVersion:
    mode = random.choice(("observe", "warn", "enforce"))
    wait = random.choice((1, 6, 48))
    keys, networks = version.keys, version.networks
    if keys and (not networks or random.random() < 0.5):
        first = keys[0]
        changed = (
            replace(first, mode=mode)
            if what == 0
            else replace(first, wait=wait)
            if what in {1, 2}
            else replace(first, every=random.choice((90, 120, 180)))
            if what == 3
            else replace(first, actions=random.choice((0, 1)))
        )
        return replace(version, keys=(changed, *keys[1:]))
    if not networks:
        return version
    place = random.randrange(len(networks))
    rule = networks[place]
    after = (
        replace(rule, mode=mode)
        if what == 0
        else replace(rule, wait=wait)
        if what in {1, 2}
        else replace(rule, keep=("203.0.113.77", "203.0.113.10"))
        if what == 3
        else replace(rule, actions=random.choice((0, 1)))
    )
    return replace(version, networks=(*networks[:place], after, *networks[place + 1 :]))


def drawn_deeds(
    random: Random, end: datetime, count: int, kinds: tuple[SettingDeed, ...]
) -> tuple[tuple[datetime, SettingDeed], ...]:
    return tuple((_moment(random, end), random.choice(kinds)) for _ in range(count))


def _moment(random: Random, end: datetime) -> datetime:
    return START + (end - START) * random.random()


def span(random: Random, end: datetime) -> tuple[datetime, datetime]:
    begin = _moment(random, end)
    return begin, begin + DAY


def drawn_deliveries(random: Random, guard: str, hours: int, runs: int) -> list[Delivery]:
    skewed = random.random() < 0.3
    crowd = random.choice((1, 1, 1, 2, 3))
    made = []
    for number in range(runs):
        scheduled = START + number * hours * HOUR
        for copy in range(random.randint(1, crowd)):
            twin = copy > 0 and random.random() < 0.5
            late = timedelta(seconds=30 * random.random()) if random.random() < 0.93 else hours * 1.5 * HOUR
            made.append(
                Delivery(
                    scheduled=scheduled if copy == 0 or twin else scheduled + copy * timedelta(seconds=1),
                    arrives=scheduled + late,
                    skew=timedelta(minutes=20 * random.random() - 10) if skewed else timedelta(0),
                    deadline=timedelta(seconds=random.choice((5, 20))) if random.random() < 0.02 else None,
                    host_paused=random.random() < 0.01,
                    guard=guard,
                )
            )
    return made
