"""The changes that Costguard makes to networks of AWS, each to one setting, read anew just before."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.remediations import Remediation
from costguard.providers.aws.compute.instances import imds_v1
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession, request_id
from costguard.providers.aws.network.address_remediator import AddressRemediator
from costguard.providers.aws.network.answers import Place, to_flow_log
from costguard.providers.aws.network.rule_remediator import RuleRemediator
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented, named, part, parts, text
from costguard.providers.kit.network.remediation import NetworkRemediator, gone, require, require_unmoved

_LOGGED = {"vpc": "VPC", "subnet": "Subnet", "interface": "NetworkInterface"}
_PAGE = 1000


class AwsNetworkRemediator(NetworkRemediator[AwsSession]):
    """For one partition of AWS.

    AWS can refuse no change to what has moved meanwhile, so everything is read just before.
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
