"""English: what rules for networks say, and what was found of networks."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.reasons import ReasonCode as Code

REASONS: Mapping[Code, str] = {
    Code.NET_PUBLIC_IP: (
        "It has a public address[: {address}][; addresses: {addresses}][; the world gets in on {ports}]"
        "[ by rule {rule}][ of {group}]."
    ),
    Code.NET_OPEN_PORT: (
        "It lets the world in to an admin, notebook or metrics port[: {port}][, by rule {rule}][ from {peers}]"
        "[ ({protocol} {ports})][; such rules: {rules}][; GPU instances reached: {reaches}][, first {instance}]."
    ),
    Code.NET_WIDE_RULE: (
        "It lets in more of the world than the policy allows[: rule {rule}][ from {peers}][ ({protocol} {ports})]"
        "[; such rules: {rules}][; GPU instances reached: {reaches}][, first {instance}]."
    ),
    Code.NET_UNATTACHED: (
        "The address[ {address}] is bound to nothing[; seen so for {seen_hours} h][, {wanted_hours} h are allowed]."
    ),
    Code.NET_UNATTACHED_YET: (
        "The address[ {address}] is bound to nothing now, and no cloud tells since when[; seen so for {seen_hours} h]"
        "[, {wanted_hours} h are allowed]."
    ),
    Code.NET_IDLE_ADDRESS: (
        "The address[ {address}] is bound to a machine that is stopped[: {machine}][ ({instance})]"
        "[, for {stopped_hours} h][; {wanted_hours} h are allowed]."
    ),
    Code.NET_IDLE_CARD: "The address[ {address}] is bound to a network card that nothing has[: {interface}].",
    Code.NET_IDLE_NAT: "Nothing is routed to the gateway and it forwards nothing[; addresses it holds: {addresses}].",
    Code.NET_DEFAULT_VPC: (
        "The default VPC is in use[ by {instances} instances][; with GPUs: {accelerators}][; reached: {reaches}]."
    ),
    Code.NET_FLOW_LOGS_OFF: (
        "No flow log records its traffic[; cards not covered: {interfaces}][; with GPUs: {accelerators}]."
    ),
    Code.NET_SUBNET_EXPOSED: (
        "It is meant to be private, and leads to the internet[: route {route}][ to {gateway}]"
        "[: public address {address}][; GPU instances: {accelerators}][; reached: {reaches}]."
    ),
    Code.NET_IMDS_V1: "Its metadata answers without a session token (IMDSv1).",
    Code.NET_WIDE_PEERING: (
        "More is routed to the peer[ {peer}] than the policy allows[: {route}][; such routes: {routes}]."
    ),
    Code.NET_REGION: "It is in a region that the policy does not allow[: {region}][; allowed: {allowed}].",
    Code.NET_UNUSED_GROUP: "Nothing is in the group, and no other group names it[; rules: {rules}].",
    Code.NET_AS_ASKED: "As the policy asks[; without use for {hours} h][, {wanted_hours} h are allowed].",
    Code.NET_KEPT: "The policy names it as never to be touched[: {name}][, rule {rule}][, {address}].",
    Code.NET_UNTOLD: "Not measured: what it depends on could not be read[: {part}][ ({detail})].",
    Code.LAST_ADMIN_PATH: (
        "Held: it would close the last way in for people[ to {instance}][ on port {port}]"
        "[; machines concerned: {instances}]."
    ),
    Code.ADMIN_PATH_UNPROVEN: (
        "Held: only networks where nobody is known to be would still get in[ to {instance}][ on port {port}][: {left}]"
        "[; machines concerned: {instances}]."
    ),
    Code.NET_CANNOT_RETURN: "Held: only a rule that could be put back exactly is changed[, and {kind}].",
    Code.NOT_TO_BE_MENDED: "Held: it is not to be changed[: {detail|cause}].",
    Code.MENDED: "Changed as the rule asks, and seen so.",
}

FIXES: Mapping[Code, str] = {
    Code.NET_UNTOLD: "Grant what is named under gaps, if anything is, then run again.",
    Code.LAST_ADMIN_PATH: "Make another way in first: a bastion, a VPN, or a rule for the networks of your people.",
    Code.ADMIN_PATH_UNPROVEN: (
        "Write the networks of your people into `trusted` of the rule, or make another way in: a machine that is itself"
        " reached, or a peering or VPN route that works."
    ),
    Code.NET_CANNOT_RETURN: "Change it by hand, or what it names.",
    Code.NOT_TO_BE_MENDED: "Change it by hand if that is wanted.",
}

GAP_SUBJECTS: Mapping[str, str] = {
    "networks": "networks",
    "vpcs": "VPCs",
    "subnets": "subnets",
    "routes": "route tables",
    "groups": "security groups",
    "access_lists": "access lists",
    "interfaces": "network interfaces",
    "addresses": "public addresses",
    "nat_gateways": "NAT gateways",
    "flow_logs": "flow logs",
    "peerings": "peerings",
    "imds": "metadata service settings",
    "prefix_lists": "lists of networks that rules name",
    "templates": "templates that rules name",
}

LOST_BY_AN_IMAGE: Mapping[str, str] = {
    "no_id": "its cloud told no id of it",
    "group_elsewhere": "it names a group of another network or account",
    "icmp_kind": "it is for one kind of ICMP",
    "more_conditions": "it asks for more than a source, a protocol and a port",
    "port_list": "it names a list of ports",
    "prefix_list": "it names a list of networks",
    "template": "it names a template",
}

_UNTOLD = "what depends on them stays unmeasured, and nothing is changed there"
GAP_EFFECTS: Mapping[str, str] = {
    **dict.fromkeys(GAP_SUBJECTS, _UNTOLD),
    "networks": "nothing is known of them, and ways through them stay unmeasured",
}

NETWORKS: Mapping[str, str] = {
    "policy_valid_networks": (
        "The policy is valid: {rules} rules[, {budgets} budgets][, {keys} rules for keys] and {networks} rules for"
        " networks in {files} files."
    ),
    "network_rules": "What each rule for networks forbids",
    "network_rule_rule": "Rule",
    "network_rule_mode": "Mode",
    "network_rule_covers": "Where",
    "network_rule_forbid": "Forbidden",
    "network_rule_mend": "May be mended by",
    "network_rule_wait": "After",
    "network_rule_everything": "everywhere",
    "network_rule_nothing": "people only",
    "network_rule_or": " or ",
    "network_rule_list": "; ",
    "network_rule_except": "{which}; not {excepted}",
    "network_rule_release_address": "releasing addresses",
    "network_rule_detach_address": "taking addresses off",
    "network_rule_revoke_rule": "revoking rules",
    "network_rule_narrow_rule": "narrowing rules",
    "network_rule_enable_flow_logs": "turning flow logs on",
    "network_rule_require_imdsv2": "requiring IMDSv2",
    "networks_title": "Networks worth a look ({count})",
    "networks_rest_title": "Everything else ({count})",
    "networks_waste_title": "Paid for and not used ({count})",
    "networks_waste_total": "[{sums}, traffic and capacity units not counted.][ {unknown} of unknown price.]",
    "networks_sum": "{hour} an hour, {month} a month of 730 hours",
    "networks_named": "{name}[ and {more} more]",
    "networks_severity": "Severity",
    "networks_check": "Check",
    "networks_name": "Resource",
    "networks_shard": "Where",
    "networks_verdict": "Finding",
    "networks_why": "Why",
    "networks_path": "Way in",
    "networks_closes": "Least change",
    "networks_mend": "Policy allows",
    "networks_cost": "An hour",
    "networks_month": "A month",
    "networks_owner": "Owner",
    "networks_rule": "Rule",
    "networks_list": ", ",
    "networks_count_of": "{count} {what}",
    "networks_severity_critical": "critical",
    "networks_severity_high": "high",
    "networks_severity_medium": "medium",
    "networks_severity_low": "low",
    "networks_verdict_violation": "not as asked",
    "networks_verdict_compliant": "as asked",
    "networks_verdict_unmeasured": "not measured",
    "networks_verdict_exempt": "not judged",
    "networks_barred": "{mend}; but: {why}",
    "networks_price_unknown": "unknown",
    "networks_free_while_bound": "nothing while it stays bound",
    "networks_price_not_read": "unknown: the price could not be read",
    "networks_price_unlisted": "unknown: in no price list at hand",
    "networks_billed_with_others": "unknown: billed together with others",
    "networks_paid_for_a_term": "paid for a term",
    "networks_path_line": "internet → {path}",
    "networks_least_revoke_rule": "revoke rule {rule} of {group}",
    "networks_least_narrow_rule": "narrow rule {rule} of {group} to the networks that policy names",
    "networks_total": (
        "{networks} networks with {instances} GPU instances, {groups} security groups and {rules} rules:"
        " {violations} findings not as asked, {unmeasured} not measured, {compliant} as asked, {exempt} not judged."
    ),
    "networks_by_severity": "Not as asked by severity: {counted}.",
    "networks_exempt": "Not judged: {why} ({count})",
    "networks_nothing": "No network was found.",
    "networks_nothing_read": "No network was seen; what could not be read is below.",
    "networks_only_shown": (
        "This only shows: nothing is changed here, and what the policy allows is a rehearsal. Load balancers are not"
        " followed."
    ),
    "networks_all_hint": "`--all` shows everything else too.",
    "networks_none": "The policy has no rule for networks, so none is read. A rule looks like this:",
    "networks_none_hint": "It only observes. Without any policy every check is made that needs no list of yours.",
    "networks_sarif_written": "SARIF 2.1.0 is in {file}.",
    "invoked_networks_violation": "not as asked",
    "invoked_networks_compliant": "as asked",
    "invoked_networks_unmeasured": "not measured",
    "invoked_networks_exempt": "not judged",
    "figure_networks_seen": "networks seen",
}
