"""What is the same in every language, compared."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.docs_zh.pages import CODE, DAY, HAN, ROOT, Page, for_readers_of_chinese, is_transcript, read

_HAN = re.compile(f"[{HAN}]")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_FACT = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+|\d+(?:[.,:]\d+)*")


def differences(english: Page, chinese: Page) -> list[str]:
    """What the two pages do not have in common and should, in words."""
    return [
        *_headings(english, chinese),
        *_blocks(english, chinese),
        *_counted("links", Counter(_places(english)), Counter(_places(chinese))),
        *_counted("figures", english.figures, chinese.figures),
        *_rows(english, chinese),
        *_spans(english, chinese),
    ]


def unlinked(english: Page, chinese: Page) -> Iterator[str]:
    """Where one page does not begin with the way to the other."""
    for page, other, label in ((english, chinese, "简体中文"), (chinese, english, "English")):
        line = f"[{label}]({os.path.relpath(other.path, page.path.parent)})"
        if page.text.splitlines()[0] != line:
            yield f"{page.name} does not begin with the line {line}"


def _headings(english: Page, chinese: Page) -> Iterator[str]:
    wanted, found = ([level for level, _ in page.headings] for page in (english, chinese))
    if wanted != found:
        yield f"levels of headings: {wanted} in English, {found} in Chinese"


def _blocks(english: Page, chinese: Page) -> Iterator[str]:
    if len(english.blocks) != len(chinese.blocks):
        yield f"code blocks: {len(english.blocks)} in English, {len(chinese.blocks)} in Chinese"
        return
    for number, (wanted, found) in enumerate(zip(english.blocks, chinese.blocks, strict=True), 1):
        compare = _transcript if is_transcript(wanted) else _drawing if wanted[0] == "text" else _code
        if wanted[0] != found[0]:
            yield f"code block {number}: of {wanted[0] or 'no language'} in English, {found[0] or 'none'} in Chinese"
        yield from (f"code block {number}: {said}" for said in compare(wanted[1], found[1]))


def _code(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """Word for word but for comments, which may be wrapped otherwise."""
    left, right = ([code for line in lines if (code := _COMMENT.sub("", line).rstrip())] for lines in (wanted, found))
    yield from (
        f"{one!r} in English, {other!r} in Chinese" for one, other in zip(left, right, strict=False) if one != other
    )
    if len(left) != len(right):
        yield f"{len(left)} lines in English, {len(right)} in Chinese"


def _drawing(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """What is printed or drawn: a line is as it was, or in Chinese after what stands first in it."""
    if len(wanted) != len(found):
        yield f"{len(wanted)} lines in English, {len(found)} in Chinese"
        return
    for one, other in zip(wanted, found, strict=True):
        said_in_chinese = _HAN.search(other) and one.split("  ")[0] == other.split("  ")[0]
        if one != other and not said_in_chinese:
            yield f"{one!r} in English, {other!r} in Chinese"


def _transcript(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """Cut at the same places, with the same machines and the same figures in each part."""
    left, right = _days(wanted), _days(found)
    if [day for day, _ in left] != [day for day, _ in right]:
        yield f"shows {[day for day, _ in left]} in English, {[day for day, _ in right]} in Chinese"
        return
    for (day, one), (_, other) in zip(left, right, strict=True):
        yield from (f"{day}: {said}" for said in _counted("machines and figures", one, other))


def facts_of(text: str) -> Counter[str]:
    """The names of machines and the figures in it: what is the same however it is worded."""
    return Counter(_FACT.findall(text))


def _days(lines: Sequence[str]) -> list[tuple[str, Counter[str]]]:
    days = [("", [""])]
    for line in lines:
        if found := DAY.match(line):
            days.append((found[1] or found[2], []))
        days[-1][1].append(line)

    return [(day, facts_of("\n".join(said))) for day, said in days]


def _places(page: Page) -> Iterator[str]:
    """Where its links lead, said as for the Chinese reader: files from the top, headings by their number."""
    for target in page.links:
        if re.match(r"[a-z]+:", target):
            yield target
            continue
        file, _, anchor = target.partition("#")
        path = Path(os.path.normpath(page.path.parent / file)) if file else page.path
        place = for_readers_of_chinese(path)
        if anchor and path.suffix == ".md" and path.is_file() and anchor in (anchors := read(path).anchors()):
            anchor = str(anchors.index(anchor))
        yield f"{place.relative_to(ROOT).as_posix()}#{anchor}" if anchor else place.relative_to(ROOT).as_posix()


def _counted(what: str, wanted: Counter[str], found: Counter[str]) -> Iterator[str]:
    if lacking := sorted((wanted - found).elements()):
        yield f"{what} only in English: {', '.join(lacking)}"
    if extra := sorted((found - wanted).elements()):
        yield f"{what} only in Chinese: {', '.join(extra)}"


def _rows(english: Page, chinese: Page) -> Iterator[str]:
    wanted, found = english.rows, chinese.rows
    yield from (
        f"row of a table: {one} in English, {other} in Chinese"
        for one, other in zip(wanted, found, strict=False)
        if one != other
    )
    if len(wanted) != len(found):
        yield f"rows of tables: {len(wanted)} in English, {len(found)} in Chinese"


def _spans(english: Page, chinese: Page) -> Iterator[str]:
    said = set(CODE.findall(chinese.prose))
    if lacking := sorted(set(CODE.findall(english.prose)) - said):
        yield f"code within sentences only in English: {', '.join(lacking)}"
