"""Which rules apply to one machine, and why each does or does not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from costguard.domain.resources import Instance, Launch
from costguard.guards.idle.judge import gentlest_rule
from costguard.guards.rules.common import Selector
from costguard.guards.rules.idle import IdleRule
from costguard.guards.rules.spelling import tags_spare
from costguard.policy.model.ownership import OwnerSource, owner_of
from costguard.policy.model.policy import Policy
from costguard.policy.syntax.units import written


@dataclass(frozen=True, slots=True)
class Restriction:
    """One restriction of a selector: what it asks for, what the machine is, and whether it holds."""

    key: str
    wanted: str
    found: str
    holds: bool


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """One rule held against a machine. `excepted` are the exceptions of the rule that match, as written.

    `applied`: it is the one by which the machine is judged, the least destructive of those that apply.
    """

    rule: IdleRule
    asked: tuple[Restriction, ...]
    excepted: tuple[tuple[Restriction, ...], ...]
    applied: bool

    @property
    def applies(self) -> bool:
        """Whether the rule speaks of the machine."""
        return all(each.holds for each in self.asked) and not self.excepted


def matches_of(instance: Instance, rules: Sequence[IdleRule]) -> tuple[RuleMatch, ...]:
    """Every rule, the least destructive first."""
    chosen = gentlest_rule(instance, rules)
    return tuple(
        RuleMatch(
            rule,
            tuple(asked_of(instance, rule.applies_to)),
            tuple(
                tuple(asked_of(instance, each, sparing=True))
                for each in rule.except_for
                if replace(rule, except_for=(each,)).leaves_out(instance)
            ),
            applied=rule is chosen,
        )
        for rule in sorted(rules, key=IdleRule.harshness)
    )


def asked_of(instance: Instance, selector: Selector, *, sparing: bool = False) -> Iterator[Restriction]:
    """Each restriction alone, by the same comparison as the whole; `sparing` as an exception compares tags."""
    for part in fields(Selector):
        value = getattr(selector, part.name)
        if value is None:
            continue
        if part.name == "tags" and value:
            for key, pattern in value.items():
                alone = Selector(tags={key: pattern})
                holds = alone.spares(instance) if sparing else alone.matches(instance)
                yield Restriction(f"tags.{key}", pattern, _tag(instance, key, pattern, sparing=sparing), holds)
            continue
        part_alone = replace(Selector(), **{part.name: value})
        yield Restriction(part.name, written(value), _found(instance, part.name), part_alone.matches(instance))


def owners_in_line(
    instance: Instance, policy: Policy, launch: Launch | None, disowned: Collection[str]
) -> tuple[tuple[str, OwnerSource], ...]:
    """Who is told, and who would be if each before them said that it is not theirs."""
    passed, found = set(disowned), list[tuple[str, OwnerSource]]()
    while True:
        name, source = owner_of(instance, policy, launch=launch, disowned=passed)
        if not name:
            return tuple(found)
        found.append((name, source))
        passed.add(name)


def _tag(instance: Instance, key: str, pattern: str, *, sparing: bool) -> str:
    """The value of the tag that is meant; of an exception, the one by which it holds, with its own name."""
    if key in instance.tags or not sparing:
        return instance.tags.get(key, "")
    held = ((name, value) for name, value in instance.tags.items() if tags_spare({name: value}, {key: pattern}))
    return next((f"{name}: {value}" for name, value in held), "")


def _found(instance: Instance, key: str) -> str:
    """What a machine is, where a selector asks for this."""
    ref = instance.ref
    known: dict[str, Any] = {
        "clouds": ref.cloud,
        "accounts": ref.account,
        "regions": ref.region,
        "instance_types": instance.instance_type,
        "billing": instance.billing,
        "resources": ref.native_id,
        "resource_groups": instance.resource_group,
        "tags": dict(instance.tags),
    }
    return written(known[key])
