"""Rules for idle instances as users write them, and what they compile to. Needs pydantic.

The ladder of a rule: `then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from costguard.domain.actions import Verb
from costguard.guards.rules.common import Limits, Mode, Selector, Step
from costguard.guards.rules.idle import SHIPPED_BOUNDS, IdleBounds, IdleRule
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import (
    Document,
    Entry,
    LimitsDocument,
    Place,
    SelectorDocument,
    SelectorDocuments,
    Whole,
    made,
)
from costguard.policy.syntax import time_values as times
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError, did_you_mean
from costguard.policy.syntax.yaml_nodes import Sequence
from costguard.policy.syntax.yaml_nodes import YamlDocument as File

_IDLE = IdleBounds()
_LIMITS = Limits()
_SIGNALS = frozenset({"every_gpu_max_below", "cpu_max_below", "network_max_below", "power_max_below"})
DEFAULT_WAITS = {
    Verb.WARN: timedelta(0),
    Verb.SNAPSHOT: timedelta(0),
    Verb.STOP: timedelta(hours=24),
    Verb.TERMINATE: timedelta(days=7),
}
_EXAMPLE = "[warn, {stop: {wait: 24h}}]"
_WORDS = {verb.value: verb for verb in DEFAULT_WAITS}


def parse_step(raw: object) -> Step:
    """`stop`, or `{stop: {wait: 24h}}`; without a wait its default: stop 24h, terminate 7d."""
    if isinstance(raw, str):
        verb = _verb(raw)
        return Step(verb, DEFAULT_WAITS[verb])
    if not isinstance(raw, dict) or len(raw) != 1:
        fix = "write each verb as its own item, with a dash or comma" if isinstance(raw, dict) else f"write {_EXAMPLE}"
        raise BadValueError("a step is one verb, or one verb with its wait", fix)
    word, options = next(iter(raw.items()))
    verb = _verb(word)
    if not isinstance(options, dict):
        message = f"{options!r} is not what a step takes"
        raise BadValueError(message, f"write {{{word}: {{wait: 24h}}}}", at=(word,))
    for key in options:
        if key != "wait":
            message = f"unknown key {key!r}"
            raise BadValueError(message, "a step takes only wait", at=(word, key))
    if "wait" not in options:
        return Step(verb, DEFAULT_WAITS[verb])
    return Step(verb, _wait(verb, options["wait"]))


def check_ladder(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with the warning that always comes first; each verb once, terminate last and behind stop."""
    if not steps:
        raise BadValueError("an empty ladder does nothing", f"write {_EXAMPLE}")
    verbs = [step.verb for step in steps]
    for index, verb in enumerate(verbs):
        if verb in verbs[:index]:
            message = f"{verb.value} is there twice"
            raise BadValueError(message, "keep one of them", at=(index,))
        if verb is Verb.WARN and index > 0:
            raise BadValueError("warn comes first", "owners are warned again before terminate in any case", at=(index,))
        if verb is Verb.TERMINATE and Verb.STOP not in verbs[:index]:
            raise BadValueError("terminate without a stop before it", "put stop before it", at=(index,))
        if verb is Verb.TERMINATE and index != len(verbs) - 1:
            raise BadValueError("nothing can follow terminate", "put terminate last", at=(index,))
    if verbs[0] is Verb.WARN:
        return steps
    return (Step(Verb.WARN, timedelta(0)), *steps)


def _verb(word: str) -> Verb:
    if word in _WORDS:
        return _WORDS[word]
    message = f"{word!r} is not a step; expected {', '.join(_WORDS)}"
    raise BadValueError(message, did_you_mean(word, _WORDS))


def _wait(verb: Verb, raw: object) -> timedelta:
    if verb is Verb.WARN:
        raise BadValueError("warn never waits", "put the wait on the step after it", at=(verb.value, "wait"))
    return times.read_wait(raw, verb.value, times.SHORTEST_WAITS[verb], (verb.value, "wait"))


Lasting = Annotated[timedelta, BeforeValidator(times.window)]
PercentBound = Annotated[float, BeforeValidator(v.bound(units.parse_percent))]
RateBound = Annotated[float, BeforeValidator(v.bound(units.parse_rate))]
PowerBound = Annotated[float, BeforeValidator(v.bound(units.parse_power))]
Coverage = Annotated[float, BeforeValidator(v.coverage)]
Unstoppable = Annotated[bool, BeforeValidator(v.choice({"hold": False, "terminate": True}, "an answer"))]
Ladder = Annotated[tuple[Annotated[Step, BeforeValidator(parse_step)], ...], AfterValidator(check_ladder)]


class IdleDocument(Document):
    """`idle_when_all`. One that names no signal has the shipped bounds; one that names any is taken at its word."""

    lasting: Lasting = _IDLE.lasting
    every_gpu_max_below: PercentBound = _IDLE.every_gpu_max_below_percent
    cpu_max_below: PercentBound | None = None
    network_max_below: RateBound | None = None
    power_max_below: PowerBound | None = None
    min_coverage: Coverage = _IDLE.min_coverage

    def bounds(self) -> IdleBounds:
        """What counts as idle."""
        if not _SIGNALS & self.model_fields_set:
            return replace(SHIPPED_BOUNDS, lasting=self.lasting, min_coverage=self.min_coverage)
        return IdleBounds(
            lasting=self.lasting,
            every_gpu_max_below_percent=self.every_gpu_max_below,
            cpu_max_below_percent=self.cpu_max_below,
            network_max_below_bytes_per_second=self.network_max_below,
            power_max_below_watts=self.power_max_below,
            min_coverage=self.min_coverage,
        )


class SafetyDocument(LimitsDocument):
    """`safety` of a rule."""

    unstoppable: Unstoppable = _LIMITS.unstoppable_may_terminate
    terminations_per_day: f.Count | None = None


class RuleDocument(Entry):
    """One entry of `idle_gpu`."""

    mode: f.ModeWord | None = None
    shadow: bool = False
    applies_when_all: SelectorDocument | None = None
    except_when_any: SelectorDocuments = ()
    idle_when_all: IdleDocument = IdleDocument()
    then: Ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, DEFAULT_WAITS[Verb.STOP]))
    safety: SafetyDocument = SafetyDocument()

    def rule(self, whole: Whole) -> IdleRule:
        """What it compiles to, without its digest; a rule in the shadow only observes."""
        ceiling = Mode.OBSERVE if self.shadow else whole.mode
        return IdleRule(
            name=self.name,
            mode=ceiling if self.mode is None else self.mode,
            applies_to=Selector() if self.applies_when_all is None else made(Selector, self.applies_when_all),
            except_for=tuple(made(Selector, each) for each in self.except_when_any),
            idle=self.idle_when_all.bounds(),
            ladder=self.then,
            limits=made(Limits, self.safety, unstoppable_may_terminate=self.safety.unstoppable),
            digest="",
            termination_protection_bars=whole.termination_protection_bars,
        )

    def waits(self, written: File, place: Place) -> Iterator[tuple[Place, timedelta]]:
        """Of each step, where it is written: the first notice may be left out."""
        _, steps = written.locate((*place, "then"))
        implied = len(self.then) - len(steps.items) if isinstance(steps, Sequence) else 0
        for index, step in enumerate(self.then):
            yield (*place, "then", index - implied), step.wait
