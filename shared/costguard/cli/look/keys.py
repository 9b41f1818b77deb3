"""`costguard keys`: which encryption keys are rotated as the policy asks, on read-only credentials and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import UnavailableError
from costguard.report.words.sentences import gap as gap_words
from costguard.report.words.sentences import phrase

if TYPE_CHECKING:
    from costguard.engine.guards.keys.look import KeyLook
    from costguard.policy.model.policy import Policy

KEYS_EXAMPLES = examples(
    "costguard keys --policy policies/",
    "costguard keys --all --json",
    "costguard keys --sandbox --lang zh",
)
_EXAMPLE = ("kms_rotation:", "  - {name: ninety-days, rotate_every: 90d}")


def keys(
    ctx: typer.Context,
    *,
    whole: Annotated[
        bool, typer.Option("--all", help="Show every key, also those that are as asked and those that are not judged.")
    ] = False,
    policy: PolicyPath = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show which encryption keys are not rotated as the policy asks, and what would mend each.

    Violations first, then what could not be measured; what a vendor cannot do is shown once for each kind of key.
    Needs read-only credentials and no ledger; without any policy every key is held to 90 days. Nothing is done to
    any key.

    Exit status: 0 done, 11 something could not be read.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy) as here:
        answer = keys_answer(here, whole=whole)
    emit(answer, as_json=as_json)


def keys_answer(here: CliContext, *, whole: bool = False) -> CommandResult:
    """What there is to say of all keys.

    Raises:
        UnavailableError: nothing at all could be read.
    """
    from costguard.bootstrap import read_policy
    from costguard.report.keys.to_json import keys_json
    from costguard.report.keys.views import KeyReport, key_closing, key_summary_lines, key_tables

    language, read = here.language, read_policy(here.settings)
    rules = read.kms_rotation
    if not rules:
        lines = (phrase("keys_none", language), "", *_EXAMPLE, "", phrase("keys_none_hint", language))
        return CommandResult(keys_json(KeyReport((), 0), rules, here.clock.now(), language), lines=lines)
    looked = _look(here, read)
    if looked.gaps and not looked.shards:
        unread = "\n".join(gap_words(gap, language) for gap in looked.gaps)
        message = f"nothing could be read\n{unread}"
        raise UnavailableError(message)
    report = looked.report
    return CommandResult(
        keys_json(report, rules, looked.now, language),
        lines=tuple(key_summary_lines(report, language)),
        tables=key_tables(report, language, whole=whole),
        closing=tuple(key_closing(report, language, whole=whole)),
        exit=Exit.GAPS if report.gaps else Exit.OK,
    )


def _look(here: CliContext, read: Policy) -> KeyLook:
    from costguard.bootstrap import targets_of
    from costguard.connections import Connections
    from costguard.engine.guards.keys.look import look_at_keys

    targets = targets_of(read, here.settings)
    with Connections(here.settings, read, here.clock) as connections, shard_progress("Reading") as step:
        connections.open(targets)
        return look_at_keys(connections.readings, connections.keys(), targets, read, here.clock, progress=step)
