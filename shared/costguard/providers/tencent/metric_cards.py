"""Cards one by one, where Monitor tells of them; else the mean over the cards of a machine.

Tencent's page of metrics (248/6843) has one dimension for all of `QCE/CVM`, `InstanceId`. A published listing of what
DescribeBaseMetrics answers has `minorNumber` and `unInstanceId` for every GPU metric, and `vm_uuid` for others that are
asked for by `InstanceId` all the same: the declared names may not be those that GetMonitorData takes. No answer of it
for a card was at hand. So what is declared is tried, under either name of the machine, for the last hour first. A
machine is read by its cards where each of them answers, and a number beyond the last does not: who answers to that one
overlooks the card, and tells the mean. In every other case the mean is read, as it is where nothing is declared.

Permission: `monitor:GetMonitorData`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Instance
from costguard.domain.signals import HOUR
from costguard.providers.hourly import Cells, Window
from costguard.providers.tencent.metric_calls import BY_MACHINE, Asking, Job, Reading, Target

_TRIED = 3  # machines asked one after another whether any card answers: some may lack an agent
_FEWEST = 2  # periods: the newest of an hour may still be on its way
_WHOLE = 0.95  # the coverage below which no rule calls a machine idle


class Cards:
    """What is known of Monitor's answers by card, for as long as this lives; may be shared by threads.

    `late`: how late a point may come.
    """

    def __init__(self, asking: Asking, late: timedelta) -> None:
        self._asking = asking
        self._late = late
        self._refused: set[tuple[str, str, tuple[str, ...]]] = set()
        self._answered: dict[tuple[str, str], tuple[str, ...]] = {}

    def read(self, shard: Shard, job: Job, instances: Iterable[Instance], reading: Reading) -> set[ResourceRef]:
        """Read those machines of a job by their cards that Monitor tells the cards of; whose cards are whole.

        The others need the mean, which nothing is lost of here.
        """
        wanted = {target.ref for target in job.targets}
        counts = {one.ref: cards for one in instances if one.ref in wanted and (cards := _cards_of(one)) > 1}
        if job.metric.of_card is None or not counts:
            return set()
        machine, card = job.metric.of_card
        for names in dict.fromkeys(((machine, card), (*BY_MACHINE, card))):
            told = self._told(shard, replace(job, names=names), counts)
            if told:
                whole = replace(job, names=names, targets=_targets(told))
                self._asking.run(shard, [whole], reading)
                expected = _WHOLE * (whole.points - self._late // timedelta(seconds=whole.period))
                return {ref for ref, cards in told.items() if _least(reading, whole, ref, cards) >= expected}
        return set()

    def _told(self, shard: Shard, job: Job, counts: Mapping[ResourceRef, int]) -> dict[ResourceRef, int]:
        """The machines whose every card answered in the last hour, and no card that cannot be there."""
        metric = shard.account, job.metric.name
        known = self._answered.get(metric)
        if (*metric, job.names) in self._refused or known not in {None, job.names}:
            return {}
        step = timedelta(seconds=job.period)
        newest = replace(job, begin=job.begin + max(0, job.points - max(HOUR // step, _FEWEST)) * step)
        if known is None and not self._try(shard, newest, counts):
            return {}
        self._answered[metric] = job.names
        answering, _ = self._answers(shard, newest, _targets(counts))
        told = {ref: cards for ref, cards in counts.items() if set(_targets({ref: cards})) <= answering}
        beyond, failed = self._answers(shard, newest, tuple(Target(ref, str(cards)) for ref, cards in told.items()))
        unsure = {ref for ref, error in failed.items() if not isinstance(error, RefusedError)}
        return {
            ref: cards for ref, cards in told.items() if Target(ref, str(cards)) not in beyond and ref not in unsure
        }

    def _try(self, shard: Shard, job: Job, counts: Mapping[ResourceRef, int]) -> bool:
        """Whether any card of a few machines answers. A refusal is remembered, a fault that passes is not."""
        for ref in [*counts][:_TRIED]:
            answering, failed = self._answers(shard, job, _targets({ref: counts[ref]}))
            if answering:
                return True
            if isinstance(failed.get(ref), RefusedError):
                self._refused.add((shard.account, job.metric.name, job.names))
                return False
        return False

    def _answers(
        self, shard: Shard, job: Job, targets: tuple[Target, ...]
    ) -> tuple[set[Target], Mapping[ResourceRef, ProviderError]]:
        """Which of the targets have a point in the job's time, and which machines could not be asked."""
        asked = Reading(Window.spanning(job.begin, job.end))
        self._asking.run(shard, [replace(job, targets=targets)], asked)
        found = {target for (target, _), cells in asked.cells.items() if any(cells.samples)}
        return found, {ref: error for (ref, _), error in asked.cards_lost.items()}


def standing(cards: Mapping[str, Cells], mean: Cells | None, *, lost: bool) -> Mapping[str, Cells]:
    """The series that speak for a machine, by card: its cards, or the mean over them under the empty name.

    `mean` is None where it was not needed, `lost` says that some of the cards' points were not read. The cards stand
    where they are as whole as the mean. Should that be no mean after all, it is at least what the busiest card of each
    hour makes of it.
    """
    if mean is None or not cards:
        return cards if mean is None else {"": mean}
    if not lost and min(sum(cells.samples) for cells in cards.values()) >= _WHOLE * sum(mean.samples):
        return cards
    for cells in cards.values():
        for hour, value in enumerate(cells.maxima):
            if cells.samples[hour] and not value / len(cards) <= mean.maxima[hour]:  # true of NaN, which is no point
                mean.maxima[hour] = value / len(cards)
    return {"": mean}


def _cards_of(instance: Instance) -> int:
    """How many cards may have series of their own; 0 for shares of one, and for what is no NVIDIA card."""
    count = instance.accelerator.count
    whole = instance.accelerator.kind is AcceleratorKind.NVIDIA_GPU and count == int(count)
    return int(count) if whole else 0


def _targets(counts: Mapping[ResourceRef, int]) -> tuple[Target, ...]:
    """Cards are numbered from 0, as the driver numbers them (`/dev/nvidia0`)."""
    return tuple(Target(ref, str(card)) for ref, cards in counts.items() for card in range(cards))


def _least(reading: Reading, job: Job, ref: ResourceRef, cards: int) -> int:
    """How many points the card with the fewest has; none where some were lost on the way."""
    if (ref, job.metric) in reading.cards_lost:
        return 0
    return min(sum(reading.cells[target, job.metric].samples) for target in _targets({ref: cards}))
