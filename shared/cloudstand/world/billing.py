"""What a world's owners are charged, and how much of it their bill shows yet.

Machines are charged for the time they run, at their list price and to the second, their disks as long as they exist;
everything else is put there with `World.charge`. Wires give these charges their vendor's shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing
from cloudstand.world.money import HOURS_PER_MONTH, ChargeCategory, Money, PricingCategory, hours
from cloudstand.world.places import provider_of
from cloudstand.world.prices import DISK_GIB_MONTH, PREPAID_SHARE, PREPAID_TERM, SPOT_SHARE, currency_of
from cloudstand.world.records import Machine, OtherCharge, WorldVolume
from cloudstand.world.vendors import billed_when_stopped, vendor_of

DAY = timedelta(days=1)
CHINA = timedelta(hours=8)  # bills of Alibaba Cloud and Tencent Cloud count days in UTC+8
_NO_TIME = timedelta(0)
_ORIGIN = datetime(2024, 1, 1, tzinfo=timezone.utc)  # bills are renewed at fixed times, counted from some moment


_Run = tuple[datetime, "datetime | None"]  # without an end it goes on


@dataclass(frozen=True, slots=True)
class Charge:
    """What one thing cost from `start` to `end`; `service` is ours: `compute`, `volume`, or as `World.charge` says.

    `hours` is how long a machine ran in that time, 0 for everything else. `listed` is the cost at list price, before a
    contract's discount, where that differs from `billed`.
    """

    account: str
    region: str
    service: str
    category: ChargeCategory
    start: datetime
    end: datetime
    billed: Money
    effective: Money
    hours: Decimal = Decimal(0)
    machine: Machine | None = None
    native_id: str = ""
    instance_type: str = ""
    pricing: PricingCategory = PricingCategory.STANDARD
    tags: Mapping[str, str] | None = None
    listed: Money | None = None

    @property
    def list_cost(self) -> Money:
        """What it would have cost without a contract."""
        return self.billed if self.listed is None else self.listed


def billed_until(cloud: str, now: datetime) -> datetime:
    """Up to when the charges are in the bill that can be read at `now`: hours to a day behind, as documented."""
    vendor = vendor_of(cloud)
    renewed = _ORIGIN + (now - _ORIGIN) // vendor.bill_every * vendor.bill_every
    return renewed - vendor.bill_delay


def final_until(cloud: str, now: datetime) -> datetime:
    """The begin of the first month, by the bill's calendar, that charges may still be added to; told a day late."""
    offset = day_offset(cloud)
    local = now + offset - vendor_of(cloud).bill_final - DAY
    closed = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return closed - offset


def day_offset(cloud: str) -> timedelta:
    """How far this cloud's billing days begin before those of UTC."""
    return timedelta(0) if provider_of(cloud) == "aws" else CHINA


def zone_of(cloud: str) -> str:
    """Whose days this cloud's bill counts in."""
    return "Asia/Shanghai" if day_offset(cloud) else "UTC"


def bill(world: World, cloud: str, since: datetime, until: datetime, step: timedelta = DAY) -> Iterator[Charge]:
    """Every charge the bill shows now for the time from `since` to `until`, in the cloud's own days or in hours."""
    yield from charges(world, cloud, since, min(until, billed_until(cloud, world.now)), step)


def charges(world: World, cloud: str, since: datetime, until: datetime, step: timedelta = DAY) -> Iterator[Charge]:
    """Every charge that really arose from `since` to `until`, whether the bill shows it yet or not."""
    until = min(until, world.now)
    if until <= since:
        return
    buckets = tuple(_buckets(since, until, step, day_offset(cloud)))
    for machine in world.machines.values():
        if machine.spec.cloud == cloud:
            of_machine, disks = _Machine(machine), world.volumes_ever_of(machine.native_id)
            for start, end in buckets:
                yield from of_machine.charges(start, end)
                yield from _of_disks(machine, disks, start, end)
    for other in world.other_charges:
        if other.cloud == cloud and since <= other.start and other.end <= until:
            yield _other(other)


