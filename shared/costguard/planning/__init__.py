"""From findings and cases to a plan: what is due, what a rail holds, what is only rehearsed. Pure."""

from costguard.planning.build import build_plan, judge_all, judged, subjects_to_examine, verdicts_on
from costguard.planning.plan import (
    CapUse,
    ClaimView,
    Held,
    NoticeView,
    Plan,
    PlanIndex,
    PlanInputs,
    Rehearsed,
    RuleLimit,
    Transition,
)
from costguard.planning.rails import cap_of, caps_of, exemption, world_rail
from costguard.planning.savings import Spender, dearest, least_harm, spenders

__all__ = [
    "CapUse",
    "ClaimView",
    "Held",
    "NoticeView",
    "Plan",
    "PlanIndex",
    "PlanInputs",
    "Rehearsed",
    "RuleLimit",
    "Spender",
    "Transition",
    "build_plan",
    "cap_of",
    "caps_of",
    "dearest",
    "exemption",
    "judge_all",
    "judged",
    "least_harm",
    "spenders",
    "subjects_to_examine",
    "verdicts_on",
    "world_rail",
]
