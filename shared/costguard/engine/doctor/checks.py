"""From what the doctor learnt to what it means for enforcing. Pure: one function a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.domain.actions import LaunchFreeze, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    InvalidInputError,
    LedgerError,
    NewerSchemaError,
    OutcomeUnknownError,
    ProviderError,
)
from costguard.domain.findings import Finding, InstanceFact, ShardFacts
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import Deployment, Shard, Subject
from costguard.domain.resources import Gap, GapKind, InstanceState, Snapshot
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.snoozes import SwitchState
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import IdleRule
from costguard.planning.freeze import FreezePhase
from costguard.planning.rails import names_of
from costguard.policy.model.policy import Policy
from costguard.policy.remarks import Remark, lacks_calendar
from costguard.ports import Caller, FreezeControl, Permit
from costguard.report.doctor.checks import Code, Detail, DoctorCheck
from costguard.report.waste.day_one import UNMEASURED
from costguard.report.waste.reclaim import reclaim_facts, reclaim_in

UNSIGNED = "unsigned"


def examine_robots(robots: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """One question a robot: by its address, nothing where all is there, `unsigned`, or what is wrong with it."""
    for address, said in robots.items():
        if not said:
            yield DoctorCheck(Code.ROBOT_READY, address)
        elif said == UNSIGNED:
            yield DoctorCheck(Code.ROBOT_UNSIGNED, address)
        else:
            yield DoctorCheck(Code.ROBOT_WRONG, address, {"detail": said})


_OURS = frozenset({FreezePhase.ATTACHING, FreezePhase.ON, FreezePhase.DETACHING})


def examine_freezes(
    policy: Policy, control_of: Callable[[str], FreezeControl], memory: Memory | None
) -> Iterator[DoctorCheck]:
    """One question a freeze: what is attached to its target. It never bars the rest, for it stops no machine.

    That the policy exists only attaching it tells, for the role may do no more than list, attach and detach.
    """
    for freeze in policy.launch_freezes:
        try:
            attached = control_of(freeze.cloud).attached(freeze)
        except AccessDeniedError as err:
            fix = f"allow {err.operation}" if err.operation else ""
            yield DoctorCheck(
                Code.FREEZE_DENIED, freeze.name, {"detail": str(err)}, (Detail(freeze.target, str(err), fix),)
            )
        except ProviderError as err:
            yield DoctorCheck(Code.FREEZE_UNTOLD, freeze.name, {"detail": str(err)})
        else:
            yield _seen(freeze, attached, memory)


def _seen(freeze: LaunchFreeze, attached: tuple[str, ...], memory: Memory | None) -> DoctorCheck:
    facts: dict[str, FactValue] = {"target": freeze.target, "policy": freeze.policy, "attached": len(attached)}
    if freeze.policy not in attached:
        return DoctorCheck(Code.FREEZE_READY, freeze.name, facts)
    ours = memory is not None and memory.freezes.get(freeze.name).phase in _OURS
    return DoctorCheck(Code.FREEZE_IN_FORCE if ours else Code.FREEZE_FOREIGN, freeze.name, facts)


CLOCK_RIGHT_WITHIN = timedelta(minutes=2)
CLOCK_WRONG_BEYOND = timedelta(minutes=5)  # a fresh sample looks stale, and a stale one fresh, by as much

_LISTINGS = frozenset({"inventory", "accounts", "regions"})  # gaps that hide machines
_PRICES, _TRAIL, _START = "prices", "trail", Verb.START.value
_VERBS = frozenset({Verb.STOP.value, Verb.SNAPSHOT.value, Verb.TERMINATE.value, _START})


def caller_check(target: str, found: Caller | CostguardError, role: str = "") -> DoctorCheck:
    """Who the credentials are; credentials of nobody, or of another partition, bar."""
    if isinstance(found, Caller):
        return DoctorCheck(Code.CALLER_KNOWN, target, {"account": found.account, "name": found.name, "role": role})
    refused = isinstance(found, (AccessDeniedError, InvalidInputError))
    return DoctorCheck(Code.CALLER_REFUSED if refused else Code.CALLER_UNTOLD, target, {"detail": str(found)})


def clock_check(target: str, skew: timedelta | None) -> DoctorCheck:
    """How far this clock is from the cloud's: waits, notices and the age of samples are measured with it."""
    if skew is None:
        return DoctorCheck(Code.CLOCK_UNTOLD, target)
    facts: dict[str, FactValue] = {"skew_seconds": round(abs(skew).total_seconds())}
    facts["direction"] = "behind" if skew > timedelta(0) else "ahead"  # the cloud's clock less ours
    if abs(skew) <= CLOCK_RIGHT_WITHIN:
        return DoctorCheck(Code.CLOCK_RIGHT, target, facts)
    return DoctorCheck(Code.CLOCK_OFF if abs(skew) <= CLOCK_WRONG_BEYOND else Code.CLOCK_WRONG, target, facts)


