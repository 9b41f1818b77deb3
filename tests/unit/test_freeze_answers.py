"""What the vendors answer to attaching and detaching, as our errors: what changed nothing, and what nobody knows."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.providers.alibaba.core import errors as alibaba
from costguard.providers.alibaba.core.transport import Answer
from costguard.providers.aws.core import errors as aws
from costguard.providers.tencent.core import errors as tencent

AWS = [
    ("organizations", "ConcurrentModificationException", 400, ThrottledError),
    ("organizations", "PolicyChangesInProgressException", 400, ThrottledError),
    ("organizations", "TooManyRequestsException", 400, ThrottledError),
    ("organizations", "DuplicatePolicyAttachmentException", 400, RefusedError),
    ("organizations", "PolicyNotAttachedException", 400, RefusedError),
    ("organizations", "ConstraintViolationException", 400, RefusedError),
    ("organizations", "PolicyTypeNotEnabledException", 400, RefusedError),
    ("organizations", "AWSOrganizationsNotInUseException", 400, RefusedError),
    ("organizations", "PolicyNotFoundException", 400, NotFoundError),
    ("organizations", "TargetNotFoundException", 400, NotFoundError),
    ("organizations", "AccessDeniedException", 400, AccessDeniedError),
    ("organizations", "ServiceException", 500, OutcomeUnknownError),
    ("iam", "ConcurrentModification", 409, ThrottledError),
    ("iam", "NoSuchEntity", 404, NotFoundError),
    ("iam", "LimitExceeded", 409, RefusedError),
    ("iam", "PolicyNotAttachable", 400, RefusedError),
    ("iam", "UnmodifiableEntity", 400, RefusedError),
    ("iam", "AccessDenied", 403, AccessDeniedError),
    ("iam", "ServiceFailure", 500, OutcomeUnknownError),
]
ALIBABA = [
    ("resourcedirectory", "ConcurrentCallNotSupported", 400, ThrottledError),
    ("resourcedirectory", "EntityNotExists.Target", 404, NotFoundError),
    ("resourcedirectory", "EntityAlreadyExists.ControlPolicyAttachment", 409, RefusedError),
    ("resourcedirectory", "LimitExceeded.ControlPolicyAttachment", 409, RefusedError),
    ("resourcedirectory", "NoPermission.Operator", 403, AccessDeniedError),
    ("resourcedirectory", "InternalError", 500, OutcomeUnknownError),
    ("ram", "EntityNotExist.Group", 404, NotFoundError),
    ("ram", "EntityNotExist.Policy", 404, NotFoundError),
    ("ram", "EntityAlreadyExists.Group.Policy", 409, RefusedError),
    ("ram", "LimitExceeded.Group.Policy", 409, RefusedError),
    ("ram", "NoPermission", 403, AccessDeniedError),
    ("ram", "Throttling.User", 400, ThrottledError),
]
TENCENT = [
    ("organization", "FailedOperation.OrganizationPolicyIsNotEnabled", RefusedError),
    ("organization", "FailedOperation.OrganizationDetachLastPolicyError", RefusedError),
    ("organization", "FailedOperation.OrganizationMemberNotExist", RefusedError),
    ("organization", "FailedOperation.DelegatedAdminCannotModifyPolicy", RefusedError),
    ("organization", "ResourceNotFound.PolicyNotExist", NotFoundError),
    ("organization", "UnauthorizedOperation", AccessDeniedError),
    ("cam", "ResourceNotFound.GroupNotExist", NotFoundError),
    ("cam", "ResourceNotFound.PolicyIdNotFound", NotFoundError),
    ("cam", "AuthFailure.UnauthorizedOperation", AccessDeniedError),
    ("cam", "RequestLimitExceeded", ThrottledError),
    ("cam", "InternalError.SystemError", OutcomeUnknownError),
]


@pytest.mark.parametrize(("service", "code", "status", "kind"), AWS)
def test_aws(service: str, code: str, status: int, kind: type[ProviderError]) -> None:
    told = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    raised = ClientError(told, "AttachPolicy")  # type: ignore[arg-type] # as much as an error tells
    found = aws.translate(raised, f"{service}:AttachPolicy", changes=True, sent=True)
    assert (type(found), found.code) == (kind, code)


@pytest.mark.parametrize(("service", "code", "status", "kind"), ALIBABA)
def test_alibaba_cloud(service: str, code: str, status: int, kind: type[ProviderError]) -> None:
    body = json.dumps({"RequestId": "R", "Code": code, "Message": "m"}).encode()
    with pytest.raises(kind) as raised:
        alibaba.fields_of(Answer(status, body, None), f"{service}:AttachControlPolicy", changes=True)
    assert type(raised.value) is kind


@pytest.mark.parametrize(("service", "code", "kind"), TENCENT)
def test_tencent_cloud(service: str, code: str, kind: type[ProviderError]) -> None:
    assert type(tencent.from_answer(code, "m", f"{service}:AttachPolicy", changes=True)) is kind


@pytest.mark.parametrize(
    ("fix_for", "operation", "permission"),
    [
        (aws.fix_for, "organizations:AttachPolicy", "organizations:AttachPolicy"),
        (alibaba.fix_for, "resourcedirectory:AttachControlPolicy", "resourcemanager:AttachControlPolicy and"),
        (tencent.fix_for, "cam:AttachGroupPolicy", "cam:AttachGroupPolicy"),
    ],
)
def test_a_denial_names_the_permission(fix_for: object, operation: str, permission: str) -> None:
    assert callable(fix_for)
    assert f"grant {permission}" in fix_for(AccessDeniedError("no", operation=operation))
