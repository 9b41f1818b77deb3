"""Keys: rotated as asked, as far as their vendor can, and nothing unsaid taken for off."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.findings import Finding, Verdict
from costguard.domain.keys import (
    CostKind,
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationCost,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.judge import judge, judge_key, remediation_of
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)
AUTOMATIC, ON_DEMAND = RotationMeans.AUTOMATIC, RotationMeans.ON_DEMAND
ANY = Rotatability(frozenset({AUTOMATIC, ON_DEMAND}), 90, 2560)
DISK = ResourceRef("aws", "111122223333", "us-east-1", "volume", "vol-1")
RULE = KeyRule("ninety-days", Mode.OBSERVE, KeySelector())


def key(**changes: Any) -> EncryptionKey:
    """A customer's symmetric key, rotated every 90 days, last a month ago."""
    ordinary = EncryptionKey(
        ref=ResourceRef("aws", "111122223333", "us-east-1", "key", "1234abcd"),
        spec="SYMMETRIC_DEFAULT",
        usage=KeyUsage.ENCRYPT,
        origin=KeyOrigin.CLOUD,
        state=KeyState.ENABLED,
        manager=KeyManager.CUSTOMER,
        rotation=RotationSetting(automatic=True, period_days=90, last_at=NOW - 30 * DAY),
        rotatability=ANY,
        aliases=("alias/training",),
        created_at=NOW - 400 * DAY,
        version="1",
    )
    return replace(ordinary, **changes)


def off(**changes: Any) -> EncryptionKey:
    return key(rotation=RotationSetting(automatic=False), **changes)


def judged(given: EncryptionKey, rule: KeyRule | None = RULE) -> list[Finding]:
    return list(judge_key(given, rule, NOW))


def said(given: EncryptionKey, rule: KeyRule | None = RULE) -> list[tuple[Verdict, ReasonCode]]:
    return [(finding.verdict, finding.reason.code) for finding in judged(given, rule)]


def mend(given: EncryptionKey, rule: KeyRule = RULE) -> Remediation | None:
    return next((found for one in judged(given, rule) if (found := remediation_of(given, rule, one)) is not None), None)


def every_days(days: int) -> Remediation:
    return Remediation(RemediationKind.SET_ROTATION, key().ref, {"days": str(days)})


def test_a_key_rotated_in_time_is_compliant() -> None:
    assert said(key()) == [(Verdict.COMPLIANT, ReasonCode.KEY_ROTATED)]


def test_rotation_that_is_off_is_a_violation_mended_by_the_period_asked_for() -> None:
    assert said(off()) == [(Verdict.VIOLATION, ReasonCode.KEY_ROTATION_OFF)]
    assert mend(off()) == every_days(90)


def test_rotation_that_the_cloud_does_not_tell_is_unmeasured_and_never_off() -> None:
    untold = key(rotation=RotationSetting(automatic=None))
    assert said(untold) == [(Verdict.UNMEASURED, ReasonCode.KEY_ROTATION_UNTOLD)]
    assert mend(untold) is None
    assert said(key(rotation=RotationSetting(automatic=True)))[0][0] is Verdict.UNMEASURED


def test_a_longer_period_is_a_violation_and_a_shorter_one_is_not() -> None:
    def every(days: int) -> EncryptionKey:
        return key(rotation=RotationSetting(automatic=True, period_days=days, last_at=NOW - DAY))

    assert said(every(91)) == [(Verdict.VIOLATION, ReasonCode.KEY_PERIOD_LONG)]
    assert mend(every(91)) == every_days(90)
    assert said(every(90))[0][0] is Verdict.COMPLIANT
    assert said(every(7))[0][0] is Verdict.COMPLIANT


def test_overdue_begins_some_days_after_the_date_and_is_mended_on_demand_where_allowed() -> None:
    late = key(rotation=RotationSetting(automatic=True, period_days=90, last_at=NOW - 93 * DAY - timedelta(seconds=1)))
    in_time = key(rotation=RotationSetting(automatic=True, period_days=90, last_at=NOW - 93 * DAY))
    assert said(late) == [(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)]
    assert said(in_time)[0][0] is Verdict.COMPLIANT
    assert mend(late) is None
    assert mend(late, replace(RULE, means=frozenset({AUTOMATIC, ON_DEMAND}))) == Remediation(
        RemediationKind.ROTATE_KEY, late.ref
    )


