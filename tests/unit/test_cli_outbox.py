"""`costguard outbox`: what waits, what died, and sending it again."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from costguard.adapters.ledgers import open_ledger
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.domain.errors import RejectedNoticeError
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.delivery import deliver_due
from costguard.ports import Delivery, Message

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


class Refusing:
    """A channel that was archived, and the clock."""

    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)

    def send(self, message: Message) -> Delivery:
        del message
        raise RejectedNoticeError("is_archived; name another channel")

    def edit(self, receipt: str, message: Message) -> bool:
        del receipt, message
        return False

    def capacity(self, message: Message) -> int:
        return len(message.parts)


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = open_ledger(address)
    outbox = OutboxRepository(store)
    first = OutboxNotice("n-1", "d-1", "idle_gpu/idle/a", "slack:#gone", "a \x1b[31mstops", "a stops", NOW)
    outbox.enqueue(first)
    deliver_due(outbox, Refusing(), Refusing(), max_wait=timedelta(0))
    outbox.enqueue(replace(first, notice_id="n-2", channel="slack:#gpu", title="b stops"))
    store.close()
    return address


def test_it_lists_what_waits_and_what_died(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "--ledger", ledger, "--json"]) == Exit.HELD

    said = json.loads(capsys.readouterr().out)
    assert [(one["notice_id"], one["error"]) for one in said["dead"]] == [("n-1", "is_archived; name another channel")]
    assert [(one["notice_id"], one["attempts"]) for one in said["pending"]] == [("n-2", 0)]


def test_a_table_shows_the_dead_first_and_no_word_from_outside_commands_the_terminal(
    ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["outbox", "--ledger", ledger])

    said = capsys.readouterr().out
    assert said.index("refused for good") < said.index("to be sent")
    assert "\x1b[31m" not in said


def test_a_dead_one_is_sent_again_on_request(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "--ledger", ledger, "--retry", "n-1", "--json"]) == Exit.OK
    assert {one["notice_id"] for one in json.loads(capsys.readouterr().out)["pending"]} == {"n-1", "n-2"}


def test_an_unknown_notice_is_bad_input(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "--ledger", ledger, "--retry", "n-9"]) == Exit.BAD_INPUT
    assert "costguard outbox" in capsys.readouterr().err
