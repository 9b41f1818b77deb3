"""What somebody understands who reads no further: saved, still wasted, budgets, what was held, what was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from costguard.domain.money import Money
from costguard.domain.savings import SavingsReport
from costguard.report.facts import (
    BudgetSnapshot,
    Figures,
    ReportFacts,
    ScanSnapshot,
    a_day,
    a_day_net,
    figures_of,
)
from costguard.report.guard_views import view_of
from costguard.report.plan.evidence import utc_words
from costguard.report.waste.reclaim import reclaim_lines, reclaim_of
from costguard.report.words.sentences import Language, clean, number, short
from costguard.report.words.sentences import in_digest as say

_NEAR = Decimal("0.8")
_MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Card:
    """One question and its answer. `good` None: neither good nor bad."""

    title: str
    figures: tuple[str, ...]
    lines: tuple[str, ...] = ()
    good: bool | None = None


def cards(facts: ReportFacts, language: Language) -> tuple[Card, ...]:
    """The first screen, in this order."""
    return (
        _saved(facts, language),
        _wasted(facts, language),
        _budgets(facts, language),
        _refused(facts, language),
        _unseen(facts, language),
    )


def changes(facts: ReportFacts, language: Language) -> tuple[str, ...]:
    """What is otherwise than in the digest before; a first digest says so."""
    before, now = facts.before, figures_of(facts)
    if before is None:
        return (say("change_none", language),)
    found = tuple(_changed(before, now, language))
    return found or (say("change_nothing", language),)


def money_words(amounts: Iterable[Money]) -> tuple[str, ...]:
    """Each currency by itself."""
    return tuple(str(amount) for amount in amounts)


def budget_words(one: BudgetSnapshot, language: Language, key: str = "budget_line") -> str:
    """Where one budget stands, in a line."""
    expected = "" if one.expected is None or not one.amount.amount else percent(one.expected.amount / one.amount.amount)
    return say(key, language, name=clean(one.name), share=percent(one.share), amount=str(one.amount), expected=expected)


def percent(share: Decimal) -> str:
    """A share as whole percent, one place below ten."""
    value = share * 100
    return number(float(round(value, 1 if abs(value) < 10 else 0)))  # noqa: PLR2004 - below ten a place more tells


def unmeasured_percent(facts: ReportFacts) -> str:
    """How many of the running machines nobody can say anything of."""
    running = len(facts.running)
    return percent(Decimal(len(facts.unmeasured)) / running) if running else "0"


def stale_words(look: ScanSnapshot, language: Language) -> str:
    """That a look is old, in the words of what it looked at."""
    return say("unseen_stale", language, guard=view_of(look.guard).name(language), when=utc_words(look.at))


def held_words(facts: ReportFacts, language: Language, most: int = 3) -> tuple[str, ...]:
    """The rails that held most, with how often each did."""
    return tuple(f"{count} × {short(code, language)}" for code, count in list(facts.held.items())[:most])


def _saved(facts: ReportFacts, language: Language) -> Card:
    title, report = say("saved", language), facts.saved
    if report is None:
        return Card(title, (say("saved_unknown", language),))
    realised = [total.realised for total in report.totals if total.realised.amount]
    if not realised:
        lines = [say("saved_hint", language), *others_words(report, language)]
        return Card(title, (say("saved_none", language),), tuple(lines))
    promised = " + ".join(money_words(total.predicted for total in report.totals))
    net = " + ".join(money_words(total.realised_net for total in report.totals if total.realised_net is not None))
    without = sum(total.actions - total.net_actions for total in report.totals)
    lines = [say("saved_hint", language), say("saved_promised", language, amount=promised)]
    lines.append(say("net_of_discounts" if net else "list_prices", language, net=net, without=without or ""))
    lines += others_words(report, language)
    return Card(title, money_words(realised), tuple(lines), good=True)


def others_words(report: SavingsReport, language: Language) -> tuple[str, ...]:
    """What was saved by others than Costguard, each cause by itself; in no other figure."""
    return tuple(
        say(f"saved_{one.cause.value}", language, amount=" + ".join(money_words((one.realised,))))
        for one in report.others
        if one.realised.amount
    )


def _wasted(facts: ReportFacts, language: Language) -> Card:
    title, idle = say("wasted", language), facts.idle
    if not idle:
        return Card(title, (say("wasted_none", language),), good=True if facts.machines else None)
    kept = [one for one in idle if one.may_not_be_touched and one.standing is None]
    unpriced = sum(one.hourly is None for one in idle)
    lines = [say("wasted_hint", language, machines=len(idle), unpriced=unpriced or "")]
    net = " + ".join(money_words(a_day_net(idle)))
    without = sum(one.hourly_net is None for one in idle)
    lines.append(say("net_of_discounts" if net else "list_prices", language, net=net, without=without or ""))
    if kept:
        amount = " + ".join(money_words(a_day(kept))) or say("price_unknown", language)
        lines.append(say("wasted_untouchable", language, amount=amount, machines=len(kept)))
    lines.extend(reclaim_lines(reclaim_of((one.standing, one.hourly) for one in idle), language))
    return Card(title, money_words(a_day(idle)) or (say("price_unknown", language),), tuple(lines), good=False)


def _budgets(facts: ReportFacts, language: Language) -> Card:
    title, budgets = say("budgets", language), facts.budgets
    if not budgets:
        return Card(title, (say("budgets_none", language),))
    spent = sum(one.share >= 1 for one in budgets)
    near = sum(_NEAR <= one.share < 1 for one in budgets)
    will = sum(
        one.share < _NEAR and one.expected is not None and one.expected.amount > one.amount.amount for one in budgets
    )
    figures = [
        *([say("budgets_spent", language, count=spent)] if spent else []),
        *([say("budgets_near", language, count=near)] if near else []),
        *([say("budgets_will", language, count=will)] if will else []),
    ]
    first = sorted(budgets, key=lambda one: (-one.share, one.name))[:_MOST_LINES]
    lines = [budget_words(one, language) for one in first]
    if any(one.unread for one in budgets):
        lines.append(say("budget_lower", language))
    return Card(
        title, tuple(figures) or (say("budgets_fine", language),), tuple(lines), good=not (spent or near or will)
    )


def _refused(facts: ReportFacts, language: Language) -> Card:
    title, held = say("refused", language), sum(facts.held.values())
    if not held and not facts.refusals:
        return Card(title, (say("refused_none", language),))
    hint = say("refused_hint", language, count=len(facts.refusals), since=utc_words(facts.since))
    return Card(title, (str(held + len(facts.refusals)),), (hint, *held_words(facts, language)))


def _unseen(facts: ReportFacts, language: Language) -> Card:
    title, places, unmeasured = say("unseen", language), len(facts.unseen), len(facts.unmeasured)
    stale = [stale_words(one, language) for one in facts.stale]
    if facts.has_nothing:
        return Card(title, ("?",), (say("digest_no_runs", language),), good=False)
    if not places and not unmeasured and not stale:
        return Card(title, (say("unseen_none", language),), good=True)
    hint = say("unseen_hint", language, places=places, unmeasured=unmeasured, share=unmeasured_percent(facts))
    return Card(title, (str(places + unmeasured),), (hint, *stale), good=False)


def _changed(before: Figures, now: Figures, language: Language) -> Iterator[str]:
    if before.idle != now.idle:
        yield say("change_idle", language, before=before.idle, now=now.idle)
    if before.wasted_a_day != now.wasted_a_day:
        then, amount = (" + ".join(money_words(each)) or "0" for each in (before.wasted_a_day, now.wasted_a_day))
        yield say("change_wasted", language, before=then, now=amount)
    if before.unmeasured != now.unmeasured:
        yield say("change_unmeasured", language, before=before.unmeasured, now=now.unmeasured)
    for name, share in now.spent_shares.items():
        then_share = before.spent_shares.get(name)
        if then_share is not None and then_share != share:
            yield say("change_budget", language, name=clean(name), before=percent(then_share), now=percent(share))
