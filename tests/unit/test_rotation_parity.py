"""The program's key matrices and the emulators' rule are two readings of the vendors' documents: they say the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from itertools import product

import pytest
from tests.world_ports.keys import allowed_by_matrix

from cloudstand.world.keys import KeyManager, KeyOrigin, KeyUsage, MultiRegion, WorldKey
from cloudstand.world.places import Ref
from cloudstand.world.rotation import MOST_ON_DEMAND, Rotation, rotation_of
from costguard.domain.keys import RotationMeans

AT = datetime(2026, 3, 2, tzinfo=timezone.utc)
SPECS = {
    "aws": ("SYMMETRIC_DEFAULT", "RSA_4096", "ECC_NIST_P256"),
    "alibaba": ("Aliyun_AES_256", "RSA_2048", "EC_P256"),
    "tencent": ("AES_256", "RSA_2048", "SM2"),
}


def allowed(key: WorldKey) -> Rotation:
    """What the program's matrix says of such a key, in the emulators' words."""
    said = allowed_by_matrix(key)
    days = range(said.shortest_days or 0, (said.longest_days or -1) + 1)
    return Rotation(days, RotationMeans.ON_DEMAND in said.means)


def same(key: WorldKey) -> bool:
    theirs, ours = rotation_of(key), allowed(key)
    return (list(theirs.periods), theirs.on_demand) == (list(ours.periods), ours.on_demand)


@pytest.mark.parametrize("cloud", SPECS)
def test_both_readings_of_the_documents_allow_the_same_for_keys_of_every_kind(cloud: str) -> None:
    origins = (KeyOrigin.CLOUD, KeyOrigin.IMPORTED, KeyOrigin.CUSTOM_STORE)
    kinds = product(SPECS[cloud], KeyUsage, origins, KeyManager, MultiRegion, ("", "kst-1"), (False, True), (None, 90))
    for spec, usage, origin, manager, regions, instance, hardware, period in kinds:
        if hardware and not instance:
            continue  # a module is always somebody's
        if cloud == "aws" and (instance or hardware):
            continue  # AWS tells a store of the owner's by the origin
        if cloud == "alibaba" and regions is not MultiRegion.NONE:
            continue  # it has none
        key = WorldKey(
            Ref(cloud, "1", "r", "key", "k"),
            spec,
            AT,
            usage=usage,
            origin=origin,
            manager=manager,
            multi_region=regions,
            instance=instance,
            hardware=hardware,
            period_days=period,
            add_on=True,
        )
        assert same(key), key


def test_a_key_of_aws_is_rotated_on_demand_so_often_and_no_more() -> None:
    key = WorldKey(Ref("aws", "1", "r", "key", "k"), "SYMMETRIC_DEFAULT", AT)
    for used in (MOST_ON_DEMAND - 1, MOST_ON_DEMAND):
        assert same(replace(key, on_demand=[AT] * used))
    assert not rotation_of(replace(key, on_demand=[AT] * MOST_ON_DEMAND)).on_demand
