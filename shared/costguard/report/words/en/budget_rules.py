"""English: what the budgets of a policy say."""

from __future__ import annotations

from collections.abc import Mapping

BUDGET_RULES: Mapping[str, str] = {
    "budget_rules": "What each budget does",
    "budget_rule_budget": "Budget",
    "budget_rule_mode": "Mode",
    "budget_rule_covers": "Covers",
    "budget_rule_amount": "Amount",
    "budget_rule_alerts": "Alerts at",
    "budget_rule_steps": "Steps",
    "budget_rule_monthly": "{amount} a month ({zone})",
    "budget_rule_quarterly": "{amount} a quarter ({zone})",
    "budget_rule_yearly": "{amount} a year ({zone})",
    "budget_rule_dated": "{amount} from {first} to {last} ({zone})",
    "budget_rule_everything": "everything",
    "budget_rule_or": " or ",
    "budget_rule_list": ", ",
    "budget_rule_and": "; ",
    "budget_rule_then": " → ",
    "budget_rule_percent": "{percent}%",
    "budget_rule_forecast": "forecast {shares}",
    "budget_rule_surge": "surge",
    "budget_rule_no_steps": "alert only",
    "budget_rule_stop_idle": "{at}: stop what is idle for {idle_for} (+{wait})",
    "budget_rule_stop_classes": "{at}: stop {classes}, idle or not (+{wait})",
    "budget_rule_freeze": "{at}: deny launches of GPU instances by {freezes} (+{wait})",
    "policy_valid_budgets": "The policy is valid: {rules} rules and {budgets} budgets in {files} files.",
}
