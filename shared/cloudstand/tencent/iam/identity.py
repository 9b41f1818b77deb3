"""STS, organisations and regions: who one is, whom else one may become, and where."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from cloudstand.tencent.compute.catalogue import CLOSED_REGIONS, REGIONS, ZONES
from cloudstand.tencent.core.asking import Answer, Asked, page
from cloudstand.tencent.core.errors import ApiError, bad_value
from cloudstand.tencent.core.times import local, zulu
from cloudstand.world.places import Place

ORGANISATION = 101_101
_ROOT = 100_100
_DEFAULT_SESSION_SECONDS = 7_200


def get_caller_identity(asked: Asked) -> Answer:
    """GetCallerIdentity."""
    me = asked.identity
    if me.role:
        return {
            "Arn": f"qcs::sts:{me.account}:assumed-role/{me.role_id}",
            "AccountId": me.account,
            "UserId": f"{me.role_id}:{me.session}",
            "PrincipalId": me.assumed_by,
            "Type": "CAMRole",
        }
    return {
        "Arn": f"qcs::cam:{me.account}:uin/{me.account}",
        "AccountId": me.account,
        "UserId": me.account,
        "PrincipalId": me.account,
        "Type": "CAMUser",
    }


def assume_role(asked: Asked) -> Answer:
    """AssumeRole, with lasting or temporary keys alike."""
    identity = asked.accounts.assume(
        asked.parameters["RoleArn"],
        asked.parameters["RoleSessionName"],
        asked.get("ExternalId", ""),
        lasts=timedelta(seconds=asked.get("DurationSeconds", _DEFAULT_SESSION_SECONDS)),
        by=asked.identity,
        now=asked.now,
    )
    keys, expires_at = identity.keys, identity.expires_at or asked.now
    return {
        "Credentials": {"Token": keys.token, "TmpSecretId": keys.key_id, "TmpSecretKey": keys.secret},
        "ExpiredTime": int(expires_at.timestamp()),
        "Expiration": zulu(expires_at),
    }


def describe_organization(asked: Asked) -> Answer:
    """DescribeOrganization."""
    leader = asked.accounts.management
    return {
        "OrgId": ORGANISATION,
        "HostUin": int(leader),
        "NickName": "organisation",
        "OrgType": 1,
        "IsManager": asked.account == leader,
        "OrgPolicyType": "Financial",
        "OrgPolicyName": "财务管理",
        "OrgPermission": [{"Id": 1, "Name": "查看消费信息"}],
        "RootNodeId": _ROOT,
        "CreateTime": local(asked.now - timedelta(days=400)),
        "JoinTime": local(asked.now - timedelta(days=400)),
        "IsAllowQuit": "Denied",
        "PayUin": leader,
        "PayName": "organisation",
        "IsAssignManager": False,
        "IsAuthManager": False,
    }


def describe_organization_members(asked: Asked) -> Answer:
    """DescribeOrganizationMembers: for the management account only, which itself is not among them."""
    if asked.account != asked.accounts.management:
        raise ApiError("InvalidParameter.OrganizationMemberNotManager", "not the manager.", "当前账号不是组织管理员。")
    if asked.parameters["Offset"] % asked.parameters["Limit"]:
        raise bad_value("Offset", "it is no multiple of Limit", "InvalidParameter")
    members = [account for account in asked.accounts.accounts if account != asked.accounts.management]
    return {"Items": [_member(asked, member) for member in page(asked, members)], "Total": len(members)}


def _member(asked: Asked, account: str) -> Answer:
    joined = local(asked.now - timedelta(days=300))
    return {
        "MemberUin": int(account),
        "Name": f"member-{account}",
        "MemberType": "Create",
        "OrgPolicyType": "Financial",
        "OrgPolicyName": "财务管理",
        "OrgPermission": [{"Id": 1, "Name": "查看消费信息"}],
        "NodeId": _ROOT,
        "NodeName": "Root",
        "Remark": "",
        "CreateTime": joined,
        "UpdateTime": joined,
        "IsAllowQuit": "Denied",
        "PayUin": asked.memory.desk.payer_of(account, asked.accounts.management),
        "PayName": "organisation",
        "OrgIdentity": [{"IdentityId": 1, "IdentityAliasName": asked.settings.role}],
        "BindStatus": "Unbound",
        "PermissionStatus": "Confirmed",
        "Tags": [],
    }


def regions_of(asked: Asked) -> Mapping[str, tuple[str, str, bool]]:
    """Every region with its two names and whether it can be had: the public ones and those of the fleet."""
    if asked.settings.regions is not None:
        known = {name: (*REGIONS.get(name, (name, name)), True) for name in asked.settings.regions}
    else:
        known = {name: (*names, True) for name, names in REGIONS.items()}
        known |= {name: (*names, False) for name, names in CLOSED_REGIONS.items()}
    used = {shard.region for shard in asked.world.shards if shard.cloud == asked.settings.cloud}
    return known | {name: (name, name, True) for name in sorted(used - known.keys())}


def describe_regions(asked: Asked) -> Answer:
    """DescribeRegions of the region product."""
    bare = describe_cvm_regions(asked)
    more = {"RegionTypeMC": None, "LocationMC": None, "RegionNameMC": None, "RegionIdMC": None}
    return {**bare, "RegionSet": [{**region, **more} for region in bare["RegionSet"]]}


def describe_cvm_regions(asked: Asked) -> Answer:
    """DescribeRegions of CVM: frozen, and answered all the same."""
    entries = [
        {
            "Region": name,
            "RegionName": english if asked.language == "en-US" else chinese,
            "RegionState": "AVAILABLE" if to_be_had else "UNAVAILABLE",
        }
        for name, (chinese, english, to_be_had) in regions_of(asked).items()
    ]
    return {"TotalCount": len(entries), "RegionSet": entries}


def zones_of(asked: Asked) -> list[str]:
    """The zones of the region that is asked: the usual ones and those of the fleet."""
    usual = {f"{asked.region}-{number}" for number in ZONES}
    here = Place(asked.settings.cloud, asked.account, asked.region)
    return sorted(usual | {machine.spec.zone for machine in asked.world.machines_in(here) if machine.spec.zone})


def describe_zones(asked: Asked) -> Answer:
    """DescribeZones, of either product."""
    entries = [
        {"Zone": zone, "ZoneName": zone, "ZoneId": f"1000{place:02d}", "ZoneState": "AVAILABLE"}
        for place, zone in enumerate(zones_of(asked))
    ]
    return {"TotalCount": len(entries), "ZoneSet": entries}
