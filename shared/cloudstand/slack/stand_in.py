"""A stand-in for Slack on loopback: it takes what Slack takes, refuses what Slack refuses, and remembers.

Answers `auth.test`, `chat.postMessage`, `chat.update`, `views.open`, `conversations.list`, `conversations.info` and
`conversations.join` as the Web API does: HTTP 200 with `ok` false and an error code for what is wrong with a call,
HTTP 429 with `Retry-After` when called too often. Faults are set by the test or the demo. `press`, `slash`,
`submit_view` and `close_view` make the signed requests that Slack would send; whoever asks for them delivers them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from typing_extensions import Self

from cloudstand.clock import Clock, MovedClock
from cloudstand.errors import MisuseError
from cloudstand.slack import clicks
from cloudstand.slack.blocks import elements
from cloudstand.slack.clicks import DEFAULT_SIGNING_SECRET, TEAM_ID, SlackRequest
from cloudstand.slack.server import SlackServer
from cloudstand.slack.workspace import Faults, Posted, Whisper, Workspace, channel_name

__all__ = ["DEFAULT_SIGNING_SECRET", "DEFAULT_TOKEN", "Faults", "Posted", "SlackRequest", "SlackStandIn", "Whisper"]

DEFAULT_TOKEN = "xoxb-sandbox"  # noqa: S105 - a made-up token
_STARTS_AT = datetime(2026, 1, 5, tzinfo=timezone.utc)


class SlackStandIn(Workspace):
    """A workspace with one bot. Used as a context manager; `posted` holds every message in order.

    Without `clock` its time stands still. Without `channels` any channel exists; with it only those named
    (`#gpu-costs`) do. The bot is no member of those in `not_joined`, and `archived` ones take no messages.
    `whispers` are answers that one person sees, `views` the windows that are open.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        token: str = DEFAULT_TOKEN,
        signing_secret: str = DEFAULT_SIGNING_SECRET,
        channels: Sequence[str] | None = None,
        not_joined: Sequence[str] = (),
        archived: Sequence[str] = (),
        port: int = 0,
    ) -> None:
        super().__init__(clock or MovedClock(_STARTS_AT), token, channels, not_joined, archived)
        self._signing_secret = signing_secret
        self._server = SlackServer(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def token(self) -> str:
        """The bot token this workspace accepts."""
        return self._token

    @property
    def signing_secret(self) -> str:
        """What it signs its requests with."""
        return self._signing_secret

    @property
    def team(self) -> str:
        """The id of this workspace."""
        return TEAM_ID

    @property
    def base_url(self) -> str:
        """What to give the client instead of `https://slack.com/api/`."""
        return f"{self._server.url}/api/"

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

    def press(self, message_ts: str, action_id: str, user: str, *, of: str = "", team: str = TEAM_ID) -> SlackRequest:
        """The request for a button of a message; `of` is its value, where several have the same action id.

        Raises:
            MisuseError: the message has no such button, or several.
        """
        posted = next((posted for posted in self.posted if posted.ts == message_ts), None)
        blocks = () if posted is None else posted.blocks
        found = [
            (block, element)
            for block, element in elements(blocks)
            if element["action_id"] == action_id and of in {"", element.get("value")}
        ]
        if posted is None or len(found) != 1:
            message = f"the message {message_ts} has {len(found)} buttons {action_id} {of}".rstrip()
            raise MisuseError(message)
        click = self._click("actions", user, team, posted.channel, message_ts)
        held: dict[str, Any] = {"ts": posted.ts, "text": posted.text, "blocks": list(posted.blocks)}
        if posted.thread:
            held["thread_ts"] = posted.thread
        document = clicks.block_actions(click, self.channel_facts(posted.channel), held, *found[0])
        return self.signed(clicks.payload(document))

    def slash(
        self, command: str, text: str, user: str, *, channel: str = "#gpu-costs", team: str = TEAM_ID
    ) -> SlackRequest:
        """The request for `/costguard status`, typed in a channel."""
        click = self._click("commands", user, team, channel_name(channel), "")
        return self.signed(clicks.slash(click, self.channel_facts(channel_name(channel)), command, text))

    def submit_view(self, view_id: str, values: Mapping[str, str], user: str, *, team: str = TEAM_ID) -> SlackRequest:
        """The request for submitting a window; `values` is what was entered, by action id.

        Raises:
            MisuseError: no such window, or Slack would not have let this be submitted.
        """
        click = self._click("", user, team, "", "")
        return self.signed(clicks.payload(clicks.view_submission(click, self._opened(view_id, user), values)))

    def close_view(self, view_id: str, user: str, *, team: str = TEAM_ID) -> SlackRequest | None:
        """The request for closing a window; None where it does not ask to be told.

        Raises:
            MisuseError: no such window.
        """
        opened = self._opened(view_id, user)
        if not opened.view.get("notify_on_close", False):
            return None
        return self.signed(clicks.payload(clicks.view_closed(self._click("", user, team, "", ""), opened)))

    def signed(self, fields: Mapping[str, str]) -> SlackRequest:
        """Any form, signed as Slack's now: for requests that Slack itself would never send."""
        return clicks.signed(fields, self._signing_secret, self._clock.now())

    def _click(self, kind: str, user: str, team: str, channel: str, message_ts: str) -> clicks.Click:
        with self._lock:
            now, number = self._clock.now(), len(self._triggers) + 1
            secret = hashlib.sha256(f"{self._signing_secret}/{number}".encode()).hexdigest()
            trigger_id = f"{int(now.timestamp())}.{number}.{secret[:32]}"
            self._triggers[trigger_id] = clicks.Trigger(now, user)
            path = f"/{kind}/{TEAM_ID}/{number}/{secret[32:56]}" if kind else ""
            if path:
                self._hooks[path] = clicks.Hook(now, user, channel, message_ts)
            return clicks.Click(user, team, now, trigger_id, f"{self._server.url}{path}" if path else "")

    def _opened(self, view_id: str, user: str) -> clicks.View:
        opened = next((view for view in self.views if (view.view_id, view.user) == (view_id, user)), None)
        if opened is None:
            message = f"{user} has no window {view_id}"
            raise MisuseError(message)
        return opened
