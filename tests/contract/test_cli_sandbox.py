"""`costguard sandbox up`: an emulator that anybody's SDK can use, with a clock and faults ordered from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program

CLOUDS = ("alibaba", "tencent")


def asked(url: str, body: object = None) -> Any:
    request = Request(url, data=None if body is None else json.dumps(body).encode())  # noqa: S310 - loopback
    with urlopen(request, timeout=5) as answer:  # noqa: S310
        return json.loads(answer.read())


def while_up(cloud: str, capfd: pytest.CaptureFixture[str], visit: Callable[[Any], None]) -> int:
    """Start it and, where the command would wait, do this with what it printed."""

    def wait() -> None:
        visit(json.loads(capfd.readouterr().out))

    return run(["sandbox", "up", cloud, "--json"], program=Program(wait=wait))


@pytest.mark.parametrize("cloud", CLOUDS)
def test_it_listens_until_it_is_interrupted_and_time_can_be_moved(
    cloud: str, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def visit(told: Any) -> None:
        assert told["cloud"] == cloud
        before = asked(told["control"] + "state")["now"]
        after = asked(told["control"] + "advance", {"seconds": 7200})["now"]
        seen.extend((before, after, told["url"]))

    assert while_up(cloud, capfd, visit) == Exit.OK
    assert seen[0] < seen[1]
    with pytest.raises(OSError, match="refused"):
        asked(f"{seen[2]}/_sandbox/state")


def test_an_unknown_cloud_is_bad_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "up", "aws"]) == Exit.BAD_INPUT
    assert "alibaba" in capfd.readouterr().err
