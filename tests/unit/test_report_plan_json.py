"""The documented JSON of a plan: what it must hold, and that every plan keeps to its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.builders import DAY, NOW, SHARD, finding, ref, usd

from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import Evidence, Usage, Verdict
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ScopeRef
from costguard.domain.resources import Gap, GapKind
from costguard.domain.signals import HOUR, SignalName, SignalSummary
from costguard.planning import Held, Plan, Rehearsed
from costguard.planning.plan import Differs, Judgement, Shadow, ShadowDifference
from costguard.report.plan.to_json import plan_json
from costguard.report.plan.views import plan_summary, plan_tables
from costguard.report.words.sentences import Language

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/plan.schema.json").read_text(encoding="utf-8"))

GPU = SignalSummary(SignalName.GPU, "0", 1.25, 1440, 1440, NOW - timedelta(minutes=1), HOUR / 60, "cloudwatch")
SILENT = SignalSummary(SignalName.CPU, "", None, 0, 1440, None, HOUR / 60, "cloudwatch")


def action(verb: Verb = Verb.STOP, **changes: Any) -> Action:
    ordinary = Action(
        action_id="decision-1",
        decision_id="decision-1",
        verb=verb,
        subject=ref(),
        resource=ref(),
        run_epoch="epoch-1",
        case_id="case-1",
        rung=1,
        rule="research",
        rule_digest="digest",
        saving=Saving(usd("0.526"), (("volume", usd("0.011")),), ("public_ip_lost",)),
    )
    return replace(ordinary, **changes)


IDLE = Reason(ReasonCode.IDLE, {"hours": 24.0})
DIFFERENCE = ShadowDifference(
    subject=ref(),
    check="idle",
    name="notebook",
    owner="nlp",
    differs=Differs.SOONER,
    in_force=Judgement("research", Verdict.VIOLATION, IDLE),
    shadow=Judgement("quick", Verdict.VIOLATION, IDLE, NOW),
    hourly=usd("0.526"),
)


def plan(**changes: Any) -> Plan:
    idle = finding(
        reason=Reason(ReasonCode.IDLE, {"hours": 24.0, "gpu_max_percent": 1.25}),
        evidence=Evidence(NOW - DAY, NOW, (GPU, SILENT)),
        rate=HourlyRate(usd("0.526"), "aws-pricing", "2026-01-01"),
        usage=Usage(336.0, 330, 300),
        owner="nlp",
    )
    ordinary = Plan(
        guard="idle_gpu",
        run_id="run-1",
        planned_at=NOW,
        policy_digest="policy-digest",
        findings=(idle, finding(verdict=Verdict.UNMEASURED)),
        transitions=(),
        due=(action(),),
        held=(Held(action(Verb.TERMINATE), Reason(ReasonCode.CAP_ACTIONS, {"used": 10, "allowed": 10})),),
        rehearsed=(Rehearsed(action(Verb.WARN, saving=None), Reason(ReasonCode.MODE_OBSERVE)),),
        gaps=(Gap(SHARD, "inventory", GapKind.DENIED, "denied", "allow ec2:DescribeInstances"),),
        instances_seen=7,
    )
    return replace(ordinary, **changes)


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize(
    "made",
    [
        plan(),
        plan(findings=(), due=(), held=(), rehearsed=(), gaps=()),
        plan(findings=(replace(finding(), subject=ScopeRef("research")),)),
        plan(due=(action(Verb.SNAPSHOT, resource=ref("vol-1", "volume"), saving=None),)),
        plan(due=(action(saving=Saving(None, (("volume", None),))),)),
        plan(shadows=(Shadow("quick", "digest", 2, (DIFFERENCE, replace(DIFFERENCE, hourly=None)), 1),)),
    ],
    ids=["full", "empty", "scope", "volume", "unpriced", "shadow"],
)
def test_every_plan_keeps_to_the_published_schema(made: Plan, language: Language) -> None:
    document = json.loads(json.dumps(plan_json(made, plan_hash="hash", language=language)))

    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_itself_is_valid_and_closed() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate({**plan_json(plan(), plan_hash="hash"), "surprise": 1}, SCHEMA)


def test_a_finding_names_the_resource_as_its_cloud_does() -> None:
    found = plan_json(plan(), plan_hash="hash")["findings"][0]

    named = {key: found[key] for key in ("provider", "cloud", "sub_account_id", "region_id", "resource_id", "id")}
    assert named == {
        "provider": "aws",
        "cloud": "aws",
        "sub_account_id": "111122223333",
        "region_id": "us-east-1",
        "resource_id": "i-1",
        "id": "aws:111122223333:us-east-1:instance:i-1",
    }
    assert (found["verdict"], found["reason"]) == ("violation", "idle")
    assert found["hourly_cost"] == {"amount": "0.526", "currency": "USD"}


def test_evidence_tells_window_coverage_and_every_signal() -> None:
    evidence: Any = plan_json(plan(), plan_hash="hash")["findings"][0]["evidence"]

    assert (evidence["since"], evidence["until"]) == ("2026-03-09T12:30:00Z", "2026-03-10T12:30:00Z")
    assert (evidence["coverage"], evidence["newest_at"]) == (0.0, None)
    assert evidence["signals"][0] == {
        "name": "gpu",
        "device": "0",
        "maximum": 1.25,
        "unit": "%",
        "samples": 1440,
        "expected": 1440,
        "newest_at": "2026-03-10T12:29:00Z",
        "statistic": "device",
        "source": "cloudwatch",
        "outline": [],
        "sustained": None,
        "judged": True,
    }


def test_what_is_held_or_rehearsed_says_the_step_and_the_reason() -> None:
    document = plan_json(plan(), plan_hash="hash")

    held, rehearsed = document["held"][0], document["rehearsed"][0]
    assert (held["verb"], held["reason"]) == ("terminate", "cap_actions")
    assert "10 of 10" in held["words"]
    assert (rehearsed["verb"], rehearsed["reason"]) == ("warn", "mode_observe")


def test_amounts_are_exact_text() -> None:
    saving: Any = plan_json(plan(), plan_hash="hash")["due"][0]["saving"]

    assert saving["net"] == {"amount": "0.515", "currency": "USD"}
    assert saving["stops_billing"]["amount"] == "0.526"


@pytest.mark.parametrize("language", list(Language))
def test_tables_show_every_part_of_a_plan(language: Language) -> None:
    assert len(plan_tables(plan(), language)) == 5
    assert plan_tables(plan(findings=(), due=(), held=(), rehearsed=(), gaps=()), language) == ()


def test_the_summary_counts_everything() -> None:
    assert plan_summary(plan()) == "2 findings, 1 due, 1 held, 1 rehearsed, 1 gap."


def test_a_set_of_copies_names_its_volumes_and_says_that_they_are_of_one_moment() -> None:
    volumes = (ref("vol-1", "volume"), ref("vol-2", "volume"))
    made = plan(due=(action(Verb.SNAPSHOT, copies=volumes, saving=None),))
    shown = plan_json(made, plan_hash="hash")
    jsonschema.validate(shown, SCHEMA)
    (due,) = shown["due"]
    assert due["copies"] == [str(volume) for volume in volumes]
    assert due["words"] == "snapshot of 2 disks as of one moment i-1"
    told = [row[0] for table in plan_tables(made, Language.ZH) for row in table.rows]
    assert "创建快照（2 块云盘，同一时刻）" in told