def test_a_finding_about_a_rotation_says_what_one_costs_also_that_it_is_not_known() -> None:
    priced = replace(ANY, cost=RotationCost(CostKind.FIRST_TWO, Money(Decimal(1), "USD"), "a price list", "2024-04-12"))
    (told,) = judged(off(rotatability=priced))
    assert told.reason.facts == {"wanted_days": 90, "cost": "first_two", "cost_monthly": "1.00 USD"}
    limited = replace(priced, shortest_days=365)
    none = Rotatability(frozenset())
    found = {
        one.reason.code: (one.reason.facts.get("cost"), one.reason.facts.get("cost_monthly"))
        for given in (
            off(),
            key(rotation=RotationSetting(automatic=True, period_days=365, last_at=NOW)),
            key(rotation=RotationSetting(automatic=True, period_days=90, last_at=NOW - 200 * DAY)),
            key(rotatability=none, rotation=RotationSetting(automatic=None, last_at=NOW - 100 * DAY)),
            key(rotatability=limited, rotation=RotationSetting(automatic=True, period_days=365, last_at=NOW)),
        )
        for one in judged(given)
        if one.verdict is Verdict.VIOLATION or one.reason.code is ReasonCode.KEY_VENDOR_LIMIT
    }
    assert found == {
        ReasonCode.KEY_ROTATION_OFF: ("unknown", None),
        ReasonCode.KEY_PERIOD_LONG: ("unknown", None),
        ReasonCode.KEY_OVERDUE: ("unknown", None),
        ReasonCode.KEY_CANNOT_ROTATE: ("unknown", None),
        ReasonCode.KEY_VENDOR_LIMIT: ("first_two", "1.00 USD"),
    }


def test_a_key_never_rotated_is_as_old_as_itself() -> None:
    never = key(rotation=RotationSetting(automatic=True, period_days=90), created_at=NOW - 200 * DAY)
    assert said(never) == [(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)]
    unknown = key(rotation=RotationSetting(automatic=True, period_days=90), created_at=None)
    assert said(unknown)[0][0] is Verdict.UNMEASURED


def test_a_vendor_that_cannot_go_that_short_is_shown_once_as_a_limit_and_not_as_red_for_ever() -> None:
    """Alibaba Cloud's default keys: exactly 365 days, and paid."""
    yearly = Rotatability(frozenset({AUTOMATIC}), 365, 365, "paid add-on")
    rotated = key(
        rotatability=yearly, rotation=RotationSetting(automatic=True, period_days=365, last_at=NOW - 300 * DAY)
    )
    assert said(rotated) == [
        (Verdict.COMPLIANT, ReasonCode.KEY_ROTATED),
        (Verdict.EXEMPT, ReasonCode.KEY_VENDOR_LIMIT),
    ]
    assert mend(off(rotatability=yearly)) == replace(every_days(365), parameters={"days": "365", "note": "paid add-on"})


def test_a_period_longer_than_the_vendor_offers_is_brought_down_to_it() -> None:
    short = Rotatability(frozenset({AUTOMATIC}), 7, 365)
    assert mend(off(rotatability=short), replace(RULE, rotate_every=700 * DAY)) == every_days(365)


NEVER = Rotatability(frozenset({RotationMeans.SUCCESSOR}), note="imported material")


def test_a_kind_that_cannot_be_rotated_is_judged_by_its_age_and_its_vendors_limit_said_once() -> None:
    def made(ago: timedelta, **more: Any) -> EncryptionKey:
        return key(rotatability=NEVER, rotation=RotationSetting(automatic=False), created_at=NOW - ago, **more)

    in_time = [(Verdict.COMPLIANT, ReasonCode.KEY_ROTATED), (Verdict.EXEMPT, ReasonCode.KEY_NEVER_ROTATES)]
    assert said(made(DAY)) == said(made(80 * DAY)) == said(made(90 * DAY)) == in_time
    assert said(made(93 * DAY)) == in_time
    old = made(93 * DAY + timedelta(seconds=1))
    assert said(old) == [(Verdict.VIOLATION, ReasonCode.KEY_CANNOT_ROTATE)]
    assert judged(old)[0].reason.facts["age_days"] == 93
    assert judged(old)[0].reason.facts["note"] == "imported material"
    assert mend(old) is None
    strict = replace(RULE, late_by=timedelta(0))
    assert said(made(90 * DAY), strict)[0][0] is Verdict.COMPLIANT
    assert said(made(90 * DAY + timedelta(seconds=1)), strict)[0][0] is Verdict.VIOLATION
    assert said(replace(made(DAY), created_at=None))[0] == (Verdict.UNMEASURED, ReasonCode.KEY_ROTATION_UNTOLD)


def test_new_material_of_a_kind_that_only_its_owner_can_rotate_counts_from_then() -> None:
    anew = key(rotatability=NEVER, rotation=RotationSetting(automatic=False, last_at=NOW - DAY))
    assert said(replace(anew, created_at=NOW - 900 * DAY))[0][0] is Verdict.COMPLIANT


