"""Simplified Chinese: what is said of rules in the shadow."""

from __future__ import annotations

from collections.abc import Mapping

SHADOWS: Mapping[str, str] = {
    "shadow_title": "影子规则 {rule}（{guard}）：与生效规则的差异",
    "shadow_agrees": "影子规则 {rule}（{guard}）对全部 {compared} 项的判断与生效规则一致。",
    "shadow_unseen": "影子规则 {rule}（{guard}）：未作任何比较，没有读到它所针对的资源。",
    "shadow_counts": "{compared} 项中有 {differs} 项不同；按影子规则，现在运行的机器中有 {would_stop} 台本应已停止。",
    "shadow_tally": (
        "自 {since} 起：另有 {stops} 台本应已停止。其中 {busy} 台在 24 小时内恢复使用，{later} 台更晚恢复，"
        "{stopped} 台仍被停止，{otherwise} 台以其他方式结束；合计空闲 {hours} 小时。"
    ),
    "shadow_left_out": "…… 另有 {count} 项",
    "shadow_none": "没有影子规则，或尚无运行跟踪过它们。",
    "shadow_in_force": "生效规则",
    "shadow_says": "影子规则",
    "shadow_differs": "差异",
    "only_shadow": "仅影子规则会处理",
    "only_in_force": "影子规则不会处理",
    "sooner": "影子规则更早",
    "later": "影子规则更晚",
    "other_mend": "修复方式不同",
    "shadow_stops_at": "{verdict}；{when} 停止",
}
