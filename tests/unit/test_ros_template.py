"""infra/alibaba/member/template.yaml: the member roles for ROS, in step with the policies and with Terraform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.infra.ros_template import TEMPLATE, template, wrong_template

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "infra/alibaba/policies"
# "ALIYUN::RAM::Role" and "ALIYUN::RAM::ManagedPolicy" of ROS's reference
PROPERTIES = {
    "ALIYUN::RAM::Role": (
        {"RoleName", "AssumeRolePolicyDocument"},
        {"Description", "MaxSessionDuration", "Policies", "IgnoreExisting", "DeletionForce", "PolicyAttachments"},
    ),
    "ALIYUN::RAM::ManagedPolicy": (
        {"PolicyName"},
        {"Description", "Roles", "PolicyDocumentUnchecked", "PolicyDocument", "Groups", "Users", "IgnoreExisting"},
    ),
}
FUNCTIONS = {"Fn::Sub", "Fn::GetAtt", "Fn::Equals", "Fn::And", "Ref"}


@pytest.fixture(scope="module")
def read() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(TEMPLATE.read_text("utf-8"))
    return loaded


def of_type(read: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one for name, one in read["Resources"].items() if one["Type"] == kind}


def test_the_template_is_in_step_with_what_it_is_made_from() -> None:
    """`python -m tests.infra.ros_template` writes it."""
    assert list(wrong_template()) == []
    assert TEMPLATE.read_text("utf-8") == template()


def test_it_has_the_form_and_the_properties_that_ros_documents(read: dict[str, Any]) -> None:
    assert read["ROSTemplateFormatVersion"] == "2015-09-01"
    assert set(read) == {"ROSTemplateFormatVersion", "Description", "Parameters", "Conditions", "Resources"}
    for one in read["Resources"].values():
        required, more = PROPERTIES[one["Type"]]
        assert required <= set(one["Properties"]) <= required | more
        assert set(one) <= {"Type", "Properties", "Condition"}
    for parameter in read["Parameters"].values():
        assert set(parameter) <= {"Type", "Description", "AllowedPattern", "AllowedValues", "Default"}
    assert {name for name, _ in called(read)} <= FUNCTIONS


def test_what_is_named_is_there(read: dict[str, Any]) -> None:
    for name, said in called(read):
        if name == "Ref":
            assert said in read["Parameters"]
        elif name == "Fn::GetAtt":
            assert read["Resources"][said[0]]["Type"] == "ALIYUN::RAM::Role"
    assert {one["Condition"] for one in read["Resources"].values() if "Condition" in one} <= set(read["Conditions"])


def test_each_policy_is_exactly_the_document_that_terraform_grants(read: dict[str, Any]) -> None:
    made = of_type(read, "ALIYUN::RAM::ManagedPolicy")
    for one in made.values():
        purpose = one["Properties"]["Description"].removeprefix("Costguard: ")
        document = json.loads((POLICIES / f"{purpose}.json").read_text("utf-8"))
        assert one["Properties"]["PolicyDocumentUnchecked"] == document
        assert one["Properties"]["PolicyName"] == {"Fn::Sub": "${MemberRole}-" + purpose.replace("_", "-")}
    purposes = {one["Properties"]["Description"].removeprefix("Costguard: ") for one in made.values()}
    assert purposes >= {"deny", "scan-idle_gpu", "act-idle_gpu", "rotate", "fix_network"}
    assert purposes.isdisjoint({"members", "objects", "secrets", "mail"}), "those are the deployment's own"


def test_without_acting_nothing_can_be_changed(read: dict[str, Any]) -> None:
    for one in of_type(read, "ALIYUN::RAM::ManagedPolicy").values():
        purpose = one["Properties"]["Description"].removeprefix("Costguard: ")
        assert ("Condition" not in one) == (purpose == "deny" or purpose.startswith("scan-"))
    assert read["Conditions"]["Acts"] == {"Fn::Equals": [{"Ref": "Acting"}, "true"]}
    assert read["Parameters"]["Acting"]["Default"] == "false"
    for name, condition in read["Conditions"].items():
        assert name == "Acts" or condition["Fn::And"][0] == "Acts"


def test_only_its_own_function_with_the_external_id_enters_by_a_role(read: dict[str, Any]) -> None:
    roles = of_type(read, "ALIYUN::RAM::Role")
    assert len(roles) == 4
    for one in roles.values():
        name = one["Properties"]["RoleName"]["Fn::Sub"].removeprefix("${MemberRole}-")
        (statement,) = one["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"RAM": [{"Fn::Sub": "acs:ram::${HubAccount}:role/${Name}-" + name}]}
        assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": {"Ref": "ExternalId"}}}


def test_each_role_has_what_its_function_yaml_says(read: dict[str, Any]) -> None:
    attached: dict[str, set[str]] = {}
    for one in of_type(read, "ALIYUN::RAM::ManagedPolicy").values():
        for role in one["Properties"]["Roles"]:
            name = read["Resources"][role["Fn::GetAtt"][0]]["Properties"]["RoleName"]["Fn::Sub"]
            purpose = one["Properties"]["Description"].removeprefix("Costguard: ")
            attached.setdefault(name.removeprefix("${MemberRole}-"), set()).add(purpose)
    assert attached["idle-gpu"] == {"deny", "scan-idle_gpu", "act-idle_gpu", "keep_tag", "start"}
    assert attached["kms-rotation"] == {"deny", "scan-kms_rotation", "rotate", "succeed"}
    assert attached["network-audit"] == {"deny", "scan-network_audit", "fix_network"}
    assert attached["budget"] >= {"deny", "scan-budget", "act-budget"}


def called(part: Any) -> Iterator[tuple[str, Any]]:
    """Every function that is called, with what it is given; policies' own text calls none."""
    if isinstance(part, dict):
        for name, said in part.items():
            if name == "Ref" or name.startswith("Fn::"):
                yield name, said
            if name != "PolicyDocumentUnchecked":
                yield from called(said)
    elif isinstance(part, list):
        for each in part:
            yield from called(each)
