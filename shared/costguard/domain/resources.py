"""What the clouds hold, in neutral words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from costguard.domain.refs import ResourceRef, Shard


class InstanceState(str, Enum):
    """Where an instance is in its life; `UNKNOWN` is never acted on."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"


class Billing(str, Enum):
    """How an instance is paid for; `RESERVED` and `PREPAID` are shown, never touched.

    `RESERVED` is capacity already committed (capacity reservation, capacity block, dedicated host),
    `PREPAID` a term paid up front; `UNKNOWN` is treated as committed.
    """

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
    PREPAID = "prepaid"
    UNKNOWN = "unknown"


class AcceleratorKind(str, Enum):
    """Families of accelerators; only those with a device metric can be judged."""

    NVIDIA_GPU = "nvidia_gpu"
    AMD_GPU = "amd_gpu"
    NEURON = "neuron"
    GAUDI = "gaudi"
    QUALCOMM = "qualcomm"
    FPGA = "fpga"
    MEDIA = "media"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The devices of an instance type. `count` may be a fraction of a card (vGPU slices); memory is per device."""

    kind: AcceleratorKind
    model: str
    count: float
    memory_gib: float | None = None


class Keeper(str, Enum):
    """Who would undo or suffer from an action on an instance they manage."""

    AUTOSCALING = "autoscaling"
    KUBERNETES = "kubernetes"
    CLOUD_SERVICE = "cloud_service"
    CONTROLLER = "controller"
    COSTGUARD = "costguard"


@dataclass(frozen=True, slots=True)
class ManagedBy:
    """A controller that owns an instance: its kind and name (group, cluster, service)."""

    keeper: Keeper
    name: str


@dataclass(frozen=True, slots=True)
class Instance:
    """One accelerator instance as an inventory read saw it.

    `run_epoch` changes each time the instance starts. A cloud that does not tell the run of what is stopped
    tells who stopped it: then `run_epoch` is empty and `stopped_by` the id of that request. `launched_at` is the
    start of the current run, or an earlier moment where the cloud keeps that to itself; `created_at` the first ever
    where it says. `cannot_stop` is a vendor reason
    (`one_time_spot`, `instance_store_root`) or empty. `local_disk_gib` is storage that a stop destroys:
    0.0 none, None unknown (treated as present). `stopped_at` only where the cloud tells it.
    `protected_by` lists the cloud's own protections already visible in the listing.
    `billed_while_stopped`: the cloud says a stop did not end the billing of the instance. `paid_until`: when the
    term of a prepaid one ends or is renewed. `imds_v1`: its metadata answers without a session token; None: not told.
    `auto_renew`: whether a prepaid term is renewed by itself; None where the listing does not tell.
    `resource_group`: the id of its resource group or project, empty where the cloud tells none.
    `further_public_ips`: addresses of further network cards, where traffic is told by address; None: not read.
    """

    ref: ResourceRef
    instance_type: str
    accelerator: Accelerator
    state: InstanceState
    billing: Billing
    run_epoch: str
    launched_at: datetime | None
    name: str = ""
    zone: str = ""
    created_at: datetime | None = None
    stopped_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    managed_by: ManagedBy | None = None
    cannot_stop: str = ""
    local_disk_gib: float | None = None
    public_ip: str = ""
    public_ip_is_kept: bool = False
    further_public_ips: tuple[str, ...] | None = ()
    protected_by: tuple[str, ...] = ()
    operating_system: str = "linux"
    tenancy: str = "default"
    billed_while_stopped: bool = False
    stopped_by: str = ""
    paid_until: datetime | None = None
    imds_v1: bool | None = None
    auto_renew: bool | None = None
    resource_group: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """Who started an instance, by the cloud's audit trail: a user, or a role and its session's name.

    `by` is as the trail names them (`user/alice`, `role/train/alice`), `event_id` the trail's own id of the event.
    """

    by: str
    at: datetime
    event_id: str


@dataclass(frozen=True, slots=True)
class Volume:
    """A persistent disk attached to an instance; `monthly_gib_price` lives with prices, not here."""

    ref: ResourceRef
    size_gib: float
    volume_type: str
    device: str = ""
    deleted_with_instance: bool = False


class SnapshotState(str, Enum):
    """Only `COMPLETED` counts; anything unrecognised is `PENDING`."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of one volume. `decision_id` is the tag Costguard set when it made it, else empty."""

    ref: ResourceRef
    volume: ResourceRef
    state: SnapshotState
    started_at: datetime
    decision_id: str = ""


@dataclass(frozen=True, slots=True)
class InstanceDetail:
    """What a second, closer read of one instance found; needed before anything is done to it.

    `protected_by` are protections set at the cloud (`termination_protection`, `stop_protection`), and
    `unread_protections` those of which this read says nothing, since each costs a request: none is known to be off.
    `volumes` are the attached persistent disks; `snapshots` all existing ones of those volumes.
    `kept_addresses` are public addresses that go on billing after a stop or terminate. `copied_together`: its cloud
    copies all of `volumes` in one call, as they are at one moment.
    """

    instance: Instance
    volumes: tuple[Volume, ...]
    snapshots: tuple[Snapshot, ...]
    kept_addresses: tuple[ResourceRef, ...] = ()
    protected_by: tuple[str, ...] = ()
    copied_together: bool = False
    unread_protections: tuple[str, ...] = ()


class GapKind(str, Enum):
    """Why something could not be read."""

    DENIED = "denied"
    THROTTLED = "throttled"
    TRUNCATED = "truncated"
    UNAVAILABLE = "unavailable"
    DEADLINE = "deadline"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be read.

    `what` is `inventory`, `types`, `billing`, `details`, `signals`, `prices`, `launches`, `accounts` or `regions`.
    An inventory gap bars every action in its shard; a signals gap leaves its instances unmeasured; one of launches bars
    nothing.
    `detail` is the vendor's code and message, secrets removed; `fix` is the permission or setting missing.
    """

    shard: Shard
    what: str
    kind: GapKind
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One shard as read. A shard with an inventory gap is incomplete: an absent resource proves nothing.

    `instances_seen` counts every instance the cloud listed, accelerators or not.
    """

    shard: Shard
    instances: tuple[Instance, ...]
    gaps: tuple[Gap, ...] = ()
    instances_seen: int = 0

    @property
    def complete(self) -> bool:
        """Whether absence from `instances` means the resource does not exist."""
        return not any(gap.what == "inventory" for gap in self.gaps)
