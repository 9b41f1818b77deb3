"""A stand-in for Slack on loopback: it takes what Slack takes, refuses what Slack refuses, and remembers.

Answers `auth.test`, `chat.postMessage`, `chat.update`, `conversations.list`, `conversations.info` and
`conversations.join` as the Web API does: HTTP 200 with `ok` false and an error code for what is wrong with
a call, HTTP 429 with `Retry-After` when called too often. Faults are set by the test or the demo.

Block Kit is checked roughly: the blocks and text objects Costguard could send, and their limits.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import Self

from costguard.ports import Clock
from costguard.sandbox.clock import MovedClock

DEFAULT_TOKEN = "xoxb-sandbox"  # noqa: S105 - a made-up token
_STARTS_AT = datetime(2026, 1, 5, tzinfo=timezone.utc)
_TEXT_MAX, _HEADER_MAX, _FIELD_MAX = 3000, 150, 2000
_BLOCKS_MAX, _FIELDS_MAX, _ELEMENTS_MAX = 50, 10, 10
_MESSAGE_MAX = 40_000
_ALL_BLOCKS_MAX = 13_200  # found by others: msg_blocks_too_long beyond it
_TEXT_TYPES = frozenset({"plain_text", "mrkdwn"})


@dataclass(frozen=True, slots=True)
class Posted:
    """One message as the channel holds it; `thread` is the `ts` of the message it replies to."""

    channel: str
    text: str
    blocks: tuple[Mapping[str, Any], ...]
    ts: str
    at: datetime
    thread: str = ""
    edited: bool = False


@dataclass(slots=True)
class Faults:
    """What goes wrong from now on. All False, empty and zero: nothing.

    `rate_limits` answers that many calls with 429 and the header `retry_after` (none where it is None).
    `status` answers every call with this HTTP status and `body`. `down` closes connections without an
    answer; `slow` makes each answer wait, at most until the stand-in closes. `error` answers `ok` false.
    """

    rate_limits: int = 0
    retry_after: str | None = "30"
    status: int = 0
    body: str = "upstream error"
    error: str = ""
    revoked: bool = False
    down: bool = False
    slow: timedelta = timedelta(0)
    forget_ts: bool = False


class SlackStandIn:
    """A workspace with one bot. Used as a context manager; `posted` holds every message in order.

    Without `clock` its time stands still. Without `channels` any channel exists; with it only those named
    (`#gpu-costs`) do. The bot is no member of those in `not_joined`, and `archived` ones take no messages.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        token: str = DEFAULT_TOKEN,
        channels: Sequence[str] | None = None,
        not_joined: Sequence[str] = (),
        archived: Sequence[str] = (),
    ) -> None:
        self.faults = Faults()
        self.posted: list[Posted] = []
        self.calls = 0
        self._clock = clock or MovedClock(_STARTS_AT)
        self._token = token
        self._channels = None if channels is None else {_name(channel) for channel in channels}
        self._not_joined = {_name(channel) for channel in not_joined}
        self._archived = {_name(channel) for channel in archived}
        self._ids: dict[str, str] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def token(self) -> str:
        """The bot token this workspace accepts."""
        return self._token

    @property
    def base_url(self) -> str:
        """What to give the client instead of `https://slack.com/api/`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/"

    def close(self) -> None:
        """Stop answering and release the port; may be repeated."""
        if not self._closing.is_set():
            self._closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, method: str, token: str, fields: Mapping[str, Any] | None) -> tuple[int, dict[str, str], str]:
        """Status, headers and body for one call; `fields` None could not be read."""
        faults = self.faults
        if faults.slow:
            self._closing.wait(faults.slow.total_seconds())
        with self._lock:
            self.calls += 1
            if faults.rate_limits > 0:
                faults.rate_limits -= 1
                headers = {} if faults.retry_after is None else {"Retry-After": faults.retry_after}
                return 429, headers, json.dumps({"ok": False, "error": "ratelimited"})
            if faults.status:
                return faults.status, {}, faults.body
            return 200, {}, json.dumps(self._call(method, token, fields))

    def _call(self, method: str, token: str, fields: Mapping[str, Any] | None) -> dict[str, Any]:
        known = {
            "auth.test": self._test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.list": self._list,
            "conversations.info": self._info,
            "conversations.join": self._join,
        }
        error = self._refused(method in known, token, fields)
        if error or fields is None:
            return {"ok": False, "error": error}
        try:
            return {"ok": True, **known[method](fields)}
        except _Refusal as err:
            return {"ok": False, "error": str(err)}

    def _refused(self, known: bool, token: str, fields: Mapping[str, Any] | None) -> str:  # noqa: FBT001
        """The error every method may answer, before it looks at its arguments; empty when there is none."""
        checks = (
            (bool(self.faults.error), self.faults.error),
            (not known, "unknown_method"),
            (not token, "not_authed"),
            (token != self._token, "invalid_auth"),
            (self.faults.revoked, "token_revoked"),
            (fields is None, "invalid_json"),
        )
        return next((error for applies, error in checks if applies), "")

    def _test(self, _fields: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": "https://sandbox.slack.com/", "team": "Sandbox", "user": "costguard", "user_id": "UCOSTGUARD"}

    def _post(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(fields)
        text, blocks = _checked(fields)
        now = self._clock.now()
        ts = f"{int(now.timestamp())}.{len(self.posted) + 1:06d}"
        posted = Posted(channel, text, blocks, ts, now, str(fields.get("thread_ts") or ""))
        self.posted.append(posted)
        answer = {"channel": self._id(channel), "ts": ts, "message": {"type": "message", "text": text, "ts": ts}}
        if self.faults.forget_ts:
            del answer["ts"]
        return answer

    def _update(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(fields)
        text, blocks = _checked(fields)
        for index, posted in enumerate(self.posted):
            if posted.ts == fields.get("ts") and posted.channel == channel:
                self.posted[index] = replace(posted, text=text, blocks=blocks, edited=True)
                return {"channel": self._id(channel), "ts": posted.ts, "text": text}
        raise _Refusal("message_not_found")

    def _list(self, _fields: Mapping[str, Any]) -> dict[str, Any]:
        names = self._channels if self._channels is not None else {posted.channel for posted in self.posted}
        listed = [self._described(name) for name in sorted(names)]
        return {"channels": listed, "response_metadata": {"next_cursor": ""}}

    def _info(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {"channel": self._described(self._known(fields))}

    def _join(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._known(fields)
        if channel in self._archived:
            raise _Refusal("is_archived")
        self._not_joined.discard(channel)
        return {"channel": self._described(channel)}

    def _described(self, channel: str) -> dict[str, Any]:
        return {
            "id": self._id(channel),
            "name": channel.removeprefix("#"),
            "is_archived": channel in self._archived,
            "is_member": channel not in self._not_joined,
        }

    def _writable(self, fields: Mapping[str, Any]) -> str:
        channel = self._known(fields)
        if channel in self._archived:
            raise _Refusal("is_archived")
        if channel in self._not_joined:
            raise _Refusal("not_in_channel")
        return channel

    def _known(self, fields: Mapping[str, Any]) -> str:
        asked = fields.get("channel")
        if not isinstance(asked, str) or not asked:
            raise _Refusal("channel_not_found")
        channel = self._ids.get(asked) or _name(asked)
        if self._channels is not None and channel not in self._channels:
            raise _Refusal("channel_not_found")
        return channel

    def _id(self, channel: str) -> str:
        """A channel id such as Slack's, the same for the same name."""
        given = "C" + hashlib.sha256(channel.encode()).hexdigest()[:10].upper()
        self._ids[given] = channel
        return given


