"""How long to go on asking: a read again and again while that helps and time lasts, a change once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from costguard.domain.errors import ProviderError, ThrottledError, UnavailableError
from costguard.providers.kit.core.gaps import DEADLINE
from costguard.providers.kit.core.pacing import Pacer

log = logging.getLogger(__name__)

_MOST_TRIES: dict[type[ProviderError], int] = {ThrottledError: 8, UnavailableError: 4}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Sends requests at the pace of `pacer`; `deadline` returns the seconds left, and no wait goes past it.

    Errors whose code is among `final` are not worth a second try.
    """

    pacer: Pacer
    deadline: Callable[[], float] | None = None
    final: Collection[str] = ()

    def ask(self, operation: str, reserve: Callable[[], float], send: Callable[[], T], *, changes: bool) -> T:
        """What `send` returns, tried again on throttling and passing faults; with `changes`, sent once.

        `reserve` says before every try how long to wait for the turn of this request.

        Raises:
            UnavailableError: not asked, as the time allowed is used up.
            ProviderError: what the last try ended in.
        """
        attempt = 0
        while True:
            self._wait(reserve(), operation)
            try:
                return send()
            except (ThrottledError, UnavailableError) as err:
                attempt += 1
                if changes or attempt >= _MOST_TRIES.get(type(err), 1) or err.code in self.final:
                    raise
                log.debug("asking again", extra={"operation": operation, "attempt": attempt, "code": err.code})
                self._wait(self.pacer.back_off(attempt - 1), operation, err)

    def _wait(self, seconds: float, operation: str, cause: ProviderError | None = None) -> None:
        left = None if self.deadline is None else self.deadline()
        if left is not None and left <= seconds:
            if cause is not None:
                raise cause
            message = f"{operation}: not asked: the time allowed is used up"
            raise UnavailableError(message, operation=operation, code=DEADLINE)
        if seconds > 0:
            self.pacer.sleep(seconds)
