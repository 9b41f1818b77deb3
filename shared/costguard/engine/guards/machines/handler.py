"""The hand that acts on instances, and its last look: people's word, the resource, its use and the rule, read anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from costguard.cases import Case, copied_at_once, ladder, same_run, uncopied
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import ProviderError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceDetail, InstanceState, Inventory
from costguard.domain.signals import reads_back
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.action_handler import PrecheckResult, out_of_turn, people_heard
from costguard.engine.run.scan import CloudReaders
from costguard.guards.idle.judge import examine, gentlest_rule, judge_instance
from costguard.guards.rules.idle import IdleRule
from costguard.planning import RuleLimit, exemption, world_rail
from costguard.planning.rails import rule_limit, unread_protections
from costguard.policy.model.policy import Policy
from costguard.ports import ActionExecutor


class InstanceHandler:
    """`ActionHandler` for machines: idle ones, and those that a spent budget asks for."""

    def __init__(
        self, readings: Mapping[str, CloudReaders], executors: Mapping[str, ActionExecutor], memory: Memory
    ) -> None:
        self._readings = readings
        self._executors = executors
        self._memory = memory

    def last_look(self, case: Case, action: Action, policy: Policy, now: datetime) -> Reason | PrecheckResult:
        """Why not, after reading the machine again; people's word is read first."""
        heard = people_heard(self._memory, case, now)
        if isinstance(heard, Reason):
            return heard
        reading = self._readings[case.subject.cloud]
        try:
            detail = _reread(reading, case, policy, now)
        except ProviderError as err:
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": str(err)})
        if isinstance(detail, Reason):
            return detail
        instance = detail.instance
        rule = gentlest_rule(instance, policy.idle_gpu)
        if rule is None or rule.digest != action.rule_digest or rule.name != action.rule:
            return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
        bar = out_of_turn(self._memory, case, action.verb, rule.mode, ladder(rule, instance), policy, now)
        bar = bar or _still_true(action, case, instance, reading, rule, now)
        if bar is not None:
            return bar
        try:
            detail = _with_protections(reading, action, case, rule, detail)
        except ProviderError as err:
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": str(err)})
        bar = _railed(action, case, rule, detail, self._memory, now)
        if bar is not None:
            return bar
        together = copied_at_once(case, detail) if action.verb is Verb.SNAPSHOT else ()
        return PrecheckResult(heard, _resources(action, case, detail), copies=together)

    def limit(self, action: Action, policy: Policy, seen: int) -> RuleLimit | None:
        """That of the rule for machines, where it still says the same."""
        rule = policy.rule(action.rule)
        if rule is None or rule.digest != action.rule_digest:
            return None
        return rule_limit(rule, seen, action.verb)

    def call(self, action: Action) -> Receipt:
        """One call to the machine's own cloud."""
        return self._executors[action.subject.cloud].execute(action)


def _reread(reading: CloudReaders, case: Case, policy: Policy, now: datetime) -> InstanceDetail | Reason:
    detail = reading.inventory.details([case.subject]).get(case.subject)
    if detail is None:
        return Reason(ReasonCode.VANISHED)
    instance = detail.instance
    if not same_run(case, instance):
        return Reason(ReasonCode.RESTARTED)
    return exemption(instance, policy, now) or detail


def _resources(action: Action, case: Case, detail: InstanceDetail) -> frozenset[ResourceRef]:
    """What may be called about: the machine itself, or those of its volumes that have no copy."""
    if action.verb is not Verb.SNAPSHOT:
        return frozenset({case.subject})
    missing = uncopied(case, detail)
    if copied_at_once(case, detail):
        return frozenset({case.subject} if missing else ())
    return frozenset(volume.ref for volume in missing)


def _still_true(
    action: Action, case: Case, instance: Instance, reading: CloudReaders, rule: IdleRule, now: datetime
) -> Reason | None:
    """A machine we stopped must still be stopped; a running one must still be idle over the whole window."""
    if case.climbed_at(Verb.STOP) is not None:
        stopped = instance.state is InstanceState.STOPPED
        return None if stopped else Reason(ReasonCode.NOT_STOPPED, {"state": instance.state.value})
    if instance.state is not InstanceState.RUNNING:
        return Reason(ReasonCode.NOT_RUNNING, {"state": instance.state.value, "verb": action.verb.value})
    try:
        report = reading.signals.read([instance], now - reads_back([rule.idle.lasting]), now)
    except ProviderError as err:
        return Reason(ReasonCode.SIGNALS_UNREAD, {"cause": str(err)})
    shard = Inventory(instance.ref.shard, (instance,))
    facts = examine(shard, report.readings, {}, report.gaps, {rule.idle.lasting}, now)
    finding = judge_instance(facts.instances[0], rule, now)
    return None if finding.verdict is Verdict.VIOLATION else finding.reason


def _with_protections(
    reading: CloudReaders, action: Action, case: Case, rule: IdleRule, detail: InstanceDetail
) -> InstanceDetail:
    """With what would bar this step looked at: once for each step that is due, never left to the cloud's refusal."""
    wanted = unread_protections(action.verb, case, rule, detail)
    if not wanted:
        return detail
    found = reading.inventory.protections(case.subject, wanted)
    return replace(
        detail,
        protected_by=(*detail.protected_by, *found),
        unread_protections=tuple(each for each in detail.unread_protections if each not in wanted),
    )


def _railed(
    action: Action, case: Case, rule: IdleRule, detail: InstanceDetail, memory: Memory, now: datetime
) -> Reason | None:
    """The rails on the fresh read; an approval is used up only when nothing else stands in the way."""
    unread = unread_protections(action.verb, case, rule, detail)
    if unread:
        return Reason(ReasonCode.DETAIL_UNREAD, {"cause": f"not looked at: {', '.join(unread)}"})
    reason = world_rail(action.verb, case, rule, detail.instance, detail, approved=False)
    if reason is None or reason.code is not ReasonCode.APPROVAL_NEEDED:
        return reason
    if memory.approvals.valid(action.decision_id, now) is None:
        return reason
    others = world_rail(action.verb, case, rule, detail.instance, detail, approved=True)
    if others is not None:
        return others
    return None if memory.approvals.use(action.decision_id, now) else reason
