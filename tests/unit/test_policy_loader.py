"""A policy as people write it becomes the policy the engine reads."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from costguard.domain.actions import Verb
from costguard.domain.money import Money
from costguard.domain.resources import Billing
from costguard.guards.rules.common import Consent, Limits, Mode, Protection, Selector, Step
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy, default_policy
from costguard.policy.remarks import remarks
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import Node, plain
from costguard.ports import PolicyText

NOW = datetime(2026, 11, 2, 9, tzinfo=timezone.utc)
FULL = """
version: 1
mode: enforce
calendar: {zone: Asia/Shanghai, days: mon-fri, hours: "10:00-18:00", holidays: cn}
accounts:
  - {cloud: aws-cn, id: "111122223333", regions: [cn-north-1], owner: nlp}
  - {cloud: alibaba, id: "1234567890123456", regions: all}
  - cloud: aws
    id: "012345670123"
    regions: all
    role: "arn:aws:iam::{account}:role/costguard"
    external_id: costguard-7
    organisation: true
    protected: true
idle_gpu:
  - name: research
    mode: warn
    applies_when_all: {tags: {team: research}, instance_types: ["p4d.*", "ecs.gn7i*", "GN10Xp*"], billing: [on_demand]}
    except_when_any: [{tags: {stage: "prod*"}}, {resources: [i-0123456789abcdef0]}]
    idle_when_all:
      lasting: 24h
      every_gpu_max_below: 5%
      cpu_max_below: 10%
      network_max_below: 50KiB/s
      power_max_below: 80W
      min_coverage: 97%
    then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]
    safety:
      actions_per_day: 0
      fleet_share_per_day: 10%
      hourly_cost_stopped_per_day: [200 USD, 1400 CNY]
      local_disk: lose
      unstoppable: terminate
