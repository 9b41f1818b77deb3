"""The gate through which every request leaves the process: what is not in a provider's table stays inside."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from costguard.domain.errors import AccessDeniedError
from costguard.ports import CallCount
from costguard.providers.kit.iam.permissions import Operation


class Gate:
    """Lets listed operations out of the process, changing ones only when `may_change`, and counts them.

    `may_dry_run` lets a changing operation pass as a dry run: the caller says of each request whether it is one,
    from what really leaves, and the cloud then only tells whether it would be allowed.
    """

    def __init__(self, operations: Mapping[str, Operation], *, may_change: bool, may_dry_run: bool = False) -> None:
        self._operations = operations
        self.may_change = may_change
        self.may_dry_run = may_dry_run
        self._counts: dict[tuple[str, bool], int] = {}
        self._lock = threading.Lock()
        self._thread = threading.local()

    def calls_made(self) -> tuple[CallCount, ...]:
        """Every operation that left, by name; dry runs apart, as they change nothing."""
        with self._lock:
            counted = sorted(self._counts.items())
        return tuple(
            CallCount(
                operation=f"{name} (dry run)" if dry_run else name,
                permission=" and ".join(self._operations[name].permissions),
                calls=calls,
                changes_something=self._operations[name].changes_something and not dry_run,
            )
            for (name, dry_run), calls in counted
        )

    def expect(self, operation: str) -> None:
        """From here on `was_sent(operation)` speaks of this thread's next call."""
        self._sent().discard(operation)

    def was_sent(self, operation: str) -> bool:
        """Whether this thread sent `operation` since `expect`."""
        return operation in self._sent()

    def sending(self, operation: str, *, dry_run: bool = False) -> None:
        """This thread sends `operation` now; counted."""
        self._sent().add(operation)
        counted = (operation, dry_run and self._operations[operation].changes_something)
        with self._lock:
            self._counts[counted] = self._counts.get(counted, 0) + 1

    def _sent(self) -> set[str]:
        sent: set[str] | None = getattr(self._thread, "sent", None)
        if sent is None:
            sent = set()
            self._thread.sent = sent
        return sent

    def check(self, operation: str, *, dry_run: bool = False) -> None:
        """Refuse what may not leave. `dry_run`: the request itself asks for a dry run.

        Raises:
            AccessDeniedError: not listed in permissions.py, or it changes something in a read-only session.
        """
        known = self._operations.get(operation)
        if known is None:
            message = f"{operation}: refused before sending: not among the operations costguard may call"
            raise AccessDeniedError(message, operation=operation, code="NotListed")
        rehearsed = dry_run and self.may_dry_run
        if known.changes_something and not self.may_change and not rehearsed:
            message = f"{operation}: refused before sending: costguard is read-only here"
            raise AccessDeniedError(message, operation=operation, code="ReadOnly")
