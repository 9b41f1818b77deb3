"""Policies damaged in every way: refused with a place, or loaded to something within the safe envelope."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import LONG, attempt, fuzz
from tests.fuzz.mutations import Mutated, at, json_junk, mutated, nested, nodes, texts

from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.domain.actions import Verb
from costguard.domain.errors import InvalidInputError, NewerSchemaError, UnavailableError
from costguard.guards.budget.rules import BudgetRule, StepKind, period_at
from costguard.guards.rules.common import Limits, Mode, Protection
from costguard.guards.rules.idle import IdleRule
from costguard.policy.budget.steps import parse_budget_step, share_of_budget
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms, terms
from costguard.policy.syntax import time_values, units, values
from costguard.policy.syntax.problems import MAX_BYTES, BadValueError, invalid
from costguard.ports import PolicyText

RULE: dict[str, Any] = {
    "name": "research",
    "mode": "enforce",
    "applies_when_all": {
        "clouds": ["aws"], "accounts": ["111122223333"], "regions": ["us-*"], "instance_types": ["p4d.*"],
        "billing": ["on_demand"], "tags": {"team": "research"},
    },
    "except_when_any": [{"tags": {"env": "prod*"}}],
    "idle_when_all": {
        "lasting": "24h", "every_gpu_max_below": "5%", "cpu_max_below": "10%", "network_max_below": "50KiB/s",
        "power_max_below": "80W", "min_coverage": "99%",
    },
    "then": ["warn", {"stop": {"wait": "24h"}}, {"terminate": {"wait": "7d"}}],
    "safety": {
        "actions_per_day": 2, "fleet_share_per_day": "5%", "hourly_cost_stopped_per_day": ["50 USD", "350 CNY"],
        "local_disk": "keep", "unstoppable": "hold",
    },
}  # fmt: skip
BUDGET: dict[str, Any] = {
    "name": "research",
    "mode": "enforce",
    "covers": {
        "clouds": ["aws"], "accounts": ["111122223333"], "regions": ["us-east-1"], "tags": {"team": "research"},
    },
    "total": "5000 USD",
    "from": "2026-11-01",
    "to": "2027-01-31",
    "zone": "Asia/Shanghai",
    "alert_at": ["50%", "80%"],
    "forecast_alert_at": ["100%"],
    "surge_alert": True,
    "counts": {"cost": "effective", "credits": False, "tax": False},
    "trust": {"bill_not_older_than": "60h", "estimated_at_most": "30%"},
    "at": {
        "100%": ["warn", {"stop_idle": {"idle_for": "1h", "wait": "4h"}}],
        "110%": [{"stop": {"classes": ["dev"], "wait": "8h"}}, {"freeze": {"of": ["gpus"], "wait": "4h"}}],
    },
    "tell": ["slack:#research", "mailto:finops@example.com", "https://hooks.example.com/costguard"],
    "safety": {
        "actions_per_day": 2, "fleet_share_per_day": "5%", "hourly_cost_stopped_per_day": ["50 USD"],
        "local_disk": "keep",
    },
}  # fmt: skip
POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "enforce",
    "calendar": {"zone": "Asia/Shanghai", "days": "mon-fri", "hours": "10:00-18:00", "holidays": ["2026-10-01"]},
    "accounts": [
        {"cloud": "aws", "id": "111122223333", "regions": ["us-east-1"], "owner": "nlp", "role": "reader"},
        {"cloud": "alibaba", "id": "1234567890123456", "regions": "all", "protected": True},
    ],
    "idle_gpu": [RULE],
    "budgets": [BUDGET],
    "exchange_rates": [{"from": "USD", "to": "CNY", "rate": 7.1, "since": "2026-11-01"}],
    "priority_classes": [{"name": "dev", "applies_when_all": {"tags": {"env": "dev"}}}],
    "launch_freezes": [
        {"name": "gpus", "cloud": "aws", "via": "organisation", "policy": "p-a1b2c3d4", "target": "111122223333",
         "account": "111122223333"},
    ],
    "protect": {
        "tags": ["hands-off"], "expiry_tags": ["kept-till"], "controller_tags": ["lab/*"], "accounts": ["444455556666"],
    },
    "prices": [{"cloud": "aws", "instance_types": ["p5.*"], "hourly": "12.5 USD"}],
    "signals": {
        "cloudwatch_namespace": "CWAgent",
        "prometheus": [{"url": "https://prom:9090", "instance_label": "instance_id", "extra_matchers": 'job="dcgm"'}],
    },
    "notify": {"default": "slack:#gpu-costs"},
    "owners": [{"name": "nlp", "owns": {"tags": {"team": "nlp"}}, "channel": "slack:#nlp"}],
    "exceptions": [
        {"resource": "i-0123456789abcdef0", "owner": "nlp", "reason": "demo", "approver": "finops",
         "expires": "2026-12-01T18:00:00+08:00"},
    ],
}  # fmt: skip
FREE = {"tags", "at"}  # mappings whose keys are the user's own
HEAD = "version: 1\nidle_gpu: [{name: a}]\n"
NOW = datetime(2026, 3, 10, 12, 30, tzinfo=timezone.utc)
_PLACE = re.compile(r"^[\w./-]+:(\d+):(\d+): .", re.DOTALL)


def loaded(text: str, name: str = "costguard.yaml", **others: str) -> Policy | None:
    """The policy of a text, or None where it was refused with places that exist."""
    handed = PolicyText({name: text, **others}, "r", "")

    def load() -> Policy:
        policy, problems = check_policy(handed)
        assert (policy is None) == bool(problems)
        for problem in problems:
            assert _PLACE.match(str(problem)), str(problem)[:200]
            assert problem.mark.line >= 1 <= problem.mark.column
            assert problem.mark.line <= len(re.split(r"\r\n|\r|\n", text)) + 1 or problem.path != name
        if policy is None:
            raise invalid(problems)  # as load_policy does
        return policy

    return attempt("policy", load, InvalidInputError)


def as_text(document: Any, *, ascii_only: bool = True) -> str:
    """JSON is YAML; what JSON cannot hold, YAML's own parser is given anyway."""
    return json.dumps(document, ensure_ascii=ascii_only, default=str)


