"""What the pictures show: the demo's fleet, keys and networks, run for nine days in memory, without any wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.scenario.stage import START, Stage
from tests.world_ports.keys import WorldKeys
from tests.world_ports.networks import WorldNetworks
from tests.world_ports.spend import WorldSpend

from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.keys import demo_keys
from cloudstand.demo.networks import demo_networks
from costguard.cli.demo.story import demo_policy
from costguard.engine.guards.budgets.notifying import keep_budgets
from costguard.engine.guards.budgets.run import run_budgets
from costguard.engine.run.run import run_guard
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import AnswerTerms
from costguard.ports import Message

_RUNS_APART = timedelta(hours=25)
_DAYS = 12


@contextmanager
def played(folder: Path) -> Iterator[Stage]:
    """The stage after the last day; its ledger holds what a report is made of."""
    found = load_policy(demo_policy())
    owners = tuple(replace(owner, people=("U024BE7LH",)) for owner in found.owners)
    answers = AnswerTerms(slack_team="T024BE7LD", approvers=("U024BE7LH",))
    stage = Stage(folder, *demo_fleet(START), under=replace(found, owners=owners, answers=answers))
    stage.cloud.networks = demo_networks(START)
    for key in demo_keys(START):
        stage.cloud.keys.add(key)
    try:
        for number in range(_DAYS):
            stage.at(_RUNS_APART * number)
            _look_at_the_rest(stage, number)
        yield stage
    finally:
        stage.close()


def letter(stage: Stage) -> Message:
    """The message with most parts that offers answers."""
    return max(stage.mailbox.messages, key=lambda one: (any(part.choices for part in one.parts), len(one.parts)))


def _look_at_the_rest(stage: Stage, number: int) -> None:
    spends = dict.fromkeys(stage.clouds, WorldSpend(stage.cloud, stage.clock))
    world = replace(stage.world(), executors={})
    budgets = run_budgets(replace(world, guard="budget", spends=spends), f"budget-{number}")
    if budgets.look is not None:
        keep_budgets(stage.memory, budgets.look)
    if number % 4 == 3:
        watching = replace(
            stage.policy,
            kms_rotation=tuple(replace(rule, mode=Mode.OBSERVE) for rule in stage.policy.kms_rotation),
            network_audit=tuple(replace(rule, mode=Mode.OBSERVE) for rule in stage.policy.network_audit),
        )
        keys = dict.fromkeys(stage.clouds, WorldKeys(stage.cloud, stage.clock))
        networks = dict.fromkeys(stage.clouds, WorldNetworks(stage.cloud, stage.clock))
        run_guard(replace(world, guard="kms_rotation", policy=watching, keys=keys), f"keys-{number}")
        run_guard(replace(world, guard="network_audit", policy=watching, networks=networks), f"networks-{number}")
