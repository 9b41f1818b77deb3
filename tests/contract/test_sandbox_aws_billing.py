"""Cost Explorer and Budgets of the embedded AWS, asked with the SDK: as strict as the API documents itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends
from tests.contract.aws_spend_rig import AwsSpendRig, aws_spend
from tests.contract.aws_stand_in import setup_client

from cloudstand.world.billing import bill

MARCH = {"Start": "2026-03-01", "End": "2026-03-11"}
ASKED: dict[str, Any] = {"TimePeriod": MARCH, "Granularity": "DAILY", "Metrics": ["UnblendedCost"]}
SERVICE = {"Type": "DIMENSION", "Key": "SERVICE"}


@pytest.fixture(scope="module")
def rig() -> Iterator[AwsSpendRig]:
    """Read by every test, changed by none for longer than itself."""
    with aws_spend() as made:
        yield made


@pytest.fixture(scope="module")
def costs(rig: AwsSpendRig) -> Iterator[Any]:
    with closing(client(rig, "ce")) as made:
        yield made


def client(rig: AwsSpendRig, service: str, region: str = "us-east-1", account: str = "") -> Any:
    key = iam_backends[account or rig.places.payer]["aws"].create_temp_access_key()
    keys = {"AWS_ACCESS_KEY_ID": key.access_key_id, "AWS_SECRET_ACCESS_KEY": key.secret_access_key}
    return setup_client(service, rig.aws.url, region, keys)


def refusal(costs: Any, **changed: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        costs.get_cost_and_usage(**{**ASKED, **changed})
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def dimension(key: str, *values: str) -> dict[str, Any]:
    return {"Dimensions": {"Key": key, "Values": list(values)}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"Metrics": []}, "Metrics"),
        ({"Metrics": ["Price"]}, "Metrics"),
        ({"Granularity": "WEEKLY"}, "Granularity"),
        ({"GroupBy": [SERVICE, {"Type": "TAG", "Key": "team"}, {"Type": "TAG", "Key": "project"}]}, "two"),
        ({"GroupBy": [SERVICE, SERVICE]}, "differ"),
        ({"GroupBy": [{"Type": "DIMENSION", "Key": "REGION"}]}, "REGION"),
        ({"GroupBy": [{"Type": "DIMENSION", "Key": "COLOUR"}]}, "COLOUR"),
        ({"TimePeriod": {"Start": "2026-03-02", "End": "2026-03-02"}}, "before"),
        ({"TimePeriod": {"Start": "2026-03-02T00:00:00Z", "End": "2026-03-03T00:00:00Z"}}, "YYYY-MM-DD"),
        ({"TimePeriod": {"Start": "2026-02-30", "End": "2026-03-03"}}, "2026-02-30"),
        ({"TimePeriod": {"Start": "2026-03-11", "End": "2026-03-12"}}, "current date"),
        ({"TimePeriod": {"Start": "2026-03-01", "End": "2026-03-13"}}, "future"),
        ({"TimePeriod": {"Start": "2024-03-01", "End": "2026-03-03"}}, "historical"),
        ({"Filter": {}}, "one operator"),
        ({"Filter": {**dimension("SERVICE", "Tax"), "Tags": {"Key": "team", "Values": ["x"]}}}, "one operator"),
        ({"Filter": {"And": [dimension("SERVICE", "Tax")]}}, "2 operands"),
        ({"Filter": dimension("SERVICE")}, "Values"),
        ({"Filter": dimension("PLATFORM", "Linux")}, "PLATFORM"),
        ({"Filter": {"CostCategories": {"Key": "teams", "Values": ["x"]}}}, "cost categories"),
    ],
)
def test_a_question_that_does_not_fit_is_refused(costs: Any, changed: dict[str, Any], said: str) -> None:
    code, message = refusal(costs, **changed)
    assert code == "ValidationException"
    assert said in message


def test_hours_have_to_be_paid_for_first(costs: Any) -> None:
    assert refusal(costs, Granularity="HOURLY")[0] == "AccessDeniedException"


def total(answer: dict[str, Any], metric: str = "UnblendedCost") -> Decimal:
    groups = [group["Metrics"] for day in answer["ResultsByTime"] for group in day["Groups"]]
    plain = [day["Total"] for day in answer["ResultsByTime"] if day["Total"]]
    return sum((Decimal(each[metric]["Amount"]) for each in (*groups, *plain)), Decimal(0))


def test_days_months_and_groups_add_up_to_the_worlds_bill(rig: AwsSpendRig, costs: Any) -> None:
    since = rig.now().replace(day=1, hour=0)
    expected = sum((charge.billed.amount for charge in bill(rig.world, "aws", since, rig.now())), Decimal(0))
    by_day = costs.get_cost_and_usage(**ASKED)
    by_month = costs.get_cost_and_usage(**{**ASKED, "Granularity": "MONTHLY"})
    by_service = costs.get_cost_and_usage(**ASKED, GroupBy=[SERVICE, {"Type": "TAG", "Key": "team"}])
    for answer in (by_day, by_month, by_service):
        assert abs(total(answer) - expected) < Decimal("1e-7")
    assert len(by_day["ResultsByTime"]) == 10
    assert len(by_month["ResultsByTime"]) == 1
    teams = {group["Keys"][1] for day in by_service["ResultsByTime"] for group in day["Groups"]}
    assert teams == {"team$", "team$research", "team$product"}
    assert all(day["Estimated"] for day in by_day["ResultsByTime"])


def test_a_month_that_was_invoiced_is_no_estimate(costs: Any) -> None:
    february = {"Start": "2026-02-01", "End": "2026-03-01"}
    answer = costs.get_cost_and_usage(**{**ASKED, "TimePeriod": february})
    assert not any(day["Estimated"] for day in answer["ResultsByTime"])


def test_filters_part_what_there_is(costs: Any) -> None:
    tax = dimension("RECORD_TYPE", "Tax")
    whole = total(costs.get_cost_and_usage(**ASKED))
    parts = [
        total(costs.get_cost_and_usage(**ASKED, Filter=each))
        for each in (tax, {"Not": tax}, {"Or": [tax, {"Not": tax}]}, {"And": [tax, {"Not": tax}]})
    ]
    assert parts[0] == Decimal("18.07")
    assert parts[0] + parts[1] == parts[2] == whole
    assert parts[3] == 0
    untagged = {"Tags": {"Key": "team", "MatchOptions": ["ABSENT"]}}
    empty = {"Tags": {"Key": "team", "Values": [""]}}
    found = [total(costs.get_cost_and_usage(**ASKED, Filter=each)) for each in (untagged, empty)]
    assert found[0] == found[1] > 0


def test_pages_hold_every_group_once_and_every_day(rig: AwsSpendRig, costs: Any) -> None:
    question = {**ASKED, "GroupBy": [SERVICE]}
    whole = costs.get_cost_and_usage(**question)
    explorer = rig.aws.gateway.billing.costs
    before, explorer.page_size = explorer.page_size, 2
    days, groups = [], []
    token: str | None = ""
    while token is not None:
        more = {"NextPageToken": token} if token else {}
        page = costs.get_cost_and_usage(**question, **more)
        days += [day["TimePeriod"]["Start"] for day in page["ResultsByTime"]]
        groups += [group for day in page["ResultsByTime"] for group in day["Groups"]]
        token = page.get("NextPageToken")
    another = refusal(costs, GroupBy=[SERVICE], Metrics=["BlendedCost"], NextPageToken=_token_of(costs, question))
    explorer.page_size = before
    assert sorted(set(days)) == [day["TimePeriod"]["Start"] for day in whole["ResultsByTime"]]
    assert groups == [group for day in whole["ResultsByTime"] for group in day["Groups"]]
    assert another[0] == "RequestChangedException"
    assert refusal(costs, NextPageToken="made up")[0] == "InvalidNextTokenException"


def _token_of(costs: Any, question: dict[str, Any]) -> str:
    return str(costs.get_cost_and_usage(**question)["NextPageToken"])


def test_each_account_sees_its_own_and_the_first_sees_all(rig: AwsSpendRig) -> None:
    linked = [{"Type": "DIMENSION", "Key": "LINKED_ACCOUNT"}]
    seen = {}
    for account in (rig.places.payer, rig.places.member):
        with closing(client(rig, "ce", account=account)) as own:
            answer = own.get_cost_and_usage(**ASKED, GroupBy=linked)
            seen[account] = {group["Keys"][0] for day in answer["ResultsByTime"] for group in day["Groups"]}
    assert seen == {
        rig.places.payer: {rig.places.payer, rig.places.member},
        rig.places.member: {rig.places.member},
    }


def test_tags_are_listed_to_the_payer_only(rig: AwsSpendRig, costs: Any) -> None:
    rig.aws.gateway.billing.costs.inactive_tags.add("project")
    listed = costs.list_cost_allocation_tags(TagKeys=["team", "project", "unheard-of"])["CostAllocationTags"]
    active = costs.list_cost_allocation_tags(Status="Active")["CostAllocationTags"]
    rig.aws.gateway.billing.costs.inactive_tags.clear()
    assert {tag["TagKey"]: tag["Status"] for tag in listed} == {"team": "Active", "project": "Inactive"}
    assert {tag["TagKey"] for tag in active} == {"Name", "team"}
    with (
        closing(client(rig, "ce", account=rig.places.member)) as own,
        pytest.raises(ClientError, match="Linked account"),
    ):
        own.list_cost_allocation_tags()


def test_both_services_are_at_home_in_one_region(rig: AwsSpendRig) -> None:
    with closing(client(rig, "ce", "eu-west-1")) as elsewhere, pytest.raises(ClientError, match="valid region"):
        elsewhere.get_cost_and_usage(**ASKED)


def test_budgets_are_shown_to_their_own_account(rig: AwsSpendRig) -> None:
    with closing(client(rig, "budgets")) as budgets:
        with pytest.raises(ClientError, match="not authorized"):
            budgets.describe_budgets(AccountId=rig.places.member)
        with pytest.raises(ClientError, match="MaxResults"):
            budgets.describe_budgets(AccountId=rig.places.payer, MaxResults=1001)
        with pytest.raises(ClientError, match="has no"):
            budgets.delete_budget(AccountId=rig.places.payer, BudgetName="any")
        assert budgets.describe_budgets(AccountId=rig.places.payer)["Budgets"] == []
