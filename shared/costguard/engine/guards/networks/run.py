"""The runner of `network_audit`: what networks may not be is told of, and where a policy says so, remediated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from costguard.cases import Case
from costguard.cases.remediation import remediation_rungs, remediation_terms
from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import LedgerError, OutcomeUnknownError, ProviderError, RefusedError, VersionConflictError
from costguard.domain.findings import Verdict
from costguard.domain.network import NetworkInventory
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance
from costguard.engine.guards.networks.look import (
    NetworkLook,
    SightingsRepository,
    first_seen,
    is_whole,
    judged_networks,
    look_at_networks,
    network_now,
)
from costguard.engine.guards.remediations import (
    cut_of,
    limit_of,
    log_violations,
    plan_remediations,
    remediation_figures,
    remediation_messages,
)
from costguard.engine.guards.runner import GuardRunner, Port
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run_context import (
    PrecheckResult,
    RunContext,
    in_its_turn,
    out_of_turn,
    people_heard,
)
from costguard.engine.run.scan import Progress, no_progress
from costguard.engine.run.snapshots import with_remediation_shadows
from costguard.guards import NETWORK_AUDIT
from costguard.guards.network.judge import before_of
from costguard.planning import Plan, RuleLimit
from costguard.policy.model.policy import Policy
from costguard.ports import Put, RecordStore, VersionCheck

TURN = timedelta(minutes=30)
"""How long one run has a shard to itself: five minutes from its look to its call, two clocks ten minutes off each, and
what a cloud takes to show a change to everybody."""

_CLOSING = frozenset({RemediationKind.REVOKE_RULE, RemediationKind.NARROW_RULE, RemediationKind.DETACH_ADDRESS})
_KIND = "network_turn"  # key: shard


@dataclass(frozen=True, slots=True)
class _Turn:
    """Until when a run may close ways into a shard, and no other."""

    shard: Shard
    until: datetime


class NetworkHandler:
    """`ActionHandler` for networks; it may change what the port of the cloud's remediator names, and nothing else."""

    shards_apart = False  # a way in may lead through another region: each mend is looked at after the one before

    def __init__(self, world: RunContext) -> None:
        self._world = world
        self._turns = _Turns(world.memory.store)
        self._made: list[Action] = []
        self._read: list[NetworkInventory] = []

    def last_look(
        self, case: Case, action: Action, policy: Policy, now: datetime, memory: Memory
    ) -> Reason | PrecheckResult:
        """Why not, after reading everything around it again: a path is open or closed by what stands beside a rule.

        A shard is read for each action: a day has few, and each rests on what was there a moment before. Two runs at
        once would each count on the way that the other closes, so that one of them waits for its turn. Which addresses
        it saw in use is remembered: at once where nothing follows, else after the call, for nothing but the intent is
        written between the two.
        """
        found = self._looked(case, action, policy, now, memory)
        if isinstance(found, Reason):
            self._remember()
        return found

    def _looked(
        self, case: Case, action: Action, policy: Policy, now: datetime, memory: Memory
    ) -> Reason | PrecheckResult:
        world, subject, mend = self._world, case.subject, action.mend
        heard = people_heard(memory, case, now)
        if isinstance(heard, Reason):
            return heard
        unturned = self._turn(mend, subject.shard, now)
        if isinstance(unturned, Reason):
            return unturned
        network, instances = network_now(
            world.networks[subject.cloud], world.readings[subject.cloud], subject.shard, world.clock, world.workers
        )
        self._read.append(network)
        unread = self._unread(network, instances)
        if unread is not None:
            return unread
        known = first_seen(SightingsRepository(world.memory.store).all(), now)
        found = judged_networks((network,), instances, policy, now, known)
        judged = next((one for one in found if (one.finding.check, one.finding.subject) == (case.check, subject)), None)
        if judged is None:
            return Reason(ReasonCode.VANISHED)
        if judged.rule is None or judged.rule.digest != action.rule_digest:
            return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
        if judged.finding.verdict is not Verdict.VIOLATION:
            return judged.finding.reason
        if mend is None or judged.mend != mend or remediation_terms(judged.rule, judged.mend) != case.terms:
            return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})
        if judged.bar is not None:
            return judged.bar
        rungs = remediation_rungs(judged.rule, judged.mend)
        early = out_of_turn(memory, case, action.verb, judged.rule.mode, rungs, policy, now)
        return early or PrecheckResult((*heard, *unturned), frozenset({subject}), before_of(mend, network, instances))

    def limit(self, action: Action, policy: Policy, seen: int) -> RuleLimit | None:
        """That of the rule for networks, where it still says the same."""
        return limit_of(policy.network_audit, action, seen)

    def call(self, action: Action) -> Receipt:
        """One call, with the image of what it changes: a cloud that can refuse what has moved is asked to.

        Raises:
            RefusedError: nothing is to be mended; nothing was sent.
        """
        if action.mend is None:
            raise RefusedError("there is nothing to mend", operation="network")
        self._made.append(action)
        try:
            return self._world.network_remediators[action.subject.cloud]().change(action.mend, action.before)
        except OutcomeUnknownError:
            raise
        except ProviderError:
            self._made.pop()  # refused: nothing of it will ever show
            raise
        finally:
            with suppress(LedgerError):  # what came of the call cannot be written then either, and says so
                self._remember()

    def _remember(self) -> None:
        """Write down which addresses these reads saw in use; a read that lacks some says only of those it has."""
        sightings = SightingsRepository(self._world.memory.store)
        while self._read:
            sightings.used(self._read.pop(), self._world.clock.now())

    def _turn(self, mend: Remediation | None, shard: Shard, now: datetime) -> Reason | tuple[VersionCheck, ...]:
        """What must still hold when the intent is written, where ways may be closed; else why not."""
        if mend is None or mend.kind not in _CLOSING:
            return ()
        taken = self._turns.take(shard, now)
        return (taken,) if taken is not None else Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "another run"})

    def _unread(self, network: NetworkInventory, instances: Sequence[Instance]) -> Reason | None:
        """Why a read is not enough, or older than what this run has changed: it would count on ways just closed."""
        if not is_whole(network):
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": network.gaps[0].detail})
        for made in self._made:
            mend = made.mend
            if mend is None or mend.kind not in _CLOSING or mend.subject.shard != network.shard:
                continue
            if before_of(mend, network, instances) == made.before:
                return Reason(ReasonCode.DETAIL_UNREAD, {"cause": "what was changed just now does not show yet"})
        return None


