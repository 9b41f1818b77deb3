"""One door to Alibaba Cloud: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import Unpack

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError, TruncatedReadError, UnavailableError
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.errors import WOULD_BE_ALLOWED
from costguard.providers.alibaba.core.products import (
    HOME_REGIONS,
    PRODUCTS,
    flattened,
    host_of,
    is_region,
    items_in,
    needed_time,
    structures_in,
)
from costguard.providers.alibaba.core.transport import Question, Transport, WireError, check_endpoint
from costguard.providers.alibaba.iam.permissions import KNOWN_OPERATIONS, REACH
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.calls import MOST_PAGES
from costguard.providers.kit.core.credentials import Keys, without_secrets
from costguard.providers.kit.core.fields import Fields, account_id, as_documented, named, text, whole
from costguard.providers.kit.core.session import Common, Identity, Nature
from costguard.providers.kit.core.signing import Entered, SigningSession

# How fast each action may be asked, of one account in one region: burst, and requests a second. ECS throttles by
# account, region and action, with limits that only Quota Center tells, and lets nothing through for the rest of the
# minute once exceeded: these stay well below what the documents give as examples. CloudMonitor, STS and bills are
# counted by account, whatever the region; CloudMonitor by the second. A twenty-fifth of its limit may be used at once
# and 88 % of it a second after that: requests may bunch up on their way by nearly a tenth of a second before a second,
# wherever it begins, holds more than the limit.

_USUAL = {
    "ecs": (20.0, 10.0),
    "vpc": (20.0, 10.0),
    "vpcpeer": (5.0, 5.0),
    # of 50 reads a second in a region (20 in older documents), which whatever describes keys there shares
    "kms": (5.0, 15.0),
    "cms": (2.0, 44.0),  # of 50 a second, which the account's other users share
    "sts": (20.0, 20.0),  # of 100 a second
    "resourcedirectory": (5.0, 5.0),
    "ram": (5.0, 5.0),
    "bss": (2.0, 8.0),  # of 10 a second
    "actiontrail": (1.0, 1.0),  # of 2 a second
}
_CHANGES = (5.0, 1.0)
_OTHER = {
    "ecs:DescribePrice": (5.0, 2.0),  # throttled hard
    # limits of ECS hold by the minute, and pages come one after another: ten thousand instances are one burst
    "ecs:DescribeInstances": (100.0, 10.0),
    # no batch of either: a request a group, a request a route table
    "ecs:DescribeSecurityGroupAttribute": (100.0, 20.0),
    "vpc:DescribeRouteEntryList": (100.0, 10.0),
}
_WHOLE_ACCOUNT = frozenset({"cms", "sts", "resourcedirectory", "ram", "bss", "dm", "actiontrail"})


def _rate_of(operation: str) -> tuple[float, float]:
    if KNOWN_OPERATIONS[operation].changes_something:
        return _CHANGES
    return _OTHER.get(operation) or _USUAL[operation.partition(":")[0]]


RATES: Mapping[str, tuple[float, float]] = {operation: _rate_of(operation) for operation in KNOWN_OPERATIONS}
"""By operation: each is counted apart."""


def region_of(operation: str, region: str) -> str:
    """The region its limit is counted in; empty where all regions share one."""
    return "" if operation.partition(":")[0] in _WHOLE_ACCOUNT else region


_READ_SECONDS = 30.0  # one request in all
_CHANGE_SECONDS = 90.0  # the SDK itself waits 86 s for CreateSnapshot
_RENEWED_BEFORE = timedelta(minutes=10)  # the end: a page takes seconds, a slow shard minutes

_NATURE = Nature(
    name="Alibaba Cloud",
    kind="site",
    home_regions=HOME_REGIONS,
    reach=REACH,
    rates=RATES,
    role_lasts=timedelta(hours=1),
    is_stale=lambda err: isinstance(err, AccessDeniedError) and err.code in errors.EXPIRED,
)


class AlibabaSession(SigningSession):
    """As `SigningSession`, for one site of Alibaba Cloud. `endpoint` stands in for the whole cloud.

    In parameters lists become `Name.1`, structures in them `Name.1.Key`, truth values `true` and `false`.
    """

    def __init__(
        self, *, keys: Keys | None, now: Callable[[], datetime], endpoint: str = "", **common: Unpack[Common]
    ) -> None:
        super().__init__(_NATURE, check_endpoint(endpoint) if endpoint else "", keys, now, common)

    def _begin(self) -> None:
        super()._begin()
        self._transport = Transport(self._gate, agent=self.mark)

    def _items_in(self, answer: Fields, result_key: str, operation: str) -> list[Any]:
        """The list at `Instances.Instance`."""
        return items_in(answer, result_key, operation)

    def _next_token(self, answer: Fields) -> str:
        return next_token(answer)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _role_name(self, role: str, account: str) -> str:
        return role if role.startswith("acs:") else f"acs:ram::{account}:role/{role}"

    def _issued(self, credentials: Fields, asked_at: datetime) -> tuple[Keys, datetime]:
        keys = Keys(
            named(credentials, "AccessKeyId"),
            named(credentials, "AccessKeySecret"),
            named(credentials, "SecurityToken"),
        )
        ends_at = min(needed_time(credentials, "Expiration"), asked_at + _NATURE.role_lasts)
        return keys, ends_at - _RENEWED_BEFORE

    def _identity_in(self, answer: Fields) -> Identity:
        return Identity(
            account=account_id(answer, "AccountId"),
            arn=without_secrets(text(answer, "Arn")),
            kind=without_secrets(text(answer, "IdentityType")),
        )

    def _lane(self, held: Entered, region: str, operation: str) -> tuple[str, str, str]:
        return held.account, region_of(operation, region), operation

    def _sender(
        self, held: Entered, region: str, service: str, operation: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> Callable[[], dict[str, Any]]:
        question = self._question(region, service, operation, parameters)
        return lambda: self._send_once(held.keys, question, changes=changes)

    def _question(self, region: str, service: str, operation: str, parameters: Mapping[str, Any]) -> Question:
        api = f"{service}:{operation}"
        try:
            domain = self._endpoint or f"https://{host_of(self.cloud, service, region)}"
            given = flattened(parameters)
        except (ValueError, TypeError) as err:
            message = f"{api}: not sent: {without_secrets(str(err))}"
            raise RefusedError(message, operation=api, code="Unfit") from err
        # RegionId is signed with every request; left out, the SDK would name its own
        product, home = PRODUCTS[service], {"RegionId": region}
        if product.in_body:
            return Question(api, product.version, domain, home, given)
        return Question(api, product.version, domain, {**home, **given})

    def _send_once(self, keys: Keys, question: Question, *, changes: bool) -> dict[str, Any]:
        left = float("inf") if self._deadline is None else max(1.0, self._deadline())
        try:
            if changes:
                answer = self._transport.send_apart(keys, question, seconds=min(_CHANGE_SECONDS, left))
            else:
                answer = self._transport.send(keys, question, seconds=min(_READ_SECONDS, left))
        except WireError as err:
            raise errors.translate(err, question.operation, changes=changes) from err
        if answer.date is not None:
            self._date = answer.date
        return errors.fields_of(answer, question.operation, changes=changes)


def next_token(answer: Fields) -> str:
    """The token of the next page; empty on the last."""
    return "" if answer.get("NextToken") is None else text(answer, "NextToken")


def prove_permitted(session: AlibabaSession, shard: Shard, service: str, operation: str, **parameters: Any) -> None:
    """Return where a dry run says that asking is permitted, and in no other case.

    Raises:
        AccessDeniedError: it is not permitted.
        ProviderError: it could not be found out.
    """
    api = f"{service}:{operation}"
    try:
        session.call(shard, service, operation, **parameters, DryRun=True)
    except ProviderError as err:
        if err.code in WOULD_BE_ALLOWED:
            return
        raise
    message = f"{api}: a dry run was answered like the call itself, so it proves nothing"
    raise UnavailableError(message, operation=api, code="DryRunIgnored")


def numbered_pages(
    session: AlibabaSession,
    shard: Shard,
    api: str,
    result_key: str,
    named_by: str,
    size: int,
    /,
    **parameters: Any,
) -> Iterator[dict[str, Fields]]:
    """The pages of the list at `result_key` that `api` (`kms:ListKeys`) answers with, its items by name.

    Raises:
        TruncatedReadError: not as many came as there are, or one came twice: the list moved while it was read.
    """
    service, _, operation = api.partition(":")
    seen: set[str] = set()
    for number in range(1, MOST_PAGES + 1):
        answer = session.call(shard, service, operation, **parameters, PageNumber=number, PageSize=size)
        with as_documented(api):
            page = structures_in(answer, result_key, api)
            total = _total(answer)
            items = {named(item, named_by): item for item in page if named(item, named_by) not in seen}
        seen |= items.keys()
        yield items
        if len(items) == len(page) and len(seen) == total:
            return
        if len(items) < len(page) or not page or len(seen) > total:
            break
    raise moved(api, len(seen))


def moved(api: str, came: int) -> TruncatedReadError:
    """What left the first page moves something of the second out of sight."""
    message = f"{api}: {came} came, and that is not all, or not once each: the list moved"
    return TruncatedReadError(message, operation=api, code="MissingItem")


def _total(answer: Fields) -> int:
    """Some lists of VPC write it as a text."""
    told = answer.get("TotalCount")
    if isinstance(told, str) and told.isascii() and told.isdigit():
        return int(told)
    return whole(answer, "TotalCount")


_LISTING = "resourcedirectory:ListAccounts"
_REGIONS = "ecs:DescribeRegions"
_PAGE = 100
_ACTIVE = frozenset({"CreateSuccess", "PromoteSuccess", "InviteSuccess"})
CLOSED_REGIONS = frozenset({"ap-south-1", "ap-southeast-2"})
"""Mumbai and Sydney were shut down in 2024 and may still be listed; nothing can run there, and nothing answers."""


def discover(session: AlibabaSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on. The listing of an organisation leaves out the account
    that leads it, and accounts that were deleted: no account is ever told to be closed.

    Raises:
        AccessDeniedError: there are no credentials at all.
    """
    regions = Regions(
        listed=lambda whole: _regions(session, whole),
        usable=lambda name, _: name not in CLOSED_REGIONS,
        likely=lambda name: is_region(name) and name not in CLOSED_REGIONS,
        unusable=_unusable,
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: AlibabaSession, target: Target, lister: str) -> Members:
    """Usable members of the organisation, as its management or a delegated account lists them.

    API: ResourceDirectoryMaster ListAccounts, 100 accounts a page.
    """
    active: list[str] = []
    gaps: list[Gap] = []
    pages = session.pages(
        Shard(target.cloud, lister), "resourcedirectory", "ListAccounts", "Accounts.Account", MaxResults=_PAGE
    )
    for page in pages:
        with as_documented(_LISTING):
            found = [(account_id(item, "AccountId"), text(item, "Status")) for item in page]
        for account, status in found:
            if status in _ACTIVE:
                active.append(account)
            else:
                detail = f"the organisation lists this account as {without_secrets(status) or 'nothing'}"
                gaps.append(Gap(Shard(target.cloud, account), "accounts", GapKind.UNREADABLE, detail))
    return Members(sorted({lister, *active}), gaps=gaps)


def _regions(session: AlibabaSession, whole: Shard) -> dict[str, str]:
    """The regions that this account may use; one that is sold out may still hold machines.

    API: ECS DescribeRegions, one answer without pages.
    """
    answer = session.call(whole, "ecs", "DescribeRegions")
    with as_documented(_REGIONS):
        listed = [named(item, "RegionId") for item in structures_in(answer, "Regions.Region", _REGIONS)]
        strange = [name for name in listed if not is_region(name)]
        if strange or not listed:
            message = f"{len(strange)} of {len(listed)} regions have no name of one"
            raise ValueError(message)
    return dict.fromkeys(listed, "")


def _unusable(shard: Shard, _: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in CLOSED_REGIONS:
        detail = f"region {region} was shut down by Alibaba Cloud in 2024"
        fix = "take it out of the policy's regions"
    else:
        detail = f"account {shard.account} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
