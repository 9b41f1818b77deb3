"""What a rotation of a key costs: told by every vendor's matrix, by findings, by notices and as JSON."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

import pytest

from costguard.domain.keys import CostKind, RotationCost
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.providers.alibaba.kms import answers as alibaba
from costguard.providers.aws.kms import answers as aws
from costguard.providers.tencent.kms import answers as tencent
from costguard.report.notices.remediations import (
    RemediationFacts,
    RemediationWord,
    remediation_notice,
    rotation_cost_words,
    told_cost_words,
)
from costguard.report.words.sentences import Language

KEY = ResourceRef("aws", "111122223333", "us-east-1", "key", "k-1")
FIRST_TWO = RotationCost(
    CostKind.FIRST_TWO, Money(Decimal(1), "USD"), "https://aws.amazon.com/kms/pricing/", "2024-04-12"
)


def test_every_row_of_every_vendor_says_what_a_rotation_costs() -> None:
    """`unknown` is an answer, and stands where no document at hand has another."""
    kinds = [[row.allows.cost.kind.value for row in each.MATRIX] for each in (aws, alibaba, tencent)]
    assert kinds == [
        ["nothing", "unknown", "new_key", "new_key", "new_key", "new_key", "first_two", "first_two"],
        ["nothing", "new_key", "new_key", "quota", "quota", "add_on"],
        ["unknown", "unknown", "new_key", "new_key", "new_key", "unknown"],
    ]


@pytest.mark.parametrize("vendor", [aws, alibaba, tencent])
def test_an_amount_of_money_has_its_source_and_date(vendor: object) -> None:
    rows = [row.allows.cost for row in vendor.MATRIX]  # type: ignore[attr-defined]
    assert all(cost.source and cost.as_of for cost in rows if cost.monthly is not None)
    assert all(cost.monthly is None for cost in rows if cost.kind in {CostKind.UNKNOWN, CostKind.NOTHING})


@pytest.mark.parametrize(
    ("cost", "english", "chinese"),
    [
        (
            FIRST_TWO,
            "each of a key's first two as much as a key by the hour, 1.00 USD a month; later ones nothing",
            "前两次轮换各按一个密钥的价格按小时加收（每月 1.00 USD），之后不再加收",
        ),
        (RotationCost(CostKind.NEW_KEY), "a further key at its price", "等于多一个密钥的价格"),
        (RotationCost(CostKind.UNKNOWN), "unknown: no document says", "未知：文档未说明"),
    ],
)
def test_a_cost_is_said_in_both_languages(cost: RotationCost, english: str, chinese: str) -> None:
    assert rotation_cost_words(cost) == english
    assert rotation_cost_words(cost, Language.ZH) == chinese


def test_every_kind_of_cost_has_words() -> None:
    said = {rotation_cost_words(RotationCost(kind), language) for kind in CostKind for language in Language}
    assert len(said) == 2 * len(CostKind)
    assert told_cost_words({}) == told_cost_words({"cost": "no such"}) == ""


@pytest.mark.parametrize(
    ("language", "line"),
    [
        (Language.EN, "A rotation costs: one more of the instance's quota of keys."),
        (Language.ZH, "轮换费用：占用实例的一个密钥配额。"),
    ],
)
def test_the_notice_before_a_rotation_says_what_it_costs(language: Language, line: str) -> None:
    reason = Reason(ReasonCode.KEY_OVERDUE, {"age_days": 400, "wanted_days": 90, "cost": "quota"})
    mend = Remediation(RemediationKind.ROTATE_KEY, KEY)
    at = datetime(2026, 3, 3, 9, tzinfo=timezone.utc)
    said = {
        word: remediation_notice(
            RemediationFacts(word, KEY, "training", "nlp", "ninety-days", reason, mend, due_at=at), language
        )
        for word in (RemediationWord.COMES, RemediationWord.DONE)
    }
    assert line in said[RemediationWord.COMES].lines
    assert line not in said[RemediationWord.DONE].lines
