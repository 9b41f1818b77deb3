"""Chinese: the words of the demo's story."""

from __future__ import annotations

from collections.abc import Mapping

DEMO: Mapping[str, str] = {
    "demo_title": "Costguard 演示：一分钟看完一个 GPU 机群的 {days} 天",
    "demo_intro": (
        "这里的一切都是虚构的，全部在本进程内运行：三家云平台、Slack、账本，以及可以拨动的时钟。"
        "引擎、策略和调用都是真实的。"
    ),
    "demo_fleet": "{clouds} 家云平台 {accounts} 个账号中的 {machines} 台机器，每小时花费 {hourly}。它们共用一套策略：",
    "demo_policy": (
        "机器空闲满 24 小时即通知负责人，通知送达一天后停机；研究团队的机器若再过一周仍无人需要，则先创建快照，再释放。"
        "每月预算看护全公司及其中的两个团队。"
    ),
    "demo_starting": "正在启动沙箱",
    "demo_living": "第 {number} 天",
    "demo_day": "第 {number} 天，{at}",
    "demo_later": "第 {number} 天，一小时后",
    "demo_news": "动态",
    "demo_seen": "确认",
    "demo_found": "发现",
    "demo_plan": "计划",
    "demo_told": "通知",
    "demo_done": "执行",
    "demo_held": "搁置",
    "demo_held_mark": "搁置：",
    "demo_comma": "、",
    "demo_named": "{name}：{why}",
    "demo_owned": "（{owner}）",
    "demo_count": "{verdict} {count} 台",
    "demo_quiet": "没有待执行的操作[；{held} 项仍搁置]",
    "demo_plan_warn": "通知负责人：{names}",
    "demo_plan_snapshot": "为所有云盘创建快照：{names}",
    "demo_plan_stop": "停机：{names}",
    "demo_plan_terminate": "释放：{names}",
    "demo_plan_start": "启动：{names}",
    "demo_did": "{verb} {name}：{outcome}[；每小时节省 {amount}]",
    "demo_did_times": "{verb} {name}，{count} 块云盘：{outcome}",
    "demo_not_done": "{verb} {name}：未执行。{why}",
    "demo_seen_stop": "{name} 已停机",
    "demo_seen_snapshot": "{name} 的所有云盘快照均已完成",
    "demo_seen_terminate": "{name} 已释放，快照保留",
    "demo_ending": "{days} 天之后",
    "demo_saved": "目前已节省 {amount}，此后每小时再节省 {hourly}。",
    "demo_saved_nothing": "暂无节省：负责人还在答复期限内。",
    "demo_saved_line": "{name}：{hours} 小时，每小时 {hourly}，自 {since} 起[，至 {until}]",
    "demo_stays": "已扣除仍在计费的云盘和公网地址：{amount}。",
    "demo_stays_unknown": "{names} 仍在计费的部分价格未知，未扣除。",
    "demo_copies": "{names} 的快照在删除之前每小时最多再花费 {hourly}。",
    "demo_spent": "已用",
    "demo_spent_of": "{name} {share}%",
    "demo_budget": "{name}：{amount} 的 {share}%",
    "demo_budgets_title": "预算使用情况",
    "demo_budget_ahead": "每小时消耗 {burn}[；全月预测 {ahead}]",
    "demo_budget_told": "已通知：{told}",
    "demo_budget_told_actual": "{when} 已用 {at}%",
    "demo_budget_told_forecast": "{when} 预计达到 {at}%",
    "demo_budget_told_surge": "{when} 消耗异常",
    "demo_left_title": "没有触碰的机器，以及原因",
    "demo_snoozed": "负责人要求保留：暂缓[至 {until}]。",
    "demo_warn_only": "其规则只通知，不做任何操作。",
    "demo_unmeasured_title": "暂时无法判断的机器，以及解决办法",
    "demo_audit": "每一个决定、通知和调用都记录在审计中。{verdict}",
    "demo_next": "扫描您自己的账号（只读，无需策略）：costguard scan",
}
