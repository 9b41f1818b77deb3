"""From a channel address to the notifier that serves it: `slack:#gpu`, `console:`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from costguard.domain.errors import RejectedNoticeError
from costguard.ports import Delivery, Message, Notifier

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9-]*):(?P<rest>.*)", re.DOTALL)


class NotifierRouter:
    """A `Notifier` over several, by the word before the colon of `message.channel`.

    An address without one (`#gpu-research`) goes to `default`, if that is given. Another channel is one
    entry more in `notifiers`.
    """

    def __init__(self, notifiers: Mapping[str, Notifier], *, default: str = "") -> None:
        self._notifiers = dict(notifiers)
        self._default = default

    def send(self, message: Message) -> Delivery:
        """Hand `message` on under its address without the scheme; what that notifier says is passed through.

        Raises:
            RejectedNoticeError: no notifier serves this address.
        """
        parts = _ADDRESS.fullmatch(message.channel)
        scheme, rest = (parts["scheme"], parts["rest"]) if parts else (self._default, message.channel)
        notifier = self._notifiers.get(scheme) if message.channel else None
        if notifier is None:
            known = ", ".join(f"{name}:" for name in sorted(self._notifiers)) or "none"
            text = f"no channel serves the address {message.channel[:100]!r}; known are: {known}"
            raise RejectedNoticeError(text)
        return notifier.send(replace(message, channel=rest))
