"""`costguard policy backtest`: what a policy would have done to recorded use. Asks no cloud and no ledger."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.files import write_file
from costguard.cli.options import A_POLICY, Json, Lang, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.policy.diff import policy_at
from costguard.cli.program import workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costguard.backtest import BackTest, Grid, Machine, Point, Tallied, Terms
    from costguard.engine.history.history import HistoryFiles
    from costguard.policy.model.policy import Policy
    from costguard.report.words.sentences import Language

BACKTEST_EXAMPLES = examples(
    "costguard policy backtest policies/ --history history/",
    "costguard policy backtest policies/ --current main/policies/ --history history/ --markdown comment.md",
    "costguard policy backtest policies/ --history history/ --grid 2%,5%,10%,1h,6h,24h,72h --html backtest.html",
)
_HOUR = timedelta(hours=1)
_DOUBTS_TOLD = 5
_LONGEST = timedelta(days=10 * 366)


def backtest(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="NEW", help=f"The policy: {A_POLICY}.")],
    *,
    history: Annotated[
        list[str],
        typer.Option(
            "--history",
            metavar="FILES",
            help="Recorded use: a file, or a folder of them; may be repeated. See docs/history.md.",
        ),
    ],
    current: Annotated[
        str, typer.Option("--current", metavar="OLD", help="Compare with this policy, replayed over the same record.")
    ] = "",
    grid: Annotated[
        str,
        typer.Option("--grid", metavar="LIST", help="Also try these GPU thresholds and windows: 2%,5%,10%,6h,24h,72h."),
    ] = "",
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often the guard runs: 1h, 6h.")] = "1h",
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="TIME", help="From this whole hour on, RFC 3339.", show_default="the first sample"
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="TIME", help="Look at nothing after this whole hour.", show_default="the last sample"
        ),
    ] = "",
    cloudwatch_utc: Annotated[
        bool, typer.Option("--cloudwatch-utc", help="Times without a zone in CloudWatch's CSV are UTC.")
    ] = False,
    html: Annotated[str, typer.Option("--html", metavar="FILE", help="Write one page with charts.")] = "",
    markdown: Annotated[
        str, typer.Option("--markdown", metavar="FILE", help="Write a comment for the pull request.")
    ] = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Replay a policy over recorded use: what it would have stopped, reclaimed, and been regretted for.

    By the same judge and the same steps that guard real fleets, hour by hour, without a look into the future; every
    rule is taken in earnest, whatever its mode. A regret is recorded use that comes back within 1, 6, 24 or 72 hours
    of a stop; where the record ends sooner or has a hole, it is undetermined. What is assumed stands below the figures.

    Reads no cloud and no ledger. Exit status: 0 done, 2 a policy or a file is wrong.
    """
    for target in (html, markdown):  # said before minutes of reading, not after
        if target and not Path(target).parent.is_dir():
            message = f"{target}: cannot be written: No such file or directory"
            raise InvalidInputError(message)
    with workplace(ctx, lang=lang) as here:
        language = here.language
        new, old = _policy(ctx, path), _policy(ctx, current) if current else None
        asked = _grid(grid)
        test, record = _tested(new, old, asked, history, (since, until, every), cloudwatch_utc=cloudwatch_utc)
        answer = _answer(test, record, language, html, markdown)
    emit(answer, as_json=as_json)


def _policy(ctx: typer.Context, path: str) -> Policy:
    policy = policy_at(ctx, path)
    if not policy.idle_gpu:
        message = f"{path}: nothing to replay: this policy has no rule under idle_gpu"
        raise InvalidInputError(message)
    return policy


def _tested(
    new: Policy,
    old: Policy | None,
    grid: Grid | None,
    history: Sequence[str],
    span: tuple[str, str, str],
    *,
    cloudwatch_utc: bool,
) -> tuple[BackTest, HistoryFiles]:
    from costguard.backtest import BackTest, Basis
    from costguard.engine.history.history import read_record

    with shard_progress("Reading") as step:
        record = read_record(history, progress=step, cloudwatch_utc=cloudwatch_utc)
    terms = _terms(record.machines, *span)
    basis = Basis(record.rows, record.doubted, record.unlisted)
    found = _replayed(new, record.machines, terms, "Replaying")
    before = None if old is None else _replayed(old, record.machines, terms, "Replaying the current policy")
    points = () if grid is None else _points(new, record.machines, terms, grid)
    return BackTest(terms, basis, found, before, points), record


