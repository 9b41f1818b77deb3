"""Messages of many parts by mail and webhook: every part told, or counted, with links where a choice has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from html import escape

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.golden.slack_messages import MESSAGES, batch, part

from costguard.adapters.notifiers.email import EmailNotifier, compose
from costguard.adapters.notifiers.plain import parts_that_fit, plain
from costguard.adapters.notifiers.webhook import WebhookNotifier, document
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import RejectedNoticeError
from costguard.ports import Choice, Message, MessagePart

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
FROM, TO = "costguard@example.com", "ops@example.com"
FIVE = replace(batch([part(number) for number in range(5)]), channel=TO)


class Carrier:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        self.mails.append(mail)
        return str(mail["Message-ID"]), "250 ok"


def link(choice: Choice, recipient: str) -> str:
    return f"https://keep.example/{choice.of}?for={recipient}&h=24" if choice.kind is AnswerKind.KEEP else ""


def bodies(message: Message, link: Callable[[Choice, str], str] | None = link) -> tuple[str, str]:
    """Plain words and HTML, as a mail program finds them."""
    carrier = Carrier()
    EmailNotifier(carrier, FROM, now=lambda: NOW, link=link).send(message)
    found = BytesParser(_class=EmailMessage, policy=default).parsebytes(carrier.mails[0].as_bytes())
    said = [found.get_body((kind,)) for kind in ("plain", "html")]
    text, html = (body.get_content() if body is not None else "" for body in said)
    return text.replace("\r\n", "\n"), html.replace("\r\n", "\n")


def test_a_mail_tells_every_part_with_its_picture_and_its_links() -> None:
    text, html = bodies(FIVE)
    for number in range(5):
        title, first = part(number).title, part(number).choices[0]
        address = link(first, TO)
        assert title in text
        assert escape(title) in html
        assert f"Keep 24 h: {address}" in text
        assert f'<a href="{escape(address)}">Keep 24 h</a>' in html
    assert html.count(part(0).picture) == text.count(part(0).picture) == 5
    assert (text.count("Stop now\n"), html.count(" · Stop now · Not mine</p>")) == (5, 5)
    assert text.index(part(0).title) < text.index("Nothing happens before.")
    assert "not shown here" not in text + html


def test_without_links_the_choices_are_words_alone() -> None:
    text, html = bodies(FIVE, None)
    assert "<a " not in html
    assert "://" not in text
    assert "<p>Keep 24 h · Keep 7 d · Stop now · Not mine</p>" in html


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "https://a.example/\n<b>",
        "https://a.example/ x",
        "https://a.example/é",
        "https://" + "a" * 700,
    ],
)
def test_an_address_that_is_none_to_click_on_is_left_away(address: str) -> None:
    text, html = bodies(FIVE, lambda *_: address)
    assert "<a " not in html
    assert "://" not in text + html.replace("<!DOCTYPE", "")


def test_an_address_cannot_leave_its_place_in_the_html() -> None:
    html = bodies(FIVE, lambda *_: 'https://a.example/"onclick="x&y')[1]
    assert 'href="https://a.example/&quot;onclick=&quot;x&amp;y"' in html


def test_what_became_of_a_part_stands_in_the_place_of_its_choices() -> None:
    ended = replace(FIVE, parts=(replace(part(0), status="Kept <b>until</b> tomorrow"),))
    text, html = bodies(ended)
    assert "Kept <b>until</b> tomorrow" in text
    assert "<b>Kept &lt;b&gt;until&lt;/b&gt; tomorrow</b>" in html
    assert "Keep 24 h" not in text + html


def test_a_chinese_mail_says_in_chinese_what_it_leaves_out() -> None:
    chinese = replace(MESSAGES["chinese"][0], channel=TO)
    machine = replace(chinese.parts[0], fields=chinese.parts[0].fields * 500)
    text, html = bodies(replace(chinese, parts=(machine,)))
    assert "项未在此显示" in text
    assert "项未在此显示" in html
    assert "负责人：自然语言组" in text


def test_the_mail_of_the_same_notice_has_the_same_name_whatever_the_link() -> None:
    first, second = (compose(FIVE, FROM, TO, NOW, link=lambda *_, n=n: f"https://a.example/{n}") for n in (1, 2))
    assert first["Message-ID"] == second["Message-ID"]


def test_the_document_of_a_webhook_lists_the_parts() -> None:
    ended = replace(FIVE, parts=(part(0), replace(part(1), status="Stopped")))
    first, second = json.loads(document(ended))["parts"]
    assert first == {
        "decision_id": part(0).decision_id,
        "title": part(0).title,
        "fields": [{"label": label, "value": value} for label, value in part(0).fields],
        "picture": part(0).picture,
        "lines": [],
        "status": "",
        "choices": [
            {"kind": "keep", "label": "Keep 24 h", "seconds": 86400, "asks": ""},
            {"kind": "keep", "label": "Keep 7 d", "seconds": 604800, "asks": ""},
            {"kind": "stop_now", "label": "Stop now", "seconds": None, "asks": part(0).choices[2].asks},
            {"kind": "not_mine", "label": "Not mine", "seconds": None, "asks": ""},
        ],
    }
    assert (second["status"], second["choices"]) == ("Stopped", [])


def test_more_parts_than_fit_are_not_sent_as_if_they_were_all_told() -> None:
    """NEVER rule 15: what counts as delivered was shown."""
    many = replace(FIVE, parts=tuple(part(number) for number in range(200)))
    carrier = Carrier()
    mail = EmailNotifier(carrier, FROM, now=lambda: NOW)
    hook = WebhookNotifier("secret", now=lambda: NOW)
    assert 10 < mail.capacity(many) == hook.capacity(many) < 200
    with pytest.raises(RejectedNoticeError, match="200 parts"):
        mail.send(many)
    with pytest.raises(RejectedNoticeError, match="200 parts"):
        hook.send(replace(many, channel="https://hooks.example.com/x"))
    assert carrier.mails == []
    mail.send(replace(many, parts=many.parts[: mail.capacity(many)]))
    assert len(carrier.mails) == 1


WORDS = st.text(st.one_of(st.characters(), st.sampled_from(list("&<>\"'é中😀\n"))), max_size=20).flatmap(
    lambda text: st.sampled_from([text, text, text * 100])
)
FIELDS = st.lists(st.tuples(WORDS, WORDS), max_size=4).map(tuple)
REFS = st.builds(AnswerRef, WORDS, WORDS)
LENGTHS = st.sampled_from([None, timedelta(days=1)])
CHOICES = st.lists(st.builds(Choice, st.sampled_from(AnswerKind), WORDS, REFS, LENGTHS, WORDS), max_size=8).map(tuple)
LINES = st.lists(WORDS, max_size=3).map(tuple)
PARTS = st.lists(st.builds(MessagePart, WORDS, WORDS, FIELDS, LINES, WORDS, CHOICES, WORDS), min_size=1, max_size=4)
ANY = st.builds(Message, st.just(TO), WORDS, WORDS, FIELDS, LINES, parts=PARTS.map(lambda parts: tuple(parts * 5)))


UNREADABLE = MessagePart("d", "t", choices=(Choice(AnswerKind.KEEP, "k", AnswerRef("", "\ud800")),))


@given(ANY)
@example(Message(TO, "t", "t", parts=(UNREADABLE,)))
@settings(max_examples=10, deadline=None)
def test_any_parts_become_a_mail_and_a_document_that_every_carrier_takes(message: Message) -> None:
    held = parts_that_fit(message)
    told = plain(message)
    assert len(told.parts) == held >= 1
    assert told.left_out >= len(message.parts) - held
    text, html = bodies(replace(message, parts=message.parts[:held]))
    assert max(len(text.encode()), len(html.encode())) < 80_000
    assert len(document(message)) < 256 * 1024
    assert html.count("<h3>") >= held - 1


@pytest.mark.parametrize("words", ["&" * 5000, "😀" * 5000])
@pytest.mark.parametrize("ended", [False, True])
def test_the_longest_part_still_fits_beside_the_longest_rest(words: str, *, ended: bool) -> None:
    choices = tuple(Choice(kind, words, AnswerRef("a" * 64, "b" * 64), timedelta(1), words) for kind in AnswerKind)
    fields, lines = ((words, words),) * 40, (words,) * 40
    largest = MessagePart(words, words, fields, lines, words, choices * 6, status=words if ended else "")
    text, html = bodies(Message(TO, words, words, fields, lines, parts=(largest,)), lambda *_: "http://" + "a" * 590)
    assert max(len(text.encode()), len(html.encode())) < 80_000
    assert ("a" * 590 in html) is not ended


def test_the_title_of_the_only_part_is_not_said_twice() -> None:
    text, html = bodies(Message(TO, "i-0a stops", "x", parts=(MessagePart("d", "i-0a stops"),)))
    assert (text.count("i-0a stops"), html.count("i-0a stops")) == (1, 1)
