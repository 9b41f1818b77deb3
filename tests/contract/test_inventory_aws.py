"""What is particular to the inventory of AWS: organisations, roles, partitions, billing, faults of its wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.aws_stand_in import StandIn, aws_stand_in, credentials_of, new_account, patient_pacer, setup_client
from tests.contract.cloud_worlds import AwsWorld, aws_world, environment_of, with_token

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError, InvalidInputError, RefusedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Billing, GapKind, Instance, Keeper, ManagedBy
from costguard.ports import Discovery, Target
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import ALWAYS_ON, AwsSession

REGION = "us-east-1"


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with aws_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: StandIn) -> Iterator[AwsWorld]:
    with aws_world(stand_in) as made:
        yield made


def discover(world: AwsWorld, **target: object) -> Discovery:
    wanted = replace(Target("aws", regions=(REGION,)), **target)  # type: ignore[arg-type]
    return world.inventory.discover(wanted)


def only(world: AwsWorld) -> Instance:
    discover(world)
    (found,) = world.inventory.read(world.shard).instances
    return found


# --- protections, which EC2 tells up close alone


@pytest.mark.parametrize(
    ("set_at_ec2", "told"),
    [
        ({"DisableApiStop": {"Value": True}}, ("stop_protection",)),
        ({"DisableApiTermination": {"Value": True}}, ("termination_protection",)),
    ],
)
def test_each_protection_is_told_by_its_own_name_and_by_no_listing(
    world: AwsWorld, set_at_ec2: dict[str, Any], told: tuple[str, ...]
) -> None:
    native_id = world.launch()
    world.ec2.modify_instance_attribute(InstanceId=native_id, **set_at_ec2)

    listed = only(world)

    assert listed.protected_by == ()
    detail = world.inventory.details([listed.ref])[listed.ref]
    assert detail.protected_by == ()
    assert world.inventory.protections(listed.ref, detail.unread_protections) == told


def aws_ref(world: AwsWorld, native_id: str) -> ResourceRef:
    return ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)


def test_a_close_look_at_many_machines_asks_as_much_as_at_one(world: AwsWorld) -> None:
    """EC2 takes ten reads of an attribute a second: of three hundred machines they would take half a minute."""
    refs = [aws_ref(world, world.launch()) for _ in range(4)]
    only_types = world.inventory.details(refs[:1])
    before = world.requests()
    world.inventory.details(refs[:1])
    for_one = world.requests() - before

    found = world.inventory.details(refs)

    assert (world.requests() - before - for_one, len(found)) == (for_one, 4)
    assert for_one == 4, "instances, volumes, snapshots, addresses"
    assert only_types.keys() <= found.keys()


def test_stop_protection_is_a_refusal_to_stop(world: AwsWorld) -> None:
    native_id = world.launch()
    world.ec2.modify_instance_attribute(InstanceId=native_id, DisableApiStop={"Value": True})
    subject = only(world).ref

    stop = Action("a", "d", Verb.STOP, subject, subject, "epoch-1", "case-1", 1, "research", "digest")
    with pytest.raises(RefusedError):
        world.executor.execute(stop)

    assert world.state(native_id) == "running"


# --- accounts


@pytest.fixture
def organisation(world: AwsWorld) -> tuple[AwsWorld, list[str]]:
    """The world's account manages two further active ones."""
    client = world.client("organizations")
    client.create_organization(FeatureSet="ALL")
    members = [
        client.create_account(AccountName=name, Email=f"{name}@example.org")["CreateAccountStatus"]["AccountId"]
        for name in ("one", "two")
    ]
    world.stand_in.requests.clear()
    return world, sorted(members)


def test_an_organisation_brings_its_active_accounts(organisation: tuple[AwsWorld, list[str]]) -> None:
    world, members = organisation

    found = discover(world, organisation=True, role="reader", external_id="shared-word")

    assert {shard.account for shard in found.shards} == {world.shard.account, *members}
    assert found.gaps == ()
    assumed = [form for action, form in world.stand_in.requests if action == "AssumeRole"]
    assert sorted(form["RoleArn"][0] for form in assumed) == [f"arn:aws:iam::{one}:role/reader" for one in members]
    assert {form["ExternalId"][0] for form in assumed} == {"shared-word"}


