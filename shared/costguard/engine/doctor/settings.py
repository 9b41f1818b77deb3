"""Do the functions run that the policy needs; can keys and networks be read; and which secrets stand in plain text?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high

from costguard.domain.errors import AccessDeniedError, ClosedRegionError, LedgerError, ProviderError
from costguard.domain.reasons import FactValue
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import RunRecord
from costguard.engine.run.scan import CloudReaders, discovered
from costguard.policy.model.policy import Policy
from costguard.policy.sections import SECTIONS, RunWait, guards_in, waits_of
from costguard.ports import KeySource, NetworkSource, Target
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


@dataclass(frozen=True, slots=True)
class _Question:
    """What is read of a shard, how many of it there are and its gaps, and the three answers."""

    read: Callable[[Shard], tuple[int, Sequence[Gap]]]
    whole: Code
    untold: Code
    denied: Code


def examine_keys(
    targets: Sequence[Target], readings: Mapping[str, CloudReaders], sources: Mapping[str, KeySource]
) -> Iterator[DoctorCheck]:
    """One question an account; without an answer its keys are not judged, which bars nothing else."""

    def read(shard: Shard) -> tuple[int, Sequence[Gap]]:
        found = sources[shard.cloud].read(shard)
        return len(found.keys), found.gaps

    question = _Question(read, Code.KEYS_READ, Code.KEYS_UNTOLD, Code.KEYS_DENIED)
    yield from _examined(targets, readings, question)


def examine_networks(
    targets: Sequence[Target], readings: Mapping[str, CloudReaders], sources: Mapping[str, NetworkSource]
) -> Iterator[DoctorCheck]:
    """One question an account; without an answer what its networks let in is not judged, which bars nothing else."""

    def read(shard: Shard) -> tuple[int, Sequence[Gap]]:
        found = sources[shard.cloud].read(shard)
        return len(found.vpcs), found.gaps

    question = _Question(read, Code.NETWORKS_READ, Code.NETWORKS_UNTOLD, Code.NETWORKS_DENIED)
    yield from _examined(targets, readings, question)


_STORES = {
    "lambda": "AWS Secrets Manager",
    "fc": "Alibaba Cloud KMS Secrets Manager",
    "scf": "Tencent Cloud Secrets Manager (SSM)",
}


def examine_secrets(plaintext: Sequence[str], host: str) -> Iterator[DoctorCheck]:
    """A warning for each setting whose secret stands in a function's environment itself; elsewhere nothing is asked."""
    if host not in _STORES:
        return
    for setting in plaintext:
        yield DoctorCheck(Code.PLAIN_TEXT_FOUND, setting, {"store": _STORES[host]})
    if not plaintext:
        yield DoctorCheck(Code.PLAIN_TEXT_NONE)


def _examined(
    targets: Sequence[Target], readings: Mapping[str, CloudReaders], question: _Question
) -> Iterator[DoctorCheck]:
    of_account: dict[tuple[str, str], list[Shard]] = {}
    for shard in sorted(discovered(readings, targets).shards):
        of_account.setdefault((shard.cloud, shard.account), []).append(shard)
    for shards in of_account.values():
        yield _asked_in_first_open(shards, question)


def _asked_in_first_open(shards: Sequence[Shard], question: _Question) -> DoctorCheck:
    """Of one region that the organisation leaves open; where it closes all, of the last."""
    for shard in shards[:-1]:
        try:
            return _asked(shard, question)
        except ClosedRegionError:
            continue
    try:
        return _asked(shards[-1], question)
    except ClosedRegionError as err:
        shard = shards[-1]
        name = str(Shard(shard.cloud, shard.account))
        return DoctorCheck(question.untold, name, {"region": shard.region, "detail": str(err)})


def _asked(shard: Shard, question: _Question) -> DoctorCheck:
    name = str(Shard(shard.cloud, shard.account))
    facts: dict[str, FactValue] = {"region": shard.region}
    try:
        count, gaps = question.read(shard)
    except ClosedRegionError:
        raise
    except AccessDeniedError as err:
        fix = f"allow {err.operation}" if err.operation else ""
        return DoctorCheck(question.denied, name, {**facts, "detail": str(err)}, (Detail(str(shard), str(err), fix),))
    except ProviderError as err:
        return DoctorCheck(question.untold, name, {**facts, "detail": str(err)})
    facts["count"] = count
    if not gaps:
        return DoctorCheck(question.whole, name, facts)
    denied = any(gap.kind is GapKind.DENIED for gap in gaps)
    details = tuple(Detail(str(gap.shard), gap, gap.fix) for gap in gaps)
    return DoctorCheck(
        question.denied if denied else question.untold, name, {**facts, "detail": gaps[0].detail}, details
    )
