"""The table of operations and the policies made from it."""

from __future__ import annotations

import botocore.session
import pytest

from cloudstand.wire.authority import Authority, Wish
from costguard.providers.aws.compute.instances import CONTROLLER_KEYS, CONTROLLER_VALUES, keeper_of
from costguard.providers.aws.iam.permissions import OPERATIONS, REACH, permission_for
from costguard.providers.aws.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import ACTING, READING, Feature, Purpose

CHANGING = {
    *("ec2:StopInstances", "ec2:StartInstances", "ec2:TerminateInstances"),
    *("ec2:CreateSnapshot", "ec2:CreateSnapshots"),
}


def test_exactly_five_operations_change_anything() -> None:
    assert {name for name, one in OPERATIONS.items() if one.changes_something} == CHANGING


def test_everything_that_reads_by_name_reads_and_nothing_else_is_listed_as_reading() -> None:
    harmless = ("Describe", "Get", "List", "Lookup", "Assume", "CreateToken", "CreateOAuth2Token")

    for name, one in OPERATIONS.items():
        assert one.changes_something is not name.split(":")[1].startswith(harmless)


def test_every_operation_exists_in_the_sdk() -> None:
    session = botocore.session.Session()
    known = {*OPERATIONS, *REACH[Purpose.MAIL], *REACH[Purpose.ROTATE]}
    listed = {name.split(":")[0] for name in known}
    offered = {f"{one}:{name}" for one in listed for name in session.get_service_model(one).operation_names}

    assert known <= offered


def test_a_reading_policy_allows_reading_only() -> None:
    (statement,) = policy_document(READING)["Statement"]

    assert statement["Effect"] == "Allow"
    assert statement["Resource"] == "*"
    assert "ec2:DescribeInstances" in statement["Action"]
    assert all(
        action.split(":")[1].startswith(("Describe", "List", "Get", "Lookup")) and "*" not in action
        for action in statement["Action"]
    )


def test_assuming_roles_is_granted_for_named_roles_only() -> None:
    role = "arn:aws:iam::111122223333:role/costguard"

    assert policy_document([Feature.MEMBERS])["Statement"] == []
    (statement,) = policy_document([Feature.MEMBERS], role_arns=[role])["Statement"]
    assert (statement["Action"], statement["Resource"]) == ("sts:AssumeRole", [role])


def test_changes_are_allowed_on_their_kind_of_resource_only() -> None:
    allowed = {
        one["Sid"]: (one["Action"], one["Resource"])
        for one in policy_document(ACTING, partition="aws-cn")["Statement"]
        if one["Effect"] == "Allow"
    }

    assert allowed == {
        "StartInstances": (["ec2:StartInstances"], ["arn:aws-cn:ec2:*:*:instance/*"]),
        "ActOnInstances": (
            ["ec2:StopInstances", "ec2:TerminateInstances"],
            ["arn:aws-cn:ec2:*:*:instance/*"],
        ),
        "SnapshotVolumes": (
            ["ec2:CreateSnapshot", "ec2:CreateSnapshots"],
            ["arn:aws-cn:ec2:*:*:volume/*", "arn:aws-cn:ec2:*:*:snapshot/*"],
        ),
        "SnapshotSets": (["ec2:CreateSnapshots"], ["arn:aws-cn:ec2:*:*:instance/*"]),
        "TagOwnSnapshots": ("ec2:CreateTags", ["arn:aws-cn:ec2:*:*:snapshot/*"]),
    }


@pytest.mark.parametrize(
    ("tags", "may"),
    [
        ({}, True),
        ({"team": "nlp", "Vendor": "Dell", "CreatedBy": "terraform"}, True),
        ({"Vendor": "Databricks"}, False),
        ({"CreatedBy": "EC2 Image Builder"}, False),
        ({"skypilot-cluster-name": "a"}, False),
        ({"Ray-Cluster-Name": ""}, False),
        ({"spotinst:aws:ec2:group:id": "sig-1"}, False),
        ({"aws:pcs:compute-node-group-id": "pcs_1"}, False),
        ({"AWSBatchServiceTag": "batch"}, False),
        ({"dstack_project": "main"}, False),
    ],
)
def test_the_role_may_not_stop_or_end_a_machine_of_a_known_controller(tags: dict[str, str], *, may: bool) -> None:
    """The grant itself leaves them out: a denial for each would not fit into a managed policy."""
    authority = Authority([policy_document(ACTING)])
    context = {f"aws:ResourceTag/{key}": (value,) for key, value in tags.items()}
    machine = ("arn:aws:ec2:us-east-1:111122223333:instance/i-1",)

    for action in ("ec2:StopInstances", "ec2:TerminateInstances"):
        assert authority.allows(Wish((action,), machine, context)) is may
    assert authority.allows(Wish(("ec2:StartInstances",), machine, context))


