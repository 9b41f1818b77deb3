"""What DescribeInstances does not tell of billing: Spot request types, and Reserved Instances.

Both are billing constructs beside the instance. Savings Plans are not read: they float over a whole
payer and cover no instance in particular.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Gap, Instance, InstanceState
from costguard.providers.aws.compute.instances import ONE_TIME_SPOT
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.fields import as_documented, named, text, whole

_BATCH = 200  # values of one filter
_NOT_ACTIVE = frozenset({"payment-pending", "payment-failed", "retired", "queued", "queued-deleted"})
"""States that some stand-ins return though `active` was asked for; a state nobody knows may cover an instance."""

_RUNS = frozenset({InstanceState.PENDING, InstanceState.RUNNING})
_UNITS = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}
"""Normalisation factors of regional Reserved Instances; `Nxlarge` is N times `xlarge`."""


def with_spot_requests(
    session: AwsSession, shard: Shard, instances: Sequence[Instance], requests: Mapping[str, str]
) -> Sequence[Instance]:
    """`instances` with persistent Spot ones no longer counted as one-time: those can be stopped.

    `requests` maps native ids to Spot request ids; an instance whose request AWS no longer lists stays one-time.

    Raises:
        ProviderError: the requests could not be read.
    """
    if not requests:
        return instances
    persistent = set(_persistent(session, shard, sorted(requests.values())))
    return [_stoppable(instance, requests, persistent) for instance in instances]


def with_reservations(
    session: AwsSession, shard: Shard, instances: Sequence[Instance]
) -> tuple[Sequence[Instance], tuple[Gap, ...]]:
    """`instances`, all of a shard, with those that Reserved Instances pay for marked as reserved.

    When the reservations cannot be read, every on-demand instance may be one: its billing becomes unknown,
    which nobody acts on, and a gap says so. Only a stand-in for AWS that lacks the call means "none".
    """
    if not any(_can_be_covered(instance) for instance in instances):
        return instances, ()
    try:
        with as_documented("ec2:DescribeReservedInstances"):
            covered = covered_by(_active_reservations(session, shard), instances)
    except ProviderError as err:
        if err.code == errors.UNSUPPORTED:
            return instances, ()
        return _marked(instances, Billing.UNKNOWN), (errors.gap(shard, "billing", err),)
    return _marked(instances, Billing.RESERVED, covered), ()


def _marked(instances: Sequence[Instance], billing: Billing, only: frozenset[str] | None = None) -> Sequence[Instance]:
    return [
        replace(instance, billing=billing)
        if _can_be_covered(instance) and (only is None or instance.ref.native_id in only)
        else instance
        for instance in instances
    ]


def _stoppable(instance: Instance, spot_requests: Mapping[str, str], persistent: set[str]) -> Instance:
    if instance.cannot_stop == ONE_TIME_SPOT and spot_requests.get(instance.ref.native_id) in persistent:
        return replace(instance, cannot_stop="")
    return instance


def _persistent(session: AwsSession, shard: Shard, request_ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(request_ids), _BATCH):
        batch = list(request_ids[start : start + _BATCH])
        by_id = [{"Name": "spot-instance-request-id", "Values": batch}]
        pages = session.pages(
            shard, "ec2", "DescribeSpotInstanceRequests", "SpotInstanceRequests", Filters=by_id, MaxResults=1000
        )
        for page in pages:
            with as_documented("ec2:DescribeSpotInstanceRequests"):
                found = [named(item, "SpotInstanceRequestId") for item in page if text(item, "Type") == "persistent"]
            yield from found


def _active_reservations(session: AwsSession, shard: Shard) -> list[dict[str, Any]]:
    active = [{"Name": "state", "Values": ["active"]}]
    found: list[dict[str, Any]] = []
    for page in session.pages(shard, "ec2", "DescribeReservedInstances", "ReservedInstances", Filters=active):
        found.extend(item for item in page if named(item, "State") not in _NOT_ACTIVE)
    return found


def _can_be_covered(instance: Instance) -> bool:
    return instance.billing is Billing.ON_DEMAND


def covered_by(reservations: Iterable[Mapping[str, Any]], instances: Sequence[Instance]) -> frozenset[str]:
    """Native ids of the running on-demand instances that `reservations` pay for.

    N reservations cover N matching instances; AWS does not say which, and stopping the others is what
    saves, so the longest running count as covered: the choice stays the same from run to run. Zonal
    reservations match type, platform and zone; what regional ones have left after their own type spreads
    over the family by size, and an instance covered in part counts as covered.
    """
    free = sorted(
        (instance for instance in instances if _can_be_covered(instance) and instance.state in _RUNS),
        key=lambda instance: (instance.run_epoch, instance.ref.native_id),
    )
    covered: set[str] = set()
    spare: list[tuple[_Reservation, float]] = []
    # zonal ones fit fewer instances: they choose first
    for reservation in sorted(map(_reservation, reservations), key=lambda one: one.regional):
        left = reservation.count
        for instance in free:
            if left > 0 and instance.ref.native_id not in covered and _matches(reservation, instance):
                covered.add(instance.ref.native_id)
                left -= 1
        if left > 0 and reservation.regional:
            spare.append((reservation, left * _units(reservation.instance_type)))
    for reservation, units in spare:
        units_left = units
        for instance in free:
            if units_left > 0 and instance.ref.native_id not in covered and _same_family(reservation, instance):
                covered.add(instance.ref.native_id)
                units_left -= _units(instance.instance_type)
    return frozenset(covered)


@dataclass(frozen=True, slots=True)
class _Reservation:
    """One Reserved Instances purchase, as far as it says whom it covers."""

    instance_type: str
    count: int
    regional: bool
    zone: str
    windows: bool
    tenancy: str


def _reservation(item: Mapping[str, Any]) -> _Reservation:
    """All of it at once, so that no damaged field stays unseen behind another."""
    return _Reservation(
        instance_type=named(item, "InstanceType"),
        count=whole(item, "InstanceCount"),
        regional=text(item, "Scope") == "Region",
        zone=text(item, "AvailabilityZone"),
        windows="windows" in text(item, "ProductDescription").lower(),
        tenancy=text(item, "InstanceTenancy") or "default",
    )


def _matches(reservation: _Reservation, instance: Instance) -> bool:
    return (
        reservation.instance_type == instance.instance_type
        and _same_terms(reservation, instance)
        and (not reservation.zone or reservation.regional or reservation.zone == instance.zone)
    )


def _same_family(reservation: _Reservation, instance: Instance) -> bool:
    family = reservation.instance_type.split(".", 1)[0]
    return instance.instance_type.split(".", 1)[0] == family and _same_terms(reservation, instance)


def _same_terms(reservation: _Reservation, instance: Instance) -> bool:
    return reservation.tenancy == instance.tenancy and reservation.windows == (instance.operating_system == "windows")


def _units(instance_type: str) -> float:
    size = instance_type.rpartition(".")[2]
    if size in _UNITS:
        return _UNITS[size]
    times = size.removesuffix("xlarge")
    return int(times) * _UNITS["xlarge"] if times.isdecimal() else _UNITS["xlarge"]
