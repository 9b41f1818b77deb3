"""What is wrong with a document and where, told so that the writer can mend it; and its bytes as text. Pure."""

from __future__ import annotations

import codecs
import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from costguard.domain.errors import InvalidInputError

_SHOWN = 50  # more problems than this are one mistake made often
_LONGEST = 400  # characters of a message; a value may be a megabyte
_PASSWORD = re.compile(r"(://)[^/\s@]*@")
_SECRET = re.compile(r"([?&][\w-]{0,40}(?:token|key|secret|sign)[\w-]{0,40}=)[^\s\"'&,\]}]+", re.IGNORECASE)
_WORTH_SEARCHING = 3  # letters; shorter words are inside too many others
_EXCERPT = 120  # characters of the offending line that are shown


@dataclass(frozen=True, order=True, slots=True)
class Mark:
    """A place in a text; line and column count characters from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, order=True, slots=True)
class Problem:
    """One mistake. `field` is a path such as `idle_gpu[0].then[1]`, empty for a mistake of form."""

    path: str
    mark: Mark
    field: str
    message: str
    fix: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        lines = [f"{self.path}:{self.mark.line}:{self.mark.column}: {field}{self.message}"]
        if self.excerpt:
            lines.append(self.excerpt)
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class BadValueError(ValueError):
    """A value was refused. `at` leads from the field to the part that is wrong, `fix` says what to write.

    With `key` it is the last key of that way that is wrong, not its value.
    """

    def __init__(self, message: str, fix: str = "", at: tuple[str | int, ...] = (), *, key: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.at = at
        self.key = key or message.startswith("unknown key")


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sorted by place, each once."""
    return tuple(sorted(set(problems)))


def invalid(problems: Sequence[Problem]) -> InvalidInputError:
    """The error for a set of documents, ready to raise; tells every problem."""
    count = f"{len(problems)} errors" if len(problems) > 1 else "1 error"
    shown = [str(problem) for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        shown.append(f"... and {len(problems) - _SHOWN} more")
    return InvalidInputError("\n".join([f"{count} in the policy; nothing was changed", *shown]))


def excerpt(text: str, mark: Mark) -> str:
    """The line at `mark` with a caret under its column; characters that do not print are replaced."""
    lines = text.split("\n")
    if not 1 <= mark.line <= len(lines):
        return ""
    start = max(0, mark.column - _EXCERPT * 3 // 4)
    cut = lines[mark.line - 1].rstrip()[start : start + _EXCERPT]
    if not cut.strip():
        return ""
    whole = printable(cut.replace("\t", " "))
    before, shown = whole[: mark.column - 1 - start], _hidden(whole)
    width = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in before)
    return f"    {shown}\n    {' ' * width}^"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion: the nearest known word, or all of them."""
    words = sorted(known)
    by_folded = {known_word.casefold().replace("-", "_"): known_word for known_word in words}
    folded = word.casefold().replace("-", "_")
    within = [
        known_word for each, known_word in by_folded.items() if len(folded) >= _WORTH_SEARCHING and folded in each
    ]
    if len(within) == 1:
        return f"did you mean {within[0]}?"
    near = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_folded[near[0]]}?"
    return f"known here: {', '.join(words)}"


def shortened(message: str) -> str:
    """Fit to print: no password out of an address, no endless value, one line, nothing a terminal would obey."""
    safe = _hidden(printable(" ".join(message.split())))
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST // 2]} ... {safe[-_LONGEST // 4 :]}"


def _hidden(text: str) -> str:
    """Without the password of an address, or the token in its query."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))


def printable(text: str) -> str:
    """`text` with every character that does not print, half surrogates included, replaced."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def field_path(loc: Iterable[str | int]) -> str:
    """`("idle_gpu", 0, "then")` → `idle_gpu[0].then`; keys are a writer's own, so it is made fit to print."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return shortened(path)


MAX_BYTES = 64 * 1024  # of one file, read in under a second; the accounts of a thousand take about 55 KiB
MAX_TOTAL_BYTES = 1024 * 1024  # of all files together
_OTHER_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def too_long(path: str) -> Problem:
    """The problem of a file beyond the limit, which is not read any further."""
    message = f"the file is longer than {MAX_BYTES // 1024} KiB"
    return Problem(path, Mark(), "", message, "split it: rules may be spread over files under policies/")


def decoded(path: str, raw: bytes) -> str:
    """UTF-8, with or without its byte order mark.

    Raises:
        InvalidInputError: another encoding, broken bytes (with their line and column), or too long.
    """
    if len(raw) > MAX_BYTES:
        raise invalid((too_long(path),))
    if raw.startswith(_OTHER_MARKS):
        message = "the file is UTF-16 or UTF-32; expected UTF-8"
        raise invalid((Problem(path, Mark(), "", message, "save it as UTF-8"),))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        # with a byte order mark the codec counts from behind it
        behind = raw.removeprefix(codecs.BOM_UTF8)
        before = behind[: err.start].decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"byte 0x{behind[err.start]:02X} is not UTF-8"
        shown = excerpt(behind.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"), mark)
        raise invalid((Problem(path, mark, "", message, "save the file as UTF-8", shown),)) from err
