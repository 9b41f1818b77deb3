"""A provider's table of operations: its whole reach, what each is for, and what a session for one thing may send.

An operation that is in no table never leaves the process, and one that changes something only leaves a session made
for acting. A session that is for a single thing can do nothing else, whoever it is handed to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Generic, Protocol, TypeVar

from costguard.domain.errors import InvalidInputError


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


def reads(feature: Feature, *products: str) -> Iterator[Operation]:
    """Operations that change nothing, each with the permission of its own name; `ec2: StopInstances StartInstances`."""
    return (Operation(name, feature, (name,)) for name in names(*products))


def changes(feature: Feature, *products: str) -> Iterator[Operation]:
    """Operations that change something, written as for `reads`."""
    return (Operation(name, feature, (name,), changes_something=True) for name in names(*products))


def names(*products: str) -> tuple[str, ...]:
    """The full names of operations or permissions that are written by product: `ec2: Delete* CreateFleet`."""
    split = (line.rpartition(":") for line in products)
    return tuple(f"{product}:{name}" for product, _, listed in split for name in listed.split())


class Purpose(str, Enum):
    """Each has a table of operations of its own in a provider's permissions.py, and they share none that changes.

    So a session that guards can send no mail, touch no policy, rotate no key and change no network, and what can do one
    of these can touch no machine. What disables, deletes or imports a key, deletes a group, route, subnet, VPC or
    instance by way of the network, resets all rules of a group at once, or removes a tag, is in no table at all.
    """

    GUARD = "guarding machines"
    MAIL = "mail"
    FREEZE = "a launch freeze"
    ROTATE = "rotating keys"
    SUCCEED = "making a successor"
    MEND = "mending networks"
    KEEP_TAG = "writing a keep on a machine"
    SECRET = "reading a secret of the settings"  # noqa: S105 - a purpose

    def narrowed(self, wanted: Purpose) -> Purpose:
        """What comes from a session of this purpose: only one that guards may become another."""
        return wanted if self is Purpose.GUARD else self


_GETTING_THERE = frozenset({Feature.IDENTITY, Feature.MEMBERS})
_FEATURES: Mapping[Purpose, frozenset[Feature]] = MappingProxyType(
    {
        Purpose.MAIL: frozenset({Feature.IDENTITY, Feature.MAIL}),
        Purpose.FREEZE: _GETTING_THERE | {Feature.FREEZE},
        Purpose.ROTATE: _GETTING_THERE | {Feature.KEYS, Feature.ROTATE},
        Purpose.SUCCEED: _GETTING_THERE | {Feature.KEYS, Feature.SUCCEED},
        Purpose.MEND: _GETTING_THERE | {Feature.NETWORK, Feature.FIX_NETWORK},
        Purpose.KEEP_TAG: _GETTING_THERE | {Feature.KEEP_TAG},
        Purpose.SECRET: frozenset({Feature.SECRETS}),
    }
)
_SHARED = _GETTING_THERE | {Feature.KEYS, Feature.NETWORK}
_APART = frozenset[Feature]().union(*_FEATURES.values()) - _SHARED

Reach = Mapping[Purpose, Mapping[str, Operation]]
"""What a session may send, by what it is for."""


def reaches(
    *operations: Operation,
    also: Mapping[Purpose, Collection[str]] = MappingProxyType({}),
    by_sdk: Collection[Feature] = (),
) -> Reach:
    """What each purpose that this cloud serves needs; of guarding, all that no other purpose has for itself.

    Where one name stands more than once, for several features, it counts as the last of them that the purpose has.
    `also` are names that a purpose needs of another feature, `by_sdk` features that credential providers of the SDK
    send for themselves, whatever it is for.
    """
    found = {Purpose.GUARD: {one.name: one for one in operations if one.feature not in _APART}}
    for purpose, features in _FEATURES.items():
        if any(one.feature in features - _SHARED for one in operations):
            needed = {one.name: one for one in operations if one.feature in features or one.feature in by_sdk}
            found[purpose] = needed | {name: found[Purpose.GUARD][name] for name in also.get(purpose, ())}
    return MappingProxyType(found)


def known(reach: Reach) -> Mapping[str, Operation]:
    """Every operation of every kind of session."""
    return {name: operation for table in reach.values() for name, operation in table.items()}


def permissions_of(known: Mapping[str, Operation], operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not known."""
    return " and ".join(known[operation].permissions) if operation in known else operation


class Purposeful(Protocol):
    """A session of any provider."""

    @property
    def purpose(self) -> Purpose:
        """What it is for."""


def require_purpose(session: Purposeful, purpose: Purpose) -> None:
    """What changes one kind of thing takes a session that reaches no other.

    Raises:
        InvalidInputError: it can do more, or something else: whoever wires this would put machines within its reach.
    """
    if session.purpose is not purpose:
        message = f"{purpose.value} needs a session that can do nothing else: only_for(Purpose.{purpose.name})"
        raise InvalidInputError(message)


SessionT = TypeVar("SessionT", bound=Purposeful)


class OnlyFor(Generic[SessionT]):
    """What changes one kind of thing: it takes a session that reaches no other."""

    purpose: ClassVar[Purpose]

    def __init__(self, session: SessionT) -> None:
        """Take a session made for this purpose.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, self.purpose)
        self._session = session
