"""The demo's encryption keys: on each cloud what is rotated in time, what is not, and what its vendor cannot do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    EAST,
    GUANGZHOU,
    HANGZHOU,
    OLD_DISKS,
    PRODUCT,
    RESEARCH,
    TENCENT_ACCOUNT,
    WEST,
)
from cloudstand.world.fleet import made_up_key_id
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion, WorldKey
from cloudstand.world.places import Ref

_DAY = timedelta(days=1)
_SHANGHAI = "ap-shanghai"
_INSTANCE = "kst-hzz65f1a2b3c4d5e6f70a"

_Made = Callable[..., WorldKey]


def demo_keys(at: datetime) -> tuple[WorldKey, ...]:
    """Every key at `at`, the start of day 0."""
    return (*_on_aws(at), *_on_alibaba(at), *_on_tencent(at))


def _on_aws(at: datetime) -> tuple[WorldKey, ...]:
    research = _keys_of("aws", RESEARCH, EAST, "SYMMETRIC_DEFAULT", at)
    west = _keys_of("aws", RESEARCH, WEST, "SYMMETRIC_DEFAULT", at)
    product = _keys_of("aws", PRODUCT, EAST, "SYMMETRIC_DEFAULT", at)
    primary = research("models", 310, "vision", period_days=90, multi_region=MultiRegion.PRIMARY)
    replica = WorldKey(
        ref=Ref("aws", RESEARCH, WEST, "key", primary.ref.native_id),
        spec=primary.spec,
        created_at=primary.created_at,
        aliases=["models"],
        multi_region=MultiRegion.REPLICA,
        primary=primary.ref,
        tags=dict(primary.tags),
    )
    return (
        research("training-data", 400, "vision", period_days=90),
        research("checkpoints", 220, "speech"),
        primary,
        replica,
        research("partner-data", 500, "speech", origin=KeyOrigin.IMPORTED),
        west(OLD_DISKS, 900, "robotics", period_days=90, **_going(at)),
        product("customer-uploads", 600, "media", period_days=365),
        product("release-signing", 300, "search", rotations=[at - 200 * _DAY], on_demand=[at - 200 * _DAY]),
        product("artefact-signing", 300, "search", spec="RSA_4096", usage=KeyUsage.SIGN),
        research("aws/ebs", 1200, **_of_a_service("ebs")),
        product("aws/ebs", 1200, **_of_a_service("ebs")),
    )


def _on_alibaba(at: datetime) -> tuple[WorldKey, ...]:
    mine = _keys_of("alibaba", ALIBABA_ACCOUNT, HANGZHOU, "Aliyun_AES_256", at)
    return (
        mine("click-logs", 200, "recsys", period_days=90, instance=_INSTANCE),
        mine("ad-features", 150, "recsys", instance=_INSTANCE),
        mine("labels", 420, "recsys", period_days=180, instance=_INSTANCE),
        mine("reports", 420, "recsys", period_days=365, add_on=True),
        mine("partner-data", 500, "recsys", origin=KeyOrigin.IMPORTED),
        mine(OLD_DISKS, 900, "recsys", instance=_INSTANCE, **_going(at)),
        mine("acs/ecs", 1000, **_of_a_service("ecs")),
    )


def _on_tencent(at: datetime) -> tuple[WorldKey, ...]:
    mine = _keys_of("tencent", TENCENT_ACCOUNT, GUANGZHOU, "AES_256", at)
    primary = Ref("tencent", TENCENT_ACCOUNT, _SHANGHAI, "key", made_up_key_id("tencent", _SHANGHAI, "assets"))
    return (
        mine("game-saves", 260, "games", period_days=90),
        mine("telemetry", 120, "games"),
        mine("replays", 370, "games", period_days=365),
        mine("assets", 200, "games", multi_region=MultiRegion.REPLICA, primary=primary),
        mine("partner-data", 500, "games", origin=KeyOrigin.IMPORTED),
        mine(OLD_DISKS, 900, "infrastructure", period_days=90, **_going(at)),
        mine("default-key-cbs", 1000, **_of_a_service("cbs")),
    )


def _keys_of(cloud: str, account: str, region: str, usual: str, at: datetime) -> _Made:
    def made(alias: str, days: int, owner: str = "", *, spec: str = usual, **more: Any) -> WorldKey:
        """A key made so many days ago; automatic rotation has kept its period since."""
        native_id = made_up_key_id(cloud, account, region, alias)
        key = WorldKey(
            ref=Ref(cloud, account, region, "key", native_id),
            spec=spec,
            created_at=at - days * _DAY,
            aliases=[alias],
            tags={"owner": owner} if owner else {},
            **more,
        )
        while key.next_at is not None and key.next_at <= at:
            key.rotations.append(key.next_at)
        return key

    return made


def _going(at: datetime) -> dict[str, Any]:
    return {"state": KeyState.PENDING_DELETION, "deletes_at": at + 20 * _DAY}


def _of_a_service(service: str) -> dict[str, Any]:
    return {"manager": KeyManager.CLOUD, "is_default": True, "service": service}
