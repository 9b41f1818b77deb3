"""What a change of the policy means, and which way it goes."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.policy.diff.differences import Difference, Direction, loosening
from costguard.policy.diff.idle import loosens
from costguard.policy.diff.policies import policy_differences
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText
from costguard.report.policy.diff import diff_markdown

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "shared/costguard/report/schemas/policy_diff.schema.json").read_text(encoding="utf-8"))
ROLLOUT = 'rollout: [{account: "111122223333", steps: [{mode: warn, since: 2026-12-07}]}]'
BASE = """\
version: 1
mode: enforce
calendar: {zone: Asia/Shanghai, days: mon-fri, hours: "10:00-18:00", holidays: [2026-12-25], workdays: [2026-12-26]}
accounts: [{cloud: aws, id: "111122223333", regions: [us-east-1, eu-west-1]}]
new_accounts: {observe_for: 14d}
leading_deployment: platform
protect: {tags: [hands-off], expiry_tags: [lease-until], controller_tags: [lab/*], accounts: ["777788889999"]}
notify:
  default: "slack:#a"
  answers: {slack_team: T0123ABCD, approvers: [U01AAAAAA, U02AAAAAA], two_approvers_above: [20 USD]}
prices: [{cloud: aws, instance_types: ["p5.*"], hourly: 38 USD}]
exchange_rates: [{from: USD, to: CNY, rate: 7.1, since: 2026-11-01}]
priority_classes: [{name: dev, applies_when_all: {tags: {env: dev}}}]
launch_freezes: [{name: no-gpus, cloud: aws, via: organisation, policy: p-a1b2c3d4, target: "012345670124"}]
signals: {prometheus: [{url: "https://prometheus.example.com"}]}
idle_gpu:
  - name: research
    applies_when_all: {tags: {team: research}, instance_types: ["p4d.*", "g5.xlarge"]}
    except_when_any: [{regions: [eu-west-1]}]
    idle_when_all:
      {lasting: 24h, every_gpu_max_below: 5%, cpu_max_below: 10%, network_max_below: 50KiB/s, power_max_below: 80W}
    then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]
    safety: {actions_per_day: 10, fleet_share_per_day: 10%, hourly_cost_stopped_per_day: [200 USD], local_disk: ask}
  - {name: sooner, shadow: true, then: [warn, {stop: {wait: 2h}}]}
budgets:
  - name: team
    covers: {tags: {team: research}}
    monthly: 5000 USD
    at: {100%: [warn, {stop_idle: {idle_for: 2h, wait: 4h}}]}
kms_rotation:
  - {name: keys, mode: warn, rotate_every: 90d, applies_when_all: {aliases: ["prod-*"]}, wait: 24h}
network_audit:
  - {name: nets, mode: warn, forbid: [public_ip, wide_rule], trusted: [203.0.113.0/24], keep: [203.0.113.7], wait: 3d}
owners:
  - {name: nlp, owns: {tags: {team: nlp}}, channel: "slack:#nlp", people: [U03AAAAAA]}
  - {name: cv, owns: {tags: {team: cv}}, channel: "slack:#cv"}
exceptions:
  - {resource: i-0123456789abcdef0, owner: nlp, reason: demo, approver: finops, expires: "2026-12-01T18:00:00+08:00"}
"""

# (a piece of BASE, what stands in its place, key, direction)
L, T, N = Direction.LOOSER, Direction.TIGHTER, Direction.OTHER
CHANGES: tuple[tuple[str, str, str, Direction], ...] = (
    ("lasting: 24h", "lasting: 12h", "idle_when_all.lasting", L),
    ("lasting: 24h", "lasting: 48h", "idle_when_all.lasting", T),
    ("every_gpu_max_below: 5%", "every_gpu_max_below: 6%", "idle_when_all.every_gpu_max_below", L),
    ("every_gpu_max_below: 5%", "every_gpu_max_below: 4%", "idle_when_all.every_gpu_max_below", T),
    ("cpu_max_below: 10%, ", "", "idle_when_all.cpu_max_below", L),
    ("50KiB/s", "10KiB/s", "idle_when_all.network_max_below", T),
    ("80W", "90W", "idle_when_all.power_max_below", L),
    ("{terminate: {wait: 7d}}]", "{terminate: {wait: 3d}}]", "then", L),
    (", {terminate: {wait: 7d}}]", "]", "then", T),
    ('"p4d.*", "g5.xlarge"', '"p4d.*", "g5.*"', "applies_when_all.instance_types", L),
    ('"p4d.*", "g5.xlarge"', '"p4d.*"', "applies_when_all.instance_types", T),
    ("except_when_any: [{regions: [eu-west-1]}]", "mode: enforce", "except_when_any", L),
    ("actions_per_day: 10,", "actions_per_day: 0,", "safety.actions_per_day", T),
    ("fleet_share_per_day: 10%", "fleet_share_per_day: 20%", "safety.fleet_share_per_day", L),
    ("[200 USD]", "[300 USD]", "safety.hourly_cost_stopped_per_day", L),
    ("local_disk: ask", "local_disk: keep", "safety.local_disk", T),
    ("local_disk: ask", "local_disk: lose", "safety.local_disk", L),
    (
        "local_disk: ask",
        "local_disk: ask, local_disk_approver_above: [20 USD]",
        "safety.local_disk_approver_above",
        T,
    ),
    ("local_disk: ask", "local_disk: ask, unstoppable: terminate", "safety.unstoppable", L),
    ("local_disk: ask", "local_disk: ask, scarce: stop", "safety.scarce", L),
    ("local_disk: ask", "local_disk: ask, scarce: hold", "safety.scarce", T),
    ("local_disk: ask", "local_disk: ask, scarce_types: [H100]", "safety.scarce_types", L),
    ("local_disk: ask", "local_disk: ask, scarce_types: [shipped, L40S]", "safety.scarce_types", T),
    ("{tags: [hands-off], ", "{", "protect.tags", L),
    ("tags: [hands-off]", "tags: [hands-off, ours]", "protect.tags", T),
    ("[lease-until]", "[lease-until, free-on]", "protect.expiry_tags", T),
    ("[lab/*]", "[lab/*, pool]", "protect.controller_tags", T),
    ("controller_tags: [lab/*], ", "", "protect.controller_tags", L),
    (', accounts: ["777788889999"]', "", "protect.accounts", L),
    ("[U01AAAAAA, U02AAAAAA]", "[U01AAAAAA, U02AAAAAA, U05AAAAAA]", "notify.answers.approvers", L),
    (", two_approvers_above: [20 USD]", "", "notify.answers.two_approvers_above", L),
    ("[20 USD]", "[10 USD]", "notify.answers.two_approvers_above", T),
    ("[20 USD]", "[20 USD, 140 CNY]", "notify.answers.two_approvers_above", L),
    ("T0123ABCD", "T0123ABCE", "notify.answers.slack_team", L),
    ('"slack:#a"', '"slack:#b"', "notify.default", N),
    ("hourly: 38 USD", "hourly: 30 USD", "prices", L),
    ("hourly: 38 USD", "hourly: 40 USD", "prices", T),
    ("hourly: 38 USD}", "hourly: 38 USD}, {cloud: aws, discount: 30%}", "prices.discount", N),
    ("rate: 7.1", "rate: 7.2", "exchange_rates", N),
    ('target: "012345670124"', 'target: "012345670125"', "launch_freezes", L),
    ("https://prometheus.example.com", "https://other.example.com", "signals.prometheus", L),
    ('"10:00-18:00"', '"09:00-18:00"', "calendar", L),
    ('"10:00-18:00"', '"11:00-18:00"', "calendar", T),
    ("[2026-12-25]", "[2026-12-24, 2026-12-25]", "calendar", T),
    (", workdays: [2026-12-26]", "", "calendar", T),
    ("mon-fri", "mon-sat", "calendar", L),
    ("[us-east-1, eu-west-1]", "all", "regions", L),
    ("[us-east-1, eu-west-1]", "[us-east-1]", "regions", T),
    ("regions: [us-east-1, eu-west-1]}", "regions: [us-east-1, eu-west-1], protected: true}", "protected", T),
    ("monthly: 5000 USD", "monthly: 4000 USD", "amount", L),
    ("monthly: 5000 USD", "monthly: 6000 USD", "amount", T),
    ("monthly: 5000 USD", "yearly: 5000 USD", "period", L),
    ("monthly: 5000 USD", "monthly: 5000 USD\n    alert_at: [90%]", "alert_at", N),
    ("idle_for: 2h, wait: 4h", "idle_for: 1h, wait: 4h", "idle_when_all.lasting", L),
    ("idle_for: 2h, wait: 4h", "idle_for: 2h, wait: 8h", "then", T),
    ("rotate_every: 90d", "rotate_every: 30d", "rotate_every", L),
    ('"prod-*"', '"*"', "applies_when_all", L),
    ('["prod-*"]}, wait: 24h', '["prod-*"]}, wait: 48h', "wait", T),
    ("forbid: [public_ip, wide_rule]", "forbid: [public_ip, wide_rule, imds_v1]", "forbid", L),
    ("trusted: [203.0.113.0/24]", "trusted: [203.0.113.0/24, 198.51.100.0/24]", "trusted", T),
    ("keep: [203.0.113.7], ", "", "keep", L),
    ("people: [U03AAAAAA]", "people: [U03AAAAAA, U04AAAAAA]", "people", L),
    ('"slack:#nlp"', '"slack:#nlp2"', "channel", N),
    ("2026-12-01T18", "2026-11-01T18", "expires", L),
    ("2026-12-01T18", "2027-01-01T18", "expires", T),
    ("reason: demo", "reason: test", "reason", N),
    ("observe_for: 14d", "observe_for: 7d", "new_accounts.observe_for", L),
    ("leading_deployment: platform", "leading_deployment: research", "leading_deployment", L),
    ("leading_deployment: platform\n", "", "leading_deployment", T),
    ("version: 1", "version: 1\nkeep_as_tag: true", "keep_as_tag", N),
    ("version: 1", "version: 1\nstart_again: true", "start_again", L),
    ("version: 1", "version: 1\nlongest_exception: 90d", "longest_exception", L),
    ("version: 1", "version: 1\nlongest_exception: 365d", "longest_exception", T),
    ("observe_for: 14d", "observe_for: 30d", "new_accounts.observe_for", T),
    ("new_accounts: {observe_for: 14d}", f"new_accounts: {{observe_for: 14d}}\n{ROLLOUT}", "rollout", T),
    ('"slack:#a"', '"slack:#a"\n  messages_per_day: 20', "notify.messages_per_day", L),
    ('"slack:#a"', '"slack:#a"\n  messages_per_day: 5', "notify.messages_per_day", T),
    ("new_accounts: {observe_for: 14d}", "", "new_accounts.observe_for", L),
    ("{stop: {wait: 2h}}", "{stop: {wait: 1h}}", "then", N),
)


@cache
def policy(text: str) -> Policy:
    return load_policy(PolicyText({"costguard.yaml": text}, "test"))


def only(piece: str) -> str:
    """BASE with no more sections than the piece needs: loading the others takes most of a test's time."""
    sections = re.split(r"^(?=[a-z])", BASE, flags=re.MULTILINE)[1:]
    kept = [each for each in sections if piece in each or each.startswith(("version", "mode"))]
    rules = ("idle_gpu", "budgets", "kms", "network")
    return "".join(kept if any(each.startswith(rules) for each in kept) else [*kept, "idle_gpu: [{name: m}]\n"])


def differences(text: str, base: str = BASE) -> tuple[Difference, ...]:
    return policy_differences(policy(base), policy(text))


@pytest.mark.parametrize(("before", "after", "key", "direction"), CHANGES, ids=[f"{a} > {b}" for a, b, _, _ in CHANGES])
def test_a_change_of_one_key_is_told_with_its_direction(
    before: str, after: str, key: str, direction: Direction
) -> None:
    assert BASE.count(before) == 1
    base = only(before)

    found = differences(base.replace(before, after), base)

    assert [(each.key, each.direction) for each in found] == [(key, direction)]


@pytest.mark.parametrize(
    ("section", "entry", "added", "removed"),
    [
        ("accounts", '  - {cloud: alibaba, id: "1234567890123456", regions: all}', L, T),
        ("idle_gpu", "  - {name: more, applies_when_all: {tags: {team: other}}}", L, T),
        ("idle_gpu", "  - {name: more, mode: observe, applies_when_all: {tags: {team: other}}}", T, T),
        ("budgets", "  - {name: more, monthly: 10 USD}", N, N),
        ("kms_rotation", "  - {name: more}", N, L),  # what the gentle rule kept falls to the other one
        ("network_audit", "  - {name: more, forbid: [imds_v1]}", N, L),
        ("owners", "  - {name: more, owns: {tags: {team: more}}}", N, L),
        ("owners", "  - {name: more, owns: {tags: {team: more}}, people: [U09AAAAAA]}", L, L),
        (
            "exceptions",
            '  - {resource: i-1, owner: a, reason: b, approver: c, expires: "2026-12-01T18:00:00Z"}',
            T,
            L,
        ),
    ],
)
def test_an_entry_more_or_less(section: str, entry: str, added: Direction, removed: Direction) -> None:
    entry = entry.replace("i-1,", "i-1111,")
    flow = BASE.replace(
        'accounts: [{cloud: aws, id: "111122223333", regions: [us-east-1, eu-west-1]}]',
        'accounts:\n  - {cloud: aws, id: "111122223333", regions: [us-east-1, eu-west-1]}',
    )
    more = flow.replace(f"\n{section}:\n", f"\n{section}:\n{entry}\n")

    (there,), (gone,) = differences(more, flow), differences(flow, more)

    assert (there.section, there.key, there.before, there.direction) == (section, "", "", added)
    assert (gone.section, gone.key, gone.after, gone.direction) == (section, "", "", removed)


TWO = """\
version: 1
mode: enforce
idle_gpu:
  - {name: gentle, mode: observe, applies_when_all: {tags: {team: research}}}
  - {name: harsh, applies_when_all: {regions: [us-east-1]}, then: [warn, {stop: {wait: 1h}}]}
"""


@pytest.mark.parametrize(
    "changed",
    [
        TWO.replace("  - {name: gentle, mode: observe, applies_when_all: {tags: {team: research}}}\n", ""),
        TWO.replace("{team: research}", "{team: research, stage: dev}"),
    ],
    ids=["the gentle rule is gone", "it matches less"],
)
def test_machines_that_a_gentle_rule_kept_may_fall_to_a_harsher_one(changed: str) -> None:
    """By itself the change only tightens the rule: fewer machines are watched by it."""
    found = differences(changed, TWO)

    assert ("gentle", "falls_to", "harsh", L) in [(each.name, each.key, each.after, each.direction) for each in found]


@pytest.mark.parametrize(
    ("base", "before", "after"),
    [
        ("kms_rotation: [{name: a, mode: warn}, {name: b}]", "{name: b}", "{name: b, rotate_every: 180d}"),
        (
            "kms_rotation: [{name: a, mode: warn}, {name: b}]",
            "{name: b}",
            "{name: b, applies_when_all: {clouds: [aws]}}",
        ),
        (
            "network_audit: [{name: a, mode: warn, forbid: [imds_v1]}, {name: b, forbid: [imds_v1, public_ip]}]",
            "[imds_v1, public_ip]",
            "[public_ip]",
        ),
    ],
)
def test_what_a_rule_for_settings_lets_go_of_may_fall_to_another(base: str, before: str, after: str) -> None:
    base = f"version: 1\nmode: enforce\n{base}\n"

    (found,) = differences(base.replace(before, after), base)

    assert found.direction is L


OWNERS = """\
version: 1
idle_gpu: [{name: m}]
owners: [{name: a, owns: {tags: {team: a}}}, {name: b, owns: {tags: {team: b}}}]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("{tags: {team: a}}", "{tags: {team: c}}"), ("{name: a, owns: {tags: {team: a}}}, ", "")],
    ids=["owns other machines", "is gone"],
)
def test_whose_machine_it_is_loosens_where_owners_may_stop_now(before: str, after: str) -> None:
    answering = OWNERS.replace("{team: b}}}", "{team: b}}, people: [U01AAAAAA]}")

    assert [each.direction for each in differences(OWNERS.replace(before, after), OWNERS)] == [N]
    assert [each.direction for each in differences(answering.replace(before, after), answering)] == [L]


def test_another_rate_loosens_where_a_budget_does_something() -> None:
    base = only("rate: 7.1") + only("monthly: 5000 USD").partition("\n")[2].partition("\n")[2]

    assert [each.direction for each in differences(base.replace("rate: 7.1", "rate: 7.2"), base)] == [L]


def test_nothing_falls_to_a_rule_that_no_such_machine_is_under() -> None:
    apart = TWO.replace("{regions: [us-east-1]}", "{tags: {team: product}}")

    found = differences(apart.replace("{team: research}", "{team: research, stage: dev}"), apart)

    assert [each.direction for each in found] == [T]


def test_the_same_said_otherwise_is_no_difference() -> None:
    assert (
        differences(BASE.replace("lasting: 24h", "lasting: 1d").replace("version: 1", "# a comment\nversion: 1")) == ()
    )


def test_owners_in_another_order_are_told() -> None:
    owners = BASE.partition("owners:\n")[2].split("\n")[:2]

    (found,) = differences(BASE.replace("\n".join(owners), "\n".join(reversed(owners))))

    assert found.direction is L  # one of them has people who may stop now
    assert (found.section, found.key, found.before, found.after) == ("owners", "order", "nlp, cv", "cv, nlp")


def test_what_nobody_can_name_counts_as_looser() -> None:
    """Should a part of the policy ever be forgotten here: the digests differ, and nobody can prove why."""
    old = policy(TWO)

    (found,) = policy_differences(old, replace(old, digest="another"))

    assert (found.section, found.key, found.direction) == ("policy", "digest", L)


def test_every_field_of_a_policy_is_compared() -> None:
    """A field that is added to the policy has to be added to the changes above."""
    compared = {
        difference.section for before, after, _, _ in CHANGES for difference in differences(BASE.replace(before, after))
    }
    compared |= {key.partition(".")[0] for _, _, key, _ in CHANGES}
    compared |= {"shadows"} if any(each.endswith(" shadow") for each in compared) else set()
    names = {
        "observe_new_accounts_for": "new_accounts",
        "every_hour_counts": "calendar",
        "default_channel": "notify",
        "messages_per_day": "notify",
        "exemptions": "exceptions",
        "protection": "protect",
        "answers": "notify",
        "discounts": "prices",
    }
    known = {names.get(field.name, field.name) for field in fields(Policy)} - {"digest", "mode", "priority_classes"}

    assert known <= compared


@pytest.mark.parametrize("old", ["observe", "warn", "enforce"])
@pytest.mark.parametrize("new", ["observe", "warn", "enforce"])
def test_a_mode_is_told_for_the_policy_and_its_rule(old: str, new: str) -> None:
    text = "version: 1\nmode: {}\nidle_gpu: [{{name: a}}]\n"
    order = ("observe", "warn", "enforce")
    way = L if order.index(new) > order.index(old) else T

    found = differences(text.format(new), text.format(old))

    assert [(each.section, each.key, each.direction) for each in found] == (
        [] if old == new else [("policy", "mode", way), ("idle_gpu", "mode", way)]
    )


@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from(range(12)), max_size=4))
def test_a_rule_loosens_where_one_of_its_parts_does(picked: set[int]) -> None:
    """The parts of a rule together say what `loosens` says of the whole, by which cases go on."""
    text = BASE
    for index in sorted(picked):
        before, after, *_ = CHANGES[index]
        text = text.replace(before, after, 1)
    old, new = policy(BASE).idle_gpu[0], policy(text).idle_gpu[0]

    assert bool(loosening(differences(text))) == loosens(old, new)


def write(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "costguard.yaml").write_text(text, encoding="utf-8")
    return str(folder)


def test_the_status_says_whether_something_loosens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old", BASE)
    looser = write(tmp_path / "looser", BASE.replace("lasting: 24h", "lasting: 12h"))

    assert run(["policy", "diff", old, old]) == Exit.OK
    assert "Both policies mean the same." in capfd.readouterr().out
    assert run(["policy", "diff", looser, old]) == Exit.OK
    assert "0 loosen, 1 tighten, 0 do neither." in capfd.readouterr().out
    assert run(["policy", "diff", old, looser, "--lang", "zh"]) == Exit.DUE
    assert "放宽 1 处" in capfd.readouterr().out


def test_the_json_is_what_its_schema_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old, new = write(tmp_path / "old", BASE), write(tmp_path / "new", TWO)

    assert run(["policy", "diff", old, new, "--json"]) == Exit.DUE

    told: dict[str, Any] = json.loads(capfd.readouterr().out)
    jsonschema.validate(told, SCHEMA)
    assert told["loosens"]
    assert told["differences"][0]["direction"] == "looser"


def test_a_comment_for_the_pull_request_shows_names_as_text() -> None:
    hostile = Difference("owners", "<img>|`x` @all", "channel", "a_b", "", N)

    lines = diff_markdown([hostile]).splitlines()

    assert lines[-1] == (r"| neither | owners | &lt;img&gt;\|\`x\` &#64;all | channel | a\_b | (not set) |")


def test_two_forms_at_once_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old", BASE)

    assert run(["policy", "diff", old, old, "--json", "--markdown"]) == Exit.BAD_INPUT
    assert "both want standard output" in capfd.readouterr().err
