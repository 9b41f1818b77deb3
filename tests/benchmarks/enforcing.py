"""What stopping hundreds of machines takes at the vendors' rates, in virtual time, with the real engine.

python tests/benchmarks/enforcing.py [--smoke] [--clouds aws …] [--accounts N] [--machines N] [--threads N …]
    [--ending N] [--latency MS] [--ledger-ms MS]

Every machine is idle. The first run tells their owners, the second stops them a day later; what is printed is of the
second. With `--ending` so many machines of each account were stopped a week before: the run that stops the others
copies their disks, that an hour later sees the copies whole, and the one after terminates; what is printed is of all
three. Threads take turns within one process: `--threads 1` is one shard after another. Virtual time has no contention:
two threads that write the same record at once are not seen here, and are in `tests.races` and the simulation.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
from tests.benchmarks.virtual import DynamoLike, Lanes, SlackLike, Time, Waits
from tests.builders import policy, rule

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory, Snapshot, SnapshotState
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import run_guard
from costguard.engine.run.run_context import RunContext
from costguard.guards.rules.common import Scarce, Step
from costguard.policy.model.policy import Policy
from costguard.ports import Target
from costguard.providers.aws.core.session import family_of

_CALLS: Mapping[Verb, Mapping[str, str]] = {
    Verb.STOP: {"aws": "ec2:StopInstances", "alibaba": "ecs:StopInstances", "tencent": "cvm:StopInstances"},
    Verb.SNAPSHOT: {"aws": "ec2:CreateSnapshot", "alibaba": "ecs:CreateSnapshot", "tencent": "cbs:CreateSnapshot"},
    Verb.TERMINATE: {
        "aws": "ec2:TerminateInstances",
        "alibaba": "ecs:DeleteInstances",
        "tencent": "cvm:TerminateInstances",
    },
}
_STOP = _CALLS[Verb.STOP]
_PROTECTION = {"aws": "ec2:DescribeInstanceAttribute"}  # a request an attribute; the others show it in the listing
_FAMILY = {"aws": "ec2:start-stop"}
_DAY, _WEEK, _HOUR = timedelta(hours=24), timedelta(days=7), timedelta(hours=1)
_EACH = ("cloud requests a step", "ledger calls a step")


@dataclass
class Acting(Organisation):
    """An organisation whose machines can be stopped, copied and terminated; `done` are the moments at which one was.

    Of each account the first `ending` machines are idle from the beginning, the others once `all_idle` is set.
    """

    ending: int = 0
    all_idle: bool = True
    done: dict[Verb, list[float]] = field(default_factory=lambda: {verb: [] for verb in _CALLS})
    copies: dict[ResourceRef, Snapshot] = field(default_factory=dict)
    gone: set[ResourceRef] = field(default_factory=set)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """None, after as many requests as the cloud takes to say so."""
        for _ in wanted if self.wire.cloud in _PROTECTION else ():
            self.wire.ask(ref.account, ref.region, _PROTECTION[self.wire.cloud])
        return ()

    def read(self, shard: Shard) -> Inventory:
        """Without those that were terminated."""
        whole = super().read(shard)
        return replace(whole, instances=tuple(each for each in whole.instances if each.ref not in self.gone))

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """With the copies that were made."""
        found = super().details([ref for ref in refs if ref not in self.gone] or refs[:1])
        return {
            ref: replace(each, snapshots=tuple(self.copies[one.ref] for one in each.volumes if one.ref in self.copies))
            for ref, each in found.items()
            if ref not in self.gone
        }

    def execute(self, action: Action) -> Receipt:
        """One call, at the pace of such calls."""
        cloud, subject, wire = self.wire.cloud, action.subject, self.wire
        operation = _CALLS[action.verb][cloud]
        family = family_of(operation, changes=True) if cloud == "aws" else operation
        wire.time.sleep(wire.patience.pacer.reserve(subject.account, subject.region, family))
        wire.asked.requests[cloud, operation] += 1
        wire.time.sleep(wire.latency)
        self.done[action.verb].append(wire.time.seconds)
        if action.verb is Verb.STOP:
            self.stopped.add(subject)
        elif action.verb is Verb.TERMINATE:
            self.gone.add(subject)
        else:
            volume = action.resource
            copy = volume.sibling("snapshot", f"snap-{len(self.copies)}")
            done = SnapshotState.COMPLETED
            self.copies[volume] = Snapshot(copy, volume, done, wire.time.now(), action.decision_id)
            return Receipt("r-1", copy.native_id)
        return Receipt("r-1")

    def _is_idle(self, instance: Instance) -> bool:
        return self.all_idle or int(instance.ref.native_id[-5:]) < self.ending


@dataclass
class Stage:
    """One cloud's organisation, its ledger and its channel."""

    cloud: str
    size: Size
    threads: int
    ending: int = 0
    distance: float | None = None
    waits: Waits | None = None
    time: Time = field(default_factory=Time)
    asked: Asked = field(default_factory=Asked)

    def __post_init__(self) -> None:
        self.store = DynamoLike(self.time, self.waits)
        wire = Wire(self.cloud, self.time, self.asked, random.Random(9), faults=0.0, distance=self.distance)  # noqa: S311
        self.machines = Acting(self.size, wire, ending=self.ending, all_idle=not self.ending)
        self.policy = _enforcing(terminates=self.ending > 0)

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


