"""Monitor 2018-07-24 and tag 2018-08-13."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, TEXTS, Fields, Many, Table, Text, Whole

_DIMENSIONS = Many(Fields({"Name!": TEXT, "Value!": TEXT}), least=1)
GET_MONITOR_DATA: Table = {
    "Namespace!": TEXT,
    "MetricName!": TEXT,
    "Instances!": Many(Fields({"Dimensions!": _DIMENSIONS}), least=1),
    "Period": Whole(1),
    "StartTime": TEXT,
    "EndTime": TEXT,
    "SpecifyStatistics": Whole(0, 7),
}
DESCRIBE_BASE_METRICS: Table = {"Namespace!": TEXT, "MetricName": TEXT, "Dimensions?": TEXTS}

_RESOURCES = Many(TEXT, 10, least=1, code="LimitExceeded.ResourceNumPerRequest")
_KEY = Text(shortest=1, longest=127, code="InvalidParameterValue.TagKeyLengthExceeded")
_VALUE = Text(longest=255, code="InvalidParameterValue.TagValueLengthExceeded")
_CATEGORY = Text(("Custom", "System", "All"))
_TAGS = Many(
    Fields({"TagKey!": _KEY, "TagValue!": _VALUE, "Category": _CATEGORY}),
    10,
    least=1,
    code="LimitExceeded.TagNumPerRequest",
)
TAG_RESOURCES: Table = {"ResourceList!": _RESOURCES, "Tags!": _TAGS}
UNTAG_RESOURCES: Table = {
    "ResourceList!": _RESOURCES,
    "TagKeys!": Many(_KEY, 10, least=1, code="LimitExceeded.TagNumPerRequest"),
}
MODIFY_RESOURCE_TAGS: Table = {
    "Resource!": TEXT,
    "ReplaceTags": _TAGS,
    "DeleteTags": Many(Fields({"TagKey!": _KEY}), 10, least=1, code="LimitExceeded.TagNumPerRequest"),
}
GET_RESOURCES: Table = {
    "ResourceList": Many(TEXT, 10, code="LimitExceeded.ResourceNumPerRequest"),
    "TagFilters": Many(
        Fields({"TagKey!": _KEY, "TagValue": Many(_VALUE, 10)}),
        6,
        code="InvalidParameterValue.TagFiltersLengthExceeded",
    ),
    "PaginationToken": TEXT,
    "MaxResults": Whole(1, 200),
}
