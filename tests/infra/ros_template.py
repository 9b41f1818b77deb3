"""`python -m tests.infra.ros_template` writes infra/alibaba/member/template.yaml: the member roles for ROS.

Resource Orchestration Service reads no other files, so that the policies stand in it; the check compares. What it
takes: "ALIYUN::RAM::Role" (28 October 2024), "ALIYUN::RAM::ManagedPolicy" (6 July 2023) and "Conditions" of its
reference. A policy names its roles, and not a role its policies: one that is not wanted then leaves no trace.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.infra.aws_template import each_of, grants, identifier, is_about_the_account, needed

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "infra/alibaba"
TEMPLATE = _FOLDER / "member/template.yaml"
_MOST_POLICIES = 10  # of one's own that a role takes (RAM, "Limitations")

_HEAD = """\
# Made by `python -m tests.infra.ros_template` from ../policies and functions/*/function.yaml; change those.
ROSTemplateFormatVersion: "2015-09-01"
Description: The roles by which Costguard enters this account. Reading; with Acting, what it does as well.
"""
_CHOICE = {"Type": "String", "AllowedValues": ["false", "true"], "Default": "false"}


def template() -> str:
    """The whole text: YAML, of which each resource is written as JSON."""
    return _HEAD + "".join(f"\n{name}:\n{_lines(part)}" for name, part in _parts().items())


def wrong_template() -> Iterator[str]:
    """Where the file is not what it should be."""
    if not TEMPLATE.is_file() or TEMPLATE.read_text("utf-8") != template():
        yield "infra/alibaba/member/template.yaml is not of today: python -m tests.infra.ros_template"
    for role, count in Counter(
        attached["Fn::GetAtt"][0]
        for one in _parts()["Resources"].values()
        for attached in one["Properties"].get("Roles", ())
    ).items():
        if count > _MOST_POLICIES:
            yield f"infra/alibaba/member/template.yaml: {role} has {count} policies; a role takes {_MOST_POLICIES}"


def _parts() -> Mapping[str, Mapping[str, Any]]:
    entered = {name: policies for name, policies in sorted(needed().items()) if "members" in policies}
    there = {path.stem for path in (_FOLDER / "policies").glob("*.json")}
    reading = {name: [one for one in each["always"] if is_about_the_account(one)] for name, each in entered.items()}
    acting = {name: [one for one in each.get("enforcing", []) if one in there] for name, each in entered.items()}
    given = [one for one in grants(_FOLDER) if one in there]
    asked = {name: [one for one in given if one in each.get("asked", [])] for name, each in entered.items()}
    conditions = {one: f"Acts{identifier('', one)}" for one in each_of(asked)} | dict.fromkeys(each_of(acting), "Acts")
    resources = {identifier("Role", name): _role(name) for name in entered}
    for kind in (reading, acting, asked):
        for purpose in each_of(kind):
            roles = [identifier("Role", name) for name in entered if purpose in kind[name]]
            resources[identifier("Policy", purpose)] = _policy(purpose, conditions.get(purpose, ""), roles)
    return {
        "Parameters": _parameters(each_of(asked)),
        "Conditions": {
            "Acts": {"Fn::Equals": [{"Ref": "Acting"}, "true"]},
            **{
                conditions[one]: {"Fn::And": ["Acts", {"Fn::Equals": [{"Ref": identifier("", one)}, "true"]}]}
                for one in each_of(asked)
            },
        },
        "Resources": resources,
    }


def _parameters(asked: list[str]) -> dict[str, Any]:
    def text(description: str, pattern: str, default: str = "") -> dict[str, Any]:
        said = {"Type": "String", "Description": description, "AllowedPattern": pattern}
        return {**said, "Default": default} if default else said

    return {
        "HubAccount": text("The account that Costguard runs in", "^[0-9]{10,20}$"),
        "ExternalId": text(
            "What the deployment sends as COSTGUARD_ALIBABA_EXTERNAL_ID", "^[A-Za-z0-9+=,.@:/_-]{2,128}$"
        ),
        "Name": text(
            "The deployment's name, with which its functions' roles begin",
            "^[a-z][a-z0-9-]{1,18}[a-z0-9]$",
            "costguard",
        ),
        "MemberRole": text(
            "What the roles here are named, before a hyphen and the function",
            "^[A-Za-z0-9.-]{1,48}$",
            "costguard-member",
        ),
        "Acting": {**_CHOICE, "Description": "Whether it may act here"},
        **{
            identifier("", one): {
                **_CHOICE,
                "Description": f"Whether it may do what only some policies ask for, where Acting: {one}",
            }
            for one in asked
        },
    }


def _policy(purpose: str, condition: str, roles: list[str]) -> dict[str, Any]:
    document = json.loads((_FOLDER / "policies" / f"{purpose}.json").read_text("utf-8"))
    when = {"Condition": condition} if condition else {}
    return {
        "Type": "ALIYUN::RAM::ManagedPolicy",
        **when,
        "Properties": {
            "PolicyName": {"Fn::Sub": f"${{MemberRole}}-{_dashed(purpose)}"},
            "Description": f"Costguard: {purpose}",
            "PolicyDocumentUnchecked": document,
            "Roles": [{"Fn::GetAtt": [role, "RoleName"]} for role in roles],
        },
    }


def _role(function: str) -> dict[str, Any]:
    hub = f"acs:ram::${{HubAccount}}:role/${{Name}}-{_dashed(function)}"
    return {
        "Type": "ALIYUN::RAM::Role",
        "Properties": {
            "RoleName": {"Fn::Sub": f"${{MemberRole}}-{_dashed(function)}"},
            "Description": {"Fn::Sub": f"Costguard's {function} in account ${{HubAccount}} enters by it"},
            "MaxSessionDuration": 3600,
            "AssumeRolePolicyDocument": {
                "Version": "1",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"RAM": [{"Fn::Sub": hub}]},
                        "Action": "sts:AssumeRole",
                        "Condition": {"StringEquals": {"sts:ExternalId": {"Ref": "ExternalId"}}},
                    }
                ],
            },
        },
    }


def _dashed(name: str) -> str:
    return name.replace("_", "-")  # RAM's names have no underscore


def _lines(part: Mapping[str, Any]) -> str:
    return "".join(f"  {name}: {json.dumps(one, indent=2)}".replace("\n", "\n  ") + "\n" for name, one in part.items())


if __name__ == "__main__":
    TEMPLATE.write_text(template(), "utf-8")
    sys.stdout.write(f"{TEMPLATE.relative_to(_ROOT)}: {len(template().encode()):,} bytes\n")
