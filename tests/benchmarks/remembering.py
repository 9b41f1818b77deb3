"""What commands take that read a ledger that has grown: `savings` over N actions, `audit verify` over N entries.

`python tests/benchmarks/remembering.py` from the root. It fills SQLite ledgers with what runs would have written, the
savings through their repository, the audit through its own types, codec and hashes in bulk; then the real command runs
as a process of its own, whose CPU and peak memory Linux counts (wait4). Two sizes each, so that it is seen whether a
command grows with its ledger or faster. A command that answers wrongly ends the benchmark; no figure does.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measuring import machine
from tests.builders import usd
from tests.savings_builders import bill, charge, ended, saving

from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.domain.actions import Action, Outcome, Receipt
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.savings import SavingStanding
from costguard.engine.ledger.audit.audit import ENTRY, HEAD, AuditEntry, AuditWhat, ChainHead, entry_key, hash_of
from costguard.engine.ledger.codec import record_of, to_body
from costguard.engine.ledger.intents import INTENT, Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import RUN, RunRecord
from costguard.ports import Record
from costguard.ports.records import body_text

NOW = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)
SHARDS = tuple(Shard("aws", f"{account:012}", region) for account in range(50) for region in ("us-east-1", "eu-west-1"))
_OF_A_STOP = 10  # entries of the audit: its notice, seven moves of its case, the intent and its outcome
_STOPS_A_CHAIN = 20


@dataclass(frozen=True)
class Took:
    """What one process took, and the JSON it printed."""

    wall: float
    cpu: float
    peak_mb: float
    told: dict[str, Any]


def run(ledger: Path, *arguments: str) -> Took:
    """One command in a process of its own."""
    command = [
        str(Path(sys.executable).with_name("costguard")),
        *arguments,
        "--ledger",
        f"sqlite:///{ledger}",
        "--json",
    ]
    with tempfile.TemporaryFile() as answer:
        begun = time.perf_counter()
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(ledger.parent)}
        process = subprocess.Popen(command, stdout=answer, env=environment, cwd=ledger.parent)  # noqa: S603 - our own
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        answer.seek(0)
        told = json.loads(answer.read() or b"{}")
    if process.returncode:
        message = f"{' '.join(command)} ended with {process.returncode}: {str(told)[:500]}"
        raise SystemExit(message)
    return Took(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, told)


def fill_with_savings(ledger: Path, actions: int) -> None:
    """Stops of a year: a third was started again after some days, half have a bill, and every shard was looked at."""
    engine = sqlite_engine(None)
    with closing(SqlLedger(engine, durable=False)) as store:
        savings = Memory.over(store).savings
        for number in range(actions):
            shard = SHARDS[number % len(SHARDS)]
            subject = ResourceRef(shard.cloud, shard.account, shard.region, "instance", f"i-{number:017x}")
            at = NOW - timedelta(minutes=number * 525_600 // actions)
            one = saving(subject.native_id, at, subject=subject, owner=f"team-{number % 40}")
            if number % 3 == 0:
                one = ended(one, SavingStanding.RESTARTED, at + timedelta(hours=number % 1_000))
            savings.record(one)
            if number % 2:
                charges = tuple(charge(at - DAY * day, "72") for day in range(1, 8))
                (spent,) = bill(*charges, until=NOW - DAY).values()
                savings.put_bill(replace(spent, subject=subject))
        savings.looked(SHARDS, NOW)
        _save(engine.raw_connection().driver_connection, ledger)


def _save(memory: Any, ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as file:
        memory.backup(file)


def fill_with_audit(ledger: Path, entries: int) -> None:
    """Runs that stopped machines, finished and anchored; each stop has its intent beside its entries."""
    with closing(SqlLedger(sqlite_engine(ledger), durable=True)) as store:
        store.get("ledger", "schema")  # makes the table
    with closing(sqlite3.connect(ledger)) as file, file:
        file.execute("PRAGMA synchronous = OFF")
        file.executemany(
            "INSERT INTO costguard_records (kind, key, version, schema, body) VALUES (?, ?, ?, ?, ?)",
            (
                (one.kind, one.key, one.version, one.schema, body_text(one))
                for one in audit_records(entries // _OF_A_STOP)
            ),
        )


def audit_records(stops: int) -> Iterator[Record]:
    chains = -(-stops // _STOPS_A_CHAIN)
    for first in range(0, chains, len(SHARDS)):
        heads: dict[str, ChainHead] = {}
        run_id = f"run-{first:08}"
        at = NOW - timedelta(hours=1 + first)
        for number in range(first, min(first + len(SHARDS), chains)):
            shard = SHARDS[number - first]
            here = range(number * _STOPS_A_CHAIN, min((number + 1) * _STOPS_A_CHAIN, stops))
            chain = f"{run_id}/{shard}"
            yield from _chain(chain, heads, shard, [_stop(run_id, shard, each, at) for each in here])
            yield from (replace(record_of(INTENT, *_intent(run_id, shard, each, at)), version=2) for each in here)
            yield replace(record_of(HEAD, chain, heads[str(shard)]), version=len(here) * _OF_A_STOP)
        yield replace(record_of(RUN, run_id, RunRecord(run_id, "idle_gpu", at, at, heads=heads)), version=2)


def _chain(
    chain: str, heads: dict[str, ChainHead], shard: Shard, stops: Iterable[Sequence[AuditEntry]]
) -> Iterator[Record]:
    seq, previous = 0, ""
    for one in stops:
        for entry in one:
            seq += 1
            body = {**to_body(entry), "seq": seq, "previous": previous}
            previous = hash_of(body)
            yield Record(ENTRY, entry_key(chain, seq), {**body, "hash": previous}, version=1)
    heads[str(shard)] = ChainHead(seq, previous)


def _action(shard: Shard, number: int) -> Action:
    subject = ResourceRef(shard.cloud, shard.account, shard.region, "instance", f"i-{number:017x}")
    return saving(subject.native_id, subject=subject, case_id=f"{number:024x}", action_id=f"a{number:023x}").action


def _intent(run_id: str, shard: Shard, number: int, at: datetime) -> tuple[str, Intent]:
    action = _action(shard, number)
    intent = Intent(action, run_id, at, Outcome.TOOK_EFFECT, Receipt(f"req-{number}"), "", at)
    return f"{action.case_id}/{action.action_id}", intent


def _stop(run_id: str, shard: Shard, number: int, at: datetime) -> list[AuditEntry]:
    action, where = _action(shard, number), str(shard)
    moves = [
        {
            "case_id": action.case_id,
            "key": f"idle_gpu/idle/{action.subject}",
            "from": f"open waiting {move}",
            "to": f"open waiting {move + 1}",
            "reason": "all_signals_quiet",
            "reason_facts": {"hours": 24, "bound_percent": 5.0},
            "rule": action.rule,
            "rule_digest": action.rule_digest,
            "version": move + 1,
        }
        for move in range(7)
    ]
    told = {"notice_id": f"n-{number}", "decision_id": action.decision_id, "state": "delivered", "proven": True}
    came = {"action_id": action.action_id, "outcome": "took_effect", "detail": "", "receipt": {"request_id": "r"}}
    return [
        AuditEntry(at, run_id, where, AuditWhat.NOTICE, told),
        *(AuditEntry(at, run_id, where, AuditWhat.TRANSITION, facts) for facts in moves),
        AuditEntry(at, run_id, where, AuditWhat.INTENT, {"action": to_body(action)}),
        AuditEntry(at, run_id, where, AuditWhat.OUTCOME, came),
    ]


def measure_savings(folder: Path, sizes: Sequence[int]) -> None:
    """A row for each size."""
    print("\n| `costguard savings --json` over | CPU s | wall s | peak MB | µs an action |\n|---|---|---|---|---|")
    for actions in sizes:
        ledger = folder / f"savings-{actions}.sqlite3"
        _filled(fill_with_savings, ledger, actions)
        took = run(ledger, "savings", "--since", f"{NOW - 366 * DAY:%Y-%m-%d}")
        if len(took.told["actions"]) != actions or not usd(took.told["totals"][0]["realised"]["amount"]).amount:
            message = f"{len(took.told['actions'])} of {actions} actions told"
            raise SystemExit(message)
        _row(f"{actions:,} actions", took, actions)
        ledger.unlink()


def measure_audit(folder: Path, sizes: Sequence[int]) -> None:
    """A row for each size."""
    print("\n| `costguard audit verify --json` over | CPU s | wall s | peak MB | µs an entry |\n|---|---|---|---|---|")
    for entries in sizes:
        ledger = folder / f"audit-{entries}.sqlite3"
        _filled(fill_with_audit, ledger, entries)
        took = run(ledger, "audit", "verify")
        if took.told["entries"] != entries:
            message = f"{took.told['entries']} of {entries} entries read"
            raise SystemExit(message)
        _row(f"{entries:,} entries", took, entries)
        ledger.unlink()


def _filled(fill: Callable[[Path, int], None], ledger: Path, number: int) -> None:
    """In a process of its own: Linux counts among a child's peak what its parent held when it began."""
    filling = get_context("spawn").Process(target=fill, args=(ledger, number))
    filling.start()
    filling.join()
    if filling.exitcode:
        message = f"{ledger} could not be filled"
        raise SystemExit(message)


def _row(what: str, took: Took, number: int) -> None:
    print(
        f"| {what} | {took.cpu:.1f} | {took.wall:.1f} | {took.peak_mb:.0f} | {took.cpu / number * 1e6:.0f} |",
        flush=True,
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="some hundred records, in seconds")
    parser.add_argument("--actions", type=int, nargs="*", default=[5_000, 20_000], metavar="N")
    parser.add_argument("--entries", type=int, nargs="*", default=[100_000, 1_000_000], metavar="N")
    given = parser.parse_args()
    print(f"{machine('sqlalchemy')}; load average before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        measure_audit(Path(name), [200, 1_000] if given.smoke else given.entries)  # before longer answers are read here
        measure_savings(Path(name), [50, 200] if given.smoke else given.actions)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
