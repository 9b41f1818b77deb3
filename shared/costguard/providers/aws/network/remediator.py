"""The changes that Costguard makes to networks of AWS, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.network import AddressState, PublicAddress
from costguard.domain.remediations import Remediation
from costguard.providers.aws.compute.instances import imds_v1
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession, request_id
from costguard.providers.aws.network.answers import Place, to_address, to_flow_log
from costguard.providers.aws.network.rule_remediator import AwsRuleRemediator
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented, flag, named, part, parts, text
from costguard.providers.kit.network.remediation import (
    AddressRemediator,
    NetworkRemediator,
    bound_before,
    gone,
    require,
    require_unmoved,
)

_MACHINES_CARDS = ("interface", "efa", "efa-only", "trunk", "branch", "")
_LOGGED = {"vpc": "VPC", "subnet": "Subnet", "interface": "NetworkInterface"}
_PAGE = 1000


class AwsAddressRemediator(AddressRemediator[AwsSession]):
    """For one partition of AWS."""

    keeper = "a service of AWS keeps it"

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give an address up for good.

        In a default VPC AWS releases what is in use and takes it off first: so nothing is released before two lists,
        of addresses and of interfaces, agree that nothing uses it.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, ReleaseAddress.
        """
        said, address = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is bound to {address.bound_to}")
        using = self._cards(mend, "addresses.association.public-ip", address.ip)
        require(mend, not using, f"an interface uses it: {', '.join(using)}")
        border = text(said, "NetworkBorderGroup")  # elsewhere than the region in local zones, and then not found
        asked = {"NetworkBorderGroup": border} if border else {}
        return self._change(mend, "ReleaseAddress", AllocationId=mend.subject.native_id, **asked)

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take an address off what it is bound to. A machine that had a plain public address before may get a new one.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, DisassociateAddress.
        """
        said, address = self._address(mend, before)
        bound_to, private_ip = mend.parameters.get("bound_to", ""), mend.parameters.get("private_ip", "")
        require(mend, str(address.bound_to) == bound_to, f"it is bound to {address.bound_to}")
        told = text(said, "PrivateIpAddress")
        require(mend, private_ip in ("", told), f"it leads to {told}, not {private_ip}")
        cards = self._cards(mend, "network-interface-id", text(said, "NetworkInterfaceId"))
        kept = [native_id for native_id, card in cards.items() if _is_kept_by_aws(card)]
        require(
            mend, bool(cards) and not kept, f"AWS keeps the interface it leads to: {', '.join(kept) or 'not listed'}"
        )
        return self._change(mend, "DisassociateAddress", AssociationId=text(said, "AssociationId"))

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind an address to the private one it was taken off; never in the place of another public address.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, AssociateAddress without AllowReassociation.
        """
        _, address = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is bound to {address.bound_to}")
        where, private_ip = bound_before(mend), mend.parameters.get("private_ip", "")
        by = {"instance": "attachment.instance-id", "interface": "network-interface-id"}
        cards = self._cards(mend, by[where.kind], where.native_id)
        found = {
            native_id: text(part(each, "Association"), "PublicIp")
            for native_id, card in cards.items()
            for each in parts(card, "PrivateIpAddresses")
            if text(each, "PrivateIpAddress") == private_ip
        }
        require(mend, len(found) == 1, f"{where} has no address {private_ip}")
        ((card_id, taken),) = found.items()
        require(mend, not taken, f"{private_ip} has a public address already: {taken}")
        return self._change(
            mend,
            "AssociateAddress",
            AllocationId=mend.subject.native_id,
            NetworkInterfaceId=card_id,
            PrivateIpAddress=private_ip,
            AllowReassociation=False,
        )

    def _address(self, mend: Remediation, before: Mapping[str, str]) -> tuple[Fields, PublicAddress]:
        """The address as it is now, and as it was when this was decided on."""
        subject, api = mend.subject, "ec2:DescribeAddresses"
        answer = self._session.call(subject.shard, "ec2", "DescribeAddresses", AllocationIds=[subject.native_id])
        with as_documented(api):
            listed = [each for each in parts(answer, "Addresses") if text(each, "AllocationId") == subject.native_id]
            if not listed:
                raise gone(mend, "the address", api, "InvalidAllocationID.NotFound")
            (said,) = listed
            address = to_address(Place(subject.shard), said, {})
        self._unmoved(mend, address, before)
        return said, address

    def _cards(self, mend: Remediation, by: str, value: str) -> dict[str, Fields]:
        """The interfaces that one filter finds, by id; an empty value finds none."""
        if not value:
            return {}
        pages = self._session.pages(
            mend.subject.shard,
            "ec2",
            "DescribeNetworkInterfaces",
            "NetworkInterfaces",
            Filters=[{"Name": by, "Values": [value]}],
            MaxResults=_PAGE,
        )
        with as_documented("ec2:DescribeNetworkInterfaces"):
            return {named(card, "NetworkInterfaceId"): card for page in pages for card in parts({"page": page}, "page")}

    def _change(self, mend: Remediation, operation: str, **parameters: Any) -> Receipt:
        """These changes answer with nothing of note."""
        return self._session.change(mend.subject.shard, "ec2", operation, **parameters)


def _is_kept_by_aws(card: Fields) -> bool:
    """Of a NAT gateway, balancer or endpoint: its address is changed where that is."""
    return flag(card, "RequesterManaged") or text(card, "InterfaceType") not in _MACHINES_CARDS


