"""The mark on a Chinese page: which English page, of which hash, it was read against."""

from __future__ import annotations

from tests.docs_zh.pages import STAMP, Page

_ADVICE = "英文页改动后，请先更新本页，再运行 python -m tests.docs_zh --stamp"


def outdated(english: Page, chinese: Page) -> str | None:
    """What to do where the English page is not the one that the Chinese page was read against."""
    mark = STAMP.search(chinese.text)
    if mark is not None and (mark[1], mark[2]) == (english.name, english.hash()):
        return None
    known = mark[2] if mark is not None else "none"
    then = f"$(git log -1 --format=%h -S sha256:{known} -- {chinese.name})"
    return (
        f"{english.name} (sha256:{english.hash()}) changed since {chinese.name} was read against it (sha256:{known}).\n"
        f"  see what changed: git diff {then} -- {english.name}\n"
        f"  say the same in {chinese.name}, then: python -m tests.docs_zh --stamp"
    )


def stamped(english: Page, chinese: Page) -> str:
    """The Chinese page, marked as read against the English one of now."""
    mark = f"<!-- 译自 {english.name} sha256:{english.hash()}。{_ADVICE} -->"
    text = STAMP.sub("", chinese.text).rstrip("\n")
    return f"{text}\n\n{mark}\n"
