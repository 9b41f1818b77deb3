"""What a valid policy says that its writer may not have meant. Nothing here stops a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.actions import Verb
from costguard.domain.refs import CLOUDS, provider_of
from costguard.domain.remediations import RemediationKind
from costguard.guards.budget.rules import StepKind
from costguard.guards.keys.rules import KeyRule
from costguard.guards.network.rules import AuditRule
from costguard.guards.rules.common import Consent, Mode, Protection, Selector
from costguard.guards.rules.idle import FREE_SIGNALS, IdleRule
from costguard.guards.rules.spelling import any_glob, spelling
from costguard.policy.budget.remarks import BILLED_IN, budget_remarks
from costguard.policy.model.policy import Policy

_SOON = timedelta(days=7)
_OLD_DISCOUNT = timedelta(days=3 * 366)  # contracts of that kind are made for one to three years
_AHEAD = timedelta(days=60)  # longer than most waits in working hours, and the announcement comes about then
_HIGH_PERCENT = 30.0  # a card a third busy is training with a slow loader more often than it is idle


NO_CALENDAR = (
    "the policy enforces and has no calendar: notices of a Friday evening lead to stops on Saturday; add calendar: "
    "with the zone of those who get them, or calendar: none if that is meant"
)


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
    found += [*_prices(policy, now), *_rollout(policy, now)]
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


def _prices(policy: Policy, now: datetime) -> Iterator[Remark]:
    for discount in policy.discounts:
        where, since = f"discount on {discount.cloud}", discount.since
        if since is not None and since > now.date():
            yield Remark(where, f"it begins on {since}: until then list prices are shown")
        elif since is not None and now.date() - since > _OLD_DISCOUNT:
            yield Remark(where, f"it is of {since}, over three years old; add what holds now")
    for price in policy.prices:
        billed = BILLED_IN[price.cloud]
        if price.hourly.currency != billed:
            message = f"{price.cloud} bills in {billed}, and this price is in {price.hourly.currency}: no bill compares"
            yield Remark(f"price of {', '.join(price.instance_types)}", message)


def _rollout(policy: Policy, now: datetime) -> Iterator[Remark]:
    past = [
        f"{entry.scope} {step.mode.name.lower()} {step.since}"
        for entry in policy.rollout
        for step in entry.steps
        if step.since < now.date()
    ]
    if past:
        message = f"past are {', '.join(past)}: a step that nobody was told of begins a day after its announcement"
        yield Remark("rollout", message)


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
    if calendar is None:
        if lacks_calendar(policy):
            yield Remark("calendar", NO_CALENDAR)
        return
    year = (now + _AHEAD).year
    if calendar.known_until is not None and calendar.known_until.year < year:
        yield Remark(
            "calendar.holidays",
            f"no holidays are known for {year}: waits count twice there, and two weeks more; "
            "upgrade the holidays package and publish the policy again",
        )
    for computed in sorted(each for each in calendar.computed if now.year <= each <= year):
        yield Remark(
            "calendar.holidays",
            f"the holidays of {computed} are not announced yet: they are computed from the law, with days of rest "
            "around them and no moved workdays, so that waits only grow longer; publish again once they are",
        )
    if calendar.known_until is None and calendar.exceptions and all(day.year < year for day in calendar.exceptions):
        yield Remark(
            "calendar.holidays", f"no holiday of {year} or later is listed; dates that are past change nothing"
        )


def lacks_calendar(policy: Policy) -> bool:
    """Whether it may stop a machine at any hour of the week, and does not say that this is meant."""
    if policy.calendar is not None or policy.every_hour_counts:
        return False
    ladders = (rule.ladder for rule in policy.idle_gpu if rule.mode is Mode.ENFORCE)
    budgets = (budget.steps for budget in policy.budgets if budget.mode is Mode.ENFORCE)
    return any(step.verb in {Verb.STOP, Verb.TERMINATE} for ladder in ladders for step in ladder) or any(
        step.kind is not StepKind.FREEZE for steps in budgets for step in steps
    )


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


_NOTHING = "resource_groups matches nothing on AWS, which tells none of an instance; select by tags there"


def group_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Place and message of every such selection; one in an exception protects nothing."""
    for where, selector in _selections(policy):
        if selector.resource_groups is not None and _reaches_aws_alone(selector, policy):
            yield where, _NOTHING


def _selections(policy: Policy) -> Iterator[tuple[str, Selector]]:
    for rule in policy.idle_gpu:
        for selector in (rule.applies_to, *rule.except_for):
            yield f"rule {rule.name}", selector
    for exemption in policy.exemptions:
        yield exemption.where or "exceptions", exemption.owns
    for owner in policy.owners:
        yield f"owner {owner.name}", owner.owns
    for priority_class in policy.priority_classes:
        yield f"priority class {priority_class.name}", priority_class.selects


def _reaches_aws_alone(selector: Selector, policy: Policy) -> bool:
    guarded = [(account.cloud, account.id) for account in policy.accounts] or [(cloud, "") for cloud in CLOUDS]
    reached = {
        cloud
        for cloud, account in guarded
        if any_glob(selector.clouds, cloud) and (not account or any_glob(selector.accounts, account))
    }
    return bool(reached) and all(provider_of(cloud) == "aws" for cloud in reached)


_SHORT, _LONG = 4, 8
"""From so many letters on one mistake makes a near miss, from so many on two: `env` is near too many words."""
_ORDINARY = frozenset({"project", "projects"})
"""What people call things by, though it is one letter from `protect`."""


