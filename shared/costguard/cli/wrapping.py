"""Lines of a page's width, for text in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

PAGE = 80
_OPENING, _CLOSING = "\u300a\u300c\uff08", "\u3001\u3002\u300b\u300d\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
_BREAKS = re.compile(rf"\s+|(?<=[\u2e80-\uffef])(?<![{_OPENING}])(?![{_CLOSING}])")  # or after a wide character


def wrapped(text: str, start: str = "", hanging: int = 0, width: int = PAGE) -> Iterator[str]:
    """`text` after `start`, in lines of at most `width` columns; wide characters count two and may end a line.

    Further lines begin below the text, `hanging` columns to its right. A word longer than a line is kept whole.
    """
    line, pad = start, " " * (cells(start) + hanging)
    empty = True
    for word, gap in _words(text):
        if not empty and cells(line) + cells(word) > width:
            yield line.rstrip()
            line = pad
        line += word + gap
        empty = False
    yield line.rstrip()


def cells(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Each word and the space behind it."""
    position = 0
    for match in _BREAKS.finditer(text):
        if match.end() == position or match.start() == len(text):
            continue
        yield text[position : match.start()], match.group()
        position = match.end()
    yield text[position:], ""
