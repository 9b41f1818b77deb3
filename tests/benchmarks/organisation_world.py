"""A made-up organisation behind the ports: accounts on three clouds, the vendors' limits, a fault in a hundred.

Each port sends the requests that its provider sends (counted against loopback stand-ins, README.md beside this) through
the product's own pacing and patience, in virtual time. Nothing of it is kept: a machine is worked out from its number.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from tests.benchmarks.virtual import BEGIN, Time

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Gap,
    GapKind,
    Instance,
    InstanceDetail,
    InstanceState,
    Inventory,
    Volume,
)
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour
from costguard.engine.run.scan import CloudReaders
from costguard.ports import Discovery, SignalReport, Target
from costguard.providers.alibaba.core.session import RATES as ALIBABA_RATES
from costguard.providers.alibaba.core.session import region_of
from costguard.providers.aws.core.session import RATES as AWS_RATES
from costguard.providers.aws.core.session import family_of
from costguard.providers.kit.core.pacing import Pacer, RetryPolicy
from costguard.providers.tencent.core.session import RATES as TENCENT_RATES

CLOUDS = ("aws", "alibaba", "tencent")
RATES = {"aws": AWS_RATES, "alibaba": ALIBABA_RATES, "tencent": TENCENT_RATES}
LATENCY = {"aws": 0.06, "alibaba": 0.08, "tencent": 0.08}
REGIONS = {
    "aws": (
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1", "eu-west-1", "eu-west-2"),
        *("eu-west-3", "eu-central-1", "eu-north-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
    ),
    "alibaba": tuple(f"cn-region-{number}" for number in range(17)),
    "tencent": tuple(f"ap-region-{number}" for number in range(17)),
}
TYPES = {"aws": "p4d.24xlarge", "alibaba": "ecs.gn7i-c8g1.2xlarge", "tencent": "GN7.2XLARGE32"}
PRICES = {"aws": Decimal("32.77"), "alibaba": Decimal("1.52"), "tencent": Decimal("1.31")}
LAUNCHED = BEGIN - timedelta(days=20)


@dataclass(frozen=True)
class Size:
    """`accounts` a cloud, each with so many GPU machines in its home region, every tenth of them idle for days."""

    accounts: int
    machines: int = 3
    idle_every: int = 10
    others: int = 30  # machines without a GPU in the home region, which cost pages


def account_of(cloud: str, number: int) -> str:
    return f"{number + 1:012d}" if cloud != "alibaba" else f"{number + 1:016d}"


@dataclass
class Asked:
    """Every request by cloud and operation, and how many of them failed."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    metrics: int = 0  # of CloudWatch, which bills each
    faults: int = 0

    def total(self, cloud: str = "") -> int:
        return sum(count for (of, _), count in self.requests.items() if not cloud or of == cloud)


@dataclass
class Wire:
    """One process's way to one cloud: paced, patient, and wrong once in a hundred."""

    cloud: str
    time: Time
    asked: Asked
    chance: random.Random
    deadline: datetime | None = None
    faults: float = 0.01
    distance: float | None = None  # seconds of one request; None: as far as that cloud is by LATENCY

    @property
    def latency(self) -> float:
        return LATENCY[self.cloud] if self.distance is None else self.distance

    @cached_property
    def patience(self) -> RetryPolicy:
        def left() -> float:
            assert self.deadline is not None
            return (self.deadline - self.time.now()).total_seconds()

        pacer = Pacer(RATES[self.cloud], self.time.monotonic, self.time.sleep, self.chance.random)
        return RetryPolicy(pacer, None if self.deadline is None else left)

    def ask(self, account: str, region: str, operation: str, times: int = 1) -> None:
        """So many requests, one after another.

        Raises:
            AccessDeniedError: once in ten thousand: no retry helps.
            ThrottledError: the cloud would not have it in eight tries.
        """
        for _ in range(times):
            self.patience.ask(
                operation, lambda: self._turn(account, region, operation), lambda: self._send(operation), changes=False
            )

    def _turn(self, account: str, region: str, operation: str) -> float:
        family, where = operation, region
        if self.cloud == "aws":
            family = family_of(operation, changes=False)
        if self.cloud == "alibaba":
            where = region_of(operation, region)
        return self.patience.pacer.reserve(account, where, family)

    def _send(self, operation: str) -> None:
        self.asked.requests[self.cloud, operation] += 1
        self.time.sleep(self.latency)
        if self.chance.random() >= self.faults:
            return
        self.asked.faults += 1
        if self.chance.random() < 0.01:
            raise AccessDeniedError("not allowed", operation=operation)
        raise ThrottledError("slow down", operation=operation)


