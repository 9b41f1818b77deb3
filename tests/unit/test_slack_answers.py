"""What Slack's address may answer: delivered only where `ok` is true and a ts stands, whatever else comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from tests.fuzz.answering import Answering, http

from costguard.adapters.notifiers.slack.notifier import SlackNotifier
from costguard.domain.errors import NoticeError, RateLimitedError
from costguard.ports import Delivery, Message


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    with closing(Answering()) as answering:
        yield answering


def send(server: Answering, raw: bytes) -> Delivery:
    server.raw = raw
    notifier = SlackNotifier("xoxb-made-up", base_url=server.url, timeout=timedelta(seconds=5))
    return notifier.send(Message("#gpu", "t", "t", (), (), ""))


@pytest.mark.parametrize("ok", [1, -1, "false", "true", [0], {"a": 1}])
def test_ok_is_true_or_nothing_was_delivered(server: Answering, ok: object) -> None:
    """NEVER rule 15: the SDK lets pass whatever is not false."""
    with pytest.raises(NoticeError, match="does not prove delivery"):
        send(server, http(json.dumps({"ok": ok, "ts": "1.2", "channel": "C1"}).encode()))


@pytest.mark.parametrize("stamp", ["x", "1", "1.", "９.９", "9" * 50_000 + ".1", 1.2, True])  # noqa: RUF001
def test_a_ts_that_slack_would_not_write_proves_nothing(server: Answering, stamp: object) -> None:
    with pytest.raises(NoticeError, match="does not prove delivery"):
        send(server, http(json.dumps({"ok": True, "ts": stamp, "channel": "C1"}).encode()))


@pytest.mark.parametrize("channel", ["C" * 5000, "a:b", 7, ["C1"], "\x1b[31m"])
def test_a_channel_that_is_none_is_not_kept_in_the_receipt(server: Answering, channel: object) -> None:
    delivery = send(server, http(json.dumps({"ok": True, "ts": "1.2", "channel": channel}).encode()))
    assert delivery.receipt == "#gpu:1.2"


@pytest.mark.parametrize("status", ["200 OK", "500 Oops"])
def test_an_answer_nested_beyond_reading_is_an_error_of_ours(server: Answering, status: str) -> None:
    with pytest.raises(NoticeError):
        send(server, http(b'{"ok":' + b"[" * 50_000 + b"]" * 50_000 + b"}", status=status))


def test_an_answer_without_end_is_not_read_to_it(server: Answering) -> None:
    with pytest.raises(NoticeError, match="longer than 1024 KiB"):
        send(server, http(b'{"ok": true, "ts": "1.2", "x": "' + b"x" * 2_000_000 + b'"}'))


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed_with_the_token(server: Answering, status: str) -> None:
    with closing(Answering()) as elsewhere:
        elsewhere.raw = http(b'{"ok": true, "ts": "1.2"}')
        with pytest.raises(NoticeError):
            send(server, http(b"", status=status, Location=elsewhere.url))


@pytest.mark.parametrize("charset", ["unicode_escape", "no-such-thing", "rot13"])
def test_the_answer_chooses_no_codec(server: Answering, charset: str) -> None:
    kind = f"application/json; charset={charset}"
    assert send(server, http(b'{"ok": true, "ts": "1.2"}', kind=kind)).receipt == "#gpu:1.2"
    with pytest.raises(RateLimitedError) as caught:
        send(server, http(b"\\\xff", status="429 Too Many Requests", kind=kind, Retry_After="7"))
    assert caught.value.retry_after == timedelta(seconds=7)
