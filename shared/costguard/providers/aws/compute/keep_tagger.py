"""The one tag that Costguard writes on a machine of AWS: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import part, text
from costguard.providers.kit.iam.purposes import Purpose, require_purpose


class AwsKeepTagger:
    """`KeepTagger` for one partition of AWS, from a session that can do nothing else; never a retry."""

    def __init__(self, session: AwsSession) -> None:
        """Take a session made for it.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.KEEP_TAG)
        self._session = session

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        """Set the tag, in the place of what it said; the same however often.

        Raises:
            OutcomeUnknownError: it may be set; read the machine before anything else.
            AccessDeniedError: the role lacks ec2:CreateTags.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: EC2 CreateTags, which overwrites the value of a key that is there.
        """
        tag = {"Key": KEEP_TAG, "Value": value}
        answer = self._session.call(machine.shard, "ec2", "CreateTags", Resources=[machine.native_id], Tags=[tag])
        with after_sending("ec2:CreateTags"):
            return Receipt(request_id=text(part(answer, "ResponseMetadata"), "RequestId"))
