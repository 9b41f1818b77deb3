"""The runner of `idle_gpu`: the hand that acts on machines, with its last look; Keeps written on them as a tag.

A run writes each once, after it acted; the ledger's Keep holds whatever becomes of that. A Keep that was ended is
written as one that ends now: no tag is ever removed. What somebody else wrote is left as it is while it holds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.cases import Case, copied_at_once, ladder, same_run, uncopied
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import AccessDeniedError, CostguardError, ProviderError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceDetail, InstanceState, Inventory
from costguard.domain.signals import reads_back
from costguard.engine.guards.runner import GuardRunner, Port
from costguard.engine.ledger.learned import AccountRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import LookRepository
from costguard.engine.ledger.snoozes import KeepTag
from costguard.engine.ledger.starts import VOLUMES
from costguard.engine.notify.notices import INSTANCE_WORDS, Words
from costguard.engine.run.act import pause_reason
from costguard.engine.run.close_reads import fit_to_tell
from costguard.engine.run.run import plan_from
from costguard.engine.run.run_context import (
    PrecheckResult,
    RunContext,
    out_of_turn,
    people_heard,
    rollout_now,
    scan_in_turn,
)
from costguard.engine.run.scan import CloudReaders, Progress, Scan, scan
from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of
from costguard.guards import IDLE_GPU
from costguard.guards.idle.judge import examine, gentlest_rule, judge_instance
from costguard.guards.rules.common import KEEP_TAG, Limits, Mode, Protection, Selector
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.planning import Plan, RuleLimit, exemption, world_rail
from costguard.planning.rails import account_key, observing, rule_limit, unread_protections
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.policy import Policy
from costguard.policy.model.protection import protected_by_tag
from costguard.ports import ActionExecutor
from costguard.report.facts import ResourceSnapshot


class InstanceHandler:
    """`ActionHandler` for machines: idle ones, and those that a spent budget asks for."""

    shards_apart = True

    def __init__(self, readings: Mapping[str, CloudReaders], executors: Mapping[str, ActionExecutor]) -> None:
        self._readings = readings
        self._executors = executors

    def last_look(
        self, case: Case, action: Action, policy: Policy, now: datetime, memory: Memory
    ) -> Reason | PrecheckResult:
        """Why not, after reading the machine again; people's word is read first."""
        heard = people_heard(memory, case, now)
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
        bar = out_of_turn(memory, case, action.verb, rule.mode, ladder(rule, instance), policy, now)
        bar = bar or _still_true(action, case, instance, reading, rule, now)
        if bar is not None:
            return bar
        try:
            detail = _with_protections(reading, action, case, rule, detail)
        except ProviderError as err:
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": str(err)})
        bar = _railed(action, case, rule, detail, memory, now)
        if bar is not None:
            return bar
        together = copied_at_once(case, detail) if action.verb is Verb.SNAPSHOT else ()
        before = {}
        if action.verb is Verb.STOP:  # what it is started again with: an owner may ask for that
            before = {VOLUMES: ",".join(sorted(volume.ref.native_id for volume in detail.volumes))}
        return PrecheckResult(heard, _resources(action, case, detail), before, together)

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


_LOG = logging.getLogger(__name__)
MOST = 50  # of one run; later runs write the rest
AGAIN_AFTER = timedelta(days=1)  # what was refused is not asked for every hour
_UNANSWERED = "not answered yet"
_NO_TAGS = Protection(tag_names=(), expiry_tag_names=())


@dataclass(frozen=True, slots=True)
class _Due:
    """A Keep to be written; `last` is what was written before, `ended` that nobody keeps the machine any more."""

    ref: ResourceRef
    until: datetime
    last: KeepTag | None
    ended: bool


def tag_keeps(world: RunContext, plan: Plan, deadline: datetime | None = None) -> int:
    """Write what is due on machines in shards that this run has read to their end; how many could not be, by now.

    Raises:
        LedgerError: memory failed.
    """
    if not world.keep_taggers:
        return 0
    if world.memory.store.durable and world.policy_problem is None:
        _write(world, plan, deadline)
    return sum(bool(tag.problem) for tag in world.memory.keep_tags.all().values())


def _write(world: RunContext, plan: Plan, deadline: datetime | None) -> None:
    now = world.clock.now()
    due = [one for one in _due(world, now) if one.ref.shard in plan.looked and one.ref.cloud in world.keep_taggers]
    if not due:
        return
    try:
        policy = world.policy_now()
    except CostguardError:
        return
    denied: set[str] = set()
    for one in due[:MOST] if policy.keep_as_tag else ():
        late = deadline is not None and world.clock.now() >= deadline
        if late or pause_reason(world.memory, host_paused=world.host_paused) is not None:
            return
        if account_key(one.ref) not in denied and not _written(world, policy, plan.run_id, one):
            denied.add(account_key(one.ref))


def text_of(until: datetime) -> str:
    """As it is written: EC2, ECS and Tencent's tags all take letters, digits, `-` and `:`.

    EC2 User Guide, "Tag restrictions"; ECS API TagResources (a value may not begin with `aliyun` or `acs:`, nor hold
    `http://`); Tencent Cloud, "Tag overview" (`+ - = . _ : / @`), keys to 127 characters on each.
    """
    return f"{until.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _due(world: RunContext, now: datetime) -> Iterator[_Due]:
    keeps, written = world.memory.snoozes.active(now), world.memory.keep_tags.all()
    for text in sorted({*keeps, *written}):
        keep, last = keeps.get(text), written.get(text)
        ref = ResourceRef.parse(text)
        if ref.kind != "instance":
            continue
        if last is not None and last.problem and now - last.at < AGAIN_AFTER:
            continue
        if keep is not None and (last is None or last.problem or last.until != keep.until):
            yield _Due(ref, keep.until, last, ended=False)
        if keep is None and last is not None and (last.problem or last.until > now):
            yield _Due(ref, now, last, ended=True)


