"""Kinds of machines and disks' copies: their states, how they are paid for, what is in them and who manages them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class InstanceState(str, Enum):
    """Where a machine is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"


class SnapshotState(str, Enum):
    """Where a copy of a disk is in its life."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


class Billing(str, Enum):
    """How a machine is paid for; `RESERVED` is committed capacity, `PREPAID` a term paid up front."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
    PREPAID = "prepaid"
    UNKNOWN = "unknown"


class AcceleratorKind(str, Enum):
    """Families of accelerators."""

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
    """The devices of an instance type. `count` may be a fraction of a card; memory is per device."""

    kind: AcceleratorKind
    model: str
    count: float
    memory_gib: float | None = None


class Keeper(str, Enum):
    """Who manages a machine."""

    AUTOSCALING = "autoscaling"
    KUBERNETES = "kubernetes"
    CLOUD_SERVICE = "cloud_service"
    CONTROLLER = "controller"
    COSTGUARD = "costguard"


@dataclass(frozen=True, slots=True)
class ManagedBy:
    """A controller that owns a machine: its kind and name (group, cluster, service)."""

    keeper: Keeper
    name: str
