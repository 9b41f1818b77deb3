"""Hourly histories. An hour that is over was measured once and for all, so it is worked out once."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, pairwise
from math import nan

from cloudstand.world.records import Machine, PastHours
from cloudstand.world.sensors import PERIOD_SECONDS, Sensor, any_slot, sensors_of, windows_of
from cloudstand.world.workload import HOUR_SECONDS, Workload
from costguard.domain.signals import SignalHistory, SignalName, floor_hour

Stretch = tuple[range, bool, bool]
"""Hours alike: which, whether something changes within (then it is a single one), whether samples exist."""


def histories(machine: Machine, since: datetime, until: datetime) -> tuple[SignalHistory, ...]:
    """Hour by hour, every series of a machine that has a sample from `since` to `until`, which lies not ahead."""
    start = floor_hour(since)
    first, last, asked = int(start.timestamp()), until.timestamp(), since.timestamp()
    devices = _Course(machine.workload, windows_of(machine, last, of_devices=True))
    whole = _Course(machine.workload, windows_of(machine, last, of_devices=False))
    found = []
    for sensor in sensors_of(machine):
        course = whole if sensor.card is None else devices
        if any_slot(course.windows, asked, PERIOD_SECONDS[sensor.signal]):
            maxima, samples = _hours(sensor, first, int(last), course)
            found.append(SignalHistory(SignalName(sensor.signal.value), sensor.device, start, maxima, samples, "world"))
    return tuple(found)


class _Course:
    """When samples of one kind exist and where something changes: the same for every card."""

    def __init__(self, workload: Workload, windows: Sequence[tuple[float, float]]) -> None:
        self.windows = windows
        self._workload = workload
        self._known: dict[tuple[int, int], list[Stretch]] = {}

    def stretches(self, begin: int, end: int) -> list[Stretch]:
        """The whole hours from `begin` to `end`, cut wherever something changes."""
        found = self._known.get((begin, end))
        if found is None:
            found = self._known[begin, end] = list(self._cut(begin, end))
        return found

    def _cut(self, begin: int, end: int) -> Iterator[Stretch]:
        marks, disturbed = {begin, end}, set()
        for at in chain(self._workload.phase_seconds, *self.windows):
            if begin < at < end:
                hour = int(at) - int(at) % HOUR_SECONDS
                marks.add(hour)
                if at != hour:
                    disturbed.add(hour)
        for spike in self._workload.spike_seconds:
            if begin <= spike < end:
                disturbed.add(int(spike) - int(spike) % HOUR_SECONDS)
        for hour in disturbed:
            marks.update((hour, hour + HOUR_SECONDS))
        for first, last in pairwise(sorted(marks)):
            covered = any(start <= first and last <= until for start, until in self.windows)
            yield range(first, last, HOUR_SECONDS), first in disturbed, covered


def _hours(sensor: Sensor, first: int, last: int, course: _Course) -> tuple[array[float], array[int]]:
    over = last - last % HOUR_SECONDS
    past = _past(sensor, first, over, course)
    part = slice((first - past.begin) // HOUR_SECONDS, (over - past.begin) // HOUR_SECONDS)
    maxima, samples = past.maxima[part], past.samples[part]
    if over < last:
        peak, count = sensor.peak_within(over, over + HOUR_SECONDS, course.windows)
        maxima.append(nan if peak is None else peak)
        samples.append(count)
    return maxima, samples


def _past(sensor: Sensor, first: int, over: int, course: _Course) -> PastHours:
    """The hours from `first` to `over` at least; those not yet worked out are added at either end."""
    machine, key = sensor.machine, (sensor.signal, sensor.card)
    past = machine.past.get(key)
    if past is None or past.workload is not machine.workload or past.silences is not machine.silences:
        past = PastHours(machine.workload, machine.silences, first, *_measured(sensor, first, over, course))
        machine.past[key] = past
        return past
    if first < past.begin:
        maxima, samples = _measured(sensor, first, past.begin, course)
        past.begin, past.maxima, past.samples = first, maxima + past.maxima, samples + past.samples
    end = past.begin + len(past.maxima) * HOUR_SECONDS
    if end < over:
        maxima, samples = _measured(sensor, end, over, course)
        past.maxima += maxima
        past.samples += samples
    return past


def _measured(sensor: Sensor, begin: int, end: int, course: _Course) -> tuple[array[float], array[int]]:
    """Whole hours: those in which nothing changes by the dozen, the others one by one."""
    maxima, samples = array("d"), array("q")
    machine = sensor.machine
    full = HOUR_SECONDS // PERIOD_SECONDS[sensor.signal]
    for hours, disturbed, covered in course.stretches(begin, end):
        if disturbed:
            peak, count = sensor.peak_within(hours.start, hours.stop, course.windows)
            maxima.append(nan if peak is None else peak)
            samples.append(count)
        elif covered:
            maxima.extend(machine.workload.hour_peaks(sensor.signal, sensor.card or 0, hours, machine.native_id))
            samples.extend([full] * len(hours))
        else:
            maxima.extend([nan] * len(hours))
            samples.extend([0] * len(hours))
    return maxima, samples
