"""What stand-ins for object stores share: one bucket, objects with the headers they came with, and errors in XML."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from typing_extensions import Self

from cloudstand.wire.faults import Fault, FaultKind, Faults
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer

XML = "application/xml"
_FORBIDDEN, _NOT_FOUND, _BAD_REQUEST, _NOT_ALLOWED = 403, 404, 400, 405


@dataclass(frozen=True, slots=True)
class Kept:
    """One object as it was put."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class NotSignedError(Exception):
    """A request that the vendor would not believe; the text is its code."""


class ObjectStandIn:
    """One bucket behind loopback HTTP, in the first part of the path.

    `believe` raises for a request whose signature is wrong. `denied` lets nobody in, whatever they sign.
    """

    def __init__(self, bucket: str, believe: Callable[[Request], None]) -> None:
        self._bucket = bucket
        self._believe = believe
        self.objects: dict[str, Kept] = {}
        self.faults = Faults()
        self.denied = False
        self.calls: list[str] = []
        self.server = WireServer(self._answer, stall_seconds=0.0)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self.server.url

    def close(self) -> None:
        """Stop serving."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Request) -> Answer:
        self.calls.append(request.method)
        fault = self.faults.take(request.method, "", "")
        if fault is not None and fault.kind is FaultKind.REFUSED:
            return error(fault.code, fault.status)
        if fault is not None and fault.kind in {FaultKind.RESET, FaultKind.STALLED}:
            return Answer(200, b"", ending=Ending.RESET)
        return _broken(self._done(request), fault)

    def _done(self, request: Request) -> Answer:
        try:
            self._believe(request)
        except NotSignedError as err:
            return error(str(err), _FORBIDDEN)
        bucket, _, key = unquote(request.path.lstrip("/")).partition("/")
        if self.denied:
            return error("AccessDenied", _FORBIDDEN)
        if bucket != self._bucket:
            return error("NoSuchBucket", _NOT_FOUND)
        if request.method == "PUT":
            md5 = base64.b64encode(hashlib.md5(request.body, usedforsecurity=False).digest()).decode()
            if request.headers.get("content-md5") != md5:
                return error("BadDigest", _BAD_REQUEST)
            self.objects[key] = Kept(request.body, dict(request.headers))
            return Answer(200, b"", XML)
        if request.method != "GET":
            return error("MethodNotAllowed", _NOT_ALLOWED)
        kept = self.objects.get(key)
        return error("NoSuchKey", _NOT_FOUND) if kept is None else Answer(200, kept.body, kept.headers["content-type"])


def error(code: str, status: int) -> Answer:
    """An error as all three vendors word it."""
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code} it is.</Message></Error>'
    return Answer(status, text.encode(), XML)


def _broken(answer: Answer, fault: Fault | None) -> Answer:
    if fault is None:
        return answer
    endings = {FaultKind.LOST_ANSWER: Ending.RESET, FaultKind.TRUNCATED: Ending.TRUNCATED}
    return Answer(answer.status, answer.body, answer.content_type, ending=endings.get(fault.kind, Ending.WHOLE))
