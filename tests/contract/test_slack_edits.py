"""Editing what was sent, opening windows and answering clicks: over the wire, to the stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.fuzz.answering import Answering, http
from tests.golden.slack_messages import batch, part

from cloudstand.clock import MovedClock
from cloudstand.slack.stand_in import SlackRequest, SlackStandIn
from costguard.adapters.notifiers.plain import ConsoleNotifier
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.adapters.notifiers.slack.notifier import REJECTED, SlackNotifier
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Message

SOON = timedelta(milliseconds=300)
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
VIEW: dict[str, Any] = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "Keep until"},
    "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "notebook"}}],
}


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(NOW)


@pytest.fixture
def slack(clock: MovedClock) -> Iterator[SlackStandIn]:
    with SlackStandIn(clock, channels=["#gpu-nlp", "#gpu"]) as workspace:
        yield workspace


@pytest.fixture
def notifier(slack: SlackStandIn) -> SlackNotifier:
    return SlackNotifier(slack.token, base_url=slack.base_url)


@pytest.fixture
def server() -> Iterator[Answering]:
    with closing(Answering()) as answering:
        yield answering


MESSAGE = replace(batch([part(0), part(1)]), channel="#gpu-nlp")
KEPT = replace(MESSAGE, parts=(replace(part(0), status="Kept until tomorrow"), part(1)))


def ids(slack: SlackStandIn, number: int = 0) -> list[str]:
    return [str(block.get("block_id")) for block in slack.posted[number].blocks if "block_id" in block]


# editing


def test_an_edit_shows_what_became_of_a_part_in_the_same_message(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    receipt = notifier.send(MESSAGE).receipt
    notifier.send(replace(MESSAGE, thread=receipt))
    assert notifier.edit(receipt, KEPT)
    first, second = slack.posted
    assert (first.edited, second.edited) == (True, False)
    assert ids(slack) == ["part-0", "part-0-picture", "part-0-status", "part-1", "part-1-picture", "part-1-answers"]
    assert first.ts == receipt.partition(":")[2] == second.thread


def test_the_same_edit_again_changes_nothing(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    receipt = notifier.send(MESSAGE).receipt
    assert notifier.edit(receipt, KEPT)
    once = list(slack.posted)
    assert notifier.edit(receipt, KEPT)
    assert slack.posted == once


def test_through_the_router_too(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    router = NotifierRouter({"slack": notifier}, default="slack")
    receipt = router.send(replace(MESSAGE, channel="slack:#gpu-nlp")).receipt
    assert router.edit(receipt, replace(KEPT, channel="slack:#gpu-nlp"))
    assert slack.posted[0].edited
    with pytest.raises(RejectedNoticeError, match="no channel serves"):
        router.edit(receipt, replace(KEPT, channel="pager:nlp"))


def test_a_message_that_is_gone_can_never_be_edited(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    receipt = notifier.send(MESSAGE).receipt
    slack.posted.clear()
    assert not notifier.edit(receipt, KEPT)


@pytest.mark.parametrize(
    "receipt",
    ["", "console", "#gpu-nlp:1.2", "C1", "C1:x", "C1:1.2 ", "<a.b@example.com> 250 ok", "C1:1.2\n", "c1:1.2"],
)
def test_what_is_no_receipt_of_slacks_is_asked_of_nobody(
    slack: SlackStandIn, notifier: SlackNotifier, receipt: str
) -> None:
    assert not notifier.edit(receipt, KEPT)
    assert slack.calls == 0


@pytest.mark.parametrize(
    "error",
    [
        "cant_update_message",
        "edit_window_closed",
        "is_inactive",
        "not_in_channel",
        "channel_not_found",
        "token_revoked",
    ],
)
def test_an_edit_that_will_never_be_taken_is_rejected_with_the_fix(
    slack: SlackStandIn, notifier: SlackNotifier, error: str
) -> None:
    receipt = notifier.send(MESSAGE).receipt
    slack.faults.error = error
    with pytest.raises(RejectedNoticeError) as caught:
        notifier.edit(receipt, KEPT)
    assert REJECTED[error] in str(caught.value)


@pytest.mark.parametrize("error", ["update_failed", "internal_error", "external_channel_migrating"])
def test_an_edit_that_passes_may_be_tried_again(slack: SlackStandIn, notifier: SlackNotifier, error: str) -> None:
    receipt = notifier.send(MESSAGE).receipt
    slack.faults.error = error
    with pytest.raises(NoticeError) as caught:
        notifier.edit(receipt, KEPT)
    assert type(caught.value) is NoticeError
    slack.faults.error, slack.faults.rate_limits = "", 1
    with pytest.raises(RateLimitedError):
        notifier.edit(receipt, KEPT)
    assert notifier.edit(receipt, KEPT)


@pytest.mark.parametrize(
    "document",
    [
        {"ok": True},
        {"ok": True, "ts": "9.9"},
        {"ok": 1, "ts": "1.2"},
        {"ok": "true", "ts": "1.2"},
        {"ok": True, "ts": 1.2},
    ],
)
def test_an_answer_without_ok_and_the_ts_that_was_asked_proves_no_edit(
    server: Answering, document: dict[str, Any]
) -> None:
    server.raw = http(json.dumps(document).encode())
    with pytest.raises(NoticeError, match="may not show"):
        SlackNotifier("xoxb-made-up", base_url=server.url).edit("C1:1.2", KEPT)


def test_an_edit_follows_no_redirect_and_reads_no_answer_without_end(server: Answering) -> None:
    notifier = SlackNotifier("xoxb-made-up", base_url=server.url, timeout=SOON)
    with closing(Answering()) as elsewhere:
        elsewhere.raw = http(b'{"ok": true, "ts": "1.2"}')
        server.raw = http(b"", status="302 Found", Location=elsewhere.url)
        with pytest.raises(NoticeError):
            notifier.edit("C1:1.2", KEPT)
    server.raw = http(b'{"ok": true, "ts": "1.2", "x": "' + b"x" * 2_000_000 + b'"}')
    with pytest.raises(NoticeError, match="longer than 1024 KiB"):
        notifier.edit("C1:1.2", KEPT)


def test_a_long_chinese_text_can_be_edited(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    receipt = notifier.send(MESSAGE).receipt
    assert notifier.edit(receipt, replace(KEPT, text="实例将停止" * 1000))
    assert len(slack.posted[0].text.encode()) <= 4000


# parts


def test_more_parts_than_a_message_shows_are_not_sent_as_if_they_were_all_told(
    slack: SlackStandIn, notifier: SlackNotifier
) -> None:
    """NEVER rule 15: what counts as delivered was shown."""
    many = replace(MESSAGE, parts=tuple(part(number) for number in range(40)))
    held = notifier.capacity(many)
    assert 1 < held < 40
    with pytest.raises(RejectedNoticeError, match=f"40 parts is to be sent as several: its channel shows {held}"):
        notifier.send(many)
    assert slack.posted == []
    assert notifier.send(replace(many, parts=many.parts[:held])).proves_delivery


def test_the_router_asks_the_notifier_that_serves_the_address(notifier: SlackNotifier) -> None:
    router = NotifierRouter({"slack": notifier, "console": ConsoleNotifier(print)}, default="slack")
    many = replace(MESSAGE, parts=tuple(part(number) for number in range(40)))
    assert router.capacity(many) == notifier.capacity(many)
    assert router.capacity(replace(many, channel="console:")) == 40
    assert router.capacity(replace(many, channel="pager:x")) == 40
    assert router.capacity(Message("#gpu", "t", "t")) == 1


def test_what_was_printed_stays_printed() -> None:
    assert not ConsoleNotifier(print).edit("console", KEPT)


# windows


def pressed(slack: SlackStandIn, notifier: SlackNotifier) -> dict[str, Any]:
    """What a press of the first part's `Keep 24 h` hands out."""
    notifier.send(MESSAGE)
    return document(slack.press(slack.posted[0].ts, "costguard:keep:24h", "U1", of=str(part(0).choices[0].of)))


