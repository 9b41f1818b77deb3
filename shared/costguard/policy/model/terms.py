"""A rule as canonical JSON: what its digest is taken of, and what a case remembers it by. Pure.

Two rules that mean the same have the same terms: lists that are sets are sorted, decimals lose their
trailing zeros, durations are seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from ipaddress import ip_network
from typing import Any, TypeVar

from costguard.domain.actions import Verb
from costguard.domain.errors import InvalidInputError, NewerSchemaError
from costguard.domain.money import Money
from costguard.domain.resources import Billing
from costguard.guards.budget.rules import BudgetRule
from costguard.guards.keys.rules import KeyRule
from costguard.guards.network.rules import AuditRule
from costguard.guards.rules.common import UNSAID, Bars, Consent, Limits, Mode, Scarce, Selector, Step
from costguard.guards.rules.idle import BudgetCause, IdleBounds, IdleRule

RuleT = TypeVar("RuleT", IdleRule, BudgetRule, KeyRule, AuditRule)
_SCHEMA = 1
_SETS = ("clouds", "accounts", "regions", "instance_types", "billing", "resources", "resource_groups")


def terms(rule: IdleRule) -> str:
    """Everything a rule says but its digest."""
    body = {
        "schema": _SCHEMA,
        "name": rule.name,
        "mode": rule.mode.name.lower(),
        "applies_to": _selector(rule.applies_to),
        "except_for": sorted((_selector(each) for each in rule.except_for), key=_json),
        "idle": {
            "lasting": _seconds(rule.idle.lasting),
            "gpu_percent": _float(rule.idle.every_gpu_max_below_percent),
            "cpu_percent": _float(rule.idle.cpu_max_below_percent),
            "network_bytes_per_second": _float(rule.idle.network_max_below_bytes_per_second),
            "power_watts": _float(rule.idle.power_max_below_watts),
            "min_coverage": _float(rule.idle.min_coverage),
        },
        "ladder": [[step.verb.value, _seconds(step.wait)] for step in rule.ladder],
        "limits": {
            "actions_per_day": rule.limits.actions_per_day,
            "fleet_share_per_day": _decimal(rule.limits.fleet_share_per_day),
            "hourly_cost_stopped_per_day": _amounts(rule.limits.hourly_cost_stopped_per_day),
            "local_disk": rule.limits.local_disk.value,
            "unstoppable_may_terminate": rule.limits.unstoppable_may_terminate,
            **_where_written("terminations_per_day", rule.limits.terminations_per_day),
            **_where_written("local_disk_approver_above", _amounts(rule.limits.local_disk_approver_above)),
            **_where_written("scarce", None if rule.limits.scarce is Scarce.ASK else rule.limits.scarce.value),
            **_where_written("scarce_types", _listed(rule.limits.scarce_types)),
        },
    }
    if rule.cause is not None:
        body["cause"] = [rule.cause.budget, _decimal(rule.cause.at), rule.cause.priority_class]
    if rule.termination_protection_bars is not Bars.EVERYTHING:  # the strict reading is what rules of before had
        body["termination_protection_bars"] = rule.termination_protection_bars.value
    return _json(body)


def _where_written(key: str, value: object) -> dict[str, object]:
    """A key that came later: left out where it is not written, so that the digests of rules of before stay."""
    return {} if value is None else {key: value}


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _amounts(amounts: Sequence[Money] | None) -> list[list[str]] | None:
    return None if amounts is None else sorted([money.currency, _decimal(money.amount)] for money in amounts)


def _amounts_from(said: Sequence[Sequence[str]]) -> tuple[Money, ...]:
    return tuple(Money(Decimal(amount), currency) for currency, amount in said)


def rule_digest(rule: IdleRule) -> str:
    """sha256 of the terms, in hex."""
    return _sha256(terms(rule))


def with_digest(rule: RuleT) -> RuleT:
    """The same rule in canonical order, with the digest of its terms."""
    if isinstance(rule, IdleRule):
        return _of_terms(terms(rule))
    ordered: RuleT = _in_order(rule)
    return replace(ordered, digest=_sha256(settings_terms(ordered)))


def settings_terms(rule: BudgetRule | KeyRule | AuditRule) -> str:
    """Everything that a budget, or a rule for keys or networks, says but its digest."""
    return canonical_json({"schema": _SCHEMA, _KINDS[type(rule)]: replace(_in_order(rule), digest="")})


_KINDS: Mapping[type, str] = {BudgetRule: "budget", KeyRule: "keys", AuditRule: "networks"}


def _in_order(said: Any) -> Any:
    """The same with every list sorted that is a set, each item once."""
    if isinstance(said, Mapping):
        return dict(sorted(said.items()))
    if not is_dataclass(said) or isinstance(said, type):
        return said
    changed = {}
    for field in fields(said):
        value = getattr(said, field.name)
        if isinstance(value, tuple):
            by = _ORDER.get(field.name) or (canonical_json if any(map(is_dataclass, value)) else None)
            each_once = {canonical_json(each): each for each in map(_in_order, value)}
            changed[field.name] = tuple(sorted(each_once.values(), key=by))
        elif isinstance(value, Mapping) or is_dataclass(value):
            changed[field.name] = _in_order(value)
    return replace(said, **changed)


def _by_network(text: str) -> tuple[int, int, str]:
    """By version, then by address."""
    network = ip_network(text)
    return network.version, int(network[0]), text


_ORDER: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("trusted", "peering_cidrs", "narrow_to"), _by_network),
    **dict.fromkeys(("hourly_cost_stopped_per_day", "local_disk_approver_above"), lambda money: money.currency),
    "steps": lambda step: (step.at, step.kind.harshness, step.classes, step.freezes),
}
"""Of the fields whose items have an order of their own."""


@lru_cache(maxsize=1024)  # of the same few rules, in every run
def _of_terms(text: str) -> IdleRule:
    return replace(_rule(json.loads(text)), digest=_sha256(text))


@lru_cache(maxsize=1024)  # each case remembers its rule's
def rule_from_terms(text: str) -> IdleRule:
    """The rule that `terms` wrote down.

    Raises:
        NewerSchemaError: written by a newer Costguard.
        InvalidInputError: not the terms of a rule.
    """
    try:
        body = json.loads(text)
        schema = body["schema"]
        if schema == _SCHEMA:
            return with_digest(_rule(body))
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation, OverflowError, RecursionError) as err:
        message = f"these are not the terms of a rule: {text[:80]!r}; the ledger record is damaged"
        raise InvalidInputError(message) from err
    message = f"the terms of a rule have schema {schema}; this version knows {_SCHEMA}; use the newer Costguard"
    raise NewerSchemaError(message)


def digest_of(value: object) -> str:
    """sha256 of a frozen value: dataclasses by field (`compare=False` left out), mappings by key."""
    return _sha256(canonical_json(value))


def canonical_json(value: object) -> str:
    """A frozen value as JSON that is the same for the same value, see `digest_of`."""
    return _json(_canonical(value))


def _rule(body: dict[str, Any]) -> IdleRule:
    idle, limits = body["idle"], body["limits"]
    return IdleRule(
        name=str(body["name"]),
        mode=Mode[body["mode"].upper()],
        applies_to=_selector_from(body["applies_to"]),
        except_for=tuple(_selector_from(each) for each in body["except_for"]),
        idle=IdleBounds(
            lasting=timedelta(seconds=float(idle["lasting"])),
            every_gpu_max_below_percent=float(idle["gpu_percent"]),
            cpu_max_below_percent=_float(idle["cpu_percent"]),
            network_max_below_bytes_per_second=_float(idle["network_bytes_per_second"]),
            power_max_below_watts=_float(idle["power_watts"]),
            min_coverage=float(idle["min_coverage"]),
        ),
        ladder=tuple(Step(Verb(verb), timedelta(seconds=float(wait))) for verb, wait in body["ladder"]),
        limits=Limits(
            actions_per_day=int(limits["actions_per_day"]),
            fleet_share_per_day=Decimal(limits["fleet_share_per_day"]),
            hourly_cost_stopped_per_day=_amounts_from(limits["hourly_cost_stopped_per_day"]),
            local_disk=Consent(limits["local_disk"]),
            unstoppable_may_terminate=limits["unstoppable_may_terminate"] is True,
            terminations_per_day=limits.get("terminations_per_day"),
            local_disk_approver_above=_amounts_from(limits["local_disk_approver_above"])
            if "local_disk_approver_above" in limits
            else None,
            scarce=Scarce(limits.get("scarce", Scarce.ASK.value)),
            scarce_types=tuple(limits["scarce_types"]) if "scarce_types" in limits else None,
        ),
        digest="",
        cause=_cause(body["cause"]) if "cause" in body else None,
        termination_protection_bars=Bars(body.get("termination_protection_bars", Bars.EVERYTHING)),
    )


def _cause(told: Sequence[str]) -> BudgetCause:
    budget, at, priority_class = told
    return BudgetCause(str(budget), Decimal(at), str(priority_class))


def _selector(selector: Selector) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name in _SETS:
        values = getattr(selector, name)
        if values is not None:
            body[name] = sorted({value.value if isinstance(value, Billing) else value for value in values})
    if selector.tags is not None:
        body["tags"] = dict(selector.tags)
    return body


def _selector_from(body: dict[str, Any]) -> Selector:
    def listed(name: str) -> tuple[str, ...] | None:
        return tuple(body[name]) if name in body else None

    return Selector(
        clouds=listed("clouds"),
        accounts=listed("accounts"),
        regions=listed("regions"),
        instance_types=listed("instance_types"),
        billing=tuple(Billing(value) for value in body["billing"]) if "billing" in body else None,
        tags=dict(body["tags"]) if "tags" in body else None,
        resources=listed("resources"),
        resource_groups=listed("resource_groups"),
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _float(value: float | None) -> float | None:
    """5 and 5.0 are one bound."""
    return None if value is None else float(value)


def _decimal(value: Decimal) -> str:
    return "0" if value == 0 else format(value.normalize(), "f")


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()


def _canonical(value: object) -> Any:
    if is_dataclass(value):
        shown = [each for each in fields(value) if each.compare]
        told = {each.name: getattr(value, each.name) for each in shown}
        newer = {each.name for each in shown if UNSAID in each.metadata and told[each.name] == each.default}
        return {name: _canonical(said) for name, said in told.items() if name not in newer}
    if isinstance(value, Mapping):
        return {str(_canonical(key)): _canonical(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_canonical(each) for each in value), key=_json)
    if isinstance(value, (tuple, list)):
        return [_canonical(each) for each in value]
    return _canonical_atom(value)


def _canonical_atom(value: object) -> Any:
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, timedelta):
        return _seconds(value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    message = f"no canonical form for {type(value).__name__}"
    raise TypeError(message)
