"""Posting to Slack's addresses without being led elsewhere, and answering a click at the address that came with it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from costguard.adapters.notifiers.slack.errors import refusal
from costguard.domain.errors import NoticeError, RejectedNoticeError

if TYPE_CHECKING:
    import ssl
    from urllib.request import OpenerDirector

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
