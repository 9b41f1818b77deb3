"""What stopping hundreds of machines takes at the vendors' rates, in virtual time, with the real engine.

python tests/benchmarks/enforcing.py [--smoke] [--clouds aws …] [--accounts N] [--machines N] [--threads N …]

Every machine is idle. The first run tells their owners, the second stops them a day later; what is printed is of the
second. Threads take turns within one process: `--threads 1` is one shard after another. Virtual time has no contention:
two threads that write the same record at once are not seen here, and are in `tests.races` and the simulation.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measuring import machine
from tests.benchmarks.organisation_world import (
    CLOUDS,
    LATENCY,
    RATES,
    Asked,
    Organisation,
    Size,
    Wire,
    account_of,
)
from tests.benchmarks.virtual import DynamoLike, Lanes, SlackLike, Time
from tests.builders import policy, rule

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import run_guard
from costguard.engine.run.run_context import RunContext
from costguard.guards.rules.common import Scarce, Step
from costguard.policy.model.policy import Policy
from costguard.ports import Target

_STOP = {"aws": "ec2:StopInstances", "alibaba": "ecs:StopInstances", "tencent": "cvm:StopInstances"}
_PROTECTION = {"aws": "ec2:DescribeInstanceAttribute"}  # a request an attribute; the others show it in the listing
_FAMILY = {"aws": "ec2:start-stop"}
_DAY = timedelta(hours=24)
_EACH = ("cloud requests a stop", "ledger calls a stop")


@dataclass
class Acting(Organisation):
    """An organisation whose machines can be stopped; `stops` are the moments at which one was."""

    stops: list[float] = field(default_factory=list)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """None, after as many requests as the cloud takes to say so."""
        for _ in wanted if self.wire.cloud in _PROTECTION else ():
            self.wire.ask(ref.account, ref.region, _PROTECTION[self.wire.cloud])
        return ()

    def execute(self, action: Action) -> Receipt:
        """One stop, at the pace of stops."""
        assert action.verb is Verb.STOP
        cloud, subject, wire = self.wire.cloud, action.subject, self.wire
        family = _FAMILY.get(cloud, _STOP[cloud])
        wire.time.sleep(wire.patience.pacer.reserve(subject.account, subject.region, family))
        wire.asked.requests[cloud, _STOP[cloud]] += 1
        wire.time.sleep(LATENCY[cloud])
        self.stops.append(wire.time.seconds)
        self.stopped.add(subject)
        return Receipt("r-1")


@dataclass
class Stage:
    """One cloud's organisation, its ledger and its channel."""

    cloud: str
    size: Size
    threads: int
    time: Time = field(default_factory=Time)
    asked: Asked = field(default_factory=Asked)

    def __post_init__(self) -> None:
        self.store = DynamoLike(self.time)
        wire = Wire(self.cloud, self.time, self.asked, random.Random(9), faults=0.0)  # noqa: S311 - no secrets
        self.machines = Acting(self.size, wire)
        self.policy = _enforcing()

    def world(self) -> RunContext:
        """What a new process has."""
        self.machines.wire.__dict__.pop("patience", None)  # token buckets are full
        return RunContext(
            guard="idle_gpu",
            policy=self.policy,
            targets=(Target(self.cloud, account_of(self.cloud, 0), organisation=True, role="costguard"),),
            readings={self.cloud: self.machines.reading},
            executors={self.cloud: self.machines},
            memory=Memory.over(self.store),
            notifier=SlackLike(self.time),
            clock=self.time,
            policy_now=lambda: self.policy,
            workers=Lanes(self.time),
            actors=Lanes(self.time, self.threads),
        )


def _enforcing() -> Policy:
    plenty = (Money(Decimal(10_000_000), "USD"),)
    limits = replace(
        rule().limits,
        actions_per_day=100_000,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=plenty,
        scarce=Scarce.STOP,
    )
    ladder = Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, _DAY)
    return policy(rule(limits=limits, ladder=ladder), messages_per_day=1_000)  # all are told by the first run


def stopped(cloud: str, size: Size, threads: int) -> str:
    """A row of the table: what the run took that stops every machine."""
    stage = Stage(cloud, size, threads)
    run_guard(stage.world(), "told", deadline=stage.time.now() + timedelta(minutes=15))  # a function's
    stage.time.sleep(_DAY.total_seconds() + 3600)
    quiet = _requests_of_a_run(stage)
    stage.asked.requests.clear()
    stage.store.sent = type(stage.store.sent)()
    begun, stops = stage.time.seconds, stage.machines.stops
    run_guard(stage.world(), "stopped")
    wanted = size.accounts * size.machines
    if len(stops) != wanted:
        message = f"{len(stops)} of {wanted} machines were stopped"
        raise SystemExit(message)
    asked, ledger = stage.asked.total(), sum(stage.store.sent.requests.values())
    busiest = max(Counter(int(at) for at in stops).values())
    return (
        f"| {cloud} | {size.accounts} | {wanted} | {threads} | {stage.time.seconds - begun:.0f} | "
        f"{max(stops) - begun:.0f} | {(asked - quiet) / wanted:.1f} | {ledger / wanted:.1f} | {busiest} |"
    )


def _requests_of_a_run(stage: Stage) -> int:
    """Requests to the cloud of a run that only looks: those are not of the stops."""
    from costguard.engine.run.run import plan_guard

    before = stage.asked.total()
    at = stage.time.seconds
    plan_guard(stage.world(), "looked")
    stage.time.seconds = at
    return stage.asked.total() - before


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few machines, in seconds")
    parser.add_argument("--clouds", nargs="+", default=list(CLOUDS), choices=list(CLOUDS))
    parser.add_argument("--accounts", type=int, default=10)
    parser.add_argument("--machines", type=int, default=30, help="of each account, all idle, in one region")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 16])
    asked = parser.parse_args(arguments)
    if asked.smoke:
        asked.accounts, asked.machines = 2, 3
    paces = {cloud: RATES[cloud][_FAMILY.get(cloud, _STOP[cloud])][1] for cloud in CLOUDS}
    print(f"{machine('botocore')}; virtual time, latency {LATENCY}, stops a second and region {paces}\n")
    names = "cloud", "accounts", "stops", "threads", "run s", "last stop after s", *_EACH, "most stops in a second"
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for cloud in asked.clouds:
        for threads in asked.threads:
            print(stopped(cloud, Size(asked.accounts, asked.machines, idle_every=1), threads), flush=True)


if __name__ == "__main__":
    main()
