"""How budgets and rules for keys and networks differ, and which way. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from costguard.guards.budget.rules import BudgetRule, BudgetStep, StepKind
from costguard.guards.budget.steps import BudgetStanding, machine_rules
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.network.rules import AuditRule, NetworkSelector
from costguard.guards.rules.common import Mode, Selector
from costguard.guards.rules.idle import IdleRule
from costguard.policy.diff import differences as d
from costguard.policy.diff.differences import NOT_TOLD, Difference, Direction, Part, Parts
from costguard.policy.diff.idle import idle_differences, reaches_no_further, spares_all_of
from costguard.policy.model.policy import Policy
from costguard.policy.syntax import units as n

_Rule = TypeVar("_Rule", KeyRule, AuditRule)
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
    return _of_settings(KEYS, old, new, _KEY, lambda rule: (rule.mode, rule.rotate_every, rule.means))


def network_differences(old: Sequence[AuditRule], new: Sequence[AuditRule]) -> Iterator[Difference]:
    """What of the rules for networks is not as it was."""
    return _of_settings(NETWORKS, old, new, _NETWORK, lambda rule: (rule.mode, rule.forbid, rule.mend))


def _of_settings(
    section: str, old: Sequence[_Rule], new: Sequence[_Rule], parts: Parts, says: Callable[[Any], Sequence[object]]
) -> Iterator[Difference]:
    found = d.listed(
        section,
        {rule.name: rule for rule in old},
        {rule.name: rule for rule in new},
        parts,
        shown=lambda rule: "; ".join(filter(None, map(n.written, says(rule)))),
        added=lambda rule: Direction.LOOSER if rule.mode > Mode.OBSERVE else Direction.OTHER,
        removed=lambda rule: _released(rule, new),
    )
    # a rule that lets go of something only tightens where no other rule that does anything could take it
    others = len(new) > 1 and any(rule.mode > Mode.OBSERVE for rule in new)
    for each in found:
        taken = others and each.key in _DECIDES and each.direction is Direction.TIGHTER
        yield replace(each, direction=Direction.LOOSER) if taken else each


_DECIDES = frozenset({"applies_when_all", "except_when_any", "forbid", "rotate_every"})
"""By which of several rules one is chosen: what one of them lets go of falls to another."""


def _released(rule: _Rule, left: Sequence[_Rule]) -> Direction:
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


def _freezes(steps: Sequence[BudgetStep]) -> frozenset[str]:
    return frozenset(
        f"{n.share(step.at)} {name} {n.duration(step.wait)}"
        for step in steps
        if step.kind is StepKind.FREEZE
        for name in step.freezes
    )


def _lower_amount(old: Any, new: Any) -> bool:
    """Steps are reached sooner under a lower amount; another currency cannot be compared."""
    return bool(old.currency != new.currency or new.amount < old.amount)


def _shares(shares: Sequence[Decimal]) -> str:
    return ", ".join(map(n.share, shares)) or "[]"


_BUDGET: Parts = {
    "name": NOT_TOLD,
    "mode": Part(d.higher),
    "covers": Part(d.any_change, shown=n.selection),
    "amount": Part(_lower_amount),
    "period": Part(d.any_change, value=lambda period: (period.kind, period.zone, period.first, period.last)),
    "alert_at": Part(None, shown=_shares),
    "forecast_alert_at": Part(None, shown=_shares),
    "surge_alert": Part(None),
    "tell": Part(None),
    "counted.basis": Part(d.any_change, "counts.cost"),
    "counted.credits": Part(d.any_change, "counts.credits"),
    "counted.tax": Part(d.any_change, "counts.tax"),
    "trust.bill_not_older_than": Part(d.higher),
    "trust.estimated_share": Part(d.higher, "trust.estimated_at_most", n.share),
    "steps": Part(d.more, "at.freeze", value=_freezes),  # what else they do is told of the rules that they make
    "limits": NOT_TOLD,  # of those rules too
    "digest": NOT_TOLD,
}


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


def _selecting(of: Callable[[Any], Selector]) -> Parts:
    return {
        "applies_to": Part(_wider, "applies_when_all", n.selection, of),
        "except_for": Part(
            _less_excepted, "except_when_any", n.selections, lambda selectors: tuple(map(of, selectors))
        ),
    }


_KEY: Parts = {
    "name": NOT_TOLD,
    "mode": Part(d.higher),
    **_selecting(_of_key),
    "rotate_every": Part(d.lower),
    "means": Part(d.more),
    "customer_keys": Part(None),
    "wait": Part(d.lower),
    "actions_per_day": Part(d.higher),
    "digest": NOT_TOLD,
}


def _narrower(old: Any, new: Any) -> bool:
    """A list of what is allowed, None: everything. Whatever is no longer in it is found from now on."""
    return new is not None and (old is None or d.fewer(old, new))


_NETWORK: Parts = {
    "name": NOT_TOLD,
    "mode": Part(d.higher),
    **_selecting(_of_network),
    "forbid": Part(d.more),
    "ports": Part(d.more),
    "allowed_ports": Part(d.fewer),
    "trusted": Part(d.fewer),
    "widest_v4": Part(d.higher),
    "widest_v6": Part(d.higher),
    "allowed_regions": Part(_narrower),
    "private_subnets": Part(d.more),
    "peering_cidrs": Part(_narrower),
    "keep": Part(d.fewer),
    "unattached_for": Part(d.lower),
    "mend": Part(d.more),
    "narrow_to": Part(d.any_change),
    "flow_log_destination": Part(d.any_change),
    "flow_log_role": Part(d.any_change),
    "wait": Part(d.lower),
    "actions_per_day": Part(d.higher),
    "digest": NOT_TOLD,
}
