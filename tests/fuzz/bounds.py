"""How every parser is tried: counted, within time and memory, refusing only with words fit to print."""

from __future__ import annotations

import faulthandler
import os
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings

from costguard.domain.errors import CostguardError

T = TypeVar("T")

EXAMPLES = "FUZZ_EXAMPLES"
"""The environment variable of the long profile: inputs for each property, drawn anew on every run."""

LONG = bool(os.environ.get(EXAMPLES))
SECONDS = 2.0  # of processor time for one input; the slowest takes 0.7 on an idle machine, and a busy one is slower
HANGS_AFTER = 60.0  # then the process ends with a traceback: no parser waits for anything
MOST_BYTES = 64 * 1024 * 1024  # at the peak of one input of up to 64 KiB
LONGEST_REFUSAL = 60_000  # characters: fifty problems of a policy, each with its line
_MEASURE_EVERY = 8  # tracing memory makes Python three times slower

_WIND_EVERY = 1.0  # seconds; winding takes 0.1 ms on an idle machine and 10 on a busy one, an input often less
_WOUND: list[float] = []  # when, on the monotonic clock; empty while nobody watches

HANGS_TO: list[int] = [2]
"""Where a hang is told: the last of these file descriptors, as pytest captures the second."""

TRIED: Counter[str] = Counter()
REFUSED: Counter[str] = Counter()


def fuzz(share: float = 1.0, quick: int = 20) -> settings:
    """How often a property is tried: `quick` times and always alike, or `share` of FUZZ_EXAMPLES times, at random."""
    wanted = int(os.environ.get(EXAMPLES, "0"))
    return settings(
        max_examples=max(1, int(wanted * share)) if wanted else quick,
        derandomize=not wanted,
        database=None,
        deadline=None,  # `attempt` measures: hypothesis would count the building of the input as well
        print_blob=True,
        phases=[phase for phase in Phase if phase is not Phase.explain],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


def attempt(parser: str, call: Callable[[], T], *refusals: type[CostguardError], measure: bool = False) -> T | None:
    """What `call` returns, or None where it raised one of `refusals`; every other exception passes.

    Fails where it took longer than two seconds of processor time or more than 64 MiB, or where the refusal is
    empty, endless, or holds what no terminal or log should see.
    """
    TRIED[parser] += 1
    traced = measure or TRIED[parser] % _MEASURE_EVERY == 0
    if traced:
        tracemalloc.start()
    _watch()
    began = time.process_time()
    try:
        return call()
    except refusals as err:
        REFUSED[parser] += 1
        _fit_to_print(str(err))
        return None
    finally:
        took = time.process_time() - began
        peak = 0
        if traced:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert took < (SECONDS * 4 if traced else SECONDS), f"{parser}: {took:.2f} s for one input"
        assert peak < MOST_BYTES, f"{parser}: {peak >> 20} MiB for one input"


def _watch() -> None:
    """Give this input its minute, less the second within which nobody winds the clock again: each time is a thread."""
    now = time.monotonic()
    if _WOUND and now - _WOUND[-1] < _WIND_EVERY:
        return
    faulthandler.dump_traceback_later(HANGS_AFTER, exit=True, file=HANGS_TO[-1])
    _WOUND[:] = [now]


def unwatched() -> None:
    """A test is over: what comes next may take its time."""
    if _WOUND:
        faulthandler.cancel_dump_traceback_later()
        _WOUND.clear()


def _fit_to_print(words: str) -> None:
    assert words.strip(), "a refusal without a word"
    assert len(words) < LONGEST_REFUSAL, f"a refusal of {len(words)} characters"
    words.encode()  # half a surrogate would break the terminal or the log that shows it
    hidden = {char for char in words if not char.isprintable() and char != "\n"}
    assert not hidden, f"a refusal with {sorted(map(ascii, hidden))[:5]}"


def frozen(value: Any) -> str:
    """A text that differs where two plain values differ, numbers of any length and NaN included."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{frozen(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(frozen, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:x}"  # hexadecimal has no limit of digits
    return repr(value)