def document(request: SlackRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(parse_qs(request.body.decode())["payload"][0])
    return found


def test_a_window_opens_for_whoever_clicked(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    view_id = notifier.open_view(pressed(slack, notifier)["trigger_id"], VIEW)
    assert [(view.view_id, view.user, view.view) for view in slack.views] == [(view_id, "U1", VIEW)]


def test_a_click_opens_one_window_within_three_seconds(
    slack: SlackStandIn, notifier: SlackNotifier, clock: MovedClock
) -> None:
    trigger = pressed(slack, notifier)["trigger_id"]
    notifier.open_view(trigger, VIEW)
    late = pressed(slack, notifier)["trigger_id"]
    clock.advance(timedelta(seconds=4))
    for trigger_id, error in ((trigger, "exchanged"), (late, "expired"), ("1.2.abc", "invalid")):
        with pytest.raises(RejectedNoticeError, match=f"{error}_trigger_id; a window can be opened"):
            notifier.open_view(trigger_id, VIEW)
    assert len(slack.views) == 1


def test_a_window_that_slack_refuses_is_not_asked_for_again(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    with pytest.raises(RejectedNoticeError, match="invalid_arguments"):
        notifier.open_view(pressed(slack, notifier)["trigger_id"], {**VIEW, "title": None})


def test_a_window_that_does_not_open_soon_is_given_up(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    trigger = pressed(slack, notifier)["trigger_id"]
    slack.faults.slow = timedelta(minutes=5)
    with pytest.raises(NoticeError):
        SlackNotifier(slack.token, base_url=slack.base_url, timeout=SOON).open_view(trigger, VIEW)


@pytest.mark.parametrize("answer", [{"ok": True}, {"ok": True, "view": {}}, {"ok": 1, "view": {"id": "V1"}}])
def test_a_window_without_an_id_is_not_taken_for_open(server: Answering, answer: dict[str, Any]) -> None:
    server.raw = http(json.dumps(answer).encode())
    with pytest.raises(NoticeError, match="may not be open"):
        SlackNotifier("xoxb-made-up", base_url=server.url).open_view("1.2.a", VIEW)


# answers to a click


def test_an_answer_is_seen_by_one_person_or_replaces_the_message(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    url = pressed(slack, notifier)["response_url"]
    notifier.respond(url, {"response_type": "ephemeral", "text": "kept", "replace_original": False})
    assert [(one.user, one.text) for one in slack.whispers] == [("U1", "kept")]
    notifier.respond(url, {"replace_original": True, "text": "changed"})
    assert (slack.posted[0].text, slack.posted[0].edited) == ("changed", True)


def test_an_answer_to_a_command_goes_to_its_own_address(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    form = parse_qs(slack.slash("/costguard", "status", "U2").body.decode())
    notifier.respond(form["response_url"][0], {"text": "fine"})
    assert [(one.user, one.channel, one.text) for one in slack.whispers] == [("U2", "#gpu-costs", "fine")]


def test_a_click_can_be_answered_five_times(slack: SlackStandIn, notifier: SlackNotifier) -> None:
    url = pressed(slack, notifier)["response_url"]
    for _ in range(5):
        notifier.respond(url, {"text": "again"})
    with pytest.raises(RejectedNoticeError, match="used_url; a click can be answered five times"):
        notifier.respond(url, {"text": "again"})
    assert len(slack.whispers) == 5


def test_a_click_can_be_answered_for_half_an_hour(
    slack: SlackStandIn, notifier: SlackNotifier, clock: MovedClock
) -> None:
    url = pressed(slack, notifier)["response_url"]
    clock.advance(timedelta(minutes=31))
    with pytest.raises(RejectedNoticeError, match="expired_url"):
        notifier.respond(url, {"text": "late"})


ELSEWHERE = [
    "https://evil.example/actions/T1/1/a",
    "https://hooks.slack.com.evil.example/actions/T1/1/a",
    "https://hooks.slack.com@evil.example/actions/T1/1/a",
    "https://evil.example\\@hooks.slack.com/actions/T1/1/a",
    "https://hooks.slack.com:8443/actions/T1/1/a",
    "https://user@hooks.slack.com/actions/T1/1/a",
    "http://hooks.slack.com/actions/T1/1/a",
    "http://slack.com/actions/T1/1/a",
    "https://slack.com/actions/T1/1/a",
    "https://hooks.slack.com/services/T1/1/a",
    "https://hooks.slack.com/actions/../services/T1",
    "https://hooks.slack.com/actions/T1?to=https://evil.example",
    "https://hooks.slack.com/actions/T1#x",
    "https://hooks.slack.com/actions/T1\r\nHost: evil.example",
    "https://hooks.slack.com/actions/T1\n",
    "https://HOOKS.slack.com/actions/T1",
    "HTTPS://hooks.slack.com/actions/T1",
    "//hooks.slack.com/actions/T1",
    "file:///etc/passwd",
    "http://169.254.169.254/actions/T1",
    "",
]


@pytest.mark.parametrize("url", [*ELSEWHERE, "http://127.0.0.1:9/actions/T1/1/a", "https://hooks.slack.com/actions/１"])  # noqa: RUF001
def test_an_address_that_is_not_slacks_is_not_called(url: str) -> None:
    """The product's own base address: nothing on loopback is believed either."""
    with pytest.raises(RejectedNoticeError, match="is not called") as caught:
        SlackNotifier("xoxb-made-up").respond(url, {"text": "t"})
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize("url", [*ELSEWHERE, "https://hooks.slack.com/actions/T1/1/a", "http://127.0.0.1:9/actions/T1"])
def test_beside_a_stand_in_only_its_own_address_is_called(notifier: SlackNotifier, url: str) -> None:
    with pytest.raises(RejectedNoticeError, match="is not called"):
        notifier.respond(url, {"text": "t"})


def local(server: Answering) -> tuple[SlackNotifier, str]:
    url = f"http://{urlsplit(server.url).netloc}"
    return SlackNotifier("xoxb-made-up", base_url=f"{url}/api/", timeout=SOON), f"{url}/actions/T1/1/a"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("200 OK", b"nope", NoticeError),
        ("200 OK", b"", NoticeError),
        ("200 OK", b'{"ok": 1}', NoticeError),
        ("200 OK", b'{"ok": false, "error": "used_url"}', RejectedNoticeError),
        ("404 Not Found", b"expired_url", RejectedNoticeError),
        ("404 Not Found", b'{"ok": true}', RejectedNoticeError),
        ("400 Bad", b"invalid_payload", RejectedNoticeError),
        ("302 Found", b"ok", RejectedNoticeError),
        ("429 Too Many", b"", RateLimitedError),
        ("500 Oops", b"ok", NoticeError),
        ("200 OK", b"[" * 50_000, NoticeError),
    ],
)
def test_only_an_ok_is_an_answer_taken(server: Answering, status: str, body: bytes, kind: type[NoticeError]) -> None:
    server.raw = http(body, status=status, Location=server.url)
    notifier, url = local(server)
    with pytest.raises(NoticeError) as caught:
        notifier.respond(url, {"text": "t"})
    assert type(caught.value) is kind


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_an_answer_to_a_click_is_not_led_elsewhere(server: Answering, status: str) -> None:
    notifier, url = local(server)
    with closing(Answering()) as elsewhere:
        elsewhere.raw = http(b"ok")
        server.raw = http(b"", status=status, Location=elsewhere.url)
        with pytest.raises(RejectedNoticeError):
            notifier.respond(url, {"text": "t"})


def test_slacks_own_address_is_called_by_the_environments_proxy() -> None:
    """In a process of its own, whose proxy is a closed port: nothing leaves this machine."""
    script = (
        "from costguard.adapters.notifiers.slack.notifier import SlackNotifier\n"
        "for path in ('actions/T1/1/a', 'commands/T1/1/a'):\n"
        "    try: SlackNotifier('xoxb-1').respond(f'https://hooks.slack.com/{path}', {})\n"
        "    except Exception as err: print(type(err).__name__, err)\n"
    )
    proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(  # noqa: S603 - a fixed command
        [sys.executable, "-c", script],
        env={**proxies, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.count("NoticeError Slack did not answer"), done.stderr) == (2, "")


@pytest.mark.parametrize("body", [b"ok", b'{"ok":true}', b"ok\n"])
def test_slack_says_ok_in_two_ways(server: Answering, body: bytes) -> None:
    server.raw = http(body)
    notifier, url = local(server)
    notifier.respond(url, {"text": "t"})


def test_no_answer_from_a_response_address_may_be_tried_again(server: Answering) -> None:
    notifier, url = local(server)
    server.raw = b""
    with pytest.raises(NoticeError, match="did not answer"):
        notifier.respond(url, {"text": "t"})
