"""What every `KeyRotator` promises, run on each provider: see `key_rigs.py` for what a provider brings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

import pytest
from tests.contract.key_rigs import AUTOMATIC, DISABLED, DOOMED, ON_DEMAND, ROTATING, STILL, KeyRig
from tests.contract.key_worlds import KEYS
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.records import Operation
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.keys import EncryptionKey, KeyManager, KeyState, Rotatability, RotationMeans
from costguard.domain.refs import Shard
from costguard.providers.kit.iam.permissions import Purpose

ANYTHING_GOES = Rotatability(frozenset(RotationMeans), 1, 100_000)
FORBIDDEN = re.compile(r"disable|delet|import|archive|destroy|cancel|crypt|policy$|createkey$|unbind", re.IGNORECASE)
State = dict[str, tuple[KeyState, int | None, list[datetime], list[datetime], list[str]]]
CHANGES: dict[str, Callable[[KeyRig, EncryptionKey], object]] = {
    "period": lambda rig, key: rig.rotator().set_period(key, rig.periods[1]),
    "rotate": lambda rig, key: rig.rotator().rotate(key),
}


@pytest.fixture(scope="module", params=sorted(KEYS))
def provider(request: pytest.FixtureRequest) -> Iterator[KeyRig]:
    with KEYS[request.param]() as made:
        yield made


@pytest.fixture
def rig(provider: KeyRig) -> KeyRig:
    """With two keys of the best kind; every one more costs requests."""
    provider.reset((ROTATING, STILL))
    return provider


@pytest.fixture
def whole(provider: KeyRig) -> KeyRig:
    """With keys of every kind."""
    provider.reset()
    return provider


@pytest.fixture(params=sorted(CHANGES))
def change(request: pytest.FixtureRequest) -> Callable[[KeyRig, EncryptionKey], object]:
    return CHANGES[request.param]


def truth(rig: KeyRig) -> State:
    keys = [rig.world.keys.get(key.ref) for key in rig.keys.values()]
    return {
        name: to_product((key.state, key.period_days, [*key.rotations], [*key.on_demand], [*key.aliases]))
        for name, key in zip(rig.keys, keys, strict=True)
    }


def changed(before: State, after: State) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def every(rig: KeyRig) -> dict[str, EncryptionKey]:
    """The keys of the shard, by name, as they are read now."""
    names = {key.ref: name for name, key in rig.keys.items()}
    return {names[to_world(key.ref)]: key for key in rig.read().keys}


def forged(key: EncryptionKey) -> EncryptionKey:
    """The same key, looking as if everything were allowed: so that the request leaves and the cloud has to refuse."""
    return replace(key, rotatability=ANYTHING_GOES, state=KeyState.ENABLED, manager=KeyManager.CUSTOMER)


def test_a_period_that_was_set_is_read_back_and_nothing_else_changed(rig: KeyRig) -> None:
    before, key = truth(rig), rig.found(STILL)
    for days in rig.periods:
        receipt = rig.rotator().set_period(key, days)
        assert receipt.request_id
        found = rig.found(STILL)
        assert (found.rotation.automatic, found.rotation.period_days) == (True, days)
        assert found.rotation.next_at == rig.setting(rig.world.keys.get(to_world(key.ref))).next_at
        assert found.rotation.last_at == key.rotation.last_at
    after = truth(rig)
    assert changed(before, after) == {STILL}
    assert after[STILL][2:] == before[STILL][2:], "setting a period does not rotate"


def test_a_period_of_a_key_that_rotates_is_changed(rig: KeyRig) -> None:
    rig.rotator().set_period(rig.found(ROTATING), rig.periods[1])
    assert rig.found(ROTATING).rotation.period_days == rig.periods[1]


def test_rotating_on_demand_adds_exactly_one_rotation(rig: KeyRig) -> None:
    before, key = truth(rig), rig.found(ROTATING)
    assert rig.rotator().rotate(key).request_id
    after, found = truth(rig), rig.found(ROTATING)
    assert changed(before, after) == {ROTATING}
    assert len(after[ROTATING][2]) == len(before[ROTATING][2]) + 1
    assert after[ROTATING][1] == before[ROTATING][1], "the period stays"
    assert found.rotation == rig.setting(rig.world.keys.get(to_world(key.ref)))
    assert found.version != key.version


def test_asked_twice_it_rotates_twice_as_nothing_is_remembered_or_repeated(rig: KeyRig) -> None:
    key, before = rig.found(ROTATING), truth(rig)
    asked = len(rig.changes())
    rig.rotator().rotate(key)
    rig.advance(rig.between)
    rig.rotator().rotate(key)
    assert len(truth(rig)[ROTATING][3]) == len(before[ROTATING][3]) + 2
    assert len(rig.changes()) == asked + 2


def test_what_its_kind_or_state_does_not_allow_is_refused_before_it_is_sent_and_by_the_cloud_as_well(
    whole: KeyRig,
) -> None:
    rig, before = whole, truth(whole)
    for name, key in every(rig).items():
        for means, change in ((AUTOMATIC, CHANGES["period"]), (ON_DEMAND, CHANGES["rotate"])):
            asked, barred = len(rig.changes()), means not in rig.means[name]
            if barred or key.state is not KeyState.ENABLED:
                with pytest.raises(RefusedError, match="nothing was sent") as caught:
                    change(rig, key)
                assert caught.value.code == "Unfit"
                assert len(rig.changes()) == asked
            if barred:
                with pytest.raises((RefusedError, AccessDeniedError)):
                    change(rig, forged(key))
                assert len(rig.changes()) == asked + 1, "it was sent"
    assert truth(rig) == before


@pytest.mark.parametrize("name", [DISABLED, DOOMED])
def test_a_key_that_is_not_enabled_is_refused_by_the_cloud_as_well(
    rig: KeyRig, name: str, change: Callable[[KeyRig, EncryptionKey], object]
) -> None:
    rig.reset([name])
    before = truth(rig)
    with pytest.raises(RefusedError) as caught:
        change(rig, forged(rig.found(name)))
    assert caught.value.code != "Unfit"
    assert truth(rig) == before


def test_a_period_outside_what_the_vendor_takes_is_refused_on_both_sides(rig: KeyRig) -> None:
    before, key = truth(rig), rig.found(STILL)
    shortest, longest = rig.periods
    for days in (shortest - 1, longest + 1):
        asked = len(rig.changes())
        with pytest.raises(RefusedError, match="nothing was sent"):
            rig.rotator().set_period(key, days)
        assert rig.changes()[asked:] == []
        with pytest.raises(RefusedError) as caught:
            rig.rotator().set_period(forged(key), days)
        assert caught.value.code != "Unfit"
    assert truth(rig) == before


def test_a_key_of_another_cloud_or_of_no_region_is_not_sent(
    rig: KeyRig, change: Callable[[KeyRig, EncryptionKey], object]
) -> None:
    key = rig.found(STILL)
    other = "tencent" if rig.cloud == "aws" else "aws"
    for wrong in (
        replace(key.ref, cloud=other),
        replace(key.ref, region=""),
        replace(key.ref, native_id=""),
        replace(key.ref, kind="volume"),
    ):
        with pytest.raises(RefusedError, match="nothing was sent"):
            change(rig, replace(key, ref=wrong))
    assert rig.changes() == []


@pytest.mark.parametrize(
    ("goes_wrong", "error"),
    [
        (lambda rig: rig.deny(Operation.ROTATE), AccessDeniedError),
        (lambda rig: rig.throttle(1), ThrottledError),
    ],
    ids=["denied", "throttled"],
)
def test_what_was_rejected_changed_nothing_and_is_not_repeated(
    rig: KeyRig,
    change: Callable[[KeyRig, EncryptionKey], object],
    goes_wrong: Callable[[KeyRig], None],
    error: type[ProviderError],
) -> None:
    before, key, asked = truth(rig), rig.found(ROTATING), len(rig.changes())
    goes_wrong(rig)
    with pytest.raises(error):
        change(rig, key)
    assert len(rig.changes()) == asked + 1
    assert truth(rig) == before


def test_after_a_lost_answer_the_outcome_is_unknown_nothing_is_repeated_and_reading_tells(
    rig: KeyRig, change: Callable[[KeyRig, EncryptionKey], object]
) -> None:
    key, before = rig.found(ROTATING), truth(rig)
    rig.lose_answers()
    with pytest.raises(OutcomeUnknownError):
        change(rig, key)
    assert len(rig.changes()) == 1
    after, found = truth(rig), rig.found(ROTATING)
    assert changed(before, after) == {ROTATING}
    assert len(after[ROTATING][2]) - len(before[ROTATING][2]) <= 1
    assert found.rotation == rig.setting(rig.world.keys.get(to_world(key.ref))) != key.rotation


@pytest.mark.parametrize("kind", ["reading", "acting"])
def test_only_a_session_made_for_it_rotates(rig: KeyRig, kind: str) -> None:
    with pytest.raises(InvalidInputError, match="rotating keys needs a session that can do nothing else"):
        rig.rotator_over(rig.session(kind))


def test_a_session_that_only_looks_changes_nothing(rig: KeyRig) -> None:
    key, looking = rig.found(ROTATING), rig.rotator_over(rig.session("looking"))
    with pytest.raises(AccessDeniedError, match="read-only"):
        looking.set_period(key, rig.periods[0])
    with pytest.raises(AccessDeniedError, match="read-only"):
        looking.rotate(key)
    assert rig.changes() == []


def test_what_comes_from_a_session_for_rotating_can_do_nothing_else(rig: KeyRig) -> None:
    stops = {"aws": ("ec2", "StopInstances"), "alibaba": ("ecs", "StopInstances"), "tencent": ("cvm", "StopInstances")}
    session = rig.session("rotating").acting()
    try:
        assert session.purpose is Purpose.ROTATE
        with pytest.raises(AccessDeniedError, match="not among the operations costguard may call"):
            session.call(Shard(rig.cloud, ""), *stops[rig.cloud])
    finally:
        session.close()


def test_nothing_within_reach_disables_deletes_or_imports(rig: KeyRig) -> None:
    """And of what is within reach only the rotating operations ever leave."""
    assert [name for name in rig.reach() if FORBIDDEN.search(name) and name not in rig.changing] == []
    assert rig.changing <= set(rig.reach())
    for name in (STILL, ROTATING):
        for change in CHANGES.values():
            change(rig, rig.found(name))
    assert set(rig.changes()) == rig.changing
