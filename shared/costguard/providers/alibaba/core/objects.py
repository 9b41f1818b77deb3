"""Whole files in an OSS bucket: private and encrypted, whatever the bucket is. Signed here, for two operations only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from costguard.ports.objects import BucketAddress, bucket_address
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.objects import Door, SignedStore, Vendor
from costguard.providers.kit.iam.operations import Feature, Operation

_PUT, _GET = "oss:PutObject", "oss:GetObject"
_UNSIGNED = "UNSIGNED-PAYLOAD"  # the body's MD5 is among the signed headers instead
_ALGORITHM = "OSS4-HMAC-SHA256"

_PUTTING = Operation(_PUT, Feature.OBJECTS, (_PUT,), changes_something=True)
_GETTING = Operation(_GET, Feature.OBJECTS, (_GET,))
OBJECT_OPERATIONS = {one.name: one for one in (_PUTTING, _GETTING)}
"""The whole reach of what keeps files: it can touch no machine, delete nothing and make nothing public."""


def signed(
    keys: Keys, address: BucketAddress, method: str, key: str, headers: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """The headers with time, token and signature. API: "V4 signature", in the Authorization header."""
    moment = now.astimezone(timezone.utc)
    stamp, day = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    whole = {**headers, "x-oss-date": stamp, "x-oss-content-sha256": _UNSIGNED}
    if keys.token:
        whole["x-oss-security-token"] = keys.token
    scope = f"{day}/{address.region}/oss/aliyun_v4_request"
    said = "".join(f"{name}:{whole[name].strip()}\n" for name in sorted(whole))
    request = "\n".join((method, quote(f"/{address.bucket}/{key}", safe="/~"), "", said, "", _UNSIGNED))
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"aliyun_v4{keys.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(secret, to_sign.encode(), hashlib.sha256).hexdigest()
    whole["authorization"] = f"{_ALGORITHM} Credential={keys.key_id}/{scope},Signature={signature}"
    return whole


def _signed(
    keys: Keys, address: BucketAddress, door: Door, method: str, key: str, headers: Mapping[str, str], now: datetime
) -> Mapping[str, str]:
    del door  # the bucket is signed by its name, whatever the host
    return signed(keys, address, method, key, headers, now)


OSS = Vendor(
    name="Alibaba Cloud",
    put=_PUTTING,
    get=_GETTING,
    host="{bucket}.oss-{region}.aliyuncs.com",
    headers={"x-oss-object-acl": "private", "x-oss-server-side-encryption": "AES256"},
    sign=_signed,
)
"""Private though the bucket were not, and encrypted with OSS's own keys.

API: PutObject, GetObject, "Regions and endpoints", `x-oss-object-acl`, `x-oss-server-side-encryption`.
"""


def open_oss(url: str, keys: Keys | None, *, now: Callable[[], datetime], endpoint: str = "") -> SignedStore:
    """The bucket at `oss://BUCKET/PREFIX?region=REGION`; nothing is sent yet.

    Raises:
        InvalidInputError: not an address of a bucket.
    """
    return SignedStore(OSS, bucket_address(url, ("oss",)), keys, now=now, endpoint=endpoint)


def objects_policy(address: BucketAddress) -> dict[str, Any]:
    """A RAM policy for this bucket's prefix alone: to write and read objects, and not to list or delete any."""
    actions = sorted(OBJECT_OPERATIONS)
    resource = f"acs:oss:*:*:{address.bucket}/{address.prefix}*"
    return {"Version": "1", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": [resource]}]}
