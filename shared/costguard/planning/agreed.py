"""What an agreed plan has in common with one made just now. Pure.

A plan in a file is a proposal: it says what somebody chose. What is carried out are the actions, cases and limits of
the plan that was made just now, from ledger, policy in force and a fresh look; of the file only the choice counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Action
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.planning.plan import Held, Plan, Rehearsed, Transition

_OF_CASES = (
    "owner",
    "mode",
    "rule",
    "rule_digest",
    "terms",
    "run_epoch",
    "rung",
    "status",
    "phase",
    "attempt",
    "failures",
    "snoozed_until",
    "stop_request",
)
_OF_ACTIONS = (
    "subject",
    "resource",
    "run_epoch",
    "rung",
    "rule",
    "rule_digest",
    "parameters",
    "mend",
    "before",
    "copies",
)
_IDS = ("case_id", "decision_id")
_LONGEST = 120  # of a value that a reason names


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is in both. `plan` is the fresh one without what was not agreed to.

    `answers` has every agreed action in its order, with its fresh twin or with why it does not follow now. `left` are
    cases that the agreed plan would have moved otherwise than they move now: they stay as they are.
    """

    plan: Plan
    answers: tuple[tuple[Action, Action | Reason], ...]
    left: tuple[tuple[Case, Reason], ...]

    @property
    def refuses_all(self) -> bool:
        """Whether something was agreed to, and nothing of it follows now."""
        moves = bool(self.plan.due) or any(step.before != step.after for step in self.plan.transitions)
        return not moves and bool(self.answers or self.left)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A plan made just now, by case."""

    steps: Mapping[str, Transition]
    due: Mapping[str, tuple[Action, ...]]
    kept: Mapping[str, tuple[Held | Rehearsed, ...]]
    plan: Plan

    @classmethod
    def of(cls, plan: Plan) -> _Fresh:
        due: dict[str, tuple[Action, ...]] = {}
        kept: dict[str, tuple[Held | Rehearsed, ...]] = {}
        for action in plan.due:
            due[action.case_id] = (*due.get(action.case_id, ()), action)
        both: Iterable[Held | Rehearsed] = (*plan.held, *plan.rehearsed)
        for item in both:
            kept[item.action.case_id] = (*kept.get(item.action.case_id, ()), item)
        return cls({step.after.key: step for step in plan.transitions}, due, kept, plan)


def in_both(agreed: Plan, fresh: Plan) -> Agreement:
    """What of `agreed` follows now as well; both are of the same guard and policy."""
    now = _Fresh.of(fresh)
    steps = {step.after.case_id: step for step in agreed.transitions}
    answers: list[tuple[Action, Action | Reason]] = []
    chosen: set[str] = set()
    barred: dict[str, Reason] = {}
    for action in agreed.due:
        found = _twin(action, steps.get(action.case_id), now)
        if not isinstance(found, Reason) and found.action_id in chosen:
            found = _differs("action", action.action_id, "named twice")
        if isinstance(found, Reason):
            barred.setdefault(action.case_id, found)
        else:
            chosen.add(found.action_id)
        answers.append((action, found))
    answers = [(action, barred.get(action.case_id, found)) for action, found in answers]  # a case as a whole, or not
    chosen = {found.action_id for _, found in answers if not isinstance(found, Reason)}
    moved: set[str] = set()
    left: list[tuple[Case, Reason]] = []
    for step in agreed.transitions:
        differs = barred.get(step.after.case_id) or _case_differs(step, now)
        if differs is None:
            moved.add(step.after.key)
        elif step.before != step.after and step.after.case_id not in barred:
            left.append((step.after, differs))
    due = tuple(action for action in fresh.due if action.action_id in chosen)
    transitions = tuple(step for step in fresh.transitions if step.after.key in moved)
    plan = replace(fresh, due=due, transitions=transitions, next_in_line=())  # nobody agreed to what is next in line
    return Agreement(plan, tuple(answers), tuple(left))


def _twin(action: Action, step: Transition | None, now: _Fresh) -> Action | Reason:
    """The same action as it follows now, or why it does not."""
    if step is None:
        return _differs("case", action.case_id, "")
    fresh = now.steps.get(step.after.key)
    if fresh is None:
        return _not_found(step.after, now.plan)
    case_id = fresh.after.case_id
    wanted = [each for each in now.due.get(case_id, ()) if each.verb is action.verb]
    if not wanted:
        return _not_due(action, fresh, now)
    twin = next((each for each in wanted if each.resource == action.resource), None)
    if twin is None:
        return _differs("resource", action.resource, wanted[0].resource)
    return _case_differs(step, now) or _action_differs(action, twin, opens=fresh.before is None) or twin


def _not_due(action: Action, fresh: Transition, now: _Fresh) -> Reason:
    """Why a case wants nothing of the kind now: what a rail or its mode says, where it stands, or another step."""
    case = fresh.after
    kept = now.kept.get(case.case_id)
    if kept:
        return kept[0].reason
    other = now.due.get(case.case_id)
    return _differs("verb", action.verb, other[0].verb) if other else case.reason


def _not_found(case: Case, fresh: Plan) -> Reason:
    """Why there is no such case now: what its subject was found to be, or that it was not seen."""
    found = next((each for each in fresh.findings if (each.check, each.subject) == (case.check, case.subject)), None)
    if found is not None and found.verdict is not Verdict.VIOLATION:
        return found.reason
    return _differs("case", case.subject, "")


def _case_differs(step: Transition, now: _Fresh) -> Reason | None:
    """What differs about how a case moves; its times, and the ids of one that opens, are those of each plan."""
    fresh = now.steps.get(step.after.key)
    if fresh is None:
        return _not_found(step.after, now.plan)
    if _place(step.before) != _place(fresh.before):
        return _differs("case", _place(step.before), _place(fresh.before))
    names = _OF_CASES if fresh.before is None else (*_OF_CASES, *_IDS)
    for what, said, true in _unlike(step.after, fresh.after, names):
        halted = fresh.after.status is not CaseStatus.OPEN and what == "status"
        return fresh.after.reason if halted else _differs(what, said, true)
    climbed = [[rung.verb.value for rung in case.climbed] for case in (step.after, fresh.after)]
    return None if climbed[0] == climbed[1] else _differs("climbed", ", ".join(climbed[0]), ", ".join(climbed[1]))


def _action_differs(action: Action, twin: Action, *, opens: bool) -> Reason | None:
    names = _OF_ACTIONS if opens else (*_OF_ACTIONS, *_IDS, "action_id")
    for what, said, true in _unlike(action, twin, names):
        return _differs(what, said, true)
    mine, its = _worth(action), _worth(twin)
    return None if mine == its else _differs("saving", mine, its)


def _worth(action: Action) -> str:
    """What it stops billing, and what it puts at risk: what people weigh."""
    saving = action.saving
    return "" if saving is None else ", ".join((str(saving.stops_billing), *saving.risks))


def _unlike(one: object, other: object, names: tuple[str, ...]) -> Iterator[tuple[str, object, object]]:
    for name in names:
        said, true = getattr(one, name), getattr(other, name)
        if said != true:
            yield name, said, true


def _place(before: Case | None) -> str:
    return "" if before is None else f"{before.case_id} {before.version}"


def _differs(what: str, said: object, true: object) -> Reason:
    return Reason(ReasonCode.PLAN_DIFFERS, {"what": what, "planned": _text(said), "now": _text(true)})


def _text(value: object) -> str:
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    named = value.name.lower() if isinstance(value, Enum) else "-" if value in (None, "") else str(value)
    return named if len(named) <= _LONGEST else f"{named[:_LONGEST]}…"
