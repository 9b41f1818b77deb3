"""The day-one report for machines: JSON, and one flat table for CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from costguard.domain.money import Money
from costguard.report.json_values import effective_price_json, gap_json, list_price_json, moment, money_json
from costguard.report.plan.evidence import evidence_json
from costguard.report.tables import Column, Table
from costguard.report.waste.day_one import CallRow, InstanceWaste, OwnerWaste, WasteReport
from costguard.report.waste.reclaim import reclaim_json
from costguard.report.waste.views import calls_statement
from costguard.report.words.sentences import Language, clean, fix, sentence, short

if TYPE_CHECKING:
    from costguard.report.waste import shapes

WASTE_SCHEMA: Final = 1


def waste_json(report: WasteReport, language: Language = Language.EN) -> shapes.Waste:
    """The report for machines. Amounts are exact decimal strings, one per currency."""
    return {
        "schema": WASTE_SCHEMA,
        "since": moment(report.since),
        "until": moment(report.until),
        "policy_digest": report.policy_digest,
        "instances_seen": report.instances_seen,
        "total": _owner_json(report.total),
        "owners": [_owner_json(owner) for owner in report.owners],
        "instances": [_instance_json(waste, language) for waste in report.instances],
        "unmeasured_share": str(round(report.unmeasured_share, 4)),
        "unmeasured": [
            {
                "reason": group.reason.code.value,
                "instances": [str(waste.ref) for waste in group.instances],
                "share": str(round(group.share, 4)),
                "words": sentence(group.reason, language),
                "fix": fix(group.reason, language),
            }
            for group in report.unmeasured
        ],
        "gaps": [gap_json(gap, language) for gap in report.gaps],
        "reclaim": reclaim_json(report.reclaim),
        "proof": {
            "calls": sum(row.calls for row in report.calls),
            "changing_calls": report.changing_calls,
            "operations": [_call_json(row) for row in report.calls],
            "words": calls_statement(report, language),
        },
    }


def _owner_json(waste: OwnerWaste) -> shapes.OwnerWaste:
    return {
        "owner": clean(waste.owner),
        "instances": waste.instances,
        "running_hours": str(round(waste.running_hours, 2)),
        "idle_hours": waste.idle_hours,
        "idle_cost": [money_json(money) for money in waste.idle_cost],
        "unpriced": waste.unpriced,
        "partly_idle_cost": [money_json(money) for money in waste.partly_idle_cost],
        "untouchable": waste.untouchable,
        "idle_cost_effective": [money_json(money) for money in waste.idle_cost_net],
        "without_effective": waste.without_net,
    }


def _instance_json(waste: InstanceWaste, language: Language) -> shapes.InstanceWaste:
    finding, rate = waste.finding, waste.fact.rate
    return {
        "id": str(waste.ref),
        "name": clean(waste.fact.instance.name),
        "instance_type": waste.fact.instance.instance_type,
        "state": waste.fact.instance.state.value,
        "billing": waste.fact.instance.billing.value,
        "owner": clean(waste.owner),
        "owner_source": finding.owner_source if finding else "",
        "running_hours": str(round(waste.running_hours, 2)),
        "idle_hours": waste.idle_hours,
        "idle_cost": money_json(waste.idle_cost),
        "partly_idle_cost": money_json(waste.partly_idle_cost),
        "hourly_cost": money_json(rate.money if rate else None),
        "price_source": rate.source if rate else None,
        "price_as_of": rate.as_of if rate else None,
        "hourly_list_cost": list_price_json(rate),
        "effective_price": effective_price_json(rate),
        "idle_cost_effective": money_json(waste.idle_cost_net),
        "verdict": finding.verdict.value if finding else None,
        "reason": finding.reason.code.value if finding else None,
        "never_touched": short(waste.untouchable.code, language) if waste.untouchable else None,
        "words": sentence(finding.reason, language) if finding else "",
        "evidence": evidence_json(finding.evidence) if finding else None,
    }


def _call_json(row: CallRow) -> shapes.Operation:
    return {
        "operation": row.operation,
        "permission": row.permission,
        "calls": row.calls,
        "changes_something": row.changes_something,
    }


_CSV_COLUMNS = (
    "cloud",
    "sub_account_id",
    "region_id",
    "resource_id",
    "name",
    "instance_type",
    "owner",
    "state",
    "billing",
    "running_hours",
    "idle_hours",
    "idle_cost",
    "partly_idle_cost",
    "hourly_cost",
    "currency",
    "verdict",
    "reason",
    "never_touched",
    "words",
    "idle_cost_effective",
)


def waste_rows(report: WasteReport, language: Language = Language.EN) -> Table:
    """Every instance, one row each, amounts as plain numbers beside their currency; empty where unknown."""
    columns = tuple(Column(name, name) for name in _CSV_COLUMNS)
    return Table("", columns, tuple(_csv_row(waste, language) for waste in report.instances))


def _csv_row(waste: InstanceWaste, language: Language) -> tuple[str, ...]:
    instance, finding, rate = waste.fact.instance, waste.finding, waste.fact.rate
    money = rate.money if rate else None
    return (
        waste.ref.cloud,
        waste.ref.account,
        waste.ref.region,
        waste.ref.native_id,
        instance.name,
        instance.instance_type,
        waste.owner,
        instance.state.value,
        instance.billing.value,
        str(round(waste.running_hours, 2)),
        str(waste.idle_hours),
        _amount(waste.idle_cost),
        _amount(waste.partly_idle_cost),
        _amount(money),
        money.currency if money else "",
        finding.verdict.value if finding else "",
        finding.reason.code.value if finding else "",
        short(waste.untouchable.code, language) if waste.untouchable else "",
        sentence(finding.reason, language) if finding else "",
        _amount(waste.idle_cost_net),
    )


def _amount(money: Money | None) -> str:
    return "" if money is None else f"{money.amount:f}"
