"""Questions to the world's own truth, answered without any code that decides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol, TypeVar

from tests.simulation.hub import Process
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import PolicyVersion, spared_by_tag
from tests.simulation.scenario import PROTECTING_TAGS
from tests.world_ports.translate import to_world

from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from cloudstand.world.prices import SPOT_SHARE
from cloudstand.world.records import Machine
from cloudstand.world.sensors import PERIOD_SECONDS, Sensor
from cloudstand.world.workload import SignalName
from costguard.domain.actions import Verb
from costguard.domain.resources import InstanceDetail, SnapshotState

GPU_BOUND_PERCENT = 5.0
WORKING_WATTS = 200.0  # a card of these worlds idles at 31 and works at 255 and more
BESIDE = ((SignalName.CPU, 10.0), (SignalName.NETWORK, 50.0 * 1024))
"""From where on the machine itself works, in percent and bytes a second, whatever is told of its cards."""
_PERIOD = PERIOD_SECONDS[SignalName.GPU]
_HOUR = 3600


class ByProcess(Protocol):
    """An entry of the chronicle that one process caused."""

    @property
    def process(self) -> Process:
        """Which."""


Entry = TypeVar("Entry", bound=ByProcess)


def cards_of(machine: Machine) -> tuple[Sensor, ...]:
    """The device metric of every card."""
    return tuple(Sensor(machine, SignalName.GPU, card) for card in range(int(machine.spec.accelerator.count)))


def peak_of(sensor: Sensor, since: datetime, until: datetime) -> tuple[float | None, int]:
    """The highest sample of one series in a span, and how many samples there are."""
    begin, end = int(since.timestamp()), int(until.timestamp())
    highest: float | None = None
    count = 0
    while begin < end:
        stop = min(end, begin - begin % _HOUR + _HOUR)
        peak, samples = sensor.peak(begin, stop, until)
        if peak is not None and (highest is None or peak > highest):
            highest = peak
        count += samples
        begin = stop
    return highest, count


def why_not_idle(machine: Machine, lasting: timedelta, until: datetime) -> str:
    """What speaks against "idle over the whole window, measured to the end"; empty when nothing does."""
    since = until - lasting
    started = machine.runs[-1][0] if machine.runs else until
    if started > since:
        return f"it runs only since {started:%m-%d %H:%M}"
    for sensor in cards_of(machine):
        if not machine.workload.agent:
            return "no agent measures its cards"
        peak, samples = peak_of(sensor, since, until)
        if peak is None:
            return f"card {sensor.card} has no samples"
        if peak >= GPU_BOUND_PERCENT:
            return f"card {sensor.card} was at {peak:.0f} %"
        watts, _ = peak_of(Sensor(machine, SignalName.POWER, sensor.card), since, until)
        if watts is not None and watts >= WORKING_WATTS:
            return f"card {sensor.card} drew {watts:.0f} W, whatever was told of its use"
        expected = lasting / timedelta(seconds=_PERIOD)
        if samples < 0.95 * expected - 3:  # three samples may lie on the edges of the window
            return f"card {sensor.card} has {samples} of {expected:.0f} samples"
        _, newest = peak_of(sensor, until - timedelta(minutes=8), until)
        if newest == 0:
            return f"card {sensor.card} has no sample of the last 8 minutes"
    return ""


def works_beside(machine: Machine, lasting: timedelta, until: datetime) -> bool:
    """Whether CPU or network worked in the window: cards that read 0 beside them may well be in use."""
    since = max(until - lasting, machine.runs[-1][0])
    return any((peak_of(Sensor(machine, signal), since, until)[0] or 0.0) >= bound for signal, bound in BESIDE)


def was_busy(machine: Machine, lasting: timedelta, until: datetime) -> bool:
    """Whether any card worked in the window."""
    since = max(until - lasting, machine.runs[-1][0])
    return any((peak_of(sensor, since, until)[0] or 0.0) >= GPU_BOUND_PERCENT for sensor in cards_of(machine))


def tag_protects(tags: Mapping[str, str]) -> bool:
    """Whether one of the tags that protect, in any spelling the simulation uses, is there."""
    return any(tags.get(key) == value for key, value in PROTECTING_TAGS)


_BARRED_BY = {
    "termination_protection": (Verb.SNAPSHOT, Verb.TERMINATE),
    "stop_protection": (Verb.STOP, Verb.SNAPSHOT, Verb.TERMINATE),
}
"""What each bars at its cloud; of the ladders of these stories a copy is made for the end alone."""


def barred(protections: tuple[str, ...], version: PolicyVersion, verb: Verb) -> bool:
    """Whether the cloud's own protections keep this from being done, as the policy reads them."""
    if not version.terminate_alone:
        return bool(protections)
    return any(verb in _BARRED_BY[each] for each in protections)


def why_untouchable(shown: InstanceDetail, version: PolicyVersion, at: datetime, verb: Verb) -> str:
    """Why nobody may do this to a machine that looks like this; empty when nothing protects it."""
    instance = shown.instance
    if tag_protects(instance.tags):
        return f"its tags protect it: {instance.tags}"
    if to_world(instance.billing) not in {Billing.ON_DEMAND, Billing.SPOT}:
        return f"it is {instance.billing.value}"
    if instance.managed_by is not None:
        return f"it is managed by {instance.managed_by.keeper.value}"
    if barred((*shown.protected_by, *instance.protected_by), version, verb):
        return f"the cloud protects it: {shown.protected_by or instance.protected_by}"
    if instance.ref.account in version.protected_accounts:
        return "its account is protected"
    for agreed in version.exceptions:
        meant = agreed.resource == str(instance.ref) if agreed.resource else spared_by_tag(instance.tags)
        if meant and agreed.expires > at:
            return "an exception was agreed"
    return ""


def uncopied(shown: InstanceDetail, since: datetime) -> list[str]:
    """Attached volumes without a completed copy begun at `since` or later."""
    copied = {
        copy.volume
        for copy in shown.snapshots
        if copy.state is SnapshotState.COMPLETED and copy.started_at >= since and copy.decision_id
    }
    return [volume.ref.native_id for volume in shown.volumes if volume.ref not in copied]


def torn(world: World, machine: Machine, shown: InstanceDetail, since: datetime) -> bool:
    """Whether no one call copied all volumes that were shown, though the cloud has such a call."""
    volumes = {volume.ref.native_id for volume in shown.volumes}
    if not 1 < len(volumes) <= machine.vendor.copied_at_once:
        return False
    sets: dict[str, set[str]] = {}
    for copy in shown.snapshots:
        known = world.snapshots.get(copy.ref.native_id)
        if known is None:
            return False  # deleted since it was shown: nobody can tell any more which call made it
        if known.set_id and copy.state is SnapshotState.COMPLETED and copy.started_at >= since:
            sets.setdefault(known.set_id, set()).add(known.volume)
    return not any(volumes <= copied for copied in sets.values())


def rule_of(shown: InstanceDetail, version: PolicyVersion) -> RuleSpec | None:
    """The rule that governs a machine that looks like this."""
    return version.gentlest(shown.instance.tags)


def hourly_of(machine: Machine) -> Decimal:
    """What a machine costs an hour, in the currency it is quoted in."""
    price = machine.spec.hourly
    if price is None:
        return Decimal(0)
    return price.amount * SPOT_SHARE if machine.spec.billing is Billing.SPOT else price.amount
