"""Simplified Chinese: what rules for networks say, and what was found of networks."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.reasons import ReasonCode as Code

REASONS: Mapping[Code, str] = {
    Code.NET_PUBLIC_IP: (
        "有公网地址[：{address}][；共 {addresses} 个][；公网可访问 {ports}][，经规则 {rule}][（{group}）]。"
    ),
    Code.NET_OPEN_PORT: (
        "对公网开放了管理、笔记本或监控端口[：{port}][，规则 {rule}][，来源 {peers}][（{protocol} {ports}）]"
        "[；此类规则 {rules} 条][；可访问 GPU 实例 {reaches} 台][，首台 {instance}]。"
    ),
    Code.NET_WIDE_RULE: (
        "对公网放行的范围超出策略[：规则 {rule}][，来源 {peers}][（{protocol} {ports}）]"
        "[；此类规则 {rules} 条][；可访问 GPU 实例 {reaches} 台][，首台 {instance}]。"
    ),
    Code.NET_UNATTACHED: (
        "公网地址[ {address} ]未绑定任何资源[；已观察到 {seen_hours} 小时][，允许 {wanted_hours} 小时]。"
    ),
    Code.NET_UNATTACHED_YET: (
        "公网地址[ {address} ]目前未绑定任何资源，云厂商不告知从何时起[；已观察到 {seen_hours} 小时]"
        "[，允许 {wanted_hours} 小时]。"
    ),
    Code.NET_IDLE_ADDRESS: (
        "公网地址[ {address} ]绑定在已停止的机器上[：{machine}][（{instance}）][，已停 {stopped_hours} 小时]"
        "[，允许 {wanted_hours} 小时]。"
    ),
    Code.NET_IDLE_CARD: "公网地址[ {address} ]绑定在不属于任何资源的网卡上[：{interface}]。",
    Code.NET_IDLE_NAT: "没有路由指向该网关，也没有端口转发[；占用公网地址 {addresses} 个]。",
    Code.NET_DEFAULT_VPC: (
        "正在使用默认 VPC[：实例 {instances} 台][；其中 GPU {accelerators} 台][；可从公网访问 {reaches} 台]。"
    ),
    Code.NET_FLOW_LOGS_OFF: "没有流日志记录其流量[；未覆盖网卡 {interfaces} 块][；其中 GPU 实例 {accelerators} 台]。",
    Code.NET_SUBNET_EXPOSED: (
        "应为私有子网，却可通往公网[：路由 {route}][ 指向 {gateway}][：公网地址 {address}]"
        "[；GPU 实例 {accelerators} 台][；可从公网访问 {reaches} 台]。"
    ),
    Code.NET_IMDS_V1: "元数据可不带会话令牌访问（IMDSv1）。",
    Code.NET_WIDE_PEERING: "到对端[ {peer} ]的路由超出策略[：{route}][；此类路由 {routes} 条]。",
    Code.NET_REGION: "位于策略不允许的地域[：{region}][；允许：{allowed}]。",
    Code.NET_UNUSED_GROUP: "安全组内没有资源，也没有其他安全组引用它[；规则 {rules} 条]。",
    Code.NET_AS_ASKED: "符合策略[；闲置 {hours} 小时][，允许 {wanted_hours} 小时]。",
    Code.NET_KEPT: "策略指定不得改动[：{name}][，规则 {rule}][，{address}]。",
    Code.NET_UNTOLD: "未测量：其所依赖的内容未能读取[：{part}][（{detail}）]。",
    Code.LAST_ADMIN_PATH: (
        "搁置：这会关闭人员登录的最后一条通路[（{instance}）][，端口 {port}][；涉及机器 {instances} 台]。"
    ),
    Code.ADMIN_PATH_UNPROVEN: (
        "搁置：改动之后仅剩不知是否有人使用的网段可以登录[（{instance}）][，端口 {port}][：{left}]"
        "[；涉及机器 {instances} 台]。"
    ),
    Code.NET_CANNOT_RETURN: "搁置：只改动能够原样恢复的规则[，而{kind}]。",
    Code.NOT_TO_BE_MENDED: "搁置：不得改动[：{detail|cause}]。",
    Code.MENDED: "已按规则改正，并已确认。",
}

FIXES: Mapping[Code, str] = {
    Code.NET_UNTOLD: "如“读取缺口”中列有权限，请授予后重新运行。",
    Code.LAST_ADMIN_PATH: "请先建立其他通路：堡垒机、VPN，或面向人员所在网段的规则。",
    Code.ADMIN_PATH_UNPROVEN: (
        "请把人员所在网段写入该规则的 `trusted`，或先建立其他通路：一台本身可登录的机器，或有效的对等连接或 VPN 路由。"
    ),
    Code.NET_CANNOT_RETURN: "请手动改动该规则，或改动它所引用的对象。",
    Code.NOT_TO_BE_MENDED: "如确需改动，请手动进行。",
}

GAP_SUBJECTS: Mapping[str, str] = {
    "networks": "网络",
    "vpcs": "VPC",
    "subnets": "子网",
    "routes": "路由表",
    "groups": "安全组",
    "access_lists": "网络 ACL",
    "interfaces": "网卡",
    "addresses": "公网地址",
    "nat_gateways": "NAT 网关",
    "flow_logs": "流日志",
    "peerings": "对等连接",
    "imds": "元数据服务设置",
    "prefix_lists": "规则引用的网络列表",
    "templates": "规则引用的参数模板",
}

LOST_BY_AN_IMAGE: Mapping[str, str] = {
    "no_id": "云厂商未给出该规则的 ID",
    "group_elsewhere": "该规则引用其他网络或账号的安全组",
    "icmp_kind": "该规则只针对一种 ICMP 报文",
    "more_conditions": "该规则除来源、协议和端口外还有其他条件",
    "port_list": "该规则引用端口列表",
    "prefix_list": "该规则引用前缀列表",
    "template": "该规则引用参数模板",
}

_UNTOLD = "依赖它们的检查保持未测量，也不会在那里做任何更改"
GAP_EFFECTS: Mapping[str, str] = {
    **dict.fromkeys(GAP_SUBJECTS, _UNTOLD),
    "networks": "对其一无所知，经过它们的通路保持未测量",
}

NETWORKS: Mapping[str, str] = {
    "policy_valid_networks": (
        "策略有效：{files} 个文件中有 {rules} 条规则[、{budgets} 个预算][、{keys} 条密钥规则]和 {networks} 条网络规则。"
    ),
    "network_rules": "各网络规则禁止的内容",
    "network_rule_rule": "规则",
    "network_rule_mode": "模式",
    "network_rule_covers": "范围",
    "network_rule_forbid": "禁止",
    "network_rule_mend": "允许的改正",
    "network_rule_wait": "等待",
    "network_rule_everything": "全部",
    "network_rule_nothing": "仅由人处理",
    "network_rule_or": " 或 ",
    "network_rule_list": "；",
    "network_rule_except": "{which}；不含 {excepted}",
    "network_rule_release_address": "释放地址",
    "network_rule_detach_address": "解绑地址",
    "network_rule_revoke_rule": "删除规则",
    "network_rule_narrow_rule": "收窄规则",
    "network_rule_enable_flow_logs": "开启流日志",
    "network_rule_require_imdsv2": "强制 IMDSv2",
    "networks_title": "值得查看的网络问题（{count}）",
    "networks_rest_title": "其余（{count}）",
    "networks_waste_title": "付费但未使用（{count}）",
    "networks_waste_total": "[{sums}，不含流量费和容量单位费。][{unknown} 项价格未知。]",
    "networks_sum": "每小时 {hour}，每月（730 小时）{month}",
    "networks_named": "{name}[ 等（另有 {more} 项）]",
    "networks_severity": "严重程度",
    "networks_check": "检查",
    "networks_name": "资源",
    "networks_shard": "位置",
    "networks_verdict": "结论",
    "networks_why": "原因",
    "networks_path": "通路",
    "networks_closes": "最小改动",
    "networks_mend": "策略允许",
    "networks_cost": "每小时",
    "networks_month": "每月",
    "networks_owner": "负责人",
    "networks_rule": "规则",
    "networks_list": "，",
    "networks_count_of": "{what} {count}",
    "networks_severity_critical": "严重",
    "networks_severity_high": "高",
    "networks_severity_medium": "中",
    "networks_severity_low": "低",
    "networks_verdict_violation": "不符合要求",
    "networks_verdict_compliant": "符合要求",
    "networks_verdict_unmeasured": "未测量",
    "networks_verdict_exempt": "不判定",
    "networks_barred": "{mend}；但是：{why}",
    "networks_price_unknown": "未知",
    "networks_free_while_bound": "绑定期间不收费",
    "networks_price_not_read": "未知：未能读到价格",
    "networks_price_unlisted": "未知：现有价格表中没有",
    "networks_billed_with_others": "未知：与其他资源合并计费",
    "networks_paid_for_a_term": "已预付",
    "networks_path_line": "公网 → {path}",
    "networks_least_revoke_rule": "删除 {group} 的规则 {rule}",
    "networks_least_narrow_rule": "将 {group} 的规则 {rule} 收窄为策略所列网段",
    "networks_total": (
        "共 {networks} 个网络、{instances} 台 GPU 实例、{groups} 个安全组、{rules} 条规则："
        "{violations} 项不符合要求，{unmeasured} 项未测量，{compliant} 项符合要求，{exempt} 项不判定。"
    ),
    "networks_by_severity": "不符合要求，按严重程度：{counted}。",
    "networks_exempt": "不判定：{why}（{count}）",
    "networks_nothing": "未发现网络。",
    "networks_nothing_read": "未看到任何网络；未能读取的内容见下。",
    "networks_only_shown": "此处仅展示：不做任何更改，所列策略允许的改正仅为预演。不追踪负载均衡。",
    "networks_all_hint": "`--all` 可同时显示其余内容。",
    "networks_none": "策略中没有网络规则，因此未读取任何网络。规则示例：",
    "networks_none_hint": "规则仅作观察。没有任何策略时，会进行所有无需名单的检查。",
    "networks_sarif_written": "SARIF 2.1.0 已写入 {file}。",
    "invoked_networks_violation": "不符合要求",
    "invoked_networks_compliant": "符合要求",
    "invoked_networks_unmeasured": "未测量",
    "invoked_networks_exempt": "不判定",
    "figure_networks_seen": "已查看网络",
}
