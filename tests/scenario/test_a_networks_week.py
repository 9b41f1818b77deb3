"""What the internet reaches and nobody meant: people are told, one setting is changed, and it can be taken back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy
from tests.contract.network_fleet import NOTEBOOK, OPEN, SPARE, network_fleet
from tests.scenario.stage import CLOUDS, DAY, Mailbox
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.networks import WorldNetworkRemediator, WorldNetworks
from tests.world_ports.translate import to_world

from cloudstand.clock import MovedClock
from cloudstand.world.network.parts import Direction, NetworkInventory, NetworkRule
from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.actions import Outcome, Receipt, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    DeniedByOrganisationError,
    InvalidInputError,
    OutcomeUnknownError,
    RefusedError,
    StalePlanError,
    ThrottledError,
)
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.savings import SavingStanding
from costguard.engine.answers import answers
from costguard.engine.answers.undo import Undoers, undo, undoing_of
from costguard.engine.guards.networks.run import NetworkHandler
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import GuardRun, plan_guard, run_guard
from costguard.engine.run.run_context import PrecheckResult, RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.engine.savings import savings_report
from costguard.guards.network.rules import AuditRule, NetworkCheck, NetworkSelector
from costguard.guards.rules.common import Mode
from costguard.planning import Plan, PlanIndex
from costguard.policy.model.terms import with_digest
from costguard.policy.model.working_time import WorkingCalendar
from costguard.ports import Target

BEGIN = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class Remediator:
    """What a world's remediator was asked, and an answer that may get lost before or after its effect."""

    def __init__(self, inner: WorldNetworkRemediator) -> None:
        self.inner = inner
        self.calls: list[Remediation] = []
        self.fails_before: Exception | None = None
        self.fails_after: Exception | None = None

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        self.calls.append(mend)
        if self.fails_before is not None:
            raise self.fails_before
        receipt = self.inner.change(mend, before)
        if self.fails_after is not None:
            raise self.fails_after
        return receipt


def forbidding(*checks: NetworkCheck, **changes: Any) -> AuditRule:
    rule = AuditRule("gpu-hosts", Mode.ENFORCE, frozenset(checks), wait=DAY)
    return with_digest(replace(rule, **changes))


def closing(cloud: str, *ports: int, by: RemediationKind = RemediationKind.REVOKE_RULE, **changes: Any) -> AuditRule:
    """Ports that the group called `OPEN` may not open to the world, and how that is mended."""
    group = network_fleet(cloud, BEGIN).ref("security_group", OPEN)
    only = NetworkSelector(resources=(str(group),))
    return forbidding(NetworkCheck.OPEN_ADMIN_PORT, ports=ports, mend=frozenset({by}), applies_to=only, **changes)


