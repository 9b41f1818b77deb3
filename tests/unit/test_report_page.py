"""The report's page: needs nothing else, says what matters first, and nothing from outside is mark-up in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import jsonschema
import pytest
from tests.builders import case, ref
from tests.unit.report_facts import (
    DAY,
    NOW,
    budget,
    facts,
    gap,
    look,
    refusal,
    sight,
    untouchable,
    usd,
)

from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.digest import of_owner
from costguard.report.charts.values import Chart
from costguard.report.facts import ReportFacts, a_day, days_shown, figures_of
from costguard.report.page.headline import cards, changes
from costguard.report.page.page import Drawing, report_page
from costguard.report.page.to_json import report_json
from costguard.report.words.sentences import Language, in_digest

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/report.schema.json").read_text(encoding="utf-8"))
EVIL = "</style><script>alert(1)</script><svg onload=x>\"'><img src=//evil.example>{background:url(//evil.example)}"


class Page(HTMLParser):
    """What a browser makes of a page: its elements, attributes and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def draw(chart: Chart) -> str:
    return f'<svg data-kind="{type(chart).__name__}"></svg>'


def page(of: ReportFacts, language: Language = Language.EN, drawing: Drawing | None = None) -> str:
    return report_page(of, language, drawing or Drawing(draw))


def whole() -> ReportFacts:
    """Facts of every kind, with evil in everything that comes from outside."""
    way = Reason(ReasonCode.NET_OPEN_PORT, {"path": f"internet > {EVIL} > i-1", "port": 22, "instance": EVIL})
    key = Reason(ReasonCode.KEY_OVERDUE, {"age_days": 120, "wanted_days": 90})
    unread = Reason(ReasonCode.NO_DATA, {"detail": EVIL})
    return facts(
        looks=(
            look(
                sight(name=EVIL, owner=EVIL, instance_type=EVIL),
                untouchable(),
                sight("i-2", verdict=Verdict.UNMEASURED, reason=unread, name=EVIL),
                held={"local_disk": 2, EVIL: 1},
                gaps=(gap(), gap("signals", EVIL)),
            ),
            look(
                sight("k-1", ref=ref("k-1", "key"), verdict=Verdict.VIOLATION, reason=key, name=EVIL),
                guard="kms_rotation",
            ),
            look(sight("sg-1", ref=ref("sg-1", "group"), reason=way, name=EVIL), guard="network_audit"),
        ),
        budgets=(budget(EVIL), budget("spent", "1000")),
        cases=(case(subject=ref(), check="idle", owner=EVIL, name=EVIL),),
        refusals=(refusal(),),
        before=figures_of(facts(at=NOW - 7 * DAY, looks=())),
    )


@pytest.mark.parametrize("language", list(Language))
def test_nothing_from_outside_is_mark_up(language: Language) -> None:
    made = page(whole(), language)

    read = Page(made)
    assert not {"script", "img", "link", "iframe", "object", "form", "base"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in {"src", "srcset", "action"}]
    assert made.count("<style>") == made.count("</style>") == 1
    assert "evil.example" not in made.partition("</style>")[0]
    assert any("alert(1)" in words for words in read.words)  # shown, as the name it is


