"""Chinese: what the doctor says, as in `doctor_en`."""

from __future__ import annotations

from collections.abc import Mapping

_GRANT = "请授予下列权限，然后重新检查；`costguard permissions {cloud} --guard idle_gpu%s` 会输出全部权限。"
_READ_ALL = "请查看下列内容；未能完整应答的地域中不会执行任何操作。"

DOCTOR: Mapping[str, str] = {
    "doctor_health_ok": "正常",
    "doctor_health_warning": "警告",
    "doctor_health_could_not_tell": "无法判断",
    "doctor_health_bars_enforcing": "不可执行",
    "doctor_verdict_ok": "可以安全执行（enforce）：共 {checks} 项检查，无需处理。",
    "doctor_verdict_warning": "可以安全执行（enforce）：共 {checks} 项检查，{warnings} 项警告。",
    "doctor_verdict_could_not_tell": "无法判断能否安全执行（enforce）：{checks} 项检查中有 {untold} 项无法判断。",
    "doctor_verdict_bars_enforcing": (
        "请勿执行（enforce）：{checks} 项检查中有 {barring} 项不允许[；另有 {untold} 项无法判断]。"
    ),
    "doctor_calls": "共 {calls} 次调用[，其中 {dry_runs} 次为预检]；可更改资源的调用 0 次。",
    "doctor_calls_dirty": "共 {calls} 次调用，其中 {changing} 次可更改资源：{operations}。",
    "doctor_more": "另有 {count} 项；`--json` 会全部列出",
    "doctor_here": "本部署",
    "doctor_line": "[{target}：]{words}",
    "doctor_fix": "处理办法：{fix}",
    "doctor_comma": "、",
    "doctor_detail": "{where}[：{said}][。处理办法：{fix}]",
    "doctor_caller_known": "当前凭证为账号 {account} 的 {name}[；在该账号使用的角色：{role}]。",
    "doctor_caller_refused": "云平台不接受当前凭证[：{detail}]。",
    "doctor_fix_caller_refused": "请提供策略所指定的云和分区的有效凭证。",
    "doctor_caller_untold": "无法查询当前凭证的身份[：{detail}]。",
    "doctor_fix_caller_untold": "请检查网络、代理和访问地址，然后重新检查。",
    "doctor_clock_right": "时钟准确：与云平台相差 {skew_seconds} 秒。",
    "doctor_clock_off": "时钟比云平台{direction} {skew_seconds} 秒。",
    "doctor_fix_clock_off": "请用 NTP 校准本机时间：相差超过 5 分钟时不可执行。",
    "doctor_clock_wrong": "时钟比云平台{direction} {skew_seconds} 秒，所有等待时间都会出错。",
    "doctor_fix_clock_wrong": "请用 NTP 校准本机时间。",
    "doctor_clock_untold": "云平台的应答没有给出时间。",
    "doctor_fix_clock_untold": "请在云平台恢复应答后重新检查，并人工核对本机时间。",
    "doctor_ahead": "快",
    "doctor_behind": "慢",
    "doctor_regions_answer": (
        "{accounts} 个账号的全部 {answered} 个地域均已完整应答：{names}。共有 {instances} 台实例。"
    ),
    "doctor_regions_none": "没有需要守护的地域。",
    "doctor_fix_regions_none": "请在策略中写明地域，或使用 `regions: all`。",
    "doctor_regions_closed": (
        "{accounts} 个账号中组织允许使用的 {answered} 个地域均已完整应答：{names}。共有 {instances} 台实例。"
        "组织的管控策略另外禁用了 {closed} 个地域：{closed_names}，这些地域既不扫描，也不执行任何操作。"
    ),
    "doctor_fix_regions_closed": "请将策略中的 `regions` 缩小到允许使用的地域；授予权限无法开放被禁用的地域。",
    "doctor_regions_unread": "{asked} 个地域中只有 {answered} 个完整应答[：{names}]。",
    "doctor_fix_regions_unread": _READ_ALL,
    "doctor_regions_denied": "{asked} 个地域中只有 {answered} 个允许读取[：{names}]。",
    "doctor_fix_regions_denied": _GRANT % "",
    "doctor_permissions_granted": "权限齐全：{operations} 个接口，在 {shards} 个地域中询问过。",
    "doctor_permissions_untold": "没有发现缺失的权限；{operations} 个接口中有 {untold} 个云平台未给出答复。",
    "doctor_fix_permissions_untold": "请与 Costguard 生成的权限策略核对。",
    "doctor_permissions_wanted": "缺少 {missing} 个接口的权限，但不影响执行。",
    "doctor_fix_permissions_wanted": (
        "请授予这些权限：没有价格时，金额上限会搁置所有操作；没有审计日志时，负责人仅取自 owners.yaml、标签和账号；"
        "不能启动时，恢复须手工完成。"
    ),
    "doctor_permissions_unread": "未能在所有地域询问权限。",
    "doctor_fix_permissions_unread": "请查看下列内容，然后重新检查。",
    "doctor_permissions_missing": "缺少权限：{operations} 个接口中缺 {missing} 个。",
    "doctor_fix_permissions_missing": _GRANT % " --mode enforce",
    "doctor_permissions_unsafe": "某次预检可能已被真正执行，因此不再继续询问[：{detail}]。",
    "doctor_fix_permissions_unsafe": "请立即查看该地域的机器；会忽略 `DryRun` 的访问地址不是这个云。",
    "doctor_measured_all": "规则覆盖的 {running} 台运行中机器全部可测量[；{no_rule} 台没有规则]。",
    "doctor_measured_nothing_runs": "没有规则覆盖的机器在运行[；{no_rule} 台没有规则]。",
    "doctor_measured_partly": (
        "{running} 台运行中的机器有 {measured} 台可测量（{share_percent}%）[；{no_rule} 台没有规则]。"
        "其余机器绝不会被操作。"
    ),
    "doctor_fix_measured_partly": "请修复下列机器的监控指标。",
    "doctor_measured_unread": "无法判断测量情况：没有地域完整应答。",
    "doctor_fix_measured_unread": _READ_ALL,
    "doctor_measured_none": "{running} 台运行中的机器没有一台可测量：守护等于失明。",
    "doctor_fix_measured_none": "执行之前，请先修复下列机器的监控指标。",
    "doctor_other_not_seen": (
        "没有发现另一个 Costguard 的痕迹[（本部署为 {name}）]：操作审计最近 7 天内没有；"
        "查看了 {machines_in_all} 台机器中 {machines} 台的 {snapshots} 个快照，其中 {marked} 个由本账本创建。"
    ),
    "doctor_other_log_unread": (
        "在 {machines_in_all} 台机器中 {machines} 台的 {snapshots} 个快照里没有发现另一个 Costguard 的痕迹"
        "[（本部署为 {name}）]；操作审计未能查看。"
    ),
    "doctor_fix_other_log_unread": "请授予下列权限：只有在操作审计中，才能在另一个部署动手之前发现它。",
    "doctor_other_led": "这里还有另一个 Costguard 在工作（{others}，最近见于 {seen}）；策略指定由本部署 {name} 主导。",
    "doctor_fix_other_led": "请在另一个部署的策略中也写明 `leading_deployment: {name}`，使其搁置。",
    "doctor_other_works": (
        "这里还有另一个 Costguard 在工作：{others}，最近一次见于 {seen}[；策略指定由 {leading} 主导]。"
        "本部署 {name} 在此不执行任何操作。"
    ),
    "doctor_fix_other_works": (
        "停用其中一个；或为每个部署设置各自的 COSTGUARD_NAME，并在两份策略中写明由谁执行：`leading_deployment: 名称`。"
    ),
    "doctor_other_unread": (
        "无法判断是否有另一个 Costguard：查看了 {machines_in_all} 台机器中 {machines} 台的 {snapshots} 个快照。"
    ),
    "doctor_fix_other_unread": "请授予下列权限，并指明创建这些快照的账本。",
    "doctor_other_seen": (
        "另一个 Costguard 曾在这里工作：{marked} 个带标记的快照中，有 {unknown} 个的决定不在本账本中。"
    ),
    "doctor_fix_other_seen": (
        "一个目标只能有一个账本：请使用创建它们的账本，"
        "或先停用另一个部署，再移除其快照上的标签 `costguard:decision-id`。"
    ),
    "doctor_ledger_ready": "账本（{kind}）可用且持久：进行中的案件 {cases} 个[；最近一次运行 {latest_run}]。",
    "doctor_ledger_new": "账本（{kind}）尚不存在：首次运行时会创建。",
    "doctor_fix_ledger_new": "如果运行使用另一个账本，请用 `--ledger` 或 COSTGUARD_LEDGER 指明。",
    "doctor_ledger_forgetful": "账本（{kind}）会随进程消失，因此不可执行。",
    "doctor_fix_ledger_forgetful": "请用 `--ledger` 或 COSTGUARD_LEDGER 指定文件或数据库。",
    "doctor_ledger_newer": "账本（{kind}）由更新版本的 Costguard 写入[：{detail}]。",
    "doctor_fix_ledger_newer": "请升级本 Costguard。",
    "doctor_ledger_unusable": "账本（{kind}）无法使用[：{detail}]。",
    "doctor_fix_ledger_unusable": "请检查其地址、服务器以及当前用户的权限。",
    "doctor_policy_enforces": "策略有效：{rules} 条规则中有 {enforcing} 条为 enforce。",
    "doctor_policy_gentle": "策略有效，{rules} 条规则中没有一条为 enforce：不会执行任何操作。",
    "doctor_policy_remarked": "策略有效：{rules} 条规则中有 {enforcing} 条为 enforce。另有值得留意之处。",
    "doctor_fix_policy_remarked": "请阅读下列提示；它们不阻止任何操作。",
    "doctor_policy_invalid": "策略无效[：{detail}]。",
    "doctor_fix_policy_invalid": "请用 `costguard policy check` 检查该策略，并按提示改正。",
    "doctor_bill_read": "账单可读[，来源 {source}]，完整至 {age_hours} 小时前。",
    "doctor_bill_says_nothing": "账单没有近几天的数据，这不等于零。",
    "doctor_fix_bill_says_nothing": "请用付费账号（组织的管理账号）读取；正在生成的月份通常一小时内可读。",
    "doctor_bill_untold": "账单没有完整应答[：{detail}]。",
    "doctor_fix_bill_untold": "请重试；在此之前预算只按运行情况告警，不停机。",
    "doctor_bill_denied": "无权读取账单[：{detail}]；预算只按运行情况告警，不停机。",
    "doctor_fix_bill_denied": "请在付费账号授予 `costguard permissions {cloud} --role scan-budget` 输出的权限。",
    "doctor_keys_read": "加密密钥可读：{region} 有 {count} 个。",
    "doctor_keys_untold": "加密密钥未完整应答[：{detail}]。",
    "doctor_fix_keys_untold": "请重试；未读到的不作判断，也不会对其执行任何操作。",
    "doctor_keys_denied": "无权读取加密密钥[：{detail}]；因此不作判断。",
    "doctor_fix_keys_denied": "请授予 `costguard permissions {cloud} --role scan-kms_rotation` 输出的权限。",
    "doctor_networks_read": "网络可读：{region} 有 {count} 个。",
    "doctor_networks_untold": "网络未完整应答[：{detail}]。",
    "doctor_fix_networks_untold": "请重试；未读到的不作判断，也不会对其执行任何操作。",
    "doctor_networks_denied": "无权读取网络[：{detail}]；因此不判断谁能进入。",
    "doctor_fix_networks_denied": "请授予 `costguard permissions {cloud} --role scan-network_audit` 输出的权限。",
    "doctor_freeze_ready": "该冻结可附加到 {target}，其现有 {attached} 条策略。",
    "doctor_freeze_in_force": "该冻结在 {target} 生效中。",
    "doctor_freeze_foreign": "他人已将 {policy} 附加到 {target}：无论花费多少都会保留。",
    "doctor_fix_freeze_foreign": "如当前不应生效，请手动解除。",
    "doctor_freeze_untold": "其目标没有应答[：{detail}]。",
    "doctor_fix_freeze_untold": "请更正策略中的冻结，或重试；在此之前不会禁止新建。",
    "doctor_freeze_denied": "无权查看其目标[：{detail}]；因此不会禁止新建。",
    "doctor_fix_freeze_denied": "请授予 `costguard budgets freeze-role` 输出的权限。",
    "doctor_channel_proves": "通知发往 {channels} 个可证明送达的渠道[；默认 {default}]。",
    "doctor_channel_partly": "{lacking} 个渠道无法证明送达：其负责人的机器绝不会被停机。",
    "doctor_fix_channel_partly": "请设置 `notify.default`，并使用已配置的渠道，例如 slack:#gpu。",
    "doctor_channel_missing": "没有可证明送达的渠道，因此绝不会停机。",
    "doctor_fix_channel_missing": (
        "请配置 Slack、邮件、群机器人或 webhook（docs/notices.md），并将 `notify.default` 设为渠道，"
        "例如 slack:#gpu 或 mailto:finops@example.com。"
    ),
    "doctor_plain_text_none": "此函数的环境变量中没有明文的 Costguard 密钥。",
    "doctor_plain_text_found": "以明文写在环境变量中：任何可读取函数配置的人都能得到它。",
    "doctor_fix_plain_text_found": "请将其存入{store}，并把该变量设为 secret:NAME（docs/settings.md），然后更换密钥。",
    "doctor_robot_ready": "其 webhook 地址指向厂商；厂商可验签时，所发内容均已签名。",
    "doctor_robot_unsigned": "未设置密钥：任何得知其 webhook 地址的人都可向该群发消息。",
    "doctor_fix_robot_unsigned": (
        "请在机器人安全设置中启用签名校验（加签），并将密钥写入 COSTGUARD_ROBOTS（docs/notices.md）。"
    ),
    "doctor_robot_wrong": "无法使用，因此一切都不会启动[：{detail}]。",
    "doctor_fix_robot_wrong": "请修正 COSTGUARD_ROBOTS：从机器人页面重新复制 webhook 地址（docs/notices.md）。",
    "doctor_switch_open": "停止开关可以读取，且未被拉下。",
    "doctor_switch_paused": "Costguard 已暂停[，由 {by} 设置][：{reason}]：不会开始任何操作。",
    "doctor_fix_switch_paused": "确认安全后，请执行 `costguard resume`，或取消设置 COSTGUARD_PAUSED。",
    "doctor_switch_unreadable": "停止开关无法读取，按已拉下处理[：{detail}]。",
    "doctor_fix_switch_unreadable": "请先修复账本。",
    # 函数的运行
    "doctor_runs_recent": "策略所需的函数都在运行：{functions}；最早的一次开始于 {since}。",
    "doctor_runs_none": "尚无函数使用此账本运行：策略需要 {functions}。",
    "doctor_fix_runs_none": "请部署它们（`costguard deploy`），或立即调用一个以查看运行情况。",
    "doctor_runs_missed": "策略所需的函数没有全部按计划运行。",
    "doctor_fix_runs_missed": "请检查其定时触发器与日志；没有运行就没有任何防护。",
    "doctor_run_never_ran": "从未运行",
    "doctor_run_not_lately": "最近一次开始于 {began}",
    "doctor_run_did_not_end": "开始于 {began}，没有结束",
    "doctor_run_other_policy": "所依据的策略为 {policy}",
    "doctor_runs_unended": "有一次运行开始后没有结束。",
    "doctor_fix_runs_unended": "请查看其日志：可能是时间或内存耗尽，或在能够说明原因之前失败。",
    "doctor_runs_other_policy": "运行所依据的策略与此处查看的不同。",
    "doctor_fix_runs_other_policy": "请发布此策略，或查看它们使用的策略：`costguard policy history`。",
    "doctor_runs_stretch_waits": "按 {functions} 的运行间隔，等待比策略所写的更长。",
    "doctor_fix_runs_stretch_waits": "请提高运行频率，或把等待写成运行间隔的整数倍（docs/policy.md）。",
    "doctor_run_stretches_wait": "{step}：每 {every} 运行一次，{wait} 实际为 {becomes}",
}
