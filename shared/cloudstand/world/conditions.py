"""What the surroundings do to a world: new work, lost metrics, denied permissions, failing copies, spent quotas."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import inf

from cloudstand.world.estate import CLOUD, Estate
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.places import Place
from cloudstand.world.records import Machine, Operation, OtherCharge, Refusal, Silence, WorldRefusalError
from cloudstand.world.vendors import vendor_of
from cloudstand.world.workload import Load


class Conditions(Estate):
    """An estate in which things go wrong when told to. All of it is in the history."""

    def __init__(self, fleet: Iterable[MachineSpec], now: datetime) -> None:
        super().__init__(fleet, now)
        self._denied: set[tuple[str, str, Operation]] = set()
        self._refunds: dict[tuple[str, str], int] = {}

    def work(self, native_id: str, load: Load, by: str = "owner") -> None:
        """From now on the machine does this; what its sensors said before stays as it was."""
        machine = self._machine(native_id)
        machine.workload = machine.workload.then(self.now, load)
        self._record(by, f"work at {load.gpu_percent:.0f} % GPU", native_id, native_id)

    def silence(
        self, native_id: str, since: datetime, until: datetime | None = None, *, all_signals: bool = False
    ) -> None:
        """No device sample from `since` to `until` exists, or ever did; with `all_signals` none of the cloud's either.

        `until` None means from then on.
        """
        machine = self._machine(native_id)
        end = inf if until is None else until.timestamp()
        machine.silences = (*machine.silences, Silence(since.timestamp(), end, all_signals))
        self._record(CLOUD, "silence", native_id, native_id)

    def snapshots_fail(self, volume_id: str, on: bool = True) -> None:  # noqa: FBT001, FBT002 - a switch
        """Whether copies of this volume begun from now on end in failure."""
        volume = self._volume(volume_id)
        volume.snapshots_fail = on
        self._record(CLOUD, "snapshots_fail" if on else "snapshots_work", volume_id, volume.machine)

    def refund_quota(self, cloud: str, account: str, left: int) -> None:
        """How many more prepaid machines Tencent takes back from this account; without it there is no limit."""
        self._refunds[cloud, account] = left
        self._record(CLOUD, f"refund_quota {left}", account, "")

    def charge(self, other: OtherCharge) -> None:
        """Something that is no machine is charged for; the bill shows it when it shows the time it is for."""
        self.other_charges.append(other)
        self._record(CLOUD, f"charge {other.service} {other.money}", other.native_id or other.account, "")

    def deny(self, cloud: str, account: str, operation: Operation | str) -> None:
        """From now on the program's own role may not do this in that account; vendors' names are understood."""
        self._denied.add((cloud, account, Operation(operation)))
        self._record("administrator", f"deny {Operation(operation).value}", account, "")

    def allow(self, cloud: str, account: str, operation: Operation | str) -> None:
        """Lift a denial."""
        self._denied.discard((cloud, account, Operation(operation)))
        self._record("administrator", f"allow {Operation(operation).value}", account, "")

    def may(self, cloud: str, account: str, operation: Operation) -> bool:
        """Whether the program's own role is permitted; what a dry run tells."""
        return (cloud, account, operation) not in self._denied

    def require(self, cloud: str, account: str, operation: Operation) -> None:
        """Pass, or be refused as a caller without the permission is.

        Raises:
            WorldRefusalError: DENIED.
        """
        if not self.may(cloud, account, operation):
            raise WorldRefusalError(Refusal.DENIED, account)

    def listing(self, shard: Place) -> Iterable[Machine]:
        """What DescribeInstances answers the program's own role.

        Where the role may not ask, Alibaba answers with nothing and without an error.

        Raises:
            WorldRefusalError: DENIED, on AWS and Tencent.
        """
        if vendor_of(shard.cloud).denied_list_is_empty:
            return self.machines_in(shard) if self.may(shard.cloud, shard.account, Operation.LIST) else ()
        self.require(shard.cloud, shard.account, Operation.LIST)
        return self.machines_in(shard)
