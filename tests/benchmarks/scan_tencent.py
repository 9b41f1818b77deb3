"""How fast the scan reads Tencent Cloud: requests, wall, CPU and memory, beside what its limits allow.

`python tests/benchmarks/scan_tencent.py` from the repository's root; about eight minutes. `--smoke` runs every way once
on 100 instances in a few seconds. No figure fails the run: README.md here says what is aimed at.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import loopback_tencent as cloud
from tests.benchmarks.measuring import Fleet, Least, Subject, main

_MINUTES, _FIVE_MINUTES, _HOURS = 24 * 60, 24 * 12, 24
_SLOW_METRICS = 3  # CPU; network in and out on the inner side


def least(fleet: Fleet, every_signal: bool) -> Least:  # noqa: FBT001 - one of two kinds of rule
    """A point a minute of 24 hours for the GPUs and, with every signal, one in five minutes of three more metrics.

    Those are shown by the hour where no rule names them. Pages of instances are asked for by number, so as fast as CVM
    may be asked; points as fast as Monitor may.
    """
    beside = _calls(fleet.gpus, _FIVE_MINUTES if every_signal else _HOURS)
    calls = _calls(fleet.gpus, _MINUTES) + _SLOW_METRICS * beside
    pages = math.ceil(fleet.instances / cloud.PAGE)
    listed, rate = (limit.most / limit.seconds for limit in (cloud.LISTING_LIMIT, cloud.METRICS_LIMIT))
    seconds = pages / listed + fleet.latency + calls / rate + fleet.latency
    away = f"{fleet.latency:.3f} s"
    told = f"{pages:,} pages ÷ {listed:.0f} a second + {away} + {calls:,} calls ÷ {rate:.0f} a second + {away}"
    return Least(pages, calls, seconds, told)


def _calls(machines: int, points: int) -> int:
    return max(math.ceil(machines / cloud.MOST_INSTANCES), math.ceil(machines * points / cloud.MOST_POINTS))


if __name__ == "__main__":
    main(Subject("tencent", "tencentcloud-sdk-python-common", "GetMonitorData", least), __doc__)
