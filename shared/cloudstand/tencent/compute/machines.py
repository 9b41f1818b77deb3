"""A machine of the world as DescribeInstances shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from math import ceil
from typing import Any

from cloudstand.tencent.compute.catalogue import TYPES, InstanceType
from cloudstand.tencent.core.memory import Memory
from cloudstand.tencent.core.times import zulu
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec, made_up_address, made_up_request_id
from cloudstand.world.kinds import AcceleratorKind, Billing, InstanceState
from cloudstand.world.records import ENDED, Machine, WorldVolume

CHARGE_TYPES: Mapping[Billing, str] = {
    Billing.ON_DEMAND: "POSTPAID_BY_HOUR",
    Billing.SPOT: "SPOTPAID",
    Billing.PREPAID: "PREPAID",
    Billing.RESERVED: "CDHPAID",
    Billing.UNKNOWN: "UNDERWRITE",
}
_MONTH = timedelta(days=30)


def state_of(machine: Machine) -> str:
    """InstanceState."""
    state = machine.state
    if state is InstanceState.PENDING:
        return "STARTING" if machine.latest_operation == "StartInstances" else "PENDING"
    if state is InstanceState.UNKNOWN:
        return "SHUTDOWN"  # the recycle bin
    if state in {InstanceState.TERMINATING, InstanceState.TERMINATED}:
        return "TERMINATING"
    return str(state.value).upper()


def type_of(spec: MachineSpec) -> InstanceType:
    """The machine's type: the catalogue's, or what its own spec tells of one that the catalogue does not have."""
    known = TYPES.get(spec.instance_type)
    if known is not None:
        return known
    memory = re.search(r"(\d+)$", spec.instance_type)
    chip = spec.accelerator
    price = spec.hourly.amount if spec.hourly is not None else TYPES["S5.MEDIUM4"].hourly
    return InstanceType(
        spec.instance_type,
        8,
        int(memory.group(1)) if memory else 32,
        price,
        chip.count,
        f"{'AMD' if chip.kind is AcceleratorKind.AMD_GPU else 'NVIDIA'} {chip.model}" if chip.count > 0 else "",
        chip.memory_gib or 0,
        int(spec.local_disk_gib or 0),
    )


def shown(world: World, machine: Machine, memory: Memory) -> dict[str, Any]:
    """One entry of InstanceSet. `GPUInfo` is there on machines with a GPU only."""
    spec, native_id = machine.spec, machine.native_id
    kind = type_of(spec)
    prepaid = spec.billing is Billing.PREPAID
    public = _public_addresses(world, machine)
    found: dict[str, Any] = {
        "InstanceId": native_id,
        "InstanceName": spec.name or "未命名",
        "InstanceType": spec.instance_type,
        "CPU": kind.cpus,
        "Memory": kind.memory_gib,
        "Placement": {"Zone": spec.zone, "ProjectId": int(spec.resource_group or 0), "HostId": None},
        "InstanceState": state_of(machine),
        "RestrictState": _restriction(world, machine),
        "InstanceChargeType": CHARGE_TYPES[spec.billing],
        "RenewFlag": "NOTIFY_AND_MANUAL_RENEW" if prepaid else None,
        "CreatedTime": zulu(spec.launched_at),
        "ExpiredTime": _expires(world, spec) if prepaid else None,
        "Tags": [_tag(*pair) for pair in machine.tags.items()],
        **_disks(world, machine),
        "PrivateIpAddresses": [_private_address(native_id)],
        "PublicIpAddresses": public,
        "IPv6Addresses": None,
        "PublicIPv6Addresses": [],
        "InternetAccessible": {
            "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "InternetMaxBandwidthOut": 10 if public else 0,
            "PublicIpAssigned": bool(public),
        },
        "VirtualPrivateCloud": {
            "VpcId": f"vpc-{_short(spec.account, spec.region)}",
            "SubnetId": f"subnet-{_short(spec.account, spec.zone)}",
            "AsVpcGateway": False,
        },
        "SecurityGroupIds": [f"sg-{_short(spec.account, spec.region)}"],
        "ImageId": "img-487zeit5",
        "OsName": "Ubuntu Server 22.04 LTS 64bit",
        "LoginSettings": {"KeyIds": []},
        "StopChargingMode": stop_charging_mode(machine),
        "DisableApiTermination": "termination_protection" in machine.protections,
        "CamRoleName": "",
        "LatestOperation": machine.latest_operation,
        "LatestOperationState": _operation_state(machine),
        "LatestOperationRequestId": memory.latest_request_id(machine),
        "LatestOperationErrorMsg": "",
        "IsolatedSource": "MANMADE" if machine.state is InstanceState.UNKNOWN else "NOTISOLATED",
        "Uuid": made_up_request_id("uuid", native_id),
        "HpcClusterId": "",
        "RdmaIpAddresses": None,
        "DedicatedClusterId": "",
        "DisasterRecoverGroupId": "",
        "DefaultLoginUser": "ubuntu",
        "DefaultLoginPort": 22,
        "LicenseType": "TencentCloud",
    }
    cards = spec.accelerator.count
    if cards > 0:
        found["GPUInfo"] = {"GPUCount": cards, "GPUId": _addresses_of_cards(cards), "GPUType": kind.model}
    return found


def stop_charging_mode(machine: Machine) -> str:
    """Whether the stop ended the bill; only a machine that is stopped tells."""
    if machine.state is not InstanceState.STOPPED or machine.spec.billing is not Billing.ON_DEMAND:
        return "NOT_APPLICABLE"
    return "KEEP_CHARGING" if machine.billed_while_stopped else "STOP_CHARGING"


def is_system_disk(machine: Machine, volume: WorldVolume) -> bool:
    """Whether the machine starts from it."""
    return bool(machine.spec.disks) and volume.disk is machine.spec.disks[0]


def _tag(key: str, value: str) -> dict[str, str]:
    return {"Key": key, "Value": value, "tagKey": key, "tagValue": value}  # twice, as in recorded answers


def _operation_state(machine: Machine) -> str:
    """A stop was recorded as SUCCESS while the machine was still STOPPING, whatever the documents say."""
    under_way = machine.state in {InstanceState.PENDING, InstanceState.TERMINATING}
    return "OPERATING" if under_way else "SUCCESS"


def _restriction(world: World, machine: Machine) -> str:
    until = machine.spec.prepaid_until
    return "EXPIRED" if until is not None and until <= world.now else "NORMAL"


def _expires(world: World, spec: MachineSpec) -> str:
    if spec.prepaid_until is not None:
        return zulu(spec.prepaid_until)
    terms = (world.now - spec.launched_at) // _MONTH + 1  # renewed by the month: still unexpired
    return zulu(spec.launched_at + terms * _MONTH)


def _disks(world: World, machine: Machine) -> dict[str, Any]:
    system, extra = None, []
    for volume in world.volumes_of(machine.native_id):
        disk = volume.disk
        told = {
            "DiskId": volume.native_id,
            "DiskType": disk.volume_type,
            "DiskSize": disk.size_gib,
            "Encrypt": bool(disk.key_id),
        }
        if is_system_disk(machine, volume):
            system = told
        else:
            extra.append({**told, "DeleteWithInstance": False})  # the truth is with the CBS
    local = machine.spec.local_disk_gib
    if local is None or local > 0:  # no cloud disk: not in the CBS, no snapshots
        extra.append(
            {"DiskId": f"ldisk-{_short(machine.native_id)}", "DiskType": "LOCAL_NVME", "DiskSize": int(local or 0)}
        )
    return {"SystemDisk": system, "DataDisks": extra}


def _public_addresses(world: World, machine: Machine) -> list[str] | None:
    if machine.public_ip:
        return [machine.public_ip]
    kept = world.addresses_of(machine.native_id) if machine.state not in ENDED else ()
    return [made_up_address(kept[0].native_id)] if kept else (None if machine.public_ip is None else [])


def _addresses_of_cards(count: float) -> list[str]:
    return [f"0000:00:{place + 8:02x}.0" for place in range(ceil(count))]


def _private_address(native_id: str) -> str:
    middle, last = blake2b(native_id.encode(), digest_size=2).digest()
    return f"10.0.{middle}.{last}"


def _short(*parts: str) -> str:
    return blake2b("/".join(parts).encode(), digest_size=4).hexdigest()
