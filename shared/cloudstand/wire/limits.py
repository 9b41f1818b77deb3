"""How often a cloud lets itself be asked: token buckets in the time of the wall, as a benchmark meets them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from threading import Lock


class RateLimits:
    """`rates` has burst and calls a second by action; an action without a row is not limited. Serves many threads."""

    def __init__(
        self, rates: Mapping[str, tuple[float, float]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        self._lock = Lock()
        self.throttled = 0

    def allow(self, action: str, *shared_by: str) -> bool:
        """Whether this call may pass; `shared_by` names whose bucket it takes from (account, region)."""
        rate = self._rates.get(action)
        if rate is None:
            return True
        burst, per_second = rate
        key = (action, *shared_by)
        with self._lock:
            now = self._monotonic()
            tokens, filled_at = self._buckets.get(key, (burst, now))
            tokens = min(burst, tokens + (now - filled_at) * per_second)
            allowed = tokens >= 1
            self._buckets[key] = (tokens - 1 if allowed else tokens, now)
            self.throttled += not allowed
            return allowed
