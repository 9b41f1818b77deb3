"""What a budget does at which share: `at: {100%: [warn, stop_idle], 120%: [{freeze: {of: [gpu]}}]}`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from typing_extensions import assert_never

from costguard.domain.actions import Verb
from costguard.guards.budget.rules import SHORTLY_IDLE, BudgetStep, StepKind
from costguard.policy.syntax import units
from costguard.policy.syntax.problems import BadValueError, did_you_mean
from costguard.policy.syntax.time_values import SHORTEST_WAITS, read_wait, window

MOST_PERCENT = Decimal(1000)
MOST_SHARES = 20  # alerts of one budget; more are noise, and each is a message
MOST_NAMES = 50  # of one step
DEFAULT_WAIT = timedelta(hours=4)
_HUNDRED = Decimal(100)
_EXAMPLE = "[warn, {stop_idle: {idle_for: 1h, wait: 4h}}]"
_STOP_EXAMPLE = "{stop: {classes: [dev]}}"
FREEZE_EXAMPLE = "{freeze: {of: [no-new-gpus]}}"
_WORDS: Mapping[str, StepKind | None] = {
    "warn": None,
    "stop_idle": StepKind.STOP_IDLE,
    "stop": StepKind.STOP_CLASSES,
    "freeze": StepKind.FREEZE,
}
WORD_OF = {kind: word for word, kind in _WORDS.items() if kind is not None}
_OPTIONS = {"stop_idle": ("idle_for", "wait"), "stop": ("classes", "wait"), "freeze": ("of", "wait")}
_EXAMPLES = {"stop": _STOP_EXAMPLE, "freeze": FREEZE_EXAMPLE}
_NAMING = frozenset({StepKind.STOP_CLASSES, StepKind.FREEZE})


@dataclass(frozen=True, slots=True)
class _Named:
    """What a step may name: one of them, where they are listed, and the words of its mistakes."""

    one: str
    listed: str
    example: str
    does: str
    most: str
    fewer: str


_CLASSES = _Named("a priority class", "priority_classes", _STOP_EXAMPLE, "stops", "ranks", "stop fewer, larger classes")
_FREEZES = _Named(
    "a launch freeze", "launch_freezes", FREEZE_EXAMPLE, "freezes", "overlooks", "freeze fewer, larger units"
)


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """One step as it stands under its share; `kind` None is `warn`.

    `freezes` empty: it does not say which, and who knows the policy's launch freezes says which it could.
    """

    kind: StepKind | None
    wait: timedelta = timedelta(0)
    idle_for: timedelta = SHORTLY_IDLE.lasting
    classes: tuple[str, ...] = ()
    freezes: tuple[str, ...] = ()


def share_of_budget(raw: object) -> Decimal:
    """`80%` → 0.8; above 0 and at most 1000 %."""
    percent = units.parse_percent(raw, MOST_PERCENT)
    if percent == 0:
        raise BadValueError("0% is reached before anything is spent", "write a share such as 50%")
    return percent / _HUNDRED


def parse_budget_step(raw: object) -> WrittenStep:
    """`stop_idle`, or `{stop: {classes: [dev], wait: 8h}}`; without a wait 4h."""
    if isinstance(raw, str):
        return _step(raw, {}, ())
    if not isinstance(raw, dict) or len(raw) != 1:
        fix = "write each step as its own item, with a dash or comma" if isinstance(raw, dict) else f"write {_EXAMPLE}"
        raise BadValueError("a step is one word, or one word with its options", fix)
    word, options = next(iter(raw.items()))
    if word in _WORDS and (word not in _OPTIONS or not isinstance(options, dict)):
        message = f"{options!r} is not what {word} takes" if word in _OPTIONS else f"{word} takes no options"
        fix = f"write {_EXAMPLES[word]}" if word in _EXAMPLES else f"write {word} alone"
        raise BadValueError(message, fix, at=(word,))
    return _step(word, options if isinstance(options, dict) else {}, (word,))


def check_steps(steps: tuple[WrittenStep, ...]) -> tuple[WrittenStep, ...]:
    """The steps of one share, the gentlest first, each once."""
    if not steps:
        raise BadValueError("an empty list does nothing", "write [warn]")
    for index, step in enumerate(steps):
        before = [earlier.kind for earlier in steps[:index]]
        if step.kind in before:
            message = f"{_word(step.kind)} is there twice"
            raise BadValueError(message, "keep one of them", at=(index,))
        harsher = next((kind for kind in before if _rank(kind) > _rank(step.kind)), None)
        if harsher is not None:
            message = f"{_word(step.kind)} is gentler than {_word(harsher)} before it"
            raise BadValueError(message, f"put {_word(step.kind)} first", at=(index,))
    return steps


def check_at(at: dict[str, tuple[WrittenStep, ...]]) -> dict[str, tuple[WrittenStep, ...]]:
    """That shares can be read and are there once, and that what is harsher never comes earlier."""
    if not at:
        raise BadValueError("an empty mapping does nothing", "leave the key out to alert only")
    shares: dict[Decimal, str] = {}
    for text in at:
        try:
            share = share_of_budget(text)
        except BadValueError as err:
            raise BadValueError(err.message, err.fix, at=(text,), key=True) from err
        if share in shares:
            message = f"{text} is the same share as {shares[share]}"
            raise BadValueError(message, "keep one of them, with the steps of both", at=(text,), key=True)
        shares[share] = text
    if len(shares) > MOST_SHARES:
        message = f"{len(shares)} shares are more than anybody follows; at most {MOST_SHARES}"
        raise BadValueError(message, "keep those at which something else happens")
    ordered = [(shares[share], index, step) for share in sorted(shares) for index, step in _acting(at[shares[share]])]
    for place, (text, index, step) in enumerate(ordered):
        _in_order(step, text, index, ordered[:place])
    return at


def shares_at(at: Mapping[str, tuple[WrittenStep, ...]]) -> tuple[Decimal, ...]:
    """The shares at which something happens: an alert in any case."""
    return tuple(sorted(share_of_budget(text) for text in at))


def budget_steps(at: Mapping[str, tuple[WrittenStep, ...]]) -> tuple[BudgetStep, ...]:
    """The steps that do more than alert, from the lowest share on."""
    found = []
    for text in sorted(at, key=share_of_budget):
        for _, step in _acting(at[text]):
            if step.kind is not None:
                lasting = step.idle_for if step.kind is StepKind.STOP_IDLE else SHORTLY_IDLE.lasting
                idle = replace(SHORTLY_IDLE, lasting=lasting)
                found.append(BudgetStep(share_of_budget(text), step.kind, step.wait, idle, step.classes, step.freezes))
    return tuple(found)


def _acting(steps: tuple[WrittenStep, ...]) -> list[tuple[int, WrittenStep]]:
    return [(index, step) for index, step in enumerate(steps) if step.kind is not None]


def _in_order(step: WrittenStep, text: str, index: int, before: list[tuple[str, int, WrittenStep]]) -> None:
    for earlier, _, other in before:
        if _rank(other.kind) > _rank(step.kind):
            message = f"{_word(step.kind)} at {text} comes after {_word(other.kind)} at {earlier}, which is harsher"
            raise BadValueError(message, f"put {_word(step.kind)} at {earlier} or below", at=(text, index))
        if step.kind is other.kind and step.kind not in _NAMING:
            message = f"{_word(step.kind)} is in force from {earlier} on already"
            raise BadValueError(message, "keep one of them", at=(text, index))
        for place, name in enumerate(step.classes):
            if name in other.classes:
                message = f"{name} is stopped from {earlier} on already"
                fix = "name only what is stopped in addition"
                raise BadValueError(message, fix, at=(text, index, "stop", "classes", place))
        for place, name in enumerate(step.freezes):
            if name in other.freezes:
                message = f"{name} is in force from {earlier} on already"
                raise BadValueError(message, "keep one of them", at=(text, index, "freeze", "of", place))


def _step(word: str, options: Mapping[str, object], at: tuple[str, ...]) -> WrittenStep:
    if word not in _WORDS:
        message = f"{word!r} is not a step of a budget; expected {', '.join(_WORDS)}"
        raise BadValueError(message, did_you_mean(word, _WORDS), at=at, key=bool(at))
    for key in options:
        if key not in _OPTIONS[word]:
            message = f"unknown key {key!r}"
            raise BadValueError(message, f"{word} takes {' and '.join(_OPTIONS[word])}", at=(*at, key))
    kind = _WORDS[word]
    if kind is None:
        return WrittenStep(None)
    wait = DEFAULT_WAIT
    if "wait" in options:
        wait = read_wait(options["wait"], word, SHORTEST_WAITS[Verb.STOP], (*at, "wait"))
    if kind is StepKind.STOP_IDLE:
        lasting = _idle_for(options["idle_for"], (*at, "idle_for")) if "idle_for" in options else SHORTLY_IDLE.lasting
        return WrittenStep(kind, wait, lasting)
    if kind is StepKind.STOP_CLASSES:
        return WrittenStep(kind, wait, classes=_classes(options, at))
    if kind is StepKind.FREEZE:
        return WrittenStep(kind, wait, freezes=_names(options["of"], _FREEZES, (*at, "of")) if "of" in options else ())
    assert_never(kind)


def _classes(options: Mapping[str, object], at: tuple[str, ...]) -> tuple[str, ...]:
    if "classes" not in options:
        message = "stop says no classes, and never means everything"
        raise BadValueError(message, f"write {_STOP_EXAMPLE}; classes are listed in priority_classes", at=at)
    return _names(options["classes"], _CLASSES, (*at, "classes"))


def _names(raw: object, what: _Named, at: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(raw, tuple):
        fix = f"write [{raw}]" if isinstance(raw, str) else f"write {what.example}"
        message = f"expected a list of {what.listed.replace('_', ' ')}"
        raise BadValueError(message, fix, at=at)
    if not raw:
        message = f"an empty list {what.does} nothing"
        raise BadValueError(message, f"write {what.example}", at=at)
    if len(raw) > MOST_NAMES:
        message = f"{len(raw)} {what.listed.rpartition('_')[2]} are more than anybody {what.most}; at most {MOST_NAMES}"
        raise BadValueError(message, what.fewer, at=at)
    names: list[str] = []
    for index, name in enumerate(raw):
        if not isinstance(name, str):
            message = f"expected the name of {what.one}, found {name}"
            raise BadValueError(message, f"names are listed in {what.listed}", at=(*at, index))
        if name in names:
            message = f"{name!r} is there twice"
            raise BadValueError(message, "keep one of them", at=(*at, index))
        names.append(name)
    return tuple(names)


def _idle_for(raw: object, at: tuple[str, ...]) -> timedelta:
    try:
        return window(raw)
    except BadValueError as err:
        raise BadValueError(err.message, err.fix, at=at) from err


def _rank(kind: StepKind | None) -> int:
    return -1 if kind is None else kind.harshness


def _word(kind: StepKind | None) -> str:
    return "warn" if kind is None else WORD_OF[kind]
