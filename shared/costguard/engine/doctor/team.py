"""What is asked of one team: its machines, how far it is enforced, whom it spares, and who would be told of what."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.engine.ledger.learned import AccountRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.close_reads import known_launches
from costguard.engine.run.run_context import rollout_now
from costguard.engine.run.scan import Scan
from costguard.guards.idle.judge import gentlest_rule
from costguard.guards.rules.common import Mode
from costguard.planning import judge_all
from costguard.planning.rails import account_key, exemption, mode_rail, observing
from costguard.planning.rollout import Rollout, standings
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import Policy
from costguard.report.doctor.checks import Code, Detail, DoctorCheck


@dataclass(frozen=True, slots=True)
class TeamSeen:
    """The machines of a team, each with what is found of it and how far it is treated, and why no further."""

    owner: str
    machines: tuple[tuple[Instance, Finding, Mode, Reason | None], ...]


def team_seen(owner: str, policy: Policy, seen: Scan, memory: Memory | None, now: datetime) -> TeamSeen:
    """Of what was scanned the machines that are this owner's, as a run would settle it now."""
    instances = {fact.instance.ref: fact.instance for shard in seen.facts for fact in shard.instances}
    launches = {} if memory is None else known_launches(memory, instances.values(), now)
    disowned = {} if memory is None else memory.disowned.all()
    findings = judge_all(policy, seen.facts, now, launches=launches, disowned=disowned)
    rollout = _rollout(policy, memory, now)
    first_seen = {} if memory is None else AccountRepository(memory.store).first_seen()
    fresh = observing({account_key(ref) for ref in instances}, first_seen, policy.observe_new_accounts_for, now)
    own = []
    for finding in findings:
        if finding.owner == owner and isinstance(finding.subject, ResourceRef):
            instance = instances[finding.subject]
            own.append((instance, finding, *_mode_of(instance, owner, policy, rollout, fresh)))
    return TeamSeen(owner, tuple(own))


def _rollout(policy: Policy, memory: Memory | None, now: datetime) -> Rollout:
    if memory is not None:
        return rollout_now(memory, policy, now)
    return Rollout(tuple(standings(policy, (), {}, now)))  # nothing is known, so everybody is where they began


def _mode_of(
    instance: Instance, owner: str, policy: Policy, rollout: Rollout, fresh: Mapping[str, datetime]
) -> tuple[Mode, Reason | None]:
    rule = gentlest_rule(instance, policy.idle_gpu)
    own = Mode.OBSERVE if rule is None else rule.mode
    if account_key(instance.ref) in fresh:
        until = fresh[account_key(instance.ref)].isoformat(timespec="minutes")
        return Mode.OBSERVE, Reason(ReasonCode.ACCOUNT_NEW, {"account": instance.ref.account, "until": until})
    allowed, why = rollout.of(owner, instance.ref.account)
    if allowed < own:
        return allowed, why
    if rule is None:
        return own, Reason(ReasonCode.NO_RULE)
    return own, Reason(ReasonCode.MODE_OBSERVE) if own is Mode.OBSERVE else None


def examine_team(
    team: TeamSeen, policy: Policy, seen: Scan, proving: AbstractSet[str], now: datetime
) -> Iterator[DoctorCheck]:
    """Every check of one team, in the order they are told."""
    owner = team.owner
    known = {each.name for each in policy.owners} | {each.owner for each in policy.accounts} - {""}
    if not team.machines and owner not in known:
        near = next(iter(difflib.get_close_matches(owner, sorted(known), n=1)), "")
        yield DoctorCheck(Code.TEAM_UNKNOWN, facts={"owner": owner, "near": near})
        return
    gaps = (*seen.gaps, *(gap for shard in seen.facts for gap in shard.gaps))
    if gaps:
        details = tuple(Detail(str(gap.shard), gap) for gap in gaps)
        yield DoctorCheck(Code.TEAM_UNREAD, facts={"owner": owner, "gaps": len(gaps)}, details=details)
    yield _machines(team)
    channel = channel_of(owner, policy)
    yield _channel(owner, channel, policy, proving)
    if team.machines:
        yield _modes(team)
    yield _exceptions(team, policy, now)
    yield _told(team, channel)


def _machines(team: TeamSeen) -> DoctorCheck:
    idle = sum(finding.verdict is Verdict.VIOLATION for _, finding, _, _ in team.machines)
    facts: dict[str, FactValue] = {"owner": team.owner, "machines": len(team.machines), "idle": idle}
    details = tuple(
        Detail(f"{_name(instance)} ({finding.owner_source})", finding.reason)
        for instance, finding, _, _ in team.machines
    )
    return DoctorCheck(Code.TEAM_MACHINES if team.machines else Code.TEAM_NONE, facts=facts, details=details)


def _channel(owner: str, channel: str, policy: Policy, proving: AbstractSet[str]) -> DoctorCheck:
    own = any(each.name == owner and each.channel for each in policy.owners)
    scheme, colon, _ = channel.partition(":")
    proves = bool(channel) and bool({channel, scheme if colon else "slack"} & proving)
    facts: dict[str, FactValue] = {"owner": owner, "channel": channel}
    if not own:
        facts["default"] = "notify.default"
    return DoctorCheck(Code.TEAM_CHANNEL if proves else Code.TEAM_NO_CHANNEL, facts=facts)


def _modes(team: TeamSeen) -> DoctorCheck:
    by_account: dict[tuple[str, Mode], Reason | None] = {}
    for instance, _, mode, why in team.machines:
        by_account.setdefault((account_key(instance.ref), mode), why)
    most = max(mode for _, mode in by_account)
    details = tuple(
        Detail(f"{account}: {mode.name.lower()}", why or mode_rail(Verb.STOP, mode) or "")
        for (account, mode), why in sorted(by_account.items(), key=lambda each: each[0])
    )
    return DoctorCheck(Code.TEAM_MODE, facts={"owner": team.owner, "mode": most.name.lower()}, details=details)


def _exceptions(team: TeamSeen, policy: Policy, now: datetime) -> DoctorCheck:
    spared = [(instance, exemption(instance, policy, now)) for instance, _, _, _ in team.machines]
    details = tuple(Detail(_name(instance), why) for instance, why in spared if why is not None)
    return DoctorCheck(Code.TEAM_SPARED, facts={"owner": team.owner, "spared": len(details)}, details=details)


def _told(team: TeamSeen, channel: str) -> DoctorCheck:
    told: Sequence[tuple[Instance, Finding]] = [
        (instance, finding)
        for instance, finding, mode, _ in team.machines
        if finding.verdict is Verdict.VIOLATION and mode > Mode.OBSERVE and channel
    ]
    details = tuple(Detail(_name(instance), finding.reason) for instance, finding in told)
    facts: dict[str, FactValue] = {"owner": team.owner, "machines": len(told), "channel": channel}
    return DoctorCheck(Code.TEAM_TOLD if told else Code.TEAM_TOLD_NOTHING, facts=facts, details=details)


def _name(instance: Instance) -> str:
    return " ".join(filter(None, (instance.ref.native_id, instance.name)))
