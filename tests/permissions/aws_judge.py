"""A door before moto that lets through what policy documents allow: who asks what, on what, and under which conditions.

moto's own enforcement looks at actions alone (no ARN of EC2's, no tag), and parts of the sandbox are not moto's. What a
request takes is written here from AWS's Service Authorization Reference, and not from the program's tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from moto.iam import models as iam
from moto.organizations.models import organizations_backends

from cloudstand.wire.authority import ANY, Authority, Wish
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing, Keeper

Parameters = Mapping[str, Any]

FREE = frozenset({"sts:GetCallerIdentity"})
_OTHERWISE = {  # actions of IAM that are not called as the operation
    "budgets:DescribeBudgets": ("budgets:ViewBudget",),
    "budgets:DescribeBudgetNotificationsForAccount": ("budgets:ViewBudget",),
    "ses:SendEmail": ("ses:SendEmail", "ses:SendRawEmail"),  # by what the mail is made of
}
_MACHINES = frozenset({"StopInstances", "StartInstances", "TerminateInstances", "ModifyInstanceMetadataOptions"})
_HOP = frozenset({"connection", "content-length", "transfer-encoding", "content-type", "date", "server"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, taken apart."""

    service: str
    action: str
    account: str
    region: str
    given: Parameters

    def arn(self, kind: str, name: str, service: str = "") -> str:
        """Something of the caller's own account and region."""
        return f"arn:aws:{service or self.service}:{self.region}:{self.account}:{kind}/{name}"


class AwsJudge:
    """Serves at `url` what the sandbox serves at `behind`, to whom the documents allow it.

    Attributes:
        authorities: what the identities of an account may do; an account without a row may do everything.
        asked: every operation that was let through, by account.
    """

    def __init__(self, behind: str, door: WorldDoor) -> None:
        self._behind = urlsplit(behind).netloc
        self._door = door
        self.authorities: dict[str, Authority] = {}
        self.asked: list[tuple[str, str]] = []
        self._server = WireServer(self._answer)
        self._server.now = door.clock.now

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    def _answer(self, request: Request) -> Answer:
        asked = _taken_apart(request)
        authority = self.authorities.get(asked.account)
        name = f"{asked.service}:{asked.action}"
        if authority is not None and name not in FREE:
            with self._door.opened() as world:
                may = authority.allows(*wishes(asked, world))
            if not may:
                return _denied(asked, request)
        self.asked.append((asked.account, name))
        return self._passed_on(request)

    def _passed_on(self, request: Request) -> Answer:
        connection = HTTPConnection(self._behind, timeout=60)
        try:
            target = request.path + (f"?{request.query}" if request.query else "")
            connection.request(request.method, target, request.body, dict(request.headers))
            response = connection.getresponse()
            body = response.read()
            kept = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
            return Answer(response.status, body, response.getheader("content-type") or "text/xml", kept)
        finally:
            connection.close()


def wishes(asked: Asked, world: World) -> Sequence[Wish]:
    """All that has to be allowed for it."""
    here = {"aws:RequestedRegion": (asked.region,)}
    return [Wish(one.actions, one.resources, {**here, **one.context}) for one in _wishes(asked, world)]


def _wishes(asked: Asked, world: World) -> Iterator[Wish]:
    name = f"{asked.service}:{asked.action}"
    several = _SEVERAL.get(asked.service)
    if several is not None:
        yield from several(asked)
    elif asked.service == "ec2" and not asked.action.startswith(("Describe", "Get")):
        if asked.action == "CreateSnapshots":
            yield from _of_sets(asked, world)
        else:
            yield from _of_machines(asked, world) if asked.action in _MACHINES else _of_ec2(asked)
    elif asked.service == "iam":
        policy = {"iam:PolicyARN": (asked.given["PolicyArn"],)} if "PolicyArn" in asked.given else {}
        yield Wish((name,), (f"arn:aws:iam::{asked.account}:group/{asked.given['GroupName']}",), policy)
    elif name == "sts:AssumeRole":
        role = str(asked.given["RoleArn"])
        yield Wish((name,), (role,), _owner(role.split(":")[4]))
    elif asked.service == "organizations" and "TargetId" in asked.given:
        yield Wish((name,), tuple(_of_organisation(asked)))
    else:
        named = _NAMED.get(name) or _NAMED.get(asked.service)
        yield Wish(_OTHERWISE.get(name, (name,)), (named(asked),) if named is not None else (ANY,))


def _owner(account: str) -> dict[str, tuple[str, ...]]:
    """Whose the resource is: its organisation is told only of an account that is in one (IAM guide, "Global keys")."""
    leader, partition = organizations_backends.master_accounts.get(account, (account, "aws"))
    organisation = organizations_backends[leader][partition].org
    told: dict[str, tuple[str, ...]] = {"aws:ResourceAccount": (account,)}
    return told if organisation is None else {**told, "aws:ResourceOrgID": (organisation.id,)}


