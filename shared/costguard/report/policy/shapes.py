"""The shapes of what `costguard policy … --json` answers, for type checkers and for the schema files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.domain.actions import Verb
from costguard.policy.diff.differences import Direction
from costguard.policy.trial.documents import Outcome
from costguard.report.schemas.values import Count, Verdict, one_of

_Step = Annotated[str, one_of(Verb.WARN, Verb.SNAPSHOT, Verb.STOP, Verb.TERMINATE)]


class PolicyDifference(TypedDict):
    """One thing that the new policy says otherwise."""

    section: str
    """A section of the policy, or `policy` for what stands at its top."""
    name: str
    """The rule, budget, account, owner or exception; empty for a section as a whole."""
    key: str
    """As the policy writes it. Empty: the whole entry is new (no `before`) or gone (no `after`). `falls_to`: machines
    of `name` may now come under the harsher rule `after`."""
    before: str
    after: str
    direction: Annotated[str, one_of(Direction)]


class PolicyDiff(TypedDict):
    """What a change of the policy means."""

    schema: Literal[1]
    old_digest: str
    new_digest: str
    same: bool
    loosens: bool
    differences: list[PolicyDifference]


class Missed(TypedDict):
    """What a test expected, and what was found instead."""

    key: str
    expected: str
    found: str


class Came(TypedDict):
    """What came of the machine."""

    rule: str | None
    verdict: Verdict
    reason: str
    owner: str | None
    owner_source: str
    next: _Step | None
    outcome: Annotated[str, one_of(Outcome)]
    held_by: str | None
    next_at: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})]
    """With the offset of the test's times."""
    words: str


class TestedPolicy(TypedDict):
    """One test of a policy."""

    path: str
    line: Annotated[int, Field(ge=1)]
    name: str
    passed: bool
    problem: Annotated[str, one_of("no_case", "no_rung")] | None
    """Why what the test says has happened before could not have."""
    missed: list[Missed]
    came: Came


class PolicyTest(TypedDict):
    """What came of the tests of a policy."""

    schema: Literal[1]
    passed: Count
    failed: Count
    tests: list[TestedPolicy]
