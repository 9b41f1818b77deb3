"""`costguard budgets`: how far each is spent, how sure that is, where it ends; every number traced on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, draws_blocks, emit
from costguard.cli.program import CliContext, ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.cli.wrapping import wrapped
from costguard.domain.errors import InvalidInputError
from costguard.guards import BUDGET
from costguard.report.words.sentences import Language, clean, phrase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from costguard.domain.money import VendorBudget
    from costguard.domain.resources import Gap
    from costguard.report.budget.views import BudgetReport

BUDGETS_EXAMPLES = examples(
    "costguard budgets --policy policies/",
    "costguard budgets --json",
    "costguard budgets --sandbox --lang zh",
)
_EXAMPLE = ("budgets:", "  - {name: all, monthly: 5000 USD, alert_at: [50%, 80%, 100%]}")

app = typer.Typer(
    help="Show how far budgets are spent.",
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
)


@app.callback(epilog=BUDGETS_EXAMPLES)
def budgets(
    ctx: typer.Context,
    *,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show where every budget stands: spent, burning, full when, at the period's end, and how sure that is.

    Reads bills and what runs, and writes nothing anywhere: a bill that the ledger read within four hours is not
    asked for again. A ledger file that is not there yet counts as empty, and is not made.

    Exit status: 0 nothing is spent, 16 a budget is spent, 11 something could not be read.
    """
    if ctx.invoked_subcommand is not None:
        if policy or ledger or sandbox or as_json or lang is not None:
            message = f"options go behind the command: costguard budgets {ctx.invoked_subcommand} … --json"
            raise InvalidInputError(message)
        return
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        now, found = _look(here)
        language = here.language
    from costguard.report.budget.to_json import budgets_json
    from costguard.report.budget.views import budgets_closing, budgets_table

    data = budgets_json(found, now, language)
    if not found:
        lines = (phrase("budgets_none", language), "", *_EXAMPLE, "", phrase("budgets_none_hint", language))
        emit(CommandResult(data, lines=lines), as_json=as_json)
    emit(
        CommandResult(
            data,
            tables=(budgets_table(found, language, plain=not draws_blocks()),),
            closing=tuple(budgets_closing(found, language)),
            exit=_status(found),
        ),
        as_json=as_json,
    )


EXPLAIN_EXAMPLES = examples(
    "costguard budgets explain research --policy policies/",
    "costguard budgets explain research --json",
)


