"""What the contract suite of `CloudAuditLog` needs of a provider: machines with a past, and a trail that can fail.

A further provider writes a rig and adds it to `TRAILS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.contract import alibaba_world, aws_stand_in, tencent_world
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.aws.core.server import LoopbackServer
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clock import MovedClock
from cloudstand.clouds import CLOSED_REGION
from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    EAST,
    GUANGZHOU,
    HANGZHOU,
    RESEARCH,
    TENCENT_ACCOUNT,
    alibaba_machine,
    aws_machine,
    tencent_machine,
)
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.records import Operation
from cloudstand.world.trail import TrailDesk
from costguard.cli.sandbox.running import EXTERNAL_ID
from costguard.domain.refs import Deployment, Shard
from costguard.domain.resources import Instance
from costguard.ports import CallLog, CloudAuditLog, InventorySource, LaunchReport, Target
from costguard.providers.alibaba.compute.audit_log import AlibabaAuditLog
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.aws.compute.audit_log import AwsAuditLog
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.tencent.compute.audit_log import TencentAuditLog
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.session import TencentSession

START = datetime(2026, 3, 2, 9, 0, 30, tzinfo=timezone.utc)
MADE = START - timedelta(minutes=5)
DAY = timedelta(days=1)
USER, ROLE, SERVICE, ROOT, SILENT, OLD = "user", "role", "service", "root", "silent", "old"
"""Machines by who launched them; of `SILENT` the trail has no event, and `OLD` is older than it remembers."""
_ALWAYS = 100_000


class TrailRig(ABC):
    """One provider with a machine of each kind in `shard`, made in the same minute by different people.

    `service`: how its trail names a service that launches.
    """

    shard: Shard
    service: str
    operation: str

    def __init__(self, machine: Callable[..., MachineSpec]) -> None:
        self.clock = MovedClock(START)
        by = {
            USER: "user/vision-lead",
            ROLE: "role/train/speech-lead@example.com",
            SERVICE: self.service,
            ROOT: "root",
            SILENT: "",
        }
        fleet = [machine(name, does.idle(), MADE, launched_by=who) for name, who in by.items()]
        fleet.append(machine(OLD, does.idle(), START - 120 * DAY, launched_by="user/vision-lead"))
        self._world = World(fleet, START)
        self.ids = {spec.name: spec.native_id for spec in fleet}
        self.door = WorldDoor(self._world, self.clock)

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.door.opened() as world:
            return world

    def instance(self, name: str) -> Instance:
        """The machine as a scan reads it: its times are told by the cloud too."""
        listed = self.inventory().read(self.shard).instances
        return next(each for each in listed if each.ref.native_id == self.ids[name])

    def ask(self, *names: str) -> LaunchReport:
        return self.trail().launches([self.instance(name) for name in names])

    def again(self, name: str) -> None:
        """Somebody else stops the machine and starts it again, minutes after it was made."""
        for what in ("stop", "start"):
            getattr(self.world, what)(self.ids[name], "somebody-else")
            self.clock.advance(timedelta(minutes=2))

    def seen(self, days: int = 7) -> Mapping[Deployment, datetime]:
        return self.trail().deployments(self.shard, self.clock.now() - days * DAY)

    def _there(self, region: str) -> Shard:
        return replace(self.shard, region=region or self.shard.region)

    def deny(self) -> None:
        self.world.deny(self.shard.cloud, self.shard.account, Operation.TRAIL)

    def reset(self) -> None:
        """Nothing denied, nothing goes wrong, nothing was asked."""
        self.world.allow(self.shard.cloud, self.shard.account, Operation.TRAIL)
        self.world.looks.clear()
        self.desk().page = 50
        self.as_new()

    @abstractmethod
    def trail(self) -> CloudAuditLog: ...

    @abstractmethod
    def trail_of(self, deployment: Deployment, *, role: bool = False) -> CloudAuditLog:
        """The trail as this deployment asks it; in a role's session, or with keys of its own."""

    @abstractmethod
    def inventory(self) -> InventorySource: ...

    @abstractmethod
    def session(self) -> CallLog: ...

    @abstractmethod
    def question(self, *, region: str = "", **parameters: Any) -> dict[str, Any]:
        """One question to the trail in the vendor's own words, and its answer; raises ProviderError."""

    @abstractmethod
    def desk(self) -> TrailDesk: ...

    @abstractmethod
    def throttle(self, times: int = _ALWAYS) -> None: ...

    @abstractmethod
    def garble(self) -> None:
        """Answers are no JSON any more."""

    @abstractmethod
    def as_new(self) -> None: ...

    @abstractmethod
    def asked(self) -> int:
        """How many questions to the trail arrived."""


