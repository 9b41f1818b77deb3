"""Whole files in an S3 bucket: private as the bucket is, encrypted as the bucket says; S3 encrypts all it keeps."""

from __future__ import annotations

from typing import Any

from costguard.domain.errors import (
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.ports.objects import MOST_BYTES, BucketAddress, bucket_address
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.transport import Clients, WatchedGate, is_aws, new_session
from costguard.providers.kit.iam.operations import Feature, Operation

_PUT, _GET = "s3:PutObject", "s3:GetObject"
_OWN = ""
_NO_BUCKET = "NoSuchBucket"
_PASSING = (OutcomeUnknownError, UnavailableError)
_TRIES = 2  # an object is written whole or not at all, so that a lost answer may be asked for again

OBJECT_OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(_PUT, Feature.OBJECTS, (_PUT,), changes_something=True),
        Operation(_GET, Feature.OBJECTS, (_GET,)),
        # issued by the SDK's own credential providers when a profile or a web identity says so; they change nothing
        Operation("sts:AssumeRole", Feature.IDENTITY, ()),
        Operation("sts:AssumeRoleWithWebIdentity", Feature.IDENTITY, ()),
        Operation("sso:GetRoleCredentials", Feature.IDENTITY, ()),
        Operation("sso-oidc:CreateToken", Feature.IDENTITY, ()),
        Operation("signin:CreateOAuth2Token", Feature.IDENTITY, ()),
    )
}
"""The whole reach of what keeps files: it can touch no machine, delete nothing and make nothing public."""


class S3Store:
    """An `ObjectStore` in one bucket, with the process's own credentials. Safe to repeat."""

    def __init__(
        self,
        address: BucketAddress,
        *,
        endpoint_url: str = "",
        profile: str = "",
        keys: tuple[str, str] | None = None,
    ) -> None:
        self._address = address
        self._profile = profile
        self._keys = keys
        self._gate = WatchedGate(OBJECT_OPERATIONS, may_change=True)
        self._clients = Clients(endpoint_url=endpoint_url)

    def put(self, name: str, body: bytes, content_type: str) -> str:
        """Keep it, with no access list: the bucket's own say decides who reads, and its default how it is encrypted.

        API: S3 PutObject; "Setting default server-side encryption behavior": SSE-S3 where nothing else is set.
        """
        self._call(_PUT, Key=self._address.key(name), Body=body, ContentType=content_type)
        return self._address.of(name)

    def get(self, name: str) -> bytes:
        """What is kept under the name. API: S3 GetObject."""
        body: bytes = self._call(_GET, Key=self._address.key(name))
        if len(body) > MOST_BYTES:
            message = f"{_GET}: {name} is longer than {MOST_BYTES >> 20} MiB"
            raise TruncatedReadError(message, operation=_GET)
        return body

    def close(self) -> None:
        """Close its connections; they are opened anew if it is asked again."""
        self._clients.close()

    def _call(self, operation: str, **parameters: Any) -> bytes:
        changes = OBJECT_OPERATIONS[operation].changes_something
        for left in reversed(range(_TRIES)):
            try:
                return self._once(operation, parameters)
            except ProviderError:
                raise  # from the gate
            except errors.vendor_faults() as err:
                sent = self._gate.was_sent(operation)
                found = errors.translate(err, operation, changes=changes, sent=sent, stand_in=self._stands_in())
                if isinstance(found, NotFoundError) and (changes or found.code == _NO_BUCKET):
                    # a bucket that is not there: "nothing is kept" would say more than is known
                    raise RefusedError(str(found), operation=operation, code=found.code) from err
                if not left or not isinstance(found, _PASSING):
                    raise found from err
        message = f"{operation}: not tried"
        raise ProviderError(message, operation=operation)

    def _once(self, operation: str, parameters: dict[str, Any]) -> bytes:
        client = self._client()
        self._gate.expect(operation)
        if operation == _PUT:
            client.put_object(Bucket=self._address.bucket, **parameters)
            return b""
        stream = client.get_object(Bucket=self._address.bucket, **parameters)["Body"]
        with stream:
            found: bytes = stream.read(MOST_BYTES + 1)
        return found

    def _client(self) -> Any:
        if not self._clients.has_session(_OWN):
            from botocore.credentials import Credentials

            own = None if self._keys is None else Credentials(*self._keys)
            self._clients.add_session(_OWN, new_session(self._gate, profile=self._profile, credentials=own))
        return self._clients.get(_OWN, self._address.region, "s3")

    def _stands_in(self) -> bool:
        return self._clients.has_session(_OWN) and not is_aws(self._client().meta.endpoint_url)


def open_s3(url: str, *, endpoint_url: str = "", profile: str = "", keys: tuple[str, str] | None = None) -> S3Store:
    """The bucket at `s3://BUCKET/PREFIX?region=REGION`; nothing is sent yet.

    Raises:
        InvalidInputError: not an address of a bucket.
    """
    address = bucket_address(url, ("s3",))
    if "." in address.bucket:
        message = "COSTGUARD_REPORTS: a bucket with dots in its name has no certificate of its own; take another"
        raise InvalidInputError(message)
    return S3Store(address, endpoint_url=endpoint_url, profile=profile, keys=keys)


def objects_policy(address: BucketAddress, partition: str = "aws") -> dict[str, Any]:
    """An IAM policy for this bucket's prefix alone: to write and read objects, and not to list or delete any."""
    actions = sorted(name for name, one in OBJECT_OPERATIONS.items() if one.feature is Feature.OBJECTS)
    resource = f"arn:{partition}:s3:::{address.bucket}/{address.prefix}*"
    statement = {"Sid": "KeepReports", "Effect": "Allow", "Action": actions, "Resource": [resource]}
    return {"Version": "2012-10-17", "Statement": [statement]}
