"""What things are called: ids that are the same everywhere and never a display name; deployments by their mark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from costguard.domain.errors import InvalidInputError

_ID_PARTS = 5
CLOUDS = ("aws", "aws-cn", "aws-us-gov", "alibaba", "alibaba-intl", "tencent", "tencent-intl")
"""A provider together with its partition or site; accounts and money never cross this border."""


def provider_of(cloud: str) -> str:
    """`aws-cn` → `aws`: the folder under `providers/` that speaks to this cloud."""
    return cloud.split("-", 1)[0]


@dataclass(frozen=True, order=True, slots=True)
class Shard:
    """The unit of parallel reading: one region of one account (an account or payer where `region` is empty)."""

    cloud: str
    account: str
    region: str = ""

    @property
    def provider(self) -> str:
        """The provider without its partition or site."""
        return provider_of(self.cloud)

    def __str__(self) -> str:
        return ":".join(part for part in (self.cloud, self.account, self.region) if part)


@dataclass(frozen=True, order=True, slots=True)
class ResourceRef:
    """One resource. `native_id` is the vendor's own id (`i-0abc…`); `kind` is ours (`instance`, `volume`, …)."""

    cloud: str
    account: str
    region: str
    kind: str
    native_id: str

    @property
    def provider(self) -> str:
        """The provider without its partition or site."""
        return provider_of(self.cloud)

    @property
    def shard(self) -> Shard:
        """The region of the account this resource is read in."""
        return Shard(self.cloud, self.account, self.region)

    def sibling(self, kind: str, native_id: str) -> ResourceRef:
        """Another resource of the same account and region."""
        return ResourceRef(self.cloud, self.account, self.region, kind, native_id)

    def __str__(self) -> str:
        return f"{self.cloud}:{self.account}:{self.region}:{self.kind}:{self.native_id}"

    @classmethod
    def parse(cls, text: str) -> ResourceRef:
        """Read `cloud:account:region:kind:native_id`.

        Raises:
            InvalidInputError: not five parts, an empty part, or an unknown cloud.
        """
        parts = text.split(":", _ID_PARTS - 1)
        if len(parts) != _ID_PARTS or not all(parts) or parts[0] not in CLOUDS:
            message = (
                f"{text!r} is not a resource id; expected cloud:account:region:kind:native_id, "
                "for example aws:111122223333:us-east-1:instance:i-0123456789abcdef0"
            )
            raise InvalidInputError(message)
        return cls(*parts)


@dataclass(frozen=True, order=True, slots=True)
class ScopeRef:
    """A slice of spend that a budget watches; the other kind of subject a finding may have."""

    name: str

    def __str__(self) -> str:
        return f"scope:{self.name}"


Subject = ResourceRef | ScopeRef


_MARK = re.compile(
    r"(?<![A-Za-z0-9-])costguard-(?P<name>[a-z][a-z0-9-]{1,18}[a-z0-9])-(?P<ledger>[0-9a-f]{8})(?![A-Za-z0-9-])"
)


@dataclass(frozen=True, slots=True, order=True)
class Deployment:
    """One deployment. `ledger` is what its ledger is called, 8 hexadecimal digits: two of one name have two ledgers.

    Its text is the name of its role sessions, and stands in its user agent: at most 38 characters of letters, digits
    and hyphens. AWS, Alibaba Cloud and Tencent Cloud take 2 to 64 of them (AssumeRole: RoleSessionName).
    """

    name: str
    ledger: str

    def __str__(self) -> str:
        return f"costguard-{self.name}-{self.ledger}"


def deployments_in(text: str) -> Iterator[Deployment]:
    """Every mark in a text."""
    for found in _MARK.finditer(text):
        yield Deployment(found["name"], found["ledger"])
