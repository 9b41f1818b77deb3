"""Tags of a policy that are nearly another: a letter off, or spelled otherwise where spelling counts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from costguard.guards.keys.rules import KeyRule
from costguard.guards.network.rules import AuditRule
from costguard.guards.rules.common import Protection
from costguard.guards.rules.idle import IdleRule
from costguard.guards.rules.spelling import spelling
from costguard.policy.model.policy import Policy

_SHORT, _LONG = 4, 8
"""From so many letters on one mistake makes a near miss, from so many on two: `env` is near too many words."""
_ORDINARY = frozenset({"project", "projects"})
"""What people call things by, though it is one letter from `protect`."""


@dataclass(frozen=True, slots=True)
class _Tag:
    """One tag of a selection, where it stands, and whether it spares what has it."""

    where: str
    key: str
    value: str
    sparing: bool


def tag_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Place and message of every near miss."""
    tags = list(_tags(policy))
    yield from _nearly_protecting(policy, tags)
    yield from _nearly_another(tags)
    yield from _other_spelling(tags)


def _nearly_protecting(policy: Policy, tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    shipped = Protection()
    known = (*shipped.tag_names, *shipped.expiry_tag_names)
    protecting = (*policy.protection.tag_names, *policy.protection.expiry_tag_names)
    for where, key in sorted({(each.where, each.key) for each in tags}):
        close = _close(key, protecting)
        if close and spelling(key) not in _ORDINARY:
            yield where, f"the tag {key} is nearly {close}, which protects; is it mistyped?"
    for key in sorted(set(protecting) - set(known)):
        close = _close(key, known)
        if close and spelling(key) not in _ORDINARY:
            yield "protect", f"the tag {key} is nearly {close}, which protects anyway; is it mistyped?"


def _nearly_another(tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    """A sparing tag that the rest of the policy writes otherwise spares nothing."""
    others = sorted({each.key for each in tags if not each.sparing})
    for where, key in sorted({(each.where, each.key) for each in tags if each.sparing}):
        close = _close(key, others)
        if close and spelling(key) not in {spelling(other) for other in others}:
            yield where, f"the tag {key} is nearly {close}, as this policy says elsewhere; is it mistyped?"


def _other_spelling(tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    """Case and separators count in what brings a machine under a rule."""
    exact = [each for each in tags if not each.sparing]
    for where, key in sorted({(each.where, each.key) for each in exact}):
        for other in sorted({each.key for each in tags if each.key != key and spelling(each.key) == spelling(key)}):
            yield where, f"the tag {key} is compared exactly here; {other}, as written elsewhere, is another tag"
    for where, key, value in sorted({(each.where, each.key, each.value) for each in exact}):
        same_key = {each.value for each in tags if each.key == key and each.value != value}
        for other in sorted(each for each in same_key if spelling(each) == spelling(value) != ""):
            yield where, f"{key}: {value} is compared exactly here; {other}, as written elsewhere, is another value"


def _tags(policy: Policy) -> Iterator[_Tag]:
    rules: tuple[IdleRule | KeyRule | AuditRule, ...] = (*policy.idle_gpu, *policy.kms_rotation, *policy.network_audit)
    for rule in rules:
        yield from _of(f"rule {rule.name}", rule.applies_to.tags, sparing=False)
        for each in rule.except_for:
            yield from _of(f"rule {rule.name}", each.tags, sparing=True)
    for budget in policy.budgets:
        yield from _of(f"budget {budget.name}", dict(budget.covers.tags), sparing=False)
    for priority_class in policy.priority_classes:
        yield from _of(f"priority class {priority_class.name}", priority_class.selects.tags, sparing=False)
    for owner in policy.owners:
        yield from _of(f"owner {owner.name}", owner.owns.tags, sparing=False)
    for exemption in policy.exemptions:
        yield from _of(exemption.where or "exceptions", exemption.owns.tags, sparing=True)


def _of(where: str, tags: Mapping[str, str] | None, *, sparing: bool) -> Iterator[_Tag]:
    for key, value in (tags or {}).items():
        yield _Tag(where, key, value, sparing)


def _close(key: str, names: Sequence[str]) -> str:
    """The nearest of `names` that is a mistake or two away, and not the same in another spelling."""
    word = spelling(key)
    if word in {spelling(name) for name in names}:
        return ""
    near = ((_mistakes(word, spelling(name)), name) for name in names if _alike(word, spelling(name)))
    return min(((count, name) for count, name in near if count <= _allowed(word)), default=(0, ""))[1]


def _alike(word: str, name: str) -> bool:
    """Whether it is worth counting; mistakes in the first letter are rare, and of short words make other words."""
    return min(len(word), len(name)) >= _SHORT and word[:1] == name[:1] and abs(len(word) - len(name)) <= _allowed(word)


def _allowed(word: str) -> int:
    return 1 if len(word) < _LONG else 2


def _mistakes(one: str, other: str) -> int:
    """Letters that are missing, too many, wrong, or changed places with the next: optimal string alignment."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, row, older = row, [i], before
        for j, theirs in enumerate(other, start=1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                best = min(best, older[j - 2] + 1)
            row.append(best)
        before = last
    return row[-1]
