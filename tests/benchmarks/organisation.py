"""What guarding an organisation takes: 1,000 accounts on each of three clouds, in virtual time, with the real engine.

python tests/benchmarks/organisation.py [--smoke] [--accounts N …] [--machines N] [--ways one phases]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time as wall
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.organisation_world import CLOUDS, REGIONS, Asked, Organisation, Size, Wire, account_of  # noqa: E402
from tests.benchmarks.virtual import DynamoLike, Lanes, SlackLike, Time  # noqa: E402
from tests.builders import policy, rule  # noqa: E402

from costguard.domain.errors import CostguardError, NotFoundError  # noqa: E402
from costguard.domain.money import Money  # noqa: E402
from costguard.engine.ledger.memory import Memory  # noqa: E402
from costguard.engine.run.phases.phases import Phases  # noqa: E402
from costguard.engine.run.run import RunReport, run_guard, summary  # noqa: E402
from costguard.engine.run.run_context import RunContext  # noqa: E402
from costguard.guards.rules.common import Limits, Mode  # noqa: E402
from costguard.policy.model.policy import Policy  # noqa: E402
from costguard.ports import Target  # noqa: E402

TIMEOUT, RESERVE = 900.0, 90.0
COLD_START = 1.5  # seconds, measured in README.md beside this, with room
SCAN_AT_ONCE, ACT_AT_ONCE = 20, 5
HOUR = timedelta(hours=1)

# List prices of us-east-1 in USD, as known on 2026-01-01
GB_SECOND = Decimal("0.0000166667")
LAMBDA_REQUEST = Decimal("0.20") / 1_000_000
METRIC = Decimal("0.01") / 1_000
WRITE_UNIT, READ_UNIT = Decimal("0.625") / 1_000_000, Decimal("0.125") / 1_000_000
TRANSITION = Decimal("0.025") / 1_000
OBJECT_PUT, OBJECT_GET = Decimal("0.005") / 1_000, Decimal("0.0004") / 1_000
P4D_HOUR = Decimal("21.96")


@dataclass
class Shelf:
    """An object store in memory, which takes time and counts."""

    time: Time
    kept: dict[str, bytes] = field(default_factory=dict)
    puts: int = 0
    gets: int = 0
    largest: int = 0

    def put(self, name: str, body: bytes, content_type: str) -> str:
        del content_type
        self.time.sleep(0.03 + len(body) / 50e6)
        self.puts += 1
        self.largest = max(self.largest, len(body))
        self.kept[name] = body
        return name

    def get(self, name: str) -> bytes:
        self.time.sleep(0.02 + len(body) / 80e6 if (body := self.kept.get(name)) is not None else 0.02)
        self.gets += 1
        if body is None:
            raise NotFoundError(name)
        return body


@dataclass
class Bill:
    """Functions that ran, by name: how often, seconds in all, the longest, and what memory they are given."""

    calls: dict[str, list[float]] = field(default_factory=dict)
    memory_gb: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    ledger: Counter[str] = field(default_factory=Counter)
    transitions: int = 0

    def ran(self, name: str, seconds: float, memory_gb: float) -> None:
        self.calls.setdefault(name, []).append(seconds)
        self.memory_gb[name] = memory_gb

    @property
    def gb_seconds(self) -> Decimal:
        return Decimal(str(sum(sum(took) * self.memory_gb[name] for name, took in self.calls.items())))

    @property
    def invocations(self) -> int:
        return sum(map(len, self.calls.values()))


@dataclass
class Stage:
    """One organisation, its ledger, its channel."""

    size: Size
    time: Time = field(default_factory=Time)
    asked: Asked = field(default_factory=Asked)
    chance: random.Random = field(default_factory=lambda: random.Random(9))  # noqa: S311 - faults, no secrets

    def __post_init__(self) -> None:
        self.store = DynamoLike(self.time)
        self.slack = SlackLike(self.time)
        self.objects = Shelf(self.time)
        self.policy = guarding()

    def world(self, deadline_in: float | None) -> RunContext:
        """What a new process has: token buckets that are full, and nothing remembered but the ledger."""
        deadline = None if deadline_in is None else self.time.now() + timedelta(seconds=deadline_in)
        wires = {cloud: Wire(cloud, self.time, self.asked, self.chance, deadline) for cloud in CLOUDS}
        return RunContext(
            guard="idle_gpu",
            policy=self.policy,
            targets=tuple(Target(cloud, account_of(cloud, 0), organisation=True, role="costguard") for cloud in CLOUDS),
            readings={cloud: Organisation(self.size, wire).reading for cloud, wire in wires.items()},
            executors={},
            memory=Memory.over(self.store),
            notifier=self.slack,
            clock=self.time,
            policy_now=lambda: self.policy,
            workers=Lanes(self.time),
            actors=Lanes(self.time, 16),
        )


def guarding() -> Policy:
    """Idle for a day: told, and a day later stopped, were this more than a rehearsal of the reading."""
    limits = Limits(
        actions_per_day=100_000,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=(Money(Decimal(10_000_000), "USD"),),
        local_disk=rule().limits.local_disk,
    )
    return policy(rule(limits=limits, mode=Mode.WARN))


def in_one(stage: Stage, run_id: str, bill: Bill) -> RunReport:
    """One function, as it is deployed."""
    begun = stage.time.seconds
    stage.time.sleep(COLD_START)
    world = stage.world(TIMEOUT - RESERVE)
    try:
        return run_guard(world, run_id, deadline=stage.time.now() + timedelta(seconds=TIMEOUT - RESERVE)).report
    finally:
        bill.ran("idle_gpu", stage.time.seconds - begun, 0.5)


def in_phases(stage: Stage, run_id: str, bill: Bill) -> RunReport:
    """As the state machine calls them."""

    def called(name: str, gb: float, do: str, *part: int) -> object:
        begun = stage.time.seconds
        stage.time.sleep(COLD_START)
        phases = Phases(stage.world(TIMEOUT - RESERVE), run_id, stage.objects)
        cpu, asked = wall.process_time(), sum(stage.store.sent.requests.values())
        try:
            deadline = stage.time.now() + timedelta(seconds=TIMEOUT - RESERVE)
            timed = {"deadline": deadline} if do != "targets" else {}
            return getattr(phases, do)(*part, **timed)
        finally:
            worked = wall.process_time() - cpu
            stage.time.sleep(worked)  # what it really works out takes its time, too
            bill.ran(name, stage.time.seconds - begun, gb)
            bill.cpu[name] = bill.cpu.get(name, 0.0) + worked
            bill.ledger[name] += sum(stage.store.sent.requests.values()) - asked
            bill.transitions += 1

    parts = called("targets", 0.5, "targets")
    assert isinstance(parts, int)
    list(Lanes(stage.time, SCAN_AT_ONCE).each([partial(called, "scan", 0.5, "scan", part) for part in range(parts)]))
    due = called("plan", 3.0, "plan")
    assert isinstance(due, int)
    list(Lanes(stage.time, ACT_AT_ONCE).each([partial(called, "act", 0.5, "act", part) for part in range(due)]))
    report = called("report", 3.0, "report")
    assert isinstance(report, RunReport)
    return report


WAYS = {"one": in_one, "phases": in_phases}


def lived(way: str, size: Size, runs: int) -> Iterator[str]:
    """So many hourly runs of a way, and what the last took."""
    stage = Stage(size)
    for number in range(runs):
        stage.asked.requests.clear()
        stage.asked.metrics = 0
        stage.store.sent = type(stage.store.sent)()
        stage.objects.puts = stage.objects.gets = 0
        bill, begun, cpu = Bill(), stage.time.seconds, wall.process_time()
        failed: CostguardError | None = None
        report: RunReport | None = None
        try:
            report = WAYS[way](stage, f"run-{number}", bill)
        except CostguardError as err:
            failed = err
        took = stage.time.seconds - begun
        yield from figures(way, size, number, took, wall.process_time() - cpu, stage, bill, report)
        if failed is not None:
            yield f"    FAILED {type(failed).__name__}: {str(failed)[:200]}"
            return
        stage.time.seconds = begun + max(3600.0, took)


def figures(
    way: str, size: Size, number: int, took: float, cpu: float, stage: Stage, bill: Bill, report: RunReport | None
) -> Iterator[str]:
    sent, asked = stage.store.sent, stage.asked
    instances = 3 * size.accounts * size.machines
    plan = report.plan if report else None
    shards = sum(size.accounts * len(REGIONS[cloud]) for cloud in CLOUDS)
    unread = {gap.shard for gap in plan.gaps if gap.what == "inventory"} if plan else set()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    yield (
        f"{way} {size.accounts:,} accounts a cloud, {shards:,} shards, {instances:,} accelerators, run {number + 1}: "
        f"{took:,.0f} s, {asked.total():,} requests ({asked.total() / instances:.2f} an accelerator), "
        f"{len(unread):,} shards unread, CPU {cpu:.1f} s, peak {rss} MB"
    )
    if report is not None:
        said = summary(report)
        yield f"    {said.get('findings')} due {said.get('due')} gaps {said.get('gaps')} notices {said.get('notices')}"
    longest = {name: (len(times), round(max(times), 1)) for name, times in bill.calls.items()}
    yield f"    functions (calls, longest s): {longest}; GB-s {bill.gb_seconds:.0f}"
    if bill.cpu:
        by_phase = (f"{name} {bill.ledger[name]:,} in {bill.cpu[name]:.1f} s" for name in bill.calls)
        yield f"    ledger requests and CPU by phase: {', '.join(by_phase)}"
    yield f"    ledger: {dict(sent.requests)}, {sent.read_units:,.0f} RRU, {sent.write_units:,.0f} WRU"
    yield f"    most asked: {sent.kinds.most_common(6)}"
    largest = sorted(sent.largest.items(), key=lambda one: -one[1][0])[:4]
    yield f"    largest records: {[(kind, f'{size:,}') for kind, (size, _) in largest]}; blob {stage.objects.largest:,}"
    metrics = asked.metrics * METRIC
    functions = bill.gb_seconds * GB_SECOND + bill.invocations * LAMBDA_REQUEST + bill.transitions * TRANSITION
    ledger = Decimal(str(sent.write_units)) * WRITE_UNIT + Decimal(str(sent.read_units)) * READ_UNIT
    objects = stage.objects.puts * OBJECT_PUT + stage.objects.gets * OBJECT_GET
    day = 24 * (metrics + functions + ledger + objects)
    yield (
        f"    a day like this: metrics {24 * metrics:.2f}, functions {24 * functions:.2f}, ledger {24 * ledger:.2f}, "
        f"objects {24 * objects:.2f} = {day:.2f} USD, {day / P4D_HOUR:.2f} hours of an idle p4d"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few accounts, in seconds")
    parser.add_argument("--accounts", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--machines", type=int, default=3)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    asked = parser.parse_args(arguments)
    if asked.smoke:
        asked.accounts = [10]
    for accounts in asked.accounts:
        for way in asked.ways:
            for line in lived(way, Size(accounts, asked.machines), asked.runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
