"""What the rules for keys of a policy say, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, choice, clean, phrase, span

if TYPE_CHECKING:
    from costguard.report.keys import shapes

_COLUMNS = ("rule", "mode", "covers", "rotate_every", "means", "customer_keys")


def key_rules_table(rules: Sequence[KeyRule], language: Language = Language.EN) -> Table:
    """One row a rule: which keys, how often, by what, and whether services' default keys will do."""
    columns = tuple(Column(key, phrase(f"key_rule_{key}", language)) for key in _COLUMNS)
    return Table(phrase("key_rules", language), columns, tuple(_row(rule, language) for rule in rules))


def key_rule_json(rule: KeyRule) -> shapes.KeyRule:
    """The rule as one JSON object; durations are seconds."""
    return {
        "name": rule.name,
        "mode": rule.mode.name.lower(),
        "digest": rule.digest,
        "applies_to": _selector_json(rule.applies_to),
        "except_for": [_selector_json(each) for each in rule.except_for],
        "rotate_every_seconds": int(rule.rotate_every.total_seconds()),
        "means": sorted(means.value for means in rule.means),
        "customer_keys": rule.customer_keys,
    }


def _row(rule: KeyRule, language: Language) -> tuple[str, ...]:
    either = phrase("key_rule_or", language)
    means = sorted(rule.means, key=lambda each: each.value)
    return (
        clean(rule.name),
        choice(rule.mode.name.lower(), language),
        _covers(rule, language),
        span(rule.rotate_every),
        either.join(phrase(f"key_rule_{each.value}", language) for each in means),
        phrase("key_rule_default_found" if rule.customer_keys else "key_rule_default_accepted", language),
    )


def _covers(rule: KeyRule, language: Language) -> str:
    which = _words(rule.applies_to, language)
    if not rule.except_for:
        return which
    excepted = phrase("key_rule_or", language).join(_words(each, language) for each in rule.except_for)
    return phrase("key_rule_except", language, which=which, excepted=excepted)


def _words(selector: KeySelector, language: Language) -> str:
    """`aws, prod-* or train-*, team=research`; of a list any one, of everything else all."""
    lists = (selector.clouds, selector.accounts, selector.regions, selector.aliases)
    either = phrase("key_rule_or", language)
    parts = [either.join(words) for words in lists if words is not None]
    parts += [f"{name}={value}" for name, value in (selector.tags or {}).items()]
    return clean(phrase("key_rule_list", language).join(parts)) or phrase("key_rule_every_key", language)


def _selector_json(selector: KeySelector) -> shapes.KeySelector:
    return {
        "clouds": selector.clouds,
        "accounts": selector.accounts,
        "regions": selector.regions,
        "aliases": selector.aliases,
        "tags": None if selector.tags is None else dict(selector.tags),
    }
