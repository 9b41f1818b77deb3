"""The contract of `FreezeControl`, on every provider's adapter and both ways of attaching."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.cloud_worlds import DENIED, LOST, THROTTLED
from tests.contract.freeze_rigs import FreezeRig
from tests.contract.freeze_worlds import FREEZES, VENDORS_OWN

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.refs import Shard
from costguard.providers.kit.iam.permissions import Purpose


@pytest.fixture(scope="module", params=sorted(FREEZES))
def provider(request: pytest.FixtureRequest) -> Iterator[FreezeRig]:
    with FREEZES[request.param]() as made:
        yield made


@pytest.fixture
def rig(provider: FreezeRig) -> FreezeRig:
    provider.reset()
    return provider


@pytest.fixture(params=list(FreezeVia))
def freeze(rig: FreezeRig, request: pytest.FixtureRequest) -> LaunchFreeze:
    return rig.freeze(request.param)


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, set[str]]:
    """By target, what came or went."""
    found = {target: set(before[target]) ^ set(after[target]) for target in before}
    return {target: what for target, what in found.items() if what}


def test_attached_tells_what_is_there_of_any_kind(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    assert list(rig.control().attached(freeze)) == rig.truth(freeze)
    assert len(rig.requests()) == 1


def test_attached_is_complete_over_pages(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    rig.control().attach(freeze)
    rig.crowd(freeze)
    found = rig.control().attached(freeze)
    assert list(found) == rig.truth(freeze)
    assert freeze.policy in found


def test_what_was_attached_is_seen_and_nothing_else_was_touched(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    before = rig.everything()
    receipt = rig.control().attach(freeze)
    assert receipt.request_id
    assert changed(before, rig.everything()) == {freeze.target: {freeze.policy}}
    assert freeze.policy in rig.control().attached(freeze)
    assert len(rig.requests()) == 2


def test_detaching_leaves_what_was_there(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    before = rig.everything()
    rig.control().attach(freeze)
    assert rig.control().detach(freeze).request_id
    assert rig.everything() == before


def test_attaching_twice_changes_nothing_and_is_refused_by_name_where_the_vendor_does(
    rig: FreezeRig, freeze: LaunchFreeze
) -> None:
    rig.control().attach(freeze)
    before = rig.everything()
    if freeze.via in rig.keeps_the_attached:
        rig.control().attach(freeze)
    else:
        with pytest.raises(RefusedError, match=r"Duplicate|AlreadyExist"):
            rig.control().attach(freeze)
    assert rig.everything() == before


@pytest.mark.parametrize("operation", ["attach", "detach"])
def test_a_lost_answer_is_an_unknown_outcome_and_the_call_is_not_repeated(
    rig: FreezeRig, freeze: LaunchFreeze, operation: str
) -> None:
    if operation == "detach":
        rig.control().attach(freeze)
    asked = len(rig.requests())
    rig.go_wrong(operation, LOST)
    with pytest.raises(OutcomeUnknownError):
        getattr(rig.control(), operation)(freeze)
    assert len(rig.requests()) == asked + 1
    assert (freeze.policy in rig.control().attached(freeze)) is (operation == "attach")


@pytest.mark.parametrize(("how", "error"), [(DENIED, AccessDeniedError), (THROTTLED, ThrottledError)])
@pytest.mark.parametrize("operation", ["attach", "detach"])
def test_what_was_rejected_changed_nothing_and_is_not_repeated(
    rig: FreezeRig, freeze: LaunchFreeze, operation: str, how: str, error: type[ProviderError]
) -> None:
    if operation == "detach":
        rig.control().attach(freeze)
    before, asked = rig.everything(), len(rig.requests())
    rig.go_wrong(operation, how)
    with pytest.raises(error):
        getattr(rig.control(), operation)(freeze)
    assert len(rig.requests()) == asked + 1
    assert rig.everything() == before


def test_a_list_that_is_denied_is_an_error_and_never_empty(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    rig.go_wrong("list", DENIED)
    with pytest.raises(AccessDeniedError):
        rig.control().attached(freeze)


def test_a_throttled_list_is_asked_for_again(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    rig.go_wrong("list", THROTTLED)
    with pytest.raises(ThrottledError):
        rig.control().attached(freeze)
    assert len(rig.requests()) > 1


def test_a_target_that_is_not_there_is_an_error(rig: FreezeRig, freeze: LaunchFreeze) -> None:
    gone = {"aws": "999999999999", "alibaba": "9999999999999999", "tencent": "member/100000009999"}
    nobody = {"aws": "nobody", "alibaba": "nobody", "tencent": "999999"}
    lost = replace(freeze, target=(gone if freeze.via is FreezeVia.ORGANISATION else nobody)[rig.cloud])
    for ask in (rig.control().attached, rig.control().attach, rig.control().detach):
        with pytest.raises((NotFoundError, RefusedError)):
            ask(lost)


def test_an_organisation_without_such_policies_says_so(rig: FreezeRig) -> None:
    rig.switch_off()
    with pytest.raises(RefusedError, match="not enabled in this organisation: enable"):
        rig.control().attached(rig.freeze(FreezeVia.ORGANISATION))


@pytest.mark.parametrize(
    "changes", [{"policy": "*"}, {"target": ""}, {"target": "*"}, {"policy": ""}, {"cloud": "aws-cn"}]
)
def test_what_no_freeze_can_mean_is_refused_before_anything_is_sent(
    rig: FreezeRig, freeze: LaunchFreeze, changes: Any
) -> None:
    for ask in (rig.control().attached, rig.control().attach, rig.control().detach):
        with pytest.raises(RefusedError, match="nothing was sent"):
            ask(replace(freeze, **changes))
    assert rig.requests() == []


def test_the_vendors_own_policy_is_never_taken_off(rig: FreezeRig) -> None:
    own = VENDORS_OWN[rig.cloud]
    freeze = rig.freeze(FreezeVia.ORGANISATION)
    before = rig.everything()
    with pytest.raises(RefusedError):  # by us where it can be told from people's, else by the vendor: it is the last
        rig.control().detach(replace(freeze, policy=own or rig.truth(freeze)[0]))
    assert rig.everything() == before


@pytest.mark.parametrize("kind", ["reading", "acting"])
def test_only_a_session_made_for_it_freezes(rig: FreezeRig, kind: str) -> None:
    session = rig.session(kind)
    with pytest.raises(InvalidInputError, match="a launch freeze needs a session that can do nothing else"):
        rig.control_over(session)


@pytest.mark.parametrize("kind", ["reading", "acting", "freezing"])
def test_no_session_can_do_both(rig: FreezeRig, kind: str) -> None:
    """What attaches policies leaves a session for freezing only, and what stops machines never does."""
    freezes = {"aws": ("organizations", "AttachPolicy"), "tencent": ("organization", "AttachPolicy")}
    stops = {"aws": ("ec2", "StopInstances"), "alibaba": ("ecs", "StopInstances"), "tencent": ("cvm", "StopInstances")}
    freezing = freezes.get(rig.cloud, ("resourcedirectory", "AttachControlPolicy"))
    barred = [stops[rig.cloud]] if kind == "freezing" else [freezing]
    session = rig.session(kind)
    for service, operation in barred:
        with pytest.raises(AccessDeniedError, match="not among the operations costguard may call"):
            session.call(Shard(rig.cloud, ""), service, operation)
    assert rig.requests() == []


def test_what_comes_from_a_session_for_freezing_is_one(rig: FreezeRig) -> None:
    assert rig.session("freezing").acting().purpose is Purpose.FREEZE
