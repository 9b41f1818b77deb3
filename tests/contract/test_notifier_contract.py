"""One suite for every adapter of `Notifier`: what counts as delivered, and what each failure means."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.notifier_worlds import CHANNELS, SECRET, Channel

from cloudstand.clock import MovedClock
from cloudstand.slack.stand_in import DEFAULT_TOKEN, SlackStandIn
from costguard.adapters.notifiers.plain import ConsoleNotifier
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.adapters.notifiers.slack.notifier import REJECTED, SlackNotifier
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart, Notifier

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
SOON, ENOUGH = timedelta(milliseconds=300), timedelta(seconds=10)


# every channel


@pytest.fixture(params=sorted(CHANNELS), scope="module")
def opened(request: pytest.FixtureRequest) -> Iterator[Channel]:
    channel = CHANNELS[request.param]()
    yield channel
    channel.close()


@pytest.fixture
def channel(opened: Channel) -> Channel:
    opened.reset()
    return opened


def notice(channel: Channel, title: str = "i-0a stops at 18:00", **more: Any) -> Message:
    said: dict[str, Any] = {"fields": (("Owner", "nlp"),), "lines": ("Nothing happens before.",), **more}
    return Message(channel.address, title, said.pop("text", title), notice_id=said.pop("notice_id", "n-1"), **said)


def test_a_notice_arrives_once_and_its_receipt_proves_it(channel: Channel) -> None:
    delivery = channel.notifier.send(notice(channel))
    (got,) = channel.got()
    assert delivery.proves_delivery
    assert delivery.receipt
    assert delivery.receipt.isprintable()
    assert got.title == "i-0a stops at 18:00"
    assert "nlp" in got.words
    assert "Nothing happens before." in got.words


def test_a_repeated_notice_is_known_as_the_same(channel: Channel) -> None:
    for notice_id in ("n-1", "n-1", "n-2"):
        channel.notifier.send(notice(channel, notice_id=notice_id))
    names = [got.name for got in channel.got()]
    if any(names) and channel.address.startswith("mailto:") and "amazonses" not in names[0]:
        assert names[0] == names[1] != names[2]
        assert "n-1" not in names[0]
    elif any(names):  # a receiver that knows keys keeps it once
        assert len(names) == len(set(names)) == 2


def test_a_receipt_is_accepted_as_the_thread_of_the_next(channel: Channel) -> None:
    first = channel.notifier.send(notice(channel))
    assert channel.notifier.send(notice(channel, notice_id="n-2", thread=first.receipt)).proves_delivery
    assert channel.notifier.send(notice(channel, notice_id="n-3", thread="\r\nBcc: all@example.com")).proves_delivery
    assert len(channel.got()) == 3


def test_a_busy_channel_says_when_to_try_again(channel: Channel) -> None:
    channel.refuse("busy")
    with pytest.raises(RateLimitedError) as caught:
        channel.notifier.send(notice(channel))
    assert timedelta(seconds=1) <= caught.value.retry_after <= timedelta(hours=1)
    assert SECRET not in str(caught.value)
    channel.refuse("fine")
    assert channel.notifier.send(notice(channel)).proves_delivery
    assert len(channel.got()) == 1


def test_what_is_refused_for_good_is_never_sent_again(channel: Channel) -> None:
    channel.refuse("never")
    with pytest.raises(RejectedNoticeError) as caught:
        channel.notifier.send(notice(channel))
    assert SECRET not in str(caught.value)
    assert str(caught.value).isprintable()
    assert channel.got() == []


@pytest.mark.parametrize("how", ["fault", "silent", "lost"])
def test_a_fault_or_a_lost_answer_proves_nothing_and_passes(channel: Channel, how: str) -> None:
    channel.refuse(how)
    with pytest.raises(NoticeError) as caught:
        channel.notifier.send(notice(channel))
    assert type(caught.value) is NoticeError
    assert SECRET not in str(caught.value)
    channel.refuse("fine")
    assert channel.notifier.send(notice(channel)).proves_delivery


HOSTILE = "<script>alert(1)</script> <!channel> *x*\r\nBcc: all@example.com\n.\n\x1b[31m\u202e\x00"


def test_words_from_outside_command_nothing(channel: Channel) -> None:
    channel.notifier.send(
        notice(channel, HOSTILE, text=HOSTILE, fields=((HOSTILE, HOSTILE),), lines=(HOSTILE, "=?utf-8?q?Bcc?="))
    )
    (got,) = channel.got()
    assert "\n" not in got.title
    assert "\r" not in got.title
    assert "alert(1)" in got.words
    if not channel.address.startswith("http"):  # JSON shows letters as they are; its reader escapes
        assert "<td><script>" not in got.words
    assert not {"\x1b", "\x00", "\u202e"} & set(got.title + got.words)


def test_chinese_arrives_as_it_was_written(channel: Channel) -> None:
    channel.notifier.send(
        notice(channel, "实例 i-0a 将于 18:00 停止", fields=(("负责人", "李团队"),), lines=("请回复“保留”。",))
    )
    (got,) = channel.got()
    assert got.title == "实例 i-0a 将于 18:00 停止"
    assert "李团队" in got.words
    assert "请回复“保留”。" in got.words


def test_a_notice_without_bounds_is_cut_and_says_so(channel: Channel) -> None:
    fields = tuple((f"machine-{number}" * 9, "é&<" * 900) for number in range(150))
    channel.notifier.send(notice(channel, "&<中" * 9000, fields=fields, lines=("行" * 1100,) * 99))
    (got,) = channel.got()
    assert len(got.title) < 1000
    assert len(got.words.encode()) < 300_000
    assert "not shown here" in got.words or '"left_out": ' in got.words


def test_every_part_of_a_notice_is_told(channel: Channel) -> None:
    choices = (Choice(AnswerKind.KEEP, "Keep 24 h", AnswerRef("c1", "d1"), timedelta(days=1)),)
    parts = (
        MessagePart("d1", "notebook-1 stops at 18:00", (("Cost", "3.06 USD/h"),), picture="▁▂█", choices=choices),
        MessagePart("d2", "notebook-2 stops at 19:00", lines=("It is idle.",), status="Kept until tomorrow"),
    )
    message = notice(channel, "2 machines are idle", parts=parts)
    assert channel.notifier.capacity(message) == 2
    assert channel.notifier.send(message).proves_delivery
    words = "".join(got.words for got in channel.got())
    for said in ("notebook-1", "3.06 USD/h", "▁▂█", "notebook-2", "It is idle.", "Kept until tomorrow"):
        assert said in words


@pytest.mark.parametrize("thread", ["", "x" * 5000, "<a@b>\r\nX: y"])
def test_a_notice_of_nothing_visible_is_still_delivered(channel: Channel, thread: str) -> None:
    empty = Message(channel.address, "\u202e", "\x00", (("\x1b", "\u2066"),), ("\n",), thread)
    assert channel.notifier.send(empty).proves_delivery
    assert len(channel.got()) == 1


def test_errors_never_show_a_secret(channel: Channel) -> None:
    assert SECRET not in repr(channel.notifier)
    assert SECRET not in repr(vars(channel.notifier))


# Slack


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(
        MovedClock(NOW), channels=["#gpu", "#private", "#old"], not_joined=["#private"], archived=["#old"]
    ) as workspace:
        yield workspace


def direct(workspace: SlackStandIn, token: str = DEFAULT_TOKEN) -> Notifier:
    """Impatient only where the stand-in will not answer: a busy machine takes its time."""
    slow = workspace.faults.slow > timedelta(0)
    return SlackNotifier(token, base_url=workspace.base_url, timeout=SOON if slow else ENOUGH)


def routed(workspace: SlackStandIn, token: str = DEFAULT_TOKEN) -> Notifier:
    return NotifierRouter({"slack": direct(workspace, token)}, default="slack")


Build = Callable[..., Notifier]
adapters = pytest.mark.parametrize("build", [direct, routed])


def message(channel: str = "#gpu", *, text: str = "i-0a stops at 18:00", thread: str = "") -> Message:
    return Message(channel, "i-0a stops at 18:00", text, (("Owner", "nlp"),), ("Nothing happens before.",), thread)


@adapters
def test_a_delivered_message_is_proven_by_channel_and_ts(slack: SlackStandIn, build: Build) -> None:
    delivery = build(slack).send(message())
    (posted,) = slack.posted
    assert delivery.proves_delivery
    assert delivery.receipt.endswith(f":{posted.ts}")
    assert delivery.receipt.startswith("C")
    assert (posted.channel, posted.at) == ("#gpu", NOW)
    assert posted.text == "i-0a stops at 18:00"


@adapters
def test_a_message_of_nothing_visible_is_still_delivered(slack: SlackStandIn, build: Build) -> None:
    build(slack).send(Message("#gpu", "\u202e", "\x00", (("\x1b", "\u2066"),), ("\n",)))
    assert len(slack.posted) == 1


@adapters
def test_hostile_words_arrive_as_words(slack: SlackStandIn, build: Build) -> None:
    build(slack).send(message(text="<!channel> *now*"))
    assert slack.posted[0].text == "&lt;!channel&gt; ∗now∗"  # noqa: RUF001


@adapters
def test_every_send_is_one_call(slack: SlackStandIn, build: Build) -> None:
    notifier = build(slack)
    notifier.send(message())
    slack.faults.status = 500
    with pytest.raises(NoticeError):
        notifier.send(message())
    slack.faults.status = 0
    slack.faults.rate_limits = 1
    with pytest.raises(RateLimitedError):
        notifier.send(message())
    assert slack.calls == 3


@adapters
def test_a_receipt_names_the_thread_of_a_later_message(slack: SlackStandIn, build: Build) -> None:
    notifier = build(slack)
    first = notifier.send(message())
    notifier.send(message(thread=first.receipt))
    assert slack.posted[1].thread == slack.posted[0].ts


@adapters
def test_a_channel_id_is_an_address_too(slack: SlackStandIn, build: Build) -> None:
    notifier = build(slack)
    channel_id, _, _ = notifier.send(message()).receipt.partition(":")
    notifier.send(message(channel_id))
    assert [posted.channel for posted in slack.posted] == ["#gpu", "#gpu"]


@adapters
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0", 1), (None, 30), ("soon", 30), ("-5", 30), ("1.5", 30), ("999999999999", 30), ("86401", 30)],
)
def test_too_many_requests_says_when_to_try_again(
    slack: SlackStandIn, build: Build, header: str | None, seconds: int
) -> None:
    slack.faults.rate_limits, slack.faults.retry_after = 1, header
    notifier = build(slack)
    with pytest.raises(RateLimitedError) as caught:
        notifier.send(message())
    assert caught.value.retry_after == timedelta(seconds=seconds)
    assert notifier.send(message()).proves_delivery


@adapters
def test_a_rate_limit_told_as_an_error_is_one(slack: SlackStandIn, build: Build) -> None:
    slack.faults.error = "rate_limited"
    with pytest.raises(RateLimitedError):
        build(slack).send(message())


@adapters
@pytest.mark.parametrize("error", sorted(REJECTED))
def test_what_will_never_be_delivered_is_rejected_with_the_fix(slack: SlackStandIn, build: Build, error: str) -> None:
    slack.faults.error = error
    with pytest.raises(RejectedNoticeError) as caught:
        build(slack).send(message())
    assert error in str(caught.value)
    assert REJECTED[error] in str(caught.value)


@adapters
@pytest.mark.parametrize(
    ("channel", "error"), [("#nowhere", "channel_not_found"), ("#private", "not_in_channel"), ("#old", "is_archived")]
)
def test_a_channel_that_takes_nothing_is_rejected(slack: SlackStandIn, build: Build, channel: str, error: str) -> None:
    with pytest.raises(RejectedNoticeError, match=error):
        build(slack).send(message(channel))
    assert slack.posted == []


@adapters
def test_a_wrong_and_a_revoked_token_are_rejected(slack: SlackStandIn, build: Build) -> None:
    with pytest.raises(RejectedNoticeError, match="invalid_auth"):
        build(slack, "xoxb-another").send(message())
    slack.faults.revoked = True
    with pytest.raises(RejectedNoticeError, match="token_revoked"):
        build(slack).send(message())


@adapters
@pytest.mark.parametrize(
    "error", ["internal_error", "fatal_error", "service_unavailable", "request_timeout", "new_one"]
)
def test_a_passing_error_may_be_tried_again(slack: SlackStandIn, build: Build, error: str) -> None:
    slack.faults.error = error
    with pytest.raises(NoticeError) as caught:
        build(slack).send(message())
    assert type(caught.value) is NoticeError


@adapters
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, "oops"),
        (503, "<html>"),
        (502, ""),
        (200, "<html>maintenance</html>"),
        (200, ""),
        (200, "null"),
        (200, "[]"),
        (200, '["ok"]'),
        (200, '"ok"'),
        (200, '{"ok": tr'),
        (404, "{}"),
        (404, "[]"),
    ],
)
def test_an_answer_that_is_not_slacks_may_be_tried_again(
    slack: SlackStandIn, build: Build, status: int, body: str
) -> None:
    slack.faults.status, slack.faults.body = status, body
    with pytest.raises(NoticeError) as caught:
        build(slack).send(message())
    assert type(caught.value) is NoticeError


@adapters
def test_an_ok_without_a_ts_does_not_prove_delivery(slack: SlackStandIn, build: Build) -> None:
    slack.faults.forget_ts = True
    with pytest.raises(NoticeError, match="does not prove delivery"):
        build(slack).send(message())


@adapters
def test_no_answer_no_connection_and_a_late_answer_may_be_tried_again(slack: SlackStandIn, build: Build) -> None:
    notifier = build(slack)
    slack.faults.down = True
    with pytest.raises(NoticeError):
        notifier.send(message())
    assert slack.calls == 1  # trying again is the outbox's work
    slack.faults.down, slack.faults.slow = False, timedelta(minutes=5)
    with pytest.raises(NoticeError):
        build(slack).send(message())
    slack.close()
    with pytest.raises(NoticeError):
        notifier.send(message())


@adapters
def test_errors_and_texts_never_show_the_token(slack: SlackStandIn, build: Build) -> None:
    notifier = build(slack, "xoxb-very-secret")
    with pytest.raises(RejectedNoticeError) as caught:
        notifier.send(message())
    assert "xoxb-very-secret" not in str(caught.value)
    assert "xoxb-very-secret" not in repr(notifier)


def test_slack_without_a_token_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="chat:write"):
        SlackNotifier("  ")


def test_a_proxy_of_the_environment_does_not_see_loopback(slack: SlackStandIn) -> None:
    script = (
        "import sys; from datetime import timedelta;"
        "from costguard.adapters.notifiers.slack.notifier import SlackNotifier; from costguard.ports import Message;"
        "print(SlackNotifier(sys.argv[1], base_url=sys.argv[2]).send(Message('#gpu', 't', 't')).receipt)"
    )
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(  # noqa: S603 - a fixed command
        [sys.executable, "-c", script, DEFAULT_TOKEN, slack.base_url],
        env={**proxies, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip().endswith(slack.posted[0].ts)


def test_the_sdk_is_loaded_only_when_something_is_sent() -> None:
    script = (
        "import sys; from costguard.adapters.notifiers.slack.notifier import SlackNotifier; SlackNotifier('xoxb-1');"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'slack_sdk', 'pydantic', 'boto3', 'http'}))"
    )
    done = subprocess.run(  # noqa: S603 - a fixed command
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# the router and the console


class Remembering:
    """A notifier that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.edited: list[tuple[str, Message]] = []
        self.asked: list[Message] = []

    def send(self, message: Message) -> Delivery:
        self.sent.append(message)
        return Delivery("kept")

    def edit(self, receipt: str, message: Message) -> bool:
        self.edited.append((receipt, message))
        return True

    def capacity(self, message: Message) -> int:
        self.asked.append(message)
        return 7


