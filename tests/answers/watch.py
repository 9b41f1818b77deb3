"""Sees every answer of the emulators in this process, and keeps what none of the vendors publishes."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from tests.answers import alibaba, aws, tencent
from tests.answers.known import is_known
from tests.answers.shapes import Complaint

from cloudstand.wire.messages import Answer, Ending, Request
from costguard.domain.refs import provider_of


class Watch:
    """To be shown answers from many threads; `taken` is what was wrong since it was asked last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[str, None] = {}

    def __call__(self, cloud: str, request: Request, answer: Answer) -> None:
        """Look at one answer."""
        try:
            found = [
                f"{cloud}: {each.field}: {each.why} {each.value}".strip() for each in strange(cloud, request, answer)
            ]
        except Exception as err:  # noqa: BLE001 - in a server's thread nobody else would see it
            found = [f"{cloud}: an answer that could not be looked at: {err!r}"]
        if found:
            with self._lock:
                self._found.update(dict.fromkeys(found))

    def taken(self) -> list[str]:
        """Everything so far, once."""
        with self._lock:
            found, self._found = self._found, {}
        return [*found]


def strange(cloud: str, request: Request, answer: Answer) -> Iterator[Complaint]:
    """What in one answer is neither published nor known; nothing where no answer arrives, or a proxy's instead."""
    if answer.ending in {Ending.RESET, Ending.STALLED} or answer.body.startswith(b"<html>"):
        return
    provider = provider_of(cloud)
    if provider == "tencent":
        found = tencent.in_answer(cloud, request, answer)
    elif provider == "alibaba":
        found = alibaba.in_answer(request, answer)
    else:
        found = aws.in_answer(request, answer)
    yield from (each for each in found if not is_known(each))
