"""A bucket of OSS or COS that keeps and gives what policy documents allow; signatures are looked at elsewhere."""

from __future__ import annotations

from typing_extensions import Self

from cloudstand.wire.authority import Authority, Wish
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer

_SAID = {
    "alibaba": ("oss:{}Object", "acs:oss:oss-cn-hangzhou:1234567890123456:{}"),
    "tencent": ("name/cos:{}Object", "qcs::cos:ap-guangzhou:uid/1250000000:{}"),
}


class BucketJudge:
    """`kept` is by bucket and key; without an `authority` anything goes."""

    def __init__(self, cloud: str) -> None:
        self._action, self._resource = _SAID[cloud]
        self.kept: dict[str, bytes] = {}
        self.authority: Authority | None = None
        self._server = WireServer(self._answer)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _answer(self, request: Request) -> Answer:
        name = request.path.lstrip("/")
        wish = Wish((self._action.format(request.method.capitalize()),), (self._resource.format(name),))
        if self.authority is not None and not self.authority.allows(wish):
            return Answer(403, b"<Error><Code>AccessDenied</Code></Error>", "application/xml")
        if request.method == "PUT":
            self.kept[name] = request.body
            return Answer(200, b"")
        return Answer(200, self.kept[name])
