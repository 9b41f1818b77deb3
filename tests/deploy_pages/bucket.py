"""One bucket for several callers: each one's signatures are verified, and what its policies allow is asked."""

from __future__ import annotations

import re
from collections.abc import Callable

from cloudstand.wire.authority import Authority, Wish
from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.objects import Kept, ObjectStandIn, error

_KEY_ID = re.compile(r"(?:Credential=|q-ak=)([^/,&]+)")


class Bucket:
    """What OSS and COS are here. `opened` makes a stand-in that believes one caller; `wish` is what a request needs."""

    def __init__(
        self, opened: Callable[[Keys], ObjectStandIn], wish: Callable[[str, str], Wish], there: Callable[[], bool]
    ) -> None:
        self._opened = opened
        self._wish = wish
        self._there = there
        self._doors: dict[str, ObjectStandIn] = {}
        self._authorities: dict[str, Authority] = {}
        self.objects: dict[str, Kept] = {}

    def admit(self, keys: Keys, authority: Authority | None = None) -> None:
        """Let somebody in; without an authority they may do everything."""
        self._doors[keys.key_id] = self._opened(keys)
        self._doors[keys.key_id].objects = self.objects
        if authority is not None:
            self._authorities[keys.key_id] = authority

    def answer(self, request: Request) -> Answer:
        """The answer to one request; of a bucket that is not made yet the vendor's error."""
        found = _KEY_ID.search(request.headers.get("authorization", ""))
        door = self._doors.get(found[1] if found else "")
        if door is None:
            return error("InvalidAccessKeyId", 403)
        if not self._there():
            return error("NoSuchBucket", 404)
        authority = self._authorities.get(found[1] if found else "")
        if authority is not None and not authority.allows(self._wish(request.method, request.path.lstrip("/"))):
            return error("AccessDenied", 403)
        return door.server.answer(request)

    def close(self) -> None:
        """Stop everything."""
        for door in self._doors.values():
            door.close()
