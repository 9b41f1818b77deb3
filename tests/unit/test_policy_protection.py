"""Protecting tags: in doubt they protect."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import KEEP_TAG, Protection
from costguard.policy.documents.bundle import Usable, usable
from costguard.policy.model.protection import kept_until, protected_by_tag
from costguard.report.words.sentences import Language, sentence

NOW = datetime(2026, 11, 2, 12, tzinfo=timezone.utc)
FULL_WIDTH = "do-not-stop".translate({code: code + 0xFEE0 for code in range(ord("a"), ord("z") + 1)})
RULES = Protection(tag_names=("do-not-stop",), expiry_tag_names=("keep-until",))


def protects(key: str, value: str, now: datetime = NOW) -> bool:
    return protected_by_tag({"Name": "trainer", key: value}, RULES, now) is not None


@pytest.mark.parametrize(
    "key",
    [
        "do-not-stop",
        "Do-Not-Stop",
        "DO_NOT_STOP",
        "doNotStop",
        "do.not.stop",
        "do:not:stop",
        "do not stop",
        FULL_WIDTH,
    ],
)
def test_every_spelling_of_a_tag_protects(key: str) -> None:
    assert protects(key, "true")


@pytest.mark.parametrize("key", ["do-not-stop-me", "not-stop", "donotstart", ""])
def test_another_name_does_not(key: str) -> None:
    assert not protects(key, "true")


@pytest.mark.parametrize("key", ["our-runner", "Our_Runner", "lab.example/pool", "lab-example-queue"])
@pytest.mark.parametrize("value", ["", "false", "a"])
def test_a_tag_that_the_policy_names_as_a_controllers_keeps_its_machine_whatever_it_says(key: str, value: str) -> None:
    rules = Protection(controller_tags=("our-runner", "lab.example/*"))
    found = protected_by_tag({key: value}, rules, NOW)
    assert found is not None
    assert found.code is ReasonCode.CONTROLLER
    assert key in str(found.facts["manager"])


@pytest.mark.parametrize("key", ["our-runners", "runner", "lab", "labexampl", ""])
def test_another_tag_is_no_controllers(key: str) -> None:
    rules = Protection(controller_tags=("our-runner", "lab.example/*"))
    assert protected_by_tag({key: "x"}, rules, NOW) is None


@pytest.mark.parametrize("value", ["", "true", "yes", "1", "please", "nope", "00", "是", "none", "-1"])
def test_a_tag_protects_whatever_it_says(value: str) -> None:
    assert protects("do-not-stop", value)


@pytest.mark.parametrize("value", ["false", "FALSE", " no ", "No", "0", "off", "\uff4e\uff4f"])
def test_only_a_plain_no_does_not(value: str) -> None:
    assert not protects("do-not-stop", value)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-02T12:00:01Z",
        "2026-11-02T20:00:01+08:00",
        "2026-11-02 12:00Z",  # not over before it is past
        "2027-01-01",
        "2026-11-02",
        "2026-11-01",  # over at 12:00 UTC on the next day, in UTC-12
    ],
)
def test_an_expiry_ahead_protects(value: str) -> None:
    assert protects("keep-until", value, NOW - timedelta(seconds=1) if value == "2026-11-01" else NOW)


@pytest.mark.parametrize("value", ["2026-11-02T11:59:59Z", "2026-11-02t19:59:59+0800", "2026-11-01", "2020-01-01"])
def test_an_expiry_past_does_not(value: str) -> None:
    assert not protects("keep-until", value)


@pytest.mark.parametrize(
    "value",
    ["", "soon", "2020-01-01T00:00:00", "2020-13-01", "2020-02-30", "01/02/2020", "20200101", "1577836800", "false",
     "2020-01-01T00:00:00+99:00", "2020-01-01T25:00Z", "2020-01-0\u0661", "2020-01-01Z"],
)  # fmt: skip
def test_an_expiry_nobody_can_read_protects(value: str) -> None:
    assert protects("keep-until", value)


def test_the_reason_names_the_tag_as_written() -> None:
    reason = protected_by_tag({"Keep_Until": "2027-01-01", "do-not-stop": "no"}, RULES, NOW)

    assert reason is not None
    assert reason.code is ReasonCode.PROTECTED_TAG
    assert reason.facts == {"tag": "Keep_Until", "value": "2027-01-01"}


def test_one_protecting_tag_among_denials_is_enough() -> None:
    assert protected_by_tag({"do-not-stop": "false", "DoNotStop": "true"}, RULES, NOW) is not None


@given(value=st.text())
def test_any_text_protects_unless_it_is_a_plain_no_or_a_past_moment(value: str) -> None:
    assert (
        protects("do-not-stop", value) or value.strip().casefold() in {"false", "no", "0", "off"} or not value.isascii()
    )
    assert protects("keep-until", value) or value.strip()[:4].isdigit()


@given(moment=st.datetimes(timezones=st.timezones()), now=st.datetimes(timezones=st.just(timezone.utc)))
def test_a_moment_protects_exactly_until_it_is_past(moment: datetime, now: datetime) -> None:
    whole = moment.replace(microsecond=0)
    offset = whole.utcoffset() or timedelta(0)
    if offset.total_seconds() % 60 == 0:  # local mean times of the 19th century have no ISO form
        assert protects("keep-until", whole.isoformat(), now) is (whole >= now)


@given(
    day=st.dates(date(2, 1, 1), date(9998, 1, 1)),
    hours=st.integers(-12, 14),
    clock=st.times(),
)
def test_a_date_protects_as_long_as_it_is_that_day_anywhere(day: date, hours: int, clock: time) -> None:
    moment = datetime.combine(day, clock, timezone(timedelta(hours=hours)))

    assert protects("keep-until", day.isoformat(), moment)
    assert not protects("keep-until", day.isoformat(), moment + timedelta(days=3))


@pytest.mark.parametrize(
    ("age", "answer"),
    [
        (timedelta(0), Usable.OK),
        (timedelta(days=7), Usable.OK),
        (timedelta(days=7, seconds=1), Usable.REFUSE),
        (timedelta(minutes=-5), Usable.OK),
        (timedelta(minutes=-6), Usable.REFUSE),
    ],
)
def test_the_last_good_policy_stands_in_for_seven_days(age: timedelta, answer: Usable) -> None:
    assert usable(NOW - age, NOW) is answer


def test_a_naive_time_of_loading_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        usable(NOW.replace(tzinfo=None), NOW)


NONE = Protection(tag_names=(), expiry_tag_names=())


@pytest.mark.parametrize("key", ["costguard:keep-until", "Costguard-Keep-Until", "costguard_keep_until"])
def test_a_keep_by_tag_is_heeded_whatever_the_policy_says(key: str) -> None:
    found = protected_by_tag({key: "2026-11-16T12:00:00Z"}, NONE, NOW)
    assert found == Reason(ReasonCode.KEPT_BY_TAG, {"tag": key, "until": "2026-11-16T12:00+00:00"})
    assert kept_until({key: "2026-11-16T20:00:00+08:00"}, NOW) == NOW + timedelta(days=14)


@pytest.mark.parametrize("value", ["2026-11-02T11:59:59Z", "2026-11-01", "2020-01-01"])
def test_a_keep_by_tag_that_is_over_keeps_nothing(value: str) -> None:
    tags = {KEEP_TAG: value}
    assert (protected_by_tag(tags, NONE, NOW), kept_until(tags, NOW)) == (None, None)


@pytest.mark.parametrize("value", ["", "next week", "2026-11-16T12:00:00", "2026-13-01"])
def test_a_keep_by_tag_that_nobody_can_read_keeps_and_says_so(value: str) -> None:
    found = protected_by_tag({KEEP_TAG: value}, NONE, NOW)
    assert found == Reason(ReasonCode.PROTECTED_TAG, {"tag": KEEP_TAG, "value": value, "unread": KEEP_TAG})
    assert "cannot be read" in sentence(found, Language.EN)
    assert "无法识别" in sentence(found, Language.ZH)


@pytest.mark.parametrize("value", ["9999-12-31", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59+14:00"])
def test_a_keep_by_tag_for_ever_is_a_moment_that_every_zone_has(value: str) -> None:
    until = kept_until({KEEP_TAG: value}, NOW)
    assert until is not None
    assert until.astimezone(timezone(timedelta(hours=14))).year == 9000


def test_of_several_keeps_by_tag_the_last_end_counts() -> None:
    tags = {KEEP_TAG: "2026-11-03", "Costguard_Keep_Until": "2026-11-20T00:00:00Z"}
    assert kept_until(tags, NOW) == datetime(2026, 11, 20, tzinfo=timezone.utc)


def test_what_protects_without_an_end_is_named_before_a_keep_by_tag() -> None:
    found = protected_by_tag({KEEP_TAG: "2027-01-01", "keep": "yes"}, Protection(), NOW)
    assert found is not None
    assert found.code is ReasonCode.PROTECTED_TAG
