"""What is known to fall due, each with how that is known: a part of a budget's story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from typing_extensions import assert_never

from costguard.domain.money import totals
from costguard.estimates.commitments import Commitment, CommitmentEvidence
from costguard.report.budget.views import BudgetReport
from costguard.report.notices.machines import local_time
from costguard.report.words.sentences import Language, clean, phrase

SHOWN = 10


def due_lines(one: BudgetReport, commitments: Sequence[Commitment], language: Language = Language.EN) -> Iterator[str]:
    """A line for each of the first ten, and what the others come to."""
    for each in commitments[:SHOWN]:
        yield _line(one, each, language)
    more = commitments[SHOWN:]
    if more:
        money = " + ".join(map(str, totals(each.money for each in more if each.money is not None)))
        yield phrase("budgets_due_more", language, count=len(more), **({"money": money} if money else {}))


def _line(one: BudgetReport, each: Commitment, language: Language) -> str:
    period = one.status.period
    facts = {
        "when": local_time(each.due, period.zone if period is not None else "UTC", language),
        "name": _name(one, each, language),
        "cost": _cost(each, language),
        "why": _why(each, language),
        **({"account": clean(each.account)} if each.account and each.ref is None else {}),
    }
    if each.times > 1:
        return phrase("budgets_due_daily", language, times=each.times, **facts)
    if each.sure:
        return phrase("budgets_due", language, **facts)
    bound = {} if each.money is None else {"bound": phrase("budgets_due_bound", language)}
    return phrase("budgets_due_perhaps", language, **bound, **facts)


def _name(one: BudgetReport, each: Commitment, language: Language) -> str:
    if each.ref is not None:
        return one.name_of(each.ref)
    return clean(each.name) or phrase("budgets_due_unnamed", language, cloud=each.cloud)


def _cost(each: Commitment, language: Language) -> str:
    if each.money is not None:
        return str(each.money)
    if each.own is not None:
        return phrase("budgets_due_no_rate", language, money=str(each.own))
    return phrase("budgets_due_spread" if each.spread else "budgets_due_unpriced", language)


def _why(each: Commitment, language: Language) -> str:
    days = phrase("budget_rule_list", language).join(day.isoformat() for day in each.seen)
    if each.ground is CommitmentEvidence.CHARGED_BEFORE:
        key = "budgets_due_every_day" if each.times > 1 else "budgets_due_before"
        return phrase(key, language, cloud=each.cloud, days=days)
    if each.ground is CommitmentEvidence.TERM:
        price = {}
        if each.by_list:
            price["price"] = phrase("budgets_due_price_listed", language)
        elif each.own is not None:
            price["price"] = phrase("budgets_due_price_before", language, days=days)
        return phrase("budgets_due_renewed" if each.sure else "budgets_due_ends", language, **price)
    assert_never(each.ground)
