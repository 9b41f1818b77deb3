"""The one tag that Costguard writes on a machine of Alibaba Cloud: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.iam.purposes import Purpose, require_purpose


class AlibabaKeepTagger:
    """`KeepTagger` for one site of Alibaba Cloud, from a session that can do nothing else; never a retry."""

    def __init__(self, session: AlibabaSession) -> None:
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
            AccessDeniedError: the role lacks ecs:TagResources.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: ECS TagResources; a key that is there gets the new value.
        """
        answer = self._session.call(
            machine.shard,
            "ecs",
            "TagResources",
            RegionId=machine.region,
            ResourceType="instance",
            ResourceId=[machine.native_id],
            Tag=[{"Key": KEEP_TAG, "Value": value}],
        )
        with after_sending("ecs:TagResources"):
            return Receipt(request_id=named(answer, "RequestId"))
