"""One door to AWS: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from typing_extensions import Unpack

from costguard.domain.errors import (
    ClosedRegionError,
    DeniedByOrganisationError,
    InvalidInputError,
    ProviderError,
    TruncatedReadError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.transport import Clients, WatchedGate, is_aws, new_session
from costguard.providers.aws.iam.permissions import REACH
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, account_id, as_documented, moment, named, part, text
from costguard.providers.kit.core.session import OWN, Common, Identity, Nature, Session

# What AWS throttles together, and how fast each may be asked: burst, and requests a second.

RATES: Mapping[str, tuple[float, float]] = {
    # half of EC2's documented bucket and refill (100 and 20/s; 50 and 10/s for answers without pages;
    # 50 and 5/s for changes; as many again for changes of rules, which it calls resource-intensive; 5 and 2/s for
    # start and stop): other tools share the account's bucket
    "ec2:read": (50, 10),
    "ec2:unpaged": (25, 5),
    "ec2:change": (25, 2.5),
    "ec2:rules": (25, 2.5),
    "ec2:start-stop": (5, 1),
    "cloudwatch:GetMetricData": (25, 25),  # half of 50 a second
    "cloudwatch:ListMetrics": (12, 12),  # half of 25 a second
    "cloudtrail:LookupEvents": (1, 1),  # half of 2 a second in a region of an account
    "ce": (5, 2),  # no rate is documented, and every request is paid for
    "budgets": (5, 2),  # nor here
    # half of KMS's documented quotas a second (500, 500, 2,000, 1,000, 100, 2,000; 15 and 5 for changes)
    "kms:ListKeys": (250, 250),
    "kms:ListAliases": (250, 250),
    "kms:DescribeKey": (1000, 1000),
    "kms:GetKeyRotationStatus": (500, 500),
    "kms:ListKeyRotations": (50, 50),
    "kms:ListResourceTags": (1000, 1000),
    "kms:EnableKeyRotation": (7, 7),
    "kms:RotateKeyOnDemand": (2, 2),
    "kms:GetKeyPolicy": (500, 500),
    "kms:CreateKey": (2, 2),
    "kms:UpdateAlias": (2, 2),
    "sesv2:SendEmail": (1, 1),  # what a new account may send; others send more
}
_UNPAGED = frozenset({"ec2:DescribeAddresses", "ec2:DescribeRegions", "ec2:DescribeReservedInstances"})
_START_STOP = frozenset({"ec2:StartInstances", "ec2:StopInstances"})
_RULES = frozenset({"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"})


def family_of(operation: str, *, changes: bool) -> str:
    """The calls that share a bucket with `operation`: what EC2 throttles together."""
    if operation in RATES:
        return operation
    service = operation.split(":", 1)[0]
    if service != "ec2":
        return service
    if operation in _START_STOP:
        return "ec2:start-stop"
    if operation in _RULES:
        return "ec2:rules"
    if changes:
        return "ec2:change"
    return "ec2:unpaged" if operation in _UNPAGED else "ec2:read"


HOME_REGIONS = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""Where account-wide questions are asked, by cloud; the clouds are named as AWS names its partitions."""

_NATURE = Nature(
    name="AWS",
    kind="partition",
    home_regions=HOME_REGIONS,
    reach=REACH,
    rates=RATES,
    role_lasts=timedelta(hours=1),  # what role chaining allows at most
    final=(errors.UNSUPPORTED, errors.NO_BILL_YET),
)