def test_every_controller_that_one_tag_gives_away_is_left_out_of_the_grant() -> None:
    for key in CONTROLLER_KEYS:
        assert keeper_of({key: "x"}, None) is not None
    for key, value in CONTROLLER_VALUES.items():
        assert keeper_of({key: value}, None) is not None
    (grant,) = (one for one in policy_document(ACTING)["Statement"] if one["Sid"] == "ActOnInstances")
    assert {f"aws:ResourceTag/{key}" for key in CONTROLLER_KEYS} == grant["Condition"]["Null"].keys()


def test_tags_may_be_set_only_while_creating_a_snapshot() -> None:
    (statement,) = (one for one in policy_document(ACTING)["Statement"] if one["Sid"] == "TagOwnSnapshots")

    assert statement["Condition"] == {"StringEquals": {"ec2:CreateAction": ["CreateSnapshot", "CreateSnapshots"]}}


def denials(**options: object) -> dict[str, tuple[list[str], dict[str, dict[str, str]]]]:
    document = policy_document(ACTING, **options)  # type: ignore[arg-type]
    return {one["Sid"]: (one["Action"], one["Condition"]) for one in document["Statement"] if one["Effect"] == "Deny"}


def test_what_is_protected_is_denied_in_iam_too() -> None:
    both = ["ec2:StopInstances", "ec2:TerminateInstances"]

    found = denials(protected_tags=["do-not-stop"])

    assert found == {
        "NeverSpot": (both, {"StringEquals": {"ec2:InstanceMarketType": "spot"}}),
        "NeverManagedByAService": (both, {"Null": {"ec2:ManagedResourceOperator": "false"}}),
        "NeverTagAwsAutoscalingGroupname": (both, {"Null": {"aws:ResourceTag/aws:autoscaling:groupName": "false"}}),
        "NeverTagAwsEksClusterName": (both, {"Null": {"aws:ResourceTag/aws:eks:cluster-name": "false"}}),
        "NeverTagEksClusterName": (both, {"Null": {"aws:ResourceTag/eks:cluster-name": "false"}}),
        "NeverTagDoNotStop": (both, {"Null": {"aws:ResourceTag/do-not-stop": "false"}}),
        "NeverTagDoUsNotUsStop": (both, {"Null": {"aws:ResourceTag/do_not_stop": "false"}}),
    }


def test_spot_may_be_terminated_only_when_allowed_and_never_stopped_by_that() -> None:
    assert denials(spot_may_terminate=True)["NeverSpot"][0] == ["ec2:StopInstances"]


def test_statement_ids_are_legal_and_unique() -> None:
    ids = [one["Sid"] for one in policy_document(READING | ACTING)["Statement"]]

    assert len(set(ids)) == len(ids)
    assert all(sid.isalnum() and sid.isascii() for sid in ids)


def test_a_permission_is_named_for_people() -> None:
    assert permission_for("ec2:CreateSnapshot") == "ec2:CreateSnapshot and ec2:CreateTags"
    assert permission_for("ec2:CreateSnapshots") == "ec2:CreateSnapshots and ec2:CreateTags"
    assert permission_for("new:Thing") == "new:Thing"


def test_two_operations_rotate_and_only_a_session_for_it_has_them() -> None:
    rotating = {"kms:EnableKeyRotation", "kms:RotateKeyOnDemand"}

    assert {name for name, one in REACH[Purpose.ROTATE].items() if one.changes_something} == rotating
    assert rotating.isdisjoint({*OPERATIONS, *REACH[Purpose.MAIL], *REACH[Purpose.FREEZE]})


def test_no_operation_or_policy_disables_deletes_or_imports_a_key() -> None:
    every = {
        **OPERATIONS,
        **REACH[Purpose.MAIL],
        **REACH[Purpose.FREEZE],
        **REACH[Purpose.ROTATE],
        **REACH[Purpose.SUCCEED],
    }
    document = policy_document(list(Feature))
    allowed = {
        action
        for one in document["Statement"]
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }

    assert {name.split(":")[1] for name in {*every, *allowed} if name.startswith("kms:")} == {
        "ListKeys",
        "ListAliases",
        "DescribeKey",
        "GetKeyRotationStatus",
        "ListKeyRotations",
        "ListResourceTags",
        "EnableKeyRotation",
        "RotateKeyOnDemand",
        # a key in another's place, and the canaries that try it: no alias, policy or key is taken away
        "GetKeyPolicy",
        "CreateKey",
        "TagResource",
        "UpdateAlias",
        "Encrypt",
        "Decrypt",
        "Sign",
        "Verify",
    }


def test_rotating_is_allowed_on_keys_alone() -> None:
    (statement,) = policy_document([Feature.ROTATE], partition="aws-cn")["Statement"]

    assert statement == {
        "Sid": "RotateKeys",
        "Effect": "Allow",
        "Action": ["kms:EnableKeyRotation", "kms:RotateKeyOnDemand"],
        "Resource": ["arn:aws-cn:kms:*:*:key/*"],
    }


def test_reading_keys_needs_the_disks_as_well() -> None:
    (statement,) = policy_document([Feature.KEYS])["Statement"]

    assert "ec2:DescribeVolumes" in statement["Action"]
    assert {action.split(":")[0] for action in statement["Action"]} == {"ec2", "kms"}
