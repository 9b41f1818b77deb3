"""A report for machines, as `costguard report --json` documents; its shape is `report.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from costguard.domain.money import Money
from costguard.report.facts import BudgetSnapshot, ReportFacts, ResourceSnapshot, ScanSnapshot, figures_of
from costguard.report.json_values import gap_json, moment, money_json, reason_json, resource_json
from costguard.report.page.headline import unmeasured_percent
from costguard.report.plan.case_history import case_json
from costguard.report.plan.shadows import shadows_json
from costguard.report.policy.provenance import decided_json
from costguard.report.waste.reclaim import reclaim_in_sights, reclaim_json
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.page import shapes
    from costguard.report.schemas import values

REPORT_SCHEMA: Final = 1


def report_json(facts: ReportFacts, language: Language = Language.EN) -> shapes.Report:
    """All facts. Amounts are exact decimals as text with their currency."""
    figures = figures_of(facts)
    return {
        "schema": REPORT_SCHEMA,
        "at": moment(facts.at),
        "since": moment(facts.since),
        "owner": facts.owner,
        "live": facts.live,
        "policies": decided_json(facts.policies),
        "summary": {
            "saved": _amounts(figures.saved),
            "wasted_a_day": _amounts(figures.wasted_a_day),
            "untouchable_a_day": _amounts(figures.untouchable_a_day),
            "reclaim": reclaim_json(reclaim_in_sights(facts.idle)),
            "idle": figures.idle,
            "untouchable": figures.untouchable,
            "running": figures.running,
            "unmeasured": figures.unmeasured,
            "unmeasured_percent": unmeasured_percent(facts),
            "unseen_places": [str(gap.shard) for gap in facts.unseen],
            "held": dict(facts.held),
            "refused": len(facts.refusals),
        },
        "looks": [_look(one) for one in facts.looks],
        "machines": [_sight(one, facts, language) for one in facts.machines],
        "keys": [_sight(one, facts, language) for one in facts.keys],
        "networks": [_sight(one, facts, language) for one in facts.networks],
        "budgets": [_budget(one, language) for one in facts.budgets],
        "cases": [case_json(case, language) for case in facts.cases],
        "refusals": [
            {
                "at": moment(one.at),
                "verb": one.verb.value,
                **resource_json(one.subject),
                "owner": clean(one.owner),
                "detail": clean(one.detail, 300),
            }
            for one in facts.refusals
        ],
        "gaps": [gap_json(each, language) for each in facts.gaps],
        "shadows": shadows_json(facts.shadows, language)["shadows"],
    }


def _amounts(amounts: Sequence[Money]) -> list[values.Money]:
    return [money_json(money) for money in amounts]


def _look(one: ScanSnapshot) -> shapes.Look:
    return {
        "guard": one.guard,
        "run_id": one.run_id,
        "at": moment(one.at),
        "seen": one.seen,
        "due": one.due,
        "rehearsed": one.rehearsed,
        "left_out": one.left_out,
    }


def _sight(one: ResourceSnapshot, facts: ReportFacts, language: Language) -> shapes.Sight:
    return {
        **resource_json(one.ref),
        "name": clean(one.name),
        "instance_type": clean(one.instance_type),
        "owner": clean(one.owner),
        "check": one.check,
        "rule": clean(one.rule),
        "verdict": one.verdict.value,
        **reason_json(one.reason, language),
        "idle": one.is_idle,
        "idle_since": moment(facts.idle_since(one)) if one.is_idle else None,
        "hourly_cost": money_json(one.hourly),
        "hourly_effective_cost": money_json(one.hourly_net),
        "price_source": one.price_source or None,
        "busiest_percent": one.busiest,
        "coverage": one.coverage,
        "days": {}
        if one.first_day is None
        else {(one.first_day + timedelta(days=at)).isoformat(): value for at, value in enumerate(one.busy)},
    }


def _budget(one: BudgetSnapshot, language: Language) -> shapes.BudgetSight:
    return {
        "name": clean(one.name),
        "at": moment(one.at),
        "period": one.period,
        "amount": money_json(one.amount),
        "spent": money_json(one.spent),
        "billed": money_json(one.billed),
        "share_percent": f"{(one.share * 100):.2f}",
        "burn_per_hour": money_json(one.burn_per_hour),
        "forecast": None
        if one.expected is None
        else {"best": money_json(one.best), "expected": money_json(one.expected), "worst": money_json(one.worst)},
        "unread_clouds": list(one.unread),
        "doubts": [reason_json(doubt, language) for doubt in one.doubts],
        "days": {day.isoformat(): f"{amount:f}" for day, amount in one.days},
    }
