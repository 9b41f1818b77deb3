"""What people say back to a notice, who they are, and the signed text of a Keep link.

One link, one text: a token is read only if writing what it says gives the same letters again.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from hashlib import sha256

from costguard.domain.errors import InvalidInputError


class AnswerKind(str, Enum):
    """`STOP_NOW` ends the wait for a stop; `APPROVE` lets one waiting decision pass; neither lifts another rail.

    `NOT_MINE` asks for the next owner. A `KEEP` beats the others and every action not yet claimed. `START` has a
    machine started again that Costguard stopped. `EXCEPT` asks for an exception, which holds nothing until an approver
    agrees.
    """

    KEEP = "keep"
    STOP_NOW = "stop_now"
    APPROVE = "approve"
    NOT_MINE = "not_mine"
    START = "start"
    EXCEPT = "except"


class AnswerCode(str, Enum):
    """What an answer came to; `report` has words for each in each language."""

    # it counts
    KEPT = "kept"
    KEPT_LATE = "kept_late"
    STOP_ASKED = "stop_asked"
    STOP_NEEDS_ANOTHER = "stop_needs_another"
    APPROVED = "approved"
    APPROVAL_NEEDS_ANOTHER = "approval_needs_another"
    APPROVAL_NEEDS_APPROVER = "approval_needs_approver"
    DISOWNED = "disowned"
    START_ASKED = "start_asked"
    EXCEPTION_ASKED = "exception_asked"
    EXCEPTION_NEEDS_ANOTHER = "exception_needs_another"
    EXCEPTION_AGREED = "exception_agreed"
    # it stands already
    KEPT_LONGER = "kept_longer"
    STOP_STANDS = "stop_stands"
    STOP_WAITS = "stop_waits"
    APPROVAL_STANDS = "approval_stands"
    APPROVAL_WAITS = "approval_waits"
    DISOWNED_BEFORE = "disowned_before"
    START_STANDS = "start_stands"
    EXCEPTION_WAITS = "exception_waits"
    EXCEPTION_STANDS = "exception_stands"
    # whose it is not to say
    NOT_SET_UP = "not_set_up"
    FOREIGN_TEAM = "foreign_team"
    FOREIGN_CHANNEL = "foreign_channel"
    NOT_AMONG_OWNERS = "not_among_owners"
    NOT_AMONG_APPROVERS = "not_among_approvers"
    ASKED_BY_THEMSELVES = "asked_by_themselves"
    EXCEPTION_OWN = "exception_own"
    # too late, or not what the notice offered
    UNKNOWN = "unknown"
    OVER = "over"
    OUTDATED = "outdated"
    UNDER_WAY = "under_way"
    ONLY_REHEARSED = "only_rehearsed"
    NOTHING_TO_STOP = "nothing_to_stop"
    NOTHING_TO_APPROVE = "nothing_to_approve"
    NOTHING_TO_START = "nothing_to_start"
    START_OFF = "start_off"
    START_SPENT = "start_spent"
    EXCEPTION_OFF = "exception_off"
    EXCEPTION_OVER = "exception_over"
    EXCEPTION_TOO_LONG = "exception_too_long"
    EXCEPTION_NO_MACHINE = "exception_no_machine"
    WAITS_FOR_APPROVAL = "waits_for_approval"
    IS_KEPT = "is_kept"
    NO_OWNER = "no_owner"
    NO_MACHINE = "no_machine"
    BAD_LENGTH = "bad_length"
    POLICY_BROKEN = "policy_broken"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody as a channel proved them: `via` is `slack`, `link` or `cli`; `team` the workspace they belong to.

    A signed link proves only who was sent it: its `id` is the address it went to.
    """

    via: str
    id: str
    team: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As the ledger keeps them; two votes of one text are one person's."""
        return f"{self.via}:{self.team}/{self.id}" if self.team else f"{self.via}:{self.id}"


@dataclass(frozen=True, slots=True)
class AnswerRef:
    """What an answer is bound to: one decision of one case. As text it is what a button or link carries."""

    case_id: str
    decision_id: str

    def __str__(self) -> str:
        """`CASE/DECISION`."""
        return f"{self.case_id}/{self.decision_id}"

    @classmethod
    def parse(cls, text: str) -> AnswerRef | None:
        """The reference that `text` is, or None."""
        case_id, slash, decision_id = text.partition("/")
        plain = all(part.isascii() and part.isalnum() and len(part) <= _LONGEST_ID for part in (case_id, decision_id))
        return cls(case_id, decision_id) if slash and plain else None


_LONGEST_ID = 64
ASKED = "except"
"""How the decision of a question for an exception begins; no hash does."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one person. `length` is how long to keep, for a `KEEP` only."""

    kind: AnswerKind
    of: AnswerRef
    by: Person
    at: datetime
    length: timedelta | None = None
    reason: str = ""


