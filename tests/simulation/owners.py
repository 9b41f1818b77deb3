"""What owners, autoscalers and operators do at the worst moments."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.chronicle import Offered, Word
from tests.simulation.people import CHAT
from tests.simulation.rules import APPROVERS, OWNER, TEAM, load
from tests.simulation.scenario import HARMLESS_TAGS, PROTECTING_TAGS, Deed, Spell, machine
from tests.world_ports.translate import to_product

from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import InstanceState
from cloudstand.world.places import provider_of
from cloudstand.world.records import Machine, WorldRefusalError
from cloudstand.world.workload import BUSY, IDLE
from costguard.cases.answering import Refused
from costguard.domain.answers import Answer, AnswerKind, Person
from costguard.domain.errors import CostguardError
from costguard.engine.answers import answers
from costguard.engine.answers.replies import reply
from costguard.policy.model.policy import Policy

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation


def owner_acts(simulation: Simulation, machine_id: str) -> None:
    """The owner, or an autoscaler, does something to one machine at its cloud."""
    world, random = simulation.world, simulation.acts
    world.tick(simulation.hub.now)
    target = world.machines.get(machine_id)
    if target is None or not world.is_listed(target):
        return
    simulation.clouds.remember(to_product(target.spec.ref))
    what = random.randrange(14)
    try:
        done = _act(simulation, target, what, random)
    except WorldRefusalError as err:
        done = f"refused: {err.refusal.value}"
    simulation.hub.trace.note(simulation.hub.now, f"owner of {machine_id}: {done}")


_PROTECTING = {
    Deed.BAR_TERMINATE: ("termination_protection", True),
    Deed.LET_TERMINATE: ("termination_protection", False),
    Deed.BAR_STOP: ("stop_protection", True),
    Deed.LET_STOP: ("stop_protection", False),
}


def does(simulation: Simulation, native_id: str, deed: Deed) -> None:
    """The owner does one thing, where the cloud lets them."""
    world = simulation.world
    world.tick(simulation.hub.now)
    if not world.is_listed(world.machines[native_id]):
        return
    try:
        if deed is Deed.START:
            world.start(native_id, "owner")
        elif deed is Deed.STOP:
            world.stop(native_id, "owner")
        elif deed is Deed.ATTACH:
            _attach(world, native_id)
        elif deed in _PROTECTING:
            protection, on = _PROTECTING[deed]
            world.protect(native_id, protection, "owner", on=on)
        else:
            _delete_copy(world, native_id, simulation.acts)
    except WorldRefusalError as err:
        simulation.hub.trace.note(simulation.hub.now, f"owner of {native_id}: refused: {err.refusal.value}")
    else:
        simulation.hub.trace.note(simulation.hub.now, f"owner of {native_id}: {deed.value}")


def spell(simulation: Simulation, spell: Spell, *, on: bool) -> None:
    """Somebody keeps a machine for a while, by using it or by a tag, and lets it go."""
    world = simulation.world
    world.tick(simulation.hub.now)
    if spell.tag:
        if on:
            world.tag(spell.machine, *spell.tag, "owner")
        else:
            world.untag(spell.machine, spell.tag[0], "owner")
    else:
        world.work(spell.machine, BUSY if on else IDLE)
    what = f"tag {spell.tag[0]}" if spell.tag else "use"
    simulation.hub.trace.note(simulation.hub.now, f"owner of {spell.machine}: {what} {'begins' if on else 'ends'}")


def _act(simulation: Simulation, target: Machine, what: int, random: Random) -> str:
    world, native_id = simulation.world, target.native_id
    if what == 0 and target.state is InstanceState.STOPPED:
        world.start(native_id, "owner")
        return "start"
    if what == 1 and target.state is InstanceState.RUNNING:
        world.stop(native_id, "owner")
        return "stop"
    if what in {2, 3}:
        world.work(native_id, BUSY)
        return "works again"
    if what == 4:
        world.work(native_id, IDLE)
        return "stops working"
    if what in {5, 6}:
        key, value = random.choice(PROTECTING_TAGS)
        world.tag(native_id, key, value, "owner")
        return f"tag {key}={value}"
    if what == 7:
        for key, _ in (*PROTECTING_TAGS, *HARMLESS_TAGS):
            world.untag(native_id, key, "owner")
        return "untag"
    if what == 8:
        world.tag(native_id, "team", random.choice(("research", "product", "nobody")), "owner")
        return "another team"
    return _rare_act(simulation, target, what, random)


def _rare_act(simulation: Simulation, target: Machine, what: int, random: Random) -> str:
    world, native_id = simulation.world, target.native_id
    if what == 9:
        world.protect(native_id, "termination_protection", "owner", on=random.random() < 0.7)
        return "termination protection"
    if what == 10 and target.state in {InstanceState.RUNNING, InstanceState.STOPPED}:
        _attach(world, native_id)
        return Deed.ATTACH.value
    if what == 11:
        return Deed.DELETE_COPY.value if _delete_copy(world, native_id, random) else "nothing"
    if what == 12 and target.state is InstanceState.RUNNING:
        world.terminate(native_id, "owner")
        world.launch(_replacement(simulation, target), "autoscaler")
        return "replaced by its autoscaler"
    if what == 13 and target.state is InstanceState.STOPPED:
        world.start(native_id, "owner")
        return "start"
    return "nothing"


_TYPES = {"aws": "gp3", "alibaba": "cloud_essd", "tencent": "CLOUD_PREMIUM"}


def _attach(world: World, native_id: str) -> None:
    """One more disk of the first one's type, or of one that its cloud has."""
    usual = _TYPES[provider_of(world.machines[native_id].spec.cloud)]
    disk = Disk(50, device=f"/dev/sd{len(world.volumes)}", volume_type=usual)
    first = next((volume.disk for volume in world.volumes_of(native_id)), disk)
    world.attach(native_id, replace(disk, volume_type=first.volume_type), "owner")


