"""What shows what the credentials may do, and what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from costguard.domain.refs import Shard
from costguard.domain.resources import Instance


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often one vendor operation was called, and whether it can change anything."""

    operation: str
    permission: str
    calls: int
    changes_something: bool


class CallLog(Protocol):
    """Shows what the credentials did."""

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation sent so far by this process, counted where requests leave it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the credentials are: the account they belong to and the principal's own name there."""

    cloud: str
    account: str
    name: str


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether one operation is allowed in one shard. `allowed` None: the cloud cannot tell without doing it.

    `detail` is the vendor's own word on it, secrets removed; `fix` the permission to grant. `feature` is what the
    provider's table of operations says it is for (`inventory`, `metrics`, `prices`, `stop`, …), so that a missing
    permission which no rule needs bars nothing; empty counts as needed.
    """

    shard: Shard
    operation: str
    allowed: bool | None
    detail: str = ""
    fix: str = ""
    feature: str = ""


class Preflight(Protocol):
    """Asks a cloud, before anything is done, what these credentials are and may do. Changes nothing."""

    def caller(self) -> Caller:
        """Who we are.

        Raises:
            ProviderError: no credentials, or the cloud does not accept them.
        """

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        """Every operation that scanning uses there, and with `acting` also those that change something.

        `instances` are some of the shard's, for dry runs that need a real id; with none, what needs one is untold.

        Raises:
            OutcomeUnknownError: what was asked as a dry run may have been done: nothing further is asked.
        """

    def clock_skew(self) -> timedelta | None:
        """The cloud's clock less ours, to about a second; None where no answer told it."""
