"""What no single budget can know: the classes, freezes and rates it is read with. Imported while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from costguard.guards.budget.rules import StepKind
from costguard.policy.budget.documents import BudgetDocument
from costguard.policy.budget.freeze_checks import freezes_checked
from costguard.policy.budget.steps import share_of_budget
from costguard.policy.documents.crosschecks import FileKind, PolicyFile
from costguard.policy.syntax.problems import Problem, did_you_mean, field_path

Place = tuple[str | int, ...]
Accepted = Sequence[tuple[PolicyFile, Any]]
"""Files with their validated documents."""


def budgets_checked(accepted: Accepted) -> Iterator[Problem]:
    """Every mistake between budgets, classes, launch freezes and rates.

    Nothing while the main file is not accepted.
    """
    main = next(((file, model) for file, model in accepted if file.kind is FileKind.MAIN), None)
    if main is None:
        return
    file, model = main
    yield from _rates_twice(file, model)
    ranks = {each.name: rank for rank, each in enumerate(model.priority_classes)}
    for place, index, budget in budgets_of(accepted):
        yield from _classes(place, index, budget, ranks)
    yield from freezes_checked(file, model, budgets_of(accepted))


def budgets_of(accepted: Accepted) -> Iterator[tuple[PolicyFile, Place, BudgetDocument]]:
    """Every budget with its file and its place in it."""
    for file, model in accepted:
        if file.kind in {FileKind.MAIN, FileKind.RULES}:
            for index, budget in enumerate(model.budgets):
                yield file, ("budgets", index), budget


def budget_waits(accepted: Accepted) -> Iterator[tuple[PolicyFile, Place, timedelta]]:
    """Every wait before a stop, with its place."""
    for file, loc, budget in budgets_of(accepted):
        for text, steps in budget.at.items():
            for index, step in enumerate(steps):
                if step.kind is not StepKind.FREEZE:  # its wait is by the clock
                    yield file, (*loc, "at", text, index), step.wait


def _rates_twice(file: PolicyFile, model: Any) -> Iterator[Problem]:
    """A pair is used in either direction, so a day has one rate for it."""
    seen: dict[tuple[frozenset[str], object], int] = {}
    for index, rate in enumerate(model.exchange_rates):
        key = (frozenset({rate.base, rate.quote}), rate.since)
        mark, _ = file.document.locate(("exchange_rates", index))
        if key in seen:
            message = f"a second rate between {rate.base} and {rate.quote} since {rate.since}"
            message += f"; the first is on line {seen[key]}"
            fix = "keep one of them; the other direction follows from it"
            yield file.document.problem(mark, field_path(("exchange_rates", index)), message, fix)
        else:
            seen[key] = mark.line


def _classes(file: PolicyFile, loc: Place, budget: BudgetDocument, ranks: dict[str, int]) -> Iterator[Problem]:
    """That every class is listed, and that none is stopped before one less important that is stopped too."""
    later: dict[str, str] = {}
    for text in sorted(budget.at, key=share_of_budget, reverse=True):
        for index, step in enumerate(budget.at[text]):
            if step.kind is not StepKind.STOP_CLASSES:
                continue
            for number, name in enumerate(step.classes):
                place = (*loc, "at", text, index, "stop", "classes", number)
                mark, _ = file.document.locate(place)
                if name not in ranks:
                    message = f"there is no priority class {name!r}"
                    fix = did_you_mean(name, ranks) if ranks else "list it under priority_classes in costguard.yaml"
                    yield file.document.problem(mark, field_path(place), message, fix)
                    continue
                less = [each for each in later if ranks.get(each, ranks[name]) < ranks[name]]
                if less:
                    message = f"{name} is more important than {less[0]}, which is stopped only at {later[less[0]]}"
                    fix = f"stop {less[0]} at {text} too, or change the order of priority_classes"
                    yield file.document.problem(mark, field_path(place), message, fix)
            later |= dict.fromkeys(step.classes, text)
