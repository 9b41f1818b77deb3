"""Simplified Chinese: what a mend does, what people are told of it, and how it is taken back."""

from __future__ import annotations

from collections.abc import Mapping

MENDS: Mapping[str, str] = {
    "mend_set_rotation": "设为每 {days} 天自动轮换",
    "mend_rotate_key": "立即轮换一次",
    "mend_create_successor": "新建一个接替它的密钥（暂无任何程序使用）",
    "mend_move_alias": "将别名 {alias} 移至接替密钥 {successor}",
    "mend_restore_alias": "将别名 {alias} 从 {successor} 移回",
    "mend_release_address": "释放 {ip}",
    "mend_detach_address": "解绑 {ip}",
    "mend_revoke_rule": "撤销规则 {rule_id}[（{what}）]",
    "mend_narrow_rule": "将规则 {rule_id}[（{what}）]收窄为 {peers}",
    "mend_enable_flow_logs": "将流日志写入 {destination}",
    "mend_require_imdsv2": "要求元数据使用会话令牌（IMDSv2）",
    "mend_attach_address": "重新绑定 {ip}",
    "mend_restore_rule": "将规则恢复原状",
    "mend_remove_flow_logs": "结束流日志 {flow_log}",
    "mend_allow_imdsv1": "重新允许不带会话令牌的元数据访问",
    "mend_subject_key": "密钥",
    "mend_subject_security_group": "安全组",
    "mend_subject_security_rule": "规则",
    "mend_subject_address": "公网地址",
    "mend_subject_nat_gateway": "NAT 网关",
    "mend_subject_vpc": "专有网络",
    "mend_subject_subnet": "子网",
    "mend_subject_peering": "对等连接",
    "mend_subject_interface": "网卡",
    "mend_subject_instance": "实例",
    "mend_told": "{what} {name} 不符合策略：{why}",
    "mend_comes": "{what} {name}：Costguard 将{mend}",
    "mend_done": "{what} {name}：已完成：{mend}",
    "mend_over": "{what} {name}：不再处理：{why}",
    "mend_refused": "{what} {name}：Costguard 未能{mend}",
    "mend_refused_again": "未做任何更改。之后会再次尝试，仅在错误不同时再次通知。",
    "mend_held": "{what} {name}：未执行：{why}",
    "mend_when": "不早于 {at}",
    "mend_final": "此操作无法撤回。",
    "mend_old_material": "此前加密的数据仍可解密：云厂商会保留旧的密钥材料。",
    "mend_new_key": "新密钥沿用相同的策略与标签，按密钥计费，只有其负责人可以删除。移动别名之前会另行通知。",
    "mend_old_key": (
        "旧密钥保持启用，此前加密的数据仍可解密。以密钥 ID 指定它的程序继续使用旧密钥；"
        "以别名解密旧数据的程序，以及用旧公钥验签的一方，需要同时持有两个密钥。"
    ),
    "mend_undo": "撤回方法：costguard undo {action_id}",
    "mend_note": "厂商说明：{note}。",
    "mend_cost": "轮换费用：{cost}。",
    "mend_keep": "如需保持现状：costguard snooze {subject} --for 7d",
    "mend_undo_done": "已撤回：{mend}。在 {until} 之前不再处理，以免再次执行。",
    "mend_undo_plan": "将撤回：{mend}。",
    "mend_undo_start": "重新启动 {subject}",
    "mend_undo_uncertain": (
        "未知：Costguard 于 {asked} 的停止调用应答丢失。{subject} 很可能由它停止，但无法证明不是他人停止的。"
    ),
}
