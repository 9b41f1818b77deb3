"""CBS 2017-03-12 and vpc 2017-03-12."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import COUNT, FLAG, TEXT, Fields, Many, Table, Text, Whole, filters

_VALUE = "InvalidParameterValue"
_PAGE: Table = {"Offset": Whole(0), "Limit": Whole(1, 100), "Order": Text(("ASC", "DESC"))}

DESCRIBE_DISKS: Table = {
    **_PAGE,
    "DiskIds": Many(TEXT, 100, code=_VALUE),
    "Filters": filters(values=100),
    "OrderField": Text(("CREATE_TIME", "DEADLINE")),
    "ReturnBindAutoSnapshotPolicy": FLAG,
}
DESCRIBE_SNAPSHOTS: Table = {
    **_PAGE,
    "SnapshotIds": Many(TEXT, 100, code=_VALUE),
    "Filters": filters(values=10),
    "OrderField": Text(("CREATE_TIME",)),
}
CREATE_SNAPSHOT: Table = {
    "DiskId": TEXT,
    "SnapshotName": Text(longest=60),
    "Deadline": TEXT,
    "DiskBackupId?": TEXT,
    "Tags": Many(Fields({"Key!": TEXT, "Value!": TEXT}), 50),
    "LocalSnap?": FLAG,
    "DiskUsage?": Text(("SYSTEM_DISK", "DATA_DISK")),
}
DELETE_SNAPSHOTS: Table = {"SnapshotIds!": Many(TEXT, 100, least=1), "DeleteBindImages": FLAG}
_RENEWALS = ("NOTIFY_AND_AUTO_RENEW", "NOTIFY_AND_MANUAL_RENEW", "DISABLE_NOTIFY_AND_MANUAL_RENEW")
INQUIRY_PRICE_CREATE_DISKS: Table = {
    "DiskChargeType!": Text(("PREPAID", "POSTPAID_BY_HOUR")),
    "DiskType!": Text(("CLOUD_BASIC", "CLOUD_PREMIUM", "CLOUD_BSSD", "CLOUD_SSD", "CLOUD_HSSD", "CLOUD_TSSD")),
    "DiskSize!": Whole(10, 32_000),
    "ProjectId": COUNT,
    "DiskCount": Whole(1),
    "ThroughputPerformance?": COUNT,
    "DiskChargePrepaid": Fields({"Period!": Whole(1, 36), "RenewFlag": Text(_RENEWALS), "CurInstanceDeadline": TEXT}),
    "DiskBackupQuota?": COUNT,
}
DESCRIBE_ADDRESSES: Table = {
    "AddressIds": Many(TEXT, 100),
    "Filters": filters(values=100, code="LimitExceeded.NumberOfFilters"),
    "Offset": Whole(0),
    "Limit": Whole(1, 100, code="InvalidParameterValue.LimitExceeded"),
}
