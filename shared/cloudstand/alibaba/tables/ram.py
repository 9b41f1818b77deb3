"""Resource Access Management, version 2015-05-01: policies of groups."""

_ATTACHMENT = """
        PolicyType!          System|Custom
        PolicyName!          text 1-128
        GroupName!           text 1-64
        ~ResourceGroupId     text
"""
RAM = {
    "ListPoliciesForGroup": """
        GroupName!           text 1-64
    """,
    "AttachPolicyToGroup": _ATTACHMENT,
    "DetachPolicyFromGroup": _ATTACHMENT,
}
