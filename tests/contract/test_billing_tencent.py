"""Reading Tencent Cloud's bill over its emulator: what the contract suite leaves to this vendor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.spend_rigs import DAY, START, day_of, scene
from tests.contract.tencent_spend import TencentSpendRig, bought_at_launch, tencent_spend
from tests.contract.tencent_world import Between, patient_pacer
from tests.world_ports.translate import to_product, to_world

from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.billing import charges
from cloudstand.world.records import OtherCharge
from costguard.domain.errors import ProviderError
from costguard.domain.money import ChargeCategory, Money, SpendReport, SpendScope
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.tencent.billing.source import COARSE, MONTHS_OF_TERMS, SOURCE, TencentSpend
from costguard.providers.tencent.core.session import TencentSession

EVERYTHING = SpendScope()
RESEARCH = SpendScope(tags=(("team", "research"),))
MARCH = day_of("tencent", 2026, 3, 1)


@pytest.fixture
def rig() -> Iterator[TencentSpendRig]:
    with tencent_spend() as made:
        yield made


def read(
    rig: TencentSpendRig, scope: SpendScope = EVERYTHING, source: TencentSpend | None = None, **more: Any
) -> SpendReport:
    target = more.pop("target", None) or rig.target(organisation=more.pop("organisation", True))
    since, until = more.pop("since", MARCH), more.pop("until", rig.now())
    return (source or rig.source()).read(target, [scope], since, until)[scope]


def billed(report: SpendReport) -> Decimal:
    return sum((line.billed_cost.amount for line in report.lines), Decimal(0))


def session_to(rig: TencentSpendRig, url: str) -> TencentSession:
    return TencentSession(keys=to_product(rig.emulator.keys), endpoint=url, pacer=patient_pacer(), now=rig.now)


@contextmanager
def answered_otherwise(rig: TencentSpendRig, action: str, edit: Any) -> Iterator[TencentSpend]:
    """A source to which answers to `action` come as `edit` leaves them."""
    between = Between(rig.emulator.url)
    between.change(action, edit)
    session = session_to(rig, between.url)
    try:
        yield TencentSpend(session, now=rig.now, months_of_terms=1)
    finally:
        session.close()
        between.close()


def test_a_bill_that_is_being_prepared_is_no_spend_of_zero(rig: TencentSpendRig) -> None:
    rig.emulator.desk.ready = False
    report = read(rig)
    assert (report.complete_until, report.lines) == (None, ())
    (gap,) = report.gaps
    assert (gap.kind, gap.fix) == (GapKind.UNAVAILABLE, "run again in ten minutes")


def test_totals_that_are_being_built_are_no_spend_of_zero(rig: TencentSpendRig) -> None:
    code = "FailedOperation.SummaryDataNotReady"
    rig.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeBillSummaryByProduct", 9, code=code))
    report = read(rig)
    assert (report.complete_until, [gap.kind for gap in report.gaps]) == (None, [GapKind.UNAVAILABLE])


def test_a_total_that_is_too_small_ends_no_reading(rig: TencentSpendRig) -> None:
    whole = read(rig)
    rig.emulator.desk.total_short_by = 30
    rig.small_pages()
    assert billed(read(rig)) == billed(whole)


def test_fewer_records_than_announced_are_a_gap(rig: TencentSpendRig) -> None:
    def more(fields: dict[str, Any]) -> None:
        if fields["Total"] is not None:
            fields["Total"] += 1_000

    with answered_otherwise(rig, "DescribeBillDetail", more) as source:
        report = read(rig, source=source)
    assert (report.complete_until, [gap.kind for gap in report.gaps]) == (None, [GapKind.TRUNCATED])


def test_a_record_that_comes_twice_counts_once(rig: TencentSpendRig) -> None:
    """A bill grows while it is read, and what stood on one page stands on the next as well."""

    def twice(fields: dict[str, Any]) -> None:
        fields["DetailSet"] += fields["DetailSet"][:20]

    with answered_otherwise(rig, "DescribeBillDetail", twice) as source:
        assert billed(read(rig, source=source)) == billed(read(rig))


def test_the_same_page_again_is_a_gap(rig: TencentSpendRig) -> None:
    first: list[Any] = []

    def again(fields: dict[str, Any]) -> None:
        first.extend(fields["DetailSet"] if not first else ())
        fields["DetailSet"] = list(first)

    with answered_otherwise(rig, "DescribeBillDetail", again) as whole:
        source = TencentSpend(whole._session, now=rig.now, page_rows=20, months_of_terms=1)  # noqa: SLF001 - the session that is answered otherwise
        report = read(rig, source=source)
    (gap,) = report.gaps
    assert gap.kind is GapKind.TRUNCATED
    assert "the same page came twice" in gap.detail


def test_what_the_detail_leaves_out_is_a_line_and_a_gap(rig: TencentSpendRig) -> None:
    whole = billed(read(rig))
    rig.emulator.desk.left_out = frozenset({"support-2"})
    report = read(rig)
    assert billed(report) == whole
    (line,) = [line for line in report.lines if line.resource_name == "not in the bill's detail"]
    assert (line.billed_cost, line.service_name) == (Money(Decimal("29.00000000"), "CNY"), "p_support")
    (gap,) = report.gaps
    assert gap.kind is GapKind.TRUNCATED
    assert "29.00 CNY of p_support" in gap.detail


def test_a_region_and_a_tag_of_which_the_detail_lacks_something_have_a_gap_each(rig: TencentSpendRig) -> None:
    machine = next(m for m in rig.world.machines.values() if m.tags.get("project") == "vision")
    rig.emulator.desk.left_out = frozenset({machine.native_id})
    region = read(rig, SpendScope(regions=(rig.places.home,)))
    assert any(f"of {rig.places.home}" in gap.detail for gap in region.gaps)
    assert any("of team=research" in gap.detail for gap in read(rig, RESEARCH).gaps)


def test_a_tag_that_bills_do_not_tell_is_a_gap_of_its_scopes_alone(rig: TencentSpendRig) -> None:
    rig.emulator.desk.tag_keys = frozenset({"project"})
    reports = rig.source().read(rig.target(), [EVERYTHING, RESEARCH], MARCH, rig.now())
    assert reports[EVERYTHING].gaps == ()
    (gap,) = reports[RESEARCH].gaps
    assert gap.kind is GapKind.UNREADABLE
    assert gap.fix == "make 'team' a cost allocation tag in the billing console"


def test_members_that_pay_for_themselves_are_read_as_well(rig: TencentSpendRig) -> None:
    whole = billed(read(rig))
    rig.emulator.desk.pay_themselves = frozenset({rig.places.member})
    report = read(rig)
    assert billed(report) == whole
    payers = {line.sub_account_id: line.billing_account_id for line in report.lines}
    assert payers == {account: account for account in (rig.places.payer, rig.places.member)}


def test_a_member_whose_bill_may_not_be_read_is_a_gap_and_the_others_count(rig: TencentSpendRig) -> None:
    rig.emulator.desk.pay_themselves = frozenset({rig.places.member})

    def of_member(fields: dict[str, Any]) -> None:
        if all(record["PayerUin"] == rig.places.member for record in fields["DetailSet"]) and fields["DetailSet"]:
            fields["DetailSet"][0]["ComponentSet"] = "none"

    with answered_otherwise(rig, "DescribeBillDetail", of_member) as source:
        report = read(rig, source=source)
    assert report.complete_until is not None
    assert [gap.shard.account for gap in report.gaps] == [rig.places.member]
    assert {line.sub_account_id for line in report.lines} == {rig.places.payer}


def test_a_member_alone_is_read_from_what_others_pay_for_it(rig: TencentSpendRig) -> None:
    """Its own bill is empty, which is not zero."""
    member = Target("tencent", account=rig.places.member, role="costguard")
    mine = read(rig, target=member)
    assert mine.gaps == ()
    assert {line.sub_account_id for line in mine.lines} == {rig.places.member}
    assert {line.billing_account_id for line in mine.lines} == {""}
    assert billed(mine) == billed(read(rig, SpendScope(accounts=(rig.places.member,))))


def test_an_empty_bill_of_nobodys_member_is_not_taken_for_zero() -> None:
    made = bought_at_launch(scene("tencent"))
    with TencentEmulator(made.door) as emulator:
        rig = TencentSpendRig(made, emulator)
        for machine in rig.world.machines.values():
            machine.spec = replace(machine.spec, account=rig.places.member)
        rig.world.other_charges.clear()
        emulator.desk.pay_themselves = frozenset({rig.places.member})
        report = read(rig, organisation=False)
        rig.close()
    assert (report.lines, report.complete_until) == ((), None)
    assert [gap.kind for gap in report.gaps] == [GapKind.UNREADABLE]


def test_charges_by_the_hour_are_lines_by_the_day(rig: TencentSpendRig) -> None:
    by_day = read(rig)
    rig.emulator.desk.settled = timedelta(hours=1)
    by_hour = read(rig)
    assert {line.charge_period_start for line in by_hour.lines} == {line.charge_period_start for line in by_day.lines}
    assert len(by_hour.lines) == len(by_day.lines)
    assert abs(billed(by_hour) - billed(by_day)) < Decimal("1e-4")


def test_what_is_settled_by_the_month_is_spread_over_its_days(rig: TencentSpendRig) -> None:
    february = day_of("tencent", 2026, 2, 1)
    money = Money(Decimal("100.01"), "CNY")
    span = february, MARCH
    rig.world.charge(
        OtherCharge(
            "tencent", rig.places.payer, "", "line", to_world(ChargeCategory.USAGE), *span, to_world(money), "line-1"
        )
    )
    found = [line for line in read(rig, since=february).lines if line.resource_id == "line-1"]
    assert len(found) == 28
    assert sum(line.billed_cost.amount for line in found) == Decimal("100.01")


def test_days_beyond_what_is_kept_are_a_gap(rig: TencentSpendRig) -> None:
    report = read(rig, since=START - timedelta(days=700))
    (gap,) = report.gaps
    assert "keeps 18 months, back to 2024-10" in gap.detail
    assert billed(report) > billed(read(rig))


def test_a_bill_too_large_to_be_read_is_read_from_daily_series(rig: TencentSpendRig) -> None:
    scopes = [
        EVERYTHING,
        RESEARCH,
        SpendScope(accounts=(rig.places.member,)),
        SpendScope(accounts=(rig.places.payer, rig.places.member), regions=(rig.places.home, rig.places.away)),
    ]
    fine = rig.source().read(rig.target(), scopes, MARCH, rig.now())
    large = TencentSpend(rig._session, now=rig.now, most_rows=10, months_of_terms=1)  # noqa: SLF001 - the rig's own
    before = len(rig.requests())
    coarse = large.read(rig.target(), scopes, MARCH, rig.now())
    assert len(rig.requests()) - before < 30
    for scope in scopes:
        assert (fine[scope].source, coarse[scope].source) == (SOURCE, COARSE)
        assert coarse[scope].gaps == ()
        assert coarse[scope].complete_until == fine[scope].complete_until
        paid = [line for line in fine[scope].lines if line.charge_category not in _NOT_IN_SERIES]
        assert abs(billed(coarse[scope]) - sum(line.billed_cost.amount for line in paid)) < Decimal("1e-5")
        assert all(scope.holds_line(line) for line in coarse[scope].lines)
    assert {line.service_name for line in coarse[EVERYTHING].lines} >= {"p_cvm", "p_cbs", "p_tione"}
    assert any(line.accelerated for line in coarse[EVERYTHING].lines if line.service_name == "p_tione")


_NOT_IN_SERIES = {ChargeCategory.CREDIT, ChargeCategory.TAX}


def test_what_cannot_be_asked_of_a_large_bill_is_a_gap(rig: TencentSpendRig) -> None:
    large = TencentSpend(rig._session, now=rig.now, most_rows=10, months_of_terms=1)  # noqa: SLF001 - the rig's own
    two_tags = SpendScope(tags=(("project", "vision"), ("team", "research")))
    nowhere = SpendScope(regions=("ap-atlantis",))
    reports = large.read(rig.target(), [two_tags, nowhere, EVERYTHING], MARCH, rig.now())
    assert [gap.kind for gap in reports[two_tags].gaps] == [GapKind.UNREADABLE]
    assert "ap-atlantis" in reports[nowhere].gaps[0].detail
    assert reports[EVERYTHING].gaps == ()


def test_a_large_bill_of_one_account_alone_stays_with_it(rig: TencentSpendRig) -> None:
    large = TencentSpend(rig._session, now=rig.now, most_rows=10, months_of_terms=1)  # noqa: SLF001 - the rig's own
    mine = read(rig, source=large, organisation=False)
    assert {line.sub_account_id for line in mine.lines} == {rig.places.payer}
    others = SpendScope(accounts=(rig.places.member,))
    assert read(rig, others, large, organisation=False).lines == ()


def test_a_missing_permission_is_named_as_cam_calls_it(rig: TencentSpendRig) -> None:
    rig.emulator.allowed[rig.places.payer] = {"sts:GetCallerIdentity"}
    (gap,) = read(rig).gaps
    assert gap.fix == "grant finance:DescribeBillSummaryByProduct to these credentials"


def test_a_large_bill_that_somebody_else_pays_is_a_gap(rig: TencentSpendRig) -> None:
    """The daily series of an account are of its own bill, which is empty."""
    large = TencentSpend(rig._session, now=rig.now, most_rows=10, months_of_terms=1)  # noqa: SLF001 - the rig's own
    report = read(rig, source=large, target=Target("tencent", account=rig.places.member, role="costguard"))
    assert (report.lines, report.complete_until) == ((), None)
    assert "DescribeBillDetailForOrganization" in report.gaps[0].detail


def test_a_scope_of_no_accounts_or_no_regions_costs_no_request(rig: TencentSpendRig) -> None:
    for scope in (SpendScope(accounts=()), SpendScope(regions=())):
        assert read(rig, scope).lines == ()
    assert rig.requests() == []


def test_nothing_is_asked_about_a_time_to_come(rig: TencentSpendRig) -> None:
    report = read(rig, since=rig.now() + DAY, until=rig.now() + 9 * DAY)
    assert report.lines == ()
    assert report.complete_until is not None
    assert report.complete_until < rig.now()
    assert rig.requests() == []


def test_two_days_back_to_midnight_in_china_is_complete(rig: TencentSpendRig) -> None:
    assert read(rig).complete_until == datetime(2026, 3, 7, 16, tzinfo=timezone.utc)


def test_terms_paid_for_long_ago_are_asked_for_once(rig: TencentSpendRig) -> None:
    source = TencentSpend(rig._session, now=rig.now)  # noqa: SLF001 - the rig's own
    read(rig, source=source)
    assert rig.requests().count("billing:DescribeBillDetail") == 1 + MONTHS_OF_TERMS
    read(rig, source=source)
    assert rig.requests().count("billing:DescribeBillDetail") == 2 + MONTHS_OF_TERMS + 1, "the month before may change"


def test_effective_costs_of_a_term_end_where_its_machine_was_given_back(rig: TencentSpendRig) -> None:
    """What was paid is billed in full; the days after a refund cost nothing."""
    machine = next(m for m in rig.world.machines.values() if m.spec.prepaid_until is not None)

    def refunded(fields: dict[str, Any]) -> None:
        bought = [record for record in fields["DetailSet"] if record["ResourceId"] == machine.native_id]
        if bought and bought[0]["FeeBeginTime"] > "2026-03":
            back = {**bought[0], "ActionType": "prepay_return", "ActionTypeName": "包年包月退款", "Id": "9"}
            back |= {"FeeBeginTime": "2026-03-07 00:00:00", "FeeEndTime": "2026-03-07 00:00:00"}
            back |= {"BillDay": "2026-03-07 00:00:00"}
            amount = {"RealCost": "-100.00000000", "VoucherPayAmount": "0", "IncentivePayAmount": "0"}
            fields["DetailSet"].append({**back, "ComponentSet": [amount]})

    with answered_otherwise(rig, "DescribeBillDetail", refunded) as source:
        report = read(rig, source=source)
    mine = [line for line in report.lines if line.resource_id == machine.native_id]
    amortised = [line for line in mine if line.charge_category is ChargeCategory.USAGE]
    assert max(line.charge_period_end for line in amortised) == datetime(2026, 3, 6, 16, tzinfo=timezone.utc)
    (refund,) = [line for line in mine if line.charge_category is ChargeCategory.ADJUSTMENT]
    assert refund.billed_cost.amount == -100
    assert refund.effective_cost.amount == 0


def test_budgets_that_failed_in_the_second_layer_are_not_none(rig: TencentSpendRig) -> None:
    rig.emulator.desk.budget_code = 4001
    with pytest.raises(ProviderError, match="4001") as caught:
        rig.source().budgets(rig.target())
    assert caught.value.code == "Code.4001"


def test_the_truth_of_this_suite_is_not_empty(rig: TencentSpendRig) -> None:
    until = read(rig).complete_until
    assert until is not None
    assert sum(charge.billed.amount for charge in charges(rig.world, "tencent", MARCH, until)) > 1_000