def check_envelope(policy: Policy) -> None:
    """Whatever loads is no harsher than what the documentation allows at most."""
    shipped = Protection()
    assert set(shipped.tag_names) <= set(policy.protection.tag_names)
    assert set(shipped.expiry_tag_names) <= set(policy.protection.expiry_tag_names)
    assert policy.idle_gpu or policy.budgets, "a policy that guards nothing, in silence"
    for account in policy.accounts:
        assert account.regions is None or account.regions
        assert account.id.isascii()
        assert account.id.isdecimal()
    for exemption in policy.exemptions:
        assert exemption.expires_at.utcoffset() is not None
    for price in policy.prices:
        assert price.hourly.amount > 0
        assert price.hourly.amount.is_finite()
    waits = [step.wait for rule in policy.idle_gpu for step in rule.ladder]
    waits += [step.wait for budget in policy.budgets for step in budget.steps]
    if policy.calendar is not None:
        longest = max(waits, default=timedelta(0))
        assert policy.calendar.after(NOW, longest) >= NOW + longest
    for rule in policy.idle_gpu:
        _check_rule(rule, policy.mode)
    known = {each.name for each in policy.priority_classes}
    for budget in policy.budgets:
        _check_budget(budget, policy.mode, known)
    for rate in policy.exchange_rates:
        assert rate.rate > 0
        assert rate.rate.is_finite()
        assert rate.base != rate.quote


