"""The generated policy documents: what they grant, and what they deny whatever else is granted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cloudstand.wire.authority import Authority, Wish
from costguard.domain.errors import InvalidInputError
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.alibaba.iam import policy_documents as alibaba
from costguard.providers.aws.iam import policy_documents as aws
from costguard.providers.kit.iam.policy_documents import (
    EVERYWHERE,
    FUNCTIONS,
    MOST_CHARACTERS,
    PURPOSES,
    Document,
    Narrowing,
    characters,
    file_text,
    purpose_named,
)
from costguard.providers.tencent.iam import policy_documents as tencent

ROOT = Path(__file__).parents[2]
MADE: dict[str, Callable[[Narrowing], dict[str, Document]]] = {
    "aws": aws.documents,
    "alibaba": alibaba.documents,
    "tencent": tencent.documents,
}
EVERYTHING: dict[str, dict[str, Any]] = {
    "aws": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]},
    "alibaba": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]},
    "tencent": {"statement": [{"effect": "allow", "action": ["*"], "resource": ["*"]}]},
}
STOP = {"aws": "ec2:StopInstances", "alibaba": "ecs:StopInstances", "tencent": "cvm:StopInstances"}
MACHINE = {
    "aws": "arn:aws:ec2:us-east-1:111122223333:instance/i-1",
    "alibaba": "acs:ecs:cn-hangzhou:1234567890123456:instance/i-1",
    "tencent": "qcs::cvm:ap-guangzhou:uin/100012345678:instance/ins-1",
}
SCANS = ("scan-idle_gpu", "scan-budget", "scan-kms_rotation", "scan-network_audit")
ACTS = ("act-idle_gpu", "act-budget", "rotate", "fix_network")


def statements(document: Document) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document.get("Statement") or document["statement"]
    return found


def tagged(cloud: str, key: str, value: str = "") -> dict[str, tuple[str, ...]]:
    """What a request about a machine with this tag tells."""
    named = {"aws": f"aws:ResourceTag/{key}", "alibaba": f"acs:ResourceTag/{key}"}
    return {"qcs:resource_tag": (f"{key}&{value}",)} if cloud == "tencent" else {named[cloud]: (value,)}


def acting(cloud: str, narrow: Narrowing = EVERYWHERE) -> Authority:
    documents = MADE[cloud](narrow)
    return Authority([documents["act-idle_gpu"], documents["deny"]])


def stops(authority: Authority, cloud: str, context: Mapping[str, tuple[str, ...]] | None = None) -> bool:
    return authority.allows(Wish((STOP[cloud],), (MACHINE[cloud],), context or {}))


# the files


@pytest.mark.parametrize("cloud", MADE)
def test_the_files_are_what_the_program_writes(cloud: str) -> None:
    """`costguard permissions CLOUD --write infra/CLOUD/policies` makes them anew."""
    folder = ROOT / "infra" / cloud / "policies"
    kept = {path.stem: path.read_text("utf-8") for path in folder.iterdir()}
    assert kept == {name: file_text(document) for name, document in MADE[cloud](EVERYWHERE).items()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_yaml_names_the_documents_of_its_role(function: str) -> None:
    needs = YAML(typ="safe").load((ROOT / "functions" / function / "function.yaml").read_text("utf-8"))["needs"]
    named = {kind: tuple(names) for kind, names in needs["policies"].items()}
    wanted = FUNCTIONS[function]
    assert named == {
        kind: names
        for kind in ("always", "enforcing", "members", "asked")
        if (names := getattr(wanted, kind)) or kind == "always"
    }
    assert {name for names in named.values() for name in names} <= set(PURPOSES)


def test_what_a_cloud_does_without_has_no_document() -> None:
    assert set(aws.documents()) == set(PURPOSES)
    assert set(PURPOSES) - set(alibaba.documents()) == alibaba.WITHOUT
    assert set(PURPOSES) - set(tencent.documents()) == tencent.WITHOUT


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_every_document_of_aws_fits_into_one_policy(partition: str) -> None:
    lengths = {name: characters(document) for name, document in aws.documents(Narrowing(partition=partition)).items()}
    assert {name: length for name, length in lengths.items() if length > MOST_CHARACTERS} == {}


@pytest.mark.parametrize("made", [alibaba.documents, tencent.documents])
def test_elsewhere_white_space_counts_and_every_file_fits(made: Callable[[], dict[str, Document]]) -> None:
    lengths = {name: len(file_text(document)) for name, document in made().items()}
    assert {name: length for name, length in lengths.items() if length > MOST_CHARACTERS} == {}


def test_statement_ids_are_legal_and_unique() -> None:
    for document in aws.documents(Narrowing(kept_tags=("keep", "my tag", "our.team:keep/it"))).values():
        ids = [one["Sid"] for one in document["Statement"]]
        assert len(set(ids)) == len(ids)
        assert all(sid.isalnum() and sid.isascii() for sid in ids)


def test_the_partition_stands_in_every_arn() -> None:
    assert "arn:aws:" not in json.dumps(aws.documents(Narrowing(partition="aws-cn")))


# what is granted


@pytest.mark.parametrize("cloud", MADE)
def test_a_members_role_has_what_any_function_needs_there(cloud: str) -> None:
    documents = MADE[cloud](EVERYWHERE)

    def actions(*purposes: str) -> frozenset[str]:
        return Authority([documents[purpose] for purpose in purposes]).granted

    # regions of a member are listed by whoever reads its machines, with the other permissions of the inventory
    assert actions("member-scan") == actions(*SCANS)
    assert actions("member-act") == actions(*ACTS)


@pytest.mark.parametrize("cloud", MADE)
def test_nobody_may_do_everything_of_anything(cloud: str) -> None:
    allowed = [one for document in MADE[cloud](EVERYWHERE).values() for one in statements(document) if _allows(one)]
    assert [name for one in allowed for name in _listed(one, "action") if "*" in name or name.endswith(":")] == []


@pytest.mark.parametrize("cloud", MADE)
@pytest.mark.parametrize("purpose", SCANS)
def test_who_scans_only_reads(cloud: str, purpose: str) -> None:
    words = ("Describe", "Get", "List", "Lookup", "Query", "InquiryPrice")
    granted = Authority([MADE[cloud](EVERYWHERE)[purpose]]).granted
    assert [name for name in granted if not name.split(":")[1].startswith(words)] == []


@pytest.mark.parametrize("cloud", MADE)
def test_the_budget_function_can_stop_and_not_end_or_copy(cloud: str) -> None:
    assert Authority([MADE[cloud](EVERYWHERE)["act-budget"]]).granted == {STOP[cloud]}


def test_clicks_reach_the_ledger_alone() -> None:
    (statement,) = aws.documents()["clicks"]["Statement"]
    assert {action.split(":")[0] for action in statement["Action"]} == {"dynamodb"}
    assert statement["Resource"] == ["arn:aws:dynamodb:*:*:table/costguard*"]


@pytest.mark.parametrize("cloud", MADE)
def test_publishing_a_policy_is_granted_to_no_function(cloud: str) -> None:
    """Who could write into the bucket of policies could loosen them."""
    writes = {
        name: _listed(one, "resource")
        for name, document in MADE[cloud](EVERYWHERE).items()
        for one in statements(document)
        if _allows(one) and any(action.endswith("PutObject") for action in _listed(one, "action"))
    }
    assert list(writes) == ["reports"]
    assert all(resource.endswith("/reports/*") for resource in writes["reports"])


# what is denied, whatever else is attached

FORBIDDEN = {
    "aws": (
        *("kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:DisableKeyRotation", "kms:ImportKeyMaterial"),
        *("kms:DeleteImportedKeyMaterial", "kms:DeleteAlias", "ec2:DeleteSnapshot", "ec2:DeleteVolume"),
        *("ec2:ModifyInstanceAttribute", "ec2:DeleteTags", "ec2:CreateTags", "ec2:RunInstances"),
        *("iam:CreateUser", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:AttachGroupPolicy", "iam:PassRole"),
        *("organizations:AttachPolicy", "organizations:UpdatePolicy", "organizations:LeaveOrganization"),
        *("s3:DeleteObject", "s3:PutBucketPolicy", "dynamodb:DeleteTable", "dynamodb:DeleteItem"),
        *("secretsmanager:PutSecretValue", "cloudtrail:StopLogging", "ec2:DeleteSecurityGroup", "ec2:DeleteVpc"),
    ),
    "alibaba": (
        *("kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:ImportKeyMaterial", "kms:DeleteKeyMaterial"),
        *("ecs:DeleteSnapshot", "ecs:DeleteDisk", "ecs:ModifyInstanceAttribute", "ecs:UntagResources"),
        *("ram:CreateUser", "ram:AttachPolicyToRole", "ram:AttachPolicyToUser", "ram:CreatePolicyVersion"),
        *("oss:DeleteObject", "actiontrail:StopLogging", "ecs:RunInstances", "vpc:DeleteVpc"),
    ),
    "tencent": (
        *("kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:DisableKeyRotation", "kms:ImportKeyMaterial"),
        *("cbs:DeleteSnapshots", "cbs:TerminateDisks", "cvm:ModifyInstancesAttribute", "tag:UnTagResources"),
        *("cam:CreatePolicy", "cam:AttachRolePolicy", "cam:AttachUserPolicy", "cam:UpdatePolicy"),
        *("name/cos:DeleteObject", "cvm:RunInstances", "vpc:DeleteVpc", "organization:DeletePolicy"),
    ),
}


@pytest.mark.parametrize(("cloud", "action"), [(cloud, one) for cloud, names in FORBIDDEN.items() for one in names])
def test_what_no_run_may_do_is_denied_to_who_may_do_everything(cloud: str, action: str) -> None:
    powerful = Authority([EVERYTHING[cloud], MADE[cloud](EVERYWHERE)["deny"]])
    assert powerful.allows(Wish((STOP[cloud],), (MACHINE[cloud],)))
    assert not powerful.allows(Wish((action,), (f"{MACHINE[cloud]}x",)))


@pytest.mark.parametrize("cloud", MADE)
def test_the_denials_take_nothing_from_what_is_granted(cloud: str) -> None:
    documents = MADE[cloud](EVERYWHERE)
    taken = [
        (name, action)
        for name, document in documents.items()
        for one in statements(document)
        if _allows(one)
        for action in _listed(one, "action")
        for resource in _listed(one, "resource")
        if not Authority([document, documents["deny"]]).allows(Wish((action,), (_some(resource),), dict(_met(one))))
    ]
    assert taken == []


SPELLINGS = ("do-not-stop", "do_not_stop", "Do-Not-Stop", "DoNotStop", "keep", "Keep", "costguard-protect")


@pytest.mark.parametrize("key", [*SPELLINGS, "DO_NOT_STOP", "KEEP", "donotdelete"])
def test_aws_denies_stopping_what_has_a_protection_tag_however_it_is_written(key: str) -> None:
    assert stops(acting("aws"), "aws", tagged("aws", "team", "research"))
    assert not stops(acting("aws"), "aws", tagged("aws", key))


@pytest.mark.parametrize("key", SPELLINGS)
def test_alibaba_denies_it_for_each_spelling_written_down(key: str) -> None:
    assert stops(acting("alibaba"), "alibaba", tagged("alibaba", "team", "research"))
    assert not stops(acting("alibaba"), "alibaba", tagged("alibaba", key, "whatever"))


@pytest.mark.parametrize("key", SPELLINGS)
def test_tencent_denies_it_for_what_such_tags_usually_say(key: str) -> None:
    """CAM compares a tag with its value: one that says something else is left to Costguard's own rails."""
    assert not stops(acting("tencent"), "tencent", tagged("tencent", key, "true"))
    assert stops(acting("tencent"), "tencent", tagged("tencent", key, "for the demo on Friday"))


