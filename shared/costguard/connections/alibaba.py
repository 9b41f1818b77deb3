"""How Alibaba Cloud, on either site, is connected. Imported only where a target names it."""

from __future__ import annotations

from functools import partial

from costguard.connections.keys import keys_of
from costguard.connections.ports import CloudPorts, Wiring
from costguard.domain.errors import InvalidInputError
from costguard.engine.run.scan import CloudReaders
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
    SpendSource,
)
from costguard.providers.alibaba.billing.prices import AlibabaPrices
from costguard.providers.alibaba.compute.metrics import AlibabaSignals
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.iam.permissions import Purpose


def connect(wiring: Wiring) -> CloudPorts:
    """Connect it; no request is sent yet."""
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
        now=wiring.now,
    )
    wiring.close_later(session.close)
    signals = AlibabaSignals(session, wiring.signals_named, wiring.signals_shown)
    prices = AlibabaPrices(session, wiring.policy.prices, now=wiring.now())

    def acting() -> ActionExecutor:
        from costguard.providers.alibaba.compute.executor import AlibabaExecutor

        twin = session.acting()
        wiring.close_later(twin.close)
        return AlibabaExecutor(twin)

    def asking() -> tuple[Preflight, CallLog]:
        from costguard.providers.alibaba.iam.preflight import AlibabaPreflight

        twin = session.dry_running()
        wiring.close_later(twin.close)
        return AlibabaPreflight(twin, now=wiring.now), twin

    def spend() -> SpendSource:
        from costguard.providers.alibaba.billing.source import AlibabaSpend

        return AlibabaSpend(session, now=wiring.now)

    def keys() -> KeySource:
        from costguard.providers.alibaba.kms.source import AlibabaKeys

        return AlibabaKeys(session)

    def network() -> NetworkSource:
        from costguard.providers.alibaba.network.source import AlibabaNetwork

        return AlibabaNetwork(session, now=wiring.now)

    def rotating() -> KeyRotator:
        from costguard.providers.alibaba.kms.rotation import AlibabaKeyRotator

        twin = session.only_for(Purpose.ROTATE)
        wiring.close_later(twin.close)
        return AlibabaKeyRotator(twin)

    def mending() -> NetworkRemediator:
        from costguard.providers.alibaba.network.remediator import AlibabaNetworkRemediator

        twin = session.only_for(Purpose.MEND)
        wiring.close_later(twin.close)
        return AlibabaNetworkRemediator(twin)

    def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
        from costguard.providers.alibaba.iam.freeze import AlibabaFreeze

        twin = session.only_for(Purpose.FREEZE, may_change=may_change)
        wiring.close_later(twin.close)
        return AlibabaFreeze(twin, wiring.way_into), twin

    reading = CloudReaders(AlibabaInventory(session), wiring.combined(signals), prices)
    succeeding = partial(_succeeding, wiring, session)
    changing = (freezing, rotating, mending)
    return CloudPorts(
        reading,
        spend,
        keys,
        network,
        session,
        acting,
        asking,
        *changing,
        partial(_trail, wiring, session),
        partial(_keeping, wiring, session),
        succeeding,
    )


def _succeeding(wiring: Wiring, session: AlibabaSession) -> KeySuccessor:
    from costguard.providers.alibaba.kms.rotation import AlibabaKeySuccessor

    twin = session.only_for(Purpose.SUCCEED)
    wiring.close_later(twin.close)
    return AlibabaKeySuccessor(twin)


def _trail(wiring: Wiring, session: AlibabaSession) -> CloudAuditLog:
    from costguard.providers.alibaba.compute.audit_log import AlibabaAuditLog

    return AlibabaAuditLog(session, now=wiring.now)


def _keeping(wiring: Wiring, session: AlibabaSession) -> KeepTagger:
    from costguard.providers.alibaba.compute.executor import AlibabaKeepTagger

    twin = session.only_for(Purpose.KEEP_TAG)
    wiring.close_later(twin.close)
    return AlibabaKeepTagger(twin)
