"""Virtual Private Cloud, version 2016-04-28: public addresses; the rest stands in `networks.py`."""

VPC = {
    "DescribeEipAddresses": """
        RegionId!                     text
        PageNumber                    whole 1-100000
        PageSize                      whole 1-100
        DryRun                        flag
        Status                        Associating|Unassociating|InUse|Available|Releasing
        AllocationId                  text       # up to 50, separated by commas
        EipAddress                    text       # up to 50, separated by commas
        AssociatedInstanceId          text
        AssociatedInstanceType        EcsInstance|SlbInstance|Nat|HaVip|NetworkInterface|IpAddress
        ChargeType                    PostPaid|PrePaid
        ~EipName                      text
        ~ISP                          text
        ~IncludeReservationData       flag
        ~LockReason                   text
        ~PublicIpAddressPoolId        text
        ~ResourceGroupId              text
        ~SecurityProtectionEnabled    flag
        ~SegmentInstanceId            text
        ~ServiceManaged               flag
        ~Filter.10.Key                text
        ~Filter.10.Value              text
        ~Tag.20.Key                   text
        ~Tag.20.Value                 text
    """,
}
