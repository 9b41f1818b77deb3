"""The Slack stand-in, called through Slack's own SDK: it refuses what Slack refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web import WebClient

from cloudstand.clock import MovedClock
from cloudstand.slack.stand_in import DEFAULT_TOKEN, SlackStandIn

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
WORDS = {"type": "mrkdwn", "text": "words"}


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(NOW)


@pytest.fixture
def slack(clock: MovedClock) -> Iterator[SlackStandIn]:
    with SlackStandIn(clock, channels=["#gpu", "#private"], not_joined=["#private"]) as workspace:
        yield workspace


@pytest.fixture
def client(slack: SlackStandIn) -> WebClient:
    own_proxy = slack.base_url.removesuffix("/api/")
    return WebClient(DEFAULT_TOKEN, base_url=slack.base_url, proxy=own_proxy, retry_handlers=[])


def refused(client: WebClient, **fields: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel="#gpu", **fields)
    return str(caught.value.response["error"])


def section(length: int) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * length}}


def test_messages_are_kept_in_order_with_their_time(slack: SlackStandIn, client: WebClient, clock: MovedClock) -> None:
    first = client.chat_postMessage(channel="#gpu", text="one", blocks=[section(3000)])
    clock.advance(timedelta(days=1))
    client.chat_postMessage(channel=first["channel"], text="two", thread_ts=first["ts"])
    assert [(p.channel, p.text, p.at) for p in slack.posted] == [
        ("#gpu", "one", NOW),
        ("#gpu", "two", NOW + timedelta(days=1)),
    ]
    assert slack.posted[0].blocks == (section(3000),)
    assert slack.posted[1].thread == first["ts"]
    assert slack.posted[0].ts < slack.posted[1].ts


@pytest.mark.parametrize(
    "blocks",
    [
        [section(3001)],
        [section(0)],
        [{"type": "section"}],
        [{"type": "section", "text": {"type": "markdown", "text": "x"}}],
        [{"type": "section", "text": {**WORDS, "colour": "red"}}],
        [{"type": "section", "fields": []}],
        [{"type": "section", "fields": [WORDS] * 11}],
        [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x" * 2001}]}],
        [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}],
        [{"type": "header", "text": WORDS}],
        [{"type": "context", "elements": [WORDS] * 11}],
        [{"type": "marquee"}],
        [{"type": "divider"}] * 51,
        ["words"],
    ],
)
def test_blocks_beyond_slacks_limits_are_invalid(client: WebClient, slack: SlackStandIn, blocks: list[Any]) -> None:
    assert refused(client, text="t", blocks=blocks) == "invalid_blocks"
    assert slack.posted == []


def test_blocks_at_slacks_limits_are_taken(client: WebClient, slack: SlackStandIn) -> None:
    fields = {"type": "section", "fields": [WORDS] * 10}
    client.chat_postMessage(channel="#gpu", text="t", blocks=[fields, *[{"type": "divider"}] * 49])
    assert len(slack.posted[0].blocks) == 50


def test_what_else_a_message_may_not_be(client: WebClient) -> None:
    assert refused(client, text="x" * 40_001) == "msg_too_long"
    assert refused(client, text="t", blocks=[section(3000)] * 5) == "msg_blocks_too_long"


def test_a_message_can_be_edited(client: WebClient, slack: SlackStandIn) -> None:
    first = client.chat_postMessage(channel="#gpu", text="one")
    client.chat_update(channel=first["channel"], ts=first["ts"], text="kept")
    assert [(posted.text, posted.edited) for posted in slack.posted] == [("kept", True)]
    with pytest.raises(SlackApiError, match="message_not_found"):
        client.chat_update(channel=first["channel"], ts="1.000000", text="kept")


def test_the_bot_can_see_and_join_channels(client: WebClient) -> None:
    assert client.auth_test()["user"] == "costguard"
    listed = client.conversations_list()["channels"]
    assert [(channel["name"], channel["is_member"]) for channel in listed] == [("gpu", True), ("private", False)]
    client.conversations_join(channel=listed[1]["id"])
    assert client.conversations_info(channel=listed[1]["id"])["channel"]["is_member"]
    assert client.chat_postMessage(channel="#private", text="t")["ok"]


def test_a_form_is_understood_as_json_is(slack: SlackStandIn) -> None:
    form = urlencode(
        {"token": DEFAULT_TOKEN, "channel": "#gpu", "text": "t", "blocks": json.dumps([{"type": "divider"}])}
    )
    assert call(slack, "chat.postMessage", form.encode()) == (200, None)
    assert slack.posted[0].blocks == ({"type": "divider"},)


@pytest.mark.parametrize(
    ("method", "token", "body", "error"),
    [
        ("chat.delete", DEFAULT_TOKEN, b"{}", "unknown_method"),
        ("chat.postMessage", "", b"{}", "not_authed"),
        ("chat.postMessage", "xoxb-other", b"{}", "invalid_auth"),
        ("chat.postMessage", DEFAULT_TOKEN, b"{", "invalid_json"),
        ("chat.postMessage", DEFAULT_TOKEN, b"[]", "invalid_json"),
        ("chat.postMessage", DEFAULT_TOKEN, b"{}", "channel_not_found"),
        ("chat.postMessage", DEFAULT_TOKEN, b'{"channel":"#gpu","text":""}', "no_text"),
        ("chat.postMessage", DEFAULT_TOKEN, b'{"channel":"#gpu","text":5}', "invalid_arguments"),
        ("chat.postMessage", DEFAULT_TOKEN, b'{"channel":"#gpu","blocks":"["}', "invalid_blocks_format"),
    ],
)
def test_a_bad_call_is_answered_with_slacks_error(
    slack: SlackStandIn, method: str, token: str, body: bytes, error: str
) -> None:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    assert call(slack, method, body, headers) == (200, error)


def test_too_many_calls_are_answered_as_often_as_was_set(slack: SlackStandIn) -> None:
    slack.faults.rate_limits = 2
    assert [call(slack, "auth.test", b"")[0] for _ in range(3)] == [429, 429, 200]


def call(
    slack: SlackStandIn, method: str, body: bytes, headers: dict[str, str] | None = None
) -> tuple[int, str | None]:
    """Status and error of one bare call."""
    request = Request(slack.base_url + method, body, headers or {})  # noqa: S310 - loopback
    try:
        with build_opener(ProxyHandler({})).open(request) as response:
            return response.status, json.loads(response.read()).get("error")
    except HTTPError as err:
        with err:
            return err.code, json.loads(err.read()).get("error")
