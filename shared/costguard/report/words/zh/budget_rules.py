"""Chinese: what the budgets of a policy say."""

from __future__ import annotations

from collections.abc import Mapping

BUDGET_RULES: Mapping[str, str] = {
    "budget_rules": "每个预算的内容",
    "budget_rule_budget": "预算",
    "budget_rule_mode": "模式",
    "budget_rule_covers": "范围",
    "budget_rule_amount": "金额",
    "budget_rule_alerts": "告警阈值",
    "budget_rule_steps": "步骤",
    "budget_rule_monthly": "每月 {amount}（{zone}）",
    "budget_rule_quarterly": "每季度 {amount}（{zone}）",
    "budget_rule_yearly": "每年 {amount}（{zone}）",
    "budget_rule_dated": "{first} 至 {last} 共 {amount}（{zone}）",
    "budget_rule_everything": "全部费用",
    "budget_rule_or": " 或 ",
    "budget_rule_list": "、",
    "budget_rule_and": "；",
    "budget_rule_then": " → ",
    "budget_rule_percent": "{percent}%",
    "budget_rule_forecast": "预测 {shares}",
    "budget_rule_surge": "消耗突增",
    "budget_rule_no_steps": "只告警",
    "budget_rule_stop_idle": "{at}：停止已空闲 {idle_for} 的实例（+{wait}）",
    "budget_rule_stop_classes": "{at}：停止 {classes} 类实例，无论是否空闲（+{wait}）",
    "budget_rule_freeze": "{at}：由 {freezes} 禁止新开 GPU 实例（+{wait}）",
    "policy_valid_budgets": "策略有效：{files} 个文件，{rules} 条规则，{budgets} 个预算。",
}
