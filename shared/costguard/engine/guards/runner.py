"""The shape of a guard: what differs between guards, as values and functions; `engine.run.run` does the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from costguard.domain.errors import InvalidInputError
from costguard.engine.notify.notices import Words
from costguard.engine.run.run import GuardRun, RunReport, plan_guard, summary
from costguard.engine.run.run_context import ActionHandler, RunContext
from costguard.engine.run.scan import Progress, Scan, scan
from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of
from costguard.planning import Plan
from costguard.policy.model.policy import Policy

L = TypeVar("L")
Seen_co = TypeVar("Seen_co", covariant=True)
Seen_contra = TypeVar("Seen_contra", contravariant=True)
GuardName = str


class Port(str, Enum):
    """What a guard is handed beside the inventory, signals and prices of each cloud; named as in `RunContext`."""

    TRAILS = "trails"
    SPENDS = "spends"
    KEYS = "keys"
    NETWORKS = "networks"
    # these change something: none is opened where nothing may be done
    EXECUTORS = "executors"
    KEEP_TAGGERS = "keep_taggers"
    FREEZERS = "freezers"
    ROTATORS = "rotators"
    SUCCESSORS = "successors"
    NETWORK_REMEDIATORS = "network_remediators"


READS = frozenset({Port.TRAILS, Port.SPENDS, Port.KEYS, Port.NETWORKS})


class See(Protocol[Seen_co]):
    """One look at what the guard judges; nothing is written but, to `remember`, whose turn is next and what it met."""

    def __call__(
        self, world: RunContext, *, deadline: datetime | None, progress: Progress, remember: bool, seen: Any = None
    ) -> Seen_co:
        """`seen` is what somebody looked at just now, so that it need not be read twice."""


class PlanOf(Protocol[Seen_contra]):
    """The plan for what was seen, with memory."""

    def __call__(
        self, world: RunContext, run_id: str, looked: Seen_contra, /, *, deadline: datetime | None, remember: bool
    ) -> Plan:
        """Write nothing but, to `remember`, which accounts there are; who remembers waits for what is nearly due."""


def as_it_is(world: RunContext, plan: Plan, deadline: datetime | None) -> Plan:
    """For a guard with nothing to look at closely before people are told."""
    del world, deadline
    return plan


def acts_on_nothing(world: RunContext) -> ActionHandler:
    """For a guard that only tells: nothing of its plans is ever due.

    Raises:
        InvalidInputError: always.
    """
    message = f"the guard {world.guard!r} changes nothing"
    raise InvalidInputError(message)


def machines_now(world: RunContext, progress: Progress) -> tuple[Policy, Scan]:
    """The machines as they are, and the policy that they are judged by."""
    rules = world.policy.idle_gpu
    return world.policy, scan(
        world.readings, world.targets, rules, world.clock, progress=progress, workers=world.workers
    )


def shown_as_planned(world: RunContext, progress: Progress) -> Looked:
    """What a report shows of the subjects as they are: what the guard plans."""
    return Looked(look_of(plan_guard(world, LOOKED_AT, progress=progress).plan))


@dataclass(frozen=True, slots=True)
class GuardRunner(Generic[L]):
    """One guard: what `engine.run.run.run_guard` does with it, in this order, and what others ask of it.

    `see` looks. `ahead` does what comes before planning, and `under` gives what the plan is made and carried out under.
    `plan_of` decides. `planned` keeps and logs what was seen, before anything is done. The plan is carried out by
    `handler`, told of in `messages`, and leaves `figures`; `answer` adds to these for the caller of a function.
    `fit_to_tell` gives the plan without the warnings that must not be sent, after all that was called. `mark` writes on
    the subjects themselves what others should see there, and says how many could not be marked.

    `machines` is what `costguard why --scan` judges, `shown` what a report shows. `counts` is what the guard calls one
    of its subjects. `whole`: they are judged by all that the policy covers. `one_look`: two policies can be planned
    over one look, which `costguard policy plan` can record. `of_budgets`: what it sees is where budgets stand.
    """

    name: GuardName
    see: See[L]
    plan_of: PlanOf[L]
    messages: Callable[[RunContext], Words]
    handler: Callable[[RunContext], ActionHandler] = acts_on_nothing
    ports: frozenset[Port] = frozenset()
    ahead: Callable[[RunContext, str, L], Any] | None = None
    under: Callable[[RunContext, L], RunContext] | None = None
    planned: Callable[[RunContext, L], None] | None = None
    figures: Callable[[RunReport], dict[str, Any]] = summary
    answer: Callable[[GuardRun], dict[str, Any]] | None = None
    fit_to_tell: Callable[[RunContext, Plan, datetime | None], Plan] = as_it_is
    mark: Callable[[RunContext, Plan, datetime | None], int] | None = None
    machines: Callable[[RunContext, Progress], tuple[Policy, Scan]] = machines_now
    shown: Callable[[RunContext, Progress], Looked] = shown_as_planned
    counts: str = "instance"
    whole: bool = False
    one_look: bool = False
    of_budgets: bool = False

    def blind(self, plan: Plan) -> str:
        """Why an empty answer may be empty: something could not be read; nothing where something was seen."""
        if plan.instances_seen or not plan.gaps:
            return ""
        return f"no {self.counts} was seen, and not everything could be read: {plan.gaps[0].detail}"
