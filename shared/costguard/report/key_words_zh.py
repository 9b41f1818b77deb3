"""Chinese: what rules for keys say, and what was found of keys."""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "policy_valid_keys": "策略有效：{files} 个文件中有 {rules} 条规则[、{budgets} 个预算]和 {keys} 条密钥规则。",
    "key_rules": "各密钥规则的要求",
    "key_rule_rule": "规则",
    "key_rule_mode": "模式",
    "key_rule_covers": "密钥",
    "key_rule_rotate_every": "轮换周期",
    "key_rule_means": "方式",
    "key_rule_customer_keys": "默认密钥",
    "key_rule_every_key": "所有密钥",
    "key_rule_or": " 或 ",
    "key_rule_list": "，",
    "key_rule_except": "{which}；不含 {excepted}",
    "key_rule_automatic": "自动轮换",
    "key_rule_on_demand": "按需轮换",
    "key_rule_successor": "新密钥接替",
    "key_rule_default_found": "使用即视为违规",
    "key_rule_default_accepted": "可以使用",
    "keys_title": "值得查看的密钥（{count}）",
    "keys_rest_title": "其他密钥（{count}）",
    "keys_limits_title": "云厂商的限制，并非过失（{count}）",
    "keys_name": "密钥",
    "keys_shard": "位置",
    "keys_spec": "类型",
    "keys_verdict": "结论",
    "keys_why": "原因",
    "keys_mend": "可用的改正",
    "keys_owner": "负责人",
    "keys_rule": "规则",
    "keys_count": "密钥数",
    "keys_cloud": "云",
    "keys_verdict_violation": "不符合要求",
    "keys_verdict_compliant": "符合要求",
    "keys_verdict_unmeasured": "未测量",
    "keys_verdict_exempt": "不判定",
    "keys_total": (
        "共 {keys} 个密钥：{violations} 项不符合要求，{unmeasured} 项未测量，{compliant} 个轮换及时，"
        "{exempt} 个不判定。"
    ),
    "keys_exempt": "不判定：{why}（{count}）",
    "keys_nothing": "未发现密钥。",
    "keys_nothing_read": "未看到任何密钥；未能读取的内容见下。",
    "keys_shown_only": "此处仅作展示；`costguard plan --guard kms_rotation` 会说明当前将执行的操作。",
    "keys_all_hint": "`--all` 可同时显示其他密钥。",
    "keys_none": "策略中没有密钥规则，因此未读取任何密钥。规则示例：",
    "keys_none_hint": "规则仅作观察。没有任何策略时，每个密钥都按 90 天要求。",
    "invoked_keys_violation": "不符合要求",
    "invoked_keys_compliant": "符合要求",
    "invoked_keys_unmeasured": "未测量",
    "invoked_keys_exempt": "不判定或云厂商的限制",
    "figure_keys_seen": "已查看密钥",
}
