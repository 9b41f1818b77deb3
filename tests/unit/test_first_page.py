"""The page of the first day: waste by team and cloud, how sure it is, what is excluded, and what was never made up."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.builders import NOW, SHARD, finding, instance, ref, shard_facts, usd

from costguard.domain.backtests import Reclaimed
from costguard.domain.findings import InstanceFact, Standing, Usage, Verdict
from costguard.domain.money import HourlyRate, NetRate, NetSource
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Gap, GapKind
from costguard.report.page.page import Drawing
from costguard.report.waste.day_one import WasteReport, waste_report
from costguard.report.waste.page import excluded_table, first_page, reclaimed_table, teams_table
from costguard.report.words.sentences import Language, phrase

LIST = HourlyRate(usd("10"), "aws-pricing", "2026-03-30")
NET = replace(LIST, net=NetRate(usd("7"), NetSource.DISCOUNT, "", Decimal("0.3")))
DAY = timedelta(days=1)
NO_CHARTS = Drawing(None, "none here")


def report(*gaps: Gap) -> WasteReport:
    """Two of nlp, one of them never touched and without discount; one of nobody, unmeasured and without a price."""
    facts, findings = [], []
    for number, (rate, owner, code, verdict, idle) in enumerate(
        (
            (NET, "nlp", ReasonCode.IDLE, Verdict.VIOLATION, 100),
            (LIST, "nlp", ReasonCode.PROTECTED_TAG, Verdict.EXEMPT, 50),
            (None, "", ReasonCode.NO_DATA, Verdict.UNMEASURED, 10),
        )
    ):
        usage = Usage(168.0, 168, idle, 0)
        one = InstanceFact(instance(f"i-{number}"), rate, (), timedelta(0), signals_read=True, usage=usage)
        facts.append(one)
        findings.append(replace(finding(one.instance, verdict), rate=rate, owner=owner, reason=Reason(code)))
    return waste_report([shard_facts(*facts)], findings, since=NOW - 14 * DAY, until=NOW, gaps=gaps)


def reclaimed(**changes: Any) -> Reclaimed:
    ordinary = Reclaimed(NOW - DAY, NOW, 1, 20, (usd("200"),), (usd("140"),))
    return replace(ordinary, **changes)


def page(of: WasteReport | None = None, *found: Reclaimed, language: Language = Language.EN) -> str:
    return first_page(of or report(), found, language, NO_CHARTS, of_machines=3)


def test_teams_and_clouds_have_list_and_net() -> None:
    (nlp, nobody) = teams_table(report(), Language.EN).rows

    assert nlp == ("aws", "nlp", "2", "150", "1,500.00 USD", "700.00 USD", "1")
    assert nobody[:4] == ("aws", phrase("no_owner"), "1", "10")
    assert nobody[5] == "unknown", "an unknown discount is no discount of 0"


def test_the_page_says_what_is_excluded_and_why() -> None:
    rows = excluded_table(report(), Language.EN).rows

    assert len(rows) == 3
    assert rows[0][0].startswith("in the idle cost, and never touched")
    assert rows[0][1:] == ("1", "500.00 USD")
    assert rows[1][0].startswith("in no figure")
    assert rows[2] == ("in no amount: price unknown", "1", "")


def test_what_can_be_reclaimed_now_is_told_from_what_may_not() -> None:
    of = report()
    found = [
        replace(one, finding=replace(one.finding, standing=standing))
        for one, standing in zip(of.instances, (Standing.RECLAIMABLE, Standing.UNTOUCHABLE, None), strict=True)
        if one.finding is not None
    ]
    text = page(replace(of, instances=tuple(found)))

    for standing in (Standing.RECLAIMABLE, Standing.UNTOUCHABLE):
        assert phrase(f"reclaim_{standing.value}", amount="240.00 USD", machines=1) in text


def test_each_window_names_its_time_list_and_net() -> None:
    week = reclaimed(since=NOW - 7 * DAY)
    whole = reclaimed(since=NOW - 10 * DAY, whole=True, net=(), without_net=20)
    rows = reclaimed_table((reclaimed(), week, whole), Language.EN).rows

    assert [row[0] for row in rows] == ["the last day", "the last 7 days", "all 10 days read"]
    assert rows[0][3:5] == ("200.00 USD", "140.00 USD")
    assert rows[2][4] == "unknown"


def test_less_than_a_month_is_said_and_no_month_is_shown() -> None:
    text = page(None, reclaimed(since=NOW - 10 * DAY, whole=True))

    assert phrase("first_less_than_a_month", days="10") in text
    assert "the last 30 days" not in text
    assert "Less than a month" not in page(None, reclaimed(since=NOW - 30 * DAY))


def test_where_nothing_was_measured_no_figure_is_made_up() -> None:
    text = page()

    assert phrase("first_nothing_measured") in text
    assert "the last day" not in text


def test_what_was_not_read_is_named() -> None:
    gap = Gap(SHARD, "inventory", GapKind.DENIED, "not allowed to look", "allow ec2:DescribeInstances")

    assert "not allowed to look" in page(report(gap)) or "ec2:DescribeInstances" in page(report(gap))
    assert phrase("first_unread", count=1) in page(report(gap))


def test_the_page_needs_nothing_from_anywhere_and_prints_on_a_sheet() -> None:
    text = page(None, reclaimed())

    assert not re.search(r"(?:src|href)=|url\(|<script|@import", text)
    assert "Content-Security-Policy" in text
    assert "@page{size:A4" in text


def test_names_are_words_and_never_markup() -> None:
    of = report()
    nasty = [replace(one, owner="<script>alert(1)</script>") for one in of.instances]
    text = page(replace(of, instances=tuple(nasty)))

    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_the_page_speaks_chinese() -> None:
    text = page(None, reclaimed(), language=Language.ZH)

    assert 'lang="zh-CN"' in text
    for said in ("空闲费用（目录价）", "折后", "默认策略本可回收的费用", "最近一天", "未包含的内容及原因"):
        assert said in text


def test_a_large_fleet_stays_on_its_page() -> None:
    one = report().instances[0]
    many = tuple(
        replace(one, owner=f"team-{n}", fact=replace(one.fact, instance=instance(ref=ref(f"i-{n}")))) for n in range(40)
    )
    table = teams_table(replace(report(), instances=many), Language.EN)

    assert len(table.rows) == 8
    assert table.note == phrase("first_more_teams", count=32)
