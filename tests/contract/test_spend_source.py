"""What every `SpendSource` promises, run on each provider: see `spend_rigs.py` for what a provider brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from tests.builders import fact, instance, shard_facts
from tests.contract.spend_rigs import DAY, HOUR, MEMBERS_DISCOUNT, START, SpendRig, WireRig, day_of, tells_tax
from tests.contract.spend_worlds import WIRES, WORLDS
from tests.world_ports.translate import to_product

from cloudstand.world.billing import Charge, billed_until, charges, final_until
from cloudstand.world.fleet import MachineSpec
from costguard.domain.errors import AccessDeniedError, ThrottledError
from costguard.domain.money import (
    Bill,
    ChargeCategory,
    HourlyRate,
    Money,
    NetSource,
    PricingCategory,
    SpendLine,
    SpendReport,
    SpendScope,
    VendorBudget,
)
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind, Instance
from costguard.estimates.billed import condensed
from costguard.estimates.net_rates import with_net_rates

EVERYTHING = SpendScope()


@pytest.fixture(params=sorted(WORLDS))
def rig(request: pytest.FixtureRequest) -> Iterator[SpendRig]:
    with WORLDS[request.param]() as made:
        yield made


@pytest.fixture(params=sorted(WIRES))
def wire(request: pytest.FixtureRequest) -> Iterator[WireRig]:
    with WIRES[request.param]() as made:
        yield made


def month(rig: SpendRig) -> datetime:
    return day_of(rig.cloud, 2026, 3, 1)


def read(
    rig: SpendRig, *scopes: SpendScope, since: datetime | None = None, organisation: bool = True
) -> list[SpendReport]:
    target = rig.target(organisation=organisation)
    reports = rig.source().read(target, scopes, since or month(rig), rig.now())
    assert set(reports) == set(scopes)
    return [reports[scope] for scope in scopes]


def complete(report: SpendReport) -> datetime:
    assert report.gaps == ()
    assert report.complete_until is not None
    return report.complete_until


def settled(report: SpendReport) -> list[SpendLine]:
    """The lines on which one may rely."""
    until = complete(report)
    return [line for line in report.lines if line.charge_period_end <= until]


def truth(rig: SpendRig, scope: SpendScope, since: datetime, until: datetime) -> list[Charge]:
    return [
        charge
        for charge in charges(rig.world, rig.cloud, since, until)
        if scope.holds(rig.cloud, charge.account, charge.region, charge.tags or {})
    ]


def total(amounts: Iterable[Money]) -> Decimal:
    return sum((money.amount for money in amounts), Decimal(0))


def assert_true(rig: SpendRig, report: SpendReport, scope: SpendScope, since: datetime | None = None) -> None:
    """What is settled adds up to what really arose, in both costs."""
    found, real = settled(report), truth(rig, scope, since or month(rig), complete(report))
    leeway = rig.precision * max(len(found), len(real))
    assert abs(total(line.billed_cost for line in found) - total(to_product(c.billed) for c in real)) <= leeway
    assert abs(total(line.effective_cost for line in found) - total(to_product(c.effective) for c in real)) <= leeway
    assert total(to_product(c.effective) for c in real) > 0, "an empty scope proves nothing"


def of_category(report: SpendReport, category: ChargeCategory) -> list[SpendLine]:
    return [line for line in settled(report) if line.charge_category is category]


def test_what_is_settled_adds_up_to_what_arose(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING)
    assert complete(report) > month(rig)
    assert_true(rig, report, EVERYTHING)


def test_every_line_is_of_this_cloud_in_its_currency_and_of_a_day_at_most(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING)
    currencies = {charge.billed.currency for charge in charges(rig.world, rig.cloud, month(rig), START)}
    assert {line.cloud for line in report.lines} == {rig.cloud}
    assert {line.billing_account_id for line in report.lines} == {rig.places.payer}
    assert {line.billed_cost.currency for line in report.lines} == currencies
    assert {line.effective_cost.currency for line in report.lines} == currencies
    for line in report.lines:
        assert line.charge_period_start.utcoffset() == timedelta(0)
        assert timedelta(0) < line.charge_period_end - line.charge_period_start <= DAY
    assert report.source


def test_no_report_claims_more_than_the_bill_holds(rig: SpendRig) -> None:
    """For a day and more, while the bill is renewed at its own times."""
    since = rig.now() - 3 * DAY
    claimed = []
    for _ in range(16):
        (report,) = read(rig, EVERYTHING, since=since)
        claimed.append(complete(report))
        assert claimed[-1] <= billed_until(rig.cloud, rig.now())
        rig.advance(2 * HOUR)
    assert claimed == sorted(claimed)
    assert claimed[-1] > claimed[0], "as time passes more is settled"


def test_what_is_settled_later_is_true_as_well(rig: SpendRig) -> None:
    for _ in range(3):
        rig.advance(31 * HOUR)
        (report,) = read(rig, EVERYTHING)
        assert_true(rig, report, EVERYTHING)


def test_an_account_of_the_organisation_has_its_own_spend(rig: SpendRig) -> None:
    scopes = [SpendScope(accounts=(account,)) for account in (rig.places.payer, rig.places.member)]
    everything, *parts = read(rig, EVERYTHING, *scopes)
    for report, scope in zip(parts, scopes, strict=True):
        assert_true(rig, report, scope)
        assert {line.sub_account_id for line in report.lines} == set(scope.accounts or ())
    whole = total(line.billed_cost for line in settled(everything))
    summed = sum((total(line.billed_cost for line in settled(part)) for part in parts), Decimal(0))
    assert abs(whole - summed) <= rig.precision * sum(len(part.lines) for part in (everything, *parts))


def test_two_accounts_named_together_are_told_apart(rig: SpendRig) -> None:
    scope = SpendScope(accounts=(rig.places.payer, rig.places.member))
    (report,) = read(rig, scope)
    assert_true(rig, report, scope)
    assert {line.sub_account_id for line in report.lines} == set(scope.accounts or ())


def test_without_the_organisation_only_the_own_account_is_read(rig: SpendRig) -> None:
    mine, others = SpendScope(accounts=(rig.places.payer,)), SpendScope(accounts=(rig.places.member,))
    everything, theirs = read(rig, EVERYTHING, others, organisation=False)
    assert_true(rig, everything, mine)
    assert theirs.lines == ()


def test_a_region_scope_holds_what_the_region_is_charged(rig: SpendRig) -> None:
    for scope in (
        SpendScope(regions=(rig.places.home,)),
        SpendScope(regions=(rig.places.away,)),
        SpendScope(regions=(rig.places.home, rig.places.away)),
    ):
        (report,) = read(rig, scope)
        assert_true(rig, report, scope)
        assert {line.region_id for line in report.lines} == set(scope.regions or ())


def test_a_tag_scope_holds_what_carries_the_tag(rig: SpendRig) -> None:
    team = SpendScope(tags=(("team", "research"),))
    project = SpendScope(tags=(("project", "vision"), ("team", "research")))
    elsewhere = SpendScope(accounts=(rig.places.member,), regions=(rig.places.away,), tags=(("team", "research"),))
    for scope, report in zip((team, project, elsewhere), read(rig, team, project, elsewhere), strict=True):
        assert_true(rig, report, scope)
        assert all(scope.holds_line(line) for line in report.lines)


def test_nested_scopes_never_hold_more_than_what_they_are_nested_in(rig: SpendRig) -> None:
    company, team, project = read(
        rig,
        EVERYTHING,
        SpendScope(tags=(("team", "research"),)),
        SpendScope(tags=(("project", "vision"), ("team", "research"))),
    )
    sums = [
        total(line.effective_cost for line in of_category(each, ChargeCategory.USAGE))
        for each in (company, team, project)
    ]
    assert sums[0] > sums[1] > sums[2] > 0


def test_no_charges_are_an_empty_report_and_no_gap(rig: SpendRig) -> None:
    (report,) = read(rig, SpendScope(tags=(("team", "nobody"),)))
    assert complete(report) > month(rig)
    assert report.lines == ()


def test_an_empty_list_of_accounts_or_regions_holds_nothing(rig: SpendRig) -> None:
    for scope in (SpendScope(accounts=()), SpendScope(regions=())):
        (report,) = read(rig, scope)
        assert report.lines == ()
        assert report.gaps == ()


def test_refunds_credits_and_tax_are_told_apart(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING)
    for category, amount in (
        (ChargeCategory.ADJUSTMENT, "-7.31"),
        (ChargeCategory.CREDIT, "-25.00"),
        (ChargeCategory.TAX, "18.07" if tells_tax(rig.cloud) else "0"),
    ):
        found = of_category(report, category)
        # of the billed costs, AWS takes a contract's discount off by lines of their own
        assert total(line.effective_cost for line in found) == Decimal(amount), category


def test_a_purchase_is_billed_and_what_it_pays_for_is_amortised(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING)
    bought = of_category(report, ChargeCategory.PURCHASE)
    assert total(line.billed_cost for line in bought) > 0
    assert total(line.effective_cost for line in bought) == 0
    used = [
        line for line in of_category(report, ChargeCategory.USAGE) if line.pricing_category is PricingCategory.COMMITTED
    ]
    assert total(line.billed_cost for line in used) == 0
    assert total(line.effective_cost for line in used) > 0


def test_machines_and_platforms_with_accelerators_are_known(rig: SpendRig) -> None:
    """What no machine explains is the platform: its lines are accelerated, and name no machine's type."""
    (report,) = read(rig, EVERYTHING)
    usage = [line for line in of_category(report, ChargeCategory.USAGE) if line.accelerated]
    machines = [line for line in usage if line.instance_type]
    platform = [line for line in usage if not line.instance_type]
    real = [
        c
        for c in truth(rig, EVERYTHING, month(rig), complete(report))
        if to_product(c.category) is ChargeCategory.USAGE
    ]
    leeway = rig.precision * len(real)
    types = {machine.spec.instance_type for machine in rig.world.machines.values()}
    assert {line.instance_type for line in machines} == types
    ran = {(charge.account, charge.instance_type) for charge in real if charge.service == "compute"}
    assert {(line.sub_account_id, line.instance_type) for line in machines} == ran, "though no account was named"
    assert {line.sub_account_id for line in platform} == {c.account for c in real if c.service == "ai_platform"}
    computed = total(to_product(charge.effective) for charge in real if charge.service == "compute")
    assert abs(total(line.effective_cost for line in machines) - computed) <= leeway
    rented = total(to_product(charge.effective) for charge in real if charge.service == "ai_platform")
    assert abs(total(line.effective_cost for line in platform) - rented) <= leeway
    assert all(line.service_name for line in usage)


