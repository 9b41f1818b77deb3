"""The rails: everything that may keep a wanted action from being done, in one order. Pure.

Each returns the reason to hold, or None. `act` asks the ones that depend on the world again,
on what it re-reads just before the call.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.cases import Case, ladder, uncopied
from costguard.domain.actions import DESTRUCTIVE, Verb
from costguard.domain.findings import Finding, Standing, Verdict
from costguard.domain.keys import EncryptionKey
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, InstanceState
from costguard.guards.idle.judge import kept_reason
from costguard.guards.rules.common import Consent, Limits, Mode, Scarce, barring, leads_to, needed, protections_of
from costguard.guards.rules.idle import IdleRule
from costguard.planning.plan import CapUse, RuleLimit
from costguard.planning.rollout import Rollout
from costguard.policy.model.policy import IN_LEDGER, Exemption, Policy
from costguard.policy.model.protection import protected_by_tag

HELD_BY_A_CAP = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_MONEY})
"""What room in a cap lifts; a price that nobody knows fits no cap."""


def world_rail(
    verb: Verb, case: Case, rule: IdleRule, instance: Instance, detail: InstanceDetail | None, *, approved: bool
) -> Reason | None:
    """Rails that depend on the resource itself: what protects it and what would be lost."""
    barred = _barred(verb, case, rule, instance, detail)
    if barred:
        return Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(barred)})
    if detail is None:
        return None if verb is Verb.WARN else Reason(ReasonCode.DETAIL_UNREAD)
    if verb is Verb.WARN:
        return None  # a notice promises what would follow, so it stops only at what will surely never follow
    if verb is Verb.STOP and instance.cannot_stop:
        return Reason(ReasonCode.CANNOT_STOP, {"cause": instance.cannot_stop})
    if verb in {Verb.SNAPSHOT, Verb.TERMINATE} and not detail.volumes:
        return Reason(ReasonCode.NO_VOLUMES)
    if _towards_the_end(verb, rule, instance) and case.climbed_at(Verb.STOP) is None:
        lost = _loss_rail(instance, rule.limits, approved=approved)
        if lost is not None:
            return lost
    if verb is Verb.TERMINATE:
        return _terminate_rail(case, instance, detail)
    return None


def _barred(
    verb: Verb, case: Case, rule: IdleRule, instance: Instance, detail: InstanceDetail | None
) -> tuple[str, ...]:
    """The protections that bar this step, or what it would only announce or prepare."""
    serves = leads_to([verb, *_ahead(case, rule, instance)])
    return barring(protections_of(instance, detail), serves, rule.termination_protection_bars)


def unread_protections(verb: Verb, case: Case, rule: IdleRule, detail: InstanceDetail) -> tuple[str, ...]:
    """Those that nobody has looked at yet and that would bar this step, or for a notice anything that it announces."""
    ahead = _ahead(case, rule, detail.instance)
    meant = [verb, *ahead] if verb is Verb.WARN else [leads_to([verb, *ahead])]
    return needed(detail.unread_protections, meant, rule.termination_protection_bars)


def _ahead(case: Case, rule: IdleRule, instance: Instance) -> list[Verb]:
    return [rung.verb for rung in ladder(rule, instance)[case.rung + 1 :]]


def _towards_the_end(verb: Verb, rule: IdleRule, instance: Instance) -> bool:
    """What loses a local disk, and the copies made only for that: where leave is missing, nothing would follow them."""
    ends = any(rung.verb is Verb.TERMINATE for rung in rule.ladder)
    return verb in DESTRUCTIVE or (verb is Verb.SNAPSHOT and bool(instance.cannot_stop) and ends)


def _loss_rail(instance: Instance, limits: Limits, *, approved: bool) -> Reason | None:
    """What a stop may lose for good: the local disk, and the place of a type that may not start again.

    Where both are asked about, one word of its owner's is for both, and names both.
    """
    lost = [_local_disk_rail(instance, limits, approved=approved), _scarce_rail(instance, limits, approved=approved)]
    held = [reason for reason in lost if reason is not None]
    never = next((reason for reason in held if reason.code is not ReasonCode.APPROVAL_NEEDED), None)
    if never is not None or not held:
        return never
    return Reason(ReasonCode.APPROVAL_NEEDED, {name: value for reason in held for name, value in reason.facts.items()})


def _scarce_rail(instance: Instance, limits: Limits, *, approved: bool) -> Reason | None:
    if not limits.is_scarce(instance) or limits.scarce is Scarce.STOP or (limits.scarce is Scarce.ASK and approved):
        return None
    code = ReasonCode.APPROVAL_NEEDED if limits.scarce is Scarce.ASK else ReasonCode.SCARCE_TYPE
    return Reason(code, {"scarce": instance.instance_type})


def _local_disk_rail(instance: Instance, limits: Limits, *, approved: bool) -> Reason | None:
    if instance.local_disk_gib is not None and instance.local_disk_gib <= 0:
        return None
    size = -1.0 if instance.local_disk_gib is None else instance.local_disk_gib
    if limits.local_disk is Consent.LOSE or (limits.local_disk is Consent.ASK and approved):
        return None
    code = ReasonCode.APPROVAL_NEEDED if limits.local_disk is Consent.ASK else ReasonCode.LOCAL_DISK
    return Reason(code, {"local_disk_gib": size})


def _terminate_rail(case: Case, instance: Instance, detail: InstanceDetail) -> Reason | None:
    stoppable = not instance.cannot_stop
    if stoppable and (case.climbed_at(Verb.STOP) is None or instance.state is not InstanceState.STOPPED):
        return Reason(ReasonCode.NOT_STOPPED, {"state": instance.state.value})
    missing = uncopied(case, detail)
    if missing:
        return Reason(ReasonCode.SNAPSHOT_MISSING, {"volumes": len(missing)})
    return None


def standing_of(finding: Finding, instance: Instance, rule: IdleRule | None, *, kept: bool = False) -> Standing | None:
    """What may be done about the cost of a machine that idles, whatever its mode and caps; None where it does not.

    `kept`: somebody keeps it for now.
    """
    said = finding.reason.facts.get("utilisation", finding.reason.code.value)
    judged = finding.verdict in {Verdict.VIOLATION, Verdict.EXEMPT}
    if not judged or said not in _IDLE or instance.state is not InstanceState.RUNNING:
        return None
    ladder_verbs = {rung.verb for rung in ladder(rule, instance)} if rule is not None else set()
    if finding.verdict is Verdict.EXEMPT or kept or rule is None or not ladder_verbs & DESTRUCTIVE:
        return Standing.UNTOUCHABLE
    lost = _loss_rail(instance, rule.limits, approved=False)
    if lost is None:
        return Standing.RECLAIMABLE
    return Standing.WAITS if lost.code is ReasonCode.APPROVAL_NEEDED else Standing.UNTOUCHABLE


_IDLE = frozenset({ReasonCode.IDLE.value, ReasonCode.BUDGET_IDLE.value})


def mode_rail(verb: Verb, mode: Mode) -> Reason | None:
    """What a gentler mode turns into a rehearsal."""
    if mode is Mode.OBSERVE:
        return Reason(ReasonCode.MODE_OBSERVE)
    if mode is Mode.WARN and verb is not Verb.WARN:
        return Reason(ReasonCode.MODE_WARN)
    return None


def cap_of(rule: str, verb: Verb) -> str:
    """The name of the caps an action counts against.

    Terminations and starts have their own, and never use up those of stops.
    """
    return f"{rule}/{verb.value}" if verb in {Verb.TERMINATE, Verb.START} else rule


def caps_of(rules: Iterable[IdleRule]) -> Iterator[str]:
    """The names of all caps of these rules; a ladder that ends at stop has none for terminations."""
    for rule in rules:
        yield rule.name
        if any(rung.verb is Verb.TERMINATE for rung in rule.ladder):
            yield cap_of(rule.name, Verb.TERMINATE)


def rule_limit(rule: IdleRule, instances_seen: int, verb: Verb = Verb.STOP) -> RuleLimit:
    """The caps in numbers: a share counts what the rule applies to, rounded down but at least one above zero."""
    share = rule.limits.fleet_share_per_day
    by_share = math.floor(share * Decimal(instances_seen))
    if share > 0 and instances_seen > 0:
        by_share = max(1, by_share)
    most = rule.limits.terminations if verb is Verb.TERMINATE else rule.limits.actions_per_day
    allowed = min(most, by_share)
    return RuleLimit(rule.name, allowed, rule.limits.hourly_cost_stopped_per_day, instances_seen)


def cap_rail(verb: Verb, limit: RuleLimit, used: CapUse, rate: HourlyRate | None) -> Reason | None:
    """Whether one more destructive action fits the caps of the last 24 hours. A cap of 0 allows nothing."""
    if verb not in DESTRUCTIVE:
        return None
    if used.actions + 1 > limit.max_actions:
        return Reason(ReasonCode.CAP_ACTIONS, {"allowed": limit.max_actions, "used": used.actions})
    if verb is not Verb.STOP:
        return None  # what a stop saved was counted when it stopped
    if rate is None:
        return Reason(ReasonCode.PRICE_UNKNOWN)
    cap = next((money for money in limit.max_hourly if money.currency == rate.money.currency), None)
    if cap is None:
        return Reason(ReasonCode.CURRENCY_UNCAPPED, {"currency": rate.money.currency})
    spent = next((m.amount for m in used.hourly_cost if m.currency == cap.currency), Decimal(0))
    if spent + rate.money.amount > cap.amount:
        return Reason(
            ReasonCode.CAP_MONEY,
            {
                "allowed": str(cap.amount),
                "used": str(spent),
                "wanted": str(rate.money.amount),
                "currency": cap.currency,
            },
        )
    return None


def with_one_more(used: CapUse, verb: Verb, rate: HourlyRate | None) -> CapUse:
    """The use after one more action of this plan."""
    if verb not in DESTRUCTIVE:
        return used
    cost = [rate.money] if rate is not None and verb is Verb.STOP else []
    return CapUse(used.actions + 1, _summed((*used.hourly_cost, *cost)))


def _summed(amounts: Iterable[Money]) -> tuple[Money, ...]:
    sums: dict[str, Money] = {}
    for money in amounts:
        sums[money.currency] = sums[money.currency] + money if money.currency in sums else money
    return tuple(sums.values())


def account_key(of: ResourceRef | Shard) -> str:
    """`cloud:account`: what an account is remembered by."""
    return f"{of.cloud}:{of.account}"


def observing(
    accounts: Iterable[str], first_seen: Mapping[str, datetime], wait: timedelta, now: datetime
) -> dict[str, datetime]:
    """Of these accounts those in which every rule only observes, each until when.

    An account that nobody remembers is seen for the first time now.
    """
    until = {account: first_seen.get(account, now) + wait for account in accounts} if wait else {}
    return {account: end for account, end in until.items() if end > now}


def observed(accounts: Mapping[str, datetime], case: Case, gentle: Reason | None) -> Reason | None:
    """Why a mode keeps something from being done: where that is the account's newness, that; else `gentle`."""
    until = accounts.get(account_key(case.subject))
    if gentle is None or until is None:
        return gentle
    facts = {"account": case.subject.account, "until": until.isoformat(timespec="minutes")}
    return Reason(ReasonCode.ACCOUNT_NEW, facts)


