"""`costguard sandbox up`: an emulator of one cloud for anybody's tests, until it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer
from typing_extensions import assert_never

from costguard.cli.options import Json, examples
from costguard.cli.output import to_json
from costguard.cli.program import Program

if TYPE_CHECKING:
    from costguard.sandbox.alibaba.emulator import AlibabaEmulator
    from costguard.sandbox.clock import RunningClock
    from costguard.sandbox.tencent.server import TencentEmulator

app = typer.Typer(help="Stand-ins for clouds, for anybody's tests.", no_args_is_help=True, rich_markup_mode=None)
UP_EXAMPLES = examples("costguard sandbox up alibaba --port 8901", "costguard sandbox up tencent --json")


class Emulated(str, Enum):
    """The clouds that have an emulator of ours; for AWS there is moto."""

    ALIBABA = "alibaba"
    TENCENT = "tencent"


@app.command(epilog=UP_EXAMPLES)
def up(
    ctx: typer.Context,
    cloud: Annotated[Emulated, typer.Argument(help="Which cloud.", metavar="CLOUD")],
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 takes a free port.")] = 0,
    as_json: Json = False,
) -> None:
    """Serve a made-up fleet the way the cloud would, on loopback, until interrupted.

    Prints the address and the access key that any SDK needs. Signatures, permissions and parameters are checked.
    Time passes as it does outside, and can be moved ahead; faults can be ordered: see docs/sandbox.md.
    """
    with _emulator(cloud, port) as running:
        told = {
            "cloud": cloud.value,
            "url": running.url,
            "access_key_id": running.keys.key_id,
            "access_key_secret": running.keys.secret,
            "control": f"{running.url}/_sandbox/",
        }
        typer.echo(to_json(told) if as_json else "\n".join(f"{name:18} {value}" for name, value in told.items()))
        program = ctx.obj if isinstance(ctx.obj, Program) else Program()
        program.wait()


@contextmanager
def _emulator(cloud: Emulated, port: int) -> Iterator[AlibabaEmulator | TencentEmulator]:
    from costguard.sandbox.clock import RunningClock
    from costguard.sandbox.wire.control import Control

    clock = RunningClock()
    running = _emulator_of(cloud, clock, port)
    with running:
        running.server.control = Control(clock, running.faults, running.calls)
        yield running


def _emulator_of(cloud: Emulated, clock: RunningClock, port: int) -> AlibabaEmulator | TencentEmulator:
    from costguard.sandbox.demo_fleet import demo_fleet
    from costguard.sandbox.wire.door import WorldDoor
    from costguard.sandbox.world.cloud import World

    now = clock.now()
    fleet = [spec for spec in demo_fleet(now) if spec.cloud == cloud.value]
    door = WorldDoor(World(fleet, now), clock)
    if cloud is Emulated.ALIBABA:
        from costguard.sandbox.alibaba.emulator import AlibabaEmulator

        return AlibabaEmulator(door, port=port)
    if cloud is Emulated.TENCENT:
        from costguard.sandbox.tencent.server import TencentEmulator

        return TencentEmulator(door, port=port)
    assert_never(cloud)
