"""The gate through which every request leaves the process: what is not in a provider's table stays inside."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from costguard.domain.errors import AccessDeniedError
from costguard.ports import CallCount
from costguard.providers.operations import Operation


class Gate:
    """Lets listed operations out of the process, changing ones only when `may_change`, and counts them."""

    def __init__(self, operations: Mapping[str, Operation], *, may_change: bool) -> None:
        self._operations = operations
        self.may_change = may_change
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._thread = threading.local()

    def calls_made(self) -> tuple[CallCount, ...]:
        """Every operation that left, by name."""
        with self._lock:
            counted = sorted(self._counts.items())
        return tuple(
            CallCount(
                operation=name,
                permission=" and ".join(self._operations[name].permissions),
                calls=calls,
                changes_something=self._operations[name].changes_something,
            )
            for name, calls in counted
        )

    def expect(self, operation: str) -> None:
        """From here on `was_sent(operation)` speaks of this thread's next call."""
        self._sent().discard(operation)

    def was_sent(self, operation: str) -> bool:
        """Whether this thread sent `operation` since `expect`."""
        return operation in self._sent()

    def sending(self, operation: str) -> None:
        """This thread sends `operation` now; counted."""
        self._sent().add(operation)
        with self._lock:
            self._counts[operation] = self._counts.get(operation, 0) + 1

    def _sent(self) -> set[str]:
        sent: set[str] | None = getattr(self._thread, "sent", None)
        if sent is None:
            sent = set()
            self._thread.sent = sent
        return sent

    def check(self, operation: str) -> None:
        """Refuse what may not leave.

        Raises:
            AccessDeniedError: not listed in permissions.py, or it changes something in a read-only session.
        """
        known = self._operations.get(operation)
        if known is None:
            message = f"{operation}: refused before sending: not among the operations costguard may call"
            raise AccessDeniedError(message, operation=operation, code="NotListed")
        if known.changes_something and not self.may_change:
            message = f"{operation}: refused before sending: costguard is read-only here"
            raise AccessDeniedError(message, operation=operation, code="ReadOnly")
