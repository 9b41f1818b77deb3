"""What channels share: words from outside without what hides in them, and how long an answer asks to wait. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import timedelta

ELLIPSIS = "…"
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
# control, bidi and other formatting, lone surrogates, unassigned, line separators
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_DEFAULT_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(days=1)  # a Retry-After beyond it is a mistake


def visible(text: str, *, lines: bool = False) -> str:
    """`text` without characters that hide, reorder or command; each becomes a space, runs of them one.

    With `lines`, line feeds stay.
    """
    if (text.replace("\n", "") if lines else text).isprintable():  # nearly always, and quick: none of `_INVISIBLE`
        return text.strip()
    cleaned = "".join(
        char if (lines and char == "\n") or unicodedata.category(char) not in _INVISIBLE else "\0" for char in text
    )
    return re.sub(r"\0+", " ", cleaned).strip()


def is_chinese(text: str) -> bool:
    """Whether there is a Chinese character in it: asked of labels, which are in the language of the notice."""
    return _IDEOGRAPH.search(text) is not None


def remainder(count: int, *, chinese: bool) -> str:
    """What is said of that which did not fit."""
    return (
        f"{ELLIPSIS}{ELLIPSIS}还有 {count} 项未在此显示" if chinese else f"{ELLIPSIS} and {count} more, not shown here"
    )


def retry_after(headers: Mapping[str, str]) -> timedelta:
    """What `Retry-After` asks for; 30 s where it is missing, no whole number of seconds, or over a day."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if not (value.isascii() and value.isdigit()) or len(value) > len(str(int(_LONGEST_WAIT.total_seconds()))):
        return _DEFAULT_WAIT
    wait = timedelta(seconds=int(value))
    return max(wait, timedelta(seconds=1)) if wait <= _LONGEST_WAIT else _DEFAULT_WAIT
