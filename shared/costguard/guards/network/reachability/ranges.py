"""Networks and ports as ranges of integers, and boxes of both: everything is reckoned on ends, nothing is listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network, summarize_address_range
from itertools import pairwise

Range = tuple[int, int]
"""From and to, both included."""
Box = tuple[int, int, int, int]
"""Peers from and to, ports from and to."""

V4, V6 = 4, 6
PORTS: Range = (0, 65_535)
EPHEMERAL: Range = (1_024, 65_535)
"""The ports that answers go to: of every system that asks, at least a part of these."""
WHOLE: dict[int, Range] = {V4: (0, 2**32 - 1), V6: (0, 2**128 - 1)}
_NOT_INTERNET = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/3",
)  # RFC 6890: private, shared, local, benchmarking, multicast and reserved; of IPv6 only 2000::/3 is given out


@lru_cache(maxsize=1 << 16)
def parsed(network: str) -> tuple[int, int, int] | None:
    """The family of a network and its first and last address; None where it is no network."""
    try:
        found = ip_network(network, strict=False)
    except ValueError:
        return None
    return found.version, int(found.network_address), int(found.broadcast_address)


def ranges_of(networks: Iterable[str], family: int) -> list[Range]:
    """The ranges of those networks that are of this family."""
    found = (parsed(network) for network in networks)
    return merged((each[1], each[2]) for each in found if each is not None and each[0] == family)


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same addresses in as few ranges as hold them, in order."""
    together: list[Range] = []
    for first, last in sorted(ranges):
        if together and first <= together[-1][1] + 1:
            together[-1] = (together[-1][0], max(last, together[-1][1]))
        else:
            together.append((first, last))
    return together


def minus(ranges: Sequence[Range], holes: Sequence[Range]) -> list[Range]:
    """What of `ranges` is in none of `holes`."""
    left = list(ranges)
    for first, last in holes:
        if all(last < low or high < first for low, high in left):
            continue
        cut: list[Range] = []
        for low, high in left:
            if last < low or high < first:
                cut.append((low, high))
                continue
            if low < first:
                cut.append((low, first - 1))
            if last < high:
                cut.append((last + 1, high))
        left = cut
    return left


def common(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """What is in both."""
    return [
        (max(low, first), min(high, last))
        for low, high in ranges
        for first, last in others
        if low <= last and first <= high
    ]


def size(ranges: Iterable[Range]) -> int:
    """How many there are in ranges that do not overlap."""
    return sum(last - first + 1 for first, last in ranges)


def _internet() -> dict[int, tuple[Range, ...]]:
    return {V4: tuple(minus([WHOLE[V4]], ranges_of(_NOT_INTERNET, V4))), V6: tuple(ranges_of(("2000::/3",), V6))}


INTERNET = _internet()
"""Addresses that the internet routes, by family."""


def written(family: int, ranges: Sequence[Range], *, exactly: bool = False) -> tuple[str, ...]:
    """Ranges as networks. A gap between two that holds nothing of the internet is closed, so that the world stays one.

    (A VPC's own route takes its private network out of 0.0.0.0/0; people still know that as the world.) `exactly`: no
    other gap is.
    """
    given = merged(ranges)
    if not minus(INTERNET[family], given):
        given = [WHOLE[family]]
    gaps = [(left[1] + 1, right[0] - 1) for left, right in pairwise(given)]
    bridged = merged([*given, *(gap for gap in gaps if not exactly and not common([gap], INTERNET[family]))])
    address = IPv4Address if family == V4 else IPv6Address
    return tuple(
        str(network) for first, last in bridged for network in summarize_address_range(address(first), address(last))
    )


def boxes(peers: Sequence[Range], ports: Sequence[Range]) -> list[Box]:
    """Every range of peers with every range of ports."""
    return [(low, high, first, last) for low, high in peers for first, last in ports]


def boxes_common(some: Sequence[Box], others: Sequence[Box]) -> list[Box]:
    """What is in a box of each."""
    return [
        (max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3]))
        for a in some
        for b in others
        if a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]
    ]


def boxes_minus(some: Sequence[Box], holes: Sequence[Box]) -> list[Box]:
    """What of `some` is in none of `holes`."""
    left: list[Box] = []
    for box in some:
        low, high, first, last = box
        pieces = [box]
        for hole in holes:
            if hole[0] <= high and low <= hole[1] and hole[2] <= last and first <= hole[3]:
                pieces = [piece for each in pieces for piece in _cut(each, hole)]
        left += pieces
    return left


def _meet(box: Box, other: Box) -> bool:
    return box[0] <= other[1] and other[0] <= box[1] and box[2] <= other[3] and other[2] <= box[3]


def _cut(box: Box, hole: Box) -> Iterable[Box]:
    """What is left of a box: at most four boxes, two beside the hole and two above and below it."""
    if not _meet(box, hole):
        yield box
        return
    low, high, first, last = box
    if low < hole[0]:
        yield (low, hole[0] - 1, first, last)
    if hole[1] < high:
        yield (hole[1] + 1, high, first, last)
    low, high = max(low, hole[0]), min(high, hole[1])
    if first < hole[2]:
        yield (low, high, first, hole[2] - 1)
    if hole[3] < last:
        yield (low, high, hole[3] + 1, last)


def peers_of(some: Iterable[Box]) -> list[Range]:
    """The peers that are in any of the boxes."""
    return merged((box[0], box[1]) for box in some)
