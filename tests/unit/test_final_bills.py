"""From when on each vendor's documents promise that a month's bill is final, to the hour."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from cloudstand.world.billing import final_until as in_the_world
from costguard.providers.alibaba.billing.source import final_until as alibaba
from costguard.providers.aws.billing.source import final_until as aws
from costguard.providers.tencent.billing.requests import final_until as tencent

CHINA = timezone(timedelta(hours=8))
HOUR = timedelta(hours=1)


def on(month: int, day: int, hour: int = 0, zone: timezone = timezone.utc) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=zone)


@pytest.mark.parametrize(
    ("now", "final"),
    [
        (on(4, 1), on(3, 1)),
        (on(4, 8, 23), on(3, 1)),  # support is billed on the sixth or seventh, and shown within a day
        (on(4, 9), on(4, 1)),
        (on(4, 30, 23), on(4, 1)),
        (on(1, 3), on(12, 1).replace(year=2025)),
    ],
)
def test_on_aws_after_the_seventh(now: datetime, final: datetime) -> None:
    assert aws(now) == final


@pytest.mark.parametrize(
    ("now", "final"),
    [
        (on(4, 4, 23, CHINA), on(3, 1, 0, CHINA)),
        (on(4, 5, 0, CHINA), on(4, 1, 0, CHINA)),
        (on(4, 4, 16), on(4, 1, 0, CHINA)),  # the fifth in China
        (on(3, 31, 17), on(3, 1, 0, CHINA)),
    ],
)
def test_on_alibaba_cloud_after_the_fourth_in_china(now: datetime, final: datetime) -> None:
    assert alibaba(now) == final


@pytest.mark.parametrize(
    ("now", "final"),
    [
        (on(4, 6, 0, CHINA), on(3, 1, 0, CHINA)),
        (on(4, 6, 0, CHINA) + timedelta.resolution, on(4, 1, 0, CHINA)),
        (on(4, 5, 17), on(4, 1, 0, CHINA)),
        (on(1, 2, 0, CHINA), on(12, 1, 0, CHINA).replace(year=2025)),
    ],
)
def test_on_tencent_cloud_after_the_fifth_in_china(now: datetime, final: datetime) -> None:
    assert tencent(now) == final


@pytest.mark.parametrize("hours", range(0, 24 * 40, 7))
def test_nobody_promises_what_the_made_up_clouds_do_not_keep(hours: int) -> None:
    """The emulators add charges of a month as long as the documents let them."""
    now = on(3, 25) + hours * HOUR
    late = now + timedelta(days=1)  # the world itself says so a day after
    assert aws(now) <= in_the_world("aws", late)
    assert alibaba(now) <= in_the_world("alibaba", late)
    assert tencent(now) <= in_the_world("tencent", late)
