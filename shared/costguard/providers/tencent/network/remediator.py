"""The changes that Costguard makes to networks of Tencent Cloud, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import assert_never

from costguard.domain.actions import Receipt
from costguard.domain.mends import Mend, MendKind
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, named, parts, text
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.network.remediation import gone, refusal, require, require_subject
from costguard.providers.tencent.core.products import HOME_REGIONS
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.address_remediator import AddressRemediator
from costguard.providers.tencent.network.answers import to_interface
from costguard.providers.tencent.network.remediation import receipt_of
from costguard.providers.tencent.network.rule_remediator import RuleRemediator

_KINDS: Mapping[MendKind, tuple[str, ...]] = {
    MendKind.RELEASE_ADDRESS: ("address",),
    MendKind.DETACH_ADDRESS: ("address",),
    MendKind.ATTACH_ADDRESS: ("address",),
    MendKind.REVOKE_RULE: ("security_group",),
    MendKind.NARROW_RULE: ("security_group",),
    MendKind.RESTORE_RULE: ("security_group",),
    MendKind.ENABLE_FLOW_LOGS: ("interface", "vpc", "subnet"),
    MendKind.REMOVE_FLOW_LOGS: ("interface", "vpc", "subnet"),
    MendKind.REQUIRE_IMDSV2: ("instance",),
    MendKind.ALLOW_IMDSV1: ("instance",),
}
_CARDS, _LOGS = "vpc:DescribeNetworkInterfaces", "vpc:DescribeFlowLogs"
_CREATE, _DELETE = "vpc:CreateFlowLog", "vpc:DeleteFlowLog"


class TencentNetworkRemediator:
    """`NetworkRemediator` for one site of Tencent Cloud; one setting a call, never a retry."""

    def __init__(self, session: TencentSession) -> None:
        """Take a session made for mending.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.MEND)
        self._session = session
        self._addresses = AddressRemediator(session)
        self._rules = RuleRemediator(session)

    def change(self, mend: Mend, before: Mapping[str, str]) -> Receipt:  # noqa: C901 - one case a kind
        """Make the change, unless what is there is not what `before` says. Called once per intent, never retried.

        Everything is read just before, and the cloud itself refuses a change to rules that have moved since. Whether
        metadata answers without a token is no setting of CVM: no page knows one. A flow log can be begun for an
        interface, no longer for a VPC or subnet.

        Raises:
            OutcomeUnknownError: the call may have taken effect, or half of the change has; read before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: Tencent Cloud refused, or what is there is not what `before` says; nothing changed.
            NotFoundError: what it is about is gone; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
            UnavailableError: it could not be read just before; nothing changed.

        API: what each kind sends stands with it.
        """
        kinds = _KINDS.get(mend.kind)
        if kinds is None:
            raise refusal(mend, "that is about a key, not a network")
        require_subject(mend, kinds, HOME_REGIONS)
        match mend.kind:
            case MendKind.RELEASE_ADDRESS:
                return self._addresses.release(mend, before)
            case MendKind.DETACH_ADDRESS:
                return self._addresses.detach(mend, before)
            case MendKind.ATTACH_ADDRESS:
                return self._addresses.attach(mend, before)
            case MendKind.REVOKE_RULE:
                return self._rules.revoke(mend, before)
            case MendKind.NARROW_RULE:
                return self._rules.narrow(mend, before)
            case MendKind.RESTORE_RULE:
                return self._rules.restore(mend)
            case MendKind.ENABLE_FLOW_LOGS:
                return self._log_flows(mend)
            case MendKind.REMOVE_FLOW_LOGS:
                return self._end_flow_log(mend)
            case MendKind.REQUIRE_IMDSV2 | MendKind.ALLOW_IMDSV1:
                raise refusal(mend, "CVM documents no setting by which metadata wants a token")
            case (
                MendKind.SET_ROTATION
                | MendKind.ROTATE_KEY
                | MendKind.CREATE_SUCCESSOR
                | MendKind.MOVE_ALIAS
                | MendKind.RESTORE_ALIAS
            ):
                raise refusal(mend, "that is about a key, not a network")
            case _:
                assert_never(mend.kind)

    def _log_flows(self, mend: Mend) -> Receipt:
        """Begin a record of all traffic of one interface, in the topic of the log service that `destination` names.

        The cloud takes one log of an interface, and only of one that a machine has.

        API: VPC DescribeNetworkInterfaces, DescribeFlowLogs, CreateFlowLog.
        """
        subject = mend.subject
        no_network = "CreateFlowLog takes no VPC and no subnet any more: flow logs are begun for interfaces"
        require(mend, subject.kind == "interface", no_network)
        topic = mend.parameters.get("destination", "")
        require(mend, bool(topic), "nowhere to write to: the id of a topic of the log service (CLS)")
        vpc = self._vpc_of(mend)
        there = [log for log in self._logs(mend, ResourceId=subject.native_id) if _covers(log, subject.native_id)]
        require(mend, not there, "there is a flow log already")
        answer = self._session.call(
            subject.shard,
            "vpc",
            "CreateFlowLog",
            FlowLogName=f"costguard-{subject.native_id}",
            FlowLogDescription="begun by Costguard",
            ResourceType="NETWORKINTERFACE",
            ResourceId=subject.native_id,
            TrafficType="ALL",
            VpcId=vpc,
            StorageType="cls",
            CloudLogId=topic,
        )
        with after_sending(_CREATE):
            (made,) = parts(answer, "FlowLog")
            return receipt_of(_CREATE, answer, named(made, "FlowLogId"))

    def _end_flow_log(self, mend: Mend) -> Receipt:
        """End the record that `flow_log` names, if it is the subject's.

        API: VPC DescribeFlowLogs, DeleteFlowLog.
        """
        wanted, subject = mend.parameters.get("flow_log", ""), mend.subject
        require(mend, bool(wanted), "it names no flow log")
        found = [log for log in self._logs(mend, FlowLogId=wanted) if _named(log, wanted)]
        if not found:
            raise gone(mend, wanted, _LOGS)
        require(mend, _covers(found[0], subject.native_id), f"{wanted} is of something else")
        with as_documented(_LOGS):
            vpc = named(found[0], "VpcId")
        answer = self._session.call(subject.shard, "vpc", "DeleteFlowLog", FlowLogId=wanted, VpcId=vpc)
        return receipt_of(_DELETE, answer)

    def _vpc_of(self, mend: Mend) -> str:
        """The VPC of the interface, which its flow log has to name."""
        subject = mend.subject
        pages = self._session.pages(
            subject.shard,
            "vpc",
            "DescribeNetworkInterfaces",
            "NetworkInterfaceSet",
            NetworkInterfaceIds=[subject.native_id],
        )
        with as_documented(_CARDS):
            cards = [to_interface(subject.shard, item) for page in pages for item in page]
        card = next((each for each in cards if each.ref == subject), None)
        if card is None:
            raise gone(mend, subject.native_id, _CARDS)
        if card.vpc is None:
            raise refusal(mend, "it is in no VPC")
        return card.vpc.native_id

    def _logs(self, mend: Mend, **wanted: str) -> list[Fields]:
        pages = self._session.pages(mend.subject.shard, "vpc", "DescribeFlowLogs", "FlowLog", **wanted)
        return [item for page in pages for item in page]


def _covers(log: Fields, native_id: str) -> bool:
    with as_documented(_LOGS):
        return named(log, "ResourceId") == native_id


def _named(log: Fields, native_id: str) -> bool:
    with as_documented(_LOGS):
        return text(log, "FlowLogId") == native_id