class AwsNetworkRemediator(NetworkRemediator[AwsSession]):
    """For one partition of AWS.

    AWS can refuse no change to what has moved meanwhile, so everything is read just before.
    """

    clouds = HOME_REGIONS
    addresses = AwsAddressRemediator
    rules = AwsRuleRemediator

    def _log_flows(self, mend: Remediation) -> Receipt:
        """Begin to record all traffic: to a bucket, or with a role to a log group.

        API: EC2 DescribeFlowLogs, CreateFlowLogs.
        """
        subject = mend.subject
        asked = _destination(mend)
        with as_documented("ec2:DescribeFlowLogs"):
            there = [to_flow_log(Place(subject.shard), each) for each in self._flow_logs(mend)]
        working = any(log is not None and log.active for log in there)
        require(mend, not working, "there is a flow log already")
        api = "ec2:CreateFlowLogs"
        answer = self._session.call(
            subject.shard,
            "ec2",
            "CreateFlowLogs",
            ResourceIds=[subject.native_id],
            ResourceType=_LOGGED[subject.kind],
            TrafficType="ALL",
            **asked,
        )
        _require_success(api, answer)
        with after_sending(api):
            made = answer.get("FlowLogIds")
            if not isinstance(made, list) or len(made) != 1 or not isinstance(made[0], str):
                raise ValueError("FlowLogIds is no list of one")
            return Receipt(request_id(answer), made[0])

    def _end_flow_log(self, mend: Remediation) -> Receipt:
        """End one flow log; what it has recorded stays where it is.

        API: EC2 DescribeFlowLogs, DeleteFlowLogs.
        """
        native_id = mend.parameters.get("flow_log", "")
        there = {named(each, "FlowLogId") for each in self._flow_logs(mend)}
        if native_id not in there:
            raise gone(mend, f"flow log {native_id}", "ec2:DescribeFlowLogs", "InvalidFlowLogId.NotFound")
        api = "ec2:DeleteFlowLogs"
        answer = self._session.call(mend.subject.shard, "ec2", "DeleteFlowLogs", FlowLogIds=[native_id])
        _require_success(api, answer)
        with after_sending(api):
            return Receipt(request_id(answer))

    def _flow_logs(self, mend: Remediation) -> list[Fields]:
        """The flow logs of the subject."""
        of_subject = [{"Name": "resource-id", "Values": [mend.subject.native_id]}]
        pages = self._session.pages(
            mend.subject.shard, "ec2", "DescribeFlowLogs", "FlowLogs", Filter=of_subject, MaxResults=_PAGE
        )
        with as_documented("ec2:DescribeFlowLogs"):
            return [each for page in pages for each in parts({"page": page}, "page")]

    def _set_imds(self, mend: Remediation, before: Mapping[str, str], *, v1: bool) -> Receipt:
        """Whether metadata wants a session token; the endpoint itself and its hop limit stay as they are.

        API: EC2 DescribeInstances, ModifyInstanceMetadataOptions.
        """
        native_id, api = mend.subject.native_id, "ec2:DescribeInstances"
        answer = self._session.call(mend.subject.shard, "ec2", "DescribeInstances", InstanceIds=[native_id])
        with as_documented(api):
            found = [one for each in parts(answer, "Reservations") for one in parts(each, "Instances")]
            machines = [one for one in found if text(one, "InstanceId") == native_id]
            if not machines:
                raise gone(mend, "the machine", api, "InvalidInstanceID.NotFound")
            told = imds_v1(part(machines[0], "MetadataOptions"))
        require(mend, told is not None, "AWS tells nothing of its metadata options")
        require_unmoved(mend, {"imds_v1": "true" if told else "false"}, before)
        tokens, operation = ("optional" if v1 else "required"), "ModifyInstanceMetadataOptions"
        answer = self._session.call(mend.subject.shard, "ec2", operation, InstanceId=native_id, HttpTokens=tokens)
        with after_sending(f"ec2:{operation}"):
            if text(part(answer, "InstanceMetadataOptions"), "HttpTokens") != tokens:
                message = f"HttpTokens is not {tokens}"
                raise ValueError(message)
            return Receipt(request_id(answer))


def _destination(mend: Remediation) -> dict[str, str]:
    """Where records go, as CreateFlowLogs has it."""
    said, role = mend.parameters.get("destination", ""), mend.parameters.get("role", "")
    if said.startswith(f"arn:{mend.subject.cloud}:s3:::"):
        return {"LogDestinationType": "s3", "LogDestination": said}  # which takes no role
    is_group = said.startswith(f"arn:{mend.subject.cloud}:logs:") and ":log-group:" in said
    require(mend, is_group, "the destination is no ARN of a bucket or log group of this partition")
    require(mend, role.startswith(f"arn:{mend.subject.cloud}:iam::"), "a log group needs the ARN of a role")
    return {
        "LogDestinationType": "cloud-watch-logs",
        "LogDestination": said.removesuffix(":*"),  # as the console shows it
        "DeliverLogsPermissionArn": role,
    }


def _require_success(operation: str, answer: Fields) -> None:
    """What AWS says in an answer that is none of its errors.

    Raises:
        RefusedError: it did not do it.
        OutcomeUnknownError: it cannot be read.
    """
    with after_sending(operation):
        failed = [
            (text(part(each, "Error"), "Code"), without_secrets(str(each))) for each in parts(answer, "Unsuccessful")
        ]
    for code, told in failed:
        message = f"{operation}: {told}"
        raise RefusedError(message, operation=operation, code=code or "Unsuccessful")
