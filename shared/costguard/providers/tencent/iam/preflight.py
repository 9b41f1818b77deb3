"""What these credentials are and may do, asked before anything is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance
from costguard.ports import Caller, Permit
from costguard.providers.kit.core.pacing import clock_skew
from costguard.providers.kit.iam.permissions import ACTING, READING
from costguard.providers.kit.iam.preflight import Asking
from costguard.providers.tencent.compute.metric_calls import NAMESPACE
from costguard.providers.tencent.core.errors import fix_for
from costguard.providers.tencent.core.products import PAGES
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.permissions import OPERATIONS

_NO_DRY_RUN = "Tencent Cloud has no dry run of this operation: whether it is allowed shows when it is done"
_NEEDS_AN_INSTANCE = "there is no instance here to ask about"
_NEEDS_A_CLUSTER = "asked only where there is a cluster"
_HOUR = 3600
_SMALLEST_DISK = {"DiskType": "CLOUD_PREMIUM", "DiskSize": 50, "DiskCount": 1, "DiskChargeType": "POSTPAID_BY_HOUR"}


class TencentPreflight:
    """`Preflight` for one site of Tencent Cloud. `acting` is there where something may be done at all."""

    def __init__(self, session: TencentSession, acting: TencentSession | None = None) -> None:
        self._session = session
        self._acting = acting
        self._asking = Asking(session.call, OPERATIONS, fix_for)

    def caller(self) -> Caller:
        """Who we are.

        Raises:
            ProviderError: no credentials, or Tencent Cloud does not accept them.
        """
        identity = (self._acting or self._session).identity()
        return Caller(self._session.cloud, identity.account, identity.arn)

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """Every operation that scanning uses there, each asked once; and with `acting` those that change something.

        Of these CVM and CBS have no dry run, so they are untold: compare the role's policy with the generated one.
        """
        asked = {name: dict(parameters) for name, parameters in _QUESTIONS.items()}
        now = int(self._session.now().timestamp())
        asked["cloudaudit:DescribeEvents"] = {"StartTime": now - _HOUR, "EndTime": now, "MaxResults": 1}
        if instances:
            first = instances[0]
            pair = {"Name": "InstanceId", "Value": first.ref.native_id}
            asked["monitor:GetMonitorData"] = {
                "Namespace": NAMESPACE,
                "MetricName": "CPUUsage",
                "Period": 300,
                "Instances": [{"Dimensions": [pair]}],
            }
        return [
            *(self._ask(shard, name, asked.get(name)) for name in _reads()),
            *(self._untold(shard, name) for name in (_changes() if acting else ())),
        ]

    def clock_skew(self) -> timedelta | None:
        """From the `Date` header of an answer of STS, which is there even where a wrong clock makes STS refuse.

        The header has whole seconds, so it lies half a second behind on average, and the answer was on its way.
        """
        return clock_skew(self._session.now, self._session.ask_time)

    def _ask(self, shard: Shard, operation: str, parameters: Mapping[str, Any] | None) -> Permit:
        if parameters is None:
            why = _NEEDS_A_CLUSTER if operation.startswith("tke:") else _NEEDS_AN_INSTANCE
            return self._asking.untold(shard, operation, why)
        service, action = operation.split(":")
        paging = PAGES.get(operation)
        page = {} if paging is None else {"Offset": 0, "Limit": 1}
        try:
            self._session.call(shard, service, action, **parameters, **page)
        except AccessDeniedError as err:
            return self._asking.told(shard, operation, err)
        except ProviderError as err:
            # refused for another reason than permission, or not there on a stand-in: nothing is known
            return self._asking.untold(shard, operation, str(err), fix_for(err))
        return self._asking.allowed(shard, operation)

    def _untold(self, shard: Shard, operation: str) -> Permit:
        grant = " and ".join(OPERATIONS[operation].permissions)
        return self._asking.untold(shard, operation, _NO_DRY_RUN, f"see that the role may do {grant}")


_QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "region:DescribeRegions": {"Product": "cvm"},
    "cvm:DescribeInstances": {},
    "cvm:DescribeZoneInstanceConfigInfos": {"Filters": [{"Name": "instance-type", "Values": ["GN7.2XLARGE32"]}]},
    "cvm:DescribeInstanceTypeConfigs": {"Filters": [{"Name": "instance-type", "Values": ["GN7.2XLARGE32"]}]},
    "as:DescribeAutoScalingInstances": {},
    "tke:DescribeClusters": {},
    "cbs:DescribeDisks": {},
    "cbs:DescribeSnapshots": {},
    "vpc:DescribeAddresses": {},
    "monitor:DescribeBaseMetrics": {"Namespace": NAMESPACE},
    "cbs:InquiryPriceCreateDisks": _SMALLEST_DISK,
}


def _reads() -> Iterator[str]:
    """What scanning uses and needs a permission: who we are may be asked by everybody."""
    return (name for name, operation in OPERATIONS.items() if operation.feature in READING and operation.permissions)


def _changes() -> Iterator[str]:
    return (name for name, operation in OPERATIONS.items() if operation.feature in ACTING)
