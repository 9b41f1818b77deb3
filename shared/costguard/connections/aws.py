"""How AWS, in any partition, is connected. Imported only where a target names it."""

from __future__ import annotations

from functools import partial

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
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    Preflight,
    SpendSource,
)
from costguard.providers.aws.billing.prices import AwsPrices
from costguard.providers.aws.compute.metrics import AwsSignals
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.iam.permissions import Purpose


def connect(wiring: Wiring) -> CloudPorts:
    """Connect it; no request is sent yet."""
    settings = wiring.settings
    session = AwsSession(
        cloud=wiring.cloud,
        profile=settings.aws_profile,
        endpoint_url=settings.aws.endpoint_url,
        home_region=settings.aws_region,
        keys=(settings.aws.key.key_id, settings.aws.key.secret.reveal()) if settings.aws.key else None,
        deadline=wiring.seconds_left,
        mark=wiring.mark,
    )
    wiring.close_later(session.close)
    namespace = wiring.policy.signals.cloudwatch_namespace
    signals = AwsSignals(session, wiring.signals_named, namespace, wiring.signals_shown)
    prices = AwsPrices(session, wiring.policy.prices, now=wiring.now())

    def acting() -> ActionExecutor:
        from costguard.providers.aws.compute.executor import AwsExecutor

        twin = session.acting()
        wiring.close_later(twin.close)
        return AwsExecutor(twin)

    def asking() -> tuple[Preflight, CallLog]:
        from costguard.providers.aws.iam.preflight import AwsPreflight

        twin = session.dry_running()
        wiring.close_later(twin.close)
        return AwsPreflight(twin, now=wiring.now), twin

    def spend() -> SpendSource:
        from costguard.providers.aws.billing.source import AwsSpend

        return AwsSpend(session, now=wiring.now)

    def keys() -> KeySource:
        from costguard.providers.aws.kms.source import AwsKeys

        return AwsKeys(session)

    def network() -> NetworkSource:
        from costguard.providers.aws.network.source import AwsNetwork

        return AwsNetwork(session)

    def rotating() -> KeyRotator:
        from costguard.providers.aws.kms.rotation import AwsKeyRotator

        twin = session.only_for(Purpose.ROTATE)
        wiring.close_later(twin.close)
        return AwsKeyRotator(twin)

    def succeeding() -> KeySuccessor:
        from costguard.providers.aws.kms.rotation import AwsKeySuccessor

        twin = session.only_for(Purpose.SUCCEED)
        wiring.close_later(twin.close)
        return AwsKeySuccessor(twin)

    def mending() -> NetworkRemediator:
        from costguard.providers.aws.network.remediator import AwsNetworkRemediator

        twin = session.only_for(Purpose.MEND)
        wiring.close_later(twin.close)
        return AwsNetworkRemediator(twin)

    def freezing(may_change: bool) -> tuple[FreezeControl, CallLog]:  # noqa: FBT001 - a port's own word
        from costguard.providers.aws.iam.freeze import AwsFreeze

        twin = session.only_for(Purpose.FREEZE, may_change=may_change)
        wiring.close_later(twin.close)
        return AwsFreeze(twin, wiring.way_into), twin

    reading = CloudReaders(AwsInventory(session), wiring.combined(signals), prices)
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


def _trail(wiring: Wiring, session: AwsSession) -> CloudAuditLog:
    from costguard.providers.aws.compute.audit_log import AwsAuditLog

    return AwsAuditLog(session, now=wiring.now)


def _keeping(wiring: Wiring, session: AwsSession) -> KeepTagger:
    from costguard.providers.aws.compute.executor import AwsKeepTagger

    twin = session.only_for(Purpose.KEEP_TAG)
    wiring.close_later(twin.close)
    return AwsKeepTagger(twin)
