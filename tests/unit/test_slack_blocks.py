"""Names and tags are hostile: what reaches Slack is shown, never obeyed, and always fits."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudstand.slack.stand_in import DEFAULT_TOKEN, SlackStandIn
from costguard.adapters.notifiers.router import visible
from costguard.adapters.notifiers.slack.blocks import Block, build_blocks, escape, fits

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(list("&<>*_~`:@#!|\n\r\t\x1b\u202e\u2066\u200b\u2028\ufeff😀\ud800")),
    ),
    max_size=400,
)


@pytest.fixture(scope="module")
def workspace() -> Iterator[SlackStandIn]:
    with SlackStandIn() as open_workspace:
        yield open_workspace


def texts(blocks: tuple[Block, ...]) -> list[str]:
    found = []
    for block in blocks:
        parts = [block.get("text"), *block.get("fields", ()), *block.get("elements", ())]
        found += [part["text"] for part in parts if part]
    return found


@pytest.mark.parametrize(
    ("outside", "shown"),
    [
        ("<!channel> stop", "&lt;!channel&gt; stop"),
        ("<@U123> & <https://evil.example|docs>", "&lt;@U123&gt; &amp; &lt;https://evil.example|docs&gt;"),
        ("&lt;!here&gt;", "&amp;lt;!here&amp;gt;"),
        ("*bold* ~gone~ `code`", "∗bold∗ ∼gone∼ ˋcodeˋ"),  # noqa: RUF001
        ("_quiet_ words", "ˍquietˍ words"),
        ("team_nlp_gpu", "team_nlp_gpu"),
        (":white_check_mark: approved", "∶white_check_mark: approved"),  # noqa: RUF001
        ("aws:111122223333:us-east-1:instance:i-0a", "aws:111122223333:us-east-1:instance:i-0a"),
        ("not before 18:00 (10:00 UTC)", "not before 18:00 (10:00 UTC)"),
        ("> said the boss", "› said the boss"),  # noqa: RUF001
        ("a\u202eb\u2066c\u200bd", "a b c d"),
        ("line\nfeed\r\n\ttab\x00nul\x1b[31m", "line feed tab nul [31m"),
        ("研究 训练 😀", "研究 训练 😀"),
        ("\ud800 lone", "lone"),
        ("", ""),
    ],
)
def test_words_from_outside_are_shown_as_they_are(outside: str, shown: str) -> None:
    assert escape(outside) == shown


def test_lines_stay_apart_only_where_lines_are_meant() -> None:
    assert escape("one\n> two", lines=True) == "one\n› two"  # noqa: RUF001
    assert visible("one\ntwo") == "one two"


@pytest.mark.parametrize(("text", "limit"), [("a" * 200, 150), ("&" * 200, 150), ("😀" * 200, 150), ("&", 4)])
def test_a_cut_text_fits_and_ends_with_an_ellipsis_and_no_half_entity(text: str, limit: int) -> None:
    cut = escape(text, limit)
    assert fits(cut, limit)
    assert cut.endswith("…")
    assert cut.replace("&amp;", "").count("&") == 0


def test_words_too_long_to_be_looked_at_are_not_taken_for_none() -> None:
    assert escape("\x00" * 1000 + "delete", 10) == "…"


def test_a_text_that_just_fits_is_not_cut() -> None:
    assert escape("a" * 150, 150) == "a" * 150


@given(HOSTILE, st.integers(1, 200))
def test_no_text_escapes_its_limit_or_keeps_a_character_that_acts(text: str, limit: int) -> None:
    shown = escape(text, limit)
    assert fits(shown, limit)
    assert not set(shown) & set("<>*~`\n")
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in shown)
    entities_gone = shown.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in entities_gone


def test_the_notice_reads_title_fields_lines() -> None:
    blocks = build_blocks("Stops at 18:00", [("Owner", "nlp"), ("Cost", "")], ["Nothing happens before."])
    assert [block["type"] for block in blocks] == ["header", "section", "section"]
    assert texts(blocks) == ["Stops at 18:00", "*Owner*\nnlp", "*Cost*\n–", "Nothing happens before."]


def test_slack_may_add_no_links_or_mentions_of_its_own() -> None:
    blocks = build_blocks("t", [("Name", "http://evil.example @here #general")], ["l"])
    parts = [part for block in blocks[1:] for part in (block.get("fields") or [block["text"]])]
    assert all(part["verbatim"] is True for part in parts)


def test_a_long_name_does_not_push_out_what_will_happen() -> None:
    blocks = build_blocks(f"{'x' * 256} will be stopped at 18:00")
    assert texts(blocks)[0].endswith("…")
    assert texts(blocks)[1].endswith("will be stopped at 18:00")


def test_what_does_not_fit_is_counted() -> None:
    blocks = build_blocks("t", [(f"f{n}", "x") for n in range(150)], ["y" * 500] * 20)
    assert texts(blocks)[-1] == "… and 109 more, not shown here"


@given(
    HOSTILE,
    st.lists(st.tuples(HOSTILE, HOSTILE), max_size=6),
    st.lists(HOSTILE, max_size=6),
    st.sampled_from([1, 40]),
)
@settings(max_examples=60, deadline=None)
def test_every_message_is_one_slack_takes(
    workspace: SlackStandIn, title: str, fields: list[tuple[str, str]], lines: list[str], times: int
) -> None:
    blocks = build_blocks(title * times, fields * times, [line * times for line in lines])
    assert len(blocks) <= 50
    with_words = {"channel": "#gpu", "text": "t", "blocks": json.loads(json.dumps(blocks))}
    status, _, body = workspace.answer("chat.postMessage", DEFAULT_TOKEN, with_words)
    assert (status, json.loads(body).get("error")) == (200, None)
