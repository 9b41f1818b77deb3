"""Key Management Service, version 2016-01-20: keys, their aliases, tags and rotation."""

KMS = {
    "ListKeys": """
        PageNumber                whole 1-100000
        PageSize                  whole 1-100
        ~Filters                  text
    """,
    "ListAliases": """
        PageNumber                whole 1-100000
        PageSize                  whole 0-100
    """,
    "DescribeKey": """
        KeyId!                    text
    """,
    "ListResourceTags": """
        KeyId!                    text
    """,
    "ListTagResources": """
        RegionId!                 text
        ResourceType!             key|secret
        ResourceId.50             text
        NextToken                 text
        ~Tag.20.Key               text
        ~Tag.20.Value             text
    """,
    "GetSecretValue": """
        SecretName!               text
        VersionStage              ACSCurrent
        ~VersionId                text
        ~FetchExtendedConfig      flag
    """,
    "DescribeRegions": "",
    "DescribeAccountKmsStatus": "",
    "UpdateRotationPolicy": """
        KeyId!                    text
        EnableAutomaticRotation!  flag
        RotationInterval          text
    """,
    "CreateKeyVersion": """
        KeyId!                    text
    """,
    "GetKeyPolicy": """
        KeyId!                    text
        PolicyName                text
    """,
    "CreateKey": """
        Description               text
        KeySpec                   text
        KeyUsage                  text
        Origin                    Aliyun_KMS|EXTERNAL
        DKMSInstanceId            text
        Policy                    text
        Tags                      text
    """,
    "UpdateAlias": """
        AliasName!                text
        KeyId!                    text
    """,
    "Encrypt": """
        KeyId!                    text
        Plaintext!                text
        EncryptionContext         text
    """,
    "Decrypt": """
        CiphertextBlob!           text
        EncryptionContext         text
    """,
}
