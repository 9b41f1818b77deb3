"""What no single document can know: names and modes over all files of a policy. Pure.

It works on what was read, not on what was accepted, so that these mistakes are told together with all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any

from costguard.guards.rules.common import Mode
from costguard.policy.sections import SECTIONS
from costguard.policy.syntax.problems import Mark, Problem, did_you_mean, field_path
from costguard.policy.syntax.yaml_nodes import Mapping, Scalar, YamlDocument
from costguard.policy.syntax.yaml_nodes import Sequence as ListNode

_MODES = {mode.name.lower(): mode for mode in Mode}
_WITH_SHADOWS = tuple(section.key for section in SECTIONS.values() if section.has_shadows)
_WITH_MODES = tuple(section.key for section in SECTIONS.values())


class FileKind(str, Enum):
    """What a file of the policy holds."""

    MAIN = "main"
    RULES = "rules"
    OWNERS = "owners"
    EXCEPTIONS = "exceptions"
    HOLIDAYS = "holidays"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One file, read, and what it should hold."""

    kind: FileKind
    document: YamlDocument


Accepted = Sequence[tuple[PolicyFile, Any]]
"""Files with their validated documents."""


def entries(accepted: Accepted, key: str) -> Iterator[tuple[PolicyFile, tuple[str | int, ...], Any]]:
    """Every entry of one section, whichever files it is spread over, with its file and its place there."""
    for file, model in accepted:
        if file.kind in {FileKind.MAIN, FileKind.RULES}:
            for index, entry in enumerate(getattr(model, key)):
                yield file, (key, index), entry


def discounts_checked(accepted: Accepted) -> Iterator[Problem]:
    """Discounts of the same machines renew each other by their dates, so a date has one."""
    seen: dict[tuple[object, ...], int] = {}
    mains = ((file, model) for file, model in accepted if file.kind is FileKind.MAIN)
    for file, index, entry in ((file, index, each) for file, model in mains for index, each in enumerate(model.prices)):
        if entry.discount is None:
            continue
        key = (entry.cloud, entry.account, frozenset(entry.instance_types or ()), entry.since)
        mark, _ = file.document.locate(("prices", index))
        if key in seen:
            since = "" if entry.since is None else f" since {entry.since}"
            message = f"a second discount for the same machines{since}; the first is on line {seen[key]}"
            fix = "keep one of them, or give the newer one the date it begins on"
            yield file.document.problem(mark, field_path(("prices", index)), message, fix)
        else:
            seen[key] = mark.line


