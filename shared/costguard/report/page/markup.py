"""HTML from values: everything that is not made here is escaped, so that no name or tag can be mark-up."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_ALONE = frozenset({"meta", "br", "hr", "wbr", "input"})


class Html(str):
    """Mark-up made by this module, or by a chart: it goes into a page as it is."""

    __slots__ = ()


Child = Html | str | None
"""Text is escaped; None is left out."""


def element(tag: str, *children: Child, **attributes: str | None) -> Html:
    """One element. An attribute's `_` becomes `-`, one at its end goes; None leaves the attribute out."""
    said = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _ALONE:
        return Html(f"<{tag}{said}>")
    return Html(f"<{tag}{said}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Html:
    """Several children one after another."""
    return Html("".join(_inert(child) for child in children if child is not None))


def _inert(child: Html | str) -> str:
    return child if isinstance(child, Html) else escape(child, quote=True)