@dataclass
class Organisation:
    """All four read ports of one cloud, over one wire."""

    size: Size
    wire: Wire
    stopped: set[ResourceRef] = field(default_factory=set)

    @property
    def reading(self) -> CloudReaders:
        return CloudReaders(self, Signals(self), self)

    def discover(self, target: Target) -> Discovery:
        cloud, wire = self.wire.cloud, self.wire
        if target.organisation:
            accounts = [account_of(cloud, number) for number in range(self.size.accounts)]
            listing = {"aws": "organizations:ListAccounts", "alibaba": "resourcedirectory:ListAccounts"}
            wire.ask(
                target.account,
                "",
                listing.get(cloud, "organization:DescribeOrganizationMembers"),
                -(-len(accounts) // 20),
            )
        else:
            accounts = [target.account]
        if target.regions == ():
            return Discovery((), accounts=tuple(accounts))
        begun, longest = wire.time.seconds, 0.0
        shards: list[Shard] = []
        gaps: list[Gap] = []
        regions = target.regions if target.regions is not None else REGIONS[cloud]
        lanes = [begun] * min(8, len(accounts))  # the eight threads of providers.discovery
        for number, account in enumerate(accounts):
            wire.time.seconds = lanes[number % len(lanes)]
            try:
                wire.ask(target.account, "", "sts:AssumeRole", 1)
                wire.ask(account, "", "sts:GetCallerIdentity", 1)
                shards.extend(Shard(cloud, account, region) for region in regions)
            except ProviderError as err:
                gaps.append(Gap(Shard(cloud, account), "accounts", GapKind.DENIED, str(err)))
            lanes[number % len(lanes)] = wire.time.seconds
            longest = max(longest, wire.time.seconds)
        wire.time.seconds = longest
        return Discovery(tuple(shards), tuple(gaps), accounts=tuple(accounts))

    def read(self, shard: Shard) -> Inventory:
        home = self._is_home(shard)
        described = {
            "aws": "ec2:DescribeInstances",
            "alibaba": "ecs:DescribeInstances",
            "tencent": "cvm:DescribeInstances",
        }
        per_page = 1000 if shard.cloud == "aws" else 100
        seen = self.size.others + self.size.machines if home else 0
        self.wire.ask(shard.account, shard.region, described[shard.cloud], max(1, -(-seen // per_page)))
        if home and shard.cloud == "aws":
            self.wire.ask(shard.account, shard.region, "ec2:DescribeReservedInstances")
        if home and shard.cloud == "tencent":
            self.wire.ask(shard.account, shard.region, "as:DescribeAutoScalingInstances")
        machines = tuple(self._machine(shard, number) for number in range(self.size.machines if home else 0))
        return Inventory(shard, machines, instances_seen=seen)

    def _is_home(self, shard: Shard) -> bool:
        regions = REGIONS[shard.cloud]
        return regions[int(shard.account) % len(regions)] == shard.region

    def _machine(self, shard: Shard, number: int) -> Instance:
        ref = ResourceRef(shard.cloud, shard.account, shard.region, "instance", f"i-{shard.account}{number:05d}")
        return Instance(
            ref=ref,
            instance_type=TYPES[shard.cloud],
            accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A100", 1),
            state=InstanceState.STOPPED if ref in self.stopped else InstanceState.RUNNING,
            billing=Billing.ON_DEMAND,
            run_epoch="2026-02-10T09:17:00Z",
            launched_at=LAUNCHED,
            created_at=LAUNCHED,
            name=f"train-{number}",
            zone=f"{shard.region}a",
            tags={"owner": f"team-{int(shard.account) % 50}", "project": "llm-pretraining", "environment": "research"},
            local_disk_gib=0.0,
        )

    def signals(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        cloud, count = self.wire.cloud, len(instances)
        account, region = instances[0].ref.account, instances[0].ref.region
        if cloud == "aws":
            self.wire.ask(account, region, "cloudwatch:ListMetrics", -(-count // 500))
            self.wire.ask(account, region, "cloudwatch:GetMetricData", -(-2 * count // 500))
            self.wire.asked.metrics += 2 * count
        elif cloud == "alibaba":
            self.wire.ask(account, region, "cms:DescribeMetricList", -(-count * 1470 // 1440))
        else:
            self.wire.ask(account, region, "monitor:GetMonitorData", -(-count * 1470 // 7200))
        start = floor_hour(since)
        hours = int((until - start) / HOUR) + 1
        into = max(1, int((until - floor_hour(until)).total_seconds() // 60))
        samples = array("I", [60] * (hours - 1) + [into])
        quiet, loud = array("d", [0.0] * hours), array("d", [92.5] * hours)
        return SignalReport(
            {
                each.ref: SignalReading(
                    (
                        SignalHistory(
                            SignalName.GPU, "0", start, quiet if self._is_idle(each) else loud, samples, "made up"
                        ),
                    ),
                    timedelta(minutes=3),
                )
                for each in instances
            }
        )

    def _is_idle(self, instance: Instance) -> bool:
        number = int(instance.ref.account) * self.size.machines + int(instance.ref.native_id[-5:])
        return number % self.size.idle_every == 0

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        return {
            each.ref: HourlyRate(Money(PRICES[each.ref.cloud], "USD"), "made up", "2026-01-01") for each in instances
        }

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        return [("volume", Money(Decimal("0.01"), "USD")) for _ in detail.volumes]

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        del volume
        return Money(Decimal("0.01"), "USD")

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        found: dict[ResourceRef, InstanceDetail] = {}
        first = refs[0]
        reads = {"aws": 3, "alibaba": 4, "tencent": 4}[first.cloud]
        described = {
            "aws": "ec2:DescribeInstances",
            "alibaba": "ecs:DescribeInstances",
            "tencent": "cvm:DescribeInstances",
        }
        self.wire.ask(first.account, first.region, described[first.cloud], reads * -(-len(refs) // 100))
        for ref in refs:
            machine = self._machine(ref.shard, int(ref.native_id[-5:]))
            volume = Volume(ref.sibling("volume", f"vol-{ref.native_id}"), 100.0, "gp3")
            found[ref] = InstanceDetail(machine, (volume,), ())
        return found

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        del ref, wanted
        return ()


@dataclass(frozen=True)
class Signals:
    """`SignalSource` of an organisation."""

    of: Organisation

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        return self.of.signals(instances, since, until)
