"""The contract of `KeepTagger`, on every provider's adapter over its emulator: one tag, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from tests.contract.cloud_worlds import World
from tests.contract.provider_worlds import WORLDS

from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import KEEP_TAG
from costguard.ports import KeepTagger
from costguard.providers.alibaba.compute.executor import AlibabaKeepTagger
from costguard.providers.aws.compute.executor import AwsKeepTagger
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.compute.executor import TencentKeepTagger

TAGGERS: dict[str, Callable[[Any], KeepTagger]] = {
    "aws": AwsKeepTagger,
    "alibaba": AlibabaKeepTagger,
    "tencent": TencentKeepTagger,
}
UNTIL, LATER = "2026-12-01T09:00:00Z", "2026-12-15T09:00:00Z"


@pytest.fixture(scope="module", params=sorted(WORLDS))
def provider(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[World]]]:
    with WORLDS[request.param]() as new_world:
        yield new_world


@pytest.fixture
def world(provider: Callable[[], AbstractContextManager[World]]) -> Iterator[World]:
    with provider() as made:
        made.inventory.discover(made.target(made.shard.region))
        yield made


@pytest.fixture
def session(world: World) -> Iterator[Any]:
    acting: Any = world.executor
    made = acting._session.only_for(Purpose.KEEP_TAG)  # noqa: SLF001 - the rig's worlds hand out no session
    yield made
    made.close()


@pytest.fixture
def tagger(world: World, session: Any) -> KeepTagger:
    return TAGGERS[world.shard.cloud](session)


def ref(world: World, native_id: str) -> ResourceRef:
    return ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)


def tags(world: World, native_id: str) -> dict[str, str]:
    machine = ref(world, native_id)
    return dict(world.inventory.details([machine])[machine].instance.tags)


def test_the_tag_is_set_and_replaced_and_no_other_is_touched(world: World, tagger: KeepTagger) -> None:
    mine, other = world.launch(tags={"team": "nlp"}), world.launch(tags={"team": "nlp"})
    assert KEEP_TAG not in tags(world, mine)
    assert tagger.write(ref(world, mine), UNTIL).request_id
    assert tags(world, mine) == {"team": "nlp", KEEP_TAG: UNTIL}
    tagger.write(ref(world, mine), UNTIL)
    tagger.write(ref(world, mine), LATER)
    assert (tags(world, mine), tags(world, other)) == ({"team": "nlp", KEEP_TAG: LATER}, {"team": "nlp"})


def test_a_machine_that_never_was_is_a_refusal(world: World, tagger: KeepTagger) -> None:
    if world.shard.cloud == "aws":
        return  # moto tags what never was
    with pytest.raises(ProviderError):
        tagger.write(ref(world, world.missing), UNTIL)


def test_it_takes_a_session_that_can_do_nothing_else(world: World, session: Any) -> None:
    acting: Any = world.executor
    with pytest.raises(InvalidInputError, match="nothing else"):
        TAGGERS[world.shard.cloud](acting._session)  # noqa: SLF001 - as above
    changing = [name for name, one in session._operations.items() if one.changes_something]  # noqa: SLF001
    assert len(changing) == 1
