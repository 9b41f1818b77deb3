"""Do the functions run that the policy needs, and by the policy that is looked at? Read from the ledger alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high

from costguard.domain.errors import LedgerError
from costguard.domain.reasons import FactValue
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import RunRecord
from costguard.policy.model.policy import Policy
from costguard.policy.sections import SECTIONS, RunWait, guards_in, waits_of
from costguard.report.doctor.checks import Code, Detail, DoctorCheck, RunFault, RunTold

_MISSED = timedelta(hours=3)  # beyond how often runs were seen to come
_JITTER = timedelta(minutes=5)
_FEWEST_GAPS = 2
LONGEST_RUN = timedelta(hours=1)  # no host lets a scheduled run go on for so long


@dataclass(frozen=True, slots=True)
class RunsSeen:
    """The run of each function that began last; None where it never did."""

    latest: Mapping[str, RunRecord | None]
    policy: str
    now: datetime
    waits: tuple[RunWait, ...] = ()


def examine_runs(memory: Memory | LedgerError, policy: Policy, now: datetime, *, shared: bool) -> Iterator[DoctorCheck]:
    """Nothing where no function ever ran with a ledger that is this machine's own: then nothing is deployed.

    `shared`: whether others can reach the ledger, so that somebody expects them to.
    """
    if isinstance(memory, LedgerError):
        return
    try:
        latest = {name: memory.runs.latest(name) for name in guards_in(policy)}
    except LedgerError:
        return  # told of the ledger itself
    if shared or any(run is not None for run in latest.values()):
        every = {name: often for name, run in latest.items() if (often := comes_every(run)) is not None}
        yield runs_check(RunsSeen(latest, policy.digest, now, waits_of(policy, every)))


def comes_every(run: RunRecord | None) -> timedelta | None:
    """How often a guard's runs come, by when its last ones began, to five minutes; None where too few did."""
    starts = () if run is None else (run.started_at, *run.before)
    gaps = [later - earlier for later, earlier in pairwise(starts)]
    if len(gaps) < _FEWEST_GAPS:
        return None
    return round(median_high(gaps) / _JITTER) * _JITTER or None


def runs_check(seen: RunsSeen) -> DoctorCheck:
    """The gravest of what may be wrong: never ran, not lately, did not end, by another policy, seldom for its waits."""
    ran = {name: run for name, run in seen.latest.items() if run is not None}
    facts: dict[str, FactValue] = {"functions": ", ".join(ran), "count": len(ran)}
    if not ran:
        return DoctorCheck(Code.RUNS_NONE, facts={"functions": ", ".join(seen.latest)})
    late = tuple(_late(seen))
    if late:
        return DoctorCheck(Code.RUNS_MISSED, facts=facts, details=late)
    unended = tuple(_unended(ran, seen.now))
    if unended:
        return DoctorCheck(Code.RUNS_UNENDED, facts=facts, details=unended)
    other = tuple(_by_another(ran, seen.policy))
    if other:
        return DoctorCheck(Code.RUNS_OTHER_POLICY, facts=facts, details=other)
    longer = tuple(
        Detail(wait.rule, RunTold(RunFault.STRETCHES_WAIT, wait=wait)) for wait in seen.waits if wait.is_longer
    )
    if longer:
        return DoctorCheck(Code.RUNS_STRETCH_WAITS, facts=facts, details=longer)
    oldest = min(run.started_at for run in ran.values())
    return DoctorCheck(Code.RUNS_RECENT, facts={**facts, "since": oldest.isoformat(timespec="minutes")})


def _late(seen: RunsSeen) -> Iterator[Detail]:
    for name, run in seen.latest.items():
        if run is None:
            yield Detail(name, RunTold(RunFault.NEVER_RAN))
        elif seen.now - run.started_at > max(SECTIONS[name].late_after, (comes_every(run) or timedelta(0)) + _MISSED):
            yield Detail(name, RunTold(RunFault.NOT_LATELY, run.started_at))


def _unended(ran: Mapping[str, RunRecord], now: datetime) -> Iterator[Detail]:
    for name, run in ran.items():
        if run.finished_at is None and now - run.started_at > LONGEST_RUN:
            yield Detail(name, RunTold(RunFault.DID_NOT_END, run.started_at))


def _by_another(ran: Mapping[str, RunRecord], policy: str) -> Iterator[Detail]:
    for name, run in ran.items():
        if run.policy and run.policy != policy and not run.policy_waiting:
            yield Detail(name, RunTold(RunFault.OTHER_POLICY, policy=run.policy[:12]))
