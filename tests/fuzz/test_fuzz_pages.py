"""Pages of AWS's inventory, damaged: no guarded machine may come out as one that would be stopped.

A mutation that keeps to the documented form is believed for the machine it touches (a tag that is gone is gone);
one that breaks the form, by botocore's own model of the answer, must never free anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from typing import Any

import botocore.loaders
import botocore.model
import botocore.validate
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import attempt, frozen, fuzz
from tests.fuzz.mutations import Mutated, junk, mutated

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import (
    CostguardError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    TruncatedReadError,
)
from costguard.domain.findings import Verdict
from costguard.domain.refs import Shard
from costguard.domain.resources import Inventory, SnapshotState
from costguard.guards.idle.judge import examine, judge_instance
from costguard.guards.rules.idle import IdleBounds
from costguard.planning.rails import exemption, world_rail
from costguard.ports import Target
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import RATES, AwsSession
from costguard.providers.kit.core.pacing import Pacer

SHARD = b.SHARD
DAY = timedelta(days=1)
LAUNCHED = b.NOW - 10 * DAY
RULE = b.rule(idle=IdleBounds(lasting=timedelta(hours=3)))
POLICY = b.policy(RULE)


def element(native_id: str, **more: Any) -> dict[str, Any]:
    """One element of DescribeInstances: an idle on-demand machine nobody guards."""
    return {
        "InstanceId": native_id,
        "InstanceType": "g5g.xlarge",
        "State": {"Code": 16, "Name": "running"},
        "LaunchTime": LAUNCHED,
        "Placement": {"AvailabilityZone": "us-east-1a", "Tenancy": "default"},
        "PlatformDetails": "Linux/UNIX",
        "RootDeviceType": "ebs",
        "Tags": [{"Key": "Name", "Value": native_id}],
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeId": f"vol-{native_id}", "DeleteOnTermination": True}}
        ],
        **more,
    }


def tagged(native_id: str, key: str, value: str = "") -> dict[str, Any]:
    return element(native_id, Tags=[{"Key": "Name", "Value": native_id}, {"Key": key, "Value": value}])


ELEMENTS = [
    element("i-idle"),
    tagged("i-kept", "Do_Not_Stop"),
    tagged("i-until", "keep-until", "after the demo"),
    tagged("i-group", "aws:autoscaling:groupName", "workers"),
    tagged("i-node", "kubernetes.io/cluster/ml", "owned"),
    tagged("i-self", "costguard:component", "idle_gpu"),
    element("i-operated", Operator={"Managed": True, "Principal": "eks.amazonaws.com"}),
    element("i-block", InstanceLifecycle="capacity-block"),
    element("i-odc", CapacityReservationId="cr-1"),
    element("i-host", Placement={"AvailabilityZone": "us-east-1a", "Tenancy": "host", "HostId": "h-1"}),
    element("i-spot", InstanceLifecycle="spot", SpotInstanceRequestId="sir-1"),
    element("i-paid", InstanceType="g5.xlarge"),
    element("i-disk", InstanceType="g4dn.xlarge"),
    element("i-four", InstanceType="g5g.16xlarge"),
    element("i-going", State={"Code": 64, "Name": "stopping"}),
    element("i-young", LaunchTime=b.NOW - timedelta(minutes=30)),
    element("i-store", RootDeviceType="instance-store"),
]


def described_type(name: str, count: int = 1, disk_gb: int = 0) -> dict[str, Any]:
    gpus = {"Gpus": [{"Name": "T4g", "Manufacturer": "NVIDIA", "Count": count, "MemoryInfo": {"SizeInMiB": 16384}}]}
    disk = {"InstanceStorageSupported": True, "InstanceStorageInfo": {"TotalSizeInGB": disk_gb}}
    return {"InstanceType": name, "GpuInfo": gpus, **(disk if disk_gb else {"InstanceStorageSupported": False})}


ANSWERS: dict[str, dict[str, Any]] = {
    "DescribeInstances": {"Reservations": [{"ReservationId": "r-1", "OwnerId": "1", "Instances": ELEMENTS}]},
    "DescribeInstanceTypes": {
        "InstanceTypes": [
            described_type("g5g.xlarge"),
            described_type("g5.xlarge"),
            described_type("g4dn.xlarge", disk_gb=125),
            described_type("g5g.16xlarge", count=4),
        ]
    },
    "DescribeSpotInstanceRequests": {
        "SpotInstanceRequests": [{"SpotInstanceRequestId": "sir-1", "Type": "one-time", "State": "active"}]
    },
    "DescribeReservedInstances": {
        "ReservedInstances": [
            {
                "ReservedInstancesId": "ri-1", "InstanceType": "g5.xlarge", "InstanceCount": 1, "State": "active",
                "Scope": "Region", "ProductDescription": "Linux/UNIX", "InstanceTenancy": "default",
            }
        ]
    },
    "GetCallerIdentity": {
        "Account": SHARD.account, "Arn": f"arn:aws:sts::{SHARD.account}:assumed-role/reader/x", "UserId": "A",
    },
    "DescribeRegions": {
        "Regions": [
            {"RegionName": "us-east-1", "OptInStatus": "opt-in-not-required"},
            {"RegionName": "ap-east-1", "OptInStatus": "not-opted-in"},
        ]
    },
    "ListAccounts": {
        "Accounts": [
            {"Id": "111122223333", "Status": "ACTIVE"}, {"Id": "444455556666", "Status": "SUSPENDED"},
            {"Id": "777788889999", "Status": "ACTIVE"},
        ]
    },
    "AssumeRole": {
        "Credentials": {
            "AccessKeyId": "A", "SecretAccessKey": "s", "SessionToken": "t",
            "Expiration": datetime(2030, 1, 1, tzinfo=timezone.utc),
        }
    },
    "DescribeVolumes": {
        "Volumes": [
            {
                "VolumeId": f"vol-{each['InstanceId']}", "Size": 100, "VolumeType": "gp3", "State": "in-use",
                "Attachments": [
                    {"InstanceId": each["InstanceId"], "Device": "/dev/sda1", "DeleteOnTermination": True}
                ],
            }
            for each in ELEMENTS
        ]
    },
    "DescribeSnapshots": {
        "Snapshots": [
            {
                "SnapshotId": f"snap-{one}", "VolumeId": f"vol-{one}", "State": state, "StartTime": b.NOW - DAY,
                "Tags": [{"Key": "costguard:decision-id", "Value": "d-1"}],
            }
            for one, state in (("i-idle", "pending"), ("i-kept", "error"), ("i-until", "completed"))
        ]
    },
    "DescribeAddresses": {
        "Addresses": [{"AllocationId": "eipalloc-1", "PublicIp": "203.0.113.7", "InstanceId": "i-idle"}],
    },
    "disableApiTermination": {"InstanceId": "i", "DisableApiTermination": {"Value": True}},
    "disableApiStop": {"InstanceId": "i", "DisableApiStop": {"Value": False}},
}  # fmt: skip


class Canned(AwsSession):
    """A session whose requests are answered from a book."""

    def __init__(self, changed: Mapping[str, Any], *, may_change: bool = False) -> None:
        super().__init__(pacer=Pacer(RATES, sleep=lambda _: None), may_change=may_change)
        self._book = {**ANSWERS, **changed}

    def _send(self, _: str, __: str, ___: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        answer: Any = self._book[parameters.get("Attribute", operation)]
        if not isinstance(answer, dict):  # the SDK's parsers make nothing else of an answer
            raise TruncatedReadError("no structure", operation=operation)
        return deepcopy(answer)

    def _open(self, key: str, credentials: Any, operation: str = "") -> None:
        """No connection is needed."""


def read(changed: Mapping[str, Any]) -> Inventory:
    found = attempt("pages", lambda: AwsInventory(Canned(changed), catalogue=AwsTypes()).read(SHARD))
    assert found is not None
    for gap in found.gaps:
        gap.detail.encode()
    return found


def stoppable(inventory: Inventory) -> set[str]:
    """The machines that would be stopped, if their one card was measured idle all the time."""
    if not inventory.complete:
        return set()
    readings = {each.ref: b.reading(b.history(now=b.NOW, hours=24)) for each in inventory.instances}
    facts = attempt("pages, judged", lambda: examine(inventory, readings, {}, (), {timedelta(hours=3)}, b.NOW))
    assert facts is not None
    found = set()
    for fact in facts.instances:
        verdict = judge_instance(fact, RULE, b.NOW).verdict
        kept = exemption(fact.instance, POLICY, b.NOW)
        held = world_rail(Verb.STOP, b.case(), RULE, fact.instance, b.detail(fact.instance), approved=False)
        if verdict is Verdict.VIOLATION and kept is None and held is None:
            found.add(fact.instance.ref.native_id)
    return found


def test_of_all_machines_only_the_idle_one_would_be_stopped() -> None:
    inventory = read({})
    assert len(inventory.instances) == len(ELEMENTS)
    assert stoppable(inventory) == {"i-idle"}


@cache
def _shape(operation: str, service: str = "ec2") -> Any:
    model = botocore.loaders.Loader().load_service_model(service, "service-2")
    return botocore.model.ServiceModel(model, service).operation_model(operation).output_shape


LOOKED_AT = {
    "DescribeInstances": frozenset(
        [
            "Reservations",
            "Instances",
            "InstanceId",
            "InstanceType",
            "State",
            "Name",
            "LaunchTime",
            "Placement",
            "AvailabilityZone",
            "Tenancy",
            "HostId",
            "PlatformDetails",
            "RootDeviceType",
            "Tags",
            "Key",
            "Value",
            "Operator",
            "Managed",
            "Principal",
            "InstanceLifecycle",
            "CapacityReservationId",
            "CapacityBlockId",
            "SpotInstanceRequestId",
        ]
    ),
    "DescribeInstanceTypes": frozenset(
        [
            "InstanceTypes",
            "InstanceType",
            "GpuInfo",
            "Gpus",
            "Manufacturer",
            "Name",
            "Count",
            "MemoryInfo",
            "SizeInMiB",
            "InstanceStorageInfo",
            "TotalSizeInGB",
        ]
    ),
    "DescribeReservedInstances": frozenset(
        [
            "ReservedInstances",
            "InstanceType",
            "InstanceCount",
            "State",
            "Scope",
            "ProductDescription",
            "InstanceTenancy",
        ]
    ),
    "DescribeSpotInstanceRequests": frozenset({"SpotInstanceRequests", "SpotInstanceRequestId", "Type"}),
    "ListAccounts": frozenset({"Accounts", "Id", "State", "Status"}),
}
"""The fields a scan reads; what stands in others frees nothing and binds nothing."""


def well_formed(value: Any, operation: str, shape: Any) -> bool:
    """Whether botocore's own model of the answer allows it, in the fields that are read."""
    try:
        known = _known(value, shape, LOOKED_AT[operation])
        report = botocore.validate.ParamValidator().validate(known, shape)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return False
    aware = not isinstance(value, datetime) or value.tzinfo is not None
    return aware and not report.has_errors()


