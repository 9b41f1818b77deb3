"""Which policies the last runs decided by, as their records say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from costguard.engine.guards.registry import GUARDS
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.publications import Publication
from costguard.report.policy.provenance import DecidedBy


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