def test_a_bill_tells_what_use_would_have_cost_at_list_price(rig: SpendRig) -> None:
    """So that a discount is measured: by account, of what is used outside commitments and not bought on spot."""
    (report,) = read(rig, EVERYTHING)
    ratios = {}
    for account in (rig.places.payer, rig.places.member):
        used = [
            line
            for line in settled(report)
            if (line.sub_account_id, line.charge_category) == (account, ChargeCategory.USAGE)
            and line.accelerated
            and line.instance_type
            and line.pricing_category is PricingCategory.STANDARD
        ]
        listed = [line.list_cost for line in used if line.list_cost is not None]
        assert used
        assert len(listed) == len(used)
        ratios[account] = total(line.effective_cost for line in used) / total(listed)

    assert round(ratios[rig.places.member], 3) == 1 - MEMBERS_DISCOUNT
    assert round(ratios[rig.places.payer], 3) == 1


def test_the_bill_that_a_ledger_keeps_measures_the_price_after_discounts(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING, since=month(rig))
    machines = [to_product_machine(spec) for spec in rig.world.fleet if spec.billing.value == "on_demand"]
    kept = Bill(rig.cloud, condensed(report.lines), month(rig), report.complete_until, rig.now(), report.source)
    listed = HourlyRate(Money(Decimal(10), report.lines[0].billed_cost.currency), "list", "2026-03-10")
    facts = shard_facts(*(replace(fact(each), rate=listed) for each in machines))

    (priced,) = with_net_rates((facts,), (), {rig.cloud: (kept,)}, rig.now())

    nets = {each.instance.ref.account: each.rate.net for each in priced.instances if each.rate is not None}
    member, payer = nets[rig.places.member], nets[rig.places.payer]
    assert member is not None
    assert (member.source, member.discount) == (NetSource.BILL, MEMBERS_DISCOUNT)
    assert member.money == Money(Decimal("7.5"), listed.money.currency)
    assert payer is not None
    assert payer.discount == 0, "a bill without a discount is a measurement too"


