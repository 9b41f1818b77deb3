"""The tables of a report: what is idle and whose, keys, cases with what they rest on, what was held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from costguard.cases import Case
from costguard.report.charts.of_facts import key_age
from costguard.report.facts import ReportFacts, ResourceSnapshot, a_day
from costguard.report.guard_views import Subjects, view_of
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, choice, clean, explain, hourly, number, sentence, short, verb
from costguard.report.words.sentences import in_digest as say

MOST = 50
_OLDEST = 5


def idle_tables(facts: ReportFacts, language: Language) -> Iterator[Table]:
    """By team, idle for longest, and everything idle."""
    yield _teams(facts, language)
    yield _machines(facts, oldest(facts), say("oldest_title", language), language)
    yield _machines(facts, facts.idle[:MOST], say("idle_list_title", language), language)


def oldest(facts: ReportFacts, most: int = _OLDEST) -> Sequence[ResourceSnapshot]:
    """What has been idle for longest, as far as that is known."""
    known = [(since, one) for one in facts.idle if (since := facts.idle_since(one)) is not None]
    return [one for _, one in sorted(known, key=lambda pair: (pair[0], str(pair[1].ref)))[:most]]


def keys_table(facts: ReportFacts, language: Language) -> Table:
    """Keys that are not as asked, or not measured, with their age where it is told."""
    columns = (
        _column("key", language),
        _column("where", language),
        _column("age", language, numeric=True),
        _column("team", language),
        _column("why", language),
    )
    worth = [one for one in facts.keys if one.verdict.value in {"violation", "unmeasured"}][:MOST]
    rows = tuple(
        (
            _name(one),
            str(one.ref.shard),
            "" if (age := key_age(one)) is None else number(age),
            clean(one.owner),
            explain(one.reason, language),
        )
        for one in worth
    )
    return Table(say("keys_table", language), columns, rows)


def other_tables(facts: ReportFacts, language: Language) -> Iterator[Table]:
    """What guards found that have no page of their own: what it is, where, whose, and what is the matter."""
    columns = tuple(_column(key, language) for key in ("what", "where", "team", "why"))
    for look in facts.looks_at(Subjects.OTHER):
        rows = tuple(
            (_name(one), str(one.ref.shard), clean(one.owner), explain(one.reason, language))
            for one in look.sights[:MOST]
        )
        yield Table(view_of(look.guard).name(language), columns, rows)


def detail_tables(facts: ReportFacts, language: Language) -> Iterator[Table]:
    """Cases, what was held, what clouds refused, and what could not be measured."""
    yield _cases(facts, language)
    yield _counted("held_title", ((short(code, language), count) for code, count in facts.held.items()), language)
    yield _refusals(facts, language)
    yield _unmeasured(facts, language)


def _column(key: str, language: Language, *, numeric: bool = False) -> Column:
    return Column(key, say(f"column_{key}", language), numeric=numeric)


def _name(sight: ResourceSnapshot) -> str:
    return clean(sight.name) or clean(sight.ref.native_id)


def _teams(facts: ReportFacts, language: Language) -> Table:
    groups: dict[str, list[ResourceSnapshot]] = {}
    for one in facts.idle:
        groups.setdefault(one.owner, []).append(one)
    rows = [
        (
            clean(owner) or say("idle_nobody", language),
            str(len(group)),
            " + ".join(str(money) for money in a_day(group)) or say("price_unknown", language),
        )
        for owner, group in groups.items()  # of machines dearest first
    ]
    columns = (
        _column("team", language),
        _column("idle", language, numeric=True),
        _column("cost", language, numeric=True),
    )
    return Table(say("team_title", language), columns, tuple(rows))


def _machines(facts: ReportFacts, sights: Iterable[ResourceSnapshot], title: str, language: Language) -> Table:
    columns = (
        _column("machine", language),
        _column("type", language),
        _column("where", language),
        _column("team", language),
        _column("cost", language, numeric=True),
        _column("since", language),
        _column("why", language),
    )
    rows = tuple(
        (
            _name(one),
            clean(one.instance_type),
            f"{one.ref.cloud} {one.ref.account} {one.ref.region}",
            clean(one.owner) or say("idle_nobody", language),
            say("price_unknown", language) if one.a_day is None else hourly(one.a_day),
            "" if (since := facts.idle_since(one)) is None else f"{since:%Y-%m-%d}",
            sentence(one.reason, language),
        )
        for one in sights
    )
    return Table(title, columns, rows)


def _cases(facts: ReportFacts, language: Language) -> Table:
    columns = (
        _column("machine", language),
        _column("where", language),
        _column("team", language),
        _column("state", language),
        _column("when", language),
        _column("evidence", language),
    )
    seen = {(one.ref, one.check): one for look in facts.looks for one in look.sights}
    rows = tuple(_case(case, seen.get((case.subject, case.check)), language) for case in facts.cases[:MOST])
    return Table(say("cases_title", language), columns, rows)


def _case(case: Case, sight: ResourceSnapshot | None, language: Language) -> tuple[str, ...]:
    ref = case.subject
    return (
        clean(case.name) or clean(ref.native_id),
        f"{ref.cloud} {ref.account} {ref.region}",
        clean(case.owner) or say("idle_nobody", language),
        f"{choice(case.status.value, language)}. {explain(case.reason, language)}",
        utc_words(case.opened_at),
        _evidence(sight, language),
    )


def _evidence(sight: ResourceSnapshot | None, language: Language) -> str:
    if sight is None:
        return ""
    if sight.busiest is None or sight.since is None:
        return sentence(sight.reason, language)
    return say(
        "evidence",
        language,
        busiest=number(sight.busiest),
        since=utc_words(sight.since),
        coverage="" if sight.coverage is None else number(sight.coverage * 100),
    )


def _refusals(facts: ReportFacts, language: Language) -> Table:
    columns = (
        _column("when", language),
        _column("machine", language),
        _column("what", language),
        _column("why", language),
    )
    rows = tuple(
        (utc_words(one.at), clean(one.subject.native_id), verb(one.verb, language), clean(one.detail, 300))
        for one in facts.refusals[:MOST]
    )
    return Table(say("refusals_title", language), columns, rows)


def _unmeasured(facts: ReportFacts, language: Language) -> Table:
    groups: dict[str, int] = {}
    costs: dict[str, list[ResourceSnapshot]] = {}
    for one in facts.unmeasured:
        words = explain(one.reason, language)
        groups[words] = groups.get(words, 0) + 1
        costs.setdefault(words, []).append(one)
    columns = (
        _column("why", language),
        _column("count", language, numeric=True),
        _column("cost", language, numeric=True),
    )
    rows = tuple(
        (words, str(count), " + ".join(str(money) for money in a_day(costs[words])))
        for words, count in sorted(groups.items(), key=lambda item: (-item[1], item[0]))
    )
    return Table(say("unmeasured_title", language), columns, rows)


def _counted(title: str, counted: Iterable[tuple[str, int]], language: Language) -> Table:
    columns = (_column("why", language), _column("count", language, numeric=True))
    return Table(say(title, language), columns, tuple((words, str(count)) for words, count in counted))
