"""Who launched what, as the engine finds it out: rarely, not twice, and never in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, fact, history, instance, policy, shard_facts, usd

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.errors import AccessDeniedError
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.refs import Deployment, Shard
from costguard.domain.resources import Gap, GapKind, Instance, Launch
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.close_reads import KEPT_FREE, MOST_A_SHARD, MOST_TIME, known_launches, launched
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.guards.rules.common import Selector
from costguard.planning import PlanInputs, build_plan
from costguard.policy.model.policy import Owner, Policy
from costguard.ports import LaunchReport

SOMEBODY = Launch("user/speech", NOW - 10 * DAY, "event-1")


class Ticking:
    """A clock that each question moves on."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Trail:
    """A trail that knows `launcher` of every machine but those in `silent`; each question takes `takes`."""

    clock: Ticking
    launcher: Launch = SOMEBODY
    silent: frozenset[str] = frozenset()
    denied: bool = False
    gaps: tuple[Gap, ...] = ()
    takes: timedelta = timedelta(0)
    asked: list[str] = field(default_factory=list)

    def launches(self, instances: Sequence[Instance]) -> LaunchReport:
        self.asked += [each.ref.native_id for each in instances]
        self.clock.time += self.takes * len(instances)
        if self.denied:
            raise AccessDeniedError("no", operation="cloudtrail:LookupEvents", code="AccessDenied")
        known = {each.ref: self.launcher for each in instances if each.ref.native_id not in self.silent}
        return LaunchReport(known, self.gaps)

    def deployments(self, shard: Shard, since: datetime) -> Mapping[Deployment, datetime]:
        raise AssertionError(shard, since)