def _known(value: Any, shape: Any, fields: frozenset[str]) -> Any:
    """Without fields that the model does not know, which parsers drop, or that nobody reads."""
    if shape.type_name == "structure" and isinstance(value, dict):
        named = {key: each for key, each in value.items() if key in shape.members and key in fields}
        return {key: _known(each, shape.members[key], fields) for key, each in named.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [_known(each, shape.member, fields) for each in value]
    if isinstance(value, datetime) and value.tzinfo is None:
        return "a time without offset"
    return None if isinstance(value, bool) and shape.type_name != "boolean" else value


def believable(native_id: str, operation: str, document: Any) -> bool:
    """Whether the damage itself says, in due form, that this machine is no longer guarded."""
    shape = _shape(operation)
    if operation == "DescribeInstances":
        listed = [
            each
            for reservation in document["Reservations"]
            for each in reservation["Instances"]
            if isinstance(each, dict) and each.get("InstanceId") == native_id
        ]
        before = next((each for each in ELEMENTS if each["InstanceId"] == native_id), None)
        instance = shape.members["Reservations"].member.members["Instances"].member
        return (
            len({frozen(each) for each in listed}) == 1
            and listed[0] != before
            and well_formed(listed[0], operation, instance)
        )
    return well_formed(document, operation, shape)


def _excused(operation: str, damaged: Mutated, freed: set[str]) -> bool:
    affected = {"DescribeInstanceTypes": {"i-disk", "i-four"}, "DescribeReservedInstances": {"i-paid"},
                "DescribeSpotInstanceRequests": {"i-spot"}}.get(operation)  # fmt: skip
    return all(
        believable(native_id, operation, damaged.document) and (affected is None or native_id in affected)
        for native_id in freed
    )


READ = ["DescribeInstances", "DescribeInstanceTypes", "DescribeReservedInstances", "DescribeSpotInstanceRequests"]


@fuzz(quick=30)
@given(st.sampled_from(READ).flatmap(lambda name: st.tuples(st.just(name), mutated(ANSWERS[name], most=2))))
def test_no_damaged_page_frees_a_guarded_machine(case: tuple[str, Mutated]) -> None:
    operation, damaged = case
    freed = stoppable(read({operation: damaged.document})) - {"i-idle"}
    assert _excused(operation, damaged, freed), f"{freed} freed by {damaged.steps}"


@fuzz(quick=20)
@given(
    st.sampled_from(ELEMENTS[1:]).flatmap(lambda each: st.tuples(st.just(each["InstanceId"]), mutated(each, most=2)))
)
def test_no_damaged_element_frees_its_machine_or_another(case: tuple[str, Mutated]) -> None:
    native_id, damaged = case
    elements = [damaged.document if each["InstanceId"] == native_id else each for each in ELEMENTS]
    page = {"Reservations": [{"Instances": elements}]}
    freed = stoppable(read({"DescribeInstances": page})) - {"i-idle"}
    assert freed <= {native_id} | {str(damaged.document.get("InstanceId"))}
    assert _excused("DescribeInstances", Mutated(page, damaged.steps), freed), f"{freed} freed by {damaged.steps}"


GUARDING = [
    ("i-kept", "Tags"), ("i-until", "Tags"), ("i-group", "Tags"), ("i-node", "Tags"), ("i-self", "Tags"),
    ("i-operated", "Operator"), ("i-block", "InstanceLifecycle"), ("i-odc", "CapacityReservationId"),
    ("i-host", "Placement"), ("i-spot", "InstanceLifecycle"), ("i-going", "State"), ("i-young", "LaunchTime"),
    ("i-store", "RootDeviceType"),
]  # fmt: skip
WRONG: list[Any] = [
    None, False, True, 0, 1, 0.0, [], {}, "", (), [None], [""], [[]], [{}], {"": ""}, {"Name": None}, b"",
    [{"Key": None, "Value": "x"}], [{"Value": "x"}], [{"Key": ""}], {"Managed": "true"}, {"Managed": 1},
]  # fmt: skip


@pytest.mark.parametrize(("native_id", "key"), GUARDING)
def test_a_guarding_field_of_a_wrong_type_frees_nothing(native_id: str, key: str) -> None:
    """Null, 0 and the empty text are not "none": only a field that is absent, or empty in its own type, is."""
    for wrong in WRONG:
        elements = [{**each, key: wrong} if each["InstanceId"] == native_id else each for each in ELEMENTS]
        page = {"Reservations": [{"Instances": elements}]}
        freed = stoppable(read({"DescribeInstances": page})) - {"i-idle"}
        assert not freed or believable(native_id, "DescribeInstances", page), (native_id, key, wrong)


def test_a_machine_listed_twice_and_differently_is_not_believed() -> None:
    """Of two descriptions the one without the tag must not win."""
    bare = element("i-kept")
    for elements in ([*ELEMENTS, bare], [bare, *ELEMENTS]):
        inventory = read({"DescribeInstances": {"Reservations": [{"Instances": elements}]}})
        assert stoppable(inventory) == set()
        assert not inventory.complete
    same = read({"DescribeInstances": {"Reservations": [{"Instances": [*ELEMENTS, ELEMENTS[1]]}]}})
    assert len(same.instances) == len(ELEMENTS)
    assert stoppable(same) == {"i-idle"}


@fuzz(quick=15)
@given(st.sampled_from(READ), junk())
def test_anything_as_an_answer_frees_nothing(operation: str, answer: Any) -> None:
    assert stoppable(read({operation: answer})) <= {"i-idle"}


@fuzz(quick=12)
@given(junk(), st.sampled_from(READ))
def test_any_page_token_ends_the_reading(token: Any, operation: str) -> None:
    """Only an absent or empty token is the end; one of another type is no token."""
    freed = stoppable(read({operation: {**ANSWERS[operation], "NextToken": token}}))
    assert freed <= {"i-idle"}
    assert not freed or operation != "DescribeInstances" or token == ""


DETAILS = ["DescribeInstances", "DescribeInstanceTypes", "DescribeVolumes", "DescribeSnapshots", "DescribeAddresses",
           "disableApiTermination", "disableApiStop", "DescribeSpotInstanceRequests"]  # fmt: skip
REFS = [b.ref(each["InstanceId"]) for each in ELEMENTS[:4]]


@fuzz(quick=30)
@given(st.sampled_from(DETAILS).flatmap(lambda name: st.tuples(st.just(name), mutated(ANSWERS[name], most=2))))
def test_damaged_details_are_an_error_or_say_no_less_than_the_truth(case: tuple[str, Mutated]) -> None:
    """Volumes, snapshots and protections: none lost, none made up, for any machine whose own answer was whole."""
    operation, damaged = case
    inventory = AwsInventory(Canned({operation: damaged.document}), catalogue=AwsTypes())
    details = attempt("details", lambda: inventory.details(REFS), ProviderError)
    for ref, detail in (details or {}).items():
        assert ref in REFS
        assert detail.instance.ref == ref
        assert detail.protected_by == ()
        asked = partial(inventory.protections, ref, detail.unread_protections)
        protections = attempt("protections", asked, ProviderError)
        if operation.startswith("disableApi"):
            value = next(iter(set(damaged.document) & {"DisableApiTermination", "DisableApiStop"}), "")
            assert protections is None or isinstance(damaged.document[value]["Value"], bool)
        else:
            assert protections == ("termination_protection",)
        if operation != "DescribeInstances":
            assert f"vol-{ref.native_id}" in {volume.ref.native_id for volume in detail.volumes}
        for volume in detail.volumes:
            assert volume.size_gib >= 0
        for snapshot in detail.snapshots:
            assert snapshot.started_at.tzinfo is not None
            if snapshot.state is SnapshotState.COMPLETED and snapshot.ref.native_id != "snap-i-until":
                assert operation == "DescribeSnapshots"
                assert '"completed"' in frozen(damaged.document).replace("'", '"')


@fuzz(quick=15)
@given(
    st.sampled_from(["GetCallerIdentity", "DescribeRegions", "ListAccounts", "AssumeRole"]).flatmap(
        lambda name: st.tuples(st.just(name), mutated(ANSWERS[name], most=2))
    ),
    st.sampled_from([None, ("us-east-1", "ap-east-1", "eu-nowhere-1"), ()]),
)
def test_damaged_discovery_finds_no_other_account_and_closes_none(
    case: tuple[str, Mutated], regions: tuple[str, ...] | None
) -> None:
    """Closing an account closes its cases: only the organisation's own listing may, in due form."""
    operation, damaged = case
    target = Target("aws", SHARD.account, regions=regions, role="reader", organisation=True)
    session = Canned({operation: damaged.document})
    found = attempt("discovery", lambda: AwsInventory(session).discover(target), CostguardError)
    if found is None:
        return
    assert all(each.isdigit() for each in found.closed_accounts)
    if operation != "ListAccounts" or not well_formed(
        damaged.document, "ListAccounts", _shape("ListAccounts", "organizations")
    ):
        assert set(found.closed_accounts) <= {"444455556666"}
    assert not set(found.closed_accounts) & {shard.account for shard in found.shards}
    for shard in found.shards:
        assert isinstance(shard, Shard)
        assert isinstance(shard.region, str)
        assert shard.region
        assert shard.region != "ap-east-1" or operation == "DescribeRegions"
        assert isinstance(shard.account, str)


@fuzz(quick=30)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"Id": st.sampled_from(["111122223333", "444455556666", "777788889999"])},
            optional={
                "Status": st.sampled_from(["ACTIVE", "SUSPENDED", "PENDING_CLOSURE", "NEW", ""]),
                "State": st.sampled_from(["ACTIVE", "CLOSED", "PENDING_ACTIVATION", ""]),
            },
        ),
        max_size=5,
    )
)
def test_an_account_is_closed_only_where_the_listing_does_not_contradict_itself(accounts: list[dict[str, str]]) -> None:
    target = Target("aws", SHARD.account, regions=("us-east-1",), role="reader", organisation=True)
    inventory = AwsInventory(Canned({"ListAccounts": {"Accounts": accounts}}))
    found = attempt("discovery", lambda: inventory.discover(target))
    assert found is not None
    for closed in found.closed_accounts:
        said = {each.get("State") or each.get("Status") for each in accounts if each["Id"] == closed}
        assert said <= {"SUSPENDED", "PENDING_CLOSURE", "CLOSED"}


