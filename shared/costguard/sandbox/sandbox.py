"""Clouds, Slack and a ledger in one process, on a clock that can be moved: `costguard demo` and `--sandbox`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from cloudstand.clock import MovedClock
from cloudstand.errors import MisuseError
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from costguard.domain.errors import InvalidInputError
from costguard.ports import Target
from costguard.sandbox.demo_fleet import demo_fleet
from costguard.sandbox.demo_freezes import freezes_on_alibaba, freezes_on_aws, freezes_on_tencent
from costguard.sandbox.demo_keys import demo_keys
from costguard.sandbox.demo_networks import demo_networks
from costguard.settings import Access, AccessKey, Secret, Settings

if TYPE_CHECKING:
    from cloudstand.alibaba.emulator import AlibabaEmulator
    from cloudstand.aws.seeding import Credentials
    from cloudstand.aws.server import Gateway
    from cloudstand.slack import SlackStandIn
    from cloudstand.tencent.server import TencentEmulator
    from cloudstand.wire.server import WireServer

STARTS_AT = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)  # a Monday morning; any fixed time would do
ROLE = "costguard"
EXTERNAL_ID = "costguard-sandbox"
CLOSED_REGION = "ap-east-1"  # listed by DescribeRegions as not opted in
PORTS = 4
"""How many ports a sandbox listens at: three clouds and Slack."""


class Sandbox:
    """A running sandbox; close it, or use it as a context manager.

    AWS is always there, another cloud where the fleet has a machine. `clock` stands still unless one is given. From
    `port` on AWS, Alibaba Cloud, Tencent Cloud and Slack have a port each, in this order; 0 takes free ones.

    Attributes:
        endpoint_url: where every AWS service answers.
        server: what listens there; its `control` opens `/_sandbox/` to other processes.
        credentials: made-up keys of the AWS organisation's management account.
        alibaba: the emulator of Alibaba Cloud, None without a machine there.
        tencent: the emulator of Tencent Cloud, None without a machine there.
        clock: the time of everything in it.
        slack: the Slack stand-in, with what was posted.
        ledger_url: an SQLite file that lives as long as the sandbox.
    """

    endpoint_url: str
    server: WireServer
    credentials: Credentials
    slack: SlackStandIn
    ledger_url: str
    alibaba: AlibabaEmulator | None = None
    tencent: TencentEmulator | None = None

    def __init__(
        self, fleet: Iterable[MachineSpec], at: datetime, *, clock: MovedClock | None = None, port: int = 0
    ) -> None:
        self.clock = clock or MovedClock(at)
        self._port = port
        self._world = World(fleet, at)
        self.door = WorldDoor(self._world, self.clock)
        self._gateway: Gateway | None = None
        self._open = ExitStack()

    @classmethod
    def start(
        cls,
        fleet: Iterable[MachineSpec] | None = None,
        at: datetime = STARTS_AT,
        *,
        clock: MovedClock | None = None,
        port: int = 0,
    ) -> Sandbox:
        """Start serving `fleet` (the demo's when None, with its keys, networks and launch freezes) at the moment `at`.

        Raises:
            InvalidInputError: another sandbox runs in this process.
            OSError: a port is taken.
        """
        sandbox = cls(demo_fleet(at) if fleet is None else fleet, at, clock=clock, port=port)
        if fleet is None:
            furnish(sandbox._world, at)
        try:
            sandbox._start()
            if fleet is None:
                sandbox._write_freezes()
        except MisuseError as err:
            sandbox.close()
            raise InvalidInputError(str(err)) from err
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.door.opened() as world:
            return world

    @property
    def targets(self) -> tuple[Target, ...]:
        """What to guard: each cloud's organisation, its members by role and ExternalId, every region opted in."""
        return tuple(Target(cloud, role=ROLE, external_id=EXTERNAL_ID, organisation=True) for cloud in self._clouds)

    @property
    def _clouds(self) -> tuple[str, ...]:
        """AWS always; the others where the fleet has a machine."""
        return tuple(dict.fromkeys(("aws", *(spec.cloud for spec in self._world.fleet))))

    @property
    def gateway(self) -> Gateway:
        """The door to AWS, where tests add refusals and read which calls came in."""
        if self._gateway is None:
            raise InvalidInputError("the sandbox is not running")
        return self._gateway

    def settings(self, bare: Settings) -> Settings:
        """`bare`, with every address, key and token of this sandbox filled in."""
        key = AccessKey(self.credentials.access_key_id, Secret(self.credentials.secret_access_key))
        return replace(
            bare,
            ledger=Secret(self.ledger_url),
            slack_token=Secret(self.slack.token),
            slack_signing_secret=Secret(self.slack.signing_secret),
            slack_url=self.slack.base_url,
            aws=Access(endpoint_url=self.endpoint_url, key=key),
            alibaba=_access_to(self.alibaba),
            tencent=_access_to(self.tencent),
        )

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
        from cloudstand.aws.embedded import EmbeddedAws
        from cloudstand.slack import SlackStandIn

        folder = self._open.enter_context(TemporaryDirectory(prefix="costguard-sandbox-", ignore_cleanup_errors=True))
        self.ledger_url = f"sqlite:///{Path(folder) / 'ledger.db'}"
        here, on_alibaba, on_tencent, slack = (self._port + number if self._port else 0 for number in range(PORTS))
        self.slack = self._open.enter_context(SlackStandIn(self.clock, port=slack))
        aws = self._open.enter_context(EmbeddedAws(self._world, self.door, EXTERNAL_ID, CLOSED_REGION, here))
        self.endpoint_url, self.server = aws.url, aws.server
        self.credentials, self._gateway = aws.credentials, aws.gateway
        if "alibaba" in self._clouds:
            from cloudstand.alibaba.emulator import AlibabaEmulator

            self.alibaba = self._open.enter_context(
                AlibabaEmulator(self.door, external_id=EXTERNAL_ID, role=ROLE, port=on_alibaba)
            )
        if "tencent" in self._clouds:
            from cloudstand.tencent.server import TencentEmulator

            self.tencent = self._open.enter_context(
                TencentEmulator(self.door, external_id=EXTERNAL_ID, role=ROLE, port=on_tencent)
            )

    def _write_freezes(self) -> None:
        freezes_on_aws()
        if self.alibaba is not None:
            freezes_on_alibaba(self.alibaba.policies)
        if self.tencent is not None:
            freezes_on_tencent(self.tencent.policies)


def furnish(world: World, at: datetime) -> None:
    """Give a world of the demo's machines the demo's networks, and the keys of their clouds."""
    world.networks = demo_networks(at)
    clouds = {spec.cloud for spec in world.fleet}
    for key in demo_keys(at):
        if key.ref.cloud in clouds:
            world.keys.add(key)


def _access_to(emulator: AlibabaEmulator | TencentEmulator | None) -> Access:
    if emulator is None:
        return Access()
    return Access(endpoint_url=emulator.url, key=AccessKey(emulator.keys.key_id, Secret(emulator.keys.secret)))
