"""`costguard policy publish`, `history`, `rollback` and `approve`: which policy functions decide by, and since when."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.options import A_POLICY, By, Json, Lang, LedgerUrl, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import text_of, who_says
from costguard.cli.policy.diff import commit_of, text_at
from costguard.cli.program import CliContext, ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language

if TYPE_CHECKING:
    from costguard.adapters.policy_sources.published import BundleShelf
    from costguard.engine.ledger.memory import Memory
    from costguard.engine.policy.agreeing import Word
    from costguard.engine.policy.publishing import Chronicle, Published, Wish
    from costguard.report.policy.publishing import Entry

_CODE_DIGITS = 8
_Said = tuple[dict[str, Any], tuple[str, ...]]

To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="ADDRESS",
        help="Where policies are published: s3://BUCKET/PREFIX?region=REGION, oss://, cos://, or published:FOLDER.",
        show_default="COSTGUARD_POLICY",
    ),
]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for the history: the pull request, say.")]
EffectiveAt = Annotated[
    str,
    typer.Option(
        "--effective-at",
        metavar="MOMENT",
        help="From when on it counts: 2026-12-01T10:00:00+08:00, or how far ahead (36h). A loosening needs it.",
        show_default="at once",
    ),
]

PUBLISH_EXAMPLES = examples(
    'costguard policy publish policy/ --to "s3://acme-policy/costguard?region=us-east-1" --note "PR 42"',
    "costguard policy publish policy/ --to published:/mnt/policy --effective-at 36h",
)


def publish(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help=f"The policy: {A_POLICY}.")],
    *,
    to: To = "",
    effective_at: EffectiveAt = "",
    note: Note = "",
    by: By = "",
    ledger: LedgerUrl = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Publish a policy: keep it as one immutable bundle, and let the ledger's pointer name it.

    Checks it as `policy check` does. What loosens nothing decides from the next run on. What loosens anything waits for
    --effective-at, 24 hours ahead at least, and for two approvers of the policy in force; until then that one decides.
    Without --note the commit is noted where the policy is read from git.
    """
    text = text_at(ctx, folder)
    commit = commit_of(folder, text)
    with _desk(ctx, to, ledger, lang, make=bool(ledger)) as desk:  # the first thing that many deployments do
        from costguard.engine.policy.publishing import publish as move

        wish = _wish(by, note or (f"git {commit}" if commit else ""), effective_at, desk)
        done = move(desk.bundles, desk.memory, text, wish, desk.now)
        language = desk.language
    _emit(done, language, as_json=as_json)


ROLLBACK_EXAMPLES = examples(
    'costguard policy rollback --note "incident 42"',
    "costguard policy rollback 1f0c2b7a9d3e --effective-at 24h",
)


