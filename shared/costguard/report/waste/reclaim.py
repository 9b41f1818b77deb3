"""How much of what idles can be reclaimed, how much waits for somebody's yes, and how much may not be touched.

It is said a day, at list price, and of machines that idle now: by one figure in `scan`, `doctor`, plans and reports.
Currencies are never summed, and a machine without a price is counted and in no sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from costguard.domain.findings import Finding, Standing
from costguard.domain.money import Money, totals
from costguard.domain.reasons import FactValue
from costguard.report.json_values import money_json
from costguard.report.words.sentences import Language, phrase

if TYPE_CHECKING:
    from costguard.report.facts import ResourceSnapshot
    from costguard.report.schemas import values

_HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True)
class Portion:
    """The machines of one standing. `unpriced` of them have no known price, and are in no amount."""

    machines: int
    a_day: tuple[Money, ...]
    unpriced: int


Reclaim = Mapping[Standing, Portion]
"""All standings, in the order of `Standing`; one without machines is there with none."""


def reclaim_of(idle: Iterable[tuple[Standing | None, Money | None]]) -> Reclaim:
    """Of machines by their standing and hourly price; what has no standing does not idle and counts nowhere."""
    costs: dict[Standing, list[Money | None]] = {standing: [] for standing in Standing}
    for standing, hourly in idle:
        if standing is not None:
            costs[standing].append(hourly)
    return {
        standing: Portion(
            machines=len(found),
            a_day=totals(hourly.times(_HOURS_A_DAY) for hourly in found if hourly is not None),
            unpriced=sum(hourly is None for hourly in found),
        )
        for standing, found in costs.items()
    }


def reclaim_in(findings: Iterable[Finding]) -> Reclaim:
    """The same, of what was judged."""
    return reclaim_of((one.standing, one.rate.money if one.rate is not None else None) for one in findings)


def reclaim_in_sights(idle: Iterable[ResourceSnapshot]) -> Reclaim:
    """The same, of what the last runs saw; what a run before this release kept says only that it may not be touched."""
    untouchable = Standing.UNTOUCHABLE
    return reclaim_of(
        (untouchable if one.may_not_be_touched and one.standing is None else one.standing, one.hourly) for one in idle
    )


def reclaim_lines(reclaim: Reclaim, language: Language = Language.EN) -> tuple[str, ...]:
    """A sentence for each standing that has machines; nothing where nothing idles."""
    return tuple(
        phrase(
            f"reclaim_{standing.value}",
            language,
            amount=day_words(portion, language),
            machines=portion.machines,
            unpriced=portion.unpriced if portion.unpriced and portion.a_day else "",
        )
        for standing, portion in reclaim.items()
        if portion.machines
    )


def day_words(portion: Portion, language: Language = Language.EN) -> str:
    """What it costs a day, each currency by itself; that it is unknown where nothing has a price."""
    return _amounts(portion) or phrase("reclaim_unpriced", language)


def _amounts(portion: Portion) -> str:
    return " + ".join(str(money) for money in portion.a_day)


def reclaim_facts(reclaim: Reclaim) -> dict[str, FactValue]:
    """The same as facts of a check: amounts as text, each currency by itself."""
    facts: dict[str, FactValue] = {}
    for standing, portion in reclaim.items():
        facts[f"{standing.value}_machines"] = portion.machines
        facts[f"{standing.value}_a_day"] = _amounts(portion) or ("?" if portion.machines else "0")
    unpriced = sum(portion.unpriced for portion in reclaim.values())
    return {**facts, "unpriced": unpriced} if unpriced else facts


def reclaim_json(reclaim: Reclaim) -> values.Reclaim:
    """The same for machines."""
    said: dict[Standing, values.Portion] = {
        standing: {
            "machines": portion.machines,
            "a_day": [money_json(money) for money in portion.a_day],
            "unpriced": portion.unpriced,
        }
        for standing, portion in reclaim.items()
    }
    return {
        "reclaimable": said[Standing.RECLAIMABLE],
        "waits_for_approval": said[Standing.WAITS],
        "untouchable": said[Standing.UNTOUCHABLE],
    }
