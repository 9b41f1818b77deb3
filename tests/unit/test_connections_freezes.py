"""What can attach policies is opened only where a freeze is asked for or was begun, once, and only when called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import NOW, policy, usd

from cloudstand.clock import MovedClock
from costguard.connections import Connections
from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.money import SpendScope
from costguard.domain.refs import Shard
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, StepKind
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import Policy
from costguard.ports import Target
from costguard.providers.alibaba.iam.freeze import AlibabaFreeze
from costguard.providers.aws.iam.freeze import AwsFreeze
from costguard.providers.kit.iam.freeze import shard_of
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.iam.freeze import TencentFreeze
from costguard.settings import load_settings

FREEZES = (
    LaunchFreeze("a", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "111122223333"),
    LaunchFreeze("b", "alibaba", FreezeVia.GROUP, "frost", "gpu-users"),
    LaunchFreeze("c", "tencent", FreezeVia.GROUP, "77", "98"),
)
KINDS: dict[str, type[object]] = {"aws": AwsFreeze, "alibaba": AlibabaFreeze, "tencent": TencentFreeze}


def asking(*names: str, mode: Mode = Mode.ENFORCE) -> Policy:
    step = BudgetStep(Decimal("1.2"), StepKind.FREEZE, freezes=names)
    budget = BudgetRule("research", mode, SpendScope(), BudgetPeriod(), usd("5"), steps=(step,) if names else ())
    return replace(policy(), budgets=(budget,), launch_freezes=FREEZES)


def connected(under: Policy, *targets: Target) -> Connections:
    made = Connections(load_settings({}), under, MovedClock(NOW))
    made.open(targets or (Target("aws"), Target("alibaba"), Target("tencent")))
    return made


@pytest.fixture
def open_all() -> Iterator[Connections]:
    with connected(asking("a", "b", "c")) as made:
        yield made


def test_only_clouds_whose_freezes_an_enforcing_budget_asks_for() -> None:
    for under, clouds in (
        (asking("a"), ["aws"]),
        (asking("a", "c"), ["aws", "tencent"]),
        (asking(), []),
        (asking("a", mode=Mode.WARN), []),
        (replace(asking("a"), launch_freezes=()), []),
    ):
        with connected(under) as connections:
            assert list(connections.freezers()) == clouds


def test_a_freeze_that_was_begun_can_be_ended_whatever_the_policy_says_now() -> None:
    with connected(replace(policy(), budgets=()), Target("aws")) as connections:
        opened = connections.freezers(["alibaba"])["alibaba"]()
        assert isinstance(opened, AlibabaFreeze)
        assert set(connections.clouds) == {"aws"}, "it is not scanned for that"


@pytest.mark.parametrize("cloud", sorted(KINDS))
def test_it_is_opened_once_and_only_when_it_is_called(open_all: Connections, cloud: str) -> None:
    opener = open_all.freezers()[cloud]
    assert opener() is opener()
    assert isinstance(opener(), KINDS[cloud])


@pytest.mark.parametrize("cloud", sorted(KINDS))
def test_what_only_looks_can_change_nothing(open_all: Connections, cloud: str) -> None:
    control, log = open_all.freezes_seen(cloud)
    session: Any = log
    assert isinstance(control, KINDS[cloud])
    assert (session.purpose, session.may_change, list(log.calls_made())) == (Purpose.FREEZE, False, [])


class Entered:
    """A session that remembers which accounts it was led into."""

    def __init__(self) -> None:
        self.ways: list[tuple[str, str]] = []

    def for_account(self, target: Target, account: str) -> None:
        self.ways.append((target.role, account))


def test_an_account_is_entered_by_its_own_role_else_by_its_organisations() -> None:
    targets = (Target("aws", "111122223333", role="own"), Target("aws", "444455556666", role="org", organisation=True))
    with connected(asking("a"), *targets, Target("alibaba", "1", role="elsewhere")) as connections:
        way, entered = connections._way_into("aws"), Entered()  # noqa: SLF001 - what it hands to the adapters
        for account in ("111122223333", "777788889999", ""):
            found = shard_of(replace(FREEZES[0], account=account), entered, way)
            assert found == Shard("aws", account)
        assert entered.ways == [("own", "111122223333"), ("org", "777788889999")]
