"""What a test sets up about networks beyond the world, and what the cloud remembers that the world does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cloudstand.world.network.parts import PublicAddress


@dataclass(frozen=True, slots=True)
class Settling:
    """An elastic address whose change goes on until then; shown as it was before, and in this state."""

    state: str
    until: datetime
    before: PublicAddress


@dataclass(frozen=True, slots=True)
class LogNote:
    """What is told of a flow log beside what it covers; active from `active_from` on."""

    name: str
    description: str
    project: str
    store: str
    active_from: datetime


@dataclass(slots=True)
class NetworkDesk:
    """What a test sets up.

    `settles_in` is how long changes of addresses and flow logs take. `page` is the most that any list gives at once.
    `advanced` are security groups of the type `enterprise`, `tells_no_entries` network ACLs that are listed without
    entries, both by id. `by_bandwidth`: Mbit/s of elastic addresses that pay for those, by id. `unmeasured` are public
    addresses of whose traffic CloudMonitor tells nothing.
    """

    settles_in: timedelta = timedelta(seconds=5)
    page: int = 1000
    advanced: set[str] = field(default_factory=set)
    tells_no_entries: set[str] = field(default_factory=set)
    by_bandwidth: dict[str, int] = field(default_factory=dict)
    unmeasured: set[str] = field(default_factory=set)
    settling: dict[str, Settling] = field(default_factory=dict)
    logs: dict[str, LogNote] = field(default_factory=dict)
    prefix_lists: dict[str, Sequence[str]] = field(default_factory=dict)
    port_lists: dict[str, Sequence[str]] = field(default_factory=dict)
