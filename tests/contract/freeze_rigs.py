"""What the contract suite of `FreezeControl` needs of a provider: a freeze of each way, and a truth to compare with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.ports import FreezeControl
from costguard.providers.kit.iam.permissions import Purpose


class FreezeRig(ABC):
    """One provider's organisation and groups, with a policy for each freeze that is attached to nothing yet.

    `keeps_the_attached`: attaching once more is no error there, by way.
    """

    cloud: str
    keeps_the_attached: frozenset[FreezeVia] = frozenset()

    @abstractmethod
    def freeze(self, via: FreezeVia) -> LaunchFreeze:
        """The freeze of this way."""

    @abstractmethod
    def control(self) -> FreezeControl:
        """The adapter, over a session that can do nothing else."""

    @abstractmethod
    def session(self, kind: str) -> Any:
        """A session for `reading`, `acting` or `freezing`, closed with the rig."""

    @abstractmethod
    def control_over(self, session: Any) -> FreezeControl:
        """The adapter over any session, if it takes it."""

    @abstractmethod
    def crowd(self, freeze: LaunchFreeze) -> None:
        """Others attach so many policies to the target that the list has pages, where the vendor has any."""

    @abstractmethod
    def go_wrong(self, operation: str, how: str) -> None:
        """From now on `list`, `attach` or `detach`, of either way, is `denied`, `throttled` or `lost`."""

    @abstractmethod
    def switch_off(self) -> None:
        """The organisation has no policies of this kind any more."""

    @abstractmethod
    def reset(self) -> None:
        """Nothing goes wrong, nothing was asked, and everything is attached as in the beginning."""

    @abstractmethod
    def requests(self) -> Sequence[str]:
        """The operations that arrived so far, without those that only ask who we are."""

    @abstractmethod
    def everything(self) -> dict[str, list[str]]:
        """What is attached to any target of either way."""

    def truth(self, freeze: LaunchFreeze) -> list[str]:
        """What is attached to the target, as `attached` names it, in the order of attaching."""
        return self.everything()[freeze.target]

    @abstractmethod
    def close(self) -> None: ...


def session_of(kind: str, general: Any) -> Any:
    """A session for `reading`, `acting` or `freezing` made from a general one."""
    made = {"reading": lambda: general, "acting": general.acting, "freezing": lambda: general.only_for(Purpose.FREEZE)}
    return made[kind]()
