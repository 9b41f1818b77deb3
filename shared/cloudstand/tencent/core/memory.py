"""What the wire remembers beyond the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from cloudstand.tencent.billing.desk import BillDesk
from cloudstand.tencent.iam.desk import PolicyDesk
from cloudstand.tencent.kms.desk import KeyDesk
from cloudstand.tencent.network.desk import NetworkDesk
from cloudstand.world.records import Machine
from cloudstand.world.trail import TrailDesk


class Memory:
    """Only used while the world is open, so by one call at a time.

    `homes`: the machine that a disk or address belonged to before it came off. `deadlines`: when copies end.
    `policies`: what is attached where. `keys`: how KMS stands. `networks`: what the world's networks do not say.
    `trail`: how the audit trail pages.
    `desk`: what was set about the bill. `bills`: its records by month, as long as `bill_shown` stays the same.
    """

    def __init__(self) -> None:
        self.homes: dict[str, str] = {}
        self.deadlines: dict[str, datetime] = {}
        self.desk = BillDesk()
        self.policies = PolicyDesk()
        self.keys = KeyDesk()
        self.networks = NetworkDesk()
        self.trail = TrailDesk()
        self.bill_shown: tuple[Any, ...] = ()
        self.bills: dict[str, Sequence[Any]] = {}
        self._batches: dict[str, tuple[int, str]] = {}
        self._stopped_charging: set[str] = set()

    def latest_request_id(self, machine: Machine) -> str:
        """The id of the request that changed the machine last, as its answer told it."""
        operations, request_id = self._batches.get(machine.native_id, (-1, ""))
        return request_id if operations == machine.operations else machine.latest_request_id

    def changed(self, machines: Sequence[Machine]) -> str:
        """One request changed all of these just now; returns the id that its answer has to tell."""
        request_id = machines[0].latest_request_id
        for machine in machines[1:]:
            self._batches[machine.native_id] = (machine.operations, request_id)
        return request_id

    def set_stop_mode(self, machine: Machine, *, keeps_charging: bool) -> None:
        """The stop that follows was asked for with or without charges: where it may end them, that decides."""
        if keeps_charging and not machine.spec.stop_keeps_billing:
            self._stopped_charging.add(machine.native_id)
            machine.spec = replace(machine.spec, stop_keeps_billing=True)

    def forget_stop_mode(self, machine: Machine) -> None:
        """It was started: the next stop decides anew."""
        if machine.native_id in self._stopped_charging:
            self._stopped_charging.discard(machine.native_id)
            machine.spec = replace(machine.spec, stop_keeps_billing=False)