def _delete_copy(world: World, native_id: str, random: Random) -> bool:
    copies = [copy.native_id for copy in world.snapshots.values() if copy.machine == native_id]
    if copies:
        world.delete_snapshot(random.choice(copies), "owner")
    return bool(copies)


def _replacement(simulation: Simulation, target: Machine) -> MachineSpec:
    name = f"r{len(simulation.world.machines)}"
    spec = machine(target.spec.cloud, name, target.spec.region, launched_at=simulation.hub.now, disks=target.spec.disks)
    simulation.channel.machines[spec.native_id] = None
    return spec


def somebody_speaks(simulation: Simulation, machine_id: str) -> None:
    """An operator snoozes, approves, pauses or resumes; acknowledged once the ledger has it."""
    random, now = simulation.acts, simulation.hub.now
    memory, words, number = simulation.operator, simulation.chronicle.words, simulation.hub.calls
    target = simulation.world.machines.get(machine_id)
    what = random.random()
    share = simulation.scenario.pauses
    if what < share:
        memory.switch.pause("operator", "look first", now)
        words.append(Word(number, now, "pause"))
        simulation.hub.later(now + timedelta(hours=1 + 23 * random.random()), lambda: resume(simulation))
        said = "pause"
    elif target is None:
        return
    elif what < share + 0.4 and simulation.chronicle.offered:
        said = click(simulation, machine_id)
    elif what < share + 0.53:
        length = timedelta(hours=random.choice((1, 12, 36, 72)))
        answers.snooze(memory, to_product(target.spec.ref), length, "vision", "still needed", now)
        words.append(Word(number, now, "snooze", machine_id, now + length))
        said = f"snooze {machine_id} for {length}"
    else:
        said = approve(simulation, machine_id)
    simulation.hub.trace.note(now, f"operator: {said}")


def approve(simulation: Simulation, machine_id: str) -> str:
    """Somebody says yes to what waits for it, if anything does."""
    target = simulation.world.machines[machine_id]
    now = simulation.hub.now
    granted = None
    for guard in simulation.scenario.guards:
        try:
            by = simulation.acts.choice(("vision", "platform"))
            granted = answers.approve(
                simulation.operator, guard, str(target.spec.ref), by, now, policy_of_clicks(simulation)
            )
            break
        except CostguardError:
            continue
    if granted is None:
        return "nothing waits for approval"
    word = Word(simulation.hub.calls, now, "approve", machine_id, granted.until, granted.decision_id, f"cli:{by}")
    simulation.chronicle.words.append(word)
    return f"approve {machine_id}"


def policy_of_clicks(simulation: Simulation) -> Policy:
    """The policy that answers are judged by: the newest that is none of the broken ones."""
    good = [version for version in simulation.versions[: simulation.version + 1] if not version.broken]
    return load((good or [simulation.scenario.policy])[-1].text())


_CLICKERS = (
    (OWNER, TEAM),
    (OWNER, TEAM),
    (APPROVERS[0], TEAM),
    (APPROVERS[1], TEAM),
    ("U0SOMEBODY", TEAM),
    (OWNER, "T0ELSE99"),
    (APPROVERS[0], "T0ELSE99"),
)
"""Who presses a button: those who may, somebody else of the workspace, and namesakes of another."""


def click(simulation: Simulation, machine_id: str) -> str:
    """Somebody presses a button of a message, new or old; what they may say is for the product to find out."""
    random = simulation.acts
    offered, pressed = simulation.chronicle.offered, simulation.chronicle.pressed
    if simulation.scenario.approves:
        offered = [one for one in offered if one.choice.kind is AnswerKind.APPROVE]
        if not offered:
            return "nothing to approve"
    if pressed and random.random() < 0.25:
        return _press(simulation, *pressed[-1])  # twice, as people do
    about = [one for one in offered if one.machine == machine_id] or offered
    asked = [one for one in about if one.choice.kind in {AnswerKind.APPROVE, AnswerKind.STOP_NOW}]
    about = asked if asked and random.random() < 0.5 else about
    button = about[-1 - min(int(random.expovariate(0.5)), len(about) - 1)]  # mostly one of the latest
    name, team = random.choice(_CLICKERS)
    through = CHAT if random.random() < 0.9 else "C0OTHER1"
    pressed.append((button, name, team, through))
    return _press(simulation, button, name, team, through)


def _press(simulation: Simulation, button: Offered, name: str, team: str, through: str) -> str:
    now, number = simulation.hub.now, simulation.hub.calls
    answer = Answer(button.choice.kind, button.choice.of, Person("slack", name, team), now, button.choice.length)
    weighed = reply(simulation.operator, policy_of_clicks(simulation), answer, now, came_through=through)
    said = f"{name} of {team} presses {button.choice.kind.value} about {button.machine}: {weighed.code.value}"
    if isinstance(weighed, Refused):
        return said
    what = "snooze" if answer.kind is AnswerKind.KEEP else answer.kind.value
    word = Word(number, now, what, button.machine, weighed.until, str(answer.of.decision_id), f"{team}/{name}")
    simulation.chronicle.words.append(word)
    return said


def resume(simulation: Simulation) -> None:
    """Somebody lets it go on."""
    simulation.operator.switch.resume("operator", "looked", simulation.hub.now)
    simulation.chronicle.words.append(Word(simulation.hub.calls, simulation.hub.now, "resume"))
    simulation.hub.trace.note(simulation.hub.now, "operator: resume")
