"""The demo as people read it: short lines, at most 80 columns, no id without a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from costguard.cli.demo import settings
from costguard.cli.demo.facts import DemoDay, Ending, LeftAlone, Names
from costguard.cli.wrapping import cells, wrapped
from costguard.domain.actions import ActionResult, Outcome, Verb
from costguard.domain.money import Money, totals
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.idle import percent_words
from costguard.report.budget.notices import share_words
from costguard.report.budget.views import BudgetReport
from costguard.report.plan.evidence import utc_words
from costguard.report.waste.views import amounts
from costguard.report.words.sentences import (
    Language,
    choice,
    clean,
    fix,
    hourly,
    phrase,
    sentence,
    together,
    verb,
    verdict,
)

_COLUMN = 7  # the headings of a day's lines
_INDENT = "  "
_VERBS = (Verb.WARN, Verb.STOP, Verb.SNAPSHOT, Verb.TERMINATE, Verb.START)


def opening_lines(
    machines: int, accounts: int, clouds: int, cost: Sequence[Money], days: int, language: Language
) -> Iterator[str]:
    """What is about to be shown."""
    yield phrase("demo_title", language, days=days)
    yield ""
    yield from wrapped(phrase("demo_intro", language))
    fleet = phrase("demo_fleet", language, machines=machines, accounts=accounts, clouds=clouds, hourly=amounts(cost))
    yield from wrapped(together((fleet, phrase("demo_policy", language)), language))


def is_quiet(day: DemoDay, before: DemoDay | None) -> bool:
    """Whether nothing happened that is worth more than a line."""
    done = (day.results, day.started, day.settings.eventful)
    happened = any((day.news, day.seen, day.plan.due, day.told, day.held_anew, *done))
    return not happened and not day.later and before is not None and before.counts == day.counts


def quiet_line(day: DemoDay, language: Language) -> str:
    """All there is to say of a quiet day."""
    said = phrase("demo_quiet", language, held=len(day.plan.held) or "")
    return phrase("demo_named", language, name=day_heading(day, language), why=said)


def day_heading(day: DemoDay, language: Language) -> str:
    """Which day it is."""
    if day.later:
        return phrase("demo_later", language, number=day.number)
    return phrase("demo_day", language, number=day.number, at=utc_words(day.at))


def day_lines(day: DemoDay, before: DemoDay | None, names: Names, language: Language) -> Iterator[str]:
    """What happened, was seen, found (where that changed), planned, told, done and held."""
    seen = [phrase(f"demo_seen_{what.value}", language, name=_name(ref, names)) for what, ref in day.seen]
    comma = phrase("demo_comma", language)
    found = comma.join(
        phrase("demo_count", language, count=count, verdict=verdict(one, language))
        for one, count in day.counts.items()
        if count
    )
    changed = not day.later and (before is None or before.counts != day.counts)
    held = [
        phrase("demo_named", language, name=_name(one.action.subject, names), why=_grounds(one.reason, language))
        for one in day.held_anew
    ]
    seen += settings.seen_lines(day.settings, language)
    held += settings.held_lines(day.settings, language)
    yield from _entries("demo_news", day.news, language)
    yield from _entries("demo_seen", seen, language)
    yield from _entries("demo_found", [found] if changed else [], language)
    yield from _entries(
        "demo_plan", [*_plan_lines(day, names, language), *settings.plan_lines(day.settings, language)], language
    )
    column = max((cells(told.channel) for told in day.told), default=0)
    told = [f"{one.channel}{' ' * (column - cells(one.channel))}  {_with_name(one.title, names)}" for one in day.told]
    yield from _entries("demo_told", told, language, extra=column + 2)
    if day.alerted:
        facts = ((clean(one.status.rule.name), share_words(one.status)) for one in day.budgets)
        spent = [phrase("demo_spent_of", language, name=name, share=share) for name, share in facts]
        yield from _entries("demo_spent", [comma.join(spent)], language)
    taken = choice(Outcome.ACCEPTED.value, language)
    done = [
        phrase("demo_did", language, verb=verb(Verb.START, language), name=_name(ref, names), outcome=taken, amount="")
        for ref in day.started
    ]
    done += [*_done_lines(day.results, names, language), *settings.done_lines(day.settings, language)]
    yield from _entries("demo_done", done, language)
    yield from _entries("demo_held", held, language)


def ending_lines(ending: Ending, language: Language) -> Iterator[str]:
    """What it came to: money, what was left alone, what nobody can judge, the audit."""
    yield from _money_lines(ending, language)
    yield ""
    yield phrase("demo_budgets_title", language)
    for budget in ending.budgets:
        yield from _budget_ending(budget, language)
    for title, lines in settings.ending_of(ending.settings, language):
        yield ""
        yield title
        for line in lines:
            yield from wrapped(line, _INDENT, 2)
    yield ""
    yield phrase("demo_left_title", language)
    yield from _left_lines(ending.left, language)
    yield ""
    yield phrase("demo_unmeasured_title", language)
    yield from _unmeasured_lines(ending.unmeasured, language)
    yield ""
    audit = ending.audit
    said = (
        phrase("audit_broken", language, entries=audit.entries, problems=len(audit.problems))
        if audit.problems
        else phrase("audit_whole", language, entries=audit.entries, chains=audit.chains, intents=audit.intents)
    )
    yield from wrapped(phrase("demo_audit", language, verdict=said))
    yield from wrapped(phrase("demo_next", language))


def _entries(key: str, texts: Sequence[str], language: Language, extra: int = 0) -> Iterator[str]:
    """The heading stands before the first of its lines only."""
    said = phrase(key, language)
    for number, text in enumerate(texts):
        start = said + " " * (_COLUMN - cells(said)) if number == 0 else " " * _COLUMN
        yield from wrapped(text, _INDENT + start, extra)


def _plan_lines(day: DemoDay, names: Names, language: Language) -> Iterator[str]:
    due = day.plan.due
    if not due:
        if not day.later:
            yield phrase("demo_quiet", language, held=len(day.plan.held) - len(day.held_anew) or "")
        return
    for one in _VERBS:
        subjects = dict.fromkeys(action.subject for action in due if action.verb is one)
        if subjects:
            listed = phrase("demo_comma", language).join(_name(subject, names) for subject in subjects)
            yield phrase(f"demo_plan_{one.value}", language, names=listed)


def _done_lines(results: Iterable[ActionResult], names: Names, language: Language) -> Iterator[str]:
    copies: dict[tuple[str, str], int] = {}
    for result in results:
        name, said = _name(result.action.subject, names), verb(result.action.verb, language)
        if result.reason is not None:
            why = _grounds(result.reason, language)
            yield phrase("demo_not_done", language, verb=said, name=name, why=why)
            continue
        outcome = choice(result.outcome.value, language) if result.outcome is not None else ""
        if result.action.verb is Verb.SNAPSHOT:
            copies[(name, outcome)] = copies.get((name, outcome), 0) + max(1, len(result.action.copies))
            continue
        worth = result.action.saving.stops_billing if result.action.saving is not None else None
        amount = hourly(worth) if worth is not None else ""
        yield phrase("demo_did", language, verb=said, name=name, outcome=outcome, amount=amount)
    for (name, outcome), count in copies.items():
        said = verb(Verb.SNAPSHOT, language)
        yield phrase("demo_did_times", language, verb=said, name=name, count=count, outcome=outcome)


def _money_lines(ending: Ending, language: Language) -> Iterator[str]:
    if not ending.saved:
        yield from wrapped(phrase("demo_saved_nothing", language), _INDENT)
        return
    total = phrase("demo_saved", language, amount=amounts(ending.total), hourly=amounts(ending.hourly))
    yield from wrapped(total, _INDENT)
    for one in ending.saved:
        line = phrase(
            "demo_saved_line",
            language,
            name=one.name,
            hourly=hourly(one.hourly),
            hours=f"{one.hours:f}",
            since=utc_words(one.since),
            until=utc_words(one.until) if one.until is not None else "",
        )
        yield from wrapped(line, _INDENT * 2, 2)
    kept = totals(one.kept.times(one.hours) for one in ending.saved if one.kept.amount)
    if kept:
        yield from wrapped(phrase("demo_stays", language, amount=amounts(kept)), _INDENT)
    unpriced = [one.name for one in ending.saved if one.unpriced]
    if unpriced:
        yield from wrapped(
            phrase("demo_stays_unknown", language, names=phrase("demo_comma", language).join(unpriced)), _INDENT
        )
    if ending.copies is not None:
        prices = [hourly(money) for money in ending.copies.hourly]
        prices += [phrase("price_unknown", language)] if ending.copies.unpriced else []
        machines = phrase("demo_comma", language).join(ending.copies.machines)
        said = phrase("demo_copies", language, names=machines, hourly=" + ".join(prices))
        yield from wrapped(said, _INDENT)


def _budget_line(one: BudgetReport, language: Language) -> str:
    facts = {"name": one.status.rule.name, "share": share_words(one.status), "amount": str(one.status.rule.amount)}
    return phrase("demo_budget", language, **facts)


def _budget_ending(one: BudgetReport, language: Language) -> Iterator[str]:
    """How far, where it will end, and at which thresholds people were told."""
    status = one.status
    yield from wrapped(_budget_line(one, language), _INDENT)
    expected = status.forecast.expected if status.forecast is not None else None
    ahead = f"{expected.amount:,.0f} {expected.currency}" if expected is not None else ""
    burn = hourly(status.burn_per_hour) if status.burn_per_hour is not None else ""
    yield from wrapped(phrase("demo_budget_ahead", language, burn=burn, ahead=ahead), _INDENT * 2)
    told = [
        phrase(f"demo_budget_told_{kind.value}", language, at=percent_words(share), when=at.date().isoformat())
        for at, kind, share in sorted((each.at, each.kind, each.share) for each in one.told if each.at is not None)
    ]
    if told:
        said = phrase("demo_comma", language).join(told)
        yield from wrapped(phrase("demo_budget_told", language, told=said), _INDENT * 2)


def _left_lines(left: Sequence[LeftAlone], language: Language) -> Iterator[str]:
    for one in left:
        owner = phrase("demo_owned", language, owner=one.finding.owner) if one.finding.owner else ""
        yield f"{_INDENT}{clean(one.name)}{owner}{phrase('demo_comma', language)}{_cost(one, language)}"
        yield from wrapped(_why_left(one, language), _INDENT * 2)


def _why_left(one: LeftAlone, language: Language) -> str:
    if one.reason.code is ReasonCode.MODE_WARN:
        return phrase("demo_warn_only", language)
    if one.reason.code is ReasonCode.SNOOZED:
        until = one.reason.facts.get("until")
        return phrase("demo_snoozed", language, until=utc_words(datetime.fromisoformat(str(until))) if until else "")
    return _grounds(one.reason, language)


def _unmeasured_lines(found: Sequence[LeftAlone], language: Language) -> Iterator[str]:
    """Machines with the same trouble together, then the way out."""
    groups: dict[str, list[LeftAlone]] = {}
    for one in found:
        groups.setdefault(fix(one.reason, language), []).append(one)
    for cure, ones in groups.items():
        named = (f"{one.name} ({_cost(one, language)})" for one in ones)
        yield from wrapped(phrase("demo_comma", language).join(named), _INDENT, 2)
        said = (*dict.fromkeys(sentence(one.reason, language) for one in ones), cure)
        yield from wrapped(together(said, language), _INDENT * 2)


def _cost(one: LeftAlone, language: Language) -> str:
    rate = one.finding.rate
    return f"{hourly(rate.money)}/h" if rate is not None else phrase("price_unknown", language)


def _with_name(title: str, names: Names) -> str:
    """A title as posted; where it has only the id of a machine its name is put behind it."""
    said = clean(title)
    meant = (name for ref, name in names.items() if isinstance(ref, ResourceRef) and ref.native_id in said)
    name = next(meant, "")
    return f"{said} ({clean(name)})" if name and name not in said else said


def _name(subject: ResourceRef, names: Names) -> str:
    return clean(names.get(subject, subject.native_id))


def _grounds(reason: Reason, language: Language) -> str:
    """Why, without the word that says it is held: the heading says so."""
    said = sentence(reason, language)
    rest = said.removeprefix(phrase("demo_held_mark", language))
    return rest[:1].upper() + rest[1:]