@app.command(epilog=EXPLAIN_EXAMPLES)
def explain(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The budget's name in the policy.")],
    *,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Trace every number of one budget to its source, and every doubt to what mends it.

    What was billed, until when and read from where; what of it counts; machines since then by the hour; the run rate
    of everything else; how far metering was off; spend that no inventory explains; rates of exchange; the forecast's
    method and its error; what people were told, and which steps are in force.

    Exit status: as of `costguard budgets`.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        now, found = _look(here, only=name)
        language = here.language
    from costguard.report.budget.to_json import budgets_json

    emit(
        CommandResult(
            budgets_json(found, now, language),
            lines=tuple(story_lines(found, language, plain=not draws_blocks())),
            exit=_status(found),
        ),
        as_json=as_json,
    )


ADOPT_EXAMPLES = examples(
    "costguard budgets adopt --policy policies/ > policies/adopted.yaml",
    "costguard budgets adopt --cloud aws --json",
)


@app.command(epilog=ADOPT_EXAMPLES)
def adopt(
    ctx: typer.Context,
    *,
    cloud: Annotated[
        list[str] | None,
        typer.Option("--cloud", metavar="CLOUD", help="Only this cloud's; may be repeated.", show_default="every one"),
    ] = None,
    policy: PolicyPath = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Print the budgets set up in the clouds' own consoles as a policy's, for you to look at and keep.

    Each only observes until you say more. What a policy cannot say of one stands beside it as a comment; one that
    cannot be said at all is a comment alone. Reads nothing but these budgets, and writes nothing.

    Exit status: 0 done, 11 the budgets of some cloud could not be read; the others are printed.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy) as here:
        language, now = here.language, here.clock.now()
        read, gaps, taken = _console_budgets(here, frozenset(cloud or ()))
    from costguard.cli.policy.adopting import adopted, policy_lines
    from costguard.report.budget.to_json import vendor_budget_json
    from costguard.report.json_values import gap_json, moment
    from costguard.report.plan.evidence import utc_words
    from costguard.report.words.sentences import gap as gap_words

    found = adopted(read, taken, language)
    clouds = ", ".join(sorted({one.cloud for one in read}))
    header = phrase("adopt_header", language, clouds=clouds, when=utc_words(now))
    notes = (header, phrase("adopt_mode", language)) if read else (phrase("adopt_none", language),)
    lines = tuple(policy_lines(found, (*notes, *(gap_words(each, language) for each in gaps)), language))
    data = {
        "schema": 1,
        "at": moment(now),
        "budgets": [vendor_budget_json(one.budget, one.name, "\n".join(one.lines), one.refused) for one in found],
        "policy": "\n".join(lines) + "\n",
        "gaps": [gap_json(each, language) for each in gaps],
    }
    emit(CommandResult(data, lines=lines, exit=Exit.GAPS if gaps else Exit.OK), as_json=as_json)


def _console_budgets(here: CliContext, only: frozenset[str]) -> tuple[list[VendorBudget], list[Gap], frozenset[str]]:
    """What the consoles of all targets hold, what could not be read, and the names that the policy has already.

    Raises:
        InvalidInputError: a cloud that the policy names no account of.
    """
    from costguard.bootstrap import read_policy, targets_of
    from costguard.connections import Connections
    from costguard.domain.errors import ProviderError
    from costguard.domain.refs import Shard
    from costguard.engine.run.scan import gap_of

    policy = read_policy(here.settings)
    targets = targets_of(policy, here.settings)
    unknown = sorted(only - {target.cloud for target in targets})
    if unknown:
        there = ", ".join(sorted({target.cloud for target in targets}))
        message = f"--cloud: no account of {clean(unknown[0])!r} is guarded; there is {there}"
        raise InvalidInputError(message)
    meant = [target for target in targets if not only or target.cloud in only]
    found: dict[tuple[str, str, str], VendorBudget] = {}
    gaps = []
    with Connections(here.settings, policy, here.clock) as connections, shard_progress("Reading") as step:
        connections.open(meant)
        sources = connections.spends()
        for number, target in enumerate(meant, 1):
            try:
                read = sources[target.cloud].budgets(target)
            except ProviderError as err:
                gaps.append(gap_of(err, Shard(target.cloud, target.account), "budgets"))
            else:
                found.update({(one.cloud, one.account, one.name): one for one in read})
            step(number, len(meant), target.cloud)
    return list(found.values()), gaps, frozenset(rule.name for rule in policy.budgets)


def _look(here: CliContext, only: str = "") -> tuple[datetime, Sequence[BudgetReport]]:
    """Where all budgets stand, or the one named.

    Raises:
        InvalidInputError: the policy has no budget of that name.
    """
    from costguard.bootstrap import open_run_context, read_policy
    from costguard.engine.guards.budgets.look import look
    from costguard.engine.guards.budgets.notifying import budget_reports

    policy = read_policy(here.settings)
    names = [rule.name for rule in policy.budgets]
    if only and only not in names:
        there = f"; there is {', '.join(names)}" if names else ""
        message = f"the policy has no budget {clean(only)!r}{there}"
        raise InvalidInputError(message)
    if not names:
        return here.clock.now(), ()
    with (
        ledger_read_only(here) as memory,
        open_run_context(here.settings, BUDGET, policy=policy, memory=memory, clock=here.clock, may_act=False) as world,
        shard_progress("Reading") as step,
    ):
        looked = look(world, progress=step, remember=False)
        return looked.now, budget_reports(world, looked, only)


def story_lines(found: Sequence[BudgetReport], language: Language, *, plain: bool = False) -> Iterator[str]:
    """Each budget traced to its sources, in lines of a page's width."""
    from costguard.report.budget.story import budget_story

    for one in found:
        for number, section in enumerate(budget_story(one, language, plain=plain)):
            if number:
                yield ""
            yield section.title
            for line in section.lines:
                yield from wrapped(line, "  ", 2)


def _status(found: Sequence[BudgetReport]) -> Exit:
    if any(one.status.period is not None and one.status.share >= 1 for one in found):
        return Exit.SPENT
    unread = any(one.status.gaps or one.status.unread for one in found)
    return Exit.GAPS if unread else Exit.OK
