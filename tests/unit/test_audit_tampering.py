"""Every single way to tamper with a chain, tried on every entry: given its anchored head, each is reported.

A forger is as able as the test says: he leaves hashes as they are, makes an entry's own hash right, rewrites
all that follows, or the head as well. What nobody can see without a copy of the heads kept elsewhere has a
test of its own at the end.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import permutations
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat, ChainHead, entry_key, hash_of
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import Put, Record, VersionCheck

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
FINISHED, OPEN = "run-1", "run-2"
SHARDS = ("aws:111122223333:us-east-1", "aws:111122223333:eu-west-1", "alibaba:1234567890123456:cn-beijing")
LENGTHS = (12, 3, 1)
LONG, SHORT, SINGLE = (f"{FINISHED}/{shard}" for shard in SHARDS)
UNFINISHED = f"{OPEN}/{SHARDS[0]}"
PEOPLE, OUTBOX = "operator/approval", "outbox/2026-03"

FACTS: Mapping[AuditWhat, Mapping[str, Any]] = {
    AuditWhat.INTENT: {"action": {"verb": "stop", "rung": 1, "parameters": {}, "risks": ["scarce_type", "a", "a"]}},
    AuditWhat.OUTCOME: {"policy": "no-new-gpus", "outcome": "unknown", "detail": "", "receipt": None},
    AuditWhat.TRANSITION: {"from": None, "to": "open claimed 1", "version": 2, "reason_facts": {"bound_percent": 5.0}},
    AuditWhat.NOTICE: {"notice_id": "n-1", "proven": True, "state": "delivered"},
    AuditWhat.SWITCH: {"paused": False, "by": "ops", "reason": "Über 实例 😀"},
    AuditWhat.APPROVAL: {"did": "used", "decision_id": "1"},
    AuditWhat.SNOOZE: {"until": "2026-03-02T00:00:00+00:00", "by": "nlp"},
    AuditWhat.KEEP_TAG: {"resource": "aws:1:r:instance:i-1", "until": "2026-03-02T00:00:00+00:00", "problem": ""},
    AuditWhat.START: {"resource": "aws:1:r:instance:i-1", "by": "nlp", "phase": "waiting", "tries": 0},
    AuditWhat.POLICY: {"did": "published", "from": "", "to": "0" * 64, "loosens": 0},
    AuditWhat.RETENTION: {"did": "pruned", "chain": "run-0/x", "entries": 3},
}
TRAPS: Mapping[str, Any] = {
    "whole": [0, 1, -1, 2**53 + 1, 10**30],
    "floats": [0.0, -0.0, 1.0, 0.1, 1e308, 5e-324],
    "texts": ["", "1", "1.0", "true", "null", "\x00", "\ud800", "e\u0301", "é"],
    "constants": [True, False, None, [], {}],
    "": {"": {"a": {"b": [{"c": 1}]}}},
}

Key = tuple[str, str]
Body = dict[str, Any]
Ledger = dict[Key, Record]


@dataclass(frozen=True)
class Snapshot:
    """A ledger's records, to be read only; the tests change copies of them."""

    records: Mapping[Key, Record]
    durable: bool = False

    def get(self, kind: str, key: str) -> Record | None:
        return self.records.get((kind, key))

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        keys = sorted(key for its_kind, key in self.records if its_kind == kind)
        return (self.records[kind, key] for key in keys if key.startswith(prefix) and key > after)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        return {key: self.records[kind, key] for key in keys if (kind, key) in self.records}

    def get_each(self, names: Iterable[Key]) -> Mapping[Key, Record]:
        return {name: self.records[name] for name in names if name in self.records}

    def put(self, record: Record, expect_version: int) -> Record:
        raise NotImplementedError

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


def entry(number: int, run_id: str, shard: str) -> AuditEntry:
    what = list(AuditWhat)[number % len(AuditWhat)]
    facts = dict(FACTS[what]) if number != 5 else {**FACTS[what], "traps": TRAPS}
    return AuditEntry(
        NOW + timedelta(seconds=number), run_id, shard, what, {**facts, "number": number, "about": f"{run_id} {shard}"}
    )


