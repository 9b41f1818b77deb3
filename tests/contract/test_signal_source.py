"""What every `SignalSource` promises, run on each adapter: add a rig to `RIGS` for another."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar

import boto3
import pytest
from tests.builders import rule
from tests.contract.alibaba_world import AlibabaRig
from tests.contract.aws_stand_in import StandIn, aws_stand_in, credentials_of, new_account, patient_pacer
from tests.contract.tencent_rig import TencentRig

from costguard.domain.findings import Verdict
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    GapKind,
    Instance,
    InstanceState,
    Inventory,
)
from costguard.domain.signals import SignalHistory, SignalName, Statistic
from costguard.guards.idle.judge import bound_for, examine, judge_instance
from costguard.guards.rules.idle import IdleBounds
from costguard.ports import SignalReport, SignalSource
from costguard.providers.aws.compute.metrics import AwsSignals
from costguard.providers.aws.core.session import AwsSession

START = datetime(2026, 3, 2, 0, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
Hours = Mapping[int, tuple[float, int]]
"""Hour → (largest sample, number of samples)."""

GPU, CPU, NETWORK, POWER = SignalName.GPU, SignalName.CPU, SignalName.NETWORK, SignalName.POWER


class Rig(ABC):
    """One backend with an adapter on it. Each test gets instances nobody else measures.

    `statistic` is what the backend tells of cards: each of them for itself, or a mean over those of a machine.
    """

    statistic: ClassVar[Statistic] = Statistic.DEVICE

    def device(self, card: str) -> str:
        """The name of the history that the samples of `card` come in."""
        return card

    @abstractmethod
    def instance(self) -> Instance:
        """An instance with two NVIDIA cards, "0" and "1", and no samples yet."""

    @abstractmethod
    def measured(self, instance: Instance, signal: SignalName, device: str, hours: Hours) -> None:
        """The backend has these samples; network is in bytes a second."""

    @abstractmethod
    def source(self, *signals: SignalName) -> SignalSource:
        """The adapter, asked for `signals`."""

    @abstractmethod
    def refuse(self) -> None:
        """From here on the backend denies every read."""


class AwsRig(Rig):
    """CloudWatch as moto plays it."""

    def __init__(self, stand_in: StandIn, account: str, credentials: Mapping[str, str]) -> None:
        self._stand_in = stand_in
        self._account = account
        self._cloudwatch: Any = boto3.client(
            "cloudwatch",
            endpoint_url=stand_in.url,
            region_name="us-east-1",
            aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=credentials["AWS_SESSION_TOKEN"],
        )
        self._session = AwsSession(endpoint_url=stand_in.url, pacer=patient_pacer())
        self._made = 0

    def instance(self) -> Instance:
        self._made += 1
        return an_instance(self._account, f"i-{self._made:017x}")

    def measured(self, instance: Instance, signal: SignalName, device: str, hours: Hours) -> None:
        machine = [{"Name": "InstanceId", "Value": instance.ref.native_id}]
        tags = {"name": "NVIDIA T4", "index": device, "arch": "Turing"}
        card = [*machine, *({"Name": name, "Value": value} for name, value in tags.items())]
        if signal is GPU:
            self._put("CWAgent", "nvidia_smi_utilization_gpu", card, hours)
        elif signal is POWER:
            self._put("CWAgent", "nvidia_smi_power_draw", card, hours)
        elif signal is CPU:
            self._put("AWS/EC2", "CPUUtilization", machine, hours)
        else:
            halves = {hour: (value * 60 / 2, count) for hour, (value, count) in hours.items()}
            self._put("AWS/EC2", "NetworkIn", machine, halves)
            self._put("AWS/EC2", "NetworkOut", machine, halves)

    def source(self, *signals: SignalName) -> SignalSource:
        return AwsSignals(self._session, frozenset(signals))

    def refuse(self) -> None:
        for action in ("ListMetrics", "GetMetricData"):
            self._stand_in.fail(action, 400, "AccessDeniedException")

    def close(self) -> None:
        self._stand_in.reset()
        self._session.close()
        self._cloudwatch.close()

    def _put(self, namespace: str, name: str, dimensions: list[dict[str, str]], hours: Hours) -> None:
        self._cloudwatch.put_metric_data(
            Namespace=namespace,
            MetricData=[
                {
                    "MetricName": name,
                    "Dimensions": dimensions,
                    "Timestamp": START + hour * HOUR,
                    "StatisticValues": {
                        "SampleCount": count,
                        "Maximum": value,
                        "Minimum": min(value, 0),
                        "Sum": value * count,
                    },
                }
                for hour, (value, count) in hours.items()
            ],
        )


@contextmanager
def aws_rig(stand_in: StandIn, environment: pytest.MonkeyPatch) -> Iterator[Rig]:
    account = new_account()
    credentials = credentials_of(stand_in.url, account)
    for name, value in credentials.items():
        environment.setenv(name, value)
    rig = AwsRig(stand_in, account, credentials)
    try:
        yield rig
    finally:
        rig.close()


class OnCloudMonitor(AlibabaRig, Rig):
    """Alibaba's CloudMonitor."""