def regions_check(
    target: str, shards: Sequence[ShardFacts], gaps: Sequence[Gap], closed: Sequence[Shard] = ()
) -> DoctorCheck:
    """Which regions of which accounts answered; nothing is done in one that did not, so it is not known to be safe.

    `gaps` are those outside shards. What was denied is mended by a grant, and bars until then. `closed` are regions
    that the organisation closes: no grant mends that, and nobody can use them.
    """
    every = (*gaps, *(gap for shard in shards for gap in shard.gaps))
    hiding = [gap for gap in every if gap.what in _LISTINGS]
    answered = [shard for shard in shards if shard.complete]
    facts: dict[str, FactValue] = {
        "answered": len(answered),
        "asked": len(shards) + len({gap.shard for gap in gaps if gap.what in _LISTINGS}),
        "accounts": len({shard.shard.account for shard in answered}),
        "names": ", ".join(sorted({shard.shard.region for shard in answered})),
        "instances": sum(shard.instances_seen for shard in shards),
    }
    if closed:
        facts |= {"closed": len(closed), "closed_names": ", ".join(sorted({shard.region for shard in closed}))}
    details = tuple(Detail(str(gap.shard), gap) for gap in dict.fromkeys(every))
    if any(gap.kind is GapKind.DENIED for gap in hiding):
        return DoctorCheck(Code.REGIONS_DENIED, target, facts, details)
    if any(gap.what in _LISTINGS or gap.kind is not GapKind.DENIED for gap in every):
        return DoctorCheck(Code.REGIONS_UNREAD, target, facts, details)
    if closed:
        return DoctorCheck(Code.REGIONS_CLOSED, target, facts, details)
    return DoctorCheck(Code.REGIONS_ANSWER if shards else Code.REGIONS_NONE, target, facts, details)


def verbs_of(rules: Iterable[IdleRule]) -> frozenset[str]:
    """What the ladders do, in any mode: whoever asks whether enforcing is safe may be about to switch it on."""
    rungs = {rung.verb for rule in rules for ways in (True, False) for rung in rule.rungs(stoppable=ways)}
    return frozenset(verb.value for verb in rungs if verb is not Verb.WARN)


def permissions_check(
    target: str, permits: Sequence[Permit], failures: Sequence[Detail | OutcomeUnknownError], verbs: frozenset[str]
) -> DoctorCheck:
    """Which operations that scanning and these ladders use are allowed.

    One that no ladder uses does not count. Prices, the audit trail and starting again are wanted and not needed:
    without a price the money cap holds, without a trail the owner is whom the policy falls back to, and an undo is
    done by hand. `failures` are shards where nothing could be asked.
    """
    relevant = [permit for permit in permits if _counts(permit, verbs)]
    granted = {(permit.shard.account, permit.operation) for permit in relevant if permit.allowed}
    missing = [permit for permit in relevant if permit.allowed is False]
    barring = [permit for permit in missing if permit.feature not in {_PRICES, _TRAIL, _START}]
    untold = [p for p in relevant if p.allowed is None and (p.shard.account, p.operation) not in granted]
    facts: dict[str, FactValue] = {
        "operations": len({permit.operation for permit in relevant}),
        "shards": len({permit.shard for permit in relevant}),
        "missing": len({permit.operation for permit in missing}),
        "untold": len({permit.operation for permit in untold}),
    }
    unsafe = [failure for failure in failures if isinstance(failure, OutcomeUnknownError)]
    unread = tuple(failure for failure in failures if isinstance(failure, Detail))
    told = (*(_permit_detail(permit) for permit in (*missing, *untold)), *unread)
    if unsafe:
        return DoctorCheck(Code.PERMISSIONS_UNSAFE, target, {**facts, "detail": str(unsafe[0])}, told)
    if barring:
        return DoctorCheck(Code.PERMISSIONS_MISSING, target, facts, told)
    if unread or not relevant:
        return DoctorCheck(Code.PERMISSIONS_UNREAD, target, facts, told)
    if missing:
        return DoctorCheck(Code.PERMISSIONS_WANTED, target, facts, told)
    return DoctorCheck(Code.PERMISSIONS_UNTOLD if untold else Code.PERMISSIONS_GRANTED, target, facts, told)


def _counts(permit: Permit, verbs: frozenset[str]) -> bool:
    if permit.feature == _START:
        return Verb.STOP.value in verbs
    return permit.feature not in _VERBS or permit.feature in verbs


def _permit_detail(permit: Permit) -> Detail:
    return Detail(f"{permit.shard} {permit.operation}", permit.detail, permit.fix)


