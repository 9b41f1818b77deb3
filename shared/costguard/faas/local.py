"""Call a function by hand as a host would: `costguard invoke` and tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from typing_extensions import assert_never

from costguard.adapters.notifiers.slack.requests import signed
from costguard.domain.errors import InvalidInputError
from costguard.faas.handler import Handler
from costguard.faas.http import host_of_request, is_http, read_request
from costguard.faas.invocation import EXPECTED, Host
from costguard.ports import Clock

REQUEST_ID = "by-hand"
TIMEOUT = timedelta(seconds=900)  # as in functions/*/function.yaml


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The part of Lambda's context object that this program uses."""

    clock: Clock
    ends_at: datetime
    aws_request_id: str = REQUEST_ID

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda would end the function."""
        return max(int((self.ends_at - self.clock.now()).total_seconds() * 1000), 0)


def invoke(handler: Handler, event: bytes, clock: Clock, *, host: Host | None = None) -> dict[str, object]:
    """Hand the JSON of `event` over to `handler` in the form of `host`; None tells the host by the event's own keys.

    Raises:
        InvalidInputError: not JSON, or no event of that host; nothing was done.
        CostguardError: whatever the function raises.
    """
    decoded = _decode(event)
    host = host or host_of(decoded)
    return handler(event if host is Host.FC else decoded, context_of(host, clock))


def signed_event(event: bytes, secret: str, now: datetime) -> bytes:
    """`event`, signed as Slack would at `now` where it is a request of Slack's: a signature is good for five minutes.

    Raises:
        InvalidInputError: it is no event at all.
    """
    decoded = _decode(event)
    if not is_http(decoded):
        return event
    request = read_request(event if host_of_request(decoded) is Host.FC else decoded, host_of_request(decoded))
    if "x-slack-signature" not in request.headers:
        return event
    proof = signed(request.body, secret, now)
    headers = {name: proof.get(name.lower(), value) for name, value in decoded["headers"].items()}
    return json.dumps({**decoded, "headers": headers}).encode()


def host_of(event: object) -> Host:
    """The host that sends events with such keys; `local` for those sent by hand."""
    if is_http(event):
        return host_of_request(event)
    keys = event.keys() if isinstance(event, dict) else frozenset[str]()
    if "triggerTime" in keys:
        return Host.FC
    if "TriggerName" in keys:
        return Host.SCF
    if "detail-type" in keys:
        return Host.LAMBDA
    return Host.LOCAL


def context_of(host: Host, clock: Clock, timeout: timedelta = TIMEOUT) -> Any:
    """What `host` hands over beside the event, for a call that starts now."""
    if host is Host.LAMBDA:
        return LambdaContext(clock, clock.now() + timeout)
    if host is Host.FC:
        return SimpleNamespace(
            request_id=REQUEST_ID, function=SimpleNamespace(timeout=int(timeout.total_seconds())), region="cn-shanghai"
        )
    if host is Host.SCF:
        return {"request_id": REQUEST_ID, "time_limit_in_ms": int(timeout.total_seconds() * 1000)}
    if host is Host.LOCAL:
        return None
    assert_never(host)


def _decode(event: bytes) -> Any:
    try:
        return json.loads(event.decode("utf-8-sig")) if event.strip() else {}
    except (ValueError, RecursionError) as err:
        message = f"function event: not JSON in UTF-8 ({err}); expected {EXPECTED[Host.LOCAL]}, or a host's own event"
        raise InvalidInputError(message) from err