def cross_checked(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    """Every mistake that shows only between entries or files."""
    yield from _harsher_modes(files)
    yield from _shadows_with_modes(files)
    for section in SECTIONS.values():
        yield from _twice(files, section.key, ("name",), section.one)
    yield from _twice(files, "owners", ("name",), "owner")
    yield from _twice(files, "accounts", ("cloud", "id"), "account")
    yield from _twice(files, "priority_classes", ("name",), "priority class")
    yield from _rollouts(files)
    yield from _aimless_exceptions(files)
    yield from _no_rules(files)


def _entries(files: Sequence[PolicyFile], key: str) -> Iterator[tuple[YamlDocument, str, Mapping]]:
    """The mappings of a list, whichever files it is spread over, with the path to each."""
    own = {"owners": FileKind.OWNERS, "exceptions": FileKind.EXCEPTIONS}.get(key)
    for file in files:
        root = file.document.root
        listed = root if file.kind is own else root.items.get(key) if isinstance(root, Mapping) else None
        prefix: tuple[str, ...] = () if file.kind is own else (key,)
        if isinstance(listed, ListNode):
            for index, entry in enumerate(listed.items):
                if isinstance(entry, Mapping):
                    yield file.document, field_path((*prefix, index)), entry


def _harsher_modes(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    roots = [file.document.root for file in files if file.kind is FileKind.MAIN]
    main = next((root for root in roots if isinstance(root, Mapping)), None)
    if main is None:
        return
    written = main.items.get("mode")
    ceiling = _mode(main) if written is not None else Mode.OBSERVE
    if ceiling is None:
        return
    for document, path, rule in (entry for key in _WITH_MODES for entry in _entries(files, key)):
        mode = _mode(rule)
        if mode is not None and mode > ceiling:
            yield document.problem(
                rule.items["mode"].mark,
                f"{path}.mode",
                f"{mode.name.lower()} is harsher than the policy's {ceiling.name.lower()}; a rule may only be gentler",
                f"write {ceiling.name.lower()} or leave the key out, or raise mode in costguard.yaml",
            )


def _shadows_with_modes(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    for document, path, rule in (entry for key in _WITH_SHADOWS for entry in _entries(files, key)):
        shadow = rule.items.get("shadow")
        if isinstance(shadow, Scalar) and shadow.value is True and "mode" in rule.items:
            message = "a rule in the shadow decides nothing, whatever its mode"
            yield document.problem(rule.keys["mode"], f"{path}.mode", message, "leave mode out, or shadow")


def _mode(mapping: Mapping) -> Mode | None:
    node = mapping.items.get("mode")
    return _MODES.get(str(node.value)) if isinstance(node, Scalar) else None


def _twice(files: Sequence[PolicyFile], key: str, names: tuple[str, ...], what: str) -> Iterator[Problem]:
    seen: dict[tuple[str, ...], str] = {}
    for document, path, entry in _entries(files, key):
        nodes = [entry.items.get(name) for name in names]
        scalars = [node for node in nodes if isinstance(node, Scalar)]
        if len(scalars) != len(names):
            continue
        identity = tuple(scalar.text.casefold() for scalar in scalars)
        mark = scalars[-1].mark
        if identity in seen:
            shown = " ".join(scalar.text for scalar in scalars)
            message = f"a second {what} {shown}; the first is at {seen[identity]}"
            yield document.problem(mark, f"{path}.{names[-1]}", message, "give it a name of its own, or remove one")
        else:
            seen[identity] = f"{document.path}:{mark.line}"


def _rollouts(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    """A scope twice; a team, an account or a rule in the shadow that this policy does not know."""
    seen: dict[tuple[str, str], str] = {}
    accounts = {_text(entry, "id") for _, _, entry in _entries(files, "accounts")}
    joins = any(_is_true(entry, "organisation") for _, _, entry in _entries(files, "accounts"))
    teams = {_text(entry, "name") for _, _, entry in _entries(files, "owners")}
    teams |= {_text(entry, "owner") for _, _, entry in _entries(files, "accounts")} - {""}
    shadows = {_text(entry, "name") for _, _, entry in _entries(files, "idle_gpu") if _is_true(entry, "shadow")}
    for document, path, entry in _entries(files, "rollout"):
        team, account = _text(entry, "team"), _text(entry, "account")
        scope, where = (team, account), f"{document.path}:{entry.mark.line}"
        if any(scope) and scope in seen:
            message = f"a second entry for {' '.join(filter(None, scope))}; the first is at {seen[scope]}"
            yield document.problem(entry.mark, path, message, "keep one of them: their steps would contradict")
        seen.setdefault(scope, where)
        if team not in {"", "*", *teams}:
            mark, fix = entry.items["team"].mark, did_you_mean(team, sorted(teams)) if teams else ""
            message = f"{team!r} is no owner that this policy names"
            yield document.problem(mark, f"{path}.team", message, fix or "name it in owners.yaml: it has to be told")
        if account and accounts and not joins and account not in accounts:
            message = f"{account} is not among the accounts"
            mark, fix = entry.items["account"].mark, did_you_mean(account, sorted(accounts))
            yield document.problem(mark, f"{path}.account", message, fix)
        yield from _conditions(document, path, entry, shadows)


def _conditions(document: YamlDocument, path: str, entry: Mapping, shadows: AbstractSet[str]) -> Iterator[Problem]:
    steps = entry.items.get("steps")
    for index, step in enumerate(steps.items if isinstance(steps, ListNode) else ()):
        when = step.items.get("when") if isinstance(step, Mapping) else None
        rule = _text(when, "in_shadow") if isinstance(when, Mapping) else ""
        if isinstance(when, Mapping) and rule and rule not in shadows:
            message = f"{rule!r} is no rule under idle_gpu with shadow: true, so nothing of it can be measured"
            fix = did_you_mean(rule, sorted(shadows)) if shadows else "add a rule of that name with shadow: true"
            yield document.problem(when.items["in_shadow"].mark, f"{path}.steps[{index}].when.in_shadow", message, fix)


def _text(mapping: Mapping, key: str) -> str:
    node = mapping.items.get(key)
    return node.text if isinstance(node, Scalar) else ""


def _is_true(mapping: Mapping, key: str) -> bool:
    node = mapping.items.get(key)
    return isinstance(node, Scalar) and node.value is True


def _aimless_exceptions(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    for document, path, entry in _entries(files, "exceptions"):
        aims = [key for key in ("resource", "applies_when_all") if key in entry.items]
        if len(aims) != 1:
            found = "both resource and applies_when_all" if aims else "neither resource nor applies_when_all"
            mark = entry.keys[aims[1]] if aims else entry.mark
            yield document.problem(mark, path, f"an exception names one of them; found {found}", "keep one of the two")


def _no_rules(files: Sequence[PolicyFile]) -> Iterator[Problem]:
    """A policy without rules of any kind and budgets would guard nothing, in silence."""
    if any(file.document.problems for file in files):
        return
    roots = [file.document.root for file in files if file.kind in {FileKind.MAIN, FileKind.RULES}]
    listed = [root.items.get(key) for root in roots if isinstance(root, Mapping) for key in _WITH_MODES]
    if any(node is not None and not (isinstance(node, ListNode) and not node.items) for node in listed):
        return
    for file in files:
        root = file.document.root
        if file.kind is FileKind.MAIN and isinstance(root, Mapping):
            node = root.items.get("idle_gpu")
            mark = node.mark if node is not None else Mark()
            fix = "add a rule under idle_gpu, here or in policies/*.yaml"
            yield file.document.problem(mark, "idle_gpu", "no rule anywhere: nothing would be guarded", fix)
