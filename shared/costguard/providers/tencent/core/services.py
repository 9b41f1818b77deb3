"""What Costguard itself uses of Tencent Cloud, each through a gate that lets nothing else out: COS, and SSM's secrets.

Files are as private as their bucket, encrypted, and signed here, for two operations only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from costguard.domain.errors import InvalidInputError, NotFoundError, ProviderError
from costguard.ports.records import BucketAddress, bucket_address
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import Fields, text
from costguard.providers.kit.core.services import Door, SignedSecrets, SignedStore, Vendor, object_operations
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.session import TencentSession

_BEFORE, _AFTER = 60, 600  # seconds that a signature holds, for clocks that differ

OBJECT_OPERATIONS = object_operations("cos")


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
    service="cos",
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


CURRENT = "SSM_Current"
"""What SSM calls the present version of a secret that it rotates itself; of others users name the versions."""


class TencentSecrets(SignedSecrets):
    """A version must be named. API: SSM GetSecretValue (2019-09-23), whose VersionId is required."""

    service = "ssm"
    sessions = TencentSession

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation; a version must be named of what users keep themselves."""
        if isinstance(error, NotFoundError):
            return f"name the version, as in secret:NAME?version=v1: without, {CURRENT} is asked for"
        return errors.fix_for(error)

    def _asked(self, name: str, version: str) -> Mapping[str, str]:
        return {"SecretName": name, "VersionId": version or CURRENT}

    def _text_in(self, answer: Fields) -> str:
        return text(answer, "SecretString")


def _coded(text: str) -> str:
    return quote(text, safe="-_.~")
