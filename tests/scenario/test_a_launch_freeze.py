"""A launch freeze from announcement to thaw, and all that keeps it from beginning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, usd
from tests.golden.robot_messages import VENDORS
from tests.scenario.budget_stage import HALF, HOUR, BudgetStage, machine, research
from tests.scenario.stage import DAY, START
from tests.words.said import says

from cloudstand.world import workload as does
from costguard.adapters.notifiers.robots.layout import laid_out
from costguard.adapters.notifiers.slack.blocks import message_blocks
from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError, UnavailableError
from costguard.engine.guards.budgets.run import BudgetRun
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.rules import BudgetStep, StepKind
from costguard.guards.rules.common import Mode
from costguard.planning.freeze import FreezePhase
from costguard.ports import Message
from costguard.report.words.sentences import phrase

FREEZE = LaunchFreeze("no-new-gpus", "aws", FreezeVia.ORGANISATION, "p-freeze", "111122223333")
STEP = BudgetStep(Decimal("1.2"), StepKind.FREEZE, timedelta(hours=4), freezes=("no-new-gpus",))


SPENT = timedelta(days=8, hours=15)


class Organisation:
    """Policies attached to one account; each call may fail before or after its effect."""

    def __init__(self) -> None:
        self.policies = ["p-FullAWSAccess"]
        self.calls: list[str] = []
        self.blind = False
        self.fails_before: Exception | None = None
        self.fails_after: Exception | None = None

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        if self.blind:
            raise UnavailableError("did not answer", operation="organizations:ListPoliciesForTarget")
        assert freeze.target == "111122223333"
        return tuple(self.policies)

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        return self._change("attach", lambda: self.policies.append(freeze.policy))

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        return self._change("detach", lambda: self.policies.remove(freeze.policy))

    def _change(self, what: str, change: Any) -> Receipt:
        self.calls.append(what)
        if self.fails_before is not None:
            raise self.fails_before
        change()
        if self.fails_after is not None:
            raise self.fails_after
        return Receipt("request")


class FreezeStage(BudgetStage):
    """The budget stage with an organisation whose launches can be frozen."""

    def __init__(self, folder: Path, *fleet: Any, under: Any) -> None:
        super().__init__(folder, *fleet, under=under)
        self.organisation = Organisation()
        self.language = "en"

    def surroundings(self) -> RunContext:
        frozen = {"aws": lambda: self.organisation}
        return replace(super().surroundings(), freezers=frozen, language=self.language)

    def until(self, moment: timedelta, every: timedelta = DAY) -> BudgetRun:
        """By the day up to an hour before enough is spent, and as asked from then on."""
        if self.clock.now() < START + SPENT - HOUR < START + moment:
            super().until(SPENT - HOUR)
        return super().until(moment, every)

    @property
    def frozen(self) -> bool:
        return "p-freeze" in self.organisation.policies

    @property
    def phase(self) -> FreezePhase:
        return self.memory.freezes.get("no-new-gpus").phase

    def heard(self) -> list[str]:
        return [title for title in self.mailbox.titles if "freeze" in title]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    """Two dollars an hour under 400 a month: 120 % are spent 240 hours into March, 8 d 15 h into the story."""
    opened: list[FreezeStage] = []

    def build(**changes: Any) -> FreezeStage:
        budget = research("400", steps=(STEP,), **changes)
        under = replace(policy(), idle_gpu=(), budgets=(budget,), launch_freezes=(FREEZE,))
        opened.append(FreezeStage(tmp_path, machine(does=does.busy()), under=under))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


WAS = "Budget research had passed the share at which the policy asks for it: 120 % of 400.00 USD"


def test_people_are_told_first_and_launches_are_frozen_after_the_wait(stage: Any) -> None:
    month = stage()
    month.until(SPENT - HOUR)
    assert month.heard() == []
    month.until(SPENT + HOUR, every=HOUR)
    assert month.heard() == [phrase("freeze_announced", name="no-new-gpus", hours=4, target="111122223333")]
    month.until(SPENT + 3 * HOUR, every=HOUR)
    assert not month.frozen
    month.until(SPENT + 6 * HOUR, every=HOUR)
    assert month.frozen
    assert says(month.heard()[-1], "freeze_frozen")
    assert month.memory.freezes.get("no-new-gpus").before == ("p-FullAWSAccess",)


def robot_said(message: Message, kind: str, language: str) -> str:
    """What a chat robot is sent of it, with the escapes of its markup undone."""
    laid = laid_out(message, f"{kind}:ops", VENDORS[kind].sheet, None, language)
    return unescape(json.dumps(VENDORS[kind].document(laid), ensure_ascii=False)).replace("\\", "")


def told(month: FreezeStage, what: str) -> dict[str, str]:
    """The fields of the notice about the freeze that has this title."""
    (message,) = [one for one in month.mailbox.messages if says(one.title, what)]
    return dict(message.fields)


def test_its_notices_name_the_share_the_amount_and_what_is_spent(stage: Any) -> None:
    month = stage()
    month.until(SPENT + 6 * HOUR, every=HOUR)
    announced, frozen = told(month, "freeze_announced"), told(month, "freeze_frozen")
    assert announced["Why"] == WAS.replace("had", "has")
    assert announced["Spent"] == "research, 2026-03: 480.00 USD of 400.00 USD: 120 %"
    assert frozen["Why"] == announced["Why"]
    assert frozen["Spent"] == "research, 2026-03: 490.00 USD of 400.00 USD: 122.5 %"
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STEP,)),))
    month.until(SPENT + 10 * HOUR, every=HOUR)
    over = told(month, "freeze_thawed")
    assert over["Asked for because"] == WAS
    assert over["Spent"] == "research, 2026-03: 496.00 USD of 4,000.00 USD: 12.4 %"


@pytest.mark.parametrize(
    ("language", "share"), [("en", "120 % of 400.00 USD"), ("zh", "400.00 USD 的 120%")], ids=["en", "zh"]
)
def test_every_channel_shows_the_share_and_the_amount(stage: Any, language: str, share: str) -> None:
    month = stage()
    month.language = language
    month.until(SPENT + 6 * HOUR, every=3 * HOUR)
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STEP,)),))
    month.until(SPENT + DAY, every=3 * HOUR)
    sent = [one for one in month.mailbox.messages if "no-new-gpus" in one.title]
    assert len(sent) == 3, "announced, in force, over"
    for message in sent:
        shown = {"slack": str(message_blocks(message))}
        shown |= {kind: robot_said(message, kind, language) for kind in VENDORS}
        assert [kind for kind, said in shown.items() if share not in said] == []


def test_what_is_over_with_its_period_names_the_new_one(stage: Any) -> None:
    month = stage()
    month.until(31 * DAY, every=HALF)
    over = told(month, "freeze_thawed")
    assert over["Asked for because"] == WAS
    assert over["Spent"].startswith("research, 2026-04: ")


def test_what_is_called_off_or_fails_names_them_too(stage: Any) -> None:
    month = stage()
    month.organisation.fails_before = AccessDeniedError("no", operation="organizations:AttachPolicy")
    month.until(SPENT + 5 * HOUR, every=HOUR)
    failed = told(month, "freeze_failed")
    assert failed["Asked for because"] == WAS
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STEP,)),))
    month.until(SPENT + 10 * HOUR, every=HOUR)
    assert told(month, "freeze_called_off")["Asked for because"] == WAS


def test_a_freeze_that_an_older_program_began_says_what_it_knows(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY, every=HALF)
    known = month.memory.freezes.get("no-new-gpus")
    record = month.memory.store.get("freeze", "no-new-gpus")
    body = {name: value for name, value in record.body.items() if name not in {"at", "amount"}}
    month.memory.store.put(replace(record, body=body), record.version)
    assert month.memory.freezes.get("no-new-gpus") == replace(known, at=None, amount=None, version=known.version + 1)
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STEP,)),))
    month.until(11 * DAY, every=HALF)
    assert told(month, "freeze_thawed")["Asked for because"] == WAS.partition(":")[0]


def test_it_thaws_when_the_period_ends_and_leaves_what_was_there(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY)
    assert month.frozen
    month.until(31 * DAY)
    assert not month.frozen
    assert month.organisation.policies == ["p-FullAWSAccess"]
    assert month.organisation.calls == ["attach", "detach"]
    assert "is over" in month.heard()[-1]


def test_it_thaws_on_a_raise(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY, every=HALF)
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STEP,)),))
    month.until(11 * DAY, every=HALF)
    assert not month.frozen


def test_it_thaws_when_the_policy_no_longer_names_it(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY, every=HALF)
    month.policy = replace(month.policy, launch_freezes=(), budgets=(research("400"),))
    month.until(11 * DAY, every=HALF)
    assert not month.frozen


def test_it_thaws_by_command_and_stays_off_for_the_period(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY)
    month.memory.freezes.release("no-new-gpus", "2026-03", "operator", "conference deadline", month.clock.now())
    month.until(20 * DAY)
    assert not month.frozen
    assert month.organisation.calls == ["attach", "detach"]


def test_what_somebody_takes_off_by_hand_is_not_put_back(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY, every=HALF)
    month.organisation.policies.remove("p-freeze")
    month.until(20 * DAY, every=HALF)
    assert month.organisation.calls == ["attach"]


def test_a_freeze_somebody_else_attached_is_left_to_them(stage: Any) -> None:
    month = stage()
    month.organisation.policies.append("p-freeze")
    month.until(31 * DAY)
    assert month.frozen
    assert month.organisation.calls == []


def test_an_answer_that_was_lost_is_looked_for_and_the_call_not_repeated(stage: Any) -> None:
    month = stage()
    month.organisation.fails_after = OutcomeUnknownError("timed out", operation="organizations:AttachPolicy")
    month.until(11 * DAY)
    assert month.frozen
    assert month.organisation.calls == ["attach"]
    assert month.phase is FreezePhase.ON


def test_a_refused_call_is_made_again_in_a_later_run(stage: Any) -> None:
    month = stage()
    month.organisation.fails_before = AccessDeniedError("no", operation="organizations:AttachPolicy")
    month.until(SPENT - HOUR)
    month.until(9 * DAY + 11 * HOUR, every=HOUR)
    assert len(month.organisation.calls) > 5
    assert len([title for title in month.heard() if says(title, "freeze_failed")]) == 1
    month.organisation.fails_before = None
    month.until(11 * DAY, every=HALF)
    assert month.frozen


@pytest.mark.parametrize(
    "changed",
    [
        {"mode": Mode.OBSERVE},
        {"steps": ()},
        {"steps": (replace(STEP, wait=timedelta(days=2)),)},
        {"steps": (replace(STEP, at=Decimal(3)),)},
        {"amount": usd("4000")},
    ],
)
def test_the_policy_is_read_again_just_before_launches_are_frozen(stage: Any, changed: dict[str, Any]) -> None:
    """It came after the run had looked at the budgets: it holds for the call all the same."""
    month = stage()
    month.until(SPENT + 3 * HOUR, every=HOUR)
    assert month.phase is FreezePhase.ANNOUNCED
    (budget,) = month.policy.budgets
    month.policy_now = lambda: replace(month.policy, budgets=(replace(budget, **changed),))
    month.until(SPENT + 8 * HOUR, every=HOUR)
    assert (month.organisation.calls, month.phase) == ([], FreezePhase.ANNOUNCED)
    month.policy_now = lambda: month.policy
    month.until(SPENT + 9 * HOUR, every=HOUR)
    assert month.frozen


def test_a_policy_that_cannot_be_read_just_before_freezes_nothing(stage: Any) -> None:
    month = stage()
    month.until(SPENT + 3 * HOUR, every=HOUR)

    def unread() -> Any:
        raise UnavailableError("did not answer", operation="policy")

    month.policy_now = unread
    month.until(SPENT + 8 * HOUR, every=HOUR)
    assert month.organisation.calls == []


@pytest.mark.parametrize("case", ["observe", "blind", "paused", "undelivered", "no_bill"])
def test_nothing_is_frozen_without_leave_sight_delivery_or_certain_figures(stage: Any, case: str) -> None:
    month = stage(**({"mode": Mode.OBSERVE} if case == "observe" else {}))
    month.organisation.blind = case == "blind"
    month.mailbox.down = case == "undelivered"
    if case == "paused":
        month.memory.switch.pause("operator", "audit", month.clock.now())
    if case == "no_bill":
        month.cloud.deny("aws", "111122223333", "bill")
    month.until(12 * DAY)
    assert month.organisation.calls == []


def test_figures_that_became_uncertain_neither_freeze_nor_thaw(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY)
    month.cloud.deny("aws", "111122223333", "bill")
    month.until(14 * DAY)
    assert month.organisation.calls == ["attach"]


def test_the_intent_is_audited_before_the_call(stage: Any) -> None:
    month = stage()
    month.until(10 * DAY, every=HALF)
    entries = [
        record.body["what"]
        for record in month.memory.store.query("audit")
        if str(record.body.get("shard", "")).startswith("freeze:")
    ]
    assert entries == ["transition", "intent", "outcome", "transition"]
    assert usd("400") == month.policy.budgets[0].amount
