"""One run as five phases that share no process: targets → scan (many) → plan → act (many) → report.

Each takes the number of its part and nothing else; what there is to do stands in values that an earlier phase left,
bound by their hash in the ledger, and who may be read with which role stands in the policy. Every decision is made by
what a run in one process calls: `scan`, `plan_from`, `committed`, `act`, `concluded`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.actions import Action, ActionResult, Verb
from costguard.domain.errors import ProviderError, StalePlanError
from costguard.domain.findings import ShardFacts
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.guards.registry import runner_of
from costguard.engine.run.act import act
from costguard.engine.run.phases.account_access import (
    Share,
    entering,
    ours_first,
    parted,
    shares_of,
    target_for,
    within,
)
from costguard.engine.run.phases.blobs import BlobRef, PartRecord, PhaseBook, RunBlobs
from costguard.engine.run.run import RunReport, committed, concluded, log_gaps, plan_from, stop_all
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Scan, gap_of, scan
from costguard.planning import Plan
from costguard.planning.plan import KeptLines
from costguard.ports import Discovery, ObjectStore, Target

_LOG = logging.getLogger(__name__)
TARGETS, SCAN, PLAN, DUE, ACT = "targets", "scan", "plan", "due", "act"
PLAN_HOLDS = timedelta(hours=1)  # as long as a plan that people agreed to
_PARTS_TOGETHER = 50  # 600 accounts a blob
_NOT_ENDED = "the part of the run that reads this account did not end"


@dataclass(frozen=True, slots=True)
class Parts:
    """The shares of some parts that follow each other."""

    parts: tuple[tuple[Share, ...], ...]


@dataclass(frozen=True, slots=True)
class ScanManifest:
    """What a run set out to read, fifty parts a blob, and what could not even be listed."""

    parts: tuple[BlobRef, ...]
    gaps: tuple[Gap, ...] = ()
    closed_accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartSeen:
    """What one part of the scan saw."""

    facts: tuple[ShardFacts, ...]
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """A plan as it was committed; what goes on billing stands beside it, since JSON has no keys that are resources."""

    plan: Plan
    kept: tuple[tuple[ResourceRef, KeptLines], ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Decided:
        """A plan to be handed on."""
        return cls(replace(plan, kept={}), tuple(plan.kept.items()))

    @property
    def whole(self) -> Plan:
        """The plan as it was."""
        return replace(self.plan, kept=dict(self.kept))


@dataclass(frozen=True, slots=True)
class Left:
    """What the phase of planning left: the whole plan for the report, and of it what each part of acting takes."""

    plan: BlobRef
    due: tuple[BlobRef, ...]


@dataclass(frozen=True, slots=True)
class PartDone:
    """What one part of acting did."""

    results: tuple[ActionResult, ...]


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases of one run over one store of values."""

    world: RunContext
    run_id: str
    objects: ObjectStore
    accounts_a_part: int = 12
    cases_a_part: int = 20

    def targets(self) -> int | None:
        """Begin the run: which accounts and regions there are, in parts; how many. None: it was completed before.

        Raises:
            InvalidInputError: a target that cannot be.
            LedgerError: memory failed.
            ProviderError: the store of values failed.
        """
        world, memory = self.world, self.world.memory
        if not memory.runs.begin(self.run_id, world.guard, world.clock.now()):
            return None
        book, blobs = self._book(), self._blobs()
        known = book.get(TARGETS)
        if known is not None:
            return known.parts
        found: dict[Target, Discovery] = {}
        gaps: list[Gap] = []
        for target in world.targets:
            try:
                found[target] = world.readings[target.cloud].inventory.discover(replace(target, regions=()))
            except ProviderError as err:
                gaps.append(gap_of(err, Shard(target.cloud, target.account), "accounts"))
        gaps.extend(gap for listed in found.values() for gap in listed.gaps)
        closed = tuple(sorted({account for listed in found.values() for account in listed.closed_accounts}))
        parts = parted(shares_of(found), self.accounts_a_part)
        together = range(0, len(parts), _PARTS_TOGETHER)
        kept = tuple(blobs.put(f"{TARGETS}/{at:05d}", Parts(parts[at : at + _PARTS_TOGETHER])) for at in together)
        manifest = blobs.put(f"{TARGETS}/all", ScanManifest(kept, tuple(gaps), closed))
        return book.done(TARGETS, 0, manifest, world.clock.now(), len(parts)).parts

    def scan(self, part: int, deadline: datetime | None = None) -> int:
        """Read and examine one part; how many accelerators were seen. Done once; again it answers as before.

        Raises:
            StalePlanError: no such part of a run under way.
        """
        book, blobs = self._book(), self._blobs()
        shares = self._shares_of(part, book, blobs)
        known = book.get(SCAN, part)
        if known is not None:
            return _accelerators(blobs.get(PartSeen, known.blob))
        world = self.world
        policy, inventories = world.policy, {cloud: each.inventory for cloud, each in world.readings.items()}
        own = [target for share in shares if (target := target_for(share, world.targets)) is not None]
        seen = scan(
            world.readings,
            [ours_first(target, world.targets, inventories) for target in own],
            (*policy.idle_gpu, *policy.shadows.idle_gpu),
            world.clock,
            deadline=deadline,
            workers=world.workers,
        )
        done = PartSeen(seen.facts, seen.gaps)
        book.done(SCAN, part, blobs.put(f"{SCAN}/{part:05d}", done), world.clock.now())
        return _accelerators(done)

    def plan(self, deadline: datetime | None = None) -> int:
        """Plan over all that was seen and commit it; how many parts of acting it has.

        A part of the scan that did not end, or left what cannot be believed, is a gap for each of its accounts: nothing
        of them was seen, so nothing there is acted on.

        Raises:
            StalePlanError: the run is not under way.
        """
        book, blobs = self._book(), self._blobs()
        known = book.get(PLAN)
        if known is not None:
            return known.parts
        manifest = self._manifest(book, blobs)
        world, seen = self._entering(manifest), self._seen(manifest, book, blobs)
        plan = plan_from(world, self.run_id, seen, deadline=deadline, remember=True)
        log_gaps(plan)
        plan = committed(world, plan)
        due = [
            blobs.put(f"{DUE}/{number:05d}", Decided.of(partition))
            for number, partition in enumerate(_partitions(plan, self.cases_a_part))
        ]
        left = Left(blobs.put(f"{PLAN}/whole", Decided.of(plan)), tuple(due))
        parts = len(due) + any(
            True for _ in world.memory.starts.open()
        )  # one more for the starts that people asked for
        return book.done(PLAN, 0, blobs.put(f"{PLAN}/left", left), world.clock.now(), parts).parts

    def act(self, part: int, deadline: datetime | None = None) -> int:
        """Act on one part of the plan; how many calls were sent. Every rail of `engine.act` stands before each.

        Raises:
            StalePlanError: no such part of a plan of this run, or one too old to be believed.
        """
        world, book, blobs = self.world, self._book(), self._blobs()
        known, planned = book.get(ACT, part), book.get(PLAN)
        if known is not None:
            return _called(blobs.get(PartDone, known.blob))
        if planned is None or part >= planned.parts:
            message = f"run {self.run_id} has no part {part} to act on"
            raise StalePlanError(message)
        due = blobs.get(Left, planned.blob).due
        if part == len(due):
            sent = self._started(planned, book, blobs)
            book.done(ACT, part, blobs.put(f"{ACT}/{part:05d}", PartDone(())), world.clock.now())
            return sent
        plan = blobs.get(Decided, due[part]).whole
        age = world.clock.now() - plan.planned_at
        if plan.run_id != self.run_id or age > PLAN_HOLDS:
            message = f"a plan of run {plan.run_id}, made {age // timedelta(minutes=1)} minutes ago, is not acted on"
            raise StalePlanError(message)
        done = PartDone(self._acted(plan, deadline))
        book.done(ACT, part, blobs.put(f"{ACT}/{part:05d}", done), world.clock.now())
        return _called(done)

    def report(self, deadline: datetime | None = None) -> RunReport:
        """Tell people, keep what was seen, close the run. A run that was completed is a duplicate.

        Called again after it was killed, it goes on: what is claimed, written or sent is not begun again.

        Raises:
            StalePlanError: the run was never planned.
        """
        world, book, blobs = self.world, self._book(), self._blobs()
        if not world.memory.runs.begin(self.run_id, world.guard, world.clock.now()):
            return RunReport(self.run_id, None, duplicate=True)
        planned = book.get(PLAN)
        if planned is None:
            message = f"run {self.run_id} was never planned"
            raise StalePlanError(message)
        plan = blobs.get(Decided, blobs.get(Left, planned.blob).plan).whole
        acted = book.all(ACT)
        lost = [number for number in range(planned.parts) if number not in acted]
        if lost:
            _LOG.warning("parts of acting did not end; later runs find out by looking", extra={"parts": len(lost)})
        results: list[ActionResult] = []
        for number in range(planned.parts):
            if number in acted:
                results.extend(blobs.get(PartDone, acted[number].blob).results)
        world = self._entering(self._manifest(book, blobs))  # protections are read before the warnings
        return concluded(world, plan, tuple(results), deadline)

    def _started(self, planned: PartRecord, book: PhaseBook, blobs: RunBlobs) -> int:
        """Try the starts that people asked for, where this run has seen all; how many requests were sent."""
        age = self.world.clock.now() - planned.at
        if age > PLAN_HOLDS:
            message = f"what run {self.run_id} saw {age // timedelta(minutes=1)} minutes ago is not acted on"
            raise StalePlanError(message)
        manifest, ahead = self._manifest(book, blobs), runner_of(self.world.guard).ahead
        seen = self._seen(manifest, book, blobs)
        return 0 if ahead is None else sum(one.sent for one in ahead(self._entering(manifest), self.run_id, seen))

    def _acted(self, plan: Plan, deadline: datetime | None) -> tuple[ActionResult, ...]:
        world, now = self.world, self.world.clock.now()
        stopped = stop_all(world, enforcing=True)
        if stopped is not None:
            return tuple(ActionResult(action, None, now, stopped) for action in plan.due)
        changed = Reason(ReasonCode.RULE_CHANGED, {"rule": "mode"})
        barred = tuple(action for action in plan.due if action.subject.cloud not in world.executors)
        able = replace(
            plan,
            due=tuple(action for action in plan.due if action not in barred),
            next_in_line=tuple(each for each in plan.next_in_line if each.subject.cloud in world.executors),
        )
        world = self._entering(self._manifest(self._book(), self._blobs()))
        results = act(able, world, runner_of(plan.guard).handler(world), deadline)
        return (*results, *(ActionResult(action, None, now, changed) for action in barred))

    def _seen(self, manifest: ScanManifest, book: PhaseBook, blobs: RunBlobs) -> Scan:
        ended = book.all(SCAN)
        facts: list[ShardFacts] = []
        gaps = list(manifest.gaps)
        for number, shares in enumerate(_parts(manifest, blobs)):
            record = ended.get(number)
            if record is None:
                gaps.extend(_unread(shares, _NOT_ENDED))
                continue
            try:
                read = blobs.get(PartSeen, record.blob)
            except (StalePlanError, ProviderError) as err:
                gaps.extend(_unread(shares, f"what was read of this account cannot be believed: {err}"))
                continue
            own = within((fact.shard for fact in read.facts), shares)
            facts.extend(fact for fact in read.facts if fact.shard in own)
            gaps.extend(read.gaps)
        return Scan(tuple(sorted(facts, key=lambda fact: fact.shard)), tuple(gaps), frozenset(manifest.closed_accounts))

    def _entering(self, manifest: ScanManifest) -> RunContext:
        shares = (share for part in _parts(manifest, self._blobs()) for share in part)
        return entering(self.world, {(share.cloud, share.account): share for share in shares})

    def _manifest(self, book: PhaseBook, blobs: RunBlobs) -> ScanManifest:
        record = book.get(TARGETS)
        if record is None:
            message = f"run {self.run_id} of {self.world.guard} is not under way"
            raise StalePlanError(message)
        return blobs.get(ScanManifest, record.blob)

    def _shares_of(self, part: int, book: PhaseBook, blobs: RunBlobs) -> tuple[Share, ...]:
        """Those of one part: no part needs to know of tens of thousands of others."""
        kept, within_it = divmod(part, _PARTS_TOGETHER)
        refs = self._manifest(book, blobs).parts
        parts = blobs.get(Parts, refs[kept]).parts if kept < len(refs) else ()
        if within_it >= len(parts):
            message = f"run {self.run_id} has no part {part} to read"
            raise StalePlanError(message)
        return parts[within_it]

    def _book(self) -> PhaseBook:
        run = self.world.memory.runs.get(self.run_id)
        if run is None:
            message = f"run {self.run_id} never began"
            raise StalePlanError(message)
        return PhaseBook(self.world.memory.store, self.world.guard, self.run_id, run.started_at)

    def _blobs(self) -> RunBlobs:
        return RunBlobs(self.objects, self.run_id)


