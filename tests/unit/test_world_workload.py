"""What sensors say is a function of time alone, and the closed form tells the same as the single samples."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.kinds import InstanceState
from cloudstand.world.sensors import PERIOD_SECONDS, Sensor, sensors_of
from cloudstand.world.workload import HOUR_SECONDS, SignalName, Workload

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def sensors(workload: Workload, kind: str = "g4dn.12xlarge", age: timedelta = timedelta(days=3)) -> tuple[Sensor, ...]:
    world = World([aws_machine("box", kind, workload, NOW - age)], NOW)
    return sensors_of(next(iter(world.machines.values())))


def hours(sensor: Sensor, count: int = 24, until: datetime = NOW) -> list[tuple[float | None, int]]:
    end = int(until.timestamp())
    begins = range(end - count * HOUR_SECONDS, end, HOUR_SECONDS)
    return [sensor.peak(begin, begin + HOUR_SECONDS, until) for begin in begins]


@pytest.mark.parametrize(
    "workload",
    [
        does.idle(),
        does.busy(),
        does.cpu_idle_gpu_busy(),
        does.one_spike(NOW - 5 * HOUR + timedelta(minutes=17)),
        does.agent_dies(NOW - 3 * HOUR - timedelta(minutes=20)),
        does.partly_idle(1, 3),
        does.busy_until(NOW - 7 * HOUR + timedelta(minutes=31)),
        does.comes_back(NOW - 2 * HOUR),
    ],
)
def test_the_peak_of_an_hour_is_the_largest_of_its_samples(workload: Workload) -> None:
    for sensor in sensors(workload, age=timedelta(hours=20, minutes=13)):
        for begin in range(int(NOW.timestamp()) - 24 * HOUR_SECONDS, int(NOW.timestamp()), HOUR_SECONDS):
            samples = list(sensor.samples(begin, begin + HOUR_SECONDS, NOW))
            peak = max(samples, default=None)
            assert sensor.peak(begin, begin + HOUR_SECONDS, NOW) == (peak, len(samples))
            assert sensor.count_within(begin, begin + HOUR_SECONDS, sensor.windows(NOW)) == len(samples)


@pytest.mark.parametrize(
    "workload", [does.busy(), does.one_spike(NOW - 5 * HOUR), does.busy_until(NOW - 7 * HOUR + timedelta(minutes=31))]
)
def test_many_samples_together_are_what_each_is_alone(workload: Workload) -> None:
    slots = range(int((NOW - 9 * HOUR).timestamp()), int(NOW.timestamp()), 300)
    together = workload.samples(SignalName.CPU, 0, slots, 300, "i-1")
    assert together == [workload.sample(SignalName.CPU, 0, slot, 300, "i-1") for slot in slots]
    assert workload.samples(SignalName.CPU, 0, slots[::-1], 300, "i-1") == together[::-1]


def test_the_same_question_has_the_same_answer_on_every_run() -> None:
    first, again = sensors(does.busy())[0], sensors(does.busy())[0]
    begin = int((NOW - 5 * HOUR).timestamp())
    values = list(first.samples(begin, begin + HOUR_SECONDS, NOW))
    assert values == list(again.samples(begin, begin + HOUR_SECONDS, NOW))
    assert len(set(values)) > 50, "samples are noisy, not flat"
    assert values[0] == pytest.approx(53.9, abs=20)


def test_devices_report_every_minute_and_the_cloud_every_five() -> None:
    for sensor in sensors(does.busy()):
        expected = HOUR_SECONDS // PERIOD_SECONDS[sensor.signal]
        assert {count for _, count in hours(sensor)} == {expected}


def test_an_idle_machine_stays_below_any_sensible_bound() -> None:
    for sensor in sensors(does.idle()):
        bound = {SignalName.GPU: 0.5, SignalName.CPU: 3, SignalName.NETWORK: 5_000, SignalName.POWER: 40}[sensor.signal]
        assert max(peak for peak, _ in hours(sensor) if peak is not None) < bound


def test_one_spike_is_one_busy_sample_on_every_card() -> None:
    at = NOW - 5 * HOUR + timedelta(minutes=17)
    gpu = [sensor for sensor in sensors(does.one_spike(at)) if sensor.signal is SignalName.GPU]
    assert len(gpu) == 4
    begin = int((NOW - 24 * HOUR).timestamp())
    for sensor in gpu:
        loud = [value for value in sensor.samples(begin, int(NOW.timestamp()), NOW) if value > 50]
        assert loud == [does.BUSY.gpu_percent]


def test_cpu_idle_and_gpu_busy_differ_by_signal() -> None:
    peaks = {sensor.signal: max(peak or 0 for peak, _ in hours(sensor)) for sensor in sensors(does.cpu_idle_gpu_busy())}
    assert peaks[SignalName.GPU] > 70
    assert peaks[SignalName.CPU] < 5


def test_partly_idle_leaves_exactly_those_cards_quiet() -> None:
    quiet = {
        sensor.card
        for sensor in sensors(does.partly_idle(1, 3))
        if sensor.signal is SignalName.GPU and max(peak or 0 for peak, _ in hours(sensor)) < 5
    }
    assert quiet == {1, 3}


def test_without_an_agent_there_is_no_device_metric_but_cpu_and_network() -> None:
    assert {sensor.signal for sensor in sensors(does.no_data())} == {SignalName.CPU, SignalName.NETWORK}


def test_neuron_devices_have_no_device_metric() -> None:
    assert {sensor.signal for sensor in sensors(does.busy(), "trn1.2xlarge")} == {SignalName.CPU, SignalName.NETWORK}


def test_a_dead_agent_falls_silent_while_the_cloud_goes_on() -> None:
    workload = does.agent_dies(NOW - 3 * HOUR)
    for sensor in sensors(workload):
        counts = [count for _, count in hours(sensor, 6)]
        full = HOUR_SECONDS // PERIOD_SECONDS[sensor.signal]
        device = sensor.signal in (SignalName.GPU, SignalName.POWER)
        assert counts == ([full] * 3 + [0] * 3 if device else [full] * 6)


def test_nothing_was_measured_before_the_launch() -> None:
    sensor = sensors(does.too_new(), age=2 * HOUR)[0]
    assert [count for _, count in hours(sensor, 4)] == [0, 0, 60, 60]


def test_nothing_is_measured_while_a_machine_is_stopped() -> None:
    spec = aws_machine("box", "g5.xlarge", does.idle(), NOW - 48 * HOUR)
    world = World([spec], NOW)
    world.stop(spec.native_id, "owner")
    world.tick(NOW + 5 * HOUR)
    world.start(spec.native_id, "owner")
    world.tick(NOW + 8 * HOUR)
    gpu = sensors_of(world.machines[spec.native_id])[0]
    assert [count for _, count in hours(gpu, 10, world.now)] == [60, 60, 0, 0, 0, 0, 0, 60, 60, 60]


def test_a_slot_is_seen_only_once_it_is_over() -> None:
    sensor = sensors(does.idle())[0]
    begin = int(NOW.timestamp())
    assert sensor.peak(begin, begin + HOUR_SECONDS, NOW + timedelta(seconds=59))[1] == 0
    assert sensor.peak(begin, begin + HOUR_SECONDS, NOW + timedelta(seconds=60))[1] == 1


def test_new_work_leaves_the_past_as_it_was() -> None:
    spec = aws_machine("box", "g5.xlarge", does.idle(), NOW - 48 * HOUR)
    world = World([spec], NOW)
    sensor = sensors_of(world.machines[spec.native_id])[0]
    before = hours(sensor, 12)
    world.work(spec.native_id, does.BUSY)
    world.tick(NOW + 2 * HOUR)
    assert hours(sensor, 12) == before
    assert all((peak or 0) > 70 for peak, _ in hours(sensor, 2, world.now))


def test_a_machine_that_begins_stopped_was_measured_until_then() -> None:
    spec = replace(
        aws_machine("box", "g5.xlarge", does.idle(), NOW - 10 * HOUR),
        state=InstanceState.STOPPED,
        stopped_since=NOW - 4 * HOUR,
    )
    world = World([spec], NOW)
    sensor = sensors_of(world.machines[spec.native_id])[0]
    assert [count for _, count in hours(sensor, 6)] == [60, 60, 0, 0, 0, 0]
