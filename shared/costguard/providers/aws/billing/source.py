"""What AWS billed, from Cost Explorer, and the budgets of its console.

Permissions: `ce:GetCostAndUsage`, `ce:ListCostAllocationTags`, `organizations:DescribeOrganization` and
`budgets:ViewBudget`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.money import SpendLine, SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap
from costguard.ports import Target
from costguard.providers.aws.billing.answers import COSTS, DAY, Grouped, costs_by_day
from costguard.providers.aws.billing.lines import Groupings, Slice, lines_of, machine_uses
from costguard.providers.aws.billing.prices import CURRENCIES
from costguard.providers.aws.billing.vendor_budgets import budgets_of
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.calls import by_token
from costguard.providers.kit.core.fields import account_id, as_documented, named, part, parts, text

SOURCE = "aws-cost-explorer"
ZONE = "UTC"  # of Cost Explorer's days and of the billing cycle
REGIONS = {"aws": "us-east-1", "aws-cn": "cn-northwest-1"}
"""Where Cost Explorer and Budgets answer. `aws-us-gov` has neither: its charges are on the bill of the standard
account that each of its accounts is paired with, and are read there, with `cloud: aws`."""

DELAY = timedelta(hours=24)
"""Cost Explorer renews its data at least once in 24 hours; its user guide adds that single charges may come later."""

_LAST_OPEN_DAY = 7
"""Of a month for the bill of the month before. Cost and Usage Reports user guide, page `view-finalized-cur`: charges
for support "are reflected on the sixth or seventh of the month for the prior month's report". What is refunded later
changes a final bill all the same."""

MOST_REGIONS = 20
"""Regions that one scope may name: each is asked for on its own, as the API documents no grouping by region."""

_NO_ORGANISATION = "AWSOrganizationsNotInUseException"
_PAYER, _TAGS = "organizations:DescribeOrganization", "ce:ListCostAllocationTags"
_MOST_TAGS = 100


@dataclass(frozen=True, slots=True)
class _Payer:
    """Whose credentials read a bill: `payer` is who pays it, the account itself unless it is a member of others."""

    shard: Shard
    payer: str

    @property
    def net(self) -> bool:
        """Whether net costs are read: only the payer is sure to see them."""
        return self.payer == self.shard.account

    @property
    def metrics(self) -> tuple[str, str]:
        """Billed and effective cost."""
        return "UnblendedCost", "NetAmortizedCost" if self.net else "AmortizedCost"


@dataclass(frozen=True, slots=True)
class _Reading:
    """One call of `read`: the days, and what every slice came to."""

    who: _Payer
    since: datetime
    until: datetime
    found: dict[Slice, list[SpendLine] | ProviderError] = field(default_factory=dict)


class AwsSpend:
    """`SpendSource` for one partition of AWS. `now` is the clock.

    `billed_cost` is UnblendedCost: what the invoice lists, purchases on the day they are made. `effective_cost` is
    NetAmortizedCost: after discounts, with upfront and recurring fees spread over the usage they pay for; what of a
    commitment nothing used stays with its fee. A member of an organisation reads AmortizedCost instead, as its
    management account decides whether members see net costs: there, discounts are lines of their own in both.

    A line is a day's sum. The API groups by two things at most, so the first request groups everything by service and
    charge type; up to four more group the use of EC2 and of SageMaker, at list price and under commitments, by account
    and instance type, as far as the first shows such use. A scope that names several accounts takes one more, by
    account and charge type; what is no machine then has no service. Only where the scope names no account may a line
    sum over accounts, and only what is neither a machine with accelerators nor SageMaker; regions are known where the
    scope names them. Spot is usage like any other, as no charge type tells it.

    `Estimated` is true of every day until the month is invoiced, so it says nothing about what is missing.
    """

    def __init__(self, session: AwsSession, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._now = now

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The charges of each scope, in days of UTC. Scopes that mean the same are asked for once.

        API: Cost Explorer GetCostAndUsage, DAILY, $0.01 a request and page: one to six for each region named, or for
        all. ListCostAllocationTags where a tag found nothing; Organizations DescribeOrganization, which is free.
        """
        now = self._now().astimezone(timezone.utc)
        cloud = self._session.cloud
        touching = [scope for scope in scopes if scope.touches(cloud)]
        reports = {scope: SpendReport((), until, now, SOURCE) for scope in scopes}
        if not touching:
            return reports
        try:
            who = self._who(target)
        except ProviderError as err:
            lost = self._lost(Shard(cloud, target.account), err, now)
            return {**reports, **dict.fromkeys(touching, lost)}
        reading = _Reading(who, _day_of(since), min(_day_of(until - timedelta.resolution), _day_of(now)) + DAY)
        return {**reports, **{scope: self._report(target, scope, reading, until, now) for scope in touching}}

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """The cost budgets of the console; those that track usage or the use of commitments are no money.

        API: Budgets DescribeBudgets and DescribeBudgetNotificationsForAccount, in pages.

        Raises:
            ProviderError: they could not all be read.
        """
        who = self._who(target)
        found = self._console(who.shard, "DescribeBudgets", "Budgets", ShowFilterExpression=True)
        notified = self._console(who.shard, "DescribeBudgetNotificationsForAccount", "BudgetNotificationsForAccount")
        with as_documented("budgets:DescribeBudgets"):
            everybody = who.payer == who.shard.account
            return budgets_of(
                found, notified, self._session.cloud, who.shard.account, everybody=everybody, now=self._now()
            )

    def _console(self, shard: Shard, operation: str, key: str, **more: Any) -> list[Any]:
        pages = self._session.pages(shard, "budgets", operation, key, AccountId=shard.account, **more)
        return [item for page in pages for item in page]

    def _who(self, target: Target) -> _Payer:
        cloud, session = self._session.cloud, self._session
        if cloud not in REGIONS:
            message = (
                f"{cloud} has no Cost Explorer: its charges are on the bill of the standard accounts it is paired with"
            )
            raise RefusedError(message, operation=COSTS, code=errors.BILLED_ELSEWHERE)
        own = session.identity().account
        account = own if target.organisation else target.account or own
        if not target.organisation:
            session.for_account(target, account)
        shard = Shard(cloud, account, REGIONS[cloud])
        try:
            payer = self._management_of(account)
        except ProviderError:
            if target.organisation:
                raise
            payer = ""  # not told: as if a member
        if target.organisation and payer != account:
            message = f"{COSTS}: the organisation's bill is shown to its management account {payer}, not to {account}"
            raise RefusedError(message, operation=COSTS, code=errors.BILLED_ELSEWHERE)
        return _Payer(shard, payer)

    def _management_of(self, account: str) -> str:
        try:
            answer = self._session.call(Shard(self._session.cloud, account), "organizations", "DescribeOrganization")
        except RefusedError as err:
            if err.code == _NO_ORGANISATION:
                return account
            raise
        with as_documented(_PAYER):
            return account_id(part(answer, "Organization"), "MasterAccountId")

    def _report(
        self, target: Target, scope: SpendScope, reading: _Reading, until: datetime, now: datetime
    ) -> SpendReport:
        shard = reading.who.shard
        slices = _slices(target, scope, reading.who)
        if not slices:
            return SpendReport((), until, now, SOURCE)
        complete = min(_day_of(now - DELAY), until)
        if reading.since >= reading.until:
            return SpendReport((), complete, now, SOURCE, zone=ZONE, final_until=final_until(now))
        if len(slices) > MOST_REGIONS:
            message = f"{COSTS}: not asked: the scope names {len(slices)} regions"
            return self._lost(shard, RefusedError(message, operation=COSTS, code=errors.TOO_MANY_REGIONS), now)
        found = [self._slice(each, reading) for each in slices]
        lines = tuple(line for each in found if not isinstance(each, ProviderError) for line in each)
        failed = [each for each in found if isinstance(each, ProviderError)]
        gaps = tuple(dict.fromkeys(self._gap(shard, err) for err in failed))
        return SpendReport(lines, None if gaps else complete, now, SOURCE, gaps, ZONE, final_until(now))

    def _slice(self, of: Slice, reading: _Reading) -> list[SpendLine] | ProviderError:
        if of not in reading.found:
            try:
                reading.found[of] = self._lines(of, reading)
            except ProviderError as err:
                reading.found[of] = err
        return reading.found[of]

    def _lines(self, of: Slice, reading: _Reading) -> list[SpendLine]:
        if not all(value for _, value in of.tags):
            message = f"{COSTS}: not asked: an empty tag value and no tag are the same in Cost Explorer"
            raise RefusedError(message, operation=COSTS, code=errors.EMPTY_TAG)
        conditions = _conditions(of)
        by_service = self._costs(reading, ("SERVICE", "RECORD_TYPE"), conditions)
        if not by_service and of.tags:
            self._require_active(reading.who.shard, [key for key, _ in of.tags])
        by_machine = {
            use: self._costs(
                reading,
                ("LINKED_ACCOUNT", "INSTANCE_TYPE"),
                [*conditions, _is_one_of("SERVICE", use.services), _is_one_of("RECORD_TYPE", use.record_types)],
            )
            for use in machine_uses(by_service)
        }
        several = of.accounts is not None and not of.account
        by_account = self._costs(reading, ("LINKED_ACCOUNT", "RECORD_TYPE"), conditions) if several else None
        return list(lines_of(Groupings(by_service, by_machine, by_account), of))

    def _costs(self, reading: _Reading, keys: tuple[str, str], conditions: Sequence[dict[str, Any]]) -> Grouped:
        metrics, shard = reading.who.metrics, reading.who.shard
        question: dict[str, Any] = {
            "TimePeriod": {"Start": f"{reading.since:%Y-%m-%d}", "End": f"{reading.until:%Y-%m-%d}"},
            "Granularity": "DAILY",
            "Metrics": list(metrics),
            "GroupBy": [{"Type": "DIMENSION", "Key": key} for key in keys],
        }
        if conditions:
            question["Filter"] = conditions[0] if len(conditions) == 1 else {"And": list(conditions)}

        def ask(page: dict[str, str]) -> dict[str, Any]:
            more = {"NextPageToken": page["NextToken"]} if page else {}
            return self._session.call(shard, "ce", "GetCostAndUsage", **question, **more)

        def results() -> Iterator[Any]:
            for page in by_token(
                COSTS, ask, lambda answer: list(answer["ResultsByTime"]), lambda answer: text(answer, "NextPageToken")
            ):
                yield from page

        with as_documented(COSTS):
            return costs_by_day(results(), reading.since, reading.until, metrics, CURRENCIES[shard.cloud])

    def _require_active(self, shard: Shard, keys: Sequence[str]) -> None:
        """A tag that is not activated for cost allocation finds nothing, which is not zero.

        Raises:
            RefusedError: one of `keys` is not.
        """
        answer = self._session.call(shard, "ce", "ListCostAllocationTags", TagKeys=list(keys)[:_MOST_TAGS])
        with as_documented(_TAGS):
            tags = {named(tag, "TagKey"): named(tag, "Status") for tag in parts(answer, "CostAllocationTags")}
        inactive = [key for key in keys if tags.get(key) != "Active"]
        if inactive:
            message = f"{COSTS}: not an active cost allocation tag: {', '.join(inactive)}"
            raise RefusedError(message, operation=COSTS, code=errors.INACTIVE_TAG)

    def _lost(self, shard: Shard, err: ProviderError, now: datetime) -> SpendReport:
        return SpendReport((), None, now, SOURCE, (self._gap(shard, err),))

    def _gap(self, shard: Shard, err: ProviderError) -> Gap:
        return errors.gap(Shard(shard.cloud, shard.account), "billing", err)  # a bill is of no region


