"""The emulator of Alibaba Cloud asked through the vendor's own SDK, and machines to ask about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from aliyunsdkcore.acs_exception.exceptions import ClientException, ServerException
from aliyunsdkcore.auth.credentials import StsTokenCredential
from aliyunsdkcore.client import AcsClient
from aliyunsdkcore.request import CommonRequest

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.keys import Keys
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Accelerator, AcceleratorKind

AT = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
HANGZHOU = "cn-hangzhou"
CPU_ONLY = Accelerator(AcceleratorKind.OTHER, "", 0)

_ECS, _VPC, _CMS, _STS, _DIRECTORY = "2014-05-26", "2016-04-28", "2019-01-01", "2015-04-01", "2022-04-19"
_BSS, _KMS = "2017-12-14", "2016-01-20"
VERSIONS = {
    "DescribeEipAddresses": _VPC,
    "DescribeMetricList": _CMS,
    "DescribeMetricLast": _CMS,
    "DescribeMetricMetaList": _CMS,
    "DescribeMonitoringAgentStatuses": _CMS,
    "GetCallerIdentity": _STS,
    "AssumeRole": _STS,
    "ListAccounts": _DIRECTORY,
    "DescribeInstanceBill": _BSS,
    "QueryBillOverview": _BSS,
    "QueryAccountBill": _BSS,
    "DescribeCostBudgetsSummary": _BSS,
    "ListKeys": _KMS,
    "ListAliases": _KMS,
    "DescribeKey": _KMS,
    "ListResourceTags": _KMS,
    "ListTagResources": _KMS,
    "DescribeAccountKmsStatus": _KMS,
    "UpdateRotationPolicy": _KMS,
    "CreateKeyVersion": _KMS,
}
"""The product of an action; ECS where there is no row."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """The cloud said no."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.code = code
        self.status = status
        self.message = message


class Cloud:
    """An emulator, its world and its clock, and clients of the SDK to ask it with."""

    def __init__(self, fleet: tuple[MachineSpec, ...], **settings: Any) -> None:
        self.clock = MovedClock(AT)
        self.world = World(fleet, AT)
        self.door = WorldDoor(self.world, self.clock)
        self.emulator = AlibabaEmulator(self.door, **settings)
        self._clients: dict[str, AcsClient] = {}

    def close(self) -> None:
        for client in self._clients.values():
            client.session.close()
        self.emulator.close()

    def ask(
        self,
        action: str,
        parameters: Mapping[str, str] | None = None,
        *,
        keys: Keys | None = None,
        region: str = HANGZHOU,
        method: str = "POST",
        in_body: bool = False,
        patience: float = 5.0,
        **more: str,
    ) -> dict[str, Any]:
        """One call through the SDK; parameters with dots in their names come as a mapping."""
        request = CommonRequest(domain=self.emulator.url, version=VERSIONS.get(action, _ECS), action_name=action)
        request.set_method(method)
        request.set_read_timeout(patience)
        request.add_query_param("RegionId", region)
        for name, value in {**(parameters or {}), **more}.items():
            (request.add_body_params if in_body else request.add_query_param)(name, value)
        try:
            answer = self.client(keys or self.emulator.keys).do_action_with_exception(request)
        except ServerException as err:
            raise Refused(err.get_error_code(), err.get_http_status(), err.get_error_msg()) from err
        except ClientException as err:
            raise Refused(err.get_error_code(), 0, err.get_error_msg()) from err
        try:
            found = json.loads(answer)
        except ValueError as err:
            raise Refused("half an answer", 200, repr(answer)) from err
        assert isinstance(found, dict)
        return found

    def refusal(self, action: str, parameters: Mapping[str, str] | None = None, **more: Any) -> str:
        """The code of the error that the call ends in."""
        try:
            self.ask(action, parameters, **more)
        except Refused as err:
            return err.code
        return ""

    def assume(self, account: str, **more: str) -> Keys:
        """The keys of a session of the role in this account."""
        arn = f"acs:ram::{account}:role/costguard"
        found = self.ask("AssumeRole", {"RoleArn": arn, "RoleSessionName": "costguard", **more})["Credentials"]
        return Keys(found["AccessKeyId"], found["AccessKeySecret"], found["SecurityToken"])

    def instance(self, native_id: str) -> dict[str, Any]:
        """One machine as DescribeInstances tells it."""
        found = self.ask("DescribeInstances", InstanceIds=json.dumps([native_id]))["Instances"]["Instance"]
        assert len(found) == 1
        return dict(found[0])

    def pages(self, action: str, path: tuple[str, str], **parameters: str) -> list[list[dict[str, Any]]]:
        """Every page of a list by token."""
        found, token = [], ""
        while True:
            answer = self.ask(action, {**parameters, **({"NextToken": token} if token else {})})
            found.append(answer[path[0]][path[1]])
            token = answer.get("NextToken", "")
            if not token:
                return found

    def client(self, keys: Keys) -> AcsClient:
        """The SDK's client with these keys; one for all threads."""
        client = self._clients.get(keys.key_id + keys.secret + keys.token)
        if client is None:
            made = {"region_id": HANGZHOU, "auto_retry": False, "timeout": 5}
            if keys.token:
                credential = StsTokenCredential(keys.key_id, keys.secret, keys.token)
                client = AcsClient(credential=credential, **made)
            else:
                client = AcsClient(keys.key_id, keys.secret, **made)
            self._clients[keys.key_id + keys.secret + keys.token] = client
        return client


@contextmanager
def cloud_of(*fleet: MachineSpec, **settings: Any) -> Iterator[Cloud]:
    """A cloud with these machines, at `AT`."""
    cloud = Cloud(fleet, **settings)
    try:
        yield cloud
    finally:
        cloud.close()
