"""One look at the demo's networks: all shards judged together, owners and exceptions laid over, gaps never closed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.networks import WorldNetworks
from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.networks import OFFICE, demo_networks
from cloudstand.fleets import EAST, RESEARCH
from cloudstand.world.cloud import World
from costguard.adapters.ledgers.open import open_ledger
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.domain.errors import ThrottledError
from costguard.domain.findings import Verdict
from costguard.domain.network import NetworkInventory
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.engine.guards.networks.look import (
    LONGEST_HOLE,
    NetworkLook,
    Sightings,
    SightingsRepository,
    first_seen,
    look_at_networks,
    sighted,
)
from costguard.engine.guards.registry import runner_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import GuardRun, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.guards.network.rules import NetworkCheck
from costguard.planning.remediation import Judged
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import NetworkSource, PolicyText, Target

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
DAY = timedelta(days=1)
CLOUDS = ("aws", "alibaba", "tencent")
RESEARCH_EAST = Shard("aws", RESEARCH, EAST)
ENFORCING = f"""
version: 1
mode: enforce
network_audit:
  - name: all
    mode: enforce
    forbid: [open_admin_port, wide_rule, unattached_public_address, public_ip, flow_logs_off, imds_v1]
    trusted: [{OFFICE}]
    mend: [revoke_rule, release_address, require_imdsv2]
    wait: 1d
"""


def policy(text: str = ENFORCING, **others: str) -> Policy:
    return load_policy(
        PolicyText({"costguard.yaml": text, **{f"{name}.yaml": said for name, said in others.items()}}, "r1")
    )


class Source:
    """Networks of a world, but for one shard that fails or answers in part."""

    def __init__(self, inner: NetworkSource, shard: Shard, gap: Gap | None = None) -> None:
        self.inner, self.shard, self.gap = inner, shard, gap

    def read(self, shard: Shard) -> NetworkInventory:
        if shard != self.shard:
            return self.inner.read(shard)
        if self.gap is None:
            raise ThrottledError("slow down", operation="ec2:DescribeVpcs")
        read = self.inner.read(shard)
        return replace(read, gaps=(*read.gaps, self.gap), addresses=())


class Place:
    """The demo's clouds and networks without any wire."""

    def __init__(self) -> None:
        self.clock = MovedClock(NOW)
        self.cloud = World(demo_fleet(NOW), NOW)
        self.cloud.networks = demo_networks(NOW)
        self.source: NetworkSource = WorldNetworks(self.cloud, self.clock)
        self.memory = Memory.over(open_ledger("memory:"))

    def world(self, said: Policy) -> RunContext:
        reading = CloudReaders(
            WorldInventory(self.cloud, self.clock), WorldSignals(self.cloud, self.clock), WorldPrices(self.cloud)
        )
        return RunContext(
            guard="network_audit",
            policy=said,
            targets=tuple(Target(cloud, organisation=True) for cloud in CLOUDS),
            readings=dict.fromkeys(CLOUDS, reading),
            executors={},
            memory=self.memory,
            notifier=NotifierRouter({}, default="slack"),
            clock=self.clock,
            policy_now=lambda: said,
            networks=dict.fromkeys(CLOUDS, self.source),
        )

    def look(
        self,
        said: Policy | None = None,
        deadline: datetime | None = None,
        known: dict[ResourceRef, datetime] | None = None,
    ) -> NetworkLook:
        world = self.world(said or policy())
        return look_at_networks(
            world.readings,
            world.networks,
            world.targets,
            world.policy,
            world.clock,
            first_seen=known or {},
            deadline=deadline,
        )

    def run(self, run_id: str = "run-1", said: Policy | None = None) -> GuardRun:
        return run_guard(self.world(said or observing()), run_id)


def observing() -> Policy:
    return policy(ENFORCING.replace("enforce", "observe"))


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.memory.store.close()


