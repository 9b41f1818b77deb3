"""What a test in any language tells a stand-in that others use: move its clock, let things go wrong, show the calls.

Under `/_sandbox/`, beside the cloud's own API: `GET state`, `GET calls`, `POST advance`, and where it can be told what
goes wrong `POST faults` and `POST faults/clear`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from cloudstand.wire.faults import Fault, FaultKind, Faults
from cloudstand.wire.messages import Answer, Request

PREFIX = "/_sandbox/"
_OK, _BAD_REQUEST, _NOT_FOUND = 200, 400, 404
_LONGEST_STEP = timedelta(days=3650)
_TEXTS = frozenset({"action", "account", "region", "code"})


class _NotUnderstoodError(Exception):
    """What was asked is no order that control knows."""


class MovableClock(Protocol):
    """A clock that can be set forward."""

    def now(self) -> datetime:
        """The present moment of the world."""

    def advance(self, step: timedelta) -> datetime:
        """Move forward and return the new moment."""


class Control:
    """Answers requests under `PREFIX`; everything else is the emulator's.

    Without `faults` none can be ordered. `shown` is what else can be read there, by its path.
    """

    def __init__(
        self,
        clock: MovableClock,
        faults: Faults | None,
        calls: Sequence[Any],
        shown: Mapping[str, Callable[[], object]] | None = None,
    ) -> None:
        self._clock = clock
        self._calls = calls
        self._routes: dict[tuple[str, str], Callable[[Request], object]] = {
            ("GET", "state"): self._state,
            ("GET", "calls"): lambda _: [asdict(call) for call in self._calls],
            ("POST", "advance"): self._advance,
        }
        if faults is not None:
            self._routes |= {
                ("POST", "faults"): partial(_add_fault, faults),
                ("POST", "faults/clear"): partial(_clear_faults, faults),
            }
        self._routes |= {("GET", path): partial(_show, found) for path, found in (shown or {}).items()}

    def __call__(self, request: Request) -> Answer:
        """One answer, in JSON."""
        route = self._routes.get((request.method, request.path.removeprefix(PREFIX)))
        if route is None:
            known = ", ".join(f"{method} {PREFIX}{path}" for method, path in self._routes)
            return _answer(_NOT_FOUND, {"error": f"no such path; there are {known}"})
        try:
            return _answer(_OK, route(request))
        except _NotUnderstoodError as err:
            return _answer(_BAD_REQUEST, {"error": str(err)})

    def _state(self, _: Request) -> dict[str, object]:
        return {"now": self._clock.now().isoformat(), "calls": len(self._calls)}

    def _advance(self, request: Request) -> dict[str, object]:
        seconds = _object(request).get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise _NotUnderstoodError('expected {"seconds": 3600}')
        if not 0 <= seconds <= _LONGEST_STEP.total_seconds():
            message = f"seconds is {seconds}, expected 0 to {_LONGEST_STEP.total_seconds():.0f}"
            raise _NotUnderstoodError(message)
        return {"now": self._clock.advance(timedelta(seconds=seconds)).isoformat()}


def _add_fault(faults: Faults, request: Request) -> dict[str, object]:
    faults.add(_fault(_object(request)))
    return {"added": True}


def _clear_faults(faults: Faults, _: Request) -> dict[str, object]:
    faults.clear()
    return {"cleared": True}


def _show(found: Callable[[], object], _: Request) -> object:
    return found()


def _object(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as err:
        raise _NotUnderstoodError("the body is no JSON") from err
    if not isinstance(found, dict):
        raise _NotUnderstoodError("the body is no JSON object")
    return found


def _fault(given: dict[str, Any]) -> Fault:
    known = {field.name for field in fields(Fault)}
    unknown = sorted(given.keys() - known)
    if unknown:
        message = f"unknown {', '.join(unknown)}; expected {', '.join(sorted(known))}"
        raise _NotUnderstoodError(message)
    if given.get("kind") not in {kind.value for kind in FaultKind}:
        message = f"kind is {given.get('kind')!r}, expected one of {', '.join(kind.value for kind in FaultKind)}"
        raise _NotUnderstoodError(message)
    for name in given.keys() - {"kind"}:
        wanted: type = str if name in _TEXTS else int
        if not isinstance(given[name], wanted) or isinstance(given[name], bool):
            message = f"{name} is no {'text' if wanted is str else 'whole number'}"
            raise _NotUnderstoodError(message)
    return Fault(**{**given, "kind": FaultKind(given["kind"])})


def _answer(status: int, value: object) -> Answer:
    return Answer(status, json.dumps(value).encode())
