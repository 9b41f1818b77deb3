"""The generated policies grant what the adapters call and no more, as moto's IAM enforcement sees it.

moto looks at neither the ARN nor the tags of what an EC2 call touches, and asks nothing for tags set while
creating: enforced here are the allowed actions. The rest is compared word by word in test_aws_permissions.py.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.aws_stand_in import StandIn, aws_stand_in, patient_pacer
from tests.contract.cloud_worlds import AwsWorld, aws_world, environment_of

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import ACTING, READING, Feature


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: StandIn) -> Iterator[AwsWorld]:
    with aws_world(stand_in) as made:
        yield made


@contextmanager
def enforced(stand_in: StandIn) -> Iterator[None]:
    """IAM decides while the context lasts."""

    def after(requests: str) -> None:
        asked = urllib.request.Request(  # noqa: S310 - our own server on loopback
            f"{stand_in.url}/moto-api/reset-auth",
            data=requests.encode(),
            headers={"Content-Type": "application/octet-stream"},
            method="POST",
        )
        urllib.request.urlopen(asked).close()  # noqa: S310 - as above

    after("0")
    try:
        yield
    finally:
        after("inf")


def allowing(document: dict[str, Any]) -> dict[str, Any]:
    """What moto can judge: allowed actions, whatever their resource and condition."""
    kept = [one for one in document["Statement"] if one["Effect"] == "Allow"]
    statements = [{"Effect": "Allow", "Action": one["Action"], "Resource": "*"} for one in kept]
    return {**document, "Statement": statements}


@contextmanager
def session_with(world: AwsWorld, document: dict[str, Any], *, may_change: bool = False) -> Iterator[AwsSession]:
    """A session of a user who has this policy and nothing else, while IAM is enforced."""
    iam = world.client("iam")
    iam.create_user(UserName="costguard")
    iam.put_user_policy(UserName="costguard", PolicyName="p", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName="costguard")["AccessKey"]
    variables = {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        "AWS_SESSION_TOKEN": "",
    }
    with environment_of(variables), enforced(world.stand_in):
        session = AwsSession(endpoint_url=world.stand_in.url, may_change=may_change, pacer=patient_pacer())
        try:
            yield session
        finally:
            session.close()


def action(world: AwsWorld, verb: Verb, native_id: str, volume: str = "") -> Action:
    subject = ResourceRef("aws", world.shard.account, world.shard.region, "instance", native_id)
    resource = subject.sibling("volume", volume) if volume else subject
    return Action("a", "d", verb, subject, resource, "e", "c", 1, "r", "g")


def test_the_reading_policy_covers_everything_a_scan_calls(world: AwsWorld) -> None:
    native_id = world.launch()
    world.keep_address(native_id)

    with session_with(world, policy_document(READING)) as session:
        inventory = AwsInventory(session, catalogue=AwsTypes())
        found = inventory.discover(Target("aws"))
        read = inventory.read(world.shard)
        details = inventory.details([one.ref for one in read.instances])

    assert found.gaps == ()
    assert read.gaps == ()
    assert [one.ref.native_id for one in read.instances] == [native_id]
    assert len(details) == 1
    assert not any(call.changes_something for call in session.calls_made())


def test_without_a_policy_the_listing_is_a_denied_gap(world: AwsWorld) -> None:
    """Shows that the enforcement above is real."""
    world.launch()

    with session_with(world, policy_document([Feature.METRICS])) as session:
        inventory = AwsInventory(session, catalogue=AwsTypes())
        inventory.discover(Target("aws", regions=(world.shard.region,)))
        read = inventory.read(world.shard)

    assert [(gap.what, gap.kind) for gap in read.gaps] == [("inventory", GapKind.DENIED)]
    assert read.gaps[0].fix == "grant ec2:DescribeInstances to these credentials"


def test_the_acting_policy_covers_every_verb(world: AwsWorld) -> None:
    native_id = world.launch()
    (volume,) = world.volumes(native_id)

    with session_with(world, allowing(policy_document(ACTING)), may_change=True) as session:
        executor = AwsExecutor(session)
        executor.execute(action(world, Verb.STOP, native_id))
        executor.execute(action(world, Verb.START, native_id))
        executor.execute(action(world, Verb.SNAPSHOT, native_id, volume))
        machine = action(world, Verb.SNAPSHOT, native_id)
        executor.execute(replace(machine, copies=(machine.subject.sibling("volume", volume),)))
        executor.execute(action(world, Verb.TERMINATE, native_id))

    assert world.changes_sent() == ["stop", "start", "snapshot", "snapshot set", "terminate"]


@pytest.mark.parametrize("granted", [Feature.STOP, Feature.SNAPSHOT])
def test_a_policy_for_less_denies_terminate(world: AwsWorld, granted: Feature) -> None:
    native_id = world.launch()

    with (
        session_with(world, allowing(policy_document([granted])), may_change=True) as session,
        pytest.raises(AccessDeniedError, match="ec2:TerminateInstances"),
    ):
        AwsExecutor(session).execute(action(world, Verb.TERMINATE, native_id))

    assert world.state(native_id) == "running"
