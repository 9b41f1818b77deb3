"""Which published policy is in force: the one that the pointer names, once whatever it loosens may count.

Whoever decides by a policy judges this itself, over the two bundles and what the ledger holds: what the publisher said
of the change is for people to read, and lets nothing pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.publications import Publication
from costguard.engine.policy.in_force import Load, compiled
from costguard.policy.diff.differences import Difference
from costguard.policy.diff.policies import APPROVALS_NEEDED, LOOSENING_WAITS, loosenings, observes_only
from costguard.policy.documents.bundle import bundle_bytes, bundle_digest
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText

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
