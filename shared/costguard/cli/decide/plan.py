"""`costguard plan` and `costguard apply`: decide, look at it, then do exactly that."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.decide.guards import ready_to_carry_out, worth_showing
from costguard.cli.exits import Exit
from costguard.cli.options import GuardName, Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, draws_blocks, emit
from costguard.cli.program import ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import ProviderError, StalePlanError
from costguard.engine.guards.registry import GUARDS
from costguard.guards import IDLE_GPU
from costguard.report.words.sentences import Language, explain, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from costguard.domain.actions import Action, ActionResult
    from costguard.domain.reasons import Reason
    from costguard.engine.guards.budgets.look import BudgetLook
    from costguard.engine.ledger.notices import OutboxNotice
    from costguard.engine.run.run import RunReport
    from costguard.engine.run.run_context import RunContext
    from costguard.planning import Plan
    from costguard.planning.agreed import Agreement
    from costguard.report.tables import Table


PLAN_EXAMPLES = examples(
    "costguard plan --guard idle_gpu --policy policies/",
    "costguard plan --guard budget --policy policies/ --out plan.json",
    "costguard plan --guard network_audit --policy policies/",
    "costguard plan --sandbox --json",
)


def plan(
    ctx: typer.Context,
    *,
    guard: GuardName = IDLE_GPU,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write the plan to a file that `costguard apply` takes.")
    ] = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Decide what is due now, and change nothing.

    Prints what was found, what is due, what a rail holds back and why, what a gentler mode only rehearses,
    and what could not be read. No client that can change anything is even made. A ledger file that is not
    there yet counts as empty, and is not made either. Of keys and networks it shows what is not as the policy asks;
    `costguard keys` and `costguard networks` show the rest.

    Exit status: 0 nothing is due, 10 something is due, 11 something could not be read.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        from costguard.bootstrap import open_run_context
        from costguard.engine.run.run import plan_guard

        language = here.language
        with (
            ledger_read_only(here) as memory,
            open_run_context(here.settings, guard, memory=memory, clock=here.clock, may_act=False) as world,
            shard_progress("Reading") as step,
        ):
            planned = plan_guard(world, run_id_of(guard, here.clock.now()), progress=step)
            made, looked = planned.plan, planned.budgets
            budgets = _budgets(world, looked, language) if looked is not None else ()
    from costguard.cli.decide.plan_file import plan_answer, write_plan
    from costguard.report.plan.shadows import planned_lines, shadow_tables
    from costguard.report.plan.views import money_lines, plan_summary, plan_tables, unread_line

    if out:
        write_plan(Path(out), made, language)
    shown = worth_showing(made)
    emit(
        CommandResult(
            plan_answer(made, language),
            tables=(*budgets, *plan_tables(shown, language), *shadow_tables(made.shadows, guard, language)),
            closing=(
                *planned_lines(made.shadows, guard, language),
                *unread_line(shown, language),
                *money_lines(made, language),
                plan_summary(shown, language),
                *([phrase("plan_written", language, file=out)] if out else []),
            ),
            exit=Exit.GAPS if made.gaps else Exit.DUE if made.due else Exit.OK,
        ),
        as_json=as_json,
    )


APPLY_EXAMPLES = examples(
    "costguard apply --plan plan.json --policy policies/",
)


def apply(
    ctx: typer.Context,
    *,
    plan: Annotated[str, typer.Option("--plan", metavar="FILE", help="What `costguard plan --out FILE` wrote.")],
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Do what a plan says and what follows now as well, or refuse.

    The file is a proposal: every action is derived again from ledger, policy and a fresh look, and what differs is
    shown and not done. Refuses with status 12 and the reason, and changes nothing, when the file was altered, the
    policy is another one, the plan is older than an hour, a case has moved since, a machine was snoozed since,
    Costguard is paused, or nothing of the plan follows now. Every rail is asked again just before each call. Where
    only a part was done, the status is 13.
    """
    from costguard.cli.decide.plan_file import check_still_true, read_plan

    agreed = read_plan(Path(plan))
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        from costguard.bootstrap import open_run_context, read_policy
        from costguard.engine.run.act import pause_reason
        from costguard.engine.run.run import carry_out, plan_guard
        from costguard.planning.agreed import in_both

        language = here.language
        current = read_policy(here.settings)
        with ledger_read_only(here) as memory:  # a plan that is refused leaves no ledger file behind
            check_still_true(agreed, tuple(GUARDS), current, memory, here.clock.now())
            paused = pause_reason(memory, host_paused=here.settings.paused)
            if paused is not None:
                message = f"this plan is not applied: {explain(paused, language)}"
                raise StalePlanError(message)
            with (
                open_run_context(
                    here.settings, agreed.guard, policy=current, memory=memory, clock=here.clock, may_act=False
                ) as world,
                shard_progress("Reading") as step,
            ):
                fresh = plan_guard(world, agreed.run_id, progress=step)
                looked = fresh.budgets
                ready_to_carry_out(world, agreed, looked, language)
        both = in_both(agreed, fresh.plan)
        report: RunReport | None = None
        notices: Mapping[str, OutboxNotice] = {}
        if not both.refuses_all:
            with open_run_context(here.settings, agreed.guard, policy=current, clock=here.clock) as connected:
                _enter_accounts(connected)
                report = carry_out(ready_to_carry_out(connected, both.plan, looked, language), both.plan)
                notices = connected.memory.outbox.get_many(action.decision_id for action in both.plan.due)
        results = _results(both, report, notices, here.clock.now())
    emit(_applied(agreed, both, report, results, language), as_json=as_json)


