"""EC2's networks of the sandbox: where moto, unpatched, differs from AWS, and that the world's are shown instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.ec2.responses import EC2Response
from tests.contract.aws_network import AwsNetworkRig, aws_network
from tests.contract.aws_stand_in import setup_client
from tests.contract.network_fleet import DEFAULT, LEGACY, NOTEBOOK, OPEN, SPARE, TRAINER, TRAINING
from tests.world_ports.translate import to_world

from cloudstand.aws.core import gaps
from cloudstand.aws.core.patching import applied
from cloudstand.aws.network.changes import CHANGES
from costguard.domain.resources import Instance


def test_moto_unpatched_has_networks_of_its_own_and_refuses_less_than_ec2() -> None:
    with applied(gaps.before_seeding()), mock_aws():
        ec2 = boto3.client("ec2", region_name="us-east-1")
        (default,) = ec2.describe_vpcs()["Vpcs"]
        assert default["IsDefault"], "and no way to another id"
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]

        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
        card = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
        kept = ec2.allocate_address(Domain="vpc")
        assert kept["PublicIp"].startswith("127."), "AWS gives public addresses"
        ec2.associate_address(AllocationId=kept["AllocationId"], NetworkInterfaceId=card)
        ec2.release_address(AllocationId=kept["AllocationId"])
        assert ec2.describe_addresses()["Addresses"] == [], "AWS says InvalidIPAddress.InUse, but in a default VPC"

        for number in range(7):
            ec2.create_security_group(GroupName=f"g-{number}", Description="-", VpcId=vpc)
        rules = ec2.describe_security_group_rules(MaxResults=5)["SecurityGroupRules"]
        assert len(rules) > 5, "AWS gives 5 and a token"


@pytest.fixture(scope="module")
def shown() -> Iterator[AwsNetworkRig]:
    with aws_network() as made:
        yield made


@pytest.fixture
def rig(shown: AwsNetworkRig) -> AwsNetworkRig:
    shown.reset()
    return shown


@pytest.fixture
def ec2(rig: AwsNetworkRig) -> Iterator[Any]:
    keys = rig.aws.credentials
    own = {"AWS_ACCESS_KEY_ID": keys.access_key_id, "AWS_SECRET_ACCESS_KEY": keys.secret_access_key}
    client = setup_client("ec2", rig.aws.url, rig.shard.region, own)
    yield client
    client.close()


def code_of(ask: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as caught:
        ask()
    return str(caught.value.response["Error"]["Code"])


def machine(rig: AwsNetworkRig, name: str) -> Instance:
    (found,) = (one for one in rig.instances() if one.ref == rig.ref("instance", name))
    return found


def test_every_change_of_networks_is_the_worlds(rig: AwsNetworkRig) -> None:
    assert {f"ec2:{name}" for name in CHANGES} == rig.changing
    assert "release_address" in vars(EC2Response)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda ec2: ec2.describe_route_tables(MaxResults=101), "InvalidParameterValue"),
        (lambda ec2: ec2.describe_security_groups(GroupIds=["sg-0"]), "InvalidGroup.NotFound"),
        (lambda ec2: ec2.describe_addresses(AllocationIds=["eipalloc-0"]), "InvalidAllocationID.NotFound"),
        (lambda ec2: ec2.describe_subnets(Filters=[{"Name": "colour", "Values": ["x"]}]), "InvalidParameterValue"),
        (lambda ec2: ec2.describe_vpcs(NextToken="nonsense"), "InvalidNextToken"),
        (lambda ec2: ec2.get_managed_prefix_list_entries(PrefixListId="pl-1"), "InvalidPrefixListID.NotFound"),
        (lambda ec2: ec2.describe_vpcs(DryRun=True), "DryRunOperation"),
        (lambda ec2: ec2.release_address(AllocationId="eipalloc-0", DryRun=True), "DryRunOperation"),
        (lambda ec2: ec2.delete_security_group(GroupId="sg-0"), "UnsupportedOperation"),
        (lambda ec2: ec2.disassociate_address(AssociationId="eipassoc-0"), "InvalidAssociationID.NotFound"),
        (lambda ec2: ec2.delete_flow_logs(FlowLogIds=["fl-0"]), "InvalidFlowLogId.NotFound"),
    ],
)
def test_what_ec2_refuses_is_refused(ec2: Any, asked: Callable[[Any], object], code: str) -> None:
    assert code_of(lambda: asked(ec2)) == code


def test_changes_that_ec2_refuses_are_refused(rig: AwsNetworkRig, ec2: Any) -> None:
    group = rig.ref("security_group", OPEN).native_id
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    twice = code_of(lambda: ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ssh]))
    of_none = code_of(lambda: ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=["sgr-0"]))
    spare, notebook = (rig.ref("address", name).native_id for name in (SPARE, NOTEBOOK))
    cards = [rig.ref("interface", name).native_id for name in (NOTEBOOK, TRAINER)]

    def associate(address: str, card: str) -> str:
        asked = {"AllocationId": address, "NetworkInterfaceId": card, "AllowReassociation": False}
        return code_of(lambda: ec2.associate_address(**asked))

    assert (twice, of_none) == ("InvalidPermission.Duplicate", "InvalidSecurityGroupRuleId.NotFound")
    assert associate(notebook, cards[1]) == "Resource.AlreadyAssociated"
    assert associate(spare, cards[0]) == "Resource.AlreadyAssociated"
    assert associate(spare, "eni-0") == "InvalidNetworkInterfaceID.NotFound"
    vpc = rig.ref("vpc", TRAINING).native_id
    asked = {"ResourceIds": [vpc], "ResourceType": "VPC", "TrafficType": "ALL", "LogDestination": "arn:aws:s3:::b"}
    (failed,) = ec2.create_flow_logs(LogDestinationType="s3", **asked)["Unsuccessful"]
    assert (failed["ResourceId"], failed["Error"]["Code"]) == (vpc, "FlowLogAlreadyExists")
    assert rig.world.networks.history == []


def test_machines_show_the_public_addresses_that_their_networks_have(rig: AwsNetworkRig) -> None:
    notebook, legacy = machine(rig, NOTEBOOK), machine(rig, LEGACY)
    assert (notebook.public_ip, notebook.public_ip_is_kept) == ("203.0.113.10", True)
    assert (legacy.public_ip, legacy.public_ip_is_kept) == ("203.0.113.20", False)
    networks, now = rig.world.networks, rig.clock.now()
    networks.detach(to_world(rig.ref("address", NOTEBOOK)), now, "owner")
    networks.attach(
        to_world(rig.ref("address", SPARE)), to_world(rig.ref("interface", TRAINER)), "10.20.2.10", now, "owner"
    )
    assert machine(rig, NOTEBOOK).public_ip == ""
    trainer = machine(rig, TRAINER)
    assert (trainer.public_ip, trainer.public_ip_is_kept) == ("203.0.113.30", True)
    networks.detach(to_world(rig.ref("address", SPARE)), now, "owner")
    assert machine(rig, TRAINER).public_ip == ""


def test_a_plain_address_is_taken_back_when_a_kept_one_comes_in_its_place(rig: AwsNetworkRig, ec2: Any) -> None:
    legacy, spare = rig.ref("interface", LEGACY).native_id, rig.ref("address", SPARE).native_id
    ec2.associate_address(AllocationId=spare, NetworkInterfaceId=legacy, AllowReassociation=False)
    (card,) = (each for each in rig.truth().interfaces if each.ref.native_id == legacy)
    assert card.public_ips == (("172.31.0.10", "203.0.113.30"),)


def test_addresses_of_machines_that_stand_in_no_network_are_there_as_well(rig: AwsNetworkRig, ec2: Any) -> None:
    networks = rig.world.networks
    there = networks.of(to_world(rig.shard))
    networks.place(replace(there, addresses=tuple(each for each in there.addresses if each.name != NOTEBOOK)))
    notebook = rig.ref("instance", NOTEBOOK).native_id
    of_notebook = [{"Name": "instance-id", "Values": [notebook]}]
    (shown,) = ec2.describe_addresses(Filters=of_notebook)["Addresses"]
    assert (shown["InstanceId"], shown["PublicIp"]) == (notebook, "203.0.113.10")
    assert len(ec2.describe_addresses()["Addresses"]) == len(there.addresses)


def test_subnets_of_the_main_table_name_none_as_in_ec2(rig: AwsNetworkRig, ec2: Any) -> None:
    tables = {each["RouteTableId"]: each for each in ec2.describe_route_tables()["RouteTables"]}
    main = tables[rig.ref("route_table", TRAINING).native_id]
    assert [each.get("SubnetId") for each in main["Associations"]] == [None]
    acls = {each["NetworkAclId"]: each for each in ec2.describe_network_acls()["NetworkAcls"]}
    numbers = [each["RuleNumber"] for each in acls[rig.ref("access_list", DEFAULT).native_id]["Entries"]]
    assert numbers.count(32767) == 2, "one each way, in every list"
