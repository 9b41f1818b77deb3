"""A plan as the JSON that `costguard plan --json` documents; its shape is `plan.schema.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from costguard.cases import Case
from costguard.domain.actions import Action, ActionResult, Saving, Verb
from costguard.domain.findings import Finding
from costguard.domain.money import Money
from costguard.domain.reasons import Reason
from costguard.domain.remediations import Remediation
from costguard.planning import Held, Plan, Rehearsed
from costguard.report.json_values import (
    effective_price_json,
    gap_json,
    list_price_json,
    moment,
    money_json,
    reason_json,
    resource_json,
    subject_json,
)
from costguard.report.notices.remediations import mend_words
from costguard.report.plan.evidence import evidence_json
from costguard.report.plan.shadows import shadow_json
from costguard.report.plan.views import step_words
from costguard.report.waste.reclaim import reclaim_in, reclaim_json
from costguard.report.words.sentences import Language, clean, net_saving, saving_lines

if TYPE_CHECKING:
    from costguard.report.plan import shapes

PLAN_SCHEMA: Final = 1


def plan_json(plan: Plan, *, plan_hash: str, language: Language = Language.EN) -> shapes.Plan:
    """The whole plan. `plan_hash` is what `costguard apply` binds to."""
    return {
        "schema": PLAN_SCHEMA,
        "guard": plan.guard,
        "run_id": plan.run_id,
        "plan_hash": plan_hash,
        "planned_at": moment(plan.planned_at),
        "policy_digest": plan.policy_digest,
        "instances_seen": plan.instances_seen,
        "findings": [_finding_json(finding, language) for finding in plan.findings],
        "due": [{**_action_json(action, language), "words": _action_words(action, language)} for action in plan.due],
        "held": [_kept_json(held, language) for held in plan.held],
        "rehearsed": [_kept_json(rehearsed, language) for rehearsed in plan.rehearsed],
        "gaps": [gap_json(gap, language) for gap in plan.gaps],
        "reclaim": reclaim_json(reclaim_in(plan.findings)),
        "unread_protections": [str(ref) for ref in plan.unread_protections],
        "shadows": [shadow_json(shadow, plan.guard, language) for shadow in plan.shadows],
    }


def result_json(result: ActionResult, language: Language = Language.EN) -> dict[str, Any]:
    """What came of one due action: `outcome` None means that nothing was called, and `reason` says why."""
    reason = reason_json(result.reason, language) if result.reason is not None else {"reason": None}
    return {
        **_action_json(result.action, language),
        "step": _action_words(result.action, language),
        "outcome": result.outcome.value if result.outcome is not None else None,
        "at": moment(result.at),
        "detail": clean(result.detail),
        "receipt": clean(result.receipt.native_id or result.receipt.request_id) if result.receipt else None,
        **reason,
    }


def left_json(case: Case, reason: Reason, language: Language = Language.EN) -> dict[str, Any]:
    """A case that an agreed plan would have moved otherwise than it moves now, and what differs."""
    return {**subject_json(case.subject), "case_id": case.case_id, **reason_json(reason, language)}


def _finding_json(finding: Finding, language: Language) -> shapes.Finding:
    rate, usage = finding.rate, finding.usage
    return {
        **subject_json(finding.subject),
        "verdict": finding.verdict.value,
        **reason_json(finding.reason, language),
        "evidence": evidence_json(finding.evidence),
        "guard": finding.guard,
        "check": finding.check,
        "rule": finding.rule,
        "rule_digest": finding.rule_digest,
        "run_epoch": finding.run_epoch,
        "instance_type": clean(finding.instance_type),
        "name": clean(finding.name),
        "owner": clean(finding.owner),
        "owner_source": finding.owner_source,
        "hourly_cost": money_json(rate.money if rate else None),
        "price_source": rate.source if rate else None,
        "price_as_of": rate.as_of if rate else None,
        "hourly_list_cost": list_price_json(rate),
        "effective_price": effective_price_json(rate),
        "usage": None
        if usage is None
        else {
            "running_hours": round(usage.running_hours, 2),
            "observed_hours": usage.observed_hours,
            "idle_hours": usage.idle_hours,
            "partly_idle_card_hours": usage.partly_idle_card_hours,
        },
    }


def _action_json(action: Action, language: Language) -> shapes.Action:
    return {
        **resource_json(action.resource),
        "verb": action.verb.value,
        "subject": str(action.subject),
        "action_id": action.action_id,
        "decision_id": action.decision_id,
        "case_id": action.case_id,
        "rung": action.rung,
        "run_epoch": action.run_epoch,
        "rule": action.rule,
        "rule_digest": action.rule_digest,
        "parameters": dict(action.parameters),
        "copies": [str(volume) for volume in action.copies],
        "mend": _mend_json(action.mend, language),
        "saving": _saving_json(action.saving),
    }


def _mend_json(mend: Remediation | None, language: Language) -> shapes.Mend | None:
    if mend is None:
        return None
    return {
        "kind": mend.kind.value,
        "subject": str(mend.subject),
        "parameters": {name: clean(value) for name, value in mend.parameters.items()},
        "words": mend_words(mend, language),
    }


def _action_words(action: Action, language: Language) -> str:
    said = f"{step_words(action, language)} {clean(action.resource.native_id)}"
    if action.verb is Verb.MEND:
        said = f"{clean(action.resource.native_id)}: {mend_words(action.mend, language)}"
    lines = () if action.saving is None else saving_lines(action.saving, action.verb, language)
    return "; ".join((said, *lines))


def _kept_json(kept: Held | Rehearsed, language: Language) -> shapes.Kept:
    return {
        **_action_json(kept.action, language),
        "step": _action_words(kept.action, language),
        **reason_json(kept.reason, language),
    }


def _after_discounts(saving: Saving) -> Money | None:
    rate, stops = saving.price, saving.stops_billing
    return None if rate is None or stops is None else rate.after_discounts(stops)


def _saving_json(saving: Saving | None) -> shapes.Saving | None:
    if saving is None:
        return None
    return {
        "stops_billing": money_json(saving.stops_billing),
        "stops_billing_effective": money_json(_after_discounts(saving)),
        "kept": [{"what": what, "hourly_cost": money_json(cost)} for what, cost in saving.kept],
        "net": money_json(net_saving(saving)),
        "risks": list(saving.risks),
    }
