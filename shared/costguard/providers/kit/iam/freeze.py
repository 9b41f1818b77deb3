"""What every `FreezeControl` holds to: a session that can do nothing else, and no policy or target but the freeze's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from costguard.domain.actions import LaunchFreeze
from costguard.domain.errors import RefusedError
from costguard.domain.refs import Shard
from costguard.policy.budget.freeze_ids import misfit
from costguard.ports import Target

NOT_ENABLED = "PoliciesNotEnabled"
"""A code of our own: the organisation has this kind of policy switched off."""


WayIn = Callable[[str], "Target | None"]
"""The target whose role leads into an account, None where no role does."""


class _Entering(Protocol):
    def for_account(self, target: Target, account: str) -> None: ...


def own_keys_only(_: str) -> None:
    """The way in where no role leads anywhere."""


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