@pytest.mark.parametrize(
    "context",
    [
        {"ec2:InstanceMarketType": ("spot",)},
        {"ec2:ManagedResourceOperator": ("emr",)},
        {"aws:ResourceTag/aws:autoscaling:groupName": ("workers",)},
        {"aws:ResourceTag/eks:cluster-name": ("prod",)},
    ],
)
def test_aws_denies_spot_and_what_others_operate(context: dict[str, tuple[str, ...]]) -> None:
    assert not stops(acting("aws"), "aws", context)


def test_spot_may_be_ended_only_where_it_is_asked_for_and_is_never_stopped() -> None:
    spot = {"ec2:InstanceMarketType": ("spot",)}
    asked = acting("aws", Narrowing(spot_may_end=True))
    end = Wish(("ec2:TerminateInstances",), (MACHINE["aws"],), spot)
    assert asked.allows(end)
    assert not acting("aws").allows(end)
    assert not stops(asked, "aws", spot)


@pytest.mark.parametrize("call", ["CreateSnapshot", "CreateSnapshots"])
def test_tags_are_set_on_snapshots_while_they_are_made_and_on_nothing_else(call: str) -> None:
    snapshot = "arn:aws:ec2:us-east-1::snapshot/*"
    made = {"ec2:CreateAction": (call,)}
    assert acting("aws").allows(Wish(("ec2:CreateTags",), (snapshot,), made))
    assert not acting("aws").allows(Wish(("ec2:CreateTags",), (snapshot,)))
    assert not acting("aws").allows(Wish(("ec2:CreateTags",), (MACHINE["aws"],), made))


