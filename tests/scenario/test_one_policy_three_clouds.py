"""Parity: the same machines stand on three clouds, one policy guards them, and each cloud is read and acted on by wire.

What differs is named: the roles in `DIFFERENT` and the rows of docs/parity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import alibaba_machine, aws_machine, tencent_machine
from cloudstand.tencent.core.settings import CardSeries
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing, Keeper, ManagedBy
from cloudstand.world.workload import Workload
from costguard.bootstrap import open_run_context
from costguard.cli.sandbox.running import EXTERNAL_ID, ROLE, Sandbox
from costguard.domain.actions import Verb
from costguard.engine.run.run import RunReport, run_guard
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.settings import Settings

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
CLOUDS = ("aws", "alibaba", "tencent")
REACHED = f"regions: all, organisation: true, role: {ROLE}, external_id: {EXTERNAL_ID}"
POLICY = f"""
version: 1
mode: enforce
accounts:
  - {{cloud: aws, id: "111122223333", {REACHED}}}
  - {{cloud: alibaba, id: "1234567890123456", {REACHED}}}
  - {{cloud: tencent, id: "100012345678", {REACHED}}}
notify: {{default: "slack:#gpu"}}
protect: {{termination_protection_bars: terminate}}
idle_gpu:
  - name: everything
    applies_when_all: {{tags: {{team: research}}}}
    idle_when_all: {{lasting: 4h, every_gpu_max_below: 5%}}
    then: [warn, {{stop: {{wait: 20h}}}}, {{terminate: {{wait: 24h}}}}]
    safety:
      actions_per_day: 50
      fleet_share_per_day: 100%
      hourly_cost_stopped_per_day: [1000 USD, 1000 CNY]
      local_disk: keep