def measured_check(target: str, shards: Sequence[ShardFacts], findings: Mapping[Subject, Finding]) -> DoctorCheck:
    """What share of the running machines that a rule covers could be judged; the others never act.

    Machines never touched count like any other. Where not one could be judged the guard is blind, which bars;
    those only younger than the window are no fault.
    """
    running = [fact for shard in shards for fact in shard.instances if fact.instance.state is InstanceState.RUNNING]
    said = [(fact, _utilisation(findings.get(fact.instance.ref))) for fact in running]
    judged = [(fact, code) for fact, code in said if code is not None]
    unmeasured = [(fact, code) for fact, code in judged if code in UNMEASURED]
    measured = len(judged) - len(unmeasured)
    facts: dict[str, FactValue] = {"measured": measured, "running": len(judged), "no_rule": len(said) - len(judged)}
    if not any(shard.complete for shard in shards):
        return DoctorCheck(Code.MEASURED_UNREAD, target, facts)
    if not judged:
        return DoctorCheck(Code.MEASURED_NOTHING_RUNS, target, facts)
    facts["share_percent"] = 100 * measured // len(judged)
    if not unmeasured:
        return DoctorCheck(Code.MEASURED_ALL, target, facts)
    details = tuple(_unmeasured_detail(fact, code, findings) for fact, code in unmeasured)
    blind = not measured and any(code is not ReasonCode.TOO_YOUNG for _, code in unmeasured)
    return DoctorCheck(Code.MEASURED_NONE if blind else Code.MEASURED_PARTLY, target, facts, details)


def reclaim_check(target: str, findings: Mapping[Subject, Finding]) -> DoctorCheck:
    """How much of what idles can be reclaimed, waits for somebody's yes, or may not be touched; each currency alone."""
    reclaim = reclaim_in(findings.values())
    if not any(portion.machines for portion in reclaim.values()):
        return DoctorCheck(Code.RECLAIM_NOTHING, target)
    return DoctorCheck(Code.RECLAIM_KNOWN, target, reclaim_facts(reclaim))


def _utilisation(finding: Finding | None) -> ReasonCode | None:
    """What was found of its use, also of what is never touched; None where no rule looked."""
    if finding is None:
        return None
    said = finding.reason.facts.get("utilisation", finding.reason.code.value)
    code = ReasonCode(said) if isinstance(said, str) else finding.reason.code
    return code if code in UNMEASURED or code in _MEASURED else None


_MEASURED = frozenset({ReasonCode.IDLE, ReasonCode.BUSY, ReasonCode.PARTLY_IDLE})


def _unmeasured_detail(fact: InstanceFact, code: ReasonCode, findings: Mapping[Subject, Finding]) -> Detail:
    reason = findings[fact.instance.ref].reason
    facts = dict(reason.facts) if reason.code is code else {}
    return Detail(
        f"{fact.instance.ref} {fact.instance.name}".rstrip(),
        Reason(code, {**facts, "kind": fact.instance.accelerator.kind.value}),
    )


@dataclass(frozen=True, slots=True)
class Traces:
    """What was looked at for traces of another deployment, in one target.

    Costguard marks only the snapshots it makes, with the decision that asked for them. `unknown` are those of
    decisions that this ledger never made; `unread` says what could not be looked at. `working` are the deployments
    whose marks the audit log has, `log_unread` where that could not be read; `leads`: the policy names this one, called
    `name`, as the one that acts beside them, and `leading` is whom it names.
    """

    machines: int = 0
    machines_in_all: int = 0
    snapshots: int = 0
    marked: int = 0
    unknown: tuple[Snapshot, ...] = ()
    unread: tuple[Detail, ...] = ()
    name: str = ""
    working: Mapping[Deployment, datetime] = field(default_factory=dict)
    log_unread: tuple[Detail, ...] = ()
    leading: str = ""
    leads: bool = False


def other_check(target: str, traces: Traces) -> DoctorCheck:
    """Whether a Costguard with another ledger is at work here, by the audit log, or was, by the snapshots it made."""
    facts: dict[str, FactValue] = {
        "machines": traces.machines,
        "machines_in_all": traces.machines_in_all,
        "snapshots": traces.snapshots,
        "marked": traces.marked,
        "unknown": len(traces.unknown),
    }
    if traces.name:
        facts |= {"name": traces.name, "leading": traces.leading}
    told = tuple(Detail(str(snapshot.ref), snapshot.decision_id) for snapshot in traces.unknown)
    details = (*told, *traces.unread, *traces.log_unread)
    if traces.working:
        facts["others"] = names_of(traces.working)
        facts["seen"] = max(traces.working.values()).isoformat(timespec="minutes")
        return DoctorCheck(Code.OTHER_LED if traces.leads else Code.OTHER_WORKS, target, facts, details)
    if traces.unknown:
        return DoctorCheck(Code.OTHER_SEEN, target, facts, details)
    if traces.unread:
        return DoctorCheck(Code.OTHER_UNREAD, target, facts, details)
    return DoctorCheck(Code.OTHER_LOG_UNREAD if traces.log_unread else Code.OTHER_NOT_SEEN, target, facts, details)


