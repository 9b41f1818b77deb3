"""Machines of the world as DescribeInstances tells them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from typing_extensions import assert_never

from cloudstand.alibaba.compute.catalogue import facts_of, family_of
from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.parameters import Asked
from cloudstand.alibaba.core.shapes import some, tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import NEVER, minute
from cloudstand.alibaba.network.cards import interfaces_of
from cloudstand.alibaba.network.pages import id_of, networks_of
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec, made_up_address
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.network.parts import NetworkInterface
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Machine

Cards = Mapping[Ref, Sequence[NetworkInterface]]
"""Interfaces by the machine that they are of."""

_GIB = 1024  # MiB
_PREPAID_UNTIL = "2027-03-02T16:00Z"  # where the fleet says only that it has not expired


def describe_instances(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The machines of one region that fit every filter, in pages."""
    asked = call.asked
    found = _filtered(machines_of(call, world), asked)
    by_token, also = asked.given("MaxResults") or asked.given("NextToken"), asked.many("AdditionalAttributes")
    page = Pages("DescribeInstances", asked, most=100, usual=10, least=10).of(found, by_token=by_token)
    cards = cards_of(call, world)
    return {
        "Instances": {"Instance": [described(world, machine, cards, also) for machine in page.items]},
        "NextToken": page.token,
        "PageNumber": page.number,
        "PageSize": 0 if by_token else page.size,
        "TotalCount": 0 if by_token else len(found),  # by token it means nothing
    }


def no_instances(_: ApiCall, __: World) -> Mapping[str, Any]:
    """What who may not ask was answered until 20 December 2025, word for word."""
    return {"Instances": {"Instance": []}, "NextToken": "", "PageNumber": 1, "PageSize": 10, "TotalCount": 0}


