"""What stands in a world at its beginning, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b

from cloudstand.world.kinds import Accelerator, Billing, InstanceState, ManagedBy
from cloudstand.world.money import Money
from cloudstand.world.places import Place, Ref, provider_of
from cloudstand.world.workload import Workload

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
    """A persistent disk attached to a machine. `snapshots_fail` makes every copy of it end in failure.

    `key_id` names the key it is encrypted with, empty for none. `snapshot_takes` is how long a copy is pending; None
    means that its size decides.
    """

    size_gib: int
    device: str = "/dev/sda1"
    volume_type: str = "gp3"
    deleted_with_instance: bool = True
    key_id: str = ""
    snapshots_fail: bool = False
    snapshot_takes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One machine as the world begins.

    `hourly` is its on-demand list price, None where nobody quotes one. `one_time_spot` cannot stop;
    `no_capacity` means that it will not start again once stopped. `protections` are the cloud's own
    (`termination_protection`, `stop_protection`). `stopped_since` goes with a state of stopped.

    `public_ip` is the address in use; without `kept_address` it is a plain one, which a stop releases.
    None is for a cloud that says null where it has none. `stop_takes` None means the usual minute.
    `stop_keeps_billing`: a stop succeeds and the machine is billed all the same (Alibaba's economical mode
    ignored, Tencent's STOP_CHARGING not to be had). `recycles`: the first terminate only puts it into Tencent's
    recycle bin; prepaid ones there always do. `prepaid_until` goes with `Billing.PREPAID`; None is still unexpired.

    `resource_group` is the id of its resource group, on Tencent the number of its project. `launched_by` is who
    launched it, by the audit trail (`user/vision`, `role/train/vision`, `service/autoscaling`); empty: no such event.

    `discount` is the share, 0 to 1, that its owner's contract takes off the list price of its on-demand hours.

    Raises:
        ValueError: something this cloud does not have.
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
    public_ip: str | None = ""
    stop_takes: timedelta | None = None
    stop_keeps_billing: bool = False
    recycles: bool = False
    prepaid_until: datetime | None = None
    resource_group: str = ""
    launched_by: str = ""
    discount: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        provider = provider_of(self.cloud)
        impossible = {
            "recycles": self.recycles and provider != "tencent",  # the only one with a recycle bin
            "stop_keeps_billing": self.stop_keeps_billing and provider == "aws",  # EC2 bills no stopped instance
            "one_time_spot": self.one_time_spot and provider != "aws",
            "resource_group": bool(self.resource_group) and provider == "aws",  # EC2 tells none
            "prepaid_until": self.prepaid_until is not None and self.billing is not Billing.PREPAID,
        }
        for name, wrong in impossible.items():
            if wrong:
                message = f"{self.native_id}: {name} does not go with {self.cloud} and {self.billing.value}"
                raise ValueError(message)

    @property
    def ref(self) -> Ref:
        """What the machine is called everywhere."""
        return Ref(self.cloud, self.account, self.region, "instance", self.native_id)

    @property
    def shard(self) -> Place:
        """The region of the account it stands in."""
        return self.ref.shard


def made_up_id(cloud: str, kind: str, *parts: str) -> str:
    """An id in the vendor's form that always belongs to the same words."""
    digest = blake2b("/".join((kind, *parts)).encode(), digest_size=9).hexdigest()
    return _PREFIXES[cloud.split("-", 1)[0]][kind] + digest[:17]


@lru_cache(maxsize=4096)
def made_up_request_id(*parts: str) -> str:
    """A request id as Tencent writes them, a UUID that always belongs to the same words."""
    digest = blake2b("/".join(parts).encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def made_up_key_id(*parts: str) -> str:
    """The id of an encryption key, a UUID on every cloud, that always belongs to the same words."""
    return made_up_request_id("key", *parts)


def made_up_rule_id(*parts: str) -> str:
    """The id of a security group's rule that always belongs to the same words."""
    return "sgr-" + blake2b("/".join(("rule", *parts)).encode(), digest_size=9).hexdigest()[:17]


def made_up_address(*parts: str) -> str:
    """A public address from the block kept for examples (RFC 5737) that always belongs to the same words."""
    return f"203.0.113.{blake2b('/'.join(parts).encode(), digest_size=1).digest()[0]}"
