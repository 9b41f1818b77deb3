"""What reading the bill of AWS costs, and where it would be zero without being nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal

import pytest
from moto.iam.models import iam_backends
from tests.contract.aws_spend_rig import AwsSpendRig, FewTimes, aws_spend
from tests.contract.aws_stand_in import patient_pacer
from tests.contract.spend_rigs import DAY, START, day_of

from cloudstand.aws.core.server import Refused
from cloudstand.world.billing import charges
from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.money import Money, SpendReport, SpendScope, VendorBudget
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.aws.billing.source import MOST_REGIONS, AwsSpend
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import OPERATIONS
from costguard.providers.aws.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import SPENDING

EVERYTHING, RESEARCH = SpendScope(), SpendScope(tags=(("team", "research"),))
MARCH = day_of("aws", 2026, 3, 1)
WHO_PAYS, COSTS, TAGS = "organizations:DescribeOrganization", "ce:GetCostAndUsage", "ce:ListCostAllocationTags"


@pytest.fixture(scope="module")
def opened() -> Iterator[AwsSpendRig]:
    """No test lets time pass: one world serves them all."""
    with aws_spend() as made:
        yield made


@pytest.fixture
def rig(opened: AwsSpendRig) -> AwsSpendRig:
    opened.as_new()
    return opened


def read(rig: AwsSpendRig, scope: SpendScope, target: Target | None = None, since: datetime = MARCH) -> SpendReport:
    return rig.source().read(target or rig.target(), [scope], since, rig.now())[scope]


def refuse(rig: AwsSpendRig, operation: str, code: str) -> None:
    service, _, action = operation.partition(":")
    rig.aws.gateway.refused.append(Refused(service, action, code, "as told"))


def assert_lost(report: SpendReport, kind: GapKind, said: str) -> None:
    (gap,) = report.gaps
    assert (gap.what, gap.kind, gap.shard.region) == ("billing", kind, "")
    assert said in f"{gap.detail} {gap.fix}"
    assert report.lines == ()
    assert report.complete_until is None


@pytest.mark.parametrize(
    ("scope", "asked"),
    [
        (EVERYTHING, 4),  # all of it; EC2 at list price and reserved; SageMaker
        (SpendScope(accounts=("444455556666",)), 3),  # nothing reserved there
        (SpendScope(accounts=("111122223333", "444455556666")), 5),  # the accounts told apart
        (SpendScope(regions=("us-east-1", "eu-west-1")), 6),  # three for each
        (SpendScope(accounts=("111122223333",), regions=("eu-west-1",), tags=(("team", "product"),)), 1),  # nothing
    ],
)
def test_a_read_costs_as_few_requests_as_can_be(rig: AwsSpendRig, scope: SpendScope, asked: int) -> None:
    """Each is paid for; who pays the bill is asked for nothing."""
    rig.source().read(
        rig.target(), [scope, SpendScope(("aws",), scope.accounts, scope.regions, scope.tags)], MARCH, START
    )
    assert list(rig.requests()).count(COSTS) == asked
    assert set(rig.requests()) <= {WHO_PAYS, COSTS, TAGS}


def test_scopes_that_share_a_slice_share_its_requests(rig: AwsSpendRig) -> None:
    east, both = SpendScope(regions=("us-east-1",)), SpendScope(regions=("us-east-1", "eu-west-1"))
    found = rig.source().read(rig.target(), [east, both], MARCH, START)
    assert list(rig.requests()).count(COSTS) == 6
    assert [line for line in found[both].lines if line.region_id == "us-east-1"] == list(found[east].lines)


def test_a_tag_that_nobody_activated_is_a_gap_and_not_zero(rig: AwsSpendRig) -> None:
    rig.aws.gateway.billing.costs.inactive_tags.add("team")
    assert_lost(read(rig, RESEARCH), GapKind.UNREADABLE, "activate the tag")
    assert rig.requests() == [WHO_PAYS, COSTS, TAGS]


def test_a_tag_that_nothing_carries_is_a_gap_too(rig: AwsSpendRig) -> None:
    assert_lost(read(rig, SpendScope(tags=(("cost-centre", "42"),))), GapKind.UNREADABLE, "cost-centre")


def test_a_member_that_cannot_tell_whether_a_tag_is_active_does_not_say_zero(rig: AwsSpendRig) -> None:
    rig.aws.gateway.billing.costs.inactive_tags.add("team")
    assert_lost(read(rig, RESEARCH, rig.member()), GapKind.DENIED, "cost allocation tags")


def test_an_empty_tag_value_is_not_asked_for(rig: AwsSpendRig) -> None:
    """Cost Explorer gives what has no such tag as well."""
    assert_lost(read(rig, SpendScope(tags=(("team", ""),))), GapKind.UNREADABLE, "give the tag a value")
    assert COSTS not in rig.requests()


def test_more_regions_than_can_be_asked_for_are_a_gap(rig: AwsSpendRig) -> None:
    regions = tuple(f"us-made-up-{number}" for number in range(MOST_REGIONS + 1))
    assert_lost(read(rig, SpendScope(regions=regions)), GapKind.UNREADABLE, "name fewer regions")
    assert COSTS not in rig.requests()


def test_a_member_reads_its_own_bill(rig: AwsSpendRig) -> None:
    """By its role, and without net costs, which only the payer is sure to see."""
    report = read(rig, EVERYTHING, rig.member())
    assert report.gaps == ()
    assert report.complete_until is not None
    real = [
        charge
        for charge in charges(rig.world, "aws", MARCH, report.complete_until)
        if charge.account == rig.places.member
    ]
    found = [line for line in report.lines if line.charge_period_end <= report.complete_until]
    expected = sum((charge.effective.amount for charge in real), Decimal(0))
    assert abs(sum((line.effective_cost.amount for line in found), Decimal(0)) - expected) < Decimal("1e-6")
    assert {(line.billing_account_id, line.sub_account_id) for line in found} == {(rig.places.payer, rig.places.member)}
    assert metrics_asked(rig) == {("UnblendedCost", "AmortizedCost")}


def metrics_asked(rig: AwsSpendRig) -> set[tuple[str, ...]]:
    return {tuple(request["Metrics"]) for request in rig.aws.gateway.billing.costs.asked}


def test_the_payer_reads_net_costs(rig: AwsSpendRig) -> None:
    read(rig, EVERYTHING)
    assert metrics_asked(rig) == {("UnblendedCost", "NetAmortizedCost")}


def test_a_slice_of_nothing_is_complete_without_a_question(rig: AwsSpendRig) -> None:
    for scope in (SpendScope(accounts=()), SpendScope(regions=())):
        report = read(rig, scope)
        assert (report.lines, report.gaps, report.complete_until) == ((), (), START)
    assert COSTS not in rig.requests()


def test_the_permissions_for_reading_the_bill_are_those_used(rig: AwsSpendRig) -> None:
    read(rig, SpendScope(tags=(("team", "nobody"),)))
    rig.source().budgets(rig.target())
    used = {OPERATIONS[operation].permissions for operation in rig.requests()}
    (statement,) = policy_document(SPENDING)["Statement"]
    assert statement["Action"] == sorted({name for permissions in used for name in permissions})


def test_the_organisations_bill_is_not_taken_from_a_member(rig: AwsSpendRig) -> None:
    """Cost Explorer shows a member its own charges only, without a word."""
    key = iam_backends[rig.places.member]["aws"].create_temp_access_key()
    session = AwsSession(
        endpoint_url=rig.aws.url, keys=(key.access_key_id, key.secret_access_key), pacer=patient_pacer()
    )
    source = AwsSpend(session, now=rig.scene.clock.now)
    report = source.read(Target("aws", organisation=True), [EVERYTHING], MARCH, START)[EVERYTHING]
    session.close()
    assert_lost(report, GapKind.UNREADABLE, rig.places.payer)
    assert COSTS not in rig.requests()


def test_who_pays_for_an_organisation_has_to_be_known(rig: AwsSpendRig) -> None:
    refuse(rig, WHO_PAYS, "AccessDeniedException")
    assert_lost(read(rig, EVERYTHING), GapKind.DENIED, f"grant {WHO_PAYS}")


def test_one_account_is_read_without_knowing_who_pays(rig: AwsSpendRig) -> None:
    refuse(rig, WHO_PAYS, "AccessDeniedException")
    report = read(rig, EVERYTHING, rig.target(organisation=False))
    assert report.gaps == ()
    assert {line.sub_account_id for line in report.lines} == {rig.places.payer}


def test_an_account_without_an_organisation_pays_for_itself(rig: AwsSpendRig) -> None:
    refuse(rig, WHO_PAYS, "AWSOrganizationsNotInUseException")
    report = read(rig, EVERYTHING)
    assert report.gaps == ()
    assert {line.billing_account_id for line in report.lines} == {rig.places.payer}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("DataUnavailableException", GapKind.UNAVAILABLE),
        ("BillExpirationException", GapKind.UNREADABLE),
        ("InvalidNextTokenException", GapKind.UNREADABLE),
        ("AccessDeniedException", GapKind.DENIED),
    ],
)
def test_an_error_is_a_gap_and_is_paid_for_once(rig: AwsSpendRig, code: str, kind: GapKind) -> None:
    refuse(rig, COSTS, code)
    assert_lost(read(rig, EVERYTHING), kind, code)
    assert rig.requests() == [WHO_PAYS, COSTS]


def test_a_refusal_in_the_middle_leaves_no_half_of_a_slice(rig: AwsSpendRig) -> None:
    """One region is whole, the other is not: its lines stay away, and so does the claim to be complete."""
    once = FewTimes("ce", "GetCostAndUsage", "DataUnavailableException", "later", left=[0])
    rig.aws.gateway.refused.append(once)
    report = read(rig, SpendScope(regions=("eu-west-1", "us-east-1")))
    assert [gap.kind for gap in report.gaps] == [GapKind.UNAVAILABLE]
    assert {line.region_id for line in report.lines} == {"us-east-1"}
    assert report.complete_until is None


def test_days_older_than_aws_keeps_are_a_gap(rig: AwsSpendRig) -> None:
    assert_lost(read(rig, EVERYTHING, since=START - 500 * DAY), GapKind.UNREADABLE, "historical data")


def test_the_future_is_not_asked_for(rig: AwsSpendRig) -> None:
    source, later = rig.source(), START + 3 * DAY
    report = source.read(rig.target(), [EVERYTHING], later, later + DAY)[EVERYTHING]
    assert (report.lines, report.gaps) == ((), ())
    assert report.complete_until is not None
    assert report.complete_until <= START - DAY
    assert COSTS not in rig.requests()


def test_a_month_that_is_over_is_claimed_no_further_than_asked(rig: AwsSpendRig) -> None:
    report = rig.source().read(rig.target(), [EVERYTHING], MARCH - 28 * DAY, MARCH)[EVERYTHING]
    assert report.complete_until == MARCH
    assert max(line.charge_period_end for line in report.lines) == MARCH


def test_govcloud_is_billed_elsewhere() -> None:
    """Its charges are on the bill of the standard accounts; nothing is asked."""
    session = AwsSession(cloud="aws-us-gov", endpoint_url="http://127.0.0.1:9", keys=("made-up", "made-up"))
    source = AwsSpend(session, now=lambda: datetime(2026, 3, 10, tzinfo=timezone.utc))
    report = source.read(Target("aws-us-gov"), [EVERYTHING], MARCH, START)[EVERYTHING]
    assert_lost(report, GapKind.UNREADABLE, "paired")
    with pytest.raises(ProviderError, match="paired"):
        source.budgets(Target("aws-us-gov"))
    assert session.calls_made() == ()


def a_budget(name: str, account: str, scope: SpendScope) -> VendorBudget:
    return VendorBudget("aws", account, name, Money(Decimal(100), "USD"), "monthly", scope)


def test_budgets_come_in_pages_and_say_what_is_spent(rig: AwsSpendRig) -> None:
    rig.small_pages()
    for name in ("first", "second", "third"):
        rig.set_up_budget(a_budget(name, rig.places.payer, SpendScope(accounts=(rig.places.payer,))))
    rig.set_up_budget(a_budget("not mine", rig.places.member, EVERYTHING))
    found = rig.source().budgets(rig.target())
    assert [budget.name for budget in found] == ["first", "second", "third"]
    assert [request.split(":")[0] for request in rig.requests()].count("budgets") == 6
    assert all(budget.spent is not None and budget.spent.amount > 100 for budget in found)


def test_a_budget_without_a_filter_covers_whom_its_account_pays_for(rig: AwsSpendRig) -> None:
    for account in (rig.places.payer, rig.places.member):
        rig.set_up_budget(a_budget("all of it", account, EVERYTHING))
    (of_payer,) = rig.source().budgets(rig.target())
    (of_member,) = rig.source().budgets(rig.member())
    assert of_payer.scope == SpendScope(clouds=("aws",))
    assert of_member.scope == SpendScope(clouds=("aws",), accounts=(rig.places.member,))


def test_everything_a_console_budget_says_is_read(rig: AwsSpendRig) -> None:
    budget = VendorBudget(
        "aws",
        rig.places.payer,
        "team",
        Money(Decimal("12.5"), "USD"),
        "quarterly",
        rig.console_scope(),
        ("50", "99.5"),
        ("110",),
    )
    rig.set_up_budget(budget)
    (found,) = rig.source().budgets(rig.target())
    assert found.spent == Money(Decimal("0.000"), "USD")
    assert (found.scope, found.actual_thresholds, found.forecast_thresholds) == (
        budget.scope,
        budget.actual_thresholds,
        budget.forecast_thresholds,
    )
    assert (found.amount, found.period, found.unsupported) == (budget.amount, "quarterly", "")


def test_budgets_that_may_not_be_read_raise(rig: AwsSpendRig) -> None:
    rig.deny()
    with pytest.raises(AccessDeniedError, match="budgets:ViewBudget"):
        rig.source().budgets(rig.target())
