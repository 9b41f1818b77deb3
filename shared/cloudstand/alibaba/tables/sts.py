"""Security Token Service, version 2015-04-01."""

STS = {
    "GetCallerIdentity": "",
    "AssumeRole": """
        RoleArn!             text
        RoleSessionName!     text
        DurationSeconds      whole
        ~Policy              text 1-2048
        ExternalId           text
        ~SourceIdentity      text
    """,
}
