"""One request as it arrived, and one answer as it is to leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Ending(str, Enum):
    """How the answer's bytes come to an end on the wire."""

    WHOLE = "whole"
    RESET = "reset"  # the connection breaks before the first byte
    TRUNCATED = "truncated"  # headers promise more than comes
    STALLED = "stalled"  # headers come, then nothing until the server's patience ends


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are in lower case; `query` is as it was sent."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `length` is what HEAD is told of a body that only GET would bring, where it is not `body`'s."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = Ending.WHOLE
    length: int | None = None
