"""The table of operations and the RAM policies made from it."""

from __future__ import annotations

from costguard.providers.alibaba.core.products import PRODUCTS
from costguard.providers.alibaba.core.session import RATES, region_of
from costguard.providers.alibaba.iam.permissions import KNOWN_OPERATIONS, OPERATIONS, permission_for
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import ACTING, READING, SPENDING, Feature

CHANGING = {"ecs:StopInstances", "ecs:StartInstances", "ecs:DeleteInstances", "ecs:CreateSnapshot"}


def test_exactly_four_operations_change_anything() -> None:
    assert {name for name, one in OPERATIONS.items() if one.changes_something} == CHANGING


def test_everything_that_reads_by_name_reads_and_nothing_else_is_listed_as_reading() -> None:
    for name, one in OPERATIONS.items():
        assert one.changes_something is not name.split(":")[1].startswith(
            ("Describe", "Get", "List", "Lookup", "Query", "Assume")
        )


def test_every_operation_has_a_product_and_a_pace() -> None:
    listed = set(KNOWN_OPERATIONS)
    assert {name.split(":")[0] for name in listed} == set(PRODUCTS)
    assert set(RATES) == listed
    assert region_of("cms:DescribeMetricList", "cn-hangzhou") == ""
    assert region_of("ecs:DescribeInstances", "cn-hangzhou") == "cn-hangzhou"


def test_a_reading_policy_allows_reading_only() -> None:
    document = policy_document(READING)
    (statement,) = document["Statement"]

    assert document["Version"] == "1"
    assert (statement["Effect"], statement["Resource"]) == ("Allow", "*")
    assert {"ecs:DescribeInstances", "cms:DescribeMetricList", "cms:QueryMetricList"} <= set(statement["Action"])
    reading = ("Describe", "List", "Lookup", "Query")
    assert all(name.split(":")[1].startswith(reading) and "*" not in name for name in statement["Action"])


def test_reading_bills_is_granted_by_the_names_of_both_sites() -> None:
    (statement,) = policy_document(SPENDING)["Statement"]

    assert statement["Action"] == [
        "bss:DescribeBillList",
        "bss:DescribeCostBudgetsSummary",
        "bssapi:DescribeCostBudgetsSummary",
        "bssapi:DescribeInstanceBill",
        "bssapi:QueryBillOverview",
    ]


def test_every_call_of_the_billing_product_is_granted_by_a_name_of_each_kind() -> None:
    """Documents of the two sites name it `bss:` or `bssapi:`; either alone may be the one that decides."""
    kinds = {
        name: {permission.partition(":")[0] for permission in one.permissions}
        for name, one in KNOWN_OPERATIONS.items()
        if name.startswith("bss:")
    }

    assert len(kinds) == 5
    assert {name for name, found in kinds.items() if found != {"bss", "bssapi"}} == set()


def test_prices_are_granted_by_the_names_of_both_sites() -> None:
    granted = {name for one in policy_document([Feature.NETWORK])["Statement"] for name in one["Action"]}

    assert {name for name in granted if name.startswith("bss")} == {
        "bss:DescribePrice",
        "bss:DescribePricingModule",
        "bss:DescribeProduct",
        "bssapi:DescribePricingModule",
        "bssapi:GetPayAsYouGoPrice",
    }


def test_assuming_roles_is_granted_for_named_roles_only() -> None:
    role = "acs:ram::1234567890123456:role/costguard"

    assert policy_document([Feature.MEMBERS])["Statement"] == []
    (statement,) = policy_document([Feature.MEMBERS], role_arns=[role])["Statement"]
    assert (statement["Action"], statement["Resource"]) == (["sts:AssumeRole"], [role])


def test_changes_are_allowed_on_their_kind_of_resource_only() -> None:
    allowed = [
        (one["Action"], one["Resource"]) for one in policy_document(ACTING)["Statement"] if one["Effect"] == "Allow"
    ]

    assert allowed == [
        (["ecs:CreateSnapshot"], ["acs:ecs:*:*:disk/*", "acs:ecs:*:*:snapshot/*"]),
        (["ecs:DeleteInstances", "ecs:StartInstances", "ecs:StopInstances"], ["acs:ecs:*:*:instance/*"]),
        (["ecs:TagResources"], ["acs:ecs:*:*:snapshot/*"]),
    ]


def test_what_is_protected_is_denied_in_ram_too() -> None:
    denied = [
        one for one in policy_document(ACTING, protected_tags=["do-not-stop"])["Statement"] if one["Effect"] == "Deny"
    ]

    assert {tuple(one["Action"]) for one in denied} == {("ecs:DeleteInstances", "ecs:StopInstances")}
    assert [one["Condition"] for one in denied] == [
        {"StringLike": {f"acs:ResourceTag/{name}": ["*"]}}
        for name in ("acs:autoscaling:scalingGroupId", "ack.aliyun.com", "do-not-stop", "do_not_stop")
    ]


def test_a_policy_for_snapshots_alone_denies_nothing() -> None:
    assert {one["Effect"] for one in policy_document([Feature.SNAPSHOT])["Statement"]} == {"Allow"}


def test_a_permission_is_named_for_people() -> None:
    assert permission_for("cms:DescribeMetricList") == "cms:DescribeMetricList and cms:QueryMetricList"
    assert permission_for("new:Thing") == "new:Thing"
