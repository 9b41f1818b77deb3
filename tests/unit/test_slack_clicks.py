"""What the stand-in sends when people click: requests as Slack documents them, believed by Slack's own SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs

import pytest
from slack_sdk.signature import Clock as SdkClock
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web import WebClient
from tests.golden.slack_messages import batch, choices_of, part

from cloudstand.clock import MovedClock
from cloudstand.errors import MisuseError
from cloudstand.slack.stand_in import DEFAULT_SIGNING_SECRET, SlackRequest, SlackStandIn
from costguard.adapters.notifiers.slack.notifier import SlackNotifier

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)


class Stopped(SdkClock):
    def now(self) -> float:
        return NOW.timestamp()


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(MovedClock(NOW)) as workspace:
        yield workspace


@pytest.fixture
def client(slack: SlackStandIn) -> WebClient:
    own_proxy = slack.base_url.removesuffix("/api/")
    return WebClient(slack.token, base_url=slack.base_url, proxy=own_proxy, retry_handlers=[])


def sent(slack: SlackStandIn, *numbers: int) -> str:
    """The ts of a message about these machines."""
    message = batch([part(number) for number in numbers])
    SlackNotifier(slack.token, base_url=slack.base_url).send(message)
    return slack.posted[-1].ts


def document(request: SlackRequest | None) -> dict[str, Any]:
    assert request is not None
    form = parse_qs(request.body.decode(), strict_parsing=True)
    assert set(form) == {"payload"}
    found: dict[str, Any] = json.loads(form["payload"][0])
    return found


def test_slacks_own_sdk_believes_the_signature_and_no_other(slack: SlackStandIn) -> None:
    headers, body = slack.press(sent(slack, 1), "costguard:not_mine", "U1")
    verifier = SignatureVerifier(DEFAULT_SIGNING_SECRET, Stopped())
    assert verifier.is_valid_request(body, headers)
    assert not verifier.is_valid_request(body + b"&x=1", headers)
    assert not SignatureVerifier("another", Stopped()).is_valid_request(body, headers)
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["X-Slack-Request-Timestamp"] == str(int(NOW.timestamp()))


def test_a_press_names_who_where_and_which_decision(slack: SlackStandIn) -> None:
    ts = sent(slack, 1, 2)
    wanted = str(choices_of(2)[2].of)
    found = document(slack.press(ts, "costguard:stop_now", "U1", of=wanted))
    (action,) = found["actions"]
    assert found["type"] == "block_actions"
    assert found["user"] == {"id": "U1", "username": "u1", "name": "u1", "team_id": slack.team}
    assert found["team"]["id"] == slack.team
    assert found["container"] == {
        "type": "message",
        "message_ts": ts,
        "channel_id": found["channel"]["id"],
        "is_ephemeral": False,
    }
    assert found["message"]["ts"] == ts
    assert len(found["message"]["blocks"]) == len(slack.posted[0].blocks)
    assert (action["action_id"], action["value"], action["type"]) == ("costguard:stop_now", wanted, "button")
    assert action["block_id"] == "part-1-answers"
    assert found["response_url"].startswith(slack.base_url.removesuffix("api/") + f"actions/{slack.team}/")
    assert found["trigger_id"].count(".") == 2


def test_every_press_has_a_trigger_and_an_address_of_its_own(slack: SlackStandIn) -> None:
    ts = sent(slack, 1)
    found = [document(slack.press(ts, "costguard:not_mine", "U1")) for _ in range(2)]
    assert found[0]["trigger_id"] != found[1]["trigger_id"]
    assert found[0]["response_url"] != found[1]["response_url"]


def test_a_press_can_come_from_another_workspace(slack: SlackStandIn) -> None:
    found = document(slack.press(sent(slack, 1), "costguard:not_mine", "U9", team="T0ELSEWHERE"))
    assert (found["team"]["id"], found["user"]["team_id"]) == ("T0ELSEWHERE", "T0ELSEWHERE")


@pytest.mark.parametrize(
    ("action", "of", "found"),
    [("costguard:approve", "", 0), ("costguard:not_mine", "", 2), ("costguard:keep:24h", "x", 0)],
)
def test_nobody_presses_a_button_that_is_not_there_or_not_the_only_one(
    slack: SlackStandIn, action: str, of: str, found: int
) -> None:
    ts = sent(slack, 1, 2)
    with pytest.raises(MisuseError, match=f"has {found} buttons"):
        slack.press(ts, action, "U1", of=of)
    with pytest.raises(MisuseError, match="has 0 buttons"):
        slack.press("1.000000", "costguard:not_mine", "U1")


def test_a_command_is_a_form_and_no_json(slack: SlackStandIn) -> None:
    headers, body = slack.slash("/costguard", "snooze i-0a 训练 24h & more", "U2", channel="#gpu-nlp")
    form = {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}
    assert SignatureVerifier(DEFAULT_SIGNING_SECRET, Stopped()).is_valid_request(body, headers)
    assert (form["command"], form["text"]) == ("/costguard", "snooze i-0a 训练 24h & more")
    assert (form["team_id"], form["user_id"], form["channel_name"]) == (slack.team, "U2", "gpu-nlp")
    assert f"/commands/{slack.team}/" in form["response_url"]


INPUTS: dict[str, Any] = {
    "type": "modal",
    "callback_id": "costguard:until",
    "private_metadata": "c/d",
    "notify_on_close": True,
    "title": {"type": "plain_text", "text": "Keep until"},
    "submit": {"type": "plain_text", "text": "Keep"},
    "blocks": [
        {
            "type": "input",
            "block_id": "until",
            "label": {"type": "plain_text", "text": "Until"},
            "element": {"type": "datepicker", "action_id": "until", "initial_date": "2026-03-09"},
        },
        {
            "type": "input",
            "block_id": "because",
            "label": {"type": "plain_text", "text": "Because"},
            "element": {"type": "plain_text_input", "action_id": "because", "min_length": 3, "max_length": 200},
        },
        {
            "type": "input",
            "block_id": "how",
            "optional": True,
            "label": {"type": "plain_text", "text": "How sure"},
            "element": {
                "type": "static_select",
                "action_id": "how",
                "options": [{"text": {"type": "plain_text", "text": "Quite"}, "value": "quite"}],
            },
        },
    ],
}


def opened(slack: SlackStandIn, client: WebClient, view: dict[str, Any]) -> str:
    trigger = document(slack.press(sent(slack, 1), "costguard:not_mine", "U1"))["trigger_id"]
    view_id: str = client.views_open(trigger_id=trigger, view=view)["view"]["id"]
    return view_id


def test_a_window_comes_back_with_what_was_entered(slack: SlackStandIn, client: WebClient) -> None:
    view_id = opened(slack, client, INPUTS)
    found = document(slack.submit_view(view_id, {"because": "a demo on Friday", "how": "quite"}, "U1"))
    assert found["type"] == "view_submission"
    assert found["user"]["id"] == "U1"
    assert found["view"]["state"]["values"] == {
        "until": {"until": {"type": "datepicker", "selected_date": "2026-03-09"}},
        "because": {"because": {"type": "plain_text_input", "value": "a demo on Friday"}},
        "how": {"how": {"type": "static_select", "selected_option": INPUTS["blocks"][2]["element"]["options"][0]}},
    }
    kept = found["view"]
    assert (kept["id"], kept["callback_id"], kept["private_metadata"]) == (view_id, "costguard:until", "c/d")
    assert "response_url" not in found


@pytest.mark.parametrize(
    ("entered", "why"),
    [
        ({}, "because has to be entered"),
        ({"because": "x"}, "too short or too long"),
        ({"because": "x" * 201}, "too short or too long"),
        ({"because": "demo", "how": "very"}, "no option"),
        ({"because": "demo", "why": "x"}, "asks for"),
    ],
)
def test_a_window_is_not_submitted_as_slack_would_not(
    slack: SlackStandIn, client: WebClient, entered: dict[str, str], why: str
) -> None:
    view_id = opened(slack, client, INPUTS)
    with pytest.raises(MisuseError, match=why):
        slack.submit_view(view_id, entered, "U1")
    with pytest.raises(MisuseError, match="U2 has no window"):
        slack.submit_view(view_id, entered, "U2")


def test_a_window_that_asks_for_it_tells_that_it_was_closed(slack: SlackStandIn, client: WebClient) -> None:
    found = document(slack.close_view(opened(slack, client, INPUTS), "U1"))
    assert (found["type"], found["is_cleared"], found["view"]["callback_id"]) == (
        "view_closed",
        False,
        "costguard:until",
    )
    quiet = opened(slack, client, {**INPUTS, "notify_on_close": False})
    assert slack.close_view(quiet, "U1") is None


def changed(**more: Any) -> dict[str, Any]:
    return {**INPUTS, **more}


TEXT = {"type": "plain_text", "text": "x"}
ASKS = INPUTS["blocks"][1]


@pytest.mark.parametrize(
    "view",
    [
        changed(type="home"),
        changed(title={"type": "plain_text", "text": "x" * 25}),
        changed(title={"type": "mrkdwn", "text": "x"}),
        changed(submit={"type": "plain_text", "text": "x" * 25}),
        changed(close={"type": "plain_text", "text": "x" * 25}),
        {name: value for name, value in INPUTS.items() if name != "submit"},
        changed(private_metadata="x" * 3001),
        changed(callback_id="x" * 256),
        changed(colour="red"),
        changed(blocks=[]),
        changed(blocks=[{"type": "divider"}] * 101),
        changed(blocks=[ASKS, ASKS]),
        changed(blocks=[{**ASKS, "label": {"type": "plain_text", "text": "x" * 2001}}]),
        changed(blocks=[{**ASKS, "element": {"type": "plain_text_input"}}]),
        changed(blocks=[{**ASKS, "element": {"type": "plain_text_input", "action_id": "a", "max_length": 3001}}]),
        changed(blocks=[{**ASKS, "element": {"type": "datepicker", "action_id": "a", "initial_date": "tomorrow"}}]),
        changed(blocks=[{**ASKS, "element": {"type": "static_select", "action_id": "a", "options": []}}]),
    ],
)
def test_a_window_beyond_slacks_limits_does_not_open(slack: SlackStandIn, view: dict[str, Any]) -> None:
    trigger = document(slack.press(posted(slack, BUTTON), "a", "U1"))["trigger_id"]
    assert asked(slack, "views.open", trigger_id=trigger, view=view) == "invalid_arguments"
    assert asked(slack, "views.open", trigger_id=trigger, view=INPUTS) is None


def asked(slack: SlackStandIn, method: str, **fields: Any) -> str | None:
    """The error of one call, without the wire."""
    return json.loads(slack.answer(method, slack.token, fields)[2]).get("error")  # type: ignore[no-any-return]


def posted(slack: SlackStandIn, *elements: dict[str, Any]) -> str:
    assert asked(slack, "chat.postMessage", channel="#gpu", blocks=actions(*elements)) is None
    return slack.posted[-1].ts


BUTTON = {"type": "button", "text": TEXT, "action_id": "a", "value": "v"}
CONFIRM = {"title": TEXT, "text": TEXT, "confirm": TEXT, "deny": TEXT}


def actions(*buttons: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"type": "actions", "elements": list(buttons), **more}]


def long(length: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": "x" * length}


@pytest.mark.parametrize(
    "blocks",
    [
        actions(),
        actions(*({**BUTTON, "action_id": str(number)} for number in range(26))),
        actions(BUTTON, BUTTON),
        actions({**BUTTON, "text": long(76)}),
        actions({**BUTTON, "text": {"type": "mrkdwn", "text": "x"}}),
        actions({**BUTTON, "action_id": "x" * 256}),
        actions({**BUTTON, "value": "x" * 2001}),
        actions({**BUTTON, "value": ""}),
        actions({**BUTTON, "style": "red"}),
        actions({**BUTTON, "colour": "red"}),
        actions({**BUTTON, "confirm": {**CONFIRM, "title": long(101)}}),
        actions({**BUTTON, "confirm": {**CONFIRM, "text": long(301)}}),
        actions({**BUTTON, "confirm": {**CONFIRM, "confirm": long(31)}}),
        actions({**BUTTON, "confirm": {**CONFIRM, "deny": long(31)}}),
        actions({**BUTTON, "confirm": {"title": TEXT, "text": TEXT, "confirm": TEXT}}),
        actions({**BUTTON, "type": "datepicker"}),
        actions(BUTTON, block_id="x" * 256),
        actions(BUTTON, block_id="same") + actions(BUTTON, block_id="same"),
        [ASKS],
    ],
)
def test_buttons_beyond_slacks_limits_are_invalid(slack: SlackStandIn, blocks: list[dict[str, Any]]) -> None:
    assert asked(slack, "chat.postMessage", channel="#gpu", text="t", blocks=blocks) == "invalid_blocks"
    assert slack.posted == []


def test_buttons_at_slacks_limits_are_taken(slack: SlackStandIn) -> None:
    confirm = {"title": long(100), "text": long(300), "confirm": long(30), "deny": long(30), "style": "danger"}
    longest = {**BUTTON, "text": long(75), "action_id": "x" * 255, "value": "x" * 2000, "confirm": confirm}
    rest = ({**BUTTON, "action_id": str(number)} for number in range(24))
    blocks = actions(longest, *rest, block_id="x" * 255)
    assert asked(slack, "chat.postMessage", channel="#gpu", text="t", blocks=blocks) is None
    assert len(slack.posted[0].blocks[0]["elements"]) == 25


def test_an_edit_needs_the_channels_id_and_a_text_of_four_thousand_bytes(slack: SlackStandIn) -> None:
    ts = posted(slack, BUTTON)
    channel = document(slack.press(ts, "a", "U1"))["channel"]["id"]
    assert asked(slack, "chat.update", channel="#gpu", ts=ts, text="two") == "channel_not_found"
    assert asked(slack, "chat.update", channel=channel, ts=ts, text="中" * 1334) == "msg_too_long"
    assert asked(slack, "chat.update", channel=channel, ts=ts) == "no_text"
    assert asked(slack, "chat.update", channel=channel, ts="1.000000", text="two") == "message_not_found"
    assert asked(slack, "chat.update", channel=channel, ts=ts, text="中" * 1333) is None
    assert slack.posted[0].text == "中" * 1333
    assert slack.posted[0].blocks, "blocks that an edit does not mention stay"
    assert asked(slack, "chat.update", channel=channel, ts=ts, text="t", blocks=[]) is None
    assert slack.posted[0].blocks == ()


def test_an_archived_channels_messages_stay_as_they_are() -> None:
    with SlackStandIn(archived=["#old"]) as workspace:
        told = json.loads(workspace.answer("conversations.info", workspace.token, {"channel": "#old"})[2])
        channel = told["channel"]["id"]
        assert asked(workspace, "chat.update", channel=channel, ts="1.000001", text="t") == "is_inactive"


def test_a_trigger_lives_three_seconds() -> None:
    clock = MovedClock(NOW)
    with SlackStandIn(clock) as workspace:
        ts = posted(workspace, BUTTON)
        first, second = (document(workspace.press(ts, "a", "U1"))["trigger_id"] for _ in range(2))
        clock.advance(timedelta(seconds=3))
        assert asked(workspace, "views.open", trigger_id=first, view=INPUTS) is None
        clock.advance(timedelta(seconds=1))
        assert asked(workspace, "views.open", trigger_id=second, view=INPUTS) == "expired_trigger_id"
