"""How rules for idle instances differ, by `changes.loosens`, and which machines fall to a harsher rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from costguard.guards.rules.common import Mode, Selector
from costguard.guards.rules.idle import IdleRule
from costguard.policy.diff.differences import Difference, Direction
from costguard.policy.diff.rule_changes import leaves_out_all_of, loosens, reaches_no_further
from costguard.policy.syntax import notation as n

IDLE = "idle_gpu"


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
            yield from _changed(section, was, now)
            yield from _falls(section, was, now, new)


def rule_words(rule: IdleRule) -> str:
    """A whole rule in one line: mode, whom it matches, the ladder."""
    parts = (n.written(rule.mode), n.selection(rule.applies_to) or "*", n.ladder(rule.ladder))
    return "; ".join(parts)


def _changed(section: str, old: IdleRule, new: IdleRule) -> Iterator[Difference]:
    for key, (value, shown) in _PARTS.items():
        if value(old) == value(new):
            continue
        mixed = _with(old, key, new)
        way = Direction.LOOSER if loosens(old, mixed) else Direction.TIGHTER
        yield Difference(section, old.name, key, shown(value(old)), shown(value(new)), way)


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
    return reaches_no_further(old.applies_to, new.applies_to) and leaves_out_all_of(new, old)


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
    return not any(set("*?[") & set(word) for word in words)


_Shown = Callable[[Any], str]


def _selector_part(name: str) -> tuple[Callable[[IdleRule], Any], _Shown]:
    return (lambda rule: getattr(rule.applies_to, name)), n.written


_PARTS: Mapping[str, tuple[Callable[[IdleRule], Any], _Shown]] = {
    "mode": (lambda rule: rule.mode, n.written),
    **{f"applies_when_all.{part.name}": _selector_part(part.name) for part in fields(Selector)},
    "except_when_any": (lambda rule: rule.except_for, n.selections),
    "idle_when_all.lasting": (lambda rule: rule.idle.lasting, n.written),
    "idle_when_all.every_gpu_max_below": (lambda rule: rule.idle.every_gpu_max_below_percent, n.percent),
    "idle_when_all.cpu_max_below": (lambda rule: rule.idle.cpu_max_below_percent, n.percent),
    "idle_when_all.network_max_below": (lambda rule: rule.idle.network_max_below_bytes_per_second, n.rate),
    "idle_when_all.power_max_below": (lambda rule: rule.idle.power_max_below_watts, n.power),
    "idle_when_all.min_coverage": (lambda rule: rule.idle.min_coverage, n.share),
    "then": (lambda rule: rule.ladder, n.ladder),
    "safety.actions_per_day": (lambda rule: rule.limits.actions_per_day, n.written),
    "safety.terminations_per_day": (lambda rule: rule.limits.terminations_per_day, n.written),
    "safety.fleet_share_per_day": (lambda rule: rule.limits.fleet_share_per_day, n.share),
    "safety.hourly_cost_stopped_per_day": (lambda rule: rule.limits.hourly_cost_stopped_per_day, n.written),
    "safety.local_disk": (lambda rule: rule.limits.local_disk, n.written),
    "safety.unstoppable": (
        lambda rule: rule.limits.unstoppable_may_terminate,
        lambda may: "terminate" if may else "hold",
    ),
}
_BOUNDS = {
    "every_gpu_max_below": "every_gpu_max_below_percent",
    "cpu_max_below": "cpu_max_below_percent",
    "network_max_below": "network_max_below_bytes_per_second",
    "power_max_below": "power_max_below_watts",
}


def _with(old: IdleRule, key: str, new: IdleRule) -> IdleRule:
    """`old` with this one part of `new`."""
    section, _, part = key.partition(".")
    if section == "applies_when_all":
        return replace(old, applies_to=replace(old.applies_to, **{part: getattr(new.applies_to, part)}))
    if section == "idle_when_all":
        field = _BOUNDS.get(part, part)
        return replace(old, idle=replace(old.idle, **{field: getattr(new.idle, field)}))
    if section == "safety":
        field = "unstoppable_may_terminate" if part == "unstoppable" else part
        return replace(old, limits=replace(old.limits, **{field: getattr(new.limits, field)}))
    if section == "mode":
        return replace(old, mode=new.mode)
    return replace(old, except_for=new.except_for) if section == "except_when_any" else replace(old, ladder=new.ladder)
