"""What Slack sends: proven by its bytes, and read as nothing else than what it says."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import pytest

from costguard.adapters.notifiers.slack.requests import (
    Click,
    Command,
    ForgedRequestError,
    Nothing,
    Submission,
    UnreadableRequestError,
    parse,
    signed,
    until_window,
    verify,
)
from costguard.domain.answers import AnswerKind, AnswerRef, Person

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=timezone.utc)
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BODY = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
BODY += b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url="
BODY += b"https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
BODY += b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
SIGNED = {
    "x-slack-request-timestamp": "1531420618",
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
}


def test_the_vendors_own_example_is_proven() -> None:
    """The values of "Verifying requests from Slack"."""
    proof = verify(SIGNED, BODY, SECRET, datetime.fromtimestamp(1531420618, tz=timezone.utc))
    assert (proof.signature, proof.timestamp, proof.retried) == (*reversed(SIGNED.values()), False)


@pytest.mark.parametrize(
    "changes",
    [
        {"x-slack-signature": SIGNED["x-slack-signature"].upper()},
        {"x-slack-signature": SIGNED["x-slack-signature"] + "," + SIGNED["x-slack-signature"]},
        {"x-slack-signature": SIGNED["x-slack-signature"][:-1]},
        {"x-slack-signature": "v1" + SIGNED["x-slack-signature"][2:]},
        {"x-slack-request-timestamp": "1531420618.0"},
        {"x-slack-request-timestamp": "+1531420618"},
        {"x-slack-request-timestamp": " 1531420618"},
        {"x-slack-request-timestamp": "1531420618\n"},
        {"x-slack-request-timestamp": "01531420618"},
        {"x-slack-request-timestamp": "9" * 400},
        {"x-slack-request-timestamp": "١٥٣١٤٢٠٦١٨"},
        {"x-slack-request-timestamp": ""},
    ],
)
def test_nothing_near_a_proof_is_one(changes: Mapping[str, str]) -> None:
    with pytest.raises(ForgedRequestError):
        verify({**SIGNED, **changes}, BODY, SECRET, datetime.fromtimestamp(1531420618, tz=timezone.utc))


@pytest.mark.parametrize(
    "timestamp",
    ["+1773145800", " 1773145800", "1773145800\n", "01773145800", "1_773_145_800", "１７７３１４５８００"],  # noqa: RUF001
)
def test_a_timestamp_is_digits_even_where_its_signature_is_good(timestamp: str) -> None:
    """`int` reads more than digits: two texts for one moment would be two proofs for one request."""
    made = hmac.new(SECRET.encode(), b"v0:" + timestamp.encode() + b":a=1", sha256).hexdigest()
    headers = {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={made}"}
    with pytest.raises(ForgedRequestError):
        verify(headers, b"a=1", SECRET, NOW)


@pytest.mark.parametrize(("seconds", "good"), [(-301, False), (-300, True), (300, True), (301, False)])
def test_five_minutes_either_way_and_no_second_more(seconds: int, good: bool) -> None:  # noqa: FBT001
    headers = signed(b"a=1", SECRET, NOW)
    when = NOW + timedelta(seconds=seconds)
    if good:
        verify(headers, b"a=1", SECRET, when)
        return
    with pytest.raises(ForgedRequestError):
        verify(headers, b"a=1", SECRET, when)


def test_an_empty_secret_proves_nothing() -> None:
    with pytest.raises(ForgedRequestError):
        verify(signed(b"a=1", "", NOW), b"a=1", "", NOW)


def test_a_second_proof_for_the_same_bytes_is_another_one() -> None:
    assert verify({**signed(b"a=1", SECRET, NOW), "x-slack-retry-num": "1"}, b"a=1", SECRET, NOW).retried


def click(**changes: Any) -> dict[str, Any]:
    action = {"type": "button", "action_id": "costguard:keep:24h", "value": "case1/decision1"}
    return {
        "type": "block_actions",
        "team": {"id": "T0123ABCD"},
        "user": {"id": "U0123ABCD", "team_id": "T0123ABCD", "username": "vision-lead"},
        "channel": {"id": "C0123ABCD"},
        "actions": [action],
        "response_url": "https://hooks.slack.com/actions/T0/1/x",
        "trigger_id": "1.2.x",
        **changes,
    }


def form(payload: object) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()


def test_a_click_is_read_whole() -> None:
    assert parse(form(click())) == Click(
        kind=AnswerKind.KEEP,
        of=AnswerRef("case1", "decision1"),
        by=Person("slack", "U0123ABCD", "T0123ABCD", "vision-lead"),
        channel="C0123ABCD",
        length=timedelta(hours=24),
        response_url="https://hooks.slack.com/actions/T0/1/x",
        trigger_id="1.2.x",
    )


@pytest.mark.parametrize(
    ("user", "team", "known"),
    [
        ({"id": "U1AB", "team_id": "T2AB"}, {"id": "T1AB"}, False),  # a guest of a shared channel
        ({"id": "U1AB", "team_id": "T1AB"}, {"id": "T2AB"}, False),  # clicked where the app is somebody else's
        ({"id": "U1AB"}, {"id": "T1AB"}, True),
        ({"id": "U1AB", "team_id": "T1AB"}, None, True),  # installed for a whole organisation
        ({"id": "U1AB"}, None, False),
    ],
)
def test_whoever_clicks_belongs_to_one_workspace_or_to_none(
    user: dict[str, str],
    team: dict[str, str] | None,
    known: bool,  # noqa: FBT001
) -> None:
    said = parse(form(click(user=user, team=team)))
    assert isinstance(said, Click)
    assert (said.by.team == "T1AB") is known


@pytest.mark.parametrize(
    "payload",
    [
        click(actions=[]),
        click(actions=[click()["actions"][0]] * 2),
        click(actions="x"),
        click(channel=None),
        click(channel={"id": "#nlp"}),
        click(user={"id": ["U1"]}),
        click(user=None),
        click(team="T1"),
        click(actions=[{"type": "overflow", "action_id": "costguard:keep:24h", "value": "a/b"}]),
        click(actions=[{"type": "button", "action_id": "costguard:keep:024h", "value": "a/b"}]),
        click(actions=[{"type": "button", "action_id": "costguard:keep:24h ", "value": "a/b"}]),
        click(actions=[{"type": "button", "action_id": "costguard:keep:24h", "value": "a/b/../c"}]),
        click(actions=[{"type": "button", "action_id": "costguard:keep:24h"}]),
        click(type="dialog_submission"),
        {"type": "view_submission", "view": None},
    ],
)
def test_a_click_of_another_form_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRequestError):
        parse(form(payload))


def test_a_response_address_of_absurd_length_is_left_out() -> None:
    said = parse(form(click(response_url="https://hooks.slack.com/actions/" + "x" * 900, trigger_id="a b")))
    assert isinstance(said, Click)
    assert (said.response_url, said.trigger_id) == ("", "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"payload",
        form(click()) + b"&" + form(click()),
        b"a=1",
        b"ssl_check=2",
        b"payload=%ff",
        b"&".join(b"a%d=1" % number for number in range(50)),
        b"payload=" + b"%5B" * 50_000,
        b"command=/other&user_id=U1AB&team_id=T1AB&channel_id=C1AB",
        b"command=/costguard&user_id=&team_id=T1AB&channel_id=C1AB",
    ],
)
def test_a_body_of_another_form_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableRequestError):
        parse(body)


def test_a_command_is_read_whole_and_cut() -> None:
    fields = {"command": "/costguard", "text": " status ", "user_id": "U1AB", "team_id": "T1AB", "channel_id": "D1AB"}
    assert parse(urlencode(fields).encode()) == Command(Person("slack", "U1AB", "T1AB"), "D1AB", "status")
    cut = parse(urlencode({**fields, "text": "x" * 9000, "user_name": "y" * 9000}).encode())
    assert isinstance(cut, Command)
    assert (len(cut.text), len(cut.by.name)) == (500, 80)


def test_the_window_comes_back_as_it_was_opened() -> None:
    words = dict.fromkeys(("title", "submit", "cancel", "what", "until", "because"), "words")
    of = AnswerRef("case1", "decision1")
    view = until_window(AnswerKind.KEEP, of, "C0123ABCD", words, NOW.date(), NOW.date())
    values = {"until": {"until": {"selected_date": "2026-03-12"}}, "because": {"because": {"value": " demo "}}}
    sent = {
        "type": "view_submission",
        "team": {"id": "T1AB"},
        "user": {"id": "U1AB"},
        "view": {
            "callback_id": view["callback_id"],
            "private_metadata": view["private_metadata"],
            "state": {"values": values},
        },
    }

    said = parse(form(sent))

    assert said == Submission(of, Person("slack", "U1AB", "T1AB"), "C0123ABCD", NOW.date() + timedelta(2), "demo")
    values["until"]["until"]["selected_date"] = "2026-02-30"
    assert isinstance(empty := parse(form(sent)), Submission)
    assert empty.until is None
    sent["view"]["callback_id"] = "another"  # type: ignore[index]
    assert parse(form(sent)) == Nothing()
