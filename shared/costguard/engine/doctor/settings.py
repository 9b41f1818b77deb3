"""Can keys and networks be read, where the policy has rules for them; and which secrets stand in plain text?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from costguard.domain.errors import AccessDeniedError, ClosedRegionError, ProviderError
from costguard.domain.reasons import FactValue
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.run.scan import CloudReaders, discovered
from costguard.ports import KeySource, NetworkSource, Target
from costguard.report.doctor.checks import Code, Detail, DoctorCheck


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
