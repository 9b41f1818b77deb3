"""Resource groups as a policy selects by them, and as the clouds tell them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import NOW, T4, instance, rule

from costguard.domain.errors import InvalidInputError
from costguard.domain.money import SpendScope
from costguard.domain.refs import Shard
from costguard.guards.budget.steps import narrowed
from costguard.guards.rules.common import Selector
from costguard.policy.diff.idle import loosens
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms, terms, with_digest
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText
from costguard.providers.alibaba.compute.instances import to_instance as on_alibaba
from costguard.providers.tencent.compute.instances import to_instance as on_tencent


def load(text: str) -> Policy:
    return load_policy(PolicyText({"costguard.yaml": f"version: 1\nidle_gpu: [{{name: m}}]\n{text}"}, "r1"))


def selecting(*groups: str) -> Any:
    return with_digest(rule(applies_to=Selector(resource_groups=groups or None)))


def test_owners_rules_and_exceptions_select_by_resource_group() -> None:
    read = load(
        'owners: [{name: nlp, owns: {resource_groups: [rg-acfm*, "1004321"]}}]\n'
        "exceptions: [{applies_when_all: {resource_groups: [rg-demo]}, owner: nlp, reason: demo, approver: finops,"
        ' expires: "2026-12-01T18:00:00+08:00"}]\n'
    )

    assert read.owners[0].owns == Selector(resource_groups=("rg-acfm*", "1004321"))
    assert read.exemptions[0].owns == Selector(resource_groups=("rg-demo",))


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("resource_groups: rg-1", "expected a list"),
        ("resource_groups: []", "an empty list matches nothing"),
        ("resource_groups: [1004321]", "put it in quotes"),
        ('resource_groups: ["a b"]', "is not the id of a resource group or project"),
        ("resource_groups: [rg-1, rg-1]", "is there twice"),
        ("resource_group: [rg-1]", "did you mean resource_groups"),
    ],
)
def test_what_is_no_list_of_groups_is_told(written: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        load(f"owners: [{{name: nlp, owns: {{{written}}}}}]\n")


ON_AWS = '{cloud: aws, id: "111122223333", regions: all}'
ACCOUNTS = f'accounts: [{ON_AWS}, {{cloud: alibaba, id: "1234567890123456", regions: all}}]\n'
EXCEPTED = (
    "exceptions: [{applies_when_all: {resource_groups: [rg-1]%s}, owner: nlp, reason: demo, approver: finops,"
    ' expires: "2030-12-01T18:00:00+08:00"}]\n'
)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (ACCOUNTS + EXCEPTED % "", False),
        (ACCOUNTS + EXCEPTED % ", clouds: [aws]", True),
        (ACCOUNTS + EXCEPTED % ', accounts: ["1111*"]', True),
        (ACCOUNTS + EXCEPTED % ', accounts: ["1234567890123456"]', False),
        (EXCEPTED % "", False),
        (f"accounts: [{ON_AWS}]\n" + EXCEPTED % "", True),
    ],
)
def test_a_selection_by_group_that_reaches_aws_alone_is_remarked_on(written: str, told: bool) -> None:  # noqa: FBT001
    """An exception that matches nothing protects nothing."""
    found = [remark for remark in remarks(load(written), NOW) if "resource_groups" in remark.message]

    assert [remark.where.partition(":")[0] for remark in found] == (["costguard.yaml"] if told else [])


def test_a_machine_matches_by_the_id_of_its_group_and_none_without_one() -> None:
    assert Selector(resource_groups=("rg-a*",)).matches(instance(resource_group="rg-acfm"))
    assert not Selector(resource_groups=("rg-a*",)).matches(instance(resource_group="rg-b"))
    assert not Selector(resource_groups=("*",)).matches(instance())
    assert not Selector(resource_groups=()).matches(instance(resource_group="rg-a"))


def test_fewer_groups_are_a_tightening_and_more_or_none_a_loosening() -> None:
    wide, narrow, every = selecting("rg-a", "rg-b"), selecting("rg-a"), selecting()

    assert not loosens(wide, narrow)
    assert not loosens(every, narrow)
    assert loosens(narrow, wide)
    assert loosens(narrow, every)


def test_a_case_remembers_the_groups_of_its_rule() -> None:
    assert rule_from_terms(terms(selecting("rg-b", "rg-a"))) == selecting("rg-a", "rg-b")
    assert "resource_groups" not in terms(selecting())  # rules without them keep the digest they had


def test_a_budgets_class_of_work_keeps_its_groups_within_a_scope() -> None:
    found = narrowed(SpendScope(), Selector(resource_groups=("rg-a",)))

    assert found is not None
    assert found.resource_groups == ("rg-a",)


def test_alibaba_tells_the_group_and_tencent_the_project() -> None:
    ecs = {
        "InstanceId": "i-1",
        "InstanceType": "ecs.gn7i-c8g1.2xlarge",
        "Status": "Running",
        "InstanceChargeType": "PostPaid",
        "StartTime": "2026-02-21T09:00Z",
    }
    cvm: dict[str, Any] = {
        "InstanceId": "ins-1",
        "InstanceType": "GN7.2XLARGE32",
        "InstanceState": "RUNNING",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "CreatedTime": "2022-09-06T03:07:37Z",
        "Tags": [],
    }
    here = Shard("alibaba", "1234567890123456", "cn-hangzhou")
    there = Shard("tencent", "100012345678", "ap-guangzhou")

    assert on_alibaba(here, {**ecs, "ResourceGroupId": "rg-acfm"}, T4, 0.0).resource_group == "rg-acfm"
    assert on_alibaba(here, ecs, T4, 0.0).resource_group == ""
    assert on_tencent(there, {**cvm, "Placement": {"ProjectId": 1004321}}, T4, 0.0).resource_group == "1004321"
    assert on_tencent(there, cvm, T4, 0.0).resource_group == ""
    with pytest.raises((TypeError, ValueError)):
        on_alibaba(here, {**ecs, "ResourceGroupId": None}, T4, 0.0)
    with pytest.raises((TypeError, ValueError)):
        on_tencent(there, {**cvm, "Placement": {"ProjectId": "1004321"}}, T4, 0.0)
