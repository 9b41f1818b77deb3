"""What Alibaba Cloud answers when it refuses, turned into our errors; and our errors turned into gaps.

By `Code`, hardly ever by HTTP status: 403 is used for a wrong state, `Forbidden.InstanceNotFound` means gone, and
CloudMonitor refuses with HTTP 200. Messages lose whatever could be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

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
from costguard.providers.alibaba.core.products import PRODUCTS
from costguard.providers.alibaba.core.transport import Answer, WireError
from costguard.providers.alibaba.iam.permissions import permission_for
from costguard.providers.kit.core.calls import DEADLINE, gap_kind
from costguard.providers.kit.core.credentials import NO_CREDENTIALS, without_secrets
from costguard.providers.kit.core.fields import UNDOCUMENTED

WOULD_BE_ALLOWED = frozenset({"DryRunOperation", "DRYRUN.SUCCESS"})
"""What a dry run is answered where the call itself would have been permitted; both are errors in form."""

EXPIRED = frozenset({"InvalidSecurityToken.Expired"})
CLOCK = frozenset({"InvalidTimeStamp.Expired", "InvalidTimeStamp.Format"})
OTHER_SITE = frozenset({"NotApplicable"})
"""What one site's bills say to an account of the other site."""

_FIXES = {
    DEADLINE: "give the run more time; the next run goes on",
    "Rejected.UnsupportedOperation": "buy the rotation add-on of KMS, or use a key of a software instance instead",
    "Rejected.LimitExceeded": "raise the quota of keys of its KMS instance: every version takes one",
}
"""By code, whatever was asked. KMS refuses until a key's owner has paid for more."""

_FINE = frozenset({"200", "Success", "OK"})  # what `Code` says where an answer that succeeded has one
_DENIED = frozenset(
    {
        *("AccessForbidden", "Forbidden", "Forbidden.AccessDenied", "Forbidden.NoPermission", "Forbidden.RAM"),
        *("Forbidden.SubUser", "Forbidden.Unauthorized", "IncompleteSignature", "InvalidAccessKeySecret"),
        *("MissingSecurityToken", "NotAuthorized", "SignatureDoesNotMatch", "UnauthorizedOperation"),
    }
)
_DENIED_FAMILIES = ("NoPermission", "InvalidAccessKeyId", "InvalidSecurityToken", "InvalidTimeStamp", "ImplicitDeny")
_TRANSIENT = frozenset(
    {
        *("InternalError", "InternalFailure", "ServiceUnavailable", "SystemBusy", "UnknownError"),
    }
)
_NO_CAPACITY = ("OperationDenied.NoStock",)
"""Sold out in the zone (ECS API, error codes). A machine that was stopped economically may fail to start for that.

Source: ECS API, StartInstances, "Precautions".
"""

_BUSY = frozenset({"ConcurrentCallNotSupported"})
"""Somebody else changes the organisation now: nothing was done."""
_ALREADY_SENT = frozenset(
    {
        *("IdempotentProcessing", "LastRequestProcessing", "LastTokenProcessing", "SignatureNonceUsed"),
    }
)
"""The same request is there already: of a change, what became of it is not known; a read is asked again."""

_GONE = re.compile(r"(?:^|\.)\w*(?:NotFound|NotExist)$|^EntityNotExists?\b", re.ASCII)
_NOT_OF_A_RESOURCE = (
    "InvalidAction",
    "InvalidApi",
    "InvalidVersion",
    "InvalidProduct",
    "InvalidRegionId",
    "InvalidUser",
)
"""Something is not found, and it is not what the request was about: a wrong endpoint must close no case."""

_TOO_MANY_REQUESTS, _SERVER_FAULT, _GOOD = 429, 500, range(200, 300)
_WENT_NO_FURTHER = frozenset({403, 404, 405, 407, 413, 414})  # a proxy in between refused the request itself


def fields_of(answer: Answer, operation: str, *, changes: bool) -> dict[str, Any]:
    """The fields of an answer that succeeded: a JSON object with a RequestId, and no error in it.

    Numbers with a point are `Decimal` where the product answers with money, and else `float`.

    Raises:
        ProviderError: it refuses, whatever its HTTP status says, or is not as documented.
    """
    found = _object(answer.body, money=PRODUCTS[operation.partition(":")[0]].money)
    code, message = _text(found, "Code"), _text(found, "Message")
    good = answer.status in _GOOD
    if found is None or not _text(found, "RequestId"):
        if not good and code:
            raise _refusal(operation, code, message, answer.status, changes=changes)
        detail = f"{operation}: {UNDOCUMENTED}: HTTP {answer.status}, and no answer of its form"
        if changes and answer.status not in _WENT_NO_FURTHER:
            detail += "; it may have taken effect"
            raise OutcomeUnknownError(detail, operation=operation, code=UNDOCUMENTED)
        raise UnavailableError(detail, operation=operation, code=UNDOCUMENTED)
    if good and (code in _FINE or "Code" not in found) and not _says_failure(found):
        return found
    raise _refusal(operation, code or "Unknown", message, answer.status, changes=changes)


