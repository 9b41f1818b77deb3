"""Values survive being stored, exactly, and bodies of every age can be read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import costguard.engine.ledger
from costguard.cases import Case, CaseStatus, ClimbedRung, Phase
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.errors import LedgerError, NewerSchemaError
from costguard.domain.findings import Evidence, Finding, Usage, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, ScopeRef, Shard
from costguard.domain.resources import Gap, GapKind
from costguard.domain.signals import SignalName, SignalSummary
from costguard.engine.ledger.codec import UPCASTERS, from_body, newest_schema, to_body, upcast, value_of
from costguard.guards.rules.common import Mode
from costguard.planning import Held, Plan, Rehearsed, RuleLimit, Transition
from costguard.ports import Record

moments = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)).map(  # noqa: DTZ001 - made aware
    lambda moment: moment.replace(tzinfo=timezone.utc)
)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
amounts = st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal("-1e9"), max_value=Decimal("1e9"))
money = st.builds(Money, amounts, st.sampled_from(["USD", "CNY"]))
parts = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=8)
refs = st.builds(ResourceRef, st.sampled_from(["aws", "aws-cn", "alibaba"]), parts, parts, parts, texts.filter(bool))
facts = st.dictionaries(texts, texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=4)
reasons = st.builds(Reason, st.sampled_from(ReasonCode), facts)
savings = st.builds(
    Saving,
    st.none() | money,
    st.lists(st.tuples(texts, st.none() | money), max_size=3).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)
actions = st.builds(
    Action,
    action_id=texts,
    decision_id=texts,
    verb=st.sampled_from(Verb),
    subject=refs,
    resource=refs,
    run_epoch=texts,
    case_id=texts,
    rung=st.integers(0, 5),
    rule=texts,
    rule_digest=texts,
    saving=st.none() | savings,
    parameters=st.dictionaries(texts, texts, max_size=3),
)
cases = st.builds(
    Case,
    case_id=texts,
    guard=texts,
    check=texts,
    rule=texts,
    rule_digest=texts,
    terms=texts,
    mode=st.sampled_from(Mode),
    subject=refs,
    run_epoch=texts,
    owner=texts,
    status=st.sampled_from(CaseStatus),
    phase=st.sampled_from(Phase),
    rung=st.integers(0, 5),
    opened_at=moments,
    since=moments,
    reason=reasons,
    climbed=st.lists(st.builds(ClimbedRung, st.sampled_from(Verb), moments), max_size=3).map(tuple),
    claimed_at=st.none() | moments,
    snoozed_until=st.none() | moments,
    closed_at=st.none() | moments,
    version=st.integers(0, 9),
)
signals = st.builds(
    SignalSummary,
    name=st.sampled_from(SignalName),
    device=texts,
    maximum=st.none() | st.floats(0, 1e12),
    samples=st.integers(0, 9000),
    expected=st.integers(0, 9000),
    newest_at=st.none() | moments,
    period=st.timedeltas(timedelta(0), timedelta(days=2)),
    source=texts,
)
findings = st.builds(
    Finding,
    guard=texts,
    check=texts,
    rule=texts,
    rule_digest=texts,
    subject=refs | st.builds(ScopeRef, texts),
    verdict=st.sampled_from(Verdict),
    reason=reasons,
    evidence=st.none() | st.builds(Evidence, moments, moments, st.lists(signals, max_size=2).map(tuple)),
    rate=st.none() | st.builds(HourlyRate, money, texts, texts),
    usage=st.none()
    | st.builds(Usage, st.floats(0, 400), st.integers(0, 400), st.integers(0, 400), st.integers(0, 400)),
)


def stored(value: object) -> Mapping[str, Any]:
    """What a ledger hands back: the body after a journey through JSON text."""
    body: Mapping[str, Any] = json.loads(json.dumps(to_body(value), allow_nan=False))
    return body


@given(cases)
def test_a_case_comes_back_exactly(case: Case) -> None:
    back = from_body(Case, stored(case))

    assert back == case
    assert repr(back.reason) == repr(case.reason)  # 1.0 is not 1 and "1" is not 1


@given(actions)
def test_an_action_comes_back_exactly(action: Action) -> None:
    back = from_body(Action, stored(action))

    assert back == action
    if action.saving is not None and action.saving.stops_billing is not None:
        assert back.saving is not None
        assert str(back.saving.stops_billing) == str(action.saving.stops_billing)


@given(st.data())
def test_a_plan_comes_back_exactly(data: st.DataObject) -> None:
    action, case, reason = data.draw(actions), data.draw(cases), data.draw(reasons)
    ref, when = data.draw(refs), data.draw(moments)
    plan = Plan(
        guard="idle_gpu",
        run_id="run",
        planned_at=when,
        policy_digest="digest",
        findings=tuple(data.draw(st.lists(findings, max_size=2))),
        transitions=(Transition(None, case), Transition(case, replace(case, version=3))),
        due=(action,),
        held=(Held(action, reason),),
        rehearsed=(Rehearsed(action, reason),),
        gaps=(Gap(Shard("aws", "1", "us-east-1"), "inventory", GapKind.DENIED, "no"),),
        limits=(RuleLimit("rule", 0, (data.draw(money),)),),
        kept={ref: (("volume", data.draw(money)), ("public_address", None))},
        instances_seen=7,
    )

    assert from_body(Plan, stored(plan)) == plan


@pytest.mark.parametrize("amount", ["0", "0.00", "-0.0", "1E+3", "1e-12", "123456789012345678901234567890.10"])
def test_an_amount_keeps_every_digit(amount: str) -> None:
    back = from_body(Money, stored(Money(Decimal(amount), "USD")))

    assert back.amount.as_tuple() == Decimal(amount).as_tuple()


def test_a_time_in_another_zone_is_the_same_moment() -> None:
    at = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=timezone(timedelta(hours=8)))

    back = from_body(ClimbedRung, stored(ClimbedRung(Verb.STOP, at)))

    assert back.at == at
    assert back.at.utcoffset() == timedelta(hours=8)


def test_a_damaged_body_is_a_ledger_error() -> None:
    body = to_body(Money(Decimal(1), "USD"))

    for damage in ({**body, "amount": "one"}, {"amount": "1"}, {**body, "currency": None}):
        with pytest.raises(LedgerError, match="Money"):
            from_body(Money, damage)


def test_a_damaged_resource_key_is_a_ledger_error() -> None:
    plan = Plan("g", "r", datetime(2026, 1, 1, tzinfo=timezone.utc), "d", (), (), (), (), (), ())

    with pytest.raises(LedgerError, match="Plan"):
        from_body(Plan, {**to_body(plan), "kept": {"not a resource": []}})


def test_a_value_that_could_not_be_read_again_is_not_stored() -> None:
    wrong: Any = "one"

    with pytest.raises(LedgerError, match="cannot be stored"):
        to_body(Money(wrong, "USD"))


@dataclass(frozen=True)
class Named:
    given: str
    family: str


UPCAST_TWICE = {
    ("name", 1): lambda body: {"whole": body["n"]},
    ("name", 2): lambda body: dict(zip(("given", "family"), body["whole"].split(" "), strict=True)),
}


def test_bodies_of_every_age_are_brought_to_today() -> None:
    ages = [
        Record("name", "a", {"n": "Gpu Owner"}, schema=1),
        Record("name", "a", {"whole": "Gpu Owner"}, schema=2),
        Record("name", "a", {"given": "Gpu", "family": "Owner"}, schema=3),
    ]

    assert newest_schema("name", UPCAST_TWICE) == 3
    assert {from_body(Named, upcast(record, UPCAST_TWICE)) for record in ages} == {Named("Gpu", "Owner")}


def test_a_record_of_a_newer_costguard_is_refused() -> None:
    with pytest.raises(NewerSchemaError, match="upgrade"):
        upcast(Record("name", "a", {}, schema=4), UPCAST_TWICE)
    with pytest.raises(NewerSchemaError):
        value_of(Money, Record("money", "a", {"amount": "1", "currency": "USD"}, schema=newest_schema("money") + 1))


def test_no_upcaster_is_missing_between_the_first_and_the_newest_schema() -> None:
    kinds = {kind for kind, _ in UPCASTERS}

    assert all((kind, schema) in UPCASTERS for kind in kinds for schema in range(1, newest_schema(kind)))


def test_importing_the_repositories_imports_no_heavy_library() -> None:
    folder = Path(costguard.engine.ledger.__file__).parent
    modules = sorted(path.stem for path in folder.glob("*.py"))
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module('costguard.engine.ledger.' + name)\n"
        "import costguard.adapters.ledgers\n"
        "print(sorted({'sqlalchemy', 'boto3', 'psycopg'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"
