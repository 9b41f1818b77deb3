"""Security Token Service and the organisation's list of accounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from cloudstand.alibaba.core.credentials import Credential
from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.world.cloud import World

SHORTEST, USUAL, LONGEST = 900, 3600, 3600  # seconds; a role's MaxSessionDuration is an hour unless raised
_ARN = re.compile(r"acs:ram::(\d+):role/([\w.-]{1,64})", re.ASCII)
_SESSION = re.compile(r"[\w.@-]{2,64}", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_NO_PERMISSION = "You are not authorized to do this action. You should be authorized by RAM."


def get_caller_identity(call: ApiCall, _: World) -> Mapping[str, Any]:
    """Who signed the request: a RAM user, or the session of a role."""
    caller = call.caller
    if caller.role:
        role_id = _principal("role", caller)
        return {
            "IdentityType": "AssumedRoleUser",
            "AccountId": caller.account,
            "Arn": caller.arn,
            "PrincipalId": f"{role_id}:{caller.session}",
            "RoleId": role_id,
        }
    user_id = _principal("user", caller)
    return {
        "IdentityType": "RAMUser",
        "AccountId": caller.account,
        "Arn": caller.arn,
        "PrincipalId": user_id,
        "UserId": user_id,
    }


def assume_role(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Temporary keys of a role in any account of the organisation, which trusts the management account.

    Raises:
        ApiError: a malformed parameter, no such role, or a role that does not trust the caller.
    """
    asked, site = call.asked, call.site
    arn = _ARN.fullmatch(asked.text("RoleArn"))
    if arn is None:
        raise ApiError("InvalidParameter.RoleArn", "The parameter RoleArn is wrongly formed.")
    session = asked.text("RoleSessionName")
    if not _SESSION.fullmatch(session):
        raise ApiError("InvalidParameter.RoleSessionName", "The parameter RoleSessionName is wrongly formed.")
    seconds = USUAL if asked.whole("DurationSeconds") is None else asked.whole("DurationSeconds") or 0
    if not SHORTEST <= seconds <= LONGEST:
        message = f"The parameter DurationSeconds must be between {SHORTEST} and {LONGEST}."
        raise ApiError("InvalidParameter.DurationSeconds", message)
    if asked.given("ExternalId") and not _EXTERNAL_ID.fullmatch(asked.text("ExternalId")):
        raise ApiError("InvalidParameter.ExternalId", "The parameter ExternalId is wrongly formed.")
    account, role = arn.groups()
    if account not in site.accounts or role != site.role:
        raise ApiError("EntityNotExist.Role", "The specified role does not exist.", NOT_FOUND)
    trusted = call.account == site.accounts[0]
    if not trusted or (site.external_id and asked.text("ExternalId") != site.external_id):
        raise ApiError("NoPermission", _NO_PERMISSION, FORBIDDEN)
    begun = site.credentials.begin(account, role, session, world.now + timedelta(seconds=seconds))
    return {
        "AssumedRoleUser": {"Arn": begun.arn, "AssumedRoleId": f"{_principal('role', begun)}:{session}"},
        "Credentials": {
            "AccessKeyId": begun.keys.key_id,
            "AccessKeySecret": begun.keys.secret,
            "SecurityToken": begun.keys.token,
            "Expiration": second(world.now + timedelta(seconds=seconds)),
        },
    }


def list_accounts(call: ApiCall, _: World) -> Mapping[str, Any]:
    """The members of the organisation; its management account is not among them.

    Raises:
        ApiError: the caller is no management account.
    """
    asked, site = call.asked, call.site
    if call.account != site.accounts[0]:
        message = "The specified account is not the management account of a resource directory."
        raise ApiError("NoPermission.Operator", message, FORBIDDEN)
    members = [_member(site.accounts[0], account) for account in site.accounts[1:]]
    for member in members:
        if not asked.flag("IncludeTags"):
            member.pop("Tags")
    by_token = asked.given("MaxResults") or asked.given("NextToken")
    page = Pages("ListAccounts", asked, most=100, usual=10).of(members, by_token=by_token)
    answer: dict[str, Any] = {"Accounts": {"Account": page.items}, "TotalCount": len(members)}
    if by_token:
        return {**answer, **({"NextToken": page.token} if page.token else {})}
    return {**answer, "PageNumber": page.number, "PageSize": page.size}


def _member(management: str, account: str) -> dict[str, Any]:
    directory = f"rd-{management[-6:]}"
    return {
        "AccountId": account,
        "AccountName": f"member-{account[-4:]}@{directory}.aliyunid.com",
        "DisplayName": f"member-{account[-4:]}",
        "Type": "ResourceAccount",
        "Status": "CreateSuccess",
        "JoinMethod": "created",
        "JoinTime": "2024-01-15T08:00:00.000Z",
        "ModifyTime": "2024-01-15T08:00:00.000Z",
        "FolderId": f"r-{management[-4:]}",
        "ResourceDirectoryId": directory,
        "ResourceDirectoryPath": f"{directory}/r-{management[-4:]}/{account}",
        "Tags": {"Tag": []},
    }


def _principal(kind: str, caller: Credential) -> str:
    """A number of eighteen digits that always belongs to the same identity."""
    digits = int.from_bytes(f"{kind}/{caller.account}/{caller.role}".encode(), "big") % 10**17
    return f"{2 if kind == 'user' else 3}{digits:017d}"