class OnMonitor(TencentRig, Rig):
    """Tencent's Monitor."""


@contextmanager
def alibaba_rig(_: StandIn, __: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield OnCloudMonitor(START)


@contextmanager
def tencent_rig(_: StandIn, __: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield OnMonitor(START)


@dataclass(frozen=True)
class Backend:
    """A rig and how to set one up."""

    rig: type[Rig]
    build: Callable[[StandIn, pytest.MonkeyPatch], AbstractContextManager[Rig]]


RIGS: Mapping[str, Backend] = {
    "aws": Backend(AwsRig, aws_rig),
    "alibaba": Backend(OnCloudMonitor, alibaba_rig),
    "tencent": Backend(OnMonitor, tencent_rig),
}


def telling(statistic: Statistic) -> list[str]:
    """The backends that tell this of their cards."""
    return sorted(name for name, backend in RIGS.items() if backend.rig.statistic is statistic)


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as found:
        yield found


@pytest.fixture(params=sorted(RIGS))
def rig(request: pytest.FixtureRequest, stand_in: StandIn) -> Iterator[Rig]:
    with pytest.MonkeyPatch.context() as environment, RIGS[request.param].build(stand_in, environment) as built:
        yield built


of_each_card = pytest.mark.parametrize("rig", telling(Statistic.DEVICE), indirect=True)
of_a_mean = pytest.mark.parametrize("rig", telling(Statistic.MEAN_OF_CARDS), indirect=True)


def an_instance(account: str, native_id: str) -> Instance:
    return Instance(
        ref=ResourceRef("aws", account, "us-east-1", "instance", native_id),
        instance_type="g4dn.12xlarge",
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 2),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="1",
        launched_at=START,
    )


def read(source: SignalSource, *instances: Instance, hours: float = 4) -> SignalReport:
    return source.read(instances, START, START + hours * HOUR)


def history(report: SignalReport, instance: Instance, name: SignalName, device: str = "") -> SignalHistory:
    (found,) = [one for one in report.readings[instance.ref].histories if (one.name, one.device) == (name, device)]
    return found


@of_each_card
def test_every_device_has_its_own_hourly_maxima_and_counts(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (0.0, 60), 1: (3.0, 60), 2: (0.0, 60), 3: (1.0, 60)})
    rig.measured(machine, GPU, "1", {0: (0.0, 60), 1: (98.0, 60), 2: (0.0, 60), 3: (0.0, 60)})
    report = read(rig.source(GPU), machine)
    assert list(history(report, machine, GPU, "0").maxima) == [0.0, 3.0, 0.0, 1.0]
    assert list(history(report, machine, GPU, "1").maxima) == [0.0, 98.0, 0.0, 0.0]
    assert list(history(report, machine, GPU, "1").samples) == [60] * 4
    assert report.gaps == ()


@of_a_mean
def test_a_mean_over_cards_is_one_history_of_the_largest_minute(rig: Rig) -> None:
    """What a busy card does is thinned by the others, but never over the minutes of an hour as well."""
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (0.0, 60), 1: (3.0, 60), 2: (0.0, 60), 3: (1.0, 60)})
    rig.measured(machine, GPU, "1", {0: (0.0, 60), 1: (98.0, 60), 2: (0.0, 60), 3: (0.0, 60)})
    report = read(rig.source(GPU), machine)
    (found,) = report.readings[machine.ref].histories
    assert (found.device, list(found.maxima)) == ("", [0.0, 50.5, 0.0, 0.5])
    assert list(found.samples) == [60] * 4
    assert report.gaps == ()


