"""What the contract suite of `Preflight` needs of a provider. A further provider adds itself to `PREFLIGHTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from typing import Protocol

from tests.contract.aws_stand_in import StandIn, aws_stand_in
from tests.contract.cloud_worlds import AwsWorld, aws_world

from costguard.domain.refs import Shard
from costguard.domain.resources import Instance
from costguard.ports import CallLog, Preflight
from costguard.providers.aws.iam.permissions import OPERATIONS
from costguard.providers.aws.iam.preflight import AwsPreflight
from costguard.providers.kit.iam.permissions import ACTING, READING, Feature, Operation


class Asked(Protocol):
    """One account with one region, and a preflight that asks it. Operations are named as in permissions.py.

    `now` may be set: the clock of this machine. `untellable` are operations that this stand-in does not have or
    that the cloud does not tell; `a_read` is one of those it does, and so is `a_change` where the cloud `has_dry_runs`:
    elsewhere no change can be told. `unasked` are those that scanning does not use there, each with the reason.
    """

    now: datetime
    has_dry_runs: bool
    untellable: frozenset[str]
    unasked: dict[str, str]
    a_read: str
    a_change: str

    @property
    def shard(self) -> Shard: ...
    @property
    def operations(self) -> dict[str, Operation]: ...
    @property
    def preflight(self) -> Preflight: ...
    @property
    def calls(self) -> CallLog: ...
    def machine(self) -> Instance: ...
    def truth(self) -> tuple[object, ...]:
        """Whatever acting could change: states, snapshots, tags."""

    def deny(self, operation: str) -> None: ...
    def break_down(self, operation: str) -> None: ...
    def refuse_everybody(self) -> None:
        """As a cloud does whose clock is far from ours."""

    def ignore_dry_runs(self, operation: str) -> None:
        """Answer a dry run as if it were none; where there are none, nothing."""


_ASKED_OF = READING | ACTING | {Feature.MEMBERS, Feature.ORGANISATION}


def guarding(operations: Mapping[str, Operation]) -> dict[str, Operation]:
    """Those that scanning machines and acting on them use, and that need a permission: not bills, nor mail."""
    return {name: one for name, one in operations.items() if one.permissions and one.feature in _ASKED_OF}


class AwsAsked:
    """EC2 on moto, with no prices and no reservations, which moto cannot be asked for."""

    has_dry_runs = True
    untellable: frozenset[str] = frozenset()
    unasked = {  # noqa: RUF012 - never written
        "sts:AssumeRole": "discovery has used it to come here",
        "organizations:ListAccounts": "discovery has used it where an organisation is named",
    }
    a_read, a_change = "ec2:DescribeVolumes", "ec2:StopInstances"

    def __init__(self, world: AwsWorld) -> None:
        self._world = world
        self.now = datetime.now(timezone.utc)
        self.session = world.session.dry_running()
        self.preflight = AwsPreflight(self.session, now=lambda: self.now)
        self.calls = self.session
        self.shard = world.shard
        self.operations = guarding(OPERATIONS)
        world.inventory.discover(world.target(world.shard.region))
        world.stand_in.answer("GetProducts", '{"PriceList": []}')
        world.stand_in.answer("LookupEvents", '{"Events": []}')
        nothing = "<reservedInstancesSet/><requestId>r</requestId>"
        world.stand_in.answer(
            "DescribeReservedInstances",
            f"<DescribeReservedInstancesResponse>{nothing}</DescribeReservedInstancesResponse>",
        )

    def machine(self) -> Instance:
        native_id = self._world.launch()
        found = {one.ref.native_id: one for one in self._world.inventory.read(self.shard).instances}
        self._world.stand_in.requests.clear()
        return found[native_id]

    def truth(self) -> tuple[object, ...]:
        self._world.stand_in.reset()
        machines = self._world.ec2.describe_instances()["Reservations"]
        states = [(one["InstanceId"], one["State"]["Name"]) for each in machines for one in each["Instances"]]
        return (*states, *self._world.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"])

    def deny(self, operation: str) -> None:
        self._fail(operation, 403, "UnauthorizedOperation")

    def break_down(self, operation: str) -> None:
        self._fail(operation, 500, "InternalError")

    def refuse_everybody(self) -> None:
        self._fail("sts:GetCallerIdentity", 403, "SignatureDoesNotMatch")

    def ignore_dry_runs(self, operation: str) -> None:
        name = operation.partition(":")[2]
        self._world.stand_in.answer(name, f"<{name}Response><requestId>r</requestId></{name}Response>")

    def _fail(self, operation: str, status: int, code: str) -> None:
        self._world.stand_in.fail(operation.partition(":")[2], status, code)


@contextmanager
def aws_asked(stand_in: StandIn) -> Iterator[AwsAsked]:
    with aws_world(stand_in) as world:
        asked = AwsAsked(world)
        try:
            yield asked
        finally:
            asked.session.close()


@contextmanager
def aws_preflight() -> Iterator[Callable[[], AbstractContextManager[Asked]]]:
    """For `PREFLIGHTS`."""
    with aws_stand_in() as stand_in:
        yield lambda: aws_asked(stand_in)
