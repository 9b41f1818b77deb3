"""How each cloud is connected: the one table of which adapter serves which port, through which session.

A provider is imported when a target names one of its clouds, and a part of it when somebody opens that port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from costguard.connections.objects import keys_of, plain_keys_of
from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of
from costguard.domain.signals import SignalName
from costguard.engine.run.scan import CloudReaders
from costguard.policy.model.policy import Policy
from costguard.ports import (
    ActionExecutor,
    CallLog,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    Preflight,
    SignalSource,
    SpendSource,
    Target,
)
from costguard.providers.kit.iam.permissions import Purpose
from costguard.settings import Settings

if TYPE_CHECKING:
    from costguard.providers.kit.core.session import Session


@dataclass(frozen=True, slots=True)
class CloudPorts:
    """One cloud, connected. `executor` opens a second, acting session; it is never called in observe.

    `preflight` opens a session of its own as well, which can change nothing, with the log of what it sent.
    `spend` reads the bill, `keys` the encryption keys, `network` the networks, `trail` the audit trail, through the
    reading session. `rotator` and `remediator` open sessions of their own, which can rotate keys and change network
    settings and do nothing else; `keep_tagger` one that can write a Keep on a machine.
    `successor` opens one that can make a key like another and move an alias to it, None where the cloud has no aliases
    that can be moved. `freezer` opens another, which can attach and detach policies (with True; with False only list
    them).
    """

    reading: CloudReaders
    spend: Callable[[], SpendSource]
    keys: Callable[[], KeySource]
    network: Callable[[], NetworkSource]
    calls: CallLog
    executor: Callable[[], ActionExecutor]
    preflight: Callable[[], tuple[Preflight, CallLog]]
    freezer: Callable[[bool], tuple[FreezeControl, CallLog]]
    rotator: Callable[[], KeyRotator]
    remediator: Callable[[], NetworkRemediator]
    trail: Callable[[], CloudAuditLog]
    keep_tagger: Callable[[], KeepTagger]
    successor: Callable[[], KeySuccessor] | None = None


@dataclass(frozen=True, slots=True)
class Wiring:
    """What every cloud is connected with.

    `signals_named` are judged; `signals_shown` are read beside them, decide nothing and may be missing.
    `seconds_left` tells the time until the deadline, None where there is none. `close_later` is called with what closes
    a session. `combined` adds the servers of the policy to a cloud's own signals; `way_into` names the target whose
    role leads into an account. `mark` is what the sessions of a deployment that may act are called; empty: of no one.
    """

    cloud: str
    settings: Settings
    policy: Policy
    now: Callable[[], datetime]
    seconds_left: Callable[[], float] | None
    signals_named: frozenset[SignalName]
    signals_shown: frozenset[SignalName]
    combined: Callable[[SignalSource], SignalSource]
    way_into: Callable[[str], Target | None]
    close_later: Callable[[Callable[[], None]], object]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A port's adapter, `{Cloud}{name}` in `providers.{cloud}.{module}`: through the reading session, or its own.

    `clocked` are the providers whose adapter is handed the time. `lacking`: those that have none.
    """

    module: str
    name: str
    purpose: Purpose | None = None
    clocked: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()


_ALL = frozenset({"aws", "alibaba", "tencent"})

PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "spend": Part("billing.source", "Spend", clocked=_ALL),
        "keys": Part("kms.source", "Keys"),
        "network": Part("network.source", "Network", clocked=_ALL - {"aws"}),
        "trail": Part("compute.audit_log", "AuditLog", clocked=_ALL),
        "rotator": Part("kms.rotation", "KeyRotator", Purpose.ROTATE),
        "successor": Part("kms.rotation", "KeySuccessor", Purpose.SUCCEED, lacking=frozenset({"tencent"})),
        "remediator": Part("network.remediator", "NetworkRemediator", Purpose.MEND),
        "keep_tagger": Part("compute.executor", "KeepTagger", Purpose.KEEP_TAG),
    }
)
"""By field of `CloudPorts`. What acts, asks and freezes opens its session in a way of its own."""


