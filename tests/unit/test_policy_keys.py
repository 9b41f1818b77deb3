"""Rules for keys as people write them: what they mean, and every mistake with its place and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from costguard.domain.keys import RotationMeans
from costguard.guards.keys.rules import QUARTER, KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.keys.documents import LONGEST, SHORTEST
from costguard.policy.model.policy import Policy, default_policy
from costguard.policy.model.terms import with_digest
from costguard.ports import PolicyText
from costguard.report.keys.rules import key_rule_json, key_rules_table
from costguard.report.words.sentences import Language

DAY = timedelta(days=1)
FULL = """
version: 1
mode: enforce
kms_rotation:
  - name: ninety-days
    mode: observe
    rotate_every: 90d
    applies_when_all:
      clouds: [tencent, aws]
      accounts: ["1111*", "100012345678"]
      regions: [us-*, ap-guangzhou]
      aliases: ["train/*", prod]
      tags: {team: "res*", env: prod}
    except_when_any: [{aliases: [scratch]}, {tags: {purpose: demo}}]
    means: [on_demand, automatic]
    customer_keys: true
"""


def policy(text: str, **others: str) -> Policy:
    files = {f"{name.replace('__', '/')}.yaml": other for name, other in others.items()}
    return load_policy(PolicyText({"costguard.yaml": text, **files}, "r1"))


def only(text: str, head: str = "version: 1\n") -> KeyRule:
    (rule,) = policy(f"{head}kms_rotation:\n  - {{{text}}}\n").kms_rotation
    return rule


def test_every_key_of_a_rule_is_read() -> None:
    (rule,) = policy(FULL).kms_rotation

    assert rule == with_digest(
        KeyRule(
            name="ninety-days",
            mode=Mode.OBSERVE,
            applies_to=KeySelector(
                clouds=("aws", "tencent"),
                accounts=("100012345678", "1111*"),
                regions=("ap-guangzhou", "us-*"),
                aliases=("prod", "train/*"),
                tags={"env": "prod", "team": "res*"},
            ),
            rotate_every=90 * DAY,
            means=frozenset({RotationMeans.AUTOMATIC, RotationMeans.ON_DEMAND}),
            customer_keys=True,
            except_for=(KeySelector(aliases=("scratch",)), KeySelector(tags={"purpose": "demo"})),
        )
    )
    assert len(rule.digest) == 64


def test_a_name_alone_is_every_key_every_ninety_days_by_itself() -> None:
    assert only("name: a") == with_digest(KeyRule("a", Mode.OBSERVE, KeySelector()))
    assert only("name: a").rotate_every == QUARTER


@pytest.mark.parametrize("mode", ["warn", "enforce"])
def test_a_rule_observes_however_harsh_the_policy_is(mode: str) -> None:
    """What acts on keys one day must be asked for by the rule itself."""
    assert only("name: a", f"version: 1\nmode: {mode}\n").mode is Mode.OBSERVE


@pytest.mark.parametrize(
    ("text", "every"), [("7d", SHORTEST), ("168h", SHORTEST), ("2560d", LONGEST), ("2w", 14 * DAY)]
)
def test_the_shortest_and_the_longest_period_are_the_vendors_own(text: str, every: timedelta) -> None:
    assert only(f"name: a, rotate_every: {text}").rotate_every == every


def test_rules_of_all_files_come_together_and_a_file_may_hold_them_alone() -> None:
    read = policy(
        "version: 1\nkms_rotation: [{name: m}]\n",
        policies__a="kms_rotation: [{name: z, rotate_every: 30d}]\n",
        policies__b="kms_rotation: [{name: a}]\nidle_gpu: []\n",
    )

    assert [rule.name for rule in read.kms_rotation] == ["a", "m", "z"]


def test_without_any_policy_every_key_is_looked_at_and_with_one_only_where_it_says_so() -> None:
    assert [(rule.name, rule.rotate_every) for rule in default_policy().kms_rotation] == [("default", QUARTER)]
    assert policy("version: 1\nidle_gpu: [{name: m}]\n").kms_rotation == ()


def test_the_order_of_words_changes_no_digest() -> None:
    one = only("name: a, means: [automatic, on_demand], applies_when_all: {clouds: [aws, tencent], tags: {a: b, c: d}}")
    other = only(
        "means: [on_demand, automatic], applies_when_all: {tags: {c: d, a: b}, clouds: [tencent, aws]}, name: a"
    )

    assert one.digest == other.digest


def test_every_changed_word_changes_the_digests_of_the_rule_and_of_the_policy() -> None:
    texts = [
        "name: a",
        "name: b",
        "name: a, rotate_every: 91d",
        "name: a, means: [on_demand]",
        "name: a, means: [automatic, on_demand]",
        "name: a, customer_keys: true",
        "name: a, applies_when_all: {clouds: [aws]}",
        "name: a, applies_when_all: {aliases: [x]}",
        "name: a, applies_when_all: {tags: {x: y}}",
        "name: a, except_when_any: [{regions: [us-east-1]}]",
        "name: a, except_when_any: [{accounts: ['111122223333']}]",
    ]

    assert len({only(text).digest for text in texts}) == len(texts)
    assert len({policy(f"version: 1\nkms_rotation: [{{{text}}}]\n").digest for text in texts}) == len(texts)


def test_what_a_rule_asks_is_said_in_both_languages_and_as_json() -> None:
    (rule,) = policy(FULL).kms_rotation
    english, chinese = (key_rules_table([rule, only("name: a")], language) for language in Language)

    assert english.records()[0] == {
        "rule": "ninety-days",
        "mode": "observe",
        "covers": "aws or tencent, 100012345678 or 1111*, ap-guangzhou or us-*, prod or train/*, env=prod, team=res*;"
        " not scratch or purpose=demo",
        "rotate_every": "90d",
        "means": "itself or on demand",
        "customer_keys": "are a finding where used",
    }
    assert english.records()[1]["covers"] == "every key"
    assert chinese.records()[1]["covers"] == "所有密钥"
    assert key_rule_json(rule)["rotate_every_seconds"] == 90 * 86_400
    assert key_rule_json(rule)["means"] == ["automatic", "on_demand"]


@dataclass(frozen=True)
class Bad:
    """`text` holds » right before the place that must be named."""

    text: str
    says: str
    fix: str


def main(text: str, says: str, fix: str) -> Bad:
    return Bad(f"version: 1\nmode: enforce\n{text}\n", says, fix)


def rule(text: str, says: str, fix: str) -> Bad:
    return main(f"kms_rotation:\n  - {{name: a, {text}}}", says, fix)


def every(text: str, says: str, fix: str) -> Bad:
    return rule(f"rotate_every: »{text}", says, fix)


def where(text: str, says: str, fix: str) -> Bad:
    return rule(f"applies_when_all: {{{text}}}", says, fix)


BAD = {
    "harsher than the policy": Bad(
        "version: 1\nmode: observe\nkms_rotation: [{name: a, mode: »warn}]\n", "harsher than", "leave the key out"
    ),
    "no notice": rule("wait: »30s", "at least 1h", "1h"),
    "less than nothing": rule("actions_per_day: »-1", "-1", ""),
    "no mode": rule("mode: »rotate", "'rotate' is not a mode", "observe, warn, enforce"),
    "no name": main("kms_rotation: [»{rotate_every: 90d}]", "this key is missing", "add name: research"),
    "empty name": main("kms_rotation: [{name: »''}]", "is not a name", ""),
    "name twice": main("kms_rotation: [{name: a}, {name: »A}]", "a second rule for keys A", "a name of its own"),
    "unknown key": rule("»period: 90d", "unknown key 'period'", "rotate_every"),
    "misspelt key": rule("»rotate_evry: 90d", "unknown key 'rotate_evry'", "did you mean rotate_every?"),
    "ladder": rule("»then: [warn]", "unknown key 'then'", "known here"),
    "not a list": main("kms_rotation: »{name: a}", "expected a list", ""),
    "empty list alone": Bad("»version: 1\nkms_rotation: []\n", "nothing would be guarded", "add a rule"),
    "no unit": every("90", "has no unit", "write 90d"),
    "no unit in quotes": every('"90"', "has no unit", "write 90d"),
    "words": every("quarterly", "is not a duration", ""),
    "negative": every("-90d", "expected a duration", ""),
    "iso": every("P90D", "is not a duration", ""),
    "half a day": every("36h", "not a whole number of days", "write 7d"),
    "part of a day": every("2161h", "not a whole number of days", "write 90d"),
    "nothing": every("0d", "no cloud rotates a key every 0 days", "write 7d or more"),
    "too often": every("6d", "the shortest is 7", "write 7d or more"),
    "too seldom": every("2561d", "the longest is 2560", "write 2560d or less"),
    "beyond reason": every("4000d", "longer than ten years", "shorter"),
    "true": every("true", "expected a duration", ""),
    "no means": rule("means: »[]", "an empty list", "leave the key out to allow automatic rotation"),
    "means as text": rule("means: »automatic", "expected a list", "write [automatic]"),
    "unknown means": rule("means: [»automatik]", "'automatik' is not a means", "did you mean automatic?"),
    "misspelt successor": rule("means: [automatic, »succesor]", "is not a means", "did you mean successor?"),
    "means twice": rule("means: [automatic, »automatic]", "is there twice", "keep one of them"),
    "customer keys as text": rule("customer_keys: »yes", "expected true or false", "write true"),
    "customer keys as number": rule("customer_keys: »1", "expected true or false", "write true or false"),
    "no restriction": rule("applies_when_all: »{}", "an empty mapping matches nothing", "leave the key out"),
    "no cloud": where("clouds: »[]", "an empty list matches nothing", "leave the key out"),
    "unknown cloud": where("clouds: [»amazon]", "'amazon' is not a cloud", ""),
    "cloud as text": where("clouds: »aws", "expected a list", 'write ["aws"]'),
    "account of no length": where('accounts: [»"123"]', "matches no account id", "12 on aws"),
    "region in words": where("regions: [»Frankfurt]", "is not a region", ""),
    "alias with its prefix": where("aliases: [»alias/train]", "are written without alias/", "write train"),
    "prefix alone": where("aliases: [»alias/]", "are written without alias/", "write the alias itself"),
    "alias with a space": where('aliases: [»"my key"]', "is not an alias", "write for example training"),
    "alias twice": where("aliases: [a, »a]", "is there twice", "keep one of them"),
    "no tags": where("tags: »{}", "an empty mapping matches nothing", "leave the key out"),
    "tag without a value": where("tags: {a: »[b]}", "expected text", ""),
    "instance types": where("»instance_types: [p4d.*]", "unknown key 'instance_types'", "aliases"),
    "excepts nothing": rule("except_when_any: »[]", "an empty list matches nothing", "except nothing"),
    "exception that matches nothing": rule("except_when_any: [»{}]", "an empty mapping matches nothing", ""),
    "exception not a list": rule("except_when_any: »{aliases: [a]}", "expected a list", "dash"),
}


@pytest.mark.parametrize("bad", [pytest.param(bad, id=name) for name, bad in BAD.items()])
def test_a_mistake_is_told_with_its_place_and_the_fix(bad: Bad) -> None:
    before, _, after = bad.text.partition("»")
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))

    _, problems = check_policy(PolicyText({"costguard.yaml": before + after}, "r1"))

    assert [(each.path, each.mark.line, each.mark.column) for each in problems] == [("costguard.yaml", *place)]
    assert bad.says in str(problems[0])
    assert bad.fix in str(problems[0])
