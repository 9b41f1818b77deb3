"""The way between a provider and its cloud: what goes wrong there, and what was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from tests.simulation.faults import Fault
from tests.simulation.wires.sockets import Application

from cloudstand.wire.messages import Answer, Ending, Request

CHANGES = frozenset(
    {"StopInstances", "StartInstances", "TerminateInstances", "DeleteInstances", "CreateSnapshot", "CreateSnapshots"}
)
"""What changes something on any of the clouds, as far as the executors go."""

HEALS_AFTER = 2  # requests in a row that fail and are asked again: reads are tried four times and more


@dataclass(frozen=True, slots=True)
class Code:
    """How a cloud words one refusal."""

    code: str
    status: int


_CODES: Mapping[str, Mapping[Fault, Code]] = {
    "aws": {
        Fault.THROTTLED: Code("RequestLimitExceeded", 503),
        Fault.DENIED: Code("UnauthorizedOperation", 403),
        Fault.REFUSED: Code("IncorrectInstanceState", 400),
        Fault.CONFLICT: Code("InternalError", 500),
    },
    "alibaba": {
        Fault.THROTTLED: Code("Throttling.User", 400),
        Fault.DENIED: Code("Forbidden.RAM", 403),
        Fault.REFUSED: Code("IncorrectInstanceStatus", 403),
        Fault.CONFLICT: Code("InternalError", 500),
    },
    "tencent": {
        Fault.THROTTLED: Code("RequestLimitExceeded", 200),
        Fault.DENIED: Code("UnauthorizedOperation", 200),
        Fault.REFUSED: Code("OperationDenied", 200),
        Fault.CONFLICT: Code("InternalError", 200),
    },
}
"""`CONFLICT` stands for the server's own failure: whoever sent a change cannot know what came of it."""


@dataclass(slots=True)
class Trouble:
    """What goes wrong during one call of a port: the requests of `actions` (empty: any) after the first `skips`.

    `lasts`: every further one as well, else only as many as a read heals by asking again. `done`: a server that fails
    has made the change all the same.
    """

    fault: Fault
    actions: frozenset[str] = frozenset()
    skips: int = 0
    lasts: bool = False
    done: bool = False
    struck: int = 0

    def strikes(self, action: str) -> bool:
        """Whether this request is struck; counts it."""
        if self.actions and action not in self.actions:
            return False
        if self.skips > 0:
            self.skips -= 1
            return False
        if not self.lasts and self.struck >= (1 if action in CHANGES else HEALS_AFTER):
            return False
        self.struck += 1
        return True

    @property
    def unanswered(self) -> bool:
        """Whether a change struck by it may or may not have been done, as far as its sender can know."""
        return self.fault in {Fault.LOST, Fault.LOST_ANSWER, Fault.TRUNCATED, Fault.CONFLICT}

    @property
    def hid_something(self) -> bool:
        """Whether what a read asked for never came: nobody asks again where permission is lacking."""
        return self.struck > 0 and (self.lasts or self.fault is Fault.DENIED)


@dataclass(slots=True)
class Line:
    """One cloud as a stand-in behind loopback: `answer` is the emulator's. `sent` hears of every change that leaves."""

    provider: str
    answer: Application
    sent: Callable[[str, Trouble | None], None]
    trouble: Trouble | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Answer:
        """One request, whatever becomes of it."""
        action = action_of(request)
        self.asked.append(action)
        struck = self.trouble if self.trouble is not None and self.trouble.strikes(action) else None
        if action in CHANGES:
            self.sent(action, struck)
        if struck is None:
            return self.answer(request)
        if struck.fault is Fault.LOST:
            return Answer(200, b"", ending=Ending.RESET)
        if struck.fault in {Fault.LOST_ANSWER, Fault.TRUNCATED}:
            cut = Ending.RESET if struck.fault is Fault.LOST_ANSWER else Ending.TRUNCATED
            return replace(self.answer(request), ending=cut)
        if struck.done:
            self.answer(request)
        return refusal(self.provider, _CODES[self.provider][struck.fault])


def action_of(request: Request) -> str:
    """The operation by its name, wherever the protocol keeps it."""
    target = request.headers.get("x-tc-action") or request.headers.get("x-amz-target", "").rpartition(".")[2]
    if target or "/operation/" in request.path:  # the CBOR protocol names it in the path
        return target or request.path.rpartition("/")[2]
    asked = {**parse_qs(request.body.decode("latin-1")), **parse_qs(request.query)}
    return asked.get("Action", [""])[0]


def refusal(provider: str, code: Code) -> Answer:
    """A refusal before anything was done, as this cloud's compute words it."""
    message = "as was asked for"
    if provider == "tencent":
        error = {"Response": {"Error": {"Code": code.code, "Message": message}, "RequestId": "refused"}}
        return Answer(code.status, json.dumps(error).encode())
    if provider == "alibaba":
        body = {"RequestId": "refused", "HostId": "here", "Code": code.code, "Message": message, "Recommend": ""}
        return Answer(code.status, json.dumps(body).encode(), "application/json;charset=utf-8")
    error_xml = f"<Errors><Error><Code>{code.code}</Code><Message>{message}</Message></Error></Errors>"
    return Answer(code.status, f"<Response>{error_xml}<RequestID>refused</RequestID></Response>".encode(), "text/xml")
