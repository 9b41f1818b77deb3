"""`costguard recheck`: look again at what is held because an answer was lost, and go on from what is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import By, Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import who_says
from costguard.cli.program import CliContext, ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language, clean, phrase, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costguard.cases import Case
    from costguard.engine.answers.answers import Rechecked
    from costguard.engine.ledger.memory import Memory

RECHECK_EXAMPLES = examples(
    "costguard recheck i-0123456789abcdef0",
    "costguard recheck --all --by ops --json",
)


def recheck(
    ctx: typer.Context,
    resource: Annotated[
        str, typer.Argument(metavar="[RESOURCE]", help="Its id, the cloud's own id, or a case's id.", show_default="")
    ] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every case that is held so.")] = False,
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Look again at cases that are held because the answer to a call was lost, and go on from what is seen.

    It reads clouds and calls nothing. What took effect is noted; what shows no effect an hour after the call begins its
    wait anew, with a notice and under a new decision; what stays unknown stays held. A lost terminate on Tencent Cloud
    is never asked for again, nor is what would be made twice: a rotation, a key, a flow log.

    Exit status: 0 nothing is in doubt any more, 11 something could not be seen, 13 something stays unknown.
    """
    if bool(resource) is everything:
        message = "name one resource, or say --all"
        raise InvalidInputError(message)
    who = who_says(by)
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        with ledger_in_use(here) as memory:
            done = tuple(_rechecked(here, memory, resource, who))
        language = here.language
    emit(
        CommandResult(
            {"schema": 1, "cases": [_data(one, language) for one in done]},
            lines=tuple(_line(one, language) for one in done) or (phrase("recheck_none", language),),
            exit=_status(done),
        ),
        as_json=as_json,
    )


def _rechecked(here: CliContext, memory: Memory, resource: str, who: str) -> Sequence[Rechecked]:
    from costguard.engine.answers.answers import in_doubt
    from costguard.engine.guards.registry import GUARDS

    doubted = {guard: in_doubt(memory, guard) for guard in GUARDS}
    chosen = {
        guard: tuple(
            case
            for case in cases
            if not resource or resource in {str(case.subject), case.subject.native_id, case.case_id}
        )
        for guard, cases in doubted.items()
    }
    if resource and not any(chosen.values()):
        message = f"no case of {clean(resource)!r} is held because an answer was lost; `costguard cases` lists all"
        raise InvalidInputError(message)
    return [one for guard, cases in chosen.items() if cases for one in _of_guard(here, memory, guard, cases, who)]


def _of_guard(here: CliContext, memory: Memory, guard: str, cases: tuple[Case, ...], who: str) -> tuple[Rechecked, ...]:
    from costguard.bootstrap import open_run_context
    from costguard.cli.progress import shard_progress
    from costguard.engine.answers.answers import recheck as recheck_by
    from costguard.engine.guards.registry import runner_of
    from costguard.engine.run.run import plan_guard

    with (
        open_run_context(here.settings, guard, memory=memory, clock=here.clock, may_act=False) as world,
        shard_progress("Reading") as step,
    ):
        clouds = {case.subject.cloud for case in cases}
        near = tuple(target for target in world.targets if target.cloud in clouds)
        runner = runner_of(guard)
        own = world if runner.whole else replace(world, targets=near)
        plan = plan_guard(own, f"recheck-{here.clock.now().isoformat()}", progress=step).plan
    return recheck_by(memory, plan, cases, who, here.clock.now())


def _status(done: Sequence[Rechecked]) -> Exit:
    from costguard.engine.answers.answers import RecheckResult

    found = {one.found for one in done}
    if found & {RecheckResult.UNSEEN, RecheckResult.MOVED}:
        return Exit.GAPS
    return Exit.HELD if found & {RecheckResult.UNKNOWN, RecheckResult.UNDER_WAY} else Exit.OK


def _line(one: Rechecked, language: Language) -> str:
    return phrase(
        f"recheck_{one.found.value}",
        language,
        resource=str(one.case.subject),
        state=one.state,
        why=sentence(one.case.reason, language),
    )


def _data(one: Rechecked, language: Language) -> dict[str, Any]:
    from costguard.report.plan.case_history import case_json

    return {**case_json(one.case, language), "found": one.found.value, "state": one.state or None}
