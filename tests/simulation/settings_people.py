"""What people do to keys and networks at the worst moments, and what they say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.chronicle import Told, Word
from tests.simulation.oracle.settings_judge import in_force
from tests.simulation.people import Channel
from tests.simulation.scenario import PROTECTING_TAGS
from tests.simulation.settings_chronicle import Announced
from tests.simulation.settings_story import OFFICE, SettingDeed
from tests.world_ports.translate import to_world

from cloudstand.world.keys import KeyState, WorldKey
from cloudstand.world.network.parts import Direction, NetworkRule, PublicAddress, SecurityGroup
from cloudstand.world.network.region import rule as written
from cloudstand.world.records import WorldRefusalError
from costguard.domain.actions import Outcome, Verb
from costguard.domain.refs import ResourceRef
from costguard.engine.answers import answers
from costguard.ports import Message

if TYPE_CHECKING:
    from datetime import datetime

    from tests.simulation.settings_play import SettingsSimulation

_WORLD = "0.0.0.0/0"


class SettingsChannel(Channel):
    """The chat, where messages are about keys and networks."""

    simulation: SettingsSimulation

    def heard(self, page: Message, told: Told, asked: datetime) -> None:
        """Keep what it announces."""
        fields, book = dict(page.fields), self.simulation.book
        noticed = self.simulation.shelf.noticed.get(page.notice_id)
        writer = noticed.writer if noticed is not None else None
        read = in_force(book.policies, writer, first=True) if writer is not None else None
        version = self.simulation.versions[read.version] if read is not None and read.version is not None else None
        subject, rule = fields.get("Resource", ""), fields.get("Rule", "")
        if "Costguard will " in page.title:
            book.told.append(
                Announced(told.number, asked, self.hub.now, subject, rule, page.title, told.not_before, version)
            )


def does(simulation: SettingsSimulation, deed: SettingDeed) -> None:
    """One thing people do at a set time."""
    random = simulation.acts
    if deed is SettingDeed.UNDO:
        somebody_undoes(simulation)
    elif deed is SettingDeed.SPEAK:
        somebody_speaks(simulation, "")
    elif deed is SettingDeed.OWNER or (simulation.story.network is None and deed is not SettingDeed.ROTATE):
        owner_acts(simulation, "")
    else:
        _changed(simulation, lambda: _deed(simulation, deed, random))


def owner_acts(simulation: SettingsSimulation, about: str) -> None:
    """An owner changes a key or a network in its cloud, rather what `about` names."""
    random = simulation.acts
    keys = simulation.world.keys.of(to_world(simulation.story.shard))
    wanted = [key for key in keys if key.ref.native_id in about] or keys
    of_keys = bool(keys) and (simulation.story.network is None or any(key.ref.native_id in about for key in keys))
    if of_keys or (keys and random.random() < 0.3):
        key = random.choice(wanted)
        _changed(simulation, lambda: _act_on_key(simulation, key, random))
    elif simulation.story.network is not None:
        _changed(simulation, lambda: _act_on_network(simulation, random))


def _changed(simulation: SettingsSimulation, act: Callable[[], str]) -> None:
    world = simulation.world
    world.tick(simulation.hub.now)
    simulation.settings.remember(simulation.story.shard, "owner")
    try:
        done = act()
    except WorldRefusalError as err:
        done = f"refused: {err.refusal.value}"
    simulation.trace.note(simulation.hub.now, f"owner: {done}")


def _act_on_key(simulation: SettingsSimulation, key: WorldKey, random: Random) -> str:
    keys, now, name = simulation.world.keys, simulation.hub.now, key.ref.native_id
    what = random.randrange(10)
    if what <= 1:
        keys.rotate(key.ref, now, "owner")
        return f"rotates {name}"
    if what <= 3:
        key.state = KeyState.DISABLED
        return f"disables {name}"
    if what == 4:
        key.state = KeyState.ENABLED
        return f"enables {name}"
    if what == 5:
        days = random.choice((90, 365, None))
        keys.set_period(key.ref, days, now, "owner")
        return f"sets the period of {name} to {days}"
    if what <= 7:
        key.tags.update([random.choice(PROTECTING_TAGS)])
        return f"protects {name}"
    if what == 8:
        for word, _ in PROTECTING_TAGS:
            key.tags.pop(word, None)
        return f"lets {name} go"
    key.state, key.deletes_at = KeyState.PENDING_DELETION, now + timedelta(days=7)
    return f"schedules {name} for deletion"


def _act_on_network(simulation: SettingsSimulation, random: Random) -> str:
    what = random.randrange(13)
    if what <= 1:
        return _deed(simulation, SettingDeed.ATTACH, random)
    if what == 2:
        return _deed(simulation, SettingDeed.DETACH, random)
    if what <= 5:
        return _deed(simulation, SettingDeed.REWRITE, random)
    network = simulation.world.networks.of(to_world(simulation.story.shard))
    group = random.choice(network.groups)
    into = [each for each in group.rules if each.direction is Direction.INGRESS]
    now, networks = simulation.hub.now, simulation.world.networks
    if what <= 7 and into:
        gone = random.choice(into)
        networks.revoke(group.ref, gone.rule_id, now, "owner", Direction.INGRESS)
        return f"revokes {gone.rule_id} of {group.name}"
    if what <= 9:
        new = written(f"new-{len(networks.history)}", port=random.choice((22, 8888, 6006)), peer=_peer(random))
        place = 0 if random.random() < 0.5 else len(group.rules)
        new = replace(new, priority=1 if group.ref.provider == "alibaba" else 0)
        rules = [*group.rules[:place], new, *group.rules[place:]]
        networks.set_rules(group.ref, rules, now, "owner", "added a rule")
        return f"adds {new.ports[0][0]} from {new.peers[0]} to {group.name} at {place}"
    if what == 10:
        return _protect(simulation, group, random)
    machine = simulation.story.machines[0].ref
    if what == 11 and machine in networks.imds_v1:
        networks.set_imds(machine, v1=random.random() < 0.7, now=now, by="owner")
        return "sets what metadata asks for"
    spares = [each for each in network.addresses if each.bound_to is None]
    if what == 12 and spares:
        networks.release(spares[0].ref, now, "owner")
        return f"releases {spares[0].ip}"
    return "nothing"


def _peer(random: Random) -> str:
    return random.choice((_WORLD, _WORLD, OFFICE))


def _protect(simulation: SettingsSimulation, group: SecurityGroup, random: Random) -> str:
    """A protecting tag on a group or on an address, or none any more."""
    networks, shard = simulation.world.networks, simulation.story.shard
    network = networks.of(to_world(shard))
    tags = dict([random.choice(PROTECTING_TAGS)]) if random.random() < 0.7 else {}
    if random.random() < 0.5:
        groups = tuple(replace(each, tags=tags) if each.ref == group.ref else each for each in network.groups)
        networks.place(replace(network, groups=groups))
        return f"tags {group.name}: {tags}"
    networks.place(replace(network, addresses=tuple(replace(each, tags=tags) for each in network.addresses)))
    return f"tags every address: {tags}"


def _deed(simulation: SettingsSimulation, deed: SettingDeed, random: Random) -> str:
    networks, now = simulation.world.networks, simulation.hub.now
    network = networks.of(to_world(simulation.story.shard))
    if deed is SettingDeed.ATTACH:
        spare = next((each for each in network.addresses if each.bound_to is None), None)
        card = next((each for each in network.interfaces if not each.public_ips), None)
        if spare is None or card is None:
            return "nothing to attach"
        networks.attach(spare.ref, card.ref, card.private_ips[0], now, "owner")
        return f"attaches {spare.ip}"
    if deed is SettingDeed.DETACH:
        bound = [each for each in network.addresses if each.bound_to is not None and each.name.startswith("spare")]
        if not bound:
            return "nothing to detach"
        _detach(simulation, bound[0])
        return f"detaches {bound[0].ip}"
    if deed is SettingDeed.ROTATE:
        keys = simulation.world.keys.of(to_world(simulation.story.shard))
        if keys:
            simulation.world.keys.rotate(random.choice(keys).ref, now, "owner")
        return "rotates a key"
    return _rewrite(simulation, network.groups, random)


def _detach(simulation: SettingsSimulation, address: PublicAddress) -> None:
    simulation.world.networks.detach(address.ref, simulation.hub.now, "owner")


def _rewrite(simulation: SettingsSimulation, groups: tuple[SecurityGroup, ...], random: Random) -> str:
    """One way in is for others, or of another port, from now on; its id stays."""
    group = random.choice(groups)
    into = [each for each in group.rules if each.direction is Direction.INGRESS]
    if not into:
        return "no rule to rewrite"
    old = random.choice(into)
    new: NetworkRule = (
        replace(old, peers=(_peer(random),))
        if random.random() < 0.5
        else replace(old, ports=((random.choice((22, 443, 6006, 8888)),) * 2,))
    )
    rules = [new if each is old else each for each in group.rules]
    simulation.world.networks.set_rules(group.ref, rules, simulation.hub.now, "owner", "rewrote a rule")
    return f"rewrites {old.rule_id} of {group.name}: {new.ports[0][0]} from {new.peers[0]}"


def somebody_speaks(simulation: SettingsSimulation, about: str) -> None:
    """An operator snoozes, pauses or takes an action back; acknowledged once the ledger has it."""
    random, now, number = simulation.acts, simulation.hub.now, simulation.hub.calls
    memory, words = simulation.operator, simulation.book.words
    what, share = random.random(), simulation.story.pauses
    if what < share:
        memory.switch.pause("operator", "look first", now)
        words.append(Word(number, now, "pause"))
        simulation.hub.later(now + timedelta(hours=1 + 23 * random.random()), lambda: resume(simulation))
        said = "pause"
    elif what < share + 0.5:
        subjects = simulation.subjects()
        about_it = [ref for ref in subjects if ref.native_id in about]
        ref = random.choice(about_it or subjects)
        length = timedelta(hours=random.choice((1, 12, 36, 72)))
        snooze(simulation, ref, length)
        said = f"snooze {ref.native_id} for {length}"
    else:
        somebody_undoes(simulation)
        return
    simulation.trace.note(now, f"operator: {said}")


def snooze(simulation: SettingsSimulation, ref: ResourceRef, length: timedelta) -> None:
    """Somebody wants it left as it is for a while."""
    now = simulation.hub.now
    answers.snooze(simulation.operator, ref, length, "vision", "still needed", now)
    simulation.book.words.append(Word(simulation.hub.calls, now, "snooze", str(ref), now + length))


def resume(simulation: SettingsSimulation) -> None:
    """Somebody lets it go on."""
    simulation.operator.switch.resume("operator", "looked", simulation.hub.now)
    simulation.book.words.append(Word(simulation.hub.calls, simulation.hub.now, "resume"))
    simulation.trace.note(simulation.hub.now, "operator: resume")


def somebody_undoes(simulation: SettingsSimulation) -> None:
    """`costguard undo` of an action that was sent, at times by two people at once."""
    sent = [
        one.action.action_id
        for one in simulation.book.intents
        if one.action.verb is Verb.MEND and not one.undoes and one.action.mend is not None
    ]
    if not sent:
        return
    known = [simulation.operator.intents.get(each) for each in sent]
    done = [each.action.action_id for each in known if each is not None and each.outcome is not Outcome.REFUSED]
    action_id = simulation.acts.choice(done or sent)
    for _ in range(2 if simulation.acts.random() < 0.4 else 1):
        simulation.begin_undo(action_id)
