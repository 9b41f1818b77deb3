"""The changes that Costguard makes to networks of Tencent Cloud, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.remediations import Remediation
from costguard.providers.kit.core.fields import Fields, as_documented, named, parts, text
from costguard.providers.kit.network.remediation import NetworkRemediator, gone, refusal, require
from costguard.providers.tencent.core.products import HOME_REGIONS
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.address_remediator import AddressRemediator
from costguard.providers.tencent.network.answers import to_interface
from costguard.providers.tencent.network.rule_remediator import RuleRemediator

_CARDS, _LOGS = "vpc:DescribeNetworkInterfaces", "vpc:DescribeFlowLogs"


class TencentNetworkRemediator(NetworkRemediator[TencentSession]):
    """For one site of Tencent Cloud.

    The cloud itself refuses a change to rules that have moved since they were read. Whether metadata answers without a
    token is no setting of CVM: no page knows one. A flow log can be begun for interfaces, no more for VPCs or subnets.
    """

    clouds = HOME_REGIONS

    @property
    def addresses(self) -> AddressRemediator:
        """What changes public addresses."""
        return AddressRemediator(self._session)

    @property
    def rules(self) -> RuleRemediator:
        """What changes rules of security groups."""
        return RuleRemediator(self._session)

    def _log_flows(self, mend: Remediation) -> Receipt:
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
        return self._session.change(
            subject.shard,
            "vpc",
            "CreateFlowLog",
            _made,
            FlowLogName=f"costguard-{subject.native_id}",
            FlowLogDescription="begun by Costguard",
            ResourceType="NETWORKINTERFACE",
            ResourceId=subject.native_id,
            TrafficType="ALL",
            VpcId=vpc,
            StorageType="cls",
            CloudLogId=topic,
        )

    def _end_flow_log(self, mend: Remediation) -> Receipt:
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
        return self._session.change(subject.shard, "vpc", "DeleteFlowLog", FlowLogId=wanted, VpcId=vpc)

    def _set_imds(self, mend: Remediation, before: Mapping[str, str], *, v1: bool) -> Receipt:
        """Refuse, always."""
        del before, v1
        raise refusal(mend, "CVM documents no setting by which metadata wants a token")

    def _vpc_of(self, mend: Remediation) -> str:
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

    def _logs(self, mend: Remediation, **wanted: str) -> list[Fields]:
        pages = self._session.pages(mend.subject.shard, "vpc", "DescribeFlowLogs", "FlowLog", **wanted)
        return [item for page in pages for item in page]


def _covers(log: Fields, native_id: str) -> bool:
    with as_documented(_LOGS):
        return named(log, "ResourceId") == native_id


def _named(log: Fields, native_id: str) -> bool:
    with as_documented(_LOGS):
        return text(log, "FlowLogId") == native_id


def _made(answer: Fields) -> str:
    (made,) = parts(answer, "FlowLog")
    return named(made, "FlowLogId")