def test_a_set_of_copies_is_asked_of_its_machine_which_tags_may_bind() -> None:
    """Of machine, volumes and snapshots each (service authorization reference); volumes need not have its tags."""
    resources = (MACHINE["aws"], "arn:aws:ec2:us-east-1:111122223333:volume/vol-1", "arn:aws:ec2:us-east-1::snapshot/*")
    bound = acting("aws", Narrowing(tags={"team": ("research",)}))
    for resource in resources:
        assert acting("aws").allows(Wish(("ec2:CreateSnapshots",), (resource,)))
    assert bound.allows(Wish(("ec2:CreateSnapshots",), resources, {"aws:ResourceTag/team": ("research",)}))
    assert not bound.allows(Wish(("ec2:CreateSnapshots",), resources, {"aws:ResourceTag/team": ("other",)}))


def test_only_the_freezing_policy_is_attached() -> None:
    """Of an organisation's, those whose ids are given: Organizations chooses them, so nobody can know them before."""
    documents = aws.documents(Narrowing(freezing_policies=("p-7f3k2m9q", "p-0c4d8e1a")))
    role = Authority([documents["freeze"], documents["freeze-organisation"], documents["deny"]])
    group = ("arn:aws:iam::111122223333:group/gpu-users",)
    named = "arn:aws:iam::111122223333:policy"
    theirs, ours = ({"iam:PolicyARN": (f"{named}/{one}",)} for one in ("Admin", "costguard-freeze"))
    assert role.allows(Wish(("iam:AttachGroupPolicy",), group, ours))
    assert not role.allows(Wish(("iam:AttachGroupPolicy",), group, theirs))
    ids = {"p-7f3k2m9q": True, "p-0c4d8e1a": True, "p-FullAWSAccess": False}
    assert {one: role.allows(_attaching(one)) for one in ids} == ids