def _parts(manifest: ScanManifest, blobs: RunBlobs) -> Iterator[tuple[Share, ...]]:
    for ref in manifest.parts:
        yield from blobs.get(Parts, ref).parts


def _unread(shares: Iterable[Share], detail: str) -> Iterator[Gap]:
    return (Gap(Shard(share.cloud, share.account), "accounts", GapKind.UNAVAILABLE, detail) for share in shares)


def _partitions(plan: Plan, most_cases: int) -> tuple[Plan, ...]:
    """The plan in parts, each with what acting on it takes and nothing else; an account is in one part only."""
    by_account: dict[tuple[str, str], list[Action]] = {}
    for action in plan.due:
        if action.verb is not Verb.WARN:
            by_account.setdefault(_account(action), []).append(action)
    parts = tuple(_together(by_account.values(), most_cases))
    return tuple(_partition(plan, due, behind) for due, behind in zip(parts, _lines(plan, parts), strict=True))


def _lines(plan: Plan, parts: Sequence[Sequence[Action]]) -> tuple[tuple[Action, ...], ...]:
    """What is next in line, by part: with its own account, and accounts that no part has are dealt out in turn."""
    holders = {_account(action): number for number, part in enumerate(parts) for action in part}
    lines: list[list[Action]] = [[] for _ in parts]
    for action in plan.next_in_line if parts else ():
        lines[holders.setdefault(_account(action), len(holders) % len(parts))].append(action)
    return tuple(map(tuple, lines))


def _account(action: Action) -> tuple[str, str]:
    return (action.subject.cloud, action.subject.account)


def _together(groups: Iterable[Sequence[Action]], most_cases: int) -> Iterator[tuple[Action, ...]]:
    waiting: tuple[Action, ...] = ()
    for group in groups:
        cases = {action.case_id for action in (*waiting, *group)}
        if waiting and len(cases) > most_cases:
            yield waiting
            waiting = ()
        waiting = (*waiting, *group)
    if waiting:
        yield waiting


def _partition(plan: Plan, due: tuple[Action, ...], behind: tuple[Action, ...]) -> Plan:
    cases = {action.case_id for action in (*due, *behind)}
    return replace(
        plan,
        due=due,
        next_in_line=behind,
        transitions=tuple(step for step in plan.transitions if step.after.case_id in cases),
        findings=(),
        held=(),
        rehearsed=(),
        gaps=(),
        kept={},
        protected_by=(),
        billed_while_stopped=(),
        sightings=(),
        looked=(),
        shadows=(),
        unread_protections=(),
    )


def _accelerators(seen: PartSeen) -> int:
    return sum(len(fact.instances) for fact in seen.facts)


def _called(done: PartDone) -> int:
    return sum(result.outcome is not None for result in done.results)
