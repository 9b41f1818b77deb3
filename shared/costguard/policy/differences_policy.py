"""How two whole policies differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime

from costguard.domain.money import Money
from costguard.guards.rules import Selector
from costguard.policy import differences as d
from costguard.policy import notation as n
from costguard.policy.calendar import WorkingCalendar
from costguard.policy.changes import reaches_no_further
from costguard.policy.differences import Difference, Direction, Part
from costguard.policy.differences_guards import budget_differences, key_differences, network_differences
from costguard.policy.differences_idle import idle_differences
from costguard.policy.model import Account, Exemption, Owner, Policy

_WHOLE = "policy"


def policy_differences(old: Policy, new: Policy) -> tuple[Difference, ...]:
    """Everything that is not as it was, by section. Empty only where both policies mean the same.

    A policy whose digest differs and of which nothing here can tell why is looser: nobody can prove otherwise.
    """
    found = tuple(_all(old, new))
    if not found and old.digest != new.digest:
        return (Difference(_WHOLE, "", "digest", old.digest, new.digest, Direction.LOOSER),)
    return found


def _all(old: Policy, new: Policy) -> Iterator[Difference]:
    yield from d.compared(_WHOLE, "", old, new, _POLICY)
    yield from idle_differences(old.idle_gpu, new.idle_gpu)
    yield from budget_differences(old, new)
    yield from key_differences(old.kms_rotation, new.kms_rotation)
    yield from network_differences(old.network_audit, new.network_audit)
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
    yield from d.listed(
        "owners",
        _by_name(old.owners),
        _by_name(new.owners),
        _OWNER,
        shown=lambda each: n.selection(each.owns) or n.written(each.cloud_users),
        added=lambda each: Direction.LOOSER if each.people else Direction.OTHER,
        removed=lambda _: Direction.OTHER,
    )
    yield from _exceptions(old.exemptions, new.exemptions)


def _by_name(owners: Sequence[Owner]) -> dict[str, Owner]:
    """Each by name; of several entries of one name the later ones are told apart by their place."""
    found: dict[str, Owner] = {}
    for owner in owners:
        count = sum(name.partition("#")[0] == owner.name for name in found)
        found[owner.name if not count else f"{owner.name}#{count + 1}"] = owner
    return found


def _exceptions(old: Sequence[Exemption], new: Sequence[Exemption]) -> Iterator[Difference]:
    before = {_called(each): each for each in old}
    after = {_called(each): each for each in new}
    yield from d.listed(
        "exceptions",
        before,
        after,
        _EXCEPTION,
        shown=lambda each: f"{each.reason}; {n.written(each.expires_at)}",
        added=lambda _: Direction.TIGHTER,
        removed=lambda _: Direction.LOOSER,
    )


def _called(each: Exemption) -> str:
    return n.selection(each.owns)


def _regions_wider(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> bool:
    return old is not None and (new is None or d.more(old, new))


def _calendar_looser(old: WorkingCalendar | None, new: WorkingCalendar | None) -> bool:
    """A calendar only lengthens waits; of two of them the new one may not have an hour that the old one has not."""
    if old is None or new is None:
        return new is None
    within = new.zone == old.zone and new.weekdays <= old.weekdays and new.opens >= old.opens and _closes(new) <= _closes(old)
    named = old.exceptions.keys() | new.exceptions.keys()
    sure = (new.known_until or date.max) <= (old.known_until or date.max) or set(new.doubtful) >= set(old.doubtful)
    return not (within and sure and all(_worked(new, day) <= _worked(old, day) for day in named))


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


def _two_above_looser(old: tuple[Money, ...], new: tuple[Money, ...]) -> bool:
    """Every amount there was is still there and no higher. No amount at all: one person is enough for everything."""
    after = {money.currency: money.amount for money in new}
    if not new:
        return True
    if not old:
        return False
    return any(money.currency in after and after[money.currency] > money.amount for money in old) or d.more(
        [money.currency for money in old], [money.currency for money in new]
    )


def _unset_or_same(old: str, new: str) -> bool:
    """Only taking it away is certainly tighter."""
    del old
    return bool(new)


def _later(old: datetime, new: datetime) -> bool:
    return new < old


def _narrower(old: Selector, new: Selector) -> bool:
    return not reaches_no_further(old, new)


_POLICY: tuple[Part[Policy], ...] = (
    Part("mode", lambda policy: policy.mode, d.higher),
    Part("calendar", lambda policy: policy.calendar, _calendar_looser, _calendar_words),
    Part("protect.tags", lambda policy: policy.protection.tag_names, d.fewer),
    Part("protect.expiry_tags", lambda policy: policy.protection.expiry_tag_names, d.fewer),
    Part("protect.accounts", lambda policy: policy.protection.accounts, d.fewer),
    Part(
        "prices",
        lambda policy: tuple(((each.cloud, each.instance_types), each.hourly) for each in policy.prices),
        _prices_looser,
    ),
    Part("signals.cloudwatch_namespace", lambda policy: policy.signals.cloudwatch_namespace, d.any_change),
    Part(
        "signals.prometheus",
        lambda policy: policy.signals.prometheus,
        d.more,
        lambda servers: ", ".join(each.url for each in servers),
    ),
    Part("notify.default", lambda policy: policy.default_channel, lambda old, _: not old),
    Part("notify.answers.slack_team", lambda policy: policy.answers.slack_team, _unset_or_same),
    Part("notify.answers.approvers", lambda policy: policy.answers.approvers, d.more),
    Part("notify.answers.two_approvers_above", lambda policy: policy.answers.two_above, _two_above_looser),
    Part(
        "exchange_rates",
        lambda policy: policy.exchange_rates,
        None,
        lambda rates: n.written(tuple(f"{each.source}→{each.target} {n.written(each.rate)}" for each in rates)),
    ),
    Part(
        "priority_classes",
        lambda policy: policy.priority_classes,
        None,  # what budgets do with them is told there
        lambda classes: n.written(tuple(f"{each.name} ({n.selection(each.selects)})" for each in classes)),
    ),
    Part(
        "launch_freezes",
        lambda policy: policy.launch_freezes,
        d.more,
        lambda freezes: n.written(tuple(f"{each.name} ({each.policy} → {each.target})" for each in freezes)),
    ),
)
_ACCOUNT: tuple[Part[Account], ...] = (
    Part("regions", lambda each: each.regions, _regions_wider, lambda regions: n.written(regions) or "all"),
    Part("owner", lambda each: each.owner, None),
    Part("role", lambda each: each.role, None),
    Part("external_id", lambda each: each.external_id, None),
    Part("organisation", lambda each: each.organisation, d.higher),
    Part("protected", lambda each: each.protected, d.lower),
)
_OWNER: tuple[Part[Owner], ...] = (
    Part("owns", lambda each: each.owns, None, n.selection),
    Part("channel", lambda each: each.channel, None),
    Part("people", lambda each: each.people, d.more),
    Part("cloud_users", lambda each: each.cloud_users, None),
)
_EXCEPTION: tuple[Part[Exemption], ...] = (
    Part("applies_when_all", lambda each: each.owns, _narrower, n.selection),
    Part("expires", lambda each: each.expires_at, _later),
    Part("owner", lambda each: each.owner, None),
    Part("reason", lambda each: each.reason, None),
    Part("approver", lambda each: each.approver, None),
)
