"""What a run empties of what was told long ago: words, of notices that nobody waits for, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import NOW, ref
from tests.contract.ledger_fakes import CountingStore, InterferingStore
from tests.unit.test_open_cases_listed import closed, opened

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers import open_ledger
from costguard.bootstrap import open_phase, run_function
from costguard.cases import Announced, Case
from costguard.domain.actions import Verb
from costguard.domain.errors import UnavailableError
from costguard.engine.ledger.codec import record_of
from costguard.engine.ledger.memory import Memory, notice_views
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.engine.notify.retention import empty_old_notices
from costguard.ports import Put, RecordStore
from costguard.settings import Settings, load_settings

DAY = timedelta(days=1)
KEPT = timedelta(days=400)
LONG_AGO = NOW - 500 * DAY


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


def told(notice_id: str, case: Case | None = None, **changes: object) -> OutboxNotice:
    """Delivered long ago, and proven."""
    ordinary = OutboxNotice(
        notice_id=notice_id,
        decision_id=notice_id,
        case_key="digest" if case is None else case.key,
        channel="slack:#gpu",
        title="idle: notebook",
        text="It is idle.",
        created_at=LONG_AGO,
        fields=(("cost", "3 USD"),),
        lines=("say keep",),
        state=NoticeState.DELIVERED,
        receipt="1700000000.000100",
        delivered_at=LONG_AGO,
        proven=True,
        case_id="" if case is None else case.case_id,
        announced=(Announced(Verb.STOP, LONG_AGO + DAY),),
    )
    return replace(ordinary, **changes)  # type: ignore[arg-type]


def keep(store: RecordStore, *notices: OutboxNotice) -> None:
    puts = [Put(record_of("notice", one.notice_id, one), 0) for one in notices]
    for at in range(0, len(puts), 100):
        store.transact(puts[at : at + 100])


def words(store: RecordStore, *notice_ids: str) -> list[bool]:
    """Whether each has its words still."""
    known = Memory.over(store).outbox.get_many(notice_ids)
    return [bool(known[each].text) for each in notice_ids]


def test_a_notice_delivered_longer_ago_loses_its_words_and_nothing_else(store: RecordStore) -> None:
    before = told("n-1", choices=())
    keep(store, before)
    assert empty_old_notices(store, KEPT, NOW) == 1

    assert Memory.over(store).outbox.get("n-1") == replace(before, text="", fields=(), lines=())
    assert Memory.over(store).outbox.enqueue(told("n-1")) == 0, "it is not told again"


def test_what_was_told_lately_keeps_its_words(store: RecordStore) -> None:
    keep(store, told("n-1", delivered_at=NOW - KEPT + DAY), told("n-2", delivered_at=NOW - KEPT - DAY))
    empty_old_notices(store, KEPT, NOW)
    assert words(store, "n-1", "n-2") == [True, False]


@pytest.mark.parametrize("state", [NoticeState.PENDING, NoticeState.DEAD])
def test_what_was_not_delivered_keeps_its_words(store: RecordStore, state: NoticeState) -> None:
    keep(store, told("n-1", state=state, delivered_at=None))
    assert empty_old_notices(store, KEPT, NOW) == 0
    assert words(store, "n-1") == [True]


def test_a_notice_of_an_open_case_keeps_its_words_and_grace_is_counted_from_it(store: RecordStore) -> None:
    """However long ago that was: a machine may be held for years by what its policy says."""
    memory = Memory.over(store)
    case = memory.cases.commit(None, replace(opened("i-1"), decision_id="n-1"))
    keep(store, told("n-1", case))
    before = notice_views(memory, (case,), NOW)
    assert empty_old_notices(store, KEPT, NOW) == 0
    assert words(store, "n-1") == [True]

    memory.cases.commit(case, closed(case))
    assert empty_old_notices(store, KEPT, NOW) == 1
    assert words(store, "n-1") == [False]
    assert notice_views(memory, (case,), NOW) == before, "delivered then, and naming the same dates"
    assert before["n-1"].delivered_at == LONG_AGO


def test_what_went_out_in_one_message_with_a_notice_of_an_open_case_keeps_its_words(store: RecordStore) -> None:
    """The whole message is written again when it is changed."""
    memory = Memory.over(store)
    case = memory.cases.commit(None, opened("i-1"))
    over = replace(opened("i-2"), subject=ref("i-2"))
    keep(store, told("n-1", case, beside=("n-1", "n-2")), told("n-2", over, beside=("n-1", "n-2")))
    assert empty_old_notices(store, KEPT, NOW) == 0
    assert words(store, "n-1", "n-2") == [True, True]


def test_a_notice_whose_message_is_to_be_changed_keeps_its_words(store: RecordStore) -> None:
    keep(store, told("n-1"), told("n-2"))
    Memory.over(store).outbox.mark({"n-1": "stopped"})
    empty_old_notices(store, KEPT, NOW)
    assert words(store, "n-1", "n-2") == [True, False]


def test_one_that_came_too_late_to_be_sent_loses_its_words(store: RecordStore) -> None:
    keep(store, told("n-1", state=NoticeState.DROPPED, delivered_at=None))
    assert empty_old_notices(store, KEPT, NOW) == 1


def test_each_run_does_as_much_and_the_next_goes_on(store: RecordStore) -> None:
    keep(store, *(told(f"n-{number:04}") for number in range(200)))
    done = []
    for _ in range(4):
        counted = CountingStore(store)
        done.append(empty_old_notices(counted, KEPT, NOW))
        assert len(counted.asked) <= 5
    assert done == [80, 80, 40, 0]


def test_what_is_looked_up_beside_old_ones_is_bounded_and_nothing_is_left_out(store: RecordStore) -> None:
    keep(store, *(told(f"n-{n:04}", beside=tuple(f"b-{n:04}-{each}" for each in range(90))) for n in range(10)))
    keep(store, *(told(f"b-{n:04}-{each}", delivered_at=NOW) for n in range(10) for each in range(90)))
    done = []
    for _ in range(20):
        counted = CountingStore(store)
        done.append(empty_old_notices(counted, KEPT, NOW))
        assert len(counted.asked) <= 10
    assert sum(done) == 10


def test_one_whose_message_had_others_that_are_gone_keeps_its_words(store: RecordStore) -> None:
    keep(store, told("n-1", beside=("n-1", "gone")))
    assert empty_old_notices(store, KEPT, NOW) == 0


def test_where_somebody_else_was_first_nothing_is_emptied(store: RecordStore) -> None:
    keep(store, told("n-1"))
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: Memory.over(store).outbox.mark({"n-1": "stopped"}))
    assert empty_old_notices(interfering, KEPT, NOW) == 0
    assert words(store, "n-1") == [True]


def test_it_is_400_days_unless_somebody_says_so_and_never_less_than_90() -> None:
    assert load_settings({}).notice_days == 400
    assert load_settings({"COSTGUARD_NOTICE_DAYS": "90"}).notice_days == 90
    for wrong in ("89", "0", "soon", "-400"):
        with pytest.raises(Exception, match=f"COSTGUARD_NOTICE_DAYS is '{wrong}', expected 90 or more"):
            load_settings({"COSTGUARD_NOTICE_DAYS": wrong})


POLICY = """
version: 1
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: a}]
"""


def after(folder: Path, of: Callable[[Settings, MovedClock], None], days: str = "") -> bool:
    """Whether the words of a notice delivered 500 days ago are there after a run, or the first phase of one."""
    (folder / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    ledger = f"sqlite:///{folder / 'ledger.sqlite3'}"
    given = {"COSTGUARD_POLICY": str(folder / "costguard.yaml"), "COSTGUARD_LEDGER": ledger}
    opened_here = open_ledger(ledger)
    keep(opened_here, told("n-1"))
    of(load_settings({**given, "COSTGUARD_NOTICE_DAYS": days}), MovedClock(NOW))
    found = words(opened_here, "n-1")
    opened_here.close()
    return found == [True]


def run(settings: Settings, clock: MovedClock) -> None:
    with suppress(UnavailableError):  # nobody answers here, which is the run's own trouble
        run_function("kms_rotation", "run", None, settings, clock)


def first_phase(settings: Settings, clock: MovedClock) -> None:
    with open_phase(settings, "idle_gpu", None, clock, first=True, may_act=False):
        pass


def later_phase(settings: Settings, clock: MovedClock) -> None:
    with open_phase(settings, "idle_gpu", None, clock, first=False, may_act=False):
        pass


def test_a_run_empties_what_is_older_than_the_setting_says(tmp_path: Path) -> None:
    assert after(tmp_path, run, "600")
    (tmp_path / "other").mkdir()
    assert not after(tmp_path / "other", run)


def test_of_a_run_in_phases_the_first_does(tmp_path: Path) -> None:
    assert after(tmp_path, later_phase)
    (tmp_path / "other").mkdir()
    assert not after(tmp_path / "other", first_phase)
