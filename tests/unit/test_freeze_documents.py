"""The policies people are shown for a launch freeze deny what they say, and roles may do no more than they need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.refs import CLOUDS, provider_of
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG
from costguard.providers.alibaba.iam import freeze as alibaba
from costguard.providers.alibaba.iam.permissions import REACH as ALIBABA
from costguard.providers.aws.compute.instance_types import names_accelerator
from costguard.providers.aws.iam import freeze as aws
from costguard.providers.aws.iam.permissions import REACH as AWS
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.iam import freeze as tencent
from costguard.providers.tencent.iam.permissions import REACH as TENCENT
from costguard.report.words.sentences import Language, phrase

DOCUMENTS: Mapping[str, Any] = {"aws": aws, "alibaba": alibaba, "tencent": tencent}
OPERATIONS = {"aws": AWS[Purpose.FREEZE], "alibaba": ALIBABA[Purpose.FREEZE], "tencent": TENCENT[Purpose.FREEZE]}
LONGEST = {"aws": 5_120, "alibaba": 2_048, "tencent": 4_096}  # of the policy kind with the shortest limit
FREEZES = [
    LaunchFreeze("a", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "111122223333"),
    LaunchFreeze("b", "aws-cn", FreezeVia.GROUP, "arn:aws-cn:iam::111122223333:policy/frost", "gpu-users"),
    LaunchFreeze("c", "alibaba", FreezeVia.ORGANISATION, "cp-frost", "fd-Ab12Cd34Ef"),
    LaunchFreeze("d", "alibaba", FreezeVia.GROUP, "frost", "gpu-users", "1234567890123456"),
    LaunchFreeze("e", "tencent", FreezeVia.ORGANISATION, "77", "member/100000000001"),
    LaunchFreeze("f", "tencent-intl", FreezeVia.GROUP, "77", "98"),
]


def lowered(document: Any) -> Any:
    """Keys in lower case: CAM writes them so."""
    if isinstance(document, dict):
        return {key.lower() if key[0].isupper() else key: lowered(value) for key, value in document.items()}
    return [lowered(each) for each in document] if isinstance(document, list) else document


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def denies(document: dict[str, Any], action: str, keys: Mapping[str, str], tags: Mapping[str, str]) -> bool:
    """Whether a launch is denied, by the meaning that the vendors' documents give these operators."""
    for statement in lowered(document)["statement"]:
        if action not in listed(statement["action"]):
            continue
        held = [
            _holds(operator, key, [str(value) for value in listed(values)], keys, tags)
            for operator, tests in statement["condition"].items()
            for key, values in tests.items()
        ]
        if all(held):
            return True
    return False


def _holds(operator: str, key: str, values: list[str], keys: Mapping[str, str], tags: Mapping[str, str]) -> bool:
    if operator in {"stringlike", "string_like"}:
        return any(fnmatchcase(keys.get(key, ""), value) for value in values)
    if operator == "stringnotequals":  # holds where the key is not there
        return tags.get(key.partition("/")[2], "") not in values
    assert operator == "for_all_value:string_not_equal"
    return all(f"{name}&{value}" not in values for name, value in tags.items())


LAUNCHES = {
    "aws": ("ec2:RunInstances", "ec2:InstanceType", ["p5.48xlarge", "g6e.xlarge", "gr6.4xlarge", "trn2.48xlarge"]),
    "alibaba": (
        "ecs:RunInstances",
        "ecs:InstanceType",
        ["ecs.gn7i-c16g1.4xlarge", "ecs.ebmgn8v.48xlarge", "ecs.vgn6i"],
    ),
    "tencent": ("cvm:RunInstances", "cvm:instance_type", ["GN10Xp.2XLARGE40", "PNV4.7XLARGE116", "GT4.4XLARGE96"]),
}
PLAIN = {
    "aws": ["m7i.large", "c6g.medium", "r6gd.large", "i4g.large", "t4g.nano", "x2gd.large", "hpc7g.4xlarge"],
    "alibaba": ["ecs.g7.large", "ecs.c7.large", "ecs.hfg7.large", "ecs.sn1ne.large", "ecs.ebmg7.32xlarge"],
    "tencent": ["S5.LARGE8", "SA5.LARGE8", "M5.LARGE32", "IT5.4XLARGE64", "C6.LARGE8"],
}


@pytest.mark.parametrize("provider", sorted(DOCUMENTS))
def test_machines_with_cards_are_denied_unless_approved_and_others_never(provider: str) -> None:
    action, key, types = LAUNCHES[provider]
    document = DOCUMENTS[provider].denying_policy(provider)
    for instance_type in types:
        keys = {key: instance_type}
        assert denies(document, action, keys, {})
        assert denies(document, action, keys, {"team": "research", APPROVED_TAG: "no"})
        assert not denies(document, action, keys, {"team": "research", APPROVED_TAG: APPROVED})
    for instance_type in PLAIN[provider]:
        assert not denies(document, action, {key: instance_type}, {})