def _check_budget(budget: BudgetRule, ceiling: Mode, classes: set[str]) -> None:
    assert budget.mode <= ceiling
    assert budget.amount.amount > 0
    assert budget.amount.amount.is_finite()
    assert budget.alert_at
    for share in (*budget.alert_at, *budget.forecast_alert_at):
        assert 0 < share <= 10
    assert timedelta(0) < budget.trust.bill_not_older_than <= timedelta(days=7)
    assert 0 <= budget.trust.estimated_share <= Decimal("0.9")
    assert not budget.limits.unstoppable_may_terminate
    for words in (budget.covers.clouds, budget.covers.accounts, budget.covers.regions):
        assert words is None or words
    assert all(key and value for key, value in budget.covers.tags)
    assert [step.kind.harshness for step in budget.steps] == sorted(step.kind.harshness for step in budget.steps)
    for step in budget.steps:
        assert step.at in budget.alert_at
        assert set(step.classes) <= classes
        assert bool(step.classes) is (step.kind is StepKind.STOP_CLASSES)
        assert step.kind is StepKind.FREEZE or timedelta(hours=1) <= step.wait <= timedelta(days=90)
        assert timedelta(hours=1) <= step.idle.lasting <= timedelta(days=60)
    assert period_at(budget.period, NOW) is None or budget.period.zone


def _check_rule(rule: IdleRule, ceiling: Mode) -> None:
    assert rule.mode <= ceiling
    assert timedelta(hours=1) <= rule.idle.lasting <= timedelta(days=60)
    assert 0.95 <= rule.idle.min_coverage <= 1
    for _, bound in rule.idle.bounds():
        assert 0 < bound < 1e30
    assert rule.ladder[0].verb is Verb.WARN
    least = {Verb.WARN: 0, Verb.SNAPSHOT: 0, Verb.STOP: 1, Verb.TERMINATE: 24}
    for step in rule.ladder:
        assert timedelta(hours=least[step.verb]) <= step.wait <= timedelta(days=90)
    verbs = [step.verb for step in rule.ladder]
    assert Verb.TERMINATE not in verbs or verbs.index(Verb.STOP) < verbs.index(Verb.TERMINATE) == len(verbs) - 1
    assert rule.limits.actions_per_day >= 0
    assert 0 <= rule.limits.fleet_share_per_day <= 1
    caps = rule.limits.hourly_cost_stopped_per_day
    assert len({cap.currency for cap in caps}) == len(caps) > 0
    assert all(cap.amount.is_finite() and cap.amount >= 0 for cap in caps)
    for selector in (rule.applies_to, *rule.except_for):
        assert selector.tags is None or selector.tags
        for name in ("clouds", "accounts", "regions", "instance_types", "billing", "resources"):
            assert getattr(selector, name) is None or getattr(selector, name)


def test_the_whole_policy_is_valid_to_begin_with() -> None:
    policy = loaded(as_text(POLICY))
    assert policy is not None
    check_envelope(policy)
    assert policy.idle_gpu[0].limits.actions_per_day == 2


@fuzz(quick=12)
@given(mutated(POLICY, json_junk()), st.booleans())
def test_a_damaged_policy_is_refused_or_stays_within_the_envelope(damaged: Mutated, ascii_only: bool) -> None:  # noqa: FBT001
    policy = loaded(as_text(damaged.document, ascii_only=ascii_only))
    if policy is not None:
        check_envelope(policy)


PLAUSIBLE: list[Any] = [
    "0%", "1%", "50%", "90%", "94.999%", "95%", "100%", "100.1%", "0h", "1m", "59m", "1h", "23h", "60d", "61d", "91d",
    0, 1, 10**18, -1, "0 USD", "1000000000 USD", "0.000000001 USD", "0KiB/s", "999GB/s", "0W", "keep", "ask", "lose",
    "hold", "terminate", "stop", "warn", "snapshot", "observe", "enforce", "all", "*", [], {}, True, False,
    "2026-01-01", "2026-12-01T18:00:00Z", "00:00-24:00", "mon", "UTC", "on_demand", "prepaid", "000000000000",
]  # fmt: skip
"""What stands in policies, right in one place and wrong in all others."""
SAFEGUARDS = [(section, key) for section in ("idle_when_all", "safety") for key in RULE[section]]


