"""How much one call of GetMonitorData asks for, and what a process has learned of it.

The API description (tccli 3.1.189) allows 50 instances and 7,200 points a call, its page of 2023 (248/33881) 10 and
1,440. Answers recorded in 2022 keep to the lesser limits: beyond them the call succeeds, a message stands in `Msg`, and
series are empty that are not. No account was at hand to tell which holds today. So the larger page is asked for until
it was seen not to work, and whatever it did not bring is read again by the lesser one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil
from urllib.parse import urlsplit

from costguard.providers.pacing import THIS_MACHINE


@dataclass(frozen=True, slots=True)
class Page:
    """The most series one call may ask for, and the most points of all of them."""

    instances: int
    points: int

    def holds(self, points: int, instances: int) -> bool:
        """Whether so many points of each of so many fit. An interval may be answered with its end included."""
        return instances <= self.instances and (points + 1) * instances <= self.points


LARGER = Page(50, 7_200)
LESSER = Page(10, 1_440)


@dataclass(frozen=True, slots=True)
class Piece:
    """`points` of each of `instances` machines: what fits one call."""

    points: int
    instances: int


class Pages:
    """The page to ask for; may be shared by threads.

    Attributes:
        probing: held while the first call of the larger page is under way.
    """

    def __init__(self, page: Page = LARGER) -> None:
        self.page = page
        self.probing = threading.Lock()
        self._series = self._points = False

    @property
    def unsure(self) -> bool:
        """Whether no answer has shown yet that the larger page works."""
        return self.page is LARGER and not (self._series or self._points)

    def proved(self, points: int, instances: int, found: Sequence[int]) -> bool:
        """Whether a larger page is known to be answered whole, by this answer or by one before.

        `points` of each of `instances` were asked for, and as many as `found` says came of each. More series than the
        lesser page holds, or more points, show that this limit is not there. An answer of fewer shows nothing: what is
        missing may not exist, or was left out.
        """
        self._series |= sum(map(bool, found)) > LESSER.instances
        self._points |= sum(found) > LESSER.points
        few = instances <= LESSER.instances or self._series
        return few and ((points + 1) * instances <= LESSER.points or self._points)


def pages_for(cloud: str, endpoint: str) -> Pages:
    """What this process knows of one site's Monitor; a stand-in on this machine is another each time."""
    return Pages() if urlsplit(endpoint).hostname in THIS_MACHINE else _known(cloud, endpoint)


@cache
def _known(cloud: str, endpoint: str) -> Pages:
    del cloud, endpoint
    return Pages()


_MANY = 2520  # machines that fill calls of every size up to ten: for more, the best cut is hardly another


def pieces(points: int, machines: int, page: Page) -> tuple[Piece, ...]:
    """How to cut so many points of each of so many machines into the fewest calls.

    A call of 1,439 points for one machine costs as much as one of 143 points for ten. An interval may be answered with
    its end included, so each has room for one point more than it is long.
    """
    return _cheapest(points, min(machines, _MANY), page)


@lru_cache(maxsize=256)
def _cheapest(points: int, machines: int, page: Page) -> tuple[Piece, ...]:
    """The fewest calls for every length up to the whole.

    A full call for one machine wastes nothing, so those go first: only what is left, less than two of them, is weighed.
    """
    single = page.points - 1
    alone = max(0, points // single - 1)
    left = points - alone * single
    # of sizes that make as many calls the smallest has room for the most points
    costs = {ceil(machines / each): each for each in range(min(page.instances, max(1, machines)), 0, -1)}
    sizes = [(cost, page.points // each - 1) for cost, each in costs.items()]
    calls, lengths = [0, *[left * machines + 1] * left], [0] * (left + 1)
    for cost, most in sizes:  # by size, then by length: a third of the time of the other order
        for length in range(1, left + 1):
            fewest = calls[length - most] + cost if length > most else cost
            if fewest < calls[length]:
                calls[length], lengths[length] = fewest, min(length, most)
    found = [Piece(single, 1)] * alone
    while left > 0:
        found.append(Piece(lengths[left], min(page.instances, page.points // (lengths[left] + 1))))
        left -= lengths[left]
    return tuple(found)
