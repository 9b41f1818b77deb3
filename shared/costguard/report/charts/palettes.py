"""The colours of charts, for light and dark pages: by Okabe and Ito, and cividis for what goes from little to much.

Told apart by people who see no red or no green, see tests/unit/test_charts.py. No chart depends on colour alone: lines
differ in their strokes, bars have borders, and every colour is named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Palette:
    """`paper` is what charts lie on; `heat` goes from least busy to busiest."""

    paper: str
    ink: str
    faint: str
    grid: str
    good: str
    bad: str
    missing: str
    series: tuple[str, str, str, str, str, str, str]
    heat: tuple[str, str, str, str, str, str]

    def named(self) -> dict[str, str]:
        """Every colour by the name of its CSS variable, without the dashes."""
        found: dict[str, str] = {}
        for field in fields(self):
            value: str | tuple[str, ...] = getattr(self, field.name)
            if isinstance(value, str):
                found[field.name] = value
            else:
                found.update({f"{field.name}{number}": each for number, each in enumerate(value)})
        return found


LIGHT = Palette(
    paper="#ffffff",
    ink="#1b1f24",
    faint="#57606a",
    grid="#d8dee4",
    good="#0072b2",
    bad="#c04f00",
    missing="#eaeef2",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c959f"),
    heat=("#00204c", "#31446b", "#666970", "#958f78", "#cbba69", "#ffe945"),
)
DARK = Palette(
    paper="#14181f",
    ink="#e6edf3",
    faint="#9aa5b1",
    grid="#303842",
    good="#56b4e9",
    bad="#f09a4a",
    missing="#262d36",
    series=("#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#0072b2", "#8c959f"),
    heat=("#ffe945", "#cbba69", "#958f78", "#666970", "#40578a", "#1b3a73"),
)


def marks() -> Palette:
    """Stand-ins that no palette uses: in SVG each becomes the CSS variable of its name."""
    number = iter(range(1, 100))

    def next_mark() -> str:
        return f"#0102{next(number):02x}"

    return Palette(
        paper=next_mark(),
        ink=next_mark(),
        faint=next_mark(),
        grid=next_mark(),
        good=next_mark(),
        bad=next_mark(),
        missing=next_mark(),
        series=(next_mark(), next_mark(), next_mark(), next_mark(), next_mark(), next_mark(), next_mark()),
        heat=(next_mark(), next_mark(), next_mark(), next_mark(), next_mark(), next_mark()),
    )
