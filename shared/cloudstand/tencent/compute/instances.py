"""CVM's questions: which machines there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import ge, le

from cloudstand.tencent.compute.machines import CHARGE_TYPES, shown, state_of
from cloudstand.tencent.core.asking import Answer, Asked, By, either, filtered, page
from cloudstand.tencent.core.errors import ApiError
from cloudstand.tencent.core.times import moment_of
from cloudstand.world.network.parts import NetworkInterface
from cloudstand.world.records import Machine

_FILTERS: By = {
    "zone": lambda machine: [machine.spec.zone],
    "project-id": lambda _: ["0"],
    "host-id": None,
    "dedicated-cluster-id": None,
    "vpc-id": None,
    "subnet-id": None,
    "security-group-id": None,
    "private-ip-address": None,
    "ipv6-address": None,
    "uuid": None,
    "instance-id": lambda machine: [machine.native_id],
    "instance-name": lambda machine: [machine.spec.name],
    "instance-charge-type": lambda machine: [CHARGE_TYPES[machine.spec.billing]],
    "instance-state": lambda machine: [state_of(machine)],
    "public-ip-address": lambda machine: [machine.public_ip or ""],
    "tag-key": lambda machine: machine.tags,
    "tag-value": lambda machine: machine.tags.values(),
    "tag:": lambda machine: [f"{key}={value}" for key, value in machine.tags.items()],
}


def describe_instances(asked: Asked) -> Answer:
    """DescribeInstances."""
    either(asked, "InstanceIds", "InvalidParameter")
    machines = _chosen(asked, asked.world.listing(asked.shard))
    cards = {card.instance: card for card in asked.world.networks.of(asked.shard).interfaces if card.primary}
    entries = [
        {**shown(asked.world, machine, asked.memory), **_plugged(cards.get(machine.ref))}
        for machine in page(asked, machines)
    ]
    return {"TotalCount": len(machines), "InstanceSet": entries}


def _plugged(card: NetworkInterface | None) -> Answer:
    """Where a machine is that the networks of the world know."""
    if card is None or card.vpc is None or card.subnet is None:
        return {}
    return {
        "PrivateIpAddresses": list(card.private_ips),
        "IPv6Addresses": list(card.ipv6_public) or None,
        "VirtualPrivateCloud": {
            "VpcId": card.vpc.native_id,
            "SubnetId": card.subnet.native_id,
            "AsVpcGateway": False,
        },
        "SecurityGroupIds": list(card.groups),
    }


def describe_instances_status(asked: Asked) -> Answer:
    """DescribeInstancesStatus."""
    machines = _chosen(asked, asked.world.listing(asked.shard))
    entries = [{"InstanceId": each.native_id, "InstanceState": state_of(each)} for each in page(asked, machines)]
    return {"TotalCount": len(machines), "InstanceStatusSet": entries}


def _chosen(asked: Asked, machines: Iterable[Machine]) -> list[Machine]:
    """Ids nobody knows are no error: they are not there. No ids, or an empty list of them, means all."""
    ids = asked.get("InstanceIds")
    if ids:
        wanted = set(well_formed(ids))
        return [machine for machine in machines if machine.native_id in wanted]
    found = list(machines)
    others = []
    for wanted_by in asked.get("Filters", ()):
        compare = _CREATED.get(wanted_by["Name"])
        if compare is None:
            others.append(wanted_by)
        else:
            limits = [moment_of(wanted_by["Name"], value) for value in wanted_by["Values"]]
            found = [each for each in found if any(compare(each.spec.launched_at, limit) for limit in limits)]
    return filtered(others, found, _FILTERS)


_CREATED: Mapping[str, Callable[[datetime, datetime], bool]] = {"creation-start-time": ge, "creation-end-time": le}


def well_formed(ids: Iterable[str]) -> Iterable[str]:
    """These ids, when they look like some.

    Raises:
        ApiError: InvalidInstanceId.Malformed.
    """
    for native_id in ids:
        if not re.fullmatch(r"ins-[0-9a-z]{8,}", native_id):
            raise ApiError("InvalidInstanceId.Malformed", f"`{native_id}` is no ID.", f"无效实例`{native_id}`。")
    return ids
