"""Rules for networks as people write them: what they mean, and every mistake with its place and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest

from costguard.domain.remediations import RemediationKind
from costguard.guards.network.rules import WATCHED_PORTS, AuditRule, NetworkCheck, NetworkSelector
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import ASKS_FOR_MORE, Policy, default_policy
from costguard.policy.model.terms import with_digest
from costguard.policy.network.documents import MENDS
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText
from costguard.report.network.rules import audit_rule_json, audit_rules_table
from costguard.report.words.sentences import Language

DAY = timedelta(days=1)
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
FULL = """
version: 1
mode: enforce
network_audit:
  - name: gpu-hosts
    mode: warn
    forbid:
      - unattached_public_address
      - open_admin_port
      - wide_rule
      - flow_logs_off
      - private_subnet_exposed
      - wide_peering
      - region_not_allowed
    applies_when_all:
      clouds: [aws]
      accounts: ["1111*", "100012345678"]
      regions: [us-*, eu-west-1]
      tags: {team: "res*"}
      resources: [i-0123456789abcdef0]
    except_when_any: [{tags: {purpose: demo}}, {resources: [sg-1]}]
    ports: [22, 8888]
    allowed_ports: [443]
    trusted: ["2001:db8::/32", 203.0.113.0/24, 10.0.0.0/8]
    widest_v4: 20
    widest_v6: 56
    allowed_regions: [us-*, eu-west-1]
    private_subnets: ["private-*"]
    peering_cidrs: [10.20.0.0/16]
    keep: [203.0.113.7, sgr-0123456789abcdef0, "aws:111122223333:us-east-1:address:eipalloc-1"]
    unattached_for: 14d
    mend: [revoke_rule, narrow_rule, enable_flow_logs, release_address]
    narrow_to: [198.51.100.0/24]
    flow_log_destination: arn:aws:logs:us-east-1:111122223333:log-group:flows
    flow_log_role: arn:aws:iam::111122223333:role/flows
    wait: 2d
    actions_per_day: 3
