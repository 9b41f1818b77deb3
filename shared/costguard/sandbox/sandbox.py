"""Clouds, Slack and a ledger in one process, on a clock that can be moved: `costguard demo` and `--sandbox`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from costguard.domain.errors import InvalidInputError
from costguard.ports import Target
from costguard.sandbox.clock import MovedClock
from costguard.sandbox.fleets import demo_fleet
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.fleet import MachineSpec

if TYPE_CHECKING:
    from costguard.sandbox.aws.seeding import Credentials
    from costguard.sandbox.aws.server import Gateway
    from costguard.sandbox.slack import SlackStandIn

STARTS_AT = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)  # a Monday morning; any fixed time would do
ROLE = "costguard"
EXTERNAL_ID = "costguard-sandbox"
CLOSED_REGION = "ap-east-1"  # listed by DescribeRegions as not opted in


class Sandbox:
    """A running sandbox; close it, or use it as a context manager.

    Attributes:
        endpoint_url: where every AWS service answers.
        credentials: made-up keys of the organisation's management account.
        clock: the time of everything in it.
        slack: the Slack stand-in, with what was posted.
        ledger_url: an SQLite file that lives as long as the sandbox.
    """

    endpoint_url: str
    credentials: Credentials
    slack: SlackStandIn
    ledger_url: str

    def __init__(self, fleet: Iterable[MachineSpec], at: datetime) -> None:
        self.clock = MovedClock(at)
        self._world = World(fleet, at)
        self._gateway: Gateway | None = None
        self._open = ExitStack()

    @classmethod
    def start(cls, fleet: Iterable[MachineSpec] | None = None, at: datetime = STARTS_AT) -> Sandbox:
        """Start serving `fleet` (the demo's when None) at the moment `at`.

        Raises:
            InvalidInputError: another sandbox runs in this process.
        """
        sandbox = cls(demo_fleet(at) if fleet is None else fleet, at)
        try:
            sandbox._start()
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        self._world.tick(self.clock.now())
        return self._world

    @property
    def targets(self) -> tuple[Target, ...]:
        """What to guard: the organisation, its members by role and ExternalId, every region opted in."""
        return (Target(cloud="aws", role=ROLE, external_id=EXTERNAL_ID, organisation=True),)

    @property
    def gateway(self) -> Gateway:
        """The door to AWS, where tests add refusals and read which calls came in."""
        if self._gateway is None:
            raise InvalidInputError("the sandbox is not running")
        return self._gateway

    def advance(self, step: timedelta) -> datetime:
        """Let time pass, for clock and world; returns the new moment."""
        self.clock.advance(step)
        return self.world.now

    def close(self) -> None:
        """Stop serving, drop everything and leave moto as it was; may be repeated."""
        self._gateway = None
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        # moto takes a second to load: only who starts a sandbox pays for it
        from costguard.sandbox.aws.embedded import EmbeddedAws
        from costguard.sandbox.slack import SlackStandIn

        folder = self._open.enter_context(TemporaryDirectory(prefix="costguard-sandbox-", ignore_cleanup_errors=True))
        self.ledger_url = f"sqlite:///{Path(folder) / 'ledger.db'}"
        self.slack = self._open.enter_context(SlackStandIn(self.clock))
        aws = self._open.enter_context(EmbeddedAws(self.world, self.clock, EXTERNAL_ID, CLOSED_REGION))
        self.endpoint_url, self.credentials, self._gateway = aws.url, aws.credentials, aws.gateway
