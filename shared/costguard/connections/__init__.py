"""Clouds, connected: the ports of each, opened when a target names it and closed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from costguard.connections.clouds import CloudPorts, Wiring, connect
from costguard.domain.keys import RotationMeans
from costguard.domain.refs import Deployment
from costguard.domain.signals import SignalName
from costguard.engine.ledger.learned import IdentityRepository
from costguard.engine.run.scan import CloudReaders
from costguard.guards.budget.rules import StepKind
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import Policy
from costguard.ports import (
    ActionExecutor,
    CallLog,
    Clock,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    SignalSource,
    SpendSource,
    Target,
)

if TYPE_CHECKING:
    from costguard.settings import Settings


_SHOWN = frozenset({SignalName.CPU, SignalName.NETWORK, SignalName.DISK, SignalName.POWER})
"""What is read whatever the rules name: evidence for people, and what contradicts an exporter that is stuck at 0."""


class Connections(ExitStack):
    """The clouds a run talks to; closing it closes every connection.

    `exactly`: read the GPU, what the rules name and these as closely as what is judged, and nothing beside them.
    """

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        clock: Clock,
        deadline: datetime | None = None,
        *,
        exactly: frozenset[SignalName] | None = None,
    ) -> None:
        super().__init__()
        self._mark = ""
        self._exactly = exactly
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self._deadline = deadline
        self._targets: Sequence[Target] = ()
        self.clouds: dict[str, CloudPorts] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return super().__exit__(kind, error, trace)

    def named(self, identity: IdentityRepository, *, may_act: bool) -> Deployment:
        """Which deployment this is; what may act has its mark in all sessions that are opened from now on.

        What only looks has none, and its ledger is not written.
        """
        acts = may_act and self._policy.enforces
        own = Deployment(self._settings.deployment, identity.made(self._clock.now()) if acts else identity.known())
        self._mark = str(own) if acts else ""
        return own

    def open(self, targets: Sequence[Target]) -> Mapping[str, CloudPorts]:
        """Connect every cloud that `targets` name; no request is sent yet."""
        self._targets = (*self._targets, *targets)
        for target in targets:
            if target.cloud not in self.clouds:
                self.clouds[target.cloud] = self._connect(target.cloud)
        return self.clouds

    @property
    def readings(self) -> Mapping[str, CloudReaders]:
        """The read-only ports by cloud."""
        return {cloud: ports.reading for cloud, ports in self.clouds.items()}

    def executors(self) -> Mapping[str, ActionExecutor]:
        """Clients that may change things, only where a rule enforces; in observe there are none."""
        policy = self._policy
        modes = {*(rule.mode for rule in policy.idle_gpu), *(budget.mode for budget in policy.budgets)}
        if Mode.ENFORCE not in modes:
            return {}
        return {cloud: ports.executor() for cloud, ports in self.clouds.items()}

    def spends(self) -> Mapping[str, SpendSource]:
        """What reads the bills, by cloud."""
        return {cloud: ports.spend() for cloud, ports in self.clouds.items()}

    def keys(self) -> Mapping[str, KeySource]:
        """What reads the encryption keys, by cloud."""
        return {cloud: ports.keys() for cloud, ports in self.clouds.items()}

    def trails(self) -> Mapping[str, CloudAuditLog]:
        """What reads the audit trails, by cloud."""
        return {cloud: ports.trail() for cloud, ports in self.clouds.items()}

    def rotators(self) -> Mapping[str, Callable[[], KeyRotator]]:
        """What opens the client that rotates keys, by cloud, once; only where a rule for keys enforces."""
        if not any(rule.mode is Mode.ENFORCE for rule in self._policy.kms_rotation):
            return {}
        return {cloud: cache(ports.rotator) for cloud, ports in self.clouds.items()}

    def successors(self) -> Mapping[str, Callable[[], KeySuccessor]]:
        """What opens the client that makes a key in another's place, by cloud, once.

        Only where a rule for keys enforces and names `successor` among its means, and the cloud has it.
        """
        rules = (rule for rule in self._policy.kms_rotation if rule.mode is Mode.ENFORCE)
        if not any(RotationMeans.SUCCESSOR in rule.means for rule in rules):
            return {}
        return {cloud: cache(ports.successor) for cloud, ports in self.clouds.items() if ports.successor is not None}

    def keep_taggers(self) -> Mapping[str, Callable[[], KeepTagger]]:
        """What opens the client that writes Keeps on machines, by cloud, once; only where the policy asks for it.

        And only where a rule for machines enforces: else nothing is written anywhere.
        """
        enforces = any(rule.mode is Mode.ENFORCE for rule in self._policy.idle_gpu)
        if not (self._policy.keep_as_tag and enforces):
            return {}
        return {cloud: cache(ports.keep_tagger) for cloud, ports in self.clouds.items()}

    def networks(self) -> Mapping[str, NetworkSource]:
        """What reads the networks, by cloud."""
        return {cloud: ports.network() for cloud, ports in self.clouds.items()}

    def network_remediators(self) -> Mapping[str, Callable[[], NetworkRemediator]]:
        """What opens the client that changes network settings, by cloud, once; only where a rule for them enforces."""
        if not any(rule.mode is Mode.ENFORCE for rule in self._policy.network_audit):
            return {}
        return {cloud: cache(ports.remediator) for cloud, ports in self.clouds.items()}

    def freezers(self, begun: Iterable[str] = ()) -> Mapping[str, Callable[[], FreezeControl]]:
        """What opens the control of launch freezes, by cloud: where a budget that enforces asks for one there.

        `begun` are the clouds where one was begun: it has to be ended there, whatever the policy says by now.
        """
        policy = self._policy
        steps = (step for budget in policy.budgets if budget.mode is Mode.ENFORCE for step in budget.steps)
        asked = {name for step in steps if step.kind is StepKind.FREEZE for name in step.freezes}
        clouds = {*begun, *(freeze.cloud for freeze in policy.launch_freezes if freeze.name in asked)}
        return {cloud: self.freezer(cloud) for cloud in sorted(clouds)}

    def freezer(self, cloud: str) -> Callable[[], FreezeControl]:
        """What opens the control of launch freezes in one cloud, once and only when it is called."""

        @cache
        def opened() -> FreezeControl:
            return (self.clouds.get(cloud) or self._connect(cloud)).freezer(True)[0]  # noqa: FBT003 - it may change

        return opened

    def freezes_seen(self, cloud: str) -> tuple[FreezeControl, CallLog]:
        """What can look at the launch freezes of a cloud and change nothing, with the log of what it sent."""
        return (self.clouds.get(cloud) or self._connect(cloud)).freezer(False)  # noqa: FBT003 - it may not change

    def _way_into(self, cloud: str) -> Callable[[str], Target | None]:
        """Which target's role leads into an account of this cloud: its own, or that of an organisation."""

        def way(account: str) -> Target | None:
            mine = [target for target in self._targets if target.cloud == cloud]
            named = (target for target in mine if target.account == account)
            return next(named, None) or next((target for target in mine if target.organisation), None)

        return way

    def _connect(self, cloud: str) -> CloudPorts:
        return connect(
            Wiring(
                cloud=cloud,
                settings=self._settings,
                policy=self._policy,
                now=self._clock.now,
                seconds_left=self._seconds_left if self._deadline is not None else None,
                signals_named=self.signals_named,
                signals_shown=self._signals_shown,
                combined=self._with_prometheus,
                way_into=self._way_into(cloud),
                close_later=self.callback,
                mark=self._mark,
            )
        )

    @property
    def signals_named(self) -> frozenset[SignalName]:
        """GPU always, the others where a rule names them: what is judged. The rest is read coarsely and only shown."""
        of_rules = [rule.idle for rule in (*self._policy.idle_gpu, *self._policy.shadows.idle_gpu)]
        of_budgets = [step.idle for budget in self._policy.budgets for step in budget.steps]
        named = {name for bounds in (*of_rules, *of_budgets) for name, _ in bounds.bounds()}
        return frozenset({SignalName.GPU, *named, *(self._exactly or ())})

    @property
    def _signals_shown(self) -> frozenset[SignalName]:
        return _SHOWN - self.signals_named if self._exactly is None else frozenset()

    def _with_prometheus(self, signals: SignalSource) -> SignalSource:
        if not self._policy.signals.prometheus:
            return signals
        from costguard.adapters.signal_sources.combined import CombinedSignals
        from costguard.connections.prometheus import prometheus_signals

        named, shown = self.signals_named, self._signals_shown
        servers = [
            prometheus_signals(self._settings, server, named, shown) for server in self._policy.signals.prometheus
        ]
        return CombinedSignals([signals, *servers])

    def _seconds_left(self) -> float:
        return float("inf") if self._deadline is None else (self._deadline - self._clock.now()).total_seconds()
