"""KMS of the embedded AWS, for the contract suites of `KeySource` and `KeyRotator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.contract.aws_stand_in import StandIn, patient_pacer
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
from tests.world_ports.translate import to_world

from cloudstand.aws.core.server import LoopbackServer
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clouds import CLOSED_REGION
from cloudstand.fleets import EAST, RESEARCH, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion, WorldKey
from costguard.cli.sandbox.running import EXTERNAL_ID
from costguard.domain.keys import RotationMeans, RotationSetting
from costguard.domain.refs import Shard
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import REACH
from costguard.providers.aws.kms.rotation import AwsKeyRotator
from costguard.providers.aws.kms.source import AwsKeys
from costguard.providers.kit.iam.permissions import Purpose

DAY = timedelta(days=1)
_SYMMETRIC = "SYMMETRIC_DEFAULT"
_CHANGES = ("EnableKeyRotation", "RotateKeyOnDemand", "CreateKey", "UpdateAlias")
_EVERY = frozenset({AUTOMATIC, ON_DEMAND, SUCCESSOR})
_PAIR, _NEW_KEY_ONLY = "pair", frozenset({SUCCESSOR})
IMPORTED, PRIMARY = "imported", "primary"


def key_id(name: str) -> str:
    """An id that belongs to the name; multi-region keys share theirs over regions."""
    number = f"{sum(name.encode()):012d}"
    return f"mrk-{number:>032}" if name in (PRIMARY, REPLICA) else f"0a1b2c3d-0000-4000-8000-{number}"


class AwsKeyRig(KeyRig):
    """A machine with two disks, one of them behind the key called `ROTATING`; keys of every kind that AWS documents."""

    cloud = "aws"
    shard = Shard("aws", RESEARCH, EAST)
    empty = Shard("aws", RESEARCH, "eu-north-1")
    periods = (90, 2560)
    changing = frozenset({"kms:EnableKeyRotation", "kms:RotateKeyOnDemand"})
    keys_have_policies = True
    means: Mapping[str, frozenset[RotationMeans]] = {
        ROTATING: _EVERY,
        STILL: _EVERY,
        DISABLED: _EVERY,
        DOOMED: _EVERY,
        PRIMARY: _EVERY,
        REPLICA: frozenset(),
        SERVICE: frozenset(),
        IMPORTED: _NEW_KEY_ONLY,
        "empty": _NEW_KEY_ONLY,
        "signing": _NEW_KEY_ONLY,
        _PAIR: _NEW_KEY_ONLY,
        "agreeing": _NEW_KEY_ONLY,
        "mac": _NEW_KEY_ONLY,
        "own-module": _NEW_KEY_ONLY,
        "unavailable": _NEW_KEY_ONLY,
    }
    # lists of keys, aliases and disks; four calls a key of AWS's own material, three of imported material, two of what
    # never rotates or has no material now, one of AWS's own key
    most_requests = 3 + 6 * 4 + 1 * 3 + 7 * 2 + 1

    def __init__(self, opened: ExitStack) -> None:
        disks = (Disk(100, key_id=key_id(ROTATING)), Disk(200, "/dev/sdb"))
        machine = aws_machine("training", "g5.xlarge", does.busy(), START - 40 * DAY, disks=disks)
        super().__init__([machine])
        self.aws = opened.enter_context(EmbeddedAws(self._world, self.door, EXTERNAL_ID, CLOSED_REGION))
        self.stand_in = StandIn(self.aws.gateway)
        server = LoopbackServer(self.stand_in, self.clock)
        opened.callback(server.close)
        self.url = server.url
        self.own = (self.aws.credentials.access_key_id, self.aws.credentials.secret_access_key)
        general = AwsSession(endpoint_url=self.url, keys=self.own, pacer=patient_pacer())
        self._sessions = {
            "reading": general,
            "acting": general.acting(),
            "rotating": general.only_for(Purpose.ROTATE),
            "looking": general.only_for(Purpose.ROTATE, may_change=False),
        }
        for session in self._sessions.values():
            opened.callback(session.close)

    def kinds(self, now: datetime) -> Mapping[str, WorldKey]:
        primary = self.ref(key_id(PRIMARY), region="eu-west-1")
        made = {
            ROTATING: self._key(
                ROTATING,
                now,
                aliases=["training", "gpu/disks"],
                tags={"team": "research", "Costguard:Keep": ""},
                period_days=180,
                rotations=[now - 220 * DAY, now - 40 * DAY],
                on_demand=[now - 220 * DAY],
            ),
            STILL: replace(self._key(STILL, now, aliases=["archive"]), created_at=now - 2 * DAY),
            DISABLED: self._key(DISABLED, now, state=KeyState.DISABLED, period_days=365, rotations=[now - 9 * DAY]),
            DOOMED: self._key(DOOMED, now, state=KeyState.PENDING_DELETION, period_days=365, deletes_at=now + 3 * DAY),
            SERVICE: self._key(
                SERVICE, now, manager=KeyManager.CLOUD, aliases=["aws/ebs"], is_default=True, period_days=365
            ),
            IMPORTED: self._key(IMPORTED, now, origin=KeyOrigin.IMPORTED, rotations=[now - 70 * DAY]),
            "empty": self._key("empty", now, origin=KeyOrigin.IMPORTED, state=KeyState.PENDING_IMPORT),
            "signing": self._key("signing", now, "ECC_NIST_P256", usage=KeyUsage.SIGN),
            _PAIR: self._key(_PAIR, now, "RSA_4096"),
            "agreeing": self._key("agreeing", now, "ECC_NIST_P384", usage=KeyUsage.AGREE),
            "mac": self._key("mac", now, "HMAC_256", usage=KeyUsage.MAC),
            "own-module": self._key("own-module", now, origin=KeyOrigin.CUSTOM_STORE),
            "unavailable": self._key("unavailable", now, origin=KeyOrigin.CUSTOM_STORE, state=KeyState.UNAVAILABLE),
            PRIMARY: self._key(PRIMARY, now, multi_region=MultiRegion.PRIMARY, period_days=90),
            REPLICA: self._key(REPLICA, now, multi_region=MultiRegion.REPLICA, primary=to_world(primary)),
        }
        far = self._key("far", now, multi_region=MultiRegion.PRIMARY, period_days=120, rotations=[now - 8 * DAY])
        far.ref = to_world(primary)
        return {**made, "far": far}

    def _key(self, name: str, now: datetime, spec: str = _SYMMETRIC, **more: Any) -> WorldKey:
        return WorldKey(to_world(self.ref(key_id(name))), spec, now - 400 * DAY, **more)

    def setting(self, key: WorldKey) -> RotationSetting:
        if key.manager is KeyManager.CLOUD:
            return RotationSetting(automatic=True, period_days=365)
        has_versions = key.spec == _SYMMETRIC and key.usage is KeyUsage.ENCRYPT
        if key.origin is KeyOrigin.CUSTOM_STORE or not has_versions or key.state is KeyState.PENDING_IMPORT:
            return RotationSetting(automatic=False)
        if key.state is KeyState.PENDING_DELETION:
            return RotationSetting(automatic=False, on_demand_used=0)
        return super().setting(key if key.primary is None else self.world.keys.get(key.primary))

    def session(self, kind: str) -> AwsSession:
        return self._sessions[kind]

    def source_over(self, session: Any) -> AwsKeys:
        return AwsKeys(session)

    def rotator_over(self, session: Any) -> AwsKeyRotator:
        return AwsKeyRotator(session)

    def deny_key(self, name: str) -> None:
        self.aws.gateway.keys.policies_deny.add(self.keys[name].ref.native_id)

    def throttle(self, times: int) -> None:
        for action in ("ListKeys", *_CHANGES):
            self.stand_in.fail(action, 400, "ThrottlingException", times=times)

    def lose_answers(self) -> None:
        for action in _CHANGES:
            self.stand_in.lose_answers(action)

    def small_pages(self) -> None:
        self.aws.gateway.keys.page_size = 2

    def as_new(self) -> None:
        self.stand_in.reset()
        kms = self.aws.gateway.keys
        kms.page_size = 1_000
        for told in (kms.policies_deny, kms.under_way, kms.material_waits):
            told.clear()

    def requests(self) -> Sequence[str]:
        arrived = (action for action, _ in self.stand_in.requests if action != "GetCallerIdentity")
        return [f"{'ec2' if action == 'DescribeVolumes' else 'kms'}:{action}" for action in arrived]

    def reach(self) -> Sequence[str]:
        return list(REACH[Purpose.ROTATE])

    def close(self) -> None:
        """Everything was opened on the stack that this rig was given."""


@contextmanager
def aws_keys() -> Iterator[AwsKeyRig]:
    """For `KEYS`."""
    with ExitStack() as opened:
        yield AwsKeyRig(opened)
