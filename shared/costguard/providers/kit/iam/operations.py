"""What a provider's table of operations is made of: its whole reach, and what each part is for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Feature(str, Enum):
    """What a permission is for; a policy document is made for a set of these."""

    IDENTITY = "identity"
    MEMBERS = "members"
    ORGANISATION = "organisation"
    INVENTORY = "inventory"
    METRICS = "metrics"
    PRICES = "prices"
    TRAIL = "trail"
    BILLING = "billing"
    KEYS = "keys"
    ROTATE = "rotate"
    SUCCEED = "succeed"
    NETWORK = "network"
    FIX_NETWORK = "fix_network"
    STOP = "stop"
    SNAPSHOT = "snapshot"
    TERMINATE = "terminate"
    START = "start"
    MAIL = "mail"
    OBJECTS = "objects"
    KEEP_TAG = "keep_tag"
    FREEZE = "freeze"
    SECRETS = "secrets"


READING = frozenset({Feature.IDENTITY, Feature.INVENTORY, Feature.METRICS, Feature.PRICES, Feature.TRAIL})
"""What guarding the machines of one account reads; `MEMBERS` and `ORGANISATION` reach further accounts.

Without `TRAIL` nobody is told who launched what, and all else goes on.
"""

SPENDING = frozenset({Feature.IDENTITY, Feature.BILLING})
"""What reading the bill adds, in the payer's account; only where the policy has budgets."""

ACTING = frozenset({Feature.STOP, Feature.SNAPSHOT, Feature.TERMINATE, Feature.START})


@dataclass(frozen=True, slots=True)
class Operation:
    """One API operation (`ec2:DescribeInstances`). `permissions` is empty where the cloud asks for none."""

    name: str
    feature: Feature
    permissions: tuple[str, ...]
    changes_something: bool = False


def reads(feature: Feature, *names: str) -> tuple[Operation, ...]:
    """Operations that change nothing, each with the permission of its own name."""
    return tuple(Operation(name, feature, (name,)) for name in names)


def changes(feature: Feature, *names: str) -> tuple[Operation, ...]:
    """Operations that change something, each with the permission of its own name."""
    return tuple(Operation(name, feature, (name,), changes_something=True) for name in names)
