"""The shape of what `costguard doctor --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.domain.reasons import FactValue
from costguard.report.doctor.checks import Code, DoctorQuestion, Health
from costguard.report.schemas.values import Count, Time, one_of


class DoctorDetail(TypedDict):
    """What is behind a check."""

    where: str
    """A machine, a shard with an operation, a snapshot, a place in the policy."""
    code: str | None
    """Of an unmeasured machine its reason, of a gap its kind, of a function what is wrong with its runs."""
    words: str
    fix: str


class DoctorCheck(TypedDict):
    """One answer."""

    check: Annotated[str, one_of(DoctorQuestion)]
    """What was asked."""
    code: Annotated[str, one_of(Code)]
    """The answer; the same in every language and version."""
    verdict: Annotated[str, one_of(Health)]
    target: str
    """cloud:account, or empty for what is asked once."""
    facts: dict[str, FactValue | bool]
    words: str
    fix: str
    """What mends it; empty where there is nothing to mend."""
    details: list[DoctorDetail]


class Operation(TypedDict):
    """How often one operation was called."""

    operation: str
    permission: str
    calls: Count
    changes_something: bool


class Proof(TypedDict):
    """What was asked of the clouds."""

    calls: Count
    dry_runs: Count
    """Changes that were only asked about; among calls, not among changing_calls."""
    changing_calls: Annotated[int, Field(json_schema_extra={"const": 0})]
    """The doctor has no way to send one."""
    operations: list[Operation]
    words: str


class Doctor(TypedDict):
    """Whether it is safe to enforce, with every check, its facts and what mends it."""

    schema: Literal[1]
    at: Time
    """When the report was finished, UTC."""
    verdict: Annotated[str, one_of(Health)]
    """The gravest verdict of all checks."""
    safe_to_enforce: bool
    """True for ok and warning: exit status 0."""
    words: str
    checks: list[DoctorCheck]
    proof: Proof
