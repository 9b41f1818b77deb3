"""The changes that Costguard makes to networks of Tencent Cloud, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.network import AddressState, PublicAddress
from costguard.domain.remediations import Remediation
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, parts, text
from costguard.providers.kit.network.remediation import (
    AddressRemediator,
    NetworkRemediator,
    bound_before,
    gone,
    refusal,
    require,
)
from costguard.providers.tencent.compute.source import ADDRESSES
from costguard.providers.tencent.core.products import HOME_REGIONS
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.answers import (
    is_plain,
    is_released_with_unbinding,
    known_address,
    to_address,
    to_interface,
)
from costguard.providers.tencent.network.rule_remediator import TencentRuleRemediator

_CARDS, _LOGS = "vpc:DescribeNetworkInterfaces", "vpc:DescribeFlowLogs"


class TencentAddressRemediator(AddressRemediator[TencentSession]):
    """For one site of Tencent Cloud. Every change is a task of the cloud's: accepted is not done."""

    keeper = "it belongs to a package against attacks"

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """As of `AddressRemediator`, and not one that is paid for in advance.

        API: VPC DescribeAddresses, ReleaseAddresses with one id.
        """
        address, _ = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        require(mend, not address.is_prepaid, "it is paid for in advance")
        return self._send(mend, "ReleaseAddresses", AddressIds=[mend.subject.native_id])

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take an address off its machine or interface; not one that would be released with that, which is final.

        API: VPC DescribeAddresses, DisassociateAddress.
        """
        address, known = self._address(mend, before)
        with as_documented(ADDRESSES):
            cascades, private_ip = is_released_with_unbinding(known), text(known, "PrivateAddressIp")
        target = address.bound_to
        require(mend, address.state is AddressState.IN_USE, f"it is {address.state.value}")
        require(mend, str(target) == mend.parameters.get("bound_to", ""), f"it is bound to {target}")
        kind = "nothing" if target is None else target.kind
        require(mend, kind in {"instance", "interface"}, f"what is bound to {kind} is taken off there")
        wanted = mend.parameters.get("private_ip", "")
        require(mend, not private_ip or private_ip == wanted, f"it leads to {private_ip}")
        require(mend, not cascades, "it would be released with that, and an address released is gone (CascadeRelease)")
        return self._send(mend, "DisassociateAddress", AddressId=mend.subject.native_id)

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind an address to the private one that it led to.

        By the machine where that is its first address, which is what the cloud makes of it, and else by the interface.

        API: VPC DescribeAddresses, DescribeNetworkInterfaces, AssociateAddress.
        """
        address, _ = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        return self._send(mend, "AssociateAddress", AddressId=mend.subject.native_id, **self._place(mend))

    def _address(self, mend: Remediation, before: Mapping[str, str]) -> tuple[PublicAddress, Fields]:
        """The address as it is; refused where it is not the one that was decided on."""
        subject = mend.subject
        pages = self._session.pages(
            subject.shard, "vpc", "DescribeAddresses", "AddressSet", AddressIds=[subject.native_id]
        )
        listed = [item for page in pages for item in page]
        with as_documented(ADDRESSES):
            found = [known_address(item) for item in listed if named(item, "AddressId") == subject.native_id]
        if not found:
            raise gone(mend, subject.native_id, ADDRESSES)
        known = found[0]
        with as_documented(ADDRESSES):
            plain, address = is_plain(known), to_address(subject.shard, known)
        require(mend, len(found) == 1, "the cloud lists it more than once")
        require(mend, not plain, "it belongs to its machine")
        self._unmoved(mend, address, before)
        return address, known

    def _place(self, mend: Remediation) -> dict[str, str]:
        """What the address is to lead to, as AssociateAddress wants it; still there, and without a public address."""
        private_ip, target = mend.parameters.get("private_ip", ""), bound_before(mend)
        wanted = "attachment.instance-id" if target.kind == "instance" else "network-interface-id"
        filters = [{"Name": wanted, "Values": [target.native_id]}]
        pages = self._session.pages(
            target.shard, "vpc", "DescribeNetworkInterfaces", "NetworkInterfaceSet", Filters=filters
        )
        for item in (item for page in pages for item in page):
            with as_documented(_CARDS):
                card = to_interface(target.shard, item)
                firsts = [
                    named(each, "PrivateIpAddress")
                    for each in parts(item, "PrivateIpAddressSet")
                    if flag(each, "Primary")
                ]
            if private_ip not in card.private_ips or target not in {card.ref, card.instance}:
                continue
            taken = any(private == private_ip for private, _ in card.public_ips)
            require(mend, not taken, f"{private_ip} has a public address already")
            if card.instance is not None and card.primary and firsts == [private_ip]:
                return {"InstanceId": card.instance.native_id}
            return {"NetworkInterfaceId": card.ref.native_id, "PrivateIpAddress": private_ip}
        raise gone(mend, f"{private_ip} of {target}", _CARDS)

    def _send(self, mend: Remediation, action: str, **parameters: Any) -> Receipt:
        return self._session.change(mend.subject.shard, "vpc", action, **parameters)


class TencentNetworkRemediator(NetworkRemediator[TencentSession]):
    """For one site of Tencent Cloud.

    The cloud itself refuses a change to rules that have moved since they were read. Whether metadata answers without a
    token is no setting of CVM: no page knows one. A flow log can be begun for interfaces, no more for VPCs or subnets.
    """

    clouds = HOME_REGIONS
    addresses = TencentAddressRemediator
    rules = TencentRuleRemediator

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
