"""The only place where ports meet their adapters, and the only clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from costguard.domain.errors import InvalidInputError
from costguard.domain.signals import SignalName
from costguard.engine.scan import Reading
from costguard.guards.rules import Mode
from costguard.policy.model import Policy
from costguard.ports import ActionExecutor, CallLog, Clock, Notifier, Preflight, RecordStore, SignalSource, Target

if TYPE_CHECKING:
    from costguard.domain.reasons import Reason
    from costguard.engine.memory import Memory
    from costguard.engine.policy_in_force import PolicyInForce
    from costguard.engine.surroundings import Surroundings
    from costguard.settings import Settings

_AWS_CLOUDS = ("aws", "aws-cn", "aws-us-gov")


class SystemClock:
    """The clock on the wall."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        """Wait for real."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class CloudPorts:
    """One cloud, connected. `executor` opens a second, acting session; it is never called in observe.

    `preflight` opens a session of its own as well, which can change nothing, with the log of what it sent.
    """

    reading: Reading
    calls: CallLog
    executor: Callable[[], ActionExecutor]
    preflight: Callable[[], tuple[Preflight, CallLog]]


class Connections(ExitStack):
    """The clouds a run talks to; closing it closes every connection."""

    def __init__(self, settings: Settings, policy: Policy, clock: Clock, deadline: datetime | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self._deadline = deadline
        self.clouds: dict[str, CloudPorts] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return super().__exit__(kind, error, trace)

    def open(self, targets: Sequence[Target]) -> Mapping[str, CloudPorts]:
        """Connect every cloud that `targets` name; no request is sent yet."""
        for target in targets:
            if target.cloud not in self.clouds:
                self.clouds[target.cloud] = self._connect(target.cloud)
        return self.clouds

    @property
    def readings(self) -> Mapping[str, Reading]:
        """The read-only ports by cloud."""
        return {cloud: ports.reading for cloud, ports in self.clouds.items()}

    def executors(self) -> Mapping[str, ActionExecutor]:
        """Clients that may change things, only where a rule enforces; in observe there are none."""
        if not any(rule.mode is Mode.ENFORCE for rule in self._policy.idle_gpu):
            return {}
        return {cloud: ports.executor() for cloud, ports in self.clouds.items()}

    def _connect(self, cloud: str) -> CloudPorts:
        if cloud in _AWS_CLOUDS:
            return self._aws(cloud)
        message = f"{cloud!r} cannot be scanned by this version; it knows {', '.join(_AWS_CLOUDS)}"
        raise InvalidInputError(message)

    def _aws(self, cloud: str) -> CloudPorts:
        from costguard.providers.aws.compute import AwsInventory
        from costguard.providers.aws.metrics import AwsSignals
        from costguard.providers.aws.prices import AwsPrices
        from costguard.providers.aws.session import AwsSession

        settings = self._settings
        session = AwsSession(
            cloud=cloud,
            profile=settings.aws_profile,
            endpoint_url=settings.aws_endpoint_url,
            home_region=settings.aws_region,
            keys=(settings.aws_keys[0], settings.aws_keys[1].reveal()) if settings.aws_keys else None,
            deadline=self._seconds_left if self._deadline is not None else None,
        )
        self.callback(session.close)
        signals = AwsSignals(session, self._signals_named(), self._policy.signals.cloudwatch_namespace)
        prices = AwsPrices(session, self._policy.prices, now=self._clock.now())

        def acting() -> ActionExecutor:
            from costguard.providers.aws.executor import AwsExecutor

            twin = session.acting()
            self.callback(twin.close)
            return AwsExecutor(twin)

        def asking() -> tuple[Preflight, CallLog]:
            from costguard.providers.aws.preflight import AwsPreflight

            twin = session.dry_running()
            self.callback(twin.close)
            return AwsPreflight(twin, now=self._clock.now), twin

        reading = Reading(AwsInventory(session), self._with_prometheus(signals), prices)
        return CloudPorts(reading, session, acting, asking)

    def _signals_named(self) -> frozenset[SignalName]:
        """GPU always, the others only where a rule names them: each costs requests."""
        named = {name for rule in self._policy.idle_gpu for name, _ in rule.idle.bounds()}
        return frozenset({SignalName.GPU, *named})

    def _with_prometheus(self, signals: SignalSource) -> SignalSource:
        if not self._policy.signals.prometheus:
            return signals
        from costguard.signal_sources.combined import CombinedSignals
        from costguard.signal_sources.http import http_post
        from costguard.signal_sources.prometheus import PrometheusSignals

        authorization = self._settings.prometheus_authorization.reveal()
        servers = [
            PrometheusSignals(server, http_post(server.url, authorization=authorization), self._signals_named())
            for server in self._policy.signals.prometheus
        ]
        return CombinedSignals([signals, *servers])

    def _seconds_left(self) -> float:
        if self._deadline is None:
            return float("inf")
        return (self._deadline - self._clock.now()).total_seconds()


def targets_of(policy: Policy, settings: Settings) -> tuple[Target, ...]:
    """The accounts the policy names; without any, the one the credentials belong to."""
    if not policy.accounts:
        return (Target(settings.cloud, role=settings.aws_role, external_id=settings.aws_external_id),)
    return tuple(
        Target(
            cloud=account.cloud,
            account=account.id,
            regions=account.regions,
            role=account.role or settings.aws_role,
            external_id=account.external_id or settings.aws_external_id,
            owner=account.owner,
            organisation=account.organisation,
        )
        for account in policy.accounts
    )


def read_policy(settings: Settings) -> Policy:
    """The policy named by the settings; without one the shipped default, which observes.

    Raises:
        InvalidInputError: nothing there, or not a valid policy.
    """
    if not settings.policy:
        from costguard.policy.defaults import default_policy

        return default_policy()
    from costguard.policy.loader import load_policy
    from costguard.policy_sources.files import FilePolicySource

    return load_policy(FilePolicySource(settings.policy).read())


def open_memory(settings: Settings) -> Memory:
    """The ledger named by the settings, with its repositories.

    Raises:
        InvalidInputError: not an address of a ledger.
        LedgerError: it cannot be opened.
    """
    from costguard.engine.memory import Memory

    return Memory.over(open_store(settings.ledger.reveal()))


def open_store(url: str) -> RecordStore:
    """The ledger at `url`: SQLite, PostgreSQL, DynamoDB or this process's memory.

    Raises:
        InvalidInputError: not an address of a ledger.
        LedgerError: it cannot be opened.
    """
    if url.startswith("dynamodb:"):
        from costguard.providers.aws.store import open_dynamodb

        return open_dynamodb(url)
    from costguard.ledgers.open import open_ledger

    return open_ledger(url)


def notifier_of(settings: Settings) -> Notifier:
    """Slack where a token is set; without one every notice is refused, and so nothing is ever stopped."""
    from costguard.notifiers.router import NotifierRouter

    channels: dict[str, Notifier] = {}
    if settings.slack_token:
        from costguard.notifiers.slack import SlackNotifier

        channels["slack"] = SlackNotifier(settings.slack_token.reveal(), base_url=settings.slack_url)
    return NotifierRouter(channels, default="slack")


@contextmanager
def open_surroundings(
    settings: Settings,
    guard: str,
    *,
    policy: Policy | None = None,
    policy_now: Callable[[], Policy] | None = None,
    problem: Reason | None = None,
    memory: Memory | None = None,
    clock: Clock | None = None,
    deadline: datetime | None = None,
    may_act: bool = True,
) -> Iterator[Surroundings]:
    """Everything one run of `guard` touches, connected; closed again on leaving.

    `may_act` False builds no executor whatever the policy says: plans and previews cannot change a thing.
    `problem` says why `policy` may not be acted on. A `memory` given stays open.
    """
    from costguard.engine.surroundings import Surroundings

    clock = clock or SystemClock()
    policy = policy or read_policy(settings)
    targets = targets_of(policy, settings)
    with Connections(settings, policy, clock, deadline) as connections:
        if memory is None:
            memory = open_memory(settings)
            connections.callback(memory.store.close)
        connections.open(targets)
        yield Surroundings(
            guard=guard,
            policy=policy,
            targets=targets,
            readings=connections.readings,
            executors=connections.executors() if may_act else {},
            memory=memory,
            notifier=notifier_of(settings),
            clock=clock,
            policy_now=policy_now or (lambda: read_policy(settings)),
            policy_problem=problem,
            host_paused=settings.paused,
            language=settings.language,
        )


def run_function(
    guard: str, run_id: str, deadline: datetime | None, settings: Settings, clock: Clock | None = None
) -> dict[str, Any]:
    """One scheduled run, as a function host asks for it; returns its figures.

    A policy that is broken now is replaced by the last good one for at most seven days; people are told.
    """
    from costguard.engine.policy_in_force import tell_of_broken_policy
    from costguard.engine.run import run, summary

    clock = clock or SystemClock()
    memory = open_memory(settings)
    with closing(memory.store):
        found = _policy_in_force(settings, memory, clock.now())
        with open_surroundings(
            settings,
            guard,
            policy=found.policy,
            policy_now=lambda: _policy_in_force(settings, memory, clock.now()).policy,
            problem=found.problem,
            memory=memory,
            clock=clock,
            deadline=deadline,
        ) as world:
            tell_of_broken_policy(memory, found, settings.language, clock.now())
            return summary(run(world, run_id, deadline=deadline))


def _policy_in_force(settings: Settings, memory: Memory, now: datetime) -> PolicyInForce:
    from costguard.engine.policy_in_force import PolicyInForce, policy_in_force
    from costguard.policy_sources.files import FilePolicySource

    if not settings.policy:
        return PolicyInForce(read_policy(settings))
    return policy_in_force(FilePolicySource(settings.policy), memory, now)
