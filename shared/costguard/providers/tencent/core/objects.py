"""Whole files in a COS bucket: as private as the bucket, and encrypted. Signed here, for two operations only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from costguard.domain.errors import InvalidInputError
from costguard.ports.objects import BucketAddress, bucket_address
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.objects import Door, SignedStore, Vendor
from costguard.providers.kit.iam.operations import Feature, Operation

_PUT, _GET = "cos:PutObject", "cos:GetObject"
_BEFORE, _AFTER = 60, 600  # seconds that a signature holds, for clocks that differ

_PUTTING = Operation(_PUT, Feature.OBJECTS, (_PUT,), changes_something=True)
_GETTING = Operation(_GET, Feature.OBJECTS, (_GET,))
OBJECT_OPERATIONS = {one.name: one for one in (_PUTTING, _GETTING)}
"""The whole reach of what keeps files: it can touch no machine, delete nothing and make nothing public."""


def signed(keys: Keys, method: str, path: str, headers: Mapping[str, str], now: datetime) -> dict[str, str]:
    """The headers with token and signature, all of them signed. API: "Request Signature" (XML API, q-sign)."""
    whole = {**headers, **({"x-cos-security-token": keys.token} if keys.token else {})}
    begin = int(now.timestamp())
    time = f"{begin - _BEFORE};{begin + _AFTER}"
    coded = sorted((_coded(name).lower(), _coded(value)) for name, value in whole.items())
    request = f"{method.lower()}\n{path}\n\n{'&'.join(f'{name}={value}' for name, value in coded)}\n"
    to_sign = f"sha1\n{time}\n{hashlib.sha1(request.encode(), usedforsecurity=False).hexdigest()}\n"
    key = hmac.new(keys.secret.encode(), time.encode(), hashlib.sha1).hexdigest()
    signature = hmac.new(key.encode(), to_sign.encode(), hashlib.sha1).hexdigest()
    names = ";".join(name for name, _ in coded)
    whole["authorization"] = (
        f"q-sign-algorithm=sha1&q-ak={keys.key_id}&q-sign-time={time}&q-key-time={time}"
        f"&q-header-list={names}&q-url-param-list=&q-signature={signature}"
    )
    return whole


def _signed(
    keys: Keys, address: BucketAddress, door: Door, method: str, key: str, headers: Mapping[str, str], now: datetime
) -> Mapping[str, str]:
    del address  # it is part of the host, which is signed
    return signed(keys, method, f"{door.path}/{key}", {**headers, "host": door.named}, now)


COS = Vendor(
    name="Tencent Cloud",
    put=_PUTTING,
    get=_GETTING,
    host="{bucket}.cos.{region}.myqcloud.com",
    headers={"x-cos-server-side-encryption": "AES256"},
    sign=_signed,
)
"""Encrypted with COS's own keys, with no access list: an account has 1,000 of those at most.

API: PUT Object, GET Object, "Regions and Access Endpoints", `x-cos-server-side-encryption`.
"""


def open_cos(url: str, keys: Keys | None, *, now: Callable[[], datetime], endpoint: str = "") -> SignedStore:
    """The bucket at `cos://BUCKET-APPID/PREFIX?region=REGION`; nothing is sent yet.

    Raises:
        InvalidInputError: not an address of a bucket.
    """
    address = bucket_address(url, ("cos",))
    if not address.bucket.rpartition("-")[2].isdigit():
        message = "COSTGUARD_REPORTS: a bucket of COS is named with its APPID, such as reports-1250000000"
        raise InvalidInputError(message)
    return SignedStore(COS, address, keys, now=now, endpoint=endpoint)


def objects_policy(address: BucketAddress) -> dict[str, Any]:
    """A CAM policy for this bucket's prefix alone: to write and read objects, and not to list or delete any."""
    appid = address.bucket.rpartition("-")[2]
    resource = f"qcs::cos:{address.region}:uid/{appid}:{address.bucket}/{address.prefix}*"
    actions = [f"name/{name}" for name in sorted(OBJECT_OPERATIONS)]
    return {"version": "2.0", "statement": [{"effect": "allow", "action": actions, "resource": [resource]}]}


def _coded(text: str) -> str:
    return quote(text, safe="-_.~")
