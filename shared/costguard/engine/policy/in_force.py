"""Which policy a run decides by: the current or published one, or the last good one for at most seven days.

Whoever decides by a policy judges this itself, over the two bundles and what the ledger holds: what the publisher said
of the change is for people to read, and lets nothing pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from costguard.domain.errors import CostguardError, InvalidInputError, LedgerError, ProviderError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.guards.registry import GUARDS
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.publications import Publication
from costguard.policy.diff.differences import Difference
from costguard.policy.diff.policies import APPROVALS_NEEDED, LOOSENING_WAITS, loosenings, observes_only
from costguard.policy.documents.bundle import Usable, bundle_bytes, bundle_digest, usable
from costguard.policy.model.policy import Policy
from costguard.ports import PolicySource, PolicyText
from costguard.report.policy.provenance import DecidedBy
from costguard.report.words.sentences import Language


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


NOTHING = "nothing is published in this ledger; publish a policy with `costguard policy publish FOLDER`"
FIRST_OBSERVES = (
    "nobody has approved what this policy does: where there is no policy that runs decided by until now, or it is not "
    "valid any more, it may only observe; publish it with mode observe first"
)


class Bundles(Protocol):
    """Where the bundles are."""

    @property
    def origin(self) -> str:
        """Their address, for messages."""

    def fetch(self, digest: str) -> PolicyText:
        """The files of one bundle, checked by its hash.

        Raises:
            InvalidInputError: altered, or of a newer Costguard.
            ProviderError: it could not be read.
        """

    def keep(self, files: dict[str, str]) -> str:
        """Keep the bundle of these files and return its hash."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a publication is not in force yet.

    `until` is the moment it asked for; None where it loosens and named none far enough ahead, so that it has to be
    published again. `missing` is how many approvers have still to agree.
    """

    publication: Publication
    loosened: tuple[Difference, ...]
    until: datetime | None
    missing: int


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """The policy in force, and the publication that is not yet."""

    text: PolicyText
    policy: Policy
    waits: Waits | None = None


Load = Callable[[PolicyText], Policy]


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


def standing(
    bundles: Bundles, memory: Memory, now: datetime, *, settle: bool = False, load: Load = compiled
) -> PolicyStanding:
    """What is in force at `now`; with `settle` the ledger remembers that a run decided by it.

    Raises:
        InvalidInputError: nothing is published, a bundle was altered or is not valid, or the first one does more than
            observe.
        ProviderError: a bundle could not be read.
        LedgerError: the pointer could not be.
    """
    published = memory.policies.published
    last = published.latest()
    if last is None:
        raise InvalidInputError(NOTHING)
    text = bundles.fetch(last.digest)
    policy = load(text)
    if last.in_force_at is not None:
        return PolicyStanding(text, policy)
    before = base_of(bundles, memory)
    old = valid(before, load)
    if old is None and not observes_only(policy):
        raise InvalidInputError(FIRST_OBSERVES)
    if before is not None and old is not None:
        waits = waits_for(last, old, policy, now, first=published.in_force() is None)
        if waits is not None:
            return PolicyStanding(bundles.fetch(before.revision), old, waits)
    if settle:
        published.settle(last.seq, now)
    return PolicyStanding(text, policy)


def valid(text: PolicyText | None, load: Load = compiled) -> Policy | None:
    """The policy to compare with; None where there is none, or this Costguard, newer than it, cannot read it."""
    try:
        return load(text) if text is not None else None
    except InvalidInputError:
        return None


def base_of(bundles: Bundles, memory: Memory) -> PolicyText | None:
    """What a publication is compared with: the bundle that runs decided by last, or before any the one remembered then.

    Where the bundle is lost, the copy in the ledger stands in for the comparison, if it is the very same.

    Raises:
        InvalidInputError: it was altered.
        ProviderError: it can be read neither where it is published nor in the ledger.
    """
    before, first = memory.policies.published.in_force(), memory.policies.published.get(1)
    digest = before.digest if before is not None else first.base if first is not None else ""
    if not digest:
        return None
    try:
        return bundles.fetch(digest)
    except (InvalidInputError, ProviderError):
        good = memory.policies.last_good(published=True)
        if good is None or bundle_digest(bundle_bytes(good.files)) != digest:
            raise
        return PolicyText(good.files, digest, good.origin)


def waiting(bundles: Bundles, memory: Memory, last: Publication, now: datetime) -> tuple[Waits | None, Policy | None]:
    """What the last publication waits for, and the policy that it is compared with; None once it is in force.

    Raises:
        InvalidInputError: a bundle was altered.
        ProviderError: a bundle could not be read.
    """
    before = base_of(bundles, memory) if last.in_force_at is None else None
    old = valid(before)
    if old is None:
        return None, None
    first = memory.policies.published.in_force() is None
    return waits_for(last, old, compiled(bundles.fetch(last.digest)), now, first=first), old


def waits_for(
    publication: Publication, old: Policy, new: Policy, now: datetime, *, first: bool = False
) -> Waits | None:
    """What a publication still waits for at `now`, or None. Only approvers whom `old` names count.

    Who may approve is no loosening in the `first` one, before anything published was in force, where nobody was named.
    """
    unnamed = first and len(set(old.answers.approvers)) < APPROVALS_NEEDED
    known = replace(old, answers=new.answers) if unnamed else old
    loosened = loosenings(known, new, publication.at)
    until = publication.effective_at
    if not loosened:
        return None if until is None or now >= until else Waits(publication, (), until, 0)
    if until is not None and until - publication.at < LOOSENING_WAITS:
        until = None
    agreed = {each.by for each in publication.agreed} & set(old.answers.approvers)
    missing = max(0, APPROVALS_NEEDED - len(agreed))
    if until is not None and now >= until and not missing:
        return None
    return Waits(publication, loosened, until, missing)


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


"""From files to a policy, or `InvalidInputError`."""


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


def tell_of_waiting_policy(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """Each publication that may not decide yet once, to the default channel and to those whose word it needs."""
    if found.waits is None:
        return
    from costguard.engine.policy.publishing import asking_notices

    for notice in asking_notices(found.waits, found.policy, Language(language), now):
        memory.outbox.enqueue(notice)
