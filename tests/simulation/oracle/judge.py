"""Every effect is judged when it happens, on what the process that caused it had last been shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tests.simulation.budgets import Demand
from tests.simulation.chronicle import Attempt, Chronicle, Effect, Look, PolicyRead, Told
from tests.simulation.oracle import truth
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import PolicyVersion
from tests.simulation.trace import Trace

from cloudstand.world.cloud import World
from cloudstand.world.records import Machine
from costguard.domain.actions import Verb
from costguard.domain.resources import InstanceDetail

SKEW = timedelta(minutes=20)  # two clocks, each at most ten minutes off


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: its number in DESIGN.md (0: liveness), when, on what, and what was wrong."""

    rule: int
    at: datetime
    machine: str
    what: str

    def __str__(self) -> str:
        name = f"NEVER rule {self.rule}" if self.rule else "liveness"
        return f"{self.at:%m-%d %H:%M:%S} {name}: {self.machine}: {self.what}"


@dataclass(frozen=True, slots=True)
class Judged:
    """One effect and what bears on it: the last look of its process, and the policy that process went by.

    `demand` is what a budget asks, where the effect is the budget guard's; `ruled` the rules that earlier effects were
    found to be by, by the number of the effect.
    """

    effect: Effect
    machine: Machine
    look: Look
    shown: InstanceDetail
    read: PolicyRead
    version: PolicyVersion
    rule: RuleSpec
    world: World
    chronicle: Chronicle
    versions: Sequence[PolicyVersion]
    ruled: Mapping[int, str]
    demand: Demand | None = None


Check = Callable[[Judged], str]
"""What is wrong with an effect by one rule; empty when nothing is."""


_AS_THE_CLOUDS = PolicyVersion((), terminate_alone=True)


class Judge:
    """Keeps the violations of one simulation."""

    def __init__(
        self,
        world: World,
        chronicle: Chronicle,
        versions: Sequence[PolicyVersion],
        checks: Sequence[tuple[int, Check]],
        budget_checks: Sequence[tuple[int, Check]],
        trace: Trace,
        *,
        durable: bool,
    ) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self._chronicle = chronicle
        self._versions = versions
        self._checks = checks
        self._budget_checks = budget_checks
        self._ruled: dict[int, str] = {}
        self._trace = trace
        self._durable = durable

    def watch(self, effect: Effect) -> None:
        """Judge one effect at the moment it happens."""
        for number, what in self._found(effect):
            self.add(Violation(number, effect.at, effect.machine, f"{effect.verb.value}: {what}"))

    def watch_attempt(self, attempt: Attempt) -> None:
        """Rule 12: nothing is called that the cloud was seen to bar, though it would refuse that anyway.

        Rule 6: no guard calls to stop what another guard has stopped in the same run of the machine.
        """
        machine = self._world.machines[attempt.machine]
        looks = [one for one in self._chronicle.looks.get(attempt.machine, []) if one.process is attempt.process]
        shown = looks[-1].shown.protected_by if looks and looks[-1].shown is not None else ()
        if truth.barred(shown, _AS_THE_CLOUDS, attempt.verb):
            what = f"{attempt.verb.value}: called, though the cloud was seen to bar it: {shown}"
            self.add(Violation(12, attempt.at, attempt.machine, what))
        for effect in self._chronicle.effects:
            same = (effect.machine, effect.verb, attempt.verb) == (attempt.machine, Verb.STOP, Verb.STOP)
            if same and effect.changed and effect.process.guard != attempt.guard and effect.at >= machine.runs[-1][0]:
                what = f"stop: called by {attempt.guard}, though {effect.process.guard} had stopped it"
                self.add(Violation(6, attempt.at, attempt.machine, what))

    def honest_dates(self, told: Told) -> None:
        """Rule 15: what a message announces still lies ahead when it is sent."""
        if told.not_before is not None and told.not_before < told.asked - SKEW:
            what = f"told that it comes not before {told.not_before:%m-%d %H:%M}, which is past: {told.title}"
            self.add(Violation(15, told.at, ", ".join(sorted(told.machines)), what))

    def add(self, violation: Violation) -> None:
        """Keep one, and show it where it happened."""
        self.violations.append(violation)
        self._trace.note(violation.at, f"VIOLATION {violation}")

    def _found(self, effect: Effect) -> Iterator[tuple[int, str]]:
        if not effect.intent_written:
            yield 19, "no intent stands in the audit"
        if not self._durable:
            yield 19, "by a ledger that does not outlive its process"
        look = _last(self._chronicle.looks.get(effect.machine, []), effect)
        if look is None or look.shown is None:
            yield 8, "the process that did it had not looked at it"
            return
        read = next((one for one in reversed(self._chronicle.policies) if _of_one_task(one, effect)), None)
        good = read
        if read is not None and read.version is None:
            good = next((one for one in reversed(self._chronicle.policies) if one.version is not None), None)
        if read is None or good is None or good.version is None:
            yield 11, "there was no policy that could be read"
            return
        version = self._versions[good.version]
        if good is not read and not _recent(good, effect):
            yield 11, f"by a policy read last on {good.at:%m-%d %H:%M}"
        by_budget = effect.process.guard == "budget"
        rule = truth.rule_of(look.shown, version) if not by_budget else None
        demands = _demands(look.shown, version) if by_budget else []
        if rule is None and not demands:
            yield 11, "no rule of the policy applies to it"
            return
        yield from self._broken(
            Judged(
                effect=effect,
                machine=self._world.machines[effect.machine],
                look=look,
                shown=look.shown,
                read=read,
                version=version,
                rule=rule or demands[0].rule,
                world=self._world,
                chronicle=self._chronicle,
                versions=self._versions,
                ruled=self._ruled,
            ),
            demands,
        )

    def _broken(self, judged: Judged, demands: Sequence[Demand]) -> list[tuple[int, str]]:
        if demands:
            return self._by_the_best_of(demands, judged)
        return [(number, what) for number, check in self._checks for what in [check(judged)] if what]

    def _by_the_best_of(self, demands: Sequence[Demand], judged: Judged) -> list[tuple[int, str]]:
        """What is wrong by the demand that speaks most for the effect: one that nothing speaks against is enough."""
        tries = []
        for demand in demands:
            asked = replace(judged, rule=demand.rule, demand=demand)
            found = [(number, what) for number, check in self._budget_checks for what in [check(asked)] if what]
            tries.append((len(found), demand.rule.name, found))
        _, name, wrong = min(tries)
        self._ruled[judged.effect.number] = name
        return [(number, f"by {name}: {what}") for number, what in wrong]


def _demands(shown: InstanceDetail, version: PolicyVersion) -> list[Demand]:
    instance = shown.instance
    return [one for budget in version.budgets for one in budget.demands(instance.ref.cloud, instance.tags)]


def _of_one_task(read: PolicyRead, effect: Effect) -> bool:
    """Shards are acted in side by side: what another shard's task has read says nothing of this call."""
    return read.process is effect.process and read.task == effect.task


def _recent(good: PolicyRead, effect: Effect) -> bool:
    return (effect.at - good.at).total_seconds() <= 7 * 86_400 + 1_200  # two clocks, each ten minutes off


def _last(entries: Sequence[truth.Entry], effect: Effect) -> truth.Entry | None:
    return next((entry for entry in reversed(entries) if entry.process is effect.process), None)
