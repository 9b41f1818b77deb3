"""The shape of a guard: all that the rest of the program asks of one; what it needs is loaded when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.engine.guards.budgets.look import BudgetLook
    from costguard.engine.notify.notices import Words
    from costguard.engine.run.run import RunReport
    from costguard.engine.run.run_context import ActionHandler, RunContext
    from costguard.engine.run.scan import Progress, Scan
    from costguard.engine.run.snapshots import Looked
    from costguard.planning import Plan
    from costguard.policy.model.policy import Policy

GuardName = str


class Port(str, Enum):
    """What a guard is handed beside the inventory, signals and prices of each cloud."""

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


@dataclass(frozen=True, slots=True)
class GuardRun:
    """What one run came to: its figures for logs, metrics and the caller; `plan` None: it had been completed before."""

    figures: Mapping[str, Any]
    plan: Plan | None


@dataclass(frozen=True, slots=True)
class Planned:
    """What is due now; `budgets`: where they stand that it follows from."""

    plan: Plan
    budgets: BudgetLook | None = None


class Runs(Protocol):
    """One whole run; a run id that was completed before does nothing."""

    def __call__(self, world: RunContext, run_id: str, deadline: datetime | None) -> GuardRun:
        """Look, plan, act and tell."""


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


def figures_of(report: RunReport) -> dict[str, Any]:
    """The figures of any run, see `engine.run.summary`."""
    from costguard.engine.run.run import summary

    return summary(report)


def machines_now(world: RunContext, progress: Progress) -> tuple[Policy, Scan]:
    """The machines as they are, and the policy that they are judged by."""
    from costguard.engine.run.scan import scan

    seen = scan(
        world.readings, world.targets, world.policy.idle_gpu, world.clock, progress=progress, workers=world.workers
    )
    return world.policy, seen


@dataclass(frozen=True, slots=True)
class GuardRunner:
    """One guard.

    `run` is what a function does. `plan` decides and writes nothing. A plan is carried out by `handler`, told of in
    `messages`, and leaves `figures`; `fit_to_tell` gives it without the warnings that must not be sent, after all that
    was called. `machines` is what `costguard why --scan` judges. `look` sees what a report shows; None: what it plans.
    `counts` is what the guard calls one of its subjects. `whole`: they are judged by all that the policy covers.
    `one_look`: two policies can be planned over one look, which `costguard policy plan` can record.
    """

    name: GuardName
    run: Runs
    plan: Callable[[RunContext, str, Progress], Planned]
    messages: Callable[[RunContext], Words]
    handler: Callable[[RunContext], ActionHandler] = acts_on_nothing
    ports: frozenset[Port] = frozenset()
    figures: Callable[[RunReport], dict[str, Any]] = figures_of
    fit_to_tell: Callable[[RunContext, Plan, datetime | None], Plan] = as_it_is
    machines: Callable[[RunContext, Progress], tuple[Policy, Scan]] = machines_now
    look: Callable[[RunContext, Progress], Looked] | None = None
    counts: str = "instance"
    whole: bool = False
    one_look: bool = False

    def look_now(self, world: RunContext, progress: Progress) -> Looked:
        """What a report shows of the guard's subjects as they are; nothing is written anywhere."""
        if self.look is not None:
            return self.look(world, progress)
        from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of

        return Looked(look_of(self.plan(world, LOOKED_AT, progress).plan))

    def blind(self, plan: Plan) -> str:
        """Why an empty answer may be empty: something could not be read; nothing where something was seen."""
        if plan.instances_seen or not plan.gaps:
            return ""
        return f"no {self.counts} was seen, and not everything could be read: {plan.gaps[0].detail}"
