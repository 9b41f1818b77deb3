"""What phases hand to each other arrives as it was, or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import random
import types
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import fact, shard_facts

from costguard.domain.errors import NotFoundError, StalePlanError
from costguard.engine.run.phases.blobs import MOST_UNPACKED, BlobRef, RunBlobs, packed, unpacked
from costguard.engine.run.phases.phases import Decided, Left, PartDone, Parts, PartSeen, ScanManifest

SEEDS = st.integers(0, 2**32)
HANDED_ON = (ScanManifest, Parts, PartSeen, Decided, Left, PartDone)
SOME = 3


def made_up(type_: Any, chance: random.Random) -> Any:
    """Any value that a type allows, read from its own annotations, so that no field is ever forgotten here."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in {Union, types.UnionType}:
        return made_up(chance.choice(arguments), chance)
    if origin is tuple and arguments[-1] is ...:
        return tuple(made_up(arguments[0], chance) for _ in range(chance.randrange(SOME)))
    if origin is tuple:
        return tuple(made_up(argument, chance) for argument in arguments)
    if origin is Mapping and arguments[0] is str:
        return {made_up(str, chance): made_up(arguments[1], chance) for _ in range(chance.randrange(SOME))}
    if origin is Mapping:  # keys that are resources go beside the plan: an empty one is all that JSON can hold
        return {}
    if is_dataclass(type_) and isinstance(type_, type):
        hints = get_type_hints(type_)
        values = {each.name: made_up(hints[each.name], chance) for each in fields(type_)}
        return type_(**values)
    if isinstance(type_, type) and issubclass(type_, Enum):
        return chance.choice(list(type_))
    return _plain(type_, chance)


def _plain(type_: Any, chance: random.Random) -> Any:
    if type_ is bool:
        return chance.random() < 0.5
    if type_ is int:
        return chance.randrange(-(2**53), 2**53)
    if type_ is float:
        return chance.choice((0.0, 1.0, -0.0, math.inf, chance.uniform(-1e9, 1e9), 5e-324, 1e22))
    if type_ is str:
        return "".join(chance.choice('aZ0:/-é空间\u2028"\\\n💸') for _ in range(chance.randrange(8)))
    if type_ is Decimal:
        return Decimal(chance.randrange(10**12)).scaleb(-chance.randrange(12))
    if type_ is datetime:
        return datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=chance.randrange(10**15))
    if type_ is timedelta:
        return timedelta(microseconds=chance.randrange(10**13))
    if type_ is type(None):
        return None
    raise AssertionError(type_)


def made(type_: Any, seed: int) -> Any:
    return made_up(type_, random.Random(seed))  # noqa: S311 - values to try


@settings(max_examples=40, deadline=None)
@given(SEEDS)
@pytest.mark.parametrize("type_", HANDED_ON)
def test_every_value_arrives_as_it_was(type_: Any, seed: int) -> None:
    value = made(type_, seed)
    assert unpacked(type_, packed(value)) == value


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_a_plan_keeps_what_goes_on_billing(seed: int) -> None:
    handed = made(Decided, seed)
    plan = handed.whole
    assert Decided.of(plan).whole == plan
    assert plan.kept == dict(handed.kept)


def test_a_machine_with_an_impossible_sample_is_not_made_quiet_on_the_way() -> None:
    """JSON has no infinity, and null would mean that nothing was measured."""
    seen = fact()
    window = seen.readings[0]
    loud = replace(window, signals=(replace(window.signals[0], maximum=math.inf),))
    handed = PartSeen((shard_facts(replace(seen, readings=(loud,))),))
    assert unpacked(PartSeen, packed(handed)).facts[0].instances[0].readings[0].signals[0].maximum == math.inf


def rewritten(body: bytes, change: Any) -> bytes:
    """The same blob with its JSON changed by `change`."""
    document = json.loads(zlib.decompress(body))
    change(document)
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document[2].update(surprise=1),
        lambda document: document[2].pop("gaps"),
        lambda document: document[2]["facts"][0].pop("instances_seen"),
        lambda document: document[2]["facts"][0].update(instances_seen="1"),
        lambda document: document[2]["facts"][0].update(instances_seen=True),
        lambda document: document.__setitem__(0, "Decided"),
        lambda document: document.__setitem__(1, 2),
        lambda document: document.append(None),
        lambda document: document.clear(),
    ],
)
def test_whatever_is_not_as_it_was_written_is_refused(change: Any) -> None:
    body = packed(PartSeen((shard_facts(fact()),)))
    with pytest.raises(StalePlanError):
        unpacked(PartSeen, rewritten(body, change))


@pytest.mark.parametrize("damage", [lambda body: body[:-1], lambda body: body + b"x", lambda _: b"", lambda _: b"{}"])
def test_damage_is_refused(damage: Any) -> None:
    with pytest.raises(StalePlanError):
        unpacked(PartSeen, damage(packed(PartSeen(()))))


def test_a_bomb_is_not_unpacked() -> None:
    packing = zlib.compressobj(9)
    block = b" " * (1 << 20)
    bomb = b"".join(packing.compress(block) for _ in range((MOST_UNPACKED >> 20) // 512)) + packing.flush()
    with pytest.raises(StalePlanError):
        unpacked(PartSeen, bomb)


class Shelf:
    """An object store in memory, whose owner may change what is on it."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, name: str, body: bytes, content_type: str) -> str:
        del content_type
        self.kept[name] = body
        return name

    def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise NotFoundError("nothing there")
        return self.kept[name]


def test_an_altered_value_does_not_match_its_hash() -> None:
    shelf = Shelf()
    blobs = RunBlobs(shelf, "run-1")
    bound = blobs.put("scan/00000", PartSeen(()))
    assert blobs.get(PartSeen, bound) == PartSeen(())
    shelf.kept[bound.name] = packed(PartSeen((shard_facts(fact()),)))  # well formed, and not what was bound
    with pytest.raises(StalePlanError, match="altered"):
        blobs.get(PartSeen, bound)


def test_nothing_outside_the_runs_own_prefix_is_read() -> None:
    """Not even where its hash is right: another run's facts are not this one's."""
    shelf = Shelf()
    other = RunBlobs(shelf, "run-2").put("scan/00000", PartSeen(()))
    for name in (other.name, "policy/costguard.yaml", "runs/run-1", "runs/run-10/scan"):
        body = shelf.kept.setdefault(name, packed(PartSeen(())))
        with pytest.raises(StalePlanError, match="not of this run"):
            RunBlobs(shelf, "run-1").get(PartSeen, BlobRef(name, hashlib.sha256(body).hexdigest(), len(body)))


def test_what_is_gone_is_refused() -> None:
    with pytest.raises(StalePlanError, match="not there"):
        RunBlobs(Shelf(), "run-1").get(PartSeen, BlobRef("runs/run-1/scan", "0" * 64, 1))
