"""What every `FreezeControl` holds to: a session that can do nothing else, and no policy or target but the freeze's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.refs import Shard
from costguard.policy.budget.freeze_ids import misfit
from costguard.ports import Target
from costguard.providers.kit.core.session import Session
from costguard.providers.kit.iam.permissions import OnlyFor, Purpose

NOT_ENABLED = "PoliciesNotEnabled"
"""A code of our own: the organisation has this kind of policy switched off."""

WayIn = Callable[[str], "Target | None"]
"""The target whose role leads into an account, None where no role does."""


class _Entering(Protocol):
    def for_account(self, target: Target, account: str) -> None: ...


def own_keys_only(_: str) -> None:
    """The way in where no role leads anywhere."""


_SessionT = TypeVar("_SessionT", bound=Session[Any, Any])


class Freeze(OnlyFor[_SessionT], ABC):
    """`FreezeControl` for one cloud, from a session that can do nothing else.

    `ways_in` tells the target whose role leads into an account; without one the caller's own keys are used.
    """

    purpose: ClassVar = Purpose.FREEZE

    def __init__(self, session: _SessionT, ways_in: WayIn = own_keys_only) -> None:
        super().__init__(session)
        self._ways_in = ways_in

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """Every policy attached to the target itself, by what a freeze calls it; not of those it inherits.

        Raises:
            RefusedError: the freeze does not fit this cloud, or the organisation has no such policies.
            ProviderError: not read in full.
        """
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            return self._of_target(shard, freeze)
        if freeze.via is FreezeVia.GROUP:
            return self._of_group(shard, freeze)
        assert_never(freeze.via)

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach the freeze's policy to its target, once.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission, or this is not the policy it may attach.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution, or the organisation is being changed by somebody; not repeated.
        """
        return self._change(freeze, "Attach")

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach the freeze's policy from its target, once; errors as `attach`."""
        return self._change(freeze, "Detach")

    @abstractmethod
    def _of_target(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        """As `attached`, of a part of the organisation."""

    @abstractmethod
    def _of_group(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        """As `attached`, of a group of people."""

    @abstractmethod
    def _on_target(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        """Service, operation and parameters that attach to a part of the organisation, or detach; `verb` says which."""

    @abstractmethod
    def _on_group(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        """As `_on_target`, for a group of people."""

    def _change(self, freeze: LaunchFreeze, verb: str) -> Receipt:
        shard = self._shard(freeze)
        asked = self._on_target if freeze.via is FreezeVia.ORGANISATION else self._on_group
        service, operation, what = asked(freeze, verb)
        return self._session.change(shard, service, operation, **what)

    def _shard(self, freeze: LaunchFreeze) -> Shard:
        require_fit(freeze, self._session.cloud)
        return shard_of(freeze, self._session, self._ways_in)


def require_fit(freeze: LaunchFreeze, cloud: str) -> None:
    """Refuse, before anything is sent, what is of another cloud or names something else than a freeze may.

    Raises:
        RefusedError: it does.
    """
    if freeze.cloud != cloud:
        raise unfit(freeze, f"it is of {freeze.cloud}, and this is {cloud}")
    found = misfit(freeze)
    if found is not None:
        raise unfit(freeze, f"{found.field}: {found.message}; {found.fix}")


def unfit(freeze: LaunchFreeze, why: str) -> RefusedError:
    """The error of a freeze about which nothing was sent."""
    message = f"launch freeze {freeze.name}: nothing was sent: {why}"
    return RefusedError(message, code="Unfit")


def shard_of(freeze: LaunchFreeze, session: _Entering, ways_in: WayIn) -> Shard:
    """Where the freeze is asked for: the caller's own account, or one entered by the role that leads there.

    Raises:
        AccessDeniedError: that account cannot be entered.
    """
    target = ways_in(freeze.account) if freeze.account else None
    if freeze.role:
        way = target or Target(freeze.cloud, freeze.account)
        target = Target(freeze.cloud, freeze.account, role=freeze.role, external_id=way.external_id)
    if target is not None:
        session.for_account(target, freeze.account)
    return Shard(freeze.cloud, freeze.account)


def require_policies(listed: bool, freeze: LaunchFreeze, operation: str, fix: str) -> None:  # noqa: FBT001 - the answer
    """`listed`: a target of an organisation has any policy, as it always has: one at least that allows everything.

    An empty list therefore means that policies of this kind are switched off, and that attaching one denies nothing.

    Raises:
        RefusedError: it has none.
    """
    if not listed:
        what = f"{operation}: {freeze.target} has no policy at all, so they are not enabled in this organisation"
        message = f"{what}: {fix}"
        raise RefusedError(message, operation=operation, code=NOT_ENABLED)
