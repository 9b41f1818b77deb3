"""A share of the stories with policies that read termination protection as clouds do, spare by tag, or roll out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from tests.simulation.rules import SPARED_IN, Agreed, PolicyVersion
from tests.simulation.scenario import Change, Deed, Scenario

_TERMINATION, _STOP = "termination_protection", "stop_protection"
_DEEDS = {_TERMINATION: (Deed.BAR_TERMINATE, Deed.LET_TERMINATE), _STOP: (Deed.BAR_STOP, Deed.LET_STOP)}
_LATER = timedelta(days=30)


def with_sparing(made: Scenario) -> Scenario:
    """The same; in a third of the seeds machines are protected at the cloud, in a fifth they are spared by a tag."""
    random = Random(made.seed * 11 + 3)  # noqa: S311 - reproducible on purpose
    if random.random() < 0.33:
        made = _protected(random, made)
    return _spared(random, made) if random.random() < 0.2 else made


def with_rollout(made: Scenario) -> Scenario:
    """The same; in a tenth of the seeds every team is rolled out, to the end of it some day soon."""
    random = Random(f"rollout {made.seed}")  # noqa: S311 - reproducible on purpose
    if random.random() >= 0.1:
        return made
    enforced = made.start.date() + timedelta(days=random.choice((1, 2, 3, 5)))
    return _from(made, made.start, lambda version: replace(version, rolled_out=enforced))


def _protected(random: Random, made: Scenario) -> Scenario:
    """Most of these policies set the key, from the first run on or from some moment; owners protect and let go."""
    turns = random.choice((None, made.start, made.start, _moment(random, made)))
    if turns is not None:
        made = _from(made, turns, lambda version: replace(version, terminate_alone=True))
    machines = list(made.machines)
    for place in range(len(machines)):
        if random.random() < 0.5:
            kinds = (_TERMINATION, _TERMINATION, _STOP) if machines[place].cloud == "aws" else (_TERMINATION,)
            kind = random.choice(kinds)
            if random.random() < 0.6:
                machines[place] = replace(machines[place], protections=(kind,))
            made = replace(made, deeds=(*made.deeds, *_toggles(random, made, machines[place].native_id, kind)))
    return replace(made, machines=tuple(machines), deeds=tuple(sorted(made.deeds, key=lambda deed: deed[0])))


def _toggles(random: Random, made: Scenario, native_id: str, kind: str) -> Iterator[tuple[datetime, str, Deed]]:
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        yield _moment(random, made), native_id, random.choice(_DEEDS[kind])


def _spared(random: Random, made: Scenario) -> Scenario:
    """One machine has the tag in some spelling, by which its rule or an agreed exception leaves it out."""
    agreed = (Agreed("", made.start + _LATER),) if random.random() < 0.5 else ()

    def sparing(version: PolicyVersion) -> PolicyVersion:
        if agreed:
            return replace(version, exceptions=(*version.exceptions, *agreed))
        return replace(version, rules=tuple(replace(rule, spares=True) for rule in version.rules))

    place = random.randrange(len(made.machines))
    tags = {**made.machines[place].tags, **dict([random.choice(SPARED_IN)])}
    machines = [*made.machines]
    machines[place] = replace(machines[place], tags=tags)
    return _from(replace(made, machines=tuple(machines)), made.start, sparing)


def _moment(random: Random, made: Scenario) -> datetime:
    return made.start + (made.end - made.start) * random.random()


def _from(made: Scenario, at: datetime, other: Callable[[PolicyVersion], PolicyVersion]) -> Scenario:
    """The story with every version of the policy from `at` on another one."""
    if at <= made.start:
        changes = tuple(replace(change, version=other(change.version)) for change in made.changes)
        return replace(made, policy=other(made.policy), changes=changes)
    before = tuple(change for change in made.changes if change.at <= at)
    after = tuple(replace(change, version=other(change.version)) for change in made.changes if change.at > at)
    now = before[-1].version if before else made.policy
    return replace(made, changes=(*before, Change(at, other(now)), *after))
