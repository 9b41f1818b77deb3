"""The channel that people read, and what its messages say to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from tests.simulation.chronicle import Chronicle, Offered, Told
from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Hub, Process

from costguard.domain.actions import Verb
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Delivery, Message

CHAT = "C0FFEE01"  # the id that the chat has for the channel
_STEP = re.compile(r"\b(stop|snapshot|terminate): not before")
_MOMENT = re.compile(r"not before (\d{4}-\d\d-\d\d \d\d:\d\d) UTC")


@dataclass(slots=True)
class Channel:
    """The chat as it is; `down` loses every message until it is up again."""

    hub: Hub
    chronicle: Chronicle
    machines: dict[str, None]
    watch: Callable[[Told], None]
    down: bool = False
    proves: bool = True
    refused_at: datetime | None = None
    troubled_at: datetime | None = None  # when a message was last not taken, or its sender lost

    def show(self, message: Message, asked: datetime, asked_number: int) -> None:
        """The message, on a console where nobody may be looking."""
        self.chronicle.shown += [self._told(each, asked, asked_number) for each in pages_of(message)]
        self.hub.trace.note(self.hub.now, f"shown on a console: {message.title}")

    def take(self, message: Message, asked: datetime, asked_number: int) -> str:
        """The message, sent when `asked`, is there to be read; returns its receipt."""
        for page in pages_of(message):
            told = self._told(page, asked, asked_number)
            self.chronicle.told.append(told)
            self.watch(told)
            self.heard(page, told, asked)
            self.chronicle.offered += [
                Offered(machine, choice)
                for part in page.parts
                for choice in part.choices
                for machine in sorted(told.machines)
            ]
        self.hub.trace.note(self.hub.now, f"people read: {message.title}")
        return f"{CHAT}:{len(self.chronicle.told)}.0"

    def heard(self, page: Message, told: Told, asked: datetime) -> None:
        """One thing people read, for those who want to know more of it."""

    def _told(self, message: Message, asked: datetime, asked_number: int) -> Told:
        text = message.text
        about = frozenset(native_id for native_id in self.machines if native_id in text)
        fields = dict(message.fields)
        steps = fields.get("Next", "")
        announces = frozenset(Verb(word) for word in _STEP.findall(steps))
        named = [datetime.strptime(moment, "%Y-%m-%d %H:%M") for moment in _MOMENT.findall(steps)]  # noqa: DTZ007
        first = min(named).replace(tzinfo=timezone.utc) if named else None
        return Told(
            self.hub.calls,
            asked,
            self.hub.now,
            about,
            announces,
            message.title,
            first,
            address=message.channel,
            rule=fields.get("Rule", ""),
            period=fields.get("Period", "").partition(",")[0],
            notice_id=message.notice_id,
            asked_number=asked_number,
        )


def pages_of(message: Message) -> tuple[Message, ...]:
    """What the message says of each thing it is about, as if told alone: read as people read it, from its parts."""
    if not any(part.title for part in message.parts):
        return (message,)
    return tuple(
        replace(
            message,
            notice_id=part.decision_id,  # that of a warning, which is what it announces
            title=part.title,
            text="\n".join((part.title, *(f"{name}: {value}" for name, value in (*message.fields, *part.fields)))),
            fields=(*message.fields, *part.fields),
            lines=(*part.lines, *message.lines),
            parts=(part,),
        )
        for part in message.parts
    )


class FaultyNotifier:
    """One process's `Notifier`."""

    def __init__(self, hub: Hub, process: Process, channel: Channel) -> None:
        self._hub = hub
        self._process = process
        self._channel = channel

    def send(self, message: Message) -> Delivery:
        """Send once."""
        asked, number = self._hub.now, self._hub.calls
        return self._hub.call(
            self._process, Port.SEND, "send", message.title, lambda fault: self._send(message, asked, number, fault)
        )

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - people read what was sent
        """Nothing can be changed."""
        return False

    def capacity(self, message: Message) -> int:
        """All of it."""
        return max(1, len(message.parts))

    def _send(self, message: Message, asked: datetime, number: int, fault: Fault | None) -> Delivery:
        if fault is not None or self._channel.down or not self._channel.proves:
            self._channel.troubled_at = self._hub.now
        if self._channel.down or fault is Fault.LOST:
            raise NoticeError("the channel does not answer")
        if fault is Fault.RATE_LIMITED:
            seconds = self._hub.random.choice((1, 20, 90))
            raise RateLimitedError("slow down", retry_after=timedelta(seconds=seconds))
        if fault is Fault.REFUSED:
            self._channel.refused_at = self._hub.now
            raise RejectedNoticeError("the channel does not take this")
        if fault is Fault.UNPROVEN or not self._channel.proves:
            self._channel.show(message, asked, number)
            return Delivery("console", proves_delivery=False)
        receipt = self._channel.take(message, asked, number)
        if fault is Fault.LOST_ANSWER:
            raise NoticeError("the channel took it and its answer was lost")
        return Delivery(receipt)
