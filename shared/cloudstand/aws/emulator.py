"""AWS in this process: seeded, patched and served from entry to exit, with nothing left behind."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import Any

from moto.core.base_backend import BackendDict
from moto.organizations.models import organizations_backends
from typing_extensions import Self

from cloudstand.aws.billing.desk import Billing
from cloudstand.aws.compute.bridge import Bridge
from cloudstand.aws.compute.metrics import Metrics
from cloudstand.aws.compute.trail import CloudTrail
from cloudstand.aws.core import gaps
from cloudstand.aws.core.patching import Pages, Wire, applied
from cloudstand.aws.core.seeding import Credentials, accounts_of, in_organisation, regions_of, seed_accounts
from cloudstand.aws.core.server import Gateway
from cloudstand.aws.kms.keys import Kms
from cloudstand.errors import MisuseError
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.server import WireServer
from cloudstand.wire.wsgi import serving
from cloudstand.world.cloud import World

_one_at_a_time = Lock()  # moto keeps its state, and we our patches, in module globals


class EmbeddedAws:
    """Context manager; `url`, `credentials` and `gateway` are there inside the block; `pages` are those of networks.

    `port` 0 takes a free one, None listens nowhere: then `server` is asked directly.

    Raises on entry:
        MisuseError: another one runs in this process.
    """

    url: str
    credentials: Credentials
    gateway: Gateway
    server: WireServer

    def __init__(
        self, world: World, door: WorldDoor, external_id: str, closed_region: str, port: int | None = 0
    ) -> None:
        self._port = port
        self._world = world
        self._door = door
        self._clock = door.clock
        self._external_id = external_id
        self._closed_region = closed_region
        self._open = ExitStack()
        self.pages = Pages()

    def __enter__(self) -> Self:
        if not _one_at_a_time.acquire(blocking=False):
            raise MisuseError("another sandbox runs in this process; close it first, or start another process")
        with ExitStack() as opening:
            opening.callback(_one_at_a_time.release)
            opening.enter_context(applied(gaps.before_seeding()))
            _forget(accounts_of(self._world))
            opening.callback(_forget_all_but, _accounts_in_moto(), accounts_of(self._world))
            self.credentials = seed_accounts(self._world)
            bridge = Bridge(self._world, self._clock)
            wire = Wire(
                world=self._world,
                clock=self._clock,
                metrics=Metrics(self._world),
                bridge=bridge,
                closed_region=self._closed_region,
                pages=self.pages,
            )
            opening.enter_context(applied(gaps.while_running(wire)))
            self.gateway = Gateway(
                bridge.refresh,
                regions_of(self._world),
                assumable=lambda account: account in accounts_of(self._world) or in_organisation(account),
                external_id=self._external_id,
                lock=self._door.lock,
                billing=Billing(self._world, accounts_of(self._world)),
                keys=Kms(self._world),
                trail=CloudTrail(self._world),
            )
            self.server = WireServer(serving(self.gateway), port=self._port, cloud="aws")
            self.server.now = self._clock.now
            opening.callback(self.server.close)
            self.url = self.server.url
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


def _accounts_in_moto() -> frozenset[str]:
    return frozenset(account for backends in _backends() for account in backends)


def _forget_all_but(kept: frozenset[str], ours: tuple[str, ...]) -> None:
    """Drop our accounts and those that came to be since; others in this process may hold some of their own."""
    _forget((*(_accounts_in_moto() - kept), *ours))


def _forget(accounts: tuple[str, ...]) -> None:
    for account in accounts:
        for backends in _backends():
            backends.pop(account, None)
        organizations_backends.master_accounts.pop(account, None)


def _backends() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = vars(BackendDict)["_instances"]  # BackendDict.reset() would empty everybody's
    return found
