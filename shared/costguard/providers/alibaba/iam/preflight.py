"""Who we are on Alibaba Cloud, what we may do there, and whether our clock is right: asked before anything is done.

Every permission is learnt from an answer: the API's own dry runs, which check the permission and stop there, and
elsewhere a read that asks for next to nothing. What a dry run is sent for cannot happen: the session has no way to
send a change without `DryRun=true`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.ports import CallCount, Caller, Permit
from costguard.providers.alibaba.compute.metrics import NAMESPACE
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.kit.core.pacing import clock_skew
from costguard.providers.kit.iam.preflight import MOST_TRIED, Asking

_NO_DRY_RUN = "the API has no dry run of it"
_SOME_TYPE = "ecs.gn6i-c4g1.xlarge"
_NOBODY = "i-00000000000000000000"  # asks CloudMonitor for a series that nothing sends, and ActionTrail for no event
_HOUR_MS = 3_600_000
_DISK = {"Category": "cloud_essd", "Size": 40}


@dataclass(frozen=True, slots=True)
class _Question:
    """One operation and what to ask it with."""

    operation: str
    parameters: dict[str, Any] = field(default_factory=dict)


class AlibabaPreflight:
    """`Preflight` and `CallLog` for one site of Alibaba Cloud. `now` is the clock of this machine."""

    def __init__(self, session: AlibabaSession, *, now: Callable[[], datetime]) -> None:
        """Take a session that may ask for dry runs.

        Raises:
            InvalidInputError: `session` may change things: whoever asks first must not be able to.
        """
        if session.may_change or not session.may_dry_run:
            message = (
                "a preflight needs a session made for dry runs (AlibabaSession.dry_running()), which changes nothing"
            )
            raise InvalidInputError(message)
        self._session = session
        self._now = now
        self._asking = Asking(session.call, OPERATIONS, errors.fix_for, errors.WOULD_BE_ALLOWED)

    def caller(self) -> Caller:
        """Account and ARN of the credentials we started with.

        API: STS GetCallerIdentity, which needs no permission.
        """
        identity = self._session.identity()
        return Caller(self._session.cloud, identity.account, identity.arn)

    def clock_skew(self) -> timedelta | None:
        """From the `Date` header of an answer of STS, which is there even where a wrong clock makes STS refuse.

        The header has whole seconds, so it lies half a second behind on average, and the answer was on its way.
        """
        return clock_skew(self._now, self._session.ask_time)

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """What scanning asks there, and with `acting` the four changes as dry runs on `instances`.

        Not asked: `sts:AssumeRole` and `resourcedirectory:ListAccounts`, which `discover` has used to come here.

        API: a dry run that would be allowed is answered with the error DryRunOperation, or DRYRUN.SUCCESS in a batch.
        """
        found = [self._asked(shard, question) for question in self._reads()]
        if acting:
            found += self._changes(shard, instances)
        return tuple(found)

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation sent, counted where requests leave the process."""
        return self._session.calls_made()

    def _reads(self) -> Iterator[_Question]:
        """Dry runs where there are some; of the rest the smallest question there is."""
        yield _Question("ecs:DescribeRegions")
        yield _Question("ecs:DescribeInstances", {"DryRun": True})
        yield _Question("ecs:DescribeInstanceTypes", {"InstanceTypes": [_SOME_TYPE]})
        yield _Question("ecs:DescribeDisks", {"DryRun": True})
        yield _Question("ecs:DescribeSnapshots", {"DryRun": True})
        yield _Question("vpc:DescribeEipAddresses", {"DryRun": True})
        yield _Question("cms:DescribeMetricList", self._of_nobody())
        nothing = [{"Key": "ResourceName", "Value": _NOBODY}]
        yield _Question("actiontrail:LookupEvents", {"LookupAttribute": nothing, "MaxResults": 1})
        yield _Question("ecs:DescribePrice", {"ResourceType": "disk", "PriceUnit": "Hour", "DataDisk": [_DISK]})

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

    def _asked(self, shard: Shard, question: _Question) -> Permit:
        """A plain empty answer to a dry run proves nothing: who may not ask may be given one."""
        unless = "a dry run was answered like the call itself" if question.parameters.get("DryRun") else ""
        return self._asking.read(shard, question.operation, question.parameters, unless=unless)


def _on_each(instances: Sequence[Instance], state: InstanceState) -> list[dict[str, Any]]:
    """A request for each of a few machines, those in `state` first.

    All together, a dry run looks at the machine too, and refuses a wrong state; with SuccessFirst it only says
    whether the call would be let through.
    """
    first = sorted(instances, key=lambda instance: instance.state is not state)[:MOST_TRIED]
    return [
        {
            "InstanceId": [instance.ref.native_id],
            "BatchOptimization": "AllTogether" if instance.state is state else "SuccessFirst",
        }
        for instance in first
    ]
