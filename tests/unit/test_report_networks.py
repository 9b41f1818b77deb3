"""What is said of networks: the gravest first, the whole way in, what closes it, and what is paid for nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.unit.network_findings import (
    ADDRESS,
    GAP,
    HANGZHOU,
    NOW,
    OPEN,
    OPEN_FACTS,
    UNTOLD,
    an_hour,
    found,
    ref,
    report,
)
from tests.words.catalogues import texts

from costguard.domain.findings import Verdict
from costguard.domain.network import Unpriced
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import Mode
from costguard.policy.model.terms import with_digest
from costguard.report.network.catalogue import Severity, entry_of
from costguard.report.network.order import LookedAt, NetworkLine, NetworkReport
from costguard.report.network.to_json import networks_json
from costguard.report.network.views import (
    closing_words,
    network_closing,
    network_summary_lines,
    network_tables,
    path_words,
)
from costguard.report.tables import Tone
from costguard.report.words.sentences import Language, explain, gap, phrase, short

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/networks.schema.json").read_text(encoding="utf-8"))
RULE = with_digest(AuditRule("gpu-hosts", Mode.OBSERVE, frozenset(NetworkCheck), allowed_regions=("us-*",)))
WAY = "internet → 203.0.113.7 → igw-1 → acl-1/100 → sg-1/sgr-1 → eni-1 → i-1:22"


def test_violations_stand_first_by_severity_then_what_is_not_measured() -> None:
    assert [(line.finding.subject.native_id, line.severity) for line in report().worth] == [  # type: ignore[union-attr]  # all are resources
        ("sg-1", Severity.CRITICAL),
        ("eip-2", Severity.LOW),
        ("eipalloc-1", Severity.LOW),
        ("ngw-1", Severity.LOW),
        ("i-2", Severity.HIGH),
    ]


def test_the_guards_own_severity_counts_before_the_catalogues() -> None:
    mild = replace(OPEN, reason=Reason(OPEN.reason.code, {**OPEN_FACTS, "severity": "medium"}))

    assert NetworkLine(mild).severity is Severity.MEDIUM
    assert NetworkLine(replace(OPEN, reason=Reason(OPEN.reason.code))).severity is Severity.CRITICAL
    assert NetworkLine(replace(OPEN, check="unheard_of", reason=Reason(OPEN.reason.code))).severity is None


def test_a_line_tells_the_whole_way_in_what_closes_it_and_what_keeps_that_from_being_done() -> None:
    worth, _ = network_tables(report())
    first = worth.records()[0]

    assert first == {
        "severity": "critical",
        "check": "CG-NET-002",
        "name": "notebooks (sg-1)",
        "shard": "aws:111122223333:us-east-1",
        "verdict": phrase("networks_verdict_violation"),
        "why": "It lets the world in to an admin, notebook or metrics port: 22, by rule sgr-1 from 0.0.0.0/0 (tcp"
        " 22,8888); such rules: 2; GPU instances reached: 1, first i-1.",
        "path": WAY,
        "closes": phrase("networks_least_revoke_rule", rule="sgr-1", group="sg-1"),
        "mend": "revoke rule sgr-1; but: Held: it would close the last way in for people to i-1",
        "cost": "",
        "owner": "nlp",
        "rule": "gpu-hosts",
    }
    assert worth.tones[0] is Tone.BAD
    assert worth.tones[1:] == (Tone.WARNING,) * 4


def test_what_is_not_measured_says_what_is_missing_in_the_readers_language() -> None:
    last = [network_tables(report(), language)[0].records()[-1] for language in Language]

    assert last[0]["why"].startswith(
        "Not measured: what it depends on could not be read: network interfaces (denied). Grant what is named"
    )
    assert "网卡" in last[1]["why"]


def test_what_is_not_measured_for_the_same_reason_is_told_once_with_how_many_more() -> None:
    others = [replace(UNTOLD, subject=ref("instance", f"i-{number}"), name="") for number in (3, 4)]
    elsewhere = replace(UNTOLD, subject=ref("instance", "i-5", HANGZHOU))
    lines = tuple(NetworkLine(each) for each in (UNTOLD, *others, elsewhere))
    (worth,) = network_tables(NetworkReport(lines, LookedAt(networks=1)))

    assert worth.title == phrase("networks_title", count=4)
    assert [row["name"] for row in worth.records()] == ["trainer (i-5)", "trainer (i-2) and 2 more"]


def test_what_is_paid_for_nothing_has_its_cost_and_one_sum_for_each_currency() -> None:
    _, waste = network_tables(report())

    assert [(row["name"], row["cost"], row["month"]) for row in waste.records()] == [
        ("ngw-1", "0.24 CNY", "175.20 CNY"),
        ("eipalloc-1", "0.0050 USD", "3.65 USD"),
        ("eip-2", "unknown", ""),
    ]
    assert waste.note == (
        "0.24 CNY an hour, 175.20 CNY a month of 730 hours, 0.0050 USD an hour, 3.65 USD a month of 730 hours,"
        " traffic and capacity units not counted."
        " 1 of unknown price."
    )


def test_an_address_that_does_something_is_no_waste_whatever_it_costs() -> None:
    bound = found(
        NetworkCheck.PUBLIC_IP, ref("instance", "i-1"), code=ReasonCode.NET_PUBLIC_IP, facts={}, rate=an_hour("0.005")
    )

    assert NetworkReport((NetworkLine(bound),)).waste == []
    assert NetworkReport((NetworkLine(replace(ADDRESS, verdict=Verdict.COMPLIANT)),)).waste == []


def test_an_address_that_costs_nothing_while_its_machine_is_stopped_is_no_waste() -> None:
    idle: dict[str, FactValue] = {"address": "203.0.113.7", "instance": "i-1"}
    free: dict[str, FactValue] = {"unpriced": Unpriced.FREE_WHILE_BOUND.value}
    paid = found(NetworkCheck.IDLE_ADDRESS, ref("address", "a"), code=ReasonCode.NET_IDLE_ADDRESS, facts=idle)
    unpaid = found(
        NetworkCheck.IDLE_ADDRESS, ref("address", "b"), code=ReasonCode.NET_IDLE_ADDRESS, facts={**idle, **free}
    )

    lines = NetworkReport((NetworkLine(paid), NetworkLine(unpaid))).waste
    assert [line.finding.subject for line in lines] == [ref("address", "a")]


def test_unknown_prices_alone_are_never_a_sum_of_zero() -> None:
    lines = tuple(NetworkLine(replace(ADDRESS, rate=None, subject=ref("address", name))) for name in ("a", "b"))

    (_, waste) = network_tables(NetworkReport(lines))

    assert waste.note == " 2 of unknown price."


def test_a_few_sentences_tell_all_of_it() -> None:
    assert list(network_summary_lines(report())) == [
        phrase(
            "networks_total",
            networks=2,
            instances=5,
            groups=3,
            rules=7,
            violations=4,
            unmeasured=1,
            compliant=1,
            exempt=2,
        ),
        phrase("networks_by_severity", counted="1 critical, 3 low"),
        phrase("networks_exempt", why=short(ReasonCode.EXCEPTION), count=1),
        phrase("networks_exempt", why=short(ReasonCode.NET_KEPT), count=1),
    ]


def test_no_network_and_nothing_read_are_told_apart() -> None:
    assert list(network_summary_lines(NetworkReport(()))) == [phrase("networks_nothing")]
    assert list(network_summary_lines(NetworkReport((), gaps=(GAP,)))) == [phrase("networks_nothing_read")]


def test_the_rest_is_shown_only_where_it_is_asked_for() -> None:
    whole, shown = network_tables(report(), whole=True), network_tables(report())

    assert [table.title for table in whole] == [
        phrase("networks_title", count=5),
        phrase("networks_waste_title", count=3),
        phrase("networks_rest_title", count=3),
    ]
    assert [table.title for table in shown] == [table.title for table in whole][:2]
    assert [row["severity"] for row in whole[2].records()] == ["", "", ""]
    assert any("`--all`" in line for line in network_closing(report()))
    assert not any("`--all`" in line for line in network_closing(report(), whole=True))


def test_what_could_not_be_read_is_named_with_what_follows() -> None:
    first = next(iter(network_closing(report())))

    assert first == gap(GAP)


def test_outside_text_cannot_harm_a_terminal() -> None:
    hostile = replace(
        OPEN,
        name="\x1b[2Jowned",
        reason=Reason(OPEN.reason.code, {**OPEN_FACTS, "path": "1.2.3.4 > \x1b[31mred", "rule": "\u202esgr"}),
    )
    (worth,) = network_tables(NetworkReport((NetworkLine(hostile),), LookedAt(networks=1)))

    assert not any(mark in "".join(worth.rows[0]) for mark in ("\x1b", "\u202e"))
    assert worth.records()[0]["path"] == "internet → 1.2.3.4 → red"


def test_a_finding_without_a_way_in_has_none() -> None:
    assert path_words(ADDRESS) == ""
    assert closing_words(ADDRESS) == ""
    assert closing_words(replace(OPEN, reason=Reason(OPEN.reason.code, {**OPEN_FACTS, "least": "narrow_rule"}))) == (
        phrase("networks_least_narrow_rule", rule="sgr-1", group="sg-1")
    )


@pytest.mark.parametrize("language", list(Language))
def test_the_json_is_as_documented(language: Language) -> None:
    said = networks_json(report(), [RULE], NOW, language)

    jsonschema.validate(said, SCHEMA)
    assert [finding["verdict"] for finding in said["findings"]] == [
        *["violation"] * 4,
        "unmeasured",
        "compliant",
        *["exempt"] * 2,
    ]
    first: Any = said["findings"][0]
    assert first["allowed"]["bar"]["reason"] == "last_admin_path"
    assert first["cis"] == ["6.2", "6.3", "6.4"]
    assert "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_22" in first["prowler"]
    assert said["findings"][1]["prowler"] == []
    assert said["paid_for_nothing"] == {
        "hourly": [{"amount": "0.24", "currency": "CNY"}, {"amount": "0.005", "currency": "USD"}],
        "unpriced": 1,
    }
    assert [check["check_id"] for check in said["checks"]] == sorted(entry_of(check).check_id for check in NetworkCheck)


def test_only_what_is_known_of_an_alibaba_resource_is_named_after_other_catalogues() -> None:
    """A check's ids are those of the resource's own cloud."""
    open_there = replace(OPEN, subject=ref("security_group", "sg-9", HANGZHOU))
    (said,) = networks_json(NetworkReport((NetworkLine(open_there),)), [RULE], NOW)["findings"]

    assert said["cis"] == ["3.2", "4.3", "4.4"]
    assert said["prowler"] == ["ecs_securitygroup_restrict_rdp_internet", "ecs_securitygroup_restrict_ssh_internet"]


NET_CODES = [code for code in ReasonCode if code.name.startswith("NET_")]


@pytest.mark.parametrize("code", NET_CODES, ids=lambda code: code.value)
def test_every_reason_about_networks_is_said_in_both_languages(code: ReasonCode) -> None:
    english, chinese = (explain(Reason(code), language) for language in Language)

    assert english.isascii()
    assert not chinese.isascii()


def test_every_check_and_severity_and_mend_has_words_in_both_languages() -> None:
    for language in Language:
        wanted = {
            *(f"networks_severity_{each.value}" for each in Severity),
            *(f"networks_verdict_{each.value}" for each in Verdict),
            *(f"invoked_networks_{each.value}" for each in Verdict),
        }
        assert wanted <= {key for _, key in texts(language.value)}