def write_audit(store: SqlLedger) -> None:
    runs, trail = RunRepository(store), AuditTrail(store)
    runs.begin(FINISHED, "idle_gpu", NOW)
    for shard, length in zip(SHARDS, LENGTHS, strict=True):
        for number in range(length):
            trail.append(entry(number, FINISHED, shard))
    runs.finish(FINISHED, {"found": 1}, NOW)
    runs.begin(OPEN, "idle_gpu", NOW)
    for chain in (UNFINISHED, PEOPLE, OUTBOX):
        run_id, _, shard = chain.partition("/")
        trail.append(entry(0, run_id, shard), entry(1, run_id, shard))


def all_records(store: SqlLedger) -> Ledger:
    kinds = ("audit", "audit_head", "run", "run_latest")
    return {(record.kind, record.key): record for kind in kinds for record in store.query(kind)}


@pytest.fixture(scope="module")
def whole() -> Ledger:
    """As real repositories wrote it on a real ledger: one finished run of three chains, and three chains more."""
    with closing(SqlLedger(sqlite_engine(None), durable=False)) as store:
        write_audit(store)
        return all_records(store)


def text(value: object) -> str:
    """What tells 1, 1.0, true and "1" apart, which `==` does not."""
    return json.dumps(value, sort_keys=True)


def problems(ledger: Ledger, kept: Mapping[str, ChainHead] | None = None) -> tuple[str, ...]:
    return verify(Snapshot(ledger), kept).problems


@dataclass
class Attempts:
    """Forgeries tried, and those that were not reported."""

    tried: int = 0
    unseen: list[str] = field(default_factory=list)

    def made(self, what: str, ledger: Ledger) -> None:
        self.tried += 1
        if not problems(ledger):
            self.unseen.append(what)


def bodies(ledger: Ledger, chain: str) -> list[Body]:
    return [dict(record.body) for record in Snapshot(ledger).query("audit", f"{chain}/")]


def head_of(ledger: Ledger, chain: str) -> ChainHead:
    return ChainHead(**ledger["audit_head", chain].body)


def heads_of(ledger: Ledger) -> dict[str, ChainHead]:
    """What somebody wrote down elsewhere."""
    return {record.key: ChainHead(**record.body) for record in Snapshot(ledger).query("audit_head")}


def with_body(ledger: Ledger, kind: str, key: str, body: Mapping[str, Any]) -> Ledger:
    """One body replaced, its version left as it is."""
    there = ledger.get((kind, key), Record(kind, key, {}, version=1))
    return {**ledger, (kind, key): replace(there, body=body)}


def without(ledger: Ledger, *gone: Key) -> Ledger:
    return {key: record for key, record in ledger.items() if key not in gone}


def with_chain(ledger: Ledger, chain: str, entries: Sequence[Body]) -> Ledger:
    """A chain's entries replaced as they are given, stored one after the other."""
    run_and_shard = f"{chain}/"
    changed = {key: one for key, one in ledger.items() if key[0] != "audit" or not key[1].startswith(run_and_shard)}
    for seq, body in enumerate(entries, 1):
        key = entry_key(chain, seq)
        changed["audit", key] = Record("audit", key, body, version=1)
    return changed


def chained(entries: Sequence[Body], chain: str) -> list[Body]:
    """Entries made to follow each other, with right numbers and hashes."""
    made: list[Body] = []
    run_id, _, shard = chain.partition("/")
    for seq, body in enumerate(entries, 1):
        previous = made[-1]["hash"] if made else ""
        fresh = {**body, "run_id": run_id, "shard": shard, "seq": seq, "previous": previous}
        made.append({**fresh, "hash": hash_of(fresh)})
    return made


def rehashed(entries: Sequence[Body]) -> list[Body]:
    """Hashes made right from the first to the last, whatever else the entries say."""
    made: list[Body] = []
    for body in entries:
        fresh = {**body, "previous": made[-1]["hash"]} if made else body
        made.append({**fresh, "hash": hash_of(fresh)})
    return made


