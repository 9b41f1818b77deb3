"""EC2's one call that copies every volume of a machine: what is sent, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.contract.aws_stand_in import StandIn, aws_stand_in
from tests.contract.cloud_worlds import AwsWorld, aws_world

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.refs import ResourceRef


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: StandIn) -> Iterator[AwsWorld]:
    with aws_world(stand_in) as made:
        yield made


def copying(world: AwsWorld, native_id: str) -> Action:
    """The action that copies all volumes of a machine."""
    subject = ResourceRef("aws", world.shard.account, world.shard.region, "instance", native_id)
    volumes = tuple(subject.sibling("volume", volume) for volume in sorted(world.volumes(native_id)))
    world.stand_in.requests.clear()
    return Action("a", "decision-1", Verb.SNAPSHOT, subject, subject, "e", "case-1", 1, "r", "g", copies=volumes)


def machine(world: AwsWorld) -> str:
    native_id = world.launch()
    world.add_volume(native_id)
    return native_id


def test_one_call_copies_every_volume_and_marks_every_copy(world: AwsWorld) -> None:
    wanted = copying(world, machine(world))

    receipt = world.executor.execute(wanted)

    assert world.changes_sent() == ["snapshot set"]
    (sent,) = (form for name, form in world.stand_in.requests if name == "CreateSnapshots")
    assert sent["InstanceSpecification.InstanceId"] == [wanted.subject.native_id]
    assert not any(key.startswith("InstanceSpecification.Exclude") for key in sent)
    detail = world.inventory.details([wanted.subject])[wanted.subject]
    made = {copy.volume: copy.ref.native_id for copy in detail.snapshots}
    assert receipt.native_id.split(",") == [made[volume] for volume in wanted.copies]
    assert {copy.decision_id for copy in detail.snapshots} == {"decision-1"}
    tagged = world.ec2.describe_snapshots(SnapshotIds=receipt.native_id.split(","))["Snapshots"]
    tags = [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in tagged]
    name_tag = f"costguard {wanted.subject.native_id}"
    assert tags == [{"Name": name_tag, "costguard:decision-id": "decision-1", "costguard:case": "case-1"}] * 2


def test_the_closer_look_says_that_several_volumes_are_copied_together(world: AwsWorld) -> None:
    several, single = machine(world), world.launch()
    refs = [ResourceRef("aws", world.shard.account, world.shard.region, "instance", each) for each in (several, single)]
    details = world.inventory.details(refs)
    assert [details[ref].copied_together for ref in refs] == [True, False]


def test_a_lost_answer_is_an_unknown_outcome_sent_once_and_found_by_its_tag(world: AwsWorld) -> None:
    wanted = copying(world, machine(world))
    world.stand_in.lose_answers("CreateSnapshots")

    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(wanted)

    assert world.stand_in.count("CreateSnapshots") == 1
    detail = world.inventory.details([wanted.subject])[wanted.subject]
    assert {(copy.volume, copy.decision_id) for copy in detail.snapshots} == {
        (volume, "decision-1") for volume in wanted.copies
    }


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (503, "RequestLimitExceeded", ThrottledError),
        (403, "UnauthorizedOperation", AccessDeniedError),
        (400, "ConcurrentSnapshotLimitExceeded", ThrottledError),
        (400, "SnapshotLimitExceeded", RefusedError),
        (400, "IncorrectState", RefusedError),
        (400, "InvalidInstanceID.NotFound", NotFoundError),
    ],
)
def test_a_refused_set_is_sent_once_and_changes_nothing(
    world: AwsWorld, status: int, code: str, error: type[ProviderError]
) -> None:
    """API: EC2, "Error codes for the Amazon EC2 API"."""
    wanted = copying(world, machine(world))
    world.stand_in.fail("CreateSnapshots", status, code)

    with pytest.raises(error) as caught:
        world.executor.execute(wanted)

    assert caught.value.operation == "ec2:CreateSnapshots"
    assert world.stand_in.count("CreateSnapshots") == 1
    assert world.inventory.details([wanted.subject])[wanted.subject].snapshots == ()


def test_an_answer_without_a_named_volume_leaves_the_outcome_unknown(world: AwsWorld) -> None:
    """It was detached between the last look and the call: whether what there is makes a set, a later look says."""
    wanted = copying(world, machine(world))
    gone = wanted.subject.sibling("volume", "vol-0123456789abcdef0")

    with pytest.raises(OutcomeUnknownError, match="vol-0123456789abcdef0"):
        world.executor.execute(replace(wanted, copies=(*wanted.copies, gone)))


def test_an_answer_with_a_volume_attached_meanwhile_is_a_whole_set(world: AwsWorld) -> None:
    wanted = copying(world, machine(world))
    receipt = world.executor.execute(replace(wanted, copies=wanted.copies[:1]))
    made = world.inventory.details([wanted.subject])[wanted.subject].snapshots
    assert sorted(receipt.native_id.split(",")) == sorted(copy.ref.native_id for copy in made)
    assert len(made) == 2


def test_a_set_that_does_not_fit_is_refused_before_anything_is_sent(world: AwsWorld) -> None:
    wanted = copying(world, machine(world))
    volume = wanted.copies[0]
    misfits = (
        replace(wanted, resource=volume),
        replace(wanted, resource=wanted.subject.sibling("instance", "i-another")),
        replace(wanted, copies=(volume, replace(volume, region="us-west-2"))),
        replace(wanted, copies=(volume, wanted.subject)),
        replace(wanted, copies=(volume, replace(volume, native_id=""))),
        replace(wanted, decision_id="d" * 257),
        replace(wanted, verb=Verb.STOP),
    )
    for misfit in misfits:
        with pytest.raises(RefusedError, match="not sent"):
            world.executor.execute(misfit)
    assert world.changes_sent() == []
