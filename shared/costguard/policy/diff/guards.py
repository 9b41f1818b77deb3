"""How budgets and rules for keys and networks differ, and which way. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, StepKind
from costguard.guards.budget.steps import BudgetStanding, machine_rules
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.network.rules import AuditRule, NetworkSelector
from costguard.guards.rules.common import Mode, Selector
from costguard.guards.rules.idle import IdleRule
from costguard.policy.diff import differences as d
from costguard.policy.diff.differences import Difference, Direction, Part
from costguard.policy.diff.idle import idle_differences
from costguard.policy.diff.rule_changes import reaches_no_further, spares_all_of
from costguard.policy.model.policy import Policy
from costguard.policy.syntax import notation as n

BUDGETS, KEYS, NETWORKS = "budgets", "kms_rotation", "network_audit"


def budget_differences(old: Policy, new: Policy) -> Iterator[Difference]:
    """What budgets watch and say, and, as rules for machines, what their steps do once they are reached."""
    acting = {rule.name for rule in new.budgets if _acts(rule)}
    found = d.listed(
        BUDGETS,
        {rule.name: rule for rule in old.budgets},
        {rule.name: rule for rule in new.budgets},
        _BUDGET,
        shown=_budget_words,
        added=lambda rule: Direction.LOOSER if _acts(rule) else Direction.OTHER,
        removed=lambda rule: Direction.TIGHTER if _acts(rule) else Direction.OTHER,
    )
    for each in found:  # of a budget that only tells, a lower amount tells sooner and does no more
        yield each if each.name in acting or not each.after else replace(each, direction=Direction.OTHER)
    yield from idle_differences(_machine_rules(old), _machine_rules(new), BUDGETS)


def key_differences(old: Sequence[KeyRule], new: Sequence[KeyRule]) -> Iterator[Difference]:
    """What of the rules for keys is not as it was."""
    found = d.listed(
        KEYS,
        {rule.name: rule for rule in old},
        {rule.name: rule for rule in new},
        _KEY,
        shown=lambda rule: f"{n.written(rule.mode)}; {n.written(rule.rotate_every)}; {n.written(rule.means)}",
        added=lambda rule: _of_mode(rule.mode),
        removed=lambda rule: _released(rule, new),
    )
    yield from _with_falls(found, new)


def network_differences(old: Sequence[AuditRule], new: Sequence[AuditRule]) -> Iterator[Difference]:
    """What of the rules for networks is not as it was."""
    found = d.listed(
        NETWORKS,
        {rule.name: rule for rule in old},
        {rule.name: rule for rule in new},
        _NETWORK,
        shown=lambda rule: "; ".join(filter(None, map(n.written, (rule.mode, rule.forbid, rule.mend)))),
        added=lambda rule: _of_mode(rule.mode),
        removed=lambda rule: _released(rule, new),
    )
    yield from _with_falls(found, new)


_DECIDES = frozenset({"applies_when_all", "except_when_any", "forbid", "rotate_every"})
"""By which of several rules one is chosen: what one of them lets go of falls to another."""


def _with_falls(found: Iterable[Difference], rules: Sequence[KeyRule | AuditRule]) -> Iterator[Difference]:
    """A rule that lets go of something only tightens where no other rule that does anything could take it."""
    acting = {rule.name for rule in rules if rule.mode > Mode.OBSERVE}
    for each in found:
        taken = each.key in _DECIDES and len(rules) > 1 and bool(acting)
        loosened = taken and each.direction is Direction.TIGHTER
        yield replace(each, direction=Direction.LOOSER) if loosened else each


def _of_mode(mode: Mode) -> Direction:
    return Direction.LOOSER if mode > Mode.OBSERVE else Direction.OTHER


def _released(rule: KeyRule | AuditRule, left: Sequence[KeyRule | AuditRule]) -> Direction:
    """A rule that is gone may leave what it kept to one that does more: of several the gentlest is taken."""
    return Direction.LOOSER if any(each.mode >= max(rule.mode, Mode.WARN) for each in left) else Direction.TIGHTER


def _acts(rule: BudgetRule) -> bool:
    return rule.mode > Mode.OBSERVE and bool(rule.steps)


def _budget_words(rule: BudgetRule) -> str:
    covers = n.selection(rule.covers)
    return "; ".join((n.written(rule.mode), f"{n.written(rule.amount)} {rule.period.kind.value}", covers or "*"))


def _machine_rules(policy: Policy) -> tuple[IdleRule, ...]:
    """What every step would make of itself if it were reached."""
    standings = [BudgetStanding(rule, None) for rule in policy.budgets]
    return machine_rules(standings, policy.priority_classes, policy.protection.termination_protection_bars).rules


def _freezes(rule: BudgetRule) -> frozenset[str]:
    return frozenset(
        f"{n.share(step.at)} {name} {n.duration(step.wait)}"
        for step in rule.steps
        if step.kind is StepKind.FREEZE
        for name in step.freezes
    )


def _lower_amount(old: Any, new: Any) -> bool:
    """Steps are reached sooner under a lower amount; another currency cannot be compared."""
    return bool(old.currency != new.currency or new.amount < old.amount)


def _shares(shares: Sequence[Decimal]) -> str:
    return ", ".join(map(n.share, shares)) or "[]"


def _period_words(period: BudgetPeriod) -> str:
    days = f" {n.written(period.first)}…{n.written(period.last)}" if period.first is not None else ""
    return f"{period.kind.value}{days} ({period.zone})"


_BUDGET: tuple[Part[BudgetRule], ...] = (
    Part("mode", lambda rule: rule.mode, d.higher),
    Part("covers", lambda rule: rule.covers, d.any_change, n.selection),
    Part("amount", lambda rule: rule.amount, _lower_amount),
    Part(
        "period", lambda rule: (rule.period.kind, rule.period.zone, rule.period.first, rule.period.last), d.any_change
    ),
    Part("alert_at", lambda rule: rule.alert_at, None, _shares),
    Part("forecast_alert_at", lambda rule: rule.forecast_alert_at, None, _shares),
    Part("surge_alert", lambda rule: rule.surge_alert, None),
    Part("tell", lambda rule: rule.tell, None),
    Part("counts.cost", lambda rule: rule.counted.basis, d.any_change),
    Part("counts.credits", lambda rule: rule.counted.credits, d.any_change),
    Part("counts.tax", lambda rule: rule.counted.tax, d.any_change),
    Part("trust.bill_not_older_than", lambda rule: rule.trust.bill_not_older_than, d.higher),
    Part("trust.estimated_at_most", lambda rule: rule.trust.estimated_share, d.higher, n.share),
    Part("at.freeze", _freezes, d.more),
)


def _wider(old: Selector, new: Selector) -> bool:
    return not reaches_no_further(new, old)


def _of_key(selector: KeySelector) -> Selector:
    """The same as a selector of machines, so that both are compared alike; aliases stand where types do."""
    return Selector(selector.clouds, selector.accounts, selector.regions, selector.aliases, tags=selector.tags)


def _of_network(selector: NetworkSelector) -> Selector:
    return Selector(
        selector.clouds, selector.accounts, selector.regions, tags=selector.tags, resources=selector.resources
    )


def _less_excepted(old: Sequence[Selector], new: Sequence[Selector]) -> bool:
    return not all(any(spares_all_of(kept, wider) for wider in new) for kept in old)


_KEY: tuple[Part[KeyRule], ...] = (
    Part("mode", lambda rule: rule.mode, d.higher),
    Part("applies_when_all", lambda rule: _of_key(rule.applies_to), _wider, n.selection),
    Part("except_when_any", lambda rule: tuple(map(_of_key, rule.except_for)), _less_excepted, n.selections),
    Part("rotate_every", lambda rule: rule.rotate_every, d.lower),
    Part("means", lambda rule: rule.means, d.more),
    Part("customer_keys", lambda rule: rule.customer_keys, None),
    Part("wait", lambda rule: rule.wait, d.lower),
    Part("actions_per_day", lambda rule: rule.actions_per_day, d.higher),
)


def _narrower(old: Any, new: Any) -> bool:
    """A list of what is allowed, None: everything. Whatever is no longer in it is found from now on."""
    return new is not None and (old is None or d.fewer(old, new))


_NETWORK: tuple[Part[AuditRule], ...] = (
    Part("mode", lambda rule: rule.mode, d.higher),
    Part("applies_when_all", lambda rule: _of_network(rule.applies_to), _wider, n.selection),
    Part("except_when_any", lambda rule: tuple(map(_of_network, rule.except_for)), _less_excepted, n.selections),
    Part("forbid", lambda rule: rule.forbid, d.more),
    Part("ports", lambda rule: rule.ports, d.more),
    Part("allowed_ports", lambda rule: rule.allowed_ports, d.fewer),
    Part("trusted", lambda rule: rule.trusted, d.fewer),
    Part("widest_v4", lambda rule: rule.widest_v4, d.higher),
    Part("widest_v6", lambda rule: rule.widest_v6, d.higher),
    Part("allowed_regions", lambda rule: rule.allowed_regions, _narrower),
    Part("private_subnets", lambda rule: rule.private_subnets, d.more),
    Part("peering_cidrs", lambda rule: rule.peering_cidrs, _narrower),
    Part("keep", lambda rule: rule.keep, d.fewer),
    Part("unattached_for", lambda rule: rule.unattached_for, d.lower),
    Part("mend", lambda rule: rule.mend, d.more),
    Part("narrow_to", lambda rule: rule.narrow_to, d.any_change),
    Part("flow_log_destination", lambda rule: rule.flow_log_destination, d.any_change),
    Part("flow_log_role", lambda rule: rule.flow_log_role, d.any_change),
    Part("wait", lambda rule: rule.wait, d.lower),
    Part("actions_per_day", lambda rule: rule.actions_per_day, d.higher),
)
