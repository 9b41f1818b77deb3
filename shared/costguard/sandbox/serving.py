"""The whole sandbox for other processes: three clouds and Slack on loopback, on one clock that runs and can be moved.

The first port is AWS's, and the sandbox's own: there `/_sandbox/settings` says what it is and where its parts are, and
`/_sandbox/messages` what people were told. `/_sandbox/advance` at any cloud moves the one clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cloudstand.clock import RunningClock
from cloudstand.wire.control import Control
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from costguard.domain.errors import InvalidInputError
from costguard.sandbox.demo_fleet import demo_fleet
from costguard.sandbox.demo_freezes import freezes_on_alibaba, freezes_on_tencent
from costguard.sandbox.sandbox import PORTS, STARTS_AT, Sandbox, furnish
from costguard.settings import Access, Settings

if TYPE_CHECKING:
    from cloudstand.alibaba.emulator import AlibabaEmulator
    from cloudstand.tencent.server import TencentEmulator

MARK = "costguard"
"""What a sandbox of this program says it is; who follows its time asks for it."""


@contextmanager
def serve(port: int = 0) -> Iterator[Sandbox]:
    """The demo's world from the beginning of its story, until the block ends.

    Raises:
        InvalidInputError: a port is taken, or another sandbox runs in this process.
    """
    clock = RunningClock(at=STARTS_AT)
    try:
        sandbox = Sandbox.start(at=STARTS_AT, clock=clock, port=port)
    except (OSError, OverflowError) as err:  # a port above 65535 overflows
        message = f"port {port}: it and the {PORTS - 1} after it have to be free: {err}"
        raise InvalidInputError(message) from err
    with sandbox:
        shown = {"settings": lambda: described(sandbox), "messages": lambda: told(sandbox)}
        sandbox.server.control = Control(clock, None, sandbox.gateway.calls, shown)
        for emulator in (sandbox.alibaba, sandbox.tencent):
            if emulator is not None:
                emulator.server.control = Control(clock, emulator.faults, emulator.calls)
        yield sandbox


@contextmanager
def serve_one(cloud: str, port: int = 0) -> Iterator[AlibabaEmulator | TencentEmulator]:
    """The demo's part on `cloud` alone, from now on, until the block ends.

    Raises:
        InvalidInputError: the port is taken.
    """
    clock = RunningClock()
    now = clock.now()
    world = World([spec for spec in demo_fleet(now) if spec.cloud == cloud], now)
    furnish(world, now)
    try:
        emulator = _emulator_of(cloud, WorldDoor(world, clock), port)
    except (OSError, OverflowError) as err:
        message = f"port {port}: {err}"
        raise InvalidInputError(message) from err
    with emulator:
        emulator.server.control = Control(clock, emulator.faults, emulator.calls)
        yield emulator


def _emulator_of(cloud: str, door: WorldDoor, port: int) -> AlibabaEmulator | TencentEmulator:
    if cloud == "alibaba":
        from cloudstand.alibaba.emulator import AlibabaEmulator

        on_alibaba = AlibabaEmulator(door, port=port)
        freezes_on_alibaba(on_alibaba.policies)
        return on_alibaba
    from cloudstand.tencent.server import TencentEmulator

    on_tencent = TencentEmulator(door, port=port)
    freezes_on_tencent(on_tencent.policies)
    return on_tencent


def described(sandbox: Sandbox) -> dict[str, Any]:
    """What it is, its time, and the addresses and made-up keys of its parts."""
    settings, slack = sandbox.settings(Settings()), sandbox.slack
    return {
        "schema": 1,
        "sandbox": MARK,
        "url": sandbox.endpoint_url,
        "now": sandbox.clock.now().isoformat(),
        "ledger": sandbox.ledger_url,
        "clouds": {name: _entrance(settings.access(name)) for name in ("aws", "alibaba", "tencent")},
        "slack": {"url": slack.base_url, "token": slack.token, "signing_secret": slack.signing_secret},
    }


def told(sandbox: Sandbox) -> list[dict[str, str]]:
    """What people were told in Slack, in order."""
    return [
        {"at": posted.at.isoformat(), "channel": posted.channel, "text": posted.text} for posted in sandbox.slack.posted
    ]


def _entrance(access: Access) -> Mapping[str, str]:
    if access.key is None:
        return {}
    return {
        "url": access.endpoint_url,
        "access_key_id": access.key.key_id,
        "access_key_secret": access.key.secret.reveal(),
    }
