"""The contract of `ActionExecutor`, on every provider's adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from tests.contract.cloud_worlds import DENIED, LOST, SOLD_OUT, THROTTLED, World
from tests.contract.provider_worlds import WORLDS

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    NoCapacityError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.refs import ResourceRef

VERBS = (Verb.STOP, Verb.TERMINATE, Verb.SNAPSHOT)


@pytest.fixture(scope="module", params=sorted(WORLDS))
def provider(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[World]]]:
    with WORLDS[request.param]() as new_world:
        yield new_world


@pytest.fixture
def world(provider: Callable[[], AbstractContextManager[World]]) -> Iterator[World]:
    with provider() as made:
        made.inventory.discover(made.target(made.shard.region))
        yield made


def action(world: World, verb: Verb, native_id: str, volume: str = "") -> Action:
    subject = ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)
    return Action(
        action_id="action-1",
        decision_id="decision-1",
        verb=verb,
        subject=subject,
        resource=subject.sibling("volume", volume) if volume else subject,
        run_epoch="epoch-1",
        case_id="case-1",
        rung=1,
        rule="research",
        rule_digest="digest-1",
    )


def due(world: World, verb: Verb, native_id: str) -> Action:
    """An action of this verb that can be done; a snapshot is of the instance's only volume."""
    if verb is not Verb.SNAPSHOT:
        return action(world, verb, native_id)
    (volume,) = world.volumes(native_id)
    return action(world, verb, native_id, volume)


@pytest.mark.parametrize(("verb", "state"), [(Verb.STOP, "stopped"), (Verb.TERMINATE, "terminated")])
def test_an_action_changes_its_instance_and_no_other(world: World, verb: Verb, state: str) -> None:
    mine, other = world.launch(), world.launch()
    if verb is Verb.TERMINATE:
        world.stop(mine)  # as the ladder would have; Alibaba Cloud ends nothing that runs

    receipt = world.executor.execute(action(world, verb, mine))

    assert receipt.request_id
    assert world.changes_sent() == [verb.value]
    assert world.state(mine) == state
    assert world.state(other) == "running"


def test_start_undoes_a_stop(world: World) -> None:
    native_id = world.launch()
    world.stop(native_id)

    world.executor.execute(action(world, Verb.START, native_id))

    assert world.state(native_id) == "running"


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (SOLD_OUT, NoCapacityError),
        (DENIED, AccessDeniedError),
        (THROTTLED, ThrottledError),
        (LOST, OutcomeUnknownError),
    ],
)
def test_a_start_that_fails_is_one_request_and_says_how(world: World, how: str, error: type[ProviderError]) -> None:
    """Whether it may be tried again is the engine's to decide: no capacity yes, an unknown outcome never."""
    native_id = world.launch()
    world.stop(native_id)
    world.go_wrong("start", how)

    with pytest.raises(error):
        world.executor.execute(action(world, Verb.START, native_id))

    assert world.changes_sent().count("start") == 1
    assert how == LOST or world.state(native_id) == "stopped"


def test_a_snapshot_is_of_the_one_volume_named_and_carries_its_decision(world: World) -> None:
    native_id = world.launch()
    volume = world.add_volume(native_id)
    wanted = action(world, Verb.SNAPSHOT, native_id, volume)

    receipt = world.executor.execute(wanted)

    detail = world.inventory.details([wanted.subject])[wanted.subject]
    assert [(s.ref.native_id, s.volume.native_id, s.decision_id) for s in detail.snapshots] == [
        (receipt.native_id, volume, "decision-1")
    ]
    assert world.state(native_id) == "running"


@pytest.mark.parametrize("verb", VERBS)
def test_a_lost_answer_is_an_unknown_outcome_and_sent_once(world: World, verb: Verb) -> None:
    native_id = world.launch()
    wanted = due(world, verb, native_id)
    world.go_wrong(verb.value, LOST)

    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(wanted)

    assert world.changes_sent() == [verb.value]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("how", "error"), [(THROTTLED, ThrottledError), (DENIED, AccessDeniedError)])
def test_a_rejected_action_is_sent_once_and_changes_nothing(
    world: World, verb: Verb, how: str, error: type[ProviderError]
) -> None:
    native_id = world.launch()
    wanted = due(world, verb, native_id)
    world.go_wrong(verb.value, how)

    with pytest.raises(error) as caught:
        world.executor.execute(wanted)

    assert caught.value.operation
    assert world.changes_sent() == [verb.value]
    assert world.state(native_id) == "running"
    assert world.inventory.details([wanted.subject])[wanted.subject].snapshots == ()


def test_termination_protection_is_a_refusal(world: World) -> None:
    native_id = world.launch()
    world.protect(native_id)

    with pytest.raises(RefusedError):
        world.executor.execute(action(world, Verb.TERMINATE, native_id))

    assert world.state(native_id) == "running"


def test_termination_protection_refuses_no_stop(world: World) -> None:
    """What `termination_protection_bars: terminate` rests on."""
    native_id = world.launch()
    world.protect(native_id)

    world.executor.execute(action(world, Verb.STOP, native_id))

    assert world.state(native_id) == "stopped"


@pytest.mark.parametrize("verb", [Verb.STOP, Verb.TERMINATE])
def test_acting_on_what_is_gone_says_so(world: World, verb: Verb) -> None:
    with pytest.raises(NotFoundError):
        world.executor.execute(action(world, verb, world.missing))


def test_what_does_not_fit_is_refused_before_anything_is_sent(world: World) -> None:
    native_id = world.launch()
    stop = action(world, Verb.STOP, native_id)
    nameless = replace(stop.subject, native_id="")
    misfits = (
        replace(stop, verb=Verb.WARN),
        replace(stop, verb=Verb.SNAPSHOT),
        replace(stop, resource=stop.subject.sibling("instance", "i-another")),
        replace(stop, resource=stop.subject.sibling("volume", "vol-1")),
        replace(stop, resource=nameless, subject=nameless),
    )
    before = world.requests()

    for misfit in misfits:
        with pytest.raises(RefusedError):
            world.executor.execute(misfit)

    assert world.requests() == before
