"""What another policy would make of the same fleet at the same moment: two plans, compared case by case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding
from costguard.domain.money import Money, totals
from costguard.domain.refs import Subject
from costguard.planning import Plan


class Turn(str, Enum):
    """What becomes of one subject under the new policy that does not under the present one, the gravest first."""

    ACTS = "acts"
    OPENS = "opens"
    RESTARTS = "restarts"
    HOLDS = "holds"
    CLOSES = "closes"
    SPARES = "spares"
    STAYS_OPEN = "stays_open"
    OWNER = "owner"
    RULE = "rule"
    VERDICT = "verdict"


@dataclass(frozen=True, slots=True)
class SubjectStanding:
    """Where one subject stands after one of the plans. `doing` is `due`, `held`, `rehearsed` or empty."""

    finding: Finding | None
    before: Case | None
    case: Case | None
    doing: str = ""
    verb: Verb | None = None

    @property
    def open(self) -> bool:
        """Whether there is a case that goes on."""
        return self.case is not None and self.case.status is not CaseStatus.CLOSED

    @property
    def rule(self) -> str:
        """The rule it is under, empty for none."""
        return self.case.rule if self.case is not None and self.open else self.finding.rule if self.finding else ""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One subject that another policy treats otherwise; `hourly` is what it costs, None where unknown."""

    subject: Subject
    turn: Turn
    old: SubjectStanding
    new: SubjectStanding
    hourly: Money | None

    @property
    def name(self) -> str:
        """What people call it."""
        finding = self.new.finding or self.old.finding
        return finding.name if finding is not None else ""

    @property
    def owner(self) -> str:
        """Whose it is under the new policy."""
        finding = self.new.finding or self.old.finding
        return finding.owner if finding is not None else ""


def plan_changes(old: Plan, new: Plan) -> tuple[PlanChange, ...]:
    """Every subject for which the two plans differ, the gravest first, then the most expensive."""
    before, after = _standings(old), _standings(new)
    empty = SubjectStanding(None, None, None)
    found: list[PlanChange] = []
    for subject in before.keys() | after.keys():
        was, now = before.get(subject, empty), after.get(subject, empty)
        turn = _turn(was, now)
        if turn is not None:
            rate = next((each.finding.rate for each in (now, was) if each.finding and each.finding.rate), None)
            found.append(PlanChange(subject, turn, was, now, rate.money if rate is not None else None))
    order = tuple(Turn)
    return tuple(
        sorted(
            found,
            key=lambda each: (order.index(each.turn), -each.hourly.amount if each.hourly else 0, str(each.subject)),
        )
    )


def hourly_of(changes: Iterable[PlanChange]) -> tuple[tuple[Turn, int, tuple[Money, ...], int], ...]:
    """For every turn: how many, what they cost an hour in each currency, and how many have no known price."""
    by_turn: dict[Turn, list[PlanChange]] = {}
    for change in changes:
        by_turn.setdefault(change.turn, []).append(change)
    return tuple(
        (turn, len(found), totals(each.hourly for each in found if each.hourly), sum(not each.hourly for each in found))
        for turn, found in by_turn.items()
    )


def _turn(was: SubjectStanding, now: SubjectStanding) -> Turn | None:
    """The gravest thing that differs."""
    if now.doing == "due" and (was.doing, was.verb) != ("due", now.verb):
        return _acting(now)
    if now.open and not was.open:
        return Turn.OPENS if now.before is None else Turn.STAYS_OPEN
    if was.open and not now.open:
        return Turn.SPARES if was.before is None else Turn.CLOSES
    if _restarted(now) and not _restarted(was):
        return Turn.RESTARTS
    if was.doing == "due" and now.doing != "due":
        return Turn.HOLDS
    if was.finding is not None and now.finding is not None and was.finding.owner != now.finding.owner:
        return Turn.OWNER
    if was.rule != now.rule:
        return Turn.RULE
    if _verdict(was) != _verdict(now) or (was.doing, was.verb) != (now.doing, now.verb):
        return Turn.VERDICT
    return None


def _acting(now: SubjectStanding) -> Turn:
    """A notice opens a case, or begins its wait anew; everything else acts."""
    if now.verb is Verb.WARN and now.before is None:
        return Turn.OPENS
    return Turn.RESTARTS if now.verb is Verb.WARN and _restarted(now) else Turn.ACTS


def _restarted(at: SubjectStanding) -> bool:
    """Whether the wait of a case began anew: rungs that were climbed are to be climbed again."""
    if at.before is None or at.case is None or not at.open:
        return False
    return at.case.climbed[: len(at.before.climbed)] != at.before.climbed


def _verdict(at: SubjectStanding) -> object:
    return at.finding.verdict if at.finding is not None else None


def _standings(plan: Plan) -> Mapping[Subject, SubjectStanding]:
    findings = {finding.subject: finding for finding in plan.findings}
    moves = {step.after.subject: step for step in plan.transitions}
    doing = dict(_doing(plan))
    return {
        subject: SubjectStanding(
            findings.get(subject),
            moves[subject].before if subject in moves else None,
            moves[subject].after if subject in moves else None,
            *doing.get(subject, ("", None)),
        )
        for subject in findings.keys() | moves.keys()
    }


def _doing(plan: Plan) -> Iterator[tuple[Subject, tuple[str, Verb]]]:
    """What the plan does about each subject; a snapshot has one action a volume, all alike."""
    yield from ((each.action.subject, ("rehearsed", each.action.verb)) for each in plan.rehearsed)
    yield from ((each.action.subject, ("held", each.action.verb)) for each in plan.held)
    yield from ((each.subject, ("due", each.verb)) for each in plan.due)


def acts(changes: Sequence[PlanChange]) -> bool:
    """Whether the new policy acts, opens a case or tells people anew where the present one does not."""
    return any(each.turn in {Turn.ACTS, Turn.OPENS, Turn.RESTARTS} for each in changes)
