"""What was found of networks as SARIF 2.1.0, for the tools that gather findings of many scanners.

Only what is a problem (`fail`) or could not be decided (`open`) is a result; what an agreed exception covers is a
problem with a suppression, so that it does not come up again as new. Results name the resource by its whole id as a
logical location: a cloud has no files. The fingerprint is of check and resource alone, so it lasts over runs and
policies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap
from costguard.report.json_values import moment
from costguard.report.network.catalogue import BENCHMARKS, CATALOGUE, CatalogueEntry, Severity, known_entry
from costguard.report.network.order import NetworkLine, NetworkReport, in_order
from costguard.report.network.views import closing_words, path_words
from costguard.report.words.sentences import Language, clean, gap, sentence

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_VERSION = "2.1.0"
_FINGERPRINT = "costguardNetwork/v1"
_CULTURES = {Language.EN: "en", Language.ZH: "zh-CN"}
_LEVELS: Mapping[Severity, tuple[str, str]] = MappingProxyType(
    {
        Severity.CRITICAL: ("error", "9.5"),
        Severity.HIGH: ("error", "8.0"),
        Severity.MEDIUM: ("warning", "5.5"),
        Severity.LOW: ("note", "2.5"),
    }
)
"""SARIF's level, and the number that code hosts sort by: over 9.0 critical, over 7.0 high, over 4.0 medium."""


def network_sarif(
    report: NetworkReport, now: datetime, version: str, language: Language = Language.EN
) -> dict[str, Any]:
    """One run of the tool. `version` is Costguard's own."""
    return {
        "$schema": SARIF_SCHEMA,
        "version": _VERSION,
        "runs": [
            {
                "tool": {"driver": _driver(version, language)},
                "automationDetails": {"id": "costguard/network_audit/"},
                "language": _CULTURES[language],
                "invocations": [
                    {
                        "executionSuccessful": bool(report.lines) or not report.gaps,
                        "endTimeUtc": moment(now),
                        "toolExecutionNotifications": [_notification(each, language) for each in report.gaps],
                    }
                ],
                "results": [result for line in in_order(report.lines) for result in _result(line, language)],
            }
        ],
    }


def fingerprint(finding: Finding) -> str:
    """What makes a finding the same one as in another run: its check and its resource."""
    return hashlib.sha256(f"{finding.check}\n{finding.subject}".encode()).hexdigest()


def _driver(version: str, language: Language) -> dict[str, Any]:
    return {
        "name": "costguard",
        "version": version,
        "language": _CULTURES[language],
        "rules": [_rule(entry, language) for entry in CATALOGUE],
    }


def _rule(entry: CatalogueEntry, language: Language) -> dict[str, Any]:
    level, number = _LEVELS[entry.severity]
    why, remedy = entry.why(language), entry.remedy(language)
    return {
        "id": entry.check_id,
        "name": entry.check.value,
        "shortDescription": {"text": entry.title(language)},
        "fullDescription": {"text": why},
        "help": {"text": f"{why}\n\n{remedy}"},
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["security", "network", entry.severity.value],
            "security-severity": number,
            "cis": {
                cloud: {"benchmark": BENCHMARKS[cloud], "controls": list(controls)}
                for cloud, controls in entry.cis.items()
            },
            "prowler": {cloud: list(words) for cloud, words in entry.prowler.items()},
        },
    }


def _result(line: NetworkLine, language: Language) -> Iterator[dict[str, Any]]:
    finding, entry = line.finding, known_entry(line.finding.check)
    agreed = finding.reason.code is ReasonCode.EXCEPTION
    if entry is None or not (finding.verdict in {Verdict.VIOLATION, Verdict.UNMEASURED} or agreed):
        return
    problem = finding.verdict is not Verdict.UNMEASURED
    said = (sentence(finding.reason, language), path_words(finding, language), closing_words(finding, language))
    severity = line.severity or entry.severity
    result = {
        "ruleId": entry.check_id,
        "ruleIndex": CATALOGUE.index(entry),
        "kind": "fail" if problem else "open",
        "level": _LEVELS[severity][0] if problem else "none",
        "message": {"text": "\n".join(part for part in said if part)},
        "locations": [{"logicalLocations": [_location(finding)]}],
        "fingerprints": {_FINGERPRINT: fingerprint(finding)},
        "properties": {
            "verdict": finding.verdict.value,
            "severity": severity.value,
            "owner": clean(finding.owner),
            "policyRule": clean(finding.rule),
            "reason": finding.reason.code.value,
        },
    }
    if agreed:
        said_so = clean(finding.reason.facts.get("reason", ""))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": said_so}]
    yield result


def _location(finding: Finding) -> dict[str, Any]:
    subject = finding.subject
    native = subject.native_id if isinstance(subject, ResourceRef) else str(subject)
    return {
        "name": clean(finding.name) or clean(native),
        "fullyQualifiedName": clean(subject),
        "kind": "resource",
    }


def _notification(value: Gap, language: Language) -> dict[str, Any]:
    """What was not read may hide problems: a warning, with the shard as its location."""
    return {
        "level": "warning",
        "message": {"text": gap(value, language)},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": clean(value.shard), "kind": "namespace"}]}],
    }
