"""One budget, every number traced to its source: what `costguard budgets explain` tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from costguard.domain.money import Money, hours, totals
from costguard.estimates.period import Period
from costguard.estimates.reconcile import LEAST, Reconciled
from costguard.estimates.spent import LEAST_DAYS, Spent
from costguard.estimates.traces import CategorySum, MachineHours
from costguard.guards.budget import BudgetStatus, CloudPart
from costguard.guards.idle_gpu_rules import percent_words
from costguard.report.budget_due import due_lines
from costguard.report.budget_notices import forecast_words, share_words, step_lines, sure_words
from costguard.report.budget_rules import covers_words, period_words
from costguard.report.budget_views import DAYS_SHOWN, BudgetReport, age_words, full_in_period, full_words, sparkline
from costguard.report.notices import local_time
from costguard.report.words import Language, choice, clean, explain, gap, hourly, label, phrase

MACHINES_SHOWN = 10
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and lines below it."""

    title: str
    lines: tuple[str, ...]


def budget_story(one: BudgetReport, language: Language = Language.EN, *, plain: bool = False) -> tuple[Section, ...]:
    """Its rule, its spend part by part, what comes, how sure that is, what was told and what follows."""
    status = one.status
    found = [Section(phrase("budgets_rule", language), tuple(_rule_lines(one, language)))]
    if status.period is not None and status.spent is not None:
        found.append(Section(phrase("budgets_total", language), tuple(_total_lines(status, status.spent, language))))
        for part in status.parts:
            title = phrase("budgets_cloud", language, cloud=part.cloud)
            found.append(Section(title, tuple(_cloud_lines(one, part, status.period, language))))
        for cloud in sorted(set(status.unread) - {part.cloud for part in status.parts}):
            title = phrase("budgets_cloud", language, cloud=cloud)
            found.append(Section(title, (phrase("budgets_unread", language),)))
        found.append(Section(phrase("budgets_machines", language), tuple(_machine_lines(one, language))))
        found.append(Section(phrase("budgets_rates", language), tuple(_rate_lines(status, language))))
        found.append(Section(phrase("budgets_ahead", language), tuple(_ahead_lines(one, language, plain=plain))))
        found.append(Section(phrase("budgets_doubts", language), tuple(_doubt_lines(one, language))))
        told = tuple(_told_lines(one, status.period, language)) or (phrase("budgets_told_none", language),)
        found.append(Section(phrase("budgets_thresholds", language), told))
    found.append(Section(phrase("budgets_steps", language), tuple(_step_lines(one, language))))
    return tuple(section for section in found if section.lines)


def _rule_lines(one: BudgetReport, language: Language) -> Iterator[str]:
    rule, period = one.status.rule, one.status.period
    yield phrase(
        "budgets_rule_covers",
        language,
        covers=covers_words(rule.covers, language),
        amount=period_words(rule.amount, rule.period, language),
        mode=choice(rule.mode.name.lower(), language),
    )
    yield phrase(
        "budgets_rule_counts",
        language,
        basis=phrase(f"budgets_basis_{rule.counted.basis.value}", language),
        credits=choice("yes" if rule.counted.credits else "no", language),
        tax=choice("yes" if rule.counted.tax else "no", language),
    )
    if period is None:
        yield phrase("budgets_outside", language)
        return
    yield phrase(
        "budgets_rule_period",
        language,
        name=period.key,
        start=local_time(period.start, period.zone, language),
        end=local_time(period.end, period.zone, language),
        days_left=f"{Decimal((period.end - one.now) / _DAY).quantize(Decimal('0.1'))}",
    )


