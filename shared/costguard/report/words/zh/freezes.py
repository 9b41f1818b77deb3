"""Simplified Chinese: where launch freezes stand, and what the policies behind them leave open."""

from __future__ import annotations

from collections.abc import Mapping

FREEZES: Mapping[str, str] = {
    "freezes": "启动冻结",
    "freeze_name": "冻结",
    "freeze_state": "状态",
    "freeze_since": "自",
    "freeze_budget": "预算",
    "freeze_target": "目标",
    "freeze_policy": "策略",
    "freeze_is_off": "未启用",
    "freeze_is_announced": "已预告，尚未生效",
    "freeze_is_attaching": "已请求，下次运行确认是否生效",
    "freeze_is_on": "生效中",
    "freeze_is_detaching": "正在解除，下次运行确认",
    "freeze_is_released": "已由人工在 {period} 内取消",
    "freeze_is_foreign": "由他人附加，须由其解除",
    "freeze_thaw": "{by} 已在 {period} 内取消 {name}：{reason}。下次运行将其解除。",
    "freeze_thaw_off": "{by} 已在 {period} 内取消 {name}：{reason}。下一周期之前不会开始。",
    "freeze_thaw_foreign": "{by} 已在 {period} 内取消 {name}：{reason}。该策略由他人附加，只能由其解除。",
    "freeze_limits": "此策略未能限制的情形：",
    "freeze_role_limits": "此角色仍可执行的操作：",
    "freeze_limit_tag": "凡可设置标签 costguard-approved 者均可新建：请仅授予审批人",
    "freeze_limit_existing": "已有的机器仍可启动，也可更改规格",
    "freeze_limit_platforms": "自行运行机器的平台（SageMaker、PAI、TI-ONE）仍可新建",
    "freeze_limit_aws_managed": "组织的策略不约束其管理账号",
    "freeze_limit_aws_services": "通过服务相关角色新建机器的服务（Auto Scaling、Spot Fleet）不受组织策略约束",
    "freeze_limit_alibaba_managed": "管控策略既不约束管理账号，也不约束服务角色（例如弹性伸缩）",
    "freeze_limit_alibaba_keys": (
        "ECS 向 RAM 告知新建实例的规格与标签仅见于文档，且有他人实测未告知规格："
        "请先在一个成员账号中以 DryRun 调用 RunInstances 验证"
    ),
    "freeze_limit_alibaba_absent": (
        "RAM 无法判断标签不存在，文档也未说明 StringNotEquals 对不存在的标签成立：请一并验证"
    ),
    "freeze_limit_alibaba_role": "其权限无法限定到某条管控策略，因此可附加和解除任意一条：请将其密钥专用于此",
    "freeze_limit_tencent_keys": (
        "CVM 向 CAM 告知新建实例的规格与标签仅见于文档：请先在一个成员账号中以 DryRun 调用 RunInstances 验证"
    ),
    "freeze_limit_tencent_managed": "服务管控策略既不约束管理账号，也不约束服务角色",
    "freeze_limit_tencent_role": "其权限无法限定到某条策略，因此可附加和解除任意一条：请将其密钥专用于此",
}