protect: {tags: [hands-off], expiry_tags: [lease], controller_tags: [lab/*], accounts: ["111122223333"]}
prices: [{cloud: aws, instance_types: ["p4d.*"], hourly: 12.5 USD}]
signals:
  cloudwatch_namespace: OurAgent
  prometheus: [{url: "https://prom.internal:9090/x", instance_label: node, extra_matchers: 'job="dcgm",site!="a,b"'}]
notify: {default: "slack:#gpu-costs"}
"""
OWNERS = "- {name: nlp, owns: {tags: {team: nlp}}, channel: 'slack:#nlp'}\n"
EXCEPTIONS = """
- {resource: i-0abc, owner: nlp, reason: demo, approver: finops, expires: "2026-12-01T18:00:00+08:00"}
- {applies_when_all: {accounts: ["0123*"]}, owner: cv, reason: audit, approver: finops, expires: 2026-10-01T00:00Z}
"""
WORDS = [
    "[]",
    "{}",
    "*a",
    "&a ",
    "!t ",
    "? ",
    "- ",
    ": ",
    "~",
    "\n---\n",
    "0x1",
    "\t",
    "true",
    "[[",
    "%",
    "'",
    '"',
    "\n",
    "1e999",
]
TWO_RULES = """
version: 1
idle_gpu:
  - name: a
    applies_when_all: {regions: [us-east-1, eu-west-1], tags: {team: x, stage: y}}
    safety: {hourly_cost_stopped_per_day: [1 USD, 7.50 CNY]}
  - {name: b}
"""
TWO_RULES_OTHERWISE = """
# the same, written by somebody else
idle_gpu:
- name:   "b"
- safety:
    hourly_cost_stopped_per_day: [ "7.5 CNY", 1.00 USD ]
  applies_when_all:
    tags: {stage: y, "team": x}
    regions:
      - eu-west-1
      - us-east-1
  then: [stop]
  name: a
version: 1
"""


def load(text: str, **files: str) -> Policy:
    named = {name.replace("__", "/") + ".yaml": content for name, content in files.items()}
    return load_policy(PolicyText({"costguard.yaml": text, **named}, "r1"))


def test_every_key_reaches_the_policy() -> None:
    policy = load(FULL, owners=OWNERS, exceptions=EXCEPTIONS)

    rule = policy.rule("research")
    assert rule is not None
    assert (policy.mode, rule.mode) == (Mode.ENFORCE, Mode.WARN)
    assert rule.applies_to == Selector(
        instance_types=("GN10Xp*", "ecs.gn7i*", "p4d.*"), billing=(Billing.ON_DEMAND,), tags={"team": "research"}
    )
    assert rule.except_for == (Selector(resources=("i-0123456789abcdef0",)), Selector(tags={"stage": "prod*"}))
    assert rule.idle.lasting == timedelta(hours=24)
    assert [bound for _, bound in rule.idle.bounds()] == [5.0, 10.0, 51200.0, 80.0]
    assert rule.idle.min_coverage == 0.97
    assert rule.ladder == (
        Step(Verb.WARN, timedelta(0)),
        Step(Verb.STOP, timedelta(hours=24)),
        Step(Verb.TERMINATE, timedelta(days=7)),
    )
    assert rule.limits == Limits(
        actions_per_day=0,
        fleet_share_per_day=Decimal("0.1"),
        hourly_cost_stopped_per_day=(Money(Decimal(1400), "CNY"), Money(Decimal(200), "USD")),
        local_disk=Consent.LOSE,
        unstoppable_may_terminate=True,
    )
    assert [(each.cloud, each.regions) for each in policy.accounts] == [
        ("alibaba", None),
        ("aws", None),
        ("aws-cn", ("cn-north-1",)),
    ]
    member = policy.accounts[1]
    assert (member.role, member.external_id) == ("arn:aws:iam::{account}:role/costguard", "costguard-7")
    assert member.organisation
    assert member.protected
    assert policy.protection.tag_names == (*Protection().tag_names, "hands-off")
    assert policy.protection.expiry_tag_names == (*Protection().expiry_tag_names, "lease")
    assert policy.protection.controller_tags == ("lab/*",)
    assert policy.protection.accounts == ("111122223333",)
    assert policy.prices[0].hourly == Money(Decimal("12.5"), "USD")
    assert policy.signals.cloudwatch_namespace == "OurAgent"
    assert policy.signals.prometheus[0].extra_matchers == 'job="dcgm",site!="a,b"'
    assert policy.default_channel == "slack:#gpu-costs"
    assert policy.owners[0].channel == "slack:#nlp"
    assert policy.calendar is not None
    assert (policy.calendar.opens, policy.calendar.closes) == (time(10), time(18))
    assert not policy.calendar.is_working_day(date(2026, 10, 1))
    assert policy.calendar.is_working_day(date(2026, 10, 10))  # a Saturday moved into the week


def test_exceptions_keep_their_moment_and_expired_ones_are_not_active() -> None:
    policy = load(FULL, owners=OWNERS, exceptions=EXCEPTIONS)

    (active,) = policy.active_exemptions(NOW)
    assert active.owns == Selector(resources=("i-0abc",))
    assert active.expires_at == datetime(2026, 12, 1, 10, tzinfo=timezone.utc)
    assert len(policy.exemptions) == 2


def test_an_expired_exception_is_remarked_with_its_place() -> None:
    policy = load(FULL, owners=OWNERS, exceptions=EXCEPTIONS)

    told = [str(each) for each in remarks(policy, NOW)]

    assert any(each.startswith("exceptions.yaml:3:") and "expired at 2026-10-01T00:00+00:00" in each for each in told)
    assert any("local_disk: lose" in each for each in told)
    assert any("a cap of 0 allows nothing" in each for each in told)


def test_what_is_left_out_is_what_is_shipped() -> None:
    policy = load("version: 1\nidle_gpu: [{name: default}]\n")

    assert policy.idle_gpu == default_policy().idle_gpu
    assert policy.mode is Mode.OBSERVE
    shipped = default_policy()
    watched = replace(policy, kms_rotation=shipped.kms_rotation, network_audit=shipped.network_audit)
    assert replace(watched, digest="") == replace(shipped, digest="")


def test_the_shipped_policy_watches_a_day_and_ends_at_stop() -> None:
    (rule,) = default_policy().idle_gpu

    assert rule.mode is Mode.OBSERVE
    assert rule.idle.lasting == timedelta(hours=24)
    assert [step.verb for step in rule.ladder] == [Verb.WARN, Verb.STOP]
    assert remarks(default_policy(), NOW) == ()


def test_warn_is_implied_and_waits_have_defaults() -> None:
    policy = load("version: 1\nidle_gpu: [{name: a, then: [snapshot, stop, {terminate: {}}]}]\n")

    assert policy.idle_gpu[0].ladder == (
        Step(Verb.WARN, timedelta(0)),
        Step(Verb.SNAPSHOT, timedelta(0)),
        Step(Verb.STOP, timedelta(hours=24)),
        Step(Verb.TERMINATE, timedelta(days=7)),
    )


def test_rules_of_all_files_come_together() -> None:
    policy = load(
        "version: 1\nidle_gpu: [{name: m}]\n",
        policies__a="idle_gpu: [{name: z}]\n",
        policies__team__b="version: 1\nidle_gpu: [{name: a}]\n",
        owners="[]",
        exceptions="[]",
    )

    assert [rule.name for rule in policy.idle_gpu] == ["a", "m", "z"]


def test_a_single_file_of_any_name_is_the_whole_policy() -> None:
    policy = load_policy(PolicyText({"try-this.yaml": FULL}, "r1", "/tmp/try-this.yaml"))  # noqa: S108 - only a name

    assert policy.rule("research") is not None


def test_order_spaces_and_comments_change_no_digest() -> None:
    one, other = load(TWO_RULES), load(TWO_RULES_OTHERWISE)

    assert [rule.digest for rule in one.idle_gpu] == [rule.digest for rule in other.idle_gpu]
    assert one.digest == other.digest


def test_every_changed_word_changes_the_digest() -> None:
    changed = [
        TWO_RULES.replace("1 USD", "2 USD"),
        TWO_RULES.replace("us-east-1", "us-east-2"),
        TWO_RULES.replace("name: b", "name: c"),
        TWO_RULES.replace("{name: b}", "{name: b, then: [warn]}"),
        TWO_RULES + "protect: {tags: [x]}\n",
        TWO_RULES + 'notify: {default: "slack:#a"}\n',
        TWO_RULES + 'calendar: {zone: UTC, hours: "10:00-18:00"}\n',
        TWO_RULES + 'exceptions: [{resource: i-0a, owner: a, reason: b, approver: c, expires: "2026-12-01T00:00Z"}]\n',
    ]

    assert len({load(text).digest for text in [TWO_RULES, *changed]}) == len(changed) + 1


def test_where_a_policy_was_read_changes_no_digest() -> None:
    texts = {"costguard.yaml": FULL, "exceptions.yaml": EXCEPTIONS}

    here, there = (load_policy(PolicyText(texts, "r1", origin)) for origin in ("/here", "s3://there/policy"))

    assert here.digest == there.digest


def test_windows_lines_and_a_byte_order_mark_are_read() -> None:
    assert load("\ufeff" + TWO_RULES.replace("\n", "\r\n")).digest == load(TWO_RULES).digest


def test_yes_no_and_clock_times_are_text() -> None:
    """YAML 1.1 would make them truth values and sexagesimal numbers."""
    policy = load("version: 1\nidle_gpu: [{name: no, applies_when_all: {tags: {on: yes, at: 22:30}}}]\n")

    assert policy.idle_gpu[0].name == "no"
    assert policy.idle_gpu[0].applies_to.tags == {"on": "yes", "at": "22:30"}


def test_a_scan_without_a_policy_loads_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys, costguard.policy.model.policy, costguard.policy.model.protection\n"
        "import costguard.policy.diff.idle, costguard.policy.remarks\n"
        "import costguard.adapters.policy_sources.files\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pydantic', 'ruamel', 'holidays'}))"
    )

    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter

    assert answer.stdout == "[]\n"


@settings(max_examples=150, deadline=None)
@given(where=st.floats(0, 1), cut=st.integers(0, 12), added=st.text(max_size=6) | st.sampled_from(WORDS))
def test_a_policy_damaged_anywhere_is_told_never_a_crash(where: float, cut: int, added: str) -> None:
    at = int(where * len(FULL))

    policy, problems = check_policy(PolicyText({"costguard.yaml": FULL[:at] + added + FULL[at + cut :]}, "r1"))

    assert (policy is None) is bool(problems)
    assert all(problem.message and problem.mark.line >= 1 for problem in problems)


@settings(max_examples=100, deadline=None)
@given(text=st.text())
def test_any_text_at_all_is_told_never_a_crash(text: str) -> None:
    policy, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert policy is None
    assert problems


ODD_VALUES: list[Any] = [
    [],
    {},
    [[]],
    [{"a": "b"}],
    {"a": {"b": "c"}},
    ["x", "x"],
    7,
    -1,
    True,
    1.5,
    "",
    " ",
    "x" * 500,
]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, the root left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    return [place for key, each in items for place in [(*path, key), *paths_of(each, (*path, key))]]


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    if isinstance(value, dict):
        return {key: replaced(each, path[1:], odd) if key == path[0] else each for key, each in value.items()}
    return [replaced(each, path[1:], odd) if at == path[0] else each for at, each in enumerate(value)]


def whole() -> Any:
    root: Node | None = read_yaml("costguard.yaml", FULL + "owners:\n" + OWNERS + "exceptions:" + EXCEPTIONS).root
    assert root is not None
    return plain(root)


WHOLE = whole()


@settings(max_examples=200, deadline=None)
@given(path=st.sampled_from(paths_of(WHOLE)), odd=st.sampled_from(ODD_VALUES))
def test_a_value_of_any_kind_anywhere_is_told_never_a_crash(path: tuple[Any, ...], odd: Any) -> None:
    text = json.dumps(replaced(WHOLE, path, odd))  # JSON is YAML too

    policy, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert (policy is None) is bool(problems)
