"""The meter: what ran when, kept up from one look at a shard to the next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.findings import InstanceFact, ShardFacts
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, Instance, InstanceState
from costguard.estimates.burn import Metered

KEPT = timedelta(days=33)  # four weeks to compare a burn with, and the first midnight of the longest month
_BY_THE_HOUR = frozenset({Billing.ON_DEMAND, Billing.SPOT})
_PAID_STATES = frozenset({InstanceState.PENDING, InstanceState.RUNNING, InstanceState.STOPPING})


@dataclass(frozen=True, slots=True)
class MeteredRun:
    """One run of one machine; its `metered.until` is None while it is seen running."""

    metered: Metered
    run_epoch: str


@dataclass(frozen=True, slots=True)
class MeterSheet:
    """What was metered in one shard since `since`, as of its last complete look at `looked_at`."""

    since: datetime
    looked_at: datetime
    runs: tuple[MeteredRun, ...]


def metered_on(sheet: MeterSheet | None, facts: ShardFacts, now: datetime) -> MeterSheet | None:
    """The sheet after one more look; a look that was not complete changes nothing.

    A machine no longer seen running ran at least until the look before, or until its cloud says. What is paid for
    otherwise than by the hour is not metered: its cost comes with the bill.
    """
    if not facts.complete:
        return sheet
    paid = {(fact.instance.ref, fact.instance.run_epoch): fact for fact in facts.instances if _is_paid(fact.instance)}
    instances = {fact.instance.ref: fact.instance for fact in facts.instances}
    runs = [*_carried(sheet, paid, instances, now)] if sheet is not None else []
    going_on = {(run.metered.ref, run.run_epoch) for run in runs if run.metered.until is None}
    begun = (_begun(fact, sheet, now) for key, fact in paid.items() if key not in going_on)
    since = now - KEPT if sheet is None else max(sheet.since, now - KEPT)
    first = now if sheet is None else since
    return MeterSheet(first, now, tuple(sorted((*runs, *begun), key=lambda run: (run.metered.since, run.metered.ref))))


def by_the_hour(instance: Instance) -> bool:
    """Whether it is metered while it is paid for."""
    return instance.billing in _BY_THE_HOUR


def _is_paid(instance: Instance) -> bool:
    return by_the_hour(instance) and (instance.state in _PAID_STATES or instance.billed_while_stopped)


def _carried(
    sheet: MeterSheet,
    paid: Mapping[tuple[ResourceRef, str], InstanceFact],
    instances: Mapping[ResourceRef, Instance],
    now: datetime,
) -> Iterator[MeteredRun]:
    for run in sheet.runs:
        one = run.metered
        if one.until is not None:
            if one.until > now - KEPT:
                yield run
            continue
        fact = paid.get((one.ref, run.run_epoch))
        if fact is None:
            yield replace(run, metered=replace(one, until=_ended(sheet, instances.get(one.ref), now)))
            continue
        rate = _rate(fact)
        if rate is None or one.hourly in {None, rate}:
            # a price that came to be known was the price before as well
            yield replace(run, metered=replace(one, hourly=rate or one.hourly, tags=fact.instance.tags))
            continue
        yield replace(run, metered=replace(one, until=sheet.looked_at))
        yield MeteredRun(_metered(fact, sheet.looked_at), run.run_epoch)


def _ended(sheet: MeterSheet, instance: Instance | None, now: datetime) -> datetime:
    told = instance.stopped_at if instance is not None else None
    return told if told is not None and sheet.looked_at <= told <= now else sheet.looked_at


def _begun(fact: InstanceFact, sheet: MeterSheet | None, now: datetime) -> MeteredRun:
    """A run seen for the first time: since it began, but not before the look that did not see it yet."""
    launched = fact.instance.launched_at
    earliest = now - KEPT if sheet is None else sheet.looked_at
    since = max(earliest, launched) if launched is not None else (now if sheet is None else earliest)
    return MeteredRun(_metered(fact, min(since, now)), fact.instance.run_epoch)


def _metered(fact: InstanceFact, since: datetime) -> Metered:
    instance = fact.instance
    return Metered(instance.ref, since, None, _rate(fact), instance.instance_type, dict(instance.tags))


def _rate(fact: InstanceFact) -> Money | None:
    return fact.rate.money if fact.rate is not None else None