"""

# role → instance types on the three clouds: one card, four cards, one card with a local disk
ONE = {"aws": "g5g.xlarge", "alibaba": "ecs.gn7i-c8g1.2xlarge", "tencent": "GN7.2XLARGE32"}
FOUR = {"aws": "g4dn.12xlarge", "alibaba": "ecs.gn7i-c32g1.32xlarge", "tencent": "GN7.20XLARGE320"}
LOCAL = {"aws": "g5.xlarge", "alibaba": "ecs.gn5-c4g1.xlarge", "tencent": "GI3X.8XLARGE64"}
MACHINES: Mapping[str, Callable[..., MachineSpec]] = {
    "aws": lambda name, work, at, kind, **more: aws_machine(name, kind, work, at, **more),
    "alibaba": alibaba_machine,
    "tencent": tencent_machine,
}
DEVICES = {"aws": "/dev/sdf", "alibaba": "/dev/xvdb", "tencent": "vdb"}
KINDS = {"aws": "gp3", "alibaba": "cloud_essd", "tencent": "CLOUD_SSD"}


def fleet() -> Iterator[MachineSpec]:
    for cloud in CLOUDS:
        yield from machines_on(cloud)


def machines_on(cloud: str) -> Iterator[MachineSpec]:
    def stands(
        role: str, types: Mapping[str, str], work: Workload, *, age: timedelta = 10 * DAY, **more: Any
    ) -> MachineSpec:
        tags = {"team": "research", "owner": "vision", **more.pop("tags", {})}
        return MACHINES[cloud](role, work, STARTS_AT - age, types[cloud], tags=tags, **more)

    one = next(iter(stands("x", ONE, does.idle()).disks))
    second = Disk(50, DEVICES[cloud], KINDS[cloud], deleted_with_instance=False)
    yield stands("forgotten", ONE, does.idle(), disks=(one, second))
    yield stands("busy", ONE, does.busy())
    yield stands("stuck-exporter", ONE, does.stuck_exporter())
    yield stands("comes-back", ONE, does.comes_back(STARTS_AT + 12 * HOUR))
    yield stands("one-of-four-works", FOUR, does.partly_idle(1, 2, 3))
    yield stands("scratch-disk", LOCAL, does.idle())
    yield stands("kept-by-tag", ONE, does.idle(), tags={"do-not-stop": "yes"})
    yield stands("kept-by-cloud", ONE, does.idle(), protections=("termination_protection",))
    yield stands("no-agent", ONE, does.no_data())
    yield stands("silent-agent", ONE, does.agent_dies(STARTS_AT - 2 * HOUR))
    yield stands("just-born", ONE, does.idle(), age=HOUR)
    yield stands("cluster-node", ONE, does.idle(), **NODES[cloud])
    yield stands("paid-ahead", ONE, does.idle(), billing=Billing.RESERVED if cloud == "aws" else Billing.PREPAID)


NODES: Mapping[str, Mapping[str, Any]] = {
    "aws": {"managed_by": ManagedBy(Keeper.KUBERNETES, "prod"), "tags": {"eks:cluster-name": "prod"}},
    "alibaba": {"managed_by": ManagedBy(Keeper.KUBERNETES, "prod"), "tags": {"ack.aliyun.com": "prod"}},
    "tencent": {"managed_by": ManagedBy(Keeper.KUBERNETES, "prod")},
}


@dataclass
class Life:
    """What became of one role on one cloud, run by run."""

    verdicts: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    end: str = ""


DIFFERENT = {
    # a capacity reservation on AWS, a prepaid machine on the others
    ("aws", "paid-ahead"): "reserved",
    # CloudWatch still lists the metric of an agent that fell silent; the others know no series without samples
    ("aws", "silent-agent"): "no_data",
}


def verdict_words(report: RunReport, day: int) -> Iterator[tuple[tuple[str, str], str]]:
    assert report.plan is not None
    for finding in report.plan.findings:
        yield (finding.subject.cloud, finding.name), f"{day} {finding.verdict.value} {finding.reason.code.value}"  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def lives() -> Mapping[tuple[str, str], Life]:
    """Seven daily runs, all by wire."""
    found: dict[tuple[str, str], Life] = {}
    policy = load_policy(PolicyText({"costguard.yaml": POLICY}, "parity"))
    with Sandbox.start(tuple(fleet())) as sandbox:
        names = {spec.native_id: (spec.cloud, spec.name) for spec in sandbox.world.fleet}
        with open_run_context(
            sandbox.settings(Settings()), "idle_gpu", policy=policy, policy_now=lambda: policy, clock=sandbox.clock
        ) as world:
            for day in range(7):
                report = run_guard(world, f"day-{day}").report
                assert report.plan is not None
                assert report.plan.gaps == ()
                for who, words in verdict_words(report, day):
                    found.setdefault(who, Life()).verdicts.append(words)
                for action in report.plan.due:
                    verb = f"{day} {action.verb.value}"
                    who = names[action.subject.native_id]
                    if action.verb is not Verb.SNAPSHOT or found[who].due[-1] != verb:
                        found[who].due.append(verb)
                for one in report.plan.held:
                    found[names[one.action.subject.native_id]].held.append(f"{day} {one.reason.code.value}")
                assert [result for result in report.results if result.reason is not None] == []
                sandbox.advance(DAY)
        machines = sandbox.world.machines
        for native_id, who in names.items():
            found.setdefault(who, Life()).end = machines[native_id].state.value
    return found


ROLES = sorted({spec.name for spec in machines_on("aws")})


@pytest.mark.parametrize("role", ROLES)
def test_a_role_lives_the_same_life_on_every_cloud(lives: Mapping[tuple[str, str], Life], role: str) -> None:
    alike = [cloud for cloud in CLOUDS if (cloud, role) not in DIFFERENT]
    first = lives[alike[0], role]
    for cloud in alike[1:]:
        assert lives[cloud, role] == first
    for cloud in CLOUDS:
        told = lives[cloud, role]
        assert (told.due, told.end) == (first.due, first.end)


def test_the_forgotten_machine_climbs_the_whole_ladder(lives: Mapping[tuple[str, str], Life]) -> None:
    for cloud in CLOUDS:
        steps = [step.split()[1] for step in lives[cloud, "forgotten"].due]
        assert steps == ["warn", "stop", "warn", "snapshot", "terminate"]
        assert lives[cloud, "forgotten"].end == "terminated"


def test_only_what_was_idle_for_the_whole_window_was_touched(lives: Mapping[tuple[str, str], Life]) -> None:
    assert {name for (_, name), life in lives.items() if life.end != "running"} == {
        "forgotten",
        "just-born",
        "kept-by-cloud",
    }


def test_an_exporter_stuck_at_0_is_contradicted_by_what_the_rule_does_not_name(
    lives: Mapping[tuple[str, str], Life],
) -> None:
    for cloud in CLOUDS:
        life = lives[cloud, "stuck-exporter"]
        assert {words.split(" ", 1)[1] for words in life.verdicts} == {"unmeasured contradicted"}
        assert (life.due, life.end) == ([], "running")


def test_what_the_cloud_protects_from_termination_is_stopped_and_held_there(
    lives: Mapping[tuple[str, str], Life],
) -> None:
    for cloud in CLOUDS:
        life = lives[cloud, "kept-by-cloud"]
        assert [step.split()[1] for step in life.due] == ["warn", "stop"]
        assert {reason.split()[1] for reason in life.held} == {"protected_by_cloud"}
        assert life.end == "stopped"


def test_where_monitor_tells_no_cards_which_of_them_are_idle_is_not_told() -> None:
    """The mean over four cards: that one works is seen all the same."""
    policy = load_policy(PolicyText({"costguard.yaml": POLICY}, "parity"))
    with Sandbox.start(tuple(machines_on("tencent"))) as sandbox:
        assert sandbox.tencent is not None
        sandbox.tencent.monitor_cards = CardSeries.UNDECLARED
        with open_run_context(
            sandbox.settings(Settings()), "idle_gpu", policy=policy, policy_now=lambda: policy, clock=sandbox.clock
        ) as world:
            told = {name: words for (_, name), words in verdict_words(run_guard(world, "day-0").report, 0)}
    assert told["one-of-four-works"] == "0 compliant busy"
    assert told["forgotten"] == "0 violation idle"


def test_every_named_difference_is_one(lives: Mapping[tuple[str, str], Life]) -> None:
    for cloud, role in DIFFERENT:
        others = [lives[other, role].verdicts for other in CLOUDS if (other, role) not in DIFFERENT]
        assert lives[cloud, role].verdicts not in others, (cloud, role)
