"""Charts: readable on light and dark and by colour-blind readers, words as words, and no name that means anything."""

from __future__ import annotations

import math
import re
from datetime import date, timedelta
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest

from costguard.adapters.charts import png, svg
from costguard.report.charts.palettes import DARK, LIGHT, Palette
from costguard.report.charts.values import Ages, BarChart, BurnDown, Chart, HeatMap, OverTime, Said

DAY = timedelta(days=1)
FIRST = date(2026, 3, 1)
EVIL = "</text><script>alert(1)</script>$x_{2}$ & \"'~0~"


def plain(text: str) -> Said:
    return Said(text, text)


def heat(*names: Said) -> HeatMap:
    days = tuple(FIRST + DAY * number for number in range(3))
    cells = tuple((None, 3.0, 97.5) for _ in names)
    return HeatMap(plain("Busy"), names, days, cells, tuple(map(plain, "abcdef")), (5, 20, 40, 60, 80), plain("none"))


CHARTS: dict[str, Chart] = {
    "heat": heat(plain("trainer")),
    "over time": OverTime(
        plain("Saved"), (FIRST, FIRST + DAY), (1.0, 2.0), (0.5, 1.5), plain("expected"), plain("true")
    ),
    "burn": BurnDown(
        plain("Budget"),
        FIRST,
        FIRST + DAY * 30,
        100.0,
        ((FIRST, 100.0), (FIRST + DAY * 9, 40.0)),
        (20.0, -10.0, -60.0),
        plain("left"),
        plain("even"),
        plain("forecast"),
    ),
    "burn without forecast": BurnDown(
        plain("Budget"), FIRST, FIRST, 0.0, ((FIRST, 0.0),), None, plain("left"), plain("even"), plain("band")
    ),
    "bars": BarChart(plain("Idle"), (plain("vision"),), (plain("p4d"), plain("g5")), ((3.0, 0.0),)),
    "ages": Ages(
        plain("Keys"), (plain("k1"),), (400.0,), (90.0,), (True,), plain("fine"), plain("late"), plain("allowed")
    ),
}


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    red, green, blue = map(_linear, _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


_DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
"""Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB."""


def _seen(colour: str) -> tuple[float, float, float]:
    """A colour as somebody without green cones sees it, in CIELAB."""
    linear = [_linear(value) for value in _channels(colour)]
    red, green, blue = (
        min(max(sum(factor * value for factor, value in zip(row, linear, strict=True)), 0.0), 1.0)
        for row in _DEUTERANOPIA
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one: str, other: str) -> float:
    return math.dist(_seen(one), _seen(other))


PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


@PALETTES
def test_words_and_lines_stand_out_from_the_page(palette: Palette) -> None:
    assert contrast(palette.ink, palette.paper) >= 7
    assert contrast(palette.faint, palette.paper) >= 4.5
    assert contrast(palette.good, palette.paper) >= 3
    assert contrast(palette.bad, palette.paper) >= 3


@PALETTES
def test_without_green_cones_colours_beside_each_other_still_differ(palette: Palette) -> None:
    """A difference of 2 can just be seen; bars have borders besides, lines their strokes, and late bars a hatching."""
    assert min(distance(one, other) for one, other in combinations(palette.series[:6], 2)) > 8
    assert distance(palette.good, palette.bad) > 30
    assert min(distance(one, other) for one, other in pairwise(palette.heat)) > 8
    assert distance(palette.missing, palette.heat[0]) > 30
    assert distance(palette.missing, palette.heat[-1]) > 20


@PALETTES
def test_heat_goes_one_way_in_brightness_so_that_it_reads_in_grey(palette: Palette) -> None:
    bright = [_luminance(colour) for colour in palette.heat]
    assert bright in (sorted(bright), sorted(bright, reverse=True))
    assert contrast(palette.heat[0], palette.paper) >= 3  # idle is what is looked for


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_one_element_without_links_scripts_or_fixed_colours(name: str) -> None:
    drawn = svg(CHARTS[name])

    root = ET.fromstring(drawn)  # noqa: S314 - what we made ourselves
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    assert "http" not in drawn
    assert "<script" not in drawn
    assert "var(--ink" in drawn
    assert "#0102" not in drawn
    colours = set(re.findall(r"#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", drawn)))
    assert colours <= {"#ffffff", "#000000"}  # of what matplotlib draws nothing with


def test_words_stay_words_and_names_mean_nothing() -> None:
    drawn = svg(heat(plain(EVIL[:28]), Said("训练机", "i-1"), plain("$\\frac{1}{")))

    root = ET.fromstring(drawn)  # noqa: S314 - what we made ourselves
    words = ["".join(node.itertext()).strip() for node in root.iter("text")]
    assert {"训练机", "$\\frac{1}{", EVIL[:28]} <= set(words)
    assert not [node for node in root.iter() if node.tag == "script"]


def test_ids_of_several_charts_on_one_page_never_meet() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', svg(chart))) for chart in (CHARTS["bars"], CHARTS["ages"])]
    assert ids[0]
    assert ids[0] & ids[1] == set()


def test_the_same_values_draw_the_same_chart() -> None:
    assert svg(CHARTS["burn"]) == svg(CHARTS["burn"])


def test_a_picture_is_drawn_and_what_no_font_has_is_replaced_and_told() -> None:
    picture = png(heat(Said("训练机", "i-0abc"), plain("trainer")), fonts=lambda: None)

    assert picture.body.startswith(b"\x89PNG\r\n")
    assert picture.replaced == ("训练机",)


def test_what_the_own_font_can_draw_is_not_replaced() -> None:
    assert png(heat(Said("Жёлтая ≤ 5 €", "i-0abc")), fonts=lambda: None).replaced == ()
