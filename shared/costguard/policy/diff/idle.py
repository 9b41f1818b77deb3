"""How rules for idle instances differ and which way, and which machines fall to a harsher rule. Pure.

Tightening applies at once; loosening restarts the current wait. What cannot be proved a tightening counts as a
loosening: that costs one more wait, the other mistake could cost a machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from costguard.domain.money import Money
from costguard.guards.rules.common import Bars, Consent, Limits, Mode, Scarce, Selector, Step
from costguard.guards.rules.idle import IdleRule
from costguard.guards.rules.spelling import spares_no_less
from costguard.policy.diff import differences as d
from costguard.policy.diff.differences import NOT_TOLD, Difference, Direction, Part, Parts
from costguard.policy.syntax import units as n

IDLE = "idle_gpu"
_SCARCE_RANK = {Scarce.HOLD: 0, Scarce.ASK: 1, Scarce.STOP: 2}
_CONSENT_RANK = {Consent.KEEP: 0, Consent.ASK: 1, Consent.LOSE: 2}
_GLOB_SIGNS = frozenset("*?[")


def loosens(old: IdleRule, new: IdleRule) -> bool:
    """False only if `new` provably never acts on more, sooner or harder than `old`."""
    return d.loosened(old, new, _RULE)


def idle_differences(old: Sequence[IdleRule], new: Sequence[IdleRule], section: str = IDLE) -> Iterator[Difference]:
    """What of the rules is not as it was, rule by rule in order of their names."""
    before, after = {rule.name: rule for rule in old}, {rule.name: rule for rule in new}
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None and now is not None:
            # one that only observes stops nothing, and keeps what is harsher from its machines
            way = Direction.TIGHTER if now.mode is Mode.OBSERVE else Direction.LOOSER
            yield Difference(section, name, "", "", rule_words(now), way)
        elif was is not None and now is None:
            yield Difference(section, name, "", rule_words(was), "", Direction.TIGHTER)
            yield from _falls(section, was, None, new)
        elif was is not None and now is not None:
            yield from d.compared(section, name, was, now, _RULE)
            yield from _falls(section, was, now, new)


def rule_words(rule: IdleRule) -> str:
    """A whole rule in one line: mode, whom it matches, the ladder."""
    parts = (n.written(rule.mode), n.selection(rule.applies_to) or "*", n.ladder(rule.ladder))
    return "; ".join(parts)


def _falls(section: str, old: IdleRule, new: IdleRule | None, rules: Sequence[IdleRule]) -> Iterator[Difference]:
    """Harsher rules that may now be the gentlest one for machines that `old` was the gentlest for."""
    keeps_all = new is not None and _reach(new, old)
    for other in rules:
        if other.name == old.name or other.mode is Mode.OBSERVE or other.harshness() <= old.harshness():
            continue
        still_before = new is not None and keeps_all and new.harshness() <= other.harshness()
        if not still_before and not _apart(old, other):
            yield Difference(section, old.name, "falls_to", "", other.name, Direction.LOOSER)


def _reach(new: IdleRule, old: IdleRule) -> bool:
    """Whether `new` certainly applies to every machine that `old` applied to."""
    return reaches_no_further(old.applies_to, new.applies_to) and _leaves_out_all_of(new, old)


def _apart(one: IdleRule, other: IdleRule) -> bool:
    """Whether no machine can be in both: different plain words where each machine has one, or all of it left out."""
    a, b = one.applies_to, other.applies_to
    words = ((a.clouds, b.clouds), (a.accounts, b.accounts), (a.regions, b.regions))
    if any(x is not None and y is not None and _plain(x) and _plain(y) and not set(x) & set(y) for x, y in words):
        return True
    if a.billing is not None and b.billing is not None and not set(a.billing) & set(b.billing):
        return True
    tags, theirs = a.tags or {}, b.tags or {}
    if any(_plain((tags[k], theirs[k])) and tags[k] != theirs[k] for k in tags.keys() & theirs.keys()):
        return True
    return any(reaches_no_further(a, kept) for kept in other.except_for)


def _plain(words: Sequence[str]) -> bool:
    return not any(_GLOB_SIGNS & set(word) for word in words)


def reaches_no_further(inner: Selector, outer: Selector) -> bool:
    """Whether everything `inner` matches is certainly matched by `outer`."""
    return not d.loosened(outer, inner, _SELECTOR)


def spares_all_of(kept: Selector, wider: Selector) -> bool:
    """Whether everything that `kept` spares, tags in any spelling, is certainly spared by `wider`."""
    return not d.loosened(wider, kept, _SPARING)


def _leaves_out_all_of(old: IdleRule, new: IdleRule) -> bool:
    """Whether every machine that an exception of `old` takes out is certainly taken out of `new`, too."""
    # see `IdleRule.leaves_out`
    covers = spares_all_of if new.cause is None and old.cause is None else reaches_no_further
    return all(any(covers(kept, wider) for wider in new.except_for) for kept in old.except_for)


def _more_globs(old: Sequence[str] | None, new: Sequence[str] | None) -> bool:
    """Whether the second list of patterns may match what the first does not; None does not restrict."""
    if old is None:
        return False
    return new is None or not all(any(_covers(outer, inner) for outer in old) for inner in new)


def _covers(outer: str, inner: str) -> bool:
    """Equal, or `inner` is one plain value that `outer` matches, or `outer` matches anything."""
    return outer in {inner, "*"} or (not _GLOB_SIGNS & set(inner) and fnmatchcase(inner, outer))


def _more_words(old: Sequence[Any] | None, new: Sequence[Any] | None) -> bool:
    return old is not None and (new is None or not set(new) <= set(old))


def _more_tags(old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> bool:
    if old is None or new == {}:
        return False
    if not old or new is None:
        return True  # an empty mapping matches nothing
    return not all(key in new and _covers(pattern, new[key]) for key, pattern in old.items())


_SELECTOR: Parts = {
    "clouds": Part(_more_globs),
    "accounts": Part(_more_globs),
    "regions": Part(_more_globs),
    "instance_types": Part(_more_globs),
    "billing": Part(_more_words),
    "tags": Part(_more_tags),
    "resources": Part(_more_words),
    "resource_groups": Part(_more_globs),
}
_SPARING: Parts = {**_SELECTOR, "tags": Part(lambda old, new: not spares_no_less(new, old))}


def _higher(old: float | None, new: float | None) -> bool:
    """A bound left out restricts nothing."""
    return old is not None and (new is None or new > old)


def _harder(old: Sequence[Step], new: Sequence[Step]) -> bool:
    """Not the same steps from the first on, none of them sooner; the last ones may be missing.

    A step taken out of the middle brings the next one forward, so it is not gentler.
    """
    return len(new) > len(old) or any(
        mine.verb is not theirs.verb or mine.wait < theirs.wait for mine, theirs in zip(new, old, strict=False)
    )


def _higher_caps(old: Sequence[Money], new: Sequence[Money]) -> bool:
    caps = {money.currency: money.amount for money in old}
    return any(money.currency not in caps or money.amount > caps[money.currency] for money in new)


def _fewer_scarce(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> bool:
    """What is on the list no more is stopped as any other type."""
    before, after = (set(Limits(scarce_types=names).scarce_names) for names in (old, new))
    return not before <= after


def amounts_above_looser(old: Sequence[Money] | None, new: Sequence[Money] | None) -> bool:
    """Another currency, or a higher amount, lets fewer people decide on more; without any they decide on all."""
    if not new:
        return True
    if not old:
        return False
    before = {money.currency: money.amount for money in old}
    return any(money.currency not in before or money.amount > before[money.currency] for money in new)


_bound = partial(Part, _higher)
_RULE: Parts = {
    "name": Part(d.any_change, told=False),
    "mode": Part(d.higher),
    **{f"applies_to.{name}": Part(part.looser, f"applies_when_all.{name}") for name, part in _SELECTOR.items()},
    "except_for": Part(lambda old, new: not _leaves_out_all_of(old, new), "except_when_any", n.selections, whole=True),
    "idle.lasting": Part(d.lower, "idle_when_all.lasting"),
    "idle.every_gpu_max_below_percent": _bound("idle_when_all.every_gpu_max_below", n.percent),
    "idle.cpu_max_below_percent": _bound("idle_when_all.cpu_max_below", n.percent),
    "idle.network_max_below_bytes_per_second": _bound("idle_when_all.network_max_below", n.rate),
    "idle.power_max_below_watts": _bound("idle_when_all.power_max_below", n.power),
    "idle.min_coverage": Part(d.lower, "idle_when_all.min_coverage", n.share),
    "ladder": Part(_harder, "then", n.ladder),
    "limits.actions_per_day": Part(d.higher, "safety.actions_per_day"),
    "limits.terminations_per_day": Part(
        lambda old, new: new.limits.terminations > old.limits.terminations, "safety.terminations_per_day", whole=True
    ),
    "limits.fleet_share_per_day": Part(d.higher, "safety.fleet_share_per_day", n.share),
    "limits.hourly_cost_stopped_per_day": Part(_higher_caps, "safety.hourly_cost_stopped_per_day"),
    "limits.local_disk": Part(lambda old, new: _CONSENT_RANK[new] > _CONSENT_RANK[old], "safety.local_disk"),
    "limits.local_disk_approver_above": Part(amounts_above_looser, "safety.local_disk_approver_above"),
    "limits.scarce": Part(lambda old, new: _SCARCE_RANK[new] > _SCARCE_RANK[old], "safety.scarce"),
    "limits.scarce_types": Part(_fewer_scarce, "safety.scarce_types"),
    "limits.unstoppable_may_terminate": Part(
        d.higher, "safety.unstoppable", lambda may: "terminate" if may else "hold"
    ),
    "cause": Part(d.any_change),
    # told of the policy, see `policies.py`
    "termination_protection_bars": Part(lambda _, new: new is not Bars.EVERYTHING, told=False),
    "digest": NOT_TOLD,
}
