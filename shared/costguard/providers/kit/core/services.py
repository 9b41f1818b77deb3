"""What Costguard itself uses of a cloud, each through a gate that lets nothing else out: files, mail, and secrets.

OSS and COS are asked over plain HTTP with their vendor's signature, S3 goes by its SDK. No redirect is followed and no
proxy taken from the environment: a signature would go elsewhere with it. A connection is opened for each request:
objects are hours apart.
"""

from __future__ import annotations

import base64
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    NoticeError,
    OutcomeUnknownError,
    ProviderError,
    RateLimitedError,
    RefusedError,
    RejectedNoticeError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.ports.records import MOST_BYTES, BucketAddress
from costguard.providers.kit.core.credentials import Keys, without_secrets
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.session import Common, Session
from costguard.providers.kit.core.signing import no_clock
from costguard.providers.kit.iam.permissions import Feature, OnlyFor, Operation, Purpose, SessionT

PUT, GET = "PUT", "GET"
_SECONDS = 60.0  # a report has a megabyte at most
_TRIES = 2  # an object is written whole or not at all, so that a lost answer may be asked for again
_OK, _GOOD = 200, 300
_FORBIDDEN = (401, 403)
_NO_SUCH, _TOO_MANY, _SERVER = 404, 429, 500
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,80})</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{0,1000})</Message>")
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "RequestLimitExceeded"})
NO_BUCKET = "NoSuchBucket"
_WAIT = timedelta(minutes=1)  # rates are by the second, but others send too; no cloud says how long
_QUOTA_WAIT = timedelta(hours=1)  # of a day's quota: over twenty-four hours that move, or until midnight


