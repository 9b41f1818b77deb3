"""Token buckets and back-off."""

from __future__ import annotations

import pytest

from costguard.providers.aws.core.session import RATES, family_of
from costguard.providers.aws.iam.permissions import OPERATIONS
from costguard.providers.kit.core.pacing import Pacer


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def pacer(self) -> Pacer:
        return Pacer(RATES, monotonic=lambda: self.now, sleep=lambda _: None, chance=lambda: 0.5)


def test_a_full_bucket_waits_for_nothing_then_by_its_rate() -> None:
    pacer = Time().pacer()

    waits = [pacer.reserve("a", "r", "ec2:start-stop") for _ in range(8)]

    assert waits == [0, 0, 0, 0, 0, 1, 2, 3]


def test_a_bucket_refills_but_never_beyond_its_size() -> None:
    time = Time()
    pacer = time.pacer()
    for _ in range(5):
        pacer.reserve("a", "r", "ec2:start-stop")
    time.now += 1_000

    assert [pacer.reserve("a", "r", "ec2:start-stop") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_accounts_regions_and_families_do_not_share() -> None:
    pacer = Time().pacer()
    for _ in range(5):
        pacer.reserve("a", "r", "ec2:start-stop")

    assert pacer.reserve("b", "r", "ec2:start-stop") == 0
    assert pacer.reserve("a", "s", "ec2:start-stop") == 0
    assert pacer.reserve("a", "r", "ec2:read") == 0


def test_back_off_doubles_up_to_a_bound_and_is_jittered() -> None:
    pacer = Time().pacer()

    assert [pacer.back_off(attempt) for attempt in range(7)] == [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("operation", "family"),
    [
        ("ec2:DescribeInstances", "ec2:read"),
        ("ec2:DescribeAddresses", "ec2:unpaged"),
        ("ec2:StopInstances", "ec2:start-stop"),
        ("ec2:TerminateInstances", "ec2:change"),
        ("cloudwatch:GetMetricData", "cloudwatch:GetMetricData"),
        ("organizations:ListAccounts", "organizations"),
    ],
)
def test_calls_are_paced_by_what_aws_throttles_together(operation: str, family: str) -> None:
    assert family_of(operation, changes=OPERATIONS[operation].changes_something) == family
