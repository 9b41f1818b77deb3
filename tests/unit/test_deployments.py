"""Which deployment this is, and the mark by which others know it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.builders import DAY, NOW, policy, rule

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers.open import open_ledger
from costguard.bootstrap import open_run_context
from costguard.connections import Connections
from costguard.domain.refs import Deployment, deployments_in
from costguard.engine.ledger.memory import Memory
from costguard.guards.rules.common import Mode
from costguard.planning.rails import barred_by
from costguard.policy.model.policy import with_policy_digest
from costguard.policy.model.terms import canonical_json
from costguard.ports import Target
from costguard.providers.aws.core.session import AwsSession
from costguard.report.words.sentences import sentence
from costguard.settings import load_settings

OWN, EU = Deployment("research", "00000001"), Deployment("platform-eu", "1a2b3c4d")
NAMESAKE = Deployment("research", "00000002")


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory.over(open_ledger("memory:"))
    yield made
    made.store.close()


@pytest.mark.parametrize(
    "text",
    [
        str(EU),
        f"arn:aws:sts::111122223333:assumed-role/costguard/{EU}",
        f"costguard:{EU}",
        f"Boto3/1.40 md/Botocore#1.40 Python/3.12 {EU}",
        f"SDK_PYTHON_3.0.1459; {EU}",
        f"AlibabaCloud (Linux x86_64) Python/3.11 Core/2.16.0 client/{EU}",
    ],
)
def test_a_mark_is_found_wherever_a_log_writes_it(text: str) -> None:
    assert list(deployments_in(text)) == [EU]


@pytest.mark.parametrize(
    "text",
    [
        "costguard",
        "costguard-idle-gpu",
        "my-costguard-platform-eu-1a2b3c4d",
        "costguard-platform-eu-1a2b3c4d5",
        "costguard-platform-eu-1A2B3C4D",
        "costguard-9lives-1a2b3c4d",
    ],
)
def test_what_is_no_mark_is_nobody(text: str) -> None:
    """A role called like us, a function's name, another tool's: none of them is a deployment."""
    assert list(deployments_in(text)) == []


def test_the_longest_mark_is_a_session_name_on_every_cloud() -> None:
    """AssumeRole takes 2 to 64 characters on AWS, 2 to 64 on Alibaba Cloud and 2 to 128 on Tencent Cloud."""
    longest = Deployment("a" + "b" * 19, "0" * 8)

    assert list(deployments_in(str(longest))) == [longest]
    assert len(str(longest)) == 39


def test_the_reason_names_the_other_and_what_to_do() -> None:
    found = barred_by(OWN, {EU: NOW, NAMESAKE: NOW - DAY}, "research")

    assert found is not None
    assert "platform-eu (1a2b3c4d)" in sentence(found)
    assert "Both are called research" in sentence(found)


def test_a_ledger_is_called_the_same_for_ever(memory: Memory) -> None:
    assert memory.identity.known() == ""

    made = memory.identity.made(NOW)

    assert len(made) == 8
    assert (memory.identity.made(NOW + DAY), memory.identity.known()) == (made, made)
    with closing(open_ledger("memory:")) as another:
        assert Memory.over(another).identity.made(NOW) != made


@pytest.mark.parametrize(
    ("mode", "may_act", "marked"), [(Mode.ENFORCE, True, True), (Mode.ENFORCE, False, False), (Mode.WARN, True, False)]
)
def test_only_what_may_act_has_a_mark(memory: Memory, mode: Mode, may_act: bool, marked: bool) -> None:  # noqa: FBT001
    """A look from a laptop, or a policy that only observes, bars nobody."""
    settings = load_settings({"COSTGUARD_NAME": "platform-eu", "AWS_EC2_METADATA_DISABLED": "true"})
    house, clock = policy(rule(mode=mode)), MovedClock(NOW)

    with open_run_context(settings, "idle_gpu", policy=house, memory=memory, clock=clock, may_act=may_act) as world:
        assert world.deployment == Deployment("platform-eu", memory.identity.known())
        assert bool(memory.identity.known()) is marked


@pytest.mark.parametrize("may_act", [True, False])
def test_sessions_are_called_after_the_deployment(memory: Memory, may_act: bool) -> None:  # noqa: FBT001
    with Connections(load_settings({"COSTGUARD_NAME": "platform-eu"}), policy(), MovedClock(NOW)) as connections:
        own = connections.named(memory.identity, may_act=may_act)
        connections.open([Target("aws")])
        session = connections.clouds["aws"].calls

    assert isinstance(session, AwsSession)
    assert session.mark == session.acting().mark == (str(own) if may_act else "costguard")


def test_a_policy_that_names_no_leader_keeps_its_digest() -> None:
    """And naming one is no part of a rule: no wait begins anew."""
    plain, led = with_policy_digest(policy()), with_policy_digest(policy(leading_deployment="research"))

    assert "leading_deployment" not in canonical_json(plain)
    assert led.digest != plain.digest
    assert [each.digest for each in led.idle_gpu] == [each.digest for each in plain.idle_gpu]
