"""What reads clouds. Read-only: a read that failed raises or returns a gap, never an empty result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.money import HourlyRate, Money, SpendReport, SpendScope, VendorBudget
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Gap, Instance, InstanceDetail, Inventory, Launch, Volume
from costguard.domain.signals import SignalReading


@dataclass(frozen=True, slots=True)
class Target:
    """An account to guard. `regions` None means every region opted in; an empty tuple means none.

    `account` empty means whatever account the credentials belong to. `role` is assumed with
    `external_id` when given. `organisation` True also adds the accounts its organisation lists. `common_role`: the role
    is the one for all guarded accounts, which the account that the credentials belong to need not have.
    """

    cloud: str
    account: str = ""
    regions: tuple[str, ...] | None = None
    role: str = ""
    external_id: str = ""
    owner: str = ""
    organisation: bool = False
    common_role: bool = False

    @property
    def own_role(self) -> str:
        """What is assumed where the account is the credentials' own: what was said for this very account."""
        return "" if self.organisation or self.common_role else self.role


@dataclass(frozen=True, slots=True)
class Discovery:
    """The shards of a target, and what could not be listed.

    `closed_accounts` are those the organisation says are closed; only they may have cases closed as gone. `accounts`
    are all that belong to the target, where they could be listed.
    """

    shards: tuple[Shard, ...]
    gaps: tuple[Gap, ...] = ()
    closed_accounts: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


class InventorySource(Protocol):
    """Reads what runs. Read-only."""

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; a region not opted in is not a gap.

        With no regions at all (an empty tuple) accounts are listed and none of them is entered.
        """

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard, all pages, in every state but long-terminated.

        Raises:
            ClosedRegionError: the organisation denies everything there. Nothing is known of what runs there.
            ProviderError: not even a part could be read.
        """

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with volumes, snapshots, kept addresses and the protections that a listing tells.

        Instances that are gone are absent from the answer. May be repeated; batches where the API allows. Nothing is
        asked that costs a request for each protection of each machine: that stays in `unread_protections`.

        Raises:
            ProviderError: anything that leaves the answer incomplete.
        """

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """Those of `wanted` that are set at this moment, of the ones that `details` leaves unread.

        A cloud that lists its protections leaves none unread, and is not asked.

        Raises:
            NotFoundError: the machine is gone.
            ProviderError: one of them could not be read: none of them counts as off.
        """


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """Who launched what. An instance in neither has no event in the trail, which is no gap: trails forget."""

    launches: Mapping[ResourceRef, Launch]
    gaps: tuple[Gap, ...] = ()


class CloudAuditLog(Protocol):
    """Reads the cloud's own audit trail. Read-only, slow and rationed: asked only for whom nobody else can name."""

    def launches(self, instances: Sequence[Instance]) -> LaunchReport:
        """Who started each of these instances of one shard; what the trail no longer remembers is absent."""

    def deployments(self, shard: Shard, since: datetime) -> Mapping[Deployment, datetime]:
        """Which deployments that enforce asked this trail since then, each with when it last did: our own among them.

        Asking leaves the mark that others find: every deployment that may act asks in each run. A few pages, the
        newest first; what lies further back is not looked at.

        Raises:
            ProviderError: the trail could not be read.
        """


@dataclass(frozen=True, slots=True)
class SignalReport:
    """Signals by instance. An instance absent from `readings` had a failed read, named in `gaps`."""

    readings: Mapping[ResourceRef, SignalReading]
    gaps: tuple[Gap, ...] = ()


class SignalSource(Protocol):
    """Reads how busy instances were. Read-only."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every signal found from `since` to `until`, for instances of one shard."""


class PriceSource(Protocol):
    """List prices. None means unknown, which never counts as zero."""

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """Hourly on-demand or spot list price by instance; unknown ones are absent."""

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """What goes on billing after a stop, by line (`volume`, `public_address`), an hour."""

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """Upper bound for keeping a full snapshot of `volume`, an hour."""


class SpendSource(Protocol):
    """Reads what was billed. Read-only, and on some clouds paid for by the request."""

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The charges of each scope from `since` to `until`, as `target`'s payer is billed.

        With `target.organisation` the bill of all its accounts, else only of its own. Lines are daily or finer and
        may begin before `since` or end after `until`. A scope that cannot hold anything of this cloud gets an empty
        report, complete up to `until`. Whatever could not be read is a gap of the report, never an empty list.
        """

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """The budgets set up in the cloud's own console.

        Raises:
            ProviderError: they could not all be read.
        """


class KeySource(Protocol):
    """Reads encryption keys. Read-only."""

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the shard with its rotation setting, all pages; the cloud's own service keys included.

        A region where the service is not opened or not offered has no keys, once the vendor's own code says so.

        Raises:
            ClosedRegionError: the organisation denies everything there.
            ProviderError: not even a part could be read.
        """

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key read anew and whole, but for what uses it; None when it is gone.

        Raises:
            ProviderError: anything of it could not be read.
        """


class NetworkSource(Protocol):
    """Reads networks: VPCs, routes, groups, access lists, interfaces, addresses, gateways, flow logs. Read-only."""

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard, all pages; a part that could not be read is a gap of the answer.

        Raises:
            ProviderError: not even a part could be read.
        """


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often one vendor operation was called, and whether it can change anything."""

    operation: str
    permission: str
    calls: int
    changes_something: bool


class CallLog(Protocol):
    """Shows what the credentials did."""

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation sent so far by this process, counted where requests leave it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the credentials are: the account they belong to and the principal's own name there."""

    cloud: str
    account: str
    name: str


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether one operation is allowed in one shard. `allowed` None: the cloud cannot tell without doing it.

    `detail` is the vendor's own word on it, secrets removed; `fix` the permission to grant. `feature` is what the
    provider's table of operations says it is for (`inventory`, `metrics`, `prices`, `stop`, …), so that a missing
    permission which no rule needs bars nothing; empty counts as needed.
    """

    shard: Shard
    operation: str
    allowed: bool | None
    detail: str = ""
    fix: str = ""
    feature: str = ""


class Preflight(Protocol):
    """Asks a cloud, before anything is done, what these credentials are and may do. Changes nothing."""

    def caller(self) -> Caller:
        """Who we are.

        Raises:
            ProviderError: no credentials, or the cloud does not accept them.
        """

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """Every operation that scanning uses there, and with `acting` also those that change something.

        `instances` are some of the shard's, for dry runs that need a real id; with none, what needs one is untold.

        Raises:
            OutcomeUnknownError: what was asked as a dry run may have been done: nothing further is asked.
        """

    def clock_skew(self) -> timedelta | None:
        """The cloud's clock less ours, to about a second; None where no answer told it."""
