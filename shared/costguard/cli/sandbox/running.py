"""The one way from the product to the emulators: a sandbox in this process, or served to others, with settings for it.

Served, the first port is AWS's, and the sandbox's own: there `/_sandbox/settings` says what it is and where its parts
are, and `/_sandbox/messages` what people were told. `/_sandbox/advance` at any cloud moves the one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from cloudstand.clock import MovedClock, RunningClock
from cloudstand.clouds import PORTS, STARTS_AT, Clouds, one_cloud
from cloudstand.errors import MisuseError
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.workload import BUSY
from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import ResourceRef
from costguard.ports import Target
from costguard.settings import Access, AccessKey, Secret, Settings

if TYPE_CHECKING:
    from cloudstand.alibaba.emulator import AlibabaEmulator
    from cloudstand.tencent.emulator import TencentEmulator
    from cloudstand.world.cloud import World

ROLE = "costguard"
EXTERNAL_ID = "costguard-sandbox"
MARK = "costguard"
"""What a sandbox of this program says it is; who follows its time asks for it."""


class Sandbox(Clouds):
    """Clouds and Slack, with a ledger and settings that lead there; close it, or use it as a context manager.

    Attributes:
        ledger_url: an SQLite file that lives as long as the sandbox.
    """

    role, external_id = ROLE, EXTERNAL_ID
    ledger_url: str

    @classmethod
    def start(
        cls,
        fleet: Iterable[MachineSpec] | None = None,
        at: datetime = STARTS_AT,
        *,
        clock: MovedClock | None = None,
        port: int = 0,
    ) -> Self:
        """Start serving `fleet` (the demo's when None, with its keys, networks and launch freezes) at the moment `at`.

        Raises:
            InvalidInputError: another sandbox runs in this process.
            OSError: a port is taken.
        """
        try:
            return super().start(fleet, at, clock=clock, port=port)
        except MisuseError as err:
            raise InvalidInputError(str(err)) from err

    @property
    def targets(self) -> tuple[Target, ...]:
        """What to guard: each cloud's organisation, its members by role and ExternalId, every region opted in."""
        return tuple(Target(cloud, role=ROLE, external_id=EXTERNAL_ID, organisation=True) for cloud in self.names)

    def settings(self, bare: Settings) -> Settings:
        """`bare`, with every address, key and token of this sandbox filled in."""
        key = AccessKey(self.credentials.access_key_id, Secret(self.credentials.secret_access_key))
        return replace(
            bare,
            ledger=Secret(self.ledger_url),
            slack_token=Secret(self.slack.token),
            slack_signing_secret=Secret(self.slack.signing_secret),
            slack_url=self.slack.base_url,
            aws=Access(endpoint_url=self.endpoint_url, key=key),
            alibaba=_access_to(self.alibaba),
            tencent=_access_to(self.tencent),
        )

    def machine(self, name: str) -> ResourceRef:
        """The machine of this name in the fleet.

        Raises:
            LookupError: the fleet has none.
        """
        return machine_of(self.world, name)

    def work_on(self, machine: ResourceRef) -> None:
        """Its owner works on it, from now on and whenever it runs."""
        self.world.work(machine.native_id, BUSY)

    def _start(self) -> None:
        folder = self._open.enter_context(TemporaryDirectory(prefix="costguard-sandbox-", ignore_cleanup_errors=True))
        self.ledger_url = f"sqlite:///{Path(folder) / 'ledger.db'}"
        super()._start()


def machine_of(world: World, name: str) -> ResourceRef:
    """The machine of this name in the fleet of a world.

    Raises:
        LookupError: the fleet has none.
    """
    for spec in world.fleet:
        if spec.name == name:
            return known_as(spec)
    message = f"no machine is called {name!r}"
    raise LookupError(message)


def known_as(spec: MachineSpec) -> ResourceRef:
    """What Costguard calls a machine of the world."""
    return ResourceRef(spec.cloud, spec.account, spec.region, "instance", spec.native_id)


def standing_clock() -> MovedClock:
    """A clock that stands where the demo begins, for a command that needs no cloud."""
    return MovedClock(STARTS_AT)


@contextmanager
def serve(port: int = 0) -> Iterator[Sandbox]:
    """The demo's world from the beginning of its story, until the block ends, for other processes too.

    Raises:
        InvalidInputError: a port is taken, or another sandbox runs in this process.
    """
    try:
        sandbox = Sandbox.start(clock=RunningClock(at=STARTS_AT), port=port)
    except (OSError, OverflowError) as err:  # a port above 65535 overflows
        message = f"port {port}: it and the {PORTS - 1} after it have to be free: {err}"
        raise InvalidInputError(message) from err
    with sandbox:
        sandbox.control({"settings": lambda: described(sandbox), "messages": lambda: told(sandbox)})
        yield sandbox


@contextmanager
def serve_one(cloud: str, port: int = 0) -> Iterator[dict[str, str]]:
    """The demo's part on `cloud` alone, from now on, until the block ends; what is said of it.

    Raises:
        InvalidInputError: the port is taken.
    """
    with ExitStack() as opened:
        try:
            running = opened.enter_context(one_cloud(cloud, port))
        except (OSError, OverflowError) as err:
            message = f"port {port}: {err}"
            raise InvalidInputError(message) from err
        yield {
            "cloud": cloud,
            "url": running.url,
            "access_key_id": running.keys.key_id,
            "access_key_secret": running.keys.secret,
            "control": f"{running.url}/_sandbox/",
        }


def described(sandbox: Sandbox) -> dict[str, Any]:
    """What it is, its time, and the addresses and made-up keys of its parts."""
    settings, slack = sandbox.settings(Settings()), sandbox.slack
    return {
        "schema": 1,
        "sandbox": MARK,
        "url": sandbox.endpoint_url,
        "now": sandbox.clock.now().isoformat(),
        "ledger": sandbox.ledger_url,
        "clouds": {name: _entrance(settings.access(name)) for name in ("aws", "alibaba", "tencent")},
        "slack": {"url": slack.base_url, "token": slack.token, "signing_secret": slack.signing_secret},
    }


def told(sandbox: Sandbox) -> list[dict[str, str]]:
    """What people were told in Slack, in order."""
    return [
        {"at": posted.at.isoformat(), "channel": posted.channel, "text": posted.text} for posted in sandbox.slack.posted
    ]


def _entrance(access: Access) -> Mapping[str, str]:
    if access.key is None:
        return {}
    return {
        "url": access.endpoint_url,
        "access_key_id": access.key.key_id,
        "access_key_secret": access.key.secret.reveal(),
    }


def _access_to(emulator: AlibabaEmulator | TencentEmulator | None) -> Access:
    if emulator is None:
        return Access()
    return Access(endpoint_url=emulator.url, key=AccessKey(emulator.keys.key_id, Secret(emulator.keys.secret)))
