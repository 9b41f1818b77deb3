"""What no single budget can know: the classes, freezes and rates it is read with. Imported while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from costguard.guards.budget.rules import StepKind
from costguard.policy.budget.documents import BudgetDocument, LaunchFreezeDocument
from costguard.policy.budget.steps import FREEZE_EXAMPLE, share_of_budget
from costguard.policy.documents.crosschecks import Accepted, FileKind, PolicyFile, entries
from costguard.policy.documents.fields import Place
from costguard.policy.syntax.problems import Problem, did_you_mean, field_path


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
    for place, index, budget in entries(accepted, "budgets"):
        yield from _classes(place, index, budget, ranks)
    yield from freezes_checked(file, model, entries(accepted, "budgets"))


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


_KEY = "launch_freezes"


def freezes_checked(
    file: PolicyFile, model: Any, budgets: Iterable[tuple[PolicyFile, Place, BudgetDocument]]
) -> Iterator[Problem]:
    """Every mistake between launch freezes, accounts and budgets; `file` and `model` are the main file's."""
    freezes: Sequence[LaunchFreezeDocument] = model.launch_freezes
    yield from _freezes_twice(file, freezes)
    yield from _two_roles(file, freezes)
    for index, freeze in enumerate(freezes):
        yield from _unguarded(file, index, freeze, model.accounts)
    names = [each.name for each in freezes]
    for other, place, budget in budgets:
        yield from _named(other, place, budget, names)


def _freezes_twice(file: PolicyFile, freezes: Sequence[LaunchFreezeDocument]) -> Iterator[Problem]:
    """One name and one attachment each: of two freezes of the same, one would take off what the other attached."""
    names: dict[str, int] = {}
    attachments: dict[tuple[str, str, str, str], str] = {}
    for index, freeze in enumerate(freezes):
        mark, _ = file.document.locate((_KEY, index))
        if freeze.name in names:
            message = f"a second launch freeze {freeze.name!r}; the first is on line {names[freeze.name]}"
            yield file.document.problem(mark, field_path((_KEY, index)), message, "give it another name")
        names.setdefault(freeze.name, mark.line)
        what = (freeze.cloud, freeze.via.value, freeze.policy, freeze.target)
        if what in attachments:
            message = f"it attaches the same policy to the same target as {attachments[what]}"
            fix = "keep one of them, and name it in both budgets"
            yield file.document.problem(mark, field_path((_KEY, index)), message, fix)
        attachments.setdefault(what, freeze.name)


def _two_roles(file: PolicyFile, freezes: Sequence[LaunchFreezeDocument]) -> Iterator[Problem]:
    """One way into an account: credentials are kept by account, and the second role would never be used."""
    roles: dict[tuple[str, str | None], LaunchFreezeDocument] = {}
    for index, freeze in enumerate(freezes):
        first = roles.setdefault((freeze.cloud, freeze.account), freeze)
        if first.role != freeze.role:
            message = f"another role in the same account than {first.name} has"
            yield _problem(file, (_KEY, index), message, "write one role for both, or leave it out of both")


def _unguarded(
    file: PolicyFile, index: int, freeze: LaunchFreezeDocument, accounts: Sequence[Any]
) -> Iterator[Problem]:
    """That its cloud is guarded, and that there is a way into the account it is asked for."""
    if not accounts:
        return  # then the account of the credentials is guarded, whichever that is
    here = [account for account in accounts if account.cloud == freeze.cloud]
    if not here:
        clouds = sorted({account.cloud for account in accounts})
        message = f"no account of {freeze.cloud} is guarded"
        fix = f"list one under accounts, or write {' or '.join(clouds)}"
        yield _problem(file, (_KEY, index, "cloud"), message, fix)
    elif freeze.account and not any(freeze.account == each.id or each.organisation for each in here):
        message = f"account {freeze.account} is not among the accounts of {freeze.cloud}"
        fix = "list it under accounts, with its role, or leave account out to use the caller's own"
        yield _problem(file, (_KEY, index, "account"), message, fix)


def _named(file: PolicyFile, loc: Place, budget: BudgetDocument, names: Sequence[str]) -> Iterator[Problem]:
    """That a step says which freezes it means, and that the policy has them."""
    for text, steps in budget.at.items():
        for index, step in enumerate(steps):
            if step.kind is not StepKind.FREEZE:
                continue
            place = (*loc, "at", text, index)
            if not step.freezes:
                listed = f"write {{freeze: {{of: [{', '.join(names)}]}}}}"
                fix = listed if names else f"describe one under {_KEY} in costguard.yaml, and write {FREEZE_EXAMPLE}"
                yield _problem(file, place, "freeze does not say which, and never means all", fix)
            for number, name in enumerate(step.freezes):
                if name not in names:
                    fix = did_you_mean(name, names) if names else f"describe it under {_KEY} in costguard.yaml"
                    message = f"there is no launch freeze {name!r}"
                    yield _problem(file, (*place, "freeze", "of", number), message, fix)


def _problem(file: PolicyFile, place: Place, message: str, fix: str) -> Problem:
    mark, _ = file.document.locate(place)
    return file.document.problem(mark, field_path(place), message, fix)
