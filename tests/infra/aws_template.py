"""`python -m tests.infra.aws_template` writes infra/aws/member/template.yaml, which CloudFormation can read alone.

CloudFormation reads no other files, so that the policies stand in it; the check compares.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "infra/aws"
TEMPLATE = _FOLDER / "member/template.yaml"
_LONGEST = 51_200  # bytes of a template given as it is (CloudFormation quotas)

_HEAD = """\
# Made by `python -m tests.infra.aws_template` from ../policies and functions/*/function.yaml; change those.
AWSTemplateFormatVersion: "2010-09-09"
Description: The roles by which Costguard enters this account. Reading; with Acting, what it does as well.

Parameters:
  HubAccount:
    Type: String
    Description: The account that Costguard runs in
    AllowedPattern: "[0-9]{12}"
  ExternalId:
    Type: String
    Description: What the deployment sends as COSTGUARD_AWS_EXTERNAL_ID
    AllowedPattern: "[A-Za-z0-9+=,.@:/_-]{2,128}"
  Name:
    Type: String
    Description: The deployment's name, with which its functions' roles begin
    Default: costguard
  MemberRole:
    Type: String
    Description: What the roles here are named, before a hyphen and the function
    Default: costguard-member
    AllowedPattern: "[A-Za-z0-9+=,.@_-]{1,48}"
  Acting:
    Type: String
    Description: Whether it may act here
    AllowedValues: ["false", "true"]
    Default: "false"
{asked}
Conditions:
  Acts: !Equals [!Ref Acting, "true"]
{conditions}
Resources:
"""

_ASKED = """\
  {id}:
    Type: String
    Description: "Whether it may do what only some policies ask for, where Acting: {purpose}"
    AllowedValues: ["false", "true"]
    Default: "false"
"""


def template() -> str:
    """The whole text."""
    entered = {name: policies for name, policies in sorted(needed().items()) if "members" in policies}
    reading = {name: [one for one in each["always"] if is_about_the_account(one)] for name, each in entered.items()}
    acting = {name: list(each.get("enforcing", [])) for name, each in entered.items()}
    asked = {name: [one for one in grants() if one in each.get("asked", [])] for name, each in entered.items()}
    parts = [
        *(_policy(purpose) for purpose in each_of(reading)),
        *(_policy(purpose, "Acts") for purpose in each_of(acting)),
        *(_policy(purpose, _asking(purpose)) for purpose in each_of(asked)),
        *(_role(name, reading[name], acting[name], asked[name]) for name in entered),
    ]
    head = _HEAD.replace(
        "{asked}", "".join(_ASKED.format(id=identifier("", one), purpose=one) for one in each_of(asked))
    )
    return head.replace("{conditions}", "".join(_condition(one) for one in each_of(asked))) + "\n".join(parts)


def wrong_template() -> Iterator[str]:
    """Where the file is not what it should be."""
    wanted = template()
    if not TEMPLATE.is_file() or TEMPLATE.read_text("utf-8") != wanted:
        yield "infra/aws/member/template.yaml is not of today: python -m tests.infra.aws_template"
    linted = subprocess.run(  # noqa: S603 - cfn-lint, which moto brings along
        [sys.executable, "-c", "from cfnlint.runner import main; main()", str(TEMPLATE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if linted.returncode:
        yield f"cfn-lint of infra/aws/member/template.yaml:\n{linted.stdout}"
    if len(wanted.encode()) > _LONGEST:
        yield f"infra/aws/member/template.yaml has {len(wanted.encode()):,} bytes; CloudFormation takes {_LONGEST:,}"


def needed() -> Mapping[str, Any]:
    """Function → the purposes of its roles, as its function.yaml says."""
    found = sorted((_ROOT / "functions").glob("*/function.yaml"))
    return {path.parent.name: YAML(typ="safe").load(path.read_text("utf-8"))["needs"]["policies"] for path in found}


def grants(folder: Path = _FOLDER) -> list[str]:
    """What the module's variable `grants` takes, but for freezes of the organisation.

    One account attaches those, by the id of a policy, and the management account takes no stack of a set.
    """
    said = re.search(r"setsubtract\(var\.grants, \[([^\]]+)\]\)", (folder / "member/variables.tf").read_text("utf-8"))
    if said is None:
        message = f"{folder}/member/variables.tf does not say what grants takes"
        raise LookupError(message)
    return [purpose for purpose in re.findall(r'"([^"]+)"', said[1]) if purpose != "freeze-organisation"]


def each_of(purposes: Mapping[str, list[str]]) -> list[str]:
    """Every purpose once."""
    return sorted({purpose for listed in purposes.values() for purpose in listed})


def _asking(purpose: str) -> str:
    return f"Acts{identifier('', purpose)}"


def _condition(purpose: str) -> str:
    return f'  {_asking(purpose)}: !And [!Condition Acts, !Equals [!Ref {identifier("", purpose)}, "true"]]\n'


def is_about_the_account(purpose: str) -> bool:
    """Ledger, secrets and files are the deployment's own."""
    return purpose.startswith("scan-") or purpose == "deny"


def _policy(purpose: str, condition: str = "") -> str:
    document = json.loads((_FOLDER / "policies" / f"{purpose}.json").read_text("utf-8"))
    text = json.dumps(document, indent=2).replace("\n", "\n        ")
    text = re.sub(r'"arn:aws:([^"]*)"', r'!Sub "arn:${AWS::Partition}:\1"', text)
    condition = f"    Condition: {condition}\n" if condition else ""
    return (
        f"  {identifier('Policy', purpose)}:\n    Type: AWS::IAM::ManagedPolicy\n{condition}    Properties:\n"
        f'      ManagedPolicyName: !Sub "${{MemberRole}}-{purpose}"\n      Description: "Costguard: {purpose}"\n'
        f"      PolicyDocument:\n        {text}\n"
    )


def _role(function: str, reading: list[str], acting: list[str], asked: list[str]) -> str:
    lines = [f"        - !Ref {identifier('Policy', purpose)}" for purpose in reading]
    lines += [f"        - !If [Acts, !Ref {identifier('Policy', purpose)}, !Ref AWS::NoValue]" for purpose in acting]
    lines += [
        f"        - !If [{_asking(purpose)}, !Ref {identifier('Policy', purpose)}, !Ref AWS::NoValue]"
        for purpose in asked
    ]
    attached = "\n".join(lines)
    return f"""\
  {identifier("Role", function)}:
    Type: AWS::IAM::Role
    Properties:
      RoleName: !Sub "${{MemberRole}}-{function}"
      Description: !Sub "Costguard's {function} in account ${{HubAccount}} enters by it"
      MaxSessionDuration: 3600
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Principal:
              AWS: !Sub "arn:${{AWS::Partition}}:iam::${{HubAccount}}:root"
            Action: sts:AssumeRole
            Condition:
              StringEquals:
                sts:ExternalId: !Ref ExternalId
              ArnEquals:
                aws:PrincipalArn: !Sub "arn:${{AWS::Partition}}:iam::${{HubAccount}}:role/${{Name}}-{function}"
      ManagedPolicyArns:
{attached}
      Tags:
        - Key: app
          Value: costguard
"""


def identifier(kind: str, name: str) -> str:
    """What a template calls it: letters and digits."""
    return kind + "".join(part.capitalize() for part in re.split("[-_]", name))


if __name__ == "__main__":
    TEMPLATE.write_text(template(), "utf-8")
    sys.stdout.write(f"{TEMPLATE.relative_to(_ROOT)}: {len(template().encode()):,} bytes\n")