def test_each_account_is_read_with_its_own_credentials(organisation: tuple[AwsWorld, list[str]]) -> None:
    world, (one, two) = organisation
    theirs = setup_client("ec2", world.stand_in.url, REGION, credentials_of(world.stand_in.url, one))
    theirs.run_instances(ImageId="ami-12345678", InstanceType="g5g.xlarge", MinCount=1, MaxCount=1)
    theirs.close()
    discover(world, organisation=True, role="reader")

    def seen(account: str) -> int:
        return world.inventory.read(Shard("aws", account, REGION)).instances_seen

    assert (seen(world.shard.account), seen(one), seen(two)) == (0, 1, 0)


def test_closed_accounts_are_told_apart_and_not_entered(organisation: tuple[AwsWorld, list[str]]) -> None:
    world, (one, two) = organisation
    world.client("organizations").close_account(AccountId=two)

    found = discover(world, organisation=True, role="reader")

    assert found.closed_accounts == (two,)
    assert {shard.account for shard in found.shards} == {world.shard.account, one}


def test_a_member_that_denies_is_a_gap_and_the_others_go_on(organisation: tuple[AwsWorld, list[str]]) -> None:
    world, (one, two) = organisation
    world.stand_in.fail("AssumeRole", 403, "AccessDenied", holding=two)

    found = discover(world, organisation=True, role="reader")

    assert {shard.account for shard in found.shards} == {world.shard.account, one}
    (gap,) = found.gaps
    assert (gap.shard, gap.what, gap.kind) == (Shard("aws", two), "accounts", GapKind.DENIED)
    assert "trust policy" in gap.fix
    assert found.closed_accounts == ()


def test_an_organisation_that_cannot_be_listed_leaves_the_own_account_and_a_gap(world: AwsWorld) -> None:
    world.stand_in.fail("ListAccounts", 400, "AccessDeniedException")

    found = discover(world, organisation=True, role="reader")

    assert found.shards == (world.shard,)
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("accounts", GapKind.DENIED)]
    assert "organizations:ListAccounts" in found.gaps[0].fix


def test_another_account_is_entered_by_role_name_template_or_arn(world: AwsWorld) -> None:
    for role in ("reader", "arn:aws:iam::{account}:role/path/reader"):
        other = new_account()
        found = discover(world, account=other, role=role)
        assert found.shards == (Shard("aws", other, REGION),)


def test_a_role_that_leads_to_another_account_is_not_used(world: AwsWorld) -> None:
    other, third = new_account(), new_account()

    found = discover(world, account=other, role=f"arn:aws:iam::{third}:role/reader")

    assert found.shards == ()
    assert [gap.kind for gap in found.gaps] == [GapKind.DENIED]
    assert f"leads to account {third}" in found.gaps[0].detail
    with pytest.raises(AccessDeniedError):
        world.session.call(Shard("aws", other, REGION), "ec2", "DescribeInstances")
    assert {"DescribeRegions", "DescribeInstances"}.isdisjoint(action for action, _ in world.stand_in.requests)


def test_another_account_without_a_role_is_a_gap_and_nothing_is_asked_there(world: AwsWorld) -> None:
    found = discover(world, account=new_account())

    assert found.shards == ()
    assert "names no role" in found.gaps[0].detail
    assert [action for action, _ in world.stand_in.requests] == ["GetCallerIdentity"]


def test_identity_is_the_first_request_of_all(world: AwsWorld) -> None:
    discover(world)

    assert world.stand_in.requests[0][0] == "GetCallerIdentity"
    assert world.stand_in.count("GetCallerIdentity") == 1


def test_credentials_of_another_partition_are_an_error_that_says_so(world: AwsWorld) -> None:
    world.stand_in.change_answers("GetCallerIdentity", lambda body: body.replace(b"arn:aws:", b"arn:aws-cn:"))

    with pytest.raises(InvalidInputError, match=r"partition aws-cn .* cloud is aws;"):
        discover(world)

    assert [action for action, _ in world.stand_in.requests] == ["GetCallerIdentity"]


@pytest.mark.parametrize(
    ("cloud", "home", "other"),
    [("aws-cn", "cn-north-1", "cn-northwest-1"), ("aws-us-gov", "us-gov-west-1", "us-gov-east-1")],
)
def test_a_partition_is_asked_at_home_and_named_in_every_shard(
    stand_in: StandIn, cloud: str, home: str, other: str
) -> None:
    stand_in.reset()
    stand_in.change_answers("GetCallerIdentity", lambda body: re.sub(rb"arn:[\w-]+:", f"arn:{cloud}:".encode(), body))
    with environment_of(credentials_of(stand_in.url, new_account())):
        session = AwsSession(cloud=cloud, endpoint_url=stand_in.url, pacer=patient_pacer())
        found = AwsInventory(session).discover(Target(cloud, regions=(home, other, REGION)))
        session.close()

    assert [(shard.cloud, shard.region) for shard in found.shards] == [(cloud, home), (cloud, other)]
    assert [gap.shard.region for gap in found.gaps] == [REGION]