@pytest.mark.parametrize(("section", "key"), SAFEGUARDS)
def test_a_value_from_elsewhere_is_refused_or_stays_within_the_envelope(section: str, key: str) -> None:
    for value in PLAUSIBLE:
        for written in (value, [value]):
            rule = {"name": "a", section: {key: written}}
            policy = loaded(as_text({"version": 1, "mode": "enforce", "idle_gpu": [rule]}))
            if policy is not None:
                check_envelope(policy)


def containers(document: Any) -> list[tuple[str | int, ...]]:
    return [path for path, value in nodes(document) if isinstance(value, dict) and not (path and path[-1] in FREE)]


@fuzz(quick=12)
@given(st.sampled_from(containers(POLICY)), texts(), json_junk())
def test_an_unknown_key_is_never_ignored(place: tuple[str | int, ...], key: str, value: Any) -> None:
    """Wherever it stands and whatever it is called: a typo in a safety key must not lose the key."""
    document = deepcopy(POLICY)
    target = at(document, place)
    known = set(target) | _optional(place)
    target[key] = value
    policy = loaded(as_text(document))
    assert policy is None or key in known


def _optional(place: tuple[str | int, ...]) -> set[str]:
    """Keys that exist at `place` beside those the document has."""
    last = next((part for part in reversed(place) if isinstance(part, str)), "")
    return {
        "budgets": {"monthly", "quarterly", "yearly"},
        "accounts": {"external_id", "organisation", "protected", "owner", "role"},
        "exceptions": {"applies_when_all"},
        "calendar": {"workdays"},
        "applies_when_all": {"resources", "clouds", "accounts", "regions", "instance_types", "billing"},
        "except_when_any": {"resources", "clouds", "accounts", "regions", "instance_types", "billing"},
        "owns": {"resources", "clouds", "accounts", "regions", "instance_types", "billing"},
    }.get(last, set())


@fuzz(quick=12)
@given(st.sampled_from([path for path, value in nodes(POLICY) if path and isinstance(path[-1], str)]), st.data())
def test_a_misspelt_key_is_never_ignored(path: tuple[str | int, ...], data: st.DataObject) -> None:
    """One letter gone, doubled or changed in a key that is there."""
    key = str(path[-1])
    at_letter = data.draw(st.integers(0, len(key) - 1))
    letter = data.draw(st.sampled_from(["", key[at_letter] * 2, "x", key[at_letter].swapcase(), "-", "е"]))  # noqa: RUF001
    wrong = key[:at_letter] + letter + key[at_letter + 1 :]
    document = deepcopy(POLICY)
    parent = at(document, path[:-1])
    parent[wrong] = parent.pop(key)
    policy = loaded(as_text(document))
    free = len(path) > 1 and path[-2] in FREE
    assert policy is None or free or wrong == key, f"{key} written {wrong} was ignored"


@fuzz(quick=12)
@given(st.sampled_from(containers(POLICY)), st.data())
def test_a_key_written_twice_is_refused(place: tuple[str | int, ...], data: st.DataObject) -> None:
    """Which of the two counts would be anybody's guess."""
    target = at(POLICY, place)
    key = data.draw(st.sampled_from(sorted(target)))
    marker = "\u4e00twice\u4e00"
    document = deepcopy(POLICY)
    at(document, place)[marker] = data.draw(st.sampled_from([target[key], None, "x"]))
    text = as_text(document, ascii_only=False).replace(json.dumps(marker, ensure_ascii=False), json.dumps(key))
    assert loaded(text) is None