CHANGES: dict[Verb, tuple[str, dict[str, Any]]] = {
    Verb.STOP: ("StopInstances", {"StoppingInstances": [{"InstanceId": "i-1", "CurrentState": {"Name": "stopping"}}]}),
    Verb.TERMINATE: ("TerminateInstances", {"TerminatingInstances": [{"InstanceId": "i-1"}]}),
    Verb.START: ("StartInstances", {"StartingInstances": [{"InstanceId": "i-1"}]}),
    Verb.SNAPSHOT: ("CreateSnapshot", {"SnapshotId": "snap-1", "VolumeId": "vol-1", "State": "pending"}),
}


@fuzz(quick=30)
@given(
    st.sampled_from(list(CHANGES)).flatmap(
        lambda verb: st.tuples(
            st.just(verb), mutated({**CHANGES[verb][1], "ResponseMetadata": {"RequestId": "r", "HTTPStatusCode": 200}})
        )
    )
)
def test_an_unreadable_answer_to_a_change_leaves_its_outcome_unknown(case: tuple[Verb, Mutated]) -> None:
    """The change was sent: no answer may end as "failed", and none but the expected one as "accepted"."""
    verb, damaged = case
    operation, whole = CHANGES[verb]
    executor = AwsExecutor(Canned({operation: damaged.document}, may_change=True))
    resource = b.ref("vol-1", "volume") if verb is Verb.SNAPSHOT else b.ref()
    action = Action("a", "d", verb, b.ref(), resource, "epoch-1", "case-1", 1, "research", "digest")
    receipt = attempt("executor", lambda: executor.execute(action), OutcomeUnknownError)
    if receipt is not None and verb is not Verb.SNAPSHOT:
        listed = damaged.document[next(iter(whole))]
        assert [each["InstanceId"] for each in listed] == ["i-1"]
    if receipt is not None and verb is Verb.SNAPSHOT:
        assert receipt.native_id
        assert damaged.document.get("VolumeId", "vol-1") in {"", "vol-1"}


def test_no_error_but_ours_leaves_discovery() -> None:
    for operation in ("GetCallerIdentity", "DescribeRegions", "ListAccounts", "AssumeRole"):
        answers: list[Any] = [
            {},
            {"Account": None},
            {"Account": 1, "Arn": 10**5000},
            {"Credentials": {}},
            {"Credentials": []},
        ]
        for answer in answers:
            inventory = AwsInventory(Canned({operation: answer}))
            target = Target("aws", SHARD.account, role="reader", organisation=True)
            attempt("discovery", partial(inventory.discover, target), ProviderError, InvalidInputError)
