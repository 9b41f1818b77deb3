"""CVM 2017-03-12."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import COUNT, FLAG, TEXT, TEXTS, Fields, Many, Table, Text, Whole, filters

_NAMED = Many(TEXT, 100, least=1, code="InvalidParameterValue.LimitExceeded")
_OFFSET, _LIMIT = Whole(0), Whole(1, 100, code="InvalidParameterValue.LimitExceeded")
_FILTERS = filters(values=5)
_STOP_TYPE = Text(("SOFT", "HARD", "SOFT_FIRST"))

NOTHING: Table = {}
DESCRIBE_INSTANCES: Table = {
    "InstanceIds": Many(TEXT, 100, code="InvalidParameterValue.LimitExceeded"),
    "Filters": _FILTERS,
    "Offset": _OFFSET,
    "Limit": _LIMIT,
}
DESCRIBE_INSTANCES_STATUS: Table = {name: kind for name, kind in DESCRIBE_INSTANCES.items() if name != "Filters"}
START_INSTANCES: Table = {"InstanceIds!": _NAMED}
STOP_INSTANCES: Table = {
    "InstanceIds!": _NAMED,
    "ForceStop": FLAG,
    "StopType": _STOP_TYPE,
    "StoppedMode": Text(("KEEP_CHARGING", "STOP_CHARGING")),
}
TERMINATE_INSTANCES: Table = {"InstanceIds!": _NAMED, "ReleaseAddress": FLAG, "ReleasePrepaidDataDisks?": FLAG}
MODIFY_INSTANCES_ATTRIBUTE: Table = {
    "InstanceIds!": _NAMED,
    "InstanceName": Text(longest=60, code="InvalidInstanceName.TooLong"),
    "UserData?": TEXT,
    "SecurityGroups?": Many(TEXT),
    "CamRoleName?": TEXT,
    "HostName?": TEXT,
    "DisableApiTermination": FLAG,
    "CamRoleType?": Text(("user", "system", "service_linked")),
    "AutoReboot?": FLAG,
    "EnableJumboFrame?": FLAG,
}
REBOOT_INSTANCES: Table = {"InstanceIds!": _NAMED, "ForceReboot": FLAG, "StopType": _STOP_TYPE}
DESCRIBE_INSTANCE_TYPE_CONFIGS: Table = {"Filters": filters(values=1)}
DESCRIBE_ZONE_INSTANCE_CONFIG_INFOS: Table = {"Filters": filters(values=100)}
INQUIRY_PRICE_TERMINATE_INSTANCES: Table = {"InstanceIds!": _NAMED}

_RENEWALS = ("NOTIFY_AND_AUTO_RENEW", "NOTIFY_AND_MANUAL_RENEW", "DISABLE_NOTIFY_AND_MANUAL_RENEW")
_DISK: Table = {
    "DiskType": TEXT,
    "DiskId": TEXT,
    "DiskSize": COUNT,
    "CdcId": TEXT,
    "DiskName": TEXT,
    "Encrypt": FLAG,
    "KmsKeyId": TEXT,
}
_DATA_DISK: Table = {
    **{name: kind for name, kind in _DISK.items() if name != "DiskSize"},
    "DiskSize!": COUNT,
    "DeleteWithInstance": FLAG,
    "SnapshotId": TEXT,
    "ThroughputPerformance": COUNT,
    "BurstPerformance": FLAG,
}
_SERVICE = Fields({"Enabled": FLAG})
_TAG = Fields({"Key!": TEXT, "Value!": TEXT})
INQUIRY_PRICE_RUN_INSTANCES: Table = {
    "Placement!": Fields(
        {
            "Zone!": TEXT,
            "ProjectId": COUNT,
            "HostIds": TEXTS,
            "HostId": TEXT,
            "DedicatedResourcePackTenancy": TEXT,
            "DedicatedResourcePackIds": TEXTS,
            "RackId": TEXT,
        }
    ),
    "ImageId!": TEXT,
    "InstanceChargeType": Text(("PREPAID", "POSTPAID_BY_HOUR", "SPOTPAID")),
    "InstanceChargePrepaid": Fields({"Period!": Whole(1, 60), "RenewFlag": Text(_RENEWALS)}),
    "InstanceType": TEXT,
    "SystemDisk": Fields(_DISK),
    "DataDisks": Many(Fields(_DATA_DISK), 21),
    "VirtualPrivateCloud": Fields(
        {
            "VpcId!": TEXT,
            "SubnetId!": TEXT,
            "AsVpcGateway": FLAG,
            "PrivateIpAddresses": TEXTS,
            "Ipv6AddressCount": COUNT,
        }
    ),
    "InternetAccessible": Fields(
        {
            "InternetChargeType": TEXT,
            "InternetMaxBandwidthOut": COUNT,
            "PublicIpAssigned": FLAG,
            "BandwidthPackageId": TEXT,
            "InternetServiceProvider": TEXT,
            "IPv4AddressType": TEXT,
            "IPv6AddressType": TEXT,
            "AntiDDoSPackageId": TEXT,
        }
    ),
    "InstanceCount": Whole(1, 100),
    "InstanceName": TEXT,
    "LoginSettings": Fields({"Password": TEXT, "KeyIds": TEXTS, "KeepImageLogin": TEXT}),
    "SecurityGroupIds": TEXTS,
    "EnhancedService": Fields({"SecurityService": _SERVICE, "MonitorService": _SERVICE, "AutomationService": _SERVICE}),
    "ClientToken": Text(longest=64),
    "HostName": TEXT,
    "TagSpecification": Many(Fields({"ResourceType!": TEXT, "Tags!": Many(_TAG)})),
    "InstanceMarketOptions": Fields(
        {"SpotOptions!": Fields({"MaxPrice!": TEXT, "SpotInstanceType": TEXT}), "MarketType": TEXT}
    ),
    "Metadata": Fields({"Items!": Many(_TAG)}),
    "HpcClusterId": TEXT,
    "CpuTopology": Fields({"CoreCount": COUNT, "ThreadPerCore": COUNT}),
    "LaunchTemplate?": Fields({"LaunchTemplateId": TEXT, "LaunchTemplateVersion": COUNT}),
    "NetworkInterfaces": Many(
        Fields(
            {
                "InterfaceType!": TEXT,
                "VpcId!": TEXT,
                "SubnetId!": TEXT,
                "PrivateIpv4AddressCount!": COUNT,
                "NetworkInterfaceId": TEXT,
                "SecurityGroupIds": TEXTS,
                "DeleteWithInstance": FLAG,
            }
        )
    ),
}
