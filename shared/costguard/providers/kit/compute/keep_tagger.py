"""The one tag that Costguard writes on a machine: until when people keep it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from costguard.domain.actions import Receipt
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.kit.iam.purposes import OnlyFor, Purpose, SessionT


class KeepTagger(OnlyFor[SessionT], ABC):
    """The port of that name, from a session that can do nothing else; never a retry."""

    purpose: ClassVar = Purpose.KEEP_TAG

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        """Set the tag, in the place of what it said; the same however often.

        Raises:
            OutcomeUnknownError: it may be set; read the machine before anything else.
            AccessDeniedError: the role lacks the permission of `Feature.KEEP_TAG`.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        return self._write(machine, KEEP_TAG, value)

    @abstractmethod
    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        """Set one tag of one machine."""
