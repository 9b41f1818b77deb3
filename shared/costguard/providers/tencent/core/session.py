"""One door to Tencent Cloud: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Generic, TypeVar

from typing_extensions import Self, Unpack

from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.credentials import Keys, without_secrets
from costguard.providers.kit.core.fields import Fields, account_id, as_documented, cut_short, named, text, whole
from costguard.providers.kit.core.session import Common, Identity, Nature
from costguard.providers.kit.core.signing import Entered, SigningSession
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import HOME_REGIONS, PAGES, REGIONS, Paging
from costguard.providers.tencent.core.transport import SendingError, Transport
from costguard.providers.tencent.iam.permissions import KNOWN_OPERATIONS, REACH

_PAGES = 4  # of 100 machines, about 0.2 MB each: enough for 40 a second at a distance of 100 ms

_Page = TypeVar("_Page")


class Prefetch(Generic[_Page]):
    """`read` gives the page that begins at an offset, of `size` items; used by one thread.

    Only what is announced is asked for, so a list of one page costs one request. Leaving waits for what is under way.
    """

    def __init__(self, read: Callable[[int], _Page], size: int) -> None:
        self._read = read
        self._size = size
        self._under_way: dict[int, Future[_Page]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def take(self, offset: int, announced: int) -> _Page:
        """The page at `offset`; of up to `announced` items, those after it are asked for meanwhile.

        Raises whatever `read` does.
        """
        if announced > offset + self._size:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_PAGES, thread_name_prefix="page")
            last = min(announced, offset + _PAGES * self._size)
            for each in range(offset, last, self._size):
                if each not in self._under_way:
                    self._under_way[each] = self._pool.submit(self._read, each)
        under_way = self._under_way.pop(offset, None)
        return self._read(offset) if under_way is None else under_way.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._under_way.values():
            each.cancel()
        if self._pool is not None:
            self._pool.shutdown()


# How often each operation may be asked in one region by one account, for the pacing before requests are sent. Tencent
# limits every operation of its own, so many calls in any one second. A twenty-fifth of the limit may be used at once
# and 88 % of it a second after that: requests may bunch up on their way by nearly a tenth of a second before a second,
# wherever it begins, holds more than the limit.

_A_SECOND = {
    # from the operations' own API pages; 20 a second where a page names none
    "cvm:DescribeInstances": 40,
    "cvm:DescribeZoneInstanceConfigInfos": 40,
    "cvm:DescribeInstanceTypeConfigs": 40,
    "cvm:StopInstances": 10,
    "cvm:StartInstances": 10,
    "cvm:TerminateInstances": 10,
    "cbs:DescribeDisks": 100,
    # its page (248/33881, 2023-03) names both 20 calls and 50 requests a second, the newer API description neither
    "monitor:GetMonitorData": 20,
    "kms:GetRegions": 100,
    "kms:GetServiceStatus": 100,
    "kms:ListKeyDetail": 100,
    "kms:EnableKeyRotation": 100,
    "kms:RotateKey": 20,
    "tag:DescribeResourceTagsByResourceIds": 100,
    "vpc:DescribeVpcs": 100,
    "vpc:DescribeSubnets": 100,
    "vpc:DescribeRouteTables": 100,
    "vpc:DescribeSecurityGroups": 100,
    "vpc:DescribeSecurityGroupPolicies": 100,
    "vpc:DescribeNatGateways": 100,
    "vpc:CreateSecurityGroupPolicies": 100,
    "vpc:ReplaceSecurityGroupPolicy": 100,
    "vpc:DeleteSecurityGroupPolicies": 100,
    "vpc:InquiryPriceAllocateAddresses": 2,
    "vpc:ReleaseAddresses": 10,
    "vpc:AssociateAddress": 10,
    "vpc:DisassociateAddress": 10,
    "billing:DescribeBillDetail": 5,
    "billing:DescribeBillDetailForOrganization": 5,
}
_USUAL = 20

RATES: Mapping[str, tuple[float, float]] = {
    name: (max(1.0, limit * 0.04), limit * 0.88)
    for name, limit in ((name, _A_SECOND.get(name, _USUAL)) for name in KNOWN_OPERATIONS)
}
"""Burst and calls a second, by operation."""


_MOST_PAGES = 10_000  # a million instances

_NATURE = Nature(
    name="Tencent Cloud",
    kind="site",
    home_regions=HOME_REGIONS,
    reach=REACH,
    rates=RATES,
    role_lasts=timedelta(hours=2),  # what AssumeRole gives unless asked otherwise, and every role allows
    is_stale=errors.is_stale,
)
_RENEW_AFTER = _NATURE.role_lasts * 0.8


class TencentSession(SigningSession):
    """As `SigningSession`, for one site of Tencent Cloud. There are no dry runs.

    `endpoint` stands in for every product; it may be http on this machine only. `pages`: how long the pages of each
    list are.

    Raises:
        InvalidInputError: `cloud` is no site of Tencent Cloud, or `endpoint` no safe address.
    """

    def __init__(
        self,
        *,
        keys: Keys | None,
        now: Callable[[], datetime],
        endpoint: str = "",
        pages: Mapping[str, Paging] = PAGES,
        **common: Unpack[Common],
    ) -> None:
        self._pages = pages
        super().__init__(_NATURE, endpoint, keys, now, common)

    def _begin(self) -> None:
        super()._begin()
        self._transport = Transport(self.cloud, self._endpoint, agent=self.mark)

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` of every page, in order; once their number is known, some are asked for ahead.

        An offset moves when something before it vanishes, and then an item is passed over: fewer in all than
        before, or fewer than announced, is an error and never a short list. Whichever of two pages was answered
        first, the one that was answered after something vanished tells the smaller count.

        Raises:
            TruncatedReadError: a page without that list, pages that contradict their own count, or without end.
        """
        operation = f"{service}:{action}"
        paging = self._pages.get(operation)
        if paging is None:
            yield self._items_in(self.call(shard, service, action, **parameters), result_key, operation)
            return

        def page(offset: int) -> tuple[list[Any], int]:
            answer = self.call(shard, service, action, **parameters, **paging.asked(offset))
            with as_documented(operation):
                total = whole(answer, paging.total) if result_key in answer else 0
            if paging.may_be_null and total == 0 and answer.get(result_key, "") is None:
                return [], 0
            return self._items_in(answer, result_key, operation), total

        seen, most, last = 0, 0, None
        with Prefetch(page, paging.most) as ahead:
            for _ in range(_MOST_PAGES):
                items, total = ahead.take(seen, most)
                yield items
                if items and items == last:
                    raise cut_short(operation, f"the same page came twice, after {seen} items", "RepeatedPage")
                seen, last = seen + len(items), items
                if _is_last(operation, paging, items, seen, total, most):
                    return
                most = max(most, total)
        raise cut_short(operation, f"more than {_MOST_PAGES} pages", "TooManyPages")

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _role_name(self, role: str, account: str) -> str:
        return role if role.startswith("qcs::") else f"qcs::cam::uin/{account}:roleName/{role}"

    def _issued(self, credentials: Fields, asked_at: datetime) -> tuple[Keys, datetime]:
        keys = Keys(named(credentials, "TmpSecretId"), named(credentials, "TmpSecretKey"), named(credentials, "Token"))
        # counted from before the request: by our clock the keys are then older than they are, never younger
        return keys, asked_at + _RENEW_AFTER

    def _identity_in(self, answer: Fields) -> Identity:
        return Identity(
            account=account_id(answer, "AccountId"),
            arn=without_secrets(text(answer, "Arn")),
            kind=without_secrets(text(answer, "Type")),
        )

    def _lane(self, held: Entered, region: str, operation: str) -> tuple[str, str, str]:
        return held.account, region, operation

    def _sender(
        self, held: Entered, region: str, service: str, operation: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> Callable[[], dict[str, Any]]:
        return lambda: self._send_once(held.keys, region, service, operation, parameters, changes=changes)

    def _send_once(
        self, keys: Keys, region: str, service: str, action: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> dict[str, Any]:
        operation = f"{service}:{action}"
        try:
            reply = self._transport.send(
                keys,
                region,
                service,
                action,
                parameters,
                sending=lambda: self._gate.sending(operation),
                anew=changes,
                seconds=None if self._deadline is None else self._deadline(),
            )
        except SendingError as err:
            raise errors.from_sending(err, operation, changes=changes) from err
        if reply.date is not None:
            self._date = reply.date
        if reply.error is not None:
            code, message = reply.error
            stand_in = self._transport.is_stand_in
            raise errors.from_answer(code, message, operation, changes=changes, stand_in=stand_in)
        return dict(reply.fields)


def _is_last(operation: str, paging: Paging, items: list[Any], seen: int, total: int, most: int) -> bool:
    """Whether this page was the last one."""
    if len(items) > paging.most:
        raise cut_short(operation, f"a page of {len(items)} items where {paging.most} were asked for", "TooLong")
    if total < most:
        raise cut_short(operation, f"{most} items became {total} while they were read", "Shifted")
    if len(items) < paging.most and seen < total:
        raise cut_short(operation, f"ended after {seen} of {total} items", "EndedEarly")
    return len(items) < paging.most or seen == total


_LISTING = "organization:DescribeOrganizationMembers"
_AVAILABLE = "AVAILABLE"


def discover(session: TencentSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on. The organisation lists no closed accounts, so
    none is ever reported as closed: one that is gone from the list is simply not read.

    Raises:
        AccessDeniedError: there are no credentials at all.
    """
    regions = Regions(
        listed=lambda whole: _regions(session, whole),
        usable=lambda _, state: state == _AVAILABLE,
        likely=REGIONS.__contains__,
        unusable=_unusable,
        always=REGIONS,
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: TencentSession, target: Target, lister: str) -> Members:
    """The members of the organisation as its management account lists them, which need not list itself.

    API: Organization DescribeOrganizationMembers, 50 members a page.
    """
    members: list[str] = []
    whole_account = Shard(target.cloud, lister)
    for page in session.pages(whole_account, "organization", "DescribeOrganizationMembers", "Items"):
        with as_documented(_LISTING):
            members += [str(whole(item, "MemberUin")) for item in page]
    return Members(sorted({lister, *members}))


def _regions(session: TencentSession, whole_account: Shard) -> dict[str, str]:
    """Regions where CVM is sold, and their states. API: Region DescribeRegions, one answer without pages."""
    listed: dict[str, str] = {}
    for page in session.pages(whole_account, "region", "DescribeRegions", "RegionSet", Product="cvm"):
        with as_documented("region:DescribeRegions"):
            listed.update({named(item, "Region"): text(item, "RegionState") for item in page})
    return listed


def _unusable(shard: Shard, listed: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in listed:
        detail = f"region {region} is {without_secrets(listed[region]) or 'in no state'} for account {shard.account}"
        fix = "take the region out of the policy's regions"
    else:
        detail = f"{shard.cloud} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
