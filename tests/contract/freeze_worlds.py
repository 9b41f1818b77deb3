"""Every provider's rig for the contract suite of `FreezeControl`: a further provider adds its row to `FREEZES`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from moto.iam.models import iam_backends
from moto.organizations.models import organizations_backends
from tests.contract.alibaba_world import patient_pacer as alibaba_pacer
from tests.contract.aws_stand_in import Fault as PageOf
from tests.contract.aws_stand_in import StandIn, aws_stand_in, credentials_of, new_account, setup_client
from tests.contract.aws_stand_in import patient_pacer as aws_pacer
from tests.contract.cloud_worlds import DENIED, LOST, THROTTLED, environment_of
from tests.contract.freeze_rigs import FreezeRig, session_of
from tests.contract.tencent_world import patient_pacer as tencent_pacer
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.alibaba.iam.desk import FULL_ACCESS as FULL_ALIYUN_ACCESS
from cloudstand.aws.core.patching import applied
from cloudstand.aws.iam.policies import attaching
from cloudstand.clock import MovedClock
from cloudstand.fleets import alibaba_machine, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.tencent.iam.desk import FULL_ACCESS as FULL_QCLOUD_ACCESS
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.ports import FreezeControl
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.freeze import AlibabaFreeze
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.freeze import AwsFreeze
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.freeze import TencentFreeze

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
_ALWAYS = 1_000
ORGANISATION, GROUP = FreezeVia.ORGANISATION, FreezeVia.GROUP


class AwsRig(FreezeRig):
    """Organizations and IAM on moto. A crowd comes in pages of two, the first of which is empty, as AWS may send it."""

    cloud = "aws"
    keeps_the_attached = frozenset({GROUP})
    _ACTIONS = {  # noqa: RUF012 - never written
        "list": ("ListPoliciesForTarget", "ListAttachedGroupPolicies"),
        "attach": ("AttachPolicy", "AttachGroupPolicy"),
        "detach": ("DetachPolicy", "DetachGroupPolicy"),
    }

    def __init__(self, stand_in: StandIn, account: str, credentials: dict[str, str]) -> None:
        self.stand_in, self._opened = stand_in, ExitStack()
        self._organizations = setup_client("organizations", stand_in.url, "us-east-1", credentials)
        self._iam = setup_client("iam", stand_in.url, "us-east-1", credentials)
        self._account = account
        self._organizations.create_organization(FeatureSet="ALL")
        made = [self._organizations.create_account(Email=f"{n}@example.com", AccountName=n) for n in ("one", "two")]
        self._members = [each["CreateAccountStatus"]["AccountId"] for each in made]
        for group in ("gpu-users", "admins"):
            self._iam.create_group(GroupName=group)
        self._freezes = {
            ORGANISATION: LaunchFreeze("org", "aws", ORGANISATION, self._scp("freeze"), self._members[0]),
            GROUP: LaunchFreeze("group", "aws", GROUP, self._policy("freeze"), "gpu-users"),
        }
        self._general = AwsSession(endpoint_url=stand_in.url, pacer=aws_pacer())
        self._opened.callback(self._general.close)
        self._control = AwsFreeze(self.session("freezing"))
        stand_in.reset()

    def freeze(self, via: FreezeVia) -> LaunchFreeze:
        return self._freezes[via]

    def control(self) -> FreezeControl:
        return self._control

    def control_over(self, session: Any) -> FreezeControl:
        return AwsFreeze(session)

    def session(self, kind: str) -> Any:
        made = session_of(kind, self._general)
        self._opened.callback(made.close)
        return made

    def everything(self) -> dict[str, list[str]]:
        scps, faults = {"Filter": "SERVICE_CONTROL_POLICY"}, list(self.stand_in.faults)
        self.stand_in.faults.clear()
        found = {
            **{
                member: [
                    each["Id"]
                    for each in self._organizations.list_policies_for_target(TargetId=member, **scps)["Policies"]
                ]
                for member in self._members
            },
            **{
                group: [
                    each["PolicyArn"]
                    for each in self._iam.list_attached_group_policies(GroupName=group)["AttachedPolicies"]
                ]
                for group in ("gpu-users", "admins")
            },
        }
        self.stand_in.faults[:] = faults
        del self.stand_in.requests[-len(found) :]
        return found

    def crowd(self, freeze: LaunchFreeze) -> None:
        for number in range(3):
            name = f"theirs-{number}"
            if freeze.via is ORGANISATION:
                self._organizations.attach_policy(PolicyId=self._scp(name), TargetId=freeze.target)
            else:
                self._iam.attach_group_policy(PolicyArn=self._policy(name), GroupName=freeze.target)
        whole = self.truth(freeze)
        action = self._ACTIONS["list"][freeze.via is GROUP]
        write = _xml_page if freeze.via is GROUP else _json_page
        pages = [[], *(whole[start : start + 2] for start in range(0, len(whole), 2))]
        self.stand_in.reset()
        for number, page in enumerate(pages, start=1):
            token = f"page-{number}" if number < len(pages) else ""
            asked = f"page-{number - 1}" if number > 1 else ""
            self.stand_in.faults.append(PageOf(action, 1, canned=write(page, token), holding=asked))

    def go_wrong(self, operation: str, how: str) -> None:
        for action in self._ACTIONS[operation]:
            if how == LOST:
                self.stand_in.lose_answers(action)
            else:
                of_iam = "Group" in action
                denied = "AccessDenied" if of_iam else "AccessDeniedException"
                throttled = "Throttling" if of_iam else "TooManyRequestsException"
                code = {DENIED: denied, THROTTLED: throttled}[how]
                self.stand_in.fail(action, 403 if how == DENIED and of_iam else 400, code)

    def switch_off(self) -> None:
        self.stand_in.change_answers("ListPoliciesForTarget", lambda _: b'{"Policies": []}')

    def reset(self) -> None:
        """Past the wire: a new organisation takes a quarter of a second."""
        self.stand_in.reset()
        for member in organizations_backends[self._account]["aws"].accounts:
            member.attached_policies[:] = [each for each in member.attached_policies if each.aws_managed]
        groups = iam_backends[self._account]["global"].groups
        for group in groups.values():
            group.managed_policies.clear()

    def requests(self) -> Sequence[str]:
        ours = {action for actions in self._ACTIONS.values() for action in actions}
        return [action for action, _ in self.stand_in.requests if action in ours]

    def close(self) -> None:
        self._opened.close()
        self._organizations.close()
        self._iam.close()

    def _scp(self, name: str) -> str:
        document = json.dumps({"Version": "2012-10-17", "Statement": []})
        made = self._organizations.create_policy(
            Name=name, Type="SERVICE_CONTROL_POLICY", Content=document, Description=name
        )
        return str(made["Policy"]["PolicySummary"]["Id"])

    def _policy(self, name: str) -> str:
        statement = {"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        made = self._iam.create_policy(PolicyName=name, PolicyDocument=document)
        return str(made["Policy"]["Arn"])


def _json_page(ids: Sequence[str], token: str) -> bytes:
    return json.dumps({"Policies": [{"Id": each} for each in ids], **({"NextToken": token} if token else {})}).encode()


def _xml_page(arns: Sequence[str], marker: str) -> bytes:
    listed = "".join(f"<member><PolicyArn>{arn}</PolicyArn></member>" for arn in arns)
    more = f"<IsTruncated>true</IsTruncated><Marker>{marker}</Marker>" if marker else "<IsTruncated>false</IsTruncated>"
    told = f"<ListAttachedGroupPoliciesResult><AttachedPolicies>{listed}</AttachedPolicies>{more}"
    name = "ListAttachedGroupPoliciesResponse"
    return f"<{name}>{told}</ListAttachedGroupPoliciesResult></{name}>".encode()


class AlibabaRig(FreezeRig):
    """Resource directory and RAM of the emulator; their lists have no pages."""

    cloud = "alibaba"
    _ACTIONS = {  # noqa: RUF012 - never written
        "list": ("ListControlPolicyAttachmentsForTarget", "ListPoliciesForGroup"),
        "attach": ("AttachControlPolicy", "AttachPolicyToGroup"),
        "detach": ("DetachControlPolicy", "DetachPolicyFromGroup"),
    }

    def __init__(self) -> None:
        clock, accounts = MovedClock(NOW), ("1000000000000001", "1000000000000002", "1000000000000003")
        launched = NOW - timedelta(days=9)
        fleet = [alibaba_machine(f"m-{each}", does.idle(), launched, account=each) for each in accounts]
        self.emulator = AlibabaEmulator(WorldDoor(World(fleet, NOW), clock))
        self._owner, *self._members = accounts
        self._set_up()
        self._freezes = {
            ORGANISATION: LaunchFreeze("org", "alibaba", ORGANISATION, "cp-freeze", accounts[1]),
            GROUP: LaunchFreeze("group", "alibaba", GROUP, "freeze", "gpu-users"),
        }
        self._opened = ExitStack()
        self._general = AlibabaSession(
            keys=to_product(self.emulator.keys), endpoint=self.emulator.url, pacer=alibaba_pacer(), now=clock.now
        )
        self._opened.callback(self._general.close)
        self._control = AlibabaFreeze(self.session("freezing"))

    def _set_up(self) -> None:
        desk = self.emulator.policies
        desk.enabled = True
        desk.control.add("cp-freeze")
        desk.written.add((self._owner, "freeze"))
        desk.targets = {member: [FULL_ALIYUN_ACCESS] for member in self._members}
        # of the same name, and another policy
        desk.groups = {(self._owner, group): [("System", "freeze")] for group in ("gpu-users", "admins")}

    def freeze(self, via: FreezeVia) -> LaunchFreeze:
        return self._freezes[via]

    def control(self) -> FreezeControl:
        return self._control

    def control_over(self, session: Any) -> FreezeControl:
        return AlibabaFreeze(session)

    def session(self, kind: str) -> Any:
        made = session_of(kind, self._general)
        self._opened.callback(made.close)
        return made

    def everything(self) -> dict[str, list[str]]:
        desk = self.emulator.policies
        of_groups = {
            group: [name if kind == "Custom" else f"{kind}:{name}" for kind, name in found]
            for (_, group), found in desk.groups.items()
        }
        return {**{target: list(found) for target, found in desk.targets.items()}, **of_groups}

    def crowd(self, freeze: LaunchFreeze) -> None:
        desk = self.emulator.policies
        if freeze.via is ORGANISATION:
            desk.targets[freeze.target] += [f"cp-theirs{number}" for number in range(8)]
        else:
            desk.groups[self._owner, freeze.target] += [("Custom", f"theirs-{number}") for number in range(8)]

    def go_wrong(self, operation: str, how: str) -> None:
        for action in self._ACTIONS[operation]:
            codes = {DENIED: ("NoPermission", 403), THROTTLED: ("Throttling.User", 400)}
            if how == LOST:
                self.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, action, _ALWAYS))
            else:
                code, status = codes[how]
                self.emulator.faults.add(Fault(FaultKind.REFUSED, action, _ALWAYS, code=code, status=status))

    def switch_off(self) -> None:
        self.emulator.policies.enabled = False

    def reset(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        self._set_up()

    def requests(self) -> Sequence[str]:
        return [call.action for call in self.emulator.calls if call.service != "sts"]

    def close(self) -> None:
        self._opened.close()
        self.emulator.close()


class TencentRig(FreezeRig):
    """Organisation and CAM of the emulator; a target's list names what it inherits as well."""

    cloud = "tencent"
    keeps_the_attached = frozenset({ORGANISATION, GROUP})
    _ACTIONS = {  # noqa: RUF012 - never written
        "list": ("ListPoliciesForTarget", "ListAttachedGroupPolicies"),
        "attach": ("AttachPolicy", "AttachGroupPolicy"),
        "detach": ("DetachPolicy", "DetachGroupPolicy"),
    }
    _MEMBER, _NODE, _USERS, _ADMINS = 100000000002, 10001, 3349, 3350

    def __init__(self) -> None:
        clock, launched = MovedClock(NOW), NOW - timedelta(days=9)
        fleet = [tencent_machine("m", does.idle(), launched, account="100000000001")]
        self.emulator = TencentEmulator(WorldDoor(World(fleet, NOW), clock))
        self._set_up()
        self._freezes = {
            ORGANISATION: LaunchFreeze("org", "tencent", ORGANISATION, "77", f"member/{self._MEMBER}"),
            GROUP: LaunchFreeze("group", "tencent", GROUP, "78", str(self._USERS)),
        }
        self._opened = ExitStack()
        self._general = TencentSession(
            keys=to_product(self.emulator.keys), endpoint=self.emulator.url, pacer=tencent_pacer(), now=clock.now
        )
        self._opened.callback(self._general.close)
        self._control = TencentFreeze(self.session("freezing"))

    def _set_up(self) -> None:
        desk = self.emulator.policies
        desk.enabled = True
        desk.written |= {77, 78}
        desk.targets = {("member", self._MEMBER): [FULL_QCLOUD_ACCESS], ("node", self._NODE): [FULL_QCLOUD_ACCESS]}
        desk.inherited = {self._MEMBER: [(FULL_QCLOUD_ACCESS + 1, self._NODE)]}
        desk.groups = {self._USERS: [], self._ADMINS: [5]}

    def freeze(self, via: FreezeVia) -> LaunchFreeze:
        return self._freezes[via]

    def control(self) -> FreezeControl:
        return self._control

    def control_over(self, session: Any) -> FreezeControl:
        return TencentFreeze(session)

    def session(self, kind: str) -> Any:
        made = session_of(kind, self._general)
        self._opened.callback(made.close)
        return made

    def everything(self) -> dict[str, list[str]]:
        desk = self.emulator.policies
        of_groups = {str(group): [str(policy) for policy in found] for group, found in desk.groups.items()}
        of_targets = {f"{kind}/{number}": [str(p) for p in found] for (kind, number), found in desk.targets.items()}
        return {**of_targets, **of_groups}

    def crowd(self, freeze: LaunchFreeze) -> None:
        desk = self.emulator.policies
        if freeze.via is ORGANISATION:
            desk.targets["member", self._MEMBER] += range(1_000, 1_040)
        else:
            desk.groups[self._USERS] += range(1_000, 1_040)

    def go_wrong(self, operation: str, how: str) -> None:
        codes = {DENIED: "UnauthorizedOperation", THROTTLED: "RequestLimitExceeded"}
        for action in self._ACTIONS[operation]:
            kind = FaultKind.LOST_ANSWER if how == LOST else FaultKind.REFUSED
            self.emulator.faults.add(Fault(kind, action, _ALWAYS, code=codes.get(how, "")))

    def switch_off(self) -> None:
        self.emulator.policies.enabled = False

    def reset(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        self._set_up()

    def requests(self) -> Sequence[str]:
        return [call.action for call in self.emulator.calls if call.service != "sts"]

    def close(self) -> None:
        self._opened.close()
        self.emulator.close()


@contextmanager
def _aws() -> Iterator[FreezeRig]:
    with aws_stand_in() as stand_in, applied(attaching()):
        account = new_account()
        credentials = credentials_of(stand_in.url, account)
        with environment_of(credentials):
            yield from _closed(AwsRig(stand_in, account, credentials))


def _emulated(make: Callable[[], FreezeRig]) -> Callable[[], AbstractContextManager[FreezeRig]]:
    @contextmanager
    def rig() -> Iterator[FreezeRig]:
        yield from _closed(make())

    return rig


def _closed(rig: FreezeRig) -> Iterator[FreezeRig]:
    try:
        yield rig
    finally:
        rig.close()


FREEZES: Mapping[str, Callable[[], AbstractContextManager[FreezeRig]]] = {
    "aws": _aws,
    "alibaba": _emulated(AlibabaRig),
    "tencent": _emulated(TencentRig),
}
"""Provider → a rig for a module's tests, which is reset between them."""
VENDORS_OWN = {"aws": "p-FullAWSAccess", "alibaba": FULL_ALIYUN_ACCESS, "tencent": ""}
"""Control policies that allow everything; Tencent's has a number like any other."""
