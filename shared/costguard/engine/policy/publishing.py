"""Publishing a policy and taking it back, and asking approvers for their word on one that loosens.

The default channel is told, and each approver by a message of their own: not everybody reads that channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import InvalidInputError
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.publications import Publication, ref_of, seq_of
from costguard.engine.notify.choices import is_clickable
from costguard.engine.policy.in_force import Load, compiled
from costguard.engine.policy.published import (
    FIRST_OBSERVES,
    NOTHING,
    Bundles,
    Waits,
    base_of,
    valid,
    waiting,
    waits_for,
)
from costguard.policy.diff.differences import Difference, Direction, loosening
from costguard.policy.diff.policies import APPROVALS_NEEDED, LOOSENING_WAITS, changes, loosening_words, observes_only
from costguard.policy.documents.bundle import Usable, usable
from costguard.policy.model.holidays import FILE as HOLIDAYS_FILE
from costguard.policy.model.policy import Policy
from costguard.ports import Choice, PolicyText
from costguard.report.notices.messages import answer_label
from costguard.report.policy.publishing import Waiting, approve_asks, waiting_notice
from costguard.report.words.sentences import Language, phrase


def waiting_of(waits: Waits) -> Waiting:
    """As reports tell it."""
    last = waits.publication
    loosened = tuple(map(loosening_words, waits.loosened))
    return Waiting(last.digest, last.seq, last.by, last.note, waits.until, waits.missing, loosened)


def asking_notices(waits: Waits, policy: Policy, language: Language, now: datetime) -> Iterator[OutboxNotice]:
    """What people are told of a publication that waits under `policy`, the one in force; with a button where it helps.

    The ids are the same each time, so that the outbox takes each of them once.
    """
    waiting, seq = waiting_of(waits), waits.publication.seq
    label = answer_label(AnswerKind.APPROVE, None, language)
    approve = Choice(AnswerKind.APPROVE, label, ref_of(waits.publication), asks=approve_asks(waiting, language))
    asked = policy.answers.approvers if waits.missing and waits.until is not None else ()
    channels = {_id_of(seq): policy.default_channel or ""} if policy.default_channel else {}
    channels |= {_id_of(seq, person): f"slack:{person}" for person in asked if policy.answers.slack_team}
    for notice_id, channel in channels.items():
        clickable = bool(asked) and is_clickable(policy, channel)
        worded = waiting_notice(waiting, language=language, clickable=clickable)
        yield OutboxNotice(
            notice_id=notice_id,
            decision_id="",
            case_key="",
            channel=channel,
            title=worded.title,
            text=worded.text,
            created_at=now,
            fields=worded.fields,
            lines=worded.lines,
            choices=(approve,) if clickable else (),
        )


def asked_in(memory: Memory, of: AnswerRef, person: str) -> frozenset[str]:
    """The channels, in Slack's own words, in which this person was offered a button for just this publication."""
    seq = seq_of(of)
    if seq is None:
        return frozenset()
    found = (memory.outbox.get(_id_of(seq)), memory.outbox.get(_id_of(seq, person)))
    delivered = (each for each in found if each is not None and each.receipt)
    return frozenset(
        each.receipt.rpartition(":")[0] for each in delivered if any(choice.of == of for choice in each.choices)
    )


def close_asking(memory: Memory, publication: Publication, approvers: Iterable[str], status: str) -> None:
    """Let the messages about this publication say what became of it, and offer nothing any more."""
    told = (_id_of(publication.seq), *(_id_of(publication.seq, person) for person in approvers))
    memory.outbox.mark(dict.fromkeys(told, status))


def _id_of(seq: int, person: str = "") -> str:
    return f"policy-waits-{seq}-{person}" if person else f"policy-waits-{seq}"


_MOST_TOLD, _LONGEST = 50, 300  # a record holds 400 KB at most, on DynamoDB
_SHORTEST = 8  # letters of a hash that name a bundle, as short ones of commits do


@dataclass(frozen=True, slots=True)
class Wish:
    """Who publishes, why, and from when on it is to count; `language` is that of the people who are asked."""

    by: str
    note: str = ""
    effective_at: datetime | None = None
    language: Language = Language.EN


@dataclass(frozen=True, slots=True)
class Published:
    """What was published, how it differs from what is in force, and what it still waits for."""

    publication: Publication
    differences: tuple[Difference, ...]
    waits: Waits | None


@dataclass(frozen=True, slots=True)
class Chronicle:
    """Every publication, the first one first, and what the last one waits for."""

    publications: tuple[Publication, ...]
    waits: Waits | None


def publish(bundles: Bundles, memory: Memory, text: PolicyText, wish: Wish, now: datetime) -> Published:
    """Keep these files as a bundle, with the dates of holidays that they name, and move the pointer to it.

    Raises:
        InvalidInputError: not a valid policy, not one that may be published, or somebody else published meanwhile.
        ProviderError: it could not be kept, or what is in force not be read.
    """
    return _move(bundles, memory, _dated(text), wish, now, rollback=False)


def _dated(text: PolicyText) -> PolicyText:
    """With the dates of today's package: no function carries it, and a bundle says the same for good."""
    from costguard.policy.documents.loader import holidays_file  # pydantic, as in `in_force`

    dates = holidays_file(text)
    files = {path: said for path, said in text.files.items() if path != HOLIDAYS_FILE}
    return replace(text, files={**files, **({HOLIDAYS_FILE: dates} if dates else {})})


