"""The contract of `Preflight`, on every provider's adapter: it tells what may be done, and does none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.aws_stand_in import StandIn, aws_stand_in
from tests.contract.preflight_worlds import Asked, AwsAsked, aws_asked
from tests.contract.provider_worlds import PREFLIGHTS

from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError, ProviderError
from costguard.ports import Permit


@pytest.fixture(scope="module", params=sorted(PREFLIGHTS))
def provider(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[Asked]]]:
    with PREFLIGHTS[request.param]() as new_account:
        yield new_account


@pytest.fixture
def asked(provider: Callable[[], AbstractContextManager[Asked]]) -> Iterator[Asked]:
    with provider() as made:
        yield made


def by_operation(permits: Sequence[Permit]) -> dict[str, Permit]:
    found = {permit.operation: permit for permit in permits}
    assert len(found) == len(permits), "each operation is told once"
    return found


def changing(asked: Asked) -> set[str]:
    return {name for name, one in asked.operations.items() if one.changes_something}


def test_it_knows_whose_the_credentials_are(asked: Asked) -> None:
    caller = asked.preflight.caller()

    assert (caller.cloud, caller.account) == (asked.shard.cloud, asked.shard.account)
    assert caller.name


def test_credentials_that_the_cloud_refuses_are_an_error(asked: Asked) -> None:
    asked.refuse_everybody()

    with pytest.raises(AccessDeniedError):
        asked.preflight.caller()


def test_everything_a_scan_asks_and_every_change_is_told(asked: Asked) -> None:
    permits = by_operation(asked.preflight.permits(asked.shard, [asked.machine()], acting=True))

    assert set(permits) == set(asked.operations) - set(asked.unasked)
    assert {name for name, one in permits.items() if one.allowed is not True} == asked.untellable
    assert all(permit.shard == asked.shard for permit in permits.values())
    assert {name: one.feature for name, one in permits.items()} == {
        name: asked.operations[name].feature.value for name in permits
    }


def test_what_needs_a_machine_is_untold_without_one(asked: Asked) -> None:
    permits = by_operation(asked.preflight.permits(asked.shard, [], acting=True))

    assert {permits[name].allowed for name in changing(asked)} == {None}
    assert permits[asked.a_read].allowed is True
    assert all(permit.detail for permit in permits.values() if permit.allowed is None)


def test_only_who_would_act_is_asked_about_changes(asked: Asked) -> None:
    permits = by_operation(asked.preflight.permits(asked.shard, [asked.machine()], acting=False))

    assert set(permits) & changing(asked) == set()
    assert not any("dry run" in call.operation for call in asked.calls.calls_made())


@pytest.mark.parametrize("which", ["a_read", "a_change"])
def test_what_is_denied_is_told_with_the_permission_to_grant(asked: Asked, which: str) -> None:
    operation: str = getattr(asked, which)
    machine = asked.machine()
    asked.deny(operation)

    permits = by_operation(asked.preflight.permits(asked.shard, [machine], acting=True))

    assert {name for name, one in permits.items() if one.allowed is False} == {operation} - asked.untellable
    assert permits[operation].allowed is not True
    assert operation in permits[operation].fix
    assert permits[operation].detail


@pytest.mark.parametrize("which", ["a_read", "a_change"])
def test_what_does_not_answer_is_untold_never_allowed(asked: Asked, which: str) -> None:
    operation: str = getattr(asked, which)
    machine = asked.machine()
    asked.break_down(operation)

    permit = by_operation(asked.preflight.permits(asked.shard, [machine], acting=True))[operation]

    assert permit.allowed is None
    assert operation in f"{permit.detail} {permit.fix}"


def test_asking_changes_nothing(asked: Asked) -> None:
    machine = asked.machine()
    before = asked.truth()

    asked.preflight.permits(asked.shard, [machine], acting=True)

    assert asked.truth() == before
    assert not any(call.changes_something for call in asked.calls.calls_made())


def test_an_answer_as_if_it_had_been_done_ends_the_asking(asked: Asked) -> None:
    """Where there are no dry runs, no change is sent that could be answered so."""
    machine = asked.machine()
    asked.ignore_dry_runs(asked.a_change)

    ends = pytest.raises(OutcomeUnknownError, match="may have taken effect") if asked.has_dry_runs else nullcontext()
    with ends:
        asked.preflight.permits(asked.shard, [machine], acting=True)

    sent = [call.operation for call in asked.calls.calls_made() if call.operation.startswith(asked.a_change)]
    assert sent == [f"{asked.a_change} (dry run)"] * asked.has_dry_runs


def test_a_cloud_without_dry_runs_says_so_of_every_change(asked: Asked) -> None:
    permits = by_operation(asked.preflight.permits(asked.shard, [asked.machine()], acting=True))

    untold = {name for name in changing(asked) if "no dry run" in permits[name].detail}
    assert untold == (changing(asked) & asked.untellable)
    assert asked.has_dry_runs or untold == changing(asked)


@pytest.mark.parametrize("minutes", [0, 10, -600])
def test_the_clouds_clock_less_ours_is_told_to_a_few_seconds(asked: Asked, minutes: int) -> None:
    asked.now += timedelta(minutes=minutes)

    skew = asked.preflight.clock_skew()

    assert skew is not None
    assert abs(skew + timedelta(minutes=minutes)) < timedelta(seconds=30)


def test_a_refusal_tells_the_time_as_well(asked: Asked) -> None:
    """A clock that is far off makes every request fail, and that is when it must be said."""
    asked.refuse_everybody()
    asked.now += timedelta(hours=2)

    skew = asked.preflight.clock_skew()

    assert skew is not None
    assert abs(skew + timedelta(hours=2)) < timedelta(seconds=30)


# AWS: the session behind the preflight lets nothing out but what says DryRun


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as made:
        yield made


@pytest.fixture
def aws(stand_in: StandIn) -> Iterator[AwsAsked]:
    with aws_asked(stand_in) as made:
        made.session.identity()
        stand_in.requests.clear()
        yield made


CHANGES: dict[str, dict[str, Any]] = {
    "StopInstances": {"InstanceIds": ["i-0123456789abcdef0"]},
    "StartInstances": {"InstanceIds": ["i-0123456789abcdef0"]},
    "TerminateInstances": {"InstanceIds": ["i-0123456789abcdef0"]},
    "CreateSnapshot": {"VolumeId": "vol-0123456789abcdef0"},
    "CreateSnapshots": {"InstanceSpecification": {"InstanceId": "i-0123456789abcdef0"}},
}


@pytest.mark.parametrize("operation", CHANGES)
@pytest.mark.parametrize("said", [{}, {"DryRun": False}], ids=["missing", "false"])
def test_a_change_that_is_no_dry_run_never_leaves_the_process(
    aws: AwsAsked, stand_in: StandIn, operation: str, said: dict[str, bool]
) -> None:
    client = aws.session._clients.get("", aws.shard.region, "ec2")  # noqa: SLF001 - the way round, on purpose

    with pytest.raises(AccessDeniedError, match="read-only here"):
        aws.session.call(aws.shard, "ec2", operation, **CHANGES[operation], **said)
    with pytest.raises(AccessDeniedError, match="read-only here"):
        client._make_api_call(operation, {**CHANGES[operation], **said})  # noqa: SLF001 - as above

    assert stand_in.requests == []


def test_a_dry_run_that_loses_its_mark_on_the_way_never_leaves_the_process(aws: AwsAsked, stand_in: StandIn) -> None:
    """The last look is at what is sent, whatever stands in the SDK between."""
    client = aws.session._clients.get("", aws.shard.region, "ec2")  # noqa: SLF001 - the way round, on purpose

    def forget(request: Any, **_: Any) -> None:
        del request.data["DryRun"]

    client.meta.events.register_first("request-created.ec2.StopInstances", forget)

    with pytest.raises(AccessDeniedError, match="read-only here"):
        client._make_api_call("StopInstances", {**CHANGES["StopInstances"], "DryRun": True})  # noqa: SLF001 - as above
    assert stand_in.requests == []


def test_a_session_that_only_reads_sends_no_dry_run_either(aws: AwsAsked, stand_in: StandIn) -> None:
    with pytest.raises(AccessDeniedError, match="read-only here"):
        aws._world.session.call(aws.shard, "ec2", "StopInstances", InstanceIds=["i-1"], DryRun=True)  # noqa: SLF001 - the plain session

    assert stand_in.count("StopInstances") == 0


def test_a_dry_run_is_answered_by_the_word_that_it_would_work(aws: AwsAsked, stand_in: StandIn) -> None:
    machine = aws.machine().ref.native_id

    with pytest.raises(ProviderError) as caught:
        aws.session.call(aws.shard, "ec2", "StopInstances", InstanceIds=[machine], DryRun=True)

    assert caught.value.code == "DryRunOperation"
    assert [form["DryRun"] for action, form in stand_in.requests if action == "StopInstances"] == [["true"]]


def test_a_machine_denied_by_its_own_tags_does_not_stand_for_the_others(aws: AwsAsked, stand_in: StandIn) -> None:
    """The policies we generate deny what is protected; the permission is there all the same."""
    protected, plain = aws.machine(), aws.machine()
    stand_in.fail("StopInstances", 403, "UnauthorizedOperation", holding=protected.ref.native_id)

    permits = by_operation(aws.preflight.permits(aws.shard, [protected, plain], acting=True))

    assert permits["ec2:StopInstances"].allowed is True


def test_a_denied_dry_run_tells_no_secret(aws: AwsAsked) -> None:
    machine = aws.machine()
    aws.deny("ec2:CreateSnapshot")

    permit = by_operation(aws.preflight.permits(aws.shard, [machine], acting=True))["ec2:CreateSnapshot"]

    assert permit.fix == "grant ec2:CreateSnapshot and ec2:CreateTags to these credentials"
    assert permit.detail == "ec2:CreateSnapshot: UnauthorizedOperation: injected"


def test_a_set_of_copies_is_asked_for_with_the_tags_that_it_gets(aws: AwsAsked, stand_in: StandIn) -> None:
    """They need a permission of their own, for this very call."""
    machine = aws.machine()

    permit = by_operation(aws.preflight.permits(aws.shard, [machine], acting=True))["ec2:CreateSnapshots"]

    assert permit.allowed is True
    (sent,) = (form for action, form in stand_in.requests if action == "CreateSnapshots")
    assert (sent["DryRun"], sent["InstanceSpecification.InstanceId"]) == (["true"], [machine.ref.native_id])
    assert "costguard:decision-id" in {value for values in sent.values() for value in values}


def test_a_role_that_lacks_the_call_for_sets_is_told_so(aws: AwsAsked) -> None:
    machine = aws.machine()
    aws.deny("ec2:CreateSnapshots")

    permits = by_operation(aws.preflight.permits(aws.shard, [machine], acting=True))

    assert permits["ec2:CreateSnapshots"].fix == "grant ec2:CreateSnapshots and ec2:CreateTags to these credentials"
    assert permits["ec2:CreateSnapshot"].allowed is True
