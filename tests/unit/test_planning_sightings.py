"""What savings remember of the machines that a run saw: whose they are, who started them, and which are alike."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import NOW, SHARD, fact, finding, instance, policy, ref, shard_facts

from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Gap, GapKind, Instance, InstanceState, Keeper, Launch, ManagedBy
from costguard.domain.savings import Sighting
from costguard.planning import PlanInputs, build_plan
from costguard.planning.savings import sightings_in

OTHER_SHARD = Shard("alibaba", "222233334444", "cn-hangzhou")


def sighting(machine: Instance, owner: str = "", launch: Launch | None = None) -> Sighting:
    """The sighting of one machine that a run saw."""
    found = replace(finding(machine), owner=owner)
    launches = {machine.ref: launch} if launch is not None else {}
    (seen,) = sightings_in((shard_facts(fact(machine)),), (found,), launches)
    return seen


def alike(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether machines with these tags are taken for ones of the same template."""
    return sighting(instance(tags=one)).alike == sighting(instance(tags=other)).alike


def test_all_that_savings_ask_of_a_machine_is_remembered() -> None:
    machine = instance(
        name="trainer-1",
        state=InstanceState.STOPPED,
        run_epoch="",
        billing=Billing.SPOT,
        instance_type="ecs.gn7.large",
        launched_at=NOW - timedelta(days=3),
        managed_by=ManagedBy(Keeper.AUTOSCALING, "trainers"),
        stopped_by="request-7",
        billed_while_stopped=True,
        tags={"team": "nlp"},
    )
    seen = sighting(machine, "nlp", Launch("role/train/ana", NOW, "event-1"))
    assert seen == Sighting(
        ref=machine.ref,
        state=InstanceState.STOPPED,
        run_epoch="",
        launched_at=NOW - timedelta(days=3),
        billing=Billing.SPOT,
        instance_type="ecs.gn7.large",
        name="trainer-1",
        owner="nlp",
        group="autoscaling:trainers",
        alike=seen.alike,
        launched_by="role/train/ana",
        stopped_by="request-7",
        billed_while_stopped=True,
    )


def test_what_nobody_told_of_a_machine_is_left_open() -> None:
    seen = sighting(instance())
    assert (seen.owner, seen.group, seen.alike, seen.launched_by) == ("", "", "", "")


def test_every_machine_of_every_place_is_remembered_with_what_is_its_own() -> None:
    near, far = instance("i-1"), instance("i-2", ref=ref("i-2", shard=OTHER_SHARD))
    unjudged = instance("i-3")
    found = (replace(finding(far), owner="vision"), replace(finding(near), owner="nlp"))
    launches = {far.ref: Launch("user/ben", NOW, "event-2")}
    seen = sightings_in(
        (shard_facts(fact(near), fact(unjudged)), shard_facts(fact(far), shard=OTHER_SHARD)), found, launches
    )
    assert [(each.ref, each.owner, each.launched_by) for each in seen] == [
        (near.ref, "nlp", ""),
        (unjudged.ref, "", ""),
        (far.ref, "vision", "user/ben"),
    ]
    assert near.ref.shard == SHARD


def test_a_keeper_without_a_name_groups_no_machines() -> None:
    """Else any two machines of nameless clusters would replace each other, and their savings would be lost."""
    assert sighting(instance(managed_by=ManagedBy(Keeper.KUBERNETES, ""))).group == ""
    assert sighting(instance(managed_by=ManagedBy(Keeper.KUBERNETES, "prod"))).group == "kubernetes:prod"


def test_machines_of_one_template_are_alike_whatever_they_are_called() -> None:
    assert alike({"team": "nlp", "Name": "a-1"}, {"team": "nlp", "Name": "a-2"})
    assert alike({"team": "nlp", "hostname": "a-1"}, {"team": "nlp", "HostName": "a-2"})
    assert alike({"team": "nlp", "Description": "first"}, {"team": "nlp"})
    assert alike({"team": "nlp", "stage": "test"}, {"stage": "test", "team": "nlp"})


@pytest.mark.parametrize("other", [{"team": "vision"}, {"squad": "nlp"}, {"team": "nlp", "stage": "test"}, {}])
def test_machines_with_other_tags_are_not_alike(other: dict[str, str]) -> None:
    assert not alike({"team": "nlp"}, other)


def test_a_machine_with_nothing_but_a_name_is_like_no_other() -> None:
    assert sighting(instance(tags={"Name": "a-1"})).alike == ""


def test_machines_seen_by_an_earlier_costguard_are_still_alike() -> None:
    """The word is in the ledger: another way to make it would part every template from its own past."""
    word = hashlib.sha256(b"[('team', 'nlp')]").hexdigest()[:16]
    assert sighting(instance(tags={"team": "nlp", "Name": "a-1"})).alike == word


def plan_of(machine: Instance, **changes: Any) -> tuple[Sighting, ...]:
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(fact(machine)),))
    return build_plan(replace(given, **changes)).sightings


def test_a_plan_carries_what_it_saw_with_who_started_it() -> None:
    machine = instance(name="trainer-1")
    (seen,) = plan_of(machine, launches={machine.ref: Launch("user/ana", NOW, "event-1")})
    assert (seen.ref, seen.name, seen.launched_by) == (machine.ref, "trainer-1", "user/ana")


def test_only_a_complete_look_says_that_what_it_did_not_see_is_gone() -> None:
    """Else the savings of a whole region would end because one call was throttled."""
    whole = shard_facts(fact(instance("i-1")))
    far = instance("i-2", ref=ref("i-2", shard=OTHER_SHARD))
    gap = Gap(OTHER_SHARD, "inventory", GapKind.DENIED, "DescribeInstances denied")
    partial = shard_facts(fact(far), shard=OTHER_SHARD, gaps=(gap,))
    plan = build_plan(PlanInputs("idle_gpu", "run-1", NOW, policy(), (whole, partial)))
    assert plan.looked == (SHARD,)
    assert [each.ref for each in plan.sightings] == [ref("i-1"), far.ref]
