"""Each kind of chart, drawn from its values on a canvas."""

from __future__ import annotations

from datetime import date

from matplotlib.artist import Artist
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from costguard.adapters.charts.canvas import Canvas
from costguard.report.charts.values import Ages, BarChart, BurnDown, HeatMap, OverTime, Said

_ROW = 0.24  # inches
_GAP = 0.06  # of a cell, between it and the next
_PLOT = 2.6  # inches, of what has no rows
_LEGEND_COLUMNS = 4


def heat_map(chart: HeatMap, canvas: Canvas) -> Figure:
    """One row a machine, one column a day; what was not measured is as pale as the page."""
    lines = -(-(len(chart.steps) + 1) // _LEGEND_COLUMNS)
    figure, axes = canvas.axes(max(_ROW * len(chart.rows), _ROW), rows=chart.rows, legend=lines)
    colours = canvas.colours
    groups: dict[int | None, list[list[tuple[float, float]]]] = {}
    for row, cells in enumerate(chart.cells):
        for column, value in enumerate(cells):
            step = None if value is None else sum(value > bound for bound in chart.bounds)
            groups.setdefault(step, []).append(_cell(column, row))
    for step, cells_of_step in groups.items():
        colour = colours.missing if step is None else colours.heat[step]
        axes.add_collection(PolyCollection(cells_of_step, facecolors=[colour], edgecolors="none", linewidths=0))
    axes.set_xlim(-0.5, len(chart.days) - 0.5)
    canvas.row_labels(axes, chart.rows)
    canvas.day_labels(axes, chart.days, range(len(chart.days)))
    entries: list[tuple[Artist, Said]] = [
        (_patch(colours.heat[number], colours.grid), label) for number, label in enumerate(chart.steps)
    ]
    entries.append((_patch(colours.missing, colours.faint), chart.missing))
    canvas.legend(figure, entries, _LEGEND_COLUMNS)
    return figure


def over_time(chart: OverTime, canvas: Canvas) -> Figure:
    """Two lines: what came true is drawn through, what was promised is dashed."""
    figure, axes = canvas.axes(_PLOT)
    places = range(len(chart.days))
    colours = canvas.colours
    axes.fill_between(places, chart.came_true, color=colours.good, alpha=0.15, linewidth=0)
    (true,) = axes.plot(places, chart.came_true, color=colours.good, linewidth=2.2)
    (promised,) = axes.plot(places, chart.promised, color=colours.bad, linewidth=1.8, linestyle=(0, (5, 3)))
    axes.set_xlim(0, max(len(chart.days) - 1, 1))
    axes.set_ylim(min(0.0, *chart.came_true), max(*chart.promised, *chart.came_true, 1.0) * 1.06)
    canvas.amounts(axes, along="y")
    canvas.day_labels(axes, chart.days, places)
    canvas.legend(figure, [(true, chart.came_true_label), (promised, chart.promised_label)], 2)
    return figure


def burn_down(chart: BurnDown, canvas: Canvas) -> Figure:
    """What is left, the even way down, and behind today the band of the forecast."""
    figure, axes = canvas.axes(_PLOT)
    colours = canvas.colours
    days = [date.fromordinal(day) for day in range(chart.first.toordinal(), chart.last.toordinal() + 1)]
    end = float(len(days))
    (even,) = axes.plot([0, end], [chart.amount, 0], color=colours.faint, linewidth=1.2, linestyle=(0, (1, 3)))
    xs = [float(day.toordinal() - chart.first.toordinal()) for day, _ in chart.left]
    ys = [value for _, value in chart.left]
    (left,) = axes.plot(xs, ys, color=colours.good, linewidth=2.4)
    entries: list[tuple[Artist, Said]] = [(left, chart.left_label), (even, chart.even_label)]
    lowest, highest = min(*ys, 0.0), max(*ys, chart.amount, 1.0)
    if chart.ends is not None and xs and xs[-1] < end:
        best, expected, worst = chart.ends
        band = axes.fill_between(
            [xs[-1], end], [ys[-1], worst], [ys[-1], best], color=colours.bad, alpha=0.22, linewidth=0
        )
        axes.plot([xs[-1], end], [ys[-1], expected], color=colours.bad, linewidth=1.8, linestyle=(0, (5, 3)))
        entries.append((band, chart.band_label))
        lowest, highest = min(lowest, worst), max(highest, best)
    axes.axhline(0, color=colours.ink, linewidth=1.0)
    axes.set_xlim(0, end)
    axes.set_ylim(lowest - (highest - lowest) * 0.03, highest + (highest - lowest) * 0.04)
    canvas.amounts(axes, along="y")
    canvas.day_labels(axes, days, [float(number) for number in range(len(days))])
    canvas.legend(figure, entries, 3)
    return figure


def bars(chart: BarChart, canvas: Canvas) -> Figure:
    """Lying bars of stacked parts."""
    lines = -(-len(chart.parts) // _LEGEND_COLUMNS)
    figure, axes = canvas.axes(max(0.34 * len(chart.rows), 0.5), rows=chart.rows, legend=lines)
    colours = canvas.colours
    begin = [0.0] * len(chart.rows)
    entries: list[tuple[Artist, Said]] = []
    for number, label in enumerate(chart.parts):
        widths = [row[number] for row in chart.values]
        colour = colours.series[min(number, len(colours.series) - 1)]
        axes.barh(
            range(len(chart.rows)), widths, left=begin, height=0.66, color=colour, edgecolor=colours.ink, linewidth=0.5
        )
        begin = [left + width for left, width in zip(begin, widths, strict=True)]
        entries.append((_patch(colour, colours.ink), label))
    axes.set_xlim(0, max(*begin, 0.01) * 1.04)
    canvas.row_labels(axes, chart.rows)
    canvas.amounts(axes, along="x")
    canvas.legend(figure, entries, _LEGEND_COLUMNS)
    return figure


def ages(chart: Ages, canvas: Canvas) -> Figure:
    """Lying bars, and a mark where each should have ended."""
    figure, axes = canvas.axes(max(0.28 * len(chart.rows), 0.5), rows=chart.rows)
    colours = canvas.colours
    axes.barh(
        range(len(chart.rows)),
        chart.days,
        height=0.6,
        color=[colours.bad if late else colours.good for late in chart.late],
        hatch=["///" if late else "" for late in chart.late],
        edgecolor=colours.paper,
        linewidth=0,
    )
    marked = [(row, allowed) for row, allowed in enumerate(chart.allowed) if allowed is not None]
    axes.vlines(
        [allowed for _, allowed in marked],
        [row - 0.42 for row, _ in marked],
        [row + 0.42 for row, _ in marked],
        color=colours.ink,
        linewidth=2,
    )
    longest = max((*chart.days, *(allowed for _, allowed in marked)), default=1.0)
    axes.set_xlim(0, max(longest, 1.0) * 1.04)
    canvas.row_labels(axes, chart.rows)
    canvas.amounts(axes, along="x")
    canvas.legend(
        figure,
        [
            (_patch(colours.good, colours.good), chart.fine_label),
            (Patch(facecolor=colours.bad, edgecolor=colours.paper, hatch="////", linewidth=0), chart.late_label),
            (Line2D([], [], color=colours.ink, linewidth=2), chart.allowed_label),
        ],
        3,
    )
    return figure


def _cell(column: int, row: int) -> list[tuple[float, float]]:
    left, right = column - 0.5 + _GAP, column + 0.5 - _GAP
    top, bottom = row - 0.5 + _GAP, row + 0.5 - _GAP
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _patch(colour: str, edge: str) -> Patch:
    return Patch(facecolor=colour, edgecolor=edge, linewidth=0.6)
