"""Bills and budgets (BssOpenApi), version 2017-12-14."""

_ITEM = "Subscription|PayAsYouGo"

BSS = {
    "DescribeInstanceBill": f"""
        BillingCycle!        text 7-7
        Granularity          MONTHLY|DAILY
        BillingDate          text 10-10
        IsBillingItem        flag
        IsHideZeroCharge     flag
        InstanceID           text
        ProductCode          text
        SubscriptionType     {_ITEM}
        BillOwnerId          whole
        MaxResults           whole 1-300
        NextToken            text
        ~OwnerId             whole
        ~PipCode             text
        ~ProductType         text
    """,
    "QueryBillOverview": f"""
        BillingCycle!        text 7-7
        ProductCode          text
        SubscriptionType     {_ITEM}
        BillOwnerId          whole
        ~ProductType         text
    """,
    "QueryAccountBill": """
        BillingCycle!        text 7-7
        Granularity          MONTHLY|DAILY
        BillingDate          text 10-10
        IsGroupByProduct     flag
        ProductCode          text
        BillOwnerId          whole
        OwnerID              whole
        PageNum              whole 1-100000
        PageSize             whole 1-300
    """,
    "GetPayAsYouGoPrice": """
        ProductCode!                text
        SubscriptionType!           PayAsYouGo|Subscription
        Region                      text
        ModuleList.50.ModuleCode!   text
        ModuleList.50.Config!       text
        ModuleList.50.PriceType!    Hour|Day|Usage|Month|Year
        ~ProductType                text
        ~OwnerId                    whole
    """,
    "DescribePricingModule": f"""
        ProductCode!         text
        SubscriptionType!    {_ITEM}
        ~ProductType         text
        ~OwnerId             whole
    """,
    "DescribeCostBudgetsSummary": """
        BudgetName           text
        BudgetStatus         overdue|notOverdue
        BudgetType           cost|byquantity|asset
        MaxResults           whole 1-10
        NextToken            text
    """,
}
