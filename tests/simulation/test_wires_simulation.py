"""A share of the stories over the wires in the ordinary suite, and proofs that nothing of them leaves the process."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest
from tests.simulation.campaign import play_wires
from tests.simulation.chronicle import Chronicle
from tests.simulation.clouds import Clouds
from tests.simulation.hub import Hub
from tests.simulation.scenario import START
from tests.simulation.store import Shelf
from tests.simulation.test_simulation import python
from tests.simulation.trace import Trace
from tests.simulation.wires.clouds import Wires
from tests.simulation.wires.sockets import LeftTheProcessError, in_process
from tests.simulation.wires.stories import wire_machine

from cloudstand.world.cloud import World
from cloudstand.world.records import POWER_CUT
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.core.session import TencentSession

ENDED_TWICE = """import sys
from tests.simulation.bugs import bug_named
from tests.simulation.planting import Bug, plant
bug = bug_named("tencent-ended-forgotten")
plant(Bug(bug.name, bug.rules, tuple(edit for edit in bug.edits if sys.argv[1] not in edit.old)))
from tests.simulation.campaign import quietly
from tests.simulation.replaying import played
with quietly():
    print(*(what for seed in sys.argv[2:] for what in played(seed).violations), sep="\\n")"""


def test_no_seed_over_the_wires_breaks_a_rule() -> None:
    before = threading.active_count()
    totals = play_wires(range(1, 13))
    assert totals.violations == []
    assert {"stop", "snapshot", "terminate", "warn"} <= set(totals.actions)
    assert len(totals.faults) >= 5
    assert threading.active_count() == before


def test_nothing_leaves_the_process() -> None:
    session = TencentSession(keys=Keys("id", "secret"), endpoint="http://127.0.0.1:9", now=lambda: START)
    with in_process({}), pytest.raises(LeftTheProcessError):
        session.identity()
    session.close()


@pytest.mark.parametrize(
    ("cloud", "service", "how", "cut"),
    [
        ("aws", "ec2", {}, False),
        ("aws", "ec2", {"Force": True}, True),
        ("aws", "ec2", {"SkipOsShutdown": True}, True),
        ("alibaba", "ecs", {"ForceStop": False}, False),
        ("alibaba", "ecs", {"ForceStop": True}, True),
        ("tencent", "cvm", {"StopType": "SOFT"}, False),
        ("tencent", "cvm", {"StopType": "SOFT_FIRST"}, True),
        ("tencent", "cvm", {"StopType": "HARD"}, True),
        ("tencent", "cvm", {"ForceStop": True}, True),
    ],
)
def test_each_emulator_tells_a_cut_from_a_shutdown(cloud: str, service: str, how: dict[str, Any], *, cut: bool) -> None:
    world = World([wire_machine(cloud, "one")], START)
    (machine,) = world.machines.values()
    named = {"InstanceId" if cloud == "alibaba" else "InstanceIds": [machine.native_id]}
    hub = Hub(START, Random(1), Trace())  # noqa: S311 - reproducible on purpose
    clouds = Clouds(hub, world, Chronicle(), Shelf(), lambda _: None)
    sent: list[str] = []
    luck = Random(1)  # noqa: S311
    with Wires(clouds, luck, lambda _rule, _machine, what: sent.append(what)) as wires:
        executor: Any = wires.connect(cloud).executor
        executor._session.call(machine.shard, service, "StopInstances", **named, **how)  # noqa: SLF001 - as nobody may
    assert (POWER_CUT in [happening.what for happening in world.history]) is cut
    assert sent == ["StopInstances was sent by something that only reads"]  # no executor sent it


@pytest.mark.slow  # a process that plays seeds for each; the unit tests of both guards run always
@pytest.mark.parametrize(
    ("kept", "safe"),
    [("self._ended.add", True), ("self._look_before_the_end", True), ("neither of them", False)],
)
def test_one_of_two_guards_is_enough_to_end_a_machine_once(kept: str, *, safe: bool) -> None:
    """Sent again at once, a second call meets what the executor remembers, or what it looks at before."""
    played = python("-c", ENDED_TWICE, kept, "w5")
    assert played.returncode == 0, played.stderr
    assert ("NEVER rule 6" not in played.stdout) is safe
