"""Simplified Chinese: messages about several things at once, what may be answered, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

LETTERS: Mapping[str, str] = {
    "letter_warned": "[{owner} 的 ]{count} 台机器处于空闲：如不保留，将逐台停机",
    "letter_idle": "[{owner} 的 ]{count} 台机器处于空闲",
    "letter_stopped": "[{owner} 的 ]{count} 台机器已停机：后续安排",
    "letter_mends": "[{owner} 的 ]{count} 项设置将被更改，如有异议请回复",
    "letter_mended": "[{owner} 的 ]{count} 项设置已更改",
    "keep_clicked": "点击下方的“保留”",
    "letter_mixed": "[{owner}：]{count} 条消息",
    "letter_cost": "合计每天 {cost}",
    "letter_cost_partly": "合计每天 {cost}，另有 {unpriced} 台价格未知",
    "answer_keep_hours": "保留 {hours} 小时",
    "answer_keep_days": "保留 {days} 天",
    "answer_keep_until": "保留至……",
    "answer_stop_now": "立即停机",
    "answer_approve": "批准",
    "answer_not_mine": "不是我的",
    "asks_stop_now": "在下一次运行时停止 {what}，不再等待？其上运行的任务将终止。",
    "asks_approve": "允许对 {what} 执行下一步？仅本次有效，且仅限本消息所述。",
    "asks_not_mine": "将 {what} 通知下一位负责人？等待将为其重新计时。",
    "status_kept": "已[由 {by} ]保留至 {until}",
    "status_stopped": "已于 {at} 停机",
    "status_ended": "{why}",
    "status_handed_on": "已转交[给 {owner}]，将重新通知",
    "notice_deployment": "由 Costguard 部署 {name} 发送",
    "outbox_dead": "{count} 条被渠道永久拒绝：修复渠道后执行 `costguard outbox --retry NOTICE`",
    "outbox_pending": "{count} 条将在下一次运行时发送",
    "outbox_empty": "全部已送达，没有待发通知。",
    "outbox_revived": "{notice} 将在下一次运行时重新发送。",
}
