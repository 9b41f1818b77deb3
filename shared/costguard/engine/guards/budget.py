"""The runner of `budget`: thresholds are told, and what a spent budget asks for is done by the rules for machines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from costguard.engine.guards.idle_gpu import fit_to_tell, machine_handler, machine_messages
from costguard.engine.guards.runner import GuardRun, GuardRunner, Planned, Port
from costguard.guards import BUDGET

if TYPE_CHECKING:
    from costguard.engine.run.run_context import RunContext
    from costguard.engine.run.scan import Progress, Scan
    from costguard.engine.run.snapshots import Looked
    from costguard.policy.model.policy import Policy


def _run(world: RunContext, run_id: str, deadline: datetime | None) -> GuardRun:
    from costguard.engine.guards.budgets.run import budget_summary, run_budgets

    done = run_budgets(world, run_id, deadline=deadline)
    return GuardRun(budget_summary(done), done.run.plan)


def _plan(world: RunContext, run_id: str, progress: Progress) -> Planned:
    from costguard.engine.guards.budgets.run import plan_budgets

    looked, plan = plan_budgets(world, run_id, progress=progress)
    return Planned(plan, looked)


def _look(world: RunContext, progress: Progress) -> Looked:
    from costguard.engine.digest import look_at_budgets

    return look_at_budgets(world, progress)


def _machines(world: RunContext, progress: Progress) -> tuple[Policy, Scan]:
    from costguard.engine.guards.budgets.look import look
    from costguard.engine.guards.budgets.run import under_budgets

    looked = look(world, progress=progress, remember=False)
    return under_budgets(world, looked).policy, looked.seen


RUNNER = GuardRunner(
    name=BUDGET,
    run=_run,
    plan=_plan,
    look=_look,
    handler=machine_handler,
    messages=machine_messages,
    fit_to_tell=fit_to_tell,
    machines=_machines,
    ports=frozenset({Port.TRAILS, Port.SPENDS, Port.EXECUTORS, Port.FREEZERS}),
    whole=True,
)
