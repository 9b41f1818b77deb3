"""What the readers of the audit trails share: how far back they ask, and what a failed look leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError
from costguard.domain.refs import Deployment, ResourceRef, Shard, deployments_in
from costguard.domain.resources import Gap, Instance, Launch
from costguard.ports import LaunchReport
from costguard.providers.kit.core.calls import DEADLINE, named_gaps
from costguard.providers.kit.core.fields import Fields, as_documented, cut_short, parts

REMEMBERED = timedelta(days=90)
"""How long all three clouds can be asked for an event."""

LAUNCHES = "launches"
MOST_PAGES = 20
"""Of one question: a thousand events in the half hour around a launch are no trail that can be read to its end."""

MARK_PAGES = 3
"""Of the questions that others asked of a trail: 150, the newest first. A deployment asks once in each of its runs."""

_BEFORE, _AFTER = timedelta(minutes=15), timedelta(minutes=15)
"""Around the moment a machine says it was made, which is told to the minute at worst: an order may take minutes."""
_AT_THE_EDGE = timedelta(minutes=5)  # asked a little later than we looked at the clock, the oldest moment is refused
_LONGEST_NAME = 256

_SessionT = TypeVar("_SessionT")


@dataclass(frozen=True, slots=True)
class Window:
    """From when until when a launch is looked for."""

    since: datetime
    until: datetime


class AuditLog(ABC, Generic[_SessionT]):
    """`CloudAuditLog` for one cloud of a provider. `now` is the clock on the wall.

    `lookup` is asked for events, `marks` are the names of those by which deployments are known.
    """

    lookup: ClassVar[str]
    marks: ClassVar[tuple[str, ...]] = ("LookupEvents",)

    def __init__(self, session: _SessionT, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._now = now

    def launches(self, instances: Sequence[Instance]) -> LaunchReport:
        """Who launched each of these. Starting a machine again is not launching it."""
        return looked_up(instances, self._now(), self._launch, self._gap)

    def deployments(self, shard: Shard, since: datetime) -> Mapping[Deployment, datetime]:
        """By the events that asking leaves behind in the trail itself."""
        found: dict[Deployment, datetime] = {}
        for name in self.marks:
            pages = self._pages(shard, "EventName", name, Window(since, self._now()))
            for each, at in deployments_among(pages, self.lookup, self._asker).items():
                found[each] = max(at, found.get(each, at))
        return found

    def _launch(self, instance: Instance, window: Window) -> Launch | None:
        pages = self._pages(instance.ref.shard, *self._asked(instance), window)
        return launch_among(events_of(pages, self.lookup), self.lookup, self._launch_in, instance.ref.native_id)

    def _asked(self, instance: Instance) -> tuple[str, str]:
        """Key and value that its launch is looked for by."""
        return "ResourceName", instance.ref.native_id

    @abstractmethod
    def _pages(self, shard: Shard, key: str, value: str, window: Window) -> Iterator[list[Any]]:
        """Every page of the events that have this value under this key, the newest first."""

    @abstractmethod
    def _launch_in(self, event: Fields, native_id: str) -> Launch | None:
        """The launch of this instance that an event tells of; None where it is about something else, or failed."""

    @abstractmethod
    def _asker(self, event: Fields) -> tuple[datetime, str]:
        """When an event was, and the texts that say who asked: its role session and user agent."""

    @abstractmethod
    def _gap(self, shard: Shard, what: str, error: ProviderError) -> Gap:
        """The gap that an error leaves."""


def window_of(instance: Instance, now: datetime) -> Window | None:
    """Around the machine's making; None where no trail remembers that, or nobody knows when it was."""
    oldest = now - REMEMBERED + _AT_THE_EDGE
    made = instance.created_at
    if made is None or made + _AFTER <= oldest or made > now:
        return None
    return Window(max(made - _BEFORE, oldest), min(made + _AFTER, now))


def looked_up(
    instances: Sequence[Instance],
    now: datetime,
    ask: Callable[[Instance, Window], Launch | None],
    gap: Callable[[Shard, str, ProviderError], Gap],
) -> LaunchReport:
    """`ask` about each; denied, throttled or out of time, about none after.

    An answer that is not as documented names nobody, and the others are asked all the same.
    """
    launches: dict[ResourceRef, Launch] = {}
    failures: dict[ResourceRef, ProviderError] = {}
    for instance in instances:
        window = window_of(instance, now)
        if window is None:
            continue
        try:
            launch = ask(instance, window)
        except ProviderError as err:
            failures[instance.ref] = err
            if isinstance(err, (AccessDeniedError, ThrottledError)) or err.code == DEADLINE:
                break  # so would the next be answered
            continue
        if launch is not None:
            launches[instance.ref] = launch
    named = ((ref.shard, ref.native_id, err) for ref, err in failures.items())
    return LaunchReport(launches, tuple(named_gaps(LAUNCHES, named, f"{len(instances)} machines", gap)))


def launch_among(
    events: Iterable[Fields], operation: str, launch_in: Callable[[Fields, str], Launch | None], native_id: str
) -> Launch | None:
    """What `launch_in` makes of the events: the launch of this machine, where there is one among them.

    Raises:
        ProviderError: not as documented, or two who both launched it.
    """
    found: list[Launch] = []
    for event in events:
        with as_documented(operation):
            launch = launch_in(event, native_id)
        found += [launch] if launch is not None else []
    with as_documented(operation):
        if len({launch.by for launch in found}) > 1:
            message = "two launches of one machine, by different people"
            raise ValueError(message)
    return min(found, key=lambda launch: launch.at) if found else None


def deployments_among(
    pages: Iterable[list[Any]], operation: str, told: Callable[[Fields], tuple[datetime, str]]
) -> Mapping[Deployment, datetime]:
    """The deployments whose marks the events of the first few pages carry, each with when it was last seen.

    `told` gives of an event when it was, and the texts that say who asked: its role session and user agent.

    Raises:
        ProviderError: not as documented.
    """
    found: dict[Deployment, datetime] = {}
    for page in islice(pages, MARK_PAGES):
        with as_documented(operation):
            for event in parts({"page": page}, "page"):
                at, who = told(event)
                found.update({each: max(at, found.get(each, at)) for each in deployments_in(who)})
    return found


def events_of(pages: Iterator[list[Any]], operation: str) -> Iterator[Fields]:
    """Every event of every page.

    Raises:
        TruncatedReadError: more pages than a trail can be read through for one launch.
        ProviderError: not as documented.
    """
    for page in islice(pages, MOST_PAGES):
        with as_documented(operation):
            listed = parts({"page": page}, "page")
        yield from listed
    if next(pages, None) is not None:
        raise cut_short(operation, f"more than {MOST_PAGES} pages of events around one launch", "TooManyPages")


def name_in(text: str) -> str:
    """A name as a trail gives it, which becomes a part of `Launch.by`.

    Raises:
        ValueError: none, far too long, or with characters that no cloud lets into names.
    """
    if not text or len(text) > _LONGEST_NAME or not text.isprintable() or "/" in text:
        message = "a name of nobody"
        raise ValueError(message)
    return text
