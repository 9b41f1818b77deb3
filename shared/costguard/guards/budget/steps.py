"""What a spent budget makes of its steps: ordinary rules for machines, which then climb the ordinary ladder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from glob import escape

from typing_extensions import assert_never

from costguard.domain.actions import Verb
from costguard.domain.money import SpendScope
from costguard.domain.reasons import Reason
from costguard.guards.budget.rules import BudgetRule, BudgetStep, PriorityClass, StepKind
from costguard.guards.rules.common import Bars, Selector, Step
from costguard.guards.rules.idle import BudgetCause, IdleRule, percent_words


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """How far one budget is spent. `share` None: nobody knows, so no step may begin and none may end.

    `doubt` is why the figure may not be acted on, None when it may.
    """

    rule: BudgetRule
    share: Decimal | None
    doubt: Reason | None = None

    def reached(self, step: BudgetStep) -> bool:
        """Whether the step is in force, or may be."""
        return self.share is None or self.share >= step.at


@dataclass(frozen=True, slots=True)
class MachineRules:
    """Rules for machines, without digests, and by name why what they say may not be believed now."""

    rules: tuple[IdleRule, ...]
    doubts: Mapping[str, Reason]


def machine_rules(
    standings: Sequence[BudgetStanding], classes: Sequence[PriorityClass], reading: Bars = Bars.EVERYTHING
) -> MachineRules:
    """The rules in force. A machine whose class is asked for is asked for by that step alone, idle or not.

    Budgets may lie inside one another: a machine that several ask for is under the gentlest of these rules, and is
    stopped once.
    """
    by_name = {each.name: each.selects for each in classes}
    rules: list[IdleRule] = []
    doubts: dict[str, Reason] = {}
    of_classes = [
        (standing, rule)
        for standing in standings
        for step in standing.rule.steps
        if standing.reached(step)
        for rule in _class_rules(standing.rule, step, by_name)
    ]
    of_idle = [
        (standing, _idle_rule(standing.rule, step, [rule for _, rule in of_classes]))
        for standing in standings
        for step in standing.rule.steps
        if standing.reached(step) and step.kind is StepKind.STOP_IDLE
    ]
    for standing, rule in (*of_classes, *of_idle):
        rules.append(replace(rule, termination_protection_bars=reading))
        if standing.doubt is not None:
            doubts[rule.name] = standing.doubt
    return MachineRules(tuple(sorted(rules, key=lambda rule: rule.name)), doubts)


def _class_rules(budget: BudgetRule, step: BudgetStep, classes: Mapping[str, Selector]) -> Iterator[IdleRule]:
    if step.kind is StepKind.STOP_CLASSES:
        for name in step.classes:
            selects = narrowed(budget.covers, classes[name])
            if selects is not None:
                cause = BudgetCause(budget.name, step.at, name)
                yield _rule(budget, step, selects, cause, f"{budget.name}@{percent_words(step.at)}%/{name}")
    elif step.kind is not StepKind.STOP_IDLE and step.kind is not StepKind.FREEZE:
        assert_never(step.kind)


def _idle_rule(budget: BudgetRule, step: BudgetStep, of_classes: Sequence[IdleRule]) -> IdleRule:
    """Machines of a class that is asked for are left to that rule, unless it only watches."""
    left_out = {rule.name: rule.applies_to for rule in of_classes if rule.mode >= budget.mode}
    cause = BudgetCause(budget.name, step.at)
    name = f"{budget.name}@{percent_words(step.at)}%"
    return _rule(budget, step, selector_of(budget.covers), cause, name, tuple(left_out.values()))


def _rule(
    budget: BudgetRule,
    step: BudgetStep,
    selects: Selector,
    cause: BudgetCause,
    name: str,
    left_out: tuple[Selector, ...] = (),
) -> IdleRule:
    return IdleRule(
        name=name,
        mode=budget.mode,
        applies_to=selects,
        idle=step.idle,
        ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, step.wait)),
        limits=budget.limits,
        digest="",
        except_for=left_out,
        cause=cause,
    )


def selector_of(scope: SpendScope) -> Selector:
    """The machines whose cost a scope holds: its words exactly, whatever signs of a pattern are in them."""
    return Selector(
        clouds=_exactly(scope.clouds),
        accounts=_exactly(scope.accounts),
        regions=_exactly(scope.regions),
        tags={key: escape(value) for key, value in scope.tags} or None,
    )


def narrowed(scope: SpendScope, selector: Selector) -> Selector | None:
    """The machines of a scope that a selector selects as well; None where there can be none.

    A tag that both name must have the scope's value.
    """
    clouds = _both(scope.clouds, selector.clouds)
    accounts = _both(scope.accounts, selector.accounts)
    regions = _both(scope.regions, selector.regions)
    wanted = dict(scope.tags)
    clash = any(
        not fnmatchcase(wanted[key], pattern) for key, pattern in (selector.tags or {}).items() if key in wanted
    )
    if () in (clouds, accounts, regions) or clash or selector.tags == {}:
        return None
    tags = {**(selector.tags or {}), **{key: escape(value) for key, value in wanted.items()}}
    return Selector(
        clouds=clouds,
        accounts=accounts,
        regions=regions,
        instance_types=selector.instance_types,
        billing=selector.billing,
        tags=tags or None,
        resources=selector.resources,
        resource_groups=selector.resource_groups,
    )


def _exactly(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(escape(word) for word in words)


def _both(words: tuple[str, ...] | None, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The words that a pattern matches; where only one side restricts, that side."""
    if words is None:
        return patterns
    if patterns is None:
        return _exactly(words)
    return tuple(escape(word) for word in words if any(fnmatchcase(word, pattern) for pattern in patterns))