@fuzz(quick=12)
@given(
    st.sampled_from([path for path, value in nodes(POLICY) if path and not isinstance(value, (dict, list))]),
    st.sampled_from(["&a {}", "*a", "!!str {}", "!own {}", "{{<<: {}}}", "&a", "? {}"]),
)
def test_anchors_aliases_tags_and_merges_are_refused(path: tuple[str | int, ...], form: str) -> None:
    document = deepcopy(POLICY)
    marker = "\u4e00here\u4e00"
    value = json.dumps(at(document, path))
    at(document, path[:-1])[path[-1]] = marker
    assert loaded(as_text(document, ascii_only=False).replace(f'"{marker}"', form.format(value))) is None


SAFETY_KEYS = [
    (*("idle_gpu", 0, "safety"), key) for key in RULE["safety"]
] + [
    ("idle_gpu", 0, "safety"), ("mode",), ("idle_gpu", 0, "mode"), ("protect",), ("protect", "tags"),
    ("idle_gpu", 0, "idle_when_all"), ("idle_gpu", 0, "idle_when_all", "min_coverage"),
    ("idle_gpu", 0, "idle_when_all", "lasting"), ("idle_gpu", 0, "idle_when_all", "every_gpu_max_below"),
    ("idle_gpu", 0, "then"), ("idle_gpu", 0, "then", 1, "stop", "wait"),
    ("idle_gpu", 0, "then", 2, "terminate", "wait"),
]  # fmt: skip


@fuzz(quick=12)
@given(st.lists(st.sampled_from(SAFETY_KEYS), min_size=1, max_size=5, unique=True))
def test_a_safety_key_left_out_is_its_documented_default_and_nothing_looser(gone: list[tuple[str | int, ...]]) -> None:
    document = deepcopy(POLICY)
    for path in sorted(gone, key=len, reverse=True):
        del at(document, path[:-1])[path[-1]]
    policy = loaded(as_text(document))
    if policy is None:
        assert ("mode",) in gone, "a rule harsher than the default mode"
        return
    check_envelope(policy)
    rule, default = policy.idle_gpu[0], Limits()
    whole = ("idle_gpu", 0, "safety") in gone
    for key, name in (
        ("actions_per_day", "actions_per_day"),
        ("fleet_share_per_day", "fleet_share_per_day"),
        ("hourly_cost_stopped_per_day", "hourly_cost_stopped_per_day"),
        ("local_disk", "local_disk"),
        ("unstoppable", "unstoppable_may_terminate"),
    ):
        written = not whole and ("idle_gpu", 0, "safety", key) not in gone
        found, shipped = getattr(rule.limits, name), getattr(default, name)
        assert written or found == shipped or set(found) == set(shipped), key
    if ("mode",) in gone:
        assert policy.mode is Mode.OBSERVE
    if ("idle_gpu", 0, "then") in gone:
        assert [step.verb for step in rule.ladder] == [Verb.WARN, Verb.STOP]


@fuzz(quick=12)
@given(st.data())
def test_a_torn_text_is_refused_or_stays_within_the_envelope(data: st.DataObject) -> None:
    """Lines and characters lost, doubled, moved and replaced, in block style."""
    text = _block(POLICY)
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(text)))
        last = min(len(text), first + data.draw(st.sampled_from([0, 1, 2, 10, 80, 400])))
        kind = data.draw(st.sampled_from(["cut", "double", "put", "move"]))
        piece = text[first:last]
        if kind == "cut":
            text = text[:first] + text[last:]
        elif kind == "double":
            text = text[:last] + piece + text[last:]
        elif kind == "put":
            text = text[:first] + data.draw(texts()) + text[first:]
        else:
            text = text[:first] + text[last:]
            to = data.draw(st.integers(0, len(text)))
            text = text[:to] + piece + text[to:]
    policy = loaded(text)
    if policy is not None:
        check_envelope(policy)


