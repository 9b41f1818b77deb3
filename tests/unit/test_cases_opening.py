"""How a case begins, and what its ids are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, rule, seen

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, advance, decision_id
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode
from costguard.policy.model.terms import terms

BOX = instance("i-7", run_epoch="epoch-7")
NIGHT = rule("night")
FOUND = finding(BOX, rule="night", owner="vision", name="notebook-7")


def opened(**changes: Any) -> Case:
    step = advance(None, seen(BOX, finding=FOUND, rule=NIGHT, **changes))
    assert step.case is not None
    return step.case


def test_a_case_remembers_whose_machine_it_is_and_what_was_found() -> None:
    new = opened()
    expected = Case(
        case_id=new.case_id,
        guard="idle_gpu",
        check="idle",
        rule="night",
        rule_digest=NIGHT.digest,
        terms=terms(NIGHT),
        mode=Mode.ENFORCE,
        subject=BOX.ref,
        run_epoch="epoch-7",
        owner="vision",
        name="notebook-7",
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=0,
        opened_at=NOW,
        since=NOW,
        reason=Reason(ReasonCode.WAITING, {"verb": "warn"}),
        climbed=(),
        attempt=1,
        failures=0,
        decision_id="",
        claimed_at=None,
        snoozed_until=None,
        closed_at=None,
        version=0,
    )
    assert new == replace(expected, decision_id=decision_id(expected))


def test_a_case_id_is_short_enough_to_type() -> None:
    """People answer with it on the command line."""
    assert len(opened().case_id) == 16


def test_every_case_has_an_id_of_its_own() -> None:
    other = instance("i-8")
    again = advance(None, seen(BOX, finding=FOUND, rule=NIGHT, now=NOW + DAY)).case
    beside = advance(None, seen(other, finding=finding(other), rule=NIGHT)).case
    assert again is not None
    assert beside is not None
    assert len({opened().case_id, again.case_id, beside.case_id}) == 3


def test_a_closed_case_does_not_keep_a_new_one_from_opening() -> None:
    over = case(status=CaseStatus.CLOSED, closed_at=NOW - DAY)
    step = advance(over, seen())
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert step.case.case_id != over.case_id


@pytest.mark.parametrize("unseen", [{"instance": None}, {"finding": None}, {"rule": None}])
def test_what_is_only_half_seen_opens_nothing(unseen: dict[str, Any]) -> None:
    assert advance(None, seen(**unseen)).case is None


def test_observe_opens_a_case_with_its_notice_rehearsed() -> None:
    watching = rule(mode=Mode.OBSERVE)
    step = advance(None, seen(rule=watching))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.rung, step.case.climbed, step.case.since) == (1, (ClimbedRung(Verb.WARN, NOW),), NOW)
    assert step.case.reason == Reason(ReasonCode.CONFIRMED, {"verb": "warn"})


def test_an_upgrade_voids_no_approval() -> None:
    """Approvals, intents and notices in a ledger are bound to this id: it is the same in every version."""
    fixed = replace(case(), rule_digest="digest")
    assert decision_id(fixed) == "5590c578f470262d62048065"


@pytest.mark.parametrize(
    "change",
    [
        {"case_id": "case-2"},
        {"rung": 2},
        {"subject": instance("i-2").ref},
        {"run_epoch": "epoch-2"},
        {"rule_digest": "other"},
        {"attempt": 2},
    ],
)
def test_an_approval_fits_one_decision_only(change: dict[str, Any]) -> None:
    assert decision_id(replace(case(), **change)) != decision_id(case())
