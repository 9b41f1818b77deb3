"""What a rotation of a key costs, in words: of its vendor's matrix, and of what a finding says of it."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.keys import CostKind, RotationCost
from costguard.domain.reasons import FactValue
from costguard.report.words.sentences import Language, clean, phrase

COST, MONTHLY = "cost", "cost_monthly"
"""Facts of a finding: the kind of cost, and the list price of a key a month."""


def rotation_cost_words(cost: RotationCost, language: Language = Language.EN) -> str:
    """What a rotation costs, or that it is not known."""
    return _words(cost.kind.value, "" if cost.monthly is None else str(cost.monthly), language)


def told_cost_words(facts: Mapping[str, FactValue], language: Language = Language.EN) -> str:
    """The same of what a finding says; empty where it says nothing of a rotation's cost."""
    kind = str(facts.get(COST, ""))
    return _words(kind, clean(facts.get(MONTHLY, "")), language) if kind in {each.value for each in CostKind} else ""


def _words(kind: str, monthly: str, language: Language) -> str:
    return phrase(f"key_cost_{kind}", language, monthly=monthly)