def test_the_router_hands_on_the_address_without_its_scheme() -> None:
    kept = Remembering()
    router = NotifierRouter({"slack": kept, "mail": Remembering()}, default="slack")
    for channel in ("slack:#gpu", "#gpu", "slack:C012345"):
        router.send(message(channel))
    assert [sent.channel for sent in kept.sent] == ["#gpu", "#gpu", "C012345"]


@pytest.mark.parametrize("channel", ["pager:nlp", "", "#gpu"])
def test_an_address_nobody_serves_is_rejected_and_says_who_is_known(channel: str) -> None:
    router = NotifierRouter({"slack": Remembering(), "console": Remembering()})
    with pytest.raises(RejectedNoticeError, match="known are: console:, slack:"):
        router.send(message(channel))


def test_an_empty_address_is_not_the_default_channel() -> None:
    kept = Remembering()
    with pytest.raises(RejectedNoticeError):
        NotifierRouter({"slack": kept}, default="slack").send(message(""))
    assert kept.sent == []


def test_the_console_never_proves_delivery() -> None:
    written: list[str] = []
    router = NotifierRouter({"console": ConsoleNotifier(written.append)})
    delivery = router.send(message("console:", text="two\nlines"))
    assert not delivery.proves_delivery
    assert written == ["two\nlines\n"]


def test_the_console_writes_no_terminal_commands() -> None:
    written: list[str] = []
    ConsoleNotifier(written.append).send(message(text="name \x1b]0;owned\x07\x9b31m\u202eend"))
    assert "".join(written).rstrip("\n").isprintable()
