"""Messages of many parts in Slack's form: every part shown, every limit kept, and buttons that mean one thing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.slack_messages import FOLDER, MESSAGES, batch, choices_of, golden, part, split
from tests.unit.block_kit import problems

from costguard.adapters.notifiers.slack.blocks import Block, fallback, message_blocks, parts_that_fit
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.ports import Choice, Message, MessagePart

OF = AnswerRef("a" * 16, "b" * 24)
WORDS = st.text(
    st.one_of(st.characters(), st.sampled_from(list('&<>*_~`:@#!|"\\\n\x1b\u202e\u200b😀中'))), max_size=12
).flatmap(lambda text: st.sampled_from([text, text, text * 60]))
IDS = st.sampled_from(["a" * 16, "b" * 64, "A1", "", "c/d", "e" * 65, "<@U1>", "x" * 3000])
CHOICES = st.builds(
    Choice,
    st.sampled_from(AnswerKind),
    WORDS,
    st.builds(AnswerRef, IDS, IDS),
    st.sampled_from([None, timedelta(hours=24), timedelta(days=7), timedelta(minutes=90), timedelta(0)]),
    WORDS,
)
FIELDS = st.lists(st.tuples(WORDS, WORDS), max_size=12).map(tuple)
LINES = st.lists(WORDS, max_size=4).map(tuple)
PARTS = st.builds(MessagePart, WORDS, WORDS, FIELDS, LINES, WORDS, st.lists(CHOICES, max_size=9).map(tuple), WORDS)
ANY = st.builds(
    Message,
    st.just("#gpu"),
    WORDS,
    WORDS,
    FIELDS,
    LINES,
    parts=st.tuples(st.lists(PARTS, min_size=1, max_size=4), st.integers(1, 8)).map(lambda of: tuple(of[0] * of[1])),
)


def buttons(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block["type"] == "actions":
            yield from block["elements"]


def shown(blocks: Sequence[Block]) -> list[str]:
    """The parts that are shown, each once: `part-0` of `part-0-answers`."""
    names = (str(block.get("block_id", "")).split("-") for block in blocks)
    return list(dict.fromkeys("-".join(name[:2]) for name in names if len(name) > 1))


def test_a_message_about_one_thing_has_no_second_title_above_its_buttons() -> None:
    alone = replace(batch([part(0)]), parts=(MessagePart("", "", choices=choices_of(0)),))

    assert [block["block_id"] for block in message_blocks(alone) if "block_id" in block] == ["part-0-answers"]
    assert "…" not in str(message_blocks(alone))


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_slack_is_sent_what_is_kept_as_golden(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == golden(name), "see tests/golden/README.md"


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_what_is_kept_as_golden_is_within_slacks_limits(name: str) -> None:
    for message in json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")):
        assert problems(message["blocks"]) == []
        assert len(message["text"].encode()) <= 4000


def test_there_are_no_golden_files_that_nothing_compares() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(MESSAGES)


def test_five_machines_are_one_message_and_fifty_are_several_without_losing_one() -> None:
    assert [len(message.parts) for message in MESSAGES["five"]] == [5]
    titles = [one.title for message in MESSAGES["fifty"] for one in message.parts]
    assert titles == [part(number).title for number in range(50)]
    assert len(MESSAGES["fifty"]) < 10


@given(ANY)
@settings(max_examples=10, deadline=None)
def test_any_message_is_split_into_ones_slack_takes_and_loses_no_part(message: Message) -> None:
    several = split(message)
    assert tuple(one for each in several for one in each.parts) == message.parts
    for each in several:
        blocks = message_blocks(each)
        assert problems(blocks) == []
        assert shown(blocks) == [f"part-{number}" for number in range(len(each.parts))]
        assert len(fallback(each.text).encode()) <= 4000
        offered = [str(choice.of) for one in each.parts if not one.status for choice in one.choices]
        assert all(button["value"] in offered for button in buttons(blocks)), "a cut value would mean something else"


@given(ANY)
@settings(max_examples=8, deadline=None)
def test_parts_beyond_what_fits_are_counted_and_never_cut_in_silence(message: Message) -> None:
    blocks = message_blocks(message)
    assert 1 <= parts_that_fit(message) <= len(shown(blocks)) <= len(message.parts)
    assert problems(blocks) == []
    if len(shown(blocks)) < len(message.parts):
        assert blocks[-1]["elements"][0]["text"].startswith("…")


@pytest.mark.parametrize("words", ["&" * 5000, "😀" * 5000])
@pytest.mark.parametrize("ended", [False, True])
def test_the_longest_part_still_fits_beside_the_longest_rest(words: str, *, ended: bool) -> None:
    choices = tuple(Choice(kind, words, AnswerRef("a" * 64, "b" * 64), None, words) for kind in AnswerKind) * 6
    fields, lines = ((words, words),) * 40, (words,) * 40
    largest = MessagePart(words, words, fields, lines, words, choices, status=words if ended else "")
    assert problems(message_blocks(Message("#gpu", words, words, fields, lines, parts=(largest,)))) == []


def test_many_small_parts_are_split_by_the_number_of_blocks() -> None:
    several = split(batch([MessagePart(f"d{number}", f"t{number}") for number in range(60)]))
    assert sum(len(each.parts) for each in several) == 60
    assert all(problems(message_blocks(each)) == [] for each in several)
    assert len(several[0].parts) > 40


def test_a_button_carries_its_decision_and_says_what_it_does() -> None:
    found = list(buttons(message_blocks(batch([part(3)]))))
    assert [button["action_id"] for button in found] == [
        "costguard:keep:24h",
        "costguard:keep:168h",
        "costguard:stop_now",
        "costguard:not_mine",
    ]
    assert {button["value"] for button in found} == {f"{3:016x}/{3:024x}"}
    assert AnswerRef.parse(found[0]["value"]) == choices_of(3)[0].of
    assert [button.get("style") for button in found] == ["primary", None, "danger", None]
    asks = found[2]["confirm"]
    assert asks["text"]["text"].startswith("Stop notebook-3 now?")
    assert (asks["confirm"]["text"], asks["deny"]["text"]) == ("Stop now", "Cancel")
    assert [("confirm" in button) for button in found] == [False, False, True, False]


@pytest.mark.parametrize(
    ("length", "name"),
    [
        (None, "costguard:keep"),
        (timedelta(hours=24), "costguard:keep:24h"),
        (timedelta(minutes=90), "costguard:keep:2h"),
        (timedelta(seconds=1), "costguard:keep:1h"),
    ],
)
def test_what_is_kept_is_never_kept_shorter_than_was_said(length: timedelta | None, name: str) -> None:
    one = MessagePart("d", "t", choices=(Choice(AnswerKind.KEEP, "Keep", OF, length),))
    assert [button["action_id"] for button in buttons(message_blocks(batch([one])))] == [name]


def test_the_same_answer_twice_stands_in_two_rows() -> None:
    keep = Choice(AnswerKind.KEEP, "Keep", OF, timedelta(hours=24))
    blocks = message_blocks(batch([MessagePart("d", "t", choices=(keep, replace(keep, label="Keep it"), keep))]))
    assert problems(blocks) == []
    assert len(list(buttons(blocks))) == 3


@pytest.mark.parametrize(
    "of", [AnswerRef("", "b"), AnswerRef("a/b", "c"), AnswerRef("a" * 65, "b"), AnswerRef("a b", "c")]
)
def test_an_answer_that_could_not_be_read_back_is_not_offered_but_counted(of: AnswerRef) -> None:
    blocks = message_blocks(batch([MessagePart("d", "t", choices=(Choice(AnswerKind.APPROVE, "Approve", of),))]))
    assert list(buttons(blocks)) == []
    assert "1 more, not shown here" in json.dumps(blocks)


def test_what_became_of_a_part_stands_in_the_place_of_its_buttons() -> None:
    before = batch([part(0), part(1)])
    after = replace(before, parts=(replace(before.parts[0], status="Kept until tomorrow"), before.parts[1]))
    changed = message_blocks(after)
    assert [button["value"] for button in buttons(changed)] == [str(part(1).choices[0].of)] * 4
    assert "Kept until tomorrow" in json.dumps(changed)
    was, now = ({block.get("block_id"): block for block in message_blocks(one)} for one in (before, after))
    assert set(was) - set(now) == {"part-0-answers"}
    assert all(now[name] == was[name] for name in set(was) & set(now)), "the rest of the message stays as it was"


def test_no_part_vanishes_when_what_became_of_it_is_longer_than_its_buttons() -> None:
    for message in (*MESSAGES["five"], *MESSAGES["fifty"]):
        ended = tuple(
            replace(one, status=f"{one.decision_id} was stopped. {'Undo it. ' * 20}") for one in message.parts
        )
        blocks = message_blocks(replace(message, parts=ended))
        assert len(shown(blocks)) == len(message.parts)
        assert problems(blocks) == []


def test_a_status_of_nothing_visible_is_still_one() -> None:
    blocks = message_blocks(batch([replace(part(0), status="\u202e")]))
    assert [block["text"]["text"] for block in blocks if block.get("block_id") == "part-0-status"] == ["…"]
    assert list(buttons(blocks)) == []


def test_a_picture_is_shown_as_it_was_drawn() -> None:
    drawn = "▁▂▃▄▅▆▇█·▁"
    found = [
        element
        for block in message_blocks(batch([MessagePart("d", "t", picture=drawn)]))
        if block.get("block_id") == "part-0-picture"
        for element in block["elements"]
    ]
    assert found == [{"type": "plain_text", "text": drawn}]


def test_the_title_of_the_only_part_is_not_said_twice() -> None:
    only = batch([part(0)])
    assert json.dumps(message_blocks(only)).count("notebook-0 stops not before") == 1
    assert json.dumps(message_blocks(replace(only, title="Another"))).count("notebook-0 stops not before") == 1


def test_what_is_left_out_is_said_in_the_language_of_the_notice() -> None:
    many = MESSAGES["chinese"][0]
    cut = replace(many, parts=many.parts * 40)
    assert "项未在此显示" in json.dumps(message_blocks(cut), ensure_ascii=False)
    assert "not shown here" in json.dumps(message_blocks(batch([part(number) for number in range(40)])))


def test_the_text_beside_the_blocks_is_counted_in_bytes() -> None:
    """chat.update was seen to refuse 1,993 Chinese characters as too long."""
    assert len(fallback("中" * 3000).encode()) <= 4000
    assert fallback("中" * 1300) == "中" * 1300
    assert fallback("\u202e") == "Costguard"
