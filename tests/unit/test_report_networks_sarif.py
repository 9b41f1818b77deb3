"""Findings about networks as SARIF: of the standard's form, with lasting fingerprints, and nothing hidden."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.network_findings import AGREED, AS_ASKED, GAP, KEPT, NOW, OPEN, OPEN_FACTS, UNTOLD, found, ref, report
from tests.unit.sarif_schema import SCHEMA, against_the_standard

from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.network.rules import NetworkCheck
from costguard.report.network.catalogue import CATALOGUE
from costguard.report.network.order import NetworkLine, NetworkReport
from costguard.report.network.sarif import SARIF_SCHEMA, fingerprint, network_sarif
from costguard.report.words.sentences import Language


def run_of(made: NetworkReport, language: Language = Language.EN) -> dict[str, Any]:
    log = network_sarif(made, NOW, "0.1.0", language)
    assert against_the_standard(json.loads(json.dumps(log))) == []
    (run,) = log["runs"]
    return dict(run)


def only(line: NetworkLine) -> dict[str, Any]:
    (result,) = run_of(NetworkReport((line,)))["results"]
    return dict(result)


@pytest.mark.parametrize("language", list(Language))
def test_the_log_has_the_form_of_the_standard(language: Language) -> None:
    run = run_of(report(), language)

    assert run["language"] == {Language.EN: "en", Language.ZH: "zh-CN"}[language]
    assert json.loads(json.dumps(run)) == run


def test_a_log_that_the_standard_does_not_allow_is_seen() -> None:
    log = network_sarif(report(), NOW, "0.1.0")
    run = log["runs"][0]
    wrong = {
        "$.runs[0].results[0].level": {**log, "runs": [{**run, "results": [{**run["results"][0], "level": "bad"}]}]},
        "$.runs[0]": {**log, "runs": [{key: value for key, value in run.items() if key != "tool"}]},
        "$": {**log, "extra": 1},
        "$.version": {**log, "version": "2.0.0"},
    }
    for place, told in wrong.items():
        assert [said.partition(": ")[0] for said in against_the_standard(told)] == [place]


def test_the_schema_is_as_oasis_published_it() -> None:
    """Its licence allows copies, and no changes: NOTICE.md says the same digest."""
    digest = hashlib.sha256(SCHEMA.read_bytes()).hexdigest()
    assert digest in SCHEMA.with_name("NOTICE.md").read_text(encoding="utf-8")
    assert json.loads(SCHEMA.read_bytes())["id"] == SARIF_SCHEMA


def test_every_check_is_a_rule_with_its_level_its_number_and_what_to_do() -> None:
    rules = run_of(NetworkReport(()))["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == [entry.check_id for entry in CATALOGUE]
    opened = rules[1]
    assert opened["defaultConfiguration"] == {"level": "error"}
    assert opened["properties"]["security-severity"] == "9.5"
    assert opened["properties"]["cis"]["aws"] == {
        "benchmark": "CIS Amazon Web Services Foundations Benchmark v6.0.0",
        "controls": ["6.2", "6.3", "6.4"],
    }
    assert "ec2_instance_port_ssh_exposed_to_internet" in opened["properties"]["prowler"]["aws"]
    assert CATALOGUE[1].remedy(Language.EN) in opened["help"]["text"]
    levels = {rule["properties"]["tags"][2]: rule["defaultConfiguration"]["level"] for rule in rules}
    assert levels == {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


def test_a_violation_fails_its_rule_and_names_the_resource_and_the_way_in() -> None:
    assert only(NetworkLine(OPEN)) == {
        "ruleId": "CG-NET-002",
        "ruleIndex": 1,
        "kind": "fail",
        "level": "error",
        "message": {
            "text": "It lets the world in to an admin, notebook or metrics port: 22, by rule sgr-1 from 0.0.0.0/0 (tcp"
            " 22,8888); such rules: 2; GPU instances reached: 1, first i-1.\n"
            "internet → 203.0.113.7 → igw-1 → acl-1/100 → sg-1/sgr-1 → eni-1 → i-1:22\n"
            "revoke rule sgr-1 of sg-1"
        },
        "locations": [
            {
                "logicalLocations": [
                    {
                        "name": "notebooks",
                        "fullyQualifiedName": "aws:111122223333:us-east-1:security_group:sg-1",
                        "kind": "resource",
                    }
                ]
            }
        ],
        "fingerprints": {"costguardNetwork/v1": fingerprint(OPEN)},
        "properties": {
            "verdict": "violation",
            "severity": "critical",
            "owner": "nlp",
            "policyRule": "gpu-hosts",
            "reason": "net_open_port",
        },
    }


def test_the_level_is_that_of_this_finding_where_it_is_milder_than_its_check() -> None:
    mild = replace(OPEN, reason=Reason(OPEN.reason.code, {**OPEN_FACTS, "severity": "medium"}))

    assert only(NetworkLine(mild))["level"] == "warning"


def test_what_was_not_measured_is_open_and_never_passed() -> None:
    result = only(NetworkLine(UNTOLD))

    assert (result["kind"], result["level"]) == ("open", "none")


def test_what_is_agreed_is_a_problem_with_a_suppression() -> None:
    result = only(NetworkLine(AGREED))

    assert result["kind"] == "fail"
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": "moving away"}]


def test_what_is_as_asked_or_kept_by_policy_is_no_result() -> None:
    lines = (NetworkLine(AS_ASKED), NetworkLine(KEPT))

    assert run_of(NetworkReport(lines))["results"] == []


def test_what_could_not_be_read_is_a_notification_and_a_run_that_saw_nothing_did_not_succeed() -> None:
    (seen,) = run_of(report())["invocations"]
    (blind,) = run_of(NetworkReport((), gaps=(GAP,)))["invocations"]
    (empty,) = run_of(NetworkReport(()))["invocations"]

    (told,) = seen["toolExecutionNotifications"]
    assert told["level"] == "warning"
    assert "network interfaces not read" in told["message"]["text"]
    assert [each["executionSuccessful"] for each in (seen, blind, empty)] == [True, False, True]


def test_a_fingerprint_lasts_over_runs_rules_and_words_and_differs_by_check_and_resource() -> None:
    later = replace(OPEN, reason=Reason(OPEN.reason.code, {**OPEN_FACTS, "reaches": 9, "rule": "sgr-2"}), rule="other")
    log = network_sarif(NetworkReport((NetworkLine(later),)), NOW + timedelta(days=1), "0.2.0", Language.ZH)

    assert log["runs"][0]["results"][0]["fingerprints"] == {"costguardNetwork/v1": fingerprint(OPEN)}
    other_check = found(NetworkCheck.WIDE_RULE, ref("security_group", "sg-1"), code=ReasonCode.NET_WIDE_RULE)
    other_group = found(NetworkCheck.OPEN_ADMIN_PORT, ref("security_group", "sg-2"), code=ReasonCode.NET_OPEN_PORT)
    assert len({fingerprint(each) for each in (OPEN, other_check, other_group)}) == 3


def test_a_fingerprint_is_the_same_in_every_version() -> None:
    """People's baselines hold it: a change here would bring back everything that they have dealt with."""
    assert fingerprint(OPEN) == "e9f4e8b9d90fb5578bcdbd40acbb741afa02591918052f383da46a8b32dea669"


def test_the_same_report_makes_the_same_log() -> None:
    assert network_sarif(report(), NOW, "0.1.0") == network_sarif(
        replace(report(), lines=tuple(reversed(report().lines))), NOW, "0.1.0"
    )
