"""Every check of networks: its lasting id, how grave it is, what other catalogues call it, and what to do about it.

The one table that SARIF, JSON and docs/networks.md are made from. Ids are never reused or renumbered.

Sources: control numbers as CIS prints them (AWS Foundations v6.0.0, numbered alike in v7.0.0; Alibaba Cloud
Foundations v2.0.0); check ids from Prowler's own metadata (of August 2026). Prowler has no provider, and its frameworks
no benchmark, for Tencent Cloud. A check is named only where it asks the same; a lookalike is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from costguard.guards.network.rules import NetworkCheck
from costguard.report.words.sentences import Language

_EN, _ZH = Language.EN, Language.ZH
Said = Mapping[Language, str]


class Severity(str, Enum):
    """How grave a violation is; the gravest first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


BENCHMARKS: Mapping[str, str] = MappingProxyType(
    {
        "aws": "CIS Amazon Web Services Foundations Benchmark v6.0.0",
        "alibaba": "CIS Alibaba Cloud Foundations Benchmark v2.0.0",
    }
)
"""By provider, what the control numbers are of; there is none for Tencent Cloud."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One check. `cis` are control numbers of `BENCHMARKS`, `prowler` check ids, both by provider.

    `title` says what is wrong, `why` what it leads to, `remedy` what to do, each in every language.
    """

    check: NetworkCheck
    check_id: str
    severity: Severity
    title: Said
    why: Said
    remedy: Said
    cis: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prowler: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _said(english: str, chinese: str) -> Said:
    return MappingProxyType({_EN: english, _ZH: chinese})


