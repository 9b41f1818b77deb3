"""A rule for networks as canonical JSON, which its digest is taken of. Pure.

Two rules that mean the same have the same terms, whatever the order of their words.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from ipaddress import ip_network

from costguard.guards.network.rules import AuditRule, NetworkSelector
from costguard.policy.model.terms import canonical_json

_SCHEMA = 1


def audit_terms(rule: AuditRule) -> str:
    """Everything a rule for networks says but its digest."""
    return canonical_json({"schema": _SCHEMA, "networks": replace(_ordered(rule), digest="")})


def with_audit_digest(rule: AuditRule) -> AuditRule:
    """The same rule in canonical order, with the digest of its terms."""
    return replace(_ordered(rule), digest=hashlib.sha256(audit_terms(rule).encode()).hexdigest())


def _ordered(rule: AuditRule) -> AuditRule:
    excepted = sorted({canonical_json(each): each for each in map(_selector, rule.except_for)}.items())
    return replace(
        rule,
        applies_to=_selector(rule.applies_to),
        except_for=tuple(each for _, each in excepted),
        ports=tuple(sorted(set(rule.ports))),
        allowed_ports=tuple(sorted(set(rule.allowed_ports))),
        trusted=_networks(rule.trusted),
        allowed_regions=_words(rule.allowed_regions),
        private_subnets=tuple(sorted(set(rule.private_subnets))),
        peering_cidrs=None if rule.peering_cidrs is None else _networks(rule.peering_cidrs),
        keep=tuple(sorted(set(rule.keep))),
        narrow_to=_networks(rule.narrow_to),
    )


def _selector(selector: NetworkSelector) -> NetworkSelector:
    return NetworkSelector(
        _words(selector.clouds),
        _words(selector.accounts),
        _words(selector.regions),
        None if selector.tags is None else dict(sorted(selector.tags.items())),
        _words(selector.resources),
    )


def _words(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(sorted(set(words)))


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    """By version, then by address."""
    return tuple(sorted(set(texts), key=lambda text: (ip_network(text).version, int(ip_network(text)[0]), text)))