# --- regions


def not_opted_in(region: str) -> Callable[[bytes], bytes]:
    name = region.encode()
    return lambda body: re.sub(
        rb"<item>(?:(?!</item>).)*?<regionName>" + name + rb"</regionName>(?:(?!</item>).)*?</item>",
        b"<item><optInStatus>not-opted-in</optInStatus><regionName>" + name + b"</regionName></item>",
        body,
        flags=re.DOTALL,
    )


def test_a_region_not_opted_in_is_no_gap_unless_it_was_named(world: AwsWorld) -> None:
    world.stand_in.change_answers("DescribeRegions", not_opted_in("af-south-1"))

    every = discover(world, regions=None)
    named = discover(world, regions=("af-south-1", REGION))

    assert "af-south-1" not in {shard.region for shard in every.shards}
    assert every.gaps == ()
    assert named.shards == (world.shard,)
    assert [(gap.shard.region, gap.what, gap.kind) for gap in named.gaps] == [
        ("af-south-1", "regions", GapKind.UNREADABLE)
    ]
    assert "not opted in" in named.gaps[0].detail
    assert "opt in to the region" in named.gaps[0].fix


def test_regions_that_no_account_can_disable_are_not_asked_about(world: AwsWorld) -> None:
    named = discover(world, regions=("eu-west-1", REGION, "eu-west-1"))

    assert [shard.region for shard in named.shards] == ["eu-west-1", REGION]
    assert named.gaps == ()
    assert [action for action, _ in world.stand_in.requests] == ["GetCallerIdentity"]


def test_those_regions_are_listed_as_needing_no_opt_in(world: AwsWorld) -> None:
    listed = world.session.call(world.shard, "ec2", "DescribeRegions", AllRegions=True)["Regions"]
    status = {region["RegionName"]: region["OptInStatus"] for region in listed}

    assert {status[name] for name in ALWAYS_ON["aws"]} == {"opt-in-not-required"}


def test_one_region_that_may_be_off_or_misspelt_has_all_of_them_looked_up(world: AwsWorld) -> None:
    world.stand_in.change_answers("DescribeRegions", not_opted_in("me-central-1"))

    named = discover(world, regions=(REGION, "me-central-1", "us-esat-1"))

    assert named.shards == (world.shard,)
    assert [(gap.shard.region, gap.fix) for gap in named.gaps] == [
        ("me-central-1", "opt in to the region, or take it out of the policy's regions"),
        ("us-esat-1", "correct the policy's regions"),
    ]


def test_regions_that_cannot_be_listed_are_a_gap_but_named_ones_are_read(world: AwsWorld) -> None:
    world.stand_in.fail("DescribeRegions", 403, "UnauthorizedOperation")

    every = discover(world, regions=None)
    named = discover(world, regions=(REGION, "me-central-1"))

    assert every.shards == ()
    assert [(gap.what, gap.kind) for gap in every.gaps] == [("regions", GapKind.DENIED)]
    assert [shard.region for shard in named.shards] == [REGION, "me-central-1"]
    assert named.gaps == ()


# --- instances


@pytest.mark.parametrize(
    ("instance_type", "kind", "count", "local_disk"),
    [
        ("g4dn.xlarge", AcceleratorKind.NVIDIA_GPU, 1, "local disk"),
        ("p4d.24xlarge", AcceleratorKind.NVIDIA_GPU, 8, "local disk"),
        ("g5g.xlarge", AcceleratorKind.NVIDIA_GPU, 1, ""),
        ("g6f.large", AcceleratorKind.NVIDIA_GPU, 0.125, "local disk"),
        ("inf2.xlarge", AcceleratorKind.NEURON, 1, ""),
        ("trn1.32xlarge", AcceleratorKind.NEURON, 16, "local disk"),
        ("dl2q.24xlarge", AcceleratorKind.QUALCOMM, 8, ""),
        ("f2.6xlarge", AcceleratorKind.FPGA, 1, "local disk"),
        ("vt1.3xlarge", AcceleratorKind.MEDIA, 1, ""),
    ],
)
def test_every_family_of_accelerators_is_listed(
    world: AwsWorld, instance_type: str, kind: AcceleratorKind, count: float, local_disk: str
) -> None:
    world.launch(InstanceType=instance_type)

    found = only(world)

    assert (found.accelerator.kind, found.accelerator.count) == (kind, count)
    assert found.local_disk_gib is not None
    assert (found.local_disk_gib > 0) is (local_disk == "local disk")


