"""The page behind a Keep link: opening changes nothing, the form keeps once, everything else is politely refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.builders import NOW, case, policy, usd
from tests.contract.ledger_fakes import InterferingStore
from tests.words.said import says

from costguard.adapters.ledgers import open_ledger
from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.answers import AnswerRef, KeepToken, keep_token
from costguard.domain.errors import LedgerError
from costguard.engine.answers.answers import snooze
from costguard.engine.answers.keep_pages import answer_keep
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.policy.model.policy import AnswerTerms
from costguard.ports import Record, RecordStore
from costguard.report.notices.keep_page import HEADERS, STATUS, KeepPage, KeepScreen, keep_page, length_words
from costguard.report.words.sentences import Language

SECRET = "a secret of thirty-two letters or more"
DECISION = "0123456789abcdef01234567"
DAY = timedelta(hours=24)
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e'


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_ledger("memory:")
    yield Memory.over(store)
    store.close()


def told(memory: Memory, **changes: Any) -> Case:
    """A case whose warning was delivered to the group of the robot `ops`."""
    about = case(case_id="c0ffeec0ffeec0ff", decision_id=DECISION, **changes)
    kept = memory.cases.commit(None, about, now=NOW)
    memory.outbox.enqueue(
        OutboxNotice(
            notice_id=DECISION,
            decision_id=DECISION,
            case_key=kept.key,
            channel="feishu:ops",
            title="trainer stops at 18:00",
            text="trainer stops at 18:00",
            fields=(("Tags", "team=nlp, password=hunter2"),),
            created_at=NOW,
            state=NoticeState.DELIVERED,
            receipt="feishu:ops:0",
            case_id=kept.case_id,
            hourly=usd("32.77"),
        )
    )
    return kept


def link(about: Case, **changes: Any) -> str:
    token = KeepToken(AnswerRef(about.case_id, DECISION), DAY, "feishu:ops", NOW + timedelta(days=7))
    return keep_token(replace(token, **changes), SECRET)


def visit(
    memory: Memory, method: str, text: str, *, now: datetime = NOW, language: Language = Language.EN
) -> tuple[int, str]:
    query, body = (f"t={text}", b"") if method in {"GET", "HEAD"} else ("", f"t={text}".encode())
    return answer_keep(method, query, body, memory=memory, policy=policy(), secret=SECRET, now=now, language=language)


def kept(memory: Memory) -> dict[str, datetime]:
    return {ref: each.until for ref, each in memory.snoozes.active(NOW).items()}


def everything(memory: Memory) -> list[Record]:
    kinds = ("case", "notice", "snooze", "audit", "keep_link", "approval", "haste", "disowned", "told")
    return [record for kind in kinds for record in memory.store.query(kind)]


# opening


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_opening_a_link_shows_and_asks_and_changes_nothing(memory: Memory, method: str) -> None:
    about = told(memory, name="trainer")
    before = everything(memory)
    visit(memory, method, link(about))
    status, page = visit(memory, method, link(about))
    assert status == 200
    assert everything(memory) == before
    for said in ("Keep trainer?", about.subject.native_id, "32.77 USD an hour", "trainer stops at 18:00", "24 hours"):
        assert said in page
    assert f'value="{link(about)}"' in page
    assert 'method="post"' in page


def test_a_page_says_nothing_beyond_name_id_cost_and_what_happens(memory: Memory) -> None:
    about = told(memory, name="trainer", owner="nlp-team")
    _, page = visit(memory, "GET", link(about))
    for secret in ("hunter2", "nlp-team", "feishu:ops", about.subject.account, about.case_id, SECRET):
        assert secret not in page


# keeping


def test_its_form_keeps_and_only_once(memory: Memory) -> None:
    about = told(memory, name="trainer")
    status, page = visit(memory, "POST", link(about))
    assert status == 200
    assert "trainer is kept" in page
    assert kept(memory) == {str(about.subject): NOW + DAY}
    (entry,) = [each for each in memory.store.query("audit") if each.body["what"] == "snooze"]
    assert told_again(memory.store, entry)["by"] == "feishu:ops"

    memory.snoozes.clear(str(about.subject), "nlp", NOW + timedelta(hours=1))
    later = NOW + timedelta(hours=2)
    for method in ("GET", "POST"):
        status, page = visit(memory, method, link(about), now=later)
        assert (status, says(page, "used", "keep_page")) == (409, True)
        assert "<form" not in page
    assert memory.snoozes.active(later) == {}


def test_a_longer_keep_is_never_shortened(memory: Memory) -> None:
    about = told(memory)
    snooze(memory, about.subject, timedelta(days=7), "nlp", "training", NOW)
    for method in ("GET", "POST"):
        status, page = visit(memory, method, link(about))
        assert status == 200
        assert says(page, "longer", "keep_page")
    assert kept(memory) == {str(about.subject): NOW + timedelta(days=7)}
    assert visit(memory, "POST", link(about, length=timedelta(days=14)))[0] == 200
    assert kept(memory) == {str(about.subject): NOW + timedelta(days=14)}


def test_a_step_under_way_is_told(memory: Memory) -> None:
    about = told(memory, rung=1, phase=Phase.CONFIRMING)
    _, page = visit(memory, "POST", link(about))
    assert says(page, "kept_late", "keep_page")
    assert kept(memory) == {str(about.subject): NOW + DAY}


# what changes nothing


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("changes", "status", "screen"),
    [
        ({"expires": NOW}, 410, "expired"),
        ({"expires": NOW + timedelta(days=9)}, 404, "forged"),
        ({"of": AnswerRef("ffffffffffffffff", DECISION)}, 409, "late"),
        ({"of": AnswerRef("ffffffffffffffff", "f" * 24)}, 409, "late"),
        ({"sent_to": "feishu:another"}, 403, "refused"),
        ({"sent_to": "mailto:ops@example.com"}, 403, "refused"),
    ],
)
def test_late_and_misdirected_links_change_nothing(
    memory: Memory, method: str, changes: dict[str, Any], status: int, screen: str
) -> None:
    about = told(memory, name="trainer")
    before = everything(memory)
    answered, page = visit(memory, method, link(about, **changes))
    assert answered == status
    assert says(page, screen, "keep_page")
    assert says(page, f"{screen}_text", "keep_page")
    assert "<form" not in page
    assert everything(memory) == before


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_link_about_a_case_that_is_over_is_too_late(memory: Memory, method: str) -> None:
    about = told(memory, status=CaseStatus.CLOSED)
    status, page = visit(memory, method, link(about))
    assert (status, "too late" in page) == (409, True)
    assert kept(memory) == {}


@pytest.mark.parametrize(
    "fields", ["", "t=", "t=A", "x=1", "t={0}&t={0}", "t={0}A", "?u={0}", "&" * 5000, "t=%00", "T={0}"]
)
def test_forged_and_broken_requests_change_nothing(memory: Memory, fields: str) -> None:
    about = told(memory)
    before = everything(memory)
    text = fields.format(link(about))
    for method, query, body in (("GET", text, b""), ("POST", "", text.encode()), ("POST", f"t={link(about)}", b"")):
        status, page = answer_keep(
            method, query, body, memory=memory, policy=policy(), secret=SECRET, now=NOW, language=Language.EN
        )
        assert (status, says(page, "forged", "keep_page")) == (404, True)
    assert everything(memory) == before


def test_bytes_that_are_no_form_change_nothing(memory: Memory) -> None:
    about = told(memory)
    for body in (b"\xff\xfe", b"t=" + link(about).encode() + b"&x=" + b"x" * 5000, b'{"t": "x"}'):
        status, _ = answer_keep(
            "POST", "", body, memory=memory, policy=policy(), secret=SECRET, now=NOW, language=Language.EN
        )
        assert status == 404
    for method in ("PUT", "DELETE", "OPTIONS", "", "get"):
        assert visit(memory, method, link(about))[0] == 405
    assert kept(memory) == {}


def test_what_cannot_be_written_is_not_called_kept(memory: Memory) -> None:
    about = told(memory)

    class Broken(InterferingStore):
        def transact(self, operations: Any) -> Any:
            del operations
            raise LedgerError("the disk is full")

    broken: RecordStore = Broken(memory.store)
    status, page = visit(Memory.over(broken), "POST", link(about))
    assert (status, says(page, "failed", "keep_page")) == (503, True)
    assert kept(memory) == {}
    assert visit(memory, "POST", link(about))[0] == 200, "the link was not used up"


# the page


class Reading(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.named: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.named += [name for name, _ in attrs]


ASKING = {KeepScreen.ASK, KeepScreen.START}


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("screen", list(KeepScreen))
def test_every_page_is_plain_whole_and_inert(screen: KeepScreen, language: Language) -> None:
    words: dict[str, Any] = dict.fromkeys(("name", "native_id", "cost", "what", "until", "why", "token"), HOSTILE)
    page = keep_page(KeepPage(screen, hours=24, **words), language)
    read = Reading()
    read.feed(page)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "p", "dl", "div", "dt", "dd", "form", "button"}
    assert set(read.tags) <= allowed
    assert not [name for name in read.named if name.startswith("on") or name in {"src", "href", "style"}]
    assert "\u202e" not in page.replace(f'value="{HOSTILE}', "") or screen in ASKING
    assert "{" not in re.sub(r"<style>.*?</style>", "", page)
    assert 'name="viewport"' in page
    assert STATUS[screen] >= 200
    assert ("<form" in page) is (screen in ASKING)


def test_the_headers_let_a_browser_do_nothing_but_show_and_send_the_form() -> None:
    assert HEADERS["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert HEADERS["Referrer-Policy"] == "no-referrer"
    assert HEADERS["Cache-Control"] == "no-store"
    assert HEADERS["X-Frame-Options"] == "DENY"


def test_the_policy_of_the_page_knows_its_own_style() -> None:
    import base64
    from hashlib import sha256

    page = keep_page(KeepPage(KeepScreen.FORGED), Language.EN)
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert base64.b64encode(sha256(style.encode()).digest()).decode() in HEADERS["Content-Security-Policy"]


def test_the_page_speaks_chinese(memory: Memory) -> None:
    about = told(memory, name="训练机")
    status, page = visit(memory, "GET", link(about, length=timedelta(days=7)), language=Language.ZH)
    assert status == 200
    for said in ('lang="zh-CN"', "保留 训练机？", "7 天", "每小时 32.77 USD"):
        assert said in page


def test_lengths_are_said_as_people_say_them() -> None:
    said = [length_words(hours, Language.EN) for hours in (24, 48, 72, 100, 168)]
    assert said == ["24 hours", "48 hours", "3 days", "100 hours", "7 days"]


# asking for an exception

APPROVED = policy(answers=AnswerTerms("T01", ("U0KIM", "U0LEE")), default_channel="feishu:finops")


def asks(memory: Memory, text: str, until: str = "2026-04-30", because: str = "发布测试") -> tuple[int, str]:
    fields = {"t": text, "ask": "exception", "until": until, "because": because}
    body, terms = urlencode(fields).encode(), APPROVED
    return answer_keep("POST", "", body, memory=memory, policy=terms, secret=SECRET, now=NOW, language=Language.EN)


def test_the_page_of_a_group_asks_for_an_exception_that_holds_nothing_yet(memory: Memory) -> None:
    about = told(memory, name="trainer")
    _, page = answer_keep(
        "GET", f"t={link(about)}", b"", memory=memory, policy=APPROVED, secret=SECRET, now=NOW, language=Language.EN
    )
    assert "at most 180 days" in page
    assert 'type="date"' in page
    status, page = asks(memory, link(about))
    assert (status, "An exception of trainer was asked for" in page) == (200, True)
    (question,) = memory.exceptions.all()
    assert (question.by, question.reason, question.needed) == ("link:feishu:ops", "发布测试", 2)
    assert kept(memory) == {}
    channels = sorted(one.channel for one in memory.outbox.beginning_with("exception-asked"))
    assert channels == ["feishu:finops", "slack:U0KIM", "slack:U0LEE"]
    status, page = asks(memory, link(about), because="once more")
    assert (status, "was asked for already" in page) == (200, True)
    assert [one.reason for one in memory.exceptions.all()] == ["发布测试"]


@pytest.mark.parametrize("terms", [AnswerTerms(), AnswerTerms("T01", ("U0KIM",))])
def test_without_two_who_could_agree_the_page_offers_none(memory: Memory, terms: AnswerTerms) -> None:
    about = told(memory, name="trainer")
    alone = policy(answers=terms)
    given: dict[str, Any] = {"memory": memory, "policy": alone, "secret": SECRET, "now": NOW, "language": Language.EN}
    _, page = answer_keep("GET", f"t={link(about)}", b"", **given)
    assert 'name="until"' not in page
    body = urlencode({"t": link(about), "ask": "exception", "until": "2026-04-30", "because": "x"}).encode()
    assert answer_keep("POST", "", body, **given)[0] == 403
    assert not list(memory.exceptions.all())


@pytest.mark.parametrize(
    ("until", "because"),
    [("", "x"), ("soon", "x"), ("2026-03-01", "x"), ("9999-12-31", "x"), ("2026-12-30", "x"), ("2026-04-30", " ")],
)
def test_a_form_filled_in_wrongly_asks_for_nothing_and_keeps_nothing(memory: Memory, until: str, because: str) -> None:
    about = told(memory, name="trainer")
    status, page = asks(memory, link(about), until, because)
    assert (status, "a date or a reason is missing" in page) == (400, True)
    assert kept(memory) == {}
    assert not list(memory.exceptions.all())


def test_a_forged_old_or_outdated_link_asks_for_nothing(memory: Memory) -> None:
    about = told(memory, name="trainer")
    assert asks(memory, link(about)[:-2] + "AA")[0] == 404
    assert asks(memory, link(about, expires=NOW))[0] == 410
    assert asks(memory, link(about, sent_to="feishu:others"))[0] == 403
    memory.cases.commit(about, replace(about, status=CaseStatus.CLOSED), now=NOW)
    assert asks(memory, link(about))[0] == 409
    assert not list(memory.exceptions.all())


def test_a_reason_is_shown_as_it_was_written_and_never_as_markup(memory: Memory) -> None:
    about = told(memory, name="trainer")
    _, page = asks(memory, link(about), because=HOSTILE[:30])
    assert "<script>alert" not in page
