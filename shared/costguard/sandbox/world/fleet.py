"""What stands in a world at its beginning, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, InstanceState, ManagedBy
from costguard.sandbox.world.workload import Workload

_PREFIXES = {
    "aws": {
        "instance": "i-",
        "volume": "vol-",
        "snapshot": "snap-",
        "address": "eipalloc-",
        "reservation": "cr-",
    },
    "alibaba": {"instance": "i-", "volume": "d-", "snapshot": "s-", "address": "eip-"},
    "tencent": {"instance": "ins-", "volume": "disk-", "snapshot": "snap-", "address": "eip-"},
}


@dataclass(frozen=True, slots=True)
class Disk:
    """A persistent disk attached to a machine. `snapshots_fail` makes every copy of it end in failure."""

    size_gib: int
    device: str = "/dev/sda1"
    volume_type: str = "gp3"
    deleted_with_instance: bool = True
    snapshots_fail: bool = False


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One machine as the world begins.

    `hourly` is its on-demand list price, None where nobody quotes one. `one_time_spot` cannot stop;
    `no_capacity` means that it will not start again once stopped. `protections` are the cloud's own
    (`termination_protection`, `stop_protection`). `stopped_since` goes with a state of stopped.
    """

    cloud: str
    account: str
    region: str
    native_id: str
    instance_type: str
    accelerator: Accelerator
    hourly: Money | None
    launched_at: datetime
    workload: Workload
    name: str = ""
    zone: str = ""
    state: InstanceState = InstanceState.RUNNING
    stopped_since: datetime | None = None
    billing: Billing = Billing.ON_DEMAND
    one_time_spot: bool = False
    no_capacity: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    managed_by: ManagedBy | None = None
    disks: tuple[Disk, ...] = (Disk(100),)
    local_disk_gib: float | None = 0.0
    kept_address: bool = False
    protections: tuple[str, ...] = ()

    @property
    def ref(self) -> ResourceRef:
        """What the machine is called everywhere."""
        return ResourceRef(self.cloud, self.account, self.region, "instance", self.native_id)

    @property
    def shard(self) -> Shard:
        """The region of the account it stands in."""
        return self.ref.shard


def made_up_id(cloud: str, kind: str, *parts: str) -> str:
    """An id in the vendor's form that always belongs to the same words."""
    digest = blake2b("/".join((kind, *parts)).encode(), digest_size=9).hexdigest()
    return _PREFIXES[cloud.split("-", 1)[0]][kind] + digest[:17]
