"""Moves many cases: those of one shard after each other, since they share a chain of the audit, and shards at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from costguard.cases import Case
from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import Shard
from costguard.engine.ledger.memory import Memory
from costguard.planning import Transition
from costguard.ports import Workers

_LOG = logging.getLogger(__name__)


def moved(memory: Memory, workers: Workers, steps: Iterable[Transition], run_id: str, now: datetime) -> dict[str, Case]:
    """The cases as they were written, by id; those that another run moved first are left out."""
    by_shard: dict[Shard, list[Transition]] = {}
    for step in steps:
        by_shard.setdefault(step.after.subject.shard, []).append(step)
    written: dict[str, Case] = {}
    for _, cases in workers.each([partial(_moved, memory, own, run_id, now) for own in by_shard.values()]):
        written.update(cases)
    return written


def _moved(memory: Memory, steps: Sequence[Transition], run_id: str, now: datetime) -> dict[str, Case]:
    written: dict[str, Case] = {}
    for step in steps:
        case_id = step.after.case_id
        try:
            written[case_id] = memory.cases.commit(step.before, step.after, run_id=run_id, now=now)
        except VersionConflictError:
            _LOG.info("another run moved this case first", extra={"case": case_id})
    return written
