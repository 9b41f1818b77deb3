"""The ladder of a rule: `then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]`. Pure."""

from __future__ import annotations

from datetime import timedelta

from costguard.domain.actions import Verb
from costguard.guards.rules.common import Step
from costguard.policy.syntax.problems import BadValueError, did_you_mean
from costguard.policy.syntax.units import parse_duration

DEFAULT_WAITS = {
    Verb.WARN: timedelta(0),
    Verb.SNAPSHOT: timedelta(0),
    Verb.STOP: timedelta(hours=24),
    Verb.TERMINATE: timedelta(days=7),
}
SHORTEST_WAITS = {
    Verb.SNAPSHOT: timedelta(0),  # of a running machine: nothing is interrupted
    Verb.STOP: timedelta(hours=1),  # less is no notice: people are in meetings
    Verb.TERMINATE: timedelta(days=1),  # the quarantine must see at least one morning
}
LONGEST_WAIT = timedelta(days=90)
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
    return read_wait(raw, verb.value, SHORTEST_WAITS[verb], (verb.value, "wait"))


def read_wait(raw: object, word: str, shortest: timedelta, at: tuple[str, ...]) -> timedelta:
    """How long the step `word` waits: `shortest` to 90 d; a refusal is placed `at` its key."""
    try:
        wait = parse_duration(raw)
    except BadValueError as err:
        raise BadValueError(err.message, err.fix, at=at) from err
    if wait < shortest:
        hours = int(shortest.total_seconds() // 3600)
        message = f"{raw} is too short a wait before {word}; at least {hours}h"
        raise BadValueError(message, f"write {hours}h or more", at=at)
    if wait > LONGEST_WAIT:
        message = f"{raw} is too long a wait; at most {LONGEST_WAIT.days}d"
        raise BadValueError(message, "write 90d or less", at=at)
    return wait
