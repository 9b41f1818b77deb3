"""Who we are on AWS, what we may do there, and whether our clock is right: asked before anything is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.ports import Permit
from costguard.providers.aws.billing.prices import PRICE_LIST_REGIONS
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import OPERATIONS
from costguard.providers.kit.compute.source import CASE_TAG, DECISION_TAG
from costguard.providers.kit.core.fields import as_documented, named, parts
from costguard.providers.kit.core.pacing import date_told
from costguard.providers.kit.iam.preflight import MOST_TRIED, DryRunPreflight, Question, to_try

_FEW = 5  # the smallest page EC2 gives
_NOBODY = "i-00000000000000000"  # asks CloudWatch for a series that nothing sends, and CloudTrail for no event
_HOUR = timedelta(hours=1)
_TAGS = [  # those that the executor sets: they need a permission of their own
    {
        "ResourceType": "snapshot",
        "Tags": [{"Key": key, "Value": "preflight"} for key in ("Name", DECISION_TAG, CASE_TAG)],
    }
]


class AwsPreflight(DryRunPreflight[AwsSession]):
    """For one partition of AWS.

    API: EC2 answers DryRunOperation to what it would allow and UnauthorizedOperation to what it would not.
    """

    operations = OPERATIONS
    would_be_allowed = ("DryRunOperation",)

    def _fix_for(self, err: ProviderError) -> str:
        return errors.fix_for(err)

    def _ask_time(self) -> datetime | None:
        try:
            answer = self._session.call(Shard(self._session.cloud, ""), "sts", "GetCallerIdentity")
        except ProviderError as err:
            answer = getattr(err.__cause__, "response", None) or {}
        return _date_of(answer)

    def _reads(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Question]:
        listed = {"MaxResults": _FEW, "DryRun": True}
        by_type = [{"Name": "instance-type", "Values": ["p4d.24xlarge"]}]
        yield Question("ec2:DescribeRegions", {"DryRun": True})
        yield Question("ec2:DescribeInstances", listed)
        yield Question("ec2:DescribeInstanceTypes", {"Filters": by_type, "DryRun": True})
        yield Question("ec2:DescribeSpotInstanceRequests", listed)
        yield Question("ec2:DescribeReservedInstances", {"DryRun": True})
        yield Question("ec2:DescribeVolumes", listed)
        yield Question("ec2:DescribeSnapshots", {"OwnerIds": ["self"], **listed})
        yield Question("ec2:DescribeAddresses", {"DryRun": True})
        attribute = {"Attribute": "disableApiTermination", "DryRun": True}
        some = {"InstanceId": instances[0].ref.native_id, **attribute} if instances else None
        yield Question("ec2:DescribeInstanceAttribute", some)
        yield Question("ec2:DescribeSpotPriceHistory", {"Filters": by_type, **listed})
        yield from self._metrics()
        hour_ago = self._now() - _HOUR
        nothing = [{"AttributeKey": "ResourceName", "AttributeValue": _NOBODY}]
        yield Question("cloudtrail:LookupEvents", {"LookupAttributes": nothing, "StartTime": hour_ago, "MaxResults": 1})
        if shard.cloud in PRICE_LIST_REGIONS:
            price_list = Shard(shard.cloud, shard.account, PRICE_LIST_REGIONS[shard.cloud])
            yield Question("pricing:GetProducts", {"ServiceCode": "AmazonEC2", "MaxResults": 1}, at=price_list)

    def _metrics(self) -> Iterator[Question]:
        """CloudWatch has no dry run: a listing that finds nothing, and an hour of a series that nothing sends."""
        nobody = [{"Name": "InstanceId", "Value": _NOBODY}]
        metric = {"Namespace": "AWS/EC2", "MetricName": "CPUUtilization", "Dimensions": nobody}
        statistic = {"Metric": metric, "Period": 3600, "Stat": "Maximum"}
        until = self._now().replace(minute=0, second=0, microsecond=0)
        yield Question("cloudwatch:ListMetrics", metric)
        yield Question(
            "cloudwatch:GetMetricData",
            {
                "MetricDataQueries": [{"Id": "preflight", "MetricStat": statistic}],
                "StartTime": until - _HOUR,
                "EndTime": until,
            },
        )

    def _changes(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Permit]:
        running, stopped = (
            [{"InstanceIds": [instance.ref.native_id]} for instance in to_try(instances, state)]
            for state in (InstanceState.RUNNING, InstanceState.STOPPED)
        )
        yield self._asking.tried(shard, "ec2:StopInstances", running)
        yield self._asking.tried(shard, "ec2:StartInstances", stopped)
        yield self._asking.tried(shard, "ec2:TerminateInstances", stopped)
        named = [{"InstanceId": native_id} for one in running for native_id in one["InstanceIds"]]
        sets = [{"InstanceSpecification": one, "TagSpecifications": _TAGS} for one in named]
        yield self._asking.tried(shard, "ec2:CreateSnapshots", sets)
        snapshot = "ec2:CreateSnapshot"
        try:
            volumes = self._volumes(shard, instances)
        except ProviderError as err:
            yield self._asking.untold(shard, snapshot, str(err))
            return
        yield self._asking.tried(
            shard, snapshot, [{"VolumeId": volume, "TagSpecifications": _TAGS} for volume in volumes]
        )

    def _volumes(self, shard: Shard, instances: Sequence[Instance]) -> list[str]:
        """Some disks of some of these machines."""
        ids = [instance.ref.native_id for instance in instances[:MOST_TRIED]]
        if not ids:
            return []
        attached = [{"Name": "attachment.instance-id", "Values": ids}]
        answer = self._session.call(shard, "ec2", "DescribeVolumes", Filters=attached)
        with as_documented("ec2:DescribeVolumes"):
            return [named(volume, "VolumeId") for volume in parts(answer, "Volumes")][:MOST_TRIED]


def _date_of(answer: Any) -> datetime | None:
    metadata = answer.get("ResponseMetadata") if isinstance(answer, dict) else None
    headers = metadata.get("HTTPHeaders") if isinstance(metadata, dict) else None
    return date_told(headers.get("date")) if isinstance(headers, dict) else None
