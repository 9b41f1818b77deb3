"""Simplified Chinese: what people are told about budgets."""

from __future__ import annotations

from collections.abc import Mapping

BUDGET_LABELS: Mapping[str, str] = {
    "budget_period": "周期",
    "budget_spent": "已用",
    "budget_billed": "其中已出账",
    "budget_reckoned": "其中推算",
    "budget_burn": "当前消耗",
    "budget_full": "用尽时间",
    "budget_forecast": "预测",
    "budget_spenders": "当前花费最高",
    "budget_idle": "当前空闲",
    "budget_unexplained": "已出账但清单中没有",
    "budget_sure": "可信程度",
    "freeze_before": "此前已附加",
    "freeze_was": "冻结原因",
    "budget_steps": "后续步骤",
}

BUDGET_PHRASES: Mapping[str, str] = {
    "alert_actual": "预算 {budget}：{amount} 已用 {at}%",
    "alert_early": "预算 {budget}：{amount} 即将用到 {at}%",
    "alert_over": "预算 {budget}：{period} 实际用到 {amount} 的 {at}%",
    "alert_forecast": "预算 {budget}：预计周期结束前将超过 {amount} 的 {at}%",
    "alert_surge": "预算 {budget}：消耗异常，每小时 {now}，平时为 {usual}",
    "budget_period_is": "{name}，剩余 {days_left} 天",
    "budget_period_over": "{name}，已于 {end} 结束",
    "budget_spent_is": "{spent}，预算 {amount}，占 {share}%",
    "budget_at_least": "至少 {spent}，预算 {amount}，占 {share}%；未读取：{clouds}",
    "budget_billed_is": "{billed}，截至 {until}[（{cloud}）]",
    "budget_unbilled": "尚无[（{cloud}）]：账单暂无数据",
    "budget_reckoned_is": "此后运行的机器 {accrued}，其余按近期速率 {estimated}[，未完整账单中超出推算的部分 {ahead}]",
    "budget_burn_is": "每小时 {burn}，每天 {daily}",
    "budget_full_is": "按当前消耗，{hours} 小时后，约 {when}",
    "budget_is_full": "已用尽",
    "budget_never_full": "按当前消耗，本周期内不会用尽",
    "budget_forecast_is": (
        "期末 {expected}，[{confidence}% 置信度下]在 {low} 与 {high} 之间[；{method}][，历史误差 {error}%]"
        "[，历史试算 {tested} 次中 {held} 次落在区间内][，不含 {unknown} 项价格未知的应付款]"
    ),
    "budget_forecast_none": "暂无：账单不足 {days} 天，无法判断今后的支出",
    "budget_spender": "{name}[，{kind}][，{owner}]：每小时 {hourly}",
    "budget_none_idle": "本预算内没有发现空闲机器",
    "budget_idle_unknown": "未测量：idle_gpu 守卫与 stop_idle 步骤均未启用",
    "budget_saves": "停止空闲机器可每小时节省 {hourly}，每天 {daily}。",
    "budget_unexplained_is": "{service}[，账号 {account}]：{money}",
    "budget_is_sure": "各账单均为近期数据，运行中的机器均有价格",
    "budget_step_idle": "达到 {at}%：通知负责人 {wait} 小时后停止空闲机器",
    "budget_step_classes": "达到 {at}%：通知负责人 {wait} 小时后停止 {classes} 类工作",
    "budget_step_freeze": "达到 {at}%：禁止新建 GPU 机器",
    "budget_step_mode": "（仅展示：本预算的模式为 {mode}）",
    "budget_reached": "（已生效）",
    "budget_told_once": "本阈值在本周期内只通知一次。请在策略中提高或修改预算：{rule}。",
    "budget_told_early": (
        "本阈值在本周期内只通知一次；若估算回落后才真正达到，将再通知一次。请在策略中提高或修改预算：{rule}。"
    ),
    "budget_told_over": "该周期的费用仍在入账：账单最终确定前继续核算，不会因此停止任何机器。",
    "freeze_announced": "启动冻结 {name}：{hours} 小时后 {target} 将无法新建 GPU 机器",
    "freeze_frozen": "启动冻结 {name} 已生效：{target} 无法新建 GPU 机器",
    "freeze_thawed": "启动冻结 {name} 已解除：{target} 可重新新建 GPU 机器",
    "freeze_called_off": "启动冻结 {name} 在生效前已取消",
    "freeze_failed": "启动冻结 {name} 未能在 {target} 更改，将重试[：{detail}]",
    "freeze_why": "预算 {budget} 已超过策略要求冻结的比例[：{amount} 的 {at}%]",
    "freeze_was": "预算 {budget} 曾超过策略要求冻结的比例[：{amount} 的 {at}%]",
    "freeze_spent": "{budget}，{period}：{words}",
    "freeze_keep": 'costguard budgets thaw {name} --reason "…" 可在本周期内取消；带有审批标签的机器仍可新建',
}
