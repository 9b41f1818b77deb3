"""Slack, by its own SDK. One call a message; waiting and trying again is the outbox's work."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.notifiers.blocks import FALLBACK_MAX, build_blocks, escape
from costguard.ports import Delivery, Message

if TYPE_CHECKING:
    from slack_sdk.errors import SlackApiError
    from slack_sdk.web import WebClient

SLACK_API = "https://slack.com/api/"
_DEFAULT_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(days=1)  # a Retry-After beyond it is a mistake
_TOO_MANY_REQUESTS = 429
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_TS = re.compile(r"\d{1,20}\.\d{1,20}", re.ASCII)
_RECEIPT = re.compile(rf"[^:]+:(?P<ts>{_TS.pattern})", re.ASCII)
_CHANNEL_ID = re.compile(r"[A-Z0-9]{1,40}")
_MOST_BYTES = 1024 * 1024  # an answer of chat.postMessage repeats the message: some 20 KB at most

_NEW_TOKEN = "install the Slack app again and give Costguard its new bot token"  # noqa: S105 - advice, no token
_INVITE = "invite the bot to the channel (/invite), and check the channel's name in the policy"
_OUR_MESSAGE = "Slack refuses the form of this message; please report it with the finding it was about"
_ADMIN = "ask a workspace admin to let the app post there, or name another channel"
REJECTED: Mapping[str, str] = {
    "not_authed": "give Costguard a bot token (xoxb-…)",
    "invalid_auth": _NEW_TOKEN,
    "account_inactive": _NEW_TOKEN,
    "token_revoked": _NEW_TOKEN,
    "token_expired": _NEW_TOKEN,
    "not_allowed_token_type": "give Costguard a bot token (xoxb-…), not another kind",
    "missing_scope": "add the scope chat:write to the Slack app and install it again",
    "no_permission": "add the scope chat:write to the Slack app and install it again",
    "access_denied": _ADMIN,
    "ekm_access_denied": _ADMIN,
    "org_login_required": _ADMIN,
    "team_access_not_granted": _ADMIN,
    "restricted_action": _ADMIN,
    "restricted_action_read_only_channel": _ADMIN,
    "restricted_action_thread_only_channel": _ADMIN,
    "restricted_action_non_threadable_channel": _ADMIN,
    "restricted_action_thread_locked": _ADMIN,
    "channel_not_found": _INVITE,
    "not_in_channel": _INVITE,
    "is_archived": "unarchive the channel, or name another in the policy",
    "msg_too_long": _OUR_MESSAGE,
    "msg_blocks_too_long": _OUR_MESSAGE,
    "invalid_blocks": _OUR_MESSAGE,
    "invalid_blocks_format": _OUR_MESSAGE,
    "invalid_arguments": _OUR_MESSAGE,
    "no_text": _OUR_MESSAGE,
    "too_many_attachments": _OUR_MESSAGE,
}
"""Errors that the same message will always meet, and what a person can do.

API: chat.postMessage, "Errors". Any other error is taken as passing: the outbox tries again.
"""


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
        self._client: WebClient | None = None

    def send(self, message: Message) -> Delivery:
        """Post now, once. The receipt is `channel id:ts`, which a later message may name as its thread.

        A message whose answer is lost may have been posted: sending it again may show it twice.
        """
        from http.client import HTTPException

        from slack_sdk.errors import SlackApiError, SlackClientError, SlackObjectFormationError

        thread = _RECEIPT.fullmatch(message.thread)
        try:
            response = self._web_client().chat_postMessage(
                channel=message.channel,
                text=escape(message.text, FALLBACK_MAX, lines=True) or "Costguard",  # the SDK warns without words
                blocks=build_blocks(message.title, message.fields, message.lines),
                thread_ts=thread["ts"] if thread else None,
                parse="none",
                link_names=False,
                unfurl_links=False,
                unfurl_media=False,
            )
        except SlackApiError as err:
            raise _refusal(err, message.channel) from err
        except SlackObjectFormationError as err:
            text = f"Slack's SDK refuses the message for {message.channel}: {_OUR_MESSAGE}"
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
            text = f"Slack could not be reached for {message.channel}: {type(err).__name__}"
            raise NoticeError(text) from err
        receipt, channel = response.get("ts"), response.get("channel")
        # the SDK lets any `ok` pass that is not false or 0
        if response.get("ok") is not True or not isinstance(receipt, str) or not _TS.fullmatch(receipt):
            text = f"Slack answered {message.channel} without ok and a ts; that does not prove delivery"
            raise NoticeError(text)
        if not isinstance(channel, str) or not _CHANNEL_ID.fullmatch(channel):
            channel = message.channel
        return Delivery(f"{channel}:{receipt}")

    def _web_client(self) -> WebClient:
        if self._client is None:
            quiet = logging.getLogger(f"{__name__}.sdk")
            quiet.setLevel(logging.CRITICAL + 1)  # at debug level the SDK logs whole messages; failures are raised
            parts = urlsplit(self._base_url)
            self._client = _bounded_client()(
                token=self._token,
                base_url=self._base_url,
                timeout=self._timeout.total_seconds(),  # type: ignore[arg-type] # urllib takes fractions of a second
                # naming a loopback stand-in as its own proxy keeps the environment's proxies out of the way
                proxy=f"http://{parts.netloc}" if parts.hostname in _LOOPBACK else None,
                retry_handlers=[],
                logger=quiet,
            )
        return self._client


@functools.lru_cache(maxsize=1)
def _bounded_client() -> type[WebClient]:
    """The SDK's client with two habits taken away: reading answers of any length, and following redirects."""
    from io import BytesIO
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

    from slack_sdk.web import WebClient

    class NoRedirect(HTTPRedirectHandler):
        """A redirect would carry the token to wherever it points; it stays the error it is."""

        def redirect_request(self, *_: Any) -> None:
            return None

    class BoundedClient(WebClient):
        """Tests notice if the SDK ever stops calling this method."""

        def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
            proxy = ProxyHandler({"http": self.proxy, "https": self.proxy}) if self.proxy else ProxyHandler()
            opener = build_opener(proxy, NoRedirect(), HTTPSHandler(context=self.ssl))
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


def _refusal(err: SlackApiError, channel: str) -> NoticeError:
    response: Any = err.response
    body = response.data if isinstance(response.data, dict) else {}
    code = escape(str(body.get("error") or ""), 100)
    if response.status_code == _TOO_MANY_REQUESTS or code in {"ratelimited", "rate_limited"}:
        wait = retry_after(response.headers)
        return RateLimitedError(f"Slack asks to wait {wait.total_seconds():.0f} s", retry_after=wait)
    if code in REJECTED:
        return RejectedNoticeError(f"Slack refuses {channel}: {code}; {REJECTED[code]}")
    return NoticeError(f"Slack did not take the message for {channel}: HTTP {response.status_code} {code}".rstrip())


def retry_after(headers: Mapping[str, str]) -> timedelta:
    """What `Retry-After` asks for; 30 s where it is missing, no whole number of seconds, or over a day."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if not (value.isascii() and value.isdigit()) or len(value) > len(str(int(_LONGEST_WAIT.total_seconds()))):
        return _DEFAULT_WAIT
    wait = timedelta(seconds=int(value))
    return max(wait, timedelta(seconds=1)) if wait <= _LONGEST_WAIT else _DEFAULT_WAIT
