"""Who is told about an instance, and in what order that is settled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW, SHARD, instance, policy, ref

from costguard.domain.resources import Launch
from costguard.guards.rules.common import Selector
from costguard.policy.model.ownership import (
    OwnerSource,
    launch_matters,
    launcher_name,
    owner_name,
    owner_of,
    resource_owner,
)
from costguard.policy.model.policy import Account, Owner

NLP = Owner("nlp", Selector(tags={"team": "nlp"}))
TRAIN = Owner("train", Selector(tags={"team": "train"}), cloud_users=("role/train/*", "*@Vision.example.com"))
HOUSE = policy(
    owners=(NLP, TRAIN),
    accounts=(Account("aws", SHARD.account, None, owner="lab"),),
)


def launch(by: str) -> Launch:
    return Launch(by, NOW, "event-1")


def told(by: str = "", *, tags: dict[str, str] | None = None, disowned: frozenset[str] = frozenset()) -> str:
    machine = instance(tags=tags or {})
    return owner_name(machine, HOUSE, launch=launch(by) if by else None, disowned=disowned)


def test_an_entry_of_the_owners_file_comes_before_tag_launcher_and_account() -> None:
    machine = instance(tags={"team": "nlp", "owner": "somebody"})

    assert owner_of(machine, HOUSE, launch=launch("user/speech")) == ("nlp", OwnerSource.OWNERS)


@pytest.mark.parametrize("by", ["role/train/speech-lead", "ROLE/Train/x", "role/other/lead@vision.example.com"])
def test_cloud_users_match_the_whole_launcher_or_its_last_part_in_any_case(by: str) -> None:
    assert told(by) == "train"


def test_the_first_entry_of_the_file_counts_whether_it_matches_by_tag_or_by_launcher() -> None:
    both = instance(tags={"team": "nlp"})
    turned = replace(HOUSE, owners=(TRAIN, NLP))

    assert owner_name(both, HOUSE, launch=launch("role/train/x")) == "nlp"
    assert owner_name(both, turned, launch=launch("role/train/x")) == "train"


def test_after_the_owners_file_come_tag_then_launcher_then_account_then_nobody() -> None:
    tagged = instance(tags={"Cost-Center": "4711"})
    bare = instance()
    elsewhere = replace(bare, ref=replace(bare.ref, account="999999999999"))

    assert owner_of(tagged, HOUSE, launch=launch("user/speech")) == ("4711", OwnerSource.TAG)
    assert owner_of(bare, HOUSE, launch=launch("user/speech")) == ("speech", OwnerSource.LAUNCHED)
    assert owner_of(bare, HOUSE) == ("lab", OwnerSource.ACCOUNT)
    assert owner_of(elsewhere, HOUSE) == ("", OwnerSource.NONE)


def test_who_said_that_it_is_not_theirs_is_passed_over_down_to_nobody() -> None:
    tags = {"team": "nlp", "owner": "ranking"}
    line: list[str] = []
    for _ in range(5):
        line.append(told("user/speech", tags=tags, disowned=frozenset(line)))

    assert line == ["nlp", "ranking", "speech", "lab", ""]


@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("user/speech", "speech"),
        ("role/train/speech-lead", "speech-lead"),
        ("role/AWSReservedSSO_Admin_0a1b/lead@vision.example.com", "lead@vision.example.com"),
        ("role/train", "train"),
        ("federated/speech", "speech"),
        ("role/ci-runner/botocore-session-1772434830", "ci-runner"),
        ("role/gpu-nodes/i-0123456789abcdef0", "gpu-nodes"),
        ("role/nightly/1772434830", "nightly"),
        ("role/nightly/0a1b2c3d-0000-4000-8000-000000000000", "nightly"),
        ("service/autoscaling.amazonaws.com", ""),
        ("root", ""),
    ],
)
def test_a_launcher_is_called_by_the_part_that_names_a_person(by: str, name: str) -> None:
    assert launcher_name(launch(by)) == name


def test_a_service_that_launched_is_nobody_but_may_be_somebodys() -> None:
    pool = replace(HOUSE, owners=(Owner("pool", Selector(resources=()), cloud_users=("service/autoscaling*",)),))

    assert told("service/autoscaling.amazonaws.com") == "lab"
    assert owner_name(instance(), pool, launch=launch("service/autoscaling.amazonaws.com")) == "pool"


@pytest.mark.parametrize(
    ("tags", "disowned", "matters"),
    [
        ({"team": "nlp"}, frozenset(), False),  # settled by an entry before any that has cloud_users
        ({"team": "train"}, frozenset(), False),  # settled by the entry itself
        ({"owner": "ranking"}, frozenset(), True),  # an entry's cloud_users may match
        ({}, frozenset(), True),
        ({"team": "nlp"}, frozenset({"nlp"}), True),
    ],
)
def test_the_trail_is_asked_only_where_its_answer_could_matter(
    tags: dict[str, str], disowned: frozenset[str], *, matters: bool
) -> None:
    assert launch_matters(instance(tags=tags), HOUSE, disowned) is matters


def test_without_cloud_users_a_tag_settles_it_unless_it_was_disowned() -> None:
    plain = replace(HOUSE, owners=(NLP,))
    tagged = instance(tags={"owner": "ranking"})

    assert not launch_matters(tagged, plain)
    assert launch_matters(tagged, plain, frozenset({"ranking"}))
    assert launch_matters(instance(), plain)


@given(
    tags=st.dictionaries(st.sampled_from(["team", "owner"]), st.sampled_from(["nlp", "train", "x"])),
    by=st.sampled_from(["user/a", "role/train/b", "service/c", "root"]),
    disowned=st.frozensets(st.sampled_from(["nlp", "train", "x", "a", "b", "lab"])),
)
def test_where_the_trail_is_not_asked_its_answer_would_change_nothing(
    tags: dict[str, str], by: str, disowned: frozenset[str]
) -> None:
    machine = instance(tags=tags)
    if not launch_matters(machine, HOUSE, disowned):
        with_launch = owner_name(machine, HOUSE, launch=launch(by), disowned=disowned)
        assert with_launch == owner_name(machine, HOUSE, disowned=disowned)


def test_a_resource_group_owns_the_machines_in_it_and_nothing_without_one() -> None:
    house = policy(owners=(Owner("grouped", Selector(resource_groups=("rg-*",))),))

    assert owner_name(instance(resource_group="rg-1"), house) == "grouped"
    assert owner_name(instance(resource_group="1004321"), house) == ""
    assert owner_name(instance(), policy(owners=(Owner("all", Selector(resource_groups=("*",))),))) == ""
    assert resource_owner(ref("key-1", "key"), {}, house) == ""
