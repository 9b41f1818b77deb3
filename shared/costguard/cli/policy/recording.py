"""What one look at the fleet saw, in a file: a change of the policy is previewed where no cloud can be asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from costguard.cases import Case
from costguard.domain.errors import InvalidInputError, LedgerError, ProviderError
from costguard.domain.findings import ShardFacts
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap, InstanceDetail, InstanceState, Launch
from costguard.engine.ledger.codec import from_body, to_body
from costguard.engine.ledger.learned import ShadowRepository
from costguard.engine.ledger.memory import notice_views
from costguard.engine.run.close_reads import known_launches, launched
from costguard.engine.run.run_context import RunContext, announced
from costguard.engine.run.scan import Scan, gap_of
from costguard.guards import IDLE_GPU
from costguard.guards.idle.judge import kept_reason
from costguard.guards.rules.common import Bars
from costguard.guards.rules.idle import IdleRule
from costguard.planning import NoticeView, Plan, PlanInputs, build_plan
from costguard.planning.rollout import ANNOUNCEMENT, Rollout, standings
from costguard.planning.shadows import ShadowStanding
from costguard.policy.model.policy import Policy
from costguard.policy.syntax.units import duration

COMMON_WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 72, 168))
"""Looked over beside those of the rules, so that a recording serves rules that are not written yet."""
_SCHEMA = 1
_AT_MOST_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Recording:
    """A fleet at one moment with the cases that were open; nothing in it is secret, and none of it a policy."""

    at: datetime
    facts: tuple[ShardFacts, ...]
    gaps: tuple[Gap, ...]
    closed_accounts: tuple[str, ...]
    cases: tuple[Case, ...]
    details: tuple[InstanceDetail, ...]
    disowned: Mapping[str, frozenset[str]]
    snoozes: Mapping[str, datetime]
    notices: Mapping[str, NoticeView]
    kept: Mapping[ResourceRef, tuple[tuple[str, Money | None], ...]] = field(default_factory=dict)
    launches: Mapping[ResourceRef, Launch] = field(default_factory=dict)
    kept_at: Mapping[str, datetime] = field(default_factory=dict)
    shadows: tuple[ShadowStanding, ...] = ()
    announced: Mapping[str, datetime] = field(default_factory=dict)
    schema: int = _SCHEMA


def with_common_windows(rules: Sequence[IdleRule]) -> tuple[IdleRule, ...]:
    """The rules, and for each common window one that asks for it."""
    first = rules[0] if rules else None
    asked = () if first is None else COMMON_WINDOWS
    return (*rules, *(replace(first, idle=replace(first.idle, lasting=each)) for each in asked if first is not None))


def recording_of(world: RunContext, seen: Scan) -> Recording:
    """All that plans under other policies may need of what was seen; what could be acted on is read closely."""
    memory, now = world.memory, world.clock.now()
    cases, snoozes = memory.cases.active(IDLE_GPU), memory.snoozes.all()
    details, gaps = _details(world, seen, cases)
    instances = [fact.instance for shard in seen.facts for fact in shard.instances]
    asked = launched(
        world,
        PlanInputs(IDLE_GPU, "", now, world.policy, seen.facts, cases, disowned=memory.disowned.all()),
        remember=False,
    )
    return Recording(
        at=now,
        facts=seen.facts,
        gaps=(*seen.gaps, *gaps, *asked.gaps),
        closed_accounts=tuple(sorted(seen.closed_accounts)),
        cases=cases,
        details=details,
        kept={
            each.instance.ref: tuple(world.readings[each.instance.ref.cloud].prices.kept_hourly(each))
            for each in details
        },
        launches={**known_launches(memory, instances, now), **asked.launches},
        disowned=memory.disowned.all(),
        snoozes={ref: snooze.until for ref, snooze in snoozes.items()},
        kept_at={ref: snooze.at for ref, snooze in snoozes.items()},
        notices=notice_views(memory, cases, now),
        shadows=ShadowRepository(memory.store).all(),
        announced=announced(memory.outbox.beginning_with(ANNOUNCEMENT)),
    )


def _details(
    world: RunContext, seen: Scan, cases: Sequence[Case]
) -> tuple[tuple[InstanceDetail, ...], tuple[Gap, ...]]:
    open_cases = {case.subject for case in cases}
    details: list[InstanceDetail] = []
    gaps: list[Gap] = []
    for shard in seen.facts:
        wanted = [
            fact.instance.ref
            for fact in shard.instances
            if fact.instance.ref in open_cases
            or (fact.instance.state is InstanceState.RUNNING and kept_reason(fact.instance, Bars.TERMINATE) is None)
        ]
        try:
            details += world.readings[shard.shard.cloud].inventory.details(wanted).values() if wanted else ()
        except ProviderError as err:
            gaps.append(gap_of(err, shard.shard, "details"))
    return tuple(details), tuple(gaps)


def plan_recorded(seen: Recording, policy: Policy) -> Plan:
    """The plan for what was recorded, under this policy; of the accounts that it guards."""
    guarded = {(account.cloud, account.id) for account in policy.accounts if not account.organisation}
    whole = not guarded or any(account.organisation for account in policy.accounts)
    facts = tuple(shard for shard in seen.facts if whole or (shard.shard.cloud, shard.shard.account) in guarded)
    return build_plan(
        PlanInputs(
            guard=IDLE_GPU,
            run_id="policy-plan",
            now=seen.at,
            policy=policy,
            facts=facts,
            cases=seen.cases,
            details={each.instance.ref: each for each in seen.details},
            kept=seen.kept,
            snoozes=seen.snoozes,
            kept_at=seen.kept_at,
            notices=seen.notices,
            closed_accounts=frozenset(seen.closed_accounts),
            gaps=seen.gaps,
            launches=seen.launches,
            disowned=seen.disowned,
            rollout=Rollout(tuple(standings(policy, seen.shadows, seen.announced, seen.at))),
        )
    )


def write_recording(path: Path, recording: Recording) -> None:
    """Write it.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    try:
        path.write_text(json.dumps(to_body(recording), ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as err:
        message = f"{path}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err


def read_recording(path: Path, policies: Sequence[Policy]) -> Recording:
    """What a file recorded, if it can answer what these policies ask.

    Raises:
        InvalidInputError: nothing there, no recording, or one without a window that a rule looks over.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_AT_MOST_BYTES + 1)
        body: dict[str, Any] = json.loads(raw) if len(raw) <= _AT_MOST_BYTES else {}
        schema = body["schema"]
        seen = from_body(Recording, body) if schema == _SCHEMA else None
    except OSError as err:
        message = f"{path}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
    except (ValueError, TypeError, KeyError, LedgerError, RecursionError) as err:
        message = f"{path}: not a recording; write one with `costguard policy plan NEW --record FILE`"
        raise InvalidInputError(message) from err
    if seen is None:
        message = f"{path}: the recording has schema {schema!r}, this version reads {_SCHEMA}; record again"
        raise InvalidInputError(message)
    there = {reading.lasting for shard in seen.facts for fact in shard.instances for reading in fact.readings}
    missing = {rule.idle.lasting for policy in policies for rule in policy.idle_gpu} - there
    if there and missing:
        named = ", ".join(map(duration, sorted(missing)))
        message = f"{path}: recorded without the window {named}; record again with the policy that looks over it"
        raise InvalidInputError(message)
    return seen
