"""What a session is for: one that is for a single thing can do nothing else, whoever it is handed to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from costguard.domain.errors import InvalidInputError
from costguard.providers.kit.iam.operations import Feature, Operation


class Purpose(str, Enum):
    """Each has a table of operations of its own in a provider's permissions.py, and they share none that changes."""

    GUARD = "guarding machines"
    MAIL = "mail"
    FREEZE = "a launch freeze"
    ROTATE = "rotating keys"
    SUCCEED = "making a successor"
    MEND = "mending networks"
    KEEP_TAG = "writing a keep on a machine"

    def narrowed(self, wanted: Purpose) -> Purpose:
        """What comes from a session of this purpose: only one that guards may become another."""
        return wanted if self is Purpose.GUARD else self


_GETTING_THERE = frozenset({Feature.IDENTITY, Feature.MEMBERS})
_FEATURES: Mapping[Purpose, frozenset[Feature]] = MappingProxyType(
    {
        Purpose.FREEZE: _GETTING_THERE | {Feature.FREEZE},
        Purpose.ROTATE: _GETTING_THERE | {Feature.KEYS, Feature.ROTATE},
        Purpose.SUCCEED: _GETTING_THERE | {Feature.KEYS, Feature.SUCCEED},
        Purpose.MEND: _GETTING_THERE | {Feature.NETWORK, Feature.FIX_NETWORK},
        Purpose.KEEP_TAG: _GETTING_THERE | {Feature.KEEP_TAG},
    }
)


def reach(purpose: Purpose, *operations: Operation) -> dict[str, Operation]:
    """Of these operations those that the purpose needs, by name; the same on every cloud."""
    return {operation.name: operation for operation in operations if operation.feature in _FEATURES[purpose]}


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
