"""The four changes Costguard makes on Tencent Cloud: stop, snapshot, terminate, and start to undo a stop."""

from __future__ import annotations

import threading
from typing import Any

from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import (
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
)
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceState
from costguard.providers.kit.compute.executor import Executor, KeepTagger, require_instance, require_volume, unfit
from costguard.providers.kit.compute.source import CASE_TAG, DECISION_TAG
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented, flag, named, parts, text
from costguard.providers.tencent.compute.instances import POSTPAID, SPOT, TERMINATE, state_of
from costguard.providers.tencent.compute.source import SNAPSHOTS, to_snapshot
from costguard.providers.tencent.core.products import HOME_REGIONS, told
from costguard.providers.tencent.core.session import TencentSession

_API = "tag:TagResources"


class TencentKeepTagger(KeepTagger[TencentSession]):
    """For one site of Tencent Cloud. API: Tag TagResources, which tells what failed inside a success."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        name = f"qcs::cvm:{machine.region}:uin/{machine.account}:instance/{machine.native_id}"
        tags = [{"TagKey": key, "TagValue": value}]
        answer = self._session.call(machine.shard, "tag", "TagResources", ResourceList=[name], Tags=tags)
        with after_sending(_API):
            failed = parts(answer, "FailedResources")
            if not failed:
                return Receipt(request_id=named(answer, "RequestId"))
            code = named(failed[0], "Code")
        message = f"{_API}: {machine} was not tagged: {code}"
        raise RefusedError(message, operation=_API, code=code)


_LONGEST_TAG = 255
_LONGEST_NAME = 60
_MAY_END = frozenset({InstanceState.RUNNING, InstanceState.STOPPED})


class TencentExecutor(Executor[TencentSession]):
    """For one site of Tencent Cloud.

    A stop asks for no further charges, and shuts the machine down as its owner would do it, without force.
    Where its type must go on being charged, the cloud refuses or says so afterwards (StopChargingMode).

    API: CVM StopInstances, StartInstances and TerminateInstances with one id, CBS CreateSnapshot of one disk.
    """

    def __init__(self, session: TencentSession) -> None:
        super().__init__(session)
        self._ended: set[str] = set()
        self._ending = threading.Lock()

    def _stop(self, action: Action) -> Receipt:
        return self._change(action, "StopInstances", StopType="SOFT", StoppedMode="STOP_CHARGING")

    def _start(self, action: Action) -> Receipt:
        return self._change(action, "StartInstances")

    def _change(self, action: Action, operation: str, **how: Any) -> Receipt:
        require_instance(action, HOME_REGIONS, "a Tencent Cloud instance")
        resource = action.resource
        answer = self._session.call(resource.shard, "cvm", operation, InstanceIds=[resource.native_id], **how)
        return _receipt(f"cvm:{operation}", answer)

    def _terminate(self, action: Action) -> Receipt:
        """Once, ever: a second call destroys for good what the first put into the recycle bin.

        So the machine is looked at before, by the session that acts; neither a prepaid one, nor one that
        anybody has begun to end, is touched. A call that was sent is remembered whatever came of it, unless
        the cloud rejected it before doing anything.
        """
        require_instance(action, HOME_REGIONS, "a Tencent Cloud instance")
        native_id = action.resource.native_id
        with self._ending:
            if native_id in self._ended:
                raise unfit(action, "it was sent before, and a second call would destroy what the first recycled")
            self._look_before_the_end(action)
            self._ended.add(native_id)
        try:
            return self._change(action, "TerminateInstances", ReleaseAddress=False)
        except OutcomeUnknownError:
            raise
        except ProviderError:
            with self._ending:
                self._ended.discard(native_id)
            raise

    def _look_before_the_end(self, action: Action) -> None:
        native_id = action.resource.native_id
        shard = action.resource.shard
        pages = self._session.pages(shard, "cvm", "DescribeInstances", "InstanceSet", InstanceIds=[native_id])
        listed = [item for page in pages for item in page]
        with as_documented("cvm:DescribeInstances"):
            found = [item for item in listed if named(item, "InstanceId") == native_id]
            barred = "" if len(found) != 1 else _bar_to_ending(found[0])
        if not found:
            message = f"cvm:TerminateInstances: not sent: {native_id} does not exist"
            raise NotFoundError(message, operation="cvm:TerminateInstances", code="NotListed")
        if len(found) != 1:
            raise unfit(action, "the cloud lists it more than once")
        if barred:
            raise unfit(action, barred)

    def _snapshot(self, action: Action) -> Receipt:
        require_volume(action, HOME_REGIONS, "a Tencent Cloud disk")
        name = f"costguard-{action.decision_id}"[:_LONGEST_NAME]
        tags = {DECISION_TAG: action.decision_id, CASE_TAG: action.case_id}
        if any(len(value) > _LONGEST_TAG for value in tags.values()):
            raise unfit(action, f"a tag would be longer than {_LONGEST_TAG} characters")
        disk = action.resource.native_id
        made = self._made_before(action, name)
        if made:
            return Receipt(request_id="", native_id=made)
        answer = self._session.call(
            action.resource.shard,
            "cbs",
            "CreateSnapshot",
            DiskId=disk,
            SnapshotName=name,
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        receipt = _receipt("cbs:CreateSnapshot", answer, "SnapshotId")
        if not receipt.native_id:
            message = f"cbs:CreateSnapshot: answered without the id of a snapshot of {disk}; it may have taken effect"
            raise OutcomeUnknownError(message, operation="cbs:CreateSnapshot", code="UnexpectedAnswer")
        return receipt

    def _made_before(self, action: Action, name: str) -> str:
        """The snapshot that this decision has already made of this disk: the API knows no client token."""
        shard, disk = action.resource.shard, action.resource.native_id
        wanted = [{"Name": "disk-id", "Values": [disk]}, {"Name": "snapshot-name", "Values": [name]}]
        for page in self._session.pages(shard, "cbs", "DescribeSnapshots", "SnapshotSet", Filters=wanted):
            with as_documented(SNAPSHOTS):
                for snapshot in filter(None, (to_snapshot(shard, item) for item in page)):
                    if snapshot.decision_id == action.decision_id and snapshot.volume.native_id == disk:
                        return snapshot.ref.native_id
        return ""


def _bar_to_ending(described: Fields) -> str:
    """Why this machine may not be ended; empty when it may."""
    known = told(described, "LatestOperation")
    charge, state = text(known, "InstanceChargeType"), state_of(known)
    if charge not in {POSTPAID, SPOT}:
        return f"it is charged by {charge or 'unknown terms'}: such a machine is never ended"
    if state not in _MAY_END or text(known, "LatestOperation") == TERMINATE:
        return f"it is {text(known, 'InstanceState')} after {text(known, 'LatestOperation') or 'nothing'}"
    return "it is protected against being ended" if flag(known, "DisableApiTermination") else ""


def _receipt(operation: str, answer: Fields, created: str = "") -> Receipt:
    """The change was sent: an answer that cannot be read leaves its outcome unknown."""
    with after_sending(operation):
        known = told(answer, created)
        return Receipt(request_id=named(known, "RequestId"), native_id=text(known, created) if created else "")
