"""What the engine needs from the world. Every adapter implements one of these; nothing above knows which.

Shared rules: adapters raise only `CostguardError` subclasses; a read that failed raises or returns a
gap, never an empty result; `now` comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from costguard.domain.actions import Action, Receipt
from costguard.domain.freeze import LaunchFreeze
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.mends import Mend
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Instance, InstanceDetail, Inventory, Volume
from costguard.domain.signals import SignalReading
from costguard.domain.spend import SpendReport, SpendScope, VendorBudget

Result = TypeVar("Result")


class Clock(Protocol):
    """Time, given from outside."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait; only the outbox may, and never longer than its channel's Retry-After."""


class Workers(Protocol):
    """Independent reads side by side; what ends first is given first."""

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        """Begin every task; yield the place and the result of each as it ends. What a task raises is raised here."""


@dataclass(frozen=True, slots=True)
class Target:
    """An account to guard. `regions` None means every region opted in; an empty tuple means none.

    `account` empty means whatever account the credentials belong to. `role` is assumed with
    `external_id` when given. `organisation` True also adds the accounts its organisation lists.
    """

    cloud: str
    account: str = ""
    regions: tuple[str, ...] | None = None
    role: str = ""
    external_id: str = ""
    owner: str = ""
    organisation: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The shards of a target, and what could not be listed.

    `closed_accounts` are those the organisation says are closed; only they may have cases closed as gone.
    """

    shards: tuple[Shard, ...]
    gaps: tuple[Gap, ...] = ()
    closed_accounts: tuple[str, ...] = ()


class InventorySource(Protocol):
    """Reads what runs. Read-only."""

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; a region not opted in is not a gap."""

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard, all pages, in every state but long-terminated."""

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with volumes, snapshots, kept addresses and protections.

        Instances that are gone are absent from the answer. May be repeated; batches where the API allows.

        Raises:
            ProviderError: anything that leaves the answer incomplete.
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
            ProviderError: not even a part could be read.
        """


class KeyRotator(Protocol):
    """Gives keys new material, and can do nothing else to them: there is no way to disable, delete or import.

    Each call once per intent, never retried after an unknown outcome; what came of it is read back by `KeySource`.
    Errors as `ActionExecutor.execute`.
    """

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period."""

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now, on demand."""


class NetworkSource(Protocol):
    """Reads networks: VPCs, routes, groups, access lists, interfaces, addresses, gateways, flow logs. Read-only."""

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard, all pages; a part that could not be read is a gap of the answer.

        Raises:
            ProviderError: not even a part could be read.
        """


class NetworkMender(Protocol):
    """Changes one setting of a network at a time.

    It can release, detach and attach an address, revoke, replace and restore one rule of a group, begin and end flow
    logs, and set the metadata service of an instance; there is no way to delete a group, route, subnet or network.
    """

    def change(self, mend: Mend, before: Mapping[str, str]) -> Receipt:
        """Make the change; `before` is the image it was decided on. Called once per intent, never retried.

        A cloud that can refuse a change to what has moved meanwhile is asked to. `Receipt.native_id` is the id of what
        was made, where something was (a flow log; the rules that replace one, with commas between).

        Raises:
            OutcomeUnknownError: the call may have taken effect; read before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused, or what is there is not what `before` says; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """


class FreezeControl(Protocol):
    """Attaches and detaches the one denying policy of a launch freeze, and nothing else."""

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """The ids of every policy attached to the freeze's target now, all pages.

        Raises:
            ProviderError: not read in full.
        """

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach `freeze.policy` to its target. Called once per intent, never retried after an unknown outcome.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission, or this is not the policy it may attach.
            RefusedError: the cloud refused; nothing changed.
        """

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach `freeze.policy` from its target; errors as `attach`."""


class ActionExecutor(Protocol):
    """Changes the cloud. Built only when a rule enforces; in observe there is none."""

    def execute(self, action: Action) -> Receipt:
        """Start `action`; return once the provider has accepted it. Accepted is not done.

        Called once per intent and never retried after an unknown outcome. One resource a call.

        Raises:
            OutcomeUnknownError: the call may have taken effect; describe before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """


@dataclass(frozen=True, slots=True)
class Record:
    """One remembered thing: `kind` and `key` name it, `version` counts its writes from 1.

    `body` is plain JSON (str, int, float, bool, None, list, dict); decimals and times travel as strings.
    """

    kind: str
    key: str
    body: Mapping[str, Any]
    version: int = 0
    schema: int = 1


@dataclass(frozen=True, slots=True)
class Put:
    """Write `record`; `expect_version` 0 means it must not exist yet."""

    record: Record
    expect_version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Fail the transaction unless the record is at `version` (0: absent)."""

    kind: str
    key: str
    version: int


class RecordStore(Protocol):
    """Durable memory with compare-and-set. Keys sort as UTF-8 bytes; a store serves many threads."""

    @property
    def durable(self) -> bool:
        """Whether records outlive the process; enforcing refuses a store that does not."""

    def get(self, kind: str, key: str) -> Record | None:
        """The current record, strongly consistent, or None."""

    def put(self, record: Record, expect_version: int) -> Record:
        """Write if the stored version is `expect_version` (0: absent); returns it with its new version.

        Raises:
            VersionConflictError: someone else wrote first; nothing was changed.
        """

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Records of `kind` whose key starts with `prefix` and sorts after `after`, in key order, all pages."""

    def transact(self, operations: Sequence[Put | Check]) -> None:
        """All or nothing, at most 100 operations.

        Raises:
            VersionConflictError: at least one expectation failed; nothing was changed.
        """

    def close(self) -> None:
        """Release connections; the store is not used afterwards."""


@dataclass(frozen=True, slots=True)
class Message:
    """A notice ready for a channel, neutral: each notifier lays it out in its channel's own form.

    `channel` is an address (`slack:#gpu-costs`), `fields` are label and value, `lines` closing sentences,
    `text` the whole as plain lines for channels and screens without layout. Everything in it may come
    from outside (tags, names): notifiers escape. `thread` is the receipt of a message to reply under.
    `notice_id` is the same for every attempt to deliver one notice, so that a channel can tell a repetition; empty
    for what is sent only once.
    """

    channel: str
    title: str
    text: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    notice_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Proof that a channel took a message: Slack's `ts`, an SMTP 250, a webhook's 2xx."""

    receipt: str
    proves_delivery: bool = True


class Notifier(Protocol):
    """Brings one message to people."""

    def send(self, message: Message) -> Delivery:
        """Deliver now, once.

        Raises:
            RateLimitedError: try again after its `retry_after`.
            RejectedNoticeError: never deliverable as it is.
            NoticeError: not delivered for a passing reason.
        """


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The files of a policy as read: path → text, in path order, and a revision (commit, ETag, or hash)."""

    files: Mapping[str, str]
    revision: str
    origin: str = ""


class PolicySource(Protocol):
    """Where policies are kept: a file, a folder, or an object store."""

    def read(self) -> PolicyText:
        """All policy files, whole.

        Raises:
            InvalidInputError: nothing there, or not text.
            ProviderError: the store could not be read.
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
