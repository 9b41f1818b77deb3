"""One run of the kms_rotation guard, which only observes: look → judge → remember the figures."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from costguard.domain.findings import Verdict
from costguard.engine.key_look import KeyLook, look_at_keys
from costguard.engine.run import log_gaps
from costguard.engine.scan import Progress, no_progress
from costguard.engine.surroundings import Surroundings

_LOG = logging.getLogger(__name__)
_MOST_VIOLATIONS_LOGGED = 50  # `costguard keys` has them all


@dataclass(frozen=True, slots=True)
class KeyRun:
    """What a run of the guard found. `look` None: this run had been completed before."""

    run_id: str
    guard: str
    look: KeyLook | None = None


def run_keys(
    world: Surroundings,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
) -> KeyRun:
    """One whole run. A run id that was completed before does nothing: events are delivered more than once."""
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return KeyRun(run_id, world.guard)
    looked = look_at_keys(
        world.readings,
        world.keys,
        world.targets,
        world.policy,
        world.clock,
        deadline=deadline,
        progress=progress,
        workers=world.workers,
    )
    done = KeyRun(run_id, world.guard, looked)
    log_gaps(looked)
    _log_violations(looked)
    world.memory.runs.finish(run_id, key_summary(done), world.clock.now())
    return done


def key_summary(done: KeyRun) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function; its findings are about keys."""
    looked = done.look
    if looked is None:
        return {"run_id": done.run_id, "duplicate": True}
    lines = looked.report.lines
    verdicts = Counter(each.finding.verdict.value for each in lines)
    checks: dict[str, Counter[str]] = {}
    for each in lines:
        checks.setdefault(each.finding.check, Counter())[each.finding.verdict.value] += 1
    return {
        "run_id": done.run_id,
        "guard": done.guard,
        "duplicate": False,
        "keys_seen": looked.report.keys_seen,
        "findings": dict(sorted(verdicts.items())),
        "checks": {check: dict(sorted(counted.items())) for check, counted in sorted(checks.items())},
        "due": 0,
        "done": 0,
        "held": 0,
        "rehearsed": sum(each.mend is not None for each in lines),
        "gaps": len(looked.gaps),
    }


def _log_violations(looked: KeyLook) -> None:
    """A line for each violation, so that an alarm on the logs can name the key."""
    violations = [each for each in looked.report.lines if each.finding.verdict is Verdict.VIOLATION]
    for each in violations[:_MOST_VIOLATIONS_LOGGED]:
        finding = each.finding
        facts = {"key": str(finding.subject), "check": finding.check, "reason": finding.reason.code.value}
        _LOG.warning("a key is not as the policy asks", extra={**facts, "rule": finding.rule, "owner": finding.owner})