def test_types_are_asked_once_and_plain_families_never(world: AwsWorld) -> None:
    world.launch(gpu=False)
    discover(world)
    world.inventory.read(world.shard)
    assert world.stand_in.count("DescribeInstanceTypes") == 0

    world.launch()
    world.inventory.read(world.shard)
    world.inventory.read(world.shard)

    assert world.stand_in.count("DescribeInstanceTypes") == 1


def test_types_that_cannot_be_read_make_the_shard_incomplete_but_are_shown(world: AwsWorld) -> None:
    world.launch()
    world.stand_in.fail("DescribeInstanceTypes", 403, "UnauthorizedOperation")
    discover(world)

    inventory = world.inventory.read(world.shard)

    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.DENIED)]
    assert [(one.accelerator.kind, one.local_disk_gib) for one in inventory.instances] == [
        (AcceleratorKind.OTHER, None)
    ]


def test_a_type_aws_does_not_describe_is_shown_as_unknown_accelerator(world: AwsWorld) -> None:
    world.launch()
    world.stand_in.change_answers("DescribeInstances", lambda body: body.replace(b"g5g.xlarge", b"p99.xlarge"))
    discover(world)

    inventory = world.inventory.read(world.shard)

    assert [one.accelerator.kind for one in inventory.instances] == [AcceleratorKind.OTHER]
    assert [gap.what for gap in inventory.gaps] == ["types"]
    assert "p99.xlarge" in inventory.gaps[0].detail


def test_all_pages_are_read(world: AwsWorld) -> None:
    world.launch()
    world.launch()
    world.stand_in.change_answers("DescribeInstances", with_token, times=1)
    discover(world)

    inventory = world.inventory.read(world.shard)

    assert inventory.complete
    assert inventory.instances_seen == 4  # the stand-in gives its one page twice
    assert world.stand_in.count("DescribeInstances") == 2


def test_a_page_that_fails_keeps_what_was_read_and_says_incomplete(world: AwsWorld) -> None:
    world.launch()
    world.stand_in.change_answers("DescribeInstances", with_token, times=1)
    discover(world)
    world.stand_in.fail("DescribeInstances", 400, "InvalidNextToken")

    inventory = world.inventory.read(world.shard)

    assert len(inventory.instances) == 1
    assert not inventory.complete


@pytest.mark.parametrize("missing", [b"reservationSet", b"instancesSet"])
def test_an_answer_without_its_list_is_truncated_not_empty(world: AwsWorld, missing: bytes) -> None:
    world.launch()
    discover(world)
    world.stand_in.change_answers("DescribeInstances", lambda body: body.replace(missing, b"other"))

    inventory = world.inventory.read(world.shard)

    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.TRUNCATED)]


def test_a_tag_with_control_characters_does_not_hide_its_shard(world: AwsWorld) -> None:
    native_id = world.launch()
    world.ec2.create_tags(Resources=[native_id], Tags=[{"Key": "note", "Value": "red \x1b[31m and\ttab"}])

    found = only(world)

    assert found.tags["note"] == "red \N{REPLACEMENT CHARACTER}[31m and\ttab"


@pytest.mark.parametrize(
    ("tags", "managed_by"),
    [
        ({"aws:autoscaling:groupName": "workers"}, ManagedBy(Keeper.AUTOSCALING, "workers")),
        (
            {"aws:autoscaling:groupName": "workers", "kubernetes.io/cluster/prod": "owned"},
            ManagedBy(Keeper.KUBERNETES, "prod"),
        ),
        ({"karpenter.sh/nodepool": "gpu"}, ManagedBy(Keeper.KUBERNETES, "gpu")),
        ({"aws:elasticmapreduce:job-flow-id": "j-1"}, ManagedBy(Keeper.CLOUD_SERVICE, "j-1")),
        ({"team": "nlp"}, None),
    ],
)
def test_a_controller_is_recognised(world: AwsWorld, tags: dict[str, str], managed_by: ManagedBy | None) -> None:
    world.launch(tags=tags)

    assert only(world).managed_by == managed_by


def test_a_stopped_instance_tells_since_when(world: AwsWorld) -> None:
    native_id = world.launch()
    launched_at = only(world).launched_at
    world.stop(native_id)

    stopped_at = only(world).stopped_at

    assert stopped_at is not None
    assert launched_at is not None
    assert timedelta(0) <= stopped_at - launched_at < timedelta(minutes=5)


# --- billing

SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}


