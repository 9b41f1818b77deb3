"""How Chinese is set: its own punctuation, and a space beside Latin letters and figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs_zh.pages import ACROSS_LANGUAGES, CODE, HAN, STAMP, Page

_WIDE = "，。；：！？、（）“”"
_EMPHASIS = re.compile(r"(?<!\*)(\*\*?)([^*]+)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_FAULTS = {
    "punctuation of another script": re.compile(rf"[{HAN}][,;:!?.()]|[,;!?()][{HAN}]"),
    "no space between the scripts": re.compile(rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]"),
    "a space beside wide punctuation": re.compile(rf"[{_WIDE}] (?=\w)|\w [{_WIDE}]"),
}


def typography(chinese: Page) -> Iterator[str]:
    """Where a line does not read as Chinese is set."""
    before = ""
    for line in chinese.prose.splitlines():
        if re.search(f"[{HAN}]", line) and not STAMP.search(line) and not ACROSS_LANGUAGES.match(f"{line}\n"):
            said = _LINK.sub(r"\1", CODE.sub("A", line))
            yield from _emphasis(said)
            plain = said.replace("*", "")
            yield from (f"{what}: …{hit[0]}…" for what, fault in _FAULTS.items() for hit in fault.finditer(plain))
            if re.match(f"[{HAN}]", line) and before and not before.startswith(("#", "|")):
                yield f"a paragraph is one line, else a space is shown where it is broken: {line[:20]}…"
        before = line


def _emphasis(said: str) -> Iterator[str]:
    """Markdown sees no emphasis where wide punctuation inside meets a letter outside."""
    for found in _EMPHASIS.finditer(said):
        outside = (said[: found.start()][-1:], said[found.end() :][:1])
        inside = (found[2][:1], found[2][-1:])
        if any(edge in _WIDE and beside.isalnum() for edge, beside in zip(inside, outside, strict=True)):
            yield f"emphasis that Markdown does not see: {found[0]}"
