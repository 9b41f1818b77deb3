"""A stand-in for COS: one bucket whose q-sign signatures are verified as the vendor documents them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Request
from cloudstand.wire.objects import NotSignedError, ObjectStandIn

_MUST_BE_SIGNED = ("host", "content-md5", "x-cos-server-side-encryption", "x-cos-security-token")


def cos_stand_in(bucket: str, keys: Keys, now: Callable[[], datetime]) -> ObjectStandIn:
    """A bucket that believes these keys and no others."""

    def believe(request: Request) -> None:
        parts = request.headers.get("authorization", "").split("&")
        said = {name: value for name, _, value in (part.partition("=") for part in parts)}
        if said.get("q-ak") != keys.key_id or request.headers.get("x-cos-security-token", "") != keys.token:
            raise NotSignedError("InvalidAccessKeyId")
        begin, _, end = said.get("q-sign-time", "").partition(";")
        if not begin.isdigit() or not end.isdigit() or not int(begin) <= now().timestamp() < int(end):
            raise NotSignedError("RequestTimeTooSkewed")
        names = said.get("q-header-list", "").split(";")
        if any(name in request.headers and name not in names for name in _MUST_BE_SIGNED) or names != sorted(names):
            raise NotSignedError("SignatureDoesNotMatch")
        headers = "&".join(f"{name}={quote(request.headers.get(name, ''), safe='-_.~')}" for name in names)
        text = f"{request.method.lower()}\n{request.path}\n\n{headers}\n"
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        key = hmac.new(keys.secret.encode(), said["q-key-time"].encode(), "sha1").hexdigest()
        wanted = hmac.new(key.encode(), f"sha1\n{said['q-sign-time']}\n{digest}\n".encode(), "sha1").hexdigest()
        if said.get("q-sign-algorithm") != "sha1" or not hmac.compare_digest(wanted, said.get("q-signature", "")):
            raise NotSignedError("SignatureDoesNotMatch")

    return ObjectStandIn(bucket, believe)
