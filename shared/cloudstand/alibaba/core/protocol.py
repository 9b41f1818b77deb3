"""RPC requests as they arrive: read from query and form, and believed only once signature and time are checked."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from threading import Lock
from urllib.parse import parse_qsl

from cloudstand.alibaba.core.credentials import Credential, Credentials
from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError, missing, not_modelled
from cloudstand.alibaba.core.signing import signature, string_to_sign
from cloudstand.wire.messages import Request

WINDOW = timedelta(minutes=15)  # how far a Timestamp may be off, either way
_STAMP = "%Y-%m-%dT%H:%M:%SZ"
_METHOD, _VERSION = "HMAC-SHA1", "1.0"
_FORM = "application/x-www-form-urlencoded"
_SIGNED_WITH = ("Action", "Version", "AccessKeyId", "Signature", "SignatureMethod", "SignatureVersion")
PROTOCOL_PARAMETERS = frozenset(
    (*_SIGNED_WITH, "SignatureNonce", "SignatureType", "Timestamp", "Format", "SecurityToken", "RegionId")
)
"""What belongs to the protocol and not to one action; the SDK puts a RegionId into every request."""


def parameters_of(request: Request) -> dict[str, str]:
    """Every parameter of query and form together; both are signed.

    Raises:
        ApiError: the same name twice, a body that is no form, or another path or style of request.
    """
    if request.path != "/":
        raise ApiError("InvalidAction.NotFound", "Specified api is not found, please check your url and method.", 404)
    pairs = parse_qsl(request.query, keep_blank_values=True)
    if request.body:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise not_modelled("bodies of another type than", _FORM)
        pairs += parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ApiError("InvalidParameter", f'The specified parameter "{twice}" is there more than once.')
    return found


class Verifier:
    """Who sent a request: by its signature, once for each nonce, within fifteen minutes of the wall clock.

    `wall` is the real time, since SDKs sign with it however far the world's clock was moved; tokens expire by `now`,
    the world's, because so does whoever uses them.
    """

    def __init__(self, credentials: Credentials, wall: Callable[[], datetime]) -> None:
        self._credentials = credentials
        self._wall = wall
        self._nonces: dict[tuple[str, str], datetime] = {}
        self._lock = Lock()

    def verify(self, method: str, parameters: Mapping[str, str], now: datetime) -> Credential:
        """The credential that signed this request.

        Raises:
            ApiError: it was not signed by a known, unexpired credential, not now, or was sent before.
        """
        for name in _SIGNED_WITH:
            if not parameters.get(name):
                raise missing(name)
        if parameters["SignatureMethod"] != _METHOD or parameters["SignatureVersion"] != _VERSION:
            raise not_modelled("any signature but HMAC-SHA1 of version 1.0")
        if parameters.get("Format", "").upper() != "JSON":
            raise not_modelled("answers in XML, which is what comes without Format=JSON")
        stamp = self._checked_stamp(parameters)
        credential = self._credentials.find(parameters["AccessKeyId"])
        if credential is None:
            raise ApiError("InvalidAccessKeyId.NotFound", "Specified access key is not found.", NOT_FOUND)
        text = string_to_sign(method, parameters)
        if not hmac.compare_digest(signature(text, credential.keys.secret).encode(), parameters["Signature"].encode()):
            message = f"Specified signature is not matched with our calculation. server string to sign is:{text}"
            raise ApiError("SignatureDoesNotMatch", message)
        self._check_token(credential, parameters.get("SecurityToken", ""), now)
        self._check_nonce(parameters, stamp)
        return credential

    def _checked_stamp(self, parameters: Mapping[str, str]) -> datetime:
        if not parameters.get("Timestamp"):
            raise missing("Timestamp")
        try:
            stamp = datetime.strptime(parameters["Timestamp"], _STAMP).replace(tzinfo=timezone.utc)
        except ValueError as err:
            message = "Specified time stamp or date value is not well formatted."
            raise ApiError("InvalidTimeStamp.Format", message) from err
        if abs(stamp - self._wall()) > WINDOW:
            raise ApiError("InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
        return stamp

    def _check_token(self, credential: Credential, token: str, now: datetime) -> None:
        if not credential.keys.token:
            if token:
                raise ApiError("InvalidSecurityToken.Malformed", "Specified SecurityToken is malformed.")
            return
        if not token:
            raise missing("SecurityToken")
        if not hmac.compare_digest(credential.keys.token.encode(), token.encode()):
            message = "Specified SecurityToken is not matched with AccessKeyId."
            raise ApiError("InvalidSecurityToken.MismatchWithAccessKey", message)
        if credential.expires_at is not None and now >= credential.expires_at:
            raise ApiError("InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")

    def _check_nonce(self, parameters: Mapping[str, str], stamp: datetime) -> None:
        if not parameters.get("SignatureNonce"):
            raise missing("SignatureNonce")
        key = (parameters["AccessKeyId"], parameters["SignatureNonce"])
        with self._lock:
            if key in self._nonces:
                raise ApiError("SignatureNonceUsed", "Specified signature nonce was used already.")
            self._nonces[key] = stamp
            if len(self._nonces) % _SWEEP_EVERY == 0:
                oldest = self._wall() - WINDOW  # older ones fail by their time already
                self._nonces = {key: at for key, at in self._nonces.items() if at >= oldest}


_SWEEP_EVERY = 10_000  # nonces; a sweep costs a millisecond or two
