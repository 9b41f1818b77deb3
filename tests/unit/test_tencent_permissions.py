"""The reach of the program on Tencent Cloud, and the policies made from it."""

from __future__ import annotations

import pytest

from costguard.domain.errors import InvalidInputError
from costguard.providers.kit.core.signing import no_clock
from costguard.providers.kit.iam.permissions import ACTING, READING, SPENDING, Feature
from costguard.providers.tencent.core.products import GLOBAL, PAGES, VERSIONS
from costguard.providers.tencent.core.session import RATES, TencentSession
from costguard.providers.tencent.iam.permissions import KNOWN_OPERATIONS, OPERATIONS, permission_for
from costguard.providers.tencent.iam.policy_documents import policy_document

CHANGES = {"cvm:StopInstances", "cvm:StartInstances", "cvm:TerminateInstances", "cbs:CreateSnapshot"}


def test_four_operations_change_something_and_no_other() -> None:
    assert {name for name, operation in OPERATIONS.items() if operation.changes_something} == CHANGES


def test_every_operation_has_a_version_and_a_rate() -> None:
    assert {name.split(":")[0] for name in KNOWN_OPERATIONS} == set(VERSIONS)
    assert set(RATES) == set(KNOWN_OPERATIONS)
    assert set(PAGES) <= set(KNOWN_OPERATIONS)
    assert set(VERSIONS) >= GLOBAL


def test_no_second_has_more_calls_than_the_limit() -> None:
    for name, (burst, rate) in RATES.items():
        limit = {"cvm:DescribeInstances": 40, "monitor:GetMonitorData": 20, "cvm:TerminateInstances": 10}.get(name)
        if limit is not None:
            assert burst + rate <= limit


def test_reading_allows_reading_only() -> None:
    document = policy_document({*READING, Feature.ORGANISATION})
    (statement,) = document["statement"]
    assert document["version"] == "2.0"
    assert statement["effect"] == "allow"
    assert not set(statement["action"]) & CHANGES
    assert "cvm:DescribeInstances" in statement["action"]
    assert "organization:DescribeOrganizationMembers" in statement["action"]
    assert "sts:AssumeRole" not in statement["action"]


def test_the_bill_is_read_under_the_name_that_cam_has_for_it() -> None:
    (statement,) = policy_document(SPENDING)["statement"]
    assert {name.split(":")[0] for name in statement["action"]} == {"finance"}
    assert {"finance:DescribeBillDetail", "finance:DescribeBudget"} <= set(statement["action"])
    assert permission_for("billing:DescribeBillDetail") == "finance:DescribeBillDetail"


def test_assuming_is_granted_for_named_roles_only() -> None:
    role = "qcs::cam::uin/100012345678:roleName/costguard"
    assert policy_document({Feature.MEMBERS})["statement"] == []
    (statement,) = policy_document({Feature.MEMBERS}, role_arns=[role])["statement"]
    assert (statement["action"], statement["resource"]) == (["sts:AssumeRole"], [role])


def test_acting_is_limited_to_the_machines_of_the_account() -> None:
    statements = policy_document(ACTING, account="100012345678")["statement"]
    machines = next(each for each in statements if "cvm:StopInstances" in each["action"])
    assert machines["resource"] == ["qcs::cvm::uin/100012345678:instance/*"]
    assert {name for each in statements for name in each["action"]} >= CHANGES


def test_what_the_executor_reads_is_granted_with_its_verb() -> None:
    granted = {name for each in policy_document({Feature.TERMINATE})["statement"] for name in each["action"]}
    assert granted == {"cvm:TerminateInstances", "cvm:DescribeInstances"}


def test_a_permission_has_the_name_of_its_operation() -> None:
    assert permission_for("cvm:StopInstances") == "cvm:StopInstances"
    assert permission_for("cvm:Unheard") == "cvm:Unheard"


def test_a_site_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="tencent-mars"):
        TencentSession(keys=None, now=no_clock, cloud="tencent-mars")