@dataclass(frozen=True, slots=True)
class LedgerSeen:
    """How the ledger answered. `kind` is the scheme of its address; `is_new`: there is no such file yet."""

    kind: str
    durable: bool = False
    is_new: bool = False
    cases: int = 0
    latest_run: datetime | None = None
    error: CostguardError | None = None


def ledger_check(seen: LedgerSeen) -> DoctorCheck:
    """Whether what is decided would be remembered, by a program that can read it."""
    facts: dict[str, FactValue] = {"kind": seen.kind, "cases": seen.cases}
    if seen.latest_run is not None:
        facts["latest_run"] = seen.latest_run.isoformat(timespec="seconds")
    if isinstance(seen.error, NewerSchemaError):
        return DoctorCheck(Code.LEDGER_NEWER, facts={**facts, "detail": str(seen.error)})
    if seen.error is not None:
        return DoctorCheck(Code.LEDGER_UNUSABLE, facts={**facts, "detail": str(seen.error)})
    if not seen.durable:
        return DoctorCheck(Code.LEDGER_FORGETFUL, facts=facts)
    return DoctorCheck(Code.LEDGER_NEW if seen.is_new else Code.LEDGER_READY, facts=facts)


def policy_check(read: Policy | InvalidInputError | ProviderError, remarks: Sequence[Remark] = ()) -> DoctorCheck:
    """Whether the policy is valid, and how far its rules go."""
    if isinstance(read, (InvalidInputError, ProviderError)):
        return DoctorCheck(Code.POLICY_INVALID, facts={"detail": str(read)})
    modes = [*(rule.mode for rule in read.idle_gpu), *(budget.mode for budget in read.budgets)]
    enforcing = sum(mode is Mode.ENFORCE for mode in modes)
    facts: dict[str, FactValue] = {"rules": len(modes), "enforcing": enforcing, "remarks": len(remarks)}
    details = tuple(Detail(remark.where, remark.message) for remark in remarks)
    if lacks_calendar(read):
        return DoctorCheck(Code.POLICY_NO_CALENDAR, facts=facts, details=details)
    if remarks:
        return DoctorCheck(Code.POLICY_REMARKED, facts=facts, details=details)
    return DoctorCheck(Code.POLICY_ENFORCES if enforcing else Code.POLICY_GENTLE, facts=facts)


def channel_check(policy: Policy, proving: frozenset[str], default_scheme: str = "slack") -> DoctorCheck:
    """Whether owners can be told by a channel that proves delivery: without it nothing is ever stopped.

    `proving` are the schemes of channels that are set up here, and whole addresses where a scheme alone says nothing.
    Whether a message arrives, only sending one tells.
    """
    of_owners = (owner.channel for owner in policy.owners if owner.channel)
    of_budgets = (address for budget in policy.budgets for address in budget.tell)
    named = [policy.default_channel, *of_owners, *of_budgets]
    addresses = list(dict.fromkeys(named))
    lacking = [one for one in addresses if not one or not {one, _scheme(one, default_scheme)} & proving]
    facts: dict[str, FactValue] = {
        "channels": len([address for address in addresses if address]),
        "lacking": len(lacking),
        "default": policy.default_channel,
    }
    details = tuple(Detail(address or "notify.default", "") for address in lacking)
    if len(lacking) == len(addresses):
        return DoctorCheck(Code.CHANNEL_MISSING, facts=facts, details=details)
    return DoctorCheck(Code.CHANNEL_PARTLY if lacking else Code.CHANNEL_PROVES, facts=facts, details=details)


def _scheme(address: str, default: str) -> str:
    scheme, colon, _ = address.partition(":")
    return scheme if colon else default


def switch_check(state: SwitchState | LedgerError, *, host_paused: bool) -> DoctorCheck:
    """Whether the kill switch can be read; one that cannot counts as set, and nothing would ever begin."""
    if isinstance(state, LedgerError):
        return DoctorCheck(Code.SWITCH_UNREADABLE, facts={"detail": str(state)})
    host = "COSTGUARD_PAUSED" if host_paused else ""
    if state.paused or host_paused:
        return DoctorCheck(Code.SWITCH_PAUSED, facts={"by": state.by if state.paused else host, "reason": state.reason})
    return DoctorCheck(Code.SWITCH_OPEN)
