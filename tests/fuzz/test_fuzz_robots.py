"""Answers of chat robots, the setting that names them and words for them, damaged: nothing is believed or obeyed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.answering import Answering, http
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated, texts

from cloudstand.robots import HOOKS
from costguard.adapters.notifiers.robots.dingtalk import DingTalk
from costguard.adapters.notifiers.robots.feishu import Feishu
from costguard.adapters.notifiers.robots.layout import laid_out
from costguard.adapters.notifiers.robots.notifier import RobotNotifier, RobotVendor, read_robots
from costguard.adapters.notifiers.robots.wecom import WeCom
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import InvalidInputError, NoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
VENDORS: Mapping[str, RobotVendor] = {"feishu": Feishu(), "dingtalk": DingTalk(), "wecom": WeCom()}
OK: dict[str, Any] = {"StatusCode": 0, "StatusMessage": "success", "code": 0, "errcode": 0, "errmsg": "ok", "msg": "ok"}
kinds = st.sampled_from(sorted(VENDORS))
SLOWEST = timedelta(milliseconds=400)


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    with closing(Answering()) as answering:
        yield answering


def sent(server: Answering, kind: str, raw: bytes, *, measure: bool = False) -> Delivery | None:
    server.raw = raw
    hook = server.url.rstrip("/") + HOOKS[kind].format(token="made-up-token")
    robots = read_robots(json.dumps({f"{kind}:ops": {"hook": hook}}), private=True)
    notifier = RobotNotifier(VENDORS[kind], robots, now=lambda: NOW, private=True, timeout=SLOWEST)
    return attempt("robots", lambda: notifier.send(Message("ops", "t", "t")), NoticeError, measure=measure)


def proven(kind: str, document: object) -> bool:
    """Rule 15, said anew: the vendor's own code is the number 0, and no other code of it says otherwise."""
    if not isinstance(document, dict):
        return False
    names = ("code", "StatusCode") if kind == "feishu" else ("errcode",)
    told = [document[name] for name in names if name in document]
    return bool(told) and all(type(code) is int and code == 0 for code in told)


@fuzz(quick=8)
@given(kinds, mutated(OK, json_junk()))
def test_a_damaged_answer_delivers_only_where_it_still_says_the_code(
    server: Answering, kind: str, damaged: Mutated
) -> None:
    delivery = sent(server, kind, http(json.dumps(damaged.document).encode()))
    assert (delivery is not None) is proven(kind, damaged.document)


@fuzz(quick=8)
@given(
    kinds,
    st.sampled_from(["200 OK", "201 Created", "204 No", "302 Found", "400 Bad", "429 Many", "500 Oops", "2OO OK"]),
    st.one_of(st.just(json.dumps(OK).encode()), st.binary(max_size=60), st.sampled_from([b"0", b"[" * 9000, b"\xff"])),
    st.data(),
)
def test_any_status_and_bytes_are_told_apart(
    server: Answering, kind: str, status: str, body: bytes, data: st.DataObject
) -> None:
    whole = http(body, status=status)
    cut = data.draw(st.integers(0, len(whole)))
    good = status == "200 OK" and body == json.dumps(OK).encode()
    assert (sent(server, kind, whole) is not None) is good
    assert sent(server, kind, whole[:cut]) is None or (good and cut == len(whole))


@pytest.mark.parametrize("kind", sorted(VENDORS))
def test_a_bomb_of_an_answer_costs_no_more_than_any(server: Answering, kind: str) -> None:
    for body in (b'{"code": 0, "errcode": 0, "x": "' + b"x" * 3_000_000 + b'"}', b'{"a":' * 10_000, b"9" * 60_000):
        assert sent(server, kind, http(body), measure=True) is None


GOOD = {
    "feishu:ops": {"hook": "https://open.feishu.cn/open-apis/bot/v2/hook/made-up-1", "secret": "made-up-2"},
    "wecom:ml": {"hook": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=made-up-3"},
}


@fuzz(quick=8)
@given(mutated(GOOD, json_junk()))
def test_a_damaged_setting_is_refused_or_leads_to_the_vendors(damaged: Mutated) -> None:
    robots = attempt("robots", lambda: read_robots(json.dumps(damaged.document), private=False), InvalidInputError)
    for robot in (robots or {}).values():
        assert robot.place.host in {"open.feishu.cn", "open.larksuite.com", "oapi.dingtalk.com", "qyapi.weixin.qq.com"}
        assert robot.place.tls


@fuzz(quick=8)
@given(kinds, texts(), st.lists(st.tuples(texts(), texts()), max_size=8), st.lists(texts(), max_size=4))
def test_any_words_become_a_message_that_fits_and_commands_nothing(
    kind: str, title: str, fields: list[tuple[str, str]], lines: list[str]
) -> None:
    choice = Choice(AnswerKind.KEEP, title, AnswerRef("a", "b"), timedelta(hours=24))
    part = MessagePart("b", title, tuple(fields), tuple(lines), title, (choice,))
    message = Message("ops", title, title, tuple(fields), tuple(lines), parts=(part,))
    vendor = VENDORS[kind]

    def laid() -> str:
        found = laid_out(message, f"{kind}:ops", vendor.sheet, lambda *_: "https://a.example/keep?t=x", "en")
        return json.dumps(vendor.document(found), ensure_ascii=False)

    said = attempt("robots", laid)
    assert said is not None
    assert len(said.encode()) < 20_000
    assert "<at" not in said
    assert "<@" not in said
    assert not {"\x1b", "\u202e", "\u2066", "\x00"} & set(said)
