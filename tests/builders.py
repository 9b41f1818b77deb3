"""Short ways to say what a test is about; everything not named is ordinary."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from costguard.cases import Case, CaseStatus, Phase, SubjectSnapshot
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, InstanceFact, ShardFacts, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceDetail,
    InstanceState,
    Inventory,
    Snapshot,
    SnapshotState,
    Volume,
)
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour
from costguard.guards.idle.judge import examine
from costguard.guards.rules.common import Consent, Limits, Mode, Protection, Selector, Step
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.policy.model.policy import Policy, SignalSettings
from costguard.policy.model.terms import terms, with_digest

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=timezone.utc)
DAY = timedelta(days=1)
SHARD = Shard("aws", "111122223333", "us-east-1")
T4 = Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 1)


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def ref(native_id: str = "i-1", kind: str = "instance", shard: Shard = SHARD) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def instance(native_id: str = "i-1", **changes: Any) -> Instance:
    """A g4dn-like on-demand machine, running for ten days, without local disk."""
    launched = changes.pop("launched_at", NOW - 10 * DAY)
    ordinary = Instance(
        ref=ref(native_id),
        instance_type="g5g.xlarge",
        accelerator=T4,
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="epoch-1",
        launched_at=launched,
        local_disk_gib=0.0,
    )
    return replace(ordinary, **changes)


def history(
    name: SignalName = SignalName.GPU,
    device: str = "0",
    *,
    value: float = 0.0,
    now: datetime = NOW,
    hours: int = 24 * 14,
    per_hour: int = 60,
    spikes: Mapping[int, float] | None = None,
    missing: Sequence[int] = (),
    **changes: Any,
) -> SignalHistory:
    """A full history up to `now`; `spikes` and `missing` are by hours ago, 0 being the hour in progress."""
    start = floor_hour(now) - hours * HOUR
    maxima = array("d", [value] * (hours + 1))
    samples = array("I", [per_hour] * hours + [int((now - floor_hour(now)) / HOUR * per_hour)])
    for ago, spike in (spikes or {}).items():
        maxima[hours - ago] = spike
    for ago in missing:
        maxima[hours - ago] = math.nan
        samples[hours - ago] = 0
    return replace(SignalHistory(name, device, start, maxima, samples, "test"), **changes)


def quiet(**how: Any) -> tuple[SignalHistory, ...]:
    """One idle card, and a CPU and network that do nothing either."""
    return (
        history(**how),
        history(SignalName.CPU, "", **{**how, "value": 1.0}),
        history(SignalName.NETWORK, "", **{**how, "value": 1_000.0}),
    )


def reading(*histories: SignalHistory, delay: timedelta = timedelta(minutes=5)) -> SignalReading:
    return SignalReading(histories, delay)


def fact(
    subject: Instance | None = None, *histories: SignalHistory, now: datetime = NOW, **options: Any
) -> InstanceFact:
    """One instance examined over the default window; without histories it is idle throughout."""
    subject = subject or instance()
    readings = {subject.ref: reading(*(histories or quiet(now=now)))}
    lasting = options.pop("lasting", timedelta(hours=24))
    rate = options.pop("rate", HourlyRate(usd("1.00"), "test", "2026-01-01"))
    if options.pop("unread", False):
        readings = {}
    facts = examine(
        Inventory(subject.ref.shard, (subject,)),
        readings,
        {subject.ref: rate} if rate is not None else {},
        (),
        {lasting},
        now,
        **options,
    )
    return facts.instances[0]


def shard_facts(*facts: InstanceFact, shard: Shard = SHARD, **changes: Any) -> ShardFacts:
    return replace(ShardFacts(shard, facts, (), len(facts)), **changes)


STOP_THEN_TERMINATE = (
    Step(Verb.WARN, timedelta(0)),
    Step(Verb.STOP, timedelta(hours=24)),
    Step(Verb.TERMINATE, timedelta(days=7)),
)


def rule(name: str = "research", **changes: Any) -> IdleRule:
    """Enforcing, any instance, idle 24 h, warn → stop after 24 h → terminate after 7 d, generous caps."""
    ordinary = IdleRule(
        name=name,
        mode=Mode.ENFORCE,
        applies_to=Selector(),
        idle=IdleBounds(),
        ladder=STOP_THEN_TERMINATE,
        limits=Limits(
            actions_per_day=10,
            fleet_share_per_day=Decimal(1),
            hourly_cost_stopped_per_day=(usd("1000"),),
            local_disk=Consent.ASK,
        ),
        digest="",
    )
    return with_digest(replace(ordinary, **changes))


def policy(*rules: IdleRule, **changes: Any) -> Policy:
    ordinary = Policy(
        mode=Mode.ENFORCE,
        idle_gpu=rules or (rule(),),
        accounts=(),
        owners=(),
        exemptions=(),
        protection=Protection(),
        calendar=None,
        signals=SignalSettings(),
        prices=(),
        default_channel="slack:#gpu",
        digest="policy-digest",
    )
    return replace(ordinary, **changes)


def finding(subject: Instance | None = None, verdict: Verdict = Verdict.VIOLATION, **changes: Any) -> Finding:
    subject = subject or instance()
    code = {Verdict.VIOLATION: ReasonCode.IDLE, Verdict.COMPLIANT: ReasonCode.BUSY}.get(verdict, ReasonCode.NO_DATA)
    ordinary = Finding("idle_gpu", "idle", "research", rule().digest, subject.ref, verdict, Reason(code))
    return replace(ordinary, **changes)


def case(**changes: Any) -> Case:
    """A case opened and noticed a day ago, waiting for its stop rung."""
    ordinary = Case(
        case_id="case-1",
        guard="idle_gpu",
        check="idle",
        rule="research",
        rule_digest=rule().digest,
        terms=terms(rule()),
        mode=Mode.ENFORCE,
        subject=ref(),
        run_epoch="epoch-1",
        owner="",
        name="notebook",
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=1,
        opened_at=NOW - DAY,
        since=NOW - DAY,
        reason=Reason(ReasonCode.WAITING),
    )
    return replace(ordinary, **changes)


def seen(subject: Instance | None = None, **changes: Any) -> SubjectSnapshot:
    """An idle instance in a completely read shard."""
    subject = subject or instance()
    ordinary = SubjectSnapshot(
        now=NOW,
        rule=rule(),
        finding=finding(subject),
        instance=subject,
        shard_read=True,
        shard_complete=True,
    )
    return replace(ordinary, **changes)


def volume(native_id: str = "vol-1") -> Volume:
    return Volume(ref(native_id, "volume"), 100.0, "gp3")


def snapshot(of: Volume | None = None, **changes: Any) -> Snapshot:
    source = of or volume()
    ordinary = Snapshot(
        ref("snap-" + source.ref.native_id, "snapshot"), source.ref, SnapshotState.COMPLETED, NOW, "decision-1"
    )
    return replace(ordinary, **changes)


def detail(subject: Instance | None = None, **changes: Any) -> InstanceDetail:
    """A machine with one volume, no snapshots and no protections."""
    return replace(InstanceDetail(subject or instance(), (volume(),), ()), **changes)