def to_product_machine(spec: MachineSpec) -> Instance:
    there = ResourceRef(spec.cloud, spec.account, spec.region, "instance", spec.native_id)
    return instance(ref=there, instance_type=spec.instance_type)


def test_what_commitments_pay_for_and_what_is_no_machine_tells_no_list_price(rig: SpendRig) -> None:
    (report,) = read(rig, EVERYTHING)
    beside = [
        line
        for line in report.lines
        if line.pricing_category is PricingCategory.COMMITTED or line.charge_category is not ChargeCategory.USAGE
    ]

    assert beside
    assert all(line.list_cost is None for line in beside)


def test_no_line_crosses_the_end_of_a_month(rig: SpendRig) -> None:
    february, march = day_of(rig.cloud, 2026, 2, 1), month(rig)
    (both,) = read(rig, EVERYTHING, since=february)
    (later,) = read(rig, EVERYTHING)
    assert not [line for line in both.lines if line.charge_period_start < march < line.charge_period_end]
    assert_true(rig, both, EVERYTHING, february)
    since_march = [line for line in settled(both) if line.charge_period_start >= march]
    leeway = rig.precision * len(both.lines)
    difference = total(line.billed_cost for line in since_march) - total(line.billed_cost for line in settled(later))
    assert abs(difference) <= leeway


