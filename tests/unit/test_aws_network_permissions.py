"""What a session for mending networks can send, and the policy of its role."""

from __future__ import annotations

import botocore.session

from costguard.providers.aws.core.session import family_of
from costguard.providers.aws.iam.permissions import OPERATIONS, REACH, permission_for
from costguard.providers.aws.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import Feature, Purpose

MENDS = {
    "ec2:ReleaseAddress",
    "ec2:DisassociateAddress",
    "ec2:AssociateAddress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:ModifyInstanceMetadataOptions",
    "ec2:CreateFlowLogs",
    "ec2:DeleteFlowLogs",
}
ROLE = "arn:aws:iam::111122223333:role/flow-logs"


def test_eight_operations_mend_and_only_a_session_for_it_has_them() -> None:
    assert {name for name, one in REACH[Purpose.MEND].items() if one.changes_something} == MENDS
    assert MENDS.isdisjoint({*OPERATIONS, *REACH[Purpose.MAIL], *REACH[Purpose.FREEZE], *REACH[Purpose.ROTATE]})


def test_what_reads_for_it_reads_by_name_and_is_in_the_general_table_too() -> None:
    reads = {name for name in REACH[Purpose.MEND] if name.startswith("ec2:")} - MENDS

    assert all(name.startswith(("ec2:Describe", "ec2:Get")) for name in reads)
    assert reads <= set(OPERATIONS)


def test_every_operation_exists_in_the_sdk() -> None:
    offered = {f"ec2:{name}" for name in botocore.session.Session().get_service_model("ec2").operation_names}

    assert {name for name in REACH[Purpose.MEND] if name.startswith("ec2:")} <= offered


def test_reading_networks_takes_nothing_from_the_inventory() -> None:
    assert OPERATIONS["ec2:DescribeAddresses"].feature is Feature.INVENTORY
    assert OPERATIONS["ec2:DescribeVpcs"].feature is Feature.NETWORK
    assert REACH[Purpose.MEND]["ec2:DescribeAddresses"].feature is Feature.NETWORK


def test_the_role_that_reads_only_reads() -> None:
    (statement,) = policy_document([Feature.NETWORK])["Statement"]

    assert (statement["Sid"], statement["Resource"]) == ("Read", "*")
    reading = ("ec2:Describe", "ec2:Get", "pricing:GetProducts")
    assert all(action.startswith(reading) for action in statement["Action"])
    assert "ec2:DescribeAddresses" in statement["Action"]


def test_each_mend_is_allowed_on_its_own_kind_of_resource() -> None:
    document = policy_document([Feature.FIX_NETWORK], partition="aws-cn")

    def arns(*kinds: str) -> list[str]:
        return [f"arn:aws-cn:ec2:*:*:{kind}/*" for kind in kinds]

    assert {one["Sid"]: (one["Action"], one["Resource"]) for one in document["Statement"]} == {
        "MendAddresses": (
            ["ec2:AssociateAddress", "ec2:DisassociateAddress", "ec2:ReleaseAddress"],
            arns("elastic-ip", "instance", "network-interface"),
        ),
        "MendRules": (
            ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"],
            arns("security-group", "security-group-rule"),
        ),
        "MendFlowLogs": (
            ["ec2:CreateFlowLogs", "ec2:DeleteFlowLogs"],
            arns("vpc-flow-log", "vpc", "subnet", "network-interface"),
        ),
        "MendMetadataOptions": (["ec2:ModifyInstanceMetadataOptions"], arns("instance")),
        "DeliverFlowLogs": (["logs:CreateLogDelivery", "logs:DeleteLogDelivery"], "*"),
    }
    assert {one["Effect"] for one in document["Statement"]} == {"Allow"}


def test_every_operation_that_mends_is_granted_and_nothing_else_of_ec2() -> None:
    granted = [one["Action"] for one in policy_document([Feature.FIX_NETWORK])["Statement"]]

    assert {action for actions in granted for action in actions if action.startswith("ec2:")} == MENDS


def test_a_role_is_handed_over_to_flow_logs_only_where_it_is_named() -> None:
    plain = policy_document([Feature.FIX_NETWORK])["Statement"]
    (passing,) = (
        one for one in policy_document([Feature.FIX_NETWORK], flow_log_roles=[ROLE])["Statement"] if one not in plain
    )

    assert (passing["Action"], passing["Resource"]) == ("iam:PassRole", [ROLE])
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}}


def test_no_role_may_change_a_bucket_or_delete_what_a_network_is_made_of() -> None:
    actions = {
        action
        for one in policy_document(list(Feature), flow_log_roles=[ROLE])["Statement"]
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }

    assert not [name for name in {*actions, *REACH[Purpose.MEND]} if name.startswith("s3:")]
    assert {name for name in {*actions, *REACH[Purpose.MEND], *OPERATIONS} if ":Delete" in name} == {
        "ec2:DeleteFlowLogs",
        "logs:DeleteLogDelivery",
    }


def test_a_permission_is_named_for_people() -> None:
    assert permission_for("ec2:CreateFlowLogs") == "ec2:CreateFlowLogs and logs:CreateLogDelivery and iam:PassRole"
    assert permission_for("ec2:ReleaseAddress") == "ec2:ReleaseAddress"


def test_changes_of_rules_have_a_bucket_of_their_own() -> None:
    assert family_of("ec2:RevokeSecurityGroupIngress", changes=True) == "ec2:rules"
    assert family_of("ec2:AuthorizeSecurityGroupIngress", changes=True) == "ec2:rules"
    assert family_of("ec2:ReleaseAddress", changes=True) == "ec2:change"
    assert family_of("ec2:DescribeAddresses", changes=False) == "ec2:unpaged"
    assert family_of("ec2:DescribeSecurityGroupRules", changes=False) == "ec2:read"
