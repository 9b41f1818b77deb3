"""Which policy a run decides by: the current or published one, or the last good one for at most seven days."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from costguard.domain.errors import CostguardError, InvalidInputError, LedgerError, ProviderError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.guards.registry import GUARDS
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.publications import Publication
from costguard.policy.documents.bundle import Usable, usable
from costguard.policy.model.policy import Policy
from costguard.ports import PolicySource, PolicyText
from costguard.report.policy.provenance import DecidedBy
from costguard.report.words.sentences import Language

if TYPE_CHECKING:
    from costguard.engine.policy.published import Bundles, Waits


def decided_by(memory: Memory, anew: Mapping[str, str] | None = None) -> tuple[DecidedBy, ...]:
    """Each policy that the last run of a guard decided by, with those guards, in the order of the guards.

    `anew` are guards that were looked at just now, and the digest of the policy that was judged by. A run from before
    runs named their policy says nothing.

    Raises:
        LedgerError: memory failed.
    """
    guards: dict[tuple[str, str, int | None, str], list[str]] = {}
    for guard, policy in _by_guard(memory, anew or {}):
        guards.setdefault(policy, []).append(guard)
    return tuple(
        DecidedBy(digest, tuple(named), bundle, number, waiting)
        for (digest, bundle, number, waiting), named in guards.items()
    )


def _by_guard(memory: Memory, anew: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str, int | None, str]]]:
    publications: Sequence[Publication] | None = None
    for guard in GUARDS:
        if guard in anew:
            yield guard, (anew[guard], "", None, "")
            continue
        run = memory.runs.latest(guard)
        if run is None or not run.policy:
            continue
        if run.bundle and publications is None:
            publications = memory.policies.published.all()
        number = _number(publications or (), run.bundle, run.started_at)
        yield guard, (run.policy, run.bundle, number, run.policy_waiting)


def _number(publications: Sequence[Publication], bundle: str, at: datetime) -> int | None:
    """The last publication of this bundle that was in force by then: a rollback publishes the same one again."""
    found = (
        each.seq
        for each in publications
        if each.digest == bundle and each.in_force_at is not None and each.in_force_at <= at
    )
    return max(found, default=None)


Load = Callable[[PolicyText], Policy]
"""From files to a policy, or `InvalidInputError`."""


@lru_cache(maxsize=8)
def _compiled(files: tuple[tuple[str, str], ...], origin: str) -> Policy:
    from costguard.policy.documents.loader import (
        load_policy,  # pydantic: a process that made it before needs none of it
    )

    return load_policy(PolicyText(dict(files), "", origin))


def compiled(text: PolicyText) -> Policy:
    """The policy of these files, made once a process: reading YAML with places takes longest.

    Raises:
        InvalidInputError: not a valid policy.
    """
    return _compiled(tuple(sorted(text.files.items())), text.origin)


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy to judge by. `problem` bars every action; `error` is what was wrong with the current one.

    `bundle` is the hash of a published one. `waits` is the publication after it, which may not decide yet.
    """

    policy: Policy
    problem: Reason | None = None
    error: str = ""
    bundle: str = ""
    waits: Waits | None = None


def policy_in_force(source: PolicySource, memory: Memory, now: datetime, load: Load = compiled) -> PolicyInForce:
    """Read the current policy and remember it; where it is broken fall back, and say so.

    Raises:
        InvalidInputError: the current policy is broken and no good one is remembered.
        ProviderError: likewise, where it could not be read.
    """
    try:
        text = source.read()
        policy = load(text)
    except (InvalidInputError, ProviderError) as err:
        return _fallen_back(err, memory, now, load)
    memory.policies.remember(text, now)
    return PolicyInForce(policy)


def published_in_force(bundles: Bundles, memory: Memory, now: datetime) -> PolicyInForce:
    """The published policy in force, remembered; where pointer or bundle is broken fall back, and say so.

    Raises:
        InvalidInputError: it is broken and no good one is remembered.
        ProviderError: likewise, where it could not be read.
        LedgerError: likewise for the pointer, or nothing at all can be read.
    """
    from costguard.engine.policy.published import standing

    try:
        found = standing(bundles, memory, now, settle=True)
    except (InvalidInputError, ProviderError, LedgerError) as err:
        return _fallen_back(err, memory, now, compiled, published=True)
    memory.policies.remember(found.text, now, published=True)
    return PolicyInForce(found.policy, bundle=found.text.revision, waits=found.waits)


def _fallen_back(
    err: CostguardError, memory: Memory, now: datetime, load: Load, *, published: bool = False
) -> PolicyInForce:
    good = memory.policies.last_good(published=published)
    if good is None:
        raise err
    policy = load(good.text)
    facts = {"read_at": good.read_at.isoformat(timespec="minutes")}
    refused = usable(good.read_at, now) is Usable.REFUSE
    return PolicyInForce(
        policy,
        Reason(ReasonCode.POLICY_STALE, facts) if refused else None,
        str(err),
        bundle=good.revision if published else "",
    )


def named(memory: Memory, found: PolicyInForce) -> Memory:
    """The same memory, whose run records name the policy that their run decided by."""
    waits = found.waits.publication.digest if found.waits is not None else ""
    return replace(memory, runs=memory.runs.deciding_by(found.policy.digest, found.bundle, waits))


def policy_figures(found: PolicyInForce) -> dict[str, str]:
    """The policy that a run decided by, and the hash of one that could not decide yet, beside its other figures."""
    waiting = found.waits.publication.digest if found.waits is not None else ""
    said = {"policy": found.policy.digest, "policy_bundle": found.bundle, "policy_waiting": waiting}
    return {name: digest for name, digest in said.items() if digest}


def tell_of_policy(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """What people have to know of the policy before a run: that it is broken, or that another one waits."""
    tell_of_broken_policy(memory, found, language, now)
    tell_of_waiting_policy(memory, found, language, now)
    tell_of_unknown_holidays(memory, found, language, now)


def tell_of_broken_policy(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """One notice a day to the default channel for as long as the policy stays broken."""
    if not found.error or not found.policy.default_channel:
        return
    day = hashlib.sha256(f"{now.date()}\n{found.error}".encode()).hexdigest()[:24]
    from costguard.report.notices.policy import policy_notice

    worded = policy_notice(found.error, refused=found.problem is not None, language=Language(language))
    memory.outbox.enqueue(
        OutboxNotice(
            notice_id=f"policy-{day}",
            decision_id="",
            case_key="",
            channel=found.policy.default_channel,
            title=worded.title,
            text=worded.text,
            created_at=now,
            fields=worded.fields,
            lines=worded.lines,
        )
    )


def tell_of_unknown_holidays(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """One notice a year to the default channel where the policy names countries and has no dates for this year."""
    policy = found.policy
    if policy.calendar is None or not policy.calendar.is_undated(now) or not policy.default_channel:
        return
    from costguard.report.notices.policy import undated_notice

    year = policy.calendar.year_of(now)
    worded = undated_notice(year, language=Language(language))
    memory.outbox.enqueue(
        OutboxNotice(
            notice_id=f"policy-holidays-{year}",
            decision_id="",
            case_key="",
            channel=policy.default_channel,
            title=worded.title,
            text=worded.text,
            created_at=now,
            fields=worded.fields,
            lines=worded.lines,
        )
    )


def tell_of_waiting_policy(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """Each publication that may not decide yet once, to the default channel and to those whose word it needs."""
    if found.waits is None:
        return
    from costguard.engine.policy.publishing import asking_notices

    for notice in asking_notices(found.waits, found.policy, Language(language), now):
        memory.outbox.enqueue(notice)
