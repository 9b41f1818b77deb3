"""Budgets of the clouds' own consoles as a policy's, each read back by the policy's own reader before it is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from costguard.domain.money import SpendScope, VendorBudget
from costguard.guards.rules.idle import percent_words
from costguard.policy.documents.loader import check_policy
from costguard.ports import PolicyText
from costguard.report.words.sentences import Language, clean, phrase

_PERIODS = frozenset({"monthly", "quarterly", "yearly"})
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 64
_HUNDRED, _MOST_PERCENT, _MOST_SHARES = Decimal(100), Decimal(1000), 20


@dataclass(frozen=True, slots=True)
class Adopted:
    """One budget of a console. `lines` is its entry in a policy; empty where it was `refused`, for that reason."""

    budget: VendorBudget
    name: str
    lines: tuple[str, ...] = ()
    refused: str = ""


def adopted(budgets: Iterable[VendorBudget], taken: Collection[str], language: Language) -> tuple[Adopted, ...]:
    """Each budget under a name that no other has; what no policy can say is refused, never bent."""
    names = set(taken)
    found = []
    for budget in sorted(budgets, key=lambda one: (one.cloud, one.account, one.name)):
        name = _free(budget.name, names)
        names.add(name)
        found.append(_adopted(budget, name, language))
    return tuple(found)


def policy_lines(found: Sequence[Adopted], notes: Sequence[str], language: Language) -> Iterator[str]:
    """A policy file: comments, and what could be adopted."""
    yield from (f"# {note}" for note in notes)
    if any(one.lines for one in found):
        yield "budgets:"
    for one in found:
        yield from (f"  # {comment}" for comment in _comments(one, language))
        yield from (f"  {line}" for line in one.lines)


def _adopted(budget: VendorBudget, name: str, language: Language) -> Adopted:
    if budget.period not in _PERIODS:
        why = "adopt_daily" if budget.period == "daily" else "adopt_dated"
        return Adopted(budget, name, refused=phrase(why, language))
    lines = tuple(_entry(budget, name))
    text = "version: 1\nmode: observe\nbudgets:\n" + "".join(f"  {line}\n" for line in lines)
    read, problems = check_policy(PolicyText({"costguard.yaml": text}, "adopted"))
    if read is None:
        return Adopted(budget, name, refused="; ".join(clean(problem.message) for problem in problems))
    return Adopted(budget, name, lines)


def _entry(budget: VendorBudget, name: str) -> Iterator[str]:
    yield f"- name: {json.dumps(name)}"
    yield "  mode: observe"
    scope = budget.scope if budget.scope.clouds is not None else replace(budget.scope, clouds=(budget.cloud,))
    yield f"  covers: {{{', '.join(_covers(scope))}}}"
    yield f"  {budget.period}: {budget.amount.amount.normalize():f} {budget.amount.currency}"
    counts = tuple(_counts(budget))
    if counts:
        yield f"  counts: {{{', '.join(counts)}}}"
    if budget.actual_thresholds or budget.forecast_thresholds:
        actual, forecast = _shares(budget.actual_thresholds), _shares(budget.forecast_thresholds)
        if actual:
            yield f"  alert_at: [{', '.join(actual)}]"
        yield f"  forecast_alert_at: [{', '.join(forecast)}]"


def _counts(budget: VendorBudget) -> Iterator[str]:
    """As the console counts, where it says so."""
    if budget.amortised is not None:
        yield f"cost: {'effective' if budget.amortised else 'billed'}"
    for key, counted in (("credits", budget.counts_credits), ("tax", budget.counts_tax)):
        if counted is not None:
            yield f"{key}: {str(counted).lower()}"


def _covers(scope: SpendScope) -> Iterator[str]:
    """JSON strings are YAML strings."""
    for key, words in (("clouds", scope.clouds), ("accounts", scope.accounts), ("regions", scope.regions)):
        if words is not None:
            yield f"{key}: {json.dumps(list(words))}"
    if scope.tags:
        yield f"tags: {json.dumps(dict(scope.tags), ensure_ascii=False)}"


def _shares(percents: Iterable[str]) -> list[str]:
    """`80` → `80%`, each once and in order; what no share can be is left out."""
    found = {share for text in percents for share in _share(text)}
    return [f"{percent_words(share)}%" for share in sorted(found)[:_MOST_SHARES]]


def _share(text: str) -> Iterator[Decimal]:
    try:
        percent = Decimal(text)
    except InvalidOperation:
        return
    if percent.is_finite() and 0 < percent <= _MOST_PERCENT:
        yield percent / _HUNDRED


def _free(wanted: str, taken: Collection[str]) -> str:
    """A name that a policy may have and nobody has yet."""
    name = _NOT_A_NAME.sub("-", wanted).strip("-._")[:_LONGEST_NAME] or "adopted"
    number, free = 2, name
    while free in taken:
        free = f"{name[: _LONGEST_NAME - len(str(number)) - 1]}-{number}"
        number += 1
    return free


def _comments(one: Adopted, language: Language) -> Iterator[str]:
    budget = one.budget
    spent = {"spent": str(budget.spent)} if budget.spent is not None else {}
    name = clean(budget.name)
    yield phrase("adopt_from", language, cloud=budget.cloud, account=budget.account, name=name, **spent)
    if one.refused:
        yield phrase("adopt_refused", language, why=one.refused)
        return
    if one.name != name:
        yield phrase("adopt_renamed", language, name=one.name)
    if budget.unsupported:
        yield phrase("adopt_unsupported", language, what=clean(budget.unsupported))
