"""The four changes Costguard makes on AWS: stop, snapshot, terminate, and start to undo a stop."""

from __future__ import annotations

from typing import Any

from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.refs import ResourceRef
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession, request_id
from costguard.providers.kit.compute.executor import (
    Executor,
    KeepTagger,
    require_instance,
    require_set,
    require_volume,
    unfit,
)
from costguard.providers.kit.compute.source import CASE_TAG, DECISION_TAG
from costguard.providers.kit.core.fields import after_sending, named, parts, text


class AwsKeepTagger(KeepTagger[AwsSession]):
    """For one partition of AWS. API: EC2 CreateTags, which overwrites the value of a key that is there."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        tags = [{"Key": key, "Value": value}]
        return self._session.change(machine.shard, "ec2", "CreateTags", Resources=[machine.native_id], Tags=tags)


_LONGEST_TAG = 256
_LONGEST_DESCRIPTION = 255


class AwsExecutor(Executor[AwsSession]):
    """For one partition of AWS. No force, no hibernation, no skipped shutdown.

    API: EC2 StopInstances, StartInstances, TerminateInstances with one id (a batch may partly succeed
    across zones), CreateSnapshot of one volume, CreateSnapshots of every volume of one instance.
    """

    def _stop(self, action: Action) -> Receipt:
        return self._change(action, "StopInstances", "StoppingInstances")

    def _start(self, action: Action) -> Receipt:
        return self._change(action, "StartInstances", "StartingInstances")

    def _terminate(self, action: Action) -> Receipt:
        return self._change(action, "TerminateInstances", "TerminatingInstances")

    def _snapshot(self, action: Action) -> Receipt:
        return self._snapshot_set(action) if action.copies else self._snapshot_one(action)

    def _change(self, action: Action, operation: str, result_key: str) -> Receipt:
        require_instance(action, HOME_REGIONS, "an AWS instance")
        native_id = action.resource.native_id
        answer = self._session.call(action.resource.shard, "ec2", operation, InstanceIds=[native_id])
        with after_sending(f"ec2:{operation}"):
            changed = [text(item, "InstanceId") for item in parts(answer, result_key)]
            receipt = Receipt(request_id=request_id(answer))
        if changed != [native_id]:
            api = f"ec2:{operation}"
            message = f"{api}: answered about {changed}, not about {native_id} alone; it may have taken effect"
            raise OutcomeUnknownError(message, operation=api, code="UnexpectedAnswer")
        return receipt

    def _snapshot_one(self, action: Action) -> Receipt:
        require_volume(action, HOME_REGIONS, "an AWS volume")
        instance, volume = action.subject.native_id, action.resource.native_id
        answer = self._session.call(
            action.resource.shard,
            "ec2",
            "CreateSnapshot",
            VolumeId=volume,
            Description=_described(f"made by costguard of a volume of {instance}, case {action.case_id}"),
            TagSpecifications=_tags(action, f"costguard {instance} {volume}"),
        )
        with after_sending("ec2:CreateSnapshot"):
            native_id, copied = text(answer, "SnapshotId"), text(answer, "VolumeId") or volume
            receipt = Receipt(request_id=request_id(answer), native_id=native_id)
        if not native_id or copied != volume:
            message = f"ec2:CreateSnapshot: answered without a snapshot of {volume}"
            raise OutcomeUnknownError(message, operation="ec2:CreateSnapshot", code="UnexpectedAnswer")
        return receipt

    def _snapshot_set(self, action: Action) -> Receipt:
        """All volumes attached at the moment of the call, none excluded: what was attached meanwhile is in the set."""
        require_set(action, HOME_REGIONS, "an AWS instance")
        api, instance = "ec2:CreateSnapshots", action.subject.native_id
        answer = self._session.call(
            action.resource.shard,
            "ec2",
            "CreateSnapshots",
            InstanceSpecification={"InstanceId": instance},
            Description=_described(f"made by costguard of the volumes of {instance}, case {action.case_id}"),
            TagSpecifications=_tags(action, f"costguard {instance}"),
        )
        with after_sending(api):
            made = {named(item, "VolumeId"): named(item, "SnapshotId") for item in parts(answer, "Snapshots")}
            volumes = [volume.native_id for volume in action.copies]
            others = sorted(made.keys() - set(volumes))
            receipt = Receipt(request_id(answer), ",".join(made[each] for each in (*volumes, *others) if each in made))
        missing = sorted(set(volumes) - made.keys())
        if missing:
            message = f"{api}: answered without a snapshot of {', '.join(missing)}; the others may have been made"
            raise OutcomeUnknownError(message, operation=api, code="UnexpectedAnswer")
        return receipt


def _described(words: str) -> str:
    return words[:_LONGEST_DESCRIPTION]


def _tags(action: Action, name: str) -> list[dict[str, Any]]:
    """What marks a copy as ours, set by the call that makes it.

    Raises:
        RefusedError: a value is longer than EC2 takes.
    """
    tags = {"Name": name, DECISION_TAG: action.decision_id, CASE_TAG: action.case_id}
    if any(len(value) > _LONGEST_TAG for value in tags.values()):
        raise unfit(action, f"a tag would be longer than {_LONGEST_TAG} characters")
    return [{"ResourceType": "snapshot", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
