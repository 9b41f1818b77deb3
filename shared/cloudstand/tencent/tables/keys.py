"""Kms 2019-01-18, secrets of SSM, and the tags of one product's resources as tag 2018-08-13 tells them."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, TEXTS, Fields, Many, Table, Text, Whole

USAGES = (
    *("ENCRYPT_DECRYPT", "ASYMMETRIC_DECRYPT_RSA_2048", "ASYMMETRIC_DECRYPT_SM2", "ASYMMETRIC_SIGN_VERIFY_SM2"),
    *("ASYMMETRIC_SIGN_VERIFY_RSA_2048", "ASYMMETRIC_SIGN_VERIFY_ECC"),
)
_MEMBER = Fields({"MemberUin": Whole(0), "MemberAppId": Whole(0)})
_BAD = "InvalidParameter"

GET_REGIONS: Table = {}
GET_SERVICE_STATUS: Table = {}
LIST_KEY_DETAIL: Table = {
    "Offset": Whole(0, code=_BAD),
    "Limit": Whole(1, 200, code=_BAD),
    "Role": Whole(0, 1, code=_BAD),
    "OrderType": Whole(0, 1, code=_BAD),
    "KeyState": Whole(0, 5, code=_BAD),
    "SearchKeyAlias": TEXT,
    "Origin": Text(("TENCENT_KMS", "EXTERNAL", "ALL"), code=_BAD),
    "KeyUsage": Text(("ALL", "", *USAGES), code="InvalidParameterValue.InvalidKeyUsage"),
    "TagFilters": Many(Fields({"TagKey!": TEXT, "TagValue": TEXTS})),
    "HsmClusterId": TEXT,
    "MemberAccounts?": Many(_MEMBER),
}
ENABLE_KEY_ROTATION: Table = {"KeyId!": TEXT, "RotateDays": Whole(7, 365, code=_BAD), "MemberAccount?": _MEMBER}
ROTATE_KEY: Table = {"KeyId!": TEXT, "MemberAccount?": _MEMBER}
GET_SECRET_VALUE: Table = {"SecretName!": TEXT, "VersionId!": TEXT}  # of ssm 2019-09-23

DESCRIBE_RESOURCE_TAGS_BY_RESOURCE_IDS: Table = {
    "ServiceType!": TEXT,
    "ResourcePrefix!": TEXT,
    "ResourceIds!": Many(TEXT, 50, least=1, code="LimitExceeded.ResourceNumPerRequest"),
    "ResourceRegion!": TEXT,
    "Offset": Whole(0),
    "Limit": Whole(1),
    "Category": Text(("Custom", "System", "All")),
}
