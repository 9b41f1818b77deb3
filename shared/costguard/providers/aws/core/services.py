"""What Costguard itself uses of AWS, each through a gate that lets nothing else out: S3, SES and Secrets Manager.

Files are as private as their bucket, and encrypted as it says; S3 encrypts all it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.message import EmailMessage
from typing import Any, ClassVar

from costguard.domain.errors import (
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.ports.records import MOST_BYTES, BucketAddress, bucket_address
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.core.transport import Clients, WatchedGate, is_aws, new_session
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.core.services import (
    CloudMail,
    CloudSecrets,
    address_in,
    object_operations,
    with_decryption,
)
from costguard.providers.kit.core.session import Common
from costguard.providers.kit.iam.permissions import Feature, Operation, Purpose

_OWN = ""
_NO_BUCKET = "NoSuchBucket"
_PASSING = (OutcomeUnknownError, UnavailableError)
_TRIES = 2  # an object is written whole or not at all, so that a lost answer may be asked for again

OBJECT_OPERATIONS = {
    **object_operations("s3"),
    # issued by the SDK's own credential providers when a profile or a web identity says so; they change nothing
    **{
        name: Operation(name, Feature.IDENTITY, ())
        for name in (
            *("sts:AssumeRole", "sts:AssumeRoleWithWebIdentity", "sso:GetRoleCredentials"),
            *("sso-oidc:CreateToken", "signin:CreateOAuth2Token"),
        )
    },
}
_PUT, _GET = "s3:PutObject", "s3:GetObject"


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


_WITHOUT_SES = ("aws-cn",)
_VERIFY = "verify the sender or its domain in SES in this region; in SES's sandbox the recipient too"
_SUPPORT = "ask AWS support to lift it, or send by SMTP"


class SesCarrier(CloudMail[AwsSession]):
    """Over Amazon SES, which gives a mail a Message-ID of its own: a repetition is another mail to mailboxes.

    A mailbox may still refuse what SES has taken, which SES reports elsewhere. SendingPausedException is not among what
    is rejected: what is paused goes on again.

    API: SES v2 SendEmail with raw content, and its "Errors"; codes without Exception are those of its first version.
    """

    name = "SES"
    operation = "sesv2:SendEmail"
    rejected: ClassVar = {
        "MessageRejected": _VERIFY,
        "MailFromDomainNotVerifiedException": "set the MX record of the MAIL FROM domain in SES",
        "MailFromDomainNotVerified": "set the MX record of the MAIL FROM domain in SES",
        "AccountSuspendedException": f"this account may send no mail any more: {_SUPPORT}",
        "AccountSuspended": f"this account may send no mail any more: {_SUPPORT}",
        "BadRequestException": "check COSTGUARD_MAIL_FROM and the address in the policy",
        "NotFoundException": "the identity's default configuration set is gone: name another in SES",
    }
    _fix_for = staticmethod(errors.fix_for)

    def __init__(self, session: AwsSession) -> None:
        """Take a session made for mail.

        Raises:
            InvalidInputError: it can do more than that, or its partition has no SES.
        """
        super().__init__(session)
        if session.cloud in _WITHOUT_SES:
            message = f"SES is not offered in {session.cloud}; set COSTGUARD_MAIL_VIA to smtp or directmail"
            raise InvalidInputError(message)

    def _asked(self, mail: EmailMessage) -> Mapping[str, Any]:
        return {
            "FromEmailAddress": address_in(mail, "From"),
            "Destination": {"ToAddresses": [address_in(mail, "To")]},
            "Content": {"Raw": {"Data": mail.as_bytes()}},
        }

    def _taken(self, mail: EmailMessage, answer: Fields) -> tuple[str, str]:
        del mail
        message_id, region = named(answer, "MessageId"), self._session.home_region
        # API: "Amazon SES overrides the Message-ID"; in the first region its domain has no region
        domain = "email" if region == "us-east-1" else region
        return f"<{message_id}@{domain}.amazonses.com>", f"SES {message_id}"


class AwsSecrets(CloudSecrets):
    """The version that is staged AWSCURRENT. API: Secrets Manager GetSecretValue."""

    service = "secretsmanager"

    def __init__(
        self,
        region: str,
        *,
        endpoint_url: str = "",
        profile: str = "",
        keys: tuple[str, str] | None = None,
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        common = Common(home_region=region, deadline=seconds_left, purpose=Purpose.SECRET)
        super().__init__(AwsSession(endpoint_url=endpoint_url, profile=profile, keys=keys, **common))

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation, and of the key."""
        return with_decryption(errors.fix_for(error), error)

    def _asked(self, name: str, version: str) -> Mapping[str, str]:
        del version
        return {"SecretId": name}

    def _text_in(self, answer: Fields) -> str:
        return text(answer, "SecretString")
