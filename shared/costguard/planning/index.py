"""A plan's cases, findings and savings by what they are about, put together once: plans have tens of thousands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costguard.cases import Case
from costguard.domain.actions import Action, Saving
from costguard.domain.findings import Finding
from costguard.domain.refs import ResourceRef, Subject
from costguard.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """`plan`, and parts of it by key; of several with one key the first. `savings` is of due actions by their case.

    Findings are those of subjects that have a case: of every other subject nobody is told, and nothing is settled.
    """

    plan: Plan
    cases: Mapping[str, Case]
    findings: Mapping[Subject, Finding]
    of_checks: Mapping[tuple[str, Subject], Finding]
    savings: Mapping[str, Saving | None]
    protections: Mapping[ResourceRef, tuple[str, ...]]
    unstoppable: frozenset[ResourceRef] = frozenset()

    @classmethod
    def of(cls, plan: Plan) -> PlanIndex:
        """The index of a plan."""
        cases = {step.after.case_id: step.after for step in reversed(plan.transitions)}
        meant = {case.subject for case in cases.values()}
        findings = [finding for finding in reversed(plan.findings) if finding.subject in meant]
        return cls(
            plan=plan,
            cases=cases,
            findings={finding.subject: finding for finding in findings},
            of_checks={(finding.check, finding.subject): finding for finding in findings},
            savings={action.case_id: action.saving for action in reversed(plan.due)},
            protections=dict(plan.protected_by),
            unstoppable=frozenset(plan.unstoppable),
        )

    def case_of(self, action: Action) -> Case:
        """The case that `action` belongs to, as the plan leaves it."""
        return self.cases[action.case_id]
