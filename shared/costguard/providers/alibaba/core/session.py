"""One door to Alibaba Cloud: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import Unpack

from costguard.domain.errors import AccessDeniedError, RefusedError
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.fields import flattened, items_in, needed_time
from costguard.providers.alibaba.core.products import HOME_REGIONS, PRODUCTS, host_of
from costguard.providers.alibaba.core.transport import Question, Transport, WireError, check_endpoint
from costguard.providers.alibaba.iam.permissions import KNOWN_OPERATIONS, REACH
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import Fields, account_id, named, text
from costguard.providers.kit.core.paging import by_token
from costguard.providers.kit.core.redaction import without_secrets
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

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` (`Instances.Instance`) of every page, by `NextToken`, one page at a time.

        Raises:
            TruncatedReadError: no such list, a token seen before, or pages without end.
        """
        api = f"{service}:{operation}"

        def ask(page: dict[str, str]) -> dict[str, Any]:
            return self.call(shard, service, operation, **{**parameters, **page})

        yield from by_token(api, ask, lambda answer: items_in(answer, result_key, api), next_token)

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


def next_token(answer: dict[str, Any]) -> str:
    """The token of the next page; empty on the last."""
    return "" if answer.get("NextToken") is None else text(answer, "NextToken")
