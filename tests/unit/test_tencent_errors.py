"""Codes of Tencent Cloud as our errors: matched from the left, by what a caller is to do."""

from __future__ import annotations

import pytest

from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.providers.tencent.core.errors import UNSUPPORTED, fix_for, from_answer, from_sending, gap, is_stale
from costguard.providers.tencent.core.transport import SendingError

READ, STOP = "cvm:DescribeInstances", "cvm:StopInstances"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RequestLimitExceeded", ThrottledError),
        ("RequestLimitExceeded.UinLimitExceeded", ThrottledError),
        ("RequestLimitExceeded.IPLimitExceeded", ThrottledError),
        ("LimitExceeded.ActionLimited", ThrottledError),
        ("LimitExceeded", RefusedError),  # a quota: asking again does not help
        ("LimitExceeded.UserReturnQuota", RefusedError),
        ("RequestLimitExceededSoon", RefusedError),  # another word, not a member of the family
        ("AuthFailure.SignatureFailure", AccessDeniedError),
        ("AuthFailure.UnauthorizedOperation", AccessDeniedError),
        ("UnauthorizedOperation", AccessDeniedError),
        ("UnauthorizedOperation.CamNoAuth", AccessDeniedError),
        ("InvalidInstanceId.NotFound", NotFoundError),
        ("InvalidDiskId.NotFound", NotFoundError),
        ("ResourceNotFound.InvalidInstanceIdNotFound", NotFoundError),
        ("ResourceNotFound", NotFoundError),
        ("InvalidInstanceId.Malformed", RefusedError),
        ("UnsupportedOperation.InstancesProtected", RefusedError),
        ("UnsupportedOperation.StoppedModeStopCharging", RefusedError),
        ("InvalidInstanceState.Terminating", RefusedError),
        ("MutexOperation.TaskRunning", RefusedError),
        ("InvalidParameter.OverLimit", RefusedError),
        ("SomethingNobodyPublished", RefusedError),
    ],
)
@pytest.mark.parametrize("changes", [False, True])
def test_a_code_says_what_to_do(code: str, kind: type[ProviderError], *, changes: bool) -> None:
    found = from_answer(code, "as was asked for", STOP if changes else READ, changes=changes)
    assert type(found) is kind
    assert found.code == code


@pytest.mark.parametrize("code", ["InternalError", "InternalError.TradeUnknownError", "InternalServerError"])
def test_a_fault_of_theirs_leaves_a_change_unknown(code: str) -> None:
    assert type(from_answer(code, "", READ, changes=False)) is UnavailableError
    assert type(from_answer(code, "", STOP, changes=True)) is OutcomeUnknownError


def test_sts_has_its_own_word_for_too_often() -> None:
    assert type(from_answer("InvalidParameter.OverLimit", "", "sts:AssumeRole", changes=False)) is ThrottledError


def test_messages_are_shown_without_secrets() -> None:
    said = from_answer("AuthFailure.TokenFailure", "Token=abcdefgh for AKIDz8krbsJ5yKBZQpn74", READ, changes=False)
    assert "abcdefgh" not in str(said)
    assert "AKIDz8krbsJ5yKBZQpn74" not in str(said)


@pytest.mark.parametrize("code", ["InvalidAction", "NoSuchProduct", "NoSuchVersion", "ActionOffline"])
def test_what_a_stand_in_does_not_know_is_told_apart(code: str) -> None:
    assert from_answer(code, "", READ, changes=False, stand_in=True).code == UNSUPPORTED
    assert from_answer(code, "", READ, changes=False).code == code


@pytest.mark.parametrize(
    ("sent", "changes", "kind"),
    [
        (True, True, OutcomeUnknownError),
        (False, True, UnavailableError),
        (True, False, UnavailableError),
        (False, False, UnavailableError),
    ],
)
def test_only_a_change_that_was_sent_is_unknown(*, sent: bool, changes: bool, kind: type[ProviderError]) -> None:
    assert type(from_sending(SendingError("ClientNetworkError", "", sent=sent), STOP, changes=changes)) is kind


def test_a_refusal_of_a_gateway_did_nothing() -> None:
    throttled = SendingError("UnusableAnswer", "HTTP 429", sent=True, status=429)
    assert type(from_sending(throttled, STOP, changes=True)) is ThrottledError


def test_keys_that_are_none_are_no_permission() -> None:
    found = from_sending(SendingError("InvalidCredential", "", sent=False), READ, changes=False)
    assert type(found) is AccessDeniedError
    assert "keys" in fix_for(found)


@pytest.mark.parametrize(
    ("code", "operation", "fix"),
    [
        ("UnauthorizedOperation", READ, "grant cvm:DescribeInstances"),
        ("AuthFailure.SecretIdNotFound", "sts:GetCallerIdentity", "valid Tencent Cloud keys"),
        ("AuthFailure.UnauthorizedOperation", "sts:AssumeRole", "carriers"),
        ("AuthFailure.SignatureExpire", READ, "clock"),
        ("ResourceNotFound.RoleNotFound", "sts:AssumeRole", "make the role"),
        ("UnsupportedRegion", READ, "take the region out"),
        ("RequestLimitExceeded", READ, "run again later"),
        ("InternalError", READ, "run again later"),
        ("MutexOperation.TaskRunning", READ, ""),
    ],
)
def test_what_a_person_can_do_about_it(code: str, operation: str, fix: str) -> None:
    found = fix_for(from_answer(code, "", operation, changes=False))
    assert fix in found
    assert bool(fix) == bool(found)


def test_a_denied_read_is_a_gap_with_its_permission() -> None:
    shard = Shard("tencent", "100012345678", "ap-guangzhou")
    found = gap(shard, "inventory", from_answer("UnauthorizedOperation", "no", READ, changes=False))
    assert (found.kind, found.shard, found.what) == (GapKind.DENIED, shard, "inventory")


def test_old_keys_of_a_role_are_told_from_a_missing_permission() -> None:
    assert is_stale(from_answer("AuthFailure.TokenFailure", "", READ, changes=False))
    assert not is_stale(from_answer("UnauthorizedOperation", "", READ, changes=False))