def describe_instance_status(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Id and status only, by page number."""
    wanted, zone = call.asked.many("InstanceId"), call.asked.text("ZoneId")
    found = [
        machine
        for machine in machines_of(call, world)
        if (not call.asked.given("InstanceId") or machine.native_id in wanted) and zone in ("", machine.spec.zone)
    ]
    page = Pages("DescribeInstanceStatus", call.asked, most=50, usual=10).of(found, by_token=False)
    statuses = [{"InstanceId": machine.native_id, "Status": status_of(machine)} for machine in page.items]
    return {
        "InstanceStatuses": wrapped("InstanceStatus", statuses),
        "PageNumber": page.number,
        "PageSize": page.size,
        "TotalCount": len(found),
    }


def describe_instance_attribute(call: ApiCall, world: World) -> Mapping[str, Any]:
    """One machine, with fewer facts than DescribeInstances tells: neither tags nor protection."""
    machine = machine_named(call, world, call.asked.text("InstanceId"))
    everything = described(world, machine, cards_of(call, world))
    host = {name: of for name, of in everything["DedicatedHostAttribute"].items() if name != "DedicatedHostClusterId"}
    told = {name: everything[name] for name in _ATTRIBUTES if name in everything}
    return {**told, "DedicatedHostAttribute": host}


_ATTRIBUTES = (
    *("ClusterId", "Cpu", "CreationTime", "DedicatedHostAttribute", "Description"),
    *("EipAddress", "ExpiredTime", "HostName", "ImageId", "InnerIpAddress", "InstanceChargeType", "InstanceId"),
    *("InstanceName", "InstanceNetworkType", "InstanceType", "InternetChargeType", "InternetMaxBandwidthIn"),
    *("InternetMaxBandwidthOut", "Memory", "OperationLocks", "PublicIpAddress", "RegionId", "SecurityGroupIds"),
    *("SerialNumber", "Status", "StoppedMode", "VpcAttributes", "ZoneId"),
)


def machines_of(call: ApiCall, world: World) -> list[Machine]:
    """Every machine of the caller's account in the region of the call that the cloud lists."""
    return [*world.machines_in(Place(call.site.cloud, call.account, call.region))]


def machine_named(call: ApiCall, world: World, native_id: str) -> Machine:
    """One machine of the caller's account in the region of the call.

    Raises:
        ApiError: there is none of this id.
    """
    machine = world.machines.get(native_id)
    shard = Place(call.site.cloud, call.account, call.region)
    if machine is None or machine.shard != shard or not world.is_listed(machine):
        raise ApiError("InvalidInstanceId.NotFound", "The specified InstanceId does not exist.", NOT_FOUND)
    return machine


def status_of(machine: Machine) -> str:
    """The state in the vendor's words; what is being released is shown as stopping, or as stopped if it was."""
    state = machine.state
    if state is InstanceState.PENDING:
        return "Starting" if len(machine.runs) > 1 else "Pending"
    if state is InstanceState.RUNNING:
        return "Running"
    if state is InstanceState.STOPPING:
        return "Stopping"
    if state is InstanceState.STOPPED:
        return "Stopped"
    if state in (InstanceState.TERMINATING, InstanceState.TERMINATED, InstanceState.UNKNOWN):
        return "Stopping" if machine.stop_requested_at is None else "Stopped"
    assert_never(state)


def stopped_mode_of(machine: Machine) -> str:
    """What a stop did to the bill; nothing is said of what runs, nor where economical mode does not exist."""
    if machine.state is not InstanceState.STOPPED or not economical(machine.spec):
        return "Not-applicable"
    return "KeepCharging" if machine.billed_while_stopped else "StopCharging"


def economical(spec: MachineSpec) -> bool:
    """Whether economical mode exists for this machine: never for prepaid ones, local disks, and some families."""
    local = spec.local_disk_gib is not None and spec.local_disk_gib > 0
    return spec.billing is not Billing.PREPAID and not local


def described(world: World, machine: Machine, cards: Cards, also: Collection[str] = ()) -> dict[str, Any]:
    """One machine, field by field as DescribeInstances tells it; `also` is what was asked for besides."""
    spec, facts = machine.spec, facts_of(machine.spec)
    prepaid = spec.billing is Billing.PREPAID
    spot = spec.billing is Billing.SPOT
    until = spec.prepaid_until
    told = {
        "InstanceId": spec.native_id,
        "InstanceName": spec.name or spec.native_id,
        "HostName": spec.name or spec.native_id,
        "Description": "",
        "RegionId": spec.region,
        "ZoneId": spec.zone,
        "ClusterId": "",
        "Status": status_of(machine),
        "StoppedMode": stopped_mode_of(machine),
        "InstanceType": spec.instance_type,
        "InstanceTypeFamily": facts.family,
        "Cpu": facts.cores,
        "Memory": int(facts.memory_gib * _GIB),
        "GPUAmount": facts.gpus,
        "GPUSpec": facts.gpu_spec,
        "LocalStorageAmount": facts.local_disks or None,
        "LocalStorageCapacity": facts.local_gib * facts.local_disks or None,
        "InstanceChargeType": charge_type_of(spec),
        "SpotStrategy": "SpotAsPriceGo" if spot else "NoSpot",
        "SpotPriceLimit": 0.0,
        "SpotDuration": 0 if spot else None,
        "SpotInterruptionBehavior": "Terminate" if spot else None,
        "CreationTime": minute(spec.launched_at),
        "StartTime": machine.run_epoch,
        "ExpiredTime": (minute(until) if until else _PREPAID_UNTIL) if prepaid else NEVER,
        "AutoReleaseTime": "",
        "SaleCycle": "month" if prepaid else "",
        "DeletionProtection": "termination_protection" in machine.protections,
        "Recyclable": False,
        "DeviceAvailable": True,
        "IoOptimized": True,
        "ImageId": "ubuntu_22_04_x64_20G_alibase_20260119.vhd",
        "OSName": "Ubuntu 22.04 64位",
        "OSNameEn": "Ubuntu  22.04 64 bit",
        "OSType": "linux",
        "SerialNumber": spec.native_id[2:],
        "KeyPairName": "",
        "DeploymentSetId": "",
        "HpcClusterId": "",
        "VlanId": "",
        "ResourceGroupId": spec.resource_group,
        "InstanceNetworkType": "vpc",
        "InternetChargeType": "PayByTraffic",
        "InternetMaxBandwidthIn": 100,
        "InternetMaxBandwidthOut": 5 if machine.public_ip else 0,
        **_addresses(world, machine),
        **_network(machine, cards.get(machine.ref, ())),
        "RdmaIpAddress": "",
        **some("OperationLocks", "LockReason", [], spec.native_id),
        **tags(machine.tags, spec.native_id),
        "DedicatedHostAttribute": {"DedicatedHostId": "", "DedicatedHostName": "", "DedicatedHostClusterId": ""},
        "DedicatedInstanceAttribute": {"Affinity": "", "Tenancy": ""},
        "EcsCapacityReservationAttr": {"CapacityReservationId": "", "CapacityReservationPreference": ""},
        "MetadataOptions": _metadata(world, machine) if "META_OPTIONS" in also else _UNTOLD,
        "CpuOptions": {"CoreCount": max(1, facts.cores // 2), "ThreadsPerCore": 2, "Numa": ""},
        "HibernationOptions": {"Configured": False},
    }
    return {name: value for name, value in told.items() if value is not None}


def address_of(machine: Machine, allocation_id: str) -> str:
    """The public address behind a kept one of a machine."""
    return machine.public_ip or made_up_address(allocation_id)


def public_ips(world: World, machine: Machine, cards: Sequence[NetworkInterface]) -> Iterable[str]:
    """Every public address of a machine once: its own, and those of all its interfaces."""
    kept = [address_of(machine, each.native_id) for each in [*world.addresses_of(machine.native_id)][:1]]
    own = kept or ([machine.public_ip] if machine.public_ip else [])
    return dict.fromkeys((*own, *(public for card in cards for _, public in card.public_ips)))


def _addresses(world: World, machine: Machine) -> dict[str, Any]:
    kept = [*world.addresses_of(machine.native_id)]
    plain = [] if kept or not machine.public_ip else [machine.public_ip]
    eip: dict[str, Any] = {"IpAddress": "", "AllocationId": "", "InternetChargeType": ""}
    if kept:
        eip = {
            "IpAddress": address_of(machine, kept[0].native_id),
            "AllocationId": kept[0].native_id,
            "InternetChargeType": "PayByTraffic",
            "Bandwidth": 5,
            "IsSupportUnassociate": True,
        }
    return {
        **some("PublicIpAddress", "IpAddress", plain, machine.native_id),
        **some("InnerIpAddress", "IpAddress", [], machine.native_id[::2]),
        "EipAddress": eip,
    }


def _private(native_id: str) -> str:
    last, third = (sum(native_id.encode()) % 250 + 2, sum(native_id[3:9].encode()) % 250)
    return f"172.16.{third}.{last}"


def cards_of(call: ApiCall, world: World) -> Cards:
    """The network interfaces of each machine, where networks are written down."""
    found: dict[Ref, list[NetworkInterface]] = {}
    for card in networks_of(call, world).interfaces:
        if card.instance is not None:
            found.setdefault(card.instance, []).append(card)
    return found


def _network(machine: Machine, cards: Sequence[NetworkInterface]) -> dict[str, Any]:
    """Where it stands: as its interfaces say, or made up where no networks are written down."""
    first = next((card for card in cards if card.primary is not False), None)
    made_up, native_id = machine.spec.region[-4:], machine.native_id
    vpc, vswitch = f"vpc-{made_up}", f"vsw-{machine.spec.zone}"
    groups: tuple[str, ...] = (f"sg-{made_up}",)
    private = _private(native_id)
    if first is not None:
        vpc, vswitch, groups = id_of(first.vpc), id_of(first.subnet), first.groups
        private = first.private_ips[0]
    return {
        "VpcAttributes": {
            "VpcId": vpc,
            "VSwitchId": vswitch,
            "NatIpAddress": "",
            "PrivateIpAddress": wrapped("IpAddress", [private]),
        },
        "SecurityGroupIds": wrapped("SecurityGroupId", groups),
        **some("NetworkInterfaces", "NetworkInterface", interfaces_of(cards), native_id),
    }


_UNTOLD = {"HttpEndpoint": "", "HttpTokens": ""}


def _metadata(world: World, machine: Machine) -> dict[str, str]:
    v1 = world.networks.imds_v1.get(machine.ref)
    return _UNTOLD if v1 is None else {"HttpEndpoint": "enabled", "HttpTokens": "optional" if v1 else "required"}


_EXACT: Mapping[str, Callable[[Machine], str]] = {
    "Status": status_of,
    "InstanceType": lambda machine: machine.spec.instance_type,
    "InstanceTypeFamily": lambda machine: family_of(machine.spec.instance_type),
    "InstanceChargeType": lambda machine: charge_type_of(machine.spec),
    "InstanceNetworkType": lambda _: "vpc",
    "ZoneId": lambda machine: machine.spec.zone,
}


def charge_type_of(spec: MachineSpec) -> str:
    """How it is paid for, in the vendor's words; spot is paid by use as well."""
    return "PrePaid" if spec.billing is Billing.PREPAID else "PostPaid"


def _filtered(machines: list[Machine], asked: Asked) -> list[Machine]:
    """The machines that fit every filter that is there; ten thousand are looked at for each page."""
    ids = asked.ids("InstanceIds")
    if ids is not None:
        wanted = frozenset(ids)
        machines = [machine for machine in machines if machine.native_id in wanted]
    for name, told in _EXACT.items():
        if asked.text(name):
            machines = [machine for machine in machines if told(machine) == asked.text(name)]
    if asked.text("InstanceName"):
        machines = [machine for machine in machines if fnmatchcase(machine.spec.name, asked.text("InstanceName"))]
    if asked.given("Tag"):
        machines = [machine for machine in machines if has_tags(machine.tags, asked)]
    return machines


def has_tags(found: Mapping[str, str], asked: Asked) -> bool:
    """Whether every tag that is asked for is there; one without a value may have any."""
    wanted = ((str(tag.get("Key", "")), tag.get("Value")) for tag in asked.groups("Tag"))
    return all(key in found and value in (None, found[key]) for key, value in wanted)
