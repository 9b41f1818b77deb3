"""A machine that was described in words, as the values that the judge and the planner read. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Instance,
    InstanceState,
    Inventory,
    Launch,
    ManagedBy,
)
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour, reads_back
from costguard.guards.idle.judge import examine

if TYPE_CHECKING:
    from costguard.policy.trial.documents import InstanceDocument, MeasuredDocument

_PER_HOUR = 60
_DELAY = timedelta(minutes=5)
_SOURCE = "described"


def described_instance(said: InstanceDocument, at: datetime, state: InstanceState | None = None) -> Instance:
    """The machine at that moment; `state` stands in for the one described."""
    return Instance(
        ref=ResourceRef(said.cloud, said.account, said.region, "instance", said.id),
        instance_type=said.type,
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "GPU", said.gpus),
        state=said.state if state is None else state,
        billing=said.billing,
        run_epoch="described",
        launched_at=at - said.running_for,
        created_at=at - said.running_for,
        name=said.name,
        tags=dict(said.tags),
        managed_by=None if said.managed_by is None else ManagedBy(said.managed_by, said.managed_by.value),
        cannot_stop="one_time_spot" if said.one_time_spot else "",
        local_disk_gib=None if said.local_disk else 0.0,
        protected_by=("termination_protection",) if said.protected else (),
        resource_group=said.resource_group,
    )


def described_launch(said: InstanceDocument, at: datetime) -> Launch | None:
    """Who launched it, where that is described."""
    return None if said.launched_by is None else Launch(said.launched_by, at - said.running_for, _SOURCE)


def described_fact(
    said: InstanceDocument,
    measured: MeasuredDocument,
    windows: Iterable[timedelta],
    at: datetime,
    state: InstanceState | None = None,
) -> InstanceFact:
    """The machine examined over each window, as the scan examines what a cloud tells."""
    instance = described_instance(said, at, state)
    windows = tuple(windows)
    hours = reads_back(windows) // HOUR + 2
    histories = tuple(_histories(said, measured, at, hours))
    rate = None if said.hourly is None else HourlyRate(said.hourly, _SOURCE, at.date().isoformat())
    facts = examine(
        Inventory(instance.ref.shard, (instance,)),
        {instance.ref: SignalReading(histories, _DELAY)},
        {instance.ref: rate} if rate is not None else {},
        (),
        windows,
        at,
    )
    return facts.instances[0]


def _histories(said: InstanceDocument, measured: MeasuredDocument, at: datetime, hours: int) -> Iterable[SignalHistory]:
    cards = measured.gpu or ()
    for index in range(said.gpus if len(cards) == 1 else len(cards)):
        yield _history(SignalName.GPU, str(index), cards[index % len(cards)], measured.coverage, at, hours)
    whole = ((SignalName.CPU, measured.cpu), (SignalName.NETWORK, measured.network))
    for name, value in whole:
        if value is not None:
            yield _history(name, "", value, measured.coverage, at, hours)
    for index in range(said.gpus if measured.power is not None else 0):
        yield _history(SignalName.POWER, str(index), measured.power or 0.0, measured.coverage, at, hours)


def _history(name: SignalName, device: str, value: float, coverage: float, at: datetime, hours: int) -> SignalHistory:
    """That value at every minute; the first hour is complete, so that gaps are known for what they are."""
    minutes = int((at - floor_hour(at)) / HOUR * _PER_HOUR)
    samples = [_PER_HOUR, *(round(_PER_HOUR * coverage) for _ in range(hours - 1)), minutes]
    start = floor_hour(at) - hours * HOUR
    maxima = [value if count else float("nan") for count in samples]
    return SignalHistory(name, device, start, array("d", maxima), array("I", samples), _SOURCE)
