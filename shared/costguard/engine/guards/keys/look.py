"""Every key of every target, and what is to be said of each. Changes nothing, tells nobody."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from costguard.domain.errors import ClosedRegionError, ProviderError
from costguard.domain.findings import Verdict
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.run.scan import (
    CloudReaders,
    Progress,
    ThreadWorkers,
    discovered,
    gap_of,
    in_turn,
    no_progress,
    truly_closed,
)
from costguard.guards.keys.judge import NOBODY, Lineage, gentlest, judge_key, lineages, remediation_of
from costguard.planning.rails import key_exception, setting_bar
from costguard.planning.remediation import Judged
from costguard.policy.model.ownership import key_owner
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, KeySource, Target, Workers
from costguard.report.keys.views import KeyLine, KeyReport

_LOG = logging.getLogger(__name__)
KEYS, DETAILS = "keys", "key_details"
_WHAT = {"inventory": KEYS, "details": DETAILS}
"""What vendors' gaps in a key inventory are about, in words that are not of instances."""

_GRAVITY = {ReasonCode.KEY_DELETED_IN_USE: 3, ReasonCode.KEY_DISABLED_IN_USE: 2, ReasonCode.KEY_ROTATION_OFF: 1}
_FAULTS = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})


@dataclass(frozen=True, slots=True)
class KeyLook:
    """One look at all keys. `shards` are those that answered, by whether all their keys were listed.

    `keys` are what was judged.
    """

    now: datetime
    report: KeyReport
    judged: tuple[Judged, ...] = ()
    shards: Mapping[Shard, bool] = field(default_factory=dict)
    closed_accounts: frozenset[str] = frozenset()
    keys: tuple[EncryptionKey, ...] = ()

    @property
    def seen(self) -> int:
        """How many keys there are."""
        return self.report.keys_seen

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be read."""
        return self.report.gaps


def look_at_keys(
    readings: Mapping[str, CloudReaders],
    sources: Mapping[str, KeySource],
    targets: Sequence[Target],
    policy: Policy,
    clock: Clock,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    workers: Workers | None = None,
    begin_at: str | None = None,
) -> KeyLook:
    """Read the keys of every shard side by side and judge them all by the policy's rules.

    Errors of one shard become its gap and never touch another; a shard past the deadline is a gap, not a wait.
    `begin_at` is the shard whose turn it is, see `scan_cursor`.
    """
    found = discovered(readings, targets)
    shards = found.shards if begin_at is None else in_turn(found.shards, begin_at)
    tasks = [partial(_read_or_skip, sources[shard.cloud], shard, clock, deadline) for shard in shards]
    inventories: list[KeyInventory] = []
    gaps = list(found.gaps)
    shut: dict[Shard, Gap] = {}
    for done, (place, read) in enumerate((workers or ThreadWorkers()).each(tasks), start=1):
        shard = shards[place]
        if isinstance(read, ClosedRegionError):
            shut[shard] = gap_of(read, shard, KEYS)
        elif isinstance(read, Gap):
            gaps.append(read)
        else:
            inventories.append(read)
            gaps.extend(replace(gap, what=_WHAT.get(gap.what, gap.what)) for gap in read.gaps)
        progress(done, len(shards), str(shard))
    closed = truly_closed(shut, [read.shard for read in inventories])
    gaps.extend(gap for shard, gap in shut.items() if shard not in closed)
    now = clock.now()
    keys = sorted((key for read in inventories for key in read.keys), key=lambda key: key.ref)
    by_key = judged_keys(keys, policy, now)
    report = KeyReport(
        lines=tuple(KeyLine(each.finding, key, each.mend) for key, judged in by_key for each in judged),
        keys_seen=len(keys),
        gaps=tuple(sorted(gaps, key=lambda gap: (gap.shard, gap.what))),
    )
    return KeyLook(
        now,
        report,
        judged=tuple(each for _, judged in by_key for each in judged),
        shards={read.shard: not any(gap.what == "inventory" for gap in read.gaps) for read in inventories},
        closed_accounts=found.closed_accounts,
        keys=tuple(keys),
    )


def judged_keys(
    keys: Sequence[EncryptionKey], policy: Policy, now: datetime
) -> list[tuple[EncryptionKey, Sequence[Judged]]]:
    """What is to be said of every key, with those that succeed one another told apart."""
    lines = lineages(keys)
    return [(key, judged_key(key, policy, now, lines.get(key.ref, NOBODY))) for key in keys]


def judged_key(key: EncryptionKey, policy: Policy, now: datetime, line: Lineage = NOBODY) -> Sequence[Judged]:
    """What is to be said of one key, what the policy allows about it, and what of the house's own forbids it."""
    rule = gentlest(key, policy.kms_rotation, line)
    owner, excepted = key_owner(key, policy), key_exception(key, policy, now)
    bar = setting_bar(key.ref, key.tags, policy, now)
    found = []
    for judged in judge_key(key, rule, now, line):
        finding = replace(judged, owner=owner)
        if excepted is not None and judged.verdict in _FAULTS:
            finding = replace(finding, verdict=Verdict.EXEMPT, reason=excepted)
        mend = None if rule is None else remediation_of(key, rule, finding, line)
        found.append(Judged(finding, rule, mend, bar, gravity=_GRAVITY.get(finding.reason.code, 0)))
    return found


def _read_or_skip(
    source: KeySource, shard: Shard, clock: Clock, deadline: datetime | None
) -> KeyInventory | Gap | ClosedRegionError:
    if deadline is not None and clock.now() >= deadline:
        return Gap(shard, KEYS, GapKind.DEADLINE, "the time allowed was used up before this shard was read")
    try:
        inventory = source.read(shard)
    except ClosedRegionError as err:
        return err
    except ProviderError as err:
        return gap_of(err, shard, KEYS)
    _LOG.info("keys read", extra={"shard": str(shard), "keys": len(inventory.keys)})
    return inventory