_NAMED: Mapping[str, Callable[[Asked], str]] = {
    "ses": lambda asked: asked.arn("identity", asked.given["FromEmailAddress"]),
    "s3": lambda asked: f"arn:aws:s3:::{asked.given['path']}",
    "secretsmanager": lambda asked: (
        f"arn:aws:secretsmanager:{asked.region}:{asked.account}:secret:{asked.given['SecretId']}-a1B2c3"
    ),
    "ec2:DescribeInstanceAttribute": lambda asked: asked.arn("instance", asked.given["InstanceId"]),
    "ec2:GetManagedPrefixListEntries": lambda asked: asked.arn("prefix-list", asked.given["PrefixListId"]),
    "budgets": lambda asked: f"arn:aws:budgets::{asked.account}:budget/any",
}
"""What one request is about, by operation or by service; what is not here is about everything."""


def _of_machines(asked: Asked, world: World) -> Iterator[Wish]:
    ids = [value for key, value in asked.given.items() if key.startswith("InstanceId")]
    for native_id in ids:
        context: dict[str, tuple[str, ...]] = {}
        machine = world.machines.get(native_id)
        if machine is not None:
            context = {f"aws:ResourceTag/{key}": (value,) for key, value in machine.tags.items()}
            market = "spot" if machine.spec.billing is Billing.SPOT else "on-demand"
            context["ec2:InstanceMarketType"] = (market,)
            keeper = machine.spec.managed_by
            if keeper is not None and keeper.keeper is Keeper.CLOUD_SERVICE:
                context["ec2:ManagedResourceOperator"] = (keeper.name,)
        yield Wish((f"ec2:{asked.action}",), (asked.arn("instance", native_id),), context)


def _of_sets(asked: Asked, world: World) -> Iterator[Wish]:
    """The machine with its tags, each volume and each snapshot (service authorization reference, Amazon EC2)."""
    native_id = str(asked.given["InstanceSpecification.InstanceId"])
    machine = world.machines.get(native_id)
    tags = machine.tags if machine is not None else {}
    name, snapshot = f"ec2:{asked.action}", f"arn:aws:ec2:{asked.region}::snapshot/*"
    yield Wish(
        (name,),
        (asked.arn("instance", native_id),),
        {f"aws:ResourceTag/{key}": (value,) for key, value in tags.items()},
    )
    yield Wish((name,), (*(asked.arn("volume", each.native_id) for each in world.volumes_of(native_id)), snapshot))
    if any(key.startswith("TagSpecification") for key in asked.given):
        yield Wish(("ec2:CreateTags",), (snapshot,), {"ec2:CreateAction": (asked.action,)})


def _of_ec2(asked: Asked) -> Iterator[Wish]:
    given, name = asked.given, f"ec2:{asked.action}"
    if asked.action == "CreateSnapshot":
        # a snapshot's ARN has no account
        snapshot = f"arn:aws:ec2:{asked.region}::snapshot/*"
        yield Wish((name,), (asked.arn("volume", given["VolumeId"]), snapshot))
        if any(key.startswith("TagSpecification") for key in given):
            yield Wish(("ec2:CreateTags",), (snapshot,), {"ec2:CreateAction": ("CreateSnapshot",)})
    elif asked.action == "CreateTags":
        machines = tuple(asked.arn("instance", value) for key, value in given.items() if key.startswith("ResourceId"))
        keys = tuple(value for key, value in given.items() if key.startswith("Tag.") and key.endswith(".Key"))
        yield Wish((name,), machines, {"aws:TagKeys": keys})
    elif asked.action in {"ReleaseAddress", "DisassociateAddress", "AssociateAddress"}:
        kinds = ["elastic-ip"] if asked.action == "ReleaseAddress" else ["elastic-ip", "instance", "network-interface"]
        yield Wish((name,), tuple(asked.arn(kind, "any") for kind in kinds))
    elif asked.action in {"AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"}:
        yield Wish((name,), (asked.arn("security-group", given["GroupId"]), asked.arn("security-group-rule", "any")))
    elif asked.action == "CreateFlowLogs":
        yield Wish((name,), (asked.arn("vpc-flow-log", "any"), asked.arn("vpc", given["ResourceId.1"])))
        role = given.get("DeliverLogsPermissionArn")
        if role:
            yield Wish(("iam:PassRole",), (role,), {"iam:PassedToService": ("vpc-flow-logs.amazonaws.com",)})
        else:
            yield Wish(("logs:CreateLogDelivery",))
    elif asked.action == "DeleteFlowLogs":
        yield Wish((name,), (asked.arn("vpc-flow-log", given["FlowLogId.1"]),))
        yield Wish(("logs:DeleteLogDelivery",))
    else:
        yield Wish((name,))


