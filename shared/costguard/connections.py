"""Clouds, connected: the ports of each, opened when a target names it and closed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of
from costguard.domain.signals import SignalName
from costguard.engine.scan import Reading
from costguard.guards.budget_rules import StepKind
from costguard.guards.rules import Mode
from costguard.policy.model import Policy
from costguard.ports import (
    ActionExecutor,
    CallLog,
    Clock,
    FreezeControl,
    KeySource,
    Preflight,
    SignalSource,
    SpendSource,
    Target,
)

if TYPE_CHECKING:
    from costguard.providers.keys import Keys
    from costguard.settings import Access, Settings


@dataclass(frozen=True, slots=True)
class CloudPorts:
    """One cloud, connected. `executor` opens a second, acting session; it is never called in observe.

    `preflight` opens a session of its own as well, which can change nothing, with the log of what it sent.
    `spend` reads the bill, `keys` the encryption keys, through the reading session. `freezer` opens another, which can
    attach and detach policies (with True; with False only list them) and do nothing else.
    """

    reading: Reading
    spend: Callable[[], SpendSource]
    keys: Callable[[], KeySource]
    calls: CallLog
    executor: Callable[[], ActionExecutor]
    preflight: Callable[[], tuple[Preflight, CallLog]]
    freezer: Callable[[bool], tuple[FreezeControl, CallLog]]


class Connections(ExitStack):
    """The clouds a run talks to; closing it closes every connection."""

    def __init__(self, settings: Settings, policy: Policy, clock: Clock, deadline: datetime | None = None) -> None:
        super().__init__()
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

    def open(self, targets: Sequence[Target]) -> Mapping[str, CloudPorts]:
        """Connect every cloud that `targets` name; no request is sent yet."""
        self._targets = (*self._targets, *targets)
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
        provider = provider_of(cloud)
        if provider == "aws":
            return self._aws(cloud)
        if provider == "alibaba":
            return self._alibaba(cloud)
        if provider == "tencent":
            return self._tencent(cloud)
        message = f"{cloud!r} is no cloud that can be scanned; expected one of {', '.join(CLOUDS)}"
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
            endpoint_url=settings.aws.endpoint_url,
            home_region=settings.aws_region,
            keys=(settings.aws.key.key_id, settings.aws.key.secret.reveal()) if settings.aws.key else None,
            deadline=self._time_left,
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

        def spend() -> SpendSource:
            from costguard.providers.aws.billing import AwsSpend

            return AwsSpend(session, now=self._clock.now)

        def keys() -> KeySource:
            from costguard.providers.aws.kms import AwsKeys

            return AwsKeys(session)

        def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
            from costguard.providers.aws.freeze import AwsFreeze

            twin = session.freezing(may_change=may_change)
            self.callback(twin.close)
            return AwsFreeze(twin, self._way_into(cloud)), twin

        reading = Reading(AwsInventory(session), self._with_prometheus(signals), prices)
        return CloudPorts(reading, spend, keys, session, acting, asking, freezing)

    def _alibaba(self, cloud: str) -> CloudPorts:
        from costguard.providers.alibaba.compute import AlibabaInventory
        from costguard.providers.alibaba.metrics import AlibabaSignals
        from costguard.providers.alibaba.prices import AlibabaPrices
        from costguard.providers.alibaba.session import AlibabaSession

        if self._settings.alibaba_overridden:
            raise InvalidInputError(
                "environment: ALIYUN_ACCESS_KEY_ID is set: Alibaba Cloud's SDK would use that key instead of the role "
                "it is given, and so act on another account; unset it, and set ALIBABA_CLOUD_ACCESS_KEY_ID instead"
            )
        session = AlibabaSession(
            cloud=cloud,
            keys=_keys_of(self._settings.alibaba),
            endpoint=self._settings.alibaba.endpoint_url,
            deadline=self._time_left,
            now=self._clock.now,
        )
        self.callback(session.close)
        signals = AlibabaSignals(session, self._signals_named())
        prices = AlibabaPrices(session, self._policy.prices, now=self._clock.now())

        def acting() -> ActionExecutor:
            from costguard.providers.alibaba.executor import AlibabaExecutor

            twin = session.acting()
            self.callback(twin.close)
            return AlibabaExecutor(twin)

        def asking() -> tuple[Preflight, CallLog]:
            from costguard.providers.alibaba.preflight import AlibabaPreflight

            twin = session.dry_running()
            self.callback(twin.close)
            return AlibabaPreflight(twin, now=self._clock.now), twin

        def spend() -> SpendSource:
            from costguard.providers.alibaba.billing import AlibabaSpend

            return AlibabaSpend(session, now=self._clock.now)

        def keys() -> KeySource:
            from costguard.providers.alibaba.kms import AlibabaKeys

            return AlibabaKeys(session)

        def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
            from costguard.providers.alibaba.freeze import AlibabaFreeze

            twin = session.freezing(may_change=may_change)
            self.callback(twin.close)
            return AlibabaFreeze(twin, self._way_into(cloud)), twin

        reading = Reading(AlibabaInventory(session), self._with_prometheus(signals), prices)
        return CloudPorts(reading, spend, keys, session, acting, asking, freezing)

    def _tencent(self, cloud: str) -> CloudPorts:
        from costguard.providers.tencent.compute import TencentInventory
        from costguard.providers.tencent.metrics import TencentSignals
        from costguard.providers.tencent.prices import TencentPrices
        from costguard.providers.tencent.session import TencentSession

        session = TencentSession(
            cloud=cloud,
            keys=_keys_of(self._settings.tencent),
            endpoint=self._settings.tencent.endpoint_url,
            deadline=self._time_left,
            now=self._clock.now,
        )
        self.callback(session.close)
        signals = TencentSignals(session, self._signals_named())
        prices = TencentPrices(session, self._policy.prices, now=self._clock.now())

        def acting() -> ActionExecutor:
            from costguard.providers.tencent.executor import TencentExecutor

            twin = session.acting()
            self.callback(twin.close)
            return TencentExecutor(twin)

        def asking() -> tuple[Preflight, CallLog]:
            from costguard.providers.tencent.preflight import TencentPreflight

            return TencentPreflight(session), session

        def spend() -> SpendSource:
            from costguard.providers.tencent.billing import TencentSpend

            return TencentSpend(session, now=self._clock.now)

        def keys() -> KeySource:
            from costguard.providers.tencent.kms import TencentKeys

            return TencentKeys(session)

        def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
            from costguard.providers.tencent.freeze import TencentFreeze

            twin = session.freezing(may_change=may_change)
            self.callback(twin.close)
            return TencentFreeze(twin, self._way_into(cloud)), twin

        reading = Reading(TencentInventory(session), self._with_prometheus(signals), prices)
        return CloudPorts(reading, spend, keys, session, acting, asking, freezing)

    def _signals_named(self) -> frozenset[SignalName]:
        """GPU always, the others only where a rule names them: each costs requests."""
        of_rules = [rule.idle for rule in self._policy.idle_gpu]
        of_budgets = [step.idle for budget in self._policy.budgets for step in budget.steps]
        named = {name for bounds in (*of_rules, *of_budgets) for name, _ in bounds.bounds()}
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

    @property
    def _time_left(self) -> Callable[[], float] | None:
        """What tells the seconds until the deadline, where there is one."""
        return self._seconds_left if self._deadline is not None else None

    def _seconds_left(self) -> float:
        return float("inf") if self._deadline is None else (self._deadline - self._clock.now()).total_seconds()


def _keys_of(access: Access) -> Keys | None:
    from costguard.providers.keys import Keys

    key = access.key
    return None if key is None else Keys(key.key_id, key.secret.reveal(), key.token.reveal())
