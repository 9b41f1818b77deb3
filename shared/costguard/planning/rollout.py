"""Rolling a policy out over teams and accounts: which mode each is allowed now, and what holds the next back. Pure.

A step is taken when its day has come, its condition holds, and its announcement was delivered a day before. Each is
asked anew in every run: what is not known, or holds no more, leaves the gentler mode.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import Policy, RolloutEntry, RolloutStep

if TYPE_CHECKING:
    from costguard.planning.shadows import ShadowStanding, ShadowTally

ANNOUNCED_AHEAD = timedelta(days=7)
"""How long before its day a step is announced, at the earliest."""
TOLD_BEFORE = timedelta(hours=24)
"""How long the delivered announcement comes before the step, at least: as long as a loosening waits."""
_FOLLOWED_WITHIN = timedelta(days=7)  # a tally that no run has added to for so long tells of another time
REST = "*"
ANNOUNCEMENT = "rollout-"
"""What the id of every announcement of a step begins with."""


@dataclass(frozen=True, slots=True)
class Regret:
    """How many would-be stops of a rule in the shadow have ended; after how many the machine was soon used again."""

    stops: int
    regretted: int

    @property
    def share(self) -> Decimal:
        """0 to 1; of nothing it is nothing."""
        return Decimal(self.regretted) / self.stops if self.stops else Decimal(0)


@dataclass(frozen=True, slots=True)
class RolloutStanding:
    """Where one entry stands: `allowed` now, the step after that and its day, what was measured, what holds it back.

    `held` None: nothing but its day. `announce`: people should be told of the step now, and were not. `told_at` is the
    proven delivery of that.
    """

    entry: RolloutEntry
    allowed: Mode
    step: RolloutStep | None = None
    at: datetime | None = None
    regret: Regret | None = None
    held: Reason | None = None
    told_at: datetime | None = None
    announce: bool = False

    @property
    def notice_id(self) -> str:
        """Of the announcement of the next step."""
        return "" if self.step is None else announcement_id(self.entry, self.step)


@dataclass(frozen=True, slots=True)
class Rollout:
    """The standings of every entry, and the most that `of` allows a machine. Without entries: everything."""

    standings: tuple[RolloutStanding, ...] = ()

    def of(self, owner: str, account: str) -> tuple[Mode, Reason | None]:
        """The gentlest of all entries that cover a machine, and why it is not harsher. What none covers is observed."""
        if not self.standings:
            return Mode.ENFORCE, None
        covering = [each for each in self.standings if _covers(each.entry, owner, account)]
        covering = covering or [each for each in self.standings if each.entry.team == REST]
        if not covering:
            return Mode.OBSERVE, Reason(ReasonCode.ROLLOUT_UNLISTED, {"owner": owner, "account": account})
        gentlest = min(covering, key=lambda each: each.allowed)
        if gentlest.allowed is Mode.ENFORCE:
            return Mode.ENFORCE, None
        facts: dict[str, FactValue] = {"scope": gentlest.entry.scope, "mode": gentlest.allowed.name.lower()}
        if gentlest.step is not None and gentlest.at is not None:
            next_mode = gentlest.step.mode.name.lower()
            facts |= {"next": next_mode, "until": gentlest.at.isoformat(timespec="minutes")}
        return gentlest.allowed, Reason(ReasonCode.ROLLOUT, facts)


NO_ROLLOUT = Rollout()


def mode_of(
    owner: str,
    account: str,
    policy: Policy,
    shadows: Sequence[ShadowStanding],
    told: Mapping[str, datetime],
    now: datetime,
) -> Mode:
    """The most that is done with a machine of this owner in this account: the gentler of policy and rollout."""
    allowed, _ = Rollout(tuple(standings(policy, shadows, told, now))).of(owner, account)
    return min(policy.mode, allowed)


def standings(
    policy: Policy, shadows: Sequence[ShadowStanding], told: Mapping[str, datetime], now: datetime
) -> Iterator[RolloutStanding]:
    """Every entry. `shadows` as the last runs left them; `told` is by id of an announcement when it was delivered."""
    return (_standing(entry, policy, shadows, told, now) for entry in policy.rollout)


def _standing(
    entry: RolloutEntry,
    policy: Policy,
    shadows: Sequence[ShadowStanding],
    told: Mapping[str, datetime],
    now: datetime,
) -> RolloutStanding:
    allowed = Mode.OBSERVE
    for step in entry.steps:
        at, told_at = begins(step, policy), told.get(announcement_id(entry, step))
        regret, bar = _condition(entry, step, policy, shadows, now)
        if step.mode > policy.mode:
            bar = Reason(ReasonCode.ROLLOUT_ABOVE_POLICY, {"mode": policy.mode.name.lower()})
        announce = bar is None and told_at is None and now >= at - ANNOUNCED_AHEAD
        if bar is None and now >= at - TOLD_BEFORE:
            bar = _untold(told_at, now)
        if bar is not None or now < at:
            return RolloutStanding(entry, allowed, step, at, regret, bar, told_at, announce)
        allowed = step.mode
    return RolloutStanding(entry, allowed)


def begins(step: RolloutStep, policy: Policy) -> datetime:
    """The first moment of its day, in the calendar's zone; in UTC without a calendar."""
    zone = timezone.utc if policy.calendar is None else ZoneInfo(policy.calendar.zone)
    return datetime.combine(step.since, time(), zone).astimezone(timezone.utc)


