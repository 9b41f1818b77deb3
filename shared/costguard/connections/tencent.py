"""How Tencent Cloud, on either site, is connected. Imported only where a target names it."""

from __future__ import annotations

from functools import partial

from costguard.connections.keys import keys_of
from costguard.connections.ports import CloudPorts, Wiring
from costguard.engine.run.scan import CloudReaders
from costguard.ports import (
    ActionExecutor,
    CallLog,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    NetworkRemediator,
    NetworkSource,
    Preflight,
    SpendSource,
)
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.billing.prices import TencentPrices
from costguard.providers.tencent.compute.metric_calls import pages_for
from costguard.providers.tencent.compute.metrics import TencentSignals
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.session import TencentSession


def connect(wiring: Wiring) -> CloudPorts:
    """Connect it; no request is sent yet."""
    settings = wiring.settings
    session = TencentSession(
        cloud=wiring.cloud,
        keys=keys_of(settings.tencent),
        endpoint=settings.tencent.endpoint_url,
        deadline=wiring.seconds_left,
        mark=wiring.mark,
        now=wiring.now,
    )
    wiring.close_later(session.close)
    pages = pages_for(wiring.cloud, settings.tencent.endpoint_url)
    signals = TencentSignals(session, wiring.signals_named, wiring.signals_shown, pages=pages)
    prices = TencentPrices(session, wiring.policy.prices, now=wiring.now())

    def acting() -> ActionExecutor:
        from costguard.providers.tencent.compute.executor import TencentExecutor

        twin = session.acting()
        wiring.close_later(twin.close)
        return TencentExecutor(twin)

    def asking() -> tuple[Preflight, CallLog]:
        from costguard.providers.tencent.iam.preflight import TencentPreflight

        return TencentPreflight(session), session

    def spend() -> SpendSource:
        from costguard.providers.tencent.billing.source import TencentSpend

        return TencentSpend(session, now=wiring.now)

    def keys() -> KeySource:
        from costguard.providers.tencent.kms.source import TencentKeys

        return TencentKeys(session)

    def network() -> NetworkSource:
        from costguard.providers.tencent.network.source import TencentNetwork

        return TencentNetwork(session, now=wiring.now)

    def trail() -> CloudAuditLog:
        from costguard.providers.tencent.compute.audit_log import TencentAuditLog

        return TencentAuditLog(session, now=wiring.now)

    def rotating() -> KeyRotator:
        from costguard.providers.tencent.kms.rotation import TencentKeyRotator

        twin = session.only_for(Purpose.ROTATE)
        wiring.close_later(twin.close)
        return TencentKeyRotator(twin)

    def mending() -> NetworkRemediator:
        from costguard.providers.tencent.network.remediator import TencentNetworkRemediator

        twin = session.only_for(Purpose.MEND)
        wiring.close_later(twin.close)
        return TencentNetworkRemediator(twin)

    def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
        from costguard.providers.tencent.iam.freeze import TencentFreeze

        twin = session.only_for(Purpose.FREEZE, may_change=may_change)
        wiring.close_later(twin.close)
        return TencentFreeze(twin, wiring.way_into), twin

    reading = CloudReaders(TencentInventory(session), wiring.combined(signals), prices)
    return CloudPorts(
        reading,
        spend,
        keys,
        network,
        session,
        acting,
        asking,
        freezing,
        rotating,
        mending,
        trail,
        partial(_keeping, wiring, session),
    )


def _keeping(wiring: Wiring, session: TencentSession) -> KeepTagger:
    from costguard.providers.tencent.compute.executor import TencentKeepTagger

    twin = session.only_for(Purpose.KEEP_TAG)
    wiring.close_later(twin.close)
    return TencentKeepTagger(twin)
