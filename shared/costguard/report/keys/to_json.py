"""What was found of keys as the JSON that `costguard keys --json` documents; its shape is `keys.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from costguard.domain.keys import EncryptionKey
from costguard.guards.keys.rules import KeyRule
from costguard.report.json_values import gap_json, moment, money_json, reason_json, resource_json
from costguard.report.keys.rules import key_rule_json
from costguard.report.keys.views import KeyLine, KeyReport
from costguard.report.notices.remediations import mend_words, rotation_cost_words
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.keys import shapes

KEYS_SCHEMA: Final = 1


def keys_json(
    report: KeyReport, rules: Sequence[KeyRule], now: datetime, language: Language = Language.EN
) -> shapes.Keys:
    """Every key with all that was found of it, whether it is worth a look or not."""
    lines: dict[str, list[KeyLine]] = {}
    for line in report.lines:
        lines.setdefault(str(line.key.ref), []).append(line)
    return {
        "schema": KEYS_SCHEMA,
        "at": moment(now),
        "rules": [key_rule_json(rule) for rule in rules],
        "keys_seen": report.keys_seen,
        "keys": [_key(each[0].key, each, language) for _, each in sorted(lines.items())],
        "gaps": [gap_json(each, language) for each in report.gaps],
    }


def _key(key: EncryptionKey, lines: Sequence[KeyLine], language: Language) -> shapes.Key:
    setting, allows = key.rotation, key.rotatability
    return {
        **resource_json(key.ref),
        "name": clean(lines[0].finding.name),
        "aliases": [clean(alias) for alias in key.aliases],
        "owner": clean(lines[0].finding.owner),
        "spec": clean(key.spec),
        "usage": key.usage.value,
        "origin": key.origin.value,
        "state": key.state.value,
        "manager": key.manager.value,
        "is_default": key.is_default,
        "multi_region": key.multi_region.value,
        "primary": None if key.primary is None else str(key.primary),
        "created_at": moment(key.created_at),
        "deletes_at": moment(key.deletes_at),
        "used_by": [str(ref) for ref in key.used_by],
        "rotation": {
            "automatic": setting.automatic,
            "period_days": setting.period_days,
            "last_at": moment(setting.last_at),
            "next_at": moment(setting.next_at),
            "on_demand_used": setting.on_demand_used,
        },
        "vendor_allows": {
            "means": sorted(means.value for means in allows.means),
            "shortest_days": allows.shortest_days,
            "longest_days": allows.longest_days,
            "cost": {
                "kind": allows.cost.kind.value,
                "monthly": money_json(allows.cost.monthly),
                "words": rotation_cost_words(allows.cost, language),
                "source": clean(allows.cost.source),
                "as_of": allows.cost.as_of,
            },
            "note": clean(allows.note),
            "source": clean(allows.source),
        },
        "findings": [_finding(line, language) for line in lines],
    }


def _finding(line: KeyLine, language: Language) -> shapes.KeyFinding:
    finding = line.finding
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "rule": clean(finding.rule),
        **reason_json(finding.reason, language),
        "rehearsed": None
        if line.mend is None
        else {
            "kind": line.mend.kind.value,
            "parameters": dict(line.mend.parameters),
            "words": mend_words(line.mend, language),
        },
    }
