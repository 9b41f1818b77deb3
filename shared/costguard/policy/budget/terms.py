"""A budget as canonical JSON, which its digest is taken of. Pure.

Two budgets that mean the same have the same terms, whatever the order of their words and the zeros behind a point.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from decimal import Decimal

from costguard.domain.money import SpendScope
from costguard.guards.budget.rules import BudgetRule, StepKind
from costguard.policy.model.terms import canonical_json

_SCHEMA = 1
HARSHNESS = {StepKind.STOP_IDLE: 0, StepKind.STOP_CLASSES: 1, StepKind.FREEZE: 2}


def budget_terms(rule: BudgetRule) -> str:
    """Everything a budget says but its digest."""
    return canonical_json({"schema": _SCHEMA, "budget": replace(_ordered(rule), digest="")})


def with_budget_digest(rule: BudgetRule) -> BudgetRule:
    """The same budget in canonical order, with the digest of its terms."""
    return replace(_ordered(rule), digest=hashlib.sha256(budget_terms(rule).encode()).hexdigest())


def ordered_scope(scope: SpendScope) -> SpendScope:
    """The same slice, its words sorted and each once."""
    return SpendScope(
        _words(scope.clouds), _words(scope.accounts), _words(scope.regions), tuple(sorted(set(scope.tags)))
    )


def _ordered(rule: BudgetRule) -> BudgetRule:
    steps = (
        replace(step, classes=tuple(sorted(set(step.classes))), freezes=tuple(sorted(set(step.freezes))))
        for step in rule.steps
    )
    caps = sorted(rule.limits.hourly_cost_stopped_per_day, key=lambda money: money.currency)
    return replace(
        rule,
        covers=ordered_scope(rule.covers),
        alert_at=_shares(rule.alert_at),
        forecast_alert_at=_shares(rule.forecast_alert_at),
        steps=tuple(sorted(steps, key=lambda step: (step.at, HARSHNESS[step.kind], step.classes, step.freezes))),
        tell=tuple(sorted(set(rule.tell))),
        limits=replace(rule.limits, hourly_cost_stopped_per_day=tuple(caps)),
    )


def _words(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(sorted(set(words)))


def _shares(shares: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    return tuple(sorted(set(shares)))
