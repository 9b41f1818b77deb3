"""`costguard history export`: recorded use from the live sources into files that a policy is back-tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError

app = typer.Typer(help="Keep what machines were used for in files.", no_args_is_help=True)


@app.callback()
def history() -> None:
    """Keep what machines were used for in files."""


EXPORT_EXAMPLES = examples(
    "costguard history export --days 90 --out history --policy policies/",
    "costguard history export --days 7 --out history --sandbox",
)


@app.command(epilog=EXPORT_EXAMPLES)
def export(
    ctx: typer.Context,
    *,
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where the files go; made where it is missing.")],
    days: Annotated[int, typer.Option("--days", min=1, max=455, help="How many whole days of UTC back.")] = 90,
    policy: PolicyPath = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Write the recorded use of every machine there is now: hourly maxima with sample counts, a file a shard and day.

    GPU, CPU and network are written, and what else the policy names. Reads with read-only credentials from where the
    policy's signals come: CloudWatch, CMS, Monitor, Prometheus. What is interrupted goes on where it was: finished days
    are in a journal and are not asked for again. A day that could not be read whole is not written. Machines that are
    gone are not in it.

    Exit status: 0 done, 11 something could not be read.
    """
    folder = Path(out)
    if not folder.parent.is_dir() or (folder.exists() and not folder.is_dir()):
        message = f"{out}: cannot be written: no such folder"
        raise InvalidInputError(message)
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy) as here:
        from costguard.bootstrap import read_policy, targets_of
        from costguard.connections import Connections
        from costguard.engine.history.export import export_history
        from costguard.guards.rules.idle import FREE_SIGNALS
        from costguard.report.json_values import gap_json
        from costguard.report.words.sentences import in_backtest as say

        language, chosen = here.language, read_policy(here.settings)
        fresh = here.sandbox is not None and not chosen.accounts
        targets = here.sandbox.targets if here.sandbox is not None and fresh else targets_of(chosen, here.settings)
        measured = frozenset(FREE_SIGNALS)  # whatever this policy names: another one is to be tried on the record
        with (
            Connections(here.settings, chosen, here.clock, exactly=measured) as connections,
            shard_progress("Reading") as step,
        ):
            connections.open(targets)
            found = export_history(connections.readings, targets, folder, days, here.clock.now(), step)
    lines = [
        say(
            "exported",
            language,
            shards=found.written,
            folder=out,
            series=found.series,
            machines=found.machines,
            kept=found.kept or "",
        )
        if found.machines
        else say("export_nothing", language)
    ]
    closing = [
        say("export_gap", language, shard=str(gap.shard), day=day or "-", detail=gap.detail) for day, gap in found.gaps
    ]
    if found.gaps:
        closing.append(say("export_again", language))
    data = {
        "schema": 1,
        "folder": out,
        "machines": found.machines,
        "series": found.series,
        "written": found.written,
        "kept": found.kept,
        "gaps": [{"day": day or None, **gap_json(gap, language)} for day, gap in found.gaps],
    }
    status = Exit.GAPS if found.gaps else Exit.OK
    emit(CommandResult(data, lines=lines, closing=closing, exit=status), as_json=as_json)
