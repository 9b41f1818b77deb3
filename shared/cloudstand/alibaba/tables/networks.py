"""Networks: of VPC (2016-04-28), VpcPeer (2022-01-01) and ECS (2014-05-26) what reads them, and what changes them."""

_PAGES = """
        RegionId!                     text
        PageNumber                    whole 1-100000
        PageSize                      whole 1-50
        ~ResourceGroupId              text
"""
_TAGGED = """
        ~Tag.20.Key                   text
        ~Tag.20.Value                 text
"""
_TAGS = """
        ~Tags.20.Key                  text
        ~Tags.20.Value                text
"""
_TOKENS = """
        RegionId!                     text
        MaxResults                    whole 1-100
        NextToken                     text
        ~ResourceGroupId              text
"""

VPC_NETWORKS = {
    "DescribeVpcs": f"""{_PAGES}{_TAGGED}
        DryRun                        flag
        VpcId                         text       # up to 20, separated by commas
        ~DhcpOptionsSetId             text
        ~EnableIpv6                   flag
        ~IsDefault                    flag       # whose default the documents do not agree on
        ~VpcName                      text
        ~VpcOwnerId                   whole
    """,
    "DescribeVSwitches": f"""{_PAGES}{_TAGGED}
        DryRun                        flag
        VpcId                         text
        VSwitchId                     text
        ~EnableIpv6                   flag
        ~IsDefault                    flag
        ~RouteTableId                 text
        ~VSwitchName                  text
        ~VSwitchOwnerId               whole
        ~ZoneId                       text
    """,
    "DescribeRouteTableList": f"""{_PAGES}{_TAGGED}
        VpcId                         text
        RouteTableId                  text
        RouterType                    VRouter|VBR
        ~RouteTableName               text
        ~RouteTableType               System|Custom
        ~RouterId                     text
    """,
    "DescribeRouteEntryList": """
        RegionId!                     text
        RouteTableId!                 text
        MaxResult                     whole 1-100
        NextToken                     text
        ~DestCidrBlockList.20         text
        ~DestinationCidrBlock         text
        ~IpVersion                    ipv4|ipv6
        ~NextHopId                    text
        ~NextHopType                  text
        ~RouteEntryId                 text
        ~RouteEntryName               text
        ~RouteEntryType               text
        ~ServiceType                  text
    """,
    "DescribeNetworkAcls": f"""{_PAGES}{_TAGS}
        VpcId                         text
        ~ClientToken                  text
        ~NetworkAclId                 text
        ~NetworkAclName               text
        ~ResourceId                   text
        ~ResourceType                 text
    """,
    "DescribeNetworkAclAttributes": """
        RegionId!                     text
        NetworkAclId!                 text
        ~ClientToken                  text
    """,
    "DescribeNatGateways": f"""{_PAGES}{_TAGGED}
        DryRun                        flag
        VpcId                         text
        ~AvailabilityMode             text
        ~InstanceChargeType           PostPaid|PrePaid
        ~Name                         text
        ~NatGatewayId                 text
        ~NatType                      text
        ~NetworkType                  internet|intranet
        ~Spec                         text
        ~Status                       text
        ~ZoneId                       text
    """,
    "DescribeForwardTableEntries": """
        RegionId!                     text
        PageNumber                    whole 1-100000
        PageSize                      whole 1-50
        ForwardTableId                text       # this, or the next
        NatGatewayId                  text
        ~ExternalIp                   text
        ~ExternalPort                 text
        ~ForwardEntryId               text
        ~ForwardEntryName             text
        ~InternalIp                   text
        ~InternalPort                 text
        ~IpProtocol                   tcp|udp|any
    """,
    "DescribeFlowLogs": f"""{_PAGES}{_TAGS}
        FlowLogId                     text
        ResourceId                    text
        ResourceType                  NetworkInterface|VSwitch|VPC
        ~Description                  text
        ~FlowLogName                  text
        ~LogStoreName                 text
        ~ProjectName                  text
        ~Status                       Active|Activating|Inactive
        ~TrafficType                  All|Allow|Drop
        ~VpcId                        text
    """,
    "ListIpv4Gateways": f"""{_TOKENS}{_TAGS}
        ~Ipv4GatewayId                text
        ~Ipv4GatewayName              text
        ~VpcId                        text
    """,
    "DescribeIpv6Addresses": f"""{_PAGES}{_TAGGED}
        NetworkType                   Private|Public
        ~AddressType                  IPv6Address|IPv6Prefix
        ~AssociatedInstanceId         text
        ~AssociatedInstanceType       EcsInstance|NetworkInterface
        ~IncludeReservationData       flag
        ~Ipv6Address                  text
        ~Ipv6AddressId                text
        ~Ipv6InternetBandwidthId      text
        ~Name                         text
        ~ServiceManaged               flag
        ~VSwitchId                    text
        ~VpcId                        text
    """,
    "ReleaseEipAddress": """
        RegionId                      text
        AllocationId!                 text
    """,
    "UnassociateEipAddress": """
        RegionId                      text
        AllocationId!                 text
        InstanceId                    text
        InstanceType                  EcsInstance|SlbInstance|NetworkInterface|Nat|HaVip|IpAddress
        PrivateIpAddress              text
        Force                         flag       # of NAT gateways only
        ClientToken                   text 1-64
    """,
    "AssociateEipAddress": """
        RegionId                      text
        AllocationId!                 text
        InstanceId!                   text
        InstanceType                  EcsInstance|SlbInstance|NetworkInterface|Nat|HaVip|IpAddress
        PrivateIpAddress              text
        Mode                          NAT|MULTI_BINDED|BINDED
        ClientToken                   text 1-64
        ~InstanceRegionId             text
        ~VpcId                        text
    """,
    "CreateFlowLog": """
        RegionId!                     text
        ResourceId!                   text
        ResourceType!                 NetworkInterface|VSwitch|VPC
        TrafficType!                  All|Allow|Drop
        ProjectName!                  text 3-63  # the SDK's table does not say so, and nothing is logged without
        LogStoreName!                 text 3-63
        FlowLogName                   text 1-128
        Description                   text 1-256
        ~AggregationInterval          whole 1-10
        ~IpVersion                    text
        ~LogFormat                    text
        ~ResourceGroupId              text
        ~TrafficPath.10               text
        ~Tag.20.Key                   text
        ~Tag.20.Value                 text
    """,
    "DeleteFlowLog": """
        RegionId!                     text
        FlowLogId!                    text
    """,
}

