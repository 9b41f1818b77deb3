"""Pages of a list, by token and by number."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cloudstand.alibaba.core.errors import ApiError
from cloudstand.alibaba.core.parameters import Asked

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page; `token` is empty on the last one."""

    items: list[Item]
    token: str
    number: int
    size: int


class Pages:
    """How one action pages. `most` entries a page; without being asked `usual`, and by token never fewer than `least`.

    The token is made of the action and the place that it goes on from: one of another action is refused.
    """

    def __init__(self, action: str, asked: Asked, *, most: int, usual: int, least: int = 1) -> None:
        self._action = action
        self._asked = asked
        self._most = most
        self._usual = usual
        self._least = least

    def of(self, items: Sequence[Item], *, by_token: bool = True) -> Page[Item]:
        """The page that is asked for.

        Raises:
            ApiError: a token that this action never gave out.
        """
        if not by_token:
            number = self._asked.whole("PageNumber") or 1
            size = self._asked.whole("PageSize") or self._usual
            start = (number - 1) * size
            return Page([*items[start : start + size]], "", number, size)
        wanted = self._asked.whole("MaxResults")
        size = self._usual if wanted is None else max(self._least, min(self._most, wanted))
        start = self._start()
        end = start + size
        token = token_of(self._action, end) if end < len(items) else ""
        return Page([*items[start:end]], token, 1, size)

    def _start(self) -> int:
        token = self._asked.text("NextToken")
        return place_of(self._action, token) if token else 0


def token_of(action: str, place: int) -> str:
    """A token that says where to go on."""
    return urlsafe_b64encode(json.dumps([action, place]).encode()).decode("ascii")


def place_of(action: str, token: str) -> int:
    """Where a token says to go on.

    Raises:
        ApiError: it is none of this action's.
    """
    try:
        found = json.loads(urlsafe_b64decode(token.encode("ascii", "strict")))
    except (ValueError, binascii.Error) as err:
        raise _not_a_token() from err
    if not isinstance(found, list) or found[:1] != [action] or not isinstance(found[-1], int):
        raise _not_a_token()
    return int(found[-1])


def _not_a_token() -> ApiError:
    return ApiError("InvalidParameter.NextToken", 'The specified parameter "NextToken" is not valid.')
