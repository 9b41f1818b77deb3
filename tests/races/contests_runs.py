"""Racing to begin and finish a run: the first to finish is remembered, and its duplicate knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from tests.races.contest import NOW, Answer, Attempt, Lot, Race, audited, body_of

from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import RecordStore

_SHARD = "aws:111122223333:us-east-1"


class RunContest:
    """Two runs of one guard, each by every second process: begin, audit something, finish, begin once more."""

    name = "run"

    def prepare(self, store: RecordStore, race: Race) -> None:
        """A run may begin where nothing is."""

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        runs, trail = RunRepository(store), AuditTrail(store)
        run = _runs(race)[runner % 2]
        started = NOW + timedelta(hours=runner % 2)

        def attempt() -> Answer:
            began = runs.begin(run, race.name, started)
            trail.append(AuditEntry(started, run, _SHARD, AuditWhat.SWITCH, {"runner": runner}))
            runs.finish(run, {"by": runner}, started)
            return Answer(began, {"again": runs.begin(run, race.name, started)})

        return attempt

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        for parity, run in enumerate(_runs(race)):
            mine = range(parity, race.runners, 2)
            record = store.get("run", run)
            if record is None or record.version != 2:
                yield f"{run} was written {record.version if record else 0} times, not begun once and finished once"
                continue
            if record.body["finished_at"] is None or record.body["summary"].get("by") not in mine:
                yield f"{run} was not finished by one that ran it"
            if not any(answers[runner].won for runner in mine):
                yield f"nobody may begin {run}"
            if any(answers[runner].facts["again"] for runner in mine):
                yield f"{run} may begin again after it was finished"
            entries = audited(store, f"{run}/{_SHARD}")
            if sorted(entry["facts"]["runner"] for entry in entries) != list(mine):
                yield f"the audit of {run} tells of {len(entries)} processes, not {len(mine)}"
            anchored = record.body["heads"].get(_SHARD, {}).get("entries", 0)
            if not 1 <= anchored <= len(entries):
                yield f"{run} anchors {anchored} entries of {len(entries)}"
        latest = body_of(store, "run_latest", race.name).get("run_id")
        if latest != _runs(race)[1]:
            yield f"{latest} is said to have begun last"


def _runs(race: Race) -> tuple[str, str]:
    return f"{race.name}-first", f"{race.name}-second"
