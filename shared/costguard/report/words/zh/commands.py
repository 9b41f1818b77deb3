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
    "sandbox_followed": "沙箱 {url} 中的时间为 {now}：以下均为虚构数据。",
    "sandbox_up": "虚构环境，时间从 {now} 开始，直到本命令被中断。请在另一个终端中执行：",
    "sandbox_up_cloud": "其他程序也可访问这些云：",
    "sandbox_moved": "沙箱中的时间为 {now}。",
    "snoozed": "{resource} 在 {until} 之前不会被操作。",
    "is_snoozed": "暂缓至 {until}[，由 {by} 设置][：{reason}]。",
    "approved": "{resource} 等待批准的步骤可执行一次，有效至 {until}。",
    "paused": "已暂停[，由 {by} 设置][：{reason}]。执行 `costguard resume` 之前不会开始任何操作。",
    "pause_not_written": (
        "本命令未能暂停 Costguard，或无法确认是否已暂停：账本没有应答。各主机自带的开关不需要账本。"
        "请为每个函数设置 COSTGUARD_PAUSED=1：\n"
        "  Lambda：配置 > 环境变量 > 编辑\n"
        "  函数计算 FC：配置 > 环境变量 > 编辑\n"
        "  SCF：函数配置 > 编辑 > 环境变量\n"
        "  容器、cron 或命令行：在启动它的地方 export COSTGUARD_PAUSED=1\n"
        "  由 Terraform 部署：{setting}，然后再次执行 `costguard deploy`\n"
        "此前已开始的运行仍使用旧的环境变量。账本恢复应答后，请再次执行 `costguard pause`。"
    ),
    "recheck_none": "没有因应答丢失而搁置的案件。",
    "recheck_took_effect": "{resource}：已生效。{why}",
    "recheck_no_effect": "{resource}：未生效[；当前{state}]。等待重新计时，并重新通知。{why}",
    "recheck_ended": "{resource}：案件已结束。{why}",
    "recheck_under_way": "{resource}：正在进行[；当前{state}]。{why}",
    "recheck_unknown": (
        "{resource}：结果仍未知[；当前{state}]。请在云控制台及其操作审计中核实：手动完成尚缺的操作，或暂缓处理。{why}"
    ),
    "recheck_unseen": "{resource}：未能看到，因此未作决定。`costguard doctor` 会指出原因。{why}",
    "recheck_moved": "{resource}：此刻有运行改动了它，请再次查看。{why}",
    "resumed": "已恢复运行[，由 {by} 设置][：{reason}]。",
    "still_paused": "本主机仍处于暂停：设置了 COSTGUARD_PAUSED。",
    "audit_whole": "审计记录完整：{chains} 条链，{entries} 条记录，全部 {intents} 个操作意图均有记录。",
    "audit_broken": "审计记录已损坏：{entries} 条记录中有 {problems} 处问题。",
    "audit_nobody": "审计记录中尚无任何人。",
    "audit_forgotten_person": "已遗忘",
    "audit_would_forget": "将遗忘 {person}：{who}。尚未更改；加上 --yes 执行。",
    "audit_forgot": "已抹去 {person} 的身份，涉及 {records} 条记录。审计记录保持完整。",
    "audit_would_prune": "将抹去 {chains} 条链中的 {entries} 条记录。尚未更改；加上 --yes 执行。",
    "audit_pruned": "已抹去 {chains} 条链中的 {entries} 条记录；其哈希保留。",
    "happened_opened": "立案[，规则 {rule}]",
    "happened_told": "已通知 {where}：{detail}",
    "happened_not_told": "未能通知 {where}：{detail}",
    "happened_called": "请求云平台{verb} {where}：{outcome}[（{detail}）][；操作编号 {action}]",
    "happened_seen": "已确认：{verb}",
    "happened_closed": "结案[。{why}]",
    "earlier_case": "更早的案件：{opened} 至 {closed}。{why}",
}