def _buckets(
    since: datetime, until: datetime, step: timedelta, offset: timedelta
) -> Iterator[tuple[datetime, datetime]]:
    start = since
    while start < until:
        whole = _ORIGIN - offset + ((start - _ORIGIN + offset) // step + 1) * step
        end = min(whole, until)
        yield start, end
        start = end


class _Machine:
    """What one machine is charged in one stretch of time after the other; most are whole days, at one cost."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._paid = tuple(_paid_runs(machine))
        self._known: dict[timedelta, _Costs] = {}

    def charges(self, start: datetime, end: datetime) -> Iterator[Charge]:
        """Its charges from `start` to `end`."""
        machine, hourly = self._machine, self._machine.spec.hourly
        ran = sum((_overlap(run, start, end) for run in self._paid), _NO_TIME)
        if hourly is None or not ran:
            return
        costs = self._known.get(ran)
        if costs is None:
            costs = self._known[ran] = _costs(hourly, machine.spec, hours(ran))
        used = _charge(machine, "compute", start, end, costs.billed, costs.effective, costs.hours, costs.pricing)
        yield used if costs.listed is None else replace(used, listed=costs.listed)
        begun = _term_begun(machine, start, end)
        if begun is not None:
            term = hourly.times(PREPAID_SHARE * hours(begun))
            nothing = term.times(0)
            paid = _charge(machine, "compute", start, end, term, nothing, Decimal(0), PricingCategory.COMMITTED)
            yield _as_purchase(paid)


class _Costs(NamedTuple):
    hours: Decimal
    billed: Money
    effective: Money
    pricing: PricingCategory = PricingCategory.STANDARD
    listed: Money | None = None


def _costs(hourly: Money, spec: MachineSpec, length: Decimal) -> _Costs:
    list_cost, billing = hourly.times(length), spec.billing
    if billing is Billing.SPOT:
        spot = list_cost.times(SPOT_SHARE)
        return _Costs(length, spot, spot, PricingCategory.DYNAMIC)
    if billing in {Billing.PREPAID, Billing.RESERVED}:
        return _Costs(length, list_cost.times(0), list_cost.times(PREPAID_SHARE), PricingCategory.COMMITTED)
    if spec.discount:
        net = list_cost.times(1 - spec.discount)
        return _Costs(length, net, net, listed=list_cost)
    return _Costs(length, list_cost, list_cost)


def _paid_runs(machine: Machine) -> Iterator[_Run]:
    """The times a machine is paid for; where a stop ends no bill, all of its life is one."""
    if billed_when_stopped(machine.spec):
        yield machine.runs[0][0], machine.terminated_at
    else:
        yield from machine.runs


def _term_begun(machine: Machine, start: datetime, end: datetime) -> timedelta | None:
    """How long the term is that was paid for in this time; the first begins with the machine, and is what is left."""
    until, launched = machine.spec.prepaid_until, machine.runs[0][0]
    if until is None:
        return None
    if start <= launched < end:
        return (until - launched) % PREPAID_TERM or PREPAID_TERM
    begins = until - (until - start) // PREPAID_TERM * PREPAID_TERM
    return PREPAID_TERM if start <= begins < end and launched < begins < until else None


def _of_disks(machine: Machine, disks: Sequence[WorldVolume], start: datetime, end: datetime) -> Iterator[Charge]:
    for volume in disks:
        existed = _overlap((volume.created_at or machine.runs[0][0], volume.deleted_at), start, end)
        if not existed:
            continue
        cost = _disk_cost(volume.disk.size_gib, existed, _currency(machine))
        yield Charge(
            account=machine.spec.account,
            region=machine.spec.region,
            service="volume",
            category=ChargeCategory.USAGE,
            start=start,
            end=end,
            billed=cost,
            effective=cost,
            native_id=volume.native_id,
            tags={**volume.tags},
        )


@lru_cache(maxsize=1024)  # disks come in few sizes, and most stretches of time are whole days
def _disk_cost(size_gib: int, existed: timedelta, currency: str) -> Money:
    return Money(size_gib * DISK_GIB_MONTH / HOURS_PER_MONTH * hours(existed), currency)


def _charge(
    machine: Machine,
    service: str,
    start: datetime,
    end: datetime,
    billed: Money,
    effective: Money,
    length: Decimal,
    pricing: PricingCategory,
) -> Charge:
    return Charge(
        account=machine.spec.account,
        region=machine.spec.region,
        service=service,
        category=ChargeCategory.USAGE,
        start=start,
        end=end,
        billed=billed,
        effective=effective,
        hours=length,
        machine=machine,
        native_id=machine.native_id,
        instance_type=machine.spec.instance_type,
        pricing=pricing,
        tags={**machine.tags},
    )


def _as_purchase(charge: Charge) -> Charge:
    return Charge(
        account=charge.account,
        region=charge.region,
        service=charge.service,
        category=ChargeCategory.PURCHASE,
        start=charge.start,
        end=charge.end,
        billed=charge.billed,
        effective=charge.effective,
        machine=charge.machine,
        native_id=charge.native_id,
        instance_type=charge.instance_type,
        pricing=charge.pricing,
        tags=charge.tags,
    )


def _other(other: OtherCharge) -> Charge:
    return Charge(
        account=other.account,
        region=other.region,
        service=other.service,
        category=other.category,
        start=other.start,
        end=other.end,
        billed=other.money,
        effective=other.money,
        native_id=other.native_id,
        tags=dict(other.tags),
    )


def _currency(machine: Machine) -> str:
    hourly = machine.spec.hourly
    return hourly.currency if hourly is not None else currency_of(machine.spec.cloud)


def _overlap(run: _Run, start: datetime, end: datetime) -> timedelta:
    begun, ended = run
    if begun <= start and (ended is None or end <= ended):
        return end - start
    return max(_NO_TIME, min(end, ended or end) - max(start, begun))
