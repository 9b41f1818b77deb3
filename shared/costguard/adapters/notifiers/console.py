"""Notices on the terminal: for reading along, never proof that anybody was told."""

from __future__ import annotations

from collections.abc import Callable

from costguard.adapters.notifiers.common import visible
from costguard.ports import Delivery, Message


class ConsoleNotifier:
    """A `Notifier` that hands each notice as one text to `write` (`sys.stdout.write`).

    NEVER rule 15: a terminal may have nobody before it, so its receipts do not prove delivery.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def send(self, message: Message) -> Delivery:
        """Write the plain words, without characters that command a terminal."""
        self._write(visible(message.text, lines=True) + "\n")
        return Delivery("console", proves_delivery=False)

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - what was sent stays as it is
        """Nothing can be changed there."""
        return False

    def capacity(self, message: Message) -> int:
        """A terminal holds everything."""
        return max(1, len(message.parts))
