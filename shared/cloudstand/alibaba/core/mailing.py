"""DirectMail: it takes mail from senders that were verified, and keeps what it took."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError, malformed
from cloudstand.alibaba.core.parameters import Asked
from cloudstand.alibaba.core.site import ApiCall, SentMail
from cloudstand.world.cloud import World

_RECIPIENT = re.compile(r"[\w+.-]+@[\w.-]+\.\w+", re.ASCII)
_SUBJECT_MAX, _ALIAS_BELOW, _HEADERS_MAX = 256, 15, 10
_BODY_MAX = 80 * 1024  # what the documents promise for any way of sending it
_STANDARD_HEADERS = frozenset({"Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post"})


def single_send_mail(call: ApiCall, _: World) -> Mapping[str, Any]:
    """Take one mail.

    Raises:
        ApiError: an unknown sender, a recipient or text of another form, or nothing in it.
    """
    asked, site = call.asked, call.site
    if asked.text("AccountName") not in site.senders:
        raise ApiError("InvalidMailAddress.NotFound", "The specified mailAddress does not exist.", NOT_FOUND)
    recipients = asked.text("ToAddress").split(",")
    if not all(_RECIPIENT.fullmatch(recipient) for recipient in recipients):
        raise ApiError("InvalidToAddress", "The specified toAddress is wrongly formed.")
    if len(asked.text("Subject")) > _SUBJECT_MAX:
        raise malformed("Subject", f"it is longer than {_SUBJECT_MAX} characters")
    if len(asked.text("FromAlias")) >= _ALIAS_BELOW:
        raise malformed("FromAlias", f"it has {_ALIAS_BELOW} characters or more")
    bodies = asked.text("TextBody"), asked.text("HtmlBody")
    if not any(bodies) or any(len(body.encode()) > _BODY_MAX for body in bodies):
        raise ApiError("InvalidBody", "The specified textBody or htmlBody is wrongly formed.")
    sent = SentMail(
        sender=asked.text("AccountName"),
        recipients=tuple(recipients),
        subject=asked.text("Subject"),
        text=bodies[0],
        html=bodies[1],
        headers=_headers(asked),
    )
    site.mails.append(sent)
    return {"EnvId": f"{600_000_000_000 + len(site.mails)}"}


def _headers(asked: Asked) -> Mapping[str, str]:
    if not asked.given("Headers"):
        return {}
    try:
        found = json.loads(asked.text("Headers"))
    except ValueError as err:
        raise malformed("Headers", "it is no JSON") from err
    if not isinstance(found, dict) or len(found) > _HEADERS_MAX:
        raise malformed("Headers", f"it is no object of at most {_HEADERS_MAX} headers")
    for name, value in found.items():
        if not (name in _STANDARD_HEADERS or name.lower().startswith("x-user-")) or not isinstance(value, str):
            raise malformed("Headers", f"{name} is not among those that may be set")
    return found
