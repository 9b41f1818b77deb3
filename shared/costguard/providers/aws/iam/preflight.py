"""Who we are on AWS, what we may do there, and whether our clock is right: asked before anything is done.

Every permission is learnt from an answer: EC2's own dry runs, which check the permission and stop there, and
elsewhere a read that asks for next to nothing. What a dry run is sent for cannot happen: the session has no way
to send a change without `DryRun=true`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.ports import CallCount, Caller, Permit
from costguard.providers.aws.billing.prices import PRICE_LIST_REGIONS
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import OPERATIONS
from costguard.providers.kit.compute.source import CASE_TAG, DECISION_TAG
from costguard.providers.kit.core.fields import as_documented, named, parts
from costguard.providers.kit.core.pacing import clock_skew, date_told
from costguard.providers.kit.iam.preflight import MOST_TRIED, NOTHING_TO_ASK_ABOUT, Asking

_WOULD_BE_ALLOWED = frozenset({"DryRunOperation"})
_FEW = 5  # the smallest page EC2 gives
_NOBODY = "i-00000000000000000"  # asks CloudWatch for a series that nothing sends, and CloudTrail for no event
_HOUR = timedelta(hours=1)
_TAGS = [  # those that the executor sets: they need a permission of their own
    {
        "ResourceType": "snapshot",
        "Tags": [{"Key": key, "Value": "preflight"} for key in ("Name", DECISION_TAG, CASE_TAG)],
    }
]


@dataclass(frozen=True, slots=True)
class _Question:
    """One operation and what to ask it with; None where there is nothing to ask about. `at` is where, if elsewhere."""

    operation: str
    parameters: dict[str, Any] | None
    at: Shard | None = None


class AwsPreflight:
    """`Preflight` and `CallLog` for one partition of AWS. `now` is the clock of this machine."""

    def __init__(self, session: AwsSession, *, now: Callable[[], datetime]) -> None:
        """Take a session that may ask for dry runs.

        Raises:
            InvalidInputError: `session` may change things: whoever asks first must not be able to.
        """
        if session.may_change or not session.may_dry_run:
            message = "a preflight needs a session made for dry runs (AwsSession.dry_running()), which changes nothing"
            raise InvalidInputError(message)
        self._session = session
        self._now = now
        self._asking = Asking(session.call, OPERATIONS, errors.fix_for, _WOULD_BE_ALLOWED)

    def caller(self) -> Caller:
        """Account and ARN of the credentials we started with.

        API: STS GetCallerIdentity, which needs no permission.
        """
        identity = self._session.identity()
        return Caller(self._session.cloud, identity.account, identity.arn)

    def clock_skew(self) -> timedelta | None:
        """From the `Date` header of an answer of STS, which is there even where a wrong clock makes STS refuse.

        The header has whole seconds, and the answer was on its way: right to a second and half the round trip.
        """
        return clock_skew(self._now, self._ask_time)

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """What scanning asks there, and with `acting` the five changes as dry runs on `instances`.

        Not asked: `sts:AssumeRole` and `organizations:ListAccounts`, which `discover` has used to come here.

        API: EC2 answers DryRunOperation to what it would allow and UnauthorizedOperation to what it would not.
        """
        found = [self._asked(shard, question) for question in self._reads(shard, instances)]
        if acting:
            found += self._changes(shard, instances)
        return tuple(found)

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation sent, counted where requests leave the process."""
        return self._session.calls_made()

    def _ask_time(self) -> datetime | None:
        try:
            answer = self._session.call(Shard(self._session.cloud, ""), "sts", "GetCallerIdentity")
        except ProviderError as err:
            answer = getattr(err.__cause__, "response", None) or {}
        return _date_of(answer)

    def _reads(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[_Question]:
        listed = {"MaxResults": _FEW, "DryRun": True}
        by_type = [{"Name": "instance-type", "Values": ["p4d.24xlarge"]}]
        yield _Question("ec2:DescribeRegions", {"DryRun": True})
        yield _Question("ec2:DescribeInstances", listed)
        yield _Question("ec2:DescribeInstanceTypes", {"Filters": by_type, "DryRun": True})
        yield _Question("ec2:DescribeSpotInstanceRequests", listed)
        yield _Question("ec2:DescribeReservedInstances", {"DryRun": True})
        yield _Question("ec2:DescribeVolumes", listed)
        yield _Question("ec2:DescribeSnapshots", {"OwnerIds": ["self"], **listed})
        yield _Question("ec2:DescribeAddresses", {"DryRun": True})
        attribute = {"Attribute": "disableApiTermination", "DryRun": True}
        some = {"InstanceId": instances[0].ref.native_id, **attribute} if instances else None
        yield _Question("ec2:DescribeInstanceAttribute", some)
        yield _Question("ec2:DescribeSpotPriceHistory", {"Filters": by_type, **listed})
        yield from self._metrics()
        hour_ago = self._now() - _HOUR
        nothing = [{"AttributeKey": "ResourceName", "AttributeValue": _NOBODY}]
        yield _Question(
            "cloudtrail:LookupEvents", {"LookupAttributes": nothing, "StartTime": hour_ago, "MaxResults": 1}
        )
        if shard.cloud in PRICE_LIST_REGIONS:
            price_list = Shard(shard.cloud, shard.account, PRICE_LIST_REGIONS[shard.cloud])
            yield _Question("pricing:GetProducts", {"ServiceCode": "AmazonEC2", "MaxResults": 1}, at=price_list)

    def _metrics(self) -> Iterator[_Question]:
        """CloudWatch has no dry run: a listing that finds nothing, and an hour of a series that nothing sends."""
        nobody = [{"Name": "InstanceId", "Value": _NOBODY}]
        metric = {"Namespace": "AWS/EC2", "MetricName": "CPUUtilization", "Dimensions": nobody}
        statistic = {"Metric": metric, "Period": 3600, "Stat": "Maximum"}
        until = self._now().replace(minute=0, second=0, microsecond=0)
        yield _Question("cloudwatch:ListMetrics", metric)
        yield _Question(
            "cloudwatch:GetMetricData",
            {
                "MetricDataQueries": [{"Id": "preflight", "MetricStat": statistic}],
                "StartTime": until - _HOUR,
                "EndTime": until,
            },
        )

    def _changes(self, shard: Shard, instances: Sequence[Instance]) -> Iterator[Permit]:
        running = _on_each(instances, InstanceState.RUNNING)
        stopped = _on_each(instances, InstanceState.STOPPED)
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

    def _asked(self, shard: Shard, question: _Question) -> Permit:
        if question.parameters is None:
            return self._asking.untold(shard, question.operation, NOTHING_TO_ASK_ABOUT)
        return self._asking.read(shard, question.operation, question.parameters, at=question.at)


def _on_each(instances: Sequence[Instance], state: InstanceState) -> list[dict[str, Any]]:
    """A request for each of a few machines, those in `state` first: EC2 may refuse a wrong state before all else."""
    first = sorted(instances, key=lambda instance: instance.state is not state)
    return [{"InstanceIds": [instance.ref.native_id]} for instance in first[:MOST_TRIED]]


def _date_of(answer: Any) -> datetime | None:
    metadata = answer.get("ResponseMetadata") if isinstance(answer, dict) else None
    headers = metadata.get("HTTPHeaders") if isinstance(metadata, dict) else None
    return date_told(headers.get("date")) if isinstance(headers, dict) else None