"""


def policy(text: str, **others: str) -> Policy:
    files = {f"{name.replace('__', '/')}.yaml": other for name, other in others.items()}
    return load_policy(PolicyText({"costguard.yaml": text, **files}, "r1"))


def only(text: str, head: str = "version: 1\n") -> AuditRule:
    (rule,) = policy(f"{head}network_audit:\n  - {{{text}}}\n").network_audit
    return rule


def test_every_key_of_a_rule_is_read() -> None:
    (rule,) = policy(FULL).network_audit

    assert rule == with_digest(
        AuditRule(
            name="gpu-hosts",
            mode=Mode.WARN,
            forbid=frozenset(
                {
                    NetworkCheck.UNATTACHED_ADDRESS,
                    NetworkCheck.OPEN_ADMIN_PORT,
                    NetworkCheck.WIDE_RULE,
                    NetworkCheck.FLOW_LOGS_OFF,
                    NetworkCheck.PRIVATE_SUBNET_EXPOSED,
                    NetworkCheck.WIDE_PEERING,
                    NetworkCheck.REGION,
                }
            ),
            applies_to=NetworkSelector(
                clouds=("aws",),
                accounts=("100012345678", "1111*"),
                regions=("eu-west-1", "us-*"),
                tags={"team": "res*"},
                resources=("i-0123456789abcdef0",),
            ),
            except_for=(NetworkSelector(resources=("sg-1",)), NetworkSelector(tags={"purpose": "demo"})),
            ports=(22, 8888),
            allowed_ports=(443,),
            trusted=("10.0.0.0/8", "203.0.113.0/24", "2001:db8::/32"),
            widest_v4=20,
            widest_v6=56,
            allowed_regions=("eu-west-1", "us-*"),
            private_subnets=("private-*",),
            peering_cidrs=("10.20.0.0/16",),
            keep=("203.0.113.7", "aws:111122223333:us-east-1:address:eipalloc-1", "sgr-0123456789abcdef0"),
            unattached_for=14 * DAY,
            mend=frozenset(
                {
                    RemediationKind.REVOKE_RULE,
                    RemediationKind.NARROW_RULE,
                    RemediationKind.ENABLE_FLOW_LOGS,
                    RemediationKind.RELEASE_ADDRESS,
                }
            ),
            narrow_to=("198.51.100.0/24",),
            flow_log_destination="arn:aws:logs:us-east-1:111122223333:log-group:flows",
            flow_log_role="arn:aws:iam::111122223333:role/flows",
            wait=2 * DAY,
            actions_per_day=3,
        )
    )
    assert len(rule.digest) == 64


def test_a_name_and_what_it_forbids_are_enough() -> None:
    rule = only("name: a, forbid: [public_ip]")

    assert rule == with_digest(AuditRule("a", Mode.OBSERVE, frozenset({NetworkCheck.PUBLIC_IP})))
    assert rule.ports == WATCHED_PORTS
    assert rule.mend == frozenset()


@pytest.mark.parametrize("mode", ["warn", "enforce"])
def test_a_rule_observes_until_it_says_otherwise_however_harsh_the_policy_is(mode: str) -> None:
    """What changes networks must be asked for by the rule itself."""
    head = f"version: 1\nmode: {mode}\n"

    assert only("name: a, forbid: [public_ip]", head).mode is Mode.OBSERVE
    assert only(f"name: a, mode: {mode}, forbid: [public_ip]", head).mode is Mode[mode.upper()]


def test_every_word_of_the_guard_can_be_forbidden_and_every_mend_asked_for() -> None:
    needs = "allowed_regions: [us-*], peering_cidrs: [10.0.0.0/8], private_subnets: [p-*]"
    everything = ", ".join(check.value for check in NetworkCheck)
    assert only(f"name: a, forbid: [{everything}], {needs}").forbid == frozenset(NetworkCheck)

    mends = ", ".join(kind.value for kind in MENDS)
    wants = "narrow_to: [203.0.113.0/24], flow_log_destination: logs/flows, applies_when_all: {clouds: [alibaba]}"
    assert only(f"name: a, forbid: [{everything}], {needs}, mend: [{mends}], {wants}").mend == frozenset(MENDS)


@pytest.mark.parametrize(
    ("cloud", "destination"),
    [
        ("aws", "arn:aws:s3:::flow-logs/gpu"),
        ("aws-cn", "arn:aws-cn:s3:::flow-logs"),
        ("alibaba-intl", "my-project/flow_logs"),
        ("tencent", "6f3a2c1e-9b4d-4a7e-8c21-0d5e7f9a1b2c"),
    ],
)
def test_flow_logs_go_where_their_own_cloud_can_write(cloud: str, destination: str) -> None:
    where = f"applies_when_all: {{clouds: [{cloud}]}}, mend: [enable_flow_logs], flow_log_destination: '{destination}'"

    assert only(f"name: a, forbid: [flow_logs_off], {where}").flow_log_destination == destination


def test_rules_of_all_files_come_together_and_a_file_may_hold_them_alone() -> None:
    read = policy(
        "version: 1\nnetwork_audit: [{name: m, forbid: [public_ip]}]\n",
        policies__a="network_audit: [{name: z, forbid: [wide_rule]}]\n",
        policies__b="network_audit: [{name: a, forbid: [imds_v1]}]\nidle_gpu: []\n",
    )

    assert [rule.name for rule in read.network_audit] == ["a", "m", "z"]


def test_without_any_policy_every_check_is_made_that_needs_no_list() -> None:
    (rule,) = default_policy().network_audit

    assert (rule.name, rule.mode, rule.mend) == ("default", Mode.OBSERVE, frozenset())
    assert rule.forbid == frozenset(NetworkCheck) - ASKS_FOR_MORE
    assert policy("version: 1\nidle_gpu: [{name: m}]\n").network_audit == ()


def test_the_order_of_words_changes_no_digest() -> None:
    one = only("name: a, forbid: [public_ip, imds_v1], ports: [22, 80], trusted: [10.0.0.0/8, 192.168.0.0/16]")
    other = only("trusted: [192.168.0.0/16, 10.0.0.0/8], ports: [80, 22], forbid: [imds_v1, public_ip], name: a")

    assert one.digest == other.digest


def test_every_changed_word_changes_the_digests_of_the_rule_and_of_the_policy() -> None:
    base = "name: a, forbid: [wide_rule, unattached_public_address, imds_v1]"
    texts = [
        base,
        "name: b, forbid: [wide_rule, unattached_public_address, imds_v1]",
        "name: a, forbid: [wide_rule, unattached_public_address]",
        *(
            f"{base}, {more}"
            for more in (
                "mode: warn",
                "ports: [22]",
                "allowed_ports: [443]",
                "trusted: [10.0.0.0/8]",
                "widest_v4: 17",
                "widest_v6: 49",
                "keep: [203.0.113.7]",
                "unattached_for: 8d",
                "mend: [require_imdsv2]",
                "mend: [narrow_rule], narrow_to: [203.0.113.0/24]",
                "mend: [narrow_rule], narrow_to: [203.0.113.0/25]",
                "wait: 4d",
                "actions_per_day: 6",
                "applies_when_all: {clouds: [aws]}",
                "applies_when_all: {tags: {x: y}}",
                "applies_when_all: {resources: [i-12345678]}",
                "except_when_any: [{regions: [us-east-1]}]",
                "except_when_any: [{accounts: ['111122223333']}]",
            )
        ),
    ]
    head = "version: 1\nmode: warn\n"

    assert len({only(text, head).digest for text in texts}) == len(texts)
    assert len({policy(f"{head}network_audit: [{{{text}}}]\n").digest for text in texts}) == len(texts)


def test_the_days_an_address_may_wait_are_of_both_checks_of_addresses() -> None:
    for check in (NetworkCheck.UNATTACHED_ADDRESS, NetworkCheck.IDLE_ADDRESS):
        assert only(f"name: a, forbid: [{check.value}], unattached_for: 8d").unattached_for == 8 * DAY


def test_what_a_rule_forbids_is_said_in_both_languages_and_as_json() -> None:
    (rule,) = policy(FULL).network_audit
    english, chinese = (
        audit_rules_table([rule, only("name: a, forbid: [imds_v1]")], language) for language in Language
    )

    first, second = english.records()
    assert first["covers"] == (
        "aws; 100012345678 or 1111*; eu-west-1 or us-*; i-0123456789abcdef0; team=res*; not sg-1 or purpose=demo"
    )
    assert first["forbid"].startswith("The internet reaches an admin, notebook or metrics port; A rule lets in more")
    assert first["mend"] == "turning flow logs on; narrowing rules; releasing addresses; revoking rules"
    assert first["wait"] == "48h"
    assert (second["covers"], second["mend"], second["wait"]) == ("everywhere", "people only", "")
    assert chinese.records()[1]["covers"] == "全部"
    said = audit_rule_json(rule)
    assert said["forbid"][:2] == ["CG-NET-002", "CG-NET-003"]
    assert (said["wait_seconds"], said["unattached_for_seconds"]) == (2 * 86_400, 14 * 86_400)


@dataclass(frozen=True)
class Bad:
    """`text` holds » right before the place that must be named."""

    text: str
    says: str
    fix: str


def main(text: str, says: str, fix: str) -> Bad:
    return Bad(f"version: 1\nmode: warn\n{text}\n", says, fix)


def rule(text: str, says: str, fix: str) -> Bad:
    checks = "public_ip, open_admin_port, wide_rule, unattached_public_address, flow_logs_off"
    return main(f"network_audit:\n  - {{name: a, forbid: [{checks}], {text}}}", says, fix)


def forbid(text: str, says: str, fix: str) -> Bad:
    return main(f"network_audit:\n  - {{name: a, forbid: {text}}}", says, fix)


def where(text: str, says: str, fix: str) -> Bad:
    return rule(f"applies_when_all: {{{text}}}", says, fix)


def trusted(text: str, says: str, fix: str) -> Bad:
    return rule(f"trusted: {text}", says, fix)


def narrowed(text: str, says: str, fix: str) -> Bad:
    return rule(f"mend: [narrow_rule], narrow_to: {text}", says, fix)


def kept(text: str, says: str, fix: str) -> Bad:
    return rule(f"keep: [{text}]", says, fix)


BAD = {
    "no name": main("network_audit: [»{forbid: [public_ip]}]", "this key is missing", "add name: research"),
    "nothing forbidden": main("network_audit: [»{name: a}]", "this key is missing", "add forbid: [public_ip"),
    "empty forbid": forbid("»[]", "an empty list matches nothing", "name at least one check"),
    "forbid as text": forbid("»public_ip", "expected a list", "write [public_ip]"),
    "unknown check": forbid("[»public_ips]", "'public_ips' is not a check", "did you mean public_ip?"),
    "check twice": forbid("[public_ip, »public_ip]", "is there twice", "keep one of them"),
    "name twice": main(
        "network_audit: [{name: a, forbid: [imds_v1]}, {name: »A, forbid: [imds_v1]}]",
        "a second rule for networks A",
        "a name of its own",
    ),
    "unknown key": rule("»allowed_port: [443]", "unknown key 'allowed_port'", "did you mean allowed_ports?"),
    "not a list": main("network_audit: »{name: a}", "expected a list", ""),
    "empty list alone": Bad("»version: 1\nnetwork_audit: []\n", "nothing would be guarded", "add a rule"),
    "harsher": rule("mode: »enforce", "harsher than the policy's warn", "raise mode in costguard.yaml"),
    "no mode": rule("mode: »fix", "'fix' is not a mode", "observe, warn, enforce"),
    "regions without a list": forbid(
        "[public_ip, »region_not_allowed]", "needs allowed_regions", "add allowed_regions: ["
    ),
    "peering without networks": forbid("[»wide_peering]", "needs peering_cidrs", "add peering_cidrs: ["),
    "private without names": forbid("[»private_subnet_exposed]", "needs private_subnets", "add private_subnets: ["),
    "regions nobody checks": rule("»allowed_regions: [us-*]", "is never used", "or take the key out"),
    "peers nobody checks": rule("»peering_cidrs: [10.0.0.0/8]", "wide_peering is not in forbid", "take the key out"),
    "subnets nobody checks": rule("»private_subnets: [a]", "private_subnet_exposed is not in forbid", "take the key"),
    "days nobody counts": main(
        "network_audit: [{name: a, forbid: [imds_v1], »unattached_for: 7d}]", "is never used", "take the key out"
    ),
    "mends nothing": rule("mend: »[]", "an empty list matches nothing", "to mend nothing"),
    "unknown mend": rule("mend: [»close_port]", "'close_port' is not a mend", "revoke_rule"),
    "inverse": rule("mend: [»restore_rule]", "'restore_rule' is not a mend", "did you mean revoke_rule?"),
    "of keys": rule("mend: [»rotate_key]", "'rotate_key' is not a mend", ""),
    "mend of another check": rule("mend: [»require_imdsv2]", "does not forbid", "add it to forbid"),
    "narrow to nothing": rule("mend: [revoke_rule, »narrow_rule]", "needs narrow_to", "add narrow_to: ["),
    "nothing to narrow": rule("»narrow_to: [10.0.0.0/24]", "narrow_rule is not in mend", "take the key out"),
    "logs to nowhere": rule("mend: [»enable_flow_logs]", "needs flow_log_destination", "add flow_log_destination"),
    "group without role": rule(
        "mend: [enable_flow_logs], flow_log_destination: »'arn:aws-cn:logs:cn-north-1:111122223333:log-group:f'",
        "reach a log group only by a role",
        "add flow_log_role, or name a bucket",
    ),
    "logs of every cloud in one bucket": rule(
        "mend: [enable_flow_logs], flow_log_destination: »'arn:aws:s3:::flows'",
        "only flow logs of aws can go there",
        "add applies_when_all: {clouds: [aws]}",
    ),
    "logs of another cloud": rule(
        "mend: [enable_flow_logs], applies_when_all: {clouds: [tencent]}, flow_log_destination: »logs/flows",
        "only flow logs of alibaba and alibaba-intl",
        "a rule for each other cloud",
    ),
    "role in words": rule(
        "mend: [enable_flow_logs], flow_log_destination: 'arn:aws:s3:::flows', flow_log_role: »'my role'",
        "is not a role",
        "",
    ),
    "role of another partition": rule(
        "mend: [enable_flow_logs], applies_when_all: {clouds: [aws]}, "
        "flow_log_destination: 'arn:aws:logs:us-east-1:111122223333:log-group:f', "
        "flow_log_role: »'arn:aws-cn:iam::1:role/f'",
        "is not the ARN of a role of aws",
        "begins with arn:aws:iam::",
    ),
    "role for nothing": rule("»flow_log_role: r", "enable_flow_logs is not in mend", "take the key out"),
    "destination in two words": rule(
        "mend: [enable_flow_logs], flow_log_destination: »'my bucket'", "no place that flow logs", "the ARN of a bucket"
    ),
    "port zero": rule("ports: [»0]", "0 is not a port", ""),
    "port too high": rule("ports: [»65536]", "65536 is not a port", ""),
    "port as text": rule("ports: [»'22']", "'22' is not a port", "write 22 without quotes"),
    "ports as range": rule("ports: [»8000-9000]", "is a range", "list every port"),
    "true port": rule("ports: [»true]", "is not a port", ""),
    "no port": rule("ports: »[]", "an empty list matches nothing", "to watch the usual ports"),
    "port twice": rule("ports: [22, »22]", "is there twice", "keep one of them"),
    "watched and allowed": rule(
        "ports: [22, 8080], allowed_ports: [443, »8080]", "watched by ports and allowed", "in one of the two"
    ),
    "the world": trusted("[10.0.0.0/8, »0.0.0.0/0]", "is the whole internet", "name the networks"),
    "the world v6": trusted("[»'::/0']", "is the whole internet", "name the networks"),
    "the world in halves": trusted("»[0.0.0.0/1, 128.0.0.0/1]", "together these are the whole", "name the networks"),
    "host bits": trusted("[»10.1.2.3/8]", "has bits of a host", "write 10.0.0.0/8, or 10.1.2.3/32"),
    "host bits v6": trusted("[»'2001:db8::1/32']", "has bits of a host", "write 2001:db8::/32, or 2001:db8::1/128"),
    "long v6": trusted("[»'2001:0db8::/32']", "is not in its usual form", "write 2001:db8::/32"),
    "netmask": trusted("[»10.0.0.0/255.0.0.0]", "is not in its usual form", "write 10.0.0.0/8"),
    "no prefix": trusted("[»203.0.113.7]", "has no prefix", "write 203.0.113.7/32"),
    "no network": trusted("[»office]", "'office' is not a network", ""),
    "too long a prefix": trusted("[»10.0.0.0/33]", "is not a network", ""),
    "trusts nothing": trusted("»[]", "an empty list matches nothing", "to trust no network"),
    "trusted as text": trusted("»10.0.0.0/8", "expected a list", "write [10.0.0.0/8]"),
    "narrowed to the world": narrowed("[»0.0.0.0/0]", "is the whole internet", "name the networks"),
    "narrowed too little": narrowed("[10.1.0.0/16, »10.0.0.0/15]", "would be found again", "add it to trusted"),
    "peered with the world": main(
        "network_audit: [{name: a, forbid: [wide_peering], peering_cidrs: [»0.0.0.0/0]}]", "is the whole internet", ""
    ),
    "widest of all": rule("widest_v4: »0", "nothing would ever be wide", "write 1 to 32"),
    "widest with a slash": rule("widest_v4: »/24", "is not a length", "write 24"),
    "too wide a prefix": rule("widest_v4: »33", "33 is not a length", ""),
    "widest v6": rule("widest_v6: »129", "129 is not a length", ""),
    "unattached without a unit": rule("unattached_for: »7", "has no unit", ""),
    "unattached for minutes": rule("unattached_for: »30m", "is too short", "write 7d if unsure"),
    "wait without a unit": rule("wait: »3", "has no unit", ""),
    "no wait": rule("wait: »0h", "too short a wait", "write 1h or more"),
    "endless wait": rule("wait: »91d", "too long a wait", "write 90d or less"),
    "negative cap": rule("actions_per_day: »-1", "is negative", "write 0 to allow nothing"),
    "cap as text": rule("actions_per_day: »'5'", "is not a count", "without quotes"),
    "keeps nothing": rule("keep: »[]", "an empty list matches nothing", "to keep nothing"),
    "kept with a prefix": kept("»203.0.113.7/32", "names an address in another form", "write 203.0.113.7"),
    "kept in capitals": kept("»'2001:DB8::7'", "names an address in another form", "write 2001:db8::7"),
    "kept with a space": kept("»'my address'", "names no address, rule or group", "203.0.113.7"),
    "kept in no cloud": kept("»'azure:1:eu:address:x'", "is not a resource id", ""),
    "kept twice": kept("sg-1, »sg-1", "is there twice", "keep one of them"),
    "no restriction": rule("applies_when_all: »{}", "an empty mapping matches nothing", "leave the key out"),
    "no cloud": where("clouds: »[]", "an empty list matches nothing", "leave the key out"),
    "unknown cloud": where("clouds: [»azure]", "'azure' is not a cloud", ""),
    "region in words": where("regions: [»Frankfurt]", "is not a region", ""),
    "account of no length": where('accounts: [»"123"]', "matches no account id", "12 on aws"),
    "instance types": where("»instance_types: [p4d.*]", "unknown key 'instance_types'", "resources"),
    "excepts nothing": rule("except_when_any: »[]", "an empty list matches nothing", "except nothing"),
    "exception that matches nothing": rule("except_when_any: [»{}]", "an empty mapping matches nothing", ""),
}


@pytest.mark.parametrize("bad", [pytest.param(bad, id=name) for name, bad in BAD.items()])
def test_a_mistake_is_told_with_its_place_and_the_fix(bad: Bad) -> None:
    before, _, after = bad.text.partition("»")
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))

    _, problems = check_policy(PolicyText({"costguard.yaml": before + after}, "r1"))

    assert [(each.path, each.mark.line, each.mark.column) for each in problems] == [("costguard.yaml", *place)]
    assert bad.says in str(problems[0])
    assert bad.fix in str(problems[0])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("mend: [require_imdsv2]", "does not take the policy's mode"),
        ("mode: warn, mend: [require_imdsv2]", "mend is only rehearsed, for the rule's own mode is warn"),
        ("mode: enforce", "mode: enforce without mend changes nothing"),
        ("mode: enforce, mend: [require_imdsv2], actions_per_day: 0", "a cap of 0 allows nothing"),
        ("mode: enforce, mend: [release_address]", "gives addresses up for good"),
    ],
)
def test_what_is_valid_and_may_not_be_meant_is_remarked(said: str, told: str) -> None:
    text = f"name: a, forbid: [imds_v1, unattached_public_address], {said}"
    read = policy(f"version: 1\nmode: enforce\nnetwork_audit: [{{{text}}}]\n")

    found = [remark for remark in remarks(read, NOW) if remark.where == "rule for networks a"]
    assert len(found) == 1
    assert told in found[0].message


def test_a_rule_that_acts_as_it_says_and_one_that_only_looks_get_no_remark() -> None:
    text = "[{name: a, forbid: [imds_v1], mode: enforce, mend: [require_imdsv2]}, {name: b, forbid: [public_ip]}]"
    read = policy(f"version: 1\nmode: enforce\nnetwork_audit: {text}\n")

    assert [remark for remark in remarks(read, NOW) if "networks" in remark.where] == []


def test_a_wait_that_working_hours_stretch_over_years_is_a_mistake() -> None:
    text = (
        "version: 1\ncalendar: {zone: UTC, days: mon, hours: '10:00-11:00'}\n"
        "network_audit: [{name: a, forbid: [imds_v1], wait: 60d}]\n"
    )

    _, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert [(each.field, each.mark.line) for each in problems] == [("network_audit[0].wait", 3)]
