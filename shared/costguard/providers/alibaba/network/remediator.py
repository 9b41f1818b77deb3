"""What Costguard changes about networks on Alibaba Cloud: addresses, rules, flow logs, and how metadata answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from typing_extensions import assert_never

from costguard.domain.actions import Receipt
from costguard.domain.mends import Mend, MendKind
from costguard.providers.alibaba.compute.instances import API as INSTANCES
from costguard.providers.alibaba.compute.instances import METADATA, imds_v1
from costguard.providers.alibaba.core.fields import json_list, structures_in
from costguard.providers.alibaba.core.products import HOME_REGIONS
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.network.address_remediator import AddressRemediator
from costguard.providers.alibaba.network.answers import LOGGED_KINDS, to_flow_log
from costguard.providers.alibaba.network.remediation import receipt_of
from costguard.providers.alibaba.network.rule_remediator import RuleRemediator
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, text
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.network.remediation import gone, refusal, require, require_subject, require_unmoved

_LOGS, _LOG, _UNLOG = "vpc:DescribeFlowLogs", "vpc:CreateFlowLog", "vpc:DeleteFlowLog"
_OPTIONS = "ecs:ModifyInstanceMetadataOptions"
_TYPES = {kind: word for word, kind in LOGGED_KINDS.items()}
_DESTINATION = re.compile(r"([a-z0-9][a-z0-9-]{1,61}[a-z0-9])/([a-z0-9][a-z0-9_-]{1,61}[a-z0-9])", re.ASCII)
_MARK = "costguard"
"""What the names of our flow logs begin with: no other is ever deleted."""


class AlibabaNetworkRemediator:
    """`NetworkRemediator` for one site of Alibaba Cloud, from a session that can do nothing else; never a retry."""

    def __init__(self, session: AlibabaSession) -> None:
        """Take a session made for mending networks.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.MEND)
        self._session = session
        self._addresses = AddressRemediator(session)
        self._rules = RuleRemediator(session)

    def change(self, mend: Mend, before: Mapping[str, str]) -> Receipt:
        """Read what the mend is about, refuse if it is not what `before` says, and make the change: once.

        Narrowing a rule, and taking that back, are two calls: what the first one added is named where the second fails.

        Raises:
            OutcomeUnknownError: it may have taken effect, or half of it has; read before anything else.
            AccessDeniedError: the role lacks a permission of `Feature.FIX_NETWORK`, or one to read.
            NotFoundError: what it is about is gone.
            RefusedError: the cloud refused, or what is there is not what `before` says; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        kind = mend.kind
        match kind:
            case MendKind.RELEASE_ADDRESS | MendKind.DETACH_ADDRESS | MendKind.ATTACH_ADDRESS:
                return self._addresses.change(mend, before)
            case MendKind.REVOKE_RULE | MendKind.NARROW_RULE | MendKind.RESTORE_RULE:
                return self._rules.change(mend, before)
            case MendKind.ENABLE_FLOW_LOGS:
                return self._log_flows(mend)
            case MendKind.REMOVE_FLOW_LOGS:
                return self._end_log(mend)
            case MendKind.REQUIRE_IMDSV2 | MendKind.ALLOW_IMDSV1:
                return self._set_metadata(mend, before, v1=kind is MendKind.ALLOW_IMDSV1)
            case (
                MendKind.SET_ROTATION
                | MendKind.ROTATE_KEY
                | MendKind.CREATE_SUCCESSOR
                | MendKind.MOVE_ALIAS
                | MendKind.RESTORE_ALIAS
            ):
                raise refusal(mend, "that is about a key, not a network")
            case _:
                assert_never(kind)

    def _log_flows(self, mend: Mend) -> Receipt:
        """All traffic, to `project/logstore`, which must be there; nothing is logged until it has begun.

        API: VPC CreateFlowLog, which knows no ClientToken.
        """
        require_subject(mend, _TYPES, HOME_REGIONS)
        where = _DESTINATION.fullmatch(mend.parameters.get("destination", ""))
        if where is None:
            raise refusal(mend, "the destination is not `project/logstore` of the Simple Log Service")
        subject = mend.subject
        resource = {"ResourceType": _TYPES[subject.kind], "ResourceId": subject.native_id}
        listed = self._logs(mend, **resource)
        with as_documented(_LOGS):
            active = [log for log in (to_flow_log(subject.shard, told) for told in listed) if log.covers == subject]
        require(mend, not active, "there is a flow log already")
        answer = self._session.call(
            subject.shard,
            "vpc",
            "CreateFlowLog",
            **resource,
            TrafficType="All",
            ProjectName=where[1],
            LogStoreName=where[2],
            FlowLogName=f"{_MARK}-{subject.native_id}"[:128],
        )
        with after_sending(_LOG):
            return receipt_of(_LOG, answer, named(answer, "FlowLogId"))

    def _end_log(self, mend: Mend) -> Receipt:
        """Delete the flow log that we made, by its id; one that is not ours is left alone.

        API: VPC DeleteFlowLog.
        """
        require_subject(mend, _TYPES, HOME_REGIONS)
        native_id = mend.parameters.get("flow_log", "")
        require(mend, bool(native_id), "it does not say which flow log")
        listed = [told for told in self._logs(mend, FlowLogId=native_id) if told.get("FlowLogId") == native_id]
        if not listed:
            raise gone(mend, native_id, _LOGS)
        with as_documented(_LOGS):
            log, ours = to_flow_log(mend.subject.shard, listed[0]), text(listed[0], "FlowLogName").startswith(_MARK)
        require(mend, log.covers == mend.subject, f"it logs {log.covers}")
        require(mend, ours, "it is not one that was made here")
        answer = self._session.call(mend.subject.shard, "vpc", "DeleteFlowLog", FlowLogId=native_id)
        return receipt_of(_UNLOG, answer)

    def _logs(self, mend: Mend, **parameters: str) -> list[Fields]:
        answer = self._session.call(mend.subject.shard, "vpc", "DescribeFlowLogs", **parameters)
        with as_documented(_LOGS):
            return structures_in(answer, "FlowLogs.FlowLog", _LOGS)

    def _set_metadata(self, mend: Mend, before: Mapping[str, str], *, v1: bool) -> Receipt:
        """Whether metadata answers without a session token. One that answers nobody is left so.

        API: ECS ModifyInstanceMetadataOptions. What is left out takes its default, so all that is told is said again.
        """
        require_subject(mend, {"instance"}, HOME_REGIONS)
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
        answer = self._session.call(
            mend.subject.shard,
            "ecs",
            "ModifyInstanceMetadataOptions",
            InstanceId=native_id,
            HttpEndpoint=endpoint,
            HttpTokens="optional" if v1 else "required",
            **({"InstanceMetadataTags": tags} if tags else {}),
        )
        return receipt_of(_OPTIONS, answer)