class _Turns:
    """Who may close ways into a shard now: one run at a time, as the ledger has it."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._mine: dict[Shard, int] = {}

    def take(self, shard: Shard, now: datetime) -> VersionCheck | None:
        """What must still hold when the intent is written; None while another run has its turn."""
        record = self._store.get(_KIND, str(shard))
        version = record.version if record is not None else 0
        if record is not None and self._mine.get(shard) != version and value_of(_Turn, record).until > now:
            return None
        try:
            self._store.transact([Put(record_of(_KIND, str(shard), _Turn(shard, now + TURN)), version)])
        except VersionConflictError:
            return None
        self._mine[shard] = version + 1
        return VersionCheck(_KIND, str(shard), version + 1)


def see_networks(
    world: RunContext, *, deadline: datetime | None, progress: Progress, remember: bool, seen: Any = None
) -> NetworkLook:
    """Every network of every target."""

    def looked(until: datetime | None, begin_at: str | None) -> NetworkLook:
        return look(world, deadline=until, progress=progress, begin_at=begin_at)

    return seen or in_its_turn(world, deadline, looked, cut_of, remember=remember)


def _plan_of(world: RunContext, run_id: str, looked: NetworkLook, *, deadline: datetime | None, remember: bool) -> Plan:
    plan = plan_remediations(world, run_id, looked, world.policy.network_audit, deadline=deadline, remember=remember)
    unused = first_seen(looked.remembered, looked.now)
    in_shadow = (
        (
            rule,
            judged_networks(
                looked.inventories, looked.instances, replace(world.policy, network_audit=(rule,)), looked.now, unused
            ),
        )
        for rule in world.policy.shadows.network_audit
    )
    return with_remediation_shadows(plan, looked.judged, in_shadow)


def look(
    world: RunContext,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    begin_at: str | None = None,
) -> NetworkLook:
    """One look with what is remembered of addresses; writes nothing."""
    remembered = SightingsRepository(world.memory.store).all()
    looked = look_at_networks(
        world.readings,
        world.networks,
        world.targets,
        world.policy,
        world.clock,
        first_seen=first_seen(remembered, world.clock.now()),
        deadline=deadline,
        progress=progress,
        workers=world.workers,
        begin_at=begin_at,
    )
    return replace(looked, remembered=remembered)


def _planned(world: RunContext, looked: NetworkLook) -> None:
    SightingsRepository(world.memory.store).put(looked.sightings, looked.remembered)
    log_violations("resource", (line.finding for line in looked.report.worth))


RUNNER = GuardRunner(
    name=NETWORK_AUDIT,
    see=see_networks,
    plan_of=_plan_of,
    planned=_planned,
    handler=NetworkHandler,
    messages=lambda world: remediation_messages(world.policy.network_audit),
    figures=partial(remediation_figures, seen="networks_seen"),
    ports=frozenset({Port.NETWORKS, Port.NETWORK_REMEDIATORS}),
    counts="network",
)
