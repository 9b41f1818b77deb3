"""What a manager is told when a budget crosses a threshold: how much, how sure, how long, who, and what could stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from typing_extensions import assert_never

from costguard.domain.money import Money, totals
from costguard.estimates.forecast import FEWEST_DAYS, Forecast
from costguard.estimates.period import Period
from costguard.estimates.seasonal import SHARE
from costguard.estimates.spent import Spent
from costguard.guards.budget.alerts import AlertKind, Crossing
from costguard.guards.budget.judge import BudgetStatus, CloudPart
from costguard.guards.budget.rules import BudgetStep, StepKind
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import percent_words
from costguard.planning import Spender, dearest, least_harm
from costguard.report.notices.machines import Notice, local_time
from costguard.report.words.sentences import Language, choice, clean, hourly, label, phrase, sentence

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_HOURS_A_DAY = 24
_UNEXPLAINED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """All that an alert is made of. `spenders`: what runs in the scope, dearest first."""

    status: BudgetStatus
    crossing: Crossing
    spenders: tuple[Spender, ...]
    now: datetime
    idle_is_known: bool = True


def alert_notice(facts: AlertFacts, language: Language = Language.EN) -> Notice:
    """The alert for one threshold."""
    status = facts.status
    fields = [*status_fields(status, facts.now, language), *(() if status.over else _what_runs(facts, language))]
    key = "budget_told_early" if facts.crossing.early else "budget_told_once"
    told_once = phrase(key, language, rule=status.rule.name)
    closing = [told_once] if facts.crossing.kind is not AlertKind.SURGE else []
    saving = "" if status.over else _saving(facts.spenders, language)
    if status.over:
        closing = [phrase("budget_told_over", language)]
    colon = ": " if language is Language.EN else "："
    return Notice(
        _title(facts, language),
        tuple((name, value) for name, value in fields if value),
        tuple(line for line in (saving, *closing) if line),
        colon,
    )


def _what_runs(facts: AlertFacts, language: Language) -> Iterator[tuple[str, str]]:
    """Who spends now, and what follows: nothing of a period that is over."""
    yield label("budget_spenders", language), _people(dearest(facts.spenders), language)
    yield label("budget_idle", language), _idle(facts, language)
    yield label("budget_steps", language), "; ".join(step_lines(facts.status, language))


def status_fields(status: BudgetStatus, now: datetime, language: Language) -> Iterator[tuple[str, str]]:
    """What a budget stands at, part by part, each with where it is from."""
    period, spent, burn = status.period, status.spent, status.burn_per_hour
    if period is None or spent is None:
        return
    yield label("budget_period", language), _period_words(status, period, now, language)
    yield label("budget_spent", language), spent_words(status, spent, language)
    for part in status.parts:
        yield label("budget_billed", language), billed_words(part, period.zone, language)
    ahead = {"ahead": str(spent.ahead)} if spent.ahead.amount else {}
    reckoned = {"accrued": str(spent.accrued), "estimated": str(spent.estimated), **ahead}
    yield label("budget_reckoned", language), phrase("budget_reckoned_is", language, **reckoned)
    if burn is not None:
        daily = str(burn.times(_HOURS_A_DAY))
        yield label("budget_burn", language), phrase("budget_burn_is", language, burn=hourly(burn), daily=daily)
        yield label("budget_full", language), _full(status, now, language)
    if not status.over:
        yield label("budget_forecast", language), forecast_words(status, language)
    missing = [one for part in status.parts for one in part.unexplained][:_UNEXPLAINED_SHOWN]
    told = (
        phrase(
            "budget_unexplained_is", language, service=one.service_name, money=str(one.money), **_account(one.account)
        )
        for one in missing
    )
    yield label("budget_unexplained", language), "; ".join(told)
    yield label("budget_sure", language), sure_words(status, language)


def _period_words(status: BudgetStatus, period: Period, now: datetime, language: Language) -> str:
    if status.over:
        return phrase(
            "budget_period_over", language, name=period.key, end=local_time(period.end, period.zone, language)
        )
    left = Decimal((period.end - now) / _DAY).quantize(Decimal("0.1"))
    return phrase("budget_period_is", language, name=period.key, days_left=str(left))


def billed_words(part: CloudPart, zone: str, language: Language) -> str:
    """What one cloud has billed, and up to when."""
    if part.complete_until is None:
        return phrase("budget_unbilled", language, cloud=part.cloud)
    until = local_time(part.complete_until, zone, language)
    return phrase("budget_billed_is", language, billed=str(part.spent.billed), until=until, cloud=part.cloud)


def forecast_words(status: BudgetStatus, language: Language) -> str:
    """The end of the period with its bounds, or that nobody can tell."""
    ahead = status.forecast
    if ahead is None:
        return phrase("budget_forecast_none", language, days=FEWEST_DAYS)
    tried = {} if ahead.backtest_error is None else _tried(ahead, ahead.backtest_error)
    return phrase(
        "budget_forecast_is",
        language,
        expected=str(ahead.expected),
        low=str(ahead.low),
        high=str(ahead.high),
        method=choice(ahead.method, language),
        **tried,
        **({"unknown": len(ahead.unknown)} if ahead.unknown else {}),
    )


def _tried(ahead: Forecast, error: Decimal) -> dict[str, str | int]:
    """The confidence that the bounds were measured to have; without a past there is none to name."""
    return {
        "confidence": round(SHARE * 100),
        "error": percent_words(error.quantize(Decimal("0.001"))),
        "held": ahead.held,
        "tested": ahead.tested,
    }


def sure_words(status: BudgetStatus, language: Language) -> str:
    """Why the figures may be acted on, or why not."""
    if not status.doubts:
        return phrase("budget_is_sure", language)
    return " ".join(sentence(doubt, language) for doubt in status.doubts)


def spent_words(status: BudgetStatus, spent: Spent, language: Language) -> str:
    """What is spent of the amount, and the share; at least so much where a bill was not read."""
    shown = {"spent": str(spent.total), "amount": str(status.rule.amount), "share": share_words(status)}
    key = "budget_at_least" if status.unread else "budget_spent_is"
    return phrase(key, language, clouds=", ".join(status.unread), **shown)


def share_words(status: BudgetStatus) -> str:
    """The share in percent, rounded down so that 79.99 is never shown as 80."""
    return percent_words(Decimal(int(status.share * 1000)) / 1000)


def step_lines(status: BudgetStatus, language: Language) -> Iterator[str]:
    """What the policy does at which share, and whether it does so now."""
    standing = status.standing
    for step in status.rule.steps:
        line = _step(step, language)
        if standing is not None and standing.share is not None and standing.reached(step):
            line += phrase("budget_reached", language)
        if status.rule.mode is not Mode.ENFORCE:
            line += phrase("budget_step_mode", language, mode=choice(status.rule.mode.name.lower(), language))
        yield line


def _title(facts: AlertFacts, language: Language) -> str:
    status, crossing = facts.status, facts.crossing
    budget, amount = status.rule.name, str(status.rule.amount)
    if status.over and status.period is not None:
        period, at = status.period.key, percent_words(crossing.at)
        return phrase("alert_over", language, budget=budget, amount=amount, at=at, period=period)
    if crossing.kind is AlertKind.ACTUAL:
        key = "alert_early" if crossing.early else "alert_actual"
        return phrase(key, language, budget=budget, amount=amount, at=percent_words(crossing.at))
    if crossing.kind is AlertKind.FORECAST:
        return phrase("alert_forecast", language, budget=budget, amount=amount, at=percent_words(crossing.at))
    if crossing.kind is AlertKind.SURGE:
        leap = status.surge
        now, usual = (hourly(leap.now), hourly(leap.usual)) if leap is not None else ("", "")
        return phrase("alert_surge", language, budget=budget, now=now, usual=usual)
    assert_never(crossing.kind)


def _full(status: BudgetStatus, now: datetime, language: Language) -> str:
    if status.share >= 1:
        return phrase("budget_is_full", language)
    ahead, period = status.full_in, status.period
    if ahead is None or period is None or now + ahead >= period.end:
        return phrase("budget_never_full", language)
    when = local_time(now + ahead, period.zone, language)
    return phrase("budget_full_is", language, hours=str(round(ahead / _HOUR)), when=when)


def _people(shown: Sequence[Spender], language: Language) -> str:
    return "; ".join(
        phrase(
            "budget_spender",
            language,
            name=clean(one.name) or one.ref.native_id,
            kind=one.instance_type,
            hourly=hourly(one.hourly),
            **({"owner": clean(one.owner)} if one.owner else {}),
        )
        for one in shown
    )


def _idle(facts: AlertFacts, language: Language) -> str:
    idle = least_harm(facts.spenders)
    if idle:
        return _people(idle, language)
    return phrase("budget_none_idle" if facts.idle_is_known else "budget_idle_unknown", language)


def _saving(of: Sequence[Spender], language: Language) -> str:
    sums = totals(one.hourly for one in of if one.idle)
    if not sums:
        return ""
    return phrase(
        "budget_saves", language, hourly=_joined(sums), daily=_joined([each.times(_HOURS_A_DAY) for each in sums])
    )


def _joined(sums: Sequence[Money]) -> str:
    return " + ".join(hourly(each) for each in sums)


def _account(account: str) -> dict[str, str]:
    return {"account": account} if account else {}


def _step(step: BudgetStep, language: Language) -> str:
    at, wait = percent_words(step.at), str(round(step.wait / _HOUR))
    if step.kind is StepKind.STOP_IDLE:
        return phrase("budget_step_idle", language, at=at, wait=wait)
    if step.kind is StepKind.STOP_CLASSES:
        return phrase("budget_step_classes", language, at=at, wait=wait, classes=", ".join(step.classes))
    if step.kind is StepKind.FREEZE:
        return phrase("budget_step_freeze", language, at=at)
    assert_never(step.kind)