def with_request_id(body: bytes) -> bytes:
    return body.replace(
        b"<instanceLifecycle>", b"<spotInstanceRequestId>sir-1</spotInstanceRequestId><instanceLifecycle>"
    )


def spot_requests(kind: str) -> str:
    item = f"<item><spotInstanceRequestId>sir-1</spotInstanceRequestId><type>{kind}</type></item>"
    return (
        f"<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet>{item}</spotInstanceRequestSet>"
        "</DescribeSpotInstanceRequestsResponse>"
    )


@pytest.mark.parametrize(("kind", "cannot_stop"), [("one-time", "one_time_spot"), ("persistent", "")])
def test_only_persistent_spot_can_stop(world: AwsWorld, kind: str, cannot_stop: str) -> None:
    world.launch(**SPOT)
    world.stand_in.change_answers("DescribeInstances", with_request_id)
    world.stand_in.answer("DescribeSpotInstanceRequests", spot_requests(kind))

    found = only(world)

    assert (found.billing, found.cannot_stop) == (Billing.SPOT, cannot_stop)
    detail = world.inventory.details([found.ref])[found.ref]
    assert detail.instance.cannot_stop == cannot_stop


def test_spot_requests_that_cannot_be_read_count_as_one_time(world: AwsWorld) -> None:
    world.launch(**SPOT)
    world.stand_in.change_answers("DescribeInstances", with_request_id)
    world.stand_in.fail("DescribeSpotInstanceRequests", 403, "UnauthorizedOperation")
    discover(world)

    inventory = world.inventory.read(world.shard)

    assert [one.cannot_stop for one in inventory.instances] == ["one_time_spot"]
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("billing", GapKind.DENIED)]
    assert inventory.complete


def reserved(count: int, instance_type: str = "g5g.xlarge") -> str:
    item = (
        f"<item><reservedInstancesId>r-1</reservedInstancesId><instanceType>{instance_type}</instanceType>"
        f"<instanceCount>{count}</instanceCount><scope>Region</scope><state>active</state>"
        "<instanceTenancy>default</instanceTenancy><productDescription>Linux/UNIX</productDescription></item>"
    )
    return (
        f"<DescribeReservedInstancesResponse><reservedInstancesSet>{item}</reservedInstancesSet>"
        "</DescribeReservedInstancesResponse>"
    )


def test_reserved_instances_cover_as_many_as_were_bought(world: AwsWorld) -> None:
    for _ in range(3):
        world.launch()
    world.stand_in.answer("DescribeReservedInstances", reserved(2))
    discover(world)

    billing = [one.billing for one in world.inventory.read(world.shard).instances]

    assert sorted(billing) == [Billing.ON_DEMAND, Billing.RESERVED, Billing.RESERVED]


def test_reservations_that_cannot_be_read_leave_billing_unknown(world: AwsWorld) -> None:
    world.launch()
    world.stand_in.fail("DescribeReservedInstances", 403, "UnauthorizedOperation")
    discover(world)

    inventory = world.inventory.read(world.shard)

    assert [one.billing for one in inventory.instances] == [Billing.UNKNOWN]
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("billing", GapKind.DENIED)]
    assert "ec2:DescribeReservedInstances" in inventory.gaps[0].fix


def test_a_stand_in_without_reserved_instances_has_none(world: AwsWorld) -> None:
    """Today moto answers 500 and HTML; the day it can answer, this stays true."""
    world.launch()

    assert only(world).billing is Billing.ON_DEMAND
    assert world.inventory.read(world.shard).gaps == ()


def test_no_reservations_are_asked_for_where_nothing_could_be_reserved(world: AwsWorld) -> None:
    world.launch(gpu=False)
    world.launch(**SPOT)
    discover(world)
    world.inventory.read(world.shard)

    assert world.stand_in.count("DescribeReservedInstances") == 0


def test_a_scan_costs_as_few_requests_as_it_can(world: AwsWorld) -> None:
    world.launch()
    discover(world)
    world.inventory.read(world.shard)

    assert [action for action, _ in world.stand_in.requests if not action.startswith("Run")] == [
        "GetCallerIdentity",
        "DescribeInstances",
        "DescribeInstanceTypes",
        "DescribeReservedInstances",
    ]


def test_an_inventory_of_its_own_catalogue_shares_nothing(world: AwsWorld) -> None:
    world.launch()
    discover(world)
    world.inventory.read(world.shard)
    another = AwsInventory(world.session, catalogue=AwsTypes())

    another.read(world.shard)

    assert world.stand_in.count("DescribeInstanceTypes") == 2
