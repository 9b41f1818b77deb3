"""What a valid policy says that its writer may not have meant. Nothing here stops a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.actions import Verb
from costguard.guards.rules.common import Consent, Mode
from costguard.guards.rules.idle import FREE_SIGNALS, IdleRule
from costguard.policy.budget.remarks import budget_remarks
from costguard.policy.model.policy import Policy
from costguard.policy.network.remarks import network_remarks
from costguard.policy.remarks.groups import group_remarks
from costguard.policy.remarks.tags import tag_remarks

_SOON = timedelta(days=7)
_AHEAD = timedelta(days=60)  # longer than most waits in working hours, and the announcement comes about then
_HIGH_PERCENT = 30.0  # a card a third busy is training with a slow loader more often than it is idle


@dataclass(frozen=True, order=True, slots=True)
class Remark:
    """A warning. `where` is a place in a file where there is one, else the name of a rule or key."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def remarks(policy: Policy, now: datetime) -> tuple[Remark, ...]:
    """Every warning about `policy` at `now`, sorted by place."""
    found = [*_exemptions(policy, now), *_calendar(policy, now), *_owners(policy), *_protected(policy)]
    for rule in policy.idle_gpu:
        found += _rule(rule)
    others = (*budget_remarks(policy, now), *network_remarks(policy), *group_remarks(policy), *tag_remarks(policy))
    found += [Remark(where, message) for where, message in others]
    if not policy.default_channel and not any(owner.channel for owner in policy.owners) and policy.mode > Mode.OBSERVE:
        found.append(Remark("notify", "no channel anywhere: no notice can be delivered, so nothing is ever stopped"))
    if policy.mode is Mode.ENFORCE and not policy.observe_new_accounts_for and _joins(policy):
        message = "an account that joins the organisation is acted on at once; new_accounts: {observe_for: 14d} waits"
        found.append(Remark("new_accounts", message))
    return tuple(sorted(found))


def _joins(policy: Policy) -> bool:
    return any(account.organisation for account in policy.accounts)


def _exemptions(policy: Policy, now: datetime) -> Iterator[Remark]:
    for exemption in policy.exemptions:
        until = exemption.expires_at.isoformat(timespec="minutes")
        where = exemption.where or "exceptions"
        if exemption.expires_at <= now:
            yield Remark(where, f"this exception expired at {until} and protects nothing; renew or remove it")
        elif exemption.expires_at - now <= _SOON:
            yield Remark(where, f"this exception expires within a week, at {until}")


def _calendar(policy: Policy, now: datetime) -> Iterator[Remark]:
    calendar = policy.calendar
    if calendar is None or not calendar.exceptions:
        return
    year = (now + _AHEAD).year
    if calendar.known_until is not None and calendar.known_until.year < year:
        yield Remark(
            "calendar.holidays",
            f"no holidays are known for {year}: every day that could be one counts as one, so graces grow longer; "
            "upgrade the chinesecalendar package",
        )
    if calendar.known_until is None and all(day.year < year for day in calendar.exceptions):
        yield Remark("calendar.holidays", f"no holiday of {year} or later is listed")


def _owners(policy: Policy) -> Iterator[Remark]:
    known = {owner.name for owner in policy.owners}
    for account in policy.accounts:
        if known and account.owner and account.owner not in known:
            message = f"owner {account.owner!r} is not among the owners; its notices go to the default channel"
            yield Remark(f"accounts {account.cloud} {account.id}", message)
    for owner in policy.owners:
        if owner.people and not policy.answers.slack_team:
            yield Remark(f"owner {owner.name}", "nobody's clicks count: people are listed without notify.answers")


def _protected(policy: Policy) -> Iterator[Remark]:
    if not policy.accounts or any(account.organisation for account in policy.accounts):
        return
    listed = {account.id for account in policy.accounts}
    for account in policy.protection.accounts:
        if account not in listed:
            yield Remark("protect.accounts", f"{account} is not among the accounts guarded; is it mistyped?")


def _rule(rule: IdleRule) -> Iterator[Remark]:
    where = f"rule {rule.name}"
    if rule.idle.every_gpu_max_below_percent > _HIGH_PERCENT:
        bound = f"{rule.idle.every_gpu_max_below_percent:g} %"
        yield Remark(where, f"every_gpu_max_below {bound} calls machines idle that do real work")
    if rule.idle.unlooked == FREE_SIGNALS:
        message = (
            "names neither CPU nor network: work there is not looked at and closes no case; "
            "add cpu_max_below: 10% and network_max_below: 50KiB/s"
        )
        yield Remark(where, message)
    if rule.limits.actions_per_day == 0 or rule.limits.fleet_share_per_day == 0:
        yield Remark(where, "a cap of 0 allows nothing: this rule never acts")
    elif rule.limits.terminations == 0 and any(step.verb is Verb.TERMINATE for step in rule.ladder):
        yield Remark(where, "terminations_per_day: 0 allows none: this rule never terminates")
    if rule.limits.local_disk is Consent.LOSE:
        yield Remark(where, "local_disk: lose lets a stop destroy local disks without asking")
