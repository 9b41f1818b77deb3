"""What Tencent Cloud answers and what sending to it runs into, turned into our errors; and our errors into gaps.

Codes are dotted, and the published lists are incomplete, so they are matched from the left. Messages are
never read, only shown, without whatever could be a secret.
"""

from __future__ import annotations

from costguard.domain.errors import (
    AccessDeniedError,
    NoCapacityError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap
from costguard.providers.kit.core.calls import DEADLINE, gap_kind
from costguard.providers.kit.core.credentials import NO_CREDENTIALS, without_secrets
from costguard.providers.tencent.core.transport import SendingError
from costguard.providers.tencent.iam.permissions import permission_for

UNSUPPORTED = "UnsupportedByEndpoint"
"""A code of our own: a stand-in for Tencent Cloud does not know the product or the operation."""


_THROTTLED = ("RequestLimitExceeded", "LimitExceeded.ActionLimited", "LimitExceeded.LimitedAccess")
_THROTTLED_HERE = {"sts": ("InvalidParameter.OverLimit",)}  # elsewhere the same words may mean something else
_NOT_YET = ("RequestLimitExceeded.RotateRateLimited",)  # once in 24 hours: no rate, and trying again soon is no help
_DENIED = ("AuthFailure", "UnauthorizedOperation", "OperationDenied.NoPermission")
_GONE = ("ResourceNotFound", "InvalidInstanceId.NotFound", "ResourceUnavailable.CmkNotFound")
_BROKEN = (
    "InternalError",
    "InternalServerError",
    "ServerError",
    "FailedOperation.RegionUnavailable",
    "FailedOperation.QueryDBFailed",
    "FailedOperation.QueryCountFailed",
    "UnsupportedOperation.ServiceTemporaryUnavailable",
)
_NO_CAPACITY = {"cvm": ("ResourceInsufficient", "ResourcesSoldOut")}
"""By product, as CBS says ResourceInsufficient.OverQuota of a quota. Source: CVM API, "Error codes"."""

_UNKNOWN_TO_STAND_INS = ("InvalidAction", "ActionOffline", "NoSuchProduct", "NoSuchVersion")
_CLOCK = ("AuthFailure.SignatureExpire",)
_STALE = ("AuthFailure.TokenFailure", "AuthFailure.SecretIdNotFound")
_TOO_MANY, _SERVER = 429, 500  # HTTP's own numbers


def _is(code: str, families: tuple[str, ...]) -> bool:
    return any(code == family or code.startswith(f"{family}.") for family in families)


def from_answer(code: str, message: str, operation: str, *, changes: bool, stand_in: bool = False) -> ProviderError:
    """Our error for an error that `operation` (`cvm:DescribeInstances`) was answered with.

    `changes`: the operation changes something; `stand_in`: something else answers in place of Tencent Cloud.
    """
    known = without_secrets(code)
    detail = f"{operation}: {known}: {without_secrets(message)}"
    kind: type[ProviderError]
    if _is(code, _NOT_YET):
        kind = RefusedError
    elif _is(code, _THROTTLED) or _is(code, _THROTTLED_HERE.get(operation.split(":", 1)[0], ())):
        kind = ThrottledError
    elif _is(code, _DENIED):
        kind = AccessDeniedError
    elif _is(code, _GONE) or code.endswith(".NotFound"):
        kind = NotFoundError
    elif _is(code, _BROKEN):
        kind = OutcomeUnknownError if changes else UnavailableError
    elif _is(code, _NO_CAPACITY.get(operation.split(":", 1)[0], ())):
        kind = NoCapacityError
    elif stand_in and _is(code, _UNKNOWN_TO_STAND_INS):
        return RefusedError(detail, operation=operation, code=UNSUPPORTED)
    else:
        kind = RefusedError
    return kind(detail, operation=operation, code=known)


def from_sending(err: SendingError, operation: str, *, changes: bool) -> ProviderError:
    """Our error where no usable answer came."""
    detail = f"{operation}: {without_secrets(str(err))}"
    if err.what == "InvalidCredential":
        return AccessDeniedError(detail, operation=operation, code=NO_CREDENTIALS)
    if err.status == _TOO_MANY:
        return ThrottledError(detail, operation=operation, code=err.what)
    if changes and err.sent:
        return OutcomeUnknownError(f"{detail}; it may have taken effect", operation=operation, code=err.what)
    return UnavailableError(detail, operation=operation, code=err.what)


def is_stale(error: ProviderError) -> bool:
    """Whether a role's keys are no longer accepted: fresh ones may be."""
    return _is(error.code, _STALE)


def gap(shard: Shard, what: str, error: ProviderError) -> Gap:
    """The gap that `error` leaves in what was to be read, with what would close it."""
    return Gap(shard=shard, what=what, kind=gap_kind(error), detail=str(error), fix=fix_for(error))


def fix_for(error: ProviderError) -> str:
    """What a person can do about `error`: the permission to grant, the setting to change, or wait."""
    if error.code == DEADLINE:
        return "give the run more time; the next run goes on"
    if error.code == "UnsupportedRegion":
        return "take the region out of the regions to scan"
    if _is(error.code, _CLOCK):
        return "set this machine's clock right: it is more than five minutes off"
    if isinstance(error, AccessDeniedError):
        if error.operation == "sts:GetCallerIdentity" or error.code == NO_CREDENTIALS:
            return "provide valid Tencent Cloud keys: the role of the function, or a key of a CAM user"
        if error.operation == "sts:AssumeRole":
            return "allow sts:AssumeRole on the role, and check its carriers and its external id"
        return f"grant {permission_for(error.operation)} to these credentials"
    if isinstance(error, NotFoundError) and error.operation == "sts:AssumeRole":
        return "make the role in that account, or correct its name in the policy"
    if isinstance(error, ThrottledError):
        return "run again later, or ask Tencent Cloud for a higher request rate"
    if isinstance(error, UnavailableError):
        return "run again later; check network, proxy and endpoint if it stays"
    return ""
