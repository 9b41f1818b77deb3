"""What the rules for networks of a policy say, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from costguard.guards.network.rules import AuditRule, NetworkCheck, NetworkSelector
from costguard.report.network.catalogue import entry_of
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, choice, clean, phrase, span

if TYPE_CHECKING:
    from costguard.report.network import shapes

_COLUMNS = ("rule", "mode", "covers", "forbid", "mend", "wait")


def audit_rules_table(rules: Sequence[AuditRule], language: Language = Language.EN) -> Table:
    """One row a rule: of what, what it forbids, and what may be done about it how soon."""
    columns = tuple(Column(key, phrase(f"network_rule_{key}", language)) for key in _COLUMNS)
    return Table(phrase("network_rules", language), columns, tuple(_row(rule, language) for rule in rules))


def audit_rule_json(rule: AuditRule) -> shapes.AuditRule:
    """The rule as one JSON object; durations are seconds."""
    return {
        "name": rule.name,
        "mode": rule.mode.name.lower(),
        "digest": rule.digest,
        "forbid": [entry_of(check).check_id for check in in_order(rule.forbid)],
        "applies_to": _selector_json(rule.applies_to),
        "except_for": [_selector_json(each) for each in rule.except_for],
        "ports": list(rule.ports),
        "allowed_ports": list(rule.allowed_ports),
        "trusted": list(rule.trusted),
        "widest_v4": rule.widest_v4,
        "widest_v6": rule.widest_v6,
        "allowed_regions": None if rule.allowed_regions is None else list(rule.allowed_regions),
        "private_subnets": list(rule.private_subnets),
        "peering_cidrs": None if rule.peering_cidrs is None else list(rule.peering_cidrs),
        "keep": list(rule.keep),
        "unattached_for_seconds": int(rule.unattached_for.total_seconds()),
        "mend": sorted(kind.value for kind in rule.mend),
        "narrow_to": list(rule.narrow_to),
        "flow_log_destination": rule.flow_log_destination,
        "wait_seconds": int(rule.wait.total_seconds()),
        "actions_per_day": rule.actions_per_day,
    }


def in_order(checks: frozenset[NetworkCheck]) -> Sequence[NetworkCheck]:
    """By the number in the catalogue."""
    return sorted(checks, key=lambda check: entry_of(check).check_id)


def _row(rule: AuditRule, language: Language) -> tuple[str, ...]:
    between = phrase("network_rule_list", language)
    return (
        clean(rule.name),
        choice(rule.mode.name.lower(), language),
        _covers(rule, language),
        between.join(entry_of(check).title(language) for check in in_order(rule.forbid)),
        between.join(phrase(f"network_rule_{kind}", language) for kind in sorted(each.value for each in rule.mend))
        or phrase("network_rule_nothing", language),
        span(rule.wait) if rule.mend else "",
    )


def _covers(rule: AuditRule, language: Language) -> str:
    which = _words(rule.applies_to, language)
    if not rule.except_for:
        return which
    excepted = phrase("network_rule_or", language).join(_words(each, language) for each in rule.except_for)
    return phrase("network_rule_except", language, which=which, excepted=excepted)


def _words(selector: NetworkSelector, language: Language) -> str:
    """`aws, us-* or eu-*, team=research`; of a list any one, of everything else all."""
    lists = (selector.clouds, selector.accounts, selector.regions, selector.resources)
    either = phrase("network_rule_or", language)
    parts = [either.join(words) for words in lists if words is not None]
    parts += [f"{name}={value}" for name, value in (selector.tags or {}).items()]
    return clean(phrase("network_rule_list", language).join(parts)) or phrase("network_rule_everything", language)


def _selector_json(selector: NetworkSelector) -> shapes.NetworkSelector:
    return {
        "clouds": selector.clouds,
        "accounts": selector.accounts,
        "regions": selector.regions,
        "tags": None if selector.tags is None else dict(selector.tags),
        "resources": selector.resources,
    }