def rolled_out(rollout: Rollout, case: Case, verb: Verb, gentle: Reason | None) -> Reason | None:
    """Why a mode keeps something from being done: where that is how far the rollout has come, that; else `gentle`."""
    allowed, why = rollout.of(case.owner, case.subject.account)
    return why if why is not None and mode_rail(verb, allowed) is not None else gentle


SEEN_WITHIN = timedelta(days=7)
"""Whoever acts looks in each run, and leaves a mark by it: without one for so long a deployment is taken to be gone."""


def others_of(own: Deployment, seen: Mapping[Deployment, datetime]) -> Mapping[Deployment, datetime]:
    """Every deployment but this one."""
    return {each: at for each, at in seen.items() if each != own}


def leads(own: Deployment, others: Collection[Deployment], leading: str) -> bool:
    """Whether the policy names this one, and nobody else goes by that name."""
    return leading == own.name and all(each.name != own.name for each in others)


def barred_by(
    own: Deployment, others: Mapping[Deployment, datetime], leading: str, *, unread: bool = False
) -> Reason | None:
    """Why nothing is done in an account where these others were seen; None where this one acts.

    `unread`: not everything could be looked at. That bars only where the policy says that another one leads: a policy
    that names nobody knows of nobody.
    """
    another_leads = leading not in {"", own.name}
    if not others and not (unread and another_leads):
        return None
    if leads(own, others, leading):
        return None
    facts: dict[str, FactValue] = {"own": own.name, "leading": leading}
    if others:
        facts["others"] = names_of(others)
        facts["seen"] = max(others.values()).isoformat(timespec="minutes")
    if any(each.name == own.name for each in others):
        facts["same_name"] = own.name
    return Reason(ReasonCode.OTHER_DEPLOYMENT, facts)