def test_no_policy_of_an_organisation_is_exempt_from_the_denial_before_one_is_named() -> None:
    """A made-up id in a document could be somebody's: none stands there."""
    for made in (aws.documents(), aws.documents(Narrowing(freezing_policies=()))):
        assert "/p-" not in json.dumps([made["deny"], made["freeze-organisation"]])
        broad = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        assert not Authority([broad, made["deny"]]).allows(_attaching("p-7f3k2m9q"))


def _attaching(policy: str) -> Wish:
    base = "arn:aws:organizations::111122223333"
    named = f"{base}:policy/o-a1b2c3d4e5/service_control_policy/{policy}"
    return Wish(("organizations:AttachPolicy",), (named, f"{base}:account/o-a1b2c3d4e5/444455556666"))


def test_one_pattern_enters_every_account_of_an_organisation_and_no_other() -> None:
    role = Authority([aws.documents(Narrowing(organisation="o-a1b2c3d4e5", member_role="guard"))["members"]])

    def enters(organisation: str, name: str = "guard") -> bool:
        context = {"aws:ResourceOrgID": (organisation,)} if organisation else {}
        return role.allows(Wish(("sts:AssumeRole",), (f"arn:aws:iam::444455556666:role/{name}",), context))

    assert enters("o-a1b2c3d4e5")
    assert not enters("o-z9y8x7w6v5")
    assert not enters("")  # an account of no organisation: the key is absent
    assert not enters("o-a1b2c3d4e5", "Admin")
    assert characters(aws.documents(Narrowing(organisation="o-" + "a" * 32))["members"]) < MOST_CHARACTERS