def reheaded(ledger: Ledger, chain: str) -> Ledger:
    """The head rewritten to what the chain now is, at a version that it could have."""
    entries = bodies(ledger, chain)
    last = str(entries[-1].get("hash")) if entries else ""
    head = Record("audit_head", chain, {"entries": len(entries), "hash": last}, version=max(1, len(entries)))
    return {**ledger, ("audit_head", chain): head}


def reanchored(ledger: Ledger, chain: str) -> Ledger:
    """The anchor rewritten to what the head now is."""
    run_id, _, shard = chain.partition("/")
    run = dict(ledger["run", run_id].body)
    run["heads"] = {**run["heads"], shard: dict(ledger["audit_head", chain].body)}
    return with_body(ledger, "run", run_id, run)


Forger = Callable[[Ledger, str, Sequence[Body]], Ledger]
FORGERS: Mapping[str, Forger] = {
    "as they are": with_chain,
    "numbered and hashed": lambda ledger, chain, entries: with_chain(ledger, chain, chained(entries, chain)),
    "hashed, with the head": lambda ledger, chain, entries: reheaded(
        with_chain(ledger, chain, rehashed(entries)), chain
    ),
    "numbered and hashed, with the head": lambda ledger, chain, entries: reheaded(
        with_chain(ledger, chain, chained(entries, chain)), chain
    ),
    "numbered and hashed, without a head": lambda ledger, chain, entries: without(
        with_chain(ledger, chain, chained(entries, chain)), ("audit_head", chain)
    ),
}


def others(value: Any) -> list[Any]:
    """What a scalar can be changed to: another value, and the same one in other types."""
    if value is None:
        return [False, 0, "", "null", [], {}]
    if isinstance(value, bool):
        return [not value, int(value), float(value), str(value).lower(), None]
    if isinstance(value, int):
        same = [float(value), str(value), [value]] + ([bool(value)] if value in (0, 1) else [])
        return [value + 1, -value, None, *same]
    if isinstance(value, float):
        next_one = math.nextafter(value, math.inf)
        return [-value, next_one, str(value), None] + ([int(value)] if value.is_integer() else [])
    number = [int(value)] if value.isdecimal() else []
    return [f"{value} ", f"{value}\x00", value[:-1], value.upper(), value.swapcase(), None, [value], *number]


def edits(value: Any) -> Iterator[Any]:
    """Every value that differs from this JSON in one place, at any depth."""
    if isinstance(value, dict):
        for name in value:
            rest = {key: item for key, item in value.items() if key != name}
            yield rest
            yield {**rest, f"{name} ": value[name]}
            for changed in edits(value[name]):
                yield {**value, name: changed}
        yield {**value, "added": None}
        yield [value]
    elif isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
            yield [*value[: place + 1], *value[place:]]
            yield [*value[place + 1 : place + 2], *value[:place], *value[place:]]
            for changed in edits(value[place]):
                yield [*value[:place], changed, *value[place + 1 :]]
        yield [*value, None]
        yield {str(place): item for place, item in enumerate(value)}
    else:
        yield from others(value)


def edited(body: Body) -> Iterator[Body]:
    """Single edits of a body that are really others."""
    was = text(body)
    return (change for change in edits(body) if isinstance(change, dict) and text(change) != was)


def test_what_the_repositories_wrote_has_nothing_wrong(whole: Ledger) -> None:
    verdict = verify(Snapshot(whole), heads_of(whole))

    assert verdict.problems == ()
    assert (verdict.entries, verdict.chains) == (sum(LENGTHS) + 6, 6)
    assert {record.body["what"] for record in Snapshot(whole).query("audit", f"{LONG}/")} == set(AuditWhat)