def test_every_type_that_aws_lists_with_a_card_is_denied_and_no_other() -> None:
    document = aws.denying_policy("aws")
    denied = {name for name in INSTANCE_TYPES if denies(document, "ec2:RunInstances", {"ec2:InstanceType": name}, {})}
    cards = ("GpuInfo", "InferenceAcceleratorInfo", "NeuronInfo")
    carrying = {name for name, described in INSTANCE_TYPES.items() if any(each in described for each in cards)}
    assert carrying <= denied
    assert all(map(names_accelerator, denied))


def test_alibaba_cloud_is_asked_by_type_and_by_family() -> None:
    document = alibaba.denying_policy("alibaba")
    assert denies(document, "ecs:CreateInstance", {"ecs:InstanceTypeFamily": "ecs.gn7i"}, {})
    assert not denies(document, "ecs:RunInstances", {}, {}), "where neither is told nothing is denied"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_denial_only_denies_and_fits_every_kind_of_policy(cloud: str) -> None:
    document = DOCUMENTS[provider_of(cloud)].denying_policy(cloud)
    assert {each["effect"].lower() for each in lowered(document)["statement"]} == {"deny"}
    assert len(json.dumps(document, separators=(",", ":"))) <= LONGEST[provider_of(cloud)]
    if cloud.startswith("aws"):
        assert document["Statement"][0]["Resource"] == f"arn:{cloud}:ec2:*:*:instance/*"


@pytest.mark.parametrize("freeze", FREEZES, ids=lambda freeze: f"{freeze.cloud}-{freeze.via.value}")
def test_a_role_may_do_what_its_session_does_and_nothing_else(freeze: LaunchFreeze) -> None:
    provider = provider_of(freeze.cloud)
    statements = lowered(DOCUMENTS[provider].role_policy(freeze))["statement"]
    granted = {action for each in statements for action in listed(each["action"])}
    of_group = ("iam:", "ram:", "cam:")
    known = {name for one in OPERATIONS[provider].values() for name in one.permissions if not name.startswith("sts:")}
    wanted = {name for name in known if name.startswith(of_group) is (freeze.via is FreezeVia.GROUP)}
    assert granted == wanted
    assert {each["effect"].lower() for each in statements} == {"allow"}


def test_on_aws_and_on_groups_of_alibaba_cloud_a_role_is_held_to_one_policy_and_target() -> None:
    organisation, group, _, ram, *_ = FREEZES
    attach = aws.role_policy(organisation)["Statement"][1]
    assert attach["Resource"] == [
        "arn:aws:organizations::*:policy/o-*/service_control_policy/p-a1b2c3d4",
        "arn:aws:organizations::*:account/o-*/111122223333",
    ]
    attach = aws.role_policy(group)["Statement"][1]
    assert attach["Condition"] == {"ArnEquals": {"iam:PolicyARN": group.policy}}
    assert attach["Resource"][0] == "arn:aws-cn:iam::111122223333:group/gpu-users"
    attach = alibaba.role_policy(ram)["Statement"][1]
    assert attach["Resource"] == [
        "acs:ram:*:1234567890123456:group/gpu-users",
        "acs:ram:*:1234567890123456:policy/frost",
    ]
    for target, kind in (("r-ab12", "root"), ("ou-ab12-34cd56ef", "ou")):
        freeze = LaunchFreeze("a", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", target)
        assert aws.role_policy(freeze)["Statement"][0]["Resource"] == f"arn:aws:organizations::*:{kind}/o-*/{target}"


@pytest.mark.parametrize("freeze", FREEZES, ids=lambda freeze: f"{freeze.cloud}-{freeze.via.value}")
def test_where_a_role_cannot_be_narrowed_that_is_said(freeze: LaunchFreeze) -> None:
    documents = DOCUMENTS[provider_of(freeze.cloud)]
    statements = lowered(documents.role_policy(freeze))["statement"]
    is_wide = any("*" in listed(each["resource"]) for each in statements)
    assert bool(documents.role_limits(freeze)) is is_wide


@pytest.mark.parametrize("language", list(Language))
def test_every_limit_has_words(language: Language) -> None:
    for documents in DOCUMENTS.values():
        for limit in (*documents.LIMITS, *(key for freeze in FREEZES for key in documents.role_limits(freeze))):
            assert phrase(f"freeze_limit_{limit}", language)
