"""Where budgets stand, as a table of all and as the story of one: every figure with what it is from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap
from costguard.guards.budget.alerts import AlertKind
from costguard.guards.budget.judge import BudgetStatus
from costguard.report.budget.notices import share_words
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, explain, gap, hourly, phrase

BLOCKS, PLAIN_BLOCKS = "▁▂▃▅▇", "_.-=#"
_BAR, _PLAIN_BAR = ("█", "░"), ("#", ".")
_BAR_CELLS = 10
DAYS_SHOWN = 14
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_IN_DAYS_FROM = 4 * _DAY  # bills are three days late at most: in hours they compare with what the policy allows
_WARNING, _ALL = Decimal("0.8"), Decimal(1)
_COLUMNS = ("period", "spent", "amount", "share", "daily", "burn", "full", "forecast", "sure")
_NUMERIC = frozenset({"spent", "amount", "share", "burn", "full"})


@dataclass(frozen=True, slots=True)
class AlertTold:
    """One threshold of this period that people were told of, or are about to be: `at` None until it is delivered."""

    kind: AlertKind
    share: Decimal
    title: str
    where: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """One budget with what the ledger and the inventory know of it. `under_way`: machines with a case for it."""

    status: BudgetStatus
    now: datetime
    told: tuple[AlertTold, ...] = ()
    under_way: tuple[ResourceRef, ...] = ()
    names: Mapping[ResourceRef, str] = field(default_factory=dict)

    def name_of(self, ref: ResourceRef) -> str:
        """What people call a machine."""
        return clean(self.names.get(ref, "")) or ref.native_id


def budgets_table(reports: Sequence[BudgetReport], language: Language = Language.EN, *, plain: bool = False) -> Table:
    """One row a budget. `plain`: bars and sparklines in ASCII."""
    columns = (Column("name", phrase("budgets_name", language)), *(_column(key, language) for key in _COLUMNS))
    rows = tuple(_row(one, language, plain=plain) for one in reports)
    title = phrase("budgets_title", language, count=len(rows))
    tones = tuple(tone_of(one.status) for one in reports)
    return Table(title, columns, rows, _note(reports, language), tones, foldable=False)


def budgets_closing(reports: Sequence[BudgetReport], language: Language = Language.EN) -> Iterator[str]:
    """What a table has no room for: doubts with their fix, what could not be read, how fresh each bill is."""
    for one in reports:
        for doubt in one.status.doubts:
            yield phrase("budgets_doubt", language, budget=one.status.rule.name, why=explain(doubt, language))
    yield from (gap(each, language) for each in gaps_of(reports))
    yield from dict.fromkeys(line for one in reports for line in _freshness(one, language))
    yield phrase("budgets_explain_hint", language)


def gaps_of(reports: Iterable[BudgetReport]) -> tuple[Gap, ...]:
    """Everything that could not be read for any of them, once."""
    return tuple(dict.fromkeys(each for one in reports for each in one.status.gaps))


def tone_of(status: BudgetStatus) -> Tone:
    """How grave its share is: from 80 % on a warning, from 100 % on bad."""
    if status.share >= _ALL:
        return Tone.BAD
    return Tone.WARNING if status.share >= _WARNING else Tone.GOOD


def sparkline(values: Sequence[Money], *, plain: bool = False) -> str:
    """Daily spend as one character a day, the last two weeks, the most of it the highest."""
    glyphs = PLAIN_BLOCKS if plain else BLOCKS
    shown = [max(money.amount, Decimal(0)) for money in values[-DAYS_SHOWN:]]
    most = max(shown, default=Decimal(0))
    if not most:
        return glyphs[0] * len(shown)
    return "".join(glyphs[min(int(value / most * len(glyphs)), len(glyphs) - 1)] for value in shown)


def bar(share: Decimal, *, plain: bool = False) -> str:
    """How full it is; full only from 100 % on."""
    full, empty = _PLAIN_BAR if plain else _BAR
    filled = min(max(int(share * _BAR_CELLS), 0), _BAR_CELLS)
    return full * filled + empty * (_BAR_CELLS - filled)


def age_words(age: timedelta, language: Language = Language.EN) -> str:
    """`33 h`, or `4.5 days` for what is older than four days."""
    if age >= _IN_DAYS_FROM:
        days = f"{Decimal(age / _DAY).quantize(Decimal('0.1')).normalize():f}"
        return phrase("budgets_age_days", language, days=days)
    return phrase("budgets_age_hours", language, hours=round(age / _HOUR))


def full_words(status: BudgetStatus, now: datetime, language: Language) -> str:
    """In how many hours all of it is spent, as it burns now."""
    if status.share >= _ALL:
        return phrase("budgets_full_now", language)
    ahead = full_in_period(status, now)
    if ahead is None:
        return phrase("budgets_full_never", language)
    return phrase("budgets_full_hours", language, hours=str(round(ahead / _HOUR)))


def full_in_period(status: BudgetStatus, now: datetime) -> timedelta | None:
    """How long until all of it is spent, where that is before the period's end."""
    ahead, period = status.full_in, status.period
    return ahead if ahead is not None and period is not None and now + ahead < period.end else None


def _column(key: str, language: Language) -> Column:
    return Column(key, phrase(f"budgets_{key}", language), numeric=key in _NUMERIC)


def _row(one: BudgetReport, language: Language, *, plain: bool) -> tuple[str, ...]:
    status = one.status
    name, amount = clean(status.rule.name), str(status.rule.amount)
    if status.period is None or status.spent is None or status.burn_per_hour is None:
        outside = phrase("budgets_outside", language)
        return (name, outside, "", amount, *[""] * len(_COLUMNS[3:]))
    total = str(status.spent.total)
    return (
        name,
        status.period.key,
        phrase("budgets_at_least", language, money=total) if status.unread else total,
        amount,
        f"{bar(status.share, plain=plain)} {phrase('budgets_percent', language, share=share_words(status))}",
        sparkline([day.spent for day in status.history], plain=plain),
        hourly(status.burn_per_hour),
        full_words(status, one.now, language),
        _range(status, language),
        phrase("budgets_sure_no" if status.doubts else "budgets_sure_yes", language),
    )


def _range(status: BudgetStatus, language: Language) -> str:
    ahead = status.forecast
    if ahead is None:
        return ""
    bounds = {"low": _short(ahead.low), "high": _short(ahead.high)}
    return phrase("budgets_range", language, expected=_short(ahead.expected), **bounds)


def _short(money: Money) -> str:
    """A forecast is not known to the cent."""
    return f"{money.rounded(0).amount:,f}"


def _note(reports: Sequence[BudgetReport], language: Language) -> str:
    days = [one.status.history[-DAYS_SHOWN:] for one in reports if one.status.history]
    if not days:
        return ""
    longest = max(days, key=len)
    last = max(history[-1].day for history in days)
    return phrase("budgets_note", language, days=len(longest), last=last.isoformat())


def _freshness(one: BudgetReport, language: Language) -> Iterator[str]:
    for part in one.status.parts:
        facts = {"cloud": part.cloud, "read_at": utc_words(part.read_at), "source": part.source}
        if part.complete_until is None:
            yield phrase("budgets_fresh_unknown", language, **facts)
        else:
            until = utc_words(part.complete_until)
            yield phrase(
                "budgets_fresh", language, until=until, age=age_words(one.now - part.complete_until, language), **facts
            )
