"""Tokens of Keep links: sealed, dated, and one text for one link."""

from __future__ import annotations

import string
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from costguard.adapters.notifiers.plain import VALID_FOR, KeepLinks
from costguard.domain.answers import (
    LONGEST_VALID,
    AnswerKind,
    AnswerRef,
    ExpiredTokenError,
    ForgedTokenError,
    KeepToken,
    keep_token,
    read_keep_token,
)
from costguard.domain.errors import InvalidInputError
from costguard.ports import Choice

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
OF = AnswerRef("0123456789abcdef", "0123456789abcdef01234567")
SECRET = "a secret of thirty-two letters or more"
TOKEN = KeepToken(OF, timedelta(hours=24), "feishu:ops", NOW + VALID_FOR)
ALPHABET = string.ascii_letters + string.digits + "-_"


def made(**changes: object) -> str:
    return keep_token(replace(TOKEN, **changes), SECRET)  # type: ignore[arg-type]


def test_a_token_says_what_was_put_into_it_and_no_more() -> None:
    text = made()
    assert read_keep_token(text, SECRET, NOW) == TOKEN
    assert set(text) <= set(ALPHABET)
    assert len(text) < 140, "a robot's message has 4 KiB for all its links"
    assert TOKEN.hours == 24


def test_no_letter_of_a_token_may_be_another() -> None:
    """Spare bits of the last letter included: one link has one text."""
    text = made()
    for place in range(len(text)):
        for letter in "AZaz09-_":
            if letter != text[place]:
                with pytest.raises(ForgedTokenError):
                    read_keep_token(text[:place] + letter + text[place + 1 :], SECRET, NOW)
    for last in ALPHABET.replace(text[-1], ""):
        with pytest.raises(ForgedTokenError):
            read_keep_token(text[:-1] + last, SECRET, NOW)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:0],
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "=",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text.swapcase(),
        lambda text: text * 9,
        lambda text: text.replace(text[5], "\uff10"),
        lambda text: text[:26],
        lambda text: text[4:],
        lambda text: text.replace("ck1-", "ck2-"),
        lambda text: text[:4] + text,
    ],
)
def test_anything_else_is_no_token(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(ForgedTokenError):
        read_keep_token(spoil(made()), SECRET, NOW)


def test_a_token_counts_for_its_secret_alone_and_until_its_time() -> None:
    with pytest.raises(ForgedTokenError):
        read_keep_token(made(), SECRET + "x", NOW)
    assert read_keep_token(made(), SECRET, TOKEN.expires - timedelta(seconds=1)) == TOKEN
    with pytest.raises(ExpiredTokenError):
        read_keep_token(made(), SECRET, TOKEN.expires)


def test_a_token_that_would_be_valid_for_longer_than_any_is_none() -> None:
    assert read_keep_token(made(expires=NOW + LONGEST_VALID), SECRET, NOW).of == OF
    with pytest.raises(ForgedTokenError):
        read_keep_token(made(expires=NOW + LONGEST_VALID + timedelta(seconds=1)), SECRET, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"length": timedelta(hours=-1)},
        {"length": timedelta(minutes=90)},
        {"length": timedelta(days=91)},
        {"sent_to": ""},
        {"sent_to": "a b"},
        {"sent_to": "a\nb"},
        {"sent_to": "负责人"},
        {"sent_to": "x" * 301},
        {"of": AnswerRef("a/b", "c")},
        {"of": AnswerRef("", "c")},
    ],
)
def test_what_no_link_can_say_makes_no_token(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        made(**changes)


def test_a_short_secret_seals_nothing() -> None:
    for secret in ("", "x" * 31):
        with pytest.raises(InvalidInputError, match="COSTGUARD_LINK_SECRET"):
            keep_token(TOKEN, secret)
        with pytest.raises(InvalidInputError, match="COSTGUARD_LINK_SECRET"):
            KeepLinks("https://answers.example.com", secret)


def test_a_link_that_keeps_for_no_time_asks_for_a_start() -> None:
    token = read_keep_token(made(length=timedelta(0)), SECRET, NOW)
    assert (token.kind, token.length) == (AnswerKind.START, timedelta(0))
    assert read_keep_token(made(), SECRET, NOW).kind is AnswerKind.KEEP


def test_a_link_is_made_for_keeping_and_starting_alone() -> None:
    links = KeepLinks("https://answers.example.com/slack/", SECRET)
    keep = Choice(AnswerKind.KEEP, "Keep 24 h", TOKEN.of, timedelta(hours=24))
    url = links.keep_url(keep, "feishu:ops", NOW)
    assert url == f"https://answers.example.com/slack/keep?t={made()}"
    assert links.at(lambda: NOW)(keep, "feishu:ops") == url
    for kind in AnswerKind:
        sayable = kind in {AnswerKind.KEEP, AnswerKind.START}
        assert bool(links.keep_url(replace(keep, kind=kind), "feishu:ops", NOW)) is sayable
    for unsayable in (None, timedelta(0), timedelta(minutes=30), timedelta(days=91)):
        assert links.keep_url(replace(keep, length=unsayable), "feishu:ops", NOW) == ""
    assert links.keep_url(keep, "mailto:负责人@example.com", NOW) == ""
    assert links.keep_url(replace(keep, of=AnswerRef("a-b", "c")), "feishu:ops", NOW) == ""
    assert KeepLinks("https://a.example/(x)", SECRET).keep_url(keep, "a", NOW).startswith("https://a.example/%28x%29/")
    for wrong in ("http://answers.example.com", "http://127.0.0.1.example.com", "javascript:alert(1)", ""):
        with pytest.raises(InvalidInputError, match="COSTGUARD_ANSWER_URL"):
            KeepLinks(wrong, SECRET)
