"""EC2's describing calls that moto answers wrongly, slowly or not at all."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.availability_zones_and_regions import Region
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.responses import EC2Response

from cloudstand.aws.compute.catalogue import SPOT_SHARE, TYPES, hourly
from cloudstand.aws.core.patching import Patch, Request, Wire, asking
from cloudstand.aws.core.seeding import regions_of, spot_request_of
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.records import Machine


def reading(wire: Wire) -> tuple[Patch, ...]:
    """Patches of what is only read."""
    amazons = "addresses that AWS lends are said to be the account's own"
    return (
        Patch(NetworkInterface, "association", _association(), amazons),
        Patch(
            EC2Response,
            "describe_regions",
            asking(wire, _describe_regions),
            "regions not opted in are returned, filters ignored",
        ),
        Patch(
            EC2Response, "describe_reserved_instances", asking(wire, _describe_reserved_instances), "not implemented"
        ),
        Patch(
            EC2Response,
            "describe_spot_instance_requests",
            asking(wire, _describe_spot_instance_requests),
            "every request dates from 2015, and brings an instance of its own",
        ),
        Patch(
            EC2Response,
            "describe_spot_price_history",
            asking(wire, _describe_spot_price_history),
            "every price is 0.00001",
        ),
    )


def _association() -> property:
    by_moto: property = vars(NetworkInterface)["association"]

    def association(interface: NetworkInterface) -> dict[str, Any]:
        shown: dict[str, Any] = by_moto.__get__(interface)
        return {**shown, "ipOwnerId": "amazon"} if shown and not shown.get("allocationId") else shown

    return property(association)


def _describe_regions(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    opened = [Region(name, f"ec2.{name}.amazonaws.com", "opt-in-not-required") for name in regions_of(wire.world)]
    closed = Region(wire.closed_region, f"ec2.{wire.closed_region}.amazonaws.com", "not-opted-in")
    shown = [*opened, closed] if _is_true(request.parameter("AllRegions")) else opened
    names = request.parameter("RegionNames", [])
    statuses = request.filters().get("opt-in-status")
    kept = [
        region
        for region in shown
        if (not names or region.name in names) and (statuses is None or region.opt_in_status in statuses)
    ]
    return ActionResult({"Regions": kept})


def _describe_reserved_instances(wire: Wire, request: Request) -> ActionResult:
    states = request.filters().get("state")
    prepaid: dict[str, list[Machine]] = {}
    for machine in wire.machines(request):
        if machine.spec.billing is Billing.PREPAID:
            prepaid.setdefault(machine.spec.instance_type, []).append(machine)
    answers = [
        {
            "ReservedInstancesId": f"prepaid-{instance_type}",
            "InstanceType": instance_type,
            "InstanceCount": len(machines),
            "State": "active",
            "Scope": "Region",
            "OfferingType": "All Upfront",
            "OfferingClass": "standard",
            "ProductDescription": "Linux/UNIX",
            "InstanceTenancy": "default",
            "Start": min(machine.spec.launched_at for machine in machines),
        }
        for instance_type, machines in prepaid.items()
    ]
    return ActionResult({"ReservedInstances": answers if states is None or "active" in states else []})


def _describe_spot_instance_requests(wire: Wire, request: Request) -> ActionResult:
    ids = request.parameter("SpotInstanceRequestIds", [])
    filters = request.filters()
    spot = (machine for machine in wire.machines(request) if machine.spec.billing is Billing.SPOT)
    found = []
    for shown in map(_spot_request, spot):
        facts = {
            "instance-id": shown["InstanceId"],
            "spot-instance-request-id": shown["SpotInstanceRequestId"],
            "state": shown["State"],
            "type": shown["Type"],
        }
        asked_for = not ids or shown["SpotInstanceRequestId"] in ids
        if asked_for and all(facts.get(name) in values for name, values in filters.items()):
            found.append(shown)
    return ActionResult({"SpotInstanceRequests": found})


def _describe_spot_price_history(wire: Wire, request: Request) -> ActionResult:
    wanted = request.parameter("InstanceTypes", []) or list(TYPES)
    history = [
        {
            "InstanceType": name,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": str(hourly(name, request.region).amount * SPOT_SHARE),
            "AvailabilityZone": f"{request.region}{zone}",
            "Timestamp": wire.clock.now().replace(minute=0, second=0, microsecond=0),
        }
        for name in wanted
        if name in TYPES
        for zone in "ab"
    ]
    return ActionResult({"SpotPriceHistory": history})


def _spot_request(machine: Machine) -> dict[str, Any]:
    ended = machine.state in (InstanceState.TERMINATING, InstanceState.TERMINATED)
    return {
        "SpotInstanceRequestId": spot_request_of(machine),
        "InstanceId": machine.native_id,
        "State": "closed" if ended else "active",
        "Type": "one-time" if machine.spec.one_time_spot else "persistent",
        "InstanceInterruptionBehavior": "terminate" if machine.spec.one_time_spot else "stop",
        "CreateTime": machine.spec.launched_at,
        "ProductDescription": "Linux/UNIX",
    }


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
