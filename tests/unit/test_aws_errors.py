"""What AWS and its SDK raise becomes one of our errors, without secrets and with a fix."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

from costguard.domain.errors import (
    AccessDeniedError,
    NoCapacityError,
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
from costguard.providers.aws.core.errors import UNSUPPORTED, fix_for, gap, translate
from costguard.providers.aws.core.transport import is_aws
from costguard.providers.kit.core.calls import DEADLINE
from costguard.providers.kit.core.credentials import without_secrets

OPERATION = "ec2:DescribeInstances"
SHARD = Shard("aws", "111122223333", "us-east-1")


def answered(code: str, status: int, message: str = "no") -> sdk.ClientError:
    error = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return sdk.ClientError(error, "DescribeInstances")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status", "reading", "changing"),
    [
        ("RequestLimitExceeded", 503, ThrottledError, ThrottledError),
        ("Throttling", 400, ThrottledError, ThrottledError),
        ("ThrottlingException", 400, ThrottledError, ThrottledError),
        ("SnapshotCreationPerVolumeRateExceeded", 400, ThrottledError, ThrottledError),
        ("ConcurrentSnapshotLimitExceeded", 400, ThrottledError, ThrottledError),
        ("Anything", 429, ThrottledError, ThrottledError),
        ("UnauthorizedOperation", 403, AccessDeniedError, AccessDeniedError),
        ("AccessDenied", 403, AccessDeniedError, AccessDeniedError),
        ("ExpiredToken", 400, AccessDeniedError, AccessDeniedError),
        ("AuthFailure", 401, AccessDeniedError, AccessDeniedError),
        ("OptInRequired", 401, AccessDeniedError, AccessDeniedError),
        ("SomethingNew", 403, AccessDeniedError, AccessDeniedError),
        ("InvalidInstanceID.NotFound", 400, NotFoundError, NotFoundError),
        ("InvalidVolume.NotFound", 400, NotFoundError, NotFoundError),
        ("IncorrectInstanceState", 400, RefusedError, RefusedError),
        ("OperationNotPermitted", 400, RefusedError, RefusedError),
        ("InsufficientInstanceCapacity", 500, NoCapacityError, NoCapacityError),
        ("InternalError", 500, UnavailableError, OutcomeUnknownError),
        ("Unavailable", 503, UnavailableError, OutcomeUnknownError),
        ("503", 503, UnavailableError, OutcomeUnknownError),
    ],
)
def test_an_answer_becomes_the_error_its_caller_can_use(
    code: str, status: int, reading: type[ProviderError], changing: type[ProviderError]
) -> None:
    for changes, expected in ((False, reading), (True, changing)):
        found = translate(answered(code, status), OPERATION, changes=changes, sent=True)
        assert type(found) is expected
        assert (found.operation, found.code) == (OPERATION, code)


@pytest.mark.parametrize(
    ("raised", "unsent", "sent"),
    [
        (sdk.EndpointConnectionError(endpoint_url="http://x"), UnavailableError, UnavailableError),
        (sdk.ConnectTimeoutError(endpoint_url="http://x"), UnavailableError, UnavailableError),
        (sdk.ReadTimeoutError(endpoint_url="http://x"), UnavailableError, OutcomeUnknownError),
        (sdk.ConnectionClosedError(endpoint_url="http://x"), UnavailableError, OutcomeUnknownError),
        (sdk.HTTPClientError(error="reset"), UnavailableError, OutcomeUnknownError),
        (ResponseParserError("not XML"), UnavailableError, OutcomeUnknownError),
        (ValueError("no such month"), UnavailableError, OutcomeUnknownError),
        (OSError("broken pipe"), UnavailableError, OutcomeUnknownError),
        (sdk.NoCredentialsError(), AccessDeniedError, AccessDeniedError),
        (sdk.ProfileNotFound(profile="nlp"), AccessDeniedError, AccessDeniedError),
        (sdk.CredentialRetrievalError(provider="sso", error_msg="x"), AccessDeniedError, AccessDeniedError),
        (sdk.ParamValidationError(report="x"), RefusedError, RefusedError),
    ],
)
def test_a_change_is_unknown_only_when_it_may_have_arrived(
    raised: Exception, unsent: type[ProviderError], sent: type[ProviderError]
) -> None:
    assert type(translate(raised, OPERATION, changes=True, sent=False)) is unsent
    assert type(translate(raised, OPERATION, changes=True, sent=True)) is sent


def test_a_read_never_has_an_unknown_outcome() -> None:
    lost = sdk.ReadTimeoutError(endpoint_url="http://x")

    assert type(translate(lost, OPERATION, changes=False, sent=True)) is UnavailableError


def test_only_a_stand_in_may_lack_an_operation() -> None:
    unparsable = ResponseParserError("<!doctype html>")

    assert translate(unparsable, OPERATION, changes=False, sent=True, stand_in=True).code == UNSUPPORTED
    assert translate(unparsable, OPERATION, changes=False, sent=True).code != UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("not authorized. Encoded authorization failure message: qX9-abc_DEF", "qX9"),
        ("key AKIAIOSFODNN7EXAMPLE is unknown", "AKIAIOSFODNN7EXAMPLE"),
        ("GET https://user:hunter2@proxy:3128/ failed", "hunter2"),
        ("https://h/?X-Amz-Signature=0123abc&X-Amz-Credential=me", "0123abc"),
        ("string: x-amz-security-token:" + "A1b2" * 40, "A1b2A1b2"),
        ("SessionToken=FwoGZXIvYXdzE x", "FwoGZXIvYXdzE"),
    ],
)
def test_secrets_leave_messages(text: str, gone: str) -> None:
    assert gone in text
    assert gone not in without_secrets(text)


def test_messages_are_one_short_line_without_control_characters() -> None:
    found = without_secrets("bad\n\x1b[31mred\x00 " + "words and words " * 100)

    assert len(found) <= 300
    assert found.isprintable()
    assert "bad [31mred" in found


@pytest.mark.parametrize(
    ("error", "kind", "fix"),
    [
        (AccessDeniedError("x", operation=OPERATION), GapKind.DENIED, "grant ec2:DescribeInstances"),
        (AccessDeniedError("x", operation=OPERATION, code="ExpiredToken"), GapKind.DENIED, "renew the credentials"),
        (AccessDeniedError("x", operation="sts:AssumeRole"), GapKind.DENIED, "trust policy"),
        (AccessDeniedError("x", operation=OPERATION, code="OptInRequired"), GapKind.UNREADABLE, "opt in"),
        (ThrottledError("x"), GapKind.THROTTLED, "higher request rate"),
        (TruncatedReadError("x"), GapKind.TRUNCATED, ""),
        (UnavailableError("x"), GapKind.UNAVAILABLE, "run again later"),
        (UnavailableError("x", code=DEADLINE), GapKind.DEADLINE, "more time"),
        (RefusedError("x"), GapKind.UNREADABLE, ""),
    ],
)
def test_an_error_becomes_a_gap_with_its_fix(error: ProviderError, kind: GapKind, fix: str) -> None:
    found = gap(SHARD, "inventory", error)

    assert (found.shard, found.what, found.kind, found.detail) == (SHARD, "inventory", kind, "x")
    assert fix in found.fix
    assert found.fix == fix_for(error)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://ec2.us-east-1.amazonaws.com", "AWS"),
        ("https://ec2.cn-north-1.amazonaws.com.cn", "AWS"),
        ("https://vpce-1.ec2.us-east-1.vpce.amazonaws.com", "AWS"),
        ("https://ec2.us-east-1.api.aws", "AWS"),
        ("http://127.0.0.1:5000", "a stand-in"),
        ("https://amazonaws.com.example.org", "a stand-in"),
        ("", "a stand-in"),
    ],
)
def test_a_stand_in_is_told_by_its_address(endpoint: str, expected: str) -> None:
    assert is_aws(endpoint) is (expected == "AWS")


@pytest.mark.parametrize(
    "answer",
    [
        {"Error": {"Code": {"Message": "AKIAABCDEFGHIJKLMNOP"}, "Message": ["x"]}},
        {"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": [403]}},
        {"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": "many"}},
        {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": None}},
    ],
)
def test_an_error_of_another_form_is_an_error_all_the_same(answer: dict[str, Any]) -> None:
    found = translate(sdk.ClientError(answer, "x"), OPERATION, changes=True, sent=True)  # type: ignore[arg-type]

    assert isinstance(found, RefusedError)
    assert "AKIA" not in str(found)


def test_a_long_message_is_not_searched_for_secrets_from_every_letter() -> None:
    assert len(without_secrets("X-Amz-" * 100_000)) <= 300
