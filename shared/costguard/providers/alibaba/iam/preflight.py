"""Who we are on Alibaba Cloud, what we may do there, and whether our clock is right: asked before anything is done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.ports import Permit
from costguard.providers.alibaba.compute.metrics import NAMESPACE
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.kit.iam.preflight import MOST_TRIED, DryRunPreflight, Question, to_try

_NO_DRY_RUN = "the API has no dry run of it"
_SOME_TYPE = "ecs.gn6i-c4g1.xlarge"
_NOBODY = "i-00000000000000000000"  # asks CloudMonitor for a series that nothing sends, and ActionTrail for no event
_HOUR_MS = 3_600_000
_DISK = {"Category": "cloud_essd", "Size": 40}


class AlibabaPreflight(DryRunPreflight[AlibabaSession]):
    """For one site of Alibaba Cloud. To who may not ask, a plain empty answer may be given, to a dry run as well.

    API: a dry run that would be allowed is answered with the error DryRunOperation, or DRYRUN.SUCCESS in a batch.
    """

    operations = OPERATIONS
    would_be_allowed = errors.WOULD_BE_ALLOWED
    unless = "a dry run was answered like the call itself"

    def _fix_for(self, err: ProviderError) -> str:
        return errors.fix_for(err)

    def _ask_time(self) -> datetime | None:
        return self._session.ask_time()

    def _reads(self, _shard: Shard, _instances: Sequence[Instance]) -> Iterator[Question]:
        yield Question("ecs:DescribeRegions")
        yield Question("ecs:DescribeInstances", {"DryRun": True})
        yield Question("ecs:DescribeInstanceTypes", {"InstanceTypes": [_SOME_TYPE]})
        yield Question("ecs:DescribeDisks", {"DryRun": True})
        yield Question("ecs:DescribeSnapshots", {"DryRun": True})
        yield Question("vpc:DescribeEipAddresses", {"DryRun": True})
        yield Question("cms:DescribeMetricList", self._of_nobody())
        nothing = [{"Key": "ResourceName", "Value": _NOBODY}]
        yield Question("actiontrail:LookupEvents", {"LookupAttribute": nothing, "MaxResults": 1})
        yield Question("ecs:DescribePrice", {"ResourceType": "disk", "PriceUnit": "Hour", "DataDisk": [_DISK]})

    def _of_nobody(self) -> dict[str, Any]:
        until = int(self._now().timestamp()) * 1000
        return {
            "Namespace": NAMESPACE,
            "MetricName": "CPUUtilization",
            "Dimensions": json.dumps([{"instanceId": _NOBODY}]),
            "StartTime": str(until - _HOUR_MS),
            "EndTime": str(until),
            "Period": "60",
        }

    def _changes(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Permit]:
        yield self._asking.tried(shard, "ecs:StopInstances", _on_each(instances, InstanceState.RUNNING))
        yield self._asking.tried(shard, "ecs:StartInstances", _on_each(instances, InstanceState.STOPPED))
        some = [{"InstanceId": [instance.ref.native_id]} for instance in instances[:MOST_TRIED]]
        yield self._asking.tried(shard, "ecs:DeleteInstances", some)  # its dry run looks at no state
        yield self._asking.untold(shard, "ecs:CreateSnapshot", _NO_DRY_RUN)


def _on_each(instances: Sequence[Instance], state: InstanceState) -> list[dict[str, Any]]:
    """A request for each of a few machines, those in `state` first.

    All together, a dry run looks at the machine too, and refuses a wrong state; with SuccessFirst it only says
    whether the call would be let through.
    """
    return [
        {
            "InstanceId": [instance.ref.native_id],
            "BatchOptimization": "AllTogether" if instance.state is state else "SuccessFirst",
        }
        for instance in to_try(instances, state)
    ]
