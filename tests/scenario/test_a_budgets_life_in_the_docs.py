"""The life of a budget that docs/budgets.md tells, lived by the real engine: what the page shows is what happens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, usd
from tests.docs_zh.in_step import facts_of
from tests.scenario.stage import START, Stage, idle_machine
from tests.world_ports.spend import WorldSpend
from tests.world_ports.translate import to_product, to_world

from cloudstand.world import workload as does
from costguard.cli.look.budgets import story_lines
from costguard.cli.wrapping import wrapped
from costguard.domain.money import SpendScope
from costguard.engine.guards.budgets.look import look
from costguard.engine.guards.budgets.notifying import budget_reports
from costguard.engine.guards.budgets.run import run_budgets
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, StepKind
from costguard.guards.rules.common import Limits, Mode
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.report.plan.evidence import utc_words
from costguard.report.words.sentences import Language

PAGE = Path(__file__).parents[2] / "docs" / "budgets.md"
HOUR = timedelta(hours=1)
LIMITS = Limits(fleet_share_per_day=Decimal(1), hourly_cost_stopped_per_day=(usd("1000"),))
RESEARCH = BudgetRule(
    "research",
    Mode.ENFORCE,
    SpendScope(tags=(("team", "research"),)),
    BudgetPeriod(),
    usd("1000"),
    steps=(BudgetStep(Decimal(1), StepKind.STOP_IDLE, 4 * HOUR),),
    limits=LIMITS,
    digest="digest",
)


class Life(Stage):
    """A training machine that works, a notebook that nobody uses, and a budget of 1,000 USD around both."""

    def __init__(self, folder: Path) -> None:
        tags = {"team": "research"}
        trainer = replace(idle_machine("trainer", tags=tags, does=does.busy()), hourly=to_world(usd("2")), disks=())
        notebook = replace(idle_machine("notebook", tags=tags), hourly=to_world(usd("1")), disks=())
        super().__init__(folder, trainer, notebook, under=replace(policy(), idle_gpu=(), budgets=(RESEARCH,)))
        self.spend = WorldSpend(self.cloud, self.clock)
        self.lines: list[str] = []

    def surroundings(self) -> RunContext:
        return replace(self.world(), guard="budget", spends={"aws": self.spend})

    def hours(self, first: datetime, count: int = 2) -> None:
        """Hourly runs from this one on; whatever people are told or the cloud is asked to do is written down."""
        for number in range(count):
            self.clock.move_to(first + number * HOUR)
            heard, called = len(self.mailbox.messages), len(self.executor.calls)
            run_budgets(self.surroundings(), f"budget-{self.clock.now().isoformat()}")
            said = [f"told {message.channel}: {message.title}" for message in self.mailbox.messages[heard:]]
            calls = self.executor.calls[called:]
            said += [f"asked the cloud to {call.verb.value} {self._name(call.subject)}" for call in calls]
            for text in said:
                self.lines += wrapped(text, f"{utc_words(self.clock.now())}  ", 2)

    def explain(self) -> None:
        looked = look(self.surroundings(), remember=False)
        self.lines += story_lines(budget_reports(self.surroundings(), looked), Language.EN)

    def _name(self, subject: object) -> str:
        return next(spec.name for spec in self.cloud.fleet if to_product(spec.ref) == subject)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    lived = Life(tmp_path_factory.mktemp("life"))
    for day, hour, count in ((2, 9, 2), (7, 21, 3), (12, 1, 3), (14, 20, 11)):  # in the others nothing happens
        lived.hours(START.replace(day=day, hour=hour), count)
    lived.explain()
    lived.hours(START.replace(day=31, hour=23))
    yield lived
    lived.close()


def shown(number: int) -> list[str]:
    """The lines of one transcript of the page, but for those it leaves out."""
    blocks = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [text for text in blocks[number].splitlines() if text.strip() not in {"", "…"}]


def test_a_budgets_month_ends_with_everything_as_it_was_but_what_people_have_to_start(life: Life) -> None:
    assert life.memory.cases.active("budget") == ()
    assert (life.state("notebook"), life.state("trainer")) == ("stopped", "running")


def test_the_policy_of_the_page_is_the_one_it_is_lived_under() -> None:
    text = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    read = load_policy(PolicyText({"costguard.yaml": text}, "page")).budget("research")
    assert read is not None
    assert replace(read, limits=LIMITS, digest="digest") == RESEARCH


def came(life: Life, number: int) -> list[str]:
    """What the transcripts of the page show, as it came: what people heard, an alert, what `explain` says."""
    if number != 1:
        return life.lines
    first = next(message for message in life.mailbox.messages if "50 %" in message.title)
    return [first.title, *(line for text in first.text.splitlines() for line in wrapped(text, "", 2))]


@pytest.mark.parametrize(("number", "least"), [(0, 5), (1, 5), (2, 20)])
def test_the_page_shows_the_figures_that_came(life: Life, number: int, least: int) -> None:
    assert len(shown(number)) > least
    assert facts_of("\n".join(shown(number))) - facts_of("\n".join(came(life, number))) == Counter()


@pytest.mark.release
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_page_shows_what_came_word_for_word(life: Life, number: int) -> None:
    assert [text for text in shown(number) if text not in came(life, number)] == []