CATALOGUE: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        NetworkCheck.PUBLIC_IP,
        "CG-NET-001",
        Severity.HIGH,
        _said("A GPU instance has a public address", "GPU 实例有公网地址"),
        _said(
            "Whatever listens on it is one wrong rule away from everybody; training needs no way in from the internet.",
            "只要有一条规则写错，其上的服务就会暴露给所有人；训练机不需要从公网进入。",
        ),
        _said(
            "Reach it through a VPN, a bastion or the vendor's session service, let it out through a NAT gateway,"
            " then take the address off.",
            "改用 VPN、堡垒机或云厂商的会话服务登录，经 NAT 网关出网，然后解绑该地址。",
        ),
        prowler={"aws": ("ec2_instance_public_ip",)},
    ),
    CatalogueEntry(
        NetworkCheck.OPEN_ADMIN_PORT,
        "CG-NET-002",
        Severity.CRITICAL,
        _said(
            "The internet reaches an admin, notebook or metrics port",
            "公网可访问管理、笔记本或监控端口",
        ),
        _said(
            "Such ports run commands or tell of the machine, often without a password; scans find them in minutes.",
            "这些端口可执行命令或泄露机器信息，且往往没有密码；暴露后几分钟内就会被扫描到。",
        ),
        _said(
            "Narrow the rule to the networks of those who need it, or revoke it and go in through a bastion or session"
            " service. Bind notebooks and exporters to private addresses.",
            "把规则收窄到确有需要的网段，或删除规则并改用堡垒机、会话服务登录。笔记本和 exporter 只监听内网地址。",
        ),
        cis={"aws": ("6.2", "6.3", "6.4"), "alibaba": ("3.2", "4.3", "4.4")},
        prowler={
            "aws": (
                "ec2_instance_port_rdp_exposed_to_internet",
                "ec2_instance_port_redis_exposed_to_internet",
                "ec2_instance_port_ssh_exposed_to_internet",
                "ec2_networkacl_allow_ingress_tcp_port_22",
                "ec2_networkacl_allow_ingress_tcp_port_3389",
                "ec2_securitygroup_allow_ingress_from_internet_to_high_risk_tcp_ports",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_22",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_3389",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_redis_6379",
            ),
            "alibaba": ("ecs_securitygroup_restrict_rdp_internet", "ecs_securitygroup_restrict_ssh_internet"),
        },
    ),
    CatalogueEntry(
        NetworkCheck.WIDE_RULE,
        "CG-NET-003",
        Severity.HIGH,
        _said("A rule lets in more than the policy allows", "规则放行的范围超出策略"),
        _said(
            "A wide rule opens every machine that gets the group later, whatever it runs by then.",
            "过宽的规则会对之后加入该组的每台机器放行，无论上面运行什么。",
        ),
        _said(
            "Replace its source by the networks that need it; what is meant for everybody belongs on a load balancer"
            " and into `allowed_ports`.",
            "把来源换成确有需要的网段；确实面向公众的服务应放在负载均衡之后，并写入 `allowed_ports`。",
        ),
        cis={"alibaba": ("3.5",)},
        prowler={
            "aws": (
                "ec2_securitygroup_allow_ingress_from_internet_to_all_ports",
                "ec2_securitygroup_allow_ingress_from_internet_to_any_port",
                "ec2_securitygroup_allow_wide_open_public_ipv4",
            )
        },
    ),
    CatalogueEntry(
        NetworkCheck.UNATTACHED_ADDRESS,
        "CG-NET-004",
        Severity.LOW,
        _said("A public address is kept and not used", "公网地址闲置未绑定"),
        _said(
            "It is billed by the hour for nothing, and a name that still leads to it is taken over after its release.",
            "它按小时白白计费；释放之后，仍指向它的域名可能被他人接管。",
        ),
        _said(
            "Take it out of DNS and allow lists, then release it. A released address does not come back; `keep` names"
            " the ones to hold.",
            "先从 DNS 和白名单中移除，再释放。释放后无法找回；需保留的地址请写入 `keep`。",
        ),
        prowler={"aws": ("ec2_elastic_ip_unassigned",)},
    ),
    CatalogueEntry(
        NetworkCheck.IDLE_NAT_GATEWAY,
        "CG-NET-005",
        Severity.LOW,
        _said("A NAT gateway serves nothing", "NAT 网关闲置"),
        _said("It is billed by the hour though no route leads to it.", "没有路由指向它，却仍按小时计费。"),
        _said(
            "See that no route and no forward needs it, then delete it by hand; Costguard deletes no gateway.",
            "确认没有路由和端口转发需要它，然后手动删除；Costguard 不删除网关。",
        ),
    ),
    CatalogueEntry(
        NetworkCheck.DEFAULT_VPC,
        "CG-NET-006",
        Severity.MEDIUM,
        _said("The default VPC is in use", "正在使用默认 VPC"),
        _said(
            "Everything in it shares wide defaults: public subnets, one open access list and one group.",
            "其中的资源共用宽松的默认设置：公有子网、全放行的访问控制列表和同一个安全组。",
        ),
        _said(
            "Start machines in a VPC of your own with private subnets, move what runs here, then delete the default.",
            "在自建 VPC 的私有子网中启动机器，迁移现有资源，然后删除默认 VPC。",
        ),
    ),
    CatalogueEntry(
        NetworkCheck.FLOW_LOGS_OFF,
        "CG-NET-007",
        Severity.MEDIUM,
        _said("Flow logs are off", "未开启流日志"),
        _said(
            "Without a record of traffic nobody can say what went in or out after an incident.",
            "没有流量记录，事后就无法得知进出过什么数据。",
        ),
        _said(
            "Begin a flow log of all traffic for the VPC to storage of its own, with a term after which it is deleted.",
            "为该 VPC 开启记录全部流量的流日志，写入独立存储，并设置保留期限。",
        ),
        cis={"aws": ("4.7",), "alibaba": ("2.5", "3.3")},
        prowler={"aws": ("vpc_flow_logs_enabled",), "alibaba": ("vpc_flow_logs_enabled",)},
    ),
    CatalogueEntry(
        NetworkCheck.PRIVATE_SUBNET_EXPOSED,
        "CG-NET-008",
        Severity.HIGH,
        _said("A subnet that is meant to be private leads to the internet", "应为私有的子网可直通公网"),
        _said(
            "Whatever is started in it with a public address can be reached, against what its name promises.",
            "在其中启动且带公网地址的机器可被访问，与其名称所示不符。",
        ),
        _said(
            "Give it a route table without a route to an internet gateway; a NAT gateway is enough to go out.",
            "改用不含互联网网关路由的路由表；出网使用 NAT 网关即可。",
        ),
    ),
    CatalogueEntry(
        NetworkCheck.IMDS_V1,
        "CG-NET-009",
        Severity.HIGH,
        _said("Instance metadata answers without a session token", "实例元数据可不带令牌访问"),
        _said(
            "A page that can be made to fetch an address hands out the machine's role.",
            "只要有页面可被诱导去请求某个地址，机器的角色凭证就会泄露。",
        ),
        _said(
            "See that the agents on it ask with a token, then require one.",
            "确认其上的 agent 均使用令牌访问，然后设为必须使用令牌。",
        ),
        cis={"aws": ("6.7",)},
        prowler={"aws": ("ec2_instance_imdsv2_enabled",)},
    ),
    CatalogueEntry(
        NetworkCheck.WIDE_PEERING,
        "CG-NET-010",
        Severity.MEDIUM,
        _said("A route to a peer is wider than the policy allows", "对等连接的路由超出策略"),
        _said(
            "Who gets into one of the two networks gets on into the other.",
            "攻入其中一个网络，就能进入另一个。",
        ),
        _said(
            "Route only the subnets that have to talk, and name them in `peering_cidrs`.",
            "只为确需互通的子网配置路由，并写入 `peering_cidrs`。",
        ),
        cis={"aws": ("6.6",), "alibaba": ("3.4",)},
        prowler={"aws": ("vpc_peering_routing_tables_with_least_privilege",)},
    ),
    CatalogueEntry(
        NetworkCheck.REGION,
        "CG-NET-011",
        Severity.HIGH,
        _said("A resource is outside the allowed regions", "资源位于允许的地域之外"),
        _said(
            "Data may lie where contracts or law do not allow it, and nobody looks there.",
            "数据可能位于合同或法律不允许的地方，且无人关注。",
        ),
        _said(
            "Ask its owner, move what is needed, and forbid the region in the organisation's policy.",
            "联系负责人，迁移所需资源，并在组织策略中禁用该地域。",
        ),
    ),
    CatalogueEntry(
        NetworkCheck.UNUSED_GROUP,
        "CG-NET-012",
        Severity.LOW,
        _said("A security group is in no use", "安全组未被使用"),
        _said(
            "Nobody looks after its rules until somebody puts a machine into it.",
            "在有人把机器放进去之前，没有人维护它的规则。",
        ),
        _said(
            "Delete it by hand; Costguard deletes no group.",
            "请手动删除；Costguard 不删除安全组。",
        ),
        prowler={"aws": ("ec2_securitygroup_not_used",)},
    ),
    CatalogueEntry(
        NetworkCheck.IDLE_ADDRESS,
        "CG-NET-013",
        Severity.LOW,
        _said("A public address waits for a stopped machine", "公网地址绑定在已停止的机器上"),
        _said(
            "AWS bills it as if it were used; Alibaba Cloud and Tencent Cloud bill its bandwidth where that is what is"
            " paid for, and the address itself once it is bound to no machine; and the address is open again as soon"
            " as the machine starts.",
            "AWS 照常计费；阿里云和腾讯云在按带宽付费时仍收带宽费，解绑后还收地址本身的费用；"
            "机器一启动，该地址又会对公网开放。",
        ),
        _said(
            "Start the machine or end it. Where it is to stay stopped, take the address off and release it by hand, and"
            " write its tags or id into `except_when_any` where it is meant to wait.",
            "启动该机器或将其释放。若要长期停机，请手动解绑并释放该地址；"
            "若有意保留，请将其标签或 ID 写入 `except_when_any`。",
        ),
    ),
)
_BY_CHECK = {entry.check: entry for entry in CATALOGUE}


