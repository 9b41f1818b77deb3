"""KMS of the emulated Alibaba Cloud, for the contract suites of `KeySource` and `KeyRotator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.contract.alibaba_world import patient_pacer
from tests.contract.key_rigs import (
    AUTOMATIC,
    DISABLED,
    DOOMED,
    ON_DEMAND,
    ROTATING,
    SERVICE,
    START,
    STILL,
    SUCCESSOR,
    KeyRig,
)
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.fleets import ALIBABA_ACCOUNT, HANGZHOU, alibaba_machine
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, WorldKey
from costguard.domain.keys import RotationSetting
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import REACH
from costguard.providers.alibaba.kms.rotation import AlibabaKeyRotator
from costguard.providers.alibaba.kms.source import AlibabaKeys
from costguard.providers.kit.iam.permissions import Purpose

DAY = timedelta(days=1)
_CHANGES = ("UpdateRotationPolicy", "CreateKeyVersion", "CreateKey", "UpdateAlias")
_ALWAYS = 100_000
_INSTANCE, _MODULES = "kst-bjj62d8f5e0sgtx8h0000", "kst-bjj62d8f5e0sgtx8h0001"
_EVERY, _NEW_KEY_ONLY = frozenset({AUTOMATIC, ON_DEMAND, SUCCESSOR}), frozenset({SUCCESSOR})
DEFAULT, PAIR, SIGNING, IMPORTED, EMPTY, HARDWARE = "default", "pair", "signing", "imported", "empty", "hardware"


def key_id(name: str) -> str:
    """An id that belongs to the name."""
    return f"key-hzz{sum(name.encode()):018d}"


class AlibabaKeyRig(KeyRig):
    """A machine with two disks, one of them behind the key called `ROTATING`; keys of every kind that KMS documents."""

    cloud = "alibaba"
    shard = Shard("alibaba", ALIBABA_ACCOUNT, HANGZHOU)
    empty = Shard("alibaba", ALIBABA_ACCOUNT, "eu-central-1")
    periods = (7, 365)
    changing = frozenset({"kms:UpdateRotationPolicy", "kms:CreateKeyVersion"})
    keys_have_policies = True
    untold = frozenset({SERVICE, PAIR, SIGNING, IMPORTED, EMPTY, HARDWARE})
    means: Mapping[str, frozenset[Any]] = {
        ROTATING: _EVERY,
        STILL: _EVERY,
        DISABLED: _EVERY,
        DOOMED: _EVERY,
        DEFAULT: frozenset({AUTOMATIC, SUCCESSOR}),
        SERVICE: frozenset(),
        PAIR: _NEW_KEY_ONLY,
        SIGNING: _NEW_KEY_ONLY,
        IMPORTED: _NEW_KEY_ONLY,
        EMPTY: _NEW_KEY_ONLY,
        HARDWARE: _NEW_KEY_ONLY,
    }
    most_requests = 4 + 11  # lists of keys, aliases, tags and disks; one call a key

    def __init__(self) -> None:
        disks = (Disk(100, "/dev/xvda", "cloud_essd", key_id=key_id(ROTATING)), Disk(200, "/dev/xvdb", "cloud_essd"))
        super().__init__([alibaba_machine("training", does.busy(), START - 40 * DAY, disks=disks)])
        self.emulator = AlibabaEmulator(self.door)
        general = AlibabaSession(
            keys=to_product(self.emulator.keys), endpoint=self.emulator.url, pacer=patient_pacer(), now=self.clock.now
        )
        self._sessions = {
            "reading": general,
            "acting": general.acting(),
            "rotating": general.only_for(Purpose.ROTATE),
            "looking": general.only_for(Purpose.ROTATE, may_change=False),
        }

    def kinds(self, now: datetime) -> Mapping[str, WorldKey]:
        in_software: dict[str, Any] = {"instance": _INSTANCE}
        many = {f"purpose-{number}": "training" for number in range(15)}
        return {
            ROTATING: self._key(
                ROTATING,
                now,
                aliases=["training", "gpu/disks"],
                tags={"team": "research", "Costguard:Keep": "", **many},
                period_days=180,
                rotations=[now - 220 * DAY, now - 40 * DAY],
                on_demand=[now - 220 * DAY],
                **in_software,
            ),
            # young: setting a period that is over already would rotate it at once
            STILL: self._key(STILL, now, age=3 * DAY, aliases=["archive"], **in_software),
            DISABLED: self._key(
                DISABLED, now, state=KeyState.DISABLED, period_days=90, rotations=[now - 9 * DAY], **in_software
            ),
            DOOMED: self._key(
                DOOMED, now, state=KeyState.PENDING_DELETION, deletes_at=now + 7 * DAY, period_days=90, **in_software
            ),
            DEFAULT: self._key(DEFAULT, now, add_on=True),
            SERVICE: self._key(
                SERVICE, now, manager=KeyManager.CLOUD, aliases=["acs/ecs"], is_default=True, service="ecs"
            ),
            PAIR: self._key(PAIR, now, "RSA_2048"),
            SIGNING: self._key(SIGNING, now, "EC_P256", usage=KeyUsage.SIGN),
            IMPORTED: self._key(IMPORTED, now, origin=KeyOrigin.IMPORTED),
            EMPTY: self._key(EMPTY, now, origin=KeyOrigin.IMPORTED, state=KeyState.PENDING_IMPORT),
            HARDWARE: self._key(HARDWARE, now, instance=_MODULES, hardware=True),
        }

    def _key(
        self, name: str, now: datetime, spec: str = "Aliyun_AES_256", *, age: timedelta = 400 * DAY, **more: Any
    ) -> WorldKey:
        return WorldKey(to_world(self.ref(key_id(name))), spec, now - age, **more)

    def setting(self, key: WorldKey) -> RotationSetting:
        """Of what cannot rotate nothing is told; rotations on demand are not counted."""
        if self.keys[self._name(key)].ref.native_id in {key_id(name) for name in self.untold}:
            return RotationSetting(automatic=None)
        return replace(super().setting(key), on_demand_used=None)

    def _name(self, key: WorldKey) -> str:
        return next(name for name, each in self.keys.items() if each.ref == key.ref)

    def session(self, kind: str) -> AlibabaSession:
        return self._sessions[kind]

    def source_over(self, session: Any) -> AlibabaKeys:
        return AlibabaKeys(session)

    def rotator_over(self, session: Any) -> AlibabaKeyRotator:
        return AlibabaKeyRotator(session)

    def deny_key(self, name: str) -> None:
        self.emulator.kms.hidden.add(self.keys[name].ref.native_id)

    def throttle(self, times: int) -> None:
        self.emulator.faults.add(
            Fault(FaultKind.REFUSED, "ListKeys", code="Rejected.Throttling", status=429, times=times)
        )
        for action in _CHANGES:
            self.emulator.faults.add(
                Fault(FaultKind.REFUSED, action, code="Rejected.Throttling", status=429, times=times)
            )

    def lose_answers(self) -> None:
        for action in _CHANGES:
            self.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, action, times=_ALWAYS))

    def small_pages(self) -> None:
        self.emulator.kms.page = 1

    def as_new(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        self.emulator.kms.hidden.clear()
        self.emulator.kms.page = 200

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def reach(self) -> Sequence[str]:
        return list(REACH[Purpose.ROTATE])

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self.emulator.close()


@contextmanager
def alibaba_keys() -> Iterator[AlibabaKeyRig]:
    """For `KEYS`."""
    rig = AlibabaKeyRig()
    try:
        yield rig
    finally:
        rig.close()
