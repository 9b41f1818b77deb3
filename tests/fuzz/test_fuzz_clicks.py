"""Requests from outside, changed: none of them is taken for Slack's, and none that is Slack's does more than it says.

`python -m tests.fuzz clicks --examples 4500` tries over 100,000 changed requests: an example is a seed of 25.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated

from costguard.adapters.notifiers.slack.requests import (
    Click,
    Command,
    Submission,
    UnreadableRequestError,
    parse,
    signed,
)
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.engine.ledger.publications import seq_of
from costguard.faas.http import HttpRequest
from costguard.faas.slack_actions import answer_slack
from costguard.report.words.sentences import Language

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=timezone.utc)
SECRET = "made-up-signing-secret-0123456789"
A_SEED = 25
CLICK: dict[str, Any] = {
    "type": "block_actions",
    "team": {"id": "T0123ABCD", "domain": "acme"},
    "user": {"id": "U0123ABCD", "username": "vision-lead", "team_id": "T0123ABCD"},
    "container": {"type": "message", "message_ts": "1773145800.000100", "channel_id": "C0123ABCD"},
    "trigger_id": "1773145800.1.abc",
    "channel": {"id": "C0123ABCD", "name": "nlp"},
    "response_url": "https://hooks.slack.com/actions/T0123ABCD/1/abc",
    "actions": [
        {"type": "button", "action_id": "costguard:stop_now", "value": "case1/decision1", "block_id": "part-0"}
    ],
}
HASH = "4c1388307060" + "0" * 52
FOR_A_POLICY: dict[str, Any] = {
    **CLICK,
    "actions": [
        {"type": "button", "action_id": "costguard:approve", "value": f"publication2/{HASH}", "block_id": "part-0"}
    ],
}
WINDOW: dict[str, Any] = {
    "type": "view_submission",
    "team": {"id": "T0123ABCD"},
    "user": {"id": "U0123ABCD", "name": "vision-lead"},
    "view": {
        "callback_id": "costguard_keep",
        "private_metadata": "case1/decision1 C0123ABCD",
        "state": {
            "values": {
                "until": {"until": {"type": "datepicker", "selected_date": "2026-03-14"}},
                "because": {"because": {"type": "plain_text_input", "value": "a demo"}},
            }
        },
    },
}
COMMAND = {
    "command": "/costguard",
    "text": "snooze i-1 24h",
    "team_id": "T0123ABCD",
    "channel_id": "C0123ABCD",
    "user_id": "U0123ABCD",
}
BODIES = (
    urlencode({"payload": json.dumps(CLICK)}).encode(),
    urlencode({"payload": json.dumps(FOR_A_POLICY)}).encode(),
    urlencode({"payload": json.dumps(WINDOW)}).encode(),
    urlencode(COMMAND).encode(),
)
TIMESTAMP, SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"


class Still:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def never() -> NoReturn:
    raise AssertionError("a request that nobody proved came to the ledger")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def original(draw: random.Random) -> HttpRequest:
    body = draw.choice(BODIES)
    return HttpRequest("POST", "/slack", "", signed(body, SECRET, NOW), body)


def _with_body(request: HttpRequest, body: bytes) -> HttpRequest:
    return replace(request, body=body)


def _with_header(request: HttpRequest, name: str, value: str) -> HttpRequest:
    return replace(request, headers={**request.headers, name: value})


def _a_byte(request: HttpRequest, draw: random.Random) -> HttpRequest:
    at, body = draw.randrange(len(request.body) or 1), bytearray(request.body or b"x")
    body[at] ^= 1 << draw.randrange(8)
    return _with_body(request, bytes(body))


def _a_piece(request: HttpRequest, draw: random.Random) -> HttpRequest:
    first, second = sorted(draw.randrange(len(request.body) + 1) for _ in range(2))
    body = request.body
    return _with_body(request, draw.choice((body[:first] + body[second:], body + body[first:second], body[first:])))


def _a_field(request: HttpRequest, draw: random.Random) -> HttpRequest:
    more = draw.choice((b"&user_id=U0APPROV1", b"&payload=%7B%7D", b"&", b"\n", b"\0", b"&team_id=T0123ABCD"))
    return _with_body(request, draw.choice((request.body + more, more.lstrip(b"&") + b"&" + request.body)))


def _the_order(request: HttpRequest, draw: random.Random) -> HttpRequest:
    fields = request.body.split(b"&")
    draw.shuffle(fields)
    return _with_body(request, b"&".join(fields))


def _the_coding(request: HttpRequest, draw: random.Random) -> HttpRequest:
    """The same form in other bytes: what is signed is bytes."""
    fields = {name: values[0] for name, values in parse_qs(request.body.decode("ascii", "ignore")).items()}
    again = urlencode(fields, safe=draw.choice(("/", "{}", ":", '"')))
    return _with_body(
        request, draw.choice((again, again.replace("+", "%20"), again.replace("%2", "%2").lower())).encode()
    )


def _the_person(request: HttpRequest, _: random.Random) -> HttpRequest:
    return _with_body(request, request.body.replace(b"U0123ABCD", b"U0APPROV1"))


def _the_time(request: HttpRequest, draw: random.Random) -> HttpRequest:
    when = int(NOW.timestamp())
    near = f"{when + draw.choice((-1, 1)) * draw.randrange(1, 600)}"
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in str(when))  # digits that int() takes, and ASCII does not
    forms = (near, f"0{when}", f"+{when}", f"{when}.0", f"{when} ", f"-{when}", f"{when}e0", wide, "", "9" * 30)
    value = draw.choice(forms)
    return _with_header(request, TIMESTAMP, value)


def _the_signature(request: HttpRequest, draw: random.Random) -> HttpRequest:
    good = request.headers.get(SIGNATURE, "v0=00")
    at = draw.randrange(3, len(good))
    flipped = good[:at] + draw.choice("0123456789abcdef") + good[at + 1 :]
    cut = (good[:-1], good + "0", good[3:], f"v1{good[2:]}", "", "v0=", good.replace("v0=", "v0:"))
    value = draw.choice((flipped, good.upper(), f"{good},{good}", f" {good}", f"{good}\n", "v0=" + "0" * 64, *cut))
    return _with_header(request, SIGNATURE, value)


def _another_secret(request: HttpRequest, draw: random.Random) -> HttpRequest:
    other = draw.choice((SECRET[:-1], SECRET + "x", SECRET.upper(), "x"))
    return replace(request, headers=signed(request.body, other, NOW))


def _too_late(request: HttpRequest, draw: random.Random) -> HttpRequest:
    away = timedelta(seconds=draw.randrange(301, 10**7)) * draw.choice((-1, 1))
    return replace(request, headers=signed(request.body, SECRET, NOW + away))


def _unsigned(request: HttpRequest, draw: random.Random) -> HttpRequest:
    gone = draw.choice((SIGNATURE, TIMESTAMP))
    return replace(request, headers={name: value for name, value in request.headers.items() if name != gone})


def _the_publication(request: HttpRequest, draw: random.Random) -> HttpRequest:
    """The press for one publication, for another one or a case."""
    other = draw.choice((b"publication3", b"publication02", b"case1", b"publication99999999", b"publication"))
    return _with_body(request, request.body.replace(b"publication2", other).replace(HASH.encode(), b"f" * 64))


def _of_another(request: HttpRequest, draw: random.Random) -> HttpRequest:
    """The proof of one request, for another."""
    return _with_body(request, draw.choice(BODIES))


CHANGES: tuple[Callable[[HttpRequest, random.Random], HttpRequest], ...] = (
    *(_a_byte, _a_piece, _a_field, _the_order, _the_coding, _the_person, _the_publication),
    *(_the_time, _the_signature, _another_secret, _too_late, _unsigned, _of_another),
)


@fuzz(quick=30)
@given(st.integers(0, 2**64 - 1))
def test_no_changed_request_is_accepted(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - made-up attacks, the same for the same seed
    for _ in range(A_SEED):
        request = original(draw)
        changed = request
        for change in draw.sample(CHANGES, draw.choice((1, 1, 1, 2, 3))):
            changed = change(changed, draw)
        if changed == request:
            continue
        reply = attempt("clicks", lambda: answer_slack(changed, SECRET, Language.EN, Still(), never))  # noqa: B023
        assert reply is not None
        assert reply.status == 401, changed


def test_what_was_not_changed_is_slacks() -> None:
    """Else the test above would prove nothing."""
    for body in BODIES:
        request = HttpRequest("POST", "/slack", "", signed(body, SECRET, NOW), body)
        with pytest.raises(AssertionError, match="came to the ledger"):
            answer_slack(request, SECRET, Language.EN, Still(), never)


@fuzz(quick=15)
@given(st.sampled_from((CLICK, FOR_A_POLICY, WINDOW)).flatmap(lambda document: mutated(document, json_junk())))
def test_a_damaged_payload_is_refused_or_says_no_more_than_it_does(damaged: Mutated) -> None:
    """Signed by Slack itself: nothing but bounded words and ids comes of it."""
    try:
        body = urlencode({"payload": json.dumps(damaged.document)}).encode()
    except (ValueError, RecursionError):
        return
    said = attempt("clicks", lambda: parse(body), UnreadableRequestError)
    if isinstance(said, (Click, Submission, Command)):
        assert len(said.by.id) + len(said.by.team) + len(said.by.name) < 200
        assert said.by.via == "slack"
        assert said.channel.isascii()
        assert said.channel.isalnum()
    if isinstance(said, Click):
        assert said.length is None or (said.kind is AnswerKind.KEEP and said.length > timedelta(0))
        assert len(str(said.of)) <= 129
        seq = seq_of(said.of)
        assert seq is None or (0 < seq < 10**8 and str(said.of) == f"publication{seq}/{said.of.decision_id}")


@fuzz(quick=30)
@given(
    st.one_of(st.text(max_size=80), st.from_regex(r"\Apublication[0-9]{0,12}/[0-9a-zA-Z/]{0,70}\Z"))
    | st.builds("publication{}/{}".format, st.integers(), st.text(alphabet="0123456789abcdef", max_size=66))
)
def test_what_a_button_carries_names_one_publication_or_none(value: str) -> None:
    """Two numbers never read as one: whatever is read is written back as it came."""
    of = attempt("clicks", lambda: AnswerRef.parse(value))
    seq = seq_of(of) if of is not None else None
    assert seq is None or value == f"publication{seq}/{of.decision_id if of is not None else ''}"
