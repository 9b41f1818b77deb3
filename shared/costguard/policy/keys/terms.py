"""A rule for keys as canonical JSON, which its digest is taken of. Pure.

Two rules that mean the same have the same terms, whatever the order of their words.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.policy.model.terms import canonical_json

_SCHEMA = 1


def key_terms(rule: KeyRule) -> str:
    """Everything a rule for keys says but its digest."""
    return canonical_json({"schema": _SCHEMA, "keys": replace(_ordered(rule), digest="")})


def with_key_digest(rule: KeyRule) -> KeyRule:
    """The same rule in canonical order, with the digest of its terms."""
    return replace(_ordered(rule), digest=hashlib.sha256(key_terms(rule).encode()).hexdigest())


def _ordered(rule: KeyRule) -> KeyRule:
    excepted = sorted({canonical_json(each): each for each in map(_selector, rule.except_for)}.items())
    return replace(rule, applies_to=_selector(rule.applies_to), except_for=tuple(each for _, each in excepted))


def _selector(selector: KeySelector) -> KeySelector:
    return KeySelector(
        _words(selector.clouds),
        _words(selector.accounts),
        _words(selector.regions),
        _words(selector.aliases),
        None if selector.tags is None else dict(sorted(selector.tags.items())),
    )


def _words(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(sorted(set(words)))
