"""What Slack sends when people answer: proven first, then read strictly. Pure.

Sources: "Verifying requests from Slack" (v0, HMAC-SHA256 over `v0:TIMESTAMP:BODY`, five minutes); "Handling user
interaction" (`block_actions`, `view_submission`); "Implementing slash commands"; all are forms in UTF-8.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

from costguard.domain.answers import AnswerKind, AnswerRef, Person
from costguard.domain.errors import InvalidInputError

WINDOW = timedelta(minutes=5)
KEEP_WINDOW, EXCEPT_WINDOW = "costguard_keep", "costguard_except"
_WINDOWS = {KEEP_WINDOW: AnswerKind.KEEP, EXCEPT_WINDOW: AnswerKind.EXCEPT}
UNTIL, BECAUSE = "until", "because"
LONGEST_REASON = 200
_TIMESTAMP = re.compile(r"[1-9][0-9]{8,10}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)
_MOST_FIELDS = 40
_ID = re.compile(r"[A-Z][A-Z0-9]{1,24}", re.ASCII)
_ACTION = re.compile(
    r"costguard:(?P<kind>keep|stop_now|approve|not_mine|start|except)(?::(?P<hours>[1-9][0-9]{0,3})h)?", re.ASCII
)
_OURS = "costguard:"
_TRIGGER = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
_LONGEST_ADDRESS = 500
_LONGEST_TEXT = 500
_LONGEST_NAME = 80
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class ForgedRequestError(InvalidInputError):
    """Nobody knows who sent this. Its words are for the log; whoever sent it is told nothing."""


class UnreadableRequestError(InvalidInputError):
    """Slack sent it, and it is of no form that is understood."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What proved a request, which is used once. `retried`: Slack says that it sent it before."""

    signature: str
    timestamp: str
    retried: bool = False


@dataclass(frozen=True, slots=True)
class Click:
    """A button below a notice. `length` is None for what is no `KEEP`, and for a `KEEP` whose length is to be asked."""

    kind: AnswerKind
    of: AnswerRef
    by: Person
    channel: str
    length: timedelta | None = None
    response_url: str = ""
    trigger_id: str = ""


@dataclass(frozen=True, slots=True)
class Submission:
    """The window "until … because …", sent back, for a `kind`. `until` None and `reason` empty: not filled in."""

    of: AnswerRef
    by: Person
    channel: str
    until: date | None
    reason: str
    kind: AnswerKind = AnswerKind.KEEP


@dataclass(frozen=True, slots=True)
class Command:
    """`/costguard` and what was written behind it."""

    by: Person
    channel: str
    text: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """Slack asks whether anybody is there, or tells of what needs no answer: a window closed, another app's button."""


def verify(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> Proof:
    """The proof that Slack sent just these bytes within the last five minutes.

    `headers` have their names in small letters, and each once: of two joined by a comma neither is a signature.

    Raises:
        ForgedRequestError: there is none.
    """
    if not secret:
        raise ForgedRequestError("no signing secret is set, so nothing can be proven")
    timestamp, signature = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        raise ForgedRequestError("a timestamp or signature is missing, or has another form than Slack's")
    made = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, sha256).hexdigest()
    if not hmac.compare_digest(f"v0={made}".encode(), signature.encode()):
        raise ForgedRequestError("the signature is not that of these bytes")
    if abs(now.timestamp() - int(timestamp)) > WINDOW.total_seconds():
        raise ForgedRequestError("the timestamp is more than five minutes away")
    return Proof(signature, timestamp, "x-slack-retry-num" in headers)


def signed(body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """The headers that prove `body`, for requests sent by hand."""
    timestamp = str(int(now.timestamp()))
    made = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, sha256).hexdigest()
    return {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={made}"}


def parse(body: bytes) -> Click | Submission | Command | Nothing:
    """What a proven request says.

    Raises:
        UnreadableRequestError: none of the forms this program asked Slack for.
    """
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=_MOST_FIELDS,
            errors="strict",
        )
    except ValueError as err:  # UnicodeDecodeError is one
        raise UnreadableRequestError("not a form in UTF-8") from err
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise UnreadableRequestError("a field is there twice")
    if "payload" in fields:
        return _interaction(_document(fields["payload"]))
    if "command" in fields:
        return _command(fields)
    if fields.get("ssl_check") == "1":
        return Nothing()
    raise UnreadableRequestError("neither an interaction nor a command")


