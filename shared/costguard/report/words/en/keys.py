"""English: what rules for keys say, and what was found of keys."""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "policy_valid_keys": (
        "The policy is valid: {rules} rules[, {budgets} budgets] and {keys} rules for keys in {files} files."
    ),
    "key_rules": "What each rule for keys asks",
    "key_rule_rule": "Rule",
    "key_rule_mode": "Mode",
    "key_rule_covers": "Keys",
    "key_rule_rotate_every": "Rotated every",
    "key_rule_means": "By",
    "key_rule_customer_keys": "Default keys",
    "key_rule_every_key": "every key",
    "key_rule_or": " or ",
    "key_rule_list": ", ",
    "key_rule_except": "{which}; not {excepted}",
    "key_rule_automatic": "itself",
    "key_rule_on_demand": "on demand",
    "key_rule_successor": "a successor",
    "key_rule_default_found": "are a finding where used",
    "key_rule_default_accepted": "are accepted",
    "key_cost_first_two": (
        "each of a key's first two as much as a key by the hour[, {monthly} a month]; later ones nothing"
    ),
    "key_cost_quota": "one more of the instance's quota of keys",
    "key_cost_add_on": "nothing beside the rotation add-on, which is bought for the region",
    "key_cost_new_key": "a further key at its price[, {monthly} a month]",
    "key_cost_nothing": "nothing",
    "key_cost_unknown": "unknown: no document says",
    "keys_title": "Keys worth a look ({count})",
    "keys_rest_title": "Other keys ({count})",
    "keys_limits_title": "Limits of the vendors, and no faults ({count})",
    "keys_name": "Key",
    "keys_shard": "Where",
    "keys_spec": "Kind",
    "keys_verdict": "Finding",
    "keys_why": "Why",
    "keys_mend": "Would mend it",
    "keys_owner": "Owner",
    "keys_rule": "Rule",
    "keys_count": "Keys",
    "keys_cloud": "Cloud",
    "keys_verdict_violation": "not as asked",
    "keys_verdict_compliant": "as asked",
    "keys_verdict_unmeasured": "not measured",
    "keys_verdict_exempt": "not judged",
    "keys_total": (
        "{keys} keys: {violations} findings not as asked, {unmeasured} not measured, {compliant} keys rotated in time,"
        " {exempt} not judged."
    ),
    "keys_exempt": "Not judged: {why} ({count})",
    "keys_nothing": "No key was found.",
    "keys_nothing_read": "No key was seen; what could not be read is below.",
    "keys_shown_only": "This only shows; `costguard plan --guard kms_rotation` says what would be done about it now.",
    "keys_all_hint": "`--all` shows the other keys too.",
    "keys_none": "The policy has no rule for keys, so none is read. A rule looks like this:",
    "keys_none_hint": "It only observes. Without any policy every key is held to 90 days.",
    "invoked_keys_violation": "not as asked",
    "invoked_keys_compliant": "as asked",
    "invoked_keys_unmeasured": "not measured",
    "invoked_keys_exempt": "not judged, or a vendor's limit",
    "figure_keys_seen": "keys seen",
}