def test_the_bill_says_whose_days_it_counts_in(rig: SpendRig) -> None:
    """Rates of exchange are dated by days of the bill: China's first of March begins on the last of February in UTC."""
    (report,) = read(rig, EVERYTHING)
    whole = [line for line in settled(report) if line.charge_period_end - line.charge_period_start == DAY]
    begins = [line.charge_period_start.astimezone(ZoneInfo(report.zone)) for line in whole]
    assert {(at.hour, at.minute) for at in begins} == {(0, 0)}
    assert min(begins).date() == date(2026, 3, 1)


def test_the_bill_says_from_when_on_it_may_still_change(rig: SpendRig) -> None:
    """On the tenth the month before is final by every vendor's documents, and the present one is not."""
    (report,) = read(rig, EVERYTHING)
    assert report.final_until == day_of(rig.cloud, 2026, 3, 1)
    assert report.final_until <= final_until(rig.cloud, rig.now())


def test_what_may_not_be_read_is_never_nothing(rig: SpendRig) -> None:
    rig.deny()
    try:
        (report,) = read(rig, EVERYTHING)
    except AccessDeniedError:
        pass
    else:
        assert [gap.kind for gap in report.gaps] == [GapKind.DENIED]
        assert report.complete_until is None
        assert report.lines == ()


def test_budgets_of_the_console_are_read(rig: SpendRig) -> None:
    currency = next(charge.billed.currency for charge in charges(rig.world, rig.cloud, month(rig), START))
    budget = VendorBudget(
        cloud=rig.cloud,
        account=rig.places.payer,
        name="research-gpus",
        amount=Money(Decimal("5000.50"), currency),
        period="monthly",
        scope=rig.console_scope(),
        actual_thresholds=("50", "80", "100"),
        forecast_thresholds=("100",),
    )
    rig.set_up_budget(budget)
    (found,) = rig.source().budgets(rig.target())
    assert (found.cloud, found.account, found.name) == (budget.cloud, budget.account, budget.name)
    assert (found.amount, found.period) == (budget.amount, budget.period)
    all_of_it = (
        found.scope == budget.scope
        and found.actual_thresholds == budget.actual_thresholds
        and found.forecast_thresholds == budget.forecast_thresholds
    )
    assert all_of_it == (found.unsupported == ""), "what is not told is said"


def test_a_console_without_budgets_has_none(rig: SpendRig) -> None:
    assert list(rig.source().budgets(rig.target())) == []


def test_a_scope_of_another_cloud_is_empty_and_costs_no_request(wire: WireRig) -> None:
    other = "alibaba" if wire.cloud != "alibaba" else "tencent"
    (report,) = read(wire, SpendScope(clouds=(other,)))
    assert report.lines == ()
    assert complete(report) == wire.now()
    assert wire.requests() == []


def test_only_reading_leaves_the_process(wire: WireRig) -> None:
    read(wire, EVERYTHING, SpendScope(tags=(("team", "research"),)))
    wire.source().budgets(wire.target())
    assert wire.requests()
    assert wire.changes() == []


def test_what_a_read_costs_is_bounded(wire: WireRig) -> None:
    """The same slice in other words is asked for once."""
    read(wire, EVERYTHING)
    once = len(wire.requests())
    assert 0 < once <= wire.most_requests
    read(wire, EVERYTHING, SpendScope(clouds=(wire.cloud,)))
    assert len(wire.requests()) <= 2 * once


def test_a_bill_of_many_pages_is_read_whole(wire: WireRig) -> None:
    read(wire, EVERYTHING)
    once = len(wire.requests())
    wire.small_pages()
    (report,) = read(wire, EVERYTHING)
    assert len(wire.requests()) > 2 * once
    assert_true(wire, report, EVERYTHING)


def test_throttling_is_waited_out(wire: WireRig) -> None:
    wire.throttle(2)
    (report,) = read(wire, EVERYTHING)
    assert_true(wire, report, EVERYTHING)


def test_throttling_without_end_is_a_gap(wire: WireRig) -> None:
    wire.throttle(1_000)
    try:
        (report,) = read(wire, EVERYTHING)
    except ThrottledError:
        pass
    else:
        assert [gap.kind for gap in report.gaps] == [GapKind.THROTTLED]
        assert report.complete_until is None
