"""KMS of the emulated Tencent Cloud, for the contract suites of `KeySource` and `KeyRotator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.contract.key_rigs import (
    AUTOMATIC,
    DISABLED,
    DOOMED,
    ON_DEMAND,
    REPLICA,
    ROTATING,
    SERVICE,
    START,
    STILL,
    SUCCESSOR,
    KeyRig,
)
from tests.contract.tencent_world import patient_pacer
from tests.world_ports.translate import to_product, to_world

from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, made_up_request_id
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion, WorldKey
from costguard.domain.keys import RotationMeans, RotationSetting
from costguard.domain.refs import Shard
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.core.products import PAGES
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.permissions import REACH
from costguard.providers.tencent.kms.rotation import TencentKeyRotator
from costguard.providers.tencent.kms.source import TencentKeys

DAY = timedelta(days=1)
_ALWAYS = 100_000
_HERE, _FAR, _WITHOUT = "ap-guangzhou", "ap-shanghai", "ap-chongqing"
_CHANGES = ("EnableKeyRotation", "RotateKey")
_READS = ("GetRegions", "ListKeyDetail", "DescribeResourceTagsByResourceIds")
_EVERY, _NEW_KEY_ONLY = frozenset({AUTOMATIC, ON_DEMAND, SUCCESSOR}), frozenset({SUCCESSOR})
_NONE: frozenset[RotationMeans] = frozenset()
_FIRST_TO_BE_TURNED_ON = frozenset({AUTOMATIC, SUCCESSOR})
PRIMARY = "primary"


def key_id(name: str) -> str:
    """An id that belongs to the name; a replica has that of the key it follows."""
    return made_up_request_id("key", PRIMARY if name == REPLICA else name)


class TencentKeyRig(KeyRig):
    """A machine with two disks, one of them behind the key called `ROTATING`; keys of every kind that KMS documents."""

    cloud = "tencent"
    shard = Shard("tencent", TENCENT_ACCOUNT, _HERE)
    empty = Shard("tencent", TENCENT_ACCOUNT, _WITHOUT)
    periods = (7, 365)
    between = DAY
    changing = frozenset(f"kms:{action}" for action in _CHANGES)
    means: Mapping[str, frozenset[RotationMeans]] = {
        ROTATING: _EVERY,
        STILL: _FIRST_TO_BE_TURNED_ON,
        DISABLED: _EVERY,
        DOOMED: _EVERY,
        PRIMARY: _EVERY,
        REPLICA: _NONE,
        SERVICE: _NONE,
        "imported": _NEW_KEY_ONLY,
        "empty": _NEW_KEY_ONLY,
        "signing": _NEW_KEY_ONLY,
        "pair": _NEW_KEY_ONLY,
        "own-module": _NEW_KEY_ONLY,
        "archived": _FIRST_TO_BE_TURNED_ON,
    }
    most_requests = 5  # regions, two lists of keys, tags, and disks

    def __init__(self, opened: ExitStack) -> None:
        disks = (
            Disk(50, "vda", "CLOUD_PREMIUM", key_id=key_id(ROTATING)),
            Disk(100, "vdb", "CLOUD_PREMIUM"),
        )
        super().__init__([tencent_machine("training", does.busy(), START - 40 * DAY, disks=disks)])
        self.emulator = opened.enter_context(TencentEmulator(self.door))
        self._opened = opened
        self._sessions = self._made(PAGES)
        self._small = self._made({name: replace(paging, most=1) for name, paging in PAGES.items()})
        self._in_use = self._sessions

    def _made(self, pages: Mapping[str, Any]) -> Mapping[str, TencentSession]:
        general = TencentSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=patient_pacer(),
            now=self.clock.now,
            pages=pages,
        )
        made = {
            "reading": general,
            "acting": general.acting(),
            "rotating": general.only_for(Purpose.ROTATE),
            "looking": general.only_for(Purpose.ROTATE, may_change=False),
        }
        for session in made.values():
            self._opened.callback(session.close)
        return made

    def kinds(self, now: datetime) -> Mapping[str, WorldKey]:
        far = self.ref(key_id(PRIMARY), region=_FAR)
        return {
            ROTATING: self._key(
                ROTATING,
                now,
                aliases=["training"],
                tags={"team": "research", "Costguard:Keep": ""},
                period_days=180,
                rotations=[now - 220 * DAY, now - 3 * DAY],
                on_demand=[now - 220 * DAY],
            ),
            STILL: replace(
                self._key(STILL, now, "SM4", aliases=["archive"], tags={"team": "storage"}), created_at=now - 2 * DAY
            ),
            DISABLED: self._key(DISABLED, now, state=KeyState.DISABLED, period_days=365, rotations=[now - 9 * DAY]),
            DOOMED: self._key(DOOMED, now, state=KeyState.PENDING_DELETION, period_days=365, deletes_at=now + 3 * DAY),
            SERVICE: self._key(
                SERVICE, now, manager=KeyManager.CLOUD, service="cbs", aliases=["KMS-CBS"], is_default=True
            ),
            PRIMARY: self._key("first", now, multi_region=MultiRegion.PRIMARY, period_days=90),
            REPLICA: self._key(REPLICA, now, multi_region=MultiRegion.REPLICA, primary=to_world(far)),
            "imported": self._key("imported", now, origin=KeyOrigin.IMPORTED),
            "empty": self._key("empty", now, origin=KeyOrigin.IMPORTED, state=KeyState.PENDING_IMPORT),
            "signing": self._key("signing", now, "ECC", usage=KeyUsage.SIGN),
            "pair": self._key("pair", now, "RSA_2048"),
            "own-module": self._key("own-module", now, origin=KeyOrigin.CUSTOM_STORE, instance="cls-hsm-3dflmo9g"),
            "archived": self._key("archived", now, state=KeyState.UNAVAILABLE),
            "far": WorldKey(
                to_world(far), "AES_256", now - 400 * DAY, multi_region=MultiRegion.PRIMARY, period_days=120
            ),
        }

    def _key(self, name: str, now: datetime, spec: str = "AES_256", **more: Any) -> WorldKey:
        return WorldKey(to_world(self.ref(key_id(name))), spec, now - 400 * DAY, **more)

    def setting(self, key: WorldKey) -> RotationSetting:
        """As the world has it; how often it was on demand is told by nothing."""
        return replace(super().setting(key), on_demand_used=None)

    def session(self, kind: str) -> TencentSession:
        return self._in_use[kind]

    def source_over(self, session: Any) -> TencentKeys:
        return TencentKeys(session)

    def rotator_over(self, session: Any) -> TencentKeyRotator:
        return TencentKeyRotator(session)

    def deny_key(self, name: str) -> None:
        """Keys have no policies of their own."""

    def throttle(self, times: int) -> None:
        for action in (*_READS, *_CHANGES):
            self.emulator.faults.add(Fault(FaultKind.REFUSED, action, times, code="RequestLimitExceeded"))

    def lose_answers(self) -> None:
        for action in _CHANGES:
            self.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, action, _ALWAYS))

    def small_pages(self) -> None:
        self._in_use = self._small

    def as_new(self) -> None:
        self._in_use = self._sessions
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        self.emulator.key_desk.regions = frozenset({_HERE, _FAR})

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def reach(self) -> Sequence[str]:
        return list(REACH[Purpose.ROTATE])

    def close(self) -> None:
        """Everything was opened on the stack that this rig was given."""


@contextmanager
def tencent_keys() -> Iterator[TencentKeyRig]:
    """For `KEYS`."""
    with ExitStack() as opened:
        yield TencentKeyRig(opened)
