"""The changes that Costguard makes to networks of AWS, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import assert_never

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.mends import Mend, MendKind
from costguard.providers.aws.compute.instances import imds_v1
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession
from costguard.providers.aws.network.address_remediator import AddressRemediator
from costguard.providers.aws.network.answers import Place, to_flow_log
from costguard.providers.aws.network.remediation import request_id
from costguard.providers.aws.network.rule_remediator import RuleRemediator
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, parts, text
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.network.remediation import gone, refusal, require, require_subject, require_unmoved

_KINDS: Mapping[MendKind, tuple[str, ...]] = {
    MendKind.RELEASE_ADDRESS: ("address",),
    MendKind.DETACH_ADDRESS: ("address",),
    MendKind.ATTACH_ADDRESS: ("address",),
    MendKind.REVOKE_RULE: ("security_group",),
    MendKind.NARROW_RULE: ("security_group",),
    MendKind.RESTORE_RULE: ("security_group",),
    MendKind.ENABLE_FLOW_LOGS: ("vpc", "subnet", "interface"),
    MendKind.REMOVE_FLOW_LOGS: ("vpc", "subnet", "interface"),
    MendKind.REQUIRE_IMDSV2: ("instance",),
    MendKind.ALLOW_IMDSV1: ("instance",),
}
_LOGGED = {"vpc": "VPC", "subnet": "Subnet", "interface": "NetworkInterface"}
_OF_A_KEY = "that is about a key, not a network"
_PAGE = 1000


class AwsNetworkRemediator:
    """`NetworkRemediator` for one partition of AWS; one setting a call, never a retry."""

    def __init__(self, session: AwsSession) -> None:
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

        AWS can refuse no change to what has moved meanwhile, so everything is read just before, and nothing is
        sent about what has moved since `before`.

        Raises:
            OutcomeUnknownError: the call may have taken effect, or half of the change has; read before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: AWS refused, or what is there is not what `before` says; nothing changed.
            NotFoundError: what it is about is gone; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
            UnavailableError: it could not be read just before; nothing changed.

        API: what each kind sends stands with it.
        """
        kinds = _KINDS.get(mend.kind, ())
        require(mend, bool(kinds), _OF_A_KEY)
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
            case MendKind.REQUIRE_IMDSV2:
                return self._set_imds(mend, before, "required")
            case MendKind.ALLOW_IMDSV1:
                return self._set_imds(mend, before, "optional")
            case (
                MendKind.SET_ROTATION
                | MendKind.ROTATE_KEY
                | MendKind.CREATE_SUCCESSOR
                | MendKind.MOVE_ALIAS
                | MendKind.RESTORE_ALIAS
            ):
                raise refusal(mend, _OF_A_KEY)
            case _:
                assert_never(mend.kind)

    def _log_flows(self, mend: Mend) -> Receipt:
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
                message = "FlowLogIds is no list of one"
                raise ValueError(message)
            return Receipt(request_id(answer), made[0])

    def _end_flow_log(self, mend: Mend) -> Receipt:
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

    def _flow_logs(self, mend: Mend) -> list[Fields]:
        """The flow logs of the subject."""
        of_subject = [{"Name": "resource-id", "Values": [mend.subject.native_id]}]
        pages = self._session.pages(
            mend.subject.shard, "ec2", "DescribeFlowLogs", "FlowLogs", Filter=of_subject, MaxResults=_PAGE
        )
        with as_documented("ec2:DescribeFlowLogs"):
            return [each for page in pages for each in parts({"page": page}, "page")]

    def _set_imds(self, mend: Mend, before: Mapping[str, str], tokens: str) -> Receipt:
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
        operation = "ModifyInstanceMetadataOptions"
        answer = self._session.call(mend.subject.shard, "ec2", operation, InstanceId=native_id, HttpTokens=tokens)
        with after_sending(f"ec2:{operation}"):
            if text(part(answer, "InstanceMetadataOptions"), "HttpTokens") != tokens:
                message = f"HttpTokens is not {tokens}"
                raise ValueError(message)
            return Receipt(request_id(answer))


def _destination(mend: Mend) -> dict[str, str]:
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