def test_every_edit_of_every_field_at_every_depth_is_reported(whole: Ledger) -> None:
    """Four forgers each: hash left, hash made right, all that follows rewritten, and the head as well."""
    attempts = Attempts()
    for chain in (LONG, SHORT, SINGLE):
        entries = bodies(whole, chain)
        for place, body in enumerate(entries):
            for change in edited(body):
                what = f"{chain} entry {place + 1} became {text(change)}"
                rest = entries[place + 1 :]
                attempts.made(what, with_chain(whole, chain, [*entries[:place], change, *rest]))
                own = {**change, "hash": hash_of(change)}
                if text(own) == text(body):
                    continue  # only its hash was edited
                attempts.made(f"{what}, hashed", with_chain(whole, chain, [*entries[:place], own, *rest]))
                tail = with_chain(whole, chain, [*entries[:place], *rehashed([own, *rest])])
                attempts.made(f"{what}, all hashed", tail)
                attempts.made(f"{what}, with the head", reheaded(tail, chain))

    assert attempts.unseen == []
    assert attempts.tried > 5_000


def arrangements(entries: Sequence[Body]) -> Iterator[tuple[str, list[Body]]]:
    """Every drop, swap, move, doubling, insertion, and cut from either end."""
    length = len(entries)
    forged = {**entries[0], "facts": {"forged": True}}
    for place in range(length):
        yield f"{place} dropped", [*entries[:place], *entries[place + 1 :]]
        yield f"cut before {place}", [*entries[:place]]
        yield f"begun at {place + 1}", [*entries[place + 1 :]]
    for first, second in permutations(range(length), 2):
        moved = [*entries[:first], *entries[first + 1 :]]
        moved.insert(second, entries[first])
        yield f"{first} moved to {second}", moved
        if first < second:
            swapped = list(entries)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            yield f"{first} and {second} swapped", swapped
    for place in range(length + 1):
        yield f"one inserted at {place}", [*entries[:place], forged, *entries[place:]]
        for one in range(length):
            yield f"{one} doubled at {place}", [*entries[:place], entries[one], *entries[place:]]
    yield "reversed", list(reversed(entries))


@pytest.mark.parametrize("forger", FORGERS)
@pytest.mark.parametrize("chain", [LONG, SHORT, SINGLE])
def test_every_drop_reorder_cut_and_addition_is_reported(whole: Ledger, chain: str, forger: str) -> None:
    """But for entries added after the anchored ones, with their head, as a run may do: see the end of this file."""
    attempts = Attempts()
    entries = bodies(whole, chain)
    for what, arranged in arrangements(entries):
        ledger = FORGERS[forger](whole, chain, arranged)
        grown = text(bodies(ledger, chain)[: len(entries)]) == text(entries)
        if ledger == whole or (grown and forger == "numbered and hashed, with the head"):
            continue
        attempts.made(f"{what}, {forger}", ledger)

    assert attempts.unseen == []
    assert attempts.tried >= 2 * len(entries) ** 2


@pytest.mark.parametrize("forger", FORGERS)
def test_every_entry_moved_or_copied_to_another_chain_is_reported(whole: Ledger, forger: str) -> None:
    attempts = Attempts()
    forge = FORGERS[forger]
    for source in (LONG, SHORT, SINGLE, UNFINISHED, PEOPLE):
        for target in (LONG, SHORT, SINGLE):
            given, taken = bodies(whole, source), bodies(whole, target)
            if source == target:
                continue
            for place, body in enumerate(given):
                for into in range(len(taken)):
                    put_in = forge(whole, target, [*taken[:into], body, *taken[into:]])
                    attempts.made(f"{source} {place} copied to {target} {into}", put_in)
                    left = [*given[:place], *given[place + 1 :]]
                    attempts.made(f"{source} {place} moved to {target} {into}", forge(put_in, source, left))
                    attempts.made(
                        f"{source} {place} in the place of {target} {into}",
                        forge(whole, target, [*taken[:into], body, *taken[into + 1 :]]),
                    )

    assert attempts.unseen == []
    assert attempts.tried > 200