def of(looked: NetworkLook, check: NetworkCheck, verdict: Verdict = Verdict.VIOLATION) -> dict[str, Judged]:
    """What was judged so, by the resource's name."""
    return {
        each.finding.name: each
        for each in looked.judged
        if each.finding.check == check.value and each.finding.verdict is verdict
    }


def test_on_every_cloud_the_demo_has_an_open_notebook_an_unused_address_and_missing_flow_logs(place: Place) -> None:
    looked = place.look()

    for cloud in CLOUDS:
        found = {
            each.finding.reason.code
            for each in looked.judged
            if each.finding.verdict is Verdict.VIOLATION and str(each.finding.subject).startswith(f"{cloud}:")
        }
        assert {ReasonCode.NET_OPEN_PORT, ReasonCode.NET_PUBLIC_IP, ReasonCode.NET_FLOW_LOGS_OFF} <= found
    assert looked.gaps == ()
    assert all(looked.shards.values())
    assert looked.seen == looked.report.seen.networks > 0
    assert looked.report.seen.instances == len(looked.instances) > 0


def test_an_open_port_names_the_way_in_the_least_change_and_what_policy_allows(place: Place) -> None:
    notebooks = of(place.look(), NetworkCheck.OPEN_ADMIN_PORT)["notebooks"]

    facts = notebooks.finding.reason.facts
    assert (facts["port"], facts["peers"], facts["severity"]) == (8888, "0.0.0.0/0", "critical")
    assert str(facts["path"]).endswith(":8888")
    assert notebooks.mend is not None
    assert notebooks.mend.kind is RemediationKind.REVOKE_RULE
    assert notebooks.bar is None
    assert notebooks.gravity == 4


def test_the_last_way_in_for_people_bars_the_mend_and_the_finding_stays(place: Place) -> None:
    barred = {each.finding.name for each in place.look().judged if _is_barred(each, ReasonCode.LAST_ADMIN_PATH)}

    assert barred
    assert "notebooks" not in barred


def _is_barred(each: Judged, code: ReasonCode) -> bool:
    return each.bar is not None and each.bar.code is code


def test_what_only_observes_allows_nothing_and_nothing_is_changed_by_looking(place: Place) -> None:
    happened = len(place.cloud.networks.history)
    looked = place.look(policy("version: 1\nnetwork_audit: [{name: a, forbid: [open_admin_port]}]\n"))

    assert {each.mend for each in looked.judged} == {None}
    assert len(place.cloud.networks.history) == happened


def test_everything_belongs_to_whom_owners_its_tags_or_its_account_say(place: Place) -> None:
    account = f"accounts: [{{cloud: aws, id: '{RESEARCH}', regions: all, owner: lab}}]\n"
    owners = (
        "- {name: china, owns: {clouds: [alibaba, tencent]}}\n"
        "- {name: cards, owns: {instance_types: ['*'], clouds: [aws]}}\n"
    )
    looked = place.look(policy(ENFORCING + account, owners=owners))

    by_kind = {
        (each.finding.subject.cloud, each.finding.subject.kind): each.finding.owner
        for each in looked.judged
        if isinstance(each.finding.subject, ResourceRef)
    }
    assert by_kind["alibaba", "security_group"] == by_kind["tencent", "vpc"] == "china"
    assert by_kind["aws", "instance"] == "cards"
    groups = [
        each.finding
        for each in looked.judged
        if str(each.finding.subject).startswith(f"aws:{RESEARCH}:") and each.finding.check == "wide_rule"
    ]
    assert {each.owner for each in groups} == {"lab"}