def rollback(
    ctx: typer.Context,
    digest: Annotated[
        str,
        typer.Argument(
            metavar="HASH", help="A published policy, its hash or 8 letters of it.", show_default="the one before"
        ),
    ] = "",
    *,
    to: To = "",
    effective_at: EffectiveAt = "",
    note: Note = "",
    by: By = "",
    ledger: LedgerUrl = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Go back to a policy that was published before; while one waits, take it away.

    The same conditions hold as for publishing: going back to what loosens waits and needs approvals too.
    """
    with _desk(ctx, to, ledger, lang) as desk:
        from costguard.engine.policy.publishing import roll_back

        wish = _wish(by, note, effective_at, desk)
        done = roll_back(desk.bundles, desk.memory, digest, wish, desk.now)
        language = desk.language
    _emit(done, language, as_json=as_json)


HISTORY_EXAMPLES = examples(
    "costguard policy history",
    "costguard policy history --json",
)


def history(
    ctx: typer.Context,
    *,
    to: To = "",
    ledger: LedgerUrl = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """List what was published, when and by whom, how much of it loosened, and what is in force."""
    with _desk(ctx, to, ledger, lang) as desk:
        from costguard.engine.policy.publishing import chronicle, waiting_of
        from costguard.report.policy.publishing import history_json, history_table, waiting_lines

        found = chronicle(desk.bundles, desk.memory, desk.now)
        entries = _entries(found)
        waiting = waiting_of(found.waits) if found.waits is not None else None
        language = desk.language
    emit(
        CommandResult(
            history_json(entries, waiting),
            tables=(history_table(entries, language),),
            closing=waiting_lines(waiting, language) if waiting is not None else (),
        ),
        as_json=as_json,
    )


APPROVE_EXAMPLES = examples(
    "costguard policy approve 1f0c2b7a9d3e --by U0123ABCD",
    "costguard policy approve 1f0c2b7a9d3e --by U0123ABCD --code 12345678",
)


def approve(
    ctx: typer.Context,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="The policy that waits, its hash or 8 letters of it.")],
    *,
    approver: Annotated[
        str, typer.Option("--by", metavar="USER", help="Your Slack user id, as notify.answers.approvers names you.")
    ],
    code: Annotated[
        str, typer.Option("--code", metavar="CODE", help="The code that you were sent.", show_default="send one")
    ] = "",
    to: To = "",
    ledger: LedgerUrl = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Agree to a published policy that loosens the one in force; two of its approvers have to.

    Without --code the approver is sent one in Slack, which shows that the word is theirs; with it the approval counts.
    """
    with _desk(ctx, to, ledger, lang) as desk:
        from costguard.engine.policy.agreeing import Word

        if code:
            data, lines = _agreed(desk, Word(digest, approver, code))
        else:
            data, lines = _asked(desk, Word(digest, approver, f"{secrets.randbelow(10**_CODE_DIGITS):0{_CODE_DIGITS}}"))
    emit(CommandResult(data, lines=lines), as_json=as_json)


def _asked(desk: _Desk, word: Word) -> _Said:
    from costguard.bootstrap import notifier_of
    from costguard.engine.policy.agreeing import ask_approver
    from costguard.ports import Message
    from costguard.report.policy.publishing import SHORT, code_notice
    from costguard.report.words.sentences import phrase

    last = ask_approver(desk.bundles, desk.memory, word, desk.now)
    words = code_notice(last.digest, word.code, desk.language)
    notifier_of(desk.here.settings).send(Message(f"slack:{word.person}", words.title, words.text, lines=words.lines))
    said = phrase("code_sent", desk.language, person=word.person, digest=last.digest[:SHORT])
    return {"schema": 1, "hash": last.digest, "by": word.person, "code_sent": True}, (said,)


def _agreed(desk: _Desk, word: Word) -> _Said:
    from costguard.engine.policy.agreeing import agree
    from costguard.engine.policy.publishing import waiting_of
    from costguard.report.plan.evidence import utc_words
    from costguard.report.policy.publishing import SHORT, waiting_json
    from costguard.report.words.sentences import phrase

    done = agree(desk.bundles, desk.memory, word, desk.now, desk.language)
    last, waiting = done.publication, waiting_of(done.waits) if done.waits is not None else None
    when, missing = utc_words(last.effective_at or last.at), waiting.missing if waiting is not None else 0
    said = phrase("agreed", desk.language, person=word.person, digest=last.digest[:SHORT])
    then = "agreed_missing" if missing else "agreed_all"
    data = {"schema": 1, "hash": last.digest, "by": word.person, "waits": waiting_json(waiting)}
    return data, (said, phrase(then, desk.language, missing=missing, when=when))


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where one of these commands works."""

    here: CliContext
    memory: Memory
    bundles: BundleShelf
    now: datetime

    @property
    def language(self) -> Language:
        return self.here.language


@contextmanager
def _desk(ctx: typer.Context, to: str, ledger: str, lang: Language | None, *, make: bool = False) -> Iterator[_Desk]:
    """`make`: a ledger file that is named and not there yet is made."""
    with workplace(ctx, lang=lang, ledger=ledger) as here:
        from costguard.connections.policies import open_bundles

        bundles = open_bundles(here.settings, to or here.settings.policy, here.clock)
        with _made(here) if make else ledger_in_use(here) as memory:
            yield _Desk(here, memory, bundles, here.clock.now())


@contextmanager
def _made(here: CliContext) -> Iterator[Memory]:
    from costguard.bootstrap import open_memory

    memory = open_memory(here.settings)
    with closing(memory.store):
        yield memory


def _wish(by: str, note: str, effective_at: str, desk: _Desk) -> Wish:
    from costguard.engine.policy.publishing import Wish

    moment = _moment(effective_at, desk.now) if effective_at else None
    return Wish(who_says(by), text_of(note, "--note"), moment, desk.language)


def _moment(text: str, now: datetime) -> datetime:
    from costguard.policy.syntax.moments import parse_moment
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

    found = parse_moment(text)
    if found is not None and found.utcoffset() is not None:
        return found
    try:
        return now + parse_duration(text)
    except BadValueError as err:
        message = f"--effective-at: {text[:40]!r} is no moment; write 2026-12-01T10:00:00+08:00, or 36h"
        raise InvalidInputError(message) from err


def _published(done: Published) -> dict[str, Any]:
    from costguard.engine.policy.publishing import Chronicle, waiting_of
    from costguard.report.policy.diff import diff_json
    from costguard.report.policy.publishing import entry_json, waiting_json

    entry = _entries(Chronicle((done.publication,), done.waits))[0]
    waiting = waiting_of(done.waits) if done.waits is not None else None
    differences = diff_json(done.differences, "", "")["differences"]
    return {"schema": 1, "published": entry_json(entry), "waits": waiting_json(waiting), "differences": differences}


def _emit(done: Published, language: Language, *, as_json: bool) -> None:
    from costguard.engine.policy.publishing import waiting_of
    from costguard.report.policy.diff import diff_summary, diff_table
    from costguard.report.policy.publishing import SHORT, waiting_lines
    from costguard.report.words.sentences import phrase

    made = done.publication
    waiting = waiting_of(done.waits) if done.waits is not None else None
    key = "published_back" if made.rollback else "published"
    said = phrase(key, language, digest=made.digest[:SHORT], seq=made.seq, address=made.address)
    emit(
        CommandResult(
            _published(done),
            lines=(said, *waiting_lines(waiting, language)),
            tables=(diff_table(done.differences, language),) if done.differences else (),
            closing=(diff_summary(done.differences, language),),
        ),
        as_json=as_json,
    )


def _entries(found: Chronicle) -> tuple[Entry, ...]:
    from costguard.report.policy.publishing import Entry, PublicationStage

    last = found.publications[-1]

    def stage(seq: int, decided: bool) -> PublicationStage:  # noqa: FBT001 - two words of one thing
        if seq == last.seq:
            return (
                PublicationStage.WAITS
                if found.waits is not None
                else PublicationStage.IN_FORCE
                if decided
                else PublicationStage.NEXT_RUN
            )
        return PublicationStage.WAS_IN_FORCE if decided else PublicationStage.NEVER

    return tuple(
        Entry(
            seq=each.seq,
            digest=each.digest,
            address=each.address,
            by=each.by,
            at=each.at,
            note=each.note,
            rollback=each.rollback,
            effective_at=each.effective_at,
            in_force_at=each.in_force_at,
            loosened=each.loosened,
            loosens=each.loosens,
            tightens=each.tightens,
            otherwise=each.otherwise,
            agreed=tuple(vote.by for vote in each.agreed),
            stage=stage(each.seq, each.in_force_at is not None),
        )
        for each in found.publications
    )
