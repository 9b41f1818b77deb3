"""The compiled policy: what the engine reads, after every check has passed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from costguard.domain.money import Money
from costguard.guards.idle_gpu_rules import IdleRule
from costguard.guards.rules import Mode, Protection, Selector
from costguard.policy.calendar import WorkingCalendar


@dataclass(frozen=True, slots=True)
class Account:
    """An account the policy guards; `regions` None means all that are opted in."""

    cloud: str
    id: str
    regions: tuple[str, ...] | None
    owner: str = ""
    role: str = ""
    external_id: str = ""
    organisation: bool = False
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """Who is told about instances that match. `channel` is an address the notifiers know (`#gpu-research`)."""

    name: str
    owns: Selector
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Exemption:
    """An agreed exception: matching instances are shown and never touched until `expires_at`."""

    owns: Selector
    owner: str
    reason: str
    approver: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PriceOverride:
    """A negotiated hourly price for instance types that match one of the globs."""

    cloud: str
    instance_types: tuple[str, ...]
    hourly: Money


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus server with DCGM exporter metrics; `instance_label` holds the instance id or private DNS name."""

    url: str
    instance_label: str = "instance_id"
    extra_matchers: str = ""


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """Where signals come from."""

    cloudwatch_namespace: str = "CWAgent"
    prometheus: tuple[Prometheus, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything a run decides by. `digest` is a hash of all files; `loaded_at` is when they were read."""

    mode: Mode
    idle_gpu: tuple[IdleRule, ...]
    accounts: tuple[Account, ...]
    owners: tuple[Owner, ...]
    exemptions: tuple[Exemption, ...]
    protection: Protection
    calendar: WorkingCalendar | None
    signals: SignalSettings
    prices: tuple[PriceOverride, ...]
    default_channel: str
    digest: str

    def rule(self, name: str) -> IdleRule | None:
        """The rule of this name, if the policy still has it."""
        return next((rule for rule in self.idle_gpu if rule.name == name), None)
