"""What every `KeySource` promises, run on each provider: see `key_rigs.py` for what a provider brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from tests.contract.key_rigs import FEW, REPLICA, ROTATING, STILL, KeyRig
from tests.contract.key_worlds import KEYS
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.keys import WorldKey
from cloudstand.world.records import Operation
from costguard.domain.errors import AccessDeniedError, ThrottledError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyState, MultiRegion
from costguard.domain.resources import GapKind

DAY = timedelta(days=1)


@pytest.fixture(scope="module", params=sorted(KEYS))
def provider(request: pytest.FixtureRequest) -> Iterator[KeyRig]:
    with KEYS[request.param]() as made:
        yield made


@pytest.fixture
def rig(provider: KeyRig) -> KeyRig:
    provider.reset()
    return provider


@pytest.fixture
def few(provider: KeyRig) -> KeyRig:
    """With keys of the best kind only."""
    provider.reset(FEW)
    return provider


@dataclass(frozen=True)
class First:
    """One whole read of all kinds, which those tests share that only look at it; each costs up to 45 requests."""

    rig: KeyRig
    keys: dict[str, WorldKey]
    found: dict[str, EncryptionKey]
    requests: Sequence[str]
    changes: Sequence[str]


@pytest.fixture(scope="module")
def first(provider: KeyRig) -> First:
    provider.reset()
    before = list(provider.world.keys.history)
    found = complete(provider)
    assert provider.world.keys.history == before
    return First(provider, here(provider), found, list(provider.requests()), list(provider.changes()))


def here(rig: KeyRig) -> dict[str, WorldKey]:
    """The keys of the shard, by name."""
    return {name: key for name, key in rig.keys.items() if to_product(key.ref.shard) == rig.shard}


def by_name(rig: KeyRig, inventory: KeyInventory) -> dict[str, EncryptionKey]:
    names = {key.ref: name for name, key in here(rig).items()}
    found = {names[to_world(key.ref)]: key for key in inventory.keys}
    assert len(found) == len(inventory.keys), "each once"
    return found


def complete(rig: KeyRig) -> dict[str, EncryptionKey]:
    inventory = rig.read()
    assert (inventory.shard, inventory.gaps) == (rig.shard, ())
    return by_name(rig, inventory)


def test_every_key_of_every_kind_is_told_as_it_is(first: First) -> None:
    wanted = {name: first.rig.told(key) for name, key in first.keys.items()}
    assert {name: _shown(first.found[name], told) for name, told in wanted.items()} == wanted
    assert first.found.keys() == wanted.keys()


def _shown(key: EncryptionKey, words: Iterable[str]) -> dict[str, object]:
    """These fields; aliases come in any order."""
    sorted_too = replace(key, aliases=tuple(sorted(key.aliases)))
    return {word: getattr(sorted_too, word) for word in words}


def test_each_kind_can_be_given_new_material_as_documented_and_in_no_other_way(first: First) -> None:
    allowed = {name: key.rotatability for name, key in first.found.items()}
    assert {name: allows.means for name, allows in allowed.items()} == dict(first.rig.means)
    assert all(allows.note or allows.source for allows in allowed.values())
    assert (allowed[STILL].shortest_days, allowed[STILL].longest_days) == first.rig.periods


def test_off_is_off_and_what_the_cloud_does_not_tell_is_neither(first: First) -> None:
    assert first.found[STILL].rotation.automatic is False
    assert first.found[ROTATING].rotation.automatic is True
    assert {name for name, key in first.found.items() if key.rotation.automatic is None} == first.rig.untold


def test_the_setting_with_its_last_and_next_rotation_agrees_with_the_world_over_time(rig: KeyRig) -> None:
    last = set()
    for _ in range(3):
        found = complete(rig)
        truth = rig.world.keys
        assert {name: key.rotation for name, key in found.items()} == {
            name: rig.setting(truth.get(key.ref)) for name, key in here(rig).items()
        }
        last.add(truth.get(here(rig)[ROTATING].ref).rotations[-1])
        rig.advance(130 * DAY)
    assert len(last) > 1, "it rotated by itself meanwhile"


def test_the_version_changes_with_each_rotation_and_with_nothing_else(few: KeyRig) -> None:
    before, again = complete(few), complete(few)
    assert {name: key.version for name, key in before.items()} == {name: key.version for name, key in again.items()}
    few.world.keys.rotate(here(few)[ROTATING].ref, few.now(), "owner")
    after = complete(few)
    changed = {name for name, key in after.items() if key.version != before[name].version}
    assert changed == {ROTATING}
    assert after[ROTATING].version


def test_pages_lose_nothing(few: KeyRig) -> None:
    whole, asked = few.read(), len(few.requests())
    few.small_pages()
    paged = few.read()
    assert paged == whole
    assert len(few.requests()) > 2 * asked, "there were pages"


def test_a_role_that_may_not_read_keys_is_told_so_and_never_that_there_are_none(few: KeyRig) -> None:
    few.deny(Operation.KEYS)
    try:
        inventory = few.read()
    except AccessDeniedError:
        return
    assert [gap for gap in inventory.gaps if (gap.what, gap.kind) == ("inventory", GapKind.DENIED) and gap.fix]


def test_a_key_whose_own_policy_denies_is_there_all_the_same_and_left_alone(few: KeyRig) -> None:
    if not few.keys_have_policies:
        few.deny_key(ROTATING)  # nothing to deny with: everything stays as it was
        assert set(complete(few)) == set(here(few))
        return
    whole = complete(few)
    few.deny_key(ROTATING)
    inventory = few.read()
    found = by_name(few, inventory)
    native_id = here(few)[ROTATING].ref.native_id
    (gap,) = inventory.gaps
    assert (gap.what, gap.kind) == ("details", GapKind.DENIED)
    assert native_id in gap.detail
    assert found.keys() == whole.keys()
    assert {name for name in whole if found[name] != whole[name]} == {ROTATING}
    assert found[ROTATING].state is KeyState.UNKNOWN
    assert found[ROTATING].rotation.automatic is None
    assert found[ROTATING].rotatability.means == frozenset()


def test_throttling_is_waited_for(few: KeyRig) -> None:
    few.throttle(3)
    assert set(complete(few)) == set(here(few))


def test_throttling_without_end_is_no_short_list(few: KeyRig) -> None:
    few.throttle(100_000)
    try:
        inventory = few.read()
    except ThrottledError:
        return
    assert [gap for gap in inventory.gaps if (gap.what, gap.kind) == ("inventory", GapKind.THROTTLED)]


def test_a_disk_is_found_behind_its_key(few: KeyRig) -> None:
    (disk,) = (volume for volume in few.world.volumes.values() if volume.disk.key_id)
    found = complete(few)
    assert {name: key.used_by for name, key in found.items() if key.used_by} == to_product(
        {ROTATING: (here(few)[ROTATING].ref.sibling("volume", disk.native_id),)}
    )


def test_a_replica_names_its_primary(first: First) -> None:
    replicas = {name: key.primary for name, key in first.found.items() if key.multi_region is MultiRegion.REPLICA}
    assert replicas == to_product({name: key.primary for name, key in first.keys.items() if key.primary is not None})
    assert set(replicas) == {REPLICA} & set(first.keys)
    assert all(key.primary is None for name, key in first.found.items() if name not in replicas)


def test_a_region_without_keys_is_empty_and_complete(few: KeyRig) -> None:
    inventory = few.source().read(few.empty)
    assert (inventory.shard, inventory.keys, inventory.gaps) == (few.empty, (), ())


def test_reading_costs_what_it_has_to_and_changes_nothing(first: First) -> None:
    assert 0 < len(first.requests) <= first.rig.most_requests
    assert first.changes == []


def test_a_session_for_rotating_reads_the_same(few: KeyRig) -> None:
    """What a rotation did is read back with the credentials that made it."""
    for kind in ("rotating", "looking"):
        assert few.source_over(few.session(kind)).read(few.shard) == few.read()
