"""What is asked of the Slack stand-in: the Web API's methods, and answers at response addresses."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from cloudstand.clock import Clock
from cloudstand.slack import clicks
from cloudstand.slack.blocks import are_blocks, is_modal, too_long
from cloudstand.slack.server import Answer

_MESSAGE_MAX = 40_000
_EDIT_MAX = 4000  # bytes, as others found out; the reference says characters
_VIEW_MAX = 250_000


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


@dataclass(frozen=True, slots=True)
class Whisper:
    """What only one person sees: the answer to a click or command."""

    user: str
    channel: str
    text: str
    blocks: tuple[Mapping[str, Any], ...]
    at: datetime


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


class Workspace:
    """One workspace with one bot, and all that is said in it."""

    def __init__(
        self,
        clock: Clock,
        token: str,
        channels: Sequence[str] | None,
        not_joined: Sequence[str],
        archived: Sequence[str],
    ) -> None:
        self.faults = Faults()
        self.posted: list[Posted] = []
        self.whispers: list[Whisper] = []
        self.views: list[clicks.View] = []
        self.calls = 0
        self._clock = clock
        self._token = token
        self._channels = None if channels is None else {channel_name(channel) for channel in channels}
        self._not_joined = {channel_name(channel) for channel in not_joined}
        self._archived = {channel_name(channel) for channel in archived}
        self._ids: dict[str, str] = {}
        self._triggers: dict[str, clicks.Trigger] = {}
        self._hooks: dict[str, clicks.Hook] = {}
        self._sent = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def hangs_up(self) -> bool:
        """Whether this call ends without an answer; it counts all the same."""
        self.calls += self.faults.down
        return self.faults.down

    def answer(self, method: str, token: str, fields: Mapping[str, Any] | None) -> Answer:
        """Status, headers and body for one call; `fields` None could not be read."""
        with self._lock:
            return self._trouble() or (200, {}, json.dumps(self._call(method, token, fields)))

    def hear(self, path: str, fields: Mapping[str, Any] | None) -> Answer:
        """What is said at a response address; `fields` None could not be read."""
        with self._lock:
            return self._trouble() or self._heard(path, fields)

    def _trouble(self) -> Answer | None:
        faults = self.faults
        if faults.slow:
            self._closing.wait(faults.slow.total_seconds())
        self.calls += 1
        if faults.rate_limits > 0:
            faults.rate_limits -= 1
            headers = {} if faults.retry_after is None else {"Retry-After": faults.retry_after}
            return 429, headers, json.dumps({"ok": False, "error": "ratelimited"})
        return (faults.status, {}, faults.body) if faults.status else None

    def _call(self, method: str, token: str, fields: Mapping[str, Any] | None) -> dict[str, Any]:
        known = {
            "auth.test": self._test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "views.open": self._open,
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
        who = {"team": "Sandbox", "team_id": clicks.TEAM_ID, "user": "costguard", "user_id": clicks.BOT_USER}
        return {"url": "https://sandbox.slack.com/", **who, "bot_id": clicks.BOT_ID}

    def _post(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(fields)
        text, blocks = _checked(fields)
        posted = self._posted(channel, text, blocks, str(fields.get("thread_ts") or ""))
        said = {"type": "message", "text": text, "ts": posted.ts}
        answer = {"channel": self._id(channel), "ts": posted.ts, "message": said}
        if self.faults.forget_ts:
            del answer["ts"]
        return answer

    def _posted(self, channel: str, text: str, blocks: tuple[Mapping[str, Any], ...], thread: str) -> Posted:
        now = self._clock.now()
        self._sent += 1
        posted = Posted(channel, text, blocks, f"{int(now.timestamp())}.{self._sent:06d}", now, thread)
        self.posted.append(posted)
        return posted

    def _update(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        asked = fields.get("channel")
        if not isinstance(asked, str) or asked not in self._ids:  # a name will not do here
            raise _Refusal("channel_not_found")
        if self._ids[asked] in self._archived:
            raise _Refusal("is_inactive")
        text, blocks = _checked(fields)
        if len(text.encode()) > _EDIT_MAX:
            raise _Refusal("msg_too_long")
        self._replace(self._ids[asked], str(fields.get("ts") or ""), text, blocks if "blocks" in fields else None)
        return {"channel": asked, "ts": fields["ts"], "text": text}

    def _replace(self, channel: str, ts: str, text: str, blocks: tuple[Mapping[str, Any], ...] | None) -> None:
        """Blocks that are not mentioned stay; only an empty list takes them away."""
        for index, posted in enumerate(self.posted):
            if (posted.channel, posted.ts) == (channel, ts):
                shown = posted.blocks if blocks is None else blocks
                self.posted[index] = replace(posted, text=text, blocks=shown, edited=True)
                return
        raise _Refusal("message_not_found")

    def _open(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        view = _parsed(fields.get("view"))
        trigger = self._triggers.get(str(fields.get("trigger_id") or ""))
        now = self._clock.now()
        checks = (
            (not is_modal(view), "invalid_arguments"),
            (len(json.dumps(view)) > _VIEW_MAX, "view_too_large"),
            (trigger is None, "invalid_trigger_id"),
            (trigger is not None and trigger.used, "exchanged_trigger_id"),
            (trigger is not None and now - trigger.at > clicks.TRIGGER_LASTS, "expired_trigger_id"),
        )
        error = next((error for applies, error in checks if applies), "")
        if error or trigger is None:
            raise _Refusal(error)
        trigger.used = True
        opened = clicks.View(f"V{len(self.views) + 1:09d}", trigger.user, view, now)
        self.views.append(opened)
        return {"view": {**view, "id": opened.view_id, "team_id": clicks.TEAM_ID}}

    def _heard(self, path: str, fields: Mapping[str, Any] | None) -> Answer:
        """Each answer is for one person only, unless it says `in_channel`, or replaces or deletes the message."""
        hook, now = self._hooks.get(path), self._clock.now()
        if hook is None:
            return 404, {}, json.dumps({"ok": False, "error": "invalid_token"})
        if now - hook.at > clicks.HOOK_LASTS or hook.uses >= clicks.HOOK_USES:
            error = "used_url" if hook.uses >= clicks.HOOK_USES else "expired_url"
            return 404, {}, json.dumps({"ok": False, "error": error})
        if fields is None:
            return 400, {}, "invalid_payload"
        try:
            self._answered(hook, fields, now)
        except _Refusal as err:
            return 400, {}, str(err)
        hook.uses += 1
        return 200, {}, "ok"

    def _answered(self, hook: clicks.Hook, fields: Mapping[str, Any], now: datetime) -> None:
        if fields.get("delete_original") is True and hook.message_ts:
            self.posted[:] = [posted for posted in self.posted if posted.ts != hook.message_ts]
            return
        text, blocks = _checked(fields)
        if fields.get("replace_original") is True and hook.message_ts:
            self._replace(hook.channel, hook.message_ts, text, blocks)
        elif fields.get("response_type") == "in_channel":
            self._posted(hook.channel, text, blocks, str(fields.get("thread_ts") or ""))
        else:
            self.whispers.append(Whisper(hook.user, hook.channel, text, blocks, now))

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

    def channel_facts(self, channel: str) -> dict[str, str]:
        """Its id, and its name without the `#`, as payloads name a channel."""
        return {"id": self._id(channel), "name": channel.removeprefix("#")}

    def _described(self, channel: str) -> dict[str, Any]:
        is_member = channel not in self._not_joined
        return {**self.channel_facts(channel), "is_archived": channel in self._archived, "is_member": is_member}

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
        channel = self._ids.get(asked) or channel_name(asked)
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


def channel_name(channel: str) -> str:
    """The name with its `#`."""
    return channel if channel.startswith("#") else f"#{channel}"


def _parsed(value: Any) -> Any:
    """What a form carries as JSON text, and JSON as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as err:
        raise _Refusal("invalid_blocks_format") from err


def _checked(fields: Mapping[str, Any]) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Text and blocks of a message that Slack would take."""
    text, blocks = fields.get("text") or "", _parsed(fields.get("blocks")) or []
    if not isinstance(text, str) or not isinstance(blocks, list):
        raise _Refusal("invalid_arguments")
    if not text and not blocks:
        raise _Refusal("no_text")
    if len(text) > _MESSAGE_MAX:
        raise _Refusal("msg_too_long")
    if not are_blocks(blocks):
        raise _Refusal("invalid_blocks")
    if too_long(blocks):
        raise _Refusal("msg_blocks_too_long")
    return text, tuple(blocks)
