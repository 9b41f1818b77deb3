"""The clouds as a state machine in time: machines, disks, copies and addresses, and all that ever happened to them.

Everything that happens goes through here, whoever asks: a wire, a port, or an owner in a story. Calls take
effect at the time of the last `tick`; what takes time (a stop, a snapshot) completes in a later `tick`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.records import (
    ENDED,
    POWER_CUT,
    STOPPING_OPERATION,
    Machine,
    Operation,
    Refusal,
    WorldPartialEffectError,
    WorldRefusalError,
)
from cloudstand.world.storage import Storage
from cloudstand.world.vendors import billed_when_stopped, bin_keeps

START_TAKES = timedelta(seconds=30)
STOP_TAKES = timedelta(seconds=60)
TERMINATE_TAKES = timedelta(seconds=45)


class World(Storage):
    """All clouds of one story. Not thread-safe: whoever serves threads puts a lock before it."""

    def stop(self, native_id: str, by: str, *, forced: bool = False) -> None:
        """Ask a machine to stop; on AWS one already stopped stays so.

        `forced`: its power is cut, and what its system had not written yet is lost.

        Raises:
            WorldRefusalError: NOT_FOUND, WRONG_STATE, CANNOT_STOP (one-time Spot) or STOP_PROTECTED.
        """
        machine = self._checked(Operation.STOP, native_id)
        if machine.state is not InstanceState.RUNNING:
            return
        self._operate(machine, STOPPING_OPERATION)
        takes = machine.spec.stop_takes
        self._move(machine, InstanceState.STOPPING, STOP_TAKES if takes is None else takes)
        machine.stop_requested_at = self.now
        self._record(by, "stop", native_id, native_id)
        if forced:
            self._record(by, POWER_CUT, native_id, native_id)
        self._end_run(machine)
        if machine.vendor.drops_ip_at_once and not billed_when_stopped(machine.spec):
            self._release_public_ip(machine)

    def start(self, native_id: str, by: str) -> None:
        """Start a stopped machine: a new run begins. On AWS one that runs goes on.

        Raises:
            WorldRefusalError: NOT_FOUND, WRONG_STATE or NO_CAPACITY.
        """
        machine = self._checked(Operation.START, native_id)
        if machine.state is InstanceState.STOPPED:
            self._begin_run(machine)
            self._move(machine, InstanceState.PENDING, START_TAKES)
            self._record(by, "start", native_id, native_id)

    def terminate(self, native_id: str, by: str, *, forced: bool = False) -> None:
        """End a machine for good; one already ended stays so. `forced`: as for a stop, where it runs.

        What goes to Tencent's recycle bin is only put there by the first call; the second, even before it has
        arrived there, destroys it: no document says that such a call is refused.

        Raises:
            WorldRefusalError: NOT_FOUND, TERMINATION_PROTECTED, PREPAID or REFUND_QUOTA.
        """
        machine = self._checked(Operation.TERMINATE, native_id)
        if machine.state is InstanceState.TERMINATED:
            return
        again = machine.terminate_requested_at is not None
        recycles = bin_keeps(machine.spec) is not None
        if again and not recycles:
            return
        self._record(by, "terminate", native_id, native_id)
        if forced and machine.state is InstanceState.RUNNING:
            self._record(by, POWER_CUT, native_id, native_id)
        self._operate(machine, "TerminateInstances")
        if again:
            self._destroy(machine, by, "destroyed")
            return
        if machine.spec.billing is Billing.PREPAID and self._account(machine) in self._refunds:
            self._refunds[self._account(machine)] -= 1
        self._move(machine, InstanceState.TERMINATING, TERMINATE_TAKES)
        machine.terminate_requested_at = self.now
        self._end_run(machine)

    def terminate_many(self, native_ids: Sequence[str], by: str) -> None:
        """One call for several machines of one shard, as each cloud documents it.

        EC2: an unknown id fails the whole call; a protected machine fails its own zone only, and the call
        reports failure although the other zones go through. Tencent takes one charge type a call. Elsewhere
        it is all or nothing.

        Raises:
            WorldPartialEffectError: reported as failed, and yet some of them end.
            WorldRefusalError: nothing was changed.
        """
        machines = [self._machine(native_id) for native_id in dict.fromkeys(native_ids)]
        refused: dict[str, Refusal] = {}
        for machine in machines:
            refusal = self.refusal(Operation.TERMINATE, machine.native_id)
            if refusal is Refusal.NOT_FOUND:
                raise WorldRefusalError(refusal, machine.native_id)
            if refusal is not None:
                refused[machine.native_id] = refusal
            if machine.ref.provider == "tencent" and machine.spec.billing is not machines[0].spec.billing:
                raise WorldRefusalError(Refusal.MIXED_BILLING, machine.native_id)
        self._check_refunds(machines)
        barred = {_zone(machine) for machine in machines if machine.native_id in refused}
        done = [machine.native_id for machine in machines if _zone(machine) not in barred]
        for native_id in done:
            self.terminate(native_id, by)
        for native_id, refusal in refused.items():
            if done:
                raise WorldPartialEffectError(refusal, native_id, tuple(done))
            raise WorldRefusalError(refusal, native_id)

    def restore(self, native_id: str, by: str) -> None:
        """Take a machine out of Tencent's recycle bin: it is stopped, as if nothing had been.

        Raises:
            WorldRefusalError: NOT_FOUND or WRONG_STATE.
        """
        machine = self._machine(native_id)
        if machine.state is not InstanceState.UNKNOWN:
            raise WorldRefusalError(Refusal.WRONG_STATE, native_id)
        machine.state = InstanceState.STOPPED
        machine.changes_at = machine.recycled_at = machine.terminate_requested_at = None
        self._operate(machine, "RecoverInstances")
        self._record(by, "restore", native_id, native_id)

    def launch(self, spec: MachineSpec, by: str) -> str:
        """A new machine appears now, whenever its spec says it was launched; returns its id.

        Raises:
            ValueError: there is one of this id.
        """
        spec = replace(spec, launched_at=self.now, state=InstanceState.PENDING, stopped_since=None)
        machine = self._place(spec)
        self.fleet = (*self.fleet, spec)
        self._move(machine, InstanceState.PENDING, START_TAKES)
        self._record(by, "launch", spec.native_id, spec.native_id)
        return spec.native_id

    def tag(self, native_id: str, key: str, value: str, by: str) -> None:
        """Set one tag of a machine, volume or snapshot.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        self._tags_of(native_id)[key] = value
        self._record(by, f"tag {key}={value}", native_id, native_id)

    def untag(self, native_id: str, key: str, by: str) -> None:
        """Remove one tag; one that is not there is no error.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        self._tags_of(native_id).pop(key, None)
        self._record(by, f"untag {key}", native_id, native_id)

    def protect(self, native_id: str, protection: str, by: str, *, on: bool = True) -> None:
        """Set or lift one of the cloud's own protections.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        machine = self._machine(native_id)
        if on:
            machine.protections.add(protection)
        else:
            machine.protections.discard(protection)
        self._record(by, f"{'protect' if on else 'unprotect'} {protection}", native_id, native_id)

    def refusal(self, verb: Operation, native_id: str) -> Refusal | None:
        """Why the cloud would refuse this now; None when it would not. Changes nothing."""
        machine = self.machines.get(native_id)
        if machine is None or not self.is_listed(machine):
            return Refusal.NOT_FOUND
        if verb is Operation.TERMINATE:
            return self._terminate_refusal(machine)
        if verb is Operation.START:
            return _start_refusal(machine)
        return _stop_refusal(machine) if verb is Operation.STOP else None

    def _terminate_refusal(self, machine: Machine) -> Refusal | None:
        if machine.protections & {"termination_protection", "stop_protection"}:  # EC2: the latter protects from both
            return Refusal.TERMINATION_PROTECTED
        if machine.spec.billing is not Billing.PREPAID or machine.terminate_requested_at is not None:
            return None
        until = machine.spec.prepaid_until
        if machine.vendor.prepaid_stays and (until is None or self.now < until):
            return Refusal.PREPAID
        return Refusal.REFUND_QUOTA if self._refunds.get(self._account(machine), 1) <= 0 else None

    def _check_refunds(self, machines: Sequence[Machine]) -> None:
        prepaid = [m for m in machines if m.spec.billing is Billing.PREPAID and m.terminate_requested_at is None]
        left = self._refunds.get(self._account(prepaid[0])) if prepaid else None
        if left is not None and len(prepaid) > left:
            raise WorldRefusalError(Refusal.REFUND_QUOTA, prepaid[left].native_id)

    def _account(self, machine: Machine) -> tuple[str, str]:
        return machine.spec.cloud, machine.spec.account

    def _checked(self, verb: Operation, native_id: str) -> Machine:
        refusal = self.refusal(verb, native_id)
        if refusal is not None:
            raise WorldRefusalError(refusal, native_id)
        return self.machines[native_id]

    def _tags_of(self, native_id: str) -> dict[str, str]:
        found = self.machines.get(native_id) or self.volumes.get(native_id) or self.snapshots.get(native_id)
        if found is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, native_id)
        return found.tags


def _start_refusal(machine: Machine) -> Refusal | None:
    if machine.state in ENDED or machine.state is InstanceState.STOPPING:
        return Refusal.WRONG_STATE
    if machine.state is not InstanceState.STOPPED:
        return None if machine.vendor.repeats_succeed else Refusal.WRONG_STATE
    return Refusal.NO_CAPACITY if machine.spec.no_capacity else None


def _stop_refusal(machine: Machine) -> Refusal | None:
    if machine.state in ENDED or machine.state is InstanceState.PENDING:
        return Refusal.WRONG_STATE
    if machine.state is not InstanceState.RUNNING and not machine.vendor.repeats_succeed:
        return Refusal.WRONG_STATE
    if machine.spec.one_time_spot:
        return Refusal.CANNOT_STOP
    return Refusal.STOP_PROTECTED if "stop_protection" in machine.protections else None


def _zone(machine: Machine) -> str:
    """What a batch succeeds or fails by: the zone on EC2, elsewhere the whole call."""
    return machine.spec.zone if machine.vendor.zones_apart else ""