def test_an_exception_covers_the_very_resource_it_names_until_it_expires(place: Place) -> None:
    group = of(place.look(), NetworkCheck.OPEN_ADMIN_PORT)["notebooks"].finding.subject
    agreed = "owner: a, reason: moving, approver: b, expires: '2026-03-09T00:00:00Z'"

    def verdicts(exceptions: str) -> list[Verdict]:
        judged = place.look(policy(f"{ENFORCING}exceptions: [{exceptions}]\n")).judged
        assert all(each.mend is None for each in judged if each.finding.verdict is Verdict.EXEMPT)
        return [
            each.finding.verdict
            for each in judged
            if (each.finding.subject, each.finding.check) == (group, NetworkCheck.OPEN_ADMIN_PORT.value)
        ]

    assert isinstance(group, ResourceRef)
    assert verdicts(f"{{resource: {group.native_id}, {agreed}}}") == [Verdict.EXEMPT]
    assert verdicts(f"{{resource: '{group}', {agreed}}}") == [Verdict.EXEMPT]
    assert verdicts(f"{{applies_when_all: {{clouds: [aws]}}, {agreed}}}") == [Verdict.VIOLATION]
    place.clock.advance(7 * DAY)
    assert verdicts(f"{{resource: {group.native_id}, {agreed}}}") == [Verdict.VIOLATION]


def test_a_protected_account_bars_every_mend_there(place: Place) -> None:
    looked = place.look(policy(f"{ENFORCING}protect: {{accounts: ['{RESEARCH}']}}\n"))

    there = [each for each in looked.judged if each.mend is not None and each.mend.subject.account == RESEARCH]
    assert there
    assert all(_is_barred(each, ReasonCode.PROTECTED_ACCOUNT) for each in there)


def test_a_shard_that_fails_is_a_gap_touches_no_other_and_proves_nothing_closed(place: Place) -> None:
    whole = place.look()
    place.source = Source(place.source, RESEARCH_EAST)
    looked = place.look()

    assert [(gap.shard, gap.what, gap.kind) for gap in looked.gaps] == [(RESEARCH_EAST, "networks", GapKind.THROTTLED)]
    assert RESEARCH_EAST not in looked.shards
    here = [each.finding for each in looked.judged if _shard(each) == RESEARCH_EAST]
    assert {each.verdict for each in here if each.check != NetworkCheck.IMDS_V1.value} == {Verdict.UNMEASURED}
    assert [each for each in looked.judged if _shard(each) != RESEARCH_EAST] == [
        each for each in whole.judged if _shard(each) != RESEARCH_EAST
    ]


def _shard(each: Judged) -> Shard:
    assert isinstance(each.finding.subject, ResourceRef)
    return each.finding.subject.shard


def test_what_was_read_in_part_is_judged_as_far_as_it_goes_and_not_called_complete(place: Place) -> None:
    place.source = Source(
        place.source, RESEARCH_EAST, Gap(RESEARCH_EAST, "addresses", GapKind.DENIED, "no", "allow it")
    )
    looked = place.look()

    assert [gap.what for gap in looked.gaps] == ["addresses"]
    assert looked.shards[RESEARCH_EAST] is False
    assert "paper-website" not in of(looked, NetworkCheck.UNATTACHED_ADDRESS, Verdict.COMPLIANT)
    assert RESEARCH_EAST not in {sheet.shard for sheet in looked.sightings}


def test_machines_that_could_not_be_listed_are_a_gap_of_their_shard(place: Place) -> None:
    place.cloud.deny("tencent", "100012345678", "list")
    looked = place.look()

    assert {(gap.shard.cloud, gap.what, gap.kind) for gap in looked.gaps} == {("tencent", "inventory", GapKind.DENIED)}
    assert {done for shard, done in looked.shards.items() if shard.cloud == "tencent"} == {False}
    assert "tencent" not in {one.ref.cloud for one in looked.instances}


def test_a_denied_account_is_a_gap_and_never_a_network_without_faults(place: Place) -> None:
    place.cloud.deny("tencent", "100012345678", "network")
    looked = place.look()

    assert {(gap.shard.cloud, gap.what, gap.kind) for gap in looked.gaps} == {("tencent", "networks", GapKind.DENIED)}
    tencent = [each.finding for each in looked.judged if _shard(each).cloud == "tencent"]
    assert tencent
    assert {each.verdict for each in tencent} == {Verdict.UNMEASURED}