def test_one_entry_changed_removed_or_added_in_the_database_is_reported(whole: Ledger) -> None:
    """Single records, not whole chains: also between and behind the entries, and in chains without an anchor."""
    attempts = Attempts()
    for record in Snapshot(whole).query("audit"):
        attempts.made(f"{record.key} removed", without(whole, (record.kind, record.key)))
        chain = record.key.rpartition("/")[0]
        for added in (f"{record.key}a", f"{record.key}/1", f"{chain}/99999999", f"{chain}/", "new/chain/00000001", "x"):
            attempts.made(f"{record.key} copied to {added}", with_body(whole, "audit", added, record.body))
            renamed = without(with_body(whole, "audit", added, record.body), (record.kind, record.key))
            attempts.made(f"{record.key} renamed {added}", renamed)

    assert attempts.unseen == []


@pytest.mark.parametrize("chain", [LONG, SHORT, SINGLE, UNFINISHED, PEOPLE, OUTBOX])
def test_every_edit_of_a_head_is_reported(whole: Ledger, chain: str) -> None:
    attempts = Attempts()
    head = whole["audit_head", chain]
    for change in edited(dict(head.body)):
        attempts.made(text(change), with_body(whole, "audit_head", chain, change))
    attempts.made("removed", without(whole, ("audit_head", chain)))
    attempts.made("copied", with_body(whole, "audit_head", f"{chain}x", head.body))
    for entries, body in enumerate(bodies(whole, chain)[:-1], 1):
        earlier = {"entries": entries, "hash": body["hash"]}
        attempts.made(f"set back to {entries}", with_body(whole, "audit_head", chain, earlier))

    assert attempts.unseen == []


@pytest.mark.parametrize("chain", [LONG, SHORT, SINGLE])
def test_every_edit_of_an_anchor_is_reported(whole: Ledger, chain: str) -> None:
    attempts = Attempts()
    shard = chain.partition("/")[2]
    run = whole["run", FINISHED].body
    for change in edited(dict(run["heads"][shard])):
        heads = {**run["heads"], shard: change}
        attempts.made(text(change), with_body(whole, "run", FINISHED, {**run, "heads": heads}))
    renamed = {name if name != shard else f"{shard}x": head for name, head in run["heads"].items()}
    others_of_it: tuple[Body, ...] = ({"heads": None}, {"heads": []}, {"run_id": OPEN}, {"finished_at": None})
    for other in ({"heads": renamed}, *others_of_it):
        attempts.made(text(other), with_body(whole, "run", FINISHED, {**run, **other}))

    assert attempts.unseen == []


@pytest.mark.parametrize("chain", [LONG, SHORT])
def test_a_chain_cut_with_its_head_is_reported_by_its_anchor_at_every_length(whole: Ledger, chain: str) -> None:
    entries = bodies(whole, chain)
    for length in range(1, len(entries)):
        cut = reheaded(with_chain(whole, chain, entries[:length]), chain)

        assert problems(cut) == (f"{chain}: entry {len(entries)} and what follows it are missing",)


def test_a_removed_run_record_is_reported(whole: Ledger) -> None:
    for run_id in (FINISHED, OPEN):
        removed = without(whole, ("run", run_id))

        told = f"run {run_id}: has chains and no record: it was removed, or the chains were added"
        assert problems(removed) == (told,)


def test_a_removed_run_record_is_reported_although_its_chains_were_cut_with_their_heads(whole: Ledger) -> None:
    cut = reheaded(with_chain(whole, LONG, bodies(whole, LONG)[:5]), LONG)

    assert len(problems(without(cut, ("run", FINISHED)))) == 1


def test_all_runs_forgotten_are_reported(whole: Ledger) -> None:
    gone = [key for key in whole if key[0] in {"run", "run_latest"}]

    assert len(problems(without(whole, *gone))) == 2


@pytest.mark.parametrize("kind", ["audit", "audit_head", "run"])
def test_every_other_version_or_schema_number_is_reported(whole: Ledger, kind: str) -> None:
    attempts = Attempts()
    for key, record in whole.items():
        if record.kind != kind:
            continue
        for version in (-1, 0, 1, 2, record.version + 1, 13, 99):
            if version != record.version and not (kind == "audit_head" and 1 <= version <= record.body["entries"]):
                attempts.made(f"{key} version {version}", {**whole, key: replace(record, version=version)})
        for schema in (-1, 0, 2, 99):
            attempts.made(f"{key} schema {schema}", {**whole, key: replace(record, schema=schema)})

    assert attempts.unseen == []
    assert attempts.tried > 10


