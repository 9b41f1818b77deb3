"""A stand-in for OSS: one bucket whose V4 signatures are verified as the vendor documents them."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Request
from cloudstand.wire.objects import NotSignedError, ObjectStandIn

_AUTHORIZATION = re.compile(
    r"OSS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([a-z0-9-]+)/oss/aliyun_v4_request,Signature=([0-9a-f]{64})"
)
_SKEW = timedelta(minutes=15)


def oss_stand_in(bucket: str, region: str, keys: Keys, now: Callable[[], datetime]) -> ObjectStandIn:
    """A bucket that believes these keys and no others."""

    def believe(request: Request) -> None:
        found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if found is None or found[1] != keys.key_id or request.headers.get("x-oss-security-token", "") != keys.token:
            raise NotSignedError("InvalidAccessKeyId")
        if found[3] != region:
            raise NotSignedError("AccessDenied")
        stamp = request.headers.get("x-oss-date", "")
        sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if abs(now() - sent) > _SKEW or not stamp.startswith(found[2]):
            raise NotSignedError("RequestTimeTooSkewed")
        named = {
            name: value.strip()
            for name, value in request.headers.items()
            if name.startswith("x-oss-") or name in {"content-type", "content-md5"}
        }
        lines = [request.method, request.path, request.query]
        lines += ["".join(f"{name}:{named[name]}\n" for name in sorted(named)), "", named["x-oss-content-sha256"]]
        canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = b"aliyun_v4" + keys.secret.encode()
        for step in (found[2], found[3], "oss", "aliyun_v4_request"):
            key = hmac.digest(key, step.encode(), "sha256")
        scope = f"{found[2]}/{found[3]}/oss/aliyun_v4_request"
        wanted = hmac.new(key, f"OSS4-HMAC-SHA256\n{stamp}\n{scope}\n{canonical}".encode(), "sha256").hexdigest()
        if not hmac.compare_digest(wanted, found[4]):
            raise NotSignedError("SignatureDoesNotMatch")

    return ObjectStandIn(bucket, believe)
