"""A share of the stories of keys and networks in the ordinary suite, and proofs that they are what they say."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.bugs_settings import SETTINGS
from tests.simulation.campaign import play_settings, quietly
from tests.simulation.oracle.way_in import entered_machines, lost_machines, the_world_gets_in
from tests.simulation.replaying import replay
from tests.simulation.scenario import START
from tests.simulation.settings import NETWORKS, NetRuleSpec, SettingsVersion, load
from tests.simulation.settings_play import SettingsSimulation
from tests.simulation.settings_stories import settings_story
from tests.simulation.settings_story import (
    GATE,
    INSIDE,
    NOBODYS,
    NOTEBOOK,
    OFFICE,
    NetSpec,
    SettingsStory,
    every,
    laid_out,
)
from tests.world_ports.translate import to_product, to_world

from costguard.domain.network import NetworkInventory
from costguard.policy.documents.loader import load_policy

WORLD = "0.0.0.0/0"


def network(
    cloud: str, *second: str, open_to_all: tuple[int, ...] = (22,), gate: tuple[str, ...] | None = None
) -> NetworkInventory:
    """The network of a story in which the second group lets these in, and the gate those."""
    spec = NetSpec(open_to_all, second, gate=gate)
    laid = laid_out(SettingsStory(0, cloud, SettingsVersion(), every(24, 1, NETWORKS), network=spec))
    assert laid is not None
    return to_product(laid[0])


def test_no_story_of_the_share_breaks_a_rule() -> None:
    totals = play_settings(range(51, 81))
    assert totals.violations == []
    assert {"set_rotation", "rotate_key", "revoke_rule", "release_address", "restore_rule", "warn"} <= set(
        totals.actions
    ), "a share in which nothing happens proves nothing"
    assert len(totals.faults) >= 8


def test_a_story_has_one_hash_whether_or_not_anybody_reads_its_trace() -> None:
    with quietly():
        unread = SettingsSimulation(settings_story(9)).play()
    assert replay("s9").digest == unread.digest


def test_the_policies_of_these_stories_can_be_loaded() -> None:
    for seed in range(1, 25):
        for version in (settings_story(seed).policy, *(version for _, version in settings_story(seed).changes)):
            if not version.broken:
                assert load(version.text()) == load_policy(version.text())


def test_two_runs_at_once_leave_one_of_two_last_ways_in() -> None:
    rule = NetRuleSpec(ports=(22,), wait=6)
    for seed in (1, 7, 14):  # where without turns both would be closed
        story = SettingsStory(
            seed,
            "aws",
            SettingsVersion(networks=(rule,)),
            every(24, 3, NETWORKS, beside=2, late=2.0),
            network=NetSpec(open=(22,), second=(WORLD,), trainer=False),
            switch_rate=0.3,
        )
        with quietly():
            simulation = SettingsSimulation(story)
            assert simulation.play().violations == ()
        assert len(entered_machines(to_product(simulation.world.networks.of(to_world(story.shard))))) == 1


def test_the_oracle_knows_a_way_in_when_it_sees_one() -> None:
    for cloud in ("aws", "alibaba", "tencent"):
        both, office, none = network(cloud, WORLD), network(cloud, OFFICE), network(cloud, open_to_all=(8888,))
        assert len(entered_machines(both)) == 2  # the second machine by way of the first
        closed = replace(office, groups=tuple(replace(each, rules=()) for each in office.groups))
        assert entered_machines(none) == entered_machines(closed) == frozenset()
        assert len(lost_machines(office, closed, ())) == 2
        (card,) = (each for each in none.interfaces if each.public_ips)
        assert the_world_gets_in(none, card, 8888)
        assert not the_world_gets_in(none, card, 22)


def test_the_oracle_counts_no_way_that_leads_from_nobody() -> None:
    def is_lost(second: str, *trusted: str, gate: tuple[str, ...] | None = None, cloud: str = "aws") -> bool:
        """Whether nobody gets into the first machine once the rule that opens 22 to the world is gone."""
        open_to_all, rest = (network(cloud, second, open_to_all=each, gate=gate) for each in ((22,), ()))
        (machine,) = (card.instance for card in rest.interfaces if ("10.20.1.10", NOTEBOOK) in card.public_ips)
        assert machine is not None
        return machine.native_id in lost_machines(open_to_all, rest, trusted)

    for cloud in ("aws", "alibaba", "tencent"):
        assert not is_lost(OFFICE, OFFICE, cloud=cloud)
        assert is_lost(OFFICE, cloud=cloud)
        assert all(is_lost(nobody, OFFICE, cloud=cloud) for nobody in NOBODYS)
        for own in ("10.20.1.10/32", f"{NOTEBOOK}/32"):
            assert is_lost(own, "10.20.1.0/24", "203.0.113.0/24", cloud=cloud)
        assert is_lost(INSIDE, cloud=cloud)
        assert not is_lost(INSIDE, gate=(WORLD,), cloud=cloud)
        assert is_lost(f"{GATE}/32", gate=(OFFICE,), cloud=cloud)
        assert not is_lost(f"{GATE}/32", OFFICE, gate=(OFFICE,), cloud=cloud)
        assert is_lost(INSIDE, OFFICE, gate=("10.20.1.99/32",), cloud=cloud)


def test_every_planted_bug_of_settings_is_hunted_in_stories_of_settings() -> None:
    assert len(SETTINGS) >= 16
    assert all(bug.settings and not bug.months and set(bug.rules) <= set(range(21)) for bug in SETTINGS)
    assert settings_story(1).start >= START