class AwsTrailRig(TrailRig):
    shard = Shard("aws", RESEARCH, EAST)
    service = "service/autoscaling.amazonaws.com"
    operation = "cloudtrail:LookupEvents"

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(lambda name, work, at, **more: aws_machine(name, "g5.xlarge", work, at, **more))
        self.aws = opened.enter_context(EmbeddedAws(self._world, self.door, EXTERNAL_ID, CLOSED_REGION))
        self.stand_in = aws_stand_in.StandIn(self.aws.gateway)
        server = LoopbackServer(self.stand_in, self.clock)
        opened.callback(server.close)
        own = (self.aws.credentials.access_key_id, self.aws.credentials.secret_access_key)
        self._opened, self._url, self._own = opened, server.url, own
        self._session = AwsSession(endpoint_url=server.url, keys=own, pacer=aws_stand_in.patient_pacer())
        opened.callback(self._session.close)

    def trail(self) -> CloudAuditLog:
        return AwsAuditLog(self._session, now=self.clock.now)

    def trail_of(self, deployment: Deployment, *, role: bool = False) -> CloudAuditLog:
        session = AwsSession(
            endpoint_url=self._url,
            keys=self._own,
            pacer=aws_stand_in.patient_pacer(),
            mark=str(deployment),
        )
        self._opened.callback(session.close)
        if role:
            session.for_account(
                Target(self.shard.cloud, self.shard.account, role="costguard", external_id=EXTERNAL_ID),
                self.shard.account,
            )
        return AwsAuditLog(session, now=self.clock.now)

    def inventory(self) -> InventorySource:
        return AwsInventory(self._session)

    def session(self) -> CallLog:
        return self._session

    def question(self, *, region: str = "", **parameters: Any) -> dict[str, Any]:
        return self._session.call(self._there(region), "cloudtrail", "LookupEvents", **parameters)

    def desk(self) -> TrailDesk:
        return self.aws.gateway.trail.desk

    def throttle(self, times: int = _ALWAYS) -> None:
        self.stand_in.fail("LookupEvents", 400, "ThrottlingException", times=times)

    def garble(self) -> None:
        self.stand_in.change_answers("LookupEvents", lambda body: body.replace(b"userIdentity", b"nobody"))

    def as_new(self) -> None:
        self.stand_in.reset()

    def asked(self) -> int:
        return self.stand_in.count("LookupEvents")


class AlibabaTrailRig(TrailRig):
    shard = Shard("alibaba", ALIBABA_ACCOUNT, HANGZHOU)
    service = "service/AliyunServiceRoleForAutoScaling"
    operation = "actiontrail:LookupEvents"

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(alibaba_machine)
        self.emulator = opened.enter_context(AlibabaEmulator(self.door))
        self._opened = opened
        self._session = AlibabaSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=alibaba_world.patient_pacer(),
            now=self.clock.now,
        )
        opened.callback(self._session.close)

    def trail(self) -> CloudAuditLog:
        return AlibabaAuditLog(self._session, now=self.clock.now)

    def trail_of(self, deployment: Deployment, *, role: bool = False) -> CloudAuditLog:
        session = AlibabaSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=alibaba_world.patient_pacer(),
            now=self.clock.now,
            mark=str(deployment),
        )
        self._opened.callback(session.close)
        if role:
            session.for_account(
                Target(self.shard.cloud, self.shard.account, role="costguard", external_id=""), self.shard.account
            )
        return AlibabaAuditLog(session, now=self.clock.now)

    def inventory(self) -> InventorySource:
        return AlibabaInventory(self._session)

    def session(self) -> CallLog:
        return self._session

    def question(self, *, region: str = "", **parameters: Any) -> dict[str, Any]:
        return self._session.call(self._there(region), "actiontrail", "LookupEvents", **parameters)

    def desk(self) -> TrailDesk:
        return self.emulator.trail

    def throttle(self, times: int = _ALWAYS) -> None:
        self.emulator.faults.add(Fault(FaultKind.REFUSED, "LookupEvents", code="Throttling.User", times=times))

    def garble(self) -> None:
        self.emulator.faults.add(Fault(FaultKind.NOT_JSON, "LookupEvents", _ALWAYS))

    def as_new(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()

    def asked(self) -> int:
        return sum(call.action == "LookupEvents" for call in self.emulator.calls)


class TencentTrailRig(TrailRig):
    shard = Shard("tencent", TENCENT_ACCOUNT, GUANGZHOU)
    service = "service/AS_QCSLinkedRoleInCvm"
    operation = "cloudaudit:DescribeEvents"

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(tencent_machine)
        self.emulator = opened.enter_context(TencentEmulator(self.door))
        self._opened = opened
        self._session = TencentSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=tencent_world.patient_pacer(),
            now=self.clock.now,
        )
        opened.callback(self._session.close)

    def trail(self) -> CloudAuditLog:
        return TencentAuditLog(self._session, now=self.clock.now)

    def trail_of(self, deployment: Deployment, *, role: bool = False) -> CloudAuditLog:
        session = TencentSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=tencent_world.patient_pacer(),
            now=self.clock.now,
            mark=str(deployment),
        )
        self._opened.callback(session.close)
        if role:
            session.for_account(
                Target(self.shard.cloud, self.shard.account, role="costguard", external_id=""), self.shard.account
            )
        return TencentAuditLog(session, now=self.clock.now)

    def inventory(self) -> InventorySource:
        return TencentInventory(self._session)

    def session(self) -> CallLog:
        return self._session

    def question(self, *, region: str = "", **parameters: Any) -> dict[str, Any]:
        return self._session.call(self._there(region), "cloudaudit", "DescribeEvents", **parameters)

    def desk(self) -> TrailDesk:
        return self.emulator.trail

    def throttle(self, times: int = _ALWAYS) -> None:
        self.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeEvents", code="RequestLimitExceeded", times=times))

    def garble(self) -> None:
        self.emulator.faults.add(Fault(FaultKind.NOT_JSON, "DescribeEvents", _ALWAYS))

    def as_new(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()

    def asked(self) -> int:
        return sum(call.action == "DescribeEvents" for call in self.emulator.calls)


def _opening(rig: Callable[[ExitStack], TrailRig]) -> Callable[[], AbstractContextManager[TrailRig]]:
    @contextmanager
    def opened() -> Iterator[TrailRig]:
        with ExitStack() as stack:
            yield rig(stack)

    return opened


TRAILS: Mapping[str, Callable[[], AbstractContextManager[TrailRig]]] = {
    "aws": _opening(AwsTrailRig),
    "alibaba": _opening(AlibabaTrailRig),
    "tencent": _opening(TencentTrailRig),
}
"""Provider → its rig, for all tests of a module."""

EVERYBODY: Sequence[str] = (USER, ROLE, SERVICE, ROOT)
