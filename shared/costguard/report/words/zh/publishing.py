"""Simplified Chinese: what is said of published policies."""

from __future__ import annotations

from collections.abc import Mapping

PUBLISHING: Mapping[str, str] = {
    "published": "已发布 {digest}（第 {seq} 次），位于 {address}。",
    "published_back": "已回退到 {digest}（第 {seq} 次）。",
    "published_now": "从下一次运行起生效。",
    "published_loosens": "其中 {count} 处放宽，因此在 {when} 之前不会生效[，且还需 {missing} 位审批人同意]。",
    "published_later": "从 {when} 起生效。",
    "published_again": "其中 {count} 处放宽，却没有给出足够晚的生效时间：请用 --effective-at 重新发布。",
    "published_approve": "每位审批人请执行：costguard policy approve {digest} --by SLACK_USER_ID",
    "published_press": "审批人点击“批准”按钮，或执行：costguard policy approve {digest} --by SLACK_USER_ID",
    "published_waits": "已发布的策略 {digest} 正在等待：它放宽了现行策略",
    "published_waits_later": "已发布的策略 {digest} 正在等待其生效时间",
    "published_by": "发布人",
    "published_note": "说明",
    "published_effective": "不早于",
    "published_missing": "所需审批",
    "published_loosened": "放宽",
    "published_more": "……另有 {count} 处",
    "published_meanwhile": "在此之前按之前的策略判断。",
    "published_history": "已发布的策略",
    "published_seq": "序号",
    "published_at": "发布时间",
    "published_hash": "哈希",
    "published_meaning": "放宽、收紧、其他",
    "published_state": "状态",
    "published_in_force": "生效中",
    "published_was_in_force": "自 {when} 起生效过",
    "published_waiting": "等待中",
    "published_next_run": "下一次运行起生效",
    "published_never": "从未生效",
    "published_back_note": "回退[：{note}]",
    "code_sent": (
        "已在 Slack 向 {person} 发送验证码。请在 15 分钟内执行："
        "costguard policy approve {digest} --by {person} --code CODE"
    ),
    "code_title": "用于批准已发布策略 {digest} 的验证码：{code}",
    "code_line": "该策略放宽了 Costguard 可做的事。持有验证码的人即以您的名义批准：请勿告诉任何人。",
    "agreed": "{person} 批准了 {digest}。",
    "agreed_missing": "还需 {missing} 位同意；不早于 {when}。",
    "agreed_all": "同意人数已够。从 {when} 起生效。",
    "policy_decided": "策略 {digest}[，第 {seq} 次发布][，用于 {guards}][；{waiting} 等待中]。",
    "asks_policy": "批准策略 {digest}（第 {seq} 次发布）？它放宽了现行策略（{count} 处）[，从 {when} 起生效]。",
    "asked_enough": "已由 {people} 批准。从 {when} 起生效。",
    "asked_superseded": "此后又发布了另一份策略，本次发布已作废。",
    "word_counts": "已记录您对策略 {digest} 的批准。还需 {missing} 位同意；不早于 {when}。",
    "word_enough": "已记录您对策略 {digest} 的批准，同意人数已够。从 {when} 起生效。",
    "word_said_before": "您此前已批准策略 {digest}；还需 {missing} 位同意。未做任何更改。",
    "word_not_needed": "策略 {digest} 已不再等待任何人的审批。未做任何更改。",
    "word_superseded": "在 {digest} 之后又发布了另一份策略，本次发布已作废。未做任何更改。",
    "word_expired": "策略 {digest} 原定从 {when} 起生效，已过去 {days} 天以上；如仍需要，请重新发布。未做任何更改。",
    "word_no_moment": "策略 {digest} 没有给出足够晚的生效时间，须重新发布。未做任何更改。",
    "word_broken": "目前无法读取已发布的策略，因此无法审批。未做任何更改。",
}
