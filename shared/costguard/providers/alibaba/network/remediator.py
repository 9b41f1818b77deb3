"""The changes that Costguard makes to networks of Alibaba Cloud, each to one setting, read anew just before."""

from __future__ import annotations

import re
from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.network import AddressState, PublicAddress
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.providers.alibaba.compute.instances import API as INSTANCES
from costguard.providers.alibaba.compute.instances import METADATA, imds_v1
from costguard.providers.alibaba.core.products import HOME_REGIONS, json_list, structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.network.answers import BOUND_KINDS, LOGGED_KINDS, to_address, to_flow_log
from costguard.providers.alibaba.network.rule_remediator import AlibabaRuleRemediator
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, text
from costguard.providers.kit.network.remediation import (
    AddressRemediator,
    NetworkRemediator,
    bound_before,
    gone,
    refusal,
    require,
    require_unmoved,
)

_READ = "vpc:DescribeEipAddresses"
_PLAIN_MODES = frozenset({"", "NAT"})
_TYPES = {kind: word for word, kind in BOUND_KINDS.items() if kind in {"instance", "interface"}}
"""What an address is taken off of; of a gateway, a balancer or a virtual address it is taken off there."""


class AlibabaAddressRemediator(AddressRemediator[AlibabaSession]):
    """For one site of Alibaba Cloud. All three changes go on after the answer."""

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give the address up, for good.

        API: VPC ReleaseEipAddress, which takes those that are bound to nothing and paid by use.
        """
        address, told = self._read(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        require(mend, address.bound_to is None, f"it is bound to {address.bound_to}")
        require(mend, not address.protected_by, f"protected by {', '.join(address.protected_by)}")
        require(mend, text(told, "ChargeType") == "PostPaid", "it is not paid by use")
        return self._send(mend, "ReleaseEipAddress")

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take the address off the instance or interface it is bound to.

        API: VPC UnassociateEipAddress, never forced.
        """
        address, told = self._read(mend, before)
        require(mend, address.state is AddressState.IN_USE, f"it is {address.state.value}")
        bound = bound_before(mend)
        require(mend, address.bound_to == bound, f"it is bound to {address.bound_to}")
        mode = text(told, "Mode")
        require(mend, mode in _PLAIN_MODES, f"it is bound in mode {mode}, in which it could not be put back")
        return self._send(mend, "UnassociateEipAddress", **_bound(mend, bound))

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Put the address back where it was; what has a public address by now is refused by the cloud.

        API: VPC AssociateEipAddress.
        """
        address, _ = self._read(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        return self._send(mend, "AssociateEipAddress", **_bound(mend, bound_before(mend)))

    def _read(self, mend: Remediation, before: Mapping[str, str]) -> tuple[PublicAddress, Fields]:
        """The address as it is now, where that is what the mend was decided on."""
        native_id = mend.subject.native_id
        answer = self._session.call(mend.subject.shard, "vpc", "DescribeEipAddresses", AllocationId=native_id)
        with as_documented(_READ):
            listed = structures_in(answer, "EipAddresses.EipAddress", _READ)
            found = [each for each in listed if named(each, "AllocationId") == native_id]
            if not found:
                raise gone(mend, native_id, _READ)
            address = to_address(mend.subject.shard, found[0])
        self._unmoved(mend, address, before)
        return address, found[0]

    def _send(self, mend: Remediation, operation: str, **parameters: str) -> Receipt:
        return self._session.change(
            mend.subject.shard, "vpc", operation, AllocationId=mend.subject.native_id, **parameters
        )


def _bound(mend: Remediation, bound: ResourceRef) -> dict[str, str]:
    """An instance's address leads to its primary interface; of another interface, to one of its addresses."""
    told = {"InstanceId": bound.native_id, "InstanceType": _TYPES[bound.kind]}
    if bound.kind == "instance":
        return told
    private = mend.parameters.get("private_ip", "")
    require(mend, bool(private), "it does not say which private address")
    return {**told, "PrivateIpAddress": private}


_LOGS = "vpc:DescribeFlowLogs"
_LOGGED = {kind: word for word, kind in LOGGED_KINDS.items()}
_DESTINATION = re.compile(r"([a-z0-9][a-z0-9-]{1,61}[a-z0-9])/([a-z0-9][a-z0-9_-]{1,61}[a-z0-9])", re.ASCII)
_MARK = "costguard"
"""What the names of our flow logs begin with: no other is ever deleted."""