def _total_lines(status: BudgetStatus, spent: Spent, language: Language) -> Iterator[str]:
    parts = {"billed": spent.billed, "accrued": spent.accrued, "estimated": spent.estimated}
    shown = {name: str(money) for name, money in parts.items()}
    if spent.ahead.amount:
        shown["ahead"] = str(spent.ahead)
    yield phrase("budgets_sum", language, total=str(spent.total), **shown)
    clouds = {"clouds": ", ".join(status.unread)} if status.unread else {}
    yield phrase("budgets_sum_share", language, share=share_words(status), amount=str(status.rule.amount), **clouds)
    if spent.ahead.amount:
        yield phrase("budgets_sum_ahead", language)
    if spent.doubt is not None and spent.doubt.amount:
        yield phrase("budgets_may_lack", language, money=str(spent.doubt))
    left = totals(money for part in status.parts for money in part.unconverted)
    if left:
        yield phrase("budgets_left_out", language, money=_joined(left))


def _cloud_lines(one: BudgetReport, part: CloudPart, period: Period, language: Language) -> Iterator[str]:
    """Billed until when and from where, what counts of it, and what was reckoned since."""
    read = {"read_at": local_time(part.read_at, period.zone, language), "source": part.source}
    if part.complete_until is None or part.complete_until <= period.start:
        yield phrase("budgets_of_cloud_none", language, **read)
    else:
        until = local_time(part.complete_until, period.zone, language)
        age = age_words(one.now - part.complete_until, language)
        yield phrase("budgets_of_cloud", language, billed=str(part.spent.billed), until=until, age=age, **read)
    for counts, key in ((True, "budgets_counted"), (False, "budgets_not_counted")):
        kinds = _kinds((each for each in part.categories if each.counts is counts), language)
        if kinds:
            yield phrase(key, language, kinds=kinds)
    length = f"{hours(one.now - part.reckoned_since).quantize(Decimal('0.1')).normalize():f}"
    yield phrase("budgets_accrued", language, money=str(part.spent.accrued), hours=length)
    yield _calibration(part.reconciled, language)
    if part.rest is None:
        yield phrase("budgets_estimated_not", language)
    elif part.rest.is_young:
        yield phrase("budgets_estimated_young", language, days=part.rest.days, least=LEAST_DAYS)
    else:
        yield phrase(
            "budgets_estimated",
            language,
            money=str(part.spent.estimated),
            rate=hourly(part.rest.per_hour),
            days=part.rest.days,
            hours=length,
            **({"shaped": phrase("budgets_shaped", language)} if len(set(part.rest.shape)) > 1 else {}),
            **({"middle": phrase("budgets_middle", language)} if part.rest.is_cautious else {}),
        )
    for each in part.unexplained:
        account = {"account": each.account} if each.account else {}
        yield phrase(
            "budgets_unexplained", language, service=clean(each.service_name), money=str(each.money), **account
        )


def _kinds(sums: Iterable[CategorySum], language: Language) -> str:
    between = phrase("budget_rule_list", language)
    return between.join(
        phrase(
            "budgets_kind",
            language,
            kind=phrase(f"budgets_kind_{each.category.value}", language),
            money=str(each.money),
        )
        for each in sums
    )


