"""Approvers' words for a published policy that loosens: by a code that was sent to them, or by a button in Slack.

Whatever way a word comes, the same is asked of it; it is in the ledger before anybody is told that it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.domain.answers import AnswerRef, Person
from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.domain.reasons import FactValue
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.publications import ApproverWord, Publication, seq_of
from costguard.engine.policy.published import NOTHING, Bundles, Waits, waiting
from costguard.engine.policy.publishing import Published, asked_in, close_asking, named
from costguard.policy.model.policy import Policy
from costguard.report.plan.evidence import utc_words
from costguard.report.policy.publishing import SHORT, WordCode
from costguard.report.words.sentences import Language, phrase

VERIFIED_BY_CODE, VERIFIED_BY_BUTTON = "slack_code", "slack_button"
AGREE_WITHIN = timedelta(days=7)  # after the moment it asked for; who still wants it has people read it again


@dataclass(frozen=True, slots=True)
class Word:
    """One approver's word for the publication of a hash, and the code that shows it to be theirs."""

    digest: str
    person: str
    code: str


@dataclass(frozen=True, slots=True)
class Press:
    """A button that was pressed in Slack: for which publication, by whom, and in which channel."""

    of: AnswerRef
    by: Person
    channel: str


@dataclass(frozen=True, slots=True)
class PressResult:
    """What a press came to."""

    code: WordCode
    facts: dict[str, FactValue] = field(default_factory=dict)


def ask_approver(bundles: Bundles, memory: Memory, word: Word, now: datetime) -> Publication:
    """Remember the code that is about to be sent to an approver; an earlier one counts no more.

    Raises:
        InvalidInputError: nothing of this hash waits for them.
    """
    last = _approvable(bundles, memory, word, now).publication
    memory.policies.published.send_code(last.seq, word.person, word.code, now)
    return last


def agree(bundles: Bundles, memory: Memory, word: Word, now: datetime, language: Language = Language.EN) -> Published:
    """Count an approver's word, given the code that was sent to them.

    Raises:
        InvalidInputError: nothing of this hash waits for them, or the code is wrong, used or too old.
    """
    found = _approvable(bundles, memory, word, now)
    if not memory.policies.published.code_fits(found.publication.seq, word.person, word.code, now):
        message = "that is not the code, or it was used or is over 15 minutes old; ask for another without --code"
        raise InvalidInputError(message)
    return _counted(bundles, memory, found, ApproverWord(word.person, now, VERIFIED_BY_CODE), language)


def agree_by_button(
    bundles: Bundles, memory: Memory, policy: Policy, press: Press, now: datetime, language: Language = Language.EN
) -> PressResult:
    """Count an approver's press of the button, if it counts; `policy` is the one in force. Safe to repeat.

    Who may say it is asked before anything is told of the publication.

    Raises:
        LedgerError: it is not known whether the word was written.
    """
    foreign = _foreign(memory, policy, press)
    seq, published = seq_of(press.of), memory.policies.published
    pressed = published.get(seq) if foreign is None and seq is not None else None
    if foreign is not None or pressed is None or pressed.digest != press.of.decision_id:
        return PressResult(foreign or WordCode.UNKNOWN)
    facts: dict[str, FactValue] = {
        "digest": pressed.digest[:SHORT],
        "when": utc_words(pressed.effective_at or pressed.at),
        "days": AGREE_WITHIN.days,
    }
    last = published.latest()
    if last is None or last.seq != seq:
        return PressResult(WordCode.SUPERSEDED, facts)
    try:
        found = _looked_at(bundles, memory, last, press.by.id, now)
        if found.bar is not None:
            return PressResult(found.bar, {**facts, "missing": found.missing})
        done = _counted(bundles, memory, found, ApproverWord(press.by.id, now, VERIFIED_BY_BUTTON), language)
    except (InvalidInputError, ProviderError):
        return PressResult(WordCode.BROKEN, facts)
    missing = done.waits.missing if done.waits is not None else 0
    return PressResult(WordCode.COUNTS if missing else WordCode.ENOUGH, {**facts, "missing": missing})


def _foreign(memory: Memory, policy: Policy, press: Press) -> WordCode | None:
    """Why this person's press counts nowhere."""
    terms = policy.answers
    if not terms.slack_team:
        return WordCode.NOT_SET_UP
    if press.by.team != terms.slack_team:
        return WordCode.FOREIGN_TEAM
    offered = asked_in(memory, press.of, press.by.id)
    if press.channel not in offered:
        return WordCode.FOREIGN_CHANNEL if offered else WordCode.UNKNOWN
    return None if press.by.id in terms.approvers else WordCode.NO_APPROVER


@dataclass(frozen=True, slots=True)
class _Look:
    """The publication that a word is for, what it waits for, and why the word does not count, if it does not."""

    publication: Publication
    waits: Waits | None
    old: Policy | None
    bar: WordCode | None

    @property
    def missing(self) -> int:
        return self.waits.missing if self.waits is not None else 0


def _looked_at(bundles: Bundles, memory: Memory, last: Publication, person: str, now: datetime) -> _Look:
    """What is asked of every word, whatever way it comes."""
    waits, old = waiting(bundles, memory, last, now)
    return _Look(last, waits, old, _bar(last, waits, old, person, now))


def _bar(last: Publication, waits: Waits | None, old: Policy | None, person: str, now: datetime) -> WordCode | None:
    if waits is None or old is None or not waits.missing:
        return WordCode.NOT_NEEDED
    if person not in old.answers.approvers:
        return WordCode.NO_APPROVER
    if any(each.by == person for each in last.agreed):
        return WordCode.SAID_BEFORE
    if waits.until is None:
        return WordCode.NO_MOMENT
    return WordCode.EXPIRED if now > waits.until + AGREE_WITHIN else None


def _approvable(bundles: Bundles, memory: Memory, word: Word, now: datetime) -> _Look:
    last = memory.policies.published.latest()
    if last is None:
        raise InvalidInputError(NOTHING)
    named((last,), word.digest)
    found = _looked_at(bundles, memory, last, word.person, now)
    if found.bar is None:
        return found
    short, when = last.digest[:SHORT], utc_words(last.effective_at or last.at)
    messages = {
        WordCode.NO_APPROVER: (
            f"{word.person[:40]!r} is no approver of the policy in force (notify.answers.approvers)"
        ),
        WordCode.SAID_BEFORE: f"{word.person} has agreed already; {found.missing} more must",
        WordCode.NO_MOMENT: f"{short} names no moment far enough ahead; publish it again with --effective-at",
        WordCode.EXPIRED: (
            f"{short} was to decide from {when} on, more than {AGREE_WITHIN.days} days ago; publish it again"
        ),
    }
    raise InvalidInputError(messages.get(found.bar, f"{short} waits for nobody's approval"))


def _counted(bundles: Bundles, memory: Memory, found: _Look, agreement: ApproverWord, language: Language) -> Published:
    """Write the word, and once enough have agreed let the messages that asked for it say so."""
    after = memory.policies.published.agree(found.publication.seq, agreement)
    waits, _ = waiting(bundles, memory, after, agreement.at)
    if found.old is not None and (waits is None or not waits.missing):
        people, when = ", ".join(each.by for each in after.agreed), utc_words(after.effective_at or after.at)
        status = phrase("asked_enough", language, people=people, when=when)
        close_asking(memory, after, found.old.answers.approvers, status)
    return Published(after, waits.loosened if waits is not None else (), waits)
