"""What a world is made of while time passes: machines, disks, copies, addresses, and what happened to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from costguard.domain.resources import InstanceState, SnapshotState
from costguard.sandbox.world.fleet import Disk, MachineSpec
from costguard.sandbox.world.workload import Workload


class Refusal(str, Enum):
    """Why a cloud says no; each wire has its own code for it."""

    NOT_FOUND = "not_found"
    WRONG_STATE = "wrong_state"
    CANNOT_STOP = "cannot_stop"
    STOP_PROTECTED = "stop_protected"
    TERMINATION_PROTECTED = "termination_protected"
    NO_CAPACITY = "no_capacity"


class WorldRefusalError(Exception):
    """The cloud refused and nothing changed; the caller translates `refusal` into its own words."""

    def __init__(self, refusal: Refusal, native_id: str) -> None:
        super().__init__(f"{refusal.value}: {native_id}")
        self.refusal = refusal
        self.native_id = native_id


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


@dataclass(slots=True)
class WorldVolume:
    """A disk; `machine` is empty once it is detached."""

    native_id: str
    disk: Disk
    machine: str
    tags: dict[str, str] = field(default_factory=dict)
    deleted_at: datetime | None = None


@dataclass(slots=True)
class WorldSnapshot:
    """A copy of one volume, complete from `completes_at` on unless it fails."""

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


@dataclass(slots=True)
class WorldAddress:
    """A public address that is paid for until released; `machine` is empty once it points nowhere."""

    native_id: str
    machine: str


@dataclass(slots=True)
class Machine:
    """A machine as it is now. `runs` are its times of running, the last open while it runs."""

    spec: MachineSpec
    state: InstanceState
    launched_at: datetime
    workload: Workload
    tags: dict[str, str]
    protections: set[str]
    runs: list[tuple[datetime, datetime | None]]
    changes_at: datetime | None = None
    stop_requested_at: datetime | None = None
    terminate_requested_at: datetime | None = None
    terminated_at: datetime | None = None

    @property
    def native_id(self) -> str:
        """The vendor's id."""
        return self.spec.native_id
