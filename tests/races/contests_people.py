"""Racing for what reaches people and comes from them: an approval is used once, a notice is sent once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tests.races.contest import NOW, Answer, Attempt, Lot, Race, audited, body_of

from costguard.engine.ledger.approvals import ApprovalRepository
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.delivery import deliver_due
from costguard.ports import Delivery, Message, RecordStore

_SKEW = timedelta(seconds=10)  # between one process's clock and the next


class ApprovalContest:
    """Using one approval up."""

    name = "approval"

    def prepare(self, store: RecordStore, race: Race) -> None:
        ApprovalRepository(store).grant(race.name, "owner", NOW, timedelta(hours=1))

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        approvals = ApprovalRepository(store)
        return lambda: Answer(approvals.use(race.name, NOW + timedelta(seconds=1 + runner)))

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        winners = [runner for runner, answer in enumerate(answers) if answer.won]
        if len(winners) != 1:
            yield f"the approval was used {len(winners)} times"
        record = store.get("approval", race.name)
        if record is None or record.version != 2 or record.body["used_at"] is None:
            yield f"the approval was written {record.version if record else 0} times, not granted once and used once"
        did = [
            entry["facts"]["did"]
            for entry in audited(store, "operator/approval")
            if entry["facts"]["decision_id"] == race.name
        ]
        if did != ["granted", "used"]:
            yield f"the audit tells of {did}"


class OutboxContest:
    """Delivering one or two pending notices, by clocks that differ by up to a minute or so; nobody crashes."""

    name = "outbox"

    def prepare(self, store: RecordStore, race: Race) -> None:
        for number, notice_id in enumerate(_notice_ids(race)):
            created = NOW - timedelta(minutes=number)
            notice = OutboxNotice(notice_id, notice_id, "case", "slack:#gpu", "title", notice_id, created)
            assert OutboxRepository(store).enqueue(notice)

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:
        outbox = OutboxRepository(store)
        notifier, clock = FileNotifier(lot.sent, runner), StoppedClock(NOW + runner * _SKEW)

        def attempt() -> Answer:
            delivered = deliver_due(outbox, notifier, clock, max_wait=timedelta(0))
            ids = [notice.notice_id for notice in delivered]
            return Answer(bool(ids), {"delivered": ids, "race": race.name})

        return attempt

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:
        lines = lot.sent.read_text().splitlines() if lot.sent.exists() else []
        ends = [entry["facts"]["notice_id"] for entry in audited(store, f"outbox/{NOW:%Y-%m}")]
        for notice_id in _notice_ids(race):
            sent = [line for line in lines if line.split()[0] == notice_id]
            told = [answer for answer in answers if notice_id in answer.facts["delivered"]]
            if len(sent) != 1:
                yield f"{notice_id} was sent {len(sent)} times"
            if len(told) != 1:
                yield f"{len(told)} processes say that they delivered {notice_id}"
            body = body_of(store, "notice", notice_id)
            if (body["state"], body["attempts"], [body["receipt"]]) != ("delivered", 1, sent):
                yield f"{notice_id} is {body['state']} after {body['attempts']} attempts, received as {body['receipt']}"
            if ends.count(notice_id) != 1:
                yield f"the audit tells {ends.count(notice_id)} times how {notice_id} ended"
        pending = [one for record in store.query("outbox_pending") for one in record.body["ids"]]
        if pending:
            yield f"{pending} are still listed as pending"


class FileNotifier:
    """Writes a line to a file that all processes share; appending so few bytes is atomic."""

    def __init__(self, path: Path, runner: int) -> None:
        self._path = path
        self._runner = runner

    def send(self, message: Message) -> Delivery:
        receipt = f"{message.text} by-{self._runner}"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{receipt}\n".encode())
        finally:
            os.close(file)
        return Delivery(receipt)

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - nothing can be changed here
        return False

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))


class StoppedClock:
    """Shows one moment; nothing in these races may wait."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment

    def sleep(self, seconds: float) -> None:
        message = f"a sender wants to wait {seconds} s where nothing limits it"
        raise AssertionError(message)


def _notice_ids(race: Race) -> list[str]:
    return [f"{race.name}-{number}" for number in range(1 + (race.dice().random() < 0.5))]