@dataclass(frozen=True, slots=True)
class Vendor:
    """What differs between vendors: `host` has `{bucket}` and `{region}`, `headers` go with every object that is put.

    `sign` gives all headers to send; it is asked for every try, as signatures have a time.
    """

    name: str
    service: str
    host: str
    headers: Mapping[str, str]
    sign: Callable[[Keys, BucketAddress, Door, str, str, Mapping[str, str], datetime], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Door:
    """Where a bucket answers. `path` goes before keys where a stand-in answers for the whole cloud."""

    host: str
    port: int | None
    tls: bool
    path: str = ""

    @property
    def named(self) -> str:
        """The host as the Host header has it."""
        return self.host if self.port is None else f"{self.host}:{self.port}"


def object_operations(service: str) -> dict[str, Operation]:
    """The whole reach of what keeps files: it can touch no machine, delete nothing and make nothing public."""
    put, get = f"{service}:PutObject", f"{service}:GetObject"
    return {
        put: Operation(put, Feature.OBJECTS, (put,), changes_something=True),
        get: Operation(get, Feature.OBJECTS, (get,)),
    }


def door_of(host: str, stand_in: str, bucket: str) -> Door:
    """The bucket's own host, or the stand-in's with the bucket in the path.

    Raises:
        InvalidInputError: the stand-in's address is none.
    """
    if not stand_in:
        return Door(host, None, tls=True)
    parts = urlsplit(stand_in)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = "the endpoint of an object store is no address; expected https://HOST"
        raise InvalidInputError(message)
    return Door(parts.hostname, parts.port, tls=parts.scheme == "https", path=f"/{bucket}")


class SignedStore:
    """An `ObjectStore` in one bucket, with the process's own keys. Safe to repeat."""

    def __init__(
        self,
        vendor: Vendor,
        address: BucketAddress,
        keys: Keys | None,
        *,
        now: Callable[[], datetime],
        endpoint: str = "",
    ) -> None:
        self._vendor = vendor
        self._address = address
        self._keys = keys
        self._now = now
        self._gate = Gate(object_operations(vendor.service), may_change=True)
        host = vendor.host.format(bucket=address.bucket, region=address.region)
        self._door = door_of(host, endpoint, address.bucket)

    def put(self, name: str, body: bytes, content_type: str) -> str:
        """Keep it, with the vendor's headers; the vendor refuses a body that is not that of the Content-MD5."""
        md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        headers = {"content-type": content_type, "content-md5": md5, **self._vendor.headers}
        self._send(f"{self._vendor.service}:PutObject", PUT, name, headers, body)
        return self._address.of(name)

    def get(self, name: str) -> bytes:
        """What is kept under the name."""
        return self._send(f"{self._vendor.service}:GetObject", GET, name, {})

    def _send(self, operation: str, method: str, name: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
        self._gate.check(operation)
        if self._keys is None:
            message = f"{operation}: there are no credentials for {self._vendor.name}"
            raise AccessDeniedError(message, operation=operation, code="NoCredentials")
        key = self._address.key(name)
        lost: ProviderError | None = None
        for _ in range(_TRIES):
            signed = self._vendor.sign(self._keys, self._address, self._door, method, key, headers, self._now())
            self._gate.sending(operation)
            try:
                return _once(self._door, operation, method, key, signed, body)
            except (OutcomeUnknownError, UnavailableError) as err:
                lost = err
        raise lost or UnavailableError(operation, operation=operation)


def _once(door: Door, operation: str, method: str, key: str, headers: Mapping[str, str], body: bytes) -> bytes:
    connect = HTTPSConnection if door.tls else HTTPConnection
    connection = connect(door.host, door.port, timeout=_SECONDS)
    sent = False
    try:
        connection.connect()
        sent = True
        connection.request(method, f"{door.path}/{quote(key, safe='/~')}", body or None, dict(headers))
        response = connection.getresponse()
        found = response.read(MOST_BYTES + 1)
        # a sized read ends quietly where the connection broke; what was promised is then still due
        cut, status = bool(response.length), response.status
    except (OSError, HTTPException) as err:
        detail = f"{operation}: {without_secrets(str(err)) or type(err).__name__}"
        if sent and method == PUT:
            message = f"{detail}; it may have been kept"
            raise OutcomeUnknownError(message, operation=operation, code=type(err).__name__) from err
        raise UnavailableError(detail, operation=operation, code=type(err).__name__) from err
    finally:
        connection.close()
    if len(found) > MOST_BYTES:
        message = f"{operation}: {key} is longer than {MOST_BYTES >> 20} MiB"
        raise TruncatedReadError(message, operation=operation)
    if cut:
        message = f"{operation}: the answer ended early"
        raise UnavailableError(message, operation=operation)
    if not _OK <= status < _GOOD:
        raise _refused(operation, method, status, found)
    return found


def _refused(operation: str, method: str, status: int, body: bytes) -> ProviderError:
    code = _first(_CODE, body) or f"HTTP {status}"
    detail = f"{operation}: {code}: {without_secrets(_first(_MESSAGE, body))}".rstrip(": ")
    kind: type[ProviderError]
    if status == _TOO_MANY or code in _BUSY:
        kind = ThrottledError
    elif status in _FORBIDDEN:
        kind = AccessDeniedError
    elif status == _NO_SUCH and method == GET and code != NO_BUCKET:
        kind = NotFoundError
    elif status >= _SERVER:
        kind = OutcomeUnknownError if method == PUT else UnavailableError
    else:
        kind = RefusedError  # a bucket that is not there, too: "nothing is kept" would say more than is known
    return kind(detail, operation=operation, code=code)


def _first(pattern: re.Pattern[bytes], body: bytes) -> str:
    found = pattern.search(body[:10_000])
    return "" if found is None else found.group(1).decode("utf-8", "replace")


class CloudMail(OnlyFor[SessionT], ABC):
    """A `MailCarrier` over a cloud's service `name`, in the session's own account and home region.

    `rejected` are codes that the same mail will always meet, with what a person can do; every other refusal may pass.
    """

    purpose = Purpose.MAIL
    name: ClassVar[str]
    operation: ClassVar[str]
    rejected: ClassVar[Mapping[str, str]]

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        """Send it, once; the answer means that the service has taken charge of it, not that a mailbox has.

        Raises:
            NoticeError: of one of its kinds.
        """
        session: Any = self._session
        service, _, action = self.operation.partition(":")
        try:
            answer = session.call(Shard(session.cloud, ""), service, action, **self._asked(mail))
            with after_sending(self.operation):
                return self._taken(mail, answer)
        except InvalidInputError as err:
            text = f"{self.name} cannot be used: {err}"
            raise RejectedNoticeError(text) from err
        except ProviderError as err:
            raise self._notice_error(err) from err
        finally:
            session.close()  # mails are hours apart: a kept connection would be dead by the next

    @abstractmethod
    def _asked(self, mail: EmailMessage) -> Mapping[str, Any]:
        """The parameters that send it."""

    @abstractmethod
    def _taken(self, mail: EmailMessage, answer: Fields) -> tuple[str, str]:
        """Its Message-ID, and what the service calls it."""

    @abstractmethod
    def _fix_for(self, error: ProviderError) -> str:
        """What a person can do about `error`."""

    def _notice_error(self, err: ProviderError) -> NoticeError:
        text, fix = f"{self.name} did not take the mail: {err}", self.rejected.get(err.code, "")
        if isinstance(err, ThrottledError):
            wait = _QUOTA_WAIT if "quota" in str(err).lower() else _WAIT
            return RateLimitedError(text, retry_after=wait)
        if fix:
            return RejectedNoticeError(f"{text}; {fix}")
        fix = self._fix_for(err)
        if isinstance(err, AccessDeniedError) and err.operation == self.operation and fix.startswith("grant "):
            return RejectedNoticeError(f"{text}; {fix}")
        return NoticeError(f"{text}; {fix}" if fix else text)


def address_in(mail: EmailMessage, name: str) -> str:
    """The one address in a header."""
    (found,) = mail[name].addresses
    return str(found.addr_spec)


class CloudSecrets(ABC):
    """A `SecretStore` in the home region of a session for secrets, with the process's own credentials. Repeatable."""

    service: ClassVar[str]

    def __init__(self, session: Session[Any, Any]) -> None:
        self._session = session

    def read(self, name: str, version: str = "") -> str:
        """The text of the current version, or of the one named where the cloud asks for one. API: GetSecretValue."""
        api = f"{self.service}:GetSecretValue"
        try:
            answer = self._session.call_as_own(self.service, "GetSecretValue", **self._asked(name, version))
        finally:
            self._session.close()
        with as_documented(api):
            found = self._text_in(answer)
        if not found:
            message = f"{api}: it holds no text: binary secrets are not read"
            raise RefusedError(message, operation=api, code="NoText")
        return found

    @abstractmethod
    def fix_for(self, error: ProviderError) -> str:
        """What a person can do about `error`; empty where that is not known."""

    @abstractmethod
    def _asked(self, name: str, version: str) -> Mapping[str, str]:
        """The parameters that ask for a name and version."""

    @abstractmethod
    def _text_in(self, answer: Fields) -> str:
        """The text in an answer; empty where it holds none."""


class SignedSecrets(CloudSecrets):
    """The same over a session of `sessions`, which signs with keys it holds."""

    sessions: ClassVar[Callable[..., Session[Any, Any]]]

    def __init__(
        self,
        cloud: str,
        region: str,
        keys: Keys | None,
        *,
        endpoint: str = "",
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        common = Common(cloud=cloud, home_region=region, deadline=seconds_left, purpose=Purpose.SECRET)
        super().__init__(type(self).sessions(keys=keys, now=no_clock, endpoint=endpoint, **common))


def with_decryption(fix: str, error: ProviderError) -> str:
    """A key of the customer's own takes a permission more than the secret that it encrypts."""
    if isinstance(error, AccessDeniedError) and fix.startswith("grant "):
        return f"{fix}, and kms:Decrypt where a key of your own encrypts it"
    return fix