def connect(wiring: Wiring) -> CloudPorts:
    """Connect a cloud; no request is sent yet.

    Raises:
        InvalidInputError: it is no cloud that can be scanned, or the surroundings would lead to another account.
    """
    provider = provider_of(wiring.cloud)
    if provider not in _CONNECTED:
        message = f"{wiring.cloud!r} is no cloud that can be scanned; expected one of {', '.join(CLOUDS)}"
        raise InvalidInputError(message)
    session, reading = _CONNECTED[provider](wiring)

    def made(module: str, name: str) -> Any:
        return getattr(import_module(f"costguard.providers.{provider}.{module}"), f"{provider.title()}{name}")

    def own(twin: Session[Any, Any]) -> Session[Any, Any]:
        wiring.close_later(twin.close)
        return twin

    def opened(part: Part) -> Any:
        adapter = made(part.module, part.name)
        through = session if part.purpose is None else own(session.only_for(part.purpose))
        return adapter(through, now=wiring.now) if provider in part.clocked else adapter(through)

    def asking() -> tuple[Preflight, CallLog]:
        adapter = made("iam.preflight", "Preflight")
        if provider == "tencent":  # it has no dry run: nothing is asked but what any session may ask
            return adapter(session), session
        twin = own(session.dry_running())
        return adapter(twin, now=wiring.now), twin

    def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
        twin = own(session.only_for(Purpose.FREEZE, may_change=may_change))
        return made("iam.freeze", "Freeze")(twin, wiring.way_into), twin

    return CloudPorts(
        reading=reading,
        calls=session,
        executor=lambda: made("compute.executor", "Executor")(own(session.acting())),
        preflight=asking,
        freezer=freezing,
        **{name: partial(opened, part) for name, part in PARTS.items() if provider not in part.lacking},
    )


def _aws(wiring: Wiring) -> tuple[Session[Any, Any], CloudReaders]:
    from costguard.providers.aws.billing.prices import AwsPrices
    from costguard.providers.aws.compute.metrics import AwsSignals
    from costguard.providers.aws.compute.source import AwsInventory
    from costguard.providers.aws.core.session import AwsSession

    settings, policy = wiring.settings, wiring.policy
    session = AwsSession(
        cloud=wiring.cloud,
        profile=settings.aws_profile,
        endpoint_url=settings.aws.endpoint_url,
        home_region=settings.aws_region,
        keys=plain_keys_of(settings.aws),
        deadline=wiring.seconds_left,
        mark=wiring.mark,
        paced=wiring.settings.paced,
    )
    wiring.close_later(session.close)
    namespace = policy.signals.cloudwatch_namespace
    signals = AwsSignals(session, wiring.signals_named, namespace, wiring.signals_shown)
    prices = AwsPrices(session, policy.prices, now=wiring.now())
    return session, CloudReaders(AwsInventory(session), wiring.combined(signals), prices)


def _alibaba(wiring: Wiring) -> tuple[Session[Any, Any], CloudReaders]:
    from costguard.providers.alibaba.billing.prices import AlibabaPrices
    from costguard.providers.alibaba.compute.metrics import AlibabaSignals
    from costguard.providers.alibaba.compute.source import AlibabaInventory
    from costguard.providers.alibaba.core.session import AlibabaSession

    settings = wiring.settings
    if settings.alibaba_overridden:
        raise InvalidInputError(
            "environment: ALIYUN_ACCESS_KEY_ID is set: Alibaba Cloud's SDK would use that key instead of the role "
            "it is given, and so act on another account; unset it, and set ALIBABA_CLOUD_ACCESS_KEY_ID instead"
        )
    session = AlibabaSession(
        cloud=wiring.cloud,
        keys=keys_of(settings.alibaba),
        endpoint=settings.alibaba.endpoint_url,
        deadline=wiring.seconds_left,
        mark=wiring.mark,
        paced=wiring.settings.paced,
        now=wiring.now,
    )
    wiring.close_later(session.close)
    signals = AlibabaSignals(session, wiring.signals_named, wiring.signals_shown)
    prices = AlibabaPrices(session, wiring.policy.prices, now=wiring.now())
    return session, CloudReaders(AlibabaInventory(session), wiring.combined(signals), prices)


def _tencent(wiring: Wiring) -> tuple[Session[Any, Any], CloudReaders]:
    from costguard.providers.tencent.billing.prices import TencentPrices
    from costguard.providers.tencent.compute.metric_calls import pages_for
    from costguard.providers.tencent.compute.metrics import TencentSignals
    from costguard.providers.tencent.compute.source import TencentInventory
    from costguard.providers.tencent.core.session import TencentSession

    access = wiring.settings.tencent
    session = TencentSession(
        cloud=wiring.cloud,
        keys=keys_of(access),
        endpoint=access.endpoint_url,
        deadline=wiring.seconds_left,
        mark=wiring.mark,
        paced=wiring.settings.paced,
        now=wiring.now,
    )
    wiring.close_later(session.close)
    pages = pages_for(wiring.cloud, access.endpoint_url)
    signals = TencentSignals(session, wiring.signals_named, wiring.signals_shown, pages=pages)
    prices = TencentPrices(session, wiring.policy.prices, now=wiring.now())
    return session, CloudReaders(TencentInventory(session), wiring.combined(signals), prices)


_CONNECTED: Mapping[str, Callable[[Wiring], tuple[Session[Any, Any], CloudReaders]]] = MappingProxyType(
    {"aws": _aws, "alibaba": _alibaba, "tencent": _tencent}
)
"""The session that reads a provider's clouds, and what is read through it."""