def rewritten_alike(whole: Ledger) -> Ledger:
    """Chain, head and anchor, all three."""
    forged = [{**body, "facts": {"number": "other"}} for body in bodies(whole, LONG)[:5]]
    ledger = with_chain(whole, LONG, chained(forged, LONG))
    return reanchored(reheaded(ledger, LONG), LONG)


def run_removed_whole(whole: Ledger) -> Ledger:
    of_it = [key for key in whole if key[1].startswith(f"{FINISHED}/")]
    return without(whole, ("run", FINISHED), *of_it)


def anchor_set_back(whole: Ledger) -> Ledger:
    cut = reheaded(with_chain(whole, LONG, bodies(whole, LONG)[:5]), LONG)
    return reanchored(cut, LONG)


def anchor_dropped(whole: Ledger) -> Ledger:
    run = whole["run", FINISHED].body
    heads = {shard: head for shard, head in run["heads"].items() if shard != SHARDS[0]}
    cut = reheaded(with_chain(whole, LONG, bodies(whole, LONG)[:5]), LONG)
    return with_body(cut, "run", FINISHED, {**run, "heads": heads})


def never_anchored(chain: str) -> Callable[[Ledger], Ledger]:
    return lambda whole: reheaded(with_chain(whole, chain, bodies(whole, chain)[:1]), chain)


@pytest.mark.parametrize(
    "tamper",
    [
        rewritten_alike,
        run_removed_whole,
        anchor_set_back,
        anchor_dropped,
        never_anchored(UNFINISHED),
        never_anchored(PEOPLE),
        never_anchored(OUTBOX),
    ],
)
def test_who_rewrites_chain_head_and_anchor_alike_is_seen_only_by_heads_kept_elsewhere(
    whole: Ledger, tamper: Callable[[Ledger], Ledger]
) -> None:
    """By design: nothing inside the ledger is out of his reach. Where no anchor is (yet), chain and head are enough."""
    tampered = tamper(whole)

    assert problems(tampered) == ()
    assert problems(tampered, heads_of(whole)) != ()


def test_entries_forged_after_the_anchored_ones_with_their_head_look_as_if_the_run_went_on(whole: Ledger) -> None:
    """By design: a run cut by its deadline may go on after its twin finished. What was anchored still stands."""
    longer = chained([*bodies(whole, LONG), {**bodies(whole, LONG)[0], "facts": {"forged": True}}], LONG)
    forged = reheaded(with_chain(whole, LONG, longer), LONG)

    assert problems(forged, heads_of(whole)) == ()
    assert text(bodies(forged, LONG)[:-1]) == text(bodies(whole, LONG))


def test_a_lower_version_of_a_head_and_the_rest_of_a_run_record_are_not_part_of_the_audit(whole: Ledger) -> None:
    """By design: several entries may come with one write of the head; what a run found is told by its entries."""
    lower = {**whole, ("audit_head", LONG): replace(whole["audit_head", LONG], version=3)}
    other = with_body(whole, "run", FINISHED, {**whole["run", FINISHED].body, "summary": {"found": 99}})

    assert problems(lower) == problems(other) == ()


