"""What runs keep of what they saw: whole or not at all, the latest look, and a month of days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import finding, instance, ref
from tests.unit.report_facts import DAY, NOW, budget, facts, gap, look, sight

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.errors import VersionConflictError
from costguard.domain.findings import Evidence, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.signals import SignalName, SignalSummary
from costguard.engine.ledger.runs import DigestRecord, LookRepository
from costguard.engine.run.snapshots import DAYS_KEPT, look_of
from costguard.planning import Plan
from costguard.ports import Put, RecordStore, VersionCheck
from costguard.report.facts import ResourceSnapshot, figures_of


@pytest.fixture
def store() -> Iterator[RecordStore]:
    opened = open_ledger("memory:")
    yield opened
    opened.close()


class Interrupted:
    """A store whose writer stops after so many transactions."""

    def __init__(self, inner: RecordStore, after: int) -> None:
        self._inner = inner
        self._left = after
        self.get, self.query = inner.get, inner.query

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        if not self._left:
            raise VersionConflictError("another run wrote first")
        self._left -= 1
        self._inner.transact(operations)


def test_a_look_comes_back_as_it_was_kept_however_large_it_is(store: RecordStore) -> None:
    many = tuple(sight(f"i-{number:04d}") for number in range(250))
    kept = look(*many, gaps=(gap(),), held={"local_disk": 2}, due=3, accounts=("aws:1",))

    assert LookRepository(store).keep(kept)

    assert LookRepository(store).get("idle_gpu") == kept
    assert LookRepository(store).get("budget") is None


def test_a_smaller_look_leaves_nothing_of_the_larger_before_it(store: RecordStore) -> None:
    looks = LookRepository(store)
    looks.keep(look(*(sight(f"i-{number:04d}") for number in range(250))))
    small = look(sight(), run_id="r2", at=NOW + DAY)

    assert looks.keep(small)
    assert looks.get("idle_gpu") == small


def test_an_older_look_never_replaces_a_later_one(store: RecordStore) -> None:
    looks = LookRepository(store)
    later = look(sight())
    looks.keep(later)

    assert not looks.keep(look(sight("i-2"), run_id="slow", at=NOW - timedelta(minutes=5)))
    assert looks.get("idle_gpu") == later


def test_a_look_cut_short_is_said_to_lack_what_it_lacks(store: RecordStore) -> None:
    """Pieces of two runs are never mixed: those of the run that did not finish are left out, and counted."""
    first = look(*(sight(f"i-{number:04d}") for number in range(3_000)))
    LookRepository(store).keep(first)
    second = look(*(sight(f"j-{number:04d}") for number in range(3_000)), run_id="r2", at=NOW + DAY)

    assert not LookRepository(Interrupted(store, after=1)).keep(second)  # type: ignore[arg-type]

    found = LookRepository(store).get("idle_gpu")
    assert found is not None
    assert not [one for one in found.sights if one.ref.native_id.startswith("j-")]
    assert found.left_out == 3_000 - len(found.sights) > 0


def test_more_than_can_be_kept_is_counted(store: RecordStore) -> None:
    LookRepository(store, most_sights=150).keep(look(*(sight(f"i-{number}") for number in range(152))))

    found = LookRepository(store).get("idle_gpu")
    assert found is not None
    assert (len(found.sights), found.left_out) == (150, 2)


def test_budgets_and_digests_are_remembered(store: RecordStore) -> None:
    looks = LookRepository(store)
    looks.keep_budgets([budget(), budget("games")])
    looks.keep_budgets([budget(spent="700")])
    stands = {one.name: str(one.spent) for one in looks.budgets()}
    assert stands == {"games": "640.00 USD", "research": "700.00 USD"}

    first, second = (DigestRecord(name, figures_of(facts())) for name in ("one", "two"))
    assert looks.digest_before("one") is None
    assert looks.keep_digest(first)
    assert not looks.keep_digest(first)
    assert looks.digest_before("one") is None
    assert looks.digest_before("two") == first
    assert looks.keep_digest(second)
    assert looks.digest_before("two") == first
    assert looks.digest_before("three") == second


def _plan(*outline: float | None, back: timedelta = DAY, code: ReasonCode = ReasonCode.IDLE) -> Plan:
    signal = SignalSummary(SignalName.GPU, "0", 3.0, 1440, 1440, NOW, timedelta(minutes=1), "agent", outline=outline)
    found = replace(
        finding(instance("i-1")),
        subject=ref("i-1"),
        reason=Reason(code, {"detail": "x" * 5_000}),
        evidence=Evidence(NOW - back, NOW, (signal,)),
    )
    return Plan("idle_gpu", "run", NOW, "", (found,), (), (), (), (), ())


def _days(one: ResourceSnapshot) -> dict[str, float | None]:
    assert one.first_day is not None
    return {(one.first_day + DAY * at).isoformat(): value for at, value in enumerate(one.busy)}


def test_days_are_the_highest_of_what_touched_them() -> None:
    """NOW is 16:00: of four stretches of six hours two lie in the day before, and the third in both."""
    (seen,) = look_of(_plan(50.0, 2.0, 1.0, 3.0)).sights

    assert _days(seen) == {"2026-03-08": 50.0, "2026-03-09": 3.0}


def test_what_was_not_measured_stays_unknown_and_what_was_known_stays_known() -> None:
    before = sight("i-1", first_day=(NOW - 2 * DAY).date(), busy=(40.0, None, 1.0))

    (seen,) = look_of(_plan(None, None, None, None), before=(before,)).sights

    assert _days(seen) == {"2026-03-07": 40.0, "2026-03-08": None, "2026-03-09": 1.0}


def test_days_end_with_the_time_that_is_kept() -> None:
    before = sight("i-1", first_day=(NOW - 90 * DAY).date(), busy=(40.0,) * 90)

    (seen,) = look_of(_plan(1.0), before=(before,)).sights

    assert len(seen.busy) == DAYS_KEPT
    assert len(str(seen.reason.facts["detail"])) == 600


def test_what_is_as_asked_is_kept_of_machines_and_not_of_networks() -> None:
    fine = replace(_plan(1.0).findings[0], verdict=Verdict.COMPLIANT)

    assert len(look_of(replace(_plan(1.0), findings=(fine,))).sights) == 1
    assert look_of(replace(_plan(1.0), findings=(fine,), guard="network_audit")).sights == ()
