"""What the budgets of a policy say, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from costguard.domain.money import Money, SpendScope
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, StepKind
from costguard.guards.rules.idle import percent_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, choice, clean, phrase, span

if TYPE_CHECKING:
    from costguard.report.budget import shapes

_COLUMNS = ("budget", "mode", "covers", "amount", "alerts", "steps")


def budget_rules_table(budgets: Sequence[BudgetRule], language: Language = Language.EN) -> Table:
    """One row a budget: what it covers, how much it is, when it alerts and what it then does."""
    columns = tuple(Column(key, phrase(f"budget_rule_{key}", language)) for key in _COLUMNS)
    return Table(
        phrase("budget_rules", language),
        columns,
        tuple(
            (
                clean(rule.name),
                choice(rule.mode.name.lower(), language),
                covers_words(rule.covers, language),
                period_words(rule.amount, rule.period, language),
                alert_words(rule, language),
                phrase("budget_rule_then", language).join(step_words(step, language) for step in rule.steps)
                or phrase("budget_rule_no_steps", language),
            )
            for rule in budgets
        ),
    )


def covers_words(scope: SpendScope, language: Language = Language.EN) -> str:
    """`aws, us-east-1, team=research`; of a list any one, of everything else all."""
    either = phrase("budget_rule_or", language)
    lists = [either.join(words) for words in (scope.clouds, scope.accounts, scope.regions) if words is not None]
    parts = [*lists, *(f"{key}={value}" for key, value in scope.tags)]
    return clean(phrase("budget_rule_list", language).join(parts)) or phrase("budget_rule_everything", language)


def period_words(amount: Money, period: BudgetPeriod, language: Language = Language.EN) -> str:
    """`5,000 USD a month (Asia/Shanghai)`."""
    facts = {"zone": period.zone, "first": str(period.first or ""), "last": str(period.last or "")}
    said = f"{amount.amount:,f} {amount.currency}"
    return phrase(f"budget_rule_{period.kind.value}", language, amount=said, **facts)


def alert_words(rule: BudgetRule, language: Language = Language.EN) -> str:
    """`50 %, 80 %, 100 %; forecast 100 %; surge`."""
    between = phrase("budget_rule_list", language)
    parts = [between.join(_percent(share, language) for share in rule.alert_at)]
    if rule.forecast_alert_at:
        shares = between.join(_percent(share, language) for share in rule.forecast_alert_at)
        parts.append(phrase("budget_rule_forecast", language, shares=shares))
    if rule.surge_alert:
        parts.append(phrase("budget_rule_surge", language))
    return phrase("budget_rule_and", language).join(parts)


def step_words(step: BudgetStep, language: Language = Language.EN) -> str:
    """`at 100 %: stop what is idle for 1h (+4h)`."""
    return phrase(
        f"budget_rule_{step.kind.value}",
        language,
        at=_percent(step.at, language),
        wait=span(step.wait),
        idle_for=span(step.idle.lasting),
        classes=phrase("budget_rule_list", language).join(step.classes),
        freezes=clean(phrase("budget_rule_list", language).join(step.freezes)),
    )


def budget_rule_json(rule: BudgetRule) -> shapes.BudgetRule:
    """The budget as one JSON object: amounts and shares are exact, as text; durations are seconds."""
    return {
        "name": rule.name,
        "mode": rule.mode.name.lower(),
        "digest": rule.digest,
        "covers": {
            "clouds": rule.covers.clouds,
            "accounts": rule.covers.accounts,
            "regions": rule.covers.regions,
            "tags": dict(rule.covers.tags),
        },
        "amount": {"amount": f"{rule.amount.amount:f}", "currency": rule.amount.currency},
        "period": {
            "kind": rule.period.kind.value,
            "zone": rule.period.zone,
            "first": None if rule.period.first is None else rule.period.first.isoformat(),
            "last": None if rule.period.last is None else rule.period.last.isoformat(),
        },
        "alert_percent": [percent_words(share) for share in rule.alert_at],
        "forecast_alert_percent": [percent_words(share) for share in rule.forecast_alert_at],
        "surge_alert": rule.surge_alert,
        "steps": [_step_json(step) for step in rule.steps],
        "tell": rule.tell,
    }


def _step_json(step: BudgetStep) -> shapes.BudgetStep:
    said: shapes.BudgetStep = {
        "at_percent": percent_words(step.at),
        "step": step.kind.value,
        "after_seconds": int(step.wait.total_seconds()),
    }
    if step.kind is StepKind.STOP_IDLE:
        return {**said, "idle_for_seconds": int(step.idle.lasting.total_seconds())}
    if step.kind is StepKind.STOP_CLASSES:
        return {**said, "classes": step.classes}
    if step.kind is StepKind.FREEZE:
        return {**said, "freezes": step.freezes}
    assert_never(step.kind)


def _percent(share: Decimal, language: Language) -> str:
    return phrase("budget_rule_percent", language, percent=percent_words(share))
