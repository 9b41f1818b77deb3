"""Billing 2018-07-09."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, TEXTS, Fields, Table, Text, Whole

_MONTH = Text(pattern=r"\d{4}-\d{2}")
_TIME = Text(pattern=r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_SWITCH = Whole(0, 1)

DETAIL_FOR_ORGANIZATION: Table = {
    "Offset!": Whole(0),
    "Limit!": Whole(1, 100),
    "PeriodType?": Text(("byUsedTime", "byPayTime")),
    "Month": _MONTH,
    "BeginTime": _TIME,
    "EndTime": _TIME,
    "NeedRecordNum": _SWITCH,
    "PayMode": Text(("prePay", "postPay")),
    "ResourceId": TEXT,
    "ActionType": TEXT,
    "ProjectId?": Whole(),
    "BusinessCode": TEXT,
    "Context": TEXT,
}
DETAIL: Table = {**DETAIL_FOR_ORGANIZATION, "Limit!": Whole(1, 300), "ProductCode?": TEXT, "PayerUin": TEXT}
_TWO_ENDS: Table = {"BeginTime!": _MONTH, "EndTime!": _MONTH, "PayerUin": TEXT}
BY_PRODUCT: Table = {**_TWO_ENDS, "PayType?": Text(("consume", "refund", "adjustment"))}
BY_REGION: Table = _TWO_ENDS
BY_TAG: Table = {**_TWO_ENDS, "TagKey!": TEXT, "TagValue": TEXT}
_GROUP_TYPE = Text(("business", "project", "region", "payMode", "tag"))
SUMMARY_FOR_ORGANIZATION: Table = {"Month!": _MONTH, "GroupType!": _GROUP_TYPE, "TagKey": TEXTS}
SUMMARY: Table = {**SUMMARY_FOR_ORGANIZATION, "OperateUin?": TEXT, "PayerUin": TEXT}
_CONDITIONS: Table = {
    "BusinessCodes": TEXT,
    "ProductCodes?": TEXT,
    "ComponentCode?": TEXT,
    "ZoneIds?": TEXT,
    "RegionIds": TEXT,
    "ProjectIds?": TEXT,
    "PayModes": TEXT,
    "ActionTypes?": TEXT,
    "Tags?": TEXT,
    "FeeType?": Text(("cashPayAmount", "incentivePayAmount", "voucherPayAmount", "transferPayAmount")),
    "PayerUins": TEXT,
    "OwnerUins": TEXT,
    "ConsumptionTypes?": TEXT,
}
_DIMENSIONS = (
    *("default", "feeType", "billType", "business", "product", "region", "zone", "actionType", "payMode", "tags"),
    *("project", "payerUin", "ownerUin"),
)
COST_EXPLORER: Table = {
    "BeginTime!": _TIME,
    "EndTime!": _TIME,
    "BillType!": Text(("1", "2")),
    "PeriodType!": Text(("day", "month")),
    "Dimensions!": Text(_DIMENSIONS),
    "FeeType!": Text(("cost", "totalCost")),
    "PageSize!": Whole(1, 100),
    "PageNo!": Whole(1),
    "TagKeyStr": TEXT,
    "NeedConditionValue": Text(("0", "1")),
    "Conditions": Fields(_CONDITIONS),
}
BUDGET: Table = {
    "PageNo!": Whole(1),
    "PageSize!": Whole(1),
    "BudgetId": TEXT,
    "BudgetName": TEXT,
    "BudgetStatus": Text(("EXPIRED", "ACTIVE", "ACTIVATED")),
    "CycleTypes": TEXTS,
}
