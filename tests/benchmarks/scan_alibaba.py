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

_MINUTES = 24 * 60
_HOST_METRICS = 5  # CPU; network in and out, within the VPC and outside


def least(fleet: Fleet, every_signal: bool) -> Least:  # noqa: FBT001 - one of two kinds of rule
    """A point a minute of 24 hours, of a card and, with every signal, of five metrics of its machine.

    Pages of instances come one after another, as each is asked for by a token of the one before; points come as fast
    as CloudMonitor may be asked.
    """
    series = fleet.gpus * (1 + (_HOST_METRICS if every_signal else 0))
    pages = math.ceil(fleet.instances / cloud.PAGE)
    calls = max(math.ceil(series / cloud.MOST_INSTANCES), math.ceil(series * _MINUTES / cloud.MOST_POINTS))
    rate = cloud.METRICS_LIMIT.most / cloud.METRICS_LIMIT.seconds
    seconds = pages * fleet.latency + calls / rate + fleet.latency
    away = f"{fleet.latency:.3f} s"
    return Least(pages, calls, seconds, f"{pages:,} pages × {away} + {calls:,} calls ÷ {rate:.0f} a second + {away}")


if __name__ == "__main__":
    main(Subject("alibaba", "aliyun-python-sdk-core", "DescribeMetricList", least), __doc__)
