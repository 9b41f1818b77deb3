"""What Costguard itself uses of Alibaba Cloud, each through a gate that lets nothing else out: OSS, DirectMail, KMS.

Files are private and encrypted, whatever their bucket is, and signed here, for two operations only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.message import EmailMessage
from typing import Any, ClassVar
from urllib.parse import quote

from costguard.domain.errors import ProviderError, RefusedError
from costguard.ports.records import BucketAddress, bucket_address
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import host_of
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.core.services import (
    CloudMail,
    Door,
    SignedSecrets,
    SignedStore,
    Vendor,
    address_in,
    object_operations,
    with_decryption,
)

_UNSIGNED = "UNSIGNED-PAYLOAD"  # the body's MD5 is among the signed headers instead
_ALGORITHM = "OSS4-HMAC-SHA256"

OBJECT_OPERATIONS = object_operations("oss")


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
    service="oss",
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


_SENDER = "create and verify the address of COSTGUARD_MAIL_FROM in the DirectMail console"
_RECIPIENT = "check the address in the policy"
_OUR_MESSAGE = "DirectMail refuses the form of this mail; please report it with the finding it was about"


class DirectMailCarrier(CloudMail[AlibabaSession]):
    """Over DirectMail; each site sends from its own region.

    InvalidSendMail.Spam is not among what is rejected: it also stands for a rate or a quota that is used up.

    API: SingleSendMail, with the sender's own name (AddressType 1); Date and MIME are DirectMail's own. DirectMail's
    public error codes.
    """

    name = "DirectMail"
    operation = "dm:SingleSendMail"
    rejected: ClassVar = {
        "InvalidMailAddress.NotFound": _SENDER,
        "InvalidMailAddress.Malformed": _SENDER,
        "InvalidMailAddressStatus.Malformed": _SENDER,
        "InvalidMailAddressSendType.Malformed": "make the sender one for triggered mails in the DirectMail console",
        "InvalidMailAddressDomain.Malformed": "finish the DNS records of the sender's domain in the DirectMail console",
        "InvalidToAddress": _RECIPIENT,
        "InvalidToAddress.Spam": f"{_RECIPIENT}: it is on DirectMail's list of invalid ones",
        "InvalidUser.NotFound": "activate DirectMail for this account",
        "InvalidBody": _OUR_MESSAGE,
        "InvalidSubject.Malformed": _OUR_MESSAGE,
        "InvalidFromAlias.Malformed": _OUR_MESSAGE,
    }
    _fix_for = staticmethod(errors.fix_for)

    def _asked(self, mail: EmailMessage) -> Mapping[str, Any]:
        message_id = str(mail["Message-ID"] or "")
        return {
            "AccountName": address_in(mail, "From"),
            "AddressType": 1,
            "FromAlias": mail["From"].addresses[0].display_name,
            "ReplyToAddress": False,
            "ToAddress": address_in(mail, "To"),
            "Subject": str(mail["Subject"]),
            "TextBody": _body(mail, "plain"),
            "HtmlBody": _body(mail, "html"),
            **({"Headers": json.dumps({"Message-ID": message_id})} if message_id else {}),
        }

    def _taken(self, mail: EmailMessage, answer: Fields) -> tuple[str, str]:
        return str(mail["Message-ID"] or ""), f"DirectMail {named(answer, 'EnvId')}"


def _body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content())


class AlibabaSecrets(SignedSecrets):
    """The version that is staged ACSCurrent. API: KMS GetSecretValue (2016-01-20).

    Raises:
        ValueError: no name of a region.
    """

    service = "kms"
    sessions = AlibabaSession

    def __init__(self, cloud: str, region: str, keys: Keys | None, **more: Any) -> None:
        host_of(cloud, self.service, region)
        super().__init__(cloud, region, keys, **more)

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation, and of the key."""
        return with_decryption(errors.fix_for(error), error)

    def _asked(self, name: str, version: str) -> Mapping[str, str]:
        del version
        return {"SecretName": name}

    def _text_in(self, answer: Fields) -> str:
        return text(answer, "SecretData") if named(answer, "SecretDataType") == "text" else ""


class OssSecrets:
    """A `SecretStore` of objects, `oss://BUCKET/NAME`: private and encrypted by OSS, without an instance of KMS.

    What KMS has and this has not: a key of one's own, a log of every reading, rotation.
    """

    def __init__(self, region: str, keys: Keys | None, *, now: Callable[[], datetime], endpoint: str = "") -> None:
        self._region, self._keys, self._now, self._endpoint = region, keys, now, endpoint

    def read(self, name: str, version: str = "") -> str:
        """The object's text, without the line break that an editor puts at its end."""
        del version
        folder, _, key = name.rpartition("/")
        store = open_oss(f"{folder}?region={self._region}", self._keys, now=self._now, endpoint=self._endpoint)
        try:
            found = store.get(key).decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as err:
            message = "oss:GetObject: the object is binary, and a secret is text"
            raise RefusedError(message, operation="oss:GetObject", code="Binary") from err
        if not found:
            message = "oss:GetObject: the object is empty"
            raise RefusedError(message, operation="oss:GetObject", code="Empty")
        return found

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation."""
        return errors.fix_for(error)