def until_window(
    kind: AnswerKind, of: AnswerRef, channel: str, words: Mapping[str, str], first: date, last: date
) -> dict[str, Any]:
    """The window "until … because …"; `words` are escaped: title, submit, cancel, what, until, because.

    API: views.open; a title has 24 characters at most. A date picker takes no bounds: the answer is checked.
    """

    def text(name: str) -> dict[str, Any]:
        return {"type": "plain_text", "text": words[name]}

    picker = {"type": "datepicker", "action_id": UNTIL, "initial_date": min(first, last).isoformat()}
    because = {"type": "plain_text_input", "action_id": BECAUSE, "min_length": 1, "max_length": LONGEST_REASON}
    return {
        "type": "modal",
        "callback_id": next(name for name, each in _WINDOWS.items() if each is kind),
        "private_metadata": f"{of} {channel}",
        "title": text("title"),
        "submit": text("submit"),
        "close": text("cancel"),
        "blocks": [
            {"type": "section", "block_id": "what", "text": text("what")},
            {"type": "input", "block_id": UNTIL, "label": text("until"), "element": picker},
            {"type": "input", "block_id": BECAUSE, "label": text("because"), "element": because},
        ],
    }


def _document(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as err:
        raise UnreadableRequestError("a payload that is no JSON") from err
    return _mapping(document)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableRequestError("a key is there twice")
    return found


def _interaction(payload: Mapping[str, Any]) -> Click | Submission | Nothing:
    kind = payload.get("type")
    if kind == "block_actions":
        return _click(payload)
    if kind == "view_submission":
        return _submission(payload)
    if kind in ("view_closed", "shortcut", "message_action", "block_suggestion"):  # a list: it may be unhashable
        return Nothing()
    raise UnreadableRequestError("an interaction of a kind that was never asked for")


def _click(payload: Mapping[str, Any]) -> Click | Nothing:
    actions = payload.get("actions")
    if not isinstance(actions, list) or len(actions) != 1:
        raise UnreadableRequestError("not exactly one action")
    action = _mapping(actions[0])
    name, value = action.get("action_id"), action.get("value")
    if not isinstance(name, str) or not name.startswith(_OURS):
        return Nothing()
    said = _ACTION.fullmatch(name)
    of = AnswerRef.parse(value) if isinstance(value, str) else None
    if said is None or of is None or action.get("type") != "button":
        raise UnreadableRequestError("a button that was never made here")
    kind = AnswerKind(said["kind"])
    if said["hours"] is not None and kind is not AnswerKind.KEEP:
        raise UnreadableRequestError("a button that was never made here")
    return Click(
        kind=kind,
        of=of,
        by=_person(payload),
        channel=_id(_mapping(payload.get("channel")).get("id")),
        length=timedelta(hours=int(said["hours"])) if said["hours"] is not None else None,
        response_url=_address(payload.get("response_url")),
        trigger_id=_trigger(payload.get("trigger_id")),
    )


def _submission(payload: Mapping[str, Any]) -> Submission | Nothing:
    view = _mapping(payload.get("view"))
    name = view.get("callback_id")
    kind = _WINDOWS.get(name) if isinstance(name, str) else None
    if kind is None:
        return Nothing()
    about = view.get("private_metadata")
    ref, _, channel = about.partition(" ") if isinstance(about, str) else ("", "", "")
    of = AnswerRef.parse(ref)
    if of is None:
        raise UnreadableRequestError("a window that was never opened here")
    values = _mapping(_mapping(view.get("state")).get("values"))
    picked = _mapping(_mapping(values.get(UNTIL)).get(UNTIL)).get("selected_date")
    because = _mapping(_mapping(values.get(BECAUSE)).get(BECAUSE)).get("value")
    if not isinstance(picked, (str, type(None))) or not isinstance(because, (str, type(None))):
        raise UnreadableRequestError("a window that was never opened here")
    return Submission(of, _person(payload), _id(channel), _day(picked or ""), (because or "").strip(), kind)


def _day(text: str) -> date | None:
    if _DAY.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _command(fields: Mapping[str, str]) -> Command:
    if fields["command"] != "/costguard":
        raise UnreadableRequestError("a command of another name")
    name = fields.get("user_name", "")[:_LONGEST_NAME]
    by = Person("slack", _id(fields.get("user_id")), _id(fields.get("team_id")), name)
    return Command(by, _id(fields.get("channel_id")), fields.get("text", "")[:_LONGEST_TEXT].strip())


def _person(payload: Mapping[str, Any]) -> Person:
    """Whoever clicked, of their own workspace: in a shared channel that may be another than where they clicked."""
    user = _mapping(payload.get("user"))
    team = payload.get("team")
    of_app = _id(_mapping(team).get("id")) if team is not None else ""
    own = _id(user["team_id"]) if user.get("team_id") is not None else of_app
    if not own or (of_app and own != of_app):
        own = f"{own}+{of_app}"  # of two workspaces, so of none that a policy could name
    name = user.get("username") or user.get("name") or ""
    return Person("slack", _id(user.get("id")), own, name[:_LONGEST_NAME] if isinstance(name, str) else "")


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UnreadableRequestError("an object is missing")
    return value


def _id(value: object) -> str:
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise UnreadableRequestError("an id that is not one of Slack's")
    return value


def _address(value: object) -> str:
    """Whether it is Slack's own is asked where it is called."""
    return value if isinstance(value, str) and len(value) <= _LONGEST_ADDRESS else ""


def _trigger(value: object) -> str:
    return value if isinstance(value, str) and _TRIGGER.fullmatch(value) else ""