def run_id_of(guard: str, now: datetime) -> str:
    """A run by hand has a name of its own, so that it is never taken for a scheduled one."""
    return "cli-" + hashlib.sha256(f"{guard}\n{now.isoformat()}".encode()).hexdigest()[:16]


def _budgets(world: RunContext, looked: BudgetLook, language: Language) -> tuple[Table, ...]:
    """Where the budgets stand that the plan follows from."""
    from costguard.engine.guards.budgets.notifying import budget_reports
    from costguard.report.budget.views import budgets_table

    reports = budget_reports(world, looked)
    return (budgets_table(reports, language, plain=not draws_blocks()),) if reports else ()


def _enter_accounts(world: RunContext) -> None:
    """Learn the way into every account, which a scan learns by the way; what stays closed is held by the last look."""
    for target in world.targets:
        with suppress(ProviderError):
            world.readings[target.cloud].inventory.discover(target)


def _results(
    both: Agreement, report: RunReport | None, notices: Mapping[str, OutboxNotice], now: datetime
) -> tuple[ActionResult, ...]:
    """One result for everything that was agreed to: calls, notices, what another run moved first, what is refused."""
    from costguard.domain.actions import ActionResult, Outcome, Verb
    from costguard.domain.reasons import Reason, ReasonCode

    called = {result.action.action_id: result for result in (report.results if report is not None else ())}
    told_not = report.plan.held if report is not None and report.plan is not None else ()
    held = {each.action.action_id: each.reason for each in told_not}  # what the cloud was seen to protect just now

    def result_of(agreed: Action, action: Action | Reason) -> ActionResult:
        if isinstance(action, Reason):
            return ActionResult(agreed, None, now, action)
        if action.action_id in called:
            return called[action.action_id]
        if action.action_id in held:
            return ActionResult(action, None, now, held[action.action_id])
        notice = notices.get(action.decision_id) if action.verb is Verb.WARN else None
        if notice is None:
            return ActionResult(action, None, now, Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"}))
        if notice.proven:
            return ActionResult(action, Outcome.TOOK_EFFECT, now, detail=notice.channel)
        reason = Reason(ReasonCode.NOTICE_UNDELIVERED, {"channel": notice.channel, "detail": notice.last_error})
        return ActionResult(action, None, now, reason, notice.last_error)

    return tuple(result_of(agreed, action) for agreed, action in both.answers)


def _applied(
    agreed: Plan, both: Agreement, report: RunReport | None, results: Sequence[ActionResult], language: Language
) -> CommandResult:
    from costguard.cli.decide.plan_file import plan_hash
    from costguard.engine.ledger.codec import to_body
    from costguard.report.plan.to_json import left_json, result_json
    from costguard.report.plan.views import left_line, results_table

    names = {finding.subject: finding.name for finding in both.plan.findings}
    undone = [result for result in results if result.reason is not None]
    data: dict[str, Any] = {
        "schema": 1,
        "guard": agreed.guard,
        "run_id": agreed.run_id,
        "plan_hash": plan_hash(to_body(agreed)),
        "results": [result_json(result, language) for result in results],
        "left": [left_json(case, reason, language) for case, reason in both.left],
        "notices": [
            {"channel": notice.channel, "title": notice.title} for notice in (report.notices if report else ())
        ],
    }
    table = results_table(results, language, names)
    total = phrase("applied_total", language, done=len(results) - len(undone), undone=len(undone))
    held = Exit.HELD if undone or both.left else Exit.OK
    return CommandResult(
        data,
        tables=(table,) if results else (),
        closing=(
            *(left_line(case, reason, language) for case, reason in both.left),
            total if report is not None else phrase("applied_nothing", language),
        ),
        exit=Exit.REFUSED if report is None else held,
    )