def test_what_the_policy_alone_does_not_let_rotate_is_no_limit_of_the_vendor() -> None:
    only_by_hand = replace(RULE, means=frozenset({ON_DEMAND}))
    yearly = Rotatability(frozenset({AUTOMATIC}), 365, 365)
    young = off(rotatability=yearly, created_at=NOW - 80 * DAY)
    assert said(young, only_by_hand) == [(Verdict.COMPLIANT, ReasonCode.KEY_ROTATED)]
    old = off(rotatability=yearly, created_at=NOW - 100 * DAY)
    assert said(old, only_by_hand) == [(Verdict.VIOLATION, ReasonCode.KEY_CANNOT_ROTATE)]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"manager": KeyManager.CLOUD}, ReasonCode.KEY_OF_SERVICE),
        ({"multi_region": MultiRegion.REPLICA}, ReasonCode.KEY_REPLICA),
        ({"state": KeyState.PENDING_DELETION}, ReasonCode.KEY_GOING),
        ({"state": KeyState.DISABLED}, ReasonCode.KEY_STATE),
    ],
)
def test_what_is_not_ours_to_rotate_is_shown(changes: dict[str, Any], code: ReasonCode) -> None:
    assert said(off(**changes)) == [(Verdict.EXEMPT, code)]
    assert mend(off(**changes)) is None


@pytest.mark.parametrize("state", [KeyState.UNKNOWN, KeyState.UNAVAILABLE, KeyState.PENDING_IMPORT])
def test_a_key_in_another_state_is_not_judged(state: KeyState) -> None:
    assert said(off(state=state)) == [(Verdict.UNMEASURED, ReasonCode.KEY_STATE)]


def test_a_key_about_to_go_that_a_disk_still_names_is_a_violation_nobody_here_may_mend() -> None:
    going = key(state=KeyState.PENDING_DELETION, deletes_at=NOW + 7 * DAY, used_by=(DISK,))
    assert (Verdict.VIOLATION, ReasonCode.KEY_DELETED_IN_USE) in said(going)
    disabled = key(state=KeyState.DISABLED, used_by=(DISK,))
    assert (Verdict.VIOLATION, ReasonCode.KEY_DISABLED_IN_USE) in said(disabled)
    assert mend(going) is None
    assert mend(disabled) is None


def test_a_default_key_in_use_is_a_finding_only_where_the_policy_wants_ones_own() -> None:
    default = key(is_default=True, manager=KeyManager.CLOUD, used_by=(DISK,))
    wants_own = replace(RULE, customer_keys=True)
    assert (Verdict.VIOLATION, ReasonCode.KEY_IS_DEFAULT) in said(default, wants_own)
    assert (Verdict.VIOLATION, ReasonCode.KEY_IS_DEFAULT) not in said(default)
    assert (Verdict.VIOLATION, ReasonCode.KEY_IS_DEFAULT) not in said(replace(default, used_by=()), wants_own)


def test_without_a_rule_a_key_is_shown_and_not_judged() -> None:
    assert said(off(), None) == [(Verdict.EXEMPT, ReasonCode.NO_RULE)]


def test_where_rules_overlap_the_one_that_asks_least_decides() -> None:
    yearly = replace(RULE, name="yearly", rotate_every=365 * DAY)
    half = key(rotation=RotationSetting(automatic=True, period_days=180, last_at=NOW - 10 * DAY))
    (finding,) = judge([half], [RULE, yearly], NOW)
    assert (finding.rule, finding.verdict) == ("yearly", Verdict.COMPLIANT)


def test_a_selector_reads_aliases_without_their_prefix_and_an_empty_list_matches_nothing() -> None:
    assert KeySelector(aliases=("train*",)).matches(key())
    assert not KeySelector(aliases=("prod*",)).matches(key())
    assert not KeySelector(aliases=("*",)).matches(key(aliases=()))
    assert not KeySelector(regions=()).matches(key())
    assert not KeySelector(tags={}).matches(key(tags={"a": "b"}))
    assert KeySelector(tags={"a": "b"}).matches(key(tags={"a": "b"}))
    assert not replace(RULE, except_for=(KeySelector(aliases=("training",)),)).covers(key())


def test_an_exception_spares_a_key_whatever_the_spelling_of_its_tags() -> None:
    spared = KeySelector(tags={"purpose": "customer-demo"})
    assert not replace(RULE, except_for=(spared,)).covers(key(tags={"Purpose": "Customer_Demo"}))
    assert replace(RULE, except_for=(spared,)).covers(key(tags={"purpose": "training"}))
    assert not replace(RULE, applies_to=spared).covers(key(tags={"Purpose": "Customer_Demo"}))


def test_a_key_that_its_vendor_will_rotate_within_the_period_is_on_its_way() -> None:
    def coming(days: int, **changes: Any) -> EncryptionKey:
        setting = RotationSetting(automatic=True, period_days=90, next_at=NOW + days * DAY)
        return key(rotation=setting, created_at=NOW - 400 * DAY, **changes)

    assert said(coming(90)) == [(Verdict.COMPLIANT, ReasonCode.KEY_ROTATED)]
    assert said(coming(-3))[0][0] is Verdict.COMPLIANT
    assert said(coming(91)) == [(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)]
    assert said(coming(-4)) == [(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)]
    at_once = replace(RULE, means=frozenset({AUTOMATIC, ON_DEMAND}))
    assert said(coming(90), at_once) == [(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)]