def _calibration(learnt: Reconciled | None, language: Language) -> str:
    if learnt is None:
        return phrase("budgets_uncalibrated", language, days=LEAST // _DAY)
    bound = {"bound": phrase("budgets_bounded", language)} if learnt.bounded else {}
    return phrase(
        "budgets_calibrated",
        language,
        days=learnt.days,
        metered=str(learnt.metered),
        billed=str(learnt.billed),
        error=percent_words(learnt.error.quantize(Decimal("0.001"))),
        factor=f"{learnt.factor.normalize():f}",
        **bound,
    )


def _machine_lines(one: BudgetReport, language: Language) -> Iterator[str]:
    machines = one.status.machines
    for each in machines[:MACHINES_SHOWN]:
        yield _machine(one, each, language)
    more = machines[MACHINES_SHOWN:]
    if more:
        money = _joined(totals(each.money for each in more))
        yield phrase("budgets_machines_more", language, count=len(more), money=money)


def _machine(one: BudgetReport, each: MachineHours, language: Language) -> str:
    length = f"{each.hours.quantize(Decimal('0.1')).normalize():f}"
    return phrase(
        "budgets_machine",
        language,
        name=one.name_of(each.ref),
        kind=each.instance_type,
        hours=length,
        hourly=hourly(each.hourly),
        money=str(each.money),
    )


def _rate_lines(status: BudgetStatus, language: Language) -> Iterator[str]:
    for rate in status.rates:
        yield phrase(
            "budgets_rate",
            language,
            base=rate.base,
            quote=rate.quote,
            rate=f"{rate.rate.normalize():f}",
            since=rate.since.isoformat(),
        )


def _ahead_lines(one: BudgetReport, language: Language, *, plain: bool) -> Iterator[str]:
    status = one.status
    if status.burn_per_hour is not None:
        nothing = Money(Decimal(0), status.rule.amount.currency)
        rest = sum((part.rest.per_hour for part in status.parts if part.rest is not None), nothing)
        machines = status.burn_per_hour + rest.times(-1)
        split = {"machines": hourly(machines), "rest": hourly(rest)}
        yield phrase("budgets_burn_line", language, burn=hourly(status.burn_per_hour), **split)
    yield phrase("fact", language, label=label("budget_full", language), value=_full(one, language))
    yield phrase("budgets_forecast_line", language, words=forecast_words(status, language))
    if status.forecast is not None:
        burn = str(status.forecast.at_this_burn)
        tried = status.forecast.tested
        key = "budgets_tried" if tried else "budgets_untried"
        yield phrase(key, language, tries=tried, at_this_burn=burn)
        yield from due_lines(one, status.forecast.commitments, language)
    leap = status.surge
    if leap is not None:
        usual = {"now": hourly(leap.now), "usual": hourly(leap.usual), "compared": choice(leap.compared, language)}
        yield phrase("budgets_surge", language, **usual)
    if status.history:
        days = status.history[-DAYS_SHOWN:]
        line = sparkline([day.spent for day in days], plain=plain)
        span = {"first": days[0].day.isoformat(), "last": days[-1].day.isoformat()}
        most = max((day.spent for day in days), key=lambda money: money.amount)
        yield phrase("budgets_days", language, line=line, most=str(most), **span)


def _full(one: BudgetReport, language: Language) -> str:
    if one.status.share >= 1:
        return phrase("budget_is_full", language)
    ahead, period = full_in_period(one.status, one.now), one.status.period
    if ahead is None or period is None:
        return full_words(one.status, one.now, language)
    when = local_time(one.now + ahead, period.zone, language)
    return phrase("budget_full_is", language, hours=str(round(ahead / _HOUR)), when=when)


def _doubt_lines(one: BudgetReport, language: Language) -> Iterator[str]:
    if not one.status.doubts:
        yield phrase("budgets_trust", language, words=sure_words(one.status, language))
    yield from (explain(doubt, language) for doubt in one.status.doubts)
    yield from (gap(each, language) for each in one.status.gaps)


def _told_lines(one: BudgetReport, period: Period, language: Language) -> Iterator[str]:
    for told in one.told:
        facts = {"title": clean(told.title), "where": clean(told.where)}
        if told.at is None:
            yield phrase("budgets_told_not", language, **facts)
        else:
            yield phrase("budgets_told", language, when=local_time(told.at, period.zone, language), **facts)


def _step_lines(one: BudgetReport, language: Language) -> Iterator[str]:
    lines = tuple(step_lines(one.status, language))
    yield from lines or (phrase("budgets_no_steps", language),)
    standing = one.status.standing
    if one.status.doubts and standing is not None and any(map(standing.reached, one.status.rule.steps)):
        yield phrase("budgets_steps_wait", language)
    if one.under_way:
        names = phrase("budget_rule_list", language).join(one.name_of(ref) for ref in one.under_way)
        yield phrase("budgets_cases", language, names=names)


def _joined(sums: Iterable[Money]) -> str:
    return " + ".join(str(each) for each in sums)
