"""Elastic Compute Service, version 2014-05-26: what it can be asked."""

_PRICED = "instance|disk|diskperformance|bandwidth|ddh|ElasticityAssurance|CapacityReservation"

ECS = {
    "DescribeRegions": """
        AcceptLanguage          text
        ~InstanceChargeType     text
        ResourceType            instance|disk|reservedinstance|scu
    """,
    "DescribeInstances": """
        RegionId!                     text
        MaxResults                    whole       # below 10 counts as 10, above 100 as 100
        NextToken                     text
        PageNumber                    whole 1-100000
        PageSize                      whole 1-100
        DryRun                        flag
        InstanceIds                   ids 100
        Status                        Pending|Running|Starting|Stopping|Stopped
        InstanceType                  text
        InstanceTypeFamily            text
        InstanceChargeType            PostPaid|PrePaid
        InstanceName                  text
        InstanceNetworkType           vpc|classic
        ZoneId                        text
        Tag.20.Key                    text
        Tag.20.Value                  text
        AdditionalAttributes.20       text
        ~DeviceAvailable              flag
        ~EipAddresses                 text
        ~Filter.4.Key                 text
        ~Filter.4.Value               text
        ~HpcClusterId                 text
        ~HttpEndpoint                 text
        ~HttpPutResponseHopLimit      whole
        ~HttpTokens                   text
        ~ImageId                      text
        ~InnerIpAddresses             text
        ~InternetChargeType           text
        ~IoOptimized                  flag
        ~Ipv6Address.100              text
        ~KeyPairName                  text
        ~LockReason                   text
        ~NeedSaleCycle                flag
        ~PrivateIpAddresses           text
        ~PublicIpAddresses            text
        ~RdmaIpAddresses              text
        ~ResourceGroupId              text
        ~SecurityGroupId              text
        ~VSwitchId                    text
        ~VpcId                        text
    """,
    "DescribeInstanceStatus": """
        RegionId!               text
        InstanceId.100          text
        PageNumber              whole 1-100000
        PageSize                whole 1-50
        ZoneId                  text
        ~ClusterId              text
    """,
    "DescribeInstanceAttribute": """
        InstanceId!             text
    """,
    "DescribeInstanceTypes": """
        InstanceTypes.10                      text
        InstanceTypeFamily                    text
        GPUSpec                               text
        InstanceCategory                      text
        MinimumGPUAmount                      whole
        MaximumGPUAmount                      whole
        MaxResults                            whole
        NextToken                             text
        AdditionalAttributes.20               text
        ~CpuArchitecture                      X86|ARM
        ~CpuArchitectures.2                   X86|ARM
        ~GpuSpecs.10                          text
        ~InstanceCategories.10                text
        ~InstanceFamilyLevel                  text
        ~InstanceTypeFamilies.10              text
        ~LocalStorageCategories.2             text
        ~LocalStorageCategory                 text
        ~MaximumCpuCoreCount                  whole
        ~MaximumCpuSpeedFrequency             text
        ~MaximumCpuTurboFrequency             text
        ~MaximumMemorySize                    text
        ~MinimumBaselineCredit                whole
        ~MinimumCpuCoreCount                  whole
        ~MinimumCpuSpeedFrequency             text
        ~MinimumCpuTurboFrequency             text
        ~MinimumDiskQuantity                  whole
        ~MinimumEniIpv6AddressQuantity        whole
        ~MinimumEniPrivateIpAddressQuantity   whole
        ~MinimumEniQuantity                   whole
        ~MinimumEriQuantity                   whole
        ~MinimumInitialCredit                 whole
        ~MinimumInstanceBandwidthRx           whole
        ~MinimumInstanceBandwidthTx           whole
        ~MinimumInstancePpsRx                 whole
        ~MinimumInstancePpsTx                 whole
        ~MinimumLocalStorageAmount            whole
        ~MinimumLocalStorageCapacity          whole
        ~MinimumMemorySize                    text
        ~MinimumPrimaryEniQueueNumber         whole
        ~MinimumQueuePairNumber               whole
        ~MinimumSecondaryEniQueueNumber       whole
        ~NvmeSupport                          text
        ~PhysicalProcessorModel               text
        ~PhysicalProcessorModels.10           text
    """,
    "DescribeDisks": """
        RegionId!                       text
        MaxResults                      whole     # below 10 counts as 10, above 500 as 500
        NextToken                       text
        PageNumber                      whole 1-100000
        PageSize                        whole 1-100
        DryRun                          flag
        InstanceId                      text
        DiskIds                         ids 100
        DiskType                        all|system|data
        Status                          In_use|Available|Attaching|Detaching|Creating|ReIniting|All
        Category                        text
        DeleteWithInstance              flag
        Encrypted                       flag      # true finds encrypted ones only, false all
        KMSKeyId                        text
        ZoneId                          text
        Tag.20.Key                      text
        Tag.20.Value                    text
        AdditionalAttributes.20         text
        ~AutoSnapshotPolicyId           text
        ~DeleteAutoSnapshot             flag
        ~DiskChargeType                 PrePaid|PostPaid
        ~DiskName                       text
        ~EnableAutoSnapshot             flag
        ~EnableAutomatedSnapshotPolicy  flag
        ~EnableShared                   flag
        ~Filter.4.Key                   text
        ~Filter.4.Value                 text
        ~LockReason                     text
        ~MultiAttach                    text
        ~PerformanceLevel               PL0|PL1|PL2|PL3
        ~Portable                       flag
        ~ResourceGroupId                text
        ~SnapshotId                     text
    """,
    "DescribeSnapshots": """
        RegionId!               text
        MaxResults              whole             # below 10 counts as 10, above 100 as 100
        NextToken               text
        PageNumber              whole 1-100000
        PageSize                whole 1-100
        DryRun                  flag
        SnapshotIds             ids 100
        DiskId                  text
        InstanceId              text
        SnapshotName            text
        Status                  progressing|accomplished|failed|all
        SnapshotType            auto|user|all
        Tag.20.Key              text
        Tag.20.Value            text
        ~Category               text
        ~Encrypted              flag
        ~Filter.4.Key           text
        ~Filter.4.Value         text
        ~KMSKeyId               text
        ~ResourceGroupId        text
        ~SnapshotLinkId         text
        ~SourceDiskType         text
        ~Usage                  text
    """,
    "DescribePrice": f"""
        RegionId!                               text
        ResourceType                            {_PRICED}
        InstanceType                            text
        InstanceNetworkType                     vpc|classic
        IoOptimized                             none|optimized
        PriceUnit                               Hour|Week|Month|Year
        Period                                  whole
        Amount                                  whole 1-1000
        SpotStrategy                            NoSpot|SpotWithPriceLimit|SpotAsPriceGo
        SpotDuration                            whole 0-1
        ZoneId                                  text
        Platform                                text
        SystemDisk.Category                     text
        SystemDisk.Size                         whole 1-32768
        SystemDisk.PerformanceLevel             PL0|PL1|PL2|PL3
        DataDisk.16.Category                    text
        DataDisk.16.Size                        whole 1-32768
        DataDisk.16.PerformanceLevel            PL0|PL1|PL2|PL3
        InternetChargeType                      PayByBandwidth|PayByTraffic
        InternetMaxBandwidthOut                 whole 0-100
        ~AssuranceTimes                         text
        ~Capacity                               whole
        ~DataDisk.16.ProvisionedIops            whole
        ~DataDisk.16.StorageClusterId           text
        ~DedicatedHostType                      text
        ImageId                                 text     # Linux, whichever
        ~InstanceAmount                         whole
        ~InstanceCpuCoreCount                   whole
        ~InstanceTypeList.10                    text
        ~Isp                                    text
        ~OfferingType                           text
        ~RecurrenceRules.7.EndHour              whole
        ~RecurrenceRules.7.RecurrenceType       text
        ~RecurrenceRules.7.RecurrenceValue      text
        ~RecurrenceRules.7.StartHour            whole
        ~SchedulerOptions.DedicatedHostId       text
        ~SchedulerOptions.DeploymentSetStrategy text
        ~Scope                                  text
        ~StartTime                              text
        ~SystemDisk.StorageClusterId            text
    """,
}
