"""Webhooks: where they may go, what every answer means, and a signature that a receiver can check."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.contract.loopback_tls import serving_tls, trusting, write_certificate
from tests.webhook_receiver import DEFAULT_SECRET, WebhookReceiver

from cloudstand.clock import MovedClock
from costguard.adapters.notifiers.outward import judged, place_of
from costguard.adapters.notifiers.webhook import WebhookNotifier, document, signature
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Message

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
SOON = timedelta(milliseconds=200)
ENOUGH = timedelta(seconds=10)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "own.pem", "hooks.example.com")


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver(MovedClock(NOW)) as opened:
        yield opened


def notifier(
    secret: str = DEFAULT_SECRET, *, at: datetime = NOW, private: bool = True, timeout: timedelta = ENOUGH
) -> WebhookNotifier:
    return WebhookNotifier(secret, now=lambda: at, private=private, timeout=timeout)


def notice(url: str, **more: Any) -> Message:
    fields = (("Owner", "nlp"), ("Cost", "3.06 USD/h"))
    return Message(url, "i-0a stops", "i-0a stops\nat 18:00", fields, ("Reply keep.",), notice_id="n-1", **more)


def test_the_document_is_the_one_that_is_documented(receiver: WebhookReceiver) -> None:
    first = notifier().send(notice(receiver.url))
    assert receiver.received[0].document == {
        "schema": "costguard.notice/1",
        "notice_id": "n-1",
        "title": "i-0a stops",
        "text": "i-0a stops\nat 18:00",
        "fields": [{"label": "Owner", "value": "nlp"}, {"label": "Cost", "value": "3.06 USD/h"}],
        "parts": [],
        "lines": ["Reply keep."],
        "left_out": 0,
        "in_reply_to": "",
    }
    key = receiver.received[0].key
    assert first.receipt == f"webhook:{key}:202 http://127.0.0.1:{receiver.port}"
    answer = json.loads(document(notice(receiver.url, thread=first.receipt)))
    assert answer["in_reply_to"] == key


def test_the_signature_is_what_openssl_makes_of_it() -> None:
    """`printf '1772442000.{}' | openssl dgst -sha256 -hmac secret` gives the same."""
    made = signature(b"secret", b"{}", NOW)
    assert made == "t=1772442000,v1=" + hmac.new(b"secret", b"1772442000.{}", sha256).hexdigest()


def test_every_attempt_has_the_same_body_and_key_and_its_own_signature(receiver: WebhookReceiver) -> None:
    receiver.faults.lost = True
    with pytest.raises(NoticeError):
        notifier().send(notice(receiver.url))
    receiver.faults.lost = False
    notifier(at=NOW + timedelta(minutes=2)).send(notice(receiver.url))
    assert len(receiver.received) == 1
    assert document(notice("a")) == document(notice("b"))


@pytest.mark.parametrize("at", [NOW - timedelta(minutes=10), NOW + timedelta(minutes=10)])
def test_an_old_signature_and_another_secret_are_not_believed(receiver: WebhookReceiver, at: datetime) -> None:
    for wrong in (notifier("somebody-elses-secret"), notifier(at=at)):
        with pytest.raises(RejectedNoticeError, match="401"):
            wrong.send(notice(receiver.url))
    assert receiver.received == []


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_the_receivers_word(receiver: WebhookReceiver, status: int) -> None:
    receiver.faults.status = status
    assert notifier().send(notice(receiver.url)).proves_delivery


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *(
            (status, RejectedNoticeError)
            for status in (301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 410, 413, 422)
        ),
        *((status, NoticeError) for status in (408, 409, 425, 500, 502, 503, 504, 599)),
        (429, RateLimitedError),
    ],
)
def test_every_other_status_has_its_meaning(receiver: WebhookReceiver, status: int, kind: type[NoticeError]) -> None:
    receiver.faults.status = status
    receiver.faults.headers = (("Location", receiver.url),)
    with pytest.raises(NoticeError, match=str(status)) as caught:
        notifier().send(notice(receiver.url))
    assert type(caught.value) is kind
    assert receiver.calls == 1  # a redirect is not followed


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("wait", "seconds"), [("7", 7), ("0", 1), ("soon", 30), ("999999999", 30)])
def test_a_receiver_says_how_long_to_wait(receiver: WebhookReceiver, status: int, wait: str, seconds: int) -> None:
    receiver.faults.status, receiver.faults.headers = status, (("retry-after", wait),)
    with pytest.raises(RateLimitedError) as caught:
        notifier().send(notice(receiver.url))
    assert caught.value.retry_after == timedelta(seconds=seconds)


def slow(receiver: WebhookReceiver) -> None:
    receiver.faults.slow = timedelta(minutes=5)


def dripping(receiver: WebhookReceiver) -> None:
    receiver.faults.drip = True


def silent(receiver: WebhookReceiver) -> None:
    receiver.faults.down = True


def gone(receiver: WebhookReceiver) -> None:
    receiver.close()


@pytest.mark.parametrize("trouble", [slow, dripping, silent, gone])
def test_an_answer_that_does_not_come_whole_and_in_time_is_a_passing_fault(
    receiver: WebhookReceiver, trouble: Callable[[WebhookReceiver], None]
) -> None:
    trouble(receiver)
    with pytest.raises(NoticeError, match="did not answer") as caught:
        notifier(timeout=SOON).send(notice(receiver.url))
    assert type(caught.value) is NoticeError


def test_errors_and_receipts_name_the_host_and_never_the_path(receiver: WebhookReceiver) -> None:
    url = f"http://127.0.0.1:{receiver.port}/hooks/T0P-SECRET?token=T0P-SECRET"
    assert "T0P" not in notifier().send(notice(url)).receipt
    for status in (302, 404, 429, 500):
        receiver.faults.status = status
        with pytest.raises(NoticeError) as caught:
            notifier().send(notice(url))
        assert "T0P" not in str(caught.value)
    for private, address in ((False, url), (True, url.replace("http:", "ftp:"))):
        with pytest.raises(RejectedNoticeError) as refused:
            notifier(private=private).send(notice(address))
        assert "T0P" not in str(refused.value)


# where it may go


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "100.64.0.1", "198.18.0.1", "192.0.2.1", "224.0.0.1"),
        *("255.255.255.255", "240.0.0.1", "::1", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
        *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "2002:0a00:0001::1", "64:ff9b::a00:1", "64:ff9b::7f00:1"),
        *("169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "100.100.100.200"),
        *("fd00:ec2::254", "0" + ".0" * 3, "::", "not-an-address"),
    ],
)
def test_a_name_that_stands_for_something_private_is_not_called(address: str) -> None:
    place = place_of("https://hooks.example.com/x", private=False)
    for answer in ([address], ["203.0.113.9", address], ["8.8.8.8", "2606:4700::1111", address]):
        with pytest.raises(RejectedNoticeError, match="is not called"):
            judged(place, lambda *_, answer=answer: answer, private=False)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "169.254.0.23", "fe80::1", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.170.2"],
)
def test_where_clouds_hand_out_credentials_is_never_called(address: str) -> None:
    place = place_of("https://metadata.example.com/", private=True)
    with pytest.raises(RejectedNoticeError, match="metadata"):
        judged(place, lambda *_: [address], private=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111"])
def test_a_public_address_is_called(address: str) -> None:
    place = place_of("https://hooks.example.com/x", private=False)
    assert judged(place, lambda *_: [address, address], private=False) == [address]


def test_a_private_one_is_called_where_settings_allow_it() -> None:
    place = place_of("https://hooks.internal/x", private=True)
    assert judged(place, lambda *_: ["10.0.0.1"], private=True) == ["10.0.0.1"]
    with pytest.raises(RejectedNoticeError, match="COSTGUARD_WEBHOOK_PRIVATE=1"):
        judged(place, lambda *_: ["10.0.0.1"], private=False)


def test_a_name_without_an_address_is_a_passing_fault() -> None:
    def unknown(*_: object) -> list[str]:
        raise OSError("no such host")

    place = place_of("https://hooks.example.com/x", private=False)
    ways: list[Callable[..., list[str]]] = [unknown, lambda *_: []]
    for resolve in ways:
        with pytest.raises(NoticeError) as caught:
            judged(place, resolve, private=False)
        assert type(caught.value) is NoticeError


def test_the_connection_goes_to_the_address_that_was_judged_under_the_name_that_was_asked(certificate: Path) -> None:
    """The name is looked up once; TLS is still checked against it. A second look-up would lead elsewhere."""
    asked: list[tuple[str, int]] = []

    def once(host: str, port: int) -> list[str]:
        asked.append((host, port))
        assert len(asked) == 1
        return ["127.0.0.1"]

    with WebhookReceiver(MovedClock(NOW), tls=serving_tls(certificate)) as receiver:
        url = f"https://hooks.example.com:{receiver.port}/hooks"
        sender = WebhookNotifier(
            DEFAULT_SECRET, now=lambda: NOW, private=True, timeout=ENOUGH, resolve=once, tls=trusting(certificate)
        )
        assert sender.send(notice(url)).proves_delivery
        assert asked == [("hooks.example.com", receiver.port)]
        assert receiver.received[0].path == "/hooks"


@pytest.mark.parametrize("trusted", [True, False])
def test_a_certificate_of_another_name_or_unknown_is_told_nothing(certificate: Path, *, trusted: bool) -> None:
    with WebhookReceiver(MovedClock(NOW), tls=serving_tls(certificate)) as receiver:
        host = "elsewhere.example.com" if trusted else "hooks.example.com"
        sender = WebhookNotifier(
            DEFAULT_SECRET,
            now=lambda: NOW,
            private=True,
            resolve=lambda *_: ["127.0.0.1"],
            tls=trusting(certificate) if trusted else None,
        )
        with pytest.raises(NoticeError, match="certificate that is not trusted"):
            sender.send(notice(f"https://{host}:{receiver.port}/hooks"))
        assert receiver.calls == 0


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example.com/", "http://10.0.0.1/", "https:///x", "https://", "https:hooks.example.com", "x"),
        *("https://user:pw@hooks.example.com/", "https://user@hooks.example.com/", "https://hooks.example.com/#x"),
        *(
            "https://hooks.example.com:0/",
            "https://hooks.example.com:99999/",
            "https://hooks.example.com:x/",
            "https://[",
        ),
        *("https://hooks.example.com/\r\nHost: x", "https://hooks.exa\nmple.com/", "https://hooks.example.com/a b"),
        *("https://例子.example/", "https://hooks.example.com/中", "https://hooks.example.com\\@10.0.0.1/"),
        *("https://hooks.example.com/" + "x" * 2000, "ftp://hooks.example.com/", "file:///etc/passwd", ""),
    ],
)
@pytest.mark.parametrize("private", [True, False])
def test_an_address_of_another_form_is_rejected(url: str, *, private: bool) -> None:
    def never(*_: object) -> list[str]:
        raise AssertionError("looked up")

    sender = WebhookNotifier("s" * 16, now=lambda: NOW, private=private, resolve=never)
    with pytest.raises(RejectedNoticeError, match="https://HOST/PATH"):
        sender.send(notice(url))


@pytest.mark.parametrize("host", ["open.feishu.cn", "OPEN.feishu.cn.", "oapi.dingtalk.com", "qyapi.weixin.qq.com"])
def test_a_chat_robot_that_says_200_to_everything_proves_nothing(host: str) -> None:
    with pytest.raises(RejectedNoticeError, match="chat robot"):
        notifier().send(notice(f"https://{host}/robot/send?access_token=T0P"))


def test_webhooks_need_a_secret() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_WEBHOOK_SECRET"):
        WebhookNotifier("", now=lambda: NOW)
