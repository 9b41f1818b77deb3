"""Everything outside the engine that one run touches, in one value; how it is looked at, and what acts in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from costguard.cases import Case, decision_id
from costguard.cases.advance import plain_time
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Deployment, ResourceRef
from costguard.engine.ledger.learned import AccountRepository, ShadowRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.run.scan import (
    CloudReaders,
    Progress,
    Scan,
    ScanCursor,
    ThreadWorkers,
    not_reached,
    reading_until,
    scan,
)
from costguard.guards import IDLE_GPU, OF_MACHINES
from costguard.guards.rules.common import Mode, Rung
from costguard.guards.rules.idle import IdleRule
from costguard.planning import RuleLimit
from costguard.planning.last_look import CaseStanding, asked_for, not_its_turn
from costguard.planning.rails import account_key, observing
from costguard.planning.rollout import NO_ROLLOUT, Rollout, announcement_ids, standings
from costguard.policy.model.policy import Policy
from costguard.ports import (
    ActionExecutor,
    Clock,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    Notifier,
    SpendSource,
    Target,
    VersionCheck,
    Workers,
)

_Look = TypeVar("_Look")


@dataclass(frozen=True, slots=True)
class RunContext:
    """Policy, clouds, memory, people and time.

    `executors` has an entry only for clouds where a rule enforces. `policy_now` reads the policy again,
    `host_paused` is the host's own kill switch. `policy_problem` says why the policy may not be acted on
    (too old a copy), None when it may. `doubts` are by name of a rule why its violations may not be believed.
    `spends` reads the bills of each cloud, for the guard that needs them; `freezers` opens what can attach the policy
    of a launch freeze, and nothing else, where the policy names one. `keys` reads the keys of each cloud and `networks`
    its networks; `rotators` and `network_remediators` open what can change them, and nothing else, where a rule
    enforces; `successors` what makes a key in another's place, where such a rule allows that. `trails` tell who
    launched what; a cloud without one is not asked. `deployment` is which one this is; None looks for no other.
    `keep_taggers` open what can write a Keep on a machine, and nothing else, where the policy asks for that. `actors`
    act in shards side by side: more of them than read, as an action waits and holds no page of answers.
    """

    guard: str
    policy: Policy
    targets: tuple[Target, ...]
    readings: Mapping[str, CloudReaders]
    executors: Mapping[str, ActionExecutor]
    memory: Memory
    notifier: Notifier
    clock: Clock
    policy_now: Callable[[], Policy]
    host_paused: bool = False
    policy_problem: Reason | None = None
    language: str = "en"
    workers: Workers = field(default_factory=ThreadWorkers)
    actors: Workers = field(default_factory=partial(ThreadWorkers, 16))
    doubts: Mapping[str, Reason] = field(default_factory=dict)
    spends: Mapping[str, SpendSource] = field(default_factory=dict)
    freezers: Mapping[str, Callable[[], FreezeControl]] = field(default_factory=dict)
    keys: Mapping[str, KeySource] = field(default_factory=dict)
    rotators: Mapping[str, Callable[[], KeyRotator]] = field(default_factory=dict)
    successors: Mapping[str, Callable[[], KeySuccessor]] = field(default_factory=dict)
    networks: Mapping[str, NetworkSource] = field(default_factory=dict)
    network_remediators: Mapping[str, Callable[[], NetworkRemediator]] = field(default_factory=dict)
    trails: Mapping[str, CloudAuditLog] = field(default_factory=dict)
    deployment: Deployment | None = None
    keep_taggers: Mapping[str, Callable[[], KeepTagger]] = field(default_factory=dict)


def in_its_turn(
    world: RunContext,
    deadline: datetime | None,
    look: Callable[[datetime | None, str | None], _Look],
    cut: Callable[[_Look, str], str],
    *,
    remember: bool,
) -> _Look:
    """What `look` sees in its share of the time, from the shard whose turn it is; the next begins where it is `cut`."""
    turns = ScanCursor(world.memory.store)
    begin_at = turns.first(world.guard) if deadline is not None else None
    looked = look(reading_until(world.clock.now(), deadline), begin_at)
    if begin_at is not None and remember:
        turns.keep(world.guard, cut(looked, begin_at))
    return looked


def scan_in_turn(
    world: RunContext, rules: Sequence[IdleRule], deadline: datetime | None, progress: Progress, *, remember: bool
) -> Scan:
    """A scan of every target for these rules, with `in_its_turn`."""

    def look(until: datetime | None, begin_at: str | None) -> Scan:
        return scan(
            world.readings,
            world.targets,
            rules,
            world.clock,
            deadline=until,
            progress=progress,
            workers=world.workers,
            begin_at=begin_at,
        )

    def cut(seen: Scan, begin_at: str) -> str:
        return not_reached(seen.facts, begin_at)

    return in_its_turn(world, deadline, look, cut, remember=remember)


@dataclass(frozen=True, slots=True)
class PrecheckResult:
    """Nothing stands in the way: what must not change until the intent is written, and how the subject is now.

    `resources` are what may be called about: what was looked at, and nothing beside it; `copies` the volumes that one
    call may copy as a set, all of them or none. `before` is kept with the intent: what an undo puts back.
    """

    unchanged: tuple[VersionCheck, ...]
    resources: frozenset[ResourceRef]
    before: Mapping[str, str] = field(default_factory=dict)
    copies: tuple[ResourceRef, ...] = ()

    def clears(self, action: Action) -> bool:
        """Whether the action is about just what was looked at."""
        return action.resource in self.resources and action.copies == self.copies


class ActionHandler(Protocol):
    """What acts on one kind of subject; `act` brings claims, caps, intents and outcomes to it.

    `shards_apart`: nothing that it looks at or does in one shard rests on another, so that many threads may use it.
    """

    @property
    def shards_apart(self) -> bool:
        """Whether shards may be acted in side by side."""

    def last_look(
        self, case: Case, action: Action, policy: Policy, now: datetime, memory: Memory
    ) -> Reason | PrecheckResult:
        """Why not, after reading the subject again just before the call; `memory` has what people said till now."""

    def limit(self, action: Action, policy: Policy, seen: int) -> RuleLimit | None:
        """The caps of the action's rule as `policy` has it; None where it has no such rule, or says something else.

        `seen` is how many subjects the rule applies to.
        """

    def call(self, action: Action) -> Receipt:
        """The one call; errors as `ActionExecutor.execute`."""


def people_heard(memory: Memory, case: Case, now: datetime) -> Reason | tuple[VersionCheck, ...]:
    """What people said that speaks against it; else the records of their word, which must stay as they are.

    It is read before everything else: whatever they say from then on fails the intent.
    """
    snooze, unsnoozed = memory.snoozes.of(str(case.subject), now)
    if snooze is not None:
        return Reason(ReasonCode.SNOOZED, {"until": snooze.until.isoformat(timespec="minutes")})
    switch, unturned = memory.switch.seen()
    if switch.paused:
        return Reason(ReasonCode.KILL_SWITCH, {"by": switch.by, "cause": switch.reason})
    passed, owned = memory.disowned.of(str(case.subject))
    if case.owner in passed:
        return Reason(ReasonCode.OWNER_CHANGED, {"before": case.owner})
    return (unsnoozed, unturned, owned)


def out_of_turn(
    memory: Memory, case: Case, verb: Verb, mode: Mode, rungs: tuple[Rung, ...], policy: Policy, now: datetime
) -> Reason | None:
    """Why the step may not be taken now, by the policy and the ledger of this moment: mode, rung, notice and grace.

    `mode` and `rungs` are those of the rule of `policy` that applies to the subject.
    """
    account = account_key(case.subject)
    since = AccountRepository(memory.store).known_since(account)
    standing = CaseStanding(
        now=now,
        mode=mode,
        rungs=rungs,
        told_at=_told_at(memory, case),
        grace_end=policy.calendar.after if policy.calendar is not None else plain_time,
        observing=observing(
            (account,), {} if since is None else {account: since}, policy.observe_new_accounts_for, now
        ),
        rollout=rollout_now(memory, policy, now) if case.guard in OF_MACHINES else NO_ROLLOUT,
    )
    bar = not_its_turn(case, verb, standing)
    if bar is None or bar.code not in {ReasonCode.WAITING, ReasonCode.FIRST_STOP_WAITS}:
        return bar
    return not_its_turn(case, verb, replace(standing, hastened=asked_for(case, memory.haste.granted(now))))


def rollout_now(memory: Memory, policy: Policy, now: datetime) -> Rollout:
    """How far each team and account has come, as the ledger has it. Without `rollout` nothing is read."""
    if not policy.rollout:
        return NO_ROLLOUT
    asked = {step.in_shadow for entry in policy.rollout for step in entry.steps if step.in_shadow}
    shadows = ShadowRepository(memory.store)
    found = [standing for name in sorted(asked) if (standing := shadows.get(IDLE_GPU, name)) is not None]
    notices = memory.outbox.get_many(announcement_ids(policy)).values()
    return Rollout(tuple(standings(policy, found, announced(notices), now)))


def announced(notices: Iterable[OutboxNotice]) -> dict[str, datetime]:
    """When each of these announcements was delivered, of those of which that is proven."""
    return {one.notice_id: one.delivered_at for one in notices if one.proven and one.delivered_at is not None}


def _told_at(memory: Memory, case: Case) -> datetime | None:
    """When the notice that the case rests on was delivered, as the outbox has it."""
    warned = next((rung for rung in reversed(case.climbed) if rung.verb is Verb.WARN), None)
    if warned is None:
        return None
    found = [memory.outbox.get(warned.notice)] if warned.notice else _candidates(memory, case)
    proven = (
        notice.delivered_at
        for notice in found
        if notice is not None and notice.proven and notice.case_key == case.key and notice.decision_id
    )
    return next((at for at in proven if at is not None and (warned.notice or at == warned.at)), None)


def _candidates(memory: Memory, case: Case) -> list[OutboxNotice | None]:
    """Of a case that an earlier Costguard wrote the notices that it may rest on."""
    earlier = (
        decision_id(replace(case, rung=rung, attempt=attempt))
        for rung in range(case.rung)
        for attempt in range(1, case.attempt + 1)
    )
    return [memory.outbox.said_of(case.case_id), *memory.outbox.get_many(earlier).values()]
