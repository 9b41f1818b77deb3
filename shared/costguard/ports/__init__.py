"""What the engine needs from the world. Every adapter implements one of these; nothing above knows which.

Shared rules: adapters raise only `CostguardError` subclasses; a read that failed raises or returns a
gap, never an empty result; `now` comes from the caller.
"""

from costguard.ports.acting import (
    ActionExecutor,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySuccessor,
    NetworkRemediator,
)
from costguard.ports.people import Choice, Delivery, Message, MessagePart, Notifier, PolicySource, PolicyText
from costguard.ports.permissions import CallCount, Caller, CallLog, Permit, Preflight
from costguard.ports.process import Clock, Result, Workers
from costguard.ports.reading import (
    CloudAuditLog,
    Discovery,
    InventorySource,
    KeySource,
    LaunchReport,
    NetworkSource,
    PriceSource,
    SignalReport,
    SignalSource,
    SpendSource,
    Target,
)
from costguard.ports.store import ObjectStore, Put, Record, RecordStore, SecretStore, VersionCheck

__all__ = [
    "ActionExecutor",
    "CallCount",
    "CallLog",
    "Caller",
    "Choice",
    "Clock",
    "CloudAuditLog",
    "Delivery",
    "Discovery",
    "FreezeControl",
    "InventorySource",
    "KeepTagger",
    "KeyRotator",
    "KeySource",
    "KeySuccessor",
    "LaunchReport",
    "Message",
    "MessagePart",
    "NetworkRemediator",
    "NetworkSource",
    "Notifier",
    "ObjectStore",
    "Permit",
    "PolicySource",
    "PolicyText",
    "Preflight",
    "PriceSource",
    "Put",
    "Record",
    "RecordStore",
    "Result",
    "SecretStore",
    "SignalReport",
    "SignalSource",
    "SpendSource",
    "Target",
    "VersionCheck",
    "Workers",
]
