"""What a world is made of while time passes: machines, disks, copies, addresses, and what happened to them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from cloudstand.world.fleet import Disk, MachineSpec, made_up_request_id
from cloudstand.world.kinds import InstanceState, SnapshotState
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.places import Place, Ref
from cloudstand.world.vendors import Vendor, billed_when_stopped
from cloudstand.world.workload import SignalName, Workload

STOPPING_OPERATION = "StopInstances"
POWER_CUT = "power_cut"  # what a history says of a machine that was not shut down by its own system
ENDING_OPERATIONS = (STOPPING_OPERATION, "TerminateInstances")  # in CVM's own words
ENDED = (InstanceState.TERMINATING, InstanceState.TERMINATED, InstanceState.UNKNOWN)
"""States in which a machine can only still be destroyed; `UNKNOWN` is the recycle bin."""


class Refusal(str, Enum):
    """Why a cloud says no; each wire has its own code for it.

    `PREPAID`, `REFUND_QUOTA` and `MIXED_BILLING` (more than one charge type in a call) are not AWS's.
    """

    NOT_FOUND = "not_found"
    WRONG_STATE = "wrong_state"
    CANNOT_STOP = "cannot_stop"
    STOP_PROTECTED = "stop_protected"
    TERMINATION_PROTECTED = "termination_protected"
    NO_CAPACITY = "no_capacity"
    DENIED = "denied"
    PREPAID = "prepaid"
    REFUND_QUOTA = "refund_quota"
    MIXED_BILLING = "mixed_billing"
    COPY_UNDER_WAY = "copy_under_way"


class WorldRefusalError(Exception):
    """The cloud refused and nothing changed; the caller translates `refusal` into its own words."""

    def __init__(self, refusal: Refusal, native_id: str) -> None:
        super().__init__(f"{refusal.value}: {native_id}")
        self.refusal = refusal
        self.native_id = native_id


class WorldPartialEffectError(Exception):
    """The cloud reports failure although part of the batch went through: `done` are ending."""

    def __init__(self, refusal: Refusal, native_id: str, done: tuple[str, ...]) -> None:
        super().__init__(f"{refusal.value}: {native_id}; all the same ended: {', '.join(done)}")
        self.refusal = refusal
        self.native_id = native_id
        self.done = done


class Operation(str, Enum):
    """What the program's own role may be denied; owners are not asked."""

    LIST = "list"
    DISKS = "disks"
    SIGNALS = "signals"
    STOP = "stop"
    START = "start"
    TERMINATE = "terminate"
    SNAPSHOT = "snapshot"
    BILL = "bill"
    KEYS = "keys"
    ROTATE = "rotate"
    SUCCEED = "succeed"
    NETWORK = "network"
    FIX_NETWORK = "fix_network"
    TRAIL = "trail"
    SECRETS = "secrets"

    @classmethod
    def _missing_(cls, value: object) -> Operation | None:
        """The vendors' own names are understood as well."""
        return {
            "DescribeInstances": cls.LIST,
            "DescribeVolumes": cls.DISKS,
            "DescribeDisks": cls.DISKS,
            "GetMetricData": cls.SIGNALS,
            "DescribeMetricList": cls.SIGNALS,
            "GetMonitorData": cls.SIGNALS,
            "StopInstances": cls.STOP,
            "StartInstances": cls.START,
            "TerminateInstances": cls.TERMINATE,
            "DeleteInstances": cls.TERMINATE,
            "CreateSnapshot": cls.SNAPSHOT,
            "LookupEvents": cls.TRAIL,
            "DescribeEvents": cls.TRAIL,
        }.get(str(value))


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened.

    `by` is who did it (`api`, `owner`, `costguard`), or `cloud` for what completed by itself.
    `native_id` is what it happened to, `machine` the machine it belongs to.
    """

    at: datetime
    by: str
    what: str
    native_id: str
    machine: str = ""


@dataclass(frozen=True, slots=True)
class TrailLook:
    """One question to the audit trail, which records it too: by whom, as far as an audit trail says that."""

    at: datetime
    shard: Place
    session: str = ""
    agent: str = ""

    @property
    def event_id(self) -> str:
        """The trail's own id."""
        return made_up_request_id("look", str(self.shard), self.session, self.agent, self.at.isoformat())


