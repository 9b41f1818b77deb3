"""What every `KeySuccessor` promises, over each cloud that has aliases to move, and over the bare world."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.contract.alibaba_keys import alibaba_keys
from tests.contract.aws_keys import aws_keys
from tests.contract.key_rigs import DISABLED, REPLICA, ROTATING, SERVICE, START, STILL, KeyRig
from tests.world_ports.keys import WorldKeys, WorldSuccessor
from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import MovedClock
from cloudstand.fleets import EAST, RESEARCH, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.keys import Keys, WorldKey
from cloudstand.world.records import Operation
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.keys import EncryptionKey, KeyState
from costguard.domain.refs import ResourceRef, Shard
from costguard.guards.keys.judge import DECISION, SUCCESSOR_OF
from costguard.ports import KeySource, KeySuccessor
from costguard.providers.alibaba.iam.permissions import REACH as ALIBABA
from costguard.providers.alibaba.kms.rotation import AlibabaKeySuccessor
from costguard.providers.aws.iam.permissions import REACH as AWS
from costguard.providers.aws.kms.rotation import AwsKeySuccessor
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.kit.kms.rotation import CANARY_FAILED

FORBIDDEN = re.compile(r"disable|delet|import|archive|destroy|cancel|rotat|putkey|setkey|grant", re.IGNORECASE)
DECIDED, OLD_DATA = "d3c1s10n", b"checkpoint 7"
WIRES: dict[str, tuple[Any, Any, Any]] = {
    "alibaba": (alibaba_keys, AlibabaKeySuccessor, ALIBABA[Purpose.SUCCEED]),
    "aws": (aws_keys, AwsKeySuccessor, AWS[Purpose.SUCCEED]),
}


class Bench:
    """One cloud with one key of the best kind that has an alias, called `old`."""

    def __init__(self, opened: ExitStack, cloud: str) -> None:
        self.rig: KeyRig | None = None
        if cloud in WIRES:
            rig, adapter, self.operations = WIRES[cloud]
            self.rig = opened.enter_context(rig())
            self.session = self.rig.session("reading").only_for(Purpose.SUCCEED)
            opened.callback(self.session.close)
            self.adapter = adapter
        else:
            clock = MovedClock(START)
            fleet = [aws_machine("training", "g5.xlarge", does.busy(), START - timedelta(days=40))]
            self.bare = World(fleet, START)
            self.sources = (WorldKeys(self.bare, clock), WorldSuccessor(self.bare, clock))

    def reset(self, *names: str) -> Bench:
        if self.rig is not None:
            self.rig.reset((ROTATING, *names))
            self.world.keys.get(self.rig.keys[ROTATING].ref).aliases[:] = ["training"]
        else:
            ref = ResourceRef("aws", RESEARCH, EAST, "key", "old")
            self.bare.keys = Keys([WorldKey(to_world(ref), "SYMMETRIC_DEFAULT", START, aliases=["training"])])
        self.stored = self.world.keys.seal(to_world(self.old.ref), OLD_DATA)
        return self

    @property
    def world(self) -> World:
        return self.bare if self.rig is None else self.rig.world

    @property
    def source(self) -> KeySource:
        return self.sources[0] if self.rig is None else self.rig.source()

    @property
    def successor(self) -> KeySuccessor:
        if self.rig is None:
            return self.sources[1]
        made: KeySuccessor = self.adapter(self.session)
        return made

    @property
    def shard(self) -> Shard:
        return self.rig.shard if self.rig is not None else Shard("aws", RESEARCH, EAST)

    @property
    def old_ref(self) -> ResourceRef:
        native_id = "old" if self.rig is None else self.rig.keys[ROTATING].ref.native_id
        return ResourceRef(self.shard.cloud, self.shard.account, self.shard.region, "key", native_id)

    def read(self) -> dict[ResourceRef, EncryptionKey]:
        return {key.ref: key for key in self.source.read(self.shard).keys}

    @property
    def old(self) -> EncryptionKey:
        return self.read()[self.old_ref]

    def made(self) -> tuple[EncryptionKey, EncryptionKey]:
        """The old key and its successor, as they are read; made where there is none."""
        if not any(SUCCESSOR_OF in key.tags for key in self.world.keys.of(to_world(self.shard))):
            self.successor.create(self.old, DECIDED)
        found = self.read()
        (new,) = (key for key in found.values() if key.tags.get(SUCCESSOR_OF) == self.old_ref.native_id)
        return found[self.old_ref], new

    def holder(self) -> ResourceRef:
        """Who has the alias in truth."""
        return to_product(self.world.keys.named(to_world(self.shard), "training").ref)

    def old_data_decrypts(self) -> bool:
        key, plain = self.world.keys.open(to_world(self.shard), self.stored)
        return (to_product(key.ref), plain) == (self.old_ref, OLD_DATA)

    def changes(self) -> list[str]:
        """What was sent that changes something."""
        assert self.rig is not None
        sent = self.rig.requests()
        assert set(sent) <= set(self.operations)
        return [name for name in sent if self.operations[name].changes_something]


@pytest.fixture(scope="module", params=["alibaba", "aws", "world"])
def every(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with ExitStack() as opened:
        yield Bench(opened, request.param)


@pytest.fixture
def bench(every: Bench) -> Bench:
    return every.reset()


wired = pytest.mark.parametrize("every", sorted(WIRES), indirect=True, scope="module")
in_world = pytest.mark.parametrize("every", ["world"], indirect=True, scope="module")
"""For what no wire takes part in: the steps of a move are the same for all."""

on_aws = pytest.mark.parametrize("every", ["aws"], indirect=True, scope="module")


def truth(bench: Bench) -> list[tuple[ResourceRef, KeyState, list[str], int]]:
    return [
        (to_product(key.ref), to_product(key.state), [*key.aliases], len(key.rotations))
        for key in bench.world.keys.of(to_world(bench.shard))
    ]


def test_a_successor_is_like_the_key_it_follows_and_nothing_else_changes(bench: Bench) -> None:
    before, old = truth(bench), bench.old
    receipt = bench.successor.create(old, DECIDED)
    _, new = bench.made()
    assert new.ref.native_id == receipt.native_id
    assert receipt.request_id
    assert (new.spec, new.usage, new.origin, new.state, new.manager, new.aliases) == (
        old.spec,
        old.usage,
        old.origin,
        KeyState.ENABLED,
        old.manager,
        (),
    )
    assert new.rotatability.means == old.rotatability.means, "of the same kind, in the same instance"
    assert new.tags == {**old.tags, SUCCESSOR_OF: old.ref.native_id, DECISION: DECIDED}
    assert [each for each in truth(bench) if each[0] != new.ref] == before


def test_an_alias_moves_and_old_data_still_decrypts(bench: Bench) -> None:
    old, new = bench.made()
    assert bench.successor.move_alias("training", old, new).request_id
    assert bench.holder() == new.ref
    assert bench.old_data_decrypts()
    found = bench.read()
    assert (found[old.ref].state, found[old.ref].aliases, found[new.ref].aliases) == (
        KeyState.ENABLED,
        (),
        ("training",),
    )
    bench.world.keys.break_when_moved = {to_world(old.ref)}
    with pytest.raises(RefusedError, match="the alias was moved back") as caught:
        bench.successor.move_alias("training", found[new.ref], found[old.ref])
    assert (caught.value.code, bench.holder()) == (CANARY_FAILED, new.ref)


@in_world
def test_where_the_way_back_fails_too_the_outcome_is_unknown(bench: Bench) -> None:
    old, new = bench.made()
    bench.world.keys.break_when_moved, bench.world.keys.moves_fail_after = {to_world(new.ref)}, 1
    with pytest.raises(OutcomeUnknownError, match="moving it back"):
        bench.successor.move_alias("training", old, new)


@in_world
@pytest.mark.parametrize("broken", ["new", "old"])
def test_a_key_that_cannot_be_used_is_seen_before_anything_moves(bench: Bench, broken: str) -> None:
    old, new = bench.made()
    bench.world.keys.broken = {to_world(new.ref if broken == "new" else old.ref)}
    happened = len(bench.world.keys.history)
    with pytest.raises(RefusedError):
        bench.successor.move_alias("training", old, new)
    assert len(bench.world.keys.history) == happened


@in_world
def test_an_alias_that_somebody_moved_meanwhile_is_left_where_it_is(bench: Bench) -> None:
    old, new = bench.made()
    bench.world.keys.move_alias("training", to_world(new.ref), bench.world.now, "owner")
    with pytest.raises(RefusedError, match="nothing was changed"):
        bench.successor.move_alias("training", old, new)
    assert bench.holder() == new.ref


@wired
@pytest.mark.parametrize(
    ("goes_wrong", "error"),
    [
        (lambda rig: rig.deny(Operation.SUCCEED), AccessDeniedError),
        (lambda rig: rig.throttle(1), ThrottledError),
        (lambda rig: rig.lose_answers(), OutcomeUnknownError),
    ],
    ids=["denied", "throttled", "lost"],
)
def test_nothing_that_changes_something_is_sent_twice(
    bench: Bench, goes_wrong: Callable[[KeyRig], None], error: type[ProviderError]
) -> None:
    assert bench.rig is not None
    old, new = bench.made()
    for call in (
        partial(bench.successor.create, old, "another"),
        partial(bench.successor.move_alias, "training", old, new),
    ):
        bench.rig.as_new()
        goes_wrong(bench.rig)
        keys, sent = len(bench.world.keys.of(to_world(bench.shard))), len(bench.changes())
        with pytest.raises(error):
            call()
        assert len(bench.changes()) - sent <= 1
        if error is not OutcomeUnknownError:
            assert (len(bench.world.keys.of(to_world(bench.shard))), bench.holder()) == (keys, old.ref)


@wired
def test_a_policy_goes_with_the_key_unless_it_names_it(bench: Bench) -> None:
    whose = bench.world.keys.get(to_world(bench.old_ref))
    whose.policy = '{"Statement":[{"Effect":"Allow","Action":"kms:*","Resource":"*"}]}'
    _, new = bench.made()
    assert bench.world.keys.get(to_world(new.ref)).policy == whose.policy
    whose.policy = whose.policy.replace("*", bench.old_ref.native_id)
    sent = bench.changes()
    with pytest.raises(RefusedError, match="names the key itself"):
        bench.successor.create(bench.old, "another")
    assert bench.changes() == sent


@wired
def test_only_a_session_made_for_it_does_it_and_it_can_do_nothing_else(bench: Bench) -> None:
    assert bench.rig is not None
    for kind in ("reading", "acting", "rotating"):
        with pytest.raises(InvalidInputError, match="making a successor needs a session that can do nothing else"):
            bench.adapter(bench.rig.session(kind))
    for twin in (bench.session.acting(), bench.session.only_for(Purpose.ROTATE), bench.session.only_for(Purpose.MEND)):
        assert twin.purpose is Purpose.SUCCEED
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            twin.call(bench.shard, "kms", "EnableKeyRotation")
        twin.close()
    looking = bench.session.only_for(Purpose.SUCCEED, may_change=False)
    with pytest.raises(AccessDeniedError, match="read-only"):
        bench.adapter(looking).create(bench.old, DECIDED)
    looking.close()
    assert bench.changes() == []


@wired
def test_nothing_within_reach_disables_deletes_imports_or_rotates(bench: Bench) -> None:
    changing = {name for name, operation in bench.operations.items() if operation.changes_something}
    assert changing == {"kms:CreateKey", "kms:UpdateAlias"}
    assert [name for name in changing if FORBIDDEN.search(name)] == []


@wired
def test_a_key_that_cannot_be_made_again_is_refused_before_anything_is_sent(every: Bench) -> None:
    bench = every.reset(SERVICE, DISABLED, STILL, "imported", "pair", REPLICA)
    keys = bench.read()
    fit = {
        bench.old_ref,
        *(ref for ref in keys if bench.rig is not None and ref == to_product(bench.rig.keys[STILL].ref)),
    }
    for ref, key in keys.items():
        if ref not in fit:
            with pytest.raises(RefusedError, match="nothing was changed"):
                bench.successor.create(key, DECIDED)
            with pytest.raises(RefusedError, match="nothing was changed"):
                bench.successor.move_alias("training", keys[bench.old_ref], key)
    assert len(keys) > len(fit)
    with pytest.raises(RefusedError, match="no decision"):
        bench.successor.create(keys[bench.old_ref], "")
    assert bench.changes() == []


@on_aws
def test_a_key_that_signs_is_tried_by_a_signature(every: Bench) -> None:
    bench = every.reset("signing")
    assert bench.rig is not None
    signing = bench.rig.keys["signing"]
    bench.world.keys.get(signing.ref).aliases.append("release")
    receipt = bench.successor.create(bench.read()[to_product(signing.ref)], DECIDED)
    keys = bench.read()
    heir = signing.ref.sibling("key", receipt.native_id)
    bench.rig.as_new()
    bench.successor.move_alias("release", keys[to_product(signing.ref)], keys[to_product(heir)])
    assert bench.world.keys.named(to_world(bench.shard), "release").ref == heir
    asked = list(bench.rig.requests())
    assert asked == [
        f"kms:{name}" for name in (*("Sign",) * 2, *("Verify",) * 2, "UpdateAlias", "Verify", "Sign", "Verify")
    ]
