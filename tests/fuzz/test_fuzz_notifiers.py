"""Answers of a chat service, damaged: delivered only where it says so in full, else an error of ours."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.answering import Answering, http
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated, texts

from costguard.adapters.notifiers.router import NotifierRouter, visible
from costguard.adapters.notifiers.slack.blocks import build_blocks, escape, message_blocks
from costguard.adapters.notifiers.slack.notifier import REJECTED, SlackNotifier, retry_after
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import NoticeError, RejectedNoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart

OK: dict[str, Any] = {
    "ok": True,
    "channel": "C012AB3CD",
    "ts": "1503435956.000247",
    "message": {"text": "hi", "ts": "1503435956.000247"},
}
MESSAGE = Message("#gpu", "i-0a stops at 18:00", "i-0a stops at 18:00", (("Owner", "nlp"),), ("Nothing yet.",), "")
SLOWEST = timedelta(milliseconds=400)


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    with closing(Answering()) as answering:
        yield answering


def sent(server: Answering, raw: bytes, *, measure: bool = False) -> Delivery | None:
    server.raw = raw
    notifier = SlackNotifier("xoxb-made-up", base_url=server.url, timeout=SLOWEST)
    return attempt("slack", lambda: notifier.send(MESSAGE), NoticeError, measure=measure)


def proven(document: object) -> bool:
    """Rule 15, said anew: `ok` is true, and there is a time stamp as Slack writes them."""
    if not isinstance(document, dict) or document.get("ok") is not True:
        return False
    stamp = document.get("ts")
    whole, dot, part = stamp.partition(".") if isinstance(stamp, str) else ("", "", "")
    return bool(dot) and all(piece.isascii() and piece.isdecimal() for piece in (whole, part))


def test_a_whole_answer_is_a_delivery(server: Answering) -> None:
    delivery = sent(server, http(json.dumps(OK).encode()))
    assert delivery is not None
    assert delivery.receipt == "C012AB3CD:1503435956.000247"
    assert delivery.proves_delivery


@fuzz(quick=12)
@given(mutated(OK, json_junk()))
def test_a_damaged_answer_delivers_nothing_unless_it_still_says_ok_and_when(
    server: Answering, damaged: Mutated
) -> None:
    delivery = sent(server, http(json.dumps(damaged.document).encode()))
    assert delivery is None or proven(damaged.document)
    if delivery is not None:
        delivery.receipt.encode()
        assert delivery.receipt.isprintable()
        assert len(delivery.receipt) < 300


STATUSES = ["200 OK", "201 Created", "204 No Content", "302 Found", "400 Bad", "403 Forbidden", "404 Not Found",
            "429 Too Many Requests", "500 Oops", "503 Later", "999 ?", "000 x", "2OO OK", "200"]  # fmt: skip
KINDS = ["application/json", "text/html", "application/json; charset=utf-16", "text/plain; charset=latin-1",
         "application/json; charset=no-such-thing", "application/gzip", "application/json; charset=idna",
         "application/json; charset=rot13", 'application/json; charset="', "", "multipart/form-data",
         "application/json; charset=unicode_escape", "application/json; charset=utf-7"]  # fmt: skip
WAITS = [
    "1",
    "0",
    "-1",
    "1.5",
    "soon",
    "9" * 5000,
    "Wed, 21 Oct 2026 07:28:00 GMT",
    "",
    " ",
    "\xb2",
    "86401",
    "0x10",
    "1_0",
]


@fuzz(quick=12)
@given(
    st.sampled_from(STATUSES),
    st.sampled_from(KINDS),
    st.sampled_from(WAITS),
    st.one_of(
        st.just(json.dumps(OK).encode()),
        st.sampled_from(
            [b"", b"<html><body>ok</body></html>", b"ok", b"true", b"null", b"[]", b'"ok"', b"{}", b"\xff\xfe"]
        ),
        st.sampled_from([*REJECTED, "fatal_error", "ratelimited", "\ud800", "x" * 5000, "\x1b[31m"]).map(
            lambda error: json.dumps({"ok": False, "error": error}).encode()
        ),
        st.binary(max_size=60),
    ),
)
def test_any_status_kind_and_body_is_told_apart(
    server: Answering, status: str, kind: str, wait: str, body: bytes
) -> None:
    delivery = sent(server, http(body, status=status, kind=kind, Retry_After=wait))
    assert delivery is None or (status.startswith("200") and json.loads(body) == OK)


@fuzz(quick=8)
@given(
    st.one_of(st.binary(max_size=200), st.sampled_from([b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\n", b"\r\n\r\n"])),
    st.data(),
)
def test_any_bytes_as_an_answer_are_an_error_of_ours(server: Answering, raw: bytes, data: st.DataObject) -> None:
    whole = http(json.dumps(OK).encode())
    cut = data.draw(st.integers(0, len(whole)))
    assert sent(server, raw) is None
    delivery = sent(server, whole[:cut])
    assert delivery is None or cut == len(whole), "a cut answer proves nothing"


BODIES = {
    "lists": b"[" * 60_000,
    "objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "ok in objects": b'{"ok": true, "ts": "1.2", "message":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "integer": b'{"ok": true, "ts": ' + b"9" * 60_000 + b"}",
    "long stamp": b'{"ok": true, "ts": "' + b"9" * 60_000 + b'.1"}',
    "long channel": b'{"ok": true, "ts": "1.2", "channel": "' + b"C" * 60_000 + b'"}',
    "long error": b'{"ok": false, "error": "' + b"x" * 60_000 + b'"}',
    "long": b'{"ok": true, "ts": "1.2", "x": "' + b"x" * 500_000 + b'"}',
    "huge": b'{"ok": true, "ts": "1.2", "x": "' + b"x" * 30_000_000 + b'"}',
    "huge page": b"<html>" + b"x" * 80_000_000,
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_bomb_of_an_answer_costs_no_more_than_any(server: Answering, name: str) -> None:
    delivery = sent(server, http(BODIES[name]), measure=True)
    assert delivery is None or name in {"long channel", "long", "ok in objects"}
    assert delivery is None or len(delivery.receipt) < 300


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "429 Too Many Requests"])
def test_a_huge_refusal_costs_no_more_than_any(server: Answering, status: str) -> None:
    assert sent(server, http(b"x" * 80_000_000, status=status), measure=True) is None


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed_with_the_token(server: Answering, status: str) -> None:
    assert sent(server, http(b"", status=status, Location=server.url)) is None


@fuzz(quick=40)
@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after", "RETRY-AFTER", "X"]), texts(), max_size=2))
def test_any_retry_after_is_a_wait_between_a_second_and_a_day(headers: dict[str, str]) -> None:
    wait = attempt("slack", lambda: retry_after(headers))
    assert wait is not None
    assert timedelta(seconds=1) <= wait <= timedelta(days=1)


@fuzz(quick=12)
@given(texts(), st.lists(st.tuples(texts(), texts()), max_size=12), st.lists(texts(), max_size=5))
def test_any_words_become_a_message_that_fits(title: str, fields: list[tuple[str, str]], lines: list[str]) -> None:
    blocks = attempt("slack", lambda: build_blocks(title, fields, lines))
    text = json.dumps(blocks, ensure_ascii=False)
    text.encode()
    assert len(text) < 20_000
    assert "<!" not in text
    assert "<@" not in text
    assert not {unicodedata.category(char) for char in visible(escape(title))} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@fuzz(quick=8)
@given(texts(), st.lists(st.tuples(texts(), texts()), max_size=12), st.lists(texts(), max_size=5))
def test_any_words_become_parts_that_fit(title: str, fields: list[tuple[str, str]], lines: list[str]) -> None:
    choice = Choice(AnswerKind.STOP_NOW, title, AnswerRef(title, title), asks=title)
    part = MessagePart(
        title, title, tuple(fields), tuple(lines), title, (choice, replace(choice, of=AnswerRef("c", "d")))
    )
    message = Message("#gpu", title, title, tuple(fields), tuple(lines), parts=(part, replace(part, status=title)))
    blocks = attempt("slack", lambda: message_blocks(message))
    text = json.dumps(blocks, ensure_ascii=False)
    text.encode()
    assert len(text) < 20_000
    assert "<!" not in text
    assert "<@" not in text


@fuzz(quick=12)
@given(texts())
def test_any_address_is_served_or_refused(address: str) -> None:
    router = NotifierRouter({}, default="slack")
    message = Message(address, "t", "t", (), (), "")
    assert attempt("slack", lambda: router.send(message), RejectedNoticeError) is None
