"""Posting to Slack's addresses without being led elsewhere, and answering a click at the address that came with it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from costguard.adapters.notifiers.router import retry_after
from costguard.adapters.notifiers.slack.blocks import escape
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError

if TYPE_CHECKING:
    import ssl
    from urllib.request import OpenerDirector

_TOO_MANY_REQUESTS = 429

_NEW_TOKEN = "install the Slack app again and give Costguard its new bot token"  # noqa: S105 - advice, no token
_INVITE = "invite the bot to the channel (/invite), and check the channel's name in the policy"
_OUR_MESSAGE = "Slack refuses the form of this message; please report it with the finding it was about"
_ADMIN = "ask a workspace admin to let the app post there, or name another channel"
_CLICK_AGAIN = "a window can be opened within 3 seconds of a click, and once: click again"
_ANSWERED = "a click can be answered five times within 30 minutes"
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
    "messages_tab_disabled": "turn on the app's Messages tab (App Home), or approvers get no message of their own",
    "not_in_channel": _INVITE,
    "is_archived": "unarchive the channel, or name another in the policy",
    "msg_too_long": _OUR_MESSAGE,
    "msg_blocks_too_long": _OUR_MESSAGE,
    "invalid_blocks": _OUR_MESSAGE,
    "invalid_blocks_format": _OUR_MESSAGE,
    "invalid_arguments": _OUR_MESSAGE,
    "no_text": _OUR_MESSAGE,
    "too_many_attachments": _OUR_MESSAGE,
    "block_mismatch": _OUR_MESSAGE,
    "view_too_large": _OUR_MESSAGE,
    "cant_update_message": "it was posted with another token, and only that one may edit it",
    "edit_window_closed": "ask a workspace admin to let the app edit its messages at any time",
    "is_inactive": "unarchive the channel, or name another in the policy",
    "expired_trigger_id": _CLICK_AGAIN,
    "exchanged_trigger_id": _CLICK_AGAIN,
    "invalid_trigger_id": _CLICK_AGAIN,
    "expired_url": _ANSWERED,
    "used_url": _ANSWERED,
}
"""Errors that the same message will always meet, and what a person can do.

API: chat.postMessage, chat.update and views.open, "Errors"; of response addresses, what they were seen to answer.
Any other error is taken as passing: the outbox tries again.
"""


def refusal(what: str, status: int, headers: Mapping[str, str], document: object) -> NoticeError:
    """Why Slack did not take `what` (a channel, a window), by the answer that said so."""
    body: Mapping[str, Any] = document if isinstance(document, dict) else {}
    code = escape(str(body.get("error") or ""), 100)
    if status == _TOO_MANY_REQUESTS or code in {"ratelimited", "rate_limited"}:
        wait = retry_after(headers)
        return RateLimitedError(f"Slack asks to wait {wait.total_seconds():.0f} s", retry_after=wait)
    if code in REJECTED:
        return RejectedNoticeError(f"Slack refuses {what}: {code}; {REJECTED[code]}")
    return NoticeError(f"Slack did not take the message for {what}: HTTP {status} {code}".rstrip())


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HOOKS = "https://hooks.slack.com"
_PATH = r"/(?:actions|commands)/[A-Za-z0-9/_-]{1,300}"
_MOST_BYTES = 64 * 1024  # real answers are `ok`, or an error of a line
_REDIRECTS, _REFUSED, _FAULTS = 300, 400, 500
_TOO_MANY = 429


@functools.lru_cache(maxsize=4)  # each reads the system's certificates, which takes longer than a call
def opener(proxy: str | None, context: ssl.SSLContext | None = None) -> OpenerDirector:
    """Opens no redirect: it would carry the token, or the message, to wherever it points.

    `proxy` None uses the environment's, an empty one none.
    """
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, build_opener

    class NoRedirect(HTTPRedirectHandler):
        """A redirect stays the error it is."""

        def redirect_request(self, *_: Any) -> None:
            return None

    proxies = ProxyHandler() if proxy is None else ProxyHandler({"http": proxy, "https": proxy} if proxy else {})
    return build_opener(proxies, NoRedirect(), HTTPSHandler(context=context))


def respond(response_url: str, body: Mapping[str, Any], *, base_url: str, timeout: timedelta) -> None:
    """Answer a click or command at the address that came with it, once.

    The address came from outside and may say anything: it is called only where it is Slack's own, or the stand-in's
    where `base_url` is one on loopback.

    Raises:
        RejectedNoticeError: no such address, or one that is used up (five times) or too old (30 minutes).
        RateLimitedError: try again after its `retry_after`.
        NoticeError: not taken for a passing reason, or nobody knows whether it was.

    API: "Handling user interaction in your Slack apps", message responses.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request

    stand_in = urlsplit(base_url)
    local = stand_in.scheme == "http" and stand_in.hostname in LOOPBACK
    ours = re.escape(f"http://{stand_in.netloc}" if local else _HOOKS)
    if re.fullmatch(ours + _PATH, response_url, re.ASCII) is None:
        raise RejectedNoticeError("a click's response address is not one of Slack's; it is not called")
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "costguard"}
    request = Request(response_url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - allow-listed above
    try:
        with opener("" if local else None).open(request, timeout=timeout.total_seconds()) as answer:
            status, found, raw = answer.status, dict(answer.headers), answer.read(_MOST_BYTES)
    except HTTPError as err:
        with err:
            status, found, raw = err.code, dict(err.headers), err.read(_MOST_BYTES)
    except (HTTPException, OSError, ValueError) as err:
        text = f"Slack did not answer at a click's response address: {type(err).__name__}"
        raise NoticeError(text) from err
    _must_be_taken(status, found, raw)


def _must_be_taken(status: int, headers: Mapping[str, str], raw: bytes) -> None:
    """`ok`, as a word or in a document, is the only yes."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = raw.decode("utf-8", "replace").strip()
    taken = document == "ok" or (isinstance(document, dict) and document.get("ok") is True)
    if taken and status < _REDIRECTS:
        return
    told = {"error": document} if isinstance(document, str) else document  # `expired_url`, without a document around it
    why = refusal("the answer to a click", status, headers, told)
    if type(why) is NoticeError and _REDIRECTS <= status < _FAULTS:
        raise RejectedNoticeError(str(why))
    raise why