@pytest.mark.parametrize(("busiest", "idle"), [(2.0, True), (5.0, False), (8.0, False)])
def test_one_busy_card_breaks_the_bound_of_every_card_whatever_the_statistic(
    rig: Rig, busiest: float, *, idle: bool
) -> None:
    """A mean tells what it is, so the bound is divided by the cards it is over: none hides behind its neighbour."""
    machine = rig.instance()
    rig.measured(machine, GPU, "0", dict.fromkeys(range(4), (0.0, 60)))
    rig.measured(machine, GPU, "1", {0: (0.0, 60), 1: (busiest, 60), 2: (0.0, 60), 3: (0.0, 60)})
    histories = read(rig.source(GPU), machine).readings[machine.ref].histories
    found = [one.over(START, START + 4 * HOUR) for one in histories]
    assert found
    assert all(one.maximum is not None and one.maximum < bound_for(one, 5.0, machine) for one in found) is idle


def test_every_history_says_what_it_is_a_statistic_of(rig: Rig) -> None:
    machine = rig.instance()
    for signal in (GPU, POWER):
        rig.measured(machine, signal, "0", {0: (2.0, 60)})
    for signal in (CPU, NETWORK):
        rig.measured(machine, signal, "", {0: (2.0, 60)})
    found = read(rig.source(GPU, POWER, CPU, NETWORK), machine).readings[machine.ref].histories
    assert {one.name: one.statistic for one in found} == {
        **dict.fromkeys((GPU, POWER), rig.statistic),
        **dict.fromkeys((CPU, NETWORK), Statistic.DEVICE),
    }


def test_an_hour_without_samples_is_not_a_number_and_counts_none(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (2.0, 60), 3: (2.0, 31)})
    found = history(read(rig.source(GPU), machine), machine, GPU, rig.device("0"))
    assert [math.isnan(value) for value in found.maxima] == [False, True, True, False]
    assert list(found.samples) == [60, 0, 0, 31]


def test_an_instance_nobody_measured_has_an_empty_reading_and_no_gap(rig: Rig) -> None:
    silent, measured = rig.instance(), rig.instance()
    rig.measured(measured, GPU, "0", {0: (2.0, 60)})
    report = read(rig.source(GPU), silent, measured)
    assert report.readings[silent.ref].histories == ()
    assert report.readings[measured.ref].histories
    assert report.gaps == ()


def test_only_instances_asked_for_are_in_the_report(rig: Rig) -> None:
    asked, other = rig.instance(), rig.instance()
    for machine in (asked, other):
        rig.measured(machine, GPU, "0", {0: (2.0, 60)})
    assert set(read(rig.source(GPU), asked).readings) == {asked.ref}
    assert read(rig.source(GPU)).readings == {}


def test_cpu_network_and_power_come_where_asked_for_in_their_units(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (2.0, 60), 1: (2.0, 60)})
    rig.measured(machine, POWER, "0", {0: (55.5, 60), 1: (56.0, 60)})
    rig.measured(machine, CPU, "", {0: (12.5, 60), 1: (11.0, 60)})
    rig.measured(machine, NETWORK, "", {0: (2048.0, 60), 1: (1024.0, 60)})
    report = read(rig.source(GPU, CPU, NETWORK, POWER), machine, hours=2)
    assert list(history(report, machine, POWER, rig.device("0")).maxima) == [55.5, 56.0]
    assert list(history(report, machine, CPU).maxima) == [12.5, 11.0]
    assert list(history(report, machine, NETWORK).maxima) == pytest.approx([2048.0, 1024.0])


def test_a_signal_that_was_not_asked_for_is_not_reported(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (2.0, 60)})
    rig.measured(machine, CPU, "", {0: (2.0, 60)})
    assert {one.name for one in read(rig.source(GPU), machine).readings[machine.ref].histories} == {GPU}


def test_the_window_is_widened_to_whole_hours_with_the_hour_in_progress(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (70.0, 60), 1: (1.0, 60), 2: (9.0, 20), 3: (90.0, 60)})
    report = rig.source(GPU).read([machine], START + 0.5 * HOUR, START + 2 * HOUR + timedelta(minutes=20))
    found = history(report, machine, GPU, rig.device("0"))
    assert (found.start, list(found.maxima)) == (START, [70.0, 1.0, 9.0])


def test_more_than_all_of_a_card_is_kept_as_infinity(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (250.0, 60), 1: (-4.0, 60), 2: (100.0, 60)})
    found = history(read(rig.source(GPU), machine), machine, GPU, rig.device("0"))
    assert list(found.maxima[:3]) == [math.inf, math.inf, 100.0]


