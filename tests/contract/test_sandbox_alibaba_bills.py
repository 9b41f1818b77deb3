"""Bills and budgets of the emulated Alibaba Cloud: whose, of which site, how late, in which pages; and our reading."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.alibaba_asking import AT, DAY, HANGZHOU, Cloud, cloud_of
from tests.contract.alibaba_world import patient_pacer
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba.billing.console_budgets import ConsoleBudget
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.world import workload as does
from cloudstand.world.billing import bill, billed_until
from cloudstand.world.kinds import Billing
from cloudstand.world.records import Operation, OtherCharge
from costguard.domain.errors import RefusedError
from costguard.domain.money import ChargeCategory, Money, SpendReport, SpendScope
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.alibaba.billing.source import AlibabaSpend
from costguard.providers.alibaba.core.errors import fix_for
from costguard.providers.alibaba.core.session import AlibabaSession

MEMBER = "1876543210987654"
A_HOUR = Decimal("12.7")  # of the fleet's machines, in CNY
RECORDS, OVERVIEW, SUMS = "DescribeInstanceBill", "QueryBillOverview", "QueryAccountBill"
BUDGETS = "DescribeCostBudgetsSummary"
MARCH_1 = AT.replace(day=1, hour=0) - timedelta(hours=8)
FEBRUARY = {"BillingCycle": "2026-02"}
A_DAY = {**FEBRUARY, "Granularity": "DAILY", "BillingDate": "2026-02-27"}


def other(category: ChargeCategory, amount: str, service: str, account: str = MEMBER) -> OtherCharge:
    start, money = MARCH_1 - 3 * DAY, Money(Decimal(amount), "CNY")
    return OtherCharge(
        "alibaba", account, HANGZHOU, service, to_world(category), start, start + DAY, to_world(money), f"{service}-1"
    )


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    since = AT - 9 * DAY
    fleet = (
        alibaba_machine("own", does.idle(), since, tags={"team": "nlp"}),
        alibaba_machine("theirs", does.idle(), since, account=MEMBER, tags={"team": "vision"}),
        alibaba_machine(
            "ahead", does.idle(), since, account=MEMBER, billing=Billing.PREPAID, prepaid_until=since + 30 * DAY
        ),
    )
    with cloud_of(*fleet) as opened:
        yield opened


def items(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found = answer["Data"]["Items"]
    return list(found["Item"] if isinstance(found, dict) else found)


def in_body(cloud: Cloud, action: str, parameters: dict[str, str] | None = None, region: str = HANGZHOU) -> str:
    """The code of a refusal that came as HTTP 200."""
    answer = cloud.ask(action, parameters, region=region)
    assert answer["Success"] is (answer["Code"] == "Success")
    return str(answer["Code"])


def test_a_day_has_a_record_for_each_resource_and_kind(cloud: Cloud) -> None:
    found = {(each["InstanceID"][:2], each["OwnerID"]): each for each in items(cloud.ask(RECORDS, A_DAY))}

    assert set(found) == {("i-", ALIBABA_ACCOUNT), ("i-", MEMBER), ("d-", ALIBABA_ACCOUNT), ("d-", MEMBER)}
    own = found["i-", ALIBABA_ACCOUNT]
    assert (own["Item"], own["ProductCode"], own["Currency"]) == ("PayAsYouGoBill", "ecs", "CNY")
    assert (own["Region"], own["Tag"]) == ("华东1（杭州）", "key:team value:nlp")
    assert (own["BillingDate"], own["BillAccountID"]) == ("2026-02-27", ALIBABA_ACCOUNT)
    assert (own["InstanceSpec"], own["NickName"]) == ("ecs.gn7i-c8g1.2xlarge\t", "own")
    assert own["PretaxAmount"] == float(24 * A_HOUR)


def test_an_order_is_a_record_of_its_day_and_says_what_it_paid_for(cloud: Cloud) -> None:
    orders = items(cloud.ask(RECORDS, FEBRUARY, SubscriptionType="Subscription"))
    (order,) = orders

    assert (order["Item"], order["ServicePeriod"], order["ServicePeriodUnit"]) == (
        "SubscriptionOrder",
        str(30 * 86_400),
        "秒",
    )
    days = [f"2026-02-{day}" for day in range(21, 28)]
    dated = [
        day for day in days if items(cloud.ask(RECORDS, {**A_DAY, "BillingDate": day}, SubscriptionType="Subscription"))
    ]
    assert len(dated) == 1


def test_a_bill_is_as_late_as_the_worlds_and_its_details_a_day_later(cloud: Cloud) -> None:
    until = billed_until("alibaba", AT)
    assert until < AT
    march = {"BillingCycle": "2026-03", "Granularity": "DAILY"}

    today = cloud.ask(RECORDS, march, BillingDate="2026-03-02")
    assert sum(each["PretaxAmount"] for each in items(today)) == pytest.approx(
        float(sum(charge.billed.amount for charge in bill(cloud.world, "alibaba", MARCH_1 + DAY, AT)))
    )
    fresh = items(cloud.ask(RECORDS, march, BillingDate="2026-03-01"))
    assert {(each["InstanceSpec"], each["NickName"]) for each in fresh} == {("", "")}


def test_pages_of_records_go_on_by_token(cloud: Cloud) -> None:
    first = cloud.ask(RECORDS, A_DAY, MaxResults="3")["Data"]
    second = cloud.ask(RECORDS, A_DAY, MaxResults="3", NextToken=first["NextToken"])["Data"]

    assert [len(page["Items"]) for page in (first, second)] == [3, 2]
    assert (first["TotalCount"], second["NextToken"]) == (5, "")


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        (RECORDS, {"BillingCycle": "2026-13"}, "InvalidParameter"),
        (RECORDS, {"BillingCycle": "2024-09"}, "InvalidParameter"),
        (RECORDS, {"BillingCycle": "2026-04"}, "InvalidParameter"),
        (RECORDS, {**FEBRUARY, "Granularity": "DAILY"}, "InvalidParameter"),
    ],
)
def test_refusals_come_as_success_with_a_code(cloud: Cloud, action: str, parameters: dict[str, str], code: str) -> None:
    assert in_body(cloud, action, parameters) == code


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        (RECORDS, {}, "MissingBillingCycle"),
        (RECORDS, {**FEBRUARY, "MaxResults": "301"}, "InvalidParameter"),
        (RECORDS, {**FEBRUARY, "BilingDate": "2026-02-27"}, "InvalidParameter"),
        (RECORDS, {**FEBRUARY, "NextToken": "bm9uZQ=="}, "InvalidParameter.NextToken"),
        (OVERVIEW, {**FEBRUARY, "Granularity": "DAILY"}, "InvalidParameter"),
        (SUMS, {**FEBRUARY, "PageSize": "301"}, "InvalidParameter"),
        (BUDGETS, {"MaxResults": "11"}, "InvalidParameter"),
        (BUDGETS, {"BudgetType": "money"}, "InvalidParameter"),
    ],
)
def test_parameters_are_checked(cloud: Cloud, action: str, parameters: dict[str, str], code: str) -> None:
    assert cloud.refusal(action, parameters) == code


def test_members_see_their_own_and_only_that(cloud: Cloud) -> None:
    keys = cloud.emulator.keys_of(MEMBER)
    assert {each["OwnerID"] for each in items(cloud.ask(RECORDS, A_DAY, keys=keys))} == {MEMBER}
    assert {each["OwnerID"] for each in items(cloud.ask(OVERVIEW, FEBRUARY, keys=keys))} == {MEMBER}
    chosen = items(cloud.ask(RECORDS, A_DAY, BillOwnerId=MEMBER))
    assert {each["OwnerID"] for each in chosen} == {MEMBER}


def test_sums_and_overview_agree_with_the_records_and_only_the_overview_has_tax(cloud: Cloud) -> None:
    cloud.world.charge(other(ChargeCategory.TAX, "18.07", "tax"))
    recorded = sum(each["PretaxAmount"] for each in items(cloud.ask(RECORDS, FEBRUARY, MaxResults="300")))
    overview, sums = items(cloud.ask(OVERVIEW, FEBRUARY)), items(cloud.ask(SUMS, FEBRUARY, IsGroupByProduct="true"))

    assert sum(each["PretaxAmount"] for each in overview) == pytest.approx(recorded)
    assert sum(each["PretaxAmount"] for each in sums) == pytest.approx(recorded)
    assert sum(each["Tax"] for each in overview) == pytest.approx(18.07)
    assert len(items(cloud.ask(SUMS, FEBRUARY))) == len({each["OwnerID"] for each in sums}) == 2
    assert cloud.ask(SUMS, FEBRUARY, PageSize="1", PageNum="2")["Data"]["TotalCount"] == 2


def test_a_denial_is_told_in_the_body(cloud: Cloud) -> None:
    cloud.emulator.allowed[ALIBABA_ACCOUNT] = {"bss:DescribeBillList"}
    assert [in_body(cloud, action, FEBRUARY) for action in (OVERVIEW, RECORDS)] == ["Success", "NotAuthorized"]
    del cloud.emulator.allowed[ALIBABA_ACCOUNT]
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, Operation.BILL)
    assert in_body(cloud, OVERVIEW, FEBRUARY) == in_body(cloud, BUDGETS) == "NotAuthorized"


def test_budgets_come_ten_a_page_to_whom_they_are_opened(cloud: Cloud) -> None:
    desk = cloud.emulator.bills
    desk.budgets += [ConsoleBudget(ALIBABA_ACCOUNT, f"team-{number}", Decimal(100)) for number in range(12)]
    desk.budgets += [
        ConsoleBudget(MEMBER, "theirs", Decimal(100)),
        ConsoleBudget(ALIBABA_ACCOUNT, "past", Decimal(100), over=True),
        ConsoleBudget(ALIBABA_ACCOUNT, "coverage", Decimal(80), kind="asset"),
    ]
    page = cloud.ask(BUDGETS, BudgetType="cost", BudgetStatus="notOverdue")["Data"]
    assert (len(page["Items"]), page["TotalCount"]) == (10, 12)
    assert page["Items"][0]["Budget"] == {"budgetCycleType": "monthly", "totalBudgetAmount": 100.0, "budgetMemo": ""}
    desk.beta = {MEMBER}
    assert in_body(cloud, BUDGETS) == "NotApplicable"


class Reader:
    """Our own reading of the same cloud."""

    def __init__(self, cloud: Cloud, site: str = "alibaba") -> None:
        self.cloud = cloud
        self.session = AlibabaSession(
            cloud=site,
            keys=to_product(cloud.emulator.keys),
            endpoint=cloud.emulator.url,
            pacer=patient_pacer(),
            now=cloud.clock.now,
            home_region="eu-central-1",  # wherever it runs, its site is asked
        )
        self.spend = AlibabaSpend(self.session, now=cloud.clock.now)
        self.target = Target(site, organisation=True)

    def read(self, *scopes: SpendScope, since: Any = MARCH_1 - 28 * DAY) -> list[SpendReport]:
        asked = scopes or (SpendScope(),)
        found = self.spend.read(self.target, asked, since, self.cloud.clock.now())
        return [found[scope] for scope in asked]


@pytest.fixture
def reader(cloud: Cloud) -> Iterator[Reader]:
    made = Reader(cloud)
    yield made
    made.session.close()


def test_the_wrong_site_is_said_with_its_fix(cloud: Cloud) -> None:
    made = Reader(cloud, "alibaba-intl")
    (report,) = made.read()
    made.session.close()

    (gap,) = report.gaps
    assert (report.lines, report.complete_until, gap.kind) == ((), None, GapKind.UNREADABLE)
    assert "NotApplicable" in gap.detail
    assert "alibaba-intl for the international one" in gap.fix


def test_a_missing_permission_is_one_gap_that_names_it(reader: Reader) -> None:
    reader.cloud.emulator.allowed[ALIBABA_ACCOUNT] = {"bssapi:DescribeInstanceBill"}
    (report,) = reader.read()

    (gap,) = report.gaps
    assert (report.lines, report.complete_until, gap.kind) == ((), None, GapKind.DENIED)
    assert gap.fix == "grant bss:DescribeBillList and bssapi:QueryBillOverview to these credentials"


def test_what_has_no_record_is_found_in_the_overview(reader: Reader) -> None:
    reader.cloud.world.charge(other(ChargeCategory.USAGE, "88.80", "domain"))
    (whole,) = reader.read()
    reader.cloud.emulator.bills.unrecorded.add("domain")
    again, hangzhou = reader.read(SpendScope(), SpendScope(regions=(HANGZHOU,)))

    def total(report: SpendReport) -> Decimal:
        return sum((line.billed_cost.amount for line in report.lines), Decimal(0))

    assert total(again) == total(whole)
    assert total(whole) - total(hangzhou) == Decimal("88.8"), "no region is told for it"
    (line,) = (line for line in again.lines if line.service_name == "domain")
    assert (line.billed_cost, line.sub_account_id) == (Money(Decimal("88.8"), "CNY"), MEMBER)
    assert line.charge_period_end == MARCH_1, "the last day of a cycle that is over"


def test_days_that_lost_their_records_are_not_called_complete(reader: Reader) -> None:
    (before,) = reader.read(since=MARCH_1)
    reader.cloud.emulator.bills.unrecorded |= {"ecs", "yundisk"}
    (after,) = reader.read(since=MARCH_1)

    assert before.complete_until == MARCH_1
    reader.cloud.clock.advance(3 * DAY)
    (later,) = reader.read(since=MARCH_1)
    reader.cloud.emulator.bills.unrecorded.clear()
    (healed,) = reader.read(since=MARCH_1)
    assert after.complete_until == later.complete_until == MARCH_1
    assert healed.complete_until == MARCH_1 + 3 * DAY


def test_a_bill_without_anything_says_nothing(cloud: Cloud) -> None:
    made = Reader(cloud)
    (report,) = made.read(since=MARCH_1 - 40 * DAY)
    assert report.complete_until is not None
    cloud.emulator.bills.unrecorded |= {"ecs", "yundisk"}
    empty = made.spend.read(made.target, [SpendScope()], MARCH_1 - 75 * DAY, MARCH_1 - 62 * DAY)[SpendScope()]
    made.session.close()
    assert (empty.lines, empty.complete_until, empty.gaps) == ((), None, ())


def test_tags_that_cannot_be_told_apart_are_a_gap_where_tags_are_asked_for(reader: Reader) -> None:
    reader.cloud.world.tag(reader.cloud.world.fleet[0].native_id, "note", "key:x value:y", by="owner")
    whole, team = reader.read(SpendScope(), SpendScope(tags=(("team", "nlp"),)))

    assert whole.gaps == ()
    (gap,) = team.gaps
    assert gap.kind is GapKind.UNREADABLE
    assert reader.cloud.world.fleet[0].native_id in gap.detail


def test_a_member_read_through_its_role_has_its_own_bill(reader: Reader) -> None:
    target = Target("alibaba", account=MEMBER, role="costguard")
    report = reader.spend.read(target, [SpendScope()], MARCH_1 - 5 * DAY, AT)[SpendScope()]

    assert report.gaps == ()
    assert {(line.billing_account_id, line.sub_account_id) for line in report.lines} == {(MEMBER, MEMBER)}


def test_budgets_of_the_console_are_read_whole(reader: Reader) -> None:
    desk = reader.cloud.emulator.bills
    desk.budgets += [
        ConsoleBudget(ALIBABA_ACCOUNT, f"team-{number}", Decimal("5000.5"), "quarterly", spent=Decimal("88.6"))
        for number in range(12)
    ]
    desk.budgets.append(ConsoleBudget(ALIBABA_ACCOUNT, "coverage", Decimal(80), kind="asset"))
    found = reader.spend.budgets(reader.target)

    assert [budget.name for budget in found] == [f"team-{number}" for number in range(12)]
    assert (found[0].period, found[0].amount) == ("quarterly", Money(Decimal("5000.5"), "CNY"))
    assert found[0].spent == Money(Decimal("88.6"), "CNY")
    assert found[0].unsupported


def test_budgets_that_are_not_opened_to_the_account_are_an_error_with_advice(reader: Reader) -> None:
    reader.cloud.emulator.bills.beta = set()
    with pytest.raises(RefusedError, match="NotApplicable") as caught:
        reader.spend.budgets(reader.target)
    assert "beta" in fix_for(caught.value)


@pytest.mark.parametrize(("action", "parameters"), [(OVERVIEW, FEBRUARY), (RECORDS, FEBRUARY), (BUDGETS, None)])
def test_an_account_of_the_other_site_is_refused(cloud: Cloud, action: str, parameters: dict[str, str] | None) -> None:
    """And the vendor's SDK takes it for success: why every answer is read for its code."""
    assert in_body(cloud, action, parameters, region="ap-southeast-1") == "NotApplicable"
