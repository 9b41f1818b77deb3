"""How fast to ask: token buckets per account, region and family of calls, and the wait between tries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_RATES: dict[str, tuple[float, float]] = {
    # half of EC2's documented bucket and refill (100 and 20/s; 50 and 10/s for answers without pages;
    # 50 and 5/s for changes; 5 and 2/s for start and stop): other tools share the account's bucket
    "ec2:read": (50, 10),
    "ec2:unpaged": (25, 5),
    "ec2:change": (25, 2.5),
    "ec2:start-stop": (5, 1),
    "cloudwatch:GetMetricData": (25, 25),  # half of 50 a second
    "cloudwatch:ListMetrics": (12, 12),  # half of 25 a second
}
_OTHER_RATE = (10.0, 10.0)
_UNPAGED = frozenset({"ec2:DescribeAddresses", "ec2:DescribeRegions", "ec2:DescribeReservedInstances"})
_START_STOP = frozenset({"ec2:StartInstances", "ec2:StopInstances"})

_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 8.0


def family_of(operation: str, *, changes: bool) -> str:
    """The calls that share a bucket with `operation`: what EC2 throttles together."""
    if operation in _RATES:
        return operation
    service = operation.split(":", 1)[0]
    if service != "ec2":
        return service
    if operation in _START_STOP:
        return "ec2:start-stop"
    if changes:
        return "ec2:change"
    return "ec2:unpaged" if operation in _UNPAGED else "ec2:read"


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


@dataclass(slots=True)
class Pacer:
    """Says how long to wait; one for all threads. Time and chance come from outside in tests."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    _buckets: dict[tuple[str, str, str], _Bucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, account: str, region: str, family: str) -> float:
        """Take one token and return the seconds to wait before using it; later callers queue behind."""
        capacity, rate = _RATES.get(family, _OTHER_RATE)
        with self._lock:
            now = self.monotonic()
            bucket = self._buckets.setdefault((account, region, family), _Bucket(capacity, now))
            bucket.tokens = min(capacity, bucket.tokens + (now - bucket.filled_at) * rate) - 1
            bucket.filled_at = now
            return max(0.0, -bucket.tokens / rate)

    def back_off(self, attempt: int) -> float:
        """Seconds to wait after try number `attempt` (from 0) failed: doubling, with full jitter."""
        return self.chance() * min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**attempt)