def _written(world: RunContext, policy: Policy, run_id: str, due: _Due) -> bool:
    """Look again, write the intent, then the tag, once; False where the role may not."""
    memory, now = world.memory, world.clock.now()
    keep, unchanged = memory.snoozes.of(str(due.ref), now)
    if due.ended is not (keep is None) or (keep is not None and keep.until != due.until):
        return True  # somebody spoke meanwhile; the next run heeds it
    try:
        detail = world.readings[due.ref.cloud].inventory.details([due.ref]).get(due.ref)
    except ProviderError:
        return True
    if detail is None or not _may_be_written(world, policy, detail.instance, now):
        return True
    was = due.last.was if due.last is not None and due.last.problem else due.last.until if due.last else None
    ours = {text_of(at) for at in (was, due.last.until if due.last else None) if at is not None}
    tag = KeepTag(str(due.ref), due.until, now, was, _UNANSWERED)
    shown = detail.instance.tags.get(KEEP_TAG)
    if shown == text_of(due.until) or (due.ended and shown not in ours):
        memory.keep_tags.settle(tag, run_id, now)  # as it should be; or what ended is not there
        return True
    if shown is not None and shown not in ours and protected_by_tag({KEEP_TAG: shown}, _NO_TAGS, now) is not None:
        return True  # somebody else's, and it holds
    if not memory.keep_tags.note(tag, run_id, [unchanged]):
        return True
    problem, may = "", True
    try:
        world.keep_taggers[due.ref.cloud]().write(due.ref, text_of(due.until))
    except ProviderError as err:
        problem, may = str(err), not isinstance(err, AccessDeniedError)
        _LOG.warning("a keep was not written as a tag", extra={"resource": str(due.ref), "detail": problem})
    memory.keep_tags.settle(tag, run_id, world.clock.now(), problem)
    return may


def _may_be_written(world: RunContext, policy: Policy, instance: Instance, now: datetime) -> bool:
    """Only on a machine that a rule may act on here and now: what is spared otherwise is left alone in this too."""
    spared = exemption(instance, policy, now)
    rule = gentlest_rule(instance, policy.idle_gpu)
    if rule is None or rule.mode is not Mode.ENFORCE:
        return False
    if spared is not None and spared.code is not ReasonCode.KEPT_BY_TAG:
        return False
    allowed, _ = rollout_now(world.memory, policy, now).of(owner_name(instance, policy), instance.ref.account)
    if allowed is not Mode.ENFORCE:
        return False
    account = account_key(instance.ref)
    since = AccountRepository(world.memory.store).known_since(account)
    known = {} if since is None else {account: since}
    return account not in observing((account,), known, policy.observe_new_accounts_for, now)


_SHOWN_BACK = timedelta(days=14)


def see_machines(
    world: RunContext, *, deadline: datetime | None, progress: Progress, remember: bool, seen: Any = None
) -> Scan:
    """Every machine, as the rules and those in the shadow look at it."""
    rules = (*world.policy.idle_gpu, *world.policy.shadows.idle_gpu)
    return seen or scan_in_turn(world, rules, deadline, progress, remember=remember)


def machine_handler(world: RunContext) -> InstanceHandler:
    """What acts on machines."""
    return InstanceHandler(world.readings, world.executors)


def started_again(world: RunContext, run_id: str, looked: Scan) -> Any:
    """What was tried of the starts that people asked for; () where nobody asked, and nothing is loaded for it."""
    if not any(True for _ in world.memory.starts.open()):
        return ()
    from costguard.engine.answers.starting import start_asked

    return start_asked(world, run_id, looked)


def machine_messages(world: RunContext) -> Words:
    """What people are told of machines."""
    del world
    return INSTANCE_WORDS


def shown_machines(world: RunContext, progress: Progress) -> Looked:
    """The machines, with the days that a report shows."""
    rules = (*world.policy.idle_gpu, _WATCHER)
    seen = scan(world.readings, world.targets, rules, world.clock, progress=progress, workers=world.workers)
    plan = plan_from(world, LOOKED_AT, seen)
    return Looked(look_of(plan, before=known_sights(world), facts=seen.facts))


def known_sights(world: RunContext) -> tuple[ResourceSnapshot, ...]:
    """What the last run of this guard kept of what it saw."""
    look = LookRepository(world.memory.store).get(world.guard)
    return () if look is None else look.sights


_WATCHER = IdleRule(
    name="",
    mode=Mode.OBSERVE,
    applies_to=Selector(resources=()),
    idle=IdleBounds(lasting=_SHOWN_BACK),
    ladder=(),
    limits=Limits(),
    digest="",
)
"""A rule for no machine: it has signals read as far back as a report shows days."""

RUNNER = GuardRunner(
    name=IDLE_GPU,
    see=see_machines,
    plan_of=plan_from,
    ahead=started_again,
    handler=machine_handler,
    messages=machine_messages,
    fit_to_tell=fit_to_tell,
    mark=tag_keeps,
    shown=shown_machines,
    ports=frozenset({Port.TRAILS, Port.EXECUTORS, Port.KEEP_TAGGERS}),
    one_look=True,
)
