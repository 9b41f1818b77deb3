"""The budgets of a simulation: what they say in truth, and the YAML that says it to the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

from tests.simulation.rule_spec import APART, RuleSpec

YUAN_A_DOLLAR = Decimal(7)
CLASSES: Mapping[str, tuple[str, str]] = {"dev": ("env", "dev"), "batch": ("env", "batch")}
"""Priority classes, the least important first, by the tag they select."""
_DECEMBER = 12
_IDLE_HOURS = 1  # of a class nobody asks whether it is idle; its rule carries the shortest window


@dataclass(frozen=True, slots=True)
class StepSpec:
    """From `at` percent on: stop what is idle for `idle_for` hours, or all of these classes; hours."""

    at: int = 100
    classes: tuple[str, ...] = ()
    idle_for: int = 1
    wait: int = 4

    def yaml(self) -> str:
        """The entry under its share."""
        if self.classes:
            return f"{{stop: {{classes: [{', '.join(self.classes)}], wait: {self.wait}h}}}}"
        return f"{{stop_idle: {{idle_for: {self.idle_for}h, wait: {self.wait}h}}}}"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a step asks of one machine, as a rule for it."""

    budget: BudgetSpec
    step: StepSpec
    rule: RuleSpec
    of_class: str = ""


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """One monthly budget in plain terms. Percent and hours; `team` and `clouds` empty: everything."""

    name: str = "research"
    amount: Decimal = Decimal(1000)
    currency: str = "USD"
    team: str = "research"
    clouds: tuple[str, ...] = ()
    mode: str = "enforce"
    zone: str = "UTC"
    alerts: tuple[int, ...] = (50, 80, 100)
    forecasts: tuple[int, ...] = (100,)
    steps: tuple[StepSpec, ...] = ()
    tell: tuple[str, ...] = ()
    bill_hours: int = 80
    estimated: int = 90
    actions: int = 10
    share_percent: int = 100
    usd: int | None = 1000
    cny: int | None = 1000
    local_disk: str = "ask"

    def yaml(self, *, apart: bool = False) -> str:
        """The entry of `budgets`."""
        covers = [f"clouds: [{', '.join(self.clouds)}]"] if self.clouds else []
        covers += [f"tags: {{team: {self.team}}}"] if self.team else []
        caps = [f"{amount} {unit}" for amount, unit in ((self.usd, "USD"), (self.cny, "CNY")) if amount is not None]
        lines = [
            f"name: {self.name}",
            f"mode: {self.mode}",
            f"monthly: {self.amount} {self.currency}",
            f"zone: {self.zone}",
            f"alert_at: [{_percents(self.alerts)}]",
            f"forecast_alert_at: [{_percents(self.forecasts)}]",
            f"trust: {{bill_not_older_than: {self.bill_hours}h, estimated_at_most: {self.estimated}%}}",
            f"safety: {{{self._safety(caps)}{', ' + APART if apart else ''}}}",
        ]
        lines += [f"covers: {{{', '.join(covers)}}}"] if covers else []
        lines += [f"tell: [{', '.join(_quoted(address) for address in self.tell)}]"] if self.tell else []
        if self.steps:
            shares = sorted({step.at for step in self.steps})
            entries = (f"{at}%: [{', '.join(one.yaml() for one in self.steps if one.at == at)}]" for at in shares)
            lines.append(f"at: {{{', '.join(entries)}}}")
        return "  - " + "\n    ".join(lines) + "\n"

    def _safety(self, caps: list[str]) -> str:
        return (
            f"actions_per_day: {self.actions}, fleet_share_per_day: {self.share_percent}%,"
            f" hourly_cost_stopped_per_day: [{', '.join(caps)}], local_disk: {self.local_disk}"
        )

    @property
    def told_at(self) -> tuple[int, ...]:
        """Percent of the amount at which people are told what is spent."""
        return tuple(sorted({*self.alerts, *(step.at for step in self.steps)}))

    def holds(self, cloud: str, tags: Mapping[str, str]) -> bool:
        """Whether what carries these tags is in its scope."""
        return (not self.clouds or cloud in self.clouds) and (not self.team or tags.get("team") == self.team)

    def demands(self, cloud: str, tags: Mapping[str, str]) -> Iterator[Demand]:
        """What its steps ask of a machine, whether they are in force or not."""
        if not self.holds(cloud, tags):
            return
        for step in self.steps:
            if not step.classes:
                yield Demand(self, step, self._rule(f"{self.name}@{step.at}%", step))
            for name in step.classes:
                key, value = CLASSES[name]
                if tags.get(key) == value:
                    yield Demand(self, step, self._rule(f"{self.name}@{step.at}%/{name}", step), name)

    def _rule(self, name: str, step: StepSpec) -> RuleSpec:
        return RuleSpec(
            name=name,
            team=self.team,
            mode=self.mode,
            lasting=_IDLE_HOURS if step.classes else step.idle_for,
            stop=step.wait,
            terminate=None,
            actions=self.actions,
            share_percent=self.share_percent,
            usd=self.usd,
            cny=self.cny,
            local_disk=self.local_disk,
        )


def month_of(moment: datetime, zone: str) -> tuple[str, datetime, datetime]:
    """The month a moment falls into: its name, when it begins and when it ends."""
    local = moment.astimezone(ZoneInfo(zone))
    begins = datetime(local.year, local.month, 1, tzinfo=ZoneInfo(zone))
    over = local.month == _DECEMBER
    ends = datetime(local.year + over, 1 if over else local.month + 1, 1, tzinfo=ZoneInfo(zone))
    return f"{local:%Y-%m}", begins.astimezone(timezone.utc), ends.astimezone(timezone.utc)


def month_named(key: str, zone: str) -> tuple[datetime, datetime]:
    """When the month of this name begins and ends."""
    year, month = map(int, key.split("-"))
    return month_of(datetime(year, month, 2, tzinfo=ZoneInfo(zone)), zone)[1:]


def budgets_yaml(budgets: tuple[BudgetSpec, ...], *, rates_since: date | None, apart: bool = False) -> str:
    """The keys of a policy that budgets need. `apart`: no local disk is lost without an approver."""
    lines = ["priority_classes:\n"]
    lines += [f"  - {{name: {name}, applies_when_all: {{tags: {{{k}: {v}}}}}}}\n" for name, (k, v) in CLASSES.items()]
    if rates_since is not None:
        lines.append(f"exchange_rates: [{{from: USD, to: CNY, rate: {YUAN_A_DOLLAR}, since: {rates_since}}}]\n")
    return "".join((*lines, "budgets:\n", *(budget.yaml(apart=apart) for budget in budgets)))


def _percents(shares: tuple[int, ...]) -> str:
    return ", ".join(f"{share}%" for share in shares)


def _quoted(address: str) -> str:
    return f'"{address}"'