def roll_back(bundles: Bundles, memory: Memory, digest: str, wish: Wish, now: datetime) -> Published:
    """Move the pointer back to an earlier bundle, under the same conditions; without a hash to what decided before.

    While a publication waits that is what is in force still, so that going back takes it away.

    Raises:
        InvalidInputError: nothing was published under it, and as `publish`.
        ProviderError: as `publish`.
    """
    publications = memory.policies.published.all()
    chosen = named(publications, digest) if digest else _before(publications)
    return _move(bundles, memory, bundles.fetch(chosen), wish, now, rollback=True)


def chronicle(bundles: Bundles, memory: Memory, now: datetime) -> Chronicle:
    """What was published, and what the last one waits for.

    Raises:
        InvalidInputError: nothing was published, or a bundle was altered.
        ProviderError: a bundle could not be read.
    """
    publications = memory.policies.published.all()
    last = memory.policies.published.latest()
    if last is None:
        raise InvalidInputError(NOTHING)
    return Chronicle(publications, waiting(bundles, memory, last, now)[0])


def _move(
    bundles: Bundles,
    memory: Memory,
    text: PolicyText,
    wish: Wish,
    now: datetime,
    *,
    rollback: bool,
    load: Load = compiled,
) -> Published:
    policy = load(text)
    _has_approvers(policy)
    published = memory.policies.published
    last, before = published.latest(), _base(bundles, memory, now)
    comparable = valid(before, load)
    if comparable is None and not observes_only(policy):
        raise InvalidInputError(FIRST_OBSERVES)
    old = comparable if comparable is not None else policy
    draft = Publication(
        seq=0,
        digest="",
        address=bundles.origin,
        by=wish.by,
        at=now,
        note=wish.note,
        rollback=rollback,
        effective_at=wish.effective_at,
    )
    first = published.in_force() is None
    waits = waits_for(draft, old, policy, now, first=first)
    loosened = waits.loosened if waits is not None else ()
    if loosened and waits is not None and waits.until is None:
        _refuse_at_once(loosened, now)
    if wish.effective_at is not None and wish.effective_at <= now:
        raise InvalidInputError("--effective-at is past; leave it out where nothing loosens")
    base = bundles.keep(dict(before.files)) if before is not None else ""
    digest = bundles.keep(dict(text.files))
    if last is not None and last.digest == digest and (wish.effective_at == last.effective_at or not loosened):
        message = f"the policy published last is this very one, {digest[:12]}; see `costguard policy history`"
        raise InvalidInputError(message)
    differences = changes(old, policy, now)
    count = [each.direction for each in differences]
    made = published.publish(
        last.seq if last is not None else 0,
        Publication(
            seq=0,
            digest=digest,
            address=bundles.origin,
            by=wish.by,
            at=now,
            base=base,
            note=wish.note,
            rollback=rollback,
            effective_at=wish.effective_at,
            loosened=tuple(loosening_words(each)[:_LONGEST] for each in loosened[:_MOST_TOLD]),
            loosens=len(loosened),
            tightens=count.count(Direction.TIGHTER),
            otherwise=count.count(Direction.OTHER) + len(loosening(differences)) - len(loosened),
        ),
    )
    if last is not None and last.in_force_at is None:
        close_asking(memory, last, old.answers.approvers, phrase("asked_superseded", wish.language))
    return Published(made, differences, waits_for(made, old, policy, now, first=first))


def _base(bundles: Bundles, memory: Memory, now: datetime) -> PolicyText | None:
    """What runs decide by; before the first publication the policy from files that they may still decide by."""
    if memory.policies.published.latest() is not None:
        return base_of(bundles, memory)
    good = memory.policies.last_good()
    return good.text if good is not None and usable(good.read_at, now) is Usable.OK else None


def _has_approvers(policy: Policy) -> None:
    if len(set(policy.answers.approvers)) < APPROVALS_NEEDED:
        message = (
            f"a published policy names at least {APPROVALS_NEEDED} approvers, or nothing could ever be loosened again; "
            "add notify.answers with slack_team and approvers to costguard.yaml"
        )
        raise InvalidInputError(message)


def _refuse_at_once(loosened: tuple[Difference, ...], now: datetime) -> None:
    earliest = (now + LOOSENING_WAITS + timedelta(minutes=1)).isoformat(timespec="minutes")
    told = "\n".join(f"  {loosening_words(each)}" for each in loosened[:_MOST_TOLD])
    message = (
        f"this policy loosens the one in force, so that {APPROVALS_NEEDED} approvers have to agree, and it has to name "
        f"from when on it counts, {LOOSENING_WAITS // timedelta(hours=1)} h ahead at least: --effective-at {earliest}, "
        f"or later\n{told}"
    )
    raise InvalidInputError(message)


def named(publications: tuple[Publication, ...], digest: str) -> str:
    """The one hash of these that `digest` is, or begins.

    Raises:
        InvalidInputError: it names none of them, or several.
    """
    found = {each.digest for each in publications if len(digest) >= _SHORTEST and each.digest.startswith(digest)}
    if len(found) != 1:
        message = f"{digest[:80]!r} names no published policy; give {_SHORTEST} letters of its hash or more"
        raise InvalidInputError(message)
    return found.pop()


def _before(publications: tuple[Publication, ...]) -> str:
    """Of a last one that is not in force: what is. Else what was before it."""
    if not publications:
        raise InvalidInputError(NOTHING)
    last = publications[-1]
    decided = [each.digest for each in publications if each.in_force_at is not None and each.digest != last.digest]
    if not decided:
        raise InvalidInputError("no other published policy was ever in force; name the hash to go to")
    return decided[-1]
