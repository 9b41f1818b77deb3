"""What is compared between a page and its translation; and, before a release, that the two are in step.

A word changed in a page turns no ordinary run red: tests marked `release` are run by `python -m pytest -m release`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs_zh.in_step import differences, unlinked
from tests.docs_zh.pages import CHINESE, ROOT, Page, english_of, is_transcript, parse, read, translated
from tests.docs_zh.stamps import outdated, stamped
from tests.docs_zh.typography import typography

README = CHINESE / "README.md"
each_page = pytest.mark.parametrize("path", translated(), ids=lambda path: path.stem)


def test_the_readme_and_the_way_to_deploy_are_there_in_chinese() -> None:
    wanted = {"README.md", *(path.name for path in (ROOT / "docs").glob("deploy-*.md"))}
    assert {path.name for path in translated()} == wanted


@pytest.mark.release
@each_page
def test_a_chinese_page_shows_what_the_english_one_shows(path: Path) -> None:
    """Headings, code, links, figures, tables; `python -m tests.docs_zh` says the same of all pages at once."""
    assert differences(read(english_of(path)), read(path)) == []


@pytest.mark.release
@each_page
def test_a_chinese_page_was_read_against_the_english_one_of_now(path: Path) -> None:
    late = outdated(read(english_of(path)), read(path))
    assert late is None, late


@pytest.mark.release
@each_page
def test_a_chinese_page_is_set_as_chinese_is(path: Path) -> None:
    assert list(typography(read(path))) == []


@pytest.mark.release
@each_page
def test_both_pages_begin_with_the_way_to_the_other(path: Path) -> None:
    assert list(unlinked(read(english_of(path)), read(path))) == []


@pytest.mark.release
def test_the_chinese_transcript_is_cut_where_the_english_one_is() -> None:
    """What the demo prints is held by `python -m tests.docs_zh --demo`; here: the same days, machines and figures."""
    assert [sum(map(is_transcript, read(path).blocks)) for path in (english_of(README), README)] == [1, 1]


ENGLISH = """[简体中文](docs/zh/README.md)

# Costguard

When in doubt it does nothing; see [budgets](docs/budgets.md) and `owners.yaml`, of the last 14 days.

```text
Day 1, 2026-03-03 09:00 UTC
  done   stop npc-notebook: accepted
Day 12, an hour later
  seen   npc-notebook is stopped
```

## Limits

```sh
costguard scan          # read-only credentials
costguard plan          # 0 nothing due
```

```text
functions/ events/   one folder each
```

| function | handler |
|---|---|
| `idle_gpu` | `handler.handler` |
"""
TRANSLATED = """[English](../../README.md)

# Costguard

拿不准时什么也不做；见 [预算](../budgets.md) 和 `owners.yaml`，最近 14 天。

```text
第 1 天，2026-03-03 09:00 UTC
  执行   停机 npc-notebook：已受理
第 12 天，一小时后
  确认   npc-notebook 已停机
```

## 限制

```sh
costguard scan          # 只读凭证
costguard plan          # 0 无事可做
```

```text
functions/ events/   每项一个目录
```

| 函数 | 入口 |
|---|---|
| `idle_gpu` | `handler.handler` |
"""

Change = Callable[[str], str]


def change(old: str, new: str) -> Change:
    def made(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return made


def readme(changed: Change | None = None) -> tuple[Page, Page]:
    """A page in both languages; the English one changed."""
    text = changed(ENGLISH) if changed is not None else ENGLISH
    return parse(english_of(README), text), parse(README, TRANSLATED)


def test_two_pages_that_say_the_same_do_not_differ() -> None:
    assert [*differences(*readme()), *unlinked(*readme()), *typography(readme()[1])] == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (change("\n## Limits", "\n### Limits"), "levels of headings"),
        (change("costguard plan ", "costguard apply "), "costguard apply"),
        (change("```sh\ncostguard scan", "```\ncostguard scan"), "of no language in English"),
        (change("```sh\ncostguard scan", "some\n```sh\n```\n```sh\ncostguard scan"), "code blocks"),
        (change("(docs/budgets.md)", "(docs/ledger.md)"), "links only in Chinese: docs/budgets.md"),
        (change("last 14 days", "last 15 days"), "figures only in English: 15"),
        (change("# 0 nothing due", "# 1 nothing due"), "figures only in English: 1"),
        (change("| `handler.handler` |\n", "|\n"), "row of a table"),
        (change("`owners.yaml`", "`people.yaml`"), "code within sentences only in English: people.yaml"),
        (change("Day 12, an hour", "Day 13, an hour"), "shows"),
        (change("stop npc-notebook: accepted", "stop npc-laptop: accepted"), "1: machines and figures only in English"),
        (change("functions/ events/", "functions/ tests/"), "functions/ tests/"),
    ],
)
def test_a_difference_is_seen(changed: Change, said: str) -> None:
    assert [found for found in differences(*readme(changed)) if said in found]


def test_a_page_that_does_not_lead_to_the_other_is_seen() -> None:
    assert len(list(unlinked(*readme(change("[简体中文](docs/zh/README.md)\n", ""))))) == 1


def test_a_comment_in_code_may_be_translated() -> None:
    changed = change("# read-only credentials", "# credentials\n                        # that only read")
    assert differences(*readme(changed)) == []


def test_a_changed_sentence_asks_somebody_to_look_and_says_how() -> None:
    english, chinese = readme()
    marked = parse(chinese.path, stamped(english, chinese))
    later, _ = readme(change("When in doubt", "If in doubt"))

    assert outdated(english, marked) is None
    said = outdated(later, marked)
    assert said is not None
    assert f"git log -1 --format=%h -S sha256:{english.hash()} -- docs/zh/README.md" in said
    assert "python -m tests.docs_zh --stamp" in said
    assert outdated(later, parse(chinese.path, stamped(later, marked))) is None


def test_a_page_without_a_mark_was_never_looked_at() -> None:
    assert outdated(*readme()) is not None


def test_the_mark_does_not_depend_on_the_link_between_the_languages() -> None:
    without, _ = readme(change("[简体中文](docs/zh/README.md)\n\n", ""))
    assert without.hash() == readme()[0].hash()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("停机,然后释放。", "punctuation of another script"),
        ("停机(可恢复)。", "punctuation of another script"),
        ("每块GPU 都算。", "no space between the scripts"),
        ("每块 GPU都算。", "no space between the scripts"),
        ("见`plan` 的说明。", "no space between the scripts"),
        ("见[AWS](../deploy-aws.md)。", "no space between the scripts"),
        ("停机 ，然后释放。", "a space beside wide punctuation"),
        ("**先通知。**再停机。", "emphasis that Markdown does not see"),
        ("先通知，\n再停机。", "a paragraph is one line"),
    ],
)
def test_what_is_not_set_as_chinese_is_is_seen(line: str, said: str) -> None:
    assert [found for found in typography(parse(README, line)) if found.startswith(said)]


@pytest.mark.parametrize(
    "line",
    ["**先通知**。再停 2 台（含 `p4d`）：见 [AWS](a.md)、[周报](b.md)。", "拿不准时，*每一块*卡。**什么也不做。**"],
)
def test_what_is_set_as_chinese_is_passes(line: str) -> None:
    assert list(typography(parse(README, line))) == []
