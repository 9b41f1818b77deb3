"""What broke at thirty thousand accounts: records too large for one item, verdicts that aged while others were read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.benchmarks.virtual import DynamoLike, Time
from tests.builders import NOW, fact, rule

from costguard.domain.errors import LedgerError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.learned import AccountRepository
from costguard.engine.ledger.runs import LookRepository, RunRepository
from costguard.guards.idle.judge import judge_instance
from costguard.ports import Record, Target
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.report.facts import ScanSnapshot

SHARDS = 4_000  # in which one run moved a case; the heads of some 3,300 chains fill an item of DynamoDB


class Store(DynamoLike):
    """A ledger with DynamoDB's limits, in which a record can be made to vanish."""

    def remove(self, kind: str, key: str) -> None:
        del self._stored[kind][key]
        self._keys[kind].remove(key)


@pytest.fixture(scope="module")
def anchored() -> Store:
    """A run that moved cases in very many shards, finished."""
    store = Store(Time())
    runs, audit = RunRepository(store), AuditTrail(store)
    assert runs.begin("run-1", "idle_gpu", NOW)
    shards = [f"aws:{number:012d}:ap-northeast-1" for number in range(SHARDS)]
    for at in range(0, SHARDS, 40):
        audit.append(*(AuditEntry(NOW, "run-1", shard, AuditWhat.TRANSITION) for shard in shards[at : at + 40]))
    runs.finish("run-1", {"due": 1}, NOW)
    return store


def test_a_run_anchors_every_chain_however_many(anchored: Store) -> None:
    run = RunRepository(anchored).get("run-1")
    assert run is not None
    assert len(run.heads) == SHARDS
    assert verify(anchored).problems == ()


def test_anchors_that_were_removed_are_missed(anchored: Store) -> None:
    kept = anchored.get("run_heads", "run-1/0001")
    assert kept is not None
    anchored.remove("run_heads", "run-1/0001")
    with pytest.raises(LedgerError, match="number 1 is gone"):
        RunRepository(anchored).get("run-1")
    assert any("number 1 is gone" in problem for problem in verify(anchored).problems)
    anchored.put(Record("run_heads", "run-1/0001", kept.body), 0)


def test_a_look_keeps_every_account() -> None:
    looks = LookRepository(DynamoLike(Time()))
    accounts = tuple(f"alibaba:{number:016d}" for number in range(30_000))
    look = ScanSnapshot(
        guard="idle_gpu", run_id="run-1", at=NOW, seen=1, sights=(), gaps=(), held={}, accounts=accounts
    )
    assert looks.keep(look)
    found = looks.get("idle_gpu")
    assert found is not None
    assert found.accounts == accounts


@pytest.mark.parametrize(
    ("minutes", "verdict"), [(0, Verdict.VIOLATION), (20, Verdict.VIOLATION), (61, Verdict.UNMEASURED)]
)
def test_a_machine_read_early_in_a_long_run_is_still_idle(minutes: int, verdict: Verdict) -> None:
    """Its samples were fresh when they were asked for; who acts on it asks again. After an hour nothing is believed."""
    found = judge_instance(fact(), rule(), NOW + timedelta(minutes=minutes))
    assert found.verdict is verdict
    if verdict is Verdict.UNMEASURED:
        assert found.reason.code is ReasonCode.STALE


def known(store: DynamoLike) -> Iterator[str]:
    yield from sorted(AccountRepository(store).first_seen())


def test_new_accounts_are_noted_together_and_each_whoever_else_notes_them() -> None:
    store = DynamoLike(Time())
    accounts = [f"aws:{number:012d}" for number in range(250)]
    AccountRepository(store).note(accounts[:1], {}, NOW)
    store.sent.requests.clear()
    AccountRepository(store).note(accounts, {}, NOW)  # does not know of the first
    assert list(known(store)) == accounts
    assert store.sent.requests["transact"] == 3


class Doors:
    """A session that counts the accounts it entered."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.account = "111122223333"

    def identity(self) -> Doors:
        return self

    def for_account(self, target: Target, account: str) -> None:
        del target
        self.entered.append(account)


def test_listing_an_organisation_enters_none_of_its_accounts() -> None:
    """Ten thousand roles at ten a second would take longer than a function has; who reads an account enters it."""
    accounts = tuple(f"{number:012d}" for number in range(10_000))
    regions = Regions(
        listed=lambda _: {}, usable=lambda *_: True, likely=lambda _: True, unusable=lambda shard, _: gap(shard)
    )
    doors = Doors()
    listing = Discoverer(doors, lambda _: Members(accounts), regions, lambda shard, *_: gap(shard))
    found = listing.discover(Target("aws", organisation=True, role="costguard", regions=()))
    assert (found.accounts, found.shards) == (accounts, ())
    assert set(doors.entered) <= {doors.account}


def gap(shard: Shard) -> Gap:
    return Gap(shard, "accounts", GapKind.UNAVAILABLE, "")
