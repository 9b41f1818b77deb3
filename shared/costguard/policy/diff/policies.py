"""How two whole policies differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TypeVar

from costguard.domain.money import Discount, Money
from costguard.guards.rules.common import Bars, Mode, Selector
from costguard.policy.diff import differences as d
from costguard.policy.diff.differences import NOT_TOLD, Difference, Direction, Part, Parts, loosening
from costguard.policy.diff.guards import budget_differences, key_differences, network_differences
from costguard.policy.diff.idle import amounts_above_looser, idle_differences, spares_all_of
from costguard.policy.model.policy import Owner, Policy, RolloutEntry, RolloutStep, Shadows, with_policy_digest
from costguard.policy.model.working_time import WorkingCalendar
from costguard.policy.syntax import units as n

_WHOLE = "policy"
_Entry = TypeVar("_Entry")


def policy_differences(old: Policy, new: Policy) -> tuple[Difference, ...]:
    """Everything that is not as it was, by section. Empty only where both policies mean the same.

    A policy whose digest differs and of which nothing here can tell why is looser: nobody can prove otherwise.
    """
    found = tuple(_all(old, new))
    if not found and old.digest != new.digest:
        return (Difference(_WHOLE, "", "digest", old.digest, new.digest, Direction.LOOSER),)
    return found


def _all(old: Policy, new: Policy) -> Iterator[Difference]:
    steps = any(rule.mode > Mode.OBSERVE and rule.steps for rule in new.budgets)
    for each in d.compared(_WHOLE, "", old, new, _POLICY):  # another rate lets a budget's steps begin sooner
        yield replace(each, direction=Direction.LOOSER) if each.key == "exchange_rates" and steps else each
    yield from idle_differences(old.idle_gpu, new.idle_gpu)
    yield from budget_differences(old, new)
    yield from key_differences(old.kms_rotation, new.kms_rotation)
    yield from network_differences(old.network_audit, new.network_audit)
    for each in _shadows(old.shadows, new.shadows):  # they decide nothing
        yield replace(each, section=f"{each.section} shadow", direction=Direction.OTHER)
    yield from d.listed(
        "accounts",
        {f"{each.cloud}:{each.id}": each for each in old.accounts},
        {f"{each.cloud}:{each.id}": each for each in new.accounts},
        _ACCOUNT,
        shown=lambda each: n.written(each.regions) or "all",
        added=lambda _: Direction.LOOSER,
        # without any left it is the account of the credentials that is guarded, whichever that is
        removed=lambda _: Direction.TIGHTER if new.accounts else Direction.LOOSER,
    )
    yield from _owners(old.owners, new.owners)
    yield from d.listed(
        "exceptions",
        _numbered((n.selection(each.owns), each) for each in old.exemptions),
        _numbered((n.selection(each.owns), each) for each in new.exemptions),
        _EXCEPTION,
        shown=lambda each: f"{each.reason}; {n.written(each.expires_at)}",
        added=lambda _: Direction.TIGHTER,
        removed=lambda _: Direction.LOOSER,
    )


def _shadows(old: Shadows, new: Shadows) -> Iterator[Difference]:
    yield from (each for each in idle_differences(old.idle_gpu, new.idle_gpu) if each.key != "falls_to")
    yield from key_differences(old.kms_rotation, new.kms_rotation)
    yield from network_differences(old.network_audit, new.network_audit)


def _owners(old: Sequence[Owner], new: Sequence[Owner]) -> Iterator[Difference]:
    """Who is told is for people to judge; but whoever is named in `people` may stop what is theirs now."""
    may_answer = Direction.LOOSER if any(each.people for each in new) else Direction.OTHER
    found = d.listed(
        "owners",
        _numbered((each.name, each) for each in old),
        _numbered((each.name, each) for each in new),
        _OWNER,
        shown=lambda each: n.selection(each.owns) or n.written(each.cloud_users),
        added=lambda each: Direction.LOOSER if each.people else Direction.OTHER,
        removed=lambda _: may_answer,  # what was theirs falls to the next in line
    )
    for each in found:
        yield replace(each, direction=may_answer) if each.key in {"owns", "cloud_users"} else each
    order, now = [each.name for each in old], [each.name for each in new]
    if order != now and sorted(order) == sorted(now):  # the first that matches is told
        yield Difference("owners", "", "order", ", ".join(order), ", ".join(now), may_answer)


def _numbered(entries: Iterable[tuple[str, _Entry]]) -> dict[str, _Entry]:
    """Each by what it is called; of several of one name the later ones are told apart by their place."""
    found: dict[str, _Entry] = {}
    for name, entry in entries:
        count = sum(known.rpartition(" #")[0] == name or known == name for known in found)
        found[name if not count else f"{name} #{count + 1}"] = entry
    return found


def _regions_wider(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> bool:
    return old is not None and (new is None or d.more(old, new))


def _calendar_looser(old: WorkingCalendar | None, new: WorkingCalendar | None) -> bool:
    """A calendar only lengthens waits; of two of them the new one may not have an hour that the old one has not."""
    if old is None or new is None:
        return new is None
    within = (
        new.zone == old.zone
        and new.weekdays <= old.weekdays
        and new.opens >= old.opens
        and _closes(new) <= _closes(old)
    )
    less_known = old.known_until is not None and new.known_until is None
    named = (day for day in old.exceptions.keys() | new.exceptions.keys() if _both_know(old, new, day))
    return not (within and not less_known and all(_worked(new, day) <= _worked(old, day) for day in named))


def _both_know(old: WorkingCalendar, new: WorkingCalendar, day: date) -> bool:
    """Years that only one of two releases of the dates of countries has are no change of the policy.

    Nor does it matter whether whoever compares finds dates for a bundle that was published without any.
    """
    if old.known_until is None or new.known_until is None:
        return True
    first = max(min(each.exceptions, default=date.max) for each in (old, new))
    return first <= day <= min(old.known_until, new.known_until)


def _closes(calendar: WorkingCalendar) -> int:
    minutes = calendar.closes.hour * 60 + calendar.closes.minute
    return minutes or 24 * 60


def _worked(calendar: WorkingCalendar, day: date) -> bool:
    return calendar.is_working_day(day)


def _calendar_words(calendar: WorkingCalendar | None) -> str:
    if calendar is None:
        return ""
    days = ",".join(("mon", "tue", "wed", "thu", "fri", "sat", "sun")[day] for day in sorted(calendar.weekdays))
    hours = f"{n.written(calendar.opens)}-{n.written(calendar.closes)}"
    return f"{calendar.zone} {days} {hours}, {sum(not worked for worked in calendar.exceptions.values())} holidays"


def _prices_looser(old: tuple[tuple[object, Money], ...], new: tuple[tuple[object, Money], ...]) -> bool:
    """A price that was unknown is held, and a lower one counts less against the caps: only a higher one is tighter."""
    before, after = dict(old), dict(new)
    return [key for key, _ in old] != [key for key, _ in new] or any(
        after[key].currency != money.currency or after[key].amount < money.amount for key, money in before.items()
    )


def _discount_words(discount: Discount) -> str:
    types = ", ".join(sorted(discount.instance_types))
    since = "" if discount.since is None else f"since {discount.since}"
    return " ".join(filter(None, (discount.cloud, discount.account, types, n.share(discount.share), since)))


def _rollout_looser(old: tuple[RolloutEntry, ...], new: tuple[RolloutEntry, ...]) -> bool:
    """Tighter is only: none before; or the same scopes, none with a step that is new, sooner, or asks for less."""
    if not old:
        return False
    before, after = ({(each.team, each.account): each for each in entries} for entries in (old, new))
    return before.keys() != after.keys() or any(
        _steps_looser(before[scope].steps, entry.steps) for scope, entry in after.items()
    )


def _steps_looser(old: tuple[RolloutStep, ...], new: tuple[RolloutStep, ...]) -> bool:
    known = {step.mode: step for step in old}
    return any(step.mode not in known or _step_looser(known[step.mode], step) for step in new)


def _step_looser(old: RolloutStep, new: RolloutStep) -> bool:
    if new.since < old.since:
        return True
    if old.regret_below is None:
        return False
    return (
        new.regret_below is None
        or new.regret_below > old.regret_below
        or new.in_shadow != old.in_shadow
        or new.of_at_least < old.of_at_least
    )


def _rollout_words(entries: tuple[RolloutEntry, ...]) -> str:
    return "; ".join(f"{each.scope}: {', '.join(map(_step_words, each.steps))}" for each in entries)


def _step_words(step: RolloutStep) -> str:
    words = f"{step.mode.name.lower()} {step.since}"
    if step.regret_below is None:
        return words
    return f"{words} if regret < {n.share(step.regret_below)} of {step.of_at_least}+ in {step.in_shadow}"


def _told_at_all(old: str, new: str) -> bool | None:
    """Without an address nobody is told, and so nothing harmful is done; another one is for people to judge."""
    return None if old and new else bool(new)


def _unset_or_same(old: str, new: str) -> bool:
    """Only taking it away is certainly tighter."""
    del old
    return bool(new)


def _later(old: datetime, new: datetime) -> bool:
    return new < old


def _narrower(old: Selector, new: Selector) -> bool:
    return not spares_all_of(old, new)


_POLICY: Parts = {
    "mode": Part(d.higher),
    "observe_new_accounts_for": Part(
        d.lower, "new_accounts.observe_for", lambda wait: n.duration(wait) if wait else ""
    ),
    "leading_deployment": Part(_unset_or_same),
    "calendar": Part(_calendar_looser, shown=_calendar_words),
    "protection.tag_names": Part(d.fewer, "protect.tags"),
    "protection.expiry_tag_names": Part(d.fewer, "protect.expiry_tags"),
    "protection.controller_tags": Part(d.fewer, "protect.controller_tags"),
    "protection.accounts": Part(d.fewer, "protect.accounts"),
    "protection.termination_protection_bars": Part(
        lambda _, new: new is not Bars.EVERYTHING, "protect.termination_protection_bars"
    ),
    "prices": Part(
        _prices_looser,
        value=lambda prices: tuple(((each.cloud, each.instance_types), each.hourly) for each in prices),
    ),
    "discounts": Part(  # every limit in money counts list prices
        None, "prices.discount", shown=lambda discounts: n.written(tuple(map(_discount_words, discounts)))
    ),
    "signals.cloudwatch_namespace": Part(d.any_change),
    "signals.prometheus": Part(  # one that is gone may have been the one that showed the use
        d.any_change, shown=lambda servers: ", ".join(each.url for each in servers)
    ),
    "default_channel": Part(_told_at_all, "notify.default"),
    "answers.slack_team": Part(_unset_or_same, "notify.answers.slack_team"),
    "answers.approvers": Part(d.more, "notify.answers.approvers"),
    "answers.two_above": Part(amounts_above_looser, "notify.answers.two_approvers_above"),
    "messages_per_day": Part(d.higher, "notify.messages_per_day"),
    "rollout": Part(_rollout_looser, shown=_rollout_words),
    "every_hour_counts": Part(None, "calendar.none", lambda said: "none" if said else ""),  # as without a calendar
    "start_again": Part(d.higher),  # one more thing that is done to machines
    "longest_exception": Part(d.lower, shown=n.duration),
    "keep_as_tag": Part(None),  # what this policy does to a machine stays the same
    "exchange_rates": Part(
        None,
        shown=lambda rates: n.written(tuple(f"{each.base}→{each.quote} {n.written(each.rate)}" for each in rates)),
    ),
    "priority_classes": Part(  # what budgets do with them is told there
        None, shown=lambda classes: n.written(tuple(f"{each.name} ({n.selection(each.selects)})" for each in classes))
    ),
    "launch_freezes": Part(
        d.more,
        shown=lambda freezes: n.written(tuple(f"{each.name} ({each.policy} → {each.target})" for each in freezes)),
    ),
    # lists of entries, each compared by tables of its own
    **dict.fromkeys(("accounts", "owners", "exemptions", "idle_gpu", "budgets"), NOT_TOLD),
    **dict.fromkeys(("kms_rotation", "network_audit", "shadows", "digest"), NOT_TOLD),
}
_ACCOUNT: Parts = {
    "regions": Part(_regions_wider, shown=lambda regions: n.written(regions) or "all"),
    "owner": Part(None),
    "role": Part(d.any_change),  # it may be allowed more
    "external_id": Part(None),
    "organisation": Part(d.higher),
    "protected": Part(d.lower),
}
_OWNER: Parts = {
    "name": NOT_TOLD,
    "owns": Part(None, shown=n.selection),
    "channel": Part(None),
    "people": Part(d.more),
    "cloud_users": Part(None),
}
_EXCEPTION: Parts = {
    "owns": Part(_narrower, "applies_when_all", n.selection),
    "expires_at": Part(_later, "expires"),
    "owner": Part(None),
    "reason": Part(None),
    "approver": Part(None),
}


LOOSENING_WAITS = timedelta(hours=24)  # from publication at least: people on every shift can see it and object
APPROVALS_NEEDED = 2


def changes(old: Policy, new: Policy, at: datetime) -> tuple[Difference, ...]:
    """What differs as of `at`: an exception that has run out by then protects nothing any more."""
    return policy_differences(_as_of(old, at), _as_of(new, at))


def loosenings(old: Policy, new: Policy, at: datetime) -> tuple[Difference, ...]:
    """What lets Costguard do more, sooner or harder, or listen to more people; see `changes`."""
    return loosening(changes(old, new, at))


def observes_only(policy: Policy) -> bool:
    """Whether nothing is ever done or announced under it."""
    modes = [policy.mode]
    for rules in (policy.idle_gpu, policy.budgets, policy.kms_rotation, policy.network_audit):
        modes += [rule.mode for rule in rules]
    return set(modes) == {Mode.OBSERVE}


def loosening_words(found: Difference) -> str:
    """One loosening in words of the policy: `idle_gpu research: then: warn, now warn → stop 24h`."""
    entry = " ".join(filter(None, (found.section, found.name)))
    what = f"{entry}: {found.key}" if found.key else entry
    return f"{what}: {found.before or '-'}, now {found.after or '-'}"


def _as_of(policy: Policy, at: datetime) -> Policy:
    return with_policy_digest(replace(policy, exemptions=policy.active_exemptions(at)))
