"""What a later look changes about a saving: still stopped, started again, gone, or replaced by another. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from typing_extensions import assert_never

from costguard.domain.actions import Verb
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceState
from costguard.domain.savings import RecordedSaving, SavingChange, SavingStanding, Sighting

REPLACED_SINCE, REPLACED_UNTIL = timedelta(hours=24), timedelta(days=7)
"""How long before a stop, and how long after, another machine may start and be taken for its replacement."""

_AT_WORK = frozenset({InstanceState.RUNNING, InstanceState.PENDING})
_NUMBER = re.compile(r"[-_.]?(\d+|[0-9a-f]{5,17})$")  # `trainer-2` and `trainer-3` are of one name


def observed(
    saving: RecordedSaving,
    sighting: Sighting | None,
    looked_before: datetime | None,
    now: datetime,
    undone_at: datetime | None = None,
) -> SavingChange | None:
    """What changes by a complete look at its shard, in which its machine looks like this (None: it is not there).

    `looked_before` is the last complete look before; `undone_at` when somebody had Costguard start it again. What
    happened between two looks happened as early as can be, unless the cloud tells when.
    """
    if saving.ended_at is not None or saving.action.verb is not Verb.STOP:
        return None  # what was terminated never comes back
    last = saving.last
    unseen = last is not None and last.standing is SavingStanding.UNSEEN
    proven = last.at if last is not None and unseen else max(saving.confirmed_at, looked_before or saving.confirmed_at)
    if sighting is None:
        return SavingChange(SavingStanding.GONE, proven)
    state = sighting.state
    if state is InstanceState.TERMINATING or state is InstanceState.TERMINATED:
        return SavingChange(SavingStanding.GONE, proven)
    if state is InstanceState.UNKNOWN:
        return None if unseen else SavingChange(SavingStanding.UNSEEN, proven)
    if state is InstanceState.RUNNING or state is InstanceState.PENDING:
        return _started(saving, sighting, proven, now, undone_at)
    if state is InstanceState.STOPPED or state is InstanceState.STOPPING:
        if not _same_run(saving, sighting):
            return SavingChange(SavingStanding.RESTARTED, proven)
        if sighting.billed_while_stopped and not saving.billed_on:
            return SavingChange(SavingStanding.BILLED_ON, proven)
        return SavingChange(SavingStanding.STOPPED, now) if unseen else None
    assert_never(state)


class Newcomers:
    """The machines of one look that run, by cloud and type, in the order in which they were started.

    Of tens of thousands only those that started around a stop are held against it.
    """

    def __init__(self, seen: Iterable[Sighting]) -> None:
        self._by_type: dict[tuple[str, str], list[tuple[datetime, Sighting]]] = {}
        for each in seen:
            if each.state in _AT_WORK and each.launched_at is not None:
                of_type = self._by_type.setdefault((each.ref.cloud, each.instance_type), [])
                of_type.append((each.launched_at, each))
        for of_type in self._by_type.values():
            of_type.sort(key=_start_of)

    def around(self, saving: RecordedSaving) -> Iterator[Sighting]:
        """Those of the same cloud and type that started when a replacement of it may have."""
        machine = saving.machine
        if machine is None:
            return
        of_type = self._by_type.get((machine.ref.cloud, machine.instance_type), [])
        first = bisect_left(of_type, saving.confirmed_at - REPLACED_SINCE, key=_start_of)
        last = bisect_right(of_type, saving.confirmed_at + REPLACED_UNTIL, key=_start_of)
        yield from (each for _, each in of_type[first:last])


def replacement(
    saving: RecordedSaving, seen: Iterable[Sighting], taken: Collection[ResourceRef]
) -> SavingChange | None:
    """The machine that does the work of the one that was stopped or terminated, if one of these looks like it.

    Of the same cloud and type, started within a day before to a week after, and launched by the same group or person;
    or of the same owner, and with the same name but for its number, or with the same tags. `taken` replace others
    already, or were stopped themselves.
    """
    machine = saving.machine
    if saving.ended_at is not None or machine is None or saving.action.verb is Verb.MEND:
        return None
    found = []
    for other in seen:
        launched = other.launched_at
        if (
            other.ref == machine.ref
            or other.ref in taken
            or (other.ref.cloud, other.instance_type) != (machine.ref.cloud, machine.instance_type)
            or other.state not in _AT_WORK
            or launched is None
            or not saving.confirmed_at - REPLACED_SINCE <= launched <= saving.confirmed_at + REPLACED_UNTIL
        ):
            continue
        how = _likeness(machine, other)
        if how:
            found.append((launched, other.ref, how))
    if not found:
        return None
    launched, ref, how = min(found)
    return SavingChange(SavingStanding.REPLACED, max(launched, saving.confirmed_at), ref, how)


def _start_of(known: tuple[datetime, Sighting]) -> datetime:
    return known[0]


def _likeness(machine: Sighting, other: Sighting) -> str:
    if machine.group and machine.group == other.group:
        return "group"
    if machine.launched_by and machine.launched_by == other.launched_by:
        return "launcher"
    if not machine.owner or machine.owner != other.owner:
        return ""
    name = _NUMBER.sub("", machine.name)
    if name and name == _NUMBER.sub("", other.name):
        return "name"
    return "tags" if machine.alike and machine.alike == other.alike else ""


def _started(
    saving: RecordedSaving, sighting: Sighting, proven: datetime, now: datetime, undone_at: datetime | None
) -> SavingChange:
    launched = sighting.launched_at if sighting.run_epoch != saving.action.run_epoch else None
    told = launched is not None and saving.confirmed_at <= launched <= now
    at = launched if launched is not None and told else proven
    if undone_at is not None and saving.confirmed_at <= undone_at <= now:
        return SavingChange(SavingStanding.UNDONE, min(at, undone_at))
    return SavingChange(SavingStanding.RESTARTED, at)


def _same_run(saving: RecordedSaving, sighting: Sighting) -> bool:
    """As `cases.same_run`; what an older Costguard wrote has no stop to compare with."""
    if sighting.run_epoch or not sighting.stopped_by:
        return sighting.run_epoch == saving.action.run_epoch
    return not saving.stop_request or sighting.stopped_by == saving.stop_request
