"""Slack, by its own SDK. One call a message; waiting and trying again is the outbox's work."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from costguard.adapters.notifiers.plain import must_hold
from costguard.adapters.notifiers.router import retry_after
from costguard.adapters.notifiers.slack import posting as slack_posting
from costguard.adapters.notifiers.slack.blocks import fallback, message_blocks, parts_that_fit
from costguard.adapters.notifiers.slack.posting import REJECTED, refusal
from costguard.domain.errors import InvalidInputError, NoticeError, RejectedNoticeError
from costguard.ports import Delivery, Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk.web import SlackResponse, WebClient

__all__ = ["REJECTED", "SLACK_API", "SlackNotifier", "retry_after"]

SLACK_API = "https://slack.com/api/"
_TS = re.compile(r"\d{1,20}\.\d{1,20}", re.ASCII)
_RECEIPT = re.compile(rf"(?P<channel>[^:]+):(?P<ts>{_TS.pattern})", re.ASCII)
_CHANNEL_ID = re.compile(r"[A-Z0-9]{1,40}")
_VIEW_ID = re.compile(r"[A-Z0-9]{1,40}")
_MOST_BYTES = 1024 * 1024  # an answer of chat.postMessage repeats the message: some 20 KB at most
_CLICK_TIME = timedelta(seconds=2.5)  # Slack waits 3 s for the answer to a click, and a trigger lives as long
_GONE = "message_not_found"


class SlackNotifier:
    """A `Notifier` that posts with a bot token (scope `chat:write`) to `#channel` or a channel id.

    `base_url` is Slack itself unless a stand-in is meant; one on loopback is reached without any proxy.

    Raises:
        InvalidInputError: there is no token.
    """

    def __init__(self, token: str, *, base_url: str = SLACK_API, timeout: timedelta = timedelta(seconds=10)) -> None:
        if not token.strip():
            raise InvalidInputError("Slack needs a bot token (xoxb-…) with the scope chat:write; none is set")
        self._token = token
        self._base_url = base_url
        self._timeout = timeout
        self._clients: dict[timedelta, WebClient] = {}

    def send(self, message: Message) -> Delivery:
        """Post now, once. The receipt is `channel id:ts`, which a later message may name as its thread.

        A message whose answer is lost may have been posted: sending it again may show it twice.
        """
        must_hold(message, self.capacity(message))
        thread = _RECEIPT.fullmatch(message.thread)
        response = self._asked(
            message.channel,
            lambda client: client.chat_postMessage(
                channel=message.channel,
                text=fallback(message.text),
                blocks=message_blocks(message),
                thread_ts=thread["ts"] if thread else None,
                parse="none",
                link_names=False,
                unfurl_links=False,
                unfurl_media=False,
            ),
        )
        receipt, channel = response.get("ts"), response.get("channel")
        # the SDK lets any `ok` pass that is not false or 0
        if response.get("ok") is not True or not isinstance(receipt, str) or not _TS.fullmatch(receipt):
            text = f"Slack answered {message.channel} without ok and a ts; that does not prove delivery"
            raise NoticeError(text)
        if not isinstance(channel, str) or not _CHANNEL_ID.fullmatch(channel):
            channel = message.channel
        return Delivery(f"{channel}:{receipt}")

    def edit(self, receipt: str, message: Message) -> bool:
        """Show `message` in the place of what was sent; False where that is gone, or the receipt names no message.

        The same edit a second time changes nothing. Parts beyond what fits are counted, as nothing rests on an edit.

        API: chat.update, scope chat:write; it takes channel ids only, and `parse` anew each time.
        """
        found = _RECEIPT.fullmatch(receipt)
        if found is None or not _CHANNEL_ID.fullmatch(found["channel"]):
            return False
        try:
            response = self._asked(
                message.channel,
                lambda client: client.chat_update(
                    channel=found["channel"],
                    ts=found["ts"],
                    text=fallback(message.text),
                    blocks=message_blocks(message),
                    parse="none",
                    link_names=False,
                ),
            )
        except _GoneError:
            return False
        if response.get("ok") is not True or response.get("ts") != found["ts"]:
            text = f"Slack answered the edit in {message.channel} without ok and its ts; it may not show"
            raise NoticeError(text)
        return True

    def capacity(self, message: Message) -> int:
        """As many parts as 50 blocks and Slack's room for their JSON allow."""
        return parts_that_fit(message)

    def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> str:
        """Open a window for whoever clicked, within 3 seconds of the click; its view id.

        Raises:
            RejectedNoticeError: the click is too old or was used before, or Slack refuses the form of `view`.
            NoticeError: not opened for a passing reason, or nobody knows whether it was.

        API: views.open, no scope.
        """
        response = self._asked(
            "the window", lambda client: client.views_open(trigger_id=trigger_id, view=dict(view)), _CLICK_TIME
        )
        opened = response.get("view")
        view_id = opened.get("id") if isinstance(opened, dict) else None
        if response.get("ok") is not True or not isinstance(view_id, str) or not _VIEW_ID.fullmatch(view_id):
            raise NoticeError("Slack answered a window without ok and its id; it may not be open")
        return view_id

    def respond(self, response_url: str, body: Mapping[str, Any]) -> None:
        """Answer a click or command where Slack said to, as `slack_posting.respond` says."""
        slack_posting.respond(response_url, body, base_url=self._base_url, timeout=min(self._timeout, _CLICK_TIME))

    def _asked(
        self, what: str, call: Callable[[WebClient], SlackResponse], most: timedelta | None = None
    ) -> SlackResponse:
        """One call; all that the SDK raises becomes ours."""
        from http.client import HTTPException

        from slack_sdk.errors import SlackApiError, SlackClientError, SlackObjectFormationError

        try:
            return call(self._web_client(self._timeout if most is None else min(self._timeout, most)))
        except SlackApiError as err:
            response: Any = err.response
            if isinstance(response.data, dict) and response.data.get("error") == _GONE:
                text = f"Slack no longer has the message for {what}"
                raise _GoneError(text) from err
            raise refusal(what, response.status_code, response.headers, response.data) from err
        except SlackObjectFormationError as err:
            text = f"Slack's SDK refuses the message for {what}: {REJECTED['invalid_arguments']}"
            raise RejectedNoticeError(text) from err
        except (
            SlackClientError,
            HTTPException,
            OSError,
            ValueError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as err:
            # the last four: the SDK reads an answer that is neither JSON object nor text it can decode
            text = f"Slack could not be reached for {what}: {type(err).__name__}"
            raise NoticeError(text) from err

    def _web_client(self, timeout: timedelta) -> WebClient:
        if timeout not in self._clients:
            quiet = logging.getLogger(f"{__name__}.sdk")
            quiet.setLevel(logging.CRITICAL + 1)  # at debug level the SDK logs whole messages; failures are raised
            parts = urlsplit(self._base_url)
            self._clients[timeout] = _bounded_client()(
                token=self._token,
                base_url=self._base_url,
                timeout=timeout.total_seconds(),  # type: ignore[arg-type] # urllib takes fractions of a second
                # naming a loopback stand-in as its own proxy keeps the environment's proxies out of the way
                proxy=f"http://{parts.netloc}" if parts.hostname in slack_posting.LOOPBACK else None,
                retry_handlers=[],
                logger=quiet,
            )
        return self._clients[timeout]


class _GoneError(NoticeError):
    """There is no such message, and never will be again."""


@functools.lru_cache(maxsize=1)
def _bounded_client() -> type[WebClient]:
    """The SDK's client with two habits taken away: reading answers of any length, and following redirects."""
    from io import BytesIO
    from urllib.error import HTTPError
    from urllib.request import Request

    from slack_sdk.web import WebClient

    class BoundedClient(WebClient):
        """Tests notice if the SDK ever stops calling this method."""

        def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
            opener = slack_posting.opener(self.proxy or None, self.ssl)
            try:
                with opener.open(req, timeout=self.timeout) as answer:
                    body: bytes = answer.read(_MOST_BYTES + 1)
            except HTTPError as err:
                del err.headers["Content-Type"]  # the SDK would decode by whatever codec it names
                body = err.read(_MOST_BYTES).decode("utf-8", "replace").encode()
                raise HTTPError(url, err.code, err.msg, err.headers, BytesIO(body)) from err
            if len(body) > _MOST_BYTES:
                text = f"Slack's answer is longer than {_MOST_BYTES >> 10} KiB; that does not prove delivery"
                raise NoticeError(text)
            return {"status": answer.status, "headers": answer.headers, "body": body.decode()}  # JSON is UTF-8

    return BoundedClient