def announcement_ids(policy: Policy) -> tuple[str, ...]:
    """Of every step of every entry."""
    return tuple(announcement_id(entry, step) for entry in policy.rollout for step in entry.steps)


def announcement_id(entry: RolloutEntry, step: RolloutStep) -> str:
    """The same for as long as scope, mode and day are: a condition may change without a word to anybody."""
    said = f"{entry.team}\n{entry.account}\n{step.mode.name}\n{step.since.isoformat()}"
    return f"{ANNOUNCEMENT}{hashlib.sha256(said.encode()).hexdigest()[:24]}"


def _untold(told_at: datetime | None, now: datetime) -> Reason | None:
    if told_at is None:
        return Reason(ReasonCode.ROLLOUT_UNTOLD)
    if now < told_at + TOLD_BEFORE:
        return Reason(ReasonCode.ROLLOUT_TOLD, {"due": (told_at + TOLD_BEFORE).isoformat(timespec="minutes")})
    return None


def _condition(
    entry: RolloutEntry, step: RolloutStep, policy: Policy, shadows: Sequence[ShadowStanding], now: datetime
) -> tuple[Regret | None, Reason | None]:
    """What was measured for it, and why it does not hold."""
    if step.regret_below is None:
        return None, None
    facts: dict[str, FactValue] = {"rule": step.in_shadow, "needed": step.of_at_least}
    rule = next((each for each in policy.shadows.idle_gpu if each.name == step.in_shadow), None)
    found = next((each for each in shadows if each.rule == step.in_shadow), None)
    if rule is None or found is None or found.rule_digest != rule.digest or now - found.at > _FOLLOWED_WITHIN:
        return None, Reason(ReasonCode.ROLLOUT_UNMEASURED, {**facts, "seen": 0})
    regret = _regret(tally for of, tally in _tallies(found) if entry.team == REST or _covers(entry, *of))
    if regret.stops < step.of_at_least:
        return regret, Reason(ReasonCode.ROLLOUT_UNMEASURED, {**facts, "seen": regret.stops})
    if regret.share < step.regret_below:
        return regret, None
    said: dict[str, FactValue] = {"rule": step.in_shadow, "seen": regret.stops, "regretted": regret.regretted}
    shares = {"percent": float(regret.share * 100), "bound_percent": float(step.regret_below * 100)}
    return regret, Reason(ReasonCode.ROLLOUT_REGRET, {**said, **shares})


def _tallies(standing: ShadowStanding) -> Iterator[tuple[tuple[str, str], ShadowTally]]:
    return (((each.owner, each.account), each.tally) for each in standing.by)


def _regret(tallies: Iterable[ShadowTally]) -> Regret:
    found = [(each.stops, each.busy_within_a_day) for each in tallies]
    return Regret(sum(stops for stops, _ in found), sum(regretted for _, regretted in found))


def _covers(entry: RolloutEntry, owner: str, account: str) -> bool:
    return entry.team != REST and entry.team in {"", owner} and entry.account in {"", account}