LONGEST_VALID = timedelta(days=8)
LONGEST_KEEP = timedelta(days=90)
SHORTEST_SECRET = 32
_PREFIX = "ck1-"  # the version; by it a log line knows a token wherever it stands
_SEAL_BYTES = 16  # 128 bits of HMAC-SHA256, which RFC 2104 allows; links must be short where a message has 4 KiB
_LONGEST_ADDRESS = 300
_LONGEST_TOKEN = 700
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]+")
_PAYLOAD = re.compile(
    r"(?P<of>[A-Za-z0-9]{1,64}/[A-Za-z0-9]{1,64})\n(?P<hours>0|[1-9][0-9]{0,3})\n(?P<expires>[1-9][0-9]{0,10})\n"
    rf"(?P<address>[!-~]{{1,{_LONGEST_ADDRESS}}})",
    re.ASCII,
)
_ADDRESS = re.compile(rf"[!-~]{{1,{_LONGEST_ADDRESS}}}", re.ASCII)
_PURPOSE = b"costguard keep link 1\n"  # the same secret never seals anything else by accident


@dataclass(frozen=True, slots=True)
class KeepToken:
    """Keep what `of` is about for `length` whole hours. `sent_to` is the address of the message it stood in.

    A length of nothing asks for a `START`, which is the other thing that a link can say.
    """

    of: AnswerRef
    length: timedelta
    sent_to: str
    expires: datetime

    @property
    def kind(self) -> AnswerKind:
        """What it says."""
        return AnswerKind.KEEP if self.length else AnswerKind.START

    @property
    def hours(self) -> int:
        """Its length as people read it."""
        return self.length // timedelta(hours=1)


class ForgedTokenError(InvalidInputError):
    """Not a token that this secret made."""


class ExpiredTokenError(InvalidInputError):
    """Made with this secret, and its time is over."""


def keep_token(token: KeepToken, secret: str) -> str:
    """The text of `token`, of letters that stand in an address as they are.

    Raises:
        InvalidInputError: a length that is not in whole hours or over 90 days, an address or id of another form, or a
            secret of fewer than 32 letters.
    """
    hours, rest = divmod(token.length, timedelta(hours=1))
    if rest or not timedelta(0) <= token.length <= LONGEST_KEEP:
        raise InvalidInputError("a Keep link keeps for whole hours, at most 90 days")
    if not _ADDRESS.fullmatch(token.sent_to) or AnswerRef.parse(str(token.of)) != token.of:
        raise InvalidInputError("a Keep link needs the address it is sent to in ASCII, and ids of letters and digits")
    payload = "\n".join((str(token.of), str(hours), str(int(token.expires.timestamp())), token.sent_to))
    whole = _seal(payload.encode(), secret) + payload.encode()
    return _text(whole)


def read_keep_token(text: str, secret: str, now: datetime) -> KeepToken:
    """What `text` stands for.

    Raises:
        ForgedTokenError: no token, or none that this secret made, or one valid for longer than any is made.
        ExpiredTokenError: its time is over.
    """
    payload = _opened(text, secret)
    parts = _PAYLOAD.fullmatch(payload)
    of = AnswerRef.parse(parts["of"]) if parts else None
    if parts is None or of is None:
        raise ForgedTokenError("this link was not made here")
    expires = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=int(parts["expires"]))
    if expires - now > LONGEST_VALID:
        raise ForgedTokenError("this link was not made here")
    if now >= expires:
        raise ExpiredTokenError("the time of this link is over")
    return KeepToken(of, timedelta(hours=int(parts["hours"])), parts["address"], expires)


def _opened(text: str, secret: str) -> str:
    """The payload, once the seal was found true, letter by letter in constant time."""
    if len(text) > _LONGEST_TOKEN or not _TOKEN.fullmatch(text):
        raise ForgedTokenError("this link was not made here")
    letters = text[len(_PREFIX) :]
    try:
        whole = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    except (binascii.Error, ValueError) as err:
        raise ForgedTokenError("this link was not made here") from err
    seal, payload = whole[:_SEAL_BYTES], whole[_SEAL_BYTES:]
    good = hmac.compare_digest(seal, _seal(payload, secret))
    if not good or _text(whole) != text:  # spare bits at the end would give one payload several texts
        raise ForgedTokenError("this link was not made here")
    try:
        return payload.decode("ascii")
    except UnicodeDecodeError as err:
        raise ForgedTokenError("this link was not made here") from err


def _text(whole: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(whole).rstrip(b"=").decode()


def _seal(payload: bytes, secret: str) -> bytes:
    if len(secret) < SHORTEST_SECRET:
        message = f"Keep links need a secret of {SHORTEST_SECRET} letters or more; set COSTGUARD_LINK_SECRET"
        raise InvalidInputError(message)
    return hmac.new(secret.encode(), _PURPOSE + payload, sha256).digest()[:_SEAL_BYTES]
