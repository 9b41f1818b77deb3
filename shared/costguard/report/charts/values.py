"""What charts show, as plain values: labels said in one language, figures, and no colour or place of anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Said:
    """A label as people read it; `plain` stands for it where no font can draw it: English, or an id."""

    text: str
    plain: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """How busy each machine was each day: percent 0 to 100, None where it was not measured or not there.

    `rows` and `cells` go together, and so do `days` and the cells of a row. `steps` name the colours, least busy first;
    `bounds` are the upper ends of all steps but the last.
    """

    title: Said
    rows: tuple[Said, ...]
    days: tuple[date, ...]
    cells: tuple[tuple[float | None, ...], ...]
    steps: tuple[Said, ...]
    bounds: tuple[float, ...]
    missing: Said


@dataclass(frozen=True, slots=True)
class OverTime:
    """Two sums that grow, day by day: what was promised and what came true."""

    title: Said
    days: tuple[date, ...]
    promised: tuple[float, ...]
    came_true: tuple[float, ...]
    promised_label: Said
    came_true_label: Said


@dataclass(frozen=True, slots=True)
class BurnDown:
    """What is left of one budget, day by day, and the band in which its forecast ends.

    `left` begins with the period's first day and ends today; `ends` are what will be left at best, as expected and at
    worst, None where nobody can say.
    """

    title: Said
    first: date
    last: date
    amount: float
    left: tuple[tuple[date, float], ...]
    ends: tuple[float, float, float] | None
    left_label: Said
    even_label: Said
    band_label: Said


@dataclass(frozen=True, slots=True)
class BarChart:
    """One bar a row, of parts that are stacked; `parts` name them and go with each row's values."""

    title: Said
    rows: tuple[Said, ...]
    parts: tuple[Said, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Ages:
    """How old each thing is beside how old it may be, in days; `late` says which are too old."""

    title: Said
    rows: tuple[Said, ...]
    days: tuple[float, ...]
    allowed: tuple[float | None, ...]
    late: tuple[bool, ...]
    fine_label: Said
    late_label: Said
    allowed_label: Said


Chart = HeatMap | OverTime | BurnDown | BarChart | Ages
