"""Keep links: the address a person follows to keep a machine, where a channel has no buttons. Pure.

Following one changes nothing: previews and virus scanners follow links too. The page behind it asks to confirm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from costguard.domain.answers import SHORTEST_SECRET, AnswerKind, KeepToken, keep_token
from costguard.domain.errors import InvalidInputError
from costguard.ports import Choice

VALID_FOR = timedelta(days=7)  # the longest usual wait; a later answer is asked for by a later notice
PATH = "/keep"
_ANSWERS_AT = re.compile(r"https://|http://(?:127\.0\.0\.1|localhost)(?=[:/]|$)")
Link = Callable[[Choice, str], str]
"""The address behind a choice, for whom it is sent to; empty where a choice has none."""


class KeepLinks:
    """Makes the links of one deployment. `answer_url` is where the function `slack_actions` answers.

    Raises:
        InvalidInputError: no address, or a secret of fewer than 32 letters.
    """

    def __init__(self, answer_url: str, secret: str) -> None:
        if not _ANSWERS_AT.match(answer_url):
            raise InvalidInputError("Keep links need COSTGUARD_ANSWER_URL, an https address")
        if len(secret) < SHORTEST_SECRET:
            message = f"COSTGUARD_LINK_SECRET is shorter than {SHORTEST_SECRET} letters; make one at random"
            raise InvalidInputError(message)
        base = answer_url.partition("?")[0].rstrip("/")
        self._base = base.replace("(", "%28").replace(")", "%29") + PATH  # in markdown they would end the link
        self._secret = secret

    def keep_url(self, choice: Choice, address: str, now: datetime) -> str:
        """The link for a `KEEP` sent to `address` (`feishu:research`); empty for what no link can say."""
        if choice.kind is not AnswerKind.KEEP or choice.length is None:
            return ""
        expires = (now + VALID_FOR).replace(microsecond=0)
        try:
            token = keep_token(KeepToken(choice.of, choice.length, address, expires), self._secret)
        except InvalidInputError:  # an address beyond ASCII, half an hour: the command is named instead
            return ""
        return f"{self._base}?t={token}"

    def at(self, now: Callable[[], datetime]) -> Link:
        """The same, dated by a clock."""
        return lambda choice, address: self.keep_url(choice, address, now())
