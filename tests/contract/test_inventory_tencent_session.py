"""Identity, roles, retries and pages of Tencent Cloud, as its emulator meets them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.tencent_world import NOW, SHARD, patient_pacer

from cloudstand.clock import MovedClock
from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.kit.core.calls import DEADLINE
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.compute.instance_types import TencentTypes
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.session import TencentSession

MEMBER = "100000000042"
MEMBER_SHARD = replace(SHARD, account=MEMBER)


class Stage:
    """An organisation of two accounts, one machine each."""

    def __init__(self, **emulated: Any) -> None:
        self.clock = MovedClock(NOW)
        fleet = [
            tencent_machine("first", does.idle(), NOW - timedelta(days=9)),
            tencent_machine("second", does.idle(), NOW - timedelta(days=9), account=MEMBER),
        ]
        self.emulator = TencentEmulator(WorldDoor(World(fleet, NOW), self.clock), **emulated)
        self._opened: list[TencentSession] = []

    def session(self, **more: Any) -> TencentSession:
        more = {"keys": self.emulator.keys, "pacer": patient_pacer(), **more}
        opened = TencentSession(endpoint=self.emulator.url, now=self.clock.now, **more)
        self._opened.append(opened)
        return opened

    def actions(self) -> list[str]:
        return [call.action for call in self.emulator.calls]

    def fail(self, code: str, action: str = "DescribeInstances", times: int = 1) -> None:
        self.emulator.faults.add(Fault(FaultKind.REFUSED, action, times, code=code))

    def close(self) -> None:
        for session in self._opened:
            session.close()
        self.emulator.close()


@contextmanager
def staged(**emulated: Any) -> Iterator[Stage]:
    made = Stage(**emulated)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


def organisation(**more: Any) -> Target:
    return Target("tencent", regions=("ap-guangzhou",), role="costguard", organisation=True, **more)


def describe(session: TencentSession, shard: Shard = SHARD) -> list[Any]:
    return [item for page in session.pages(shard, "cvm", "DescribeInstances", "InstanceSet") for item in page]


def test_who_we_are_is_the_first_question_and_asked_once(stage: Stage) -> None:
    session = stage.session()
    assert session.identity().account == TENCENT_ACCOUNT
    describe(session)
    session.identity()
    assert stage.actions() == ["GetCallerIdentity", "DescribeInstances"]


@pytest.mark.parametrize(
    "keys", [None, Keys("", ""), Keys("AKIDnobody00000000", "x"), Keys("AKIDnobody00000000", "x", "token")]
)
def test_keys_that_are_none_or_nobodys_are_no_access(stage: Stage, keys: Keys | None) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        stage.session(keys=keys).identity()
    assert caught.value.operation == "sts:GetCallerIdentity"


def test_a_wrong_secret_is_no_access(stage: Stage) -> None:
    wrong = replace(stage.emulator.keys, secret="another")
    with pytest.raises(AccessDeniedError, match="SignatureFailure"):
        stage.session(keys=wrong).identity()


def test_the_members_of_an_organisation_are_entered_by_their_role(stage: Stage) -> None:
    session = stage.session()
    inventory = TencentInventory(session, catalogue=TencentTypes())
    found = inventory.discover(organisation())
    assert [shard.account for shard in found.shards] == sorted([TENCENT_ACCOUNT, MEMBER])
    assert (found.gaps, found.closed_accounts) == ((), ())
    (machine,) = inventory.read(MEMBER_SHARD).instances
    assert machine.name == "second"
    asked = {(call.action, call.account) for call in stage.emulator.calls}
    assert ("DescribeInstances", MEMBER) in asked
    assert ("GetCallerIdentity", MEMBER) in asked, "the role said who it is before anything was asked with it"


def test_the_external_id_goes_with_the_role() -> None:
    with staged(external_id="costguard-42") as stage:
        found = TencentInventory(stage.session()).discover(organisation(external_id="costguard-42"))
        assert found.gaps == ()
        without = TencentInventory(stage.session()).discover(organisation())
    assert [(gap.shard.account, gap.what, gap.kind) for gap in without.gaps] == [(MEMBER, "accounts", GapKind.DENIED)]
    assert [shard.account for shard in without.shards] == [TENCENT_ACCOUNT], "the others go on"


def test_a_role_that_leads_elsewhere_is_not_used(stage: Stage) -> None:
    arn = f"qcs::cam::uin/{MEMBER}:roleName/costguard"
    session = stage.session()
    with pytest.raises(AccessDeniedError, match="leads to account"):
        session.for_account(Target("tencent", role=arn), "100000000077")
    with pytest.raises(AccessDeniedError, match="leads to account"):
        describe(session, replace(SHARD, account="100000000077"))


def test_an_account_without_a_role_is_not_entered(stage: Stage) -> None:
    with pytest.raises(AccessDeniedError, match="names no role"):
        describe(stage.session(), MEMBER_SHARD)


def test_the_keys_of_a_role_are_renewed_before_they_expire(stage: Stage) -> None:
    session = stage.session()
    session.for_account(organisation(), MEMBER)
    stage.clock.advance(timedelta(minutes=95))
    describe(session, MEMBER_SHARD)
    assert stage.actions().count("AssumeRole") == 1
    stage.clock.advance(timedelta(minutes=2))
    describe(session, MEMBER_SHARD)
    assert stage.actions().count("AssumeRole") == 2


def test_keys_that_are_no_longer_accepted_are_renewed_once(stage: Stage) -> None:
    session = stage.session()
    session.for_account(organisation(), MEMBER)
    stage.fail("AuthFailure.TokenFailure")
    assert len(describe(session, MEMBER_SHARD)) == 1
    assert stage.actions().count("AssumeRole") == 2
    stage.fail("AuthFailure.TokenFailure", times=2)
    with pytest.raises(AccessDeniedError):
        describe(session, MEMBER_SHARD)


def test_a_role_may_be_entered_from_a_role(stage: Stage) -> None:
    """A function's own role has a token, which the SDK's own credential for roles would drop."""
    first = stage.session()
    first.for_account(organisation(), MEMBER)
    answer = first.call(
        SHARD,
        "sts",
        "AssumeRole",
        RoleArn=f"qcs::cam::uin/{TENCENT_ACCOUNT}:roleName/costguard",
        RoleSessionName="host",
    )
    issued = answer["Credentials"]
    keys = Keys(issued["TmpSecretId"], issued["TmpSecretKey"], issued["Token"])
    session = stage.session(keys=keys)
    assert session.identity().kind == "CAMRole"
    session.for_account(organisation(), MEMBER)
    assert len(describe(session, MEMBER_SHARD)) == 1


@pytest.mark.parametrize(
    ("code", "times", "error"),
    [
        ("RequestLimitExceeded", 7, None),
        ("RequestLimitExceeded", 8, ThrottledError),
        ("InternalError", 3, None),
        ("InternalError", 4, UnavailableError),
        ("UnauthorizedOperation", 1, AccessDeniedError),
        ("LimitExceeded", 1, RefusedError),
    ],
)
def test_reads_are_asked_again_by_the_kind_of_error(
    stage: Stage, code: str, times: int, error: type[ProviderError] | None
) -> None:
    session = stage.session()
    session.identity()
    stage.fail(code, times=times)
    if error is None:
        assert len(describe(session)) == 1
    else:
        with pytest.raises(error):
            describe(session)
    assert stage.actions().count("DescribeInstances") == times + (error is None)


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.TRUNCATED, FaultKind.NOT_JSON, FaultKind.LOST_ANSWER])
def test_a_broken_answer_to_a_read_is_asked_again(stage: Stage, kind: FaultKind) -> None:
    session = stage.session()
    stage.emulator.faults.add(Fault(kind, "DescribeInstances"))
    assert len(describe(session)) == 1


def test_an_error_with_a_charset_is_an_error(stage: Stage) -> None:
    session = stage.session()
    stage.emulator.allowed[TENCENT_ACCOUNT] = {"sts:GetCallerIdentity"}
    stage.emulator.faults.add(Fault(FaultKind.WRONG_TYPE, "DescribeInstances", 9))
    with pytest.raises(AccessDeniedError):
        describe(session)


def test_a_read_only_session_sends_nothing_that_changes(stage: Stage) -> None:
    session = stage.session()
    for service, action in (("cvm", "StopInstances"), ("cvm", "RunInstances"), ("cbs", "DeleteSnapshots")):
        with pytest.raises(AccessDeniedError, match="before sending"):
            session.call(SHARD, service, action, InstanceIds=["ins-1"])
    assert stage.actions() == []
    with pytest.raises(AccessDeniedError, match="before sending"):
        session.acting().call(SHARD, "cvm", "RunInstances")


def test_a_change_is_sent_once_however_passing_the_fault(stage: Stage) -> None:
    acting = stage.session().acting()
    stage.fail("RequestLimitExceeded", "StopInstances")
    with pytest.raises(ThrottledError):
        acting.call(SHARD, "cvm", "StopInstances", InstanceIds=["ins-aaaaaaaa"])
    acting.close()
    assert stage.actions().count("StopInstances") == 1


def test_what_was_sent_is_counted_where_it_left(stage: Stage) -> None:
    session = stage.session()
    stage.fail("RequestLimitExceeded")
    describe(session)
    counted = {count.operation: count.calls for count in session.calls_made()}
    assert counted == {"sts:GetCallerIdentity": 1, "cvm:DescribeInstances": 2}


def test_no_time_left_is_nothing_asked(stage: Stage) -> None:
    session = stage.session(deadline=lambda: 0.0)
    with pytest.raises(UnavailableError) as caught:
        session.identity()
    assert caught.value.code == DEADLINE
    assert stage.actions() == []


def test_a_clock_that_is_wrong_says_so() -> None:
    with staged(wall=lambda: NOW) as stage, pytest.raises(AccessDeniedError, match="SignatureExpire"):
        stage.session().identity()


def test_a_cloud_of_somebody_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="aws"):
        TencentSession(cloud="aws", keys=None, now=lambda: NOW)


class Answers(TencentSession):
    """A session that has these answers, one a page, in whatever order they are asked for."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        super().__init__(keys=None, now=lambda: NOW)
        self.asked: list[dict[str, Any]] = []
        self._answers = answers

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        del shard, service, action
        self.asked.append(parameters)
        offset: int = parameters["Offset"]
        return self._answers[offset // 100]


def page(first: int, count: int, total: Any) -> dict[str, Any]:
    return {
        "InstanceSet": [{"InstanceId": f"ins-{number}"} for number in range(first, first + count)],
        "TotalCount": total,
    }


def test_pages_go_by_offset_until_all_are_there() -> None:
    session = Answers(page(0, 100, 200), page(100, 100, 200))
    assert len(describe(session)) == 200
    assert [asked["Offset"] for asked in session.asked] == [0, 100]


def test_a_count_that_grows_is_followed() -> None:
    session = Answers(page(0, 100, 100 + 1), page(100, 2, 102))
    assert len(describe(session)) == 102


def test_a_count_that_is_too_low_ends_with_a_short_page() -> None:
    session = Answers(page(0, 100, 0), page(100, 1, 0))
    assert len(describe(session)) == 101


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([page(0, 99, 200)], "EndedEarly"),
        ([page(0, 0, 1)], "EndedEarly"),
        ([page(0, 100, 300), page(100, 100, 299)], "Shifted"),
        ([page(0, 100, 300), page(100, 100, 300), page(201, 98, 299)], "Shifted"),
        ([page(0, 100, 300), page(101, 100, 299), page(200, 100, 300)], "Shifted"),  # the last was answered before
        ([page(0, 100, 300), page(0, 100, 300)], "RepeatedPage"),
        ([page(0, 101, 101)], "TooLong"),
        ([{"TotalCount": 0}], "MissingResult"),
        ([{"InstanceSet": None, "TotalCount": 0}], "MissingResult"),
    ],
)
def test_pages_that_contradict_themselves_are_an_error(answers: list[dict[str, Any]], code: str) -> None:
    with pytest.raises(TruncatedReadError) as caught:
        describe(Answers(*answers))
    assert caught.value.code == code


@pytest.mark.parametrize("total", [None, "1", -1, 1.5, True])
def test_a_count_that_is_none_is_no_answer(total: Any) -> None:
    with pytest.raises(ProviderError):
        describe(Answers(page(0, 1, total)))
