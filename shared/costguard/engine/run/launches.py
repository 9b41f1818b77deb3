"""Who launched what: asked of the audit trail, rarely and late, for machines whose owner nobody else can name.

Nothing that is done depends on it. Where a trail cannot be read the owner is whom the policy falls back to, and the gap
is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from costguard.domain.errors import ProviderError
from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, Launch
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import gap_of
from costguard.planning import PlanInputs, judged
from costguard.policy.model.ownership import launch_matters
from costguard.ports import CloudAuditLog

LAUNCHES = "launches"
"""What a gap is called that a trail leaves: it bars nothing."""

MOST_A_SHARD = 60
"""Machines asked about in one run of one shard, the most expensive first: at one a second, that is a minute."""
MOST_TIME = timedelta(seconds=60)
KEPT_FREE = timedelta(seconds=90)
"""What is left of a run's time for what it is there for."""
_TOGETHER = 10  # asked about before the time is looked at again

_NOT_ASKED = "not looked up in this run: {left} of {wanted} machines; later runs go on"


@dataclass(frozen=True, slots=True)
class Launches:
    """Who launched what, as far as it is known, and what could not be read of it."""

    launches: Mapping[ResourceRef, Launch] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of one shard: the trail's word on each machine (None: it has none), and what it could not tell."""

    answers: tuple[tuple[Instance, Launch | None], ...]
    gaps: tuple[Gap, ...]


def launched(
    world: RunContext, inputs: PlanInputs, *, deadline: datetime | None = None, remember: bool = True
) -> Launches:
    """Who launched the machines that the plan is about, where their owner may turn on it.

    Those are what breaks a rule and what has a case, unless `owners.yaml` settles whose they are. What the trail said
    before is not asked again. `remember` False writes nothing.
    """
    wanted = tuple(_wanted(inputs)) if world.trails else ()
    if not wanted:
        return Launches()
    known = world.memory.launches.of((fact.instance for fact in wanted), inputs.now)
    launches = {ref: launch for ref, launch in known.items() if launch is not None}
    open_questions: dict[Shard, list[InstanceFact]] = {}
    for fact in sorted(wanted, key=_most_expensive_first):
        ref = fact.instance.ref
        if ref not in known and ref.cloud in world.trails:
            open_questions.setdefault(ref.shard, []).append(fact)
    until = world.clock.now() + MOST_TIME
    if deadline is not None:
        until = min(until, deadline - KEPT_FREE)
    tasks = [
        partial(_ask, world, shard, [fact.instance for fact in facts], until)
        for shard, facts in sorted(open_questions.items())
    ]
    gaps: list[Gap] = []
    for _, asked in world.workers.each(tasks):
        gaps += asked.gaps
        for instance, launch in asked.answers:
            if launch is not None:
                launches[instance.ref] = launch
            if remember:
                world.memory.launches.remember(instance, launch, inputs.now)
    return Launches(launches, tuple(sorted(gaps, key=lambda gap: (gap.shard, gap.detail))))


def known_launches(memory: Memory, instances: Iterable[Instance], now: datetime) -> Mapping[ResourceRef, Launch]:
    """What the ledger remembers of these; no trail is asked."""
    known = memory.launches.of(instances, now)
    return {ref: launch for ref, launch in known.items() if launch is not None}


def _wanted(inputs: PlanInputs) -> Iterator[InstanceFact]:
    meant = {finding.subject for finding in judged(inputs) if finding.verdict is Verdict.VIOLATION}
    meant |= {case.subject for case in inputs.cases}
    for shard in inputs.facts:
        for fact in shard.instances:
            passed = inputs.disowned.get(str(fact.instance.ref), frozenset())
            if fact.instance.ref in meant and launch_matters(fact.instance, inputs.policy, passed):
                yield fact


def _ask(world: RunContext, shard: Shard, instances: Sequence[Instance], until: datetime) -> _Asked:
    """Some at a time, while time lasts and the trail answers."""
    trail = world.trails[shard.cloud]
    answers: list[tuple[Instance, Launch | None]] = []
    done = 0
    while done < min(len(instances), MOST_A_SHARD) and world.clock.now() < until:
        batch = instances[done : min(done + _TOGETHER, MOST_A_SHARD)]
        told, gaps = _told(trail, shard, batch)
        answers += told
        done += len(batch)
        if gaps:
            return _Asked(tuple(answers), gaps)
    if done == len(instances):
        return _Asked(tuple(answers), ())
    kind = GapKind.TRUNCATED if done == MOST_A_SHARD else GapKind.DEADLINE
    detail = _NOT_ASKED.format(left=len(instances) - done, wanted=len(instances))
    return _Asked(tuple(answers), (Gap(shard, LAUNCHES, kind, detail),))


def _told(
    trail: CloudAuditLog, shard: Shard, batch: Sequence[Instance]
) -> tuple[list[tuple[Instance, Launch | None]], tuple[Gap, ...]]:
    """With a gap, absence says nothing: then only what was found counts."""
    try:
        report = trail.launches(batch)
    except ProviderError as err:
        return [], (gap_of(err, shard, LAUNCHES),)
    found = [(instance, report.launches.get(instance.ref)) for instance in batch]
    return [each for each in found if each[1] is not None or not report.gaps], report.gaps


def _most_expensive_first(fact: InstanceFact) -> tuple[bool, str, object, ResourceRef]:
    rate = fact.rate
    currency = rate.money.currency if rate else ""
    return (rate is None, currency, -rate.money.amount if rate else 0, fact.instance.ref)