def raw(change: Callable[[str], str]) -> tuple[Ledger, Ledger]:
    """The ledger before and after the stored text of one entry is changed in the database itself."""
    engine = sqlite_engine(None)
    with closing(SqlLedger(engine, durable=False)) as store:
        write_audit(store)
        before = copy.deepcopy(all_records(store))
        where = {"key": entry_key(LONG, 6)}
        with engine.begin() as connection:
            query = "SELECT body FROM costguard_records WHERE kind = 'audit' AND key = :key"
            stored: str = connection.execute(sa.text(query), where).scalar_one()
            assert change(stored) != stored
            statement = "UPDATE costguard_records SET body = :body WHERE kind = 'audit' AND key = :key"
            connection.execute(sa.text(statement), {**where, "body": change(stored)})
        return before, all_records(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: json.dumps(json.loads(stored), indent=2),
        lambda stored: json.dumps(dict(reversed(json.loads(stored).items()))),
        lambda stored: json.dumps(json.loads(stored), ensure_ascii=False).replace("\ud800", "\\uD800"),
        lambda stored: stored.replace("1e+308", "10E307"),
        lambda stored: stored.replace("0.1,", "0.1000000000000000055,"),
        lambda stored: stored.replace('"seq":', '"seq":99,"seq":'),
        lambda stored: stored.replace('"facts":', '"f\\u0061cts":{"forged":true},"facts":'),
        lambda stored: stored.replace("[0,1,-1,", "[-0,1,-1,"),
    ],
)
def test_another_spelling_of_the_same_json_is_no_edit(change: Callable[[str], str]) -> None:
    """By design the values are hashed: order, spaces, escapes, other digits of one float, a key that is overruled."""
    before, after = raw(change)

    assert text(after["audit", entry_key(LONG, 6)].body) == text(before["audit", entry_key(LONG, 6)].body)
    assert problems(after) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.replace("[0,1,", "[0,1.0,"),
        lambda stored: stored.replace("[0,1,", "[0,true,"),
        lambda stored: stored.replace("[0,1,", "[-0.0,1,"),
        lambda stored: stored.replace("-0.0", "0.0"),
        lambda stored: stored.replace("9007199254740993", "9007199254740992"),
        lambda stored: stored.replace("1000000000000000000000000000000", "1e30"),
        lambda stored: stored.replace("5e-324", "0.0"),
        lambda stored: stored.replace("1e+308", "1e400"),
        lambda stored: stored.replace("0.1,", "NaN,"),
        lambda stored: stored.replace("\\ud800", "\\udc00"),
        lambda stored: stored.replace("\\ud800", "\\ufffd"),
        lambda stored: stored.replace("e\\u0301", "\\u00e9"),
        lambda stored: stored.replace('"seq":6', '"seq":6,"seq":7'),
        lambda stored: stored.replace('"seq":6', '"seq":6,"\\u0073eq":7'),
        lambda stored: f'{stored[:-1]},"facts":{{}}}}',
        lambda stored: f'{stored[:-1]},"hash":"{"0" * 64}"}}',
        lambda stored: f'{stored[:-1]},"f\\u0061cts":{json.dumps(json.loads(stored)["facts"] | {"number": 6})}}}',
        lambda stored: stored.replace("[0,1,-1,", "[0,1E0,-1,"),
        lambda stored: stored.replace("[0,1,-1,", "[0,1,-1.0e0,"),
        lambda stored: stored.replace('["","1",', '["","\\uff11",'),
        lambda stored: stored.replace('["","1",', '["\\ufeff","1",'),
    ],
)
def test_what_looks_the_same_and_is_not_is_reported(change: Callable[[str], str]) -> None:
    _, after = raw(change)

    assert any("was changed" in problem for problem in problems(after))


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"seq":' + "9" * 5000 + "}"])
def test_an_entry_that_is_no_json_object_stops_the_reading_and_is_named(damaged: str) -> None:
    with pytest.raises(LedgerError, match="damaged"):
        raw(lambda _: damaged)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_whatever_facts_are_written_the_audit_says_nothing_without_need(facts: dict[str, Any]) -> None:
    with closing(SqlLedger(sqlite_engine(None), durable=False)) as store:
        AuditTrail(store).append(AuditEntry(NOW, "operator", "x", AuditWhat.SWITCH, facts))

        assert verify(store).problems == ()


def test_two_halves_of_one_character_written_apart_are_no_change() -> None:
    r"""As JSON both are \ud83d\ude00: what was two halves is read again as one character, under the same hash."""
    with closing(SqlLedger(sqlite_engine(None), durable=False)) as store:
        AuditTrail(store).append(AuditEntry(NOW, "operator", "x", AuditWhat.SWITCH, {"by": "\ud83d" + "\ude00"}))

        assert verify(store).problems == ()
