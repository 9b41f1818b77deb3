"""What reaches people, and where they keep the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """A notice ready for a channel, neutral: each notifier lays it out in its channel's own form.

    `channel` is an address (`slack:#gpu-costs`), `fields` are label and value, `lines` closing sentences,
    `text` the whole as plain lines for channels and screens without layout. Everything in it may come
    from outside (tags, names): notifiers escape. `thread` is the receipt of a message to reply under.
    `notice_id` is the same for every attempt to deliver one notice, so that a channel can tell a repetition; empty
    for what is sent only once.
    """

    channel: str
    title: str
    text: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    notice_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Proof that a channel took a message: Slack's `ts`, an SMTP 250, a webhook's 2xx."""

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
