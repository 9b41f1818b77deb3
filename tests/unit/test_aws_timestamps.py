"""The quick timestamp parser agrees with botocore's on every form."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from botocore.utils import parse_timestamp as slow
from hypothesis import given
from hypothesis import strategies as st

from costguard.providers.aws.core.transport import parse_timestamp

FORMS = [
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.678Z",
    "2026-01-02T03:04:05.678901Z",
    "2026-01-02T03:04:05.6Z",
    "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05+08:00",
    "2026-01-02T03:04:05.678+0800",
    "2026-02-29T00:00:00Z",  # no leap year
    "2024-02-29T23:59:59Z",
    "20260102T030405Z",
    "Fri, 02 Jan 2026 03:04:05 GMT",
    "1767323045",
    "1767323045.678",
    1767323045,
    1767323045.678,
    0,
    -1,
    253402300800.0,
    4_102_444_800_000_000,
    float("nan"),
    "",
    "soon",
    "2026-13-01T00:00:00Z",
    "2026-01-02T25:00:00Z",
    "2026-01-02t03:04:05z",
    "\u0662026-01-02T03:04:05Z",
    None,
]


def outcome(parse: object, value: object) -> object:
    """What a parser makes of a value: a moment, or that it refuses."""
    assert callable(parse)
    try:
        return parse(value)
    except (ValueError, TypeError, RuntimeError, OverflowError, AttributeError):
        return "refused"


@pytest.mark.parametrize("value", FORMS)
def test_every_form_means_what_botocore_says(value: object) -> None:
    assert outcome(parse_timestamp, value) == outcome(slow, value)


@pytest.mark.parametrize("value", ["2026-01-02T03:04:05Z", "2026-01-02T11:04:05+08:00", 1767323045, "1767323045"])
def test_every_answer_is_aware_and_utc(value: object) -> None:
    found = parse_timestamp(value)

    assert found == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_zone_is_utc() -> None:
    assert parse_timestamp("2026-01-02T03:04:05") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - the strategy wants naive
def test_any_moment_survives(moment: datetime) -> None:
    millis = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = millis.strftime("%Y-%m-%dT%H:%M:%S") + f".{millis.microsecond // 1000:03d}Z"

    assert parse_timestamp(text) == slow(text) == millis.replace(tzinfo=timezone.utc)
