"""As 2018-04-19 and tke 2018-05-25."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, TEXTS, Many, Table, Text, Whole, filters

_LIMIT = Whole(1, 100, code="InvalidParameterValue.LimitExceeded")

DESCRIBE_AUTO_SCALING_INSTANCES: Table = {
    "InstanceIds": Many(TEXT, 100),
    "Filters": filters(values=5, code="LimitExceeded.FilterValuesTooLong"),
    "Offset": Whole(0),
    "Limit": _LIMIT,
}
DESCRIBE_CLUSTERS: Table = {
    "ClusterIds": TEXTS,
    "Offset": Whole(0),
    "Limit": Whole(1, 100, code="InvalidParameter.Param"),
    "Filters": filters(values=100),
    "ClusterType": Text(("MANAGED_CLUSTER", "INDEPENDENT_CLUSTER"), code="InvalidParameter.Param"),
}
DESCRIBE_CLUSTER_INSTANCES: Table = {
    "ClusterId!": TEXT,
    "Offset": Whole(0),
    "Limit": Whole(1, 100, code="InvalidParameter.Param"),
    "InstanceIds": TEXTS,
    "InstanceRole": Text(("WORKER", "MASTER", "ETCD", "MASTER_ETCD", "ALL"), code="InvalidParameter.Param"),
    "Filters": filters(values=100),
}
