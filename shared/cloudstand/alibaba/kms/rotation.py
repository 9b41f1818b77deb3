"""Rotation of keys: whose it is, what it costs in quota, and that a period already over rotates at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from cloudstand.alibaba.core.errors import ApiError, invalid
from cloudstand.alibaba.core.times import second
from cloudstand.world.cloud import World
from cloudstand.world.keys import KeyManager, KeyState, WorldKey
from cloudstand.world.rotation import has_versions, rotation_of

_INTERVAL = re.compile(r"(\d{1,10})([dhms])", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DAY = timedelta(days=1)
_REFUSED = {
    KeyState.DISABLED: "Rejected.Disabled",
    KeyState.PENDING_DELETION: "Rejected.PendingDeletion",
    KeyState.PENDING_IMPORT: "Rejected.PendingImport",
}


def is_rotatable(key: WorldKey) -> bool:
    """Whether a key of this kind has a rotation policy at all."""
    return key.manager is KeyManager.CUSTOMER and has_versions(key)


def describe_rotation(key: WorldKey) -> Mapping[str, Any]:
    """What DescribeKey says of it; of a key that cannot rotate nothing."""
    if not is_rotatable(key):
        return {}
    if key.period_days is None or key.next_at is None:
        return {"AutomaticRotation": "Disabled"}
    return {
        "AutomaticRotation": "Enabled" if key.state is KeyState.ENABLED else "Suspended",
        "RotationInterval": f"{int((key.period_days * _DAY).total_seconds())}s",
        "NextRotationDate": second(key.next_at),
    }


def set_policy(world: World, key: WorldKey, interval: str | None, by: str) -> None:
    """A new rotation policy, None for none; where its first date is past, the key rotates at once, and once.

    Raises:
        ApiError: the key's state or kind does not allow it, or not this period.
    """
    _check_state(key)
    periods = rotation_of(key).periods
    if not periods:
        raise unsupported()
    if interval is None:
        world.keys.set_period(key.ref, None, world.now, by)
        return
    period = _period(interval)
    if period % _DAY or period // _DAY not in periods:
        raise invalid("RotationInterval")
    if _last(key) + period <= world.now:
        key.rotations.append(world.now)
        world.keys.history.append((world.now, "cloud", "rotated", key.ref))
    world.keys.set_period(key.ref, period // _DAY, world.now, by)


def make_version(world: World, key: WorldKey, quota: int | None, by: str) -> None:
    """New material now; `quota` is how many versions the keys of its instance may have together.

    Raises:
        ApiError: the key's state or kind does not allow it, or the quota is used up.
    """
    _check_state(key)
    if not rotation_of(key).on_demand:
        raise unsupported()
    others = [one for one in world.keys.of(key.ref.shard) if one.instance == key.instance]
    if quota is not None and sum(1 + len(one.rotations) for one in others) >= quota:
        raise ApiError("Rejected.LimitExceeded", "The number of keys of the instance exceeds its quota.")
    world.keys.rotate(key.ref, world.now, by)


def unsupported() -> ApiError:
    """What KMS says of a key of another kind, and of an age-old rule of CreateKeyVersion that is not modelled."""
    return ApiError("Rejected.UnsupportedOperation", "Unsupported operation.")


def _check_state(key: WorldKey) -> None:
    if key.state is not KeyState.ENABLED:
        code = _REFUSED.get(key.state, "Rejected.StateModifiedFailed")
        raise ApiError(code, "The request was rejected because the key state is not Enabled.", HTTPStatus.CONFLICT)


def _last(key: WorldKey) -> datetime:
    return key.rotations[-1] if key.rotations else key.created_at


def _period(interval: str) -> timedelta:
    match = _INTERVAL.fullmatch(interval)
    if match is None:
        raise invalid("RotationInterval")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