def _enforcing(*, terminates: bool) -> Policy:
    plenty = (Money(Decimal(10_000_000), "USD"),)
    limits = replace(
        rule().limits,
        actions_per_day=100_000,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=plenty,
        scarce=Scarce.STOP,
    )
    ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, _DAY))
    made = policy(rule(limits=limits, ladder=(*ladder, Step(Verb.TERMINATE, _WEEK)) if terminates else ladder))
    return replace(made, messages_per_day=10_000)  # else a channel takes days to be told of hundreds


def enforced(stage: Stage) -> str:
    """A row of the table: what the runs took that stop every machine, and end those that are to be ended."""
    _prepare(stage)
    quiet = _requests_of_a_run(stage)
    stage.asked.requests.clear()
    stage.store.sent = type(stage.store.sent)()
    begun, done, took = stage.time.seconds, stage.machines.done, 0.0
    for moments in done.values():
        moments.clear()
    runs = 3 if stage.ending else 1  # a case climbs one rung a run: copied, seen copied, terminated
    for number in range(runs):
        started = stage.time.seconds
        run_guard(stage.world(), f"measured {number}")
        took += stage.time.seconds - started
        if number < runs - 1:
            stage.time.sleep(_HOUR.total_seconds())
    ended = stage.size.accounts * stage.ending
    wanted = {
        Verb.STOP: stage.size.accounts * stage.size.machines - ended,
        Verb.SNAPSHOT: ended,
        Verb.TERMINATE: ended,
    }
    counted = {verb: len(moments) for verb, moments in done.items()}
    if counted != wanted:
        message = f"{counted} were done, {wanted} are to be"
        raise SystemExit(message)
    steps, asked, ledger = sum(wanted.values()), stage.asked.total(), sum(stage.store.sent.requests.values())
    stops = done[Verb.STOP]
    busiest = max(Counter(int(at) for at in stops).values())
    what = "/".join(str(wanted[verb]) for verb in _CALLS) if stage.ending else str(wanted[Verb.STOP])
    return (
        f"| {stage.cloud} | {stage.size.accounts} | {what} | {stage.threads} | {took:.0f} | "
        f"{max(stops) - begun:.0f} | {(asked - runs * quiet) / steps:.1f} | {ledger / steps:.1f} | {busiest} |"
    )


def _prepare(stage: Stage) -> None:
    """Until the run that stops is due: everybody was told, and what is to be ended was stopped a week before."""
    _tell(stage, "told")
    stage.time.sleep((_DAY + _HOUR).total_seconds())
    if not stage.ending:
        return
    run_guard(stage.world(), "first stops")
    stage.time.sleep(_HOUR.total_seconds())
    run_guard(stage.world(), "seen stopped")
    stage.time.sleep(_HOUR.total_seconds())
    run_guard(stage.world(), "told of the end")  # from when the wait of a week counts
    stage.time.sleep((_WEEK - _DAY).total_seconds())
    stage.machines.all_idle = True
    _tell(stage, "others told")
    stage.time.sleep((_DAY + _HOUR).total_seconds())


def _tell(stage: Stage, run_id: str) -> None:
    """As many runs as one channel takes to be told of all: a message a second, and a run waits for half a minute."""
    for number in itertools.count():
        if not run_guard(stage.world(), f"{run_id} {number}").report.waiting:
            return
        stage.time.sleep(60)


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
    parser.add_argument("--ending", type=int, default=0, help="of each account, stopped a week before")
    parser.add_argument("--latency", type=float, metavar="MS", help="of a request to a cloud")
    parser.add_argument("--ledger-ms", type=float, metavar="MS", help="of each request to the ledger")
    asked = parser.parse_args(arguments)
    if asked.smoke:
        asked.accounts, asked.machines, asked.ending = 2, 3, 1
    distance = None if asked.latency is None else asked.latency / 1000
    waits = None if asked.ledger_ms is None else Waits(*[asked.ledger_ms / 1000] * 4)
    paces = {cloud: RATES[cloud][_FAMILY.get(cloud, _STOP[cloud])][1] for cloud in CLOUDS}
    print(f"{machine('botocore')}; virtual time, latency {distance or LATENCY}, stops a second and region {paces}\n")
    steps = "stops/copies/ends" if asked.ending else "stops"
    names = "cloud", "accounts", steps, "threads", "run s", "last stop after s", *_EACH, "most stops in a second"
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for cloud in asked.clouds:
        for threads in asked.threads:
            size = Size(asked.accounts, asked.machines, idle_every=1)
            print(enforced(Stage(cloud, size, threads, asked.ending, distance, waits)), flush=True)


if __name__ == "__main__":
    main()
