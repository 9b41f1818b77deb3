"""Whether a changed rule may do more than the one it replaces. Pure.

Tightening applies at once; loosening restarts the current wait. What cannot be proved a tightening counts
as a loosening: that costs one more wait, the other mistake could cost a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from costguard.guards.rules.cloud_protection import Bars
from costguard.guards.rules.common import Consent, Limits, Selector, Step
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.guards.rules.spelling import spares_no_less
from costguard.policy.model.terms import rule_digest, rule_from_terms, terms, with_digest

__all__ = [
    "leaves_out_all_of",
    "loosens",
    "reaches_no_further",
    "rule_digest",
    "rule_from_terms",
    "spares_all_of",
    "terms",
    "with_digest",
]

_CONSENT_RANK = {Consent.KEEP: 0, Consent.ASK: 1, Consent.LOSE: 2}
_GLOB_SIGNS = frozenset("*?[")


def loosens(old: IdleRule, new: IdleRule) -> bool:
    """False only if `new` provably never acts on more, sooner or harder than `old`."""
    tightened = (
        new.name == old.name
        and new.cause == old.cause
        and new.mode <= old.mode
        and _within(new.applies_to, old.applies_to)
        and leaves_out_all_of(old, new)
        and _stricter_bounds(new.idle, old.idle)
        and _gentler_ladder(new.ladder, old.ladder)
        and _lower_limits(new.limits, old.limits)
        and new.termination_protection_bars in {old.termination_protection_bars, Bars.EVERYTHING}
    )
    return not tightened


def _stricter_bounds(new: IdleBounds, old: IdleBounds) -> bool:
    """Longer, more fully covered, and every bound of old still there and no higher."""
    return (
        new.lasting >= old.lasting
        and new.min_coverage >= old.min_coverage
        and new.every_gpu_max_below_percent <= old.every_gpu_max_below_percent
        and _no_higher(new.cpu_max_below_percent, old.cpu_max_below_percent)
        and _no_higher(new.network_max_below_bytes_per_second, old.network_max_below_bytes_per_second)
        and _no_higher(new.power_max_below_watts, old.power_max_below_watts)
    )


def _no_higher(new: float | None, old: float | None) -> bool:
    """A bound left out restricts nothing."""
    return old is None or (new is not None and new <= old)


def _gentler_ladder(new: Sequence[Step], old: Sequence[Step]) -> bool:
    """The same steps from the first on, none of them sooner; the last ones may be missing.

    A step taken out of the middle brings the next one forward, so it is not gentler.
    """
    return len(new) <= len(old) and all(
        mine.verb is theirs.verb and mine.wait >= theirs.wait for mine, theirs in zip(new, old, strict=False)
    )


def _lower_limits(new: Limits, old: Limits) -> bool:
    caps = {money.currency: money.amount for money in old.hourly_cost_stopped_per_day}
    return (
        new.actions_per_day <= old.actions_per_day
        and new.terminations <= old.terminations
        and new.fleet_share_per_day <= old.fleet_share_per_day
        and all(
            money.currency in caps and money.amount <= caps[money.currency] for money in new.hourly_cost_stopped_per_day
        )
        and _CONSENT_RANK[new.local_disk] <= _CONSENT_RANK[old.local_disk]
        and (old.unstoppable_may_terminate or not new.unstoppable_may_terminate)
    )


def _within(inner: Selector, outer: Selector) -> bool:
    """Whether everything `inner` matches is certainly matched by `outer`."""
    return _rest_within(inner, outer) and _tags_covered(inner.tags, outer.tags)


def leaves_out_all_of(old: IdleRule, new: IdleRule) -> bool:
    """Whether every machine that an exception of `old` takes out is certainly taken out of `new`, too."""
    covers = spares_all_of if new.cause is None and old.cause is None else _within  # see `IdleRule.leaves_out`
    return all(any(covers(kept, wider) for wider in new.except_for) for kept in old.except_for)


def spares_all_of(kept: Selector, wider: Selector) -> bool:
    """Whether everything that `kept` spares, tags in any spelling, is certainly spared by `wider`."""
    return _rest_within(kept, wider) and spares_no_less(kept.tags, wider.tags)


def _rest_within(inner: Selector, outer: Selector) -> bool:
    return (
        _covered(inner.clouds, outer.clouds)
        and _covered(inner.accounts, outer.accounts)
        and _covered(inner.regions, outer.regions)
        and _covered(inner.instance_types, outer.instance_types)
        and _covered(inner.resource_groups, outer.resource_groups)
        and (outer.billing is None or (inner.billing is not None and set(inner.billing) <= set(outer.billing)))
        and (outer.resources is None or (inner.resources is not None and set(inner.resources) <= set(outer.resources)))
    )


def _covered(inner: Sequence[str] | None, outer: Sequence[str] | None) -> bool:
    if outer is None:
        return True
    return inner is not None and all(any(_pattern_covered(one, other) for other in outer) for one in inner)


def _pattern_covered(inner: str, outer: str) -> bool:
    """Equal, or `inner` is one plain value that `outer` matches, or `outer` matches anything."""
    return outer in {inner, "*"} or (not _GLOB_SIGNS & set(inner) and fnmatchcase(inner, outer))


def _tags_covered(inner: Mapping[str, str] | None, outer: Mapping[str, str] | None) -> bool:
    if outer is None or inner == {}:
        return True
    if not outer:
        return False  # an empty mapping matches nothing
    return inner is not None and all(
        key in inner and _pattern_covered(inner[key], pattern) for key, pattern in outer.items()
    )


def reaches_no_further(inner: Selector, outer: Selector) -> bool:
    """Whether everything `inner` matches is certainly matched by `outer`."""
    return _within(inner, outer)
