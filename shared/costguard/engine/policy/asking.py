"""Asking approvers for their word on a published policy that loosens: the messages, and what they show once settled.

The default channel is told, and each approver by a message of their own: not everybody reads that channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.outbox.notice import OutboxNotice
from costguard.engine.ledger.publications import Publication, ref_of, seq_of
from costguard.engine.notify.messages import is_clickable
from costguard.engine.policy.published import Waits
from costguard.policy.diff.policies import loosening_words
from costguard.policy.model.policy import Policy
from costguard.ports import Choice
from costguard.report.notices.messages import answer_label
from costguard.report.policy.publishing import Waiting, approve_asks, waiting_notice
from costguard.report.words.sentences import Language


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
