"""How fast the scan reads Alibaba Cloud: requests, wall, CPU and memory, beside what its limits allow.

`python tests/benchmarks/scan_alibaba.py` from the repository's root; about a quarter of an hour. `--smoke` runs every
way once on 100 instances in a few seconds. No figure fails the run: README.md here says what is aimed at.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import loopback_alibaba as cloud
from tests.benchmarks.measuring import Fleet, Least, Subject, main

_MINUTES, _HOURS = 24 * 60, 24
_HOST_METRICS = 5  # CPU; network in and out, within the VPC and outside
_SHOWN_METRICS = 3  # what no rule names: power; disk, read and written


def least(fleet: Fleet, every_signal: bool) -> Least:  # noqa: FBT001 - one of two kinds of rule
    """A point a minute of 24 hours, of a card and, with every signal, of five metrics of its machine.

    And one an hour of all the metrics that decide nothing and are shown.
    Pages of instances come one after another, as each is asked for by a token of the one before; points come as fast
    as CloudMonitor may be asked.
    """
    judged = 1 + (_HOST_METRICS if every_signal else 0)
    pages = math.ceil(fleet.instances / cloud.PAGE)
    shown = 1 + _HOST_METRICS + _SHOWN_METRICS - judged
    calls = _calls(fleet.gpus, judged, _MINUTES) + _calls(fleet.gpus, shown, _HOURS)
    rate = cloud.METRICS_LIMIT.most / cloud.METRICS_LIMIT.seconds
    seconds = pages * fleet.latency + calls / rate + fleet.latency
    away = f"{fleet.latency:.3f} s"
    return Least(pages, calls, seconds, f"{pages:,} pages × {away} + {calls:,} calls ÷ {rate:.0f} a second + {away}")


def _calls(machines: int, metrics: int, points: int) -> int:
    """One metric a call, so many points of so many machines."""
    a_metric = max(math.ceil(machines / cloud.MOST_INSTANCES), math.ceil(machines * points / cloud.MOST_POINTS))
    return metrics * a_metric


if __name__ == "__main__":
    main(Subject("alibaba", "aliyun-python-sdk-core", "DescribeMetricList", least), __doc__)
