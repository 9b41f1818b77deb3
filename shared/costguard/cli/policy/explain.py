"""`costguard policy explain`: why a policy treats one machine as it does."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.policy.trials import text_of
from costguard.cli.program import CliContext, ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costguard.domain.findings import InstanceFact
    from costguard.domain.resources import Gap, Launch
    from costguard.engine.ledger.memory import Memory
    from costguard.planning.rollout import Rollout
    from costguard.policy.model.policy import Policy
    from costguard.report.policy.explain import Explained

EXPLAIN_EXAMPLES = examples(
    "costguard policy explain i-0123456789abcdef0 --policy policies/",
    "costguard policy explain machine.yaml --policy policies/",
    "costguard policy explain staging-inference --sandbox",
)
_SUFFIXES = frozenset({".yaml", ".yml"})


def explain(
    ctx: typer.Context,
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help="A machine's id or name, or a YAML file that describes one.")
    ],
    *,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Say which rules match one machine, which decides, whose it is and why, and what protects it.

    A machine that exists is looked up in its cloud, where the ledger says that it stands; a described one is not,
    and needs neither cloud nor ledger. Of the rules that match the least destructive decides.

    Exit status: 0, or 11 when something could not be read.
    """
    described = Path(resource).suffix in _SUFFIXES
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=not described) as here:
        from costguard.bootstrap import read_policy

        read = read_policy(here.settings)
        told = _described(Path(resource), read, here) if described else _looked_up(resource, read, here)
        language = here.language
    from costguard.report.policy.explain import explained_head, explained_json, explained_lines, explained_table

    table = explained_table(told, language)
    emit(
        CommandResult(
            explained_json(told, language),
            lines=(explained_head(told, language),),
            tables=(table,) if table.rows else (),
            closing=tuple(explained_lines(told, language)),
            exit=Exit.GAPS if told.gaps else Exit.OK,
        ),
        as_json=as_json,
    )


def _described(path: Path, policy: Policy, here: CliContext) -> Explained:
    from costguard.policy.trial.documents import described_fact, described_launch, read_described

    said = read_described(str(path), text_of(path))
    at = said.at or here.clock.now()
    fact = described_fact(said.instance, said.signals, {rule.idle.lasting for rule in policy.idle_gpu}, at)
    here = replace(here, clock=_At(here, at))
    return _explained(fact, policy, here, described_launch(said.instance, at), None, ())


def _looked_up(resource: str, policy: Policy, here: CliContext) -> Explained:
    from costguard.bootstrap import targets_of
    from costguard.connections import Connections
    from costguard.engine.run.close_reads import known_launches
    from costguard.engine.run.scan import scan

    with ledger_read_only(here) as memory:
        region = _region(memory, resource)
        targets = tuple(
            replace(target, regions=(region[1],)) if region else target
            for target in targets_of(policy, here.settings)
            if not region or target.cloud == region[0]
        )
        with Connections(here.settings, policy, here.clock) as connections, shard_progress("Reading") as step:
            connections.open(targets)
            seen = scan(connections.readings, targets, policy.idle_gpu, here.clock, progress=step)
        gaps = (*seen.gaps, *(gap for shard in seen.facts for gap in shard.gaps))
        facts = [fact for shard in seen.facts for fact in shard.instances]
        fact = _named(facts, resource, gaps, seen_all=not gaps)
        launch = known_launches(memory, (fact.instance,), here.clock.now()).get(fact.instance.ref)
        return _explained(fact, policy, here, launch, memory, gaps)


def _region(memory: Memory, resource: str) -> tuple[str, str] | None:
    """Cloud and region of a machine, where its id or the ledger tells them: then only that region is read."""
    from costguard.domain.refs import ResourceRef
    from costguard.guards import IDLE_GPU

    if ":" in resource:
        ref = ResourceRef.parse(resource)
        return ref.cloud, ref.region
    places = {
        (case.subject.cloud, case.subject.region)
        for case in memory.cases.all(IDLE_GPU)
        if resource in {case.subject.native_id, case.case_id}
    }
    return places.pop() if len(places) == 1 else None


def _named(facts: Sequence[InstanceFact], resource: str, gaps: Sequence[Gap], *, seen_all: bool) -> InstanceFact:
    found = [
        fact for fact in facts if resource in {str(fact.instance.ref), fact.instance.ref.native_id, fact.instance.name}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(str(fact.instance.ref) for fact in found))
        message = f"{clean(resource)!r} is ambiguous: {names}; give the full id"
        raise InvalidInputError(message)
    rest = "" if seen_all else f", and not everything could be read: {clean(gaps[0].detail)}"
    message = f"no accelerator machine {clean(resource)!r} was seen{rest}; a YAML file may describe one"
    raise InvalidInputError(message)


def _explained(
    fact: InstanceFact,
    policy: Policy,
    here: CliContext,
    launch: Launch | None,
    memory: Memory | None,
    gaps: tuple[Gap, ...],
) -> Explained:
    from costguard.domain.findings import ShardFacts
    from costguard.guards import IDLE_GPU
    from costguard.planning import judge_all
    from costguard.policy.model.matching import matches_of, owners_in_line
    from costguard.policy.model.ownership import channel_of
    from costguard.report.policy.explain import Explained

    machine, now = fact.instance, here.clock.now()
    launches = {} if launch is None else {machine.ref: launch}
    disowned = {} if memory is None else memory.disowned.all()
    passed = disowned.get(str(machine.ref), frozenset())
    facts = (ShardFacts(machine.ref.shard, (fact,)),)
    finding = judge_all(policy, facts, now, launches=launches, disowned=disowned)[0]
    owners = owners_in_line(machine, policy, launch, passed)
    cases = () if memory is None else memory.cases.active(IDLE_GPU)
    snooze = None if memory is None else memory.snoozes.active(now).get(str(machine.ref))
    return Explained(
        instance=machine,
        at=now,
        rules=matches_of(machine, policy.idle_gpu),
        finding=finding,
        owners=owners,
        channel=channel_of(owners[0][0] if owners else "", policy),
        exceptions=tuple(each for each in policy.exemptions if each.owns.spares(machine)),
        case=next((case for case in cases if case.subject == machine.ref), None),
        snoozed_until=None if snooze is None else snooze.until,
        rollout=_rollout(policy, memory, now).of(owners[0][0] if owners else "", machine.ref.account)[1],
        gaps=gaps,
    )


def _rollout(policy: Policy, memory: Memory | None, now: datetime) -> Rollout:
    """How far it has come; without a ledger nobody was told of any step, so that all are observed."""
    from costguard.engine.run.run_context import rollout_now
    from costguard.planning.rollout import Rollout, standings

    return Rollout(tuple(standings(policy, (), {}, now))) if memory is None else rollout_now(memory, policy, now)


class _At:
    """A clock that stands at the moment a described machine is looked at."""

    def __init__(self, here: CliContext, at: datetime) -> None:
        self._clock, self._at = here.clock, at

    def now(self) -> datetime:
        """That moment."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """As the clock it was made of."""
        self._clock.sleep(seconds)
