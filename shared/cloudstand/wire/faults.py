"""What goes wrong on the way, on request: each fault strikes the next matching calls a set number of times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from threading import Lock


class FaultKind(str, Enum):
    """What happens to one call."""

    REFUSED = "refused"  # the vendor's error `code`, nothing done
    RESET = "reset"  # the connection breaks, nothing done
    STALLED = "stalled"  # headers and then silence, nothing done
    LOST_ANSWER = "lost answer"  # done, and the connection breaks
    TRUNCATED = "truncated"  # done, and half the body comes
    WRONG_TYPE = "wrong type"  # done, and the body is labelled as something else
    NOT_JSON = "not json"  # a page of a proxy instead of an answer, nothing done


@dataclass(frozen=True, slots=True)
class Fault:
    """The next `times` calls of `action` (empty: any) by `account` in `region` (None: any) go wrong.

    `code` and `status` go with REFUSED: the vendor's own error code and its HTTP status.
    """

    kind: FaultKind
    action: str = ""
    times: int = 1
    account: str | None = None
    region: str | None = None
    code: str = ""
    status: int = 0

    def strikes(self, action: str, account: str, region: str) -> bool:
        """Whether this call is meant."""
        return self.action in {"", action} and self.account in {None, account} and self.region in {None, region}


class Faults:
    """The faults still to strike; the first that matches is taken. Serves many threads."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = Lock()

    def add(self, fault: Fault) -> None:
        """Let this happen."""
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Let nothing more go wrong."""
        with self._lock:
            self._waiting.clear()

    def take(self, action: str, account: str, region: str) -> Fault | None:
        """What happens to this call; None when nothing does."""
        with self._lock:
            for place, fault in enumerate(self._waiting):
                if fault.strikes(action, account, region):
                    if fault.times > 1:
                        self._waiting[place] = replace(fault, times=fault.times - 1)
                    else:
                        del self._waiting[place]
                    return fault
        return None
