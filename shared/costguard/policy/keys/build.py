"""From accepted documents to the frozen rules for keys. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.policy.documents.crosschecks import FileKind, PolicyFile
from costguard.policy.keys.documents import KeyRuleDocument, KeySelectorDocument
from costguard.policy.keys.terms import with_key_digest


def key_rules_of(accepted: Sequence[tuple[PolicyFile, Any]], *, shadow: bool = False) -> tuple[KeyRule, ...]:
    """Every rule for keys that decides, or every one in the shadow, by name."""
    written = (rule for _, _, rule in _rules(accepted) if rule.shadow is shadow)
    return tuple(sorted(map(_rule, written), key=lambda rule: rule.name))


def key_waits(
    accepted: Sequence[tuple[PolicyFile, Any]],
) -> Iterator[tuple[PolicyFile, tuple[str | int, ...], timedelta]]:
    """Every wait before a key is mended, with its place."""
    for file, index, rule in _rules(accepted):
        written = ("wait",) if "wait" in rule.model_fields_set else ()
        yield file, ("kms_rotation", index, *written), rule.wait


def _rules(accepted: Sequence[tuple[PolicyFile, Any]]) -> Iterator[tuple[PolicyFile, int, KeyRuleDocument]]:
    for file, model in accepted:
        if file.kind in {FileKind.MAIN, FileKind.RULES}:
            for index, rule in enumerate(model.kms_rotation):
                yield file, index, rule


def _rule(rule: KeyRuleDocument) -> KeyRule:
    return with_key_digest(
        KeyRule(
            name=rule.name,
            mode=rule.mode,
            applies_to=KeySelector() if rule.applies_when_all is None else _selector(rule.applies_when_all),
            rotate_every=rule.rotate_every,
            means=frozenset(rule.means),
            customer_keys=rule.customer_keys,
            wait=rule.wait,
            actions_per_day=rule.actions_per_day,
            except_for=tuple(_selector(each) for each in rule.except_when_any),
        )
    )


def _selector(selector: KeySelectorDocument) -> KeySelector:
    return KeySelector(selector.clouds, selector.accounts, selector.regions, selector.aliases, selector.tags)
