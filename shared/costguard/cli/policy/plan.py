"""`costguard policy plan`: what another policy would do to the fleet as it stands now."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import A_POLICY, GuardName, Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.policy.diff import Markdown, one_form, policy_at
from costguard.cli.program import CliContext, ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.guards import IDLE_GPU

if TYPE_CHECKING:
    from costguard.cli.policy.recording import Recording
    from costguard.engine.ledger.memory import Memory
    from costguard.planning import Plan
    from costguard.policy.model.policy import Policy

PLAN_EXAMPLES = examples(
    "costguard policy plan changed/ --policy main/",
    "costguard policy plan changed/ --policy main/ --record fleet.json",
    "costguard policy plan changed/ --policy main/ --recorded fleet.json --markdown",
    "costguard policy plan changed/ --sandbox",
)


def plan(
    ctx: typer.Context,
    new: Annotated[str, typer.Argument(metavar="NEW", help=f"The policy as it is to be: {A_POLICY}.")],
    *,
    guard: GuardName = IDLE_GPU,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    record: Annotated[
        str, typer.Option("--record", metavar="FILE", help="Write what was seen to a file, for --recorded.")
    ] = "",
    recorded: Annotated[
        str, typer.Option("--recorded", metavar="FILE", help="Ask no cloud: take what --record wrote.")
    ] = "",
    sandbox: Sandbox = False,
    markdown: Markdown = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Say what a new policy would do now that the present one does not, and change nothing.

    Plans twice over the same fleet, cases and moment, and shows where the plans differ: cases that would be opened,
    acted on or closed, waits that begin anew, and what each machine costs an hour. --policy is the present policy.

    Exit status: 0 it does no more than the present one, 10 it acts, opens a case or begins a wait anew, 11 something
    could not be read.
    """
    one_form(as_json=as_json, markdown=markdown)
    runner = runner_of(guard)
    if (record or recorded) and not runner.one_look:
        can = ", ".join(name for name, runner in GUARDS.items() if runner.one_look)
        message = f"--record and --recorded are for {can}; --guard says {guard}"
        raise InvalidInputError(message)
    after = policy_at(ctx, new)
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=not recorded) as here:
        before, then = _two_plans(here, after, guard, record=record, recorded=recorded)
    from costguard.report.policy.plan import acts, plan_changes
    from costguard.report.policy.plan_views import (
        all_gaps,
        changes_json,
        changes_markdown,
        changes_table,
        plan_summary_words,
        sums_table,
    )
    from costguard.report.waste.views import gaps_table

    language, changes = here.language, plan_changes(before, then)
    gaps = all_gaps(before, then)
    status = Exit.GAPS if gaps else Exit.DUE if acts(changes) else Exit.OK
    if markdown:
        typer.echo(changes_markdown(before, then, changes, language), nl=False)
        raise typer.Exit(status)
    tables = (changes_table(changes, language), sums_table(changes, language), gaps_table(gaps, language))
    emit(
        CommandResult(
            changes_json(before, then, changes, language),
            tables=tuple(table for table in tables if table.rows),
            closing=(plan_summary_words(changes, language),),
            exit=status,
        ),
        as_json=as_json,
    )


def _two_plans(here: CliContext, new: Policy, guard: str, *, record: str, recorded: str) -> tuple[Plan, Plan]:
    """Under the present policy and under the new one."""
    from costguard.bootstrap import read_policy
    from costguard.cli.policy.recording import plan_recorded, read_recording, write_recording

    old = read_policy(here.settings)
    if recorded:
        seen = read_recording(Path(recorded), (old, new))
        return plan_recorded(seen, old), plan_recorded(seen, new)
    with ledger_read_only(here) as memory:
        if runner_of(guard).one_look and (record or _same_ground(old, new)):
            before, after, found = _over_one_look(here, memory, old, new, keep=bool(record))
            if found is not None:
                write_recording(Path(record), found)
            return before, after
        return _planned_under(here, memory, old, guard), _planned_under(here, memory, new, guard)


def _same_ground(old: Policy, new: Policy) -> bool:
    """Whether both look at the same accounts through the same signals and prices: then one look is enough."""
    return _ground(old) == _ground(new)


def _ground(policy: Policy) -> tuple[object, ...]:
    accounts = tuple(replace(account, owner="", protected=False) for account in policy.accounts)
    return accounts, policy.signals, policy.prices


def _over_one_look(
    here: CliContext, memory: Memory, old: Policy, new: Policy, *, keep: bool
) -> tuple[Plan, Plan, Recording | None]:
    from costguard.bootstrap import open_run_context
    from costguard.cli.policy.recording import recording_of, with_common_windows
    from costguard.engine.run.run import plan_from
    from costguard.engine.run.scan import scan

    with (
        open_run_context(here.settings, IDLE_GPU, policy=new, memory=memory, clock=here.clock, may_act=False) as world,
        shard_progress("Reading") as step,
    ):
        rules = (*old.idle_gpu, *new.idle_gpu)
        rules = with_common_windows(rules) if keep else rules
        seen = scan(world.readings, world.targets, rules, here.clock, progress=step, workers=world.workers)
        frozen = replace(world, clock=_Still(here))
        found = recording_of(frozen, seen) if keep else None
        before = plan_from(replace(frozen, policy=old), "policy-plan", seen)
        return before, plan_from(frozen, "policy-plan", seen), found


def _planned_under(here: CliContext, memory: Memory, policy: Policy, guard: str) -> Plan:
    from costguard.bootstrap import open_run_context
    from costguard.engine.run.run import plan_guard

    with (
        open_run_context(here.settings, guard, policy=policy, memory=memory, clock=here.clock, may_act=False) as world,
        shard_progress("Reading") as step,
    ):
        return plan_guard(world, "policy-plan", progress=step).plan


class _Still:
    """A clock that stands: both plans are made for one moment."""

    def __init__(self, here: CliContext) -> None:
        self._clock, self._now = here.clock, here.clock.now()

    def now(self) -> datetime:
        """The moment it was stopped at."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """As the clock it was made of."""
        self._clock.sleep(seconds)
