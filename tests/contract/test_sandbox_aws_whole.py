"""The whole sandbox: clouds, Slack and a ledger behind one `start`."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from cloudstand.clouds import STARTS_AT
from cloudstand.demo.fleet import aws_fleet
from cloudstand.errors import MisuseError
from costguard.cli.demo.story import Buttons, live
from costguard.cli.sandbox.running import Sandbox
from costguard.domain.errors import InvalidInputError
from costguard.ports import Target

_SESSION = boto3.session.Session()  # one, so that the API models are read once


def ec2_of(sandbox: Sandbox) -> Any:
    keys = sandbox.credentials
    connect: Any = _SESSION.client
    return closing(
        connect(
            "ec2",
            region_name="us-east-1",
            endpoint_url=sandbox.endpoint_url,
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
        )
    )


def test_a_sandbox_has_everything_a_run_needs() -> None:
    with Sandbox.start() as sandbox:
        folder = Path(sandbox.ledger_url.removeprefix("sqlite:///")).parent
        assert sandbox.clock.now() == sandbox.world.now == STARTS_AT
        assert sandbox.targets == tuple(
            Target(cloud, role="costguard", external_id="costguard-sandbox", organisation=True)
            for cloud in ("aws", "alibaba", "tencent")
        )
        assert sandbox.endpoint_url.startswith("http://127.0.0.1:")
        assert sandbox.slack.posted == []
        assert folder.is_dir()
        with ec2_of(sandbox) as ec2:
            assert len(ec2.describe_instances()["Reservations"]) == 5
    assert not folder.exists()


def test_time_moves_the_world_and_what_clients_see() -> None:
    with Sandbox.start() as sandbox, ec2_of(sandbox) as ec2:
        native_id = aws_fleet(STARTS_AT)[0].native_id
        ec2.stop_instances(InstanceIds=[native_id])
        assert sandbox.advance(timedelta(minutes=2)) == STARTS_AT + timedelta(minutes=2)
        assert [event.what for event in sandbox.world.history] == ["stop", "stopped"]
        sandbox.clock.sleep(60)
        assert sandbox.world.now == STARTS_AT + timedelta(minutes=3)


def test_closed_twice_is_closed_and_the_next_may_start() -> None:
    first = Sandbox.start(fleet=())
    with pytest.raises(InvalidInputError, match="another sandbox"):
        Sandbox.start(fleet=())
    first.close()
    first.close()
    with pytest.raises(MisuseError, match="not running"):
        first.gateway  # noqa: B018 - reading it is the point
    Sandbox.start(fleet=()).close()


def test_the_story_of_the_demo_runs_on_it() -> None:
    with Sandbox.start() as sandbox:
        nobody = Buttons(lambda *_: None, lambda _: None, lambda _: None)
        told = [day.number for day in live(sandbox, lambda _: None, nobody, days=3)]
    assert told == [0, 1, 2]
