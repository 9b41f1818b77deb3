"""A dry run leaves only when the request itself says so: checked on what is built and on what is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, InvalidInputError
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.core.transport import WatchedGate
from costguard.providers.aws.iam.preflight import AwsPreflight
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.iam.permissions import Feature, Operation

READ = Operation("cloud:Look", Feature.INVENTORY, ("cloud:Look",))
CHANGE = Operation("cloud:Stop", Feature.STOP, ("cloud:Stop",), changes_something=True)
TABLE = {operation.name: operation for operation in (READ, CHANGE)}


@pytest.mark.parametrize(
    ("may_change", "may_dry_run", "dry_run", "leaves"),
    [
        (False, False, False, False),
        (False, False, True, False),
        (False, True, False, False),
        (False, True, True, True),
        (True, False, False, True),
        (True, False, True, True),
    ],
)
def test_a_change_leaves_for_acting_or_as_a_dry_run_where_those_may(
    may_change: bool,  # noqa: FBT001 - a column of the table
    may_dry_run: bool,  # noqa: FBT001 - as above
    dry_run: bool,  # noqa: FBT001 - as above
    leaves: bool,  # noqa: FBT001 - as above
) -> None:
    gate = Gate(TABLE, may_change=may_change, may_dry_run=may_dry_run)

    if leaves:
        gate.check("cloud:Stop", dry_run=dry_run)
    else:
        with pytest.raises(AccessDeniedError, match="refused before sending"):
            gate.check("cloud:Stop", dry_run=dry_run)
    gate.check("cloud:Look", dry_run=dry_run)


def test_what_is_not_listed_leaves_as_no_dry_run_either() -> None:
    gate = Gate(TABLE, may_change=False, may_dry_run=True)

    with pytest.raises(AccessDeniedError, match="not among the operations"):
        gate.check("cloud:Delete", dry_run=True)


def test_dry_runs_are_counted_apart_and_change_nothing() -> None:
    gate = Gate(TABLE, may_change=False, may_dry_run=True)
    gate.sending("cloud:Stop", dry_run=True)
    gate.sending("cloud:Look", dry_run=True)
    gate.sending("cloud:Look")

    counted = [(one.operation, one.calls, one.changes_something) for one in gate.calls_made()]

    assert counted == [("cloud:Look", 2, False), ("cloud:Stop (dry run)", 1, False)]


def test_a_change_sent_by_an_acting_session_is_never_counted_as_a_dry_run() -> None:
    gate = Gate(TABLE, may_change=True)
    gate.sending("cloud:Stop")

    assert [(one.operation, one.changes_something) for one in gate.calls_made()] == [("cloud:Stop", True)]


@dataclass
class Events:
    """The part of an SDK session that a gate stands in."""

    handlers: dict[str, Callable[..., None]] = field(default_factory=dict)

    def register(self, event: str, handler: Callable[..., None]) -> None:
        self.handlers[event] = handler


@dataclass(frozen=True)
class Sent:
    body: Any


SAID = "Action=StopInstances&InstanceId.1=i-1&DryRun=true"
BODIES = {
    "as text": (SAID, True),
    "as bytes": (SAID.encode(), True),
    "missing": ("Action=StopInstances&InstanceId.1=i-1", False),
    "false": ("Action=StopInstances&DryRun=false", False),
    "empty": ("Action=StopInstances&DryRun=", False),
    "otherwise spelled": ("Action=StopInstances&dryrun=true&DRYRUN=true", False),
    "another case": ("Action=StopInstances&DryRun=True", False),
    "twice": ("Action=StopInstances&DryRun=true&DryRun=false", False),
    "inside another value": ("Action=StopInstances&X=1%26DryRun%3Dtrue", False),
    "within a name": ("Action=StopInstances&Filter.DryRun=true", False),
    "no text": (b"\xff\xfe", False),
    "none": (None, False),
    "a number": (1, False),
}


@pytest.mark.parametrize("name", BODIES)
def test_only_a_body_that_says_dry_run_once_leaves(name: str) -> None:
    body, leaves = BODIES[name]
    events, gate = Events(), WatchedGate(may_change=False, may_dry_run=True)
    gate.watch(events)

    if leaves:
        events.handlers["before-send"]("before-send.ec2.StopInstances", request=Sent(body))
        assert [one.operation for one in gate.calls_made()] == ["ec2:StopInstances (dry run)"]
        return
    with pytest.raises(AccessDeniedError, match="read-only here"):
        events.handlers["before-send"]("before-send.ec2.StopInstances", request=Sent(body))
    assert gate.calls_made() == ()


@pytest.mark.parametrize(
    ("params", "passes"),
    [
        ({"body": {"DryRun": "true"}}, True),
        ({"body": {"DryRun": "false"}}, False),
        ({"body": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_the_request_is_checked_before_it_is_built_as_well(params: Any, passes: bool) -> None:  # noqa: FBT001 - a column
    events = Events()
    WatchedGate(may_change=False, may_dry_run=True).watch(events)

    if passes:
        events.handlers["before-call"]("before-call.ec2.StopInstances", params=params)
        return
    with pytest.raises(AccessDeniedError, match="read-only here"):
        events.handlers["before-call"]("before-call.ec2.StopInstances", params=params)


@pytest.mark.parametrize("options", [{}, {"may_change": True}, {"may_change": True, "may_dry_run": True}])
def test_a_preflight_takes_only_a_session_that_can_change_nothing(options: dict[str, bool]) -> None:
    with pytest.raises(InvalidInputError, match="made for dry runs"):
        AwsPreflight(AwsSession(**options), now=_never)  # type: ignore[arg-type]


def _never() -> Any:
    raise AssertionError
