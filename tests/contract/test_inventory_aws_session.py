"""How requests leave: read-only by gate, counted, paced, tried again or not, and what their errors become."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.aws_stand_in import StandIn, aws_stand_in, credentials_of, new_account, patient_pacer
from tests.contract.cloud_worlds import AwsWorld, aws_world, environment_of

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NoCapacityError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.core.errors import gap
from costguard.providers.aws.core.session import AwsSession


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: StandIn) -> Iterator[AwsWorld]:
    with aws_world(stand_in) as made:
        made.session.identity()
        stand_in.requests.clear()
        yield made


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("StopInstances", {"InstanceIds": ["i-0123456789abcdef0"]}),
    ("TerminateInstances", {"InstanceIds": ["i-0123456789abcdef0"]}),
    ("StartInstances", {"InstanceIds": ["i-0123456789abcdef0"]}),
    ("CreateSnapshot", {"VolumeId": "vol-0123456789abcdef0"}),
    ("CreateSnapshots", {"InstanceSpecification": {"InstanceId": "i-0123456789abcdef0"}}),
]


@pytest.mark.parametrize(("operation", "parameters"), CHANGES)
def test_a_read_only_session_lets_no_change_out(world: AwsWorld, operation: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(AccessDeniedError, match="read-only here"):
        world.session.call(world.shard, "ec2", operation, **parameters)

    assert world.stand_in.requests == []


@pytest.mark.parametrize(("operation", "parameters"), CHANGES)
def test_not_even_a_client_taken_from_it_lets_a_change_out(
    world: AwsWorld, operation: str, parameters: dict[str, Any]
) -> None:
    """The gate stands in the SDK's own event, so no path round `call` exists."""
    client = world.session._clients.get("", world.shard.region, "ec2")  # noqa: SLF001 - the way round, on purpose

    with pytest.raises(AccessDeniedError, match="read-only here"):
        client._make_api_call(operation, parameters)  # noqa: SLF001 - as above

    assert world.stand_in.requests == []


def test_an_operation_nobody_listed_leaves_no_session(world: AwsWorld) -> None:
    for session in (world.session, world.acting):
        session.identity()
        world.stand_in.requests.clear()
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            session.call(world.shard, "ec2", "RunInstances", ImageId="ami-1", MinCount=1, MaxCount=1)
        client = session._clients.get("", world.shard.region, "ec2")  # noqa: SLF001 - the way round, on purpose
        assert not hasattr(client, "delete_volume"), "no session lists it, so no client can send it"
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            client.release_address(AllocationId="eipalloc-0123456789abcdef0")  # listed, for sessions that mend networks
    assert world.stand_in.requests == []


def test_an_executor_refuses_a_read_only_session(world: AwsWorld) -> None:
    with pytest.raises(InvalidInputError, match="read-only"):
        AwsExecutor(world.session)


def test_calls_are_counted_where_they_leave(world: AwsWorld) -> None:
    world.stand_in.fail("DescribeInstances", 503, "RequestLimitExceeded", times=2)
    world.session.call(world.shard, "ec2", "DescribeInstances")
    with pytest.raises(AccessDeniedError):
        world.session.call(world.shard, "ec2", "StopInstances", InstanceIds=["i-1"])

    counted = {one.operation: one for one in world.session.calls_made()}

    assert counted["ec2:DescribeInstances"].calls == world.stand_in.count("DescribeInstances") == 3
    assert counted["ec2:DescribeInstances"].permission == "ec2:DescribeInstances"
    assert not any(one.changes_something for one in counted.values())


def test_an_acting_session_counts_what_it_changed(world: AwsWorld) -> None:
    native_id = world.launch()
    world.acting.call(world.shard, "ec2", "StopInstances", InstanceIds=[native_id])

    changed = [(one.operation, one.calls) for one in world.acting.calls_made() if one.changes_something]

    assert changed == [("ec2:StopInstances", 1)]


def test_a_throttled_read_is_tried_again_until_it_succeeds(world: AwsWorld) -> None:
    world.stand_in.fail("DescribeInstances", 503, "RequestLimitExceeded", times=5)

    world.session.call(world.shard, "ec2", "DescribeInstances")

    assert world.stand_in.count("DescribeInstances") == 6


def test_a_read_that_stays_throttled_ends(world: AwsWorld) -> None:
    world.stand_in.fail("DescribeInstances", 503, "RequestLimitExceeded")

    with pytest.raises(ThrottledError) as caught:
        world.session.call(world.shard, "ec2", "DescribeInstances")

    assert world.stand_in.count("DescribeInstances") == 8
    assert gap(world.shard, "inventory", caught.value).kind is GapKind.THROTTLED


def test_a_server_fault_on_a_read_is_tried_again(world: AwsWorld) -> None:
    world.stand_in.fail("DescribeInstances", 500, "InternalError", times=2)

    world.session.call(world.shard, "ec2", "DescribeInstances")

    assert world.stand_in.count("DescribeInstances") == 3


