"""What a rule of the `idle_gpu` guard says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from costguard.domain.actions import Verb
from costguard.domain.resources import Instance
from costguard.domain.signals import SignalName
from costguard.guards.rules.common import Bars, Limits, Mode, Rung, Selector, Step

SPENT = "spent"
"""The check of machines that a spent budget asks for; they are judged with the idle ones."""
MIN_COVERAGE = 0.95  # NEVER rule 1; a policy may only raise it
FREE_SIGNALS = (SignalName.CPU, SignalName.NETWORK)
"""What every cloud measures of a machine without anything installed in it (Tencent Cloud's CPU needs its agent)."""
_VERB_RANK = {Verb.WARN: 0, Verb.SNAPSHOT: 1, Verb.START: 1, Verb.STOP: 2, Verb.TERMINATE: 3}


@dataclass(frozen=True, slots=True)
class IdleBounds:
    """Idle when every GPU, and every other signal named here, stays below its bound over `lasting`.

    Percent for GPU and CPU, bytes a second for network (in and out together), watts per card for power.
    None leaves that signal out; GPU is always in.
    """

    lasting: timedelta = timedelta(hours=24)
    every_gpu_max_below_percent: float = 5.0
    cpu_max_below_percent: float | None = None
    network_max_below_bytes_per_second: float | None = None
    power_max_below_watts: float | None = None
    min_coverage: float = MIN_COVERAGE

    @property
    def unlooked(self) -> tuple[SignalName, ...]:
        """Of the signals that every cloud gives, those that are not asked for: use of these is not seen."""
        named = {name for name, _ in self.bounds()}
        return tuple(name for name in FREE_SIGNALS if name not in named)

    def bounds(self) -> tuple[tuple[SignalName, float], ...]:
        """The named signals and their bounds."""
        named = (
            (SignalName.GPU, self.every_gpu_max_below_percent),
            (SignalName.CPU, self.cpu_max_below_percent),
            (SignalName.NETWORK, self.network_max_below_bytes_per_second),
            (SignalName.POWER, self.power_max_below_watts),
        )
        return tuple((name, bound) for name, bound in named if bound is not None)


SHIPPED_CPU_PERCENT = 10.0
SHIPPED_NETWORK_BYTES_PER_SECOND = 50.0 * 1024
SHIPPED_BOUNDS = IdleBounds(
    cpu_max_below_percent=SHIPPED_CPU_PERCENT,
    network_max_below_bytes_per_second=SHIPPED_NETWORK_BYTES_PER_SECOND,
)
"""What idle means where nobody names a signal: the GPU alone calls machines idle that load data, simulate or serve."""


def shipped_bounds(measured: Collection[SignalName]) -> IdleBounds:
    """The shipped bounds of the GPU and of those signals that are measured closely enough to be judged by."""
    return replace(
        SHIPPED_BOUNDS,
        cpu_max_below_percent=SHIPPED_CPU_PERCENT if SignalName.CPU in measured else None,
        network_max_below_bytes_per_second=SHIPPED_NETWORK_BYTES_PER_SECOND if SignalName.NETWORK in measured else None,
    )


def percent_words(share: Decimal) -> str:
    """`0.8` → `80`, `1.125` → `112.5`: a share as people write it, without the sign."""
    return format((share * 100).normalize(), "f")


@dataclass(frozen=True, slots=True)
class BudgetCause:
    """The step of a spent budget that asks for machines: those idle, or with `priority_class` all of that class."""

    budget: str
    at: Decimal
    priority_class: str = ""


@dataclass(frozen=True, slots=True)
class IdleRule:
    """One entry of `idle_gpu:` in the policy, or with a `cause` what a spent budget makes of one of its steps.

    `digest` is a hash of everything else here, and so of how the policy reads termination protection.
    """

    name: str
    mode: Mode
    applies_to: Selector
    idle: IdleBounds
    ladder: tuple[Step, ...]
    limits: Limits
    digest: str
    except_for: tuple[Selector, ...] = ()
    cause: BudgetCause | None = None
    termination_protection_bars: Bars = Bars.EVERYTHING

    def harshness(self) -> tuple[int, int, float, float, str]:
        """Sort key: where rules overlap, the smallest (least destructive) is applied."""
        strongest = max((_VERB_RANK[step.verb] for step in self.ladder), default=0)
        waits = sum((step.wait for step in self.ladder), timedelta(0))
        return (int(self.mode), strongest, -waits.total_seconds(), -self.idle.lasting.total_seconds(), self.name)

    def leaves_out(self, instance: Instance) -> bool:
        """Whether an exception takes the machine out, its tags in any spelling.

        What a spent budget leaves to the rule of a class is compared as that rule compares: exactly.
        """
        if self.cause is not None:
            return any(each.matches(instance) for each in self.except_for)
        return any(each.spares(instance) for each in self.except_for)

    def rungs(self, *, stoppable: bool = True) -> tuple[Rung, ...]:
        """The ladder as climbed: a delivered notice before every stop and again before the quarantine.

        Terminate always stands behind stop, a second notice, the quarantine and snapshots. What cannot
        stop (one-time Spot) goes from notice over crash-consistent snapshots to terminate, after both
        waits, and only where the rule says `unstoppable: terminate`; else it gets the notice alone.
        """
        if not stoppable:
            return self._rungs_without_stop()
        rungs = [Rung(Verb.WARN, timedelta(0))]
        for step in self.ladder:
            if step.verb is Verb.TERMINATE:
                copied = rungs[-1].verb is Verb.SNAPSHOT and Verb.STOP in {rung.verb for rung in rungs}
                rungs.append(Rung(Verb.WARN, timedelta(0)))
                if not copied:
                    rungs.append(Rung(Verb.SNAPSHOT, step.wait))
                rungs.append(Rung(Verb.TERMINATE, step.wait if copied else timedelta(0)))
            elif step.verb is not Verb.WARN:
                rungs.append(Rung(step.verb, step.wait))
        return tuple(rungs)

    def _rungs_without_stop(self) -> tuple[Rung, ...]:
        notice = Rung(Verb.WARN, timedelta(0))
        terminates = any(step.verb is Verb.TERMINATE for step in self.ladder)
        if not (terminates and self.limits.unstoppable_may_terminate):
            return (notice,)
        wait = sum((step.wait for step in self.ladder), timedelta(0))
        return (notice, Rung(Verb.SNAPSHOT, wait), Rung(Verb.TERMINATE, timedelta(0)))
