"""What cancels a notice: use, snooze, protection, an exception, a looser rule — once a run has seen it."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.simulation.chronicle import Listing
from tests.simulation.oracle import truth
from tests.simulation.oracle.judge import Judged

from costguard.domain.resources import Instance, InstanceDetail, InstanceState


def cancelled_after(judged: Judged, told_at: datetime) -> str:
    """Why a notice of `told_at` no longer counts; empty when it does.

    Only what an undisturbed run saw counts: it finished, nothing ran beside it, and it could read the policy.
    """
    shard = judged.shown.instance.ref.shard
    unseen = _asked_to_keep(judged, told_at)
    if unseen:
        return unseen
    for listing in judged.chronicle.listings.get(shard, []):
        process = listing.process
        seen = listing.at > told_at and listing.number < judged.effect.number
        if process.guard != judged.effect.process.guard:
            continue
        if not seen or process is judged.effect.process or not (process.finished and process.alone):
            continue
        instance = listing.shown.get(judged.effect.machine)
        if instance is None or not listing.complete:
            continue
        cause = _cause(judged, listing, instance, told_at)
        if cause:
            return f"{cause} on {listing.at:%m-%d %H:%M}, which {process.name} saw"
    return ""


def _cause(judged: Judged, listing: Listing, instance: Instance, told_at: datetime) -> str:
    version = _version(judged, listing)
    if version is None:
        return ""
    shown = InstanceDetail(instance, (), ())
    at, verb = listing.at + timedelta(minutes=20), judged.effect.verb
    protected = truth.why_untouchable(shown, judged.versions[version], at, verb)
    if protected:
        return protected
    if judged.demand is not None:
        budget = judged.versions[version].budget(judged.demand.budget.name)
        if budget is None or not list(budget.demands(instance.ref.cloud, instance.tags)):
            return "no step of its budget asked for it"
    rule = judged.rule if judged.demand is not None else truth.rule_of(shown, judged.versions[version])
    if rule is None:
        return ""
    asks_for_use = judged.demand is None or not judged.demand.of_class
    measured = [
        entry
        for entry in judged.chronicle.measured.get(judged.effect.machine, [])
        if entry.process is listing.process and entry.whole
    ]
    if (
        asks_for_use
        and measured
        and instance.state is InstanceState.RUNNING
        and judged.effect.machine in judged.world.machines
    ):
        lasting = timedelta(hours=rule.lasting)
        if truth.was_busy(judged.machine, lasting, measured[0].until):
            return "it was in use"
    if _snoozed(judged, listing):
        return "it was snoozed"
    if _handed_on(judged, listing, told_at):
        return "its owner said that it is not theirs"
    return _loosened(judged, version, told_at) if judged.demand is None else ""


def _version(judged: Judged, listing: Listing) -> int | None:
    reads = [read for read in judged.chronicle.policies if read.process is listing.process]
    return reads[0].version if reads else None


def _snoozed(judged: Judged, listing: Listing) -> bool:
    words = [
        word
        for word in judged.chronicle.words
        if word.what == "snooze" and word.machine == judged.effect.machine and word.at < listing.at
    ]
    until = words[-1].until if words else None
    return until is not None and until > listing.at + timedelta(minutes=20)


def _asked_to_keep(judged: Judged, told_at: datetime) -> str:
    """A Keep said after the notice, before the run that acts read the ledger: whether any run saw it hold or not."""
    shard, process = judged.shown.instance.ref.shard, judged.effect.process
    read = next((one.number for one in judged.chronicle.listings.get(shard, []) if one.process is process), 0)
    asked = (
        word.at
        for word in judged.chronicle.words
        if word.what == "snooze" and word.machine == judged.effect.machine and word.number < read
    )
    return next((f"it was asked on {at:%m-%d %H:%M} that it be kept" for at in asked if at > told_at), "")


def _handed_on(judged: Judged, listing: Listing, told_at: datetime) -> bool:
    """Whether whoever was told has said that it is somebody else's, who was not."""
    return any(
        word.what == "not_mine" and word.machine == judged.effect.machine and told_at < word.at < listing.at
        for word in judged.chronicle.words
    )


def _loosened(judged: Judged, version: int, told_at: datetime) -> str:
    before = [read.version for read in judged.chronicle.policies if read.at <= told_at and read.version is not None]
    if not before:
        return ""
    versions = [judged.versions[number] for number in (before[-1], version)]
    if versions[1].terminate_alone and not versions[0].terminate_alone:
        return "termination protection began to bar terminate alone"
    old, new = (each.gentlest(judged.shown.instance.tags) for each in versions)
    if old is None or new is None or old.name != new.name:
        return ""
    return "its rule was loosened" if new.looser_than(old) else ""
