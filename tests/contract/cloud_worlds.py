"""A small cloud to test adapters on: what the contract suites of `InventorySource` and `ActionExecutor` need.

A further provider adds its own world to `provider_worlds.py`; the suites then run on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from tests.contract.aws_stand_in import (
    StandIn,
    aws_stand_in,
    credentials_of,
    new_account,
    patient_pacer,
    setup_client,
)

from costguard.domain.refs import Shard
from costguard.ports import ActionExecutor, InventorySource, Target
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession

DENIED, THROTTLED, LOST, REPEATED, LEFT_OUT = "denied", "throttled", "lost", "repeated page", "left out"
SOLD_OUT = "sold out"


class World(Protocol):
    """One account with one region in use. Ids are native."""

    @property
    def shard(self) -> Shard: ...
    @property
    def missing(self) -> str:
        """The id of an instance that never was, in this cloud's form."""

    @property
    def inventory(self) -> InventorySource: ...
    @property
    def executor(self) -> ActionExecutor: ...
    def target(self, *regions: str, every: bool = False) -> Target: ...
    def launch(self, *, gpu: bool = True, tags: dict[str, str] | None = None) -> str: ...
    def stop(self, instance: str) -> None: ...
    def terminate(self, instance: str) -> None: ...
    def state(self, instance: str) -> str: ...
    def add_volume(self, instance: str) -> str: ...
    def volumes(self, instance: str) -> set[str]: ...
    def keep_address(self, instance: str) -> str: ...
    def protect(self, instance: str) -> None: ...
    def go_wrong(self, what: str, how: str) -> None:
        """From now on `what` (`list`, `volumes`, `stop`, `terminate`, `snapshot`) fails as `how` says."""

    def changes_sent(self) -> list[str]:
        """The changing calls that arrived since the world was made ready, by verb."""

    def requests(self) -> int:
        """How many requests of any kind arrived."""


class AwsWorld:
    """EC2 on moto."""

    _CALLS = {  # noqa: RUF012 - never written
        "list": "DescribeInstances",
        "volumes": "DescribeVolumes",
        "stop": "StopInstances",
        "start": "StartInstances",
        "terminate": "TerminateInstances",
        "snapshot": "CreateSnapshot",
        "snapshot set": "CreateSnapshots",
    }

    missing = "i-0123456789abcdef0"

    def __init__(self, stand_in: StandIn, account: str, credentials: dict[str, str]) -> None:
        self.stand_in = stand_in
        self._credentials = credentials
        self._opened: list[Any] = []
        self.shard = Shard("aws", account, "us-east-1")
        self.session = AwsSession(endpoint_url=stand_in.url, pacer=patient_pacer())
        self.acting = self.session.acting()
        self.inventory = AwsInventory(self.session, catalogue=AwsTypes())
        self.executor = AwsExecutor(self.acting)
        self.ec2 = self.client("ec2")

    def close(self) -> None:
        self.session.close()
        self.acting.close()
        for client in self._opened:
            client.close()

    def client(self, service: str, region: str = "") -> Any:
        """A plain client of this account, to arrange the world with."""
        opened = setup_client(service, self.stand_in.url, region or self.shard.region, self._credentials)
        self._opened.append(opened)
        return opened

    def target(self, *regions: str, every: bool = False) -> Target:
        return Target("aws", regions=None if every else regions)

    def launch(self, *, gpu: bool = True, tags: dict[str, str] | None = None, **more: Any) -> str:
        """Start one instance; `more` goes to RunInstances as it is."""
        more.setdefault("InstanceType", "g5g.xlarge" if gpu else "m5.large")
        marked = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        if marked:
            more["TagSpecifications"] = [{"ResourceType": "instance", "Tags": marked}]
        made = self.ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1, **more)
        return str(made["Instances"][0]["InstanceId"])

    def stop(self, instance: str) -> None:
        self.ec2.stop_instances(InstanceIds=[instance])
        self.stand_in.requests.clear()

    def terminate(self, instance: str) -> None:
        self.ec2.terminate_instances(InstanceIds=[instance])
        self.stand_in.requests.clear()

    def state(self, instance: str) -> str:
        self.stand_in.faults.clear()
        found = self.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
        return str(found["State"]["Name"])

    def add_volume(self, instance: str) -> str:
        made = self.ec2.create_volume(Size=20, AvailabilityZone=f"{self.shard.region}a", VolumeType="gp3")
        self.ec2.attach_volume(InstanceId=instance, VolumeId=made["VolumeId"], Device="/dev/sdf")
        return str(made["VolumeId"])

    def volumes(self, instance: str) -> set[str]:
        of_instance = [{"Name": "attachment.instance-id", "Values": [instance]}]
        return {item["VolumeId"] for item in self.ec2.describe_volumes(Filters=of_instance)["Volumes"]}

    def keep_address(self, instance: str) -> str:
        made = self.ec2.allocate_address(Domain="vpc")
        self.ec2.associate_address(InstanceId=instance, AllocationId=made["AllocationId"])
        return str(made["AllocationId"])

    def protect(self, instance: str) -> None:
        self.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})

    def go_wrong(self, what: str, how: str) -> None:
        action = self._CALLS[what]
        if how == DENIED:
            self.stand_in.fail(action, 403, "UnauthorizedOperation")
        elif how == THROTTLED:
            self.stand_in.fail(action, 503, "RequestLimitExceeded")
        elif how == SOLD_OUT:
            self.stand_in.fail(action, 500, "InsufficientInstanceCapacity")
        elif how == LOST:
            self.stand_in.lose_answers(action)
        elif how == REPEATED:
            self.stand_in.change_answers(action, with_token)
        else:
            self.stand_in.change_answers(action, without_last_item)

    def changes_sent(self) -> list[str]:
        verbs = {action: verb for verb, action in self._CALLS.items() if not action.startswith("Describe")}
        return [verbs[action] for action, _ in self.stand_in.requests if action in verbs]

    def requests(self) -> int:
        return len(self.stand_in.requests)


def with_token(body: bytes) -> bytes:
    """The same page token on every page."""
    return re.sub(rb"(</\w+Response>)", rb"<nextToken>again</nextToken>\1", body)


def without_last_item(body: bytes) -> bytes:
    """The answer less its last volume, still well formed."""
    head, last, tail = body.rpartition(b"</encrypted></item><item>")
    return head + b"</encrypted></item>" + tail[tail.index(b"</volumeSet>") :] if last else body


@contextmanager
def environment_of(variables: dict[str, str]) -> Iterator[None]:
    """The SDK's own way to be given credentials, for as long as the context lasts."""
    wanted = {**variables, "AWS_EC2_METADATA_DISABLED": "true"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def aws_world(stand_in: StandIn, account: str = "") -> Iterator[AwsWorld]:
    account = account or new_account()
    credentials = credentials_of(stand_in.url, account)
    with environment_of(credentials):
        world = AwsWorld(stand_in, account, credentials)
        stand_in.reset()
        try:
            yield world
        finally:
            world.close()
            stand_in.reset()


@contextmanager
def aws() -> Iterator[Callable[[], AbstractContextManager[World]]]:
    """For `WORLDS`."""
    with aws_stand_in() as stand_in:
        yield lambda: aws_world(stand_in)
