"""STS 2018-08-13, organization 2021-03-31, region 2022-06-27."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, WHOLE, Fields, Many, Table, Text, Whole

_SESSION = Text(shortest=2, longest=128, pattern=r"[\w+=,.@-]*", code="InvalidParameter.ParamError")
_EXTERNAL_ID = Text(shortest=2, longest=128, pattern=r"[\w+=,.@:/-]*", code="InvalidParameter.ParamError")

GET_CALLER_IDENTITY: Table = {}
ASSUME_ROLE: Table = {
    "RoleArn!": TEXT,
    "RoleSessionName!": _SESSION,
    "DurationSeconds": Whole(0, 43_200, code="InvalidParameter.OverTimeError"),
    "Policy?": TEXT,
    "ExternalId": _EXTERNAL_ID,
    "Tags?": Many(Fields({"Key!": Text(longest=128), "Value!": Text(longest=256)}), 50),
    "SourceIdentity?": TEXT,
    "SerialNumber?": TEXT,
    "TokenCode?": TEXT,
}
DESCRIBE_ORGANIZATION: Table = {"Lang": Text(("en", "zh")), "Product": TEXT}
DESCRIBE_ORGANIZATION_MEMBERS: Table = {
    "Offset!": Whole(0),
    "Limit!": Whole(1, 50),
    "Lang": Text(("en", "zh")),
    "SearchKey?": TEXT,
    "AuthName?": TEXT,
    "Product": TEXT,
    "Tags?": Many(Fields({"TagKey!": TEXT, "TagValue!": TEXT}), 10),
    "NodeId?": Whole(0),
    "NodeName?": TEXT,
}
DESCRIBE_REGIONS: Table = {"Product!": TEXT, "Scene": WHOLE}
DESCRIBE_ZONES = DESCRIBE_REGIONS
