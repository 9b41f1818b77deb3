"""Which policy the runs that a report tells of decided by: one short line for people, its hashes for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from costguard.report.words.sentences import Language, listed, phrase

if TYPE_CHECKING:
    from costguard.report.policy import shapes

_SHORT = 12  # letters of a hash that people are shown


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """A policy, and the guards whose last run decided by it.

    `digest` is that of what it means. `bundle` is the hash of its files and `number` that of its publication, where it
    was published; `waiting` is the hash of one published after it that could not decide yet.
    """

    digest: str
    guards: tuple[str, ...]
    bundle: str = ""
    number: int | None = None
    waiting: str = ""


def decided_lines(policies: Sequence[DecidedBy], language: Language = Language.EN) -> tuple[str, ...]:
    """One line a policy; the guards are named where there are several, as while a new one has just come into force."""
    return tuple(
        phrase(
            "policy_decided",
            language,
            digest=(each.bundle or each.digest)[:_SHORT],
            seq=each.number if each.number is not None else "",
            guards=listed(each.guards, language) if len(policies) > 1 else "",
            waiting=each.waiting[:_SHORT],
        )
        for each in policies
    )


def decided_json(policies: Iterable[DecidedBy]) -> list[shapes.DecidedBy]:
    """The same for machines, under the names that records and results of runs have for it."""
    return [
        {
            "policy": each.digest,
            "policy_bundle": each.bundle or None,
            "number": each.number,
            "policy_waiting": each.waiting or None,
            "guards": list(each.guards),
        }
        for each in policies
    ]
