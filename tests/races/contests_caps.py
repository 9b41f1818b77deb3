"""Racing for a cap: no more is reserved than it allows, no reservation is lost, and none is refused without need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from tests.races.contest import NOW, Answer, Attempt, Lot, Race, body_of

from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.caps import CapRepository
from costguard.ports import RecordStore

GUARD = "idle_gpu"
_PRICES = ("0.01", "1.00", "2.50", "7.00")
_PLENTY = Money(Decimal(10_000), "USD")
_DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is raced for. `decisions` has one entry a process; `gives_back` are processes that release what they got."""

    actions: int
    hourly: Money
    decisions: tuple[str, ...]
    prices: tuple[Money, ...]
    gives_back: frozenset[int]
    reserved_before: int


class CapContest:
    """Reserving under a cap of actions, or of money with `by_money`; now and then some share a decision or release."""

    def __init__(self, name: str, *, by_money: bool) -> None:
        self.name = name
        self._by_money = by_money

    def setting(self, race: Race) -> Setting:
        dice = race.dice()
        decisions = [f"{race.name}-{runner}" for runner in range(race.runners)]
        if dice.random() < 0.5:
            decisions[-1] = decisions[0]  # the same decision twice, as two runs of one event would
        gives_back = frozenset(dice.sample(range(1, race.runners - 1), 2)) if dice.random() < 0.5 else frozenset[int]()
        if self._by_money:
            by_decision = {one: _usd(dice.choice(_PRICES)) for one in decisions}
            prices = tuple(by_decision[one] for one in decisions)
            limit = _usd(dice.choice(("0", "3.51", "9.99", "14.00")))
            return Setting(100, limit, tuple(decisions), prices, gives_back, 0)
        cap = dice.randrange(race.runners)
        prices = (_usd("1.00"),) * race.runners
        return Setting(cap, _PLENTY, tuple(decisions), prices, gives_back, dice.randint(0, cap // 2))

    def prepare(self, store: RecordStore, race: Race) -> None:
        setting = self.setting(race)
        caps = CapRepository(store)
        for number in range(setting.reserved_before):
            _reserve(caps, race, f"{race.name}-before-{number}", setting, setting.prices[0], NOW)
        _reserve(caps, race, f"{race.name}-yesterday", setting, _usd("0"), NOW - _DAY)

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        setting = self.setting(race)
        caps = CapRepository(store)
        decision, price = setting.decisions[runner], setting.prices[runner]

        def attempt() -> Answer:
            refusal = _reserve(caps, race, decision, setting, price, NOW)
            seen = caps.usage(GUARD, race.name, NOW)
            if refusal is None and runner in setting.gives_back:
                caps.release(GUARD, race.name, decision)
            hourly = str(sum((money.amount for money in seen.hourly_cost), Decimal(0)))
            return Answer(refusal is None, {"refusal": refusal, "actions": seen.actions, "hourly": hourly})

        return attempt

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        setting = self.setting(race)
        reservations = body_of(store, "cap", f"{GUARD}/{race.name}").get("reservations", [])
        counting = [one for one in reservations if NOW - datetime.fromisoformat(_plain(one["at"])) < _DAY]
        spent = sum((Decimal(one["cost"]["amount"]) for one in counting), Decimal(0))
        if len(counting) > setting.actions:
            yield f"{len(counting)} actions are reserved under a cap of {setting.actions}"
        if spent > setting.hourly.amount:
            yield f"{spent} USD an hour are reserved under a cap of {setting.hourly.amount}"
        for answer in answers:
            if answer.facts["actions"] > setting.actions or Decimal(answer.facts["hourly"]) > setting.hourly.amount:
                yield f"a process saw {answer.facts['actions']} actions and {answer.facts['hourly']} USD reserved"
        granted = {setting.decisions[runner] for runner, answer in enumerate(answers) if answer.won}
        given_back = {setting.decisions[runner] for runner in setting.gives_back if answers[runner].won}
        before = {f"{race.name}-before-{number}" for number in range(setting.reserved_before)}
        held = sorted(one["decision_id"] for one in counting)
        if held != sorted((granted | before) - given_back):
            yield f"{sorted(granted)} were told yes, {sorted(given_back)} released, and {held} are reserved"
        if not given_back:
            yield from _refused_without_need(setting, answers, len(counting), spent)


def _refused_without_need(setting: Setting, answers: Sequence[Answer], counted: int, spent: Decimal) -> Iterator[str]:
    """Where nothing is given back, what is used only grows: who was refused would be refused by its end as well."""
    for runner, answer in enumerate(answers):
        refusal, price = answer.facts["refusal"], setting.prices[runner].amount
        if refusal is ReasonCode.CAP_ACTIONS and counted < setting.actions:
            yield f"process {runner} was refused, yet {counted} of {setting.actions} are reserved"
        if refusal is ReasonCode.CAP_MONEY and spent + price <= setting.hourly.amount:
            yield f"process {runner} was refused {price}, yet {spent} of {setting.hourly.amount} are reserved"


def _reserve(
    caps: CapRepository, race: Race, decision: str, setting: Setting, price: Money, now: datetime
) -> ReasonCode | None:
    limits = {"max_actions": setting.actions, "max_hourly": (setting.hourly,)}
    return caps.reserve(GUARD, race.name, decision, price, **limits, now=now)  # type: ignore[arg-type]


def _usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def _plain(stored: str) -> str:
    """A stored time as Python 3.10 reads it."""
    return stored.replace("Z", "+00:00")
