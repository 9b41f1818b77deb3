"""DirectMail, version 2015-11-23."""

DM = {
    "SingleSendMail": """
        AccountName!             text
        AddressType!             whole 0-1
        ReplyToAddress!          flag
        ToAddress!               text
        Subject!                 text
        HtmlBody                 text
        TextBody                 text
        FromAlias                text
        Headers                  text
        ~BccAddress              text
        ~ClickTrace              text
        ~DomainAuth              flag
        ~IpPoolId                text
        ~ReplyAddress            text
        ~ReplyAddressAlias       text
        ~TagName                 text
        ~Template                text
        ~UnSubscribeFilterLevel  text
        ~UnSubscribeLinkType     text
        OwnerId                  whole
        ResourceOwnerAccount     text
        ResourceOwnerId          whole
    """,
}
