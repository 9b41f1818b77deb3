"""From a chart's values to a file: matplotlib places everything, and the words and colours are the reader's own.

In SVG the words are put in after matplotlib has drawn, so that no mark-up and no formula in a name can mean anything,
and so that a browser's fonts draw Chinese. In PNG a font of this machine draws them; a label that it has no glyphs for
is replaced by its plain form, never by empty boxes.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure
from typing_extensions import assert_never

from costguard.adapters.charts import plots
from costguard.adapters.charts.canvas import Canvas, width
from costguard.report.charts.palettes import LIGHT, marks
from costguard.report.charts.values import Ages, BarChart, BurnDown, Chart, HeatMap, OverTime, Said

_DPI = 160  # twice what chat windows show a picture at
_CHINESE_FONTS = (
    *("notosanscjk", "notosanssc", "sourcehansans", "pingfang", "msyh", "simhei"),
    *("wqy-zenhei", "wqy-microhei", "droidsansfallback"),
)
"""How the files of fonts with Chinese begin, the best first."""
_MARK = re.compile(r"~([0-9]+)n*~")
_FONT = re.compile(r"font: ([0-9.]+px) [^;\"]*")
_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)  # XML declaration and document type: a page has its own
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_NAMESPACES = re.compile(r'\s+xmlns(?::\w+)?="[^"]*"')
_REFERENCE = re.compile(r'(?:href="#|url\(#)([^")]+)')
_ID = re.compile(r' id="([^"]*)"')
_SIZE = re.compile(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>')
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "text.parse_math": False, "axes.unicode_minus": False}


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG. `replaced` are the labels that no font here has the glyphs for: their plain form was drawn."""

    body: bytes
    replaced: tuple[str, ...] = ()


def svg(chart: Chart) -> str:
    """The chart as an element of a page: no script, no link, no font of its own, colours by CSS variables.

    Without those variables it shows its light colours.
    """
    colours, words = marks(), list[str]()

    def said(label: Said) -> str:
        words.append(label.text)
        mark = f"~{len(words) - 1}"
        return f"{mark}{'n' * (int(width(label.text)) - len(mark) - 1)}~"  # as wide as what will stand there

    name = hashlib.sha256(repr(chart).encode()).hexdigest()[:12]  # ids of several charts on one page never meet
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name, "svg.id": f"c{name}"}):
        figure = _drawn(chart, Canvas(colours, said))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = _METADATA.sub("", _HEAD.sub("", out.getvalue()))
    text = _NAMESPACES.sub("", text).replace("xlink:href", "href")
    light = LIGHT.named()
    for variable, mark in colours.named().items():
        text = text.replace(mark, f"var(--{variable}, {light[variable]})")
    text = _FONT.sub(r"font: \1 var(--sans, sans-serif)", text)
    title = escape(chart.title.text)
    text = _SIZE.sub(rf'<svg viewBox="\1" role="img" aria-label="{_literal(title)}">', text, count=1)
    used = set(_REFERENCE.findall(text))
    text = _ID.sub(lambda found: found.group(0) if found.group(1) in used else "", text)
    return _MARK.sub(lambda mark: escape(words[int(mark.group(1))]), text).strip()


def png(chart: Chart, fonts: Callable[[], str | None] | None = None) -> Picture:
    """The chart as a picture in light colours; `fonts` finds the file of a font with Chinese, None where there is none.

    What neither that font nor matplotlib's own can draw is replaced by its plain form, and told.
    """
    path = (fonts or chinese_font)()
    own = font_manager.findfont("DejaVu Sans")
    family = [font_manager.FontProperties(fname=one).get_name() for one in (own, path) if one is not None]
    known = [font_manager.get_font(one).get_charmap() for one in (own, path) if one is not None]
    replaced: list[str] = []

    def said(label: Said) -> str:
        if all(any(ord(char) in glyphs for glyphs in known) for char in label.text):
            return label.text
        replaced.append(label.text)
        return label.plain.encode("ascii", "replace").decode()

    if path is not None:
        font_manager.fontManager.addfont(path)
    with mpl.rc_context({**_SETTINGS, "font.family": family}):
        figure = _drawn(chart, Canvas(LIGHT, said, paper=LIGHT.paper))
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return Picture(out.getvalue(), tuple(replaced))


def chinese_font() -> str | None:
    """The file of a font on this machine that draws Chinese, None where there is none.

    By the files that are there, as matplotlib's own list of fonts may be older than they are.
    """
    files = sorted(font_manager.findSystemFonts(), key=lambda path: ("regular" not in path.lower(), path))
    stems = [(Path(path).stem.lower(), path) for path in files]
    return next((path for name in _CHINESE_FONTS for stem, path in stems if stem.startswith(name)), None)


def _drawn(chart: Chart, canvas: Canvas) -> Figure:
    if isinstance(chart, HeatMap):
        figure = plots.heat_map(chart, canvas)
    elif isinstance(chart, OverTime):
        figure = plots.over_time(chart, canvas)
    elif isinstance(chart, BurnDown):
        figure = plots.burn_down(chart, canvas)
    elif isinstance(chart, BarChart):
        figure = plots.bars(chart, canvas)
    elif isinstance(chart, Ages):
        figure = plots.ages(chart, canvas)
    else:
        assert_never(chart)
    return figure


def _literal(text: str) -> str:
    """Text that a replacement takes as it is."""
    return text.replace("\\", r"\\")