@dataclass(slots=True)
class WorldVolume:
    """A disk; `machine` is empty once it is detached. Copies begun while `snapshots_fail` is set will fail."""

    native_id: str
    disk: Disk
    machine: str
    tags: dict[str, str] = field(default_factory=dict)
    deleted_at: datetime | None = None
    snapshots_fail: bool = False
    cloud: str = ""
    created_at: datetime | None = None


@dataclass(slots=True)
class WorldSnapshot:
    """A copy of one volume, complete from `completes_at` on unless it fails.

    Those of one `set_id` were begun by one call; where one of them fails, all have failed.
    """

    native_id: str
    volume: str
    machine: str
    size_gib: int
    started_at: datetime
    completes_at: datetime
    state: SnapshotState
    fails: bool
    decision_id: str
    tags: dict[str, str]
    description: str = ""
    set_id: str = ""


@dataclass(slots=True)
class WorldAddress:
    """A public address that is paid for until released; `machine` is empty once it points nowhere."""

    native_id: str
    machine: str


@dataclass(frozen=True, slots=True)
class OtherCharge:
    """A charge for something that is no machine: a platform's notebook, support, a tax, a voucher, a refund.

    `service` is our word for it: `ai_platform` (SageMaker, PAI, TI-ONE), `support`, `tax`, `credit`, `refund`.
    """

    cloud: str
    account: str
    region: str
    service: str
    category: ChargeCategory
    start: datetime
    end: datetime
    money: Money
    native_id: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


class Silence(NamedTuple):
    """A span without device samples, with `all_signals` without any. Unix time; `until` may be infinite."""

    since: float
    until: float
    all_signals: bool


@dataclass(slots=True)
class PastHours:
    """The whole hours of one series from `begin` on (Unix time), as measured under this work and these silences."""

    workload: Workload
    silences: tuple[Silence, ...]
    begin: int
    maxima: array[float]
    samples: array[int]


@dataclass(slots=True)
class Machine:
    """A machine as it is now. `runs` are its times of running, the last open while it runs.

    `state` is `UNKNOWN` in Tencent's recycle bin (`recycled_at`): the bin is no state that may be acted on. As
    `STOPPED` it would invite the terminate that destroys for good, as `TERMINATED` it would be taken for gone
    while its owner can still have it back.
    """

    spec: MachineSpec
    ref: Ref
    shard: Place
    vendor: Vendor
    state: InstanceState
    launched_at: datetime
    workload: Workload
    tags: dict[str, str]
    protections: set[str]
    runs: list[tuple[datetime, datetime | None]]
    public_ip: str | None = ""
    starts: int = 1
    operations: int = 1
    latest_operation: str = "RunInstances"
    changes_at: datetime | None = None
    stop_requested_at: datetime | None = None
    terminate_requested_at: datetime | None = None
    terminated_at: datetime | None = None
    recycled_at: datetime | None = None
    local_disk_is_empty: bool = False
    silences: tuple[Silence, ...] = ()
    past: dict[tuple[SignalName, int | None], PastHours] = field(default_factory=dict, repr=False, compare=False)

    @property
    def native_id(self) -> str:
        """The vendor's id."""
        return self.spec.native_id

    @property
    def latest_request_id(self) -> str:
        """The id of the request that changed the machine last."""
        return made_up_request_id(self.native_id, self.latest_operation, str(self.operations))

    @property
    def run_epoch(self) -> str:
        """What changes with each start, as precisely as the cloud tells it.

        Of what is stopped or ended, a cloud that tells the latest operation only tells no run.
        """
        if self.vendor.epoch is not None:
            return self.vendor.epoch(self.launched_at)
        return "" if self.latest_operation in ENDING_OPERATIONS else self.latest_request_id

    @property
    def stopped_by(self) -> str:
        """The request that stopped it, where the cloud tells that instead of the run."""
        told = self.vendor.epoch is None and self.latest_operation == STOPPING_OPERATION
        return self.latest_request_id if told else ""

    @property
    def billed_while_stopped(self) -> bool:
        """Whether it is stopped and its cloud says that the bill goes on."""
        return self.state is InstanceState.STOPPED and billed_when_stopped(self.spec)