def _block(value: Any, indent: str = "") -> str:
    """Block style, as people write it."""
    if isinstance(value, dict) and value:
        lines = (
            f"{indent}{key}:{_inline(item) or chr(10) + _block(item, indent + '  ')}" for key, item in value.items()
        )
        return "\n".join(line.rstrip("\n") for line in lines) + "\n"
    if isinstance(value, list) and value:
        return "\n".join(f"{indent}-\n{_block(item, indent + '  ')}".rstrip("\n") for item in value) + "\n"
    return f"{indent}{json.dumps(value)}\n"


def _inline(value: Any) -> str:
    return "" if isinstance(value, (dict, list)) and value else f" {json.dumps(value)}"


@fuzz(quick=12)
@given(
    st.one_of(texts(), st.text(alphabet="[]{}:,-?&*!|>'\"%@`# \n\tab0.~", max_size=200)), st.sampled_from(["", HEAD])
)
def test_any_text_is_refused_or_stays_within_the_envelope(text: str, head: str) -> None:
    for name, others in (("costguard.yaml", {}), ("policies/a.yaml", {"costguard.yaml": HEAD}), ("owners.yaml", {})):
        policy = loaded(head + text, name, **others)
        if policy is not None:
            check_envelope(policy)


_NUMBERED = ",".join(f"1.{number}%" for number in range(100_000, 104_000))
BOMBS = {
    "alias bomb": "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}, *a{i}]\n" for i in range(60)),
    "lists": "[" * 10_000,
    "closed lists": HEAD + "prices: " + "[" * 10_000 + "]" * 10_000,
    "mappings": HEAD + "prices: " + "{a: " * 10_000,
    "closed mappings": HEAD + "prices: " + "{a: " * 5_000 + "1" + "}" * 5_000,
    "indentation": "\n".join(" " * depth + "a:" for depth in range(350)),
    "dashes": "- " * 10_000 + "a",
    "question marks": "? " * 10_000 + "a",
    "integer": HEAD + "x: " + "9" * 60_000,
    "negative integer": f"version: 1\nidle_gpu: [{{name: a, safety: {{actions_per_day: -{'9' * 5000}}}}}]\n",
    "quoted integer": f'version: 1\nidle_gpu: [{{name: a, safety: {{actions_per_day: "{"9" * 60_000}"}}}}]\n',
    "account id": f'{HEAD}accounts: [{{cloud: aws, id: "{"1" * 60_000}", regions: all}}]\n',
    "superscript count": 'version: 1\nidle_gpu: [{name: a, safety: {actions_per_day: "²"}}]\n',
    "duration": f"version: 1\nidle_gpu: [{{name: a, idle_when_all: {{lasting: {'9' * 60_000}h}}}}]\n",
    "iso duration": f"version: 1\nidle_gpu: [{{name: a, idle_when_all: {{lasting: P{'9' * 60_000}D}}}}]\n",
    "float": HEAD + "x: 1e" + "9" * 60_000,
    "underscores": HEAD + "x: " + "_" * 60_000,
    "key": HEAD + "k" * 60_000 + ": 1\n",
    "quoted key": HEAD + '"' + "k" * 60_000 + '": 1\n',
    "zone": HEAD + f'calendar: {{zone: "{"a/" * 30_000}", hours: "10:00-18:00"}}\n',
    "days": HEAD + f'calendar: {{zone: UTC, hours: "10:00-18:00", days: "{"mon," * 15_000}moon"}}\n',
    "matchers": HEAD + "signals: {prometheus: [{url: http://a, extra_matchers: '" + 'a="b",' * 9_000 + "'}]}\n",
    "matchers, escaped": HEAD + "signals: {prometheus: [{url: http://a, extra_matchers: '" + 'a="\\' * 9_000 + "'}]}\n",
    "money": HEAD.replace("a}", f"a, safety: {{hourly_cost_stopped_per_day: ['{'$' * 30_000}{'1,' * 10_000}']}}}}"),
    "same key": HEAD + "a: 1\n" * 10_000,
    "mailbox": HEAD + f"notify: {{default: 'mailto:{'a.' * 30_000}@{'b.' * 1_000}'}}\n",
    "bare mailbox": HEAD + f"notify: {{default: '{'a' * 30_000}@{'b.' * 10_000}'}}\n",
    "webhook": HEAD + f"notify: {{default: 'http://{'a.' * 15_000}{'?key' * 7_000}'}}\n",
    "tokens": HEAD + f"notify: {{default: '{'?key' + 'key' * 20_000}'}}\n",
    "shares": HEAD.replace("idle", f"budgets: [{{name: a, monthly: 1 USD, alert_at: [{_NUMBERED}]}}]\nidle"),
    "steps": HEAD + f"budgets: [{{name: a, monthly: 1 USD, at: {{1%: [{'stop_idle,' * 6_000}]}}}}]\n",
    "rate": HEAD + f"exchange_rates: [{{from: USD, to: CNY, rate: '{'9' * 60_000}', since: 2026-01-01}}]\n",
    "documents": "---\n" * 15_000,
    "directives": "%TAG ! x\n" * 7_000,
    "commas": HEAD + "prices: [" + "a," * 12_000 + "]",
    "anchors": HEAD + "x: [" + "&a b," * 12_000 + "]",
    "aliases": HEAD + "x: [" + "*a," * 20_000 + "]",
    "tags": HEAD + "x: [" + "!!str a," * 8_000 + "]",
    "quotes": HEAD + "x: " + "'" * 60_001,
    "escapes": HEAD + 'x: "' + "\\U0010FFFF" * 6_000 + '"',
    "carriage returns": "\r" * 60_000,
    "globs": HEAD.replace("{name: a}", "{name: a, applies_when_all: {tags: {a: '" + "*a" * 25_000 + "'}}}"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_costs_no_more_than_any_text(name: str) -> None:
    text = BOMBS[name]
    assert len(text.encode()) <= MAX_BYTES, "above the limit it would not be read at all"
    handed = PolicyText({"costguard.yaml": text}, "r", "")
    policy = attempt("policy", lambda: load_policy(handed), InvalidInputError, measure=LONG)
    assert policy is None or name == "globs"


def test_a_text_over_the_limit_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    assert MAX_BYTES == 64 * 1024
    path = tmp_path / "costguard.yaml"
    for text in (HEAD + "#" * MAX_BYTES, "[" * (MAX_BYTES + 1), HEAD + "é" * (MAX_BYTES // 2)):
        handed = PolicyText({"costguard.yaml": text}, "r", "")
        assert attempt("policy", partial(load_policy, handed), InvalidInputError, measure=True) is None
        path.write_text(text, "utf-8")
        with pytest.raises(InvalidInputError, match="longer than 64 KiB"):
            FilePolicySource(path).read()


def test_many_files_under_the_limit_are_no_way_round_it() -> None:
    """A thousand files of 64 KiB would be read for minutes."""
    files = {f"policies/{number}.yaml": "- " * 30_000 for number in range(100)}
    handed = PolicyText({"costguard.yaml": HEAD, **files}, "r", "")
    assert attempt("policy", lambda: load_policy(handed), InvalidInputError) is None


@pytest.mark.parametrize("count", [366, 5_000])
def test_no_list_of_holidays_leaves_a_grace_without_end(count: int) -> None:
    """One working day a week, and every one of them a holiday: the grace would end in no year that is looked at."""
    first = date(2026, 3, 16)
    closed = [(first + timedelta(weeks=week)).isoformat() for week in range(count)]
    text = HEAD + f'calendar: {{zone: UTC, days: mon, hours: "10:00-18:00", holidays: [{", ".join(closed)}]}}\n'
    policy = loaded(text)
    if policy is not None:
        check_envelope(policy)
    assert (policy is None) == (count > 366)


@fuzz(quick=12)
@given(
    st.one_of(st.binary(max_size=300), texts().map(lambda text: text.encode("utf-16", "surrogatepass"))), st.booleans()
)
def test_any_bytes_in_a_file_are_refused_with_their_place(
    tmp_path_factory: pytest.TempPathFactory,
    raw: bytes,
    behind: bool,  # noqa: FBT001
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "costguard.yaml"
    path.write_bytes(HEAD.encode() + raw if behind else raw)

    def read() -> Policy:
        return load_policy(FilePolicySource(path).read())

    policy = attempt("policy file", read, InvalidInputError, UnavailableError)
    if policy is not None:
        check_envelope(policy)


READERS: dict[str, Any] = {
    "duration": units.parse_duration, "percent": units.parse_percent, "share": units.parse_share,
    "money": units.parse_money, "rate": units.parse_rate, "power": units.parse_power,
    "window": time_values.window, "moment": time_values.moment, "day": time_values.day, "hours": time_values.hours,
    "weekdays": time_values.weekdays, "holidays": time_values.holidays, "count": values.count,
    "coverage": values.coverage, "price": values.price, "version": values.version,
    "currency": units.parse_currency, "exchange rate": units.parse_exchange_rate, "bill day": time_values.bill_day,
    "share of a budget": share_of_budget, "step of a budget": parse_budget_step,
}  # fmt: skip


def _raw_values() -> st.SearchStrategy[Any]:
    """What the YAML reader can hand over, and what the command line can."""
    near = st.from_regex(r"[-+P]?[0-9]{0,20}[.,:_-]?[0-9]{0,20} ?[a-zA-Z%/]{0,6}", fullmatch=True)
    single = st.one_of(
        st.booleans(), st.integers(-(10**18), 10**18), st.floats(allow_nan=False, allow_infinity=False), texts(), near
    )
    return st.one_of(single, st.lists(single, max_size=3).map(tuple), st.dictionaries(texts(), single, max_size=2))


@fuzz(quick=50)
@given(st.sampled_from(sorted(READERS)), _raw_values())
def test_a_value_is_read_or_refused(kind: str, raw: Any) -> None:
    def read() -> Any:
        try:
            return READERS[kind](raw)
        except BadValueError as err:
            raise InvalidInputError(err.message) from err

    found = attempt("policy value", read, InvalidInputError)
    if isinstance(found, timedelta):
        assert timedelta(0) <= found <= timedelta(days=3650)
    if isinstance(found, datetime):
        assert found.utcoffset() is not None


TERMS: dict[str, Any] = json.loads(
    terms(load_policy(PolicyText({"costguard.yaml": as_text(POLICY)}, "r", "")).idle_gpu[0])
)


@fuzz(quick=12)
@given(mutated(TERMS, json_junk()))
def test_damaged_terms_of_a_rule_are_refused_or_read_as_they_say(damaged: Mutated) -> None:
    text = as_text(damaged.document)
    rule = attempt("rule terms", lambda: rule_from_terms(text), InvalidInputError, NewerSchemaError)
    if rule is not None:
        assert rule_from_terms(terms(rule)) == rule


@pytest.mark.parametrize("depth", [100, 10_000])
def test_deeply_nested_terms_are_refused(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"schema":1,"name":' + "[" * depth + "]" * depth + "}"):
        assert attempt("rule terms", partial(rule_from_terms, text), InvalidInputError, measure=True) is None


def lines_of(document: Any) -> Iterator[str]:
    yield from _block(document).splitlines()


def test_the_block_form_says_the_same_as_the_flow_form() -> None:
    block, flow = loaded("\n".join(lines_of(POLICY))), loaded(as_text(POLICY))
    assert block is not None
    assert flow is not None
    assert block.digest == flow.digest
    assert nested(2) == [[0]]
