"""The account that the credentials belong to is read with them, though there is a role for the accounts guarded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.provider_worlds import WORLDS

from costguard.bootstrap import targets_of
from costguard.policy.model.policy import Account, default_policy
from costguard.settings import Access, Settings


@pytest.mark.parametrize("provider", sorted(WORLDS.keys() - {"aws"}))  # that one in test_inventory_aws_session.py
def test_the_role_of_all_guarded_accounts_is_not_assumed_in_ones_own(provider: str) -> None:
    with WORLDS[provider]() as new_world, new_world() as world:
        own = replace(world.target(world.shard.region), account=world.shard.account, role="of-members")

        common = world.inventory.discover(replace(own, common_role=True))
        said = world.inventory.discover(own)

    assert (common.gaps, [shard.account for shard in common.shards]) == ((), [world.shard.account])
    assert [gap.shard.account for gap in said.gaps] == [world.shard.account]


def test_a_role_from_the_settings_is_for_all_and_one_from_the_policy_for_its_account() -> None:
    settings = Settings(cloud="alibaba", alibaba=Access(role="of-members"))
    none_named = default_policy()
    named = replace(none_named, accounts=(Account("alibaba", "1", None), Account("alibaba", "2", None, role="said")))

    mine, theirs = targets_of(named, settings)

    assert (mine.role, mine.own_role) == ("of-members", "")
    assert (theirs.role, theirs.own_role) == ("said", "said")
    assert targets_of(none_named, settings)[0].own_role == ""
