"""The fleet's shard behind the emulated Alibaba Cloud, with sessions whose requests and answers a test may look at."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.contract.alibaba_world import patient_pacer
from tests.contract.network_fleet import network_fleet
from tests.contract.network_rigs import START
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba import emulator as emulated
from cloudstand.alibaba.core.actions import ACTIONS
from cloudstand.alibaba.core.errors import ApiError
from cloudstand.alibaba.core.site import ApiCall, Site, site_of
from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.alibaba.tables import TABLES
from cloudstand.clock import MovedClock
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from costguard.domain.actions import Receipt
from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.network import NetworkInventory, NetworkRule, PublicAddress, SecurityGroup
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.remediation import before_of
from costguard.providers.alibaba.core.errors import refusal
from costguard.providers.alibaba.core.products import PRODUCTS, flattened
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.network.remediator import AlibabaNetworkRemediator
from costguard.providers.alibaba.network.source import AlibabaNetwork
from costguard.providers.kit.iam.permissions import Purpose

Change = Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]]


class Telling(AlibabaSession):
    """Remembers what it was asked, and changes answers on request: `(answer, parameters) → answer`.

    What is in `refused` is never asked: its error comes instead. What is in `hides` answers an empty list to who may
    not ask, unless it is a dry run.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.changes: dict[str, Change] = {}
        self.refused: dict[str, ProviderError] = {}
        self.hides: set[str] = set()

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        self.asked.append((operation, parameters))
        if operation in self.refused:
            raise self.refused[operation]
        try:
            answer = self._ask(shard, service, operation, parameters)
        except AccessDeniedError:
            if operation not in self.hides or parameters.get("DryRun"):
                raise
            return {"RequestId": "R", "TotalCount": 0}
        change = self.changes.get(operation)
        return answer if change is None else change(answer, parameters)

    def _ask(self, shard: Shard, service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return super().call(shard, service, operation, **parameters)


class Direct(Telling):
    """Asks the emulator's actions without the wire and the SDK: a fiftieth of the time."""

    def __init__(self, site: Site, world: World, **more: Any) -> None:
        super().__init__(keys=None, pacer=patient_pacer(), **more)
        self._site, self._world = site, world

    def _ask(self, shard: Shard, service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        api, caller = f"{service}:{operation}", self._site.credentials.user(shard.account)
        changes = self._operations[api].changes_something
        self._world.tick(self.now())
        try:
            asked = TABLES[service, operation].read({"RegionId": shard.region, **flattened(parameters)})
            call = ApiCall(self._site, caller, service, operation, shard.region, asked)
            body = emulated._answered(call, ACTIONS[service, operation], self._world)  # noqa: SLF001
        except ApiError as err:
            raise refusal(api, err.code, err.message, changes=changes) from err
        number = Decimal if PRODUCTS[service].money else float
        found: dict[str, Any] = json.loads(json.dumps({**body, "RequestId": "R"}), parse_float=number)
        return found


class Stage:
    """One region with everything in it. `cloud` has what a test may set up: `allowed` and `networks`."""

    def __init__(
        self, cloud: Site | AlibabaEmulator, world: World, clock: MovedClock, session: Telling, mending: Telling
    ) -> None:
        self.cloud, self._world, self.clock = cloud, world, clock
        self.fleet = network_fleet("alibaba", START)
        self.shard = self.fleet.shard
        self.session, self.mending = session, mending
        self.remediator = AlibabaNetworkRemediator(mending)

    def close(self) -> None:
        self.session.close()
        self.mending.close()

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        self._world.tick(self.clock.now())
        return self._world

    @property
    def truth(self) -> NetworkInventory:
        return to_product(self.world.networks.of(to_world(self.shard)))

    def place(self, **parts: Any) -> None:
        """Other parts of the shard."""
        self.world.networks.place(to_world(replace(self.truth, **parts)))

    def ref(self, kind: str, name: str) -> ResourceRef:
        return self.fleet.ref(kind, name)

    def read(self) -> NetworkInventory:
        return AlibabaNetwork(self.session, now=self.clock.now).read(self.shard)

    def asked(self) -> Counter[str]:
        """How often each operation was asked for by the reading session."""
        return Counter(name for name, _ in self.session.asked)

    def pass_(self, step: timedelta) -> None:
        self.clock.advance(step)

    def group(self, name: str) -> SecurityGroup:
        return next(each for each in self.truth.groups if each.ref == self.ref("security_group", name))

    def rule(self, name: str, port: int) -> NetworkRule:
        return next(rule for rule in self.group(name).rules if rule.ports == ((port, port),))

    def set_rules(self, name: str, *rules: NetworkRule) -> None:
        self.world.networks.set_rules(
            to_world(self.ref("security_group", name)), to_world(rules), self.clock.now(), "owner", "set"
        )

    def address(self, name: str, **changed: Any) -> PublicAddress:
        """An address as it is; with `changed` it is so from now on."""
        ref = self.ref("address", name)
        found = next(each for each in self.truth.addresses if each.ref == ref)
        if changed:
            found = replace(found, **changed)
            self.place(addresses=tuple(found if each.ref == ref else each for each in self.truth.addresses))
        return found

    def about_rule(self, kind: RemediationKind, name: str, rule: NetworkRule, **more: str) -> Remediation:
        said = {"rule_id": rule.rule_id, "direction": rule.direction.value, "version": "", **more}
        return Remediation(kind, self.ref("security_group", name), said)

    def about_address(self, kind: RemediationKind, name: str, **more: str) -> Remediation:
        return Remediation(kind, self.ref("address", name), {"ip": self.address(name).ip, **more})

    def change(self, mend: Remediation) -> Receipt:
        return self.remediator.change(mend, before_of(mend, self.truth, ()))

    def sent(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The changing calls of the remediator, with their parameters."""
        reads = ("Describe", "List", "Get")
        return [(name, parameters) for name, parameters in self.mending.asked if not name.startswith(reads)]


@contextmanager
def direct_stage() -> Iterator[Stage]:
    """Without the wire."""
    clock = MovedClock(START)
    world = network_fleet("alibaba", START).world(START)
    site = site_of(world, "alibaba", role="costguard", external_id="", forbids_lists=False)
    mending = Direct(site, world, now=clock.now, may_change=True, purpose=Purpose.MEND)
    yield Stage(site, world, clock, Direct(site, world, now=clock.now), mending)


@contextmanager
def wired_stage() -> Iterator[Stage]:
    """Over HTTP, through the vendor's SDK."""
    clock = MovedClock(START)
    world = network_fleet("alibaba", START).world(START)
    with AlibabaEmulator(WorldDoor(world, clock)) as emulator:
        made = {"keys": emulator.keys, "endpoint": emulator.url, "pacer": patient_pacer(), "now": clock.now}
        stage = Stage(emulator, world, clock, Telling(**made), Telling(**made, may_change=True, purpose=Purpose.MEND))
        try:
            yield stage
        finally:
            stage.close()
