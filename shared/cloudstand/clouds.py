"""Three clouds and Slack in one process, over one world and on one clock; or one of our clouds alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from cloudstand.clock import MovedClock, RunningClock
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.freezes import freezes_on_alibaba, freezes_on_aws, freezes_on_tencent
from cloudstand.demo.keys import demo_keys
from cloudstand.demo.networks import demo_networks
from cloudstand.errors import MisuseError
from cloudstand.wire.control import Control
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec

if TYPE_CHECKING:
    from cloudstand.alibaba.emulator import AlibabaEmulator
    from cloudstand.aws.core.seeding import Credentials
    from cloudstand.aws.core.server import Gateway
    from cloudstand.slack.stand_in import SlackStandIn
    from cloudstand.tencent.emulator import TencentEmulator
    from cloudstand.wire.server import WireServer

STARTS_AT = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)  # a Monday morning; any fixed time would do
CLOSED_REGION = "ap-east-1"  # listed by DescribeRegions as not opted in
PORTS = 4
"""How many ports they listen at: three clouds and Slack."""


class Clouds:
    """Running clouds; close them, or use them as a context manager.

    AWS is always there, another cloud where the fleet has a machine. `clock` stands still unless one is given. From
    `port` on AWS, Alibaba Cloud, Tencent Cloud and Slack have a port each, in this order; 0 takes free ones. Members
    of their organisations let `role` in, with `external_id`: a subclass names its own.

    Attributes:
        endpoint_url: where every AWS service answers.
        server: what listens there.
        credentials: made-up keys of the AWS organisation's management account.
        alibaba: the emulator of Alibaba Cloud, None without a machine there.
        tencent: the emulator of Tencent Cloud, None without a machine there.
        clock: the time of everything in it.
        slack: the Slack stand-in, with what was posted.
    """

    role = "costguard"
    external_id = "made-up-external-id"
    endpoint_url: str
    server: WireServer
    credentials: Credentials
    slack: SlackStandIn
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
    ) -> Self:
        """Start serving `fleet` (the demo's when None, with its keys, networks and launch freezes) at the moment `at`.

        Raises:
            MisuseError: another AWS runs in this process.
            OSError: a port is taken.
        """
        clouds = cls(demo_fleet(at) if fleet is None else fleet, at, clock=clock, port=port)
        if fleet is None:
            furnish(clouds._world, at)
        try:
            clouds._start()
            if fleet is None:
                clouds._write_freezes()
        except BaseException:
            clouds.close()
            raise
        return clouds

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.door.opened() as world:
            return world

    @property
    def names(self) -> tuple[str, ...]:
        """The clouds: AWS always; the others where the fleet has a machine."""
        return tuple(dict.fromkeys(("aws", *(spec.cloud for spec in self._world.fleet))))

    @property
    def gateway(self) -> Gateway:
        """The door to AWS, where tests add refusals and read which calls came in.

        Raises:
            MisuseError: they are closed.
        """
        if self._gateway is None:
            raise MisuseError("the sandbox is not running")
        return self._gateway

    def advance(self, step: timedelta) -> datetime:
        """Let time pass, for clock and world; returns the new moment."""
        self.clock.advance(step)
        return self.world.now

    def control(self, shown: Mapping[str, Callable[[], object]]) -> None:
        """Let other processes move the clock and order faults, under `/_sandbox/` at each; AWS shows them `shown`."""
        self.server.control = Control(self.clock, None, self.gateway.calls, shown)
        for emulator in (self.alibaba, self.tencent):
            if emulator is not None:
                emulator.server.control = Control(self.clock, emulator.faults, emulator.calls)

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
        # moto takes a second to load: only who starts these pays for it
        from cloudstand.aws.emulator import EmbeddedAws
        from cloudstand.slack.stand_in import SlackStandIn

        here, on_alibaba, on_tencent, slack = (self._port + number if self._port else 0 for number in range(PORTS))
        self.slack = self._open.enter_context(SlackStandIn(self.clock, port=slack))
        aws = self._open.enter_context(EmbeddedAws(self._world, self.door, self.external_id, CLOSED_REGION, here))
        self.endpoint_url, self.server = aws.url, aws.server
        self.credentials, self._gateway = aws.credentials, aws.gateway
        if "alibaba" in self.names:
            from cloudstand.alibaba.emulator import AlibabaEmulator

            self.alibaba = self._open.enter_context(
                AlibabaEmulator(self.door, external_id=self.external_id, role=self.role, port=on_alibaba)
            )
        if "tencent" in self.names:
            from cloudstand.tencent.emulator import TencentEmulator

            self.tencent = self._open.enter_context(
                TencentEmulator(self.door, external_id=self.external_id, role=self.role, port=on_tencent)
            )

    def _write_freezes(self) -> None:
        freezes_on_aws()
        if self.alibaba is not None:
            freezes_on_alibaba(self.alibaba.policies)
        if self.tencent is not None:
            freezes_on_tencent(self.tencent.policies)


@contextmanager
def one_cloud(cloud: str, port: int = 0) -> Iterator[AlibabaEmulator | TencentEmulator]:
    """The demo's part on `cloud`, one of ours, alone, from now on, until the block ends; others may move its clock.

    Raises:
        OSError: the port is taken; OverflowError where there is no such port.
    """
    clock = RunningClock()
    now = clock.now()
    world = World([spec for spec in demo_fleet(now) if spec.cloud == cloud], now)
    furnish(world, now)
    with _emulator_of(cloud, WorldDoor(world, clock), port) as emulator:
        emulator.server.control = Control(clock, emulator.faults, emulator.calls)
        yield emulator


def _emulator_of(cloud: str, door: WorldDoor, port: int) -> AlibabaEmulator | TencentEmulator:
    if cloud == "alibaba":
        from cloudstand.alibaba.emulator import AlibabaEmulator

        on_alibaba = AlibabaEmulator(door, port=port)
        freezes_on_alibaba(on_alibaba.policies)
        return on_alibaba
    from cloudstand.tencent.emulator import TencentEmulator

    on_tencent = TencentEmulator(door, port=port)
    freezes_on_tencent(on_tencent.policies)
    return on_tencent


def furnish(world: World, at: datetime) -> None:
    """Give a world of the demo's machines the demo's networks, and the keys of their clouds."""
    world.networks = demo_networks(at)
    clouds = {spec.cloud for spec in world.fleet}
    for key in demo_keys(at):
        if key.ref.cloud in clouds:
            world.keys.add(key)
