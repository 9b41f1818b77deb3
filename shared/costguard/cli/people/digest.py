"""`costguard digest`: the weekly digest, told now, or only shown."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from costguard.engine.digest import DigestRun, FirstPage
    from costguard.policy.model.policy import Policy
    from costguard.report.words.sentences import Language

DIGEST_EXAMPLES = examples(
    "costguard digest --dry-run",
    "costguard digest --first --policy policies/",
    "costguard digest --policy policies/ --lang zh",
    "costguard invoke digest --event events/lambda/digest.json",
)

_FIRST_DAYS = 30


def digest(
    ctx: typer.Context,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what every channel would be told; tell nobody, keep nothing.")
    ] = False,
    first: Annotated[
        bool, typer.Option("--first", help="The first one: the page of `scan --html`, of what the clouds show now.")
    ] = False,
    days: Annotated[
        int, typer.Option("--days", min=1, max=63, help="With --first: how many days to look back.")
    ] = _FIRST_DAYS,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Tell every team, and the default channel, what was saved, what is still wasted, and what nobody saw.

    From the ledger alone, as `costguard report`; no cloud is asked but the one that keeps the page, where
    COSTGUARD_REPORTS names a place. Once a day at most: a second time on the same day tells nothing again.
    Before anything has run, `--first` reads the clouds as `costguard scan` does, and tells the default channel.

    Exit status: 0 done.
    """
    with workplace(
        ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=first or (sandbox and not dry_run)
    ) as here:
        from costguard.bootstrap import notifier_of, read_policy
        from costguard.connections.people import means_of
        from costguard.engine.digest import plan_digest, run_digest, run_first

        rules, now, language = read_policy(here.settings), here.clock.now(), here.language
        run_id = sha256(f"digest\n{now.date()}".encode()).hexdigest()[:20]
        page = _first(here, rules, days) if first else None
        with ledger_in_use(here, new=first) as memory:
            if dry_run and page is not None:
                done = _planned(page, rules, run_id)
            elif dry_run:
                done = plan_digest(memory, rules, run_id, now, language)
            elif page is not None:
                means = means_of(here.settings, here.clock)
                done = run_first(memory, rules, notifier_of(here.settings), here.clock, run_id, means, page, language)
            else:
                means = means_of(here.settings, here.clock)
                notifier = notifier_of(here.settings)
                done = run_digest(memory, rules, notifier, here.clock, run_id, means, language)
    emit(
        CommandResult(_data(done, dry_run=dry_run), lines=tuple(_lines(done, language, dry_run=dry_run))),
        as_json=as_json,
    )


def _first(here: CliContext, policy: Policy, days: int) -> FirstPage:
    """What the clouds show now, as a digest."""
    from functools import partial

    from costguard.cli.look.scan import day_one
    from costguard.engine.digest import FirstPage
    from costguard.report.notices.digest import first_notice

    if not policy.default_channel:
        raise InvalidInputError(
            "the policy names no default channel for it; add notify: {default: …} to costguard.yaml"
        )
    seen = day_one(here, timedelta(days=days))
    report, language = seen.report, here.language
    told = partial(first_notice, report, seen.reclaimed, language=language)
    idle = sum(1 for each in report.instances if each.idle_hours)
    unmeasured = sum(len(group.instances) for group in report.unmeasured)
    counts = {"idle": idle, "unmeasured": unmeasured, "gaps": len(report.gaps)}
    return FirstPage(seen.page(language), lambda kept: told(kept=kept), counts)


def _planned(page: FirstPage, policy: Policy, run_id: str) -> DigestRun:
    from costguard.engine.digest import DigestRun, ToTell
    from costguard.report.notices.digest import Kept

    return DigestRun(run_id, page.counts, (ToTell(policy.default_channel, "", page.notice(Kept())),))


def _lines(done: DigestRun, language: Language, *, dry_run: bool) -> Iterator[str]:
    from costguard.report.words.sentences import in_digest as say

    if done.duplicate:
        yield say("digest_again", language)
        return
    if dry_run:
        yield say("digest_dry", language)
        for one in done.told:
            yield ""
            yield say("digest_to", language, channel=one.channel)
            yield from (f"  {line}" for line in one.notice.text.split("\n"))
        return
    yield say("digest_sent", language, count=done.delivered, kept=int(bool(done.kept.page)))
    if done.kept.page:
        yield say("digest_page", language, where=done.kept.page)
    if done.kept.why_not:
        yield say("digest_page_failed", language, why=done.kept.why_not)


def _data(done: DigestRun, *, dry_run: bool) -> dict[str, Any]:
    from costguard.engine.digest import digest_summary

    told = [
        {
            "channel": one.channel,
            "owner": one.owner,
            "title": one.notice.title,
            "fields": [list(field) for field in one.notice.fields],
            "lines": list(one.notice.lines),
        }
        for one in done.told
    ]
    return {"schema": 1, "dry_run": dry_run, **digest_summary(done), "told": told}
