"""The shape of what `costguard policy backtest --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.report.schemas.values import Count, Money, Time


class Assumption(TypedDict):
    """What the figures rest on."""

    code: str
    words: str
    """By --lang."""


class Regret(TypedDict):
    """How many stops were followed by use within so many hours."""

    within_hours: Count
    yes: Count
    no: Count
    undetermined: Count
    """The record ends too soon or has a hole; never no regret."""
    reclaimed_hours_per_regret: float | None
    """Null without a regret."""


class Tally(TypedDict):
    """What some machines came to."""

    machines: Count
    exempt: Annotated[Count, Field(description="Only shown, never touched.")]
    unmeasured: Annotated[Count, Field(description="Machines that no run could judge.")]
    recorded_hours: Count
    idle_hours: Count
    unmeasured_hours: Annotated[Count, Field(description="Hours in which runs could not judge.")]
    stopped: Count
    stops: Count
    terminations: Count
    came_back_terminated: Annotated[Count, Field(description="Use that came back after a would-be termination.")]
    reclaimed_hours: Annotated[Count, Field(description="Measured and idle, between would-be stop and return.")]
    uncounted_hours: Annotated[
        Count, Field(description="Stopped, but nobody measured whether they would have been idle.")
    ]
    unpriced_hours: Annotated[Count, Field(description="Reclaimed, at a price that nobody knows.")]
    reclaimed: Annotated[list[Money], Field(description="One sum a currency.")]
    regret: list[Regret]


class NamedTally(Tally):
    """What the machines of a rule or a team came to."""

    name: str


class Tallied(TypedDict):
    """What a policy would have come to."""

    policy_digest: str
    unmatched: Count
    total: Tally
    by_rule: list[NamedTally]
    by_team: list[NamedTally]


class Point(Tally):
    """One setting of the grid, and what it would have come to."""

    gpu_max_below_percent: float | None
    window_seconds: int | None
    best: bool
    """No other setting tried reclaims as much with fewer regrets within a day, the undetermined counted as regrets."""


class Doubt(TypedDict):
    """A value that was not believed."""

    path: str
    line: int | None
    field: str
    value: str


class Replayed(TypedDict):
    """What was replayed, and what came of it."""

    schema: Literal[1]
    since: Time
    until: Time
    every_seconds: Annotated[int, Field(ge=3600)]
    horizons: list[Count]
    rows: Count
    doubted: Count
    unlisted: Count
    assumptions: list[Assumption]
    new: Tallied
    current: Tallied | None
    grid: list[Point]


class BackTest(Replayed):
    """What a policy would have done over recorded history."""

    doubts: list[Doubt]
    """Values that were not believed, the first thousand."""
