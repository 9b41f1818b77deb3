"""One budget, every number traced to its source: what `costguard budgets explain` tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from costguard.domain.money import Money, hours, totals
from costguard.estimates.period import Period
from costguard.estimates.reconcile import LEAST, Reconciled
from costguard.estimates.spent import LEAST_DAYS, RunRate, Spent
from costguard.estimates.traces import CategorySum, MachineHours
from costguard.guards.budget.judge import BudgetStatus, CloudPart
from costguard.guards.rules.idle import percent_words
from costguard.report.budget.due import due_lines
from costguard.report.budget.notices import forecast_words, share_words, step_lines, sure_words
from costguard.report.budget.rules import covers_words, period_words
from costguard.report.budget.sums import PrintedCloud, PrintedSums, divided, factors_that_matter, printed_sums
from costguard.report.budget.views import DAYS_SHOWN, BudgetReport, age_words, full_in_period, full_words, sparkline
from costguard.report.notices.machines import local_time
from costguard.report.words.sentences import Language, choice, clean, explain, gap, hourly, hourly_places, label, phrase

MACHINES_SHOWN = 10
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class StorySection:
    """A heading, and lines below it."""

    title: str
    lines: tuple[str, ...]


def budget_story(
    one: BudgetReport, language: Language = Language.EN, *, plain: bool = False
) -> tuple[StorySection, ...]:
    """Its rule, its spend part by part, what comes, how sure that is, what was told and what follows."""
    status = one.status
    found = [StorySection(phrase("budgets_rule", language), tuple(_rule_lines(one, language)))]
    if status.period is not None and status.spent is not None:
        sums = printed_sums(status, status.spent)
        total = tuple(_total_lines(status, status.spent, sums, language))
        found.append(StorySection(phrase("budgets_total", language), total))
        for part in status.parts:
            title = phrase("budgets_cloud", language, cloud=part.cloud)
            lines = tuple(_cloud_lines(one, part, sums.clouds[part.cloud], status.period, language))
            found.append(StorySection(title, lines))
        for cloud in sorted({*status.unread, *sums.clouds} - {part.cloud for part in status.parts}):
            title = phrase("budgets_cloud", language, cloud=cloud)
            found.append(StorySection(title, tuple(_unbilled_lines(one, cloud, sums, status.period, language))))
        found.append(StorySection(phrase("budgets_machines", language), tuple(_machine_lines(one, sums, language))))
        found.append(StorySection(phrase("budgets_rates", language), tuple(_rate_lines(status, language))))
        found.append(StorySection(phrase("budgets_ahead", language), tuple(_ahead_lines(one, language, plain=plain))))
        found.append(StorySection(phrase("budgets_doubts", language), tuple(_doubt_lines(one, language))))
        told = tuple(_told_lines(one, status.period, language)) or (phrase("budgets_told_none", language),)
        found.append(StorySection(phrase("budgets_thresholds", language), told))
    found.append(StorySection(phrase("budgets_steps", language), tuple(_step_lines(one, language))))
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


def _total_lines(status: BudgetStatus, spent: Spent, sums: PrintedSums, language: Language) -> Iterator[str]:
    parts = {"billed": sums.parts.billed, "accrued": sums.parts.accrued, "estimated": sums.parts.estimated}
    shown = {name: str(money) for name, money in parts.items()}
    if spent.ahead.amount:
        shown["ahead"] = str(sums.parts.ahead)
    yield phrase("budgets_sum", language, total=str(sums.total), **shown)
    if sums.rounded:
        yield phrase("budgets_rounded", language)
    clouds = {"clouds": ", ".join(status.unread)} if status.unread else {}
    yield phrase("budgets_sum_share", language, share=share_words(status), amount=str(status.rule.amount), **clouds)
    if spent.ahead.amount:
        yield phrase("budgets_sum_ahead", language)
    if spent.doubt is not None and spent.doubt.amount:
        yield phrase("budgets_may_lack", language, money=str(spent.doubt))
    left = totals(money for part in status.parts for money in part.unconverted)
    if left:
        yield phrase("budgets_left_out", language, money=_joined(left))


def _cloud_lines(
    one: BudgetReport, part: CloudPart, sums: PrintedCloud, period: Period, language: Language
) -> Iterator[str]:
    """Billed until when and from where, what counts of it, and what was reckoned since."""
    read = {"read_at": local_time(part.read_at, period.zone, language), "source": part.source}
    if part.complete_until is None or part.complete_until <= period.start:
        yield phrase("budgets_of_cloud_none", language, **read)
    else:
        until = local_time(part.complete_until, period.zone, language)
        age = age_words(one.now - part.complete_until, language)
        yield phrase("budgets_of_cloud", language, billed=str(sums.parts.billed), until=until, age=age, **read)
    for counts, key in ((True, "budgets_counted"), (False, "budgets_not_counted")):
        kinds = _kinds((each for each in part.categories if each.counts is counts), sums, language)
        if kinds:
            yield phrase(key, language, kinds=kinds)
    length = hours(one.now - part.reckoned_since)
    yield phrase("budgets_accrued", language, money=str(sums.parts.accrued), hours=_plain(length, 1))
    yield _calibration(part.reconciled, language)
    if part.rest is None:
        yield phrase("budgets_estimated_not", language)
    elif part.rest.is_young:
        yield phrase("budgets_estimated_young", language, days=part.rest.days, least=LEAST_DAYS)
    else:
        yield _estimated(part.rest, part.spent.estimated, sums.parts.estimated, length, language)
    if part.spent.ahead.amount:
        yield phrase("budgets_ahead_of", language, money=str(sums.parts.ahead))
    for each in part.unexplained:
        account = {"account": each.account} if each.account else {}
        yield phrase(
            "budgets_unexplained", language, service=clean(each.service_name), money=str(each.money), **account
        )


def _unbilled_lines(
    one: BudgetReport, cloud: str, sums: PrintedSums, period: Period, language: Language
) -> Iterator[str]:
    if cloud in one.status.unread:
        yield phrase("budgets_unread", language)
    if cloud in sums.clouds:
        length = _plain(hours(one.now - period.start), 1)
        yield phrase("budgets_accrued", language, money=str(sums.clouds[cloud].parts.accrued), hours=length)


def _estimated(rest: RunRate, exact: Money, shown: Money, length: Decimal, language: Language) -> str:
    """The estimate as hours times a rate, and times what the shape of the weeks makes of it."""
    unshaped = rest.per_hour.amount * length
    shape = (exact.amount / unshaped,) if len(set(rest.shape)) > 1 and unshaped else ()
    time, rate, *factor = factors_that_matter(length, rest.per_hour.amount, *shape)
    return phrase(
        "budgets_estimated",
        language,
        money=str(shown),
        rate=_price(rate, exact.currency),
        days=rest.days,
        hours=_plain(time),
        **({"shaped": phrase("budgets_shaped", language, factor=_plain(factor[0]))} if factor else {}),
        **({"middle": phrase("budgets_middle", language)} if rest.is_cautious else {}),
    )


def _kinds(kinds: Iterable[CategorySum], sums: PrintedCloud, language: Language) -> str:
    return phrase("budget_rule_list", language).join(_kind(each, sums.kinds.get(each), language) for each in kinds)


def _kind(each: CategorySum, worth: Money | None, language: Language) -> str:
    kind = phrase(f"budgets_kind_{each.category.value}", language)
    if worth is None or worth.currency == each.money.currency:
        return phrase("budgets_kind", language, kind=kind, money=str(worth or each.money))
    return phrase("budgets_kind_worth", language, kind=kind, money=str(each.money), worth=str(worth))


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


def _machine_lines(one: BudgetReport, sums: PrintedSums, language: Language) -> Iterator[str]:
    machines = one.status.machines
    learnt = {part.cloud: part.reconciled.factor for part in one.status.parts if part.reconciled is not None}
    money = [sums.clouds[each.ref.cloud].machines[each] for each in machines]
    for each, shown in list(zip(machines, money, strict=True))[:MACHINES_SHOWN]:
        yield _machine(one, each, learnt.get(each.ref.cloud, Decimal(1)), shown, language)
    more = money[MACHINES_SHOWN:]
    if more:
        yield phrase("budgets_machines_more", language, count=len(more), money=_joined(totals(more)))


def _machine(one: BudgetReport, each: MachineHours, factor: Decimal, money: Money, language: Language) -> str:
    """Its hours times what they cost, by the price that it has in its own currency."""
    price = each.own or each.hourly
    by = {}
    if each.own is not None and each.own.amount:
        by["rate"] = each.hourly.amount / each.own.amount
    if factor != 1:
        by["factor"] = factor
    time, rate, *factors = factors_that_matter(each.hours, price.amount, *by.values())
    return phrase(
        "budgets_machine",
        language,
        name=one.name_of(each.ref),
        kind=each.instance_type,
        hours=_plain(time),
        hourly=_price(rate, price.currency),
        money=str(money),
        **dict(zip(by, map(_plain, factors), strict=True)),
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
        places = max(map(hourly_places, (status.burn_per_hour, machines, rest)))
        burn = status.burn_per_hour.rounded(places)
        split = dict(zip(("machines", "rest"), divided(burn, (machines, rest), places), strict=True))
        shown = {name: _price(money.amount, money.currency) for name, money in {"burn": burn, **split}.items()}
        yield phrase("budgets_burn_line", language, **shown)
    yield phrase("fact", language, label=label("budget_full", language), value=_full(one, language))
    yield phrase("budgets_forecast_line", language, words=forecast_words(status, language))
    if status.forecast is not None:
        at_this_burn = str(status.forecast.at_this_burn)
        tried = status.forecast.tested
        key = "budgets_tried" if tried else "budgets_untried"
        yield phrase(key, language, tries=tried, at_this_burn=at_this_burn)
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


def _plain(value: Decimal, places: int | None = None) -> str:
    """A number without zeros at its end."""
    return f"{(value if places is None else round(value, places)).normalize():f}"


def _price(amount: Decimal, currency: str) -> str:
    """A price with the decimals that it has, and cents."""
    return f"{max(amount.normalize(), round(amount, 2), key=_places):,f} {currency}"


def _places(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _joined(sums: Iterable[Money]) -> str:
    return " + ".join(str(each) for each in sums)