class NetworkStage:
    """One shard of one cloud with its networks, and the real engine before it."""

    def __init__(self, folder: Path, cloud: str, *rules: AuditRule) -> None:
        self.fleet = network_fleet(cloud, BEGIN)
        self.cloud = self.fleet.world(BEGIN)
        self.clock = MovedClock(BEGIN)
        self.memory = Memory.over(open_ledger(f"sqlite:///{folder / f'{cloud}.sqlite3'}"))
        self.mailbox = Mailbox()
        self.remediator = Remediator(WorldNetworkRemediator(self.cloud, self.clock))
        self.policy = replace(policy(), idle_gpu=(), network_audit=rules)
        self.reading = CloudReaders(
            WorldInventory(self.cloud, self.clock), WorldSignals(self.cloud, self.clock), WorldPrices(self.cloud)
        )

    def surroundings(self) -> RunContext:
        name = self.fleet.shard.cloud
        return RunContext(
            guard="network_audit",
            policy=self.policy,
            targets=(Target(name, organisation=True),),
            readings={name: self.reading},
            executors={},
            memory=self.memory,
            notifier=self.mailbox,
            clock=self.clock,
            policy_now=lambda: self.policy,
            networks={name: WorldNetworks(self.cloud, self.clock)},
            network_remediators={name: lambda: self.remediator},
        )

    def look(self, moment: timedelta) -> GuardRun:
        self.clock.advance(BEGIN + moment - self.clock.now())
        return run_guard(self.surroundings(), f"networks-{self.clock.now().isoformat()}")

    def plan_at(self, moment: timedelta) -> Plan:
        report = self.look(moment).report
        assert report is not None
        assert report.plan is not None
        return report.plan

    def every_day(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.look(number * DAY)

    @property
    def networks(self) -> NetworkInventory:
        return self.cloud.networks.of(to_world(self.fleet.shard))

    def rules_of(self, name: str) -> tuple[NetworkRule, ...]:
        return self.cloud.networks.group(to_world(self.fleet.ref("security_group", name))).rules

    def opened_to_the_world(self, name: str) -> set[int]:
        """The first ports that rules of a group open to everybody."""
        into = (rule for rule in self.rules_of(name) if rule.direction is Direction.INGRESS)
        return {rule.ports[0][0] for rule in into if "0.0.0.0/0" in rule.peers}

    @property
    def kinds(self) -> list[RemediationKind]:
        return [mend.kind for mend in self.remediator.calls]

    def last_action(self) -> str:
        cases = self.memory.cases.all("network_audit")
        sent = [intent for case in cases for intent in self.memory.intents.for_case(case.case_id)]
        return max(sent, key=lambda intent: intent.claimed_at).action.action_id

    def take_back(self, action_id: str) -> Any:
        name = self.fleet.shard.cloud
        by = Undoers(
            {name: self.reading.inventory},
            {name: lambda: WorldExecutor(self.cloud, self.clock)},
            {name: lambda: self.remediator},
        )
        back = undoing_of(self.memory, action_id)
        return undo(self.memory, back, by, "netops", "needed", self.clock.now(), paused=False)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[NetworkStage] = []

    def build(cloud: str, *rules: AuditRule) -> NetworkStage:
        opened.append(NetworkStage(tmp_path, cloud, *rules))
        return opened[-1]

    yield build
    for each in opened:
        each.memory.store.close()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_unattached_address_is_released_after_its_grace_and_said_to_be_final(stage: Any, cloud: str) -> None:
    rule = forbidding(NetworkCheck.UNATTACHED_ADDRESS, mend=frozenset({RemediationKind.RELEASE_ADDRESS}))
    week = stage(cloud, rule)
    spare = week.fleet.ref("address", SPARE)
    week.every_day(0, 6)
    assert week.remediator.calls == []
    week.every_day(7, 8)
    assert week.kinds == [RemediationKind.RELEASE_ADDRESS]
    assert to_world(spare) not in {address.ref for address in week.networks.addresses}
    (told,) = (message for message in week.mailbox.messages if "will release" in message.title)
    assert "There is no way back from this." in told.lines
    week.every_day(9, 12)
    assert week.kinds == [RemediationKind.RELEASE_ADDRESS]
    now = week.clock.now()
    (saved,) = savings_report(week.memory, BEGIN, now, now).entries
    assert (saved.subject, saved.standing, saved.counted_until) == (spare, SavingStanding.RELEASED, now)
    with pytest.raises(InvalidInputError, match="no way back"):
        week.take_back(week.last_action())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_address_in_use_for_an_hour_begins_its_grace_anew(stage: Any, cloud: str) -> None:
    rule = forbidding(NetworkCheck.UNATTACHED_ADDRESS, mend=frozenset({RemediationKind.RELEASE_ADDRESS}))
    week = stage(cloud, rule)
    spare = week.fleet.ref("address", SPARE)
    week.every_day(0, 5)
    card = next(card for card in week.networks.interfaces if not card.public_ips and card.private_ips)
    week.cloud.networks.attach(to_world(spare), card.ref, card.private_ips[0], week.clock.now(), "owner")
    week.look(5 * DAY + HOUR)
    week.cloud.networks.detach(to_world(spare), week.clock.now(), "owner")
    week.every_day(6, 12)
    assert week.remediator.calls == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_address_in_use_for_a_last_look_alone_begins_its_grace_anew(stage: Any, cloud: str) -> None:
    """No look of a run shows that hour: it began after one and was over before the next."""
    week = stage(cloud, forbidding(NetworkCheck.UNATTACHED_ADDRESS, mend=frozenset({RemediationKind.RELEASE_ADDRESS})))
    spare = week.fleet.ref("address", SPARE)
    day = 0
    while not (plan := week.plan_at(day * DAY)).due or week.remediator.calls:
        week.every_day(day, day)
        assert week.remediator.calls == [], "the plan of the same moment would have been due"
        day += 1
    (action,) = [each for each in plan.due if each.subject == spare]
    case = PlanIndex.of(plan).case_of(action)
    card = next(card for card in week.networks.interfaces if not card.public_ips and card.private_ips)
    week.cloud.networks.attach(to_world(spare), card.ref, card.private_ips[0], week.clock.now(), "owner")
    found = NetworkHandler(week.surroundings()).last_look(case, action, week.policy, week.clock.now(), week.memory)
    assert isinstance(found, Reason)
    week.cloud.networks.detach(to_world(spare), week.clock.now(), "owner")
    week.every_day(day, day + 3)
    assert week.remediator.calls == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_port_open_to_the_world_is_closed_by_one_rule_and_put_back_by_undo(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    before = week.rules_of(OPEN)
    assert 8888 in week.opened_to_the_world(OPEN)
    week.look(timedelta(0))
    assert week.remediator.calls == []
    week.look(25 * HOUR)
    assert week.kinds == [RemediationKind.REVOKE_RULE]
    (gone,) = set(before) - set(week.rules_of(OPEN)) if cloud != "tencent" else before[1:2]
    assert (gone.ports, len(week.rules_of(OPEN))) == (((8888, 8888),), len(before) - 1)
    week.look(26 * HOUR)
    assert any("done: revoke rule" in message.title for message in week.mailbox.messages)

    done = week.take_back(week.last_action())
    assert done.outcome is Outcome.ACCEPTED
    assert {replace(rule, rule_id="", priority=0) for rule in week.rules_of(OPEN)} == {
        replace(rule, rule_id="", priority=0) for rule in before
    }
    week.every_day(3, 20)
    assert 8888 in week.opened_to_the_world(OPEN)  # left alone, as people asked
    with pytest.raises(InvalidInputError, match="once is enough"):
        undoing_of(week.memory, done.action.action_id.partition("-undo")[0])


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_was_announced_comes_no_earlier_though_the_calendar_is_taken_out(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    week.policy = replace(week.policy, calendar=WorkingCalendar("UTC", frozenset(range(5)), time(9), time(17)))
    week.look(0 * DAY)
    (case,) = week.memory.cases.all("network_audit")
    announced = case.announced_for(Verb.MEND)
    assert announced == BEGIN + 2 * DAY + 8 * HOUR
    assert f"{announced:%Y-%m-%d %H:%M}" in str(week.mailbox.messages[0])

    week.policy = replace(week.policy, calendar=None)
    for hours in range(6, 56, 6):
        week.look(hours * HOUR)
        assert week.kinds == [], hours
    week.look(announced - BEGIN)
    assert week.kinds == [RemediationKind.REVOKE_RULE]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_narrowing_lets_the_named_networks_in_and_nobody_else(stage: Any, cloud: str) -> None:
    rule = closing(cloud, 8888, by=RemediationKind.NARROW_RULE, narrow_to=("198.51.100.0/24", "2001:db8:77::/48"))
    week = stage(cloud, rule)
    week.every_day(0, 6)

    def let_in() -> set[str]:
        return {peer for rule in week.rules_of(OPEN) if rule.ports == ((8888, 8888),) for peer in rule.peers}

    assert let_in() == {"198.51.100.0/24", "2001:db8:77::/48"}
    assert week.kinds == [RemediationKind.NARROW_RULE] * 2
    week.take_back(week.last_action())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_last_way_in_is_never_closed(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 22))
    week.every_day(0, 5)
    assert 22 in week.opened_to_the_world(OPEN)
    assert week.remediator.calls == []
    (case,) = week.memory.cases.active("network_audit")
    assert case.reason.code is ReasonCode.LAST_ADMIN_PATH


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("nobodys", ["10.20.1.99/32", "10.20.1.10/32", "203.0.113.10/32", "198.51.101.7/32"])
def test_a_way_in_from_where_nobody_is_known_to_be_does_not_count(stage: Any, cloud: str, nobodys: str) -> None:
    """What nothing has, the machine's own addresses, and one of the internet that the policy does not trust."""
    week = stage(cloud, closing(cloud, 22, trusted=("198.51.100.0/24",)))
    let_in(week, nobodys)
    week.every_day(0, 5)
    assert 22 in week.opened_to_the_world(OPEN)
    assert week.remediator.calls == []
    (case,) = week.memory.cases.active("network_audit")
    assert case.reason.code is ReasonCode.ADMIN_PATH_UNPROVEN
    assert any(nobodys in message.title for message in week.mailbox.messages)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_last_look_counts_the_ways_again(stage: Any, cloud: str) -> None:
    """The machine from which people come was there when the notice and the plan were made, and is gone by the call."""
    trainer = "10.20.2.10/32"
    week = stage(cloud, closing(cloud, 22, trusted=(trainer,)))
    let_in(week, trainer)
    week.look(timedelta(0))
    week.clock.advance(25 * HOUR)
    plan = plan_guard(week.surroundings(), "tomorrow").plan
    (action,) = plan.due
    case, shown = PlanIndex.of(plan).case_of(action), week.networks
    hand = NetworkHandler(week.surroundings())
    left = tuple(card for card in shown.interfaces if card.private_ips != ("10.20.2.10",))
    week.cloud.networks.place(replace(shown, interfaces=left))
    found = hand.last_look(case, action, week.policy, week.clock.now(), week.memory)
    assert isinstance(found, Reason)
    assert found.code is ReasonCode.ADMIN_PATH_UNPROVEN
    week.cloud.networks.place(shown)
    assert isinstance(hand.last_look(case, action, week.policy, week.clock.now(), week.memory), PrecheckResult)


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("by", [RemediationKind.REVOKE_RULE, RemediationKind.NARROW_RULE])
def test_a_rule_that_could_not_be_put_back_is_told_and_never_announced(
    stage: Any, cloud: str, by: RemediationKind
) -> None:
    """Until it can: once it names a network as others do, it is announced and, after the whole wait, closed."""
    week = stage(cloud, closing(cloud, 8888, by=by, narrow_to=("198.51.100.0/24", "2001:db8:77::/48")))
    group, rules = week.fleet.ref("security_group", OPEN), week.rules_of(OPEN)
    lost = [replace(each, cannot_return="template") if each.ports == ((8888, 8888),) else each for each in rules]
    week.cloud.networks.set_rules(to_world(group), lost, BEGIN, "owner", "names a template")
    week.every_day(0, 5)
    assert week.remediator.calls == []
    assert not [message.title for message in week.mailbox.messages if "Costguard will" in message.title]
    assert [message.title for message in week.mailbox.messages if "is not as the policy asks" in message.title]
    (held,) = (each for each in week.plan_at(6 * DAY).held if each.action.subject == group)
    assert held.reason.code is ReasonCode.NET_CANNOT_RETURN
    week.cloud.networks.set_rules(to_world(group), rules, week.clock.now(), "owner", "names networks")
    week.look(7 * DAY)
    assert week.remediator.calls == []
    assert [message.title for message in week.mailbox.messages if "Costguard will" in message.title]
    week.look(8 * DAY + HOUR)
    assert week.kinds == [by]


def refusals(week: NetworkStage) -> list[Any]:
    return [message for message in week.mailbox.messages if "could not" in message.title]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_refusal_is_told_once_with_its_error_and_who_can_grant_it(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    denied = AccessDeniedError("vpc:RevokeRule: AccessDenied: no vpc:RevokeRule", operation="vpc:RevokeRule", code="A")
    week.remediator.fails_before = denied
    week.look(timedelta(0))
    week.look(25 * HOUR)
    (told,) = refusals(week)
    assert "Costguard could not revoke rule" in told.title
    assert "no vpc:RevokeRule" in dict(told.fields)["Why"]
    assert f"`costguard permissions {cloud} --role fix_network`" in dict(told.fields)["Why"]
    assert "Nothing was changed." in told.lines[0]
    week.every_day(2, 10)
    assert len(refusals(week)) == 1
    assert len(week.remediator.calls) == 10, "what may have been granted is tried again, five times and then once a day"
    (case,) = week.memory.cases.active("network_audit")
    assert (case.status.value, case.reason.code) == ("held", ReasonCode.PERMISSION_MISSING)
    assert not [one for one in week.mailbox.messages if "accepted the call" in f"{one.title} {one.fields}"]
    week.remediator.fails_before = RefusedError("vpc:RevokeRule: Busy: in use", operation="vpc:RevokeRule", code="Busy")
    week.every_day(11, 13)
    assert len(refusals(week)) == 2
    assert "in use" in dict(refusals(week)[-1].fields)["Why"]
    week.remediator.fails_before = None
    week.every_day(14, 15)
    assert any("done: revoke rule" in message.title for message in week.mailbox.messages)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_after_five_refusals_it_is_tried_once_a_day_and_held_for_the_last_error(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    week.remediator.fails_before = DeniedByOrganisationError("explicit deny", operation="vpc:RevokeRule", code="A")
    week.look(timedelta(0))
    for hour in range(25, 31):
        week.look(hour * HOUR)
    assert len(week.remediator.calls) == 5
    (case,) = week.memory.cases.active("network_audit")
    assert (case.reason.code, case.reason.facts["failures"]) == (ReasonCode.DENIED_BY_ORGANISATION, 5)
    (told,) = refusals(week)
    assert "No grant helps" in dict(told.fields)["Why"]
    week.cloud.deny(week.fleet.shard.cloud, week.fleet.shard.account, "network")
    week.look(32 * HOUR)
    week.cloud.allow(week.fleet.shard.cloud, week.fleet.shard.account, "network")
    week.look(33 * HOUR)
    (case,) = week.memory.cases.active("network_audit")
    assert case.reason.code is ReasonCode.DENIED_BY_ORGANISATION, "a day without a reading does not make it forgotten"
    week.look(54 * HOUR)
    assert len(week.remediator.calls) == 6


def test_what_passes_by_itself_is_told_only_where_it_stays(stage: Any) -> None:
    week = stage("aws", closing("aws", 8888))
    week.remediator.fails_before = ThrottledError("slow down", operation="ec2:Revoke", code="Throttling")
    week.look(timedelta(0))
    week.every_day(2, 5)
    assert (len(week.remediator.calls), refusals(week)) == (4, [])
    week.every_day(6, 8)
    assert len(refusals(week)) == 1


def let_in(week: NetworkStage, peer: str) -> None:
    """A second rule of the group called `OPEN` lets somebody in to port 22."""
    group = week.fleet.ref("security_group", OPEN)
    first = next(rule for rule in week.rules_of(OPEN) if rule.ports == ((22, 22),))
    beside = replace(first, rule_id=f"{first.rule_id}0", peers=(peer,))
    week.cloud.networks.set_rules(
        to_world(group), (*week.rules_of(OPEN), beside), week.clock.now(), "owner", "added a rule"
    )


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_rule_that_policy_keeps_stays(stage: Any, cloud: str) -> None:
    week = stage(cloud)
    kept = tuple(rule.rule_id for rule in week.rules_of(OPEN))
    week.policy = replace(week.policy, network_audit=(closing(cloud, 8888, keep=kept),))
    week.every_day(0, 5)
    assert week.remediator.calls == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_lost_answer_is_looked_up_and_never_sent_again(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    week.remediator.fails_after = OutcomeUnknownError("the answer got lost", operation="RevokeSecurityGroup")
    week.every_day(0, 8)
    assert len({mend.parameters["what"] for mend in week.remediator.calls}) == len(week.remediator.calls) == 2
    assert 8888 not in week.opened_to_the_world(OPEN)
    assert [case.reason.code for case in week.memory.cases.all("network_audit")] == [ReasonCode.MENDED]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_part_that_cannot_be_read_changes_nothing(stage: Any, cloud: str) -> None:
    week = stage(cloud, closing(cloud, 8888))
    week.look(timedelta(0))
    week.cloud.deny(week.fleet.shard.cloud, week.fleet.shard.account, "network")
    week.every_day(1, 4)
    assert week.remediator.calls == []


def test_a_snooze_before_the_mend_is_heard(stage: Any) -> None:
    week = stage("aws", closing("aws", 8888))
    week.look(timedelta(0))
    subject: ResourceRef = week.memory.cases.active("network_audit")[0].subject
    answers.snooze(week.memory, subject, 10 * DAY, "netops", "a workshop", week.clock.now())
    week.every_day(1, 9)
    assert week.remediator.calls == []


def test_metadata_without_tokens_is_refused_and_allowed_again_by_undo(stage: Any) -> None:
    week = stage("aws", forbidding(NetworkCheck.IMDS_V1, mend=frozenset({RemediationKind.REQUIRE_IMDSV2})))
    machine = week.fleet.ref("instance", NOTEBOOK)
    week.look(timedelta(0))
    week.look(25 * HOUR)
    assert week.cloud.networks.imds_v1[to_world(machine)] is False
    week.look(26 * HOUR)
    week.take_back(week.last_action())
    assert week.cloud.networks.imds_v1[to_world(machine)] is True


def test_nothing_is_taken_back_while_costguard_is_paused(stage: Any) -> None:
    week = stage("aws", forbidding(NetworkCheck.IMDS_V1, mend=frozenset({RemediationKind.REQUIRE_IMDSV2})))
    week.look(timedelta(0))
    week.look(25 * HOUR)
    week.memory.switch.pause("oncall", "an incident", week.clock.now())
    with pytest.raises(StalePlanError, match="paused"):
        week.take_back(week.last_action())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_observing_tells_nobody_and_changes_nothing(stage: Any, cloud: str) -> None:
    everything = frozenset(NetworkCheck) - {
        NetworkCheck.REGION,
        NetworkCheck.WIDE_PEERING,
        NetworkCheck.PRIVATE_SUBNET_EXPOSED,
    }
    week = stage(cloud, forbidding(*everything, mode=Mode.OBSERVE, mend=frozenset(RemediationKind)))
    happened = len(week.cloud.networks.history)
    week.every_day(0, 9)
    assert (week.remediator.calls, week.mailbox.messages) == ([], [])
    assert len(week.cloud.networks.history) == happened
