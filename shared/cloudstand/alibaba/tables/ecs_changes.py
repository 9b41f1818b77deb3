"""Elastic Compute Service, version 2014-05-26: what changes something."""

_START = """
    InstanceId!             text
    DryRun                  flag
    ~InitLocalDisk          flag
"""
_TAGGED = "instance|disk|snapshot|image|securitygroup|volume|eni|ddh|keypair|launchtemplate|snapshotpolicy|command"

ECS_CHANGES = {
    "StopInstances": """
        RegionId!               text
        InstanceId.100!         text
        StoppedMode             StopCharging|KeepCharging
        ForceStop               flag
        BatchOptimization       AllTogether|SuccessFirst
        DryRun                  flag
    """,
    "StopInstance": """
        InstanceId!             text
        StoppedMode             StopCharging|KeepCharging
        ForceStop               flag
        ConfirmStop             flag
        DryRun                  flag
        ~Hibernate              flag
    """,
    "StartInstances": """
        RegionId!               text
        InstanceId.100!         text
        BatchOptimization       AllTogether|SuccessFirst
        DryRun                  flag
    """,
    "StartInstance": _START,
    "DeleteInstances": """
        RegionId!               text
        InstanceId.100!         text
        Force                   flag
        ForceStop               flag
        TerminateSubscription   flag
        ClientToken             text 1-64
        DryRun                  flag
    """,
    "DeleteInstance": """
        InstanceId!             text
        Force                   flag
        ForceStop               flag
        TerminateSubscription   flag
        DryRun                  flag
    """,
    "CreateSnapshot": """
        DiskId!                       text
        SnapshotName                  text 2-128
        Description                   text 2-256
        RetentionDays                 whole 1-65536
        ClientToken                   text 1-64
        Tag.20.Key                    text 1-128
        Tag.20.Value                  text 0-128
        Category                      Standard|Flash
        InstantAccess                 flag
        InstantAccessRetentionDays    whole 1-65535
        ~ResourceGroupId              text
        ~StorageLocationArn           text
    """,
    "TagResources": f"""
        RegionId!               text
        ResourceType!           {_TAGGED}
        ResourceId.50!          text                @NumberExceed.ResourceIds
        Tag.20.Key!             text 1-128          @NumberExceed.Tags
        Tag.20.Value            text 0-128
    """,
    "UntagResources": f"""
        RegionId!               text
        ResourceType!           {_TAGGED}
        ResourceId.50!          text                @NumberExceed.ResourceIds
        TagKey.20               text 1-128          @NumberExceed.Tags
        All                     flag
    """,
    "ModifyInstanceAttribute": """
        InstanceId!                                              text
        DeletionProtection                                       flag
        ~CpuOptions.Core                                         whole
        ~CpuOptions.NestedVirtualization                         text
        ~CpuOptions.ThreadsPerCore                               whole
        ~CpuOptions.TopologyType                                 text
        ~CreditSpecification                                     text
        ~Description                                             text
        ~EnableJumboFrame                                        flag
        ~EnableNetworkEncryption                                 flag
        ~HostName                                                text
        ~InstanceName                                            text
        ~NetworkInterfaceQueueNumber                             whole
        ~Password                                                text
        ~PrivateDnsNameOptions.EnableInstanceIdDnsAAAARecord     flag
        ~PrivateDnsNameOptions.EnableInstanceIdDnsARecord        flag
        ~PrivateDnsNameOptions.EnableIpDnsARecord                flag
        ~PrivateDnsNameOptions.EnableIpDnsPtrRecord              flag
        ~PrivateDnsNameOptions.HostnameType                      text
        ~Recyclable                                              flag
        ~RemoteConnectionOptions.Password                        text
        ~RemoteConnectionOptions.Type                            text
        ~SecurityGroupIds.10                                     text
        ~UserData                                                text
    """,
}
