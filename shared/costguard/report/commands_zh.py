"""Chinese: what commands say."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "fact": "{label}：{value}",
    "state_and_why": "{state}。{why}",
    "is_paused": "Costguard 已暂停[，由 {by} 设置][：{reason}]。",
    "invoked": "{function} 已执行，计划时间 {when}（运行 {run}）。",
    "invoked_duplicate": "{function} 在计划时间 {when} 已执行过（运行 {run}）：未做任何操作。",
    "invoked_budget": "{name}：{share}%，{period} 已用 {spent}，额度 {amount}，{sure}",
    "invoked_sure": "可信",
    "invoked_not_sure": "不确定，因此不会为它停机",
    "invoked_budget_violation": "已用尽",
    "invoked_budget_compliant": "额度之内",
    "invoked_budget_unmeasured": "未知",
    "invoked_budget_exempt": "不在日期内",
    "figure_alerts": "本次告警",
    "figure_instances_seen": "实例总数",
    "figure_due": "待执行",
    "figure_done": "已执行",
    "figure_not_done": "未执行",
    "figure_held": "搁置",
    "figure_rehearsed": "演练",
    "figure_notices": "通知",
    "figure_gaps": "读取缺口",
    "snoozed": "{resource} 在 {until} 之前不会被操作。",
    "is_snoozed": "暂缓至 {until}[，由 {by} 设置][：{reason}]。",
    "approved": "{resource} 等待批准的步骤可执行一次，有效至 {until}。",
    "paused": "已暂停[，由 {by} 设置][：{reason}]。执行 `costguard resume` 之前不会开始任何操作。",
    "resumed": "已恢复运行[，由 {by} 设置][：{reason}]。",
    "still_paused": "本主机仍处于暂停：设置了 COSTGUARD_PAUSED。",
    "audit_whole": "审计记录完整：{chains} 条链，{entries} 条记录。",
    "audit_broken": "审计记录已损坏：{entries} 条记录中有 {problems} 处问题。",
    "happened_opened": "立案[，规则 {rule}]",
    "happened_told": "已通知 {where}：{detail}",
    "happened_not_told": "未能通知 {where}：{detail}",
    "happened_called": "请求云平台{verb} {where}：{outcome}[（{detail}）]",
    "happened_seen": "已确认：{verb}",
    "happened_closed": "结案[。{why}]",
    "earlier_case": "更早的案件：{opened} 至 {closed}。{why}",
}
