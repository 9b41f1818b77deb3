"""The stand-ins attach and detach policies as the vendors do, and say what they do not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from tests.contract.freeze_worlds import AlibabaRig, TencentRig

from cloudstand.aws.core import gaps
from cloudstand.aws.core.patching import applied
from cloudstand.aws.iam.policies import MOST_OF_TARGET, attaching
from costguard.domain.actions import FreezeVia
from costguard.domain.errors import AccessDeniedError, RefusedError
from costguard.domain.refs import Shard

_SCP = {"Type": "SERVICE_CONTROL_POLICY", "Content": json.dumps({"Version": "2012-10-17", "Statement": []})}


@pytest.fixture
def member() -> Iterator[tuple[Any, str]]:
    """Organizations on moto as it comes, and an account."""
    with applied(gaps.before_seeding()), mock_aws():
        client = boto3.client("organizations", region_name="us-east-1")
        client.create_organization(FeatureSet="ALL")
        made = client.create_account(Email="one@example.com", AccountName="one")
        yield client, made["CreateAccountStatus"]["AccountId"]


def written(client: Any, name: str) -> str:
    return str(client.create_policy(Name=name, Description=name, **_SCP)["Policy"]["PolicySummary"]["Id"])


def refused(code: str, ask: Any, **what: str) -> None:
    with pytest.raises(ClientError) as raised:
        ask(**what)
    assert raised.value.response["Error"]["Code"] == code


def test_moto_attaches_twice_and_detaches_what_is_not_there_and_any_number(member: tuple[Any, str]) -> None:
    """What `attaching` cures; a test that fails here means that moto closed the gap."""
    client, account = member
    policies = [written(client, f"p-{number}") for number in range(MOST_OF_TARGET + 1)]
    for policy in (*policies, policies[0]):
        client.attach_policy(PolicyId=policy, TargetId=account)
    listed = client.list_policies_for_target(TargetId=account, Filter="SERVICE_CONTROL_POLICY")["Policies"]
    for policy in (*[each["Id"] for each in listed], policies[0]):
        client.detach_policy(PolicyId=policy, TargetId=account)


def test_the_sandbox_refuses_them_as_organizations_does(member: tuple[Any, str]) -> None:
    client, account = member
    policies = [written(client, f"p-{number}") for number in range(MOST_OF_TARGET)]
    with applied(attaching()):
        where = {"PolicyId": policies[0], "TargetId": account}
        refused("PolicyNotAttachedException", client.detach_policy, **where)
        client.attach_policy(**where)
        refused("DuplicatePolicyAttachmentException", client.attach_policy, **where)
        for policy in policies[1:-1]:
            client.attach_policy(PolicyId=policy, TargetId=account)
        refused("ConstraintViolationException", client.attach_policy, PolicyId=policies[-1], TargetId=account)
        refused("TargetNotFoundException", client.attach_policy, PolicyId=policies[0], TargetId="999999999999")
        for policy in policies[:-1]:
            client.detach_policy(PolicyId=policy, TargetId=account)
        last = {"PolicyId": "p-FullAWSAccess", "TargetId": account}
        refused("ConstraintViolationException", client.detach_policy, **last)


@pytest.fixture
def alibaba() -> Iterator[AlibabaRig]:
    rig = AlibabaRig()
    yield rig
    rig.close()


@pytest.fixture
def tencent() -> Iterator[TencentRig]:
    rig = TencentRig()
    yield rig
    rig.close()


def test_alibaba_cloud_takes_published_parameters_only(alibaba: AlibabaRig) -> None:
    session, here = alibaba.session("freezing"), Shard("alibaba", "")
    for service, operation, parameters, code in (
        ("resourcedirectory", "ListControlPolicyAttachmentsForTarget", {}, "MissingTargetId"),
        ("resourcedirectory", "AttachControlPolicy", {"PolicyId": "cp-a", "TargetId": "t", "DryRun": True}, "Invalid"),
        ("ram", "AttachPolicyToGroup", {"PolicyType": "custom", "PolicyName": "a", "GroupName": "g"}, "Invalid"),
        ("ram", "ListPoliciesForGroup", {"GroupName": "gpu-users", "MaxItems": 5}, "Invalid"),
    ):
        with pytest.raises(RefusedError, match=code):
            session.call(here, service, operation, **parameters)


def test_alibaba_cloud_holds_ten_and_lets_only_the_management_account_ask(alibaba: AlibabaRig) -> None:
    freeze = alibaba.freeze(FreezeVia.ORGANISATION)
    desk = alibaba.emulator.policies
    desk.targets[freeze.target] += [f"cp-{number}" for number in range(9)]
    with pytest.raises(RefusedError, match="LimitExceeded"):
        alibaba.control().attach(freeze)
    alibaba.emulator.allowed[alibaba.emulator.accounts[0]] = {"ram:ListPoliciesForGroup"}
    with pytest.raises(AccessDeniedError, match="NoPermission"):
        alibaba.control().attached(freeze)
    assert alibaba.control().attached(alibaba.freeze(FreezeVia.GROUP))


@pytest.mark.parametrize("permission", ["resourcemanager", "resourcedirectory"])
def test_alibaba_cloud_takes_either_name_of_a_permission(alibaba: AlibabaRig, permission: str) -> None:
    alibaba.emulator.allowed[alibaba.emulator.accounts[0]] = {f"{permission}:ListControlPolicyAttachmentsForTarget"}
    assert alibaba.control().attached(alibaba.freeze(FreezeVia.ORGANISATION))


def test_tencent_cloud_takes_published_parameters_only(tencent: TencentRig) -> None:
    session, here = tencent.session("freezing"), Shard("tencent", "")
    for service, action, parameters, code in (
        ("organization", "AttachPolicy", {"TargetId": 1, "PolicyId": 2}, "MissingParameter"),
        ("organization", "AttachPolicy", {"TargetId": "1", "TargetType": "NODE", "PolicyId": 2}, "not of type int"),
        ("organization", "ListPoliciesForTarget", {"TargetId": 1, "Rp": 201}, "InvalidParameterValue"),
        ("cam", "DetachGroupPolicy", {"PolicyId": 1, "AttachGroupId": 2}, "UnknownParameter"),
    ):
        with pytest.raises(RefusedError, match=code):
            session.call(here, service, action, **parameters)


def test_tencent_cloud_tells_members_from_departments_and_refuses_while_it_is_off(tencent: TencentRig) -> None:
    freeze = tencent.freeze(FreezeVia.ORGANISATION)
    with pytest.raises(RefusedError, match="OrganizationMemberNotExist"):
        tencent.control().attach(replace(freeze, target=freeze.target.replace("member", "node")))
    tencent.switch_off()
    with pytest.raises(RefusedError, match="OrganizationPolicyIsNotEnabled"):
        tencent.control().attach(freeze)
