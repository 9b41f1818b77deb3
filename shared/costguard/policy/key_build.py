"""From accepted documents to the frozen rules for keys. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from costguard.guards.kms_rotation_rules import KeyRule, KeySelector
from costguard.policy.crosschecks import FileKind, PolicyFile
from costguard.policy.key_documents import KeyRuleDocument, KeySelectorDocument
from costguard.policy.key_terms import with_key_digest


def key_rules_of(accepted: Sequence[tuple[PolicyFile, Any]]) -> tuple[KeyRule, ...]:
    """Every rule for keys, by name."""
    return tuple(sorted(_rules(accepted), key=lambda rule: rule.name))


def _rules(accepted: Sequence[tuple[PolicyFile, Any]]) -> Iterator[KeyRule]:
    for file, model in accepted:
        if file.kind in {FileKind.MAIN, FileKind.RULES}:
            for rule in model.kms_rotation:
                yield _rule(rule)


def _rule(rule: KeyRuleDocument) -> KeyRule:
    return with_key_digest(
        KeyRule(
            name=rule.name,
            mode=rule.mode,
            applies_to=KeySelector() if rule.applies_when_all is None else _selector(rule.applies_when_all),
            rotate_every=rule.rotate_every,
            means=frozenset(rule.means),
            customer_keys=rule.customer_keys,
            except_for=tuple(_selector(each) for each in rule.except_when_any),
        )
    )


def _selector(selector: KeySelectorDocument) -> KeySelector:
    return KeySelector(selector.clouds, selector.accounts, selector.regions, selector.aliases, selector.tags)
