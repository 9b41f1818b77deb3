"""How long the judge of networks takes: 5,000 security groups with 10,000 rules around 2,000 instances.

`python tests/benchmarks/network_judge.py [--groups N] [--rules N] [--instances N] [--repeats N]` from the repository's
root; `--smoke`: a hundredth, once. The networks are made up, the same every time, one region in each cloud's order of
reading; half of the instances have a public address, a tenth an IPv6 one, every fifth subnet an access list; a
twentieth of the groups let the world in. Each figure is the least CPU of the repeats, in the process itself, with every
cache emptied before. `reach` is the graph alone, `judge` every check with the graph; the last figure is `judge` and for
each violation what would mend it and whether that would close the last way in. No figure fails the run.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from costguard.domain.network import (
    AccessList,
    Direction,
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Permission,
    Route,
    RouteTable,
    RuleOrder,
    SecurityGroup,
    Subnet,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Instance
from costguard.guards.network.judge import judge, last_admin_path, remediation_of
from costguard.guards.network.reachability.exposure import reach
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import Mode

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measuring import machine
from tests.network_places import NOW, instance

AIM = 2.0
ORDERS = {"aws": RuleOrder.UNION, "alibaba": RuleOrder.PRIORITY, "tencent": RuleOrder.FIRST_MATCH}
SUBNETS = 200


@dataclass(frozen=True)
class Size:
    """How much there is."""

    groups: int
    rules: int
    instances: int


def region(cloud: str, size: Size) -> tuple[NetworkInventory, list[Instance]]:
    """One region of one account."""
    chance, shard = random.Random(cloud), Shard(cloud, "1234567890123456", "region-1")  # noqa: S311 - made-up networks
    vpc = _ref(shard, "vpc", "vpc-1")
    tables = [
        RouteTable(
            _ref(shard, "route_table", f"rtb-{number}"),
            vpc,
            (
                Route("10.0.0.0/8", Hop.LOCAL),
                Route("0.0.0.0/0", Hop.INTERNET if number % 2 else Hop.NAT, f"gw-{number}"),
                Route("::/0", Hop.INTERNET, "gw-6"),
            ),
        )
        for number in range(20)
    ]
    lists = [AccessList(_ref(shard, "access_list", f"acl-{number}"), vpc, _entries()) for number in range(10)]
    subnets = [
        Subnet(
            _ref(shard, "subnet", f"subnet-{number}"),
            vpc,
            (f"10.{number}.0.0/16",),
            tables[number % len(tables)].ref,
            lists[number % len(lists)].ref if number % 5 == 0 else None,
        )
        for number in range(SUBNETS)
    ]
    many = Counter(chance.randrange(size.groups) for _ in range(size.rules - size.groups))
    groups = [
        SecurityGroup(
            _ref(shard, "security_group", f"sg-{number}"),
            vpc,
            ORDERS[cloud],
            tuple(_rule(chance, place, is_open=number % 20 == 0) for place in range(1 + many[number])),
            in_use=True,
        )
        for number in range(size.groups)
    ]
    cards, machines = [], []
    for number in range(size.instances):
        its = _ref(shard, "instance", f"i-{number}")
        private = f"10.{number % SUBNETS}.{number // 250}.{number % 250}"
        cards.append(
            NetworkInterface(
                _ref(shard, "interface", f"eni-{number}"),
                vpc,
                subnets[number % SUBNETS].ref,
                its,
                (private,),
                ((private, f"203.0.{number // 250}.{number % 250}"),) if number % 2 else (),
                (f"2001:db8::{number:x}",) if number % 10 == 0 else (),
                tuple(f"sg-{chance.randrange(size.groups)}" for _ in range(1 + number % 3)),
            )
        )
        machines.append(instance(f"i-{number}", shard))
    inventory = NetworkInventory(
        shard,
        vpcs=(Vpc(vpc, ("10.0.0.0/8",), needs_gateway=cloud == "aws"),),
        subnets=tuple(subnets),
        route_tables=tuple(tables),
        groups=tuple(groups),
        access_lists=tuple(lists),
        interfaces=tuple(cards),
    )
    return inventory, machines


def _ref(shard: Shard, kind: str, native_id: str) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def _rule(chance: random.Random, place: int, *, is_open: bool) -> NetworkRule:
    world = is_open and place == 0
    peer = "0.0.0.0/0" if world else f"{chance.randrange(1, 224)}.{chance.randrange(256)}.{chance.randrange(256)}.0/24"
    port = 22 if world else chance.choice((22, 80, 443, 8080, 8888, 9100))
    permission = Permission.ALLOW if world or chance.randrange(10) else Permission.DENY
    return NetworkRule(
        f"sgr-{place}", Direction.INGRESS, permission, "tcp", ((port, port),), (peer,), priority=place + 1
    )


def _entries() -> tuple[NetworkRule, ...]:
    everything = ("0.0.0.0/0", "::/0")
    return (
        NetworkRule("90", Direction.INGRESS, Permission.DENY, "tcp", ((3389, 3389),), everything, priority=90),
        NetworkRule("100", Direction.INGRESS, Permission.ALLOW, "all", peers=everything, priority=100),
        NetworkRule("100", Direction.EGRESS, Permission.ALLOW, "all", peers=everything, priority=100),
    )


def measure(size: Size, repeats: int) -> None:
    """Every order of reading, and what is said."""
    print(f"\n### {size.groups:,} groups, {size.rules:,} rules, {size.instances:,} instances\n")
    print("| read as on | paths | findings | violations | reach, CPU s | judge, CPU s | with mends and the last way |")
    print("|---|---|---|---|---|---|---|")
    rule = AuditRule(
        "everything",
        Mode.ENFORCE,
        frozenset(NetworkCheck),
        mend=frozenset({RemediationKind.REVOKE_RULE}),
        peering_cidrs=(),
    )
    for cloud in ORDERS:
        inventory, machines = region(cloud, size)
        reached, judged, mended = [], [], []
        paths, violations, findings = 0, 0, 0
        for _ in range(repeats):
            _forget()
            began = time.process_time()
            paths = len(reach([inventory], machines).paths)
            reached.append(time.process_time() - began)
            _forget()
            began = time.process_time()
            found = judge([inventory], machines, [rule], NOW, {})
            judged.append(time.process_time() - began)
            for mend in filter(None, (remediation_of(each, inventory, rule) for each in found)):
                last_admin_path(mend, [inventory], machines, rule)
            mended.append(time.process_time() - began)
            findings, violations = len(found), sum(each.verdict.value == "violation" for each in found)
        print(
            f"| {cloud} | {paths:,} | {findings:,} | {violations:,} | {min(reached):.2f} | {min(judged):.2f}"
            f" | {min(mended):.2f} |"
        )
    print(f"\naim: judge in less than {AIM} s of CPU")


def _forget() -> None:
    """What the guard remembers of networks: a new process would have to read them."""
    modules = [module for name, module in sys.modules.items() if name.startswith("costguard.guards.")]
    for each in {value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")}:
        each.cache_clear()
    gc.collect()


def main(given: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a hundredth, once")
    parser.add_argument("--groups", type=int, default=5_000, metavar="N")
    parser.add_argument("--rules", type=int, default=10_000, metavar="N")
    parser.add_argument("--instances", type=int, default=2_000, metavar="N")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(given)
    print(f"{machine('gpu-costguard')}; load average before: {os.getloadavg()[0]:.1f}")
    if asked.smoke:
        measure(Size(50, 100, 20), 1)
        return
    measure(Size(asked.groups, asked.rules, asked.instances), asked.repeats)
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