def names_of(deployments: Collection[Deployment]) -> str:
    """Each by its name, and what tells two of one name apart."""
    return ", ".join(f"{each.name} ({each.ledger})" for each in sorted(deployments))


def exemption(instance: Instance, policy: Policy, now: datetime) -> Reason | None:
    """Why `instance` is shown and never touched, or None; a Keep by tag, which ends, only where nothing else does."""
    kept = kept_reason(instance, policy.protection.termination_protection_bars)
    if kept is not None:
        return kept
    tagged = protected_by_tag(instance.tags, policy.protection, now)
    if tagged is not None and tagged.code is not ReasonCode.KEPT_BY_TAG:
        return tagged
    listed = _protected_account(instance.ref, policy)
    if listed is not None:
        return listed
    for exempted in policy.exemptions:
        if exempted.expires_at > now and exempted.owns.spares(instance):
            return _agreed(exempted)
    return tagged


def setting_bar(ref: ResourceRef, tags: Mapping[str, str], policy: Policy, now: datetime) -> Reason | None:
    """Why a key or a part of a network is not changed, whatever was found of it, or None."""
    return protected_by_tag(tags, policy.protection, now) or _protected_account(ref, policy)


def _protected_account(ref: ResourceRef, policy: Policy) -> Reason | None:
    account = ref.account
    if account in policy.protection.accounts or any(a.protected for a in policy.accounts if a.id == account):
        return Reason(ReasonCode.PROTECTED_ACCOUNT, {"account": account})
    return None


def key_exception(key: EncryptionKey, policy: Policy, now: datetime) -> Reason | None:
    """The agreed exception that names this very key; one by account or tag is about machines and hides no key."""
    names = {key.ref.native_id, str(key.ref)}
    for exempted in policy.active_exemptions(now):
        if names.intersection(exempted.owns.resources or ()):
            return _agreed(exempted)
    return None


def _agreed(exempted: Exemption) -> Reason:
    facts: dict[str, FactValue] = {
        "reason": exempted.reason,
        "approver": exempted.approver,
        "until": exempted.expires_at.isoformat(timespec="minutes"),
    }
    if exempted.where == IN_LEDGER:
        facts["kept_in"] = IN_LEDGER
    return Reason(ReasonCode.EXCEPTION, facts)


def overlaid(finding: Finding, instance: Instance, policy: Policy, now: datetime) -> Finding:
    """The finding with the house's exemptions applied; what was measured stays visible in the reason."""
    if finding.verdict is Verdict.EXEMPT:
        return finding
    reason = exemption(instance, policy, now)
    if reason is None:
        return finding
    facts = {**reason.facts, "utilisation": finding.reason.code.value}
    return replace(finding, verdict=Verdict.EXEMPT, reason=Reason(reason.code, facts))
