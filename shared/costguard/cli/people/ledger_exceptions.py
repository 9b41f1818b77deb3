"""`costguard exception agree` and `end`, and asking for one that the ledger keeps where no repository is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from costguard.cli.decide.guards import guard_of
from costguard.cli.options import By, Json, Lang, LedgerUrl, PolicyPath, Resource, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import text_of, who_says
from costguard.cli.program import ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from costguard.cases.answering import Weighed
    from costguard.cli.program import CliContext
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.exceptions import ExceptionRequest

AGREE_EXAMPLES = examples("costguard exception agree i-0123456789abcdef0 --by U01ABCDEF")
END_EXAMPLES = examples("costguard exception end i-0123456789abcdef0 --by lee")
_STANDS = frozenset({"exception_waits", "exception_stands", "approval_waits", "kept_longer"})


def ask_in_ledger(here: CliContext, memory: Memory, asked: ExceptionRequest, now: datetime) -> CommandResult:
    """Ask for an exception of a machine's open case, which the ledger keeps once an approver agreed.

    Raises:
        InvalidInputError: no case is known, or it may not be asked for.
    """
    from costguard.bootstrap import read_policy
    from costguard.cases.answering import CLI
    from costguard.domain.answers import Answer, AnswerKind, AnswerRef, Person
    from costguard.engine.answers import answers, excepting
    from costguard.policy.exceptions import check_request
    from costguard.report.json_values import moment

    policy = read_policy(here.settings)
    case = answers.find_case(memory, guard_of(memory, "", asked.resource), asked.resource)
    check_request(asked, now, policy.longest_exception)
    of = AnswerRef(case.case_id, answers.notice_decision(case))
    said = Answer(AnswerKind.EXCEPT, of, Person(CLI, asked.by), now, asked.expires - now, asked.reason)
    weighed = excepting.ask(memory, policy, said, now, case=case, language=here.language)
    told = {
        "schema": 1,
        "id": asked.resource,
        "code": weighed.code.value,
        "until": moment(asked.expires),
        "approvers": list(policy.answers.approvers),
    }
    return _result(weighed, told, here.language)


def agree(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Agree to the exception that somebody asked for, and that the ledger keeps: by one of the policy's approvers.

    The name of --by is one of notify.answers.approvers, and not whoever asked. It counts for what was asked, within
    seven days, while its case is open under the same rule.
    """
    from costguard.bootstrap import read_policy
    from costguard.cases.answering import CLI
    from costguard.domain.answers import Person
    from costguard.engine.answers import excepting
    from costguard.report.json_values import moment

    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        now, who = here.clock.now(), who_says(text_of(by, "--by"))
        with ledger_in_use(here) as memory:
            asked = [
                one for one in memory.exceptions.all() if resource in {one.ref_text, one.ref_text.rpartition(":")[2]}
            ]
            refs = sorted({one.ref_text for one in asked})
            if len(refs) != 1:
                said = f"is ambiguous: {', '.join(refs)}; give the full id" if refs else "has none that was asked for"
                message = f"{resource!r} {said}; `costguard exceptions` lists them"
                raise InvalidInputError(message)
            last = max(asked, key=lambda one: one.asked_at)
            weighed = excepting.agree(
                memory, read_policy(here.settings), last.of, Person(CLI, who), now, language=here.language
            )
        told = {"schema": 1, "id": last.ref_text, "code": weighed.code.value, "until": moment(last.until), "by": who}
        result = _result(weighed, told, here.language)
    emit(result, as_json=as_json)


def end(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """End an exception that the ledger keeps, or take back what was asked for and not agreed to yet.

    From the next run on the machine is judged as any other, with a notice and the full wait before every step.
    """
    from costguard.bootstrap import read_policy
    from costguard.engine.answers import excepting
    from costguard.engine.ledger.snoozes import Snooze

    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        who = who_says(text_of(by, "--by"))
        with ledger_in_use(here) as memory:
            ended = excepting.end(memory, read_policy(here.settings), resource, who, here.clock.now(), here.language)
        held = isinstance(ended, Snooze)
        said = phrase("exception_ended_now" if held else "exception_taken_back", here.language, resource=ended.ref_text)
    emit(CommandResult({"schema": 1, "id": ended.ref_text, "held": held, "by": who}, lines=(said,)), as_json=as_json)


def _result(weighed: Weighed, told: dict[str, Any], language: Language) -> CommandResult:
    """What it came to; an error where it counts for nothing and was not said before.

    Raises:
        InvalidInputError: just that.
    """
    from costguard.cases.answering import Refused
    from costguard.report.notices.answers import answer_words

    if isinstance(weighed, Refused) and weighed.code.value not in _STANDS:
        raise InvalidInputError(answer_words(weighed, Language.EN))
    lines: Sequence[str] = (answer_words(weighed, language),)
    return CommandResult(told, lines=lines)