def test_what_the_deadline_leaves_unread_is_a_gap(place: Place) -> None:
    looked = place.look(deadline=NOW)

    assert {gap.kind for gap in looked.gaps} == {GapKind.DEADLINE}
    assert {gap.what for gap in looked.gaps} == {"networks", "inventory"}
    assert (looked.shards, looked.seen, looked.sightings) == ({}, 0, ())


def test_an_address_counts_as_unused_from_the_first_run_that_saw_it_so(place: Place) -> None:
    mends = []
    for day in range(0, 9, 2):
        looked = place.run(f"run-{day}").look
        assert looked is not None
        found = of(looked, NetworkCheck.UNATTACHED_ADDRESS).get("paper-website")
        mends.append((day, found is not None and found.mend is not None))
        place.clock.advance(2 * DAY)

    assert mends == [(0, False), (2, False), (4, False), (6, False), (8, True)]


def test_looks_too_far_apart_begin_the_count_anew(place: Place) -> None:
    place.run("run-1")
    remembered = SightingsRepository(place.memory.store).all()

    assert first_seen(remembered, NOW + LONGEST_HOLE)
    assert first_seen(remembered, NOW + LONGEST_HOLE + timedelta(seconds=1)) == {}


def test_an_address_that_was_used_in_between_begins_anew_and_one_that_is_gone_is_forgotten(place: Place) -> None:
    shard = place.cloud.networks.of(to_world(RESEARCH_EAST))
    (spare,) = (each.ref for each in shard.addresses if each.name == "paper-website")
    (first,) = sighted([to_product(shard)], {}, NOW)
    assert first.since == {spare.native_id: NOW}

    known = first_seen([first], NOW + DAY)
    (second,) = sighted([to_product(shard)], known, NOW + DAY)
    assert second == Sightings(RESEARCH_EAST, NOW + DAY, {spare.native_id: NOW})

    (third,) = sighted([to_product(replace(shard, addresses=()))], known, NOW + DAY)
    assert third.since == {}
    (fourth,) = sighted([to_product(shard)], first_seen([third], NOW + 2 * DAY), NOW + 2 * DAY)
    assert fourth.since == {spare.native_id: NOW + 2 * DAY}


def test_a_run_remembers_its_figures_and_a_second_delivery_does_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "costguard"):
        first, again = place.run(), place.run()

    figures = runner_of("network_audit").figures(first.report)
    assert (figures["guard"], figures["duplicate"], figures["due"], figures["gaps"]) == ("network_audit", False, 0, 0)
    assert figures["networks_seen"] > 0
    assert figures["findings"]["violation"] == sum(each.get("violation", 0) for each in figures["checks"].values())
    remembered = place.memory.runs.latest("network_audit")
    assert remembered is not None
    assert remembered.summary == figures
    assert again.look is None
    assert runner_of("network_audit").figures(again.report) == {"run_id": "run-1", "duplicate": True}
    named = [record for record in caplog.records if record.message == "a network is not as the policy asks"]
    assert len(named) == figures["findings"]["violation"]
    assert named[0].check == "open_admin_port"  # type: ignore[attr-defined]  # logged as a field; the gravest first


def test_a_run_logs_what_it_could_not_read(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.source = Source(place.source, RESEARCH_EAST)
    with caplog.at_level(logging.WARNING, "costguard"):
        figures = runner_of("network_audit").figures(place.run().report)

    assert figures["gaps"] == 1
    assert [record.shard for record in caplog.records if record.message == "could not be read"] == [str(RESEARCH_EAST)]  # type: ignore[attr-defined]  # logged as a field


def test_a_slow_look_never_puts_back_what_a_quicker_one_saw_ended(place: Place) -> None:
    repository = SightingsRepository(place.memory.store)
    day0 = Sightings(RESEARCH_EAST, NOW, {"eip-1": NOW})
    repository.put([day0])
    slow = repository.all()
    in_use = Sightings(RESEARCH_EAST, NOW + DAY, {})
    repository.put([in_use], repository.all())
    repository.put([Sightings(RESEARCH_EAST, NOW + DAY, {"eip-1": NOW})], slow)
    assert repository.all() == (in_use,)
