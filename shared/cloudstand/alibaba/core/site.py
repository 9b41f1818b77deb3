"""What every action of the emulator knows besides the world: accounts, keys, permissions, regions, tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from cloudstand.alibaba.billing.bills import BillDesk
from cloudstand.alibaba.core.credentials import Credential, Credentials
from cloudstand.alibaba.core.errors import ApiError
from cloudstand.alibaba.core.ownership import Ownership
from cloudstand.alibaba.core.parameters import Asked
from cloudstand.alibaba.iam.desk import FULL_ACCESS, PolicyDesk
from cloudstand.alibaba.kms.desk import KeyDesk
from cloudstand.alibaba.network.desk import NetworkDesk
from cloudstand.wire.authority import Authority
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.trail import TrailDesk

REGIONS = {
    "cn-hangzhou": "China (Hangzhou)",
    "cn-shanghai": "China (Shanghai)",
    "cn-beijing": "China (Beijing)",
    "cn-shenzhen": "China (Shenzhen)",
    "cn-wulanchabu": "China (Ulanqab)",  # one that the SDK's own list of endpoints does not know
    "cn-hongkong": "China (Hong Kong)",
    "ap-southeast-1": "Singapore",
    "ap-southeast-6": "Philippines (Manila)",
    "eu-central-1": "Germany (Frankfurt)",
    "us-west-1": "US (Silicon Valley)",
}
"""The regions that are there besides those of the fleet, in the words of AcceptLanguage=en-US."""

_LONE_ACCOUNT = "1234567890123456"  # of a world without machines of this cloud


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was believed: what it asked for, and the account whose keys signed it."""

    service: str
    action: str
    account: str
    region: str


@dataclass(frozen=True, slots=True)
class Idempotent:
    """What was answered to a request with a ClientToken: its other parameters and the answer."""

    asked: Asked
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SnapshotNote:
    """What the cloud remembers of a copy and the world does not."""

    name: str
    retention_days: int | None


@dataclass(frozen=True, slots=True)
class SentMail:
    """One mail that DirectMail took."""

    sender: str
    recipients: tuple[str, ...]
    subject: str
    text: str
    html: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class Site:
    """One organisation on one site of the cloud (`alibaba` is China, `alibaba-intl` the international one).

    `allowed` has the RAM actions of an account's identities; an account without a row may do everything. `authorities`
    has what policies say, by account and role (none: the user); who has no row needs none.
    `forbids_lists`: since 20 December 2025 DescribeInstances and DescribeDisks answer 403 to who may not ask, by the
    vendor's announcement; before, and here by default, an empty list, which is the harder to live with.
    `standard_stops` are machines whose last stop was not asked to be an economical one.
    """

    cloud: str
    accounts: tuple[str, ...]
    regions: Mapping[str, str]
    credentials: Credentials
    ownership: Ownership
    role: str
    external_id: str
    forbids_lists: bool = False
    allowed: dict[str, set[str]] = field(default_factory=dict)
    authorities: dict[tuple[str, str], Authority] = field(default_factory=dict)
    tokens: dict[tuple[str, str, str], Idempotent] = field(default_factory=dict)
    standard_stops: set[str] = field(default_factory=set)
    notes: dict[str, SnapshotNote] = field(default_factory=dict)
    bills: BillDesk = field(default_factory=BillDesk)
    policies: PolicyDesk = field(default_factory=PolicyDesk)
    kms: KeyDesk = field(default_factory=KeyDesk)
    networks: NetworkDesk = field(default_factory=NetworkDesk)
    trail: TrailDesk = field(default_factory=TrailDesk)
    senders: set[str] = field(default_factory=lambda: {"costguard@example.com"})  # verified, for mail
    mails: list[SentMail] = field(default_factory=list)
    answered: count[int] = field(default_factory=lambda: count(1))

    @property
    def currency(self) -> str:
        """What the site charges in."""
        return "USD" if self.cloud.endswith("-intl") else "CNY"

    def next_request_id(self) -> str:
        """A UUID in capitals, another for each request."""
        return made_up_request_id("alibaba", str(next(self.answered))).upper()


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request to answer: who asks what, where."""

    site: Site
    caller: Credential
    service: str
    action: str
    region: str
    asked: Asked
    agent: str = ""

    @property
    def account(self) -> str:
        """Whose resources it is about."""
        return self.caller.account

    def once(self, answer: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The answer to this request; to its repetition with the same ClientToken the same one, and nothing is done.

        Raises:
            ApiError: the token was used for something else.
        """
        token = self.asked.text("ClientToken")
        if not token:
            return answer()
        key = (self.account, self.action, token)
        known = self.site.tokens.get(key)
        if known is None:
            known = self.site.tokens[key] = Idempotent(self.asked, answer())
        elif known.asked != self.asked:
            message = "The request uses the same client token as a previous, but non-identical request."
            raise ApiError("IdempotentParameterMismatch", message)
        return known.answer


Handler = Callable[[ApiCall, World], Mapping[str, Any]]
"""Answers a call from the world; what comes back is the body without its RequestId."""


def site_of(world: World, cloud: str, *, role: str, external_id: str, forbids_lists: bool) -> Site:
    """The organisation of a world's fleet: its first account leads it."""
    mine = [spec for spec in world.fleet if spec.cloud == cloud]
    accounts = tuple(dict.fromkeys(spec.account for spec in mine)) or (_LONE_ACCOUNT,)
    further = {spec.region: spec.region for spec in mine if spec.region not in REGIONS}
    return Site(
        cloud=cloud,
        accounts=accounts,
        regions={**REGIONS, **further},
        credentials=Credentials(accounts),
        ownership=Ownership(world, cloud),
        role=role,
        external_id=external_id,
        forbids_lists=forbids_lists,
        policies=PolicyDesk(targets={account: [FULL_ACCESS] for account in accounts[1:]}),
    )
