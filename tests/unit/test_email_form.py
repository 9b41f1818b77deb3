"""What a mail is made of: headers nobody else can write, the same Message-ID for the same notice, plain recipients."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costguard.adapters.notifiers.email import EmailNotifier, compose, is_mail_address
from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.ports import Message

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
FROM, TO = "costguard@example.com", "ops@example.com"
HEADERS = ["From", "To", "Subject", "Date", "Auto-Submitted", "Message-ID", "MIME-Version", "Content-Type"]


class Carrier:
    """Keeps what it is given."""

    def __init__(self, words: str = "250 ok") -> None:
        self.mails: list[EmailMessage] = []
        self._words = words

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        self.mails.append(mail)
        return str(mail["Message-ID"] or ""), self._words


def mail_of(title: str = "stops", text: str = "stops soon", **more: Any) -> EmailMessage:
    return compose(Message(TO, title, text, notice_id=more.pop("notice_id", "n-1"), **more), FROM, TO, NOW)


def arrived(mail: EmailMessage) -> EmailMessage:
    return BytesParser(_class=EmailMessage, policy=default).parsebytes(mail.as_bytes())


@settings(max_examples=25, deadline=None)
@given(st.text(), st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3), st.text(max_size=40))
def test_whatever_the_words_the_headers_are_ours_alone(
    title: str, text: str, fields: list[tuple[str, str]], thread: str
) -> None:
    found = arrived(mail_of(title, text, fields=tuple(fields), thread=thread))
    assert [name for name in found.keys() if name not in {"In-Reply-To", "References"}] == HEADERS  # noqa: SIM118
    assert found["To"] == TO
    assert found.defects == []
    assert [part.get_content_type() for part in found.iter_parts()] == ["text/plain", "text/html"]


@pytest.mark.parametrize(
    "title", ["x\r\nBcc: all@example.com", "x\nBcc: y", "x\rBcc: y", "x\x85Bcc: y", "x\u2028Bcc: y", "x\x00\x0bBcc: y"]
)
def test_a_title_cannot_become_a_header(title: str) -> None:
    found = arrived(mail_of(title))
    assert found["Bcc"] is None
    assert found["Subject"] == "x Bcc: " + ("all@example.com" if "all" in title else "y")


def test_everything_travels_as_ascii() -> None:
    raw = mail_of("实例停止", "现在\n" + "长" * 3000, fields=(("负责人", "李团队"),)).as_bytes()
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")


def test_the_same_notice_is_the_same_mail_and_another_is_not() -> None:
    assert mail_of().as_bytes() == mail_of().as_bytes()
    ids = {str(mail["Message-ID"]) for mail in (mail_of(), mail_of(notice_id="n-2"))}
    elsewhere = compose(Message("b@example.com", "t", "t", notice_id="n-1"), FROM, "b@example.com", NOW)
    assert len(ids | {str(elsewhere["Message-ID"])}) == 3
    assert all(found.endswith("@example.com>") and "n-1" not in found for found in ids)


def test_without_a_notice_the_server_names_the_mail() -> None:
    assert mail_of(notice_id="")["Message-ID"] is None


def test_it_is_dated_by_the_clock_given_and_asks_for_no_holiday_notices() -> None:
    found = arrived(mail_of())
    assert found["Date"].datetime == NOW
    assert found["Auto-Submitted"] == "auto-generated"


@pytest.mark.parametrize(
    ("receipt", "answers"),
    [("<a.b@example.com> 250 ok", "<a.b@example.com>"), ("<a@b>\r\nBcc: x", ""), ("C01:1.2", ""), ("", "")],
)
def test_only_a_receipt_of_a_mail_is_a_thread(receipt: str, answers: str) -> None:
    found = arrived(mail_of(thread=receipt))
    assert (found["In-Reply-To"] or "") == answers
    assert (found["References"] or "") == answers


def test_html_shows_the_words_as_words() -> None:
    found = arrived(mail_of("<b>t</b>", "t", fields=(("<i>", "<img src=x onerror=y>"),), lines=("</body><a href=z>",)))
    body = found.get_body(("html",))
    assert body is not None
    html = body.get_content()
    assert "&lt;img src=x onerror=y&gt;" in html
    assert not {"<b>t", "<i>", "<img", "<a href"} & {
        html[at : at + len(m)] for m in ("<b>t", "<i>", "<img", "<a href") for at in range(len(html))
    }


GOOD = ["ops@example.com", "a.b+gpu@mail.example.co.uk", "o'neil@example.com", "x_1-y@xn--fiqs8s.example"]
BAD = [
    *("", "ops", "ops@", "@example.com", "ops@localhost", "ops@@example.com", "a@b@example.com", "ops@example..com"),
    *("a@example.com,b@example.com", "a@example.com;b@example.com", "Ops <ops@example.com>", '"x y"@example.com'),
    *("ops@example.com\n", "ops@exam\nple.com", "ops@-example.com", ".ops@example.com", "ops.@example.com"),
    *("ops@例子.example", "负责@example.com", "ops@[127.0.0.1]", "ops?cc=all@example.com", "ops@example.com?cc=a@b.cc"),
    *("a" * 65 + "@example.com", "a@" + "b." * 130 + "com", "a@example.com%0Abcc", "o\u0000@example.com"),
]


@pytest.mark.parametrize("address", GOOD)
def test_a_plain_address_is_written_to(address: str) -> None:
    carrier = Carrier()
    EmailNotifier(carrier, FROM, now=lambda: NOW).send(Message(address, "t", "t"))
    assert carrier.mails[0]["To"] == address


@pytest.mark.parametrize("address", [*BAD, "a%2Cb@example.com", "ops%40example.com%0d%0aBcc:x@example.com"])
def test_anything_else_is_rejected_before_anything_is_sent(address: str) -> None:
    carrier = Carrier()
    with pytest.raises(RejectedNoticeError, match="is no mail address") as caught:
        EmailNotifier(carrier, FROM, now=lambda: NOW).send(Message(address, "t", "t"))
    assert carrier.mails == []
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_an_encoded_address_is_decoded_as_mailto_says() -> None:
    carrier = Carrier()
    EmailNotifier(carrier, FROM, now=lambda: NOW).send(Message("gpu%2Bops@example.com", "t", "t"))
    assert carrier.mails[0]["To"] == "gpu+ops@example.com"


@pytest.mark.parametrize("sender", BAD)
def test_a_sender_that_is_no_address_is_refused(sender: str) -> None:
    with pytest.raises(InvalidInputError, match=r"costguard@example\.com"):
        EmailNotifier(Carrier(), sender, now=lambda: NOW)


@settings(max_examples=50, deadline=timedelta(milliseconds=500))
@given(st.text(alphabet="a@.-'+_%\n\r,<> é", max_size=300))
def test_what_counts_as_an_address_is_safe_in_a_header(text: str) -> None:
    if is_mail_address(text):
        assert text.isascii()
        assert text.count("@") == 1
        assert not set(text) & set("\r\n,<> %")


def test_a_receipt_is_one_line_however_a_server_talks() -> None:
    delivery = EmailNotifier(Carrier("250 ok\r\n\x1b[31m" + "x" * 5000), FROM, now=lambda: NOW).send(
        Message(TO, "t", "t")
    )
    assert delivery.receipt.isprintable()
    assert len(delivery.receipt) < 400
