"""The channel that people read, and what its messages say to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from tests.simulation.chronicle import Chronicle, Told
from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Hub, Process

from costguard.domain.actions import Verb
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Delivery, Message

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

    def take(self, message: Message, asked: datetime) -> str:
        """The message, sent when `asked`, is there to be read; returns its receipt."""
        text = message.text
        about = frozenset(native_id for native_id in self.machines if native_id in text)
        steps = dict(message.fields).get("Next", "")
        announces = frozenset(Verb(word) for word in _STEP.findall(steps))
        named = [datetime.strptime(moment, "%Y-%m-%d %H:%M") for moment in _MOMENT.findall(steps)]  # noqa: DTZ007
        first = min(named).replace(tzinfo=timezone.utc) if named else None
        told = Told(self.hub.calls, asked, self.hub.now, about, announces, message.title, first)
        self.chronicle.told.append(told)
        self.watch(told)
        self.hub.trace.note(self.hub.now, f"people read: {message.title}")
        return f"ts-{len(self.chronicle.told)}"


class FaultyNotifier:
    """One process's `Notifier`."""

    def __init__(self, hub: Hub, process: Process, channel: Channel) -> None:
        self._hub = hub
        self._process = process
        self._channel = channel

    def send(self, message: Message) -> Delivery:
        """Send once."""
        asked = self._hub.now
        return self._hub.call(
            self._process, Port.SEND, "send", message.title, lambda fault: self._send(message, asked, fault)
        )

    def _send(self, message: Message, asked: datetime, fault: Fault | None) -> Delivery:
        if self._channel.down or fault is Fault.LOST:
            raise NoticeError("the channel does not answer")
        if fault is Fault.RATE_LIMITED:
            seconds = self._hub.random.choice((1, 20, 90))
            raise RateLimitedError("slow down", retry_after=timedelta(seconds=seconds))
        if fault is Fault.REFUSED:
            raise RejectedNoticeError("the channel does not take this")
        if fault is Fault.UNPROVEN or not self._channel.proves:
            self._hub.trace.note(self._hub.now, f"shown on a console: {message.title}")
            return Delivery("console", proves_delivery=False)
        receipt = self._channel.take(message, asked)
        if fault is Fault.LOST_ANSWER:
            raise NoticeError("the channel took it and its answer was lost")
        return Delivery(receipt)
