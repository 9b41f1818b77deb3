"""What Slack's errors mean, and what a person can do about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.adapters.notifiers.common import retry_after
from costguard.adapters.notifiers.slack.blocks_text import escape
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError

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