class AlibabaNetworkRemediator(NetworkRemediator[AlibabaSession]):
    """For one site of Alibaba Cloud.

    Narrowing a rule, and taking that back, are two calls: what the first one added is named where the second fails.
    """

    clouds = HOME_REGIONS
    addresses = AlibabaAddressRemediator
    rules = AlibabaRuleRemediator

    def _log_flows(self, mend: Remediation) -> Receipt:
        """All traffic, to `project/logstore`, which must be there; nothing is logged until it has begun.

        API: VPC CreateFlowLog, which knows no ClientToken.
        """
        where = _DESTINATION.fullmatch(mend.parameters.get("destination", ""))
        if where is None:
            raise refusal(mend, "the destination is not `project/logstore` of the Simple Log Service")
        subject = mend.subject
        resource = {"ResourceType": _LOGGED[subject.kind], "ResourceId": subject.native_id}
        listed = self._logs(mend, **resource)
        with as_documented(_LOGS):
            active = [log for log in (to_flow_log(subject.shard, told) for told in listed) if log.covers == subject]
        require(mend, not active, "there is a flow log already")
        return self._session.change(
            subject.shard,
            "vpc",
            "CreateFlowLog",
            lambda answer: named(answer, "FlowLogId"),
            **resource,
            TrafficType="All",
            ProjectName=where[1],
            LogStoreName=where[2],
            FlowLogName=f"{_MARK}-{subject.native_id}"[:128],
        )

    def _end_flow_log(self, mend: Remediation) -> Receipt:
        """Delete the flow log that we made, by its id; one that is not ours is left alone.

        API: VPC DeleteFlowLog.
        """
        native_id = mend.parameters.get("flow_log", "")
        require(mend, bool(native_id), "it does not say which flow log")
        listed = [told for told in self._logs(mend, FlowLogId=native_id) if told.get("FlowLogId") == native_id]
        if not listed:
            raise gone(mend, native_id, _LOGS)
        with as_documented(_LOGS):
            log, ours = to_flow_log(mend.subject.shard, listed[0]), text(listed[0], "FlowLogName").startswith(_MARK)
        require(mend, log.covers == mend.subject, f"it logs {log.covers}")
        require(mend, ours, "it is not one that was made here")
        return self._session.change(mend.subject.shard, "vpc", "DeleteFlowLog", FlowLogId=native_id)

    def _logs(self, mend: Remediation, **parameters: str) -> list[Fields]:
        answer = self._session.call(mend.subject.shard, "vpc", "DescribeFlowLogs", **parameters)
        with as_documented(_LOGS):
            return structures_in(answer, "FlowLogs.FlowLog", _LOGS)

    def _set_imds(self, mend: Remediation, before: Mapping[str, str], *, v1: bool) -> Receipt:
        """Whether metadata answers without a session token. One that answers nobody is left so.

        API: ECS ModifyInstanceMetadataOptions. What is left out takes its default, so all that is told is said again.
        """
        native_id = mend.subject.native_id
        answer = self._session.call(
            mend.subject.shard,
            "ecs",
            "DescribeInstances",
            InstanceIds=json_list([native_id]),
            AdditionalAttributes=METADATA,
        )
        with as_documented(INSTANCES):
            listed = structures_in(answer, "Instances.Instance", INSTANCES)
            found = [told for told in listed if named(told, "InstanceId") == native_id]
            if not found:
                raise gone(mend, native_id, INSTANCES)
            options, now = part(found[0], "MetadataOptions"), imds_v1(found[0])
            endpoint, tags = text(options, "HttpEndpoint"), text(options, "InstanceMetadataTags")
        if now is not None:
            require_unmoved(mend, {"imds_v1": "true" if now else "false"}, before)
        require(
            mend, now is not None and endpoint == "enabled", "it is not told how its metadata answers, or to nobody"
        )
        require(mend, now is not v1, "it is so already")
        return self._session.change(
            mend.subject.shard,
            "ecs",
            "ModifyInstanceMetadataOptions",
            InstanceId=native_id,
            HttpEndpoint=endpoint,
            HttpTokens="optional" if v1 else "required",
            **({"InstanceMetadataTags": tags} if tags else {}),
        )