VPC_PEER = {
    "ListVpcPeerConnections": f"""{_TOKENS}{_TAGS}
        ~InstanceId                   text
        ~Name                         text
        ~VpcId.20                     text
    """,
}

_OLD = "".join(
    f"        ~{name}    text\n"
    for name in (
        "Description",
        "DestCidrIp",
        "IpProtocol",
        "Ipv6DestCidrIp",
        "Ipv6SourceCidrIp",
        "NicType",
        "Policy",
        "PortRange",
        "Priority",
        "SourceCidrIp",
        "SourceGroupId",
        "SourceGroupOwnerAccount",
        "SourceGroupOwnerId",
        "SourcePortRange",
        "SourcePrefixListId",
    )
)
"""The form without `Permissions.N`, which goes with nothing else."""

ECS_NETWORKS = {
    "DescribeSecurityGroups": f"""{_TAGGED}
        RegionId!                     text
        MaxResults                    whole 1-100
        NextToken                     text
        DryRun                        flag
        SecurityGroupId               text
        SecurityGroupIds              ids 100
        VpcId                         text
        ~FuzzyQuery                   flag
        ~IsQueryEcsCount              flag
        ~NetworkType                  vpc|classic
        ~PageNumber                   whole
        ~PageSize                     whole
        ~ResourceGroupId              text
        ~SecurityGroupName            text
        ~SecurityGroupType            normal|enterprise
        ~ServiceManaged               flag
    """,
    "DescribeSecurityGroupAttribute": """
        RegionId!                     text
        SecurityGroupId!              text
        Direction                     ingress|egress|all
        MaxResults                    whole 10-1000
        NextToken                     text
        NicType                       intranet|internet
        ~Attribute                    text
    """,
    "DescribeSecurityGroupReferences": """
        RegionId!                     text
        SecurityGroupId.10!           text
    """,
    "DescribeNetworkInterfaces": f"""{_TAGGED}
        RegionId!                     text
        MaxResults                    whole       # below 10 counts as 10, above 500 as 500
        NextToken                     text
        InstanceId                    text
        NetworkInterfaceId.100        text
        PrimaryIpAddress              text
        Status                        Available|Attaching|InUse|Detaching|Deleting
        Type                          Primary|Secondary
        VSwitchId                     text
        VpcId                         text
        ~Ipv6Address.100              text
        ~NetworkInterfaceName         text
        ~PageNumber                   whole
        ~PageSize                     whole
        ~PrivateIpAddress.100         text
        ~ResourceGroupId              text
        ~SecurityGroupId              text
        ~ServiceManaged               flag
    """,
    "DescribePrefixListAttributes": """
        RegionId!                     text
        PrefixListId!                 text
    """,
    "DescribePortRangeListEntries": """
        RegionId!                     text
        PortRangeListId!              text
    """,
    "AuthorizeSecurityGroup": f"""{_OLD}
        RegionId!                                   text
        SecurityGroupId!                            text
        ClientToken                                 text 1-64
        Permissions.100.Description                 text 1-512
        Permissions.100.IpProtocol!                 text
        Permissions.100.Ipv6SourceCidrIp            text
        Permissions.100.NicType                     intranet|internet
        Permissions.100.Policy                      text
        Permissions.100.PortRange!                  text
        Permissions.100.Priority                    text
        Permissions.100.SourceCidrIp                text
        Permissions.100.SourceGroupId               text
        ~Permissions.100.DestCidrIp                 text
        ~Permissions.100.Ipv6DestCidrIp             text
        ~Permissions.100.PortRangeListId            text
        ~Permissions.100.SourceGroupOwnerAccount    text
        ~Permissions.100.SourceGroupOwnerId         whole
        ~Permissions.100.SourcePortRange            text
        ~Permissions.100.SourcePrefixListId         text
    """,
    "RevokeSecurityGroup": f"""{_OLD}
        RegionId!                                   text
        SecurityGroupId!                            text
        SecurityGroupRuleId.100                     text
        ClientToken                                 text 1-64
        ~Permissions.100.IpProtocol                 text
        ~Permissions.100.NicType                    text
        ~Permissions.100.Policy                     text
        ~Permissions.100.PortRange                  text
        ~Permissions.100.Priority                   text
        ~Permissions.100.SourceCidrIp               text
    """,
    "ModifyInstanceMetadataOptions": """
        RegionId!                     text
        InstanceId!                   text
        HttpEndpoint!                 enabled|disabled
        HttpTokens                    optional|required
        ~HttpPutResponseHopLimit      whole
        InstanceMetadataTags          enabled|disabled
    """,
}
