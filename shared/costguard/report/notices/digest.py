"""The weekly digest as a notice: what a manager understands first, in a dozen lines, and where the rest is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from costguard.domain.backtests import Reclaimed
from costguard.report.facts import ReportFacts, a_day, a_day_net
from costguard.report.notices.machines import Notice
from costguard.report.page.headline import (
    budget_words,
    cards,
    changes,
    held_words,
    money_words,
    others_words,
    stale_words,
    unmeasured_percent,
)
from costguard.report.page.tables import oldest
from costguard.report.plan.evidence import utc_words
from costguard.report.plan.shadows import shadow_lines
from costguard.report.policy.provenance import decided_lines
from costguard.report.waste.day_one import WasteReport, by_owner_and_cloud
from costguard.report.waste.page import cards as first_cards
from costguard.report.words.sentences import Language, clean, gap, listed, phrase
from costguard.report.words.sentences import in_digest as say

_MOST_BUDGETS, _MOST_OLDEST, _MOST_GAPS = 5, 3, 3


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the page and its first chart are kept; `why_not` says why they are not."""

    page: str = ""
    chart: str = ""
    why_not: str = ""


def digest_notice(facts: ReportFacts, kept: Kept, language: Language) -> Notice:
    """What one channel is told: of one team, or of all."""
    title = (
        say("digest_title_all", language)
        if facts.owner is None
        else say("digest_title", language, owner=clean(facts.owner))
    )
    if facts.has_nothing:
        return _short(title, say("digest_no_runs", language))
    if says_nothing(facts):
        return _short(title, say("digest_nothing", language), *decided_lines(facts.policies, language))
    fields = tuple(_fields(facts, language))
    lines = tuple(_lines(facts, kept, language))
    return Notice(title, fields, lines, ": " if language is Language.EN else "：")


def first_notice(report: WasteReport, reclaimed: Sequence[Reclaimed], kept: Kept, language: Language) -> Notice:
    """The first digest: the cards of the page of day one, and the teams that waste most."""
    fields = tuple((title, figure) for title, figure, _ in first_cards(report, reclaimed, language))
    lines = [line for _, _, said in first_cards(report, reclaimed, language) for line in said]
    for cloud, waste in by_owner_and_cloud(report)[:_MOST_OLDEST]:
        owner = clean(waste.owner) or say("idle_nobody", language)
        cost = " + ".join(map(str, waste.idle_cost))
        lines.append(say("digest_first_team", language, owner=owner, cloud=cloud, machines=waste.instances, cost=cost))
    lines += _where(kept, language)
    return Notice(phrase("first_title", language), fields, tuple(lines), ": " if language is Language.EN else "：")


def says_nothing(facts: ReportFacts) -> bool:
    """Whether nothing is idle, held, refused, unseen, unmeasured, saved, or spent to more than is even."""
    troubled = facts.idle or facts.held or facts.refusals or facts.unseen or facts.unmeasured or facts.stale
    beyond = any(one.share >= 1 or (one.expected and one.expected.amount > one.amount.amount) for one in facts.budgets)
    saved = facts.saved is not None and any(total.realised.amount for total in facts.saved.totals)
    return not (troubled or beyond or saved)


def _fields(facts: ReportFacts, language: Language) -> Iterator[tuple[str, str]]:
    """The first screen; a team's leaves out what is not of that team."""
    saved, wasted, budgets, held, unseen = cards(facts, language)
    yield say("field_saved", language, since=f"{facts.since:%Y-%m-%d}"), " + ".join(saved.figures)
    yield say("field_wasted", language), _wasted(facts, language, " + ".join(wasted.figures))
    if facts.owner is None:
        yield say("field_budgets", language), _listed(budgets.figures, language)
        yield say("field_held", language), " + ".join(held.figures)
        yield say("field_unseen", language), " + ".join(unseen.figures)


def _which_prices(facts: ReportFacts, language: Language) -> str:
    """Whether what is still wasted is by list price alone, and what it comes to after discounts."""
    net = " + ".join(money_words(a_day_net(facts.idle)))
    without = sum(one.hourly_net is None for one in facts.idle)
    return say("digest_net" if net else "digest_list", language, net=net, without=without or "")


def _wasted(facts: ReportFacts, language: Language, amount: str) -> str:
    idle = facts.idle
    if not idle:
        return amount
    kept = [one for one in idle if one.may_not_be_touched]
    untouchable = " + ".join(money_words(a_day(kept))) or say("price_unknown", language)
    return say(
        "digest_wasted",
        language,
        amount=amount,
        machines=len(idle),
        kept=len(kept) or "",
        untouchable=untouchable if kept else "",
    )


def _listed(words: Iterable[str], language: Language) -> str:
    return listed(words, language)


def _lines(facts: ReportFacts, kept: Kept, language: Language) -> Iterator[str]:
    if facts.idle:
        yield _which_prices(facts, language)
    if facts.saved is not None:
        yield from others_words(facts.saved, language)
    for one in oldest(facts, _MOST_OLDEST):
        since = facts.idle_since(one)
        yield say(
            "digest_oldest",
            language,
            name=clean(one.name) or clean(one.ref.native_id),
            owner=clean(one.owner) or say("idle_nobody", language),
            since="" if since is None else utc_words(since),
            cost="" if one.a_day is None else str(one.a_day),
        )
    if facts.owner is None:
        for budget in sorted(facts.budgets, key=lambda each: (-each.share, each.name))[:_MOST_BUDGETS]:
            yield budget_words(budget, language, "digest_budget")
    held = sum(facts.held.values())
    if held:
        yield say("digest_held", language, count=held, why=_listed(held_words(facts, language), language))
    if facts.refusals:
        yield say("digest_refused", language, count=len(facts.refusals))
    if facts.owner is None:
        yield from _coverage(facts, language)
        yield from changes(facts, language)
        yield from shadow_lines(facts.shadows, language)
    yield from decided_lines(facts.policies, language)
    yield from _where(kept, language)


def _coverage(facts: ReportFacts, language: Language) -> Iterator[str]:
    accounts = {account for look in facts.looks for account in look.accounts}
    yield say(
        "digest_coverage",
        language,
        accounts=len(accounts),
        places=len(facts.unseen),
        share=unmeasured_percent(facts),
    )
    yield from (gap(each, language) for each in facts.unseen[:_MOST_GAPS])
    for look in facts.stale:
        yield stale_words(look, language)


def _where(kept: Kept, language: Language) -> Iterator[str]:
    if kept.why_not:
        yield say("digest_page_failed", language, why=clean(kept.why_not))
    elif kept.page:
        yield say("digest_page", language, where=kept.page)
    else:
        yield say("digest_page_none", language)
    if kept.chart:
        yield say("digest_chart", language, where=kept.chart)


def _short(title: str, *lines: str) -> Notice:
    return Notice(title, (), lines)
