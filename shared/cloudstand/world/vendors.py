"""In what the clouds differ: one table, so that a difference is a value and not a branch.

What is documented is named with its API; what no document says is taken the way that is worst for the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing
from cloudstand.world.places import provider_of

_NEVER = timedelta(0)
_PREPAID_BIN, _POSTPAID_BIN = timedelta(days=7), timedelta(hours=2)  # until Tencent empties its recycle bin by itself

Epoch = Callable[[datetime], str]
"""What a cloud tells of a run by the time at which it began."""


def _launch_time(launched_at: datetime) -> str:
    """EC2 LaunchTime: to the second."""
    return launched_at.replace(microsecond=0).isoformat()


def _start_time(launched_at: datetime) -> str:
    """ECS StartTime: to the minute only, so two starts within one minute have the same."""
    return launched_at.strftime("%Y-%m-%dT%H:%MZ")


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one cloud behaves where others behave otherwise.

    `epoch` None: the cloud tells the latest operation and the id of its request, and no time of a start.
    `repeats_succeed`: stopping what is stopped and starting what runs is no error. `terminated_shown_for`: how long
    an ended machine is still listed. `denied_list_is_empty`: who may not list gets an empty answer, no error.
    `lists_protection`: DescribeInstances itself tells termination protection. `tells_stop_time`: so it does when
    a machine was stopped. `one_copy_at_a_time`: a disk being copied cannot be copied again. `copied_at_once`: how many
    disks of a machine one call copies as they are at one moment, as far as it is shown here. `zones_apart`: of a batch,
    the zones without a protected machine go through. `prepaid_stays`: an unexpired prepaid machine cannot be
    deleted. `drops_ip_at_once`: the plain public address is gone, and null, as soon as a stop begins.
    `whole_minutes`: times are told to the minute. The bill is renewed every `bill_every`, and then holds the charges up
    to `bill_delay` before; `bill_final` after its end a month has all of its charges.
    """

    epoch: Epoch | None
    repeats_succeed: bool = False
    terminated_shown_for: timedelta = _NEVER
    denied_list_is_empty: bool = False
    lists_protection: bool = True
    tells_stop_time: bool = False
    one_copy_at_a_time: bool = True
    copied_at_once: int = 1
    zones_apart: bool = False
    prepaid_stays: bool = False
    drops_ip_at_once: bool = False
    whole_minutes: bool = False
    bill_delay: timedelta = timedelta(hours=8)
    bill_every: timedelta = timedelta(hours=16)
    bill_final: timedelta = timedelta(days=7)


_VENDORS: Mapping[str, Vendor] = MappingProxyType(
    {
        # TerminateInstances ends prepaid machines like any other: a Reserved Instance is a discount, not a machine
        "aws": Vendor(
            _launch_time,
            repeats_succeed=True,
            terminated_shown_for=timedelta(hours=1),  # "approximately one hour"
            lists_protection=False,  # DescribeInstanceAttribute, one attribute a call
            tells_stop_time=True,  # in StateTransitionReason
            one_copy_at_a_time=False,
            copied_at_once=128,  # CreateSnapshots; EBS user guide, "Create multi-volume Amazon EBS snapshots"
            zones_apart=True,
            bill_delay=timedelta(hours=8),  # Cost Explorer is 8 to 24 hours behind
            bill_every=timedelta(hours=16),
            bill_final=timedelta(days=7),  # support "on the sixth or seventh of the month for the prior month"
        ),
        "alibaba": Vendor(
            _start_time,
            denied_list_is_empty=True,
            prepaid_stays=True,
            whole_minutes=True,
            bill_delay=timedelta(hours=5),  # 5 to 24 hours behind
            bill_every=timedelta(hours=19),
            bill_final=timedelta(
                days=3, hours=12
            ),  # "12:00 on the 3rd of the following month"; split bills a day later
        ),
        "tencent": Vendor(
            None,
            drops_ip_at_once=True,
            bill_delay=timedelta(hours=10),  # yesterday's bill is there in the morning, China's time
            bill_every=timedelta(hours=24),
            bill_final=timedelta(days=4, hours=1),  # "generated at 1:00 on the 5th of the next month"
        ),
    }
)


def vendor_of(cloud: str) -> Vendor:
    """How this cloud behaves; partitions and sites of one provider behave alike."""
    return _VENDORS[provider_of(cloud)]


def told_time(vendor: Vendor, moment: datetime) -> datetime:
    """A time as the cloud tells it."""
    return moment.replace(second=0, microsecond=0) if vendor.whole_minutes else moment


def billed_when_stopped(spec: MachineSpec) -> bool:
    """Whether a stop of this machine succeeds and ends no bill, which the cloud admits only afterwards.

    Alibaba: StoppedMode says KeepCharging or Not-applicable for types with local disks, prepaid ones and some more.
    Tencent: StopChargingMode says KEEP_CHARGING or NOT_APPLICABLE. EC2 bills no stopped instance, and says nothing
    of what was paid for otherwise.
    """
    provider = provider_of(spec.cloud)
    if provider == "aws":
        return False
    local = provider == "alibaba" and spec.local_disk_gib is not None and spec.local_disk_gib > 0
    return spec.stop_keeps_billing or spec.billing is Billing.PREPAID or local


def bin_keeps(spec: MachineSpec) -> timedelta | None:
    """How long Tencent's recycle bin keeps this machine after a terminate; None where it is destroyed at once.

    The API's own text says so of prepaid machines only; the user guide also of pay-as-you-go ones. Hence the flag.
    """
    if provider_of(spec.cloud) != "tencent":
        return None
    if spec.billing is Billing.PREPAID:
        return _PREPAID_BIN
    return _POSTPAID_BIN if spec.recycles else None
