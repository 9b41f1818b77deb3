"""Vpc 2017-03-12 beyond addresses: networks, security groups and their rules, flow logs; and changes of addresses."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import FLAG, TEXT, TEXTS, WHOLE, Fields, Many, Table, Text, Whole, filters

_LIMIT = "InvalidParameterValue.LimitExceeded"
_RANGE = "InvalidParameterValue.Range"
_WRITTEN: Table = {
    "Offset": Text(pattern=r"\d{1,9}", code=_RANGE),  # numbers, and in quotes
    "Limit": Text(pattern=r"[1-9]\d?|100", code=_RANGE),
}
_COUNTED: Table = {"Offset": Whole(0, code=_RANGE), "Limit": Whole(1, 100, code=_RANGE)}
_IDS = Many(TEXT, 100, code=_LIMIT)
_FILTERS = filters(values=100, code="InvalidParameterValue.LimitExceeded")
_DIRECTION = Text(("ASC", "DESC", "asc", "desc"))
_TAGS = Many(Fields({"Key!": TEXT, "Value": TEXT}))

DESCRIBE_VPCS: Table = {**_WRITTEN, "VpcIds": _IDS, "Filters": _FILTERS}
DESCRIBE_SUBNETS: Table = {**_WRITTEN, "SubnetIds": _IDS, "Filters": _FILTERS, "MaxResults?": WHOLE, "NextToken?": TEXT}
DESCRIBE_ROUTE_TABLES: Table = {**_WRITTEN, "RouteTableIds": _IDS, "Filters": _FILTERS, "NeedRouterInfo": FLAG}
DESCRIBE_SECURITY_GROUPS: Table = {
    **_WRITTEN,
    "SecurityGroupIds": _IDS,
    "Filters": _FILTERS,
    "OrderField?": TEXT,
    "OrderDirection?": _DIRECTION,
}
DESCRIBE_SECURITY_GROUP_ASSOCIATION_STATISTICS: Table = {"SecurityGroupIds!": _IDS}
DESCRIBE_SECURITY_GROUP_POLICIES: Table = {"SecurityGroupId!": TEXT, "Filters?": _FILTERS}

_POLICY = Fields(
    {
        "PolicyIndex": Whole(0),
        "Protocol": Text(
            (
                "TCP",
                "UDP",
                "ICMP",
                "ICMPV6",
                "GRE",
                "ALL",
                "tcp",
                "udp",
                "icmp",
                "icmpv6",
                "gre",
                "all",
                "ICMPv6",
                "All",
            )
        ),
        "Port": TEXT,
        "ServiceTemplate": Fields({"ServiceId": TEXT, "ServiceGroupId": TEXT}),
        "CidrBlock": TEXT,
        "Ipv6CidrBlock": TEXT,
        "SecurityGroupId": TEXT,
        "AddressTemplate": Fields({"AddressId": TEXT, "AddressGroupId": TEXT}),
        "Action": Text(("ACCEPT", "DROP", "accept", "drop", "Accept", "Drop")),
        "PolicyDescription": Text(longest=100),
        "ModifyTime?": TEXT,
        "Priority?": WHOLE,
    }
)
_POLICY_SET = Fields(
    {
        "Version": Text(pattern=r"\d+"),
        "Egress": Many(_POLICY, 100, code=_LIMIT),
        "Ingress": Many(_POLICY, 100, code=_LIMIT),
        "PolicyStatistics?": Fields(
            {f"{side}{family}TotalCount!": WHOLE for side in ("Ingress", "Egress") for family in ("IPv4", "IPv6")}
        ),
    }
)
CREATE_SECURITY_GROUP_POLICIES: Table = {"SecurityGroupId!": TEXT, "SecurityGroupPolicySet!": _POLICY_SET}
DELETE_SECURITY_GROUP_POLICIES: Table = {"SecurityGroupId!": TEXT, "SecurityGroupPolicySet!": _POLICY_SET}
REPLACE_SECURITY_GROUP_POLICY: Table = {
    "SecurityGroupId!": TEXT,
    "SecurityGroupPolicySet!": _POLICY_SET,
    "OriginalSecurityGroupPolicySet": _POLICY_SET,
}

_TEMPLATES: Table = {
    **_WRITTEN,
    "Filters?": _FILTERS,
    "NeedMemberInfo?": FLAG,
    "OrderField?": TEXT,
    "OrderDirection?": _DIRECTION,
    "MemberOrderField?": TEXT,
    "MemberOrderDirection?": _DIRECTION,
}
DESCRIBE_ADDRESS_TEMPLATES: Table = _TEMPLATES
DESCRIBE_ADDRESS_TEMPLATE_GROUPS: Table = _TEMPLATES
DESCRIBE_SERVICE_TEMPLATES: Table = _TEMPLATES
DESCRIBE_SERVICE_TEMPLATE_GROUPS: Table = _TEMPLATES

DESCRIBE_NETWORK_ACLS: Table = {
    **_COUNTED,
    "NetworkAclIds": _IDS,
    "Filters": _FILTERS,
    "OrderField?": TEXT,
    "OrderDirection?": _DIRECTION,
}
DESCRIBE_NETWORK_ACL_QUINTUPLE_ENTRIES: Table = {**_COUNTED, "NetworkAclId!": TEXT, "Filters?": _FILTERS}
DESCRIBE_NETWORK_INTERFACES: Table = {**_COUNTED, "NetworkInterfaceIds": _IDS, "Filters": _FILTERS}
DESCRIBE_NAT_GATEWAYS: Table = {**_COUNTED, "NatGatewayIds": _IDS, "Filters": filters(values=5, code=_LIMIT)}
DESCRIBE_NAT_GATEWAY_DESTINATION_IP_PORT_TRANSLATION_NAT_RULES: Table = {
    **_COUNTED,
    "NatGatewayIds": _IDS,
    "Filters": filters(values=5, code=_LIMIT),
}
DESCRIBE_VPC_PEERING_CONNECTIONS: Table = {
    **_COUNTED,
    "PeeringConnectionIds": _IDS,
    "Filters": _FILTERS,
    "OrderField?": TEXT,
    "OrderDirection?": _DIRECTION,
}
DESCRIBE_FLOW_LOGS: Table = {
    **_COUNTED,
    "VpcId": TEXT,
    "FlowLogId": TEXT,
    "FlowLogName": TEXT,
    "ResourceType": TEXT,
    "ResourceId": TEXT,
    "TrafficType": TEXT,
    "CloudLogId?": TEXT,
    "CloudLogState?": TEXT,
    "OrderField?": TEXT,
    "OrderDirection?": _DIRECTION,
    "Filters?": Fields({"Name!": TEXT, "Values!": TEXTS}),
    "CloudLogRegion?": TEXT,
}
CREATE_FLOW_LOG: Table = {
    "FlowLogName!": Text(longest=60),
    "ResourceType!": Text(("NETWORKINTERFACE", "CCN", "NAT", "DCG")),  # VPC and SUBNET are offered no more
    "ResourceId!": TEXT,
    "TrafficType!": Text(("ACCEPT", "REJECT", "ALL")),
    "VpcId": TEXT,
    "FlowLogDescription": Text(longest=512),
    "CloudLogId": TEXT,
    "Tags?": _TAGS,
    "StorageType": Text(("cls", "ckafka")),
    "FlowLogStorage?": Fields({"StorageId!": TEXT, "StorageTopic": TEXT}),
    "CloudLogRegion": TEXT,
    "Period?": Whole(0),
}
DELETE_FLOW_LOG: Table = {"FlowLogId!": TEXT, "VpcId": TEXT}

INQUIRY_PRICE_ALLOCATE_ADDRESSES: Table = {
    "InternetChargeType!": Text(
        ("BANDWIDTH_POSTPAID_BY_HOUR", "BANDWIDTH_PREPAID_BY_MONTH", "TRAFFIC_POSTPAID_BY_HOUR")
    ),
    "InternetMaxBandwidthOut": Whole(1, 200),
    "AddressChargePrepaid": Fields({"Period!": Whole(1, 36), "AutoRenewFlag": Whole(0, 2)}),
    "AddressType": Text(("EIP", "HighQualityEIP", "AntiDDoSEIP")),
    "IPChargeType?": Text(("IP_POSTPAID_BY_HOUR", "IP_PREPAID_BY_MONTH")),
}
RELEASE_ADDRESSES: Table = {"AddressIds!": Many(TEXT, 100, least=1)}
DISASSOCIATE_ADDRESS: Table = {"AddressId!": TEXT, "ReallocateNormalPublicIp?": FLAG}
ASSOCIATE_ADDRESS: Table = {
    "AddressId!": TEXT,
    "InstanceId": TEXT,
    "NetworkInterfaceId": TEXT,
    "PrivateIpAddress": TEXT,
    "EipDirectConnection?": FLAG,
    "InstanceRegion?": TEXT,
}