def test_a_page_loads_nothing_and_says_so_to_the_browser() -> None:
    made = page(whole())

    (policy,) = [value for name, value in Page(made).attributes if name == "content" and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    inert = re.sub(r"&[a-z#0-9]+;", "", made.replace("evil.example", ""))
    assert not re.search(r"https?://|@import|url\([^)]*//[^)]*\)(?!})|href=", inert.partition("</style>")[0])
    assert "href=" not in made


def test_the_first_screen_answers_what_a_manager_asks() -> None:
    saved, wasted, budgets, refused, unseen = cards(whole(), Language.EN)

    assert saved.figures == ("250.00 USD",)
    assert wasted.figures == ("48.00 USD",)
    assert in_digest("wasted_untouchable", Language.EN, amount="24.00 USD", machines=1) in wasted.lines
    assert budgets.figures == tuple(in_digest(key, Language.EN, count=1) for key in ("budgets_spent", "budgets_will"))
    assert refused.figures == ("4",)
    assert unseen.figures == ("2",)


def test_charts_are_drawn_in_the_order_of_the_page_and_without_a_library_that_is_said() -> None:
    kinds = re.findall(r'data-kind="(\w+)"', page(whole()))
    assert kinds == ["HeatMap", "OverTime", "BurnDown", "BurnDown", "BarChart", "Ages"]

    bare = page(whole(), drawing=Drawing(None, "matplotlib is not installed"))
    assert "<svg" not in bare
    assert "No charts are drawn here: matplotlib is not installed." in bare


def test_every_way_in_is_shown_step_by_step() -> None:
    reason = Reason(ReasonCode.NET_OPEN_PORT, {"path": "198.51.100.7 > sg-1 tcp 22 > trainer", "port": 22})
    of = facts(looks=(look(sight(reason=reason, name="trainer"), guard="network_audit"),))

    steps = re.findall(r"<li><span>([^<]*)</span></li>", page(of))
    assert steps == ["Internet", "198.51.100.7", "sg-1 tcp 22", "trainer"]


def test_json_says_the_same_in_the_documented_shape() -> None:
    told = report_json(whole())

    jsonschema.validate(json.loads(json.dumps(told)), SCHEMA)
    assert told["summary"]["wasted_a_day"] == [{"amount": "48", "currency": "USD"}]
    assert told["machines"][0]["days"] == {"2026-03-06": 90.0, "2026-03-07": 2.0, "2026-03-08": 0.0, "2026-03-09": 0.5}


def test_an_empty_ledger_is_no_good_news() -> None:
    nothing = ReportFacts(NOW, NOW - DAY)

    *_, unseen = cards(nothing, Language.EN)
    assert unseen.good is False
    assert in_digest("digest_no_runs", Language.EN) in page(nothing)
    jsonschema.validate(json.loads(json.dumps(report_json(nothing))), SCHEMA)


def test_what_is_unmeasured_or_without_price_is_never_counted_as_nothing() -> None:
    silent = sight("i-2", verdict=Verdict.UNMEASURED, reason=Reason(ReasonCode.NO_DATA), busy=(), first_day=None)
    node = untouchable("i-3", hourly=None)
    blind = sight("i-4", verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.PREPAID, {"utilisation": "no_data"}))
    of = facts(looks=(look(sight(), silent, node, blind),))

    assert {one.ref.native_id for one in of.unmeasured} == {"i-2", "i-4"}
    assert {one.ref.native_id for one in of.idle} == {"i-1", "i-3"}
    assert a_day(of.idle) == (usd("24"),)
    assert in_digest("wasted_hint", Language.EN, machines=2, unpriced=1) in cards(of, Language.EN)[1].lines


def test_machines_judged_twice_count_once() -> None:
    of = facts(looks=(look(sight()), look(sight(hourly=usd("2")), sight("i-2"), guard="budget")))

    assert [one.ref.native_id for one in of.machines] == ["i-1", "i-2"]
    assert a_day(of.idle) == (usd("48"),)


def test_idle_since_is_the_earliest_that_is_known() -> None:
    of = facts(looks=(look(sight()),))
    (idle,) = of.idle
    assert of.idle_since(idle) == NOW.replace(hour=0) - DAY  # quiet on the 7th, whole from the 8th on

    opened = facts(looks=(look(sight()),), cases=(case(subject=ref("i-1"), check="idle", opened_at=NOW - 5 * DAY),))
    assert opened.idle_since(idle) == NOW - 5 * DAY


def test_days_are_shown_without_a_hole() -> None:
    early = sight("i-2", first_day=(NOW - 20 * DAY).date(), busy=(1.0,))
    days = days_shown(facts(looks=(look(sight(), early),)), most=10)

    assert len(days) == 10
    assert days[-1] == NOW.date()
    assert early.on(days[0]) is None


def test_one_owners_part_is_that_owners_alone() -> None:
    part = of_owner(whole(), "platform")

    assert [one.owner for one in part.idle] == ["platform"]
    assert part.cases == ()
    assert part.saved is not None
    assert part.saved.totals == ()


def test_changes_since_the_last_digest_are_named_and_only_those() -> None:
    before = figures_of(facts(looks=(look(sight()),), budgets=(budget(spent="500"),)))
    now = facts(before=before)

    told = changes(now, Language.EN)
    assert told == (
        in_digest("change_idle", Language.EN, before=1, now=2),
        in_digest("change_wasted", Language.EN, before="24.00 USD", now="48.00 USD"),
        in_digest("change_budget", Language.EN, name="research", before=50, now=64),
    )
    assert changes(facts(looks=(look(sight()),), budgets=(budget(spent="500"),), before=before), Language.EN) == (
        in_digest("change_nothing", Language.EN),
    )


def test_an_old_look_is_said_to_be_old() -> None:
    of = facts(looks=(look(sight(), at=NOW - 3 * DAY),))

    assert any("machines: last looked at" in line for line in cards(of, Language.EN)[4].lines)
