"""What was found of networks as the JSON of `costguard networks --json`; its shape is `networks.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from costguard.domain.money import totals
from costguard.domain.refs import ResourceRef
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.report.json_values import gap_json, moment, money_json, reason_json, subject_json
from costguard.report.network.catalogue import entry_of, known_entry
from costguard.report.network.order import PAID_FOR_NOTHING, NetworkLine, NetworkReport
from costguard.report.network.order import in_order as lines_in_order
from costguard.report.network.rules import audit_rule_json, in_order
from costguard.report.network.views import closing_words, path_words
from costguard.report.notices.remediations import mend_words
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.network import shapes

NETWORKS_SCHEMA: Final = 1


def networks_json(
    report: NetworkReport, rules: Sequence[AuditRule], now: datetime, language: Language = Language.EN
) -> shapes.Networks:
    """Every finding, whether it is worth a look or not, the gravest first; and the checks that were asked for."""
    seen = report.seen
    rates = [line.finding.rate.money for line in report.waste if line.finding.rate is not None]
    return {
        "schema": NETWORKS_SCHEMA,
        "at": moment(now),
        "rules": [audit_rule_json(rule) for rule in rules],
        "checks": [_check(check, language) for check in in_order(frozenset().union(*(rule.forbid for rule in rules)))],
        "seen": {
            "networks": seen.networks,
            "instances": seen.instances,
            "groups": seen.groups,
            "rules": seen.rules,
            "addresses": seen.addresses,
            "gateways": seen.gateways,
        },
        "paid_for_nothing": {
            "hourly": [money_json(each) for each in totals(rates)],
            "unpriced": len(report.waste) - len(rates),
        },
        "findings": [_finding(line, language) for line in lines_in_order(report.lines)],
        "gaps": [gap_json(each, language) for each in report.gaps],
    }


def _check(check: NetworkCheck, language: Language) -> shapes.NetworkCheck:
    entry = entry_of(check)
    return {
        "check_id": entry.check_id,
        "check": entry.check.value,
        "severity": entry.severity.value,
        "title": entry.title(language),
        "why": entry.why(language),
        "remedy": entry.remedy(language),
        "cis": {cloud: list(words) for cloud, words in entry.cis.items()},
        "prowler": {cloud: list(words) for cloud, words in entry.prowler.items()},
    }


def _finding(line: NetworkLine, language: Language) -> shapes.NetworkFinding:
    finding, entry = line.finding, known_entry(line.finding.check)
    provider = finding.subject.provider if isinstance(finding.subject, ResourceRef) else ""
    rate = None if finding.rate is None or finding.reason.code not in PAID_FOR_NOTHING else finding.rate.money
    return {
        **subject_json(finding.subject),
        "name": clean(finding.name),
        "owner": clean(finding.owner),
        "check_id": "" if entry is None else entry.check_id,
        "check": clean(finding.check),
        "severity": None if line.severity is None else line.severity.value,
        "verdict": finding.verdict.value,
        "rule": clean(finding.rule),
        **reason_json(finding.reason, language),
        "path": path_words(finding, language) or None,
        "least_change": closing_words(finding, language) or None,
        "hourly": money_json(rate),
        "cis": list(entry.cis.get(provider, ())) if entry is not None else [],
        "prowler": list(entry.prowler.get(provider, ())) if entry is not None else [],
        "allowed": None
        if line.mend is None
        else {
            "kind": line.mend.kind.value,
            "parameters": {name: clean(value) for name, value in line.mend.parameters.items()},
            "words": mend_words(line.mend, language),
            "bar": None if line.bar is None else reason_json(line.bar, language),
        },
    }
