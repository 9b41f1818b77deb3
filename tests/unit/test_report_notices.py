"""What owners read: what, why, when, how to keep it, what is risked, how to undo it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import DAY, NOW, ref, usd
from tests.words.said import says

from costguard.domain.actions import Saving, Verb
from costguard.domain.findings import Evidence
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.signals import HOUR, SignalName, SignalSummary
from costguard.report.notices.machines import NoticeFacts, NoticeKind, Upcoming, local_time, notice
from costguard.report.words.sentences import Language, label, phrase, risk, stays_billed, verb

STOP_AT = datetime(2026, 3, 11, 12, 30, tzinfo=timezone.utc)
END_AT = STOP_AT + timedelta(days=7)


GPU = SignalSummary(SignalName.GPU, "0", 1.25, 1440, 1440, NOW, HOUR / 60, "cloudwatch", delay=timedelta(minutes=5))


def facts(kind: NoticeKind = NoticeKind.WARNED, **changes: Any) -> NoticeFacts:
    ordinary = NoticeFacts(
        kind=kind,
        resource=ref("i-0abc"),
        reason=Reason(ReasonCode.IDLE, {"hours": 24.0, "gpu_max_percent": 1.25}),
        instance_type="g5.xlarge",
        name="train-7",
        owner="nlp",
        rule="research",
        evidence=Evidence(NOW - DAY, NOW, (GPU,)),
        rate=HourlyRate(usd("1.006"), "aws-pricing", "2026-01-01"),
        saving=Saving(usd("1.006"), (("volume", usd("0.011")),), ("local_disk_lost", "public_ip_lost")),
        upcoming=(Upcoming(Verb.STOP, STOP_AT), Upcoming(Verb.TERMINATE, END_AT)),
    )
    return replace(ordinary, **changes)


def test_a_warning_says_what_why_when_how_to_keep_it_and_what_is_risked() -> None:
    text = notice(facts()).text

    assert text.splitlines()[0] == phrase("will_stop", what="train-7", when="2026-03-11 12:30 UTC")
    for part in (
        "g5.xlarge i-0abc train-7",
        "aws 111122223333 us-east-1",
        "Owner: nlp",
        "stayed below its bound for 24 h",
        "GPU ≤ 1.25 %",
        "1.01 USD an hour, 24.14 USD a day at list price (aws-pricing, 2026-01-01)",
        phrase("not_before", verb=verb(Verb.TERMINATE), when="2026-03-18 12:30 UTC"),
        "costguard snooze aws:111122223333:us-east-1:instance:i-0abc --for 48h",
        "costguard-keep-until=YYYY-MM-DD",
        phrase("keeps", what=stays_billed("volume"), amount=phrase("keeps_hourly", amount="0.0110 USD")),
        risk("local_disk_lost"),
        risk("public_ip_lost"),
    ):
        assert part in text


def test_times_stand_on_the_readers_clock_with_utc_beside() -> None:
    text = notice(facts(zone="Asia/Shanghai")).text

    assert "2026-03-11 20:30 Asia/Shanghai (12:30 UTC)" in text


@pytest.mark.parametrize(("period", "delay", "minutes"), [(1, 5, 6), (5, 5, 15), (1, 10, 11), (0.5, 0, 2)])
def test_a_warning_says_how_late_a_job_may_begin_and_not_be_seen(period: float, delay: int, minutes: int) -> None:
    """Two periods or what the source documents, and the period that the newest sample stands for; rounded up."""
    gpu = replace(GPU, period=timedelta(minutes=period), delay=timedelta(minutes=delay))
    fast = replace(GPU, device="1", period=timedelta(seconds=1), delay=timedelta(0))
    slow = replace(GPU, name=SignalName.CPU, device="", period=timedelta(minutes=30))
    shown = facts(evidence=Evidence(NOW - DAY, NOW, (fast, gpu, slow)))

    promise, unseen = notice(shown).lines

    assert promise == phrase("promise")
    assert unseen == phrase("unseen", minutes=minutes)
    assert f"最后 {minutes} 分钟" in notice(shown, Language.ZH).lines[1]


def test_what_use_does_not_keep_and_what_no_card_shows_says_nothing_of_late_jobs() -> None:
    of_class = facts(reason=Reason(ReasonCode.BUDGET_CLASS, {"budget": "research"}))

    for told in (of_class, facts(evidence=None), facts(evidence=Evidence(NOW - DAY, NOW, ()))):
        assert len(notice(told).lines) == 1


def test_a_different_day_in_utc_is_spelt_out() -> None:
    late = datetime(2026, 3, 11, 20, 0, tzinfo=timezone.utc)

    assert local_time(late, "Asia/Shanghai") == "2026-03-12 04:00 Asia/Shanghai (2026-03-11 20:00 UTC)"


def test_after_a_stop_the_date_of_termination_and_the_way_back_are_told() -> None:
    after = notice(facts(NoticeKind.STOPPED, upcoming=(Upcoming(Verb.TERMINATE, END_AT),)))

    assert after.title == phrase("stopped", what="train-7", when="2026-03-18 12:30 UTC")
    assert (label("undo"), phrase("undo_stop")) in after.fields
    assert phrase("keep_start") in after.text


def test_a_stop_that_ends_the_ladder_announces_nothing_more() -> None:
    after = notice(facts(NoticeKind.STOPPED, upcoming=()))

    assert after.title == phrase("stopped", what="train-7")
    assert (label("next"), phrase("nothing_automatic")) in after.fields


def test_a_warning_before_termination_says_so_first() -> None:
    before = notice(facts(upcoming=(Upcoming(Verb.TERMINATE, END_AT),)))

    assert before.title == phrase("will_terminate", what="train-7", when="2026-03-18 12:30 UTC")


def test_after_a_termination_the_snapshots_are_named() -> None:
    over = notice(facts(NoticeKind.TERMINATED, snapshots=("snap-1", "snap-2"), upcoming=(), saving=None))

    assert (label("snapshots"), "snap-1, snap-2") in over.fields
    assert label("keep_it") not in over.text
    assert phrase("undo_terminate_bare") not in over.text


def test_without_known_snapshots_no_way_back_is_promised() -> None:
    over = notice(facts(NoticeKind.TERMINATED, upcoming=(), saving=None))

    assert (label("undo"), phrase("undo_terminate_bare")) in over.fields


@pytest.mark.parametrize("code", [ReasonCode.RECOVERED, ReasonCode.RESTARTED, ReasonCode.PROTECTED_TAG])
def test_a_machine_that_was_kept_is_told_to_be_safe(code: ReasonCode) -> None:
    kept = notice(facts(NoticeKind.CLOSED, reason=Reason(code), upcoming=()))

    assert says(kept.title, "closed_kept", what="train-7")
    assert label("next") not in dict(kept.fields)


def test_a_held_case_names_the_rail_and_the_way_on() -> None:
    held = notice(
        facts(NoticeKind.HELD, reason=Reason(ReasonCode.APPROVAL_NEEDED), approve="aws:111122223333:us-east-1:i-0abc")
    )

    assert says(held.title, "approval_needed", "reasons")
    assert "costguard approve aws:111122223333:us-east-1:i-0abc" in held.text


GB_250 = 250 * 10**9 / 2**30


@pytest.mark.parametrize(
    ("size", "english", "chinese"),
    [
        (GB_250, "its 250 GB local disk will be empty", "其 250 GB 本地盘将被清空"),
        (round(GB_250, 1), "its 250 GB local disk will be empty", "其 250 GB 本地盘将被清空"),
        (28312.2, "its 30,400 GB local disk will be empty", "其 30,400 GB 本地盘将被清空"),
        (-1.0, "its local disk, of unknown size, will be empty", "其本地盘（大小未知）将被清空"),
    ],
)
def test_what_waits_for_leave_names_the_local_disk_that_will_be_empty(size: float, english: str, chinese: str) -> None:
    asks = facts(NoticeKind.HELD, reason=Reason(ReasonCode.APPROVAL_NEEDED, {"local_disk_gib": size}), approve="x")
    assert english in notice(asks).title
    assert chinese in notice(asks, Language.ZH).title


@pytest.mark.parametrize(("size", "words"), [(GB_250, "its 250 GB local disk"), (None, "of unknown size")])
def test_a_warning_says_that_a_stop_waits_for_leave_and_what_it_empties(size: float | None, words: str) -> None:
    saving = Saving(usd("1"), (), ("local_disk_lost",), local_disk_gib=size)
    told = notice(facts(saving=saving, upcoming=(), asks=True))
    for field in ("next", "risks"):
        assert words in dict(told.fields)[label(field)]
    assert phrase("nothing_automatic") not in told.text
    assert says(told.title, "will_warn", what="train-7")


def test_a_warning_that_asks_for_no_leave_promises_no_question() -> None:
    saving = Saving(usd("1"), (), ("local_disk_lost",), local_disk_gib=GB_250)
    assert phrase("nothing_automatic") in notice(facts(saving=saving, upcoming=())).text


def test_who_may_let_it_pass_is_said_and_that_an_owner_alone_may_not_above_the_amount() -> None:
    held = facts(NoticeKind.HELD, reason=Reason(ReasonCode.APPROVAL_NEEDED), approve="x", upcoming=(), saving=None)
    said = dict(notice(held).fields)[phrase("approve_why")]
    assert phrase("approve_owner", owner="nlp") in said
    assert "costguard approve x" in said
    dear = dict(notice(replace(held, by_approver=True, clickable=True)).fields)[phrase("approve_why")]
    assert phrase("approve_apart", owner="nlp") in dear
    assert phrase("approve_clicked") in dear


def test_an_unknown_price_is_never_told_as_nothing() -> None:
    assert phrase("cost_unknown") in notice(facts(rate=None, saving=None)).text


def test_names_and_tags_cannot_forge_lines_of_a_notice() -> None:
    forged = notice(facts(name="x\nTo keep it: run evil.sh\x1b[2J", owner="\u202eeve"))

    assert "\nTo keep it: run evil.sh" not in forged.text
    assert "\x1b" not in forged.text
    assert (label("owner"), "eve") in forged.fields


@pytest.mark.parametrize("kind", list(NoticeKind))
@pytest.mark.parametrize("make", [facts, lambda kind: NoticeFacts(kind, ref())], ids=["full", "bare"])
def test_every_notice_is_whole_in_every_language(kind: NoticeKind, make: Callable[[NoticeKind], NoticeFacts]) -> None:
    given = make(kind)

    english, chinese = notice(given, Language.EN), notice(given, Language.ZH)

    for text in (english.text, chinese.text):
        assert not any(mark in text for mark in "[]{}?")
    assert len(english.fields) == len(chinese.fields)
    assert english.title != chinese.title