def test_a_refused_read_leaves_instances_out_and_is_a_gap(rig: Rig) -> None:
    first, second = rig.instance(), rig.instance()
    rig.measured(first, GPU, "0", {0: (0.0, 60)})
    source = rig.source(GPU)
    rig.refuse()
    report = read(source, first, second)
    assert report.readings == {}
    (gap,) = report.gaps
    assert (gap.shard, gap.what, gap.kind) == (first.ref.shard, "signals", GapKind.DENIED)
    assert gap.fix


def test_reading_twice_says_the_same(rig: Rig) -> None:
    machine = rig.instance()
    rig.measured(machine, GPU, "0", {0: (2.0, 60), 1: (3.0, 60), 2: (4.0, 60), 3: (5.0, 60)})
    source = rig.source(GPU)
    assert read(source, machine) == read(source, machine)


def test_a_reading_says_how_late_its_source_may_be(rig: Rig) -> None:
    machine = rig.instance()
    delay = read(rig.source(GPU), machine).readings[machine.ref].documented_delay
    assert timedelta(0) < delay <= timedelta(minutes=30)


def measured_on_every_card(rig: Rig, hours: Hours) -> Instance:
    machine = rig.instance()
    for card in ("0", "1"):
        rig.measured(machine, GPU, card, hours)
    return machine


def covered(rig: Rig, machine: Instance, hours: int) -> set[float]:
    """How much of the last hour was measured, by what a look over `hours` of them shows."""
    histories = read(rig.source(GPU), machine, hours=hours).readings[machine.ref].histories
    return {round(one.over(START + (hours - 1) * HOUR, START + hours * HOUR).coverage, 2) for one in histories}


def test_a_sender_that_loses_four_samples_of_five_is_known_by_its_fullest_hour(rig: Rig) -> None:
    machine = measured_on_every_card(rig, {0: (0.0, 60), **dict.fromkeys(range(1, 24), (0.0, 12))})
    assert covered(rig, machine, hours=24) == {0.2}


@pytest.mark.parametrize(("rig", "found"), [("alibaba", 0.2), ("tencent", 0.2), ("aws", 1.0)], indirect=["rig"])
def test_where_the_source_documents_its_cadence_no_hour_need_be_full(rig: Rig, found: float) -> None:
    """The CloudWatch agent sends as often as its owner set it to, every five minutes for instance, and nobody says."""
    machine = measured_on_every_card(rig, dict.fromkeys(range(24), (0.0, 12)))
    assert covered(rig, machine, hours=24) == {found}


def unseen_minutes(rig: Rig, per_hour: int) -> int | None:
    """How many minutes before a look a job may have begun at the most, for the machine to be called idle all the same.

    It began just after a sample was taken, and whatever was measured since then has not been published.
    """
    into_the_hour = 25
    newest, last = 8 * HOUR + timedelta(minutes=into_the_hour), into_the_hour * per_hour // 60 + 1
    machine = measured_on_every_card(rig, {**dict.fromkeys(range(8), (0.0, per_hour)), 8: (0.0, last)})
    lasting = rule(idle=IdleBounds(lasting=7 * HOUR))

    def idle_at(minutes: int) -> bool:
        now = START + newest + timedelta(minutes=minutes)
        report = rig.source(GPU, CPU, NETWORK).read([machine], now - lasting.idle.lasting, now)
        shard = Inventory(machine.ref.shard, (machine,))
        facts = examine(shard, report.readings, {}, report.gaps, {lasting.idle.lasting}, now)
        return judge_instance(facts.instances[0], lasting, now).verdict is Verdict.VIOLATION

    return max((minutes for minutes in range(1, 31) if idle_at(minutes)), default=None)


@pytest.mark.parametrize(
    ("rig", "per_hour", "minutes"),
    [
        ("aws", 60, 6),
        ("alibaba", 60, 6),
        ("tencent", 60, 6),
        ("aws", 12, 15),
        ("alibaba", 12, None),
        ("tencent", 12, None),
    ],
    indirect=["rig"],
)
def test_how_late_a_job_may_begin_and_not_be_seen(rig: Rig, per_hour: int, minutes: int | None) -> None:
    """By the cards alone, whatever else is read; where every minute is documented, five minutes are no cadence."""
    assert unseen_minutes(rig, per_hour) == minutes
