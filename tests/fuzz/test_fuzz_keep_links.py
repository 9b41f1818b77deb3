"""Tokens of Keep links, damaged: none is accepted that was not made, whatever was done to it.

The long profile tries ten tokens for each of its inputs: 20,000 inputs are 200,000 tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import texts

from costguard.domain.answers import (
    AnswerRef,
    ExpiredTokenError,
    ForgedTokenError,
    KeepToken,
    keep_token,
    read_keep_token,
)

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
SECRET = "a secret of thirty-two letters or more"
MADE = [
    keep_token(KeepToken(AnswerRef(case, "d" * 24), timedelta(hours=hours), sent_to, NOW + timedelta(days=7)), secret)
    for case, hours, sent_to, secret in (
        ("c" * 16, 24, "feishu:ops", SECRET),
        ("c" * 16, 168, "feishu:ops", SECRET),
        ("e" * 16, 24, "mailto:finops@example.com", SECRET),
        ("e" * 16, 24, "wecom:ml", SECRET + "x"),
    )
]
GOOD = frozenset(MADE[:3])
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PREFIX = "ck1-"


def unsealed(text: str) -> bytes:
    letters = text.removeprefix(PREFIX)
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def sealed_as(whole: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(whole).rstrip(b"=").decode()


def another(text: str, place: int, letter: str) -> str:
    return text[: place % len(text)] + letter + text[place % len(text) + 1 :]


def byte_changed(text: str, place: int, letter: str) -> str:
    """Letters of another payload under the old seal, written as such tokens are."""
    whole = bytearray(unsealed(text))
    whole[place % len(whole)] ^= 1 + ord(letter) % 255
    return sealed_as(bytes(whole))


CHANGES: tuple[Callable[[str, int, str], str], ...] = (
    another,
    byte_changed,
    lambda text, place, letter: text[: place % len(text)] + letter + text[place % len(text) :],
    lambda text, place, _: text[: place % len(text)] + text[place % len(text) + 1 :],
    lambda text, place, _: text[: place % len(text)],
    lambda text, place, letter: text[:-1] + letter + ("=" * (place % 3)),
    lambda text, place, _: text[place % len(text) :] + text[: place % len(text)],
    lambda text, place, _: text[: place % len(text)] + MADE[place % 3][place % len(text) :],
    lambda text, place, _: sealed_as(unsealed(MADE[place % 3])[:16] + unsealed(text)[16:]),
    lambda text, _, letter: sealed_as(unsealed(text) + letter.encode()),
    lambda text, _, __: sealed_as(unsealed(text).replace(b"24", b"168")),
    lambda text, _, __: text.swapcase(),
)


def accepted(text: str) -> bool:
    return (
        attempt("keep links", lambda: read_keep_token(text, SECRET, NOW), ForgedTokenError, ExpiredTokenError)
        is not None
    )


@fuzz(quick=12)
@given(
    st.sampled_from(MADE),
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 400), st.sampled_from(ALPHABET)), min_size=10, max_size=10
    ),
)
def test_no_damaged_token_is_accepted(
    made: str, changes: list[tuple[Callable[[str, int, str], str], int, str]]
) -> None:
    for change, place, letter in changes:
        text = change(made, place, letter)
        assert accepted(text) is (text in GOOD), text


@fuzz(quick=12)
@given(st.one_of(texts(), st.text(ALPHABET, max_size=300), st.binary(max_size=200).map(sealed_as)))
def test_no_text_at_all_is_a_token(text: str) -> None:
    assert not accepted(text)
    assert not accepted(PREFIX + text)


def test_what_was_made_is_accepted_until_its_time() -> None:
    assert all(map(accepted, GOOD))
    assert not accepted(MADE[3])
