"""The day-one report as tables for people and CSV, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from costguard.domain.money import Money
from costguard.domain.resources import Gap
from costguard.report.plan.evidence import evidence_words, utc_words
from costguard.report.tables import Column, Table
from costguard.report.waste.day_one import InstanceWaste, OwnerWaste, WasteReport
from costguard.report.waste.reclaim import reclaim_lines
from costguard.report.words.sentences import (
    Language,
    choice,
    clean,
    fix,
    gap_kind,
    gap_subject,
    label,
    number,
    phrase,
    price,
    sentence,
    verdict,
)


def waste_summary(report: WasteReport, language: Language = Language.EN) -> tuple[str, ...]:
    """The report in a few sentences."""
    total = report.total
    if not report.instances:
        lines = [phrase("waste_none", language, seen=report.instances_seen or "")]
    else:
        lines = [
            phrase(
                "waste_total",
                language,
                instances=total.instances,
                seen=report.instances_seen or "",
                idle_hours=f"{total.idle_hours:,}",
                idle_cost=amounts(total.idle_cost),
                unpriced=total.unpriced or "",
                partly_cost=amounts(total.partly_idle_cost),
            ),
            _which_prices(total, language),
            *reclaim_lines(report.reclaim, language),
        ]
    if report.gaps:
        lines.append(phrase("waste_unread", language))
    if report.instances and not report.unmeasured:
        lines.append(phrase("measured_all", language))
    lines.append(calls_statement(report, language))
    return tuple(lines)


def _which_prices(total: OwnerWaste, language: Language) -> str:
    if not total.idle_cost_net:
        return phrase("waste_list_price", language)
    net = amounts(total.idle_cost_net)
    return phrase("waste_net", language, net=net, without=total.without_net or "")


def calls_statement(report: WasteReport, language: Language = Language.EN) -> str:
    """What was called and whether any of it could change something."""
    calls = sum(row.calls for row in report.calls)
    changing = sorted({row.operation for row in report.calls if row.changes_something and row.calls})
    if not calls:
        return phrase("calls_none", language)
    if changing:
        return phrase(
            "calls_dirty", language, calls=calls, changing=report.changing_calls, operations=", ".join(changing)
        )
    return phrase("calls_clean", language, calls=calls, operations=sum(row.calls > 0 for row in report.calls))


def waste_tables(report: WasteReport, language: Language = Language.EN) -> tuple[Table, ...]:
    """Owners, top idle, unmeasured, gaps, calls; empty ones left out."""
    tables = (
        owners_table(report, language),
        instances_table(report.top, phrase("top_title", language), language),
        unmeasured_table(report, language),
        gaps_table(report.gaps, language),
        calls_table(report, language),
    )
    return tuple(table for table in tables if table.rows)


def owners_table(report: WasteReport, language: Language = Language.EN) -> Table:
    """One row an owner."""
    title = phrase("waste_title", language, since=utc_words(report.since), until=utc_words(report.until))
    columns = (
        Column("owner", label("owner", language)),
        Column("instances", label("instances", language), numeric=True),
        Column("running_hours", label("running_hours", language), numeric=True),
        Column("idle_hours", label("idle_hours", language), numeric=True),
        Column("idle_cost", label("idle_cost", language), numeric=True),
        Column("idle_cost_net", label("idle_cost_net", language), numeric=True),
        Column("unpriced", label("unpriced", language), numeric=True),
        Column("partly_idle_cost", label("partly_idle", language), numeric=True),
        Column("untouchable", label("untouchable", language), numeric=True),
    )
    return Table(title, columns, tuple(_owner_row(owner, language) for owner in report.owners))


def _owner_row(waste: OwnerWaste, language: Language) -> tuple[str, ...]:
    return (
        clean(waste.owner) or phrase("no_owner", language),
        str(waste.instances),
        number(float(waste.running_hours.quantize(Decimal("0.1")))),
        f"{waste.idle_hours:,}",
        amounts(waste.idle_cost),
        amounts(waste.idle_cost_net),
        str(waste.unpriced or ""),
        amounts(waste.partly_idle_cost),
        str(waste.untouchable or ""),
    )


def instances_table(instances: Iterable[InstanceWaste], title: str, language: Language = Language.EN) -> Table:
    """One row an instance; with every instance, the CSV of the report."""
    columns = (
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("instance_type", label("type", language)),
        Column("owner", label("owner", language)),
        Column("idle_hours", label("idle_hours", language), numeric=True),
        Column("idle_cost", label("idle_cost", language), numeric=True),
        Column("hourly", label("cost_hour", language), numeric=True),
        Column("verdict", label("verdict", language)),
        Column("why", label("why", language)),
        Column("evidence", label("evidence", language)),
    )
    return Table(title, columns, tuple(_instance_row(waste, language) for waste in instances))


def _instance_row(waste: InstanceWaste, language: Language) -> tuple[str, ...]:
    finding, instance = waste.finding, waste.fact.instance
    unknown = phrase("price_unknown", language)
    return (
        clean(instance.name),
        clean(f"{waste.ref.account}:{waste.ref.region}:{waste.ref.native_id}"),
        clean(instance.instance_type),
        clean(waste.owner) or phrase("no_owner", language),
        f"{waste.idle_hours:,}",
        unknown if waste.idle_cost is None else str(waste.idle_cost),
        price(waste.fact.rate, language),
        verdict(finding.verdict, language) if finding else choice(instance.state.value, language),
        sentence(finding.reason, language) if finding else "",
        evidence_words(finding.evidence, language) if finding else "",
    )


def unmeasured_table(report: WasteReport, language: Language = Language.EN) -> Table:
    """What could not be measured, by reason, and what to install or grant."""
    count = sum(len(group.instances) for group in report.unmeasured)
    title = phrase(
        "unmeasured_title",
        language,
        instances=count,
        all=len(report.instances),
        share_percent=_percent(report.unmeasured_share),
    )
    columns = (
        Column("reason", label("reason", language)),
        Column("instances", label("instances", language), numeric=True),
        Column("share_percent", label("share", language), numeric=True),
        Column("fix", label("fix", language)),
    )
    rows = tuple(
        (
            sentence(group.reason, language),
            str(len(group.instances)),
            f"{_percent(group.share)} %",
            fix(group.reason, language),
        )
        for group in report.unmeasured
    )
    return Table(title, columns, rows)


def gaps_table(gaps: Iterable[Gap], language: Language = Language.EN) -> Table:
    """What could not be read, and what to grant."""
    columns = (
        Column("shard", label("where", language)),
        Column("what", label("what", language)),
        Column("kind", label("why", language)),
        Column("detail", label("detail", language)),
        Column("fix", label("fix", language)),
    )
    rows = tuple(
        (clean(gap.shard), gap_subject(gap.what, language), gap_kind(gap, language), clean(gap.detail), clean(gap.fix))
        for gap in gaps
    )
    return Table(phrase("gaps_title", language, count=len(rows)), columns, rows)


def calls_table(report: WasteReport, language: Language = Language.EN) -> Table:
    """Every operation sent, as proof that nothing was changed."""
    columns = (
        Column("operation", label("operation", language)),
        Column("permission", label("permission", language)),
        Column("calls", label("calls", language), numeric=True),
        Column("changes_something", label("changes", language)),
    )
    rows = tuple(
        (row.operation, row.permission, str(row.calls), choice("yes" if row.changes_something else "no", language))
        for row in report.calls
    )
    return Table(phrase("calls_title", language), columns, rows, note=calls_statement(report, language))


def amounts(money: Iterable[Money]) -> str:
    """Totals beside each other, one per currency; empty where there are none."""
    return " + ".join(str(total) for total in money)


def _percent(share: Decimal) -> str:
    return number(float(round(share * 100, 1)))