class AwsSession(Session[str, WatchedGate]):
    """As `Session`, for one partition of AWS: the SDK signs, sends and renews the keys of roles.

    `keys` are an access key id and its secret, None to look where the SDK does.
    """

    def __init__(
        self,
        *,
        profile: str = "",
        endpoint_url: str = "",
        keys: tuple[str, str] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._profile = profile
        self._keys = keys
        super().__init__(_NATURE, endpoint_url, common)

    def _begin(self) -> None:
        super()._begin()
        self._clients = Clients(endpoint_url=self._endpoint, agent=self.mark)

    def close(self) -> None:
        """Close all connections."""
        self._clients.close()

    def _request_id(self, answer: Fields) -> str:
        return request_id(answer)

    def _new_gate(self) -> WatchedGate:
        return WatchedGate(self._operations, may_change=self.may_change, may_dry_run=self.may_dry_run)

    def _own(self, operation: str = "sts:GetCallerIdentity") -> str:
        """The keys given, or none: then botocore looks where it always does."""
        if not self._clients.has_session(OWN):
            from botocore.credentials import Credentials

            self._open(OWN, None if self._keys is None else Credentials(*self._keys), operation)
        return OWN

    def _open(self, key: str, credentials: Any, operation: str = "sts:GetCallerIdentity") -> None:
        try:
            self._clients.add_session(key, new_session(self._gate, profile=self._profile, credentials=credentials))
        except errors.vendor_faults() as err:
            raise errors.translate(err, operation, changes=False, sent=False) from err

    def _held(self, account: str) -> str | None:
        return account if self._clients.has_session(account) else None

    def _identity_in(self, answer: Fields) -> Identity:
        account, arn = account_id(answer, "Account"), without_secrets(text(answer, "Arn"))
        partition = arn.split(":")[1] if arn.count(":") > 1 else ""
        if partition != self.cloud:
            message = (
                f"the credentials belong to partition {partition or 'unknown'} ({arn}), but the target's "
                f"cloud is {self.cloud}; use other credentials, or set the target's cloud to {partition}"
            )
            raise InvalidInputError(message)
        return Identity(account=account, arn=arn, partition=partition)

    def _role_name(self, role: str, account: str) -> str:
        return role if role.startswith("arn:") else f"arn:{self.cloud}:iam::{account}:role/{role}"

    def _take(self, account: str, asked: Mapping[str, Any]) -> tuple[str, Callable[[], str]]:
        def fresh() -> dict[str, str]:
            answer = self._ask_sts(OWN, "AssumeRole", asked)
            with as_documented("sts:AssumeRole"):
                issued = part(answer, "Credentials")
                expires_at = moment(issued, "Expiration")
                return {
                    "access_key": named(issued, "AccessKeyId"),
                    "secret_key": named(issued, "SecretAccessKey"),
                    "token": named(issued, "SessionToken"),
                    "expiry_time": "" if expires_at is None else expires_at.isoformat(),
                }

        from botocore.credentials import RefreshableCredentials

        with as_documented("sts:AssumeRole"):
            credentials = RefreshableCredentials.create_from_metadata(
                metadata=fresh(), refresh_using=fresh, method="assume-role"
            )

        def keep() -> str:
            self._open(account, credentials)
            return account

        trial = f"{account}?"  # not yet the account's key: nothing else can be called with it
        self._open(trial, credentials)
        return trial, keep

    def _lane(self, held: str, region: str, operation: str) -> tuple[str, str, str]:
        return held, region, family_of(operation, changes=self._operations[operation].changes_something)

    def _sender(
        self, held: str, region: str, service: str, operation: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> Callable[[], dict[str, Any]]:
        return lambda: self._send_once(held, region, service, operation, parameters, changes=changes)

    def _send_once(
        self, key: str, region: str, service: str, operation: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> dict[str, Any]:
        from botocore import xform_name
        from botocore.exceptions import ProfileNotFound

        api = f"{service}:{operation}"
        self._gate.expect(api)
        stand_in = False
        try:
            client = self._clients.get(key, region, service)
            stand_in = not is_aws(client.meta.endpoint_url)
            answer: dict[str, Any] = getattr(client, xform_name(operation))(**parameters)
        except ProviderError:
            raise  # from the gate, or from renewing a role's credentials
        except ProfileNotFound as err:
            message = f"AWS_PROFILE: {err}; name one of the AWS configuration files, or unset it"
            raise InvalidInputError(message) from err
        except errors.vendor_faults() as err:
            sent = self._gate.was_sent(api)
            raise errors.translate(err, api, changes=changes, sent=sent, stand_in=stand_in) from err
        return answer


def request_id(answer: Fields) -> str:
    """What AWS calls the request that it answers."""
    return text(part(answer, "ResponseMetadata"), "RequestId")


# Regions that a policy of the organisation closes, as Control Tower's region deny does: everything there is denied.
# Such a region is like one that is not opted in: nobody in the account can use it, and no grant changes that. Machines
# that were launched before it was closed run on unseen, so that nothing is concluded from it: no case there ends.

_FEW = 5  # the smallest page EC2 gives
_Read = tuple[str, str, dict[str, Any]]

VOLUMES: _Read = ("DescribeVolumes", "Volumes", {"MaxResults": _FEW})
ADDRESSES: _Read = ("DescribeAddresses", "Addresses", {})


def require_open(
    session: AwsSession, shard: Shard, error: ProviderError, further: Sequence[_Read] = (VOLUMES, ADDRESSES)
) -> None:
    """Ask whether the region is closed in which `error` ended a listing; `further` are reads that the role is granted.

    One action that the organisation denies is no closed region. Control Tower User Guide, "Configure the Region deny
    control": all of EC2 is denied there but DescribeRegions, DescribeTransitGateways and DescribeVpnGateways.

    Raises:
        ClosedRegionError: the organisation denies the further reads too.
    """
    if not isinstance(error, DeniedByOrganisationError):
        return
    for operation, key, asked in further:
        try:
            next(iter(session.pages(shard, "ec2", operation, key, **asked)), None)
        except DeniedByOrganisationError:
            continue
        except ProviderError:
            return
        return
    raise closed(shard, error) from error


def closed(shard: Shard, error: ProviderError) -> ClosedRegionError:
    """The error of a region in which everything was denied like `error`."""
    message = f"a policy of the organisation closes region {shard.region} to account {shard.account}: {error}"
    return ClosedRegionError(message, operation=error.operation, code=error.code)


_LISTING = "organizations:ListAccounts"
_ACTIVE = "ACTIVE"
_CLOSED = frozenset({"SUSPENDED", "PENDING_CLOSURE", "CLOSED"})
_REGION_PREFIXES = {"aws-cn": "cn-", "aws-us-gov": "us-gov-"}
_NOT_OPTED_IN = "not-opted-in"
ALWAYS_ON = {
    "aws": frozenset(
        {
            *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
            *("ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
            *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
        }
    ),
    "aws-cn": frozenset({"cn-north-1", "cn-northwest-1"}),
    "aws-us-gov": frozenset({"us-gov-east-1", "us-gov-west-1"}),
}
"""Regions older than 20 March 2019, which every account has and none can disable (AWS account management
reference guide, "Enable or disable AWS Regions in your account"): whether they are usable need not be asked."""


def discover(session: AwsSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on.

    Raises:
        InvalidInputError: the credentials belong to another partition.
        AccessDeniedError: there are no credentials at all.
    """
    regions = Regions(
        listed=lambda whole: _regions(session, whole, every=target.regions is not None),
        usable=lambda _, status: status != _NOT_OPTED_IN,
        likely=lambda name: _in_partition(target.cloud, name),
        unusable=_unusable,
        always=ALWAYS_ON.get(target.cloud, frozenset()),
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: AwsSession, target: Target, lister: str) -> Members:
    """Active and closed accounts of the organisation, as its management or a delegated account lists them.

    API: Organizations ListAccounts, 20 accounts a page.
    """
    active: list[str] = []
    closed: list[str] = []
    gaps: list[Gap] = []
    for page in session.pages(Shard(target.cloud, lister), "organizations", "ListAccounts", "Accounts"):
        with as_documented(_LISTING):
            found = [(account_id(item, "Id"), text(item, "State") or text(item, "Status")) for item in page]
        for account, status in found:
            if status == _ACTIVE:
                active.append(account)
            elif status in _CLOSED:
                closed.append(account)
            else:
                detail = f"the organisation lists this account as {without_secrets(status) or 'nothing'}"
                gaps.append(Gap(Shard(target.cloud, account), "accounts", GapKind.UNREADABLE, detail))
    both = set(closed) & {*active, *(gap.shard.account for gap in gaps)}
    if both:
        message = f"{_LISTING}: {', '.join(sorted(both))} is listed as closed and as something else"
        raise TruncatedReadError(message, operation=_LISTING, code="Contradiction")
    return Members(sorted(set(active)), sorted(set(closed)), gaps)


def _regions(session: AwsSession, whole: Shard, *, every: bool) -> dict[str, str]:
    """Regions and their opt-in status. API: EC2 DescribeRegions, one answer without pages."""
    listed: dict[str, str] = {}
    for page in session.pages(whole, "ec2", "DescribeRegions", "Regions", AllRegions=every):
        with as_documented("ec2:DescribeRegions"):
            listed.update({named(item, "RegionName"): text(item, "OptInStatus") for item in page})
    return {name: status for name, status in listed.items() if _in_partition(whole.cloud, name)}


def _in_partition(cloud: str, region: str) -> bool:
    expected = _REGION_PREFIXES.get(cloud)
    if expected is None:
        return not region.startswith(tuple(_REGION_PREFIXES.values()))
    return region.startswith(expected)


def _unusable(shard: Shard, listed: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in listed:
        detail = f"account {shard.account} has not opted in to region {region}"
        fix = "opt in to the region, or take it out of the policy's regions"
    else:
        detail = f"{shard.cloud} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
