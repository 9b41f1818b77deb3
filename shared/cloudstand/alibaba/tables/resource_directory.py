"""Resource Directory as its management account sees it, version 2022-04-19."""

RESOURCE_DIRECTORY = {
    "ListAccounts": """
        MaxResults           whole 1-100
        NextToken            text
        PageNumber           whole 1-100000
        PageSize             whole 1-100
        IncludeTags          flag
        ~QueryKeyword        text
        ~Tag.20.Key          text
        ~Tag.20.Value        text
    """,
    "ListControlPolicyAttachmentsForTarget": """
        TargetId!            text 1-64
        Language             zh-CN|en|ja
    """,
    "AttachControlPolicy": """
        PolicyId!            text 1-128
        TargetId!            text 1-64
    """,
    "DetachControlPolicy": """
        PolicyId!            text 1-128
        TargetId!            text 1-64
    """,
}
