"""What the cloud says when it refuses: a code, its HTTP status and its message, all the vendor's.

ApiError             an HTTP status of 4xx or 5xx and a body {RequestId, HostId, Code, Message, Recommend}
└─ RefusedInBody     HTTP 200, and the refusal in `Code`, `Success` and `Message` (CloudMonitor)
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

BAD_REQUEST, FORBIDDEN, NOT_FOUND = HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND


class ApiError(Exception):
    """The request is refused and nothing changed."""

    def __init__(
        self, code: str, message: str, status: int = BAD_REQUEST, *, denied: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = int(status)
        self.denied = denied  # the body's AccessDeniedDetail


class RefusedInBody(ApiError):  # noqa: N818 - it is an answer of HTTP 200
    """Refused in an answer that looks like success to whoever reads the HTTP status only."""


def missing(name: str) -> ApiError:
    """A parameter that must be there is not."""
    return ApiError(f"Missing{name.replace('.', '')}", f"{name} is mandatory for this action.")


def invalid(name: str, why: str = "") -> ApiError:
    """A parameter of another name, type or range than published."""
    detail = f" {why}" if why else ""
    return ApiError("InvalidParameter", f'The specified parameter "{name}" is not valid.{detail}')


def malformed(name: str, why: str) -> ApiError:
    """A text that should have been of another form."""
    return ApiError(f"Invalid{name}.Malformed", f'The specified parameter "{name}" is wrongly formed: {why}.')


def not_modelled(*what: str) -> ApiError:
    """The cloud has it and the emulator has not: said aloud, where silence would be a wrong answer."""
    message = f"The emulator does not have {' '.join(what)}."
    return ApiError("Emulator.NotModelled", message, HTTPStatus.NOT_IMPLEMENTED)


_MESSAGES = {
    "Throttling": "Request was denied due to request throttling.",
    "Throttling.User": "Request was denied due to user flow control.",
    "Throttling.Api": "Request was denied due to api flow control.",
    "Rejected.Throttling": "QPS Limit Exceeded",
    "ServiceUnavailable": "The request has failed due to a temporary failure of the server.",
    "InternalError": "The request processing has failed due to some unknown error.",
    "Forbidden.RAM": "User not authorized to operate on the specified resource, or this API doesn't support RAM.",
}
_STATUS = {
    "Rejected.Throttling": HTTPStatus.TOO_MANY_REQUESTS,
    "ServiceUnavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "InternalError": HTTPStatus.INTERNAL_SERVER_ERROR,
    "Forbidden.RAM": FORBIDDEN,
}


def by_code(code: str, status: int = 0) -> ApiError:
    """An error known by its code alone, as tests ask for them; `status` 0 takes the usual one."""
    return ApiError(code, _MESSAGES.get(code, "The request was refused."), status or _STATUS.get(code, BAD_REQUEST))
