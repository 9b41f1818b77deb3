"""Every reason in Simplified Chinese: what is the case, and what somebody can do about it."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.reasons import ReasonCode as Code
from costguard.domain.resources import AcceleratorKind as Kind

REASONS: Mapping[Code, str] = {
    Code.IDLE: (
        "空闲：[最近 {hours} 小时内]每块卡以及规则列出的其他信号都低于阈值[，GPU 最高读数 {gpu_max_percent}%]。"
        "[未查看：{unlooked}。规则不测量的使用不会关闭此事项。]"
    ),
    Code.BUSY: "使用中[：{signal}][（卡 {device}）][达到 {maximum}][ {unit}][，阈值为 {bound}]。",
    Code.PARTLY_IDLE: (
        "部分空闲[：{cards} 块卡中有 {idle_cards} 块没有负载，其余在工作]；整台实例仍在使用，不会对它采取任何操作。"
    ),
    Code.BUDGET_WITHIN: "预算[ {budget} ]在限额之内[，已用 {share_percent}%]。",
    Code.BUDGET_REACHED: "预算[ {budget} ]已达阈值[ {at_percent}%][，已用 {share_percent}%]。",
    Code.BUDGET_IDLE: (
        "预算[ {budget} ]已达[ {at_percent}% 的]停止空闲机器的步骤，"
        "而本机空闲[已 {hours} 小时][，GPU 最高读数 {gpu_max_percent}%]。"
        "[未查看：{unlooked}。规则不测量的使用不会关闭此事项。]"
    ),
    Code.BUDGET_CLASS: "预算[ {budget} ]已达[ {at_percent}% 的]按类别停机的步骤，本机属于该类别[：{priority_class}]。",
    Code.BILL_UNREAD: "无法确定：账单读取失败[（{cause}）]；此时预算只告警，不停机。",
    Code.BILL_STALE: (
        "无法确定：账单过旧[：截至 {age_hours} 小时前][，最多允许 {allowed_hours} 小时]；此时预算只告警，不停机。"
    ),
    Code.BILL_ESTIMATED: (
        "无法确定：尚未出账的费用过多[：{estimated_percent}%][，最多允许 {allowed_percent}%]；此时预算只告警，不停机。"
    ),
    Code.BURN_INCOMPLETE: "无法确定：未能看到全部运行中的机器[（{shard}）]；此时预算只告警，不停机。",
    Code.BURN_UNPRICED: "无法确定：运行中的机器有价格未知的[（{machines} 台）]；此时预算只告警，不停机。",
    Code.CURRENCY_WITHOUT_RATE: "无法确定：部分费用的币种[ {currency} ]在策略中没有汇率；此时预算只告警，不停机。",
    Code.KEY_ROTATED: "未逾期[：密钥材料已用 {age_days} 天][，允许 {wanted_days} 天]。",
    Code.KEY_ROTATION_OFF: "未开启自动轮换[；要求每 {wanted_days} 天一次]。",
    Code.KEY_PERIOD_LONG: "轮换过疏[：每 {period_days} 天][，要求每 {wanted_days} 天]。",
    Code.KEY_OVERDUE: "轮换已逾期[：密钥材料已用 {age_days} 天][，允许 {wanted_days} 天]。",
    Code.KEY_CANNOT_ROTATE: (
        "密钥材料过旧[：已用 {age_days} 天][，允许 {wanted_days} 天]；"
        "此类密钥[（{spec}）]无法用策略允许的方式轮换[：{note}]。"
    ),
    Code.KEY_DELETED_IN_USE: "密钥将被删除[（{until}）]，但仍被引用[：{resources} 处]。",
    Code.KEY_DISABLED_IN_USE: "密钥已禁用，但仍被引用[：{resources} 处]。",
    Code.KEY_IS_DEFAULT: "使用了服务的默认密钥[（{resources} 处）]，而策略要求自有密钥。",
    Code.KEY_ROTATION_UNTOLD: "未测量：云厂商未告知其轮换方式，这不等于关闭。",
    Code.KEY_STATE: "未判定：密钥未启用[（{state}）]。",
    Code.KEY_OF_SERVICE: "由云服务创建并自行轮换。仅展示，绝不操作。",
    Code.KEY_REPLICA: "副本密钥：随其主密钥轮换[（{region}）]。",
    Code.KEY_GOING: "等待删除[（{until}）]。",
    Code.KEY_VENDOR_LIMIT: (
        "厂商限制：此类密钥最短[每 {shortest_days} 天]轮换一次[，要求 {asked_days} 天][（{note}）]。"
        "换用其他类型的密钥可更短。"
    ),
    Code.KEY_NEVER_ROTATES: "厂商限制：此类密钥[（{spec}）]从不轮换[：{note}]。按密钥材料的使用天数判定。",
    Code.KEY_SUPERSEDED: "其别名已移至接替密钥[ {successor}]；它保持启用，用于此前加密的数据。",
    Code.KEY_SUCCESSOR_MADE: "搁置：已新建或可能已新建接替密钥[：{successor}][（操作 {action}）]，但未见到；不再新建。",
    Code.KEY_ALIAS_BACK: "搁置：试用失败，别名已移回[：{detail}]；未经新的通知不会再试。",
    Code.KEY_SUCCESSOR_FOREIGN: "搁置：自称接替者的密钥[ {successor} ]并非由 Costguard 新建；不会把别名移给它。",
    Code.TOO_YOUNG: "未测量：运行时间短于观察窗口[：已运行 {running_hours} 小时][，需要 {window_hours} 小时]。",
    Code.NO_DEVICE_METRIC: "未测量：找不到其加速卡的利用率指标[（{kind}）]。",
    Code.NO_DATA: "未测量：指标存在，但窗口内没有数据点[（来源：{source}）]。",
    Code.DEVICE_MISSING: "未测量：部分加速卡没有上报[：{expected} 块中只有 {found} 块上报]。",
    Code.SIGNAL_MISSING: "未测量：规则要求的信号没有上报[：{signal}][，{expected} 个中有 {found} 个]。",
    Code.LOW_COVERAGE: (
        "未测量：缺失的数据点过多[：收到 {coverage_percent}%][（{signal}）][（卡 {device}）]"
        "[，至少需要 {needed_percent}%]。"
    ),
    Code.STALE: "未测量：最新数据点过旧[：已有 {age_minutes} 分钟][，{signal}][（卡 {device}）]。",
    Code.IMPLAUSIBLE: "未测量：存在不可能的数值[：{signal}][（卡 {device}）][读数 {value}]。",
    Code.CONTRADICTED: (
        "未测量：读数相互矛盾。GPU 在整个窗口内读数一直为 0%[，而{signal}][（卡 {device}）][达到 {maximum}][ {unit}]"
        "[，超过 {bound}]。"
    ),
    Code.SIGNALS_UNREAD: "未测量：无法读取其监控指标[（{detail|cause}）]。",
    Code.NOT_RUNNING: "未在运行[：{state}]。",
    Code.NO_RULE: "策略中没有适用于它的规则。",
    Code.PREPAID: "包年包月或预付费：费用已付[至 {until}]，停机不省钱。只展示，不操作。",
    Code.RESERVED: "使用已承诺的容量[：{commitment}]，停机不省钱。只展示，不操作。",
    Code.BILLING_UNKNOWN: "计费方式未知，按已承诺处理。只展示，不操作。",
    Code.AUTOSCALED: "属于弹性伸缩组[：{manager}]，停掉会被重新拉起。只展示，不操作。",
    Code.KUBERNETES: "是 Kubernetes 节点[（{manager}）]。只展示，不操作。",
    Code.CLOUD_SERVICE: "由云服务管理[：{manager}]。只展示，不操作。",
    Code.CONTROLLER: "由创建它的控制器管理[：{manager}]。只展示，不操作。",
    Code.COSTGUARD_ITSELF: "是 Costguard 自身的一部分，不操作。",
    Code.PROTECTED_TAG: (
        "受标签保护[：{tag}][ = {value}][，有效至 {until}]。[{unread} 的值无法识别为日期或带时区的时间，因此予以保留。]"
    ),
    Code.KEPT_BY_TAG: "由标签保留[：{tag}][，直到 {until}]。",
    Code.PROTECTED_BY_CLOUD: "受云上保护设置保护[：{protection}]。",
    Code.PROTECTED_ACCOUNT: "策略保护整个账号[ {account}]。",
    Code.EXCEPTION: "有已批准的例外[，有效至 {until}][，批准人 {approver}][：{reason}]。",
    Code.OPENED: "已立案[（规则 {rule}）]。",
    Code.ADVANCED: "进入下一步[：{verb}]。",
    Code.WAITING: "等待中[，直到 {due}][；下一步：{verb}][；当前{state}]。",
    Code.CONFIRMING: "已请求[：{verb}]，等待生效[（还有 {volumes} 块云盘）]。",
    Code.CONFIRMED: "已确认完成[：{verb}]。",
    Code.SNOOZED: "已暂缓[，由 {by} 操作][，直到 {until}]。",
    Code.AS_ASKED: "现已符合策略，处置已结束。",
    Code.RECOVERED: "恢复使用，结案[：{signal}][达到 {maximum}][ {unit}]。",
    Code.RESTARTED: "实例被重新启动，结案。",
    Code.STOPPED_BY_OTHERS: "实例被他人停止，结案。",
    Code.STOP_UNCERTAIN: (
        "实例已停止，结果未知，很可能由 Costguard 停止：停止调用的应答丢失。已结案，不再执行任何操作，也不计入节省。"
    ),
    Code.VANISHED: "实例已不存在，结案[（账号 {account} 已关闭）]。",
    Code.TERMINATED: "已释放，并确认消失。",
    Code.LADDER_DONE: "规则的所有步骤都已完成。",
    Code.BUDGET_LIFTED: "预算已不再要求，结案[（原规则 {rule}）]。",
    Code.RULE_GONE: "不再有规则覆盖它，结案[（原规则 {rule}）]。",
    Code.MODE_CHANGED: "规则模式已改变[为 {mode}]，重新立案。",
    Code.RULE_LOOSENED: "规则放宽，当前等待重新计时。",
    Code.OWNER_CHANGED: "负责人已变更[为 {owner}]，新负责人尚未收到通知，当前等待重新计时。",
    Code.MODE_OBSERVE: "仅演练：规则处于 observe 模式，不做任何更改。",
    Code.ACCOUNT_NEW: "仅演练：账号[ {account} ]是新账号，[{until} 之前]所有规则都只观察。",
    Code.MODE_WARN: "仅演练：规则处于 warn 模式，只通知负责人。",
    Code.OTHER_DEPLOYMENT: (
        "搁置：此账号中还有另一个 Costguard 部署在工作[：{others}][，最近一次见于 {seen}][；由 {leading} 主导]"
        "[。两者都名为 {same_name}]。"
    ),
    Code.SHARD_INCOMPLETE: "搁置：其账号和地域未能完整读取[（{shard}）]。",
    Code.ACCOUNT_UNREAD: "搁置：无法读取其账号[（{shard}）]。",
    Code.UNMEASURED: "搁置：目前无法判断[。{cause}]。",
    Code.DETAIL_UNREAD: "搁置：执行前无法再次仔细读取[（{detail|cause}）]。",
    Code.NOTICE_UNDELIVERED: "搁置：给负责人的通知尚未送达[（{channel}）][，已尝试 {failures} 次][：{detail}]。",
    Code.CAP_ACTIONS: "搁置：24 小时内的操作数已达上限[：{used} / {allowed}]。",
    Code.CAP_SHARE: "搁置：24 小时内涉及的机器比例已达上限[：{used} / {allowed}]。",
    Code.CAP_MONEY: "搁置：24 小时内停掉的每小时费用将超过上限[：{used} / {allowed}][，本次 {wanted}][ {currency}]。",
    Code.CURRENCY_UNCAPPED: "搁置：规则没有为该币种设置金额上限[（{currency}）]。",
    Code.PRICE_UNKNOWN: "搁置：价格未知，无法遵守金额上限。",
    Code.LOCAL_DISK: "搁置：停机会销毁本地盘数据[（{local_disk_gib} GiB）]。",
    Code.APPROVAL_NEEDED: "搁置：等待负责人批准[，因为将丢失 {local_disk_gib} GiB 本地盘]。",
    Code.CANNOT_STOP: "搁置：该实例不能停机，只能释放[（{cause}）]。",
    Code.NO_VOLUMES: "搁置：没有列出任何云盘，无法证明数据安全。",
    Code.SNAPSHOT_MISSING: "搁置：并非每块云盘都有停机后完成的快照[（缺 {volumes} 块）]。",
    Code.SNAPSHOT_FAILED: "搁置：快照失败[（{volumes} 块云盘）][，已尝试 {failures} 次][：{detail}]。",
    Code.NOT_STOPPED: "搁置：未确认已停机[（{state}）]。",
    Code.NOT_TAKEN_EFFECT: "搁置：云端接受了调用，但没有变化[，已尝试 {failures} 次]。",
    Code.OUTCOME_UNKNOWN: "搁置：更改调用[（{verb}）]的应答丢失；只查询结果，不重复调用。",
    Code.REFUSED_BY_CLOUD: "搁置：云端拒绝[，共 {failures} 次][：{code}][：{detail}]。",
    Code.PERMISSION_MISSING: "搁置：缺少权限[，已尝试 {failures} 次][：{permission|operation|detail}]。",
    Code.DENIED_BY_ORGANISATION: "搁置：组织策略对所有人禁止该操作[，已尝试 {failures} 次][：{detail}]。",
    Code.KILL_SWITCH: "搁置：Costguard 已被暂停[，由 {by} 操作][，自 {since}][：{cause}]。",
    Code.LEDGER_NOT_DURABLE: "搁置：账本不会在进程结束后保留，因此不得做任何更改。",
    Code.POLICY_STALE: "搁置：策略无法加载，且上一份有效策略过旧[（{age_days} 天）]。",
    Code.RULE_CHANGED: "搁置：做出决定之后规则[ {rule} ]已改变。",
    Code.CHANGED_SINCE_PLAN: "搁置：计划之后资源已改变[：{what}]。",
    Code.PLAN_DIFFERS: "拒绝：计划文件与现在得出的结果不一致[：{what}][，文件中为 {planned}][，现在为 {now}]。",
    Code.MERGED: "已由另一条规则的同一步骤覆盖[（{rule}）]。",
    Code.DEADLINE: "留待下次运行：本次时间已用完。",
}

FIXES: Mapping[Code, str] = {
    Code.BILL_UNREAD: "请授予缺口中列出的权限；尚未出的账单会自动出现。",
    Code.BILL_STALE: "请等待云平台更新账单，或调大 `trust.bill_not_older_than`。",
    Code.BILL_ESTIMATED: "账单跟上后会自动恢复；`trust.estimated_at_most` 设定允许的比例。",
    Code.BURN_INCOMPLETE: "请授予缺口中列出的权限，然后重新运行。",
    Code.BURN_UNPRICED: "请在策略的 `prices` 中加入这些机型的价格。",
    Code.CURRENCY_WITHOUT_RATE: "请在策略的 `exchange_rates` 中加入带日期的汇率。",
    Code.PARTLY_IDLE: "换用更小的机型，或给空闲的卡安排任务。",
    Code.TOO_YOUNG: "无需处理：运行足够久后会自动判断。",
    Code.NO_DEVICE_METRIC: "请安装带 GPU 指标的云监控 agent，或安装 exporter 并由 Prometheus 采集。",
    Code.NO_DATA: "请检查机器上的 agent 或 exporter 是否仍在运行。",
    Code.DEVICE_MISSING: "请配置 agent 或 exporter 上报每一块卡。",
    Code.SIGNAL_MISSING: "请由 agent 上报该信号，或从规则中去掉它的阈值。",
    Code.LOW_COVERAGE: "请检查 agent 或 exporter 是否重启、丢点。",
    Code.STALE: "请检查 agent 或 exporter 是否仍在运行并有权上报。",
    Code.IMPLAUSIBLE: "请检查 agent 的单位和版本；百分比必须在 0 到 100 之间。",
    Code.CONTRADICTED: (
        "请检查 agent 或 exporter 上报的数值是否真实；若机器不用 GPU 也在工作，请在规则中写明[{signal}]。"
    ),
    Code.SIGNALS_UNREAD: "请授予“读取缺口”中列出的只读权限后重新运行。",
    Code.NO_RULE: "如需看护，请在策略中添加规则。",
    Code.AUTOSCALED: "请改为缩小伸缩组。",
    Code.KUBERNETES: "请排空节点，让集群自动伸缩移除它。",
    Code.CLOUD_SERVICE: "请在该服务中停止任务或端点。",
    Code.CONTROLLER: "请用该控制器停机，或启用其自带的自动停机。",
    Code.PREPAID: "请给它安排任务，或到期不再续费。",
    Code.RESERVED: "请给它安排任务，或结束该承诺。",
    Code.BILLING_UNKNOWN: "请在控制台核实；若是按量付费，请反馈此情况。",
    Code.SHARD_INCOMPLETE: "请授予“读取缺口”中列出的权限后重新运行。",
    Code.ACCOUNT_UNREAD: "请检查角色、External ID 和信任策略。",
    Code.DETAIL_UNREAD: "请授予所列只读权限后重新运行。",
    Code.NOTICE_UNDELIVERED: "请检查频道以及机器人是否在其中；送达之后才开始计时。",
    Code.CAP_ACTIONS: "下次运行会再次处理；若太慢，请提高 `actions_per_day`（终止则为 `terminations_per_day`）。",
    Code.CAP_SHARE: "下次运行会再次处理；若太慢，请提高 `fleet_share_per_day`。",
    Code.CAP_MONEY: "下次运行会再次处理；若太慢，请提高 `hourly_cost_stopped_per_day`。",
    Code.CURRENCY_UNCAPPED: "请在 `hourly_cost_stopped_per_day` 中添加该币种的金额。",
    Code.PRICE_UNKNOWN: "请在策略的 `prices` 中添加该机型。",
    Code.LOCAL_DISK: "请先拷出数据；若可以丢弃，请设置 `local_disk: ask` 或 `lose`。",
    Code.APPROVAL_NEEDED: "请用其编号运行 `costguard approve`，或不予处理。",
    Code.CANNOT_STOP: "若允许释放，请在规则中设置 `unstoppable: terminate`。",
    Code.SNAPSHOT_FAILED: "请在控制台检查该云盘；没有快照就不会释放实例。",
    Code.STOP_UNCERTAIN: "若仍需使用：用 `costguard why` 查操作编号，再用 `costguard undo` 加该编号重新启动。",
    Code.OUTCOME_UNKNOWN: "请用其编号运行 `costguard recheck`：它会再次查看，并据此继续。",
    Code.NOT_TAKEN_EFFECT: "请在控制台检查该实例。",
    Code.PERMISSION_MISSING: (
        "请由管理该角色的人授权[：`costguard permissions {cloud} --role {role}` 会输出所需权限]。"
    ),
    Code.DENIED_BY_ORGANISATION: "授权无济于事：请由管理组织策略的人更改该策略。",
    Code.KILL_SWITCH: "运行 `costguard resume` 可恢复。",
    Code.LEDGER_NOT_DURABLE: "请用 `--ledger` 指定账本文件或数据库。",
    Code.POLICY_STALE: "请修复策略；`costguard policy check` 会指出出错位置。",
    Code.CHANGED_SINCE_PLAN: "请重新生成计划。",
    Code.PLAN_DIFFERS: "请重新生成计划，并查明文件由谁写成。",
    Code.KEY_CANNOT_ROTATE: "请新建同类密钥并让使用者切换过去；旧密钥须保持启用，供此前用它处理过的数据使用。",
    Code.KEY_SUCCESSOR_MADE: "请在密钥（含已禁用和待删除的）中查找，并手动移动别名。",
    Code.KEY_ALIAS_BACK: "请查明新密钥为何无法使用（策略、授权），然后暂缓；到期后会重新开始。",
    Code.KEY_SUCCESSOR_FOREIGN: "若该密钥属于您，请手动移动别名；否则请查明其标签由谁写入。",
    Code.RULE_CHANGED: "请重新生成计划。",
    Code.MODE_OBSERVE: "确认计划无误后，可设置 `mode: warn` 或 `enforce`。",
    Code.OTHER_DEPLOYMENT: (
        "停用其中一个；或为每个部署设置各自的 COSTGUARD_NAME，并在两份策略中写明由谁执行：`leading_deployment: 名称`。"
    ),
    Code.ACCOUNT_NEW: "请查看将要执行的操作；只观察多久由 `new_accounts` 决定。",
    Code.MODE_WARN: "确认通知无误后，可设置 `mode: enforce`。",
}

_NOT_READ = "Costguard 目前不读取这类设备的指标，因此从不对其下判断；请询问负责人。"
DEVICE_FIXES: Mapping[Kind, str] = {
    Kind.NVIDIA_GPU: (
        "请安装所在云的监控代理（AWS 为配置了 `nvidia_gpu` 的 CloudWatch agent，其他云为云监控插件和 GPU 驱动），"
        "或安装 NVIDIA DCGM exporter，"
        "由策略 `signals` 中指定的 Prometheus 采集。"
    ),
    Kind.AMD_GPU: _NOT_READ,
    Kind.NEURON: _NOT_READ,
    Kind.GAUDI: _NOT_READ,
    Kind.QUALCOMM: _NOT_READ,
    Kind.FPGA: _NOT_READ,
    Kind.MEDIA: _NOT_READ,
    Kind.OTHER: _NOT_READ,
}