def test_a_broken_connection_on_a_read_is_tried_again(world: AwsWorld) -> None:
    world.stand_in.lose_answers("DescribeInstances", times=1)

    world.session.call(world.shard, "ec2", "DescribeInstances")

    assert world.stand_in.count("DescribeInstances") == 2


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (500, "InternalError", OutcomeUnknownError),
        (503, "Unavailable", OutcomeUnknownError),
        (503, "RequestLimitExceeded", ThrottledError),
        (500, "InsufficientInstanceCapacity", NoCapacityError),
        (400, "IncorrectInstanceState", RefusedError),
        (400, "UnsupportedOperation", RefusedError),
        (403, "UnauthorizedOperation", AccessDeniedError),
    ],
)
def test_a_change_is_sent_once_whatever_comes_back(
    world: AwsWorld, status: int, code: str, error: type[ProviderError]
) -> None:
    world.stand_in.fail("StopInstances", status, code)

    with pytest.raises(error) as caught:
        world.acting.call(world.shard, "ec2", "StopInstances", InstanceIds=["i-0123456789abcdef0"])

    assert type(caught.value) is error
    assert (caught.value.operation, caught.value.code) == ("ec2:StopInstances", code)
    assert world.stand_in.count("StopInstances") == 1


def test_a_change_whose_answer_makes_no_sense_is_an_unknown_outcome(world: AwsWorld) -> None:
    native_id = world.launch()
    world.stand_in.change_answers("StopInstances", lambda _: b"<!doctype html><p>proxy")

    with pytest.raises(OutcomeUnknownError):
        world.acting.call(world.shard, "ec2", "StopInstances", InstanceIds=[native_id])

    assert world.stand_in.count("StopInstances") == 1


def test_a_change_that_was_never_sent_is_not_an_unknown_outcome(world: AwsWorld) -> None:
    with pytest.raises(RefusedError, match="ParamValidation"):
        world.acting.call(world.shard, "ec2", "StopInstances", InstanceIds="not a list")

    assert world.stand_in.count("StopInstances") == 0


def test_nobody_listening_is_unavailable_for_reads_and_changes_alike(stand_in: StandIn) -> None:
    account = new_account()
    with environment_of(credentials_of(stand_in.url, account)):
        working = AwsSession(endpoint_url=stand_in.url, may_change=True, pacer=patient_pacer())
        working.identity()
        working._clients._endpoint_url = "http://127.0.0.1:1"  # noqa: SLF001 - nobody listens there
        shard = Shard("aws", account, "us-east-1")
        with pytest.raises(UnavailableError):
            working.call(shard, "ec2", "DescribeInstances")
        with pytest.raises(UnavailableError):
            working.call(shard, "ec2", "StopInstances", InstanceIds=["i-0123456789abcdef0"])
        working.close()


def test_no_credentials_is_a_denial_that_says_what_to_do(stand_in: StandIn) -> None:
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": ""}
    with environment_of({**nothing, "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}):
        session = AwsSession(endpoint_url=stand_in.url, pacer=patient_pacer())
        with pytest.raises(AccessDeniedError) as caught:
            session.identity()

    assert "provide valid AWS credentials" in gap(Shard("aws", ""), "accounts", caught.value).fix


def test_an_unknown_profile_is_bad_input(stand_in: StandIn) -> None:
    with environment_of({"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}):
        session = AwsSession(profile="nobody", endpoint_url=stand_in.url, pacer=patient_pacer())
        with pytest.raises(InvalidInputError, match=r"AWS_PROFILE: .*nobody.*unset it"):
            session.identity()


def test_an_unknown_cloud_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="aws-moon"):
        AwsSession(cloud="aws-moon")


def test_no_wait_goes_past_the_deadline(world: AwsWorld) -> None:
    left = iter([60.0, 0.1])
    session = AwsSession(endpoint_url=world.stand_in.url, pacer=patient_pacer(), deadline=lambda: next(left, 0.0))
    world.stand_in.fail("GetCallerIdentity", 503, "RequestLimitExceeded")

    with pytest.raises(ThrottledError):
        session.identity()
    with pytest.raises(UnavailableError) as caught:
        session.identity()
    session.close()

    assert world.stand_in.count("GetCallerIdentity") == 1
    assert gap(world.shard, "inventory", caught.value).kind is GapKind.DEADLINE


def test_pages_end_when_a_token_comes_back(world: AwsWorld) -> None:
    world.go_wrong("list", "repeated page")

    with pytest.raises(TruncatedReadError, match="same page token"):
        list(world.session.pages(world.shard, "ec2", "DescribeInstances", "Reservations"))

    assert world.stand_in.count("DescribeInstances") == 2


def test_threads_share_clients_and_each_asks_its_own_region(world: AwsWorld) -> None:
    regions = ["us-east-1", "eu-west-1", "ap-northeast-1", "us-east-1"] * 3

    def seen(region: str) -> int:
        shard = Shard("aws", world.shard.account, region)
        return sum(len(page) for page in world.session.pages(shard, "ec2", "DescribeInstances", "Reservations"))

    world.launch()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(seen, regions))

    assert found == [1 if region == "us-east-1" else 0 for region in regions]
    assert len(world.session._clients._kept) == 4  # noqa: SLF001 - three regions and sts


def test_the_role_of_all_guarded_accounts_is_not_assumed_in_ones_own(world: AwsWorld) -> None:
    """Elsewhere: test_own_account.py."""
    account = world.shard.account
    own = Target("aws", account, role="arn:aws:iam::999999999999:role/of-members", common_role=True)

    world.session.for_account(own, account)

    with pytest.raises(AccessDeniedError, match="leads to account 999999999999"):
        world.session.for_account(replace(own, common_role=False), account)


def test_an_acting_twin_knows_the_accounts_its_reader_found(world: AwsWorld) -> None:
    other = new_account()
    found = world.inventory.discover(Target("aws", other, ("us-east-1",), "worker"))

    answer = world.acting.call(found.shards[0], "ec2", "DescribeInstances")

    assert answer["Reservations"] == []
    assert {one.operation for one in world.acting.calls_made()} >= {"sts:AssumeRole", "ec2:DescribeInstances"}
