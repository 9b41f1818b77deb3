"""What every plot is drawn on: a figure without decoration, places for labels, and a legend that is text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costguard.report.charts.palettes import Palette
from costguard.report.charts.values import Said

WIDTH = 7.2  # inches: 720 px of a page at 100 px an inch
_LABEL, _SMALL = 9.5, 8.5  # points
_LONGEST = 30  # characters of a row's label: more would leave no room for the chart
_MOST_TICKS = 6
_ROUND = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_DAYS = 8  # named below a chart
_CHARACTER = 0.078  # inches, of a label in points as above


@dataclass(frozen=True, slots=True)
class Canvas:
    """Colours, and how a label is said here. `paper` is what lies behind, None where it shines through."""

    colours: Palette
    said: Callable[[Said], str]
    paper: str | None = None

    def axes(self, height: float, *, rows: Sequence[Said] = (), legend: int = 1) -> tuple[Figure, Axes]:
        """A figure of this height in inches with room for its rows' labels on the left and a legend's lines below."""
        longest = max((width(row.text) for row in rows), default=7.0)
        left = 0.3 + min(longest, _LONGEST) * _CHARACTER
        below, above = 0.42 + 0.22 * legend, 0.12
        total = height + below + above
        figure = Figure(figsize=(WIDTH, total))
        if self.paper is None:
            figure.patch.set_alpha(0.0)
        else:
            figure.patch.set_facecolor(self.paper)
        axes = figure.add_axes((left / WIDTH, below / total, (WIDTH - left - 0.25) / WIDTH, height / total))
        axes.patch.set_alpha(0.0)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(self.colours.grid)
        axes.tick_params(length=0, labelsize=_LABEL, colors=self.colours.ink, pad=5)
        return figure, axes

    def row_labels(self, axes: Axes, rows: Sequence[Said]) -> None:
        """The labels of rows 0, 1, 2 … from the top."""
        axes.set_yticks(range(len(rows)), [self.said(shortened(row)) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)

    def day_labels(self, axes: Axes, days: Sequence[date], places: Sequence[float]) -> None:
        """Some of the days, so that none covers another."""
        step = max(1, -(-len(days) // _MOST_DAYS))
        chosen = range(0, len(days), step)
        axes.set_xticks([places[at] for at in chosen], [self.plain(f"{days[at]:%m-%d}") for at in chosen])

    def amounts(self, axes: Axes, *, along: str) -> None:
        """Round figures along an axis, with faint lines across."""
        low, high = axes.get_xlim() if along == "x" else axes.get_ylim()
        ticks = _round_steps(low, high)
        labels = [self.plain(_short(tick)) for tick in ticks]
        if along == "x":
            axes.set_xticks(ticks, labels)
        else:
            axes.set_yticks(ticks, labels)
        axes.grid(visible=True, axis="x" if along == "x" else "y", color=self.colours.grid, linewidth=0.8)
        axes.set_axisbelow(True)

    def plain(self, text: str) -> str:
        """A figure or a date, which every font draws."""
        return self.said(Said(text, text))

    def legend(self, figure: Figure, entries: Sequence[tuple[Artist, Said]], columns: int) -> None:
        """What the colours mean, below the chart."""
        legend = figure.legend(
            [artist for artist, _ in entries],
            [self.said(said) for _, said in entries],
            loc="lower left",
            bbox_to_anchor=(0.02, 0.0),
            ncols=columns,
            frameon=False,
            fontsize=_SMALL,
            handlelength=1.4,
            columnspacing=1.6,
            borderaxespad=0.2,
        )
        for text in legend.get_texts():
            text.set_color(self.colours.ink)


def shortened(label: Said) -> Said:
    """A row's label that leaves room for its row."""
    return Said(_cut(label.text), _cut(label.plain))


def _cut(text: str) -> str:
    if width(text) <= _LONGEST:
        return text
    kept = ""
    for char in text:
        if width(kept + char) > _LONGEST - 1:
            break
        kept += char
    return kept + "…"


def width(text: str) -> float:
    """Of a text, in ordinary letters: one of Chinese is as wide as two."""
    return sum(1.9 if ord(char) > 0x2E80 else 1.0 for char in text)  # noqa: PLR2004 - where CJK begins in Unicode


def _round_steps(low: float, high: float) -> list[float]:
    span = max(high - low, 1e-9)
    size = 1.0
    while size * 10 < span:
        size *= 10
    while size > span:
        size /= 10
    step = next(
        size * factor
        for factor in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0)
        if span / (size * factor) <= _MOST_TICKS
    )
    first = int(low // step)
    ticks = [number * step for number in range(first, first + 12)]
    return [tick for tick in ticks if low - span * 1e-6 <= tick <= high + span * 1e-6]


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if unit == "k" else size)
            return f"{scaled:,.1f}".rstrip("0").rstrip(".") + unit
    return f"{value:,.2f}".rstrip("0").rstrip(".")
