"""What Alibaba Cloud answers becomes one of our errors by its code, without secrets and with a fix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.providers.alibaba.core.errors import fields_of, fix_for, gap, refusal, translate, unproven
from costguard.providers.alibaba.core.transport import Answer, WireError
from costguard.providers.kit.core.calls import DEADLINE

OPERATION = "ecs:DescribeInstances"
SHARD = Shard("alibaba", "1234567890123456", "cn-hangzhou")


def answered(status: int = 200, **fields: Any) -> Answer:
    return Answer(status, json.dumps({"RequestId": "R-1", **fields}).encode(), None)


def error_of(answer: Answer, *, changes: bool = False, operation: str = OPERATION) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        fields_of(answer, operation, changes=changes)
    return caught.value


@pytest.mark.parametrize(
    ("code", "status", "reading", "changing"),
    [
        ("Throttling", 400, ThrottledError, ThrottledError),
        ("Throttling.User", 400, ThrottledError, ThrottledError),
        ("Throttling.ConcurrentLimitExceeded", 503, ThrottledError, ThrottledError),
        ("Rejected.Throttling", 429, ThrottledError, ThrottledError),
        ("Anything", 429, ThrottledError, ThrottledError),
        ("Forbidden.RAM", 403, AccessDeniedError, AccessDeniedError),
        ("Forbidden", 403, AccessDeniedError, AccessDeniedError),
        ("NoPermission", 403, AccessDeniedError, AccessDeniedError),
        ("NoPermission.Operator", 403, AccessDeniedError, AccessDeniedError),
        ("AccessForbidden", 403, AccessDeniedError, AccessDeniedError),
        ("InvalidAccessKeyId.NotFound", 404, AccessDeniedError, AccessDeniedError),
        ("InvalidSecurityToken.Expired", 400, AccessDeniedError, AccessDeniedError),
        ("InvalidTimeStamp.Expired", 400, AccessDeniedError, AccessDeniedError),
        ("SignatureDoesNotMatch", 400, AccessDeniedError, AccessDeniedError),
        ("InvalidInstanceId.NotFound", 404, NotFoundError, NotFoundError),
        ("Forbidden.InstanceNotFound", 403, NotFoundError, NotFoundError),
        ("InvalidDiskId.NotFound", 404, NotFoundError, NotFoundError),
        ("InvalidSecurityGroupRule.RuleNotExist", 404, NotFoundError, NotFoundError),
        ("EntityNotExist.Role", 404, NotFoundError, NotFoundError),
        ("IncorrectInstanceStatus", 403, RefusedError, RefusedError),
        ("IncorrectInstanceStatus.Initializing", 403, RefusedError, RefusedError),
        ("InvalidOperation.DeletionProtection", 403, RefusedError, RefusedError),
        ("InstanceLockedForSecurity", 403, RefusedError, RefusedError),
        ("ChargeTypeViolation", 403, RefusedError, RefusedError),
        ("Forbidden.ChargeTypeIsPrepaid", 403, RefusedError, RefusedError),
        ("QuotaExceed.Snapshot", 400, RefusedError, RefusedError),
        ("IncorrectDiskStatus.CreatingSnapshot", 403, RefusedError, RefusedError),
        ("IdempotentParameterMismatch", 400, RefusedError, RefusedError),
        ("DryRunOperation", 400, RefusedError, RefusedError),
        ("InternalError", 500, UnavailableError, OutcomeUnknownError),
        ("ServiceUnavailable", 503, UnavailableError, OutcomeUnknownError),
        ("SomethingNew", 500, UnavailableError, OutcomeUnknownError),
        ("SystemBusy", 400, UnavailableError, OutcomeUnknownError),
        ("IdempotentProcessing", 400, UnavailableError, OutcomeUnknownError),
        ("SignatureNonceUsed", 400, UnavailableError, OutcomeUnknownError),
    ],
)
def test_a_refusal_becomes_the_error_its_caller_can_use(
    code: str, status: int, reading: type[ProviderError], changing: type[ProviderError]
) -> None:
    for changes, expected in ((False, reading), (True, changing)):
        found = error_of(answered(status, Code=code, Message="no"), changes=changes)
        assert type(found) is expected
        assert (found.operation, found.code) == (OPERATION, code)


@pytest.mark.parametrize(
    "code", ["InvalidAction.NotFound", "InvalidVersion.NotFound", "InvalidRegionId.NotFound", "InvalidProduct.NotFound"]
)
def test_a_wrong_endpoint_or_region_is_not_a_machine_that_is_gone(code: str) -> None:
    """A case would be closed for good."""
    assert type(error_of(answered(404, Code=code, Message="no"))) is RefusedError


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"Code": "404", "Message": "no metric", "Success": False}, "404"),
        ({"Code": 400, "Message": "no", "Success": False}, "400"),
        ({"Code": "AccessForbidden"}, "AccessForbidden"),
        ({"Success": False}, "Unknown"),
        ({"Success": "false", "Code": "200"}, "200"),
        ({"Success": None}, "Unknown"),
        ({"Code": None}, "Unknown"),
        ({"Code": ""}, "Unknown"),
    ],
)
def test_http_200_with_a_refusal_in_it_is_a_refusal(fields: dict[str, Any], code: str) -> None:
    assert error_of(answered(200, **fields)).code == code


@pytest.mark.parametrize("fields", [{}, {"Code": "200", "Success": True}, {"Code": 200}, {"Code": "Success"}])
def test_an_answer_that_says_it_succeeded_did(fields: dict[str, Any]) -> None:
    assert fields_of(answered(200, **fields), OPERATION, changes=True)["RequestId"] == "R-1"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>proxy</html>",
        b"{}",
        b'{"Instances": {"Instance": []}}',
        b'{"RequestId": ""}',
        b'{"RequestId": null}',
        b"[]",
        b"null",
        b'{"RequestId": "R-1"',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_an_answer_of_another_form_is_none(body: bytes) -> None:
    """Read as an empty region, it would close every case in it."""
    assert type(error_of(Answer(200, body, None))) is UnavailableError
    assert type(error_of(Answer(200, body, None), changes=True)) is OutcomeUnknownError


@pytest.mark.parametrize(("status", "kind"), [(403, UnavailableError), (502, OutcomeUnknownError)])
def test_a_page_of_a_proxy_tells_whether_a_change_can_have_gone_through(status: int, kind: type[ProviderError]) -> None:
    assert type(error_of(Answer(status, b"<html>", None), changes=True)) is kind


def test_only_what_may_have_arrived_is_an_unknown_outcome() -> None:
    for sent, changes, kind in (
        (True, True, OutcomeUnknownError),
        (True, False, UnavailableError),
        (False, True, UnavailableError),
    ):
        assert type(translate(WireError("Reset", "gone", sent=sent), OPERATION, changes=changes)) is kind


def test_no_message_carries_a_secret() -> None:
    secret = "&AccessKeyId=LTAI5tMadeUpMadeUp&SecurityToken=CAISmadeup&Signature=abc%3D"
    for told in (
        str(error_of(answered(400, Code="SignatureDoesNotMatch", Message=f"server string to sign is:{secret}"))),
        str(WireError("ReadTimeout", f"https://ecs.aliyuncs.com/?Action=X{secret}", sent=True)),
        str(refusal(OPERATION, "Forbidden.RAM", secret, changes=True)),
    ):
        assert not {"LTAI5tMadeUpMadeUp", "CAISmadeup", "abc%3D"} & set(
            told.replace("&", " ").replace("=", " ").split()
        )


@pytest.mark.parametrize(
    ("error", "kind", "fix"),
    [
        (AccessDeniedError("x", operation=OPERATION), GapKind.DENIED, "grant ecs:DescribeInstances"),
        (AccessDeniedError("x", operation="cms:DescribeMetricList"), GapKind.DENIED, "cms:QueryMetricList"),
        (AccessDeniedError("x", operation="sts:AssumeRole"), GapKind.DENIED, "external id"),
        (AccessDeniedError("x", operation="sts:GetCallerIdentity"), GapKind.DENIED, "valid Alibaba Cloud credentials"),
        (AccessDeniedError("x", code="InvalidTimeStamp.Expired"), GapKind.DENIED, "clock"),
        (AccessDeniedError("x", code="InvalidSecurityToken.Expired"), GapKind.DENIED, "renew"),
        (ThrottledError("x"), GapKind.THROTTLED, "Quota Center"),
        (UnavailableError("x"), GapKind.UNAVAILABLE, "network"),
        (UnavailableError("x", code=DEADLINE), GapKind.DEADLINE, "more time"),
        (TruncatedReadError("x"), GapKind.TRUNCATED, ""),
        (RefusedError("x"), GapKind.UNREADABLE, ""),
    ],
)
def test_a_gap_says_what_would_close_it(error: ProviderError, kind: GapKind, fix: str) -> None:
    found = gap(SHARD, "inventory", error)

    assert (found.kind, found.what, found.shard) == (kind, "inventory", SHARD)
    assert fix in found.fix
    assert (found.fix == "") == (fix_for(error) == "")


def test_an_unproven_empty_list_names_the_permission() -> None:
    denied = AccessDeniedError("x", operation=OPERATION, code="Forbidden.RAM")

    assert unproven(SHARD, denied).fix == "grant ecs:DescribeInstances to these credentials"
    assert unproven(SHARD, RefusedError("x", operation=OPERATION)).fix == (
        "grant ecs:DescribeInstances to these credentials"
    )