@pytest.mark.parametrize(
    ("keys", "may"),
    [((KEEP_TAG,), True), (("do-not-stop",), False), ((KEEP_TAG, "do-not-stop"), False), ((), False)],
)
def test_of_machines_aws_lets_no_tag_but_a_keep_be_written(
    keys: tuple[str, ...],
    may: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    documents = aws.documents()
    role = Authority([documents["keep_tag"], documents["deny"]])
    context = {"aws:TagKeys": keys} if keys else {}
    machine, copy = (f"arn:aws:ec2:us-east-1:111122223333:{kind}/x" for kind in ("instance", "volume"))
    assert role.allows(Wish(("ec2:CreateTags",), (machine,), context)) is may
    assert not role.allows(Wish(("ec2:CreateTags",), (copy,), context))
    anything = Authority([{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}, documents["deny"]])
    assert anything.allows(Wish(("ec2:CreateTags",), (machine,), context)) is may
    assert not anything.allows(Wish(("ec2:DeleteTags",), (machine,), context))


def test_on_alibaba_cloud_a_tag_is_written_with_a_keep_alone() -> None:
    role, machine = Authority([alibaba.documents()["keep_tag"]]), ("acs:ecs:cn-beijing:1:instance/i-1",)
    assert role.allows(Wish(("ecs:TagResources",), machine, {f"acs:RequestTag/{KEEP_TAG}": ("2026-12-01",)}))
    assert not role.allows(Wish(("ecs:TagResources",), machine, {"acs:RequestTag/do-not-stop": ("no",)}))
    assert not role.allows(Wish(("ecs:UntagResources",), machine))


def test_successors_are_made_and_tried_and_nothing_else_is_decrypted() -> None:
    role, key = Authority([aws.documents()["succeed"]]), ("arn:aws:kms:us-east-1:111122223333:key/k",)
    assert role.allows(Wish(("kms:Decrypt",), key, {"kms:EncryptionContext:costguard-canary": ("alias-move",)}))
    assert not role.allows(Wish(("kms:Decrypt",), key))
    made = {"kms:KeyOrigin": ("AWS_KMS",), "kms:MultiRegion": ("false",)}
    assert not role.allows(Wish(("kms:CreateKey",), ("*",), made))
    assert role.allows(Wish(("kms:CreateKey",), ("*",), {**made, "aws:RequestTag/costguard-successor-of": ("k",)}))


# narrower


@pytest.mark.parametrize("cloud", MADE)
def test_a_tag_narrows_what_may_be_stopped(cloud: str) -> None:
    narrowed = acting(cloud, Narrowing(tags={"team": ("research", "nlp")}))
    assert stops(narrowed, cloud, tagged(cloud, "team", "nlp"))
    assert not stops(narrowed, cloud, tagged(cloud, "team", "games"))
    assert not stops(narrowed, cloud)


@pytest.mark.parametrize("cloud", MADE)
def test_a_region_narrows_where_something_is_done(cloud: str) -> None:
    there = {"aws": "eu-west-1", "alibaba": "cn-beijing", "tencent": "ap-shanghai"}[cloud]
    narrowed = acting(cloud, Narrowing(regions=(there,)))
    assert not stops(narrowed, cloud, {"aws:RequestedRegion": ("us-east-1",)})
    elsewhere = Wish((STOP[cloud],), (_moved(MACHINE[cloud], there),), {"aws:RequestedRegion": (there,)})
    assert narrowed.allows(elsewhere)


def test_a_tag_of_the_house_protects_as_well() -> None:
    assert not stops(acting("aws", Narrowing(kept_tags=("hands-off",))), "aws", tagged("aws", "Hands_Off"))


def test_names_and_accounts_are_put_in() -> None:
    narrow = Narrowing(name="gpus", member_role="reader", account="100012345678")
    assert "table/gpus*" in json.dumps(aws.documents(narrow)["ledger"])
    assert "role/reader" in json.dumps(aws.documents(narrow)["members"])
    assert "qcs::cvm::uin/100012345678:instance/*" in json.dumps(tencent.documents(narrow)["act-idle_gpu"])
    assert "qcs::cvm:::instance/*" in json.dumps(tencent.documents()["act-idle_gpu"])


def test_a_purpose_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected one of scan-idle_gpu"):
        purpose_named("admin")


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"DateLessThan": {"aws:CurrentTime": "x"}}},
        {"Effect": "Allow", "NotAction": "iam:*", "Action": "*", "Resource": "*"},
        {"Effect": "Maybe", "Action": "*", "Resource": "*"},
    ],
)
def test_what_the_evaluator_does_not_understand_is_never_allowed(statement: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="understood"):
        Authority([{"Statement": [statement]}])


def _allows(statement: Mapping[str, Any]) -> bool:
    return str(statement.get("Effect") or statement["effect"]).lower() == "allow"


def _listed(statement: Mapping[str, Any], what: str) -> list[str]:
    found = statement.get(what.capitalize()) or statement[what]
    return [found] if isinstance(found, str) else list(found)


def _some(resource: str) -> str:
    """One of those that a pattern names; of CAM's empty parts any."""
    if resource.startswith("qcs"):
        resource = resource.replace(":::", ":any:any:")
    return resource if resource == "*" else resource.replace("*", "a1")


def _met(statement: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A request that meets the conditions of a statement."""
    for operator, keys in (statement.get("Condition") or statement.get("condition") or {}).items():
        for key, wanted in keys.items():
            first = wanted if isinstance(wanted, str) else wanted[0]
            if (operator, first) == ("Null", "true") or operator == "StringNotEquals":
                continue  # met by a request that tells nothing of the key
            yield key, ("a",) if operator == "Null" else (first.replace("*", "a1"),)


def _moved(resource: str, region: str) -> str:
    for here in ("us-east-1", "cn-hangzhou", "ap-guangzhou"):
        resource = resource.replace(here, region)
    return resource