@dataclass(frozen=True, slots=True)
class _Tag:
    """One tag of a selection, where it stands, and whether it spares what has it."""

    where: str
    key: str
    value: str
    sparing: bool


def tag_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Place and message of every near miss."""
    tags = list(_tags(policy))
    yield from _nearly_protecting(policy, tags)
    yield from _nearly_another(tags)
    yield from _other_spelling(tags)


def _nearly_protecting(policy: Policy, tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    shipped = Protection()
    known = (*shipped.tag_names, *shipped.expiry_tag_names)
    protecting = (*policy.protection.tag_names, *policy.protection.expiry_tag_names)
    for where, key in sorted({(each.where, each.key) for each in tags}):
        close = _close(key, protecting)
        if close and spelling(key) not in _ORDINARY:
            yield where, f"the tag {key} is nearly {close}, which protects; is it mistyped?"
    for key in sorted(set(protecting) - set(known)):
        close = _close(key, known)
        if close and spelling(key) not in _ORDINARY:
            yield "protect", f"the tag {key} is nearly {close}, which protects anyway; is it mistyped?"


def _nearly_another(tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    """A sparing tag that the rest of the policy writes otherwise spares nothing."""
    others = sorted({each.key for each in tags if not each.sparing})
    for where, key in sorted({(each.where, each.key) for each in tags if each.sparing}):
        close = _close(key, others)
        if close and spelling(key) not in {spelling(other) for other in others}:
            yield where, f"the tag {key} is nearly {close}, as this policy says elsewhere; is it mistyped?"


def _other_spelling(tags: list[_Tag]) -> Iterator[tuple[str, str]]:
    """Case and separators count in what brings a machine under a rule."""
    exact = [each for each in tags if not each.sparing]
    for where, key in sorted({(each.where, each.key) for each in exact}):
        for other in sorted({each.key for each in tags if each.key != key and spelling(each.key) == spelling(key)}):
            yield where, f"the tag {key} is compared exactly here; {other}, as written elsewhere, is another tag"
    for where, key, value in sorted({(each.where, each.key, each.value) for each in exact}):
        same_key = {each.value for each in tags if each.key == key and each.value != value}
        for other in sorted(each for each in same_key if spelling(each) == spelling(value) != ""):
            yield where, f"{key}: {value} is compared exactly here; {other}, as written elsewhere, is another value"


def _tags(policy: Policy) -> Iterator[_Tag]:
    rules: tuple[IdleRule | KeyRule | AuditRule, ...] = (*policy.idle_gpu, *policy.kms_rotation, *policy.network_audit)
    for rule in rules:
        yield from _of(f"rule {rule.name}", rule.applies_to.tags, sparing=False)
        for each in rule.except_for:
            yield from _of(f"rule {rule.name}", each.tags, sparing=True)
    for budget in policy.budgets:
        yield from _of(f"budget {budget.name}", dict(budget.covers.tags), sparing=False)
    for priority_class in policy.priority_classes:
        yield from _of(f"priority class {priority_class.name}", priority_class.selects.tags, sparing=False)
    for owner in policy.owners:
        yield from _of(f"owner {owner.name}", owner.owns.tags, sparing=False)
    for exemption in policy.exemptions:
        yield from _of(exemption.where or "exceptions", exemption.owns.tags, sparing=True)


def _of(where: str, tags: Mapping[str, str] | None, *, sparing: bool) -> Iterator[_Tag]:
    for key, value in (tags or {}).items():
        yield _Tag(where, key, value, sparing)


def _close(key: str, names: Sequence[str]) -> str:
    """The nearest of `names` that is a mistake or two away, and not the same in another spelling."""
    word = spelling(key)
    if word in {spelling(name) for name in names}:
        return ""
    near = ((_mistakes(word, spelling(name)), name) for name in names if _alike(word, spelling(name)))
    return min(((count, name) for count, name in near if count <= _allowed(word)), default=(0, ""))[1]


def _alike(word: str, name: str) -> bool:
    """Whether it is worth counting; mistakes in the first letter are rare, and of short words make other words."""
    return min(len(word), len(name)) >= _SHORT and word[:1] == name[:1] and abs(len(word) - len(name)) <= _allowed(word)


def _allowed(word: str) -> int:
    return 1 if len(word) < _LONG else 2


def _mistakes(one: str, other: str) -> int:
    """Letters that are missing, too many, wrong, or changed places with the next: optimal string alignment."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, row, older = row, [i], before
        for j, theirs in enumerate(other, start=1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                best = min(best, older[j - 2] + 1)
            row.append(best)
        before = last
    return row[-1]


def network_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Every warning about rules for networks, with the name of the rule."""
    for rule in policy.network_audit:
        for message in _of_network_rule(rule, policy.mode):
            yield f"rule for networks {rule.name}", message


def _of_network_rule(rule: AuditRule, ceiling: Mode) -> Iterator[str]:
    if rule.mend and rule.mode is not Mode.ENFORCE:
        why = "" if ceiling is not Mode.ENFORCE else "; a rule for networks does not take the policy's mode"
        yield f"mend is only rehearsed, for the rule's own mode is {rule.mode.name.lower()}{why}"
    if rule.mode is Mode.ENFORCE and not rule.mend:
        yield "mode: enforce without mend changes nothing: owners are told, and no more"
    if rule.mend and rule.actions_per_day == 0:
        yield "a cap of 0 allows nothing: this rule never mends"
    if RemediationKind.RELEASE_ADDRESS in rule.mend and rule.mode is Mode.ENFORCE:
        yield "release_address gives addresses up for good; keep names those that must stay"