def _replayed(policy: Policy, machines: Sequence[Machine], terms: Terms, title: str) -> Tallied:
    from costguard.backtest import replay, tallied

    found = []
    with shard_progress(title) as step:
        for done, one in enumerate(replay(policy, machines, terms), start=1):
            step(done, len(machines), one.ref.native_id)
            found.append(one)
    return tallied(found, policy.digest)


def _points(policy: Policy, machines: Sequence[Machine], terms: Terms, grid: Grid) -> tuple[Point, ...]:
    from costguard.backtest import frontier, marked

    points = []
    with shard_progress("Trying settings") as step:
        for done, point in enumerate(frontier(policy, machines, terms, grid), start=1):
            step(done, len(grid.settings()), "")
            points.append(point)
    return marked(points)


def _terms(machines: Sequence[Machine], since: str, until: str, every: str) -> Terms:
    from costguard.backtest import Terms
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

    measured = [
        (each.start, each.start + len(each.samples) * _HOUR) for machine in machines for each in machine.histories
    ]
    if not measured:
        message = "--history: nothing was measured in these files"
        raise InvalidInputError(message)
    begin = _hour(since, "--since") if since else min(first for first, _ in measured)
    end = _hour(until, "--until") if until else max(last for _, last in measured)
    if not begin < end <= begin + _LONGEST:
        message = f"--since {begin.isoformat()} is not before --until {end.isoformat()}, or years lie between"
        raise InvalidInputError(message)
    try:
        step = parse_duration(every)
    except BadValueError as err:
        message = f"--every: {err}"
        raise InvalidInputError(message) from err
    if step % _HOUR or not step:
        message = f"--every {every}: whole hours, such as 1h or 6h; a record by the hour shows no finer"
        raise InvalidInputError(message)
    return Terms(begin, end, step)


def _hour(text: str, option: str) -> datetime:
    from costguard.engine.history.book import parse_moment

    try:
        moment = parse_moment(text).astimezone(timezone.utc)
    except ValueError as err:
        message = f"{option}: {err}"
        raise InvalidInputError(message) from err
    if moment != moment.replace(minute=0, second=0, microsecond=0):
        message = f"{option} {text}: expected a whole hour, such as 2026-11-21T09:00:00Z"
        raise InvalidInputError(message)
    return moment


def _grid(text: str) -> Grid | None:
    """`2%,5%,6h,24h`: thresholds by their sign, windows by their unit."""
    if not text:
        return None
    from costguard.backtest import Grid
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration, parse_percent

    parts = [part.strip() for part in text.split(",")]
    try:
        thresholds = {float(parse_percent(part)) for part in parts if part.endswith("%")}
        windows = {parse_duration(part) for part in parts if not part.endswith("%")}
    except BadValueError as err:
        message = f"--grid: {err}"
        raise InvalidInputError(message) from err
    return Grid(tuple(sorted(thresholds)), tuple(sorted(windows)))


def _answer(test: BackTest, record: HistoryFiles, language: Language, html: str, markdown: str) -> CommandResult:
    from costguard.report.backtest.to_json import backtest_json
    from costguard.report.backtest.views import backtest_lines, backtest_tables, remarks
    from costguard.report.words.sentences import in_backtest as say

    closing = list(remarks(test, language))
    closing += [
        say("doubt", language, path=one.path, line=one.line, field=one.field, value=one.value)
        for one in record.doubts[:_DOUBTS_TOLD]
    ]
    if html:
        from costguard.connections.people import drawing
        from costguard.report.backtest.page import backtest_page

        write_file(html, backtest_page(test, language, drawing()))
        closing.append(say("written", language, file=html))
    if markdown:
        from costguard.report.backtest.markdown import backtest_markdown

        write_file(markdown, backtest_markdown(test, language))
        closing.append(say("written", language, file=markdown))
    return CommandResult(
        {**backtest_json(test, language), "doubts": [_doubt(record, at) for at in range(len(record.doubts))]},
        lines=tuple(backtest_lines(test, language)),
        tables=backtest_tables(test, language),
        closing=tuple(closing),
    )


def _doubt(record: HistoryFiles, at: int) -> dict[str, object]:
    from costguard.report.words.sentences import clean

    one = record.doubts[at]
    return {"path": clean(one.path), "line": one.line or None, "field": clean(one.field), "value": clean(one.value)}