def _of_keys(asked: Asked) -> Iterator[Wish]:
    given, name = asked.given, f"kms:{asked.action}"
    tags = {f"aws:RequestTag/{tag['TagKey']}": (tag["TagValue"],) for tag in given.get("Tags", ())}
    if asked.action == "CreateKey":
        origin = {"kms:KeyOrigin": (given.get("Origin", "AWS_KMS"),), "kms:MultiRegion": ("false",)}
        yield Wish((name,), (ANY,), {**tags, **origin})
        if tags:
            yield Wish(("kms:TagResource",), (asked.arn("key", "any"),), tags)
    elif asked.action == "UpdateAlias":
        alias = given["AliasName"].removeprefix("alias/")
        yield Wish((name,), (asked.arn("alias", alias), asked.arn("key", given["TargetKeyId"])))
    elif asked.action in {"ListKeys", "ListAliases"}:
        yield Wish((name,))
    else:
        sealed = given.get("EncryptionContext", {})
        context = {f"kms:EncryptionContext:{key}": (value,) for key, value in sealed.items()}
        yield Wish((name,), (asked.arn("key", "any"),), context)


def _of_organisation(asked: Asked) -> Iterator[str]:
    base, target = f"arn:aws:organizations::{asked.account}", asked.given["TargetId"]
    kind = {"r": "root", "o": "ou"}.get(target[:1], "account")
    yield f"{base}:{kind}/o-a1b2c3d4e5/{target}"
    if "PolicyId" in asked.given:
        yield f"{base}:policy/o-a1b2c3d4e5/service_control_policy/{asked.given['PolicyId']}"


def _of_items(asked: Asked) -> Iterator[Wish]:
    given = asked.given
    if asked.action == "BatchGetItem":
        yield Wish(("dynamodb:BatchGetItem",), tuple(asked.arn("table", table) for table in given["RequestItems"]))
        return
    if asked.action != "TransactWriteItems":
        yield Wish((f"dynamodb:{asked.action}",), (asked.arn("table", given["TableName"]),))
        return
    for item in given["TransactItems"]:
        for kind, what in item.items():
            one = {"ConditionCheck": "ConditionCheckItem", "Put": "PutItem"}.get(kind, f"{kind}Item")
            yield Wish((f"dynamodb:{one}",), (asked.arn("table", what["TableName"]),))


_SEVERAL: Mapping[str, Callable[[Asked], Iterator[Wish]]] = {"dynamodb": _of_items, "kms": _of_keys}


def _taken_apart(request: Request) -> Asked:
    key, region, service = "", "", ""
    for part in request.headers.get("authorization", "").replace(",", " ").split():
        if part.startswith("Credential="):
            key, _, region, service, _ = part.removeprefix("Credential=").split("/")
    service = {"monitoring": "cloudwatch"}.get(service, service)
    account = iam.get_account_id_from(key)
    if service == "s3":
        named = {"PUT": "PutObject", "GET": "GetObject"}.get(request.method, request.method)
        return Asked(service, named, account, region, {"path": unquote(request.path).lstrip("/")})
    if service == "ses":
        return Asked(service, "SendEmail", account, region, json.loads(request.body))
    target = request.headers.get("x-amz-target", "")
    if target:
        return Asked(service, target.rsplit(".", 1)[-1], account, region, json.loads(request.body or b"{}"))
    if "/operation/" in request.path:  # CloudWatch: its parameters, in CBOR, decide nothing
        return Asked(service, request.path.rsplit("/", 1)[-1], account, region, {})
    given = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    return Asked(service, given.get("Action", ""), account, region, given)


def _denied(asked: Asked, request: Request) -> Answer:
    """As each protocol refuses."""
    message = f"not authorized to perform: {asked.service}:{asked.action}"
    if asked.service == "ec2":
        text = f"<Errors><Error><Code>UnauthorizedOperation</Code><Message>{message}</Message></Error></Errors>"
        return Answer(403, f"<Response>{text}<RequestID>judge</RequestID></Response>".encode(), "text/xml")
    if asked.service in {"sts", "iam"}:
        text = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{message}</Message></Error>"
        return Answer(403, f"<ErrorResponse>{text}<RequestId>judge</RequestId></ErrorResponse>".encode(), "text/xml")
    if asked.service == "s3":
        return Answer(403, f"<Error><Code>AccessDenied</Code><Message>{message}</Message></Error>".encode(), "text/xml")
    if "/operation/" in request.path:
        said = b"\xa2" + b"".join(_cbor(text) for text in ("__type", "AccessDeniedException", "message", message))
        return Answer(403, said, "application/cbor", {"smithy-protocol": "rpc-v2-cbor"})
    body = json.dumps({"__type": "AccessDeniedException", "message": message}).encode()
    return Answer(400, body, "application/x-amz-json-1.1", {"x-amzn-errortype": "AccessDeniedException"})


def _cbor(text: str) -> bytes:
    raw = text.encode()
    return (bytes([0x60 + len(raw)]) if len(raw) < 24 else bytes([0x78, len(raw)])) + raw
