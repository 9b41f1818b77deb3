"""`costguard cases` and `costguard why`: what the ledger knows, in words."""

from __future__ import annotations

from typing import Annotated

import typer

from costguard.cli.decide.guards import guard_of
from costguard.cli.exits import Exit
from costguard.cli.options import GuardOfCase, Json, Lang, LedgerUrl, PolicyPath, Resource, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import ledger_in_use, ledger_read_only, workplace
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.report.words.sentences import phrase

CASES_EXAMPLES = examples(
    "costguard cases",
    "costguard cases --guard budget --all --json",
)


def cases(
    ctx: typer.Context,
    *,
    guard: Annotated[
        str,
        typer.Option("--guard", metavar="NAME", help="Which guard: idle_gpu or budget.", show_default="every guard"),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Closed cases as well.")] = False,
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """List the open cases: whose machine, how far, and why it stands there. Asks no cloud."""
    if guard:
        runner_of(guard)
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.cases import CaseStatus
        from costguard.report.plan.case_history import case_json
        from costguard.report.plan.views import cases_table

        with ledger_in_use(here) as memory:
            known = [case for each in ((guard,) if guard else GUARDS) for case in memory.cases.all(each)]
            switch = memory.switch.state()
        shown = [case for case in known if everything or case.status is not CaseStatus.CLOSED]
        shown.sort(key=lambda case: (case.status is CaseStatus.CLOSED, case.opened_at, str(case.subject)))
        language = here.language
        answer = CommandResult(
            {
                "schema": 1,
                "guard": guard or None,
                "paused": switch.paused,
                "cases": [case_json(case, language) for case in shown],
            },
            lines=() if shown else (phrase("cases_none", language),),
            closing=(phrase("is_paused", language, by=switch.by, reason=switch.reason),) if switch.paused else (),
            tables=(cases_table(shown, language),) if shown else (),
        )
    emit(answer, as_json=as_json)


WHY_EXAMPLES = examples(
    "costguard why i-0123456789abcdef0",
    "costguard why aws:111122223333:us-east-1:instance:i-0123456789abcdef0 --scan --policy policies/",
)


def why(
    ctx: typer.Context,
    resource: Resource,
    *,
    guard: GuardOfCase = "",
    scan: Annotated[
        bool, typer.Option("--scan", help="Look at the machine now as well: verdict and evidence.")
    ] = False,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Explain one machine: its case, every step with its time, what its owner was told, what was called.

    Asks no cloud unless --scan is given.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=scan) as here:
        from costguard.cli.look.known import known_of, seen_now
        from costguard.report.plan.case_history import history_json, history_lines

        with ledger_read_only(here) if scan else ledger_in_use(here) as memory:
            which = guard_of(memory, guard, resource)
            seen = seen_now(here, memory, which, resource) if scan else None
            history = known_of(here, memory, which, resource, seen)
        language = here.language
    emit(
        CommandResult(
            history_json(history, language),
            lines=history_lines(history, language),
            exit=Exit.GAPS if history.gaps else Exit.OK,
        ),
        as_json=as_json,
    )
