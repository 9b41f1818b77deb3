"""What is told of ways into instances: those that are open, and those that may be."""

from __future__ import annotations

from dataclasses import dataclass

from costguard.domain.network import Forward, NetworkRule, Route
from costguard.domain.refs import ResourceRef


@dataclass(frozen=True, slots=True)
class Path:
    """One way from the internet into an instance.

    `family` is 4 or 6. `ports` are the instance's own, empty where the protocol has none; `public_ports` those that are
    asked for at the address, which differ where a `forward` changes them. `peers` are the networks that get in.
    `rule` stands in `group`; `entry` and `answer` (the way out of what is answered) in `access_list`, None without one.
    `route` is the route of the answers and `gateway` where it leads, None and empty where an address suffices.
    """

    instance: ResourceRef
    family: int
    protocol: str
    ports: tuple[tuple[int, int], ...]
    public_ports: tuple[tuple[int, int], ...]
    peers: tuple[str, ...]
    address: str
    interface: ResourceRef
    group: ResourceRef
    rule: NetworkRule
    group_version: str = ""
    access_list: ResourceRef | None = None
    entry: NetworkRule | None = None
    answer: NetworkRule | None = None
    route: Route | None = None
    gateway: str = ""
    forward: Forward | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A way that may be there: what it depends on was not read. `part` as in a gap's `what`; no `ports`: any.

    `subject` is the instance, or the gateway whose forward leads to what was not read.
    """

    subject: ResourceRef
    address: str
    family: int
    protocol: str
    ports: tuple[tuple[int, int], ...]
    part: str
    detail: str


@dataclass(frozen=True, slots=True)
class Reachability:
    """Every way in, and every way that cannot be told."""

    paths: tuple[Path, ...]
    doubts: tuple[Doubt, ...]