class Nobody:
    """In the place of ports that must not be touched."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory.over(open_ledger("memory:"))
    yield made
    made.store.close()


def world(memory: Memory, trail: Trail | None, house: Policy) -> RunContext:
    nobody: Any = Nobody()
    clock = trail.clock if trail is not None else Ticking()
    return RunContext(
        guard="idle_gpu",
        policy=house,
        targets=(),
        readings={"aws": CloudReaders(nobody, nobody, nobody)},
        executors={},
        memory=memory,
        notifier=nobody,
        clock=clock,
        policy_now=lambda: house,
        trails={"aws": trail} if trail is not None else {},
    )


def inputs(house: Policy, *facts: InstanceFact, **more: Any) -> PlanInputs:
    return PlanInputs("idle_gpu", "run-1", NOW, house, (shard_facts(*facts),), **more)


def machine(native_id: str = "i-1", **changes: Any) -> InstanceFact:
    made = {"created_at": NOW - 10 * DAY, **changes}
    return fact(instance(native_id, **made))


def test_what_breaks_a_rule_and_has_no_owner_is_looked_up_and_named(memory: Memory) -> None:
    trail, house = Trail(Ticking()), policy()
    given = inputs(house, machine())

    found = launched(world(memory, trail, house), given)
    plan = build_plan(replace(given, launches=found.launches))

    assert trail.asked == ["i-1"]
    assert [(each.owner, each.owner_source) for each in plan.findings] == [("speech", "launched")]


def test_what_is_busy_or_settled_is_not_asked_about(memory: Memory) -> None:
    house = policy(owners=(Owner("nlp", Selector(tags={"team": "nlp"})),))
    trail = Trail(Ticking())
    busy = fact(instance("i-3"), history(value=80.0))

    launched(
        world(memory, trail, house),
        inputs(house, machine("i-1", tags={"team": "nlp"}), machine("i-2", tags={"owner": "ranking"}), busy),
    )

    assert trail.asked == []


def test_a_tag_does_not_settle_it_where_an_entry_goes_by_launchers(memory: Memory) -> None:
    by_launcher = Owner("nlp", Selector(resources=()), cloud_users=("speech",))
    house = policy(owners=(by_launcher,))
    trail = Trail(Ticking())
    given = inputs(house, machine(tags={"owner": "ranking"}))

    found = launched(world(memory, trail, house), given)

    assert [each.owner for each in build_plan(replace(given, launches=found.launches)).findings] == ["nlp"]


def test_a_case_is_reason_enough_to_ask(memory: Memory) -> None:
    """Its machine may be busy again or unmeasured by now: its owner is still told how it ends."""
    trail, house = Trail(Ticking()), policy()
    unread = fact(instance(), unread=True)

    assert launched(world(memory, trail, house), inputs(house, unread)).launches == {}
    assert launched(world(memory, trail, house), inputs(house, unread, cases=(case(),))).launches


def test_who_disowned_it_is_passed_over_and_the_trail_asked_for_the_next(memory: Memory) -> None:
    trail, house = Trail(Ticking()), policy()
    mine = machine(tags={"owner": "ranking"})
    given = inputs(house, mine, disowned={str(mine.instance.ref): frozenset({"ranking"})})

    found = launched(world(memory, trail, house), given)

    assert [each.owner for each in build_plan(replace(given, launches=found.launches)).findings] == ["speech"]


def test_an_answer_is_kept_and_the_trail_not_asked_again(memory: Memory) -> None:
    trail, house = Trail(Ticking()), policy()
    given = inputs(house, machine(), cases=(case(),))

    first = launched(world(memory, trail, house), given)
    again = launched(world(memory, trail, house), replace(given, now=NOW + 300 * DAY))

    assert first.launches == again.launches != {}
    assert trail.asked == ["i-1"]
    assert known_launches(memory, [given.facts[0].instances[0].instance], NOW) == first.launches


def test_a_trail_that_knows_nothing_is_asked_again_a_day_later(memory: Memory) -> None:
    trail, house = Trail(Ticking(), silent=frozenset({"i-1"})), policy()
    given = inputs(house, machine(), cases=(case(),))

    for later in (timedelta(0), DAY - timedelta(minutes=1), DAY):
        launched(world(memory, trail, house), replace(given, now=NOW + later))

    assert trail.asked == ["i-1", "i-1"]


def test_a_preview_keeps_nothing(memory: Memory) -> None:
    trail, house = Trail(Ticking()), policy()
    given = inputs(house, machine())

    found = launched(world(memory, trail, house), given, remember=False)

    assert found.launches
    assert list(memory.store.query("launch")) == []


def test_a_trail_that_may_not_be_read_is_a_gap_that_bars_nothing(memory: Memory) -> None:
    trail, house = Trail(Ticking(), denied=True), policy()
    given = inputs(house, machine())

    found = launched(world(memory, trail, house), given)
    plan = build_plan(replace(given, launches=found.launches, gaps=found.gaps))

    (gap,) = plan.gaps
    assert (gap.what, gap.kind) == ("launches", GapKind.DENIED)
    assert [action.verb.value for action in plan.due] == ["warn"]
    assert [each.owner for each in plan.findings] == [""]
    assert list(memory.store.query("launch")) == []  # nothing was said, so nothing is known


def test_what_is_absent_from_an_answer_with_a_gap_is_not_taken_for_unknown(memory: Memory) -> None:
    house = policy()
    facts = (machine("i-1"), machine("i-2"))
    gap = Gap(facts[0].instance.ref.shard, "launches", GapKind.THROTTLED, "too many")
    trail = Trail(Ticking(), silent=frozenset({"i-2"}), gaps=(gap,))
    given = inputs(house, *facts)

    launched(world(memory, trail, house), given)
    trail.silent, trail.gaps = frozenset(), ()
    found = launched(world(memory, trail, house), given)

    assert {ref.native_id for ref in found.launches} == {"i-1", "i-2"}


def test_no_run_asks_about_more_than_so_many_of_a_shard_dearest_first(memory: Memory) -> None:
    trail, house = Trail(Ticking()), policy()
    dearest = MOST_A_SHARD + 5
    rates = {
        f"i-{number}": HourlyRate(usd(str(Decimal(number))), "test", "2026-01-01") for number in range(1, dearest + 1)
    }
    given = inputs(house, *(replace(machine(native_id), rate=rate) for native_id, rate in rates.items()))

    found = launched(world(memory, trail, house), given)
    rest = launched(world(memory, trail, house), given)

    assert trail.asked[0] == f"i-{dearest}"
    assert len(found.launches) == MOST_A_SHARD
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("launches", GapKind.TRUNCATED)]
    assert (len(rest.launches), rest.gaps) == (dearest, ())


@pytest.mark.parametrize(
    ("left", "asked"), [(None, 40), (KEPT_FREE + timedelta(seconds=20), 20), (KEPT_FREE, 0), (timedelta(0), 0)]
)
def test_asking_takes_no_more_than_its_share_of_a_run(memory: Memory, left: timedelta | None, asked: int) -> None:
    """One and a half seconds a question: forty fill the minute, and what a run is there for keeps its time."""
    trail, house = Trail(Ticking(), takes=timedelta(seconds=1.5)), policy()
    given = inputs(house, *(machine(f"i-{number}") for number in range(50)))
    deadline: datetime | None = NOW + left if left is not None else None

    found = launched(world(memory, trail, house), given, deadline=deadline)

    assert len(trail.asked) == asked
    assert trail.clock.now() <= NOW + MOST_TIME + 10 * trail.takes
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("launches", GapKind.DEADLINE)]


def test_a_cloud_without_a_trail_is_not_asked(memory: Memory) -> None:
    house = policy()

    found = launched(world(memory, None, house), inputs(house, machine()))

    assert (found.launches, found.gaps) == ({}, ())
