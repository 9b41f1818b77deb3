"""`costguard recheck` over the wire: it reads the cloud, calls nothing, and says what it found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import case
from tests.contract.cli_sandbox import Cli
from tests.world_ports.translate import to_product

from cloudstand.world.kinds import InstanceState
from costguard.adapters.ledgers.open import open_ledger
from costguard.cases import Case, CaseStatus, Phase
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.domain.actions import Action, Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.memory import Memory


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(sandbox, tmp_path, capfd)


def in_doubt(cli: Cli) -> Case:
    """A stop of two hours ago, whose answer was lost and whose rule went; the machine runs."""
    now = cli.sandbox.clock.now()
    machine = next(
        one
        for one in cli.sandbox.world.machines.values()
        if one.state is InstanceState.RUNNING and one.ref.cloud == "aws"
    )
    reason = Reason(ReasonCode.OUTCOME_UNKNOWN)
    doubted = replace(
        case(case_id="lost", subject=machine.ref, run_epoch=machine.run_epoch, decision_id="decided"),
        status=CaseStatus.HELD,
        phase=Phase.CONFIRMING,
        rung=1,
        claimed_at=now - timedelta(hours=2),
        rule="a rule that went",
        reason=reason,
    )
    action = Action(
        action_id="act",
        decision_id="decided",
        verb=Verb.STOP,
        subject=to_product(machine.ref),
        resource=to_product(machine.ref),
        run_epoch=machine.run_epoch,
        case_id="lost",
        rung=1,
        rule=doubted.rule,
        rule_digest=doubted.rule_digest,
    )
    memory = Memory.over(open_ledger(cli.ledger))
    with closing(memory.store):
        memory.runs.begin("run-1", "idle_gpu", now)
        memory.intents.claim(action, "run-1", now - timedelta(hours=2))
        return memory.cases.commit(None, doubted, run_id="run-1", now=now)


def test_what_is_in_doubt_is_looked_at_and_nothing_is_called(cli: Cli) -> None:
    doubted = in_doubt(cli)
    happened = len(cli.sandbox.world.history)
    done = cli("recheck", "--all", "--by", "ops", "--json")
    (told,) = done.json["cases"]
    assert (done.status, told["case_id"]) == (Exit.OK, doubted.case_id), done.err
    assert (told["found"], told["state"]) == ("no_effect", "running")
    assert len(cli.sandbox.world.history) == happened
    assert cli("audit", "verify").status == Exit.OK
    again = cli("recheck", "--all")
    assert (again.status, again.out) == (Exit.OK, "No case is held because an answer was lost.\n")
    assert cli("recheck", "--all", "--lang", "zh").out == "没有因应答丢失而搁置的案件。\n"


def test_one_is_named_or_all_are(cli: Cli) -> None:
    in_doubt(cli)
    for arguments in ((), ("i-1", "--all")):
        said = cli("recheck", *arguments)
        assert (said.status, "name one resource, or say --all" in said.err) == (Exit.BAD_INPUT, True)
    other = cli("recheck", "i-nothing-like-it")
    assert (other.status, "is held because an answer was lost" in other.err) == (Exit.BAD_INPUT, True)
    one = cli("recheck", "lost")
    assert (one.status, one.out.count("\n")) == (Exit.OK, 1), one.err