class _Refusal(Exception):  # noqa: N818 - Slack's `ok` false, not a failure of the stand-in
    """An error code of the Web API."""


def _name(channel: str) -> str:
    return channel if channel.startswith("#") else f"#{channel}"


def _checked(fields: Mapping[str, Any]) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Text and blocks of a message that Slack would take."""
    text = fields.get("text") or ""
    blocks = fields.get("blocks") or []
    if isinstance(blocks, str):  # a form carries them as JSON text
        try:
            blocks = json.loads(blocks)
        except ValueError as err:
            raise _Refusal("invalid_blocks_format") from err
    if not isinstance(text, str) or not isinstance(blocks, list):
        raise _Refusal("invalid_arguments")
    if not text and not blocks:
        raise _Refusal("no_text")
    if len(text) > _MESSAGE_MAX:
        raise _Refusal("msg_too_long")
    if len(blocks) > _BLOCKS_MAX or not all(_is_block(block) for block in blocks):
        raise _Refusal("invalid_blocks")
    if sum(len(said) for block in blocks for said in _texts(block)) > _ALL_BLOCKS_MAX:
        raise _Refusal("msg_blocks_too_long")
    return text, tuple(blocks)


def _is_block(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    if kind == "header":
        return _is_text(block.get("text"), _HEADER_MAX, frozenset({"plain_text"}))
    if kind == "divider":
        return True
    if kind == "context":
        return _all_texts(block.get("elements"), _ELEMENTS_MAX, _TEXT_MAX)
    if kind != "section" or not ("text" in block or "fields" in block):
        return False
    text_fits = "text" not in block or _is_text(block["text"], _TEXT_MAX)
    return text_fits and ("fields" not in block or _all_texts(block["fields"], _FIELDS_MAX, _FIELD_MAX))


def _all_texts(texts: object, most: int, limit: int) -> bool:
    return isinstance(texts, list) and 0 < len(texts) <= most and all(_is_text(text, limit) for text in texts)


def _is_text(text: object, limit: int, kinds: frozenset[str] = _TEXT_TYPES) -> bool:
    if not isinstance(text, dict) or text.get("type") not in kinds or not isinstance(text.get("text"), str):
        return False
    units = len(text["text"].encode("utf-16-le")) // 2
    allowed = {"type", "text", "emoji"} if text["type"] == "plain_text" else {"type", "text", "verbatim"}
    return 0 < units <= limit and set(text) <= allowed


def _texts(block: Mapping[str, Any]) -> list[str]:
    parts = [block.get("text"), *block.get("fields", ()), *block.get("elements", ())]
    return [part["text"] for part in parts if isinstance(part, dict)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, workspace: SlackStandIn) -> None:
        self.workspace = workspace
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: a client that gave up waiting is one of the faults on offer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing on the terminal."""

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        workspace = self.server.workspace
        workspace.calls += workspace.faults.down
        if workspace.faults.down:
            return  # the connection closes without an answer
        address = urlsplit(self.path)  # a proxied call names the whole address
        fields = _fields(self.headers.get("Content-Type") or "", body, address.query)
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        if scheme != "Bearer":
            token = str((fields or {}).get("token") or "")
        status, headers, text = workspace.answer(address.path.removeprefix("/api/"), token, fields)
        encoded = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(encoded)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(encoded)


def _fields(content_type: str, body: bytes, query: str) -> dict[str, Any] | None:
    """The arguments of a call, from a JSON or form body and the query; None for a broken JSON body."""
    fields: dict[str, Any] = dict(parse_qsl(query))
    if not body:
        return fields
    try:
        if not content_type.startswith("application/json"):
            return {**fields, **dict(parse_qsl(body.decode()))}
        document = json.loads(body)
    except ValueError:
        return None
    return {**fields, **document} if isinstance(document, dict) else None
