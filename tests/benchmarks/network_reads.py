"""How many requests a shard's networks cost on each cloud, beside the least that page limits allow.

`python tests/benchmarks/network_reads.py` from the repository's root: 5,000 groups with 10,000 rules and 2,000 network
interfaces, read by each provider's `NetworkSource` from the sandbox's emulator. `--smoke` does the same with 50 groups.
Pages are the vendors' own, and what was read must be what there is. No figure fails the run, as nowhere here; README.md
says what is aimed at. Times are of reader and emulator together, in one process: they say little.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.contract.network_fleet import network_fleet
from tests.contract.network_rigs import START, NetworkRig, in_order
from tests.contract.network_worlds import NETWORKS, WIRED
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.network.names import network_ref
from cloudstand.world.network.networks import PARTS, Networks, in_their_places
from costguard.domain.network import (
    AddressState,
    Direction,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Permission,
    PublicAddress,
    SecurityGroup,
)
from costguard.domain.refs import Shard

GROUPS, RULES_OF_EACH, INTERFACES, ADDRESSES = 5_000, 2, 2_000, 200
_SMOKE = 100  # the whole divided by this
AIM = 1.1

Floor = Callable[[NetworkInventory], Mapping[str, int]]


def of_pages(things: int, page: int) -> int:
    """Full pages, and one where there is nothing: that has to be asked as well."""
    return max(1, ceil(things / page))


def _aws(there: NetworkInventory) -> Mapping[str, int]:
    """Pages of 1,000, of route tables 100; addresses have no pages. Rules are read with their ids."""
    rules = sum(len(group.rules) for group in there.groups)
    return {
        "ec2:DescribeVpcs": of_pages(len(there.vpcs), 1_000),
        "ec2:DescribeSubnets": of_pages(len(there.subnets), 1_000),
        "ec2:DescribeRouteTables": of_pages(len(there.route_tables), 100),
        "ec2:DescribeSecurityGroups": of_pages(len(there.groups), 1_000),
        "ec2:DescribeSecurityGroupRules": of_pages(rules, 1_000),
        "ec2:DescribeNetworkAcls": of_pages(len(there.access_lists), 1_000),
        "ec2:DescribeNetworkInterfaces": of_pages(len(there.interfaces), 1_000),
        "ec2:DescribeAddresses": 1,
        "ec2:DescribeNatGateways": of_pages(len(there.nat_gateways), 1_000),
        "ec2:DescribeFlowLogs": of_pages(len(there.flow_logs), 1_000),
        "ec2:DescribeVpcPeeringConnections": of_pages(len(there.peerings), 1_000),
    }


def _alibaba(there: NetworkInventory) -> Mapping[str, int]:
    """VPC's pages of 50, ECS's of 100, of interfaces 500; one request a group, a route table and a gateway.

    One price question for all addresses that no instance has, since none pays for bandwidth, and one for gateways.
    """
    kept = any(each.bound_to is None or each.bound_to.kind != "instance" for each in there.addresses)
    return {
        "vpc:DescribeVpcs": of_pages(len(there.vpcs), 50),
        "vpc:DescribeVSwitches": of_pages(len(there.subnets), 50),
        "vpc:DescribeRouteTableList": of_pages(len(there.route_tables), 50),
        "vpc:DescribeRouteEntryList": len(there.route_tables),
        "vpc:DescribeNetworkAcls": of_pages(len(there.access_lists), 50),
        "vpc:DescribeEipAddresses": of_pages(len(there.addresses), 100),
        "vpc:DescribeNatGateways": of_pages(len(there.nat_gateways), 50),
        "vpc:DescribeForwardTableEntries": len(there.nat_gateways),
        "vpc:DescribeFlowLogs": of_pages(len(there.flow_logs), 50),
        "vpcpeer:ListVpcPeerConnections": of_pages(len(there.peerings), 100),
        "ecs:DescribeSecurityGroups": of_pages(len(there.groups), 100),
        "ecs:DescribeSecurityGroupAttribute": len(there.groups),
        "ecs:DescribeNetworkInterfaces": of_pages(len(there.interfaces), 500),
        "bss:GetPayAsYouGoPrice": int(kept) + bool(there.nat_gateways),
    }


def _tencent(there: NetworkInventory) -> Mapping[str, int]:
    """Pages of 100; one request for the rules of each group."""
    return {
        "vpc:DescribeVpcs": of_pages(len(there.vpcs), 100),
        "vpc:DescribeSubnets": of_pages(len(there.subnets), 100),
        "vpc:DescribeRouteTables": of_pages(len(there.route_tables), 100),
        "vpc:DescribeNetworkAcls": of_pages(len(there.access_lists), 100),
        "vpc:DescribeSecurityGroups": of_pages(len(there.groups), 100),
        "vpc:DescribeSecurityGroupPolicies": len(there.groups),
        "vpc:DescribeNetworkInterfaces": of_pages(len(there.interfaces), 100),
        "vpc:DescribeAddresses": of_pages(len(there.addresses), 100),
        "vpc:DescribeNatGateways": of_pages(len(there.nat_gateways), 100),
        "vpc:DescribeFlowLogs": of_pages(len(there.flow_logs), 100),
        "vpc:DescribeVpcPeeringConnections": of_pages(len(there.peerings), 100),
    }


FLOORS: Mapping[str, Floor] = {"alibaba": _alibaba, "aws": _aws, "tencent": _tencent}


def crowded(shard: Shard, share: int) -> NetworkInventory:
    """The shard of the contract suites, with as many groups, interfaces and addresses as are asked for."""
    there = network_fleet(shard.cloud, START).networks
    model = there.groups[1]
    groups = [_group(shard, model, number) for number in range(GROUPS // share - len(there.groups))]
    home = there.interfaces[0]
    cards = [_card(shard, home, groups, number) for number in range(INTERFACES // share - len(there.interfaces))]
    addresses = [_address(shard, number) for number in range(ADDRESSES // share)]
    return replace(
        there,
        groups=(*there.groups, *groups),
        interfaces=(*there.interfaces, *cards),
        addresses=(*there.addresses, *addresses),
    )


def _group(shard: Shard, model: SecurityGroup, number: int) -> SecurityGroup:
    ref = network_ref(to_world(shard), "security_group", f"crowd-{number}")
    rules = [
        NetworkRule(
            network_ref(to_world(shard), "rule", f"crowd-{number}-{place}").native_id,
            Direction.INGRESS,
            Permission.ALLOW,
            "tcp",
            ((1_000 + number % 60_000, 1_000 + number % 60_000),),
            (f"10.{number % 256}.{place}.0/24",),
            priority=1 if shard.provider == "alibaba" else 0,
        )
        for place in range(RULES_OF_EACH)
    ]
    placed = in_their_places(to_world(rules)) if shard.provider == "tencent" else tuple(rules)
    tags = {"Name": ref.native_id} if shard.provider == "aws" else {}
    return replace(
        model,
        ref=to_product(ref),
        name=ref.native_id,
        rules=to_product(placed),
        referenced_by=(),
        in_use=True,
        tags=tags,
    )


def _card(shard: Shard, home: NetworkInterface, groups: list[SecurityGroup], number: int) -> NetworkInterface:
    """Of something that is no machine of the world. Three groups each, so that every group is in use."""
    chosen = {groups[(3 * number + step) % len(groups)].ref.native_id for step in range(3)}
    return replace(
        home,
        ref=to_product(network_ref(to_world(shard), "interface", f"crowd-{number}")),
        instance=None,
        private_ips=(f"10.20.{8 + number // 250}.{1 + number % 250}",),
        public_ips=(),
        ipv6_public=(),
        groups=tuple(sorted(chosen)),
        primary=None,
    )


def _address(shard: Shard, number: int) -> PublicAddress:
    ref = network_ref(to_world(shard), "address", f"crowd-{number}")
    tags = {"Name": ref.native_id} if shard.provider == "aws" else {}
    allocated = None if shard.provider == "aws" else START
    return PublicAddress(
        to_product(ref),
        f"198.18.{number // 250}.{1 + number % 250}",
        AddressState.UNATTACHED,
        None,
        ref.native_id,
        allocated,
        tags=tags,
    )


def measure(name: str, rig: NetworkRig, share: int) -> None:
    """One read, counted; what was read is compared with what there is."""
    there = crowded(rig.shard, share)
    rig.reset()
    with rig.door.opened() as world:
        world.networks = Networks([to_world(there)])
    rig.as_new()
    began, worked = time.perf_counter(), time.process_time()
    found = rig.read()
    wall, cpu = time.perf_counter() - began, time.process_time() - worked
    _check(rig.told(there), found)
    asked = Counter(rig.requests())
    floor = FLOORS[name](there)
    least, most = sum(floor.values()), sum(asked.values())
    verdict = "met" if most <= AIM * least else "NOT MET"
    print(f"| {name} | {most:,} | {least:,} | {most / least:.3f} | {verdict} | {wall:.1f} | {cpu:.1f} |")
    beside = {
        each: asked[each] - floor.get(each, 0) for each in sorted({*asked, *floor}) if asked[each] != floor.get(each, 0)
    }
    if beside:
        print(
            f"<!-- {name}, beside the floor: " + ", ".join(f"{each} {more:+}" for each, more in beside.items()) + " -->"
        )


def _check(there: NetworkInventory, found: NetworkInventory) -> None:
    if found.gaps:
        message = f"not read whole: {found.gaps}"
        raise SystemExit(message)
    for part in PARTS.values():
        counted, read = len(getattr(there, part)), len(getattr(found, part))
        if counted != read:
            message = f"{part}: {read} read of {counted}"
            raise SystemExit(message)
    wanted = {group.ref: len(in_order(group.rules)) for group in there.groups}
    if {group.ref: len(group.rules) for group in found.groups} != wanted:
        raise SystemExit("not every rule was read")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a hundredth of it, in seconds")
    parser.add_argument("--clouds", nargs="+", choices=sorted(FLOORS), default=sorted(WIRED))
    given = parser.parse_args()
    share = _SMOKE if given.smoke else 1
    groups, cards = GROUPS // share, INTERFACES // share
    print(f"### {groups:,} groups with {groups * RULES_OF_EACH:,} rules, {cards:,} interfaces; aim: ≤ {AIM} × floor\n")
    print("| cloud | requests | floor | ÷ floor | aim | wall s | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name in given.clouds:
        with NETWORKS[name]() as rig:
            measure(name, rig, share)


if __name__ == "__main__":
    main()
