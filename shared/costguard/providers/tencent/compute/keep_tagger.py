"""The one tag that Costguard writes on a machine of Tencent Cloud: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named, parts
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.tencent.core.session import TencentSession


class TencentKeepTagger:
    """`KeepTagger` for one site of Tencent Cloud, from a session that can do nothing else; never a retry."""

    def __init__(self, session: TencentSession) -> None:
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
            AccessDeniedError: the role lacks tag:TagResources.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: Tag TagResources, which tells what failed inside a success (FailedResources).
        """
        name = f"qcs::cvm:{machine.region}:uin/{machine.account}:instance/{machine.native_id}"
        tag = {"TagKey": KEEP_TAG, "TagValue": value}
        answer = self._session.call(machine.shard, "tag", "TagResources", ResourceList=[name], Tags=[tag])
        with after_sending("tag:TagResources"):
            failed = parts(answer, "FailedResources")
            if not failed:
                return Receipt(request_id=named(answer, "RequestId"))
            code = named(failed[0], "Code")
        message = f"tag:TagResources: {machine} was not tagged: {code}"
        raise RefusedError(message, operation="tag:TagResources", code=code)