def final_until(now: datetime) -> datetime:
    """The begin of the first month of which what is read now may still change, by the documents."""
    seen = _day_of(now - DELAY)
    current = seen.replace(day=1)
    return current if seen.day > _LAST_OPEN_DAY else (current - DAY).replace(day=1)


def _slices(target: Target, scope: SpendScope, who: _Payer) -> list[Slice]:
    """The questions that make up `scope`: one for each region it names, none where it holds nothing."""
    accounts = None if scope.accounts is None else tuple(sorted(set(scope.accounts)))
    if not target.organisation:
        own = who.shard.account
        accounts = (own,) if accounts is None or own in accounts else ()
    if accounts == ():
        return []
    regions: Sequence[str] = ("",) if scope.regions is None else tuple(sorted(set(scope.regions)))
    payer = who.payer or who.shard.account
    return [Slice(who.shard.cloud, payer, accounts, region, scope.tags, net=who.net) for region in regions]


def _conditions(of: Slice) -> list[dict[str, Any]]:
    found = [] if of.accounts is None else [_is_one_of("LINKED_ACCOUNT", of.accounts)]
    if of.region:
        found.append(_is_one_of("REGION", (of.region,)))
    return [*found, *({"Tags": {"Key": key, "Values": [value]}} for key, value in of.tags)]


def _is_one_of(dimension: str, values: Sequence[str]) -> dict[str, Any]:
    return {"Dimensions": {"Key": dimension, "Values": list(values)}}


def _day_of(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
