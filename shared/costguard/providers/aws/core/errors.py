"""What AWS and its SDK raise, turned into our errors; and our errors turned into gaps.

Nothing outside this folder sees a botocore exception. Messages lose whatever could be a secret.
"""

from __future__ import annotations

from typing import Any

from costguard.domain.errors import (
    AccessDeniedError,
    DeniedByOrganisationError,
    NoCapacityError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.providers.aws.iam.permissions import permission_for
from costguard.providers.kit.core.calls import DEADLINE, gap_kind
from costguard.providers.kit.core.credentials import without_secrets

UNSUPPORTED = "UnsupportedByEndpoint"
"""A code of our own: a stand-in for AWS does not know the operation."""

NO_BILL_YET = "DataUnavailableException"
"""Cost Explorer has no data; it will not have any a second later, and the question is paid for."""

BILLED_ELSEWHERE, INACTIVE_TAG = "BilledElsewhere", "InactiveTag"
EMPTY_TAG, TOO_MANY_REGIONS = "EmptyTag", "TooManyRegions"
"""Codes of our own: questions to Cost Explorer whose answer would be zero, or dear."""

_FIXES = {
    BILLED_ELSEWHERE: "read the bill with credentials of the account that pays it",
    INACTIVE_TAG: "activate the tag under Billing and Cost Management > Cost allocation tags; it shows a day later, "
    "and on earlier charges after a backfill",
    EMPTY_TAG: "give the tag a value",
    TOO_MANY_REGIONS: "name fewer regions, or a tag that their resources have in common",
    NO_BILL_YET: "run again later; Cost Explorer takes a day after it is enabled, and keeps 13 months",
}

_THROTTLED = frozenset(
    {
        *("BandwidthLimitExceeded", "ConcurrentModification"),
        "ConcurrentModificationException",  # somebody else changes the organisation now: nothing was done
        "ConcurrentSnapshotLimitExceeded",  # too many snapshots pending: later, not never
        *("EC2ThrottledException", "PolicyChangesInProgressException", "PriorRequestNotComplete"),
        *("ProvisionedThroughputExceededException", "RequestLimitExceeded", "RequestThrottled"),
        *("RequestThrottledException", "SlowDown", "SnapshotCreationPerVolumeRateExceeded", "ThrottledException"),
        *("Throttling", "ThrottlingException", "TooManyRequestsException"),
    }
)
_THROTTLED_BY = frozenset({("ce", "LimitExceededException")})  # elsewhere a quota that waiting does not lift
_DENIED = frozenset(
    {
        *("AccessDenied", "AccessDeniedException", "AuthFailure", "Blocked", "ExpiredToken", "ExpiredTokenException"),
        *("IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId", "MissingAuthenticationToken"),
        *("NotAuthorized", "OptInRequired", "PendingVerification", "RequestExpired", "SignatureDoesNotMatch"),
        *("UnauthorizedOperation", "UnrecognizedClientException"),
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_BY_ORGANISATION = "explicit deny in a service control policy"
"""IAM guide, "Troubleshoot access denied error messages": said of a missing Allow in such a policy as well."""

_NO_GRANT = (
    "no grant helps: change the organisation's service control policy, or where it closes the region take that out of "
    "the policy's regions"
)

_GONE = frozenset(
    {
        *("NoSuchBucket", "NoSuchEntity", "NoSuchKey", "PolicyNotFoundException", "ResourceNotFoundException"),
        *("TargetNotFoundException",),
    }
)
_GONE_OF = frozenset({("kms", "NotFoundException")})  # elsewhere a setting that is missing
_NO_CAPACITY = frozenset({"InsufficientCapacity", "InsufficientHostCapacity", "InsufficientInstanceCapacity"})
"""Of machines. Source: EC2 API, "Error codes for the Amazon EC2 API", server error codes."""

_REFUSED_THOUGH_5XX = frozenset({"InsufficientAddressCapacity", "InsufficientReservedInstanceCapacity"})


def vendor_faults() -> tuple[type[Exception], ...]:
    """What an SDK call may raise: its own errors, and whatever a malformed answer makes its parsers raise."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    malformed = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError)
    return (BotoCoreError, ClientError, ResponseParserError, *malformed)


def translate(err: Exception, operation: str, *, changes: bool, sent: bool, stand_in: bool = False) -> ProviderError:
    """Our error for what the SDK raised about `operation` (`ec2:DescribeInstances`).

    `changes`: the operation changes something; `sent`: the request left the process;
    `stand_in`: the endpoint is not AWS's own, so an unparsable 5xx means an operation it lacks.
    """
    from botocore import exceptions as sdk
    from botocore.parsers import ResponseParserError

    if isinstance(err, sdk.ClientError):
        return _from_answer(err.response, operation, changes=changes)
    code = type(err).__name__
    detail = f"{operation}: {code}: {without_secrets(str(err))}"
    if isinstance(
        err,
        (
            sdk.NoCredentialsError,
            sdk.PartialCredentialsError,
            sdk.CredentialRetrievalError,
            sdk.ProfileNotFound,
            sdk.TokenRetrievalError,
            sdk.SSOError,
        ),
    ):
        return AccessDeniedError(detail, operation=operation, code=code)
    if isinstance(err, (sdk.ParamValidationError, sdk.UnknownServiceError, sdk.NoRegionError)):
        return RefusedError(detail, operation=operation, code=code)
    never_sent = isinstance(err, (sdk.EndpointConnectionError, sdk.ConnectTimeoutError, sdk.ProxyConnectionError))
    if changes and sent and not never_sent:
        return OutcomeUnknownError(f"{detail}; it may have taken effect", operation=operation, code=code)
    if isinstance(err, ResponseParserError) and stand_in:
        code = UNSUPPORTED
    return UnavailableError(detail, operation=operation, code=code)


def _from_answer(response: Any, operation: str, *, changes: bool) -> ProviderError:
    error, told = _told(response, "Error"), _told(response, "ResponseMetadata").get("HTTPStatusCode")
    code = without_secrets(_text(error, "Code")) or "Unknown"
    status = told if isinstance(told, int) else 0
    detail = f"{operation}: {code}: {without_secrets(_text(error, 'Message'))}"
    kind: type[ProviderError]
    throttled = code in _THROTTLED or (operation.split(":", 1)[0], code) in _THROTTLED_BY
    if throttled or status == 429:  # noqa: PLR2004 - HTTP's own number
        kind = ThrottledError
    elif code in _DENIED or status in (401, 403):
        # in the whole message: what is kept of it is shortened
        by_organisation = _BY_ORGANISATION in _text(error, "Message").lower()
        kind = DeniedByOrganisationError if by_organisation else AccessDeniedError
    elif code.endswith(".NotFound") or code in _GONE or (operation.split(":", 1)[0], code) in _GONE_OF:
        kind = NotFoundError
    elif code == NO_BILL_YET:
        kind = UnavailableError
    elif code in _NO_CAPACITY:
        kind = NoCapacityError
    elif status >= 500 and code not in _REFUSED_THOUGH_5XX:  # noqa: PLR2004 - HTTP's own number
        kind = OutcomeUnknownError if changes else UnavailableError
    else:
        kind = RefusedError
    return kind(detail, operation=operation, code=code)


def _told(answer: Any, key: str) -> dict[str, Any]:
    """A part of an error's answer; of an error nothing is sure to be there."""
    found = answer.get(key) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def _text(error: dict[str, Any], key: str) -> str:
    found = error.get(key)
    return found if isinstance(found, str) else ""


def gap(shard: Shard, what: str, error: ProviderError) -> Gap:
    """The gap that `error` leaves in what was to be read, with what would close it."""
    return Gap(
        shard=shard,
        what=what,
        kind=GapKind.UNREADABLE if error.code == "OptInRequired" else gap_kind(error),
        detail=str(error),
        fix=fix_for(error),
    )


def fix_for(error: ProviderError) -> str:
    """What a person can do about `error`: the permission to grant, the setting to change, or wait."""
    if error.code in _FIXES:
        return _FIXES[error.code]
    if error.code == DEADLINE:
        return "give the run more time; the next run goes on"
    if error.code == "OptInRequired":
        return "opt in to the region, or take it out of the regions to scan"
    if error.code in _EXPIRED:
        return "renew the credentials, and check that this machine's clock is right"
    if isinstance(error, AccessDeniedError):
        return _fix_for_denial(error)
    if isinstance(error, ThrottledError):
        return "run again later, or ask AWS for a higher request rate"
    if isinstance(error, UnavailableError):
        return "run again later; check network, proxy and endpoint if it stays"
    return ""


def _fix_for_denial(error: AccessDeniedError) -> str:
    if isinstance(error, DeniedByOrganisationError):
        return _NO_GRANT
    if error.operation == "sts:GetCallerIdentity" or error.code.endswith(("CredentialsError", "ProfileNotFound")):
        return "provide valid AWS credentials: a profile, environment variables, or a role"
    if error.operation == "sts:AssumeRole":
        return "allow sts:AssumeRole on the role, and check its trust policy and external id"
    granted = f"grant {permission_for(error.operation)} to these credentials"
    return f"{granted}, in the policy of the key as well" if error.operation.startswith("kms:") else granted
