"""The four changes Costguard makes on Alibaba Cloud: stop, snapshot, terminate, and start to undo a stop."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.refs import ResourceRef
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import HOME_REGIONS, structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.compute.executor import Executor, KeepTagger, require_instance, require_volume, unfit
from costguard.providers.kit.compute.source import CASE_TAG, DECISION_TAG
from costguard.providers.kit.core.fields import after_sending, named, text


class AlibabaKeepTagger(KeepTagger[AlibabaSession]):
    """For one site of Alibaba Cloud. API: ECS TagResources; a key that is there gets the new value."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        return self._session.change(
            machine.shard,
            "ecs",
            "TagResources",
            RegionId=machine.region,
            ResourceType="instance",
            ResourceId=[machine.native_id],
            Tag=[{"Key": key, "Value": value}],
        )


_LONGEST_TAG = 128
_LONGEST_TEXT = 128  # of a name; a description may have 256
_AN_INSTANCE = "an instance of Alibaba Cloud"
_BATCH = "InstanceResponses.InstanceResponse"


class AlibabaExecutor(Executor[AlibabaSession]):
    """For one site of Alibaba Cloud.

    A stop asks for economical mode, which is ignored in silence where it does not exist: what the machine says
    afterwards (`billed_while_stopped`) tells. A release never forces: a machine that runs is refused, and so is a
    prepaid one.

    API: ECS StopInstances, StartInstances, DeleteInstances with one id, CreateSnapshot of one disk. Where the
    API has a ClientToken it is made from the decision: sent twice, it would still be done once.
    """

    def _stop(self, action: Action) -> Receipt:
        return self._batch(action, "StopInstances", StoppedMode="StopCharging", ForceStop=False)

    def _start(self, action: Action) -> Receipt:
        return self._batch(action, "StartInstances")

    def _batch(self, action: Action, operation: str, **parameters: Any) -> Receipt:
        """A call that answers for each instance apart, with a code of its own."""
        require_instance(action, HOME_REGIONS, _AN_INSTANCE)
        native_id = action.resource.native_id
        # SuccessFirst: without it a refusal of one among many rolls back the others; of one alone it is the same
        answer = self._session.call(
            action.resource.shard,
            "ecs",
            operation,
            InstanceId=[native_id],
            BatchOptimization="SuccessFirst",
            **parameters,
        )
        api = f"ecs:{operation}"
        with after_sending(api):
            responses = structures_in(answer, _BATCH, api)
            told = [(text(each, "InstanceId"), text(each, "Code"), text(each, "Message")) for each in responses]
            receipt = Receipt(request_id=named(answer, "RequestId"))
        if [about for about, _, _ in told] != [native_id]:
            message = f"{api}: answered about {len(told)} instances, not {native_id} alone; it may have taken effect"
            raise OutcomeUnknownError(message, operation=api, code="UnexpectedAnswer")
        _, code, message = told[0]
        if code != "200":
            raise errors.refusal(api, code, message, changes=True)
        return receipt

    def _terminate(self, action: Action) -> Receipt:
        require_instance(action, HOME_REGIONS, _AN_INSTANCE)
        return self._session.change(
            action.resource.shard,
            "ecs",
            "DeleteInstances",
            InstanceId=[action.resource.native_id],
            Force=False,
            TerminateSubscription=False,
            ClientToken=_token(action),
        )

    def _snapshot(self, action: Action) -> Receipt:
        require_volume(action, HOME_REGIONS, "a volume of Alibaba Cloud")
        disk, instance = action.resource.native_id, action.subject.native_id
        tags = {DECISION_TAG: action.decision_id, CASE_TAG: action.case_id}
        if any(len(value) > _LONGEST_TAG or "://" in value for value in tags.values()):
            raise unfit(action, f"a tag would be longer than {_LONGEST_TAG} characters, or an address")
        return self._session.change(
            action.resource.shard,
            "ecs",
            "CreateSnapshot",
            lambda answer: named(answer, "SnapshotId"),
            DiskId=disk,
            SnapshotName=f"costguard-{instance}-{disk}"[:_LONGEST_TEXT],
            Description=f"made by costguard of a disk of {instance}, case {action.case_id}"[:_LONGEST_TEXT],
            Tag=[{"Key": key, "Value": value} for key, value in tags.items()],
            ClientToken=_token(action),
        )


def _token(action: Action) -> str:
    """64 characters that belong to one decision about one resource."""
    words = "\n".join((action.verb.value, action.decision_id, str(action.resource)))
    return sha256(words.encode()).hexdigest()
