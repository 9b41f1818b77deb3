"""What Slack sends when somebody presses a button, types a command or submits a window: the payloads and signatures.

Sources: interaction payload reference (block_actions, view_submission, view_closed), slash commands, "Verifying
requests from Slack".
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cloudstand.errors import MisuseError

TEAM_ID, TEAM_DOMAIN, APP_ID, BOT_ID, BOT_USER = "T0SANDBOX", "sandbox", "A0COSTGUARD", "B0COSTGUARD", "UCOSTGUARD"
DEFAULT_SIGNING_SECRET = "sandbox-signing-secret-0123456789ab"  # noqa: S105 - a made-up one
_VERIFICATION_TOKEN = "sandbox-verification-token"  # noqa: S105 - Slack's older proof, which nobody should check
_BY_THE_BOT = {"type": "message", "user": BOT_USER, "bot_id": BOT_ID, "app_id": APP_ID, "team": TEAM_ID}
TRIGGER_LASTS = timedelta(seconds=3)
HOOK_LASTS, HOOK_USES = timedelta(minutes=30), 5


class SlackRequest(NamedTuple):
    """One HTTP request as Slack sends it: POST, these headers, this body."""

    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Click:
    """Who does something, where and when, and what Slack hands out for it."""

    user: str
    team: str
    at: datetime
    trigger_id: str
    response_url: str


@dataclass(slots=True)
class Trigger:
    """Opens one window, within three seconds."""

    at: datetime
    user: str
    used: bool = False


@dataclass(slots=True)
class Hook:
    """A response address: five answers within half an hour. `message_ts` is the message it came from, if any."""

    at: datetime
    user: str
    channel: str
    message_ts: str = ""
    uses: int = 0


@dataclass(slots=True)
class View:
    """A window that is open."""

    view_id: str
    user: str
    view: Mapping[str, Any]
    at: datetime


def signed(fields: Mapping[str, str], secret: str, at: datetime) -> SlackRequest:
    """`fields` as a form, signed with `secret` at this moment."""
    body = urlencode(fields).encode()
    stamp = str(int(at.timestamp()))
    digest = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json,*/*",
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
    }
    return SlackRequest(headers, body)


def block_actions(
    click: Click,
    channel: Mapping[str, str],
    message: Mapping[str, Any],
    block: Mapping[str, Any],
    element: Mapping[str, Any],
) -> dict[str, Any]:
    """A button of a message was pressed."""
    container: dict[str, Any] = {"type": "message", "message_ts": message["ts"], "channel_id": channel["id"]}
    if message.get("thread_ts"):
        container["thread_ts"] = message["thread_ts"]
    told = {name: element[name] for name in ("action_id", "text", "value", "style", "confirm") if name in element}
    action = {**told, "block_id": block.get("block_id", ""), "type": element["type"], "action_ts": _stamp(click.at)}
    return {
        "type": "block_actions",
        **_who(click),
        "container": {**container, "is_ephemeral": False},
        "trigger_id": click.trigger_id,
        "channel": dict(channel),
        "message": {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT_ID,
            "app_id": APP_ID,
            "team": TEAM_ID,
            **message,
        },
        "state": {"values": {}},
        "response_url": click.response_url,
        "actions": [action],
    }


def slash(click: Click, channel: Mapping[str, str], command: str, text: str) -> dict[str, str]:
    """The form of a slash command; it is no JSON."""
    return {
        "token": _VERIFICATION_TOKEN,
        "team_id": click.team,
        "team_domain": TEAM_DOMAIN,
        "channel_id": channel["id"],
        "channel_name": channel["name"],
        "user_id": click.user,
        "user_name": click.user.lower(),
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        "response_url": click.response_url,
        "trigger_id": click.trigger_id,
    }


def view_submission(click: Click, opened: View, values: Mapping[str, str]) -> dict[str, Any]:
    """A window was submitted; `values` is what was entered, by the element's action id.

    Raises:
        MisuseError: Slack would not have let this be submitted.
    """
    view = _as_kept(opened)
    view["state"] = {"values": _entered(opened.view["blocks"], values)}
    return {
        "type": "view_submission",
        **_who(click),
        "trigger_id": click.trigger_id,
        "view": view,
        "response_urls": [],
    }


def view_closed(click: Click, opened: View) -> dict[str, Any]:
    """A window was closed without being submitted."""
    return {"type": "view_closed", **_who(click), "view": _as_kept(opened), "is_cleared": False}


def payload(document: Mapping[str, Any]) -> dict[str, str]:
    """The form that an interaction is sent as."""
    return {"payload": json.dumps(document, ensure_ascii=False, separators=(",", ":"))}


def _who(click: Click) -> dict[str, Any]:
    name = click.user.lower()
    return {
        "user": {"id": click.user, "username": name, "name": name, "team_id": click.team},
        "api_app_id": APP_ID,
        "token": _VERIFICATION_TOKEN,
        "team": {"id": click.team, "domain": TEAM_DOMAIN},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def _as_kept(opened: View) -> dict[str, Any]:
    """A view as Slack sends it back: with what it was opened with, and the defaults."""
    given = dict(opened.view)
    return {
        "id": opened.view_id,
        "team_id": TEAM_ID,
        "type": "modal",
        "blocks": given["blocks"],
        "private_metadata": given.get("private_metadata", ""),
        "callback_id": given.get("callback_id", ""),
        "state": {"values": {}},
        "hash": f"{_stamp(opened.at)}.{opened.view_id.lower()}",
        "title": given["title"],
        "clear_on_close": given.get("clear_on_close", False),
        "notify_on_close": given.get("notify_on_close", False),
        "close": given.get("close"),
        "submit": given.get("submit"),
        "previous_view_id": None,
        "root_view_id": opened.view_id,
        "app_id": APP_ID,
        "external_id": given.get("external_id", ""),
        "app_installed_team_id": TEAM_ID,
        "bot_id": BOT_ID,
    }


def _entered(blocks: Sequence[Mapping[str, Any]], values: Mapping[str, str]) -> dict[str, Any]:
    """`view.state.values`: by block, then by action, each in the form of its element."""
    inputs = {block["element"]["action_id"]: block for block in blocks if block["type"] == "input"}
    if not set(values) <= set(inputs):
        message = f"the window asks for {sorted(inputs)}, not for {sorted(set(values) - set(inputs))}"
        raise MisuseError(message)
    found: dict[str, Any] = {}
    for action_id, block in inputs.items():
        entered = _state(block["element"], values.get(action_id))
        if not block.get("optional", False) and not any(value for name, value in entered.items() if name != "type"):
            message = f"the window is not submitted: {action_id} has to be entered"
            raise MisuseError(message)
        found[block.get("block_id", action_id)] = {action_id: entered}
    return found


def _state(element: Mapping[str, Any], value: str | None) -> dict[str, Any]:
    kind = element["type"]
    if kind == "datepicker":
        return {"type": kind, "selected_date": value or element.get("initial_date")}
    if kind in {"static_select", "radio_buttons"}:
        chosen = next((option for option in element["options"] if option["value"] == value), None)
        if value is not None and chosen is None:
            message = f"{element['action_id']} has no option {value!r}"
            raise MisuseError(message)
        return {"type": kind, "selected_option": chosen or element.get("initial_option")}
    text = value if value is not None else element.get("initial_value")
    if text is not None and not element.get("min_length", 0) <= len(text) <= element.get("max_length", 3000):
        message = f"{element['action_id']} is too short or too long"
        raise MisuseError(message)
    return {"type": kind, "value": text}


def _stamp(at: datetime) -> str:
    return f"{at.timestamp():.6f}"
