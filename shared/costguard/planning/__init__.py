"""From findings and cases to a plan: what is due, what a rail holds, what is only rehearsed. Pure."""

from costguard.planning.build import build_plan, judge_all, subjects_to_examine
from costguard.planning.exempt import exemption
from costguard.planning.plan import (
    CapUse,
    ClaimView,
    Held,
    NoticeView,
    Plan,
    PlanInputs,
    Rehearsed,
    RuleLimit,
    Transition,
)
from costguard.planning.rails import world_rail

__all__ = [
    "CapUse",
    "ClaimView",
    "Held",
    "NoticeView",
    "Plan",
    "PlanInputs",
    "Rehearsed",
    "RuleLimit",
    "Transition",
    "build_plan",
    "exemption",
    "judge_all",
    "subjects_to_examine",
    "world_rail",
]