def refusal(operation: str, code: str, message: str, *, changes: bool) -> ProviderError:
    """Our error for a code inside an answer, such as that of one instance of a batch."""
    return _refusal(operation, code, message, 0, changes=changes)


def translate(err: WireError, operation: str, *, changes: bool) -> ProviderError:
    """Our error where no whole answer came."""
    detail = f"{operation}: {err}"
    if changes and err.sent:
        return OutcomeUnknownError(f"{detail}; it may have taken effect", operation=operation, code=err.code)
    return UnavailableError(detail, operation=operation, code=err.code)


def _refusal(operation: str, code: str, message: str, status: int, *, changes: bool) -> ProviderError:
    code = without_secrets(code) or "Unknown"
    # SignatureDoesNotMatch repeats all that was signed, key and token too, escaped twice
    detail = f"{operation}: {code}: {without_secrets(unquote(unquote(message)))}"
    kind: type[ProviderError]
    if code in WOULD_BE_ALLOWED:
        kind = RefusedError
    elif "Throttling" in code or code in _BUSY or "user flow control" in message or status == _TOO_MANY_REQUESTS:
        kind = ThrottledError
    elif code in _DENIED or code.startswith(_DENIED_FAMILIES):  # before "gone": InvalidAccessKeyId.NotFound
        kind = AccessDeniedError
    elif code in _ALREADY_SENT or code in _TRANSIENT or status >= _SERVER_FAULT:
        kind = OutcomeUnknownError if changes else UnavailableError
    elif code in _NO_CAPACITY:
        kind = NoCapacityError
    elif _GONE.search(code) and not code.startswith(_NOT_OF_A_RESOURCE):
        kind = NotFoundError
    else:
        kind = RefusedError
    return kind(detail, operation=operation, code=code)


def _object(body: bytes, *, money: bool) -> dict[str, Any] | None:
    try:
        found = json.loads(body, parse_float=Decimal if money else None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(fields: Mapping[str, Any] | None, key: str) -> str:
    found = (fields or {}).get(key)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)[:20]
    return found if isinstance(found, str) else ""


def _says_failure(fields: Mapping[str, Any]) -> bool:
    """`Success: false`, as a truth value or as a text."""
    said = fields.get("Success", True)
    return said is not True and str(said).lower() != "true"


def gap(shard: Shard, what: str, error: ProviderError) -> Gap:
    """The gap that `error` leaves in what was to be read, with what would close it."""
    return Gap(shard=shard, what=what, kind=gap_kind(error), detail=str(error), fix=fix_for(error))


def unproven(shard: Shard, error: ProviderError) -> Gap:
    """The gap of an empty list of instances, after a dry run that could not prove that there are none."""
    operation = "ecs:DescribeInstances"
    detail = f"{operation}: an empty list, as one that is not permitted may be: {error}"
    return Gap(shard, "inventory", gap_kind(error), detail, fix_for(error) or _grant(operation))


def fix_for(error: ProviderError) -> str:
    """What a person can do about `error`: the permission to grant, the setting to change, or wait."""
    if error.code in _FIXES:
        return _FIXES[error.code]
    if error.code in CLOCK:
        return "set this machine's clock: it is more than 15 minutes off"
    if error.code in OTHER_SITE:
        return _site_fix(error.operation)
    if error.code in EXPIRED:
        return "renew the credentials, and check that this machine's clock is right"
    if error.operation == "sts:AssumeRole" and isinstance(error, (AccessDeniedError, NotFoundError)):
        return "create the role, let it trust this account, check its external id, and grant sts:AssumeRole on it"
    if isinstance(error, AccessDeniedError):
        if error.operation == "sts:GetCallerIdentity" or error.code == NO_CREDENTIALS:
            return "provide valid Alibaba Cloud credentials: an access key of a RAM user, or a role's with its token"
        return _grant(error.operation)
    if isinstance(error, ThrottledError):
        return "run again later, or raise the API's rate in Quota Center"
    if isinstance(error, UnavailableError):
        return "run again later; check network, proxy and endpoint if it stays"
    return ""


def _site_fix(operation: str) -> str:
    if operation == "bss:DescribeCostBudgetsSummary":
        return "write the budgets into the policy: the vendor has opened this API, which is in beta, to few accounts"
    return (
        "name the site this account is of: cloud alibaba for the China site (aliyun.com), alibaba-intl for the "
        "international one (alibabacloud.com)"
    )


def _grant(operation: str) -> str:
    return f"grant {permission_for(operation)} to these credentials"
