"""Where things stand and what they are called; a display name never identifies."""

from __future__ import annotations

from dataclasses import dataclass


def provider_of(cloud: str) -> str:
    """`aws-cn` → `aws`: a cloud without its partition or site."""
    return cloud.split("-", 1)[0]


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """One region of one account of one cloud (`aws`, `aws-cn`, `alibaba-intl`, …)."""

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
class Ref:
    """One thing in a place. `native_id` is the vendor's own id (`i-0abc…`), `kind` a word of ours (`volume`)."""

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
    def shard(self) -> Place:
        """Where it stands."""
        return Place(self.cloud, self.account, self.region)

    def sibling(self, kind: str, native_id: str) -> Ref:
        """Another thing of the same account and region."""
        return Ref(self.cloud, self.account, self.region, kind, native_id)

    def __str__(self) -> str:
        return f"{self.cloud}:{self.account}:{self.region}:{self.kind}:{self.native_id}"