def entry_of(check: NetworkCheck) -> CatalogueEntry:
    """The catalogue's entry of a check."""
    return _BY_CHECK[check]


def known_entry(word: str) -> CatalogueEntry | None:
    """The entry of the check that a finding names; None where it is none of them."""
    return _BY_CHECK[NetworkCheck(word)] if word in {check.value for check in NetworkCheck} else None


def catalogue_page() -> Iterator[str]:
    """The catalogue as the lines of Markdown that docs/networks.md holds between its marks."""
    yield "| id | `forbid` | severity | what is wrong | CIS | Prowler |"
    yield "|---|---|---|---|---|---|"
    for each in CATALOGUE:
        cis, prowler = _by_cloud(each.cis), _by_cloud(each.prowler, code=True)
        cells = (each.check_id, f"`{each.check.value}`", each.severity.value, each.title[_EN], cis, prowler)
        yield f"| {' | '.join(cells)} |"
    for each in CATALOGUE:
        yield ""
        yield f"### {each.check_id} {each.check.value}"
        yield ""
        yield f"{each.why[_EN]} **What to do:** {each.remedy[_EN]}"
        yield ""
        yield f"{each.title[_ZH]}：{each.why[_ZH]}**处理：**{each.remedy[_ZH]}"


def _by_cloud(named: Mapping[str, tuple[str, ...]], *, code: bool = False) -> str:
    """`aws 6.2, 6.3; alibaba 4.3`, or a dash."""
    quoted = {cloud: [f"`{word}`" if code else word for word in words] for cloud, words in named.items()}
    return "; ".join(f"{cloud} {', '.join(words)}" for cloud, words in quoted.items()) or "–"
