"""Cloudaudit 2019-03-19."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, Fields, Many, Table, Text, Whole

ATTRIBUTES = (
    *("RequestId", "EventName", "ActionType", "PrincipalId", "ResourceType", "ResourceId", "ResourceName"),
    *("AccessKeyId", "SensitiveAction", "ApiErrorCode", "CamErrorCode", "SourceIPAddress", "Tags"),
)
_KEY = Text(ATTRIBUTES, code="InvalidParameterValue.attributeKey")

DESCRIBE_EVENTS: Table = {
    "StartTime!": Whole(0, code="InvalidParameter.Time"),
    "EndTime!": Whole(0, code="InvalidParameter.Time"),
    "NextToken": Whole(0),
    "MaxResults": Whole(1, 50, code="InvalidParameterValue.MaxResult"),
    "LookupAttributes": Many(Fields({"AttributeKey!": _KEY, "AttributeValue!": TEXT})),
    "IsReturnLocation": Whole(0, 1),
}
