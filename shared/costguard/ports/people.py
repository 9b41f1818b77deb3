"""What reaches people, and where they keep the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from costguard.domain.answers import AnswerKind, AnswerRef


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer on offer below a part: a button where the channel has them, else a signed link for a `KEEP`, or words.

    `length` is how long a `KEEP` keeps; `asks` is the question to confirm what interrupts work.
    """

    kind: AnswerKind
    label: str
    of: AnswerRef
    length: timedelta | None = None
    asks: str = ""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """What one message says of one decision, of several in it.

    `picture` is a line of block characters, the utilisation over the window. `status` is what became of it since
    (kept, stopped …): a part that has one offers no choices.
    """

    decision_id: str
    title: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    picture: str = ""
    choices: tuple[Choice, ...] = ()
    status: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A notice ready for a channel, neutral: each notifier lays it out in its channel's own form.

    `channel` is an address (`slack:#gpu-costs`), `fields` are label and value, `lines` closing sentences,
    `text` the whole as plain lines for channels and screens without layout. `parts` come between `fields` and `lines`,
    one for each decision it is about. Everything in it may come from outside (tags, names): notifiers escape.
    `thread` is the receipt of a message to reply under. `notice_id` is the same for every attempt to deliver one
    notice, so that a channel can tell a repetition; empty for what is sent only once.
    """

    channel: str
    title: str
    text: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    notice_id: str = ""
    parts: tuple[MessagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Proof that a channel took a message: Slack's `ts`, an SMTP 250, a webhook's 2xx, a robot's code 0."""

    receipt: str
    proves_delivery: bool = True


class Notifier(Protocol):
    """Brings one message to people."""

    def send(self, message: Message) -> Delivery:
        """Deliver now, once.

        Raises:
            RateLimitedError: try again after its `retry_after`.
            RejectedNoticeError: never deliverable as it is.
            NoticeError: not delivered for a passing reason.
        """

    def edit(self, receipt: str, message: Message) -> bool:
        """Show `message` in the place of the one with this receipt; False where the channel cannot change what it sent.

        Safe to repeat. No notice and no grace depends on it: what it would show is also replied in the thread.

        Raises:
            NoticeError: of one of its kinds, as `send`.
        """

    def capacity(self, message: Message) -> int:
        """How many of the first parts of `message`, with the rest of it, one message can hold; at least 1.

        Pure, asks nobody. Fewer than there are means: send the others in messages of their own.
        """


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The files of a policy as read: path → text, in path order, and a revision (commit, ETag, or hash)."""

    files: Mapping[str, str]
    revision: str
    origin: str = ""


class PolicySource(Protocol):
    """Where policies are kept: a file, a folder, or an object store."""

    def read(self) -> PolicyText:
        """All policy files, whole.

        Raises:
            InvalidInputError: nothing there, or not text.
            ProviderError: the store could not be read.
        """
