"""A sandbox on this machine that is followed: what it says of itself, and the settings that lead to it alone.

Imported only where COSTGUARD_SANDBOX names one. NEVER may a real run take its time from a network, or a run in a
made-up world reach a real account, a real ledger or people: the address is one of this machine; what answers has to say
that it is a sandbox; every cloud, Slack and the ledger are those that it names, and they have to be here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, RootModel, ValidationError

from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.settings import Access, AccessKey, Secret, Settings

_SETTINGS, _ADVANCE, _MESSAGES = "/_sandbox/settings", "/_sandbox/advance", "/_sandbox/messages"
_SECONDS = 10.0
_AT_MOST_BYTES = 50_000_000
_OK = 200
_LEDGER = re.compile(r"sqlite:////(?:[^%?#]+/)?costguard-sandbox-\w+/ledger\.db")  # no other file is taken for one
_HERE = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}(?:/api/)?", re.ASCII)


def _is_here(url: str) -> str:
    if not _HERE.fullmatch(url):
        raise ValueError("not on this machine")
    return url


def _is_sandboxed(url: str) -> str:
    if not _LEDGER.fullmatch(url):
        raise ValueError("not a sandbox's own")
    return url


Here = Annotated[str, AfterValidator(_is_here)]
Filled = Annotated[str, Field(min_length=1, max_length=200)]


class _Told(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Cloud(_Told):
    url: Here
    access_key_id: Filled
    access_key_secret: Filled

    def access(self) -> Access:
        return Access(endpoint_url=self.url, key=AccessKey(self.access_key_id, Secret(self.access_key_secret)))


class _Clouds(_Told):
    aws: _Cloud
    alibaba: _Cloud
    tencent: _Cloud


class _Slack(_Told):
    url: Here
    token: Filled
    signing_secret: Filled


class _Sandbox(_Told):
    sandbox: Literal["costguard"]
    now: AwareDatetime
    ledger: Annotated[str, AfterValidator(_is_sandboxed)]
    clouds: _Clouds
    slack: _Slack


class _Moved(_Told):
    now: AwareDatetime


class PostedMessage(_Told):
    """What was posted in a channel of its Slack; the first line of `text` is the title."""

    at: AwareDatetime
    channel: str
    text: str


class _Messages(RootModel[tuple[PostedMessage, ...]]):
    model_config = ConfigDict(strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class FollowedSettings:
    """Settings that lead to a sandbox, and its time when it was asked."""

    settings: Settings
    now: datetime


def follow(settings: Settings) -> FollowedSettings:
    """Ask the sandbox that the settings name what it is, once.

    Raises:
        InvalidInputError: what answers there is no sandbox of this program's.
        UnavailableError: nothing answers.
    """
    try:
        told = _Sandbox.model_validate_json(_answer(settings.sandbox, _SETTINGS))
    except ValidationError as err:
        where = ", ".join(".".join(map(str, problem["loc"])) for problem in err.errors()) or "its answer"
        message = f"{settings.sandbox}: what answers there is no sandbox ({where}); see `costguard sandbox up`"
        raise InvalidInputError(message) from None
    found = replace(
        settings,
        ledger=Secret(told.ledger),
        slack_token=Secret(told.slack.token),
        slack_signing_secret=Secret(told.slack.signing_secret),
        slack_url=told.slack.url,
        aws=told.clouds.aws.access(),
        alibaba=told.clouds.alibaba.access(),
        tencent=told.clouds.tencent.access(),
    )
    return FollowedSettings(found, told.now)


def move_on(address: str, step: timedelta) -> datetime:
    """Let time pass in the sandbox at `address`; return what time it is there then.

    Raises:
        InvalidInputError: it refuses, as where the step is longer than ten years.
        UnavailableError: nothing answers.
    """
    try:
        return _Moved.model_validate_json(_answer(address, _ADVANCE, {"seconds": step.total_seconds()})).now
    except ValidationError:
        message = f"{address}: the sandbox does not move its clock by {step}"
        raise InvalidInputError(message) from None


def messages_in(address: str) -> tuple[PostedMessage, ...]:
    """What people were told in the sandbox at `address`, in order.

    Raises:
        InvalidInputError: it has no such list.
        UnavailableError: nothing answers.
    """
    try:
        return _Messages.model_validate_json(_answer(address, _MESSAGES)).root
    except ValidationError:
        message = f"{address}: it does not say what people were told"
        raise InvalidInputError(message) from None


def _answer(address: str, path: str, said: Mapping[str, object] | None = None) -> bytes:
    """The raw answer of a sandbox; past every proxy, and without following anything elsewhere."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("GET" if said is None else "POST", path, None if said is None else json.dumps(said))
        answer = connection.getresponse()
        body = answer.read(_AT_MOST_BYTES)
    except (OSError, HTTPException) as err:
        fix = "start it with `costguard sandbox up`, or unset COSTGUARD_SANDBOX"
        message = f"{address}: no sandbox answers ({err}); {fix}"
        raise UnavailableError(message) from err
    finally:
        connection.close()
    return body if answer.status == _OK else b""
