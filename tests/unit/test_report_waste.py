"""The day-one report: money by owner, nothing priced at zero, nothing claimed that was not seen."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import NOW, SHARD, finding, instance, shard_facts, usd

from costguard.domain.findings import Finding, InstanceFact, Usage, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Accelerator, AcceleratorKind, Gap, GapKind, InstanceState
from costguard.report.csv import to_csv
from costguard.report.waste.day_one import TOP, WasteReport, waste_report
from costguard.report.waste.to_json import waste_json, waste_rows
from costguard.report.waste.views import calls_statement, owners_table, waste_summary, waste_tables
from costguard.report.words.sentences import Language, phrase, short

WEEK = timedelta(days=7)
_UNPRICED = "unpriced"


@dataclass(frozen=True)
class Call:
    operation: str
    permission: str = ""
    calls: int = 1
    changes_something: bool = False


def fact(
    native_id: str, *, idle: int = 0, hourly: str = "2.00", running: float = 168.0, partly: int = 0, **changes: Any
) -> InstanceFact:
    """One machine over a week; `hourly` may be a price in USD, `unpriced`, or an amount with its currency."""
    rate = None
    if hourly != _UNPRICED:
        amount, _, currency = hourly.partition(" ")
        rate = HourlyRate(Money(Decimal(amount), currency or "USD"), "test", "2026-01-01")
    usage = Usage(running, int(running), idle, partly)
    return InstanceFact(instance(native_id, **changes), rate, (), timedelta(0), signals_read=True, usage=usage)


def verdict_on(
    of: InstanceFact, code: ReasonCode = ReasonCode.IDLE, verdict: Verdict = Verdict.VIOLATION, **changes: Any
) -> Finding:
    facts = changes.pop("facts", {})
    return replace(finding(of.instance, verdict), reason=Reason(code, facts), rate=of.rate, **changes)


def report(
    *pairs: tuple[InstanceFact, Finding], gaps: tuple[Gap, ...] = (), calls: tuple[Call, ...] = ()
) -> WasteReport:
    facts = shard_facts(*(fact for fact, _ in pairs), instances_seen=40)
    return waste_report([facts], [found for _, found in pairs], since=NOW - WEEK, until=NOW, gaps=gaps, calls=calls)


def test_idle_cost_is_idle_hours_times_price_by_owner() -> None:
    one, two, other = fact("i-1", idle=100), fact("i-2", idle=50, hourly="4.00"), fact("i-3", idle=10)

    made = report(
        (one, verdict_on(one, owner="nlp")), (two, verdict_on(two, owner="nlp")), (other, verdict_on(other, owner="cv"))
    )

    assert [(owner.owner, owner.idle_hours, owner.idle_cost) for owner in made.owners] == [
        ("nlp", 150, (usd("400.00"),)),
        ("cv", 10, (usd("20.00"),)),
    ]


def test_an_unknown_price_is_counted_apart_and_never_as_zero() -> None:
    known, unknown = fact("i-1", idle=10), fact("i-2", idle=90, hourly=_UNPRICED)

    made = report((known, verdict_on(known)), (unknown, verdict_on(unknown)))

    assert made.total.idle_cost == (usd("20.00"),)
    assert made.total.unpriced == 1
    assert made.total.idle_hours == 100
    assert "1 with unknown price, not counted" in waste_summary(made)[0]
    assert waste_json(made)["instances"][1]["idle_cost"] is None


def test_currencies_are_kept_apart() -> None:
    dollars, yuan = fact("i-1", idle=10), fact("i-2", idle=10, hourly="14.00 CNY")

    made = report((dollars, verdict_on(dollars)), (yuan, verdict_on(yuan)))

    assert made.total.idle_cost == (Money(Decimal("140.00"), "CNY"), usd("20.00"))


def test_machines_never_touched_count_like_any_other_and_are_marked() -> None:
    node = fact("i-node", idle=100)
    exempt = verdict_on(node, ReasonCode.KUBERNETES, Verdict.EXEMPT, facts={"manager": "eks", "utilisation": "idle"})

    made = report((node, exempt))

    assert made.total.idle_cost == (usd("200.00"),)
    assert made.total.untouchable == 1
    assert made.top[0].ref.native_id == "i-node"
    assert waste_json(made)["instances"][0]["never_touched"] == short(ReasonCode.KUBERNETES)


def test_partly_idle_cards_cost_their_share_of_the_machine() -> None:
    """Ten hours of one idle card among eight cost 10/8 hours of the whole machine."""
    eight = Accelerator(AcceleratorKind.NVIDIA_GPU, "A100", 8)
    half = fact("i-8", partly=10, hourly="32.00", accelerator=eight)

    made = report((half, verdict_on(half, ReasonCode.PARTLY_IDLE, Verdict.COMPLIANT)))

    assert made.total.partly_idle_cost == (usd("40.0000"),)
    assert made.total.idle_cost == ()


def test_the_top_names_the_dearest_idle_machines_first() -> None:
    facts = [fact(f"i-{hours:02}", idle=hours) for hours in range(TOP + 5)]

    made = report(*((one, verdict_on(one)) for one in facts))

    assert [waste.idle_hours for waste in made.top] == list(range(TOP + 4, 4, -1))


def test_unmeasured_machines_are_grouped_by_reason_with_the_fix() -> None:
    gpu = fact("i-gpu", running=100)
    neuron = fact("i-inf", running=60, accelerator=Accelerator(AcceleratorKind.NEURON, "Inferentia2", 1))
    node = fact("i-node", running=20)
    fine = fact("i-fine", running=20)

    made = report(
        (gpu, verdict_on(gpu, ReasonCode.NO_DEVICE_METRIC, Verdict.UNMEASURED)),
        (neuron, verdict_on(neuron, ReasonCode.NO_DEVICE_METRIC, Verdict.UNMEASURED)),
        (node, verdict_on(node, ReasonCode.KUBERNETES, Verdict.EXEMPT, facts={"utilisation": "stale"})),
        (fine, verdict_on(fine, ReasonCode.BUSY, Verdict.COMPLIANT)),
    )

    shares = {(group.reason.code, group.reason.facts.get("kind")): group.share for group in made.unmeasured}
    assert shares == {
        (ReasonCode.NO_DEVICE_METRIC, "nvidia_gpu"): Decimal("0.5"),
        (ReasonCode.NO_DEVICE_METRIC, "neuron"): Decimal("0.3"),
        (ReasonCode.STALE, None): Decimal("0.1"),
    }
    assert made.unmeasured_share == Decimal("0.9")
    fixes = {entry["fix"] for entry in waste_json(made)["unmeasured"]}
    assert any("nvidia_gpu" in text for text in fixes)


def test_a_stopped_machine_is_not_called_unmeasured() -> None:
    off = fact("i-off", running=0.0, state=InstanceState.STOPPED)

    made = report((off, verdict_on(off, ReasonCode.SIGNALS_UNREAD, Verdict.UNMEASURED)))

    assert made.unmeasured == ()


def test_reading_calls_prove_that_nothing_was_changed() -> None:
    one = fact("i-1", idle=1)
    calls = (Call("ec2:DescribeInstances", "ec2:DescribeInstances", 4), Call("cloudwatch:ListMetrics", calls=2))

    made = report((one, verdict_on(one)), calls=calls)

    assert calls_statement(made) == phrase("calls_clean", calls=6, operations=2)
    assert waste_json(made)["proof"]["changing_calls"] == 0


def test_a_changing_call_is_never_hidden_by_the_proof() -> None:
    one = fact("i-1", idle=1)
    calls = (Call("ec2:DescribeInstances", calls=4), Call("ec2:StopInstances", calls=1, changes_something=True))

    made = report((one, verdict_on(one)), calls=calls)

    assert calls_statement(made) == phrase("calls_dirty", calls=5, changing=1, operations="ec2:StopInstances")


def test_what_could_not_be_read_is_named_with_its_fix() -> None:
    denied = Gap(SHARD, "inventory", GapKind.DENIED, "UnauthorizedOperation", "allow ec2:DescribeInstances")

    made = report(gaps=(denied,))

    assert waste_tables(made)[0].rows[0][-1] == "allow ec2:DescribeInstances"
    assert phrase("waste_unread") in waste_summary(made)
    assert waste_json(made)["gaps"][0]["kind"] == "denied"


def test_no_owner_is_said_and_tags_cannot_write_on_the_terminal() -> None:
    nobody, hostile = fact("i-1", idle=2), fact("i-2", idle=1)

    made = report((nobody, verdict_on(nobody)), (hostile, verdict_on(hostile, owner="\x1b[2J=cmd()")))

    assert [row[0] for row in owners_table(made).rows] == [phrase("no_owner"), "=cmd()"]
    assert [row[0] for row in owners_table(made, Language.ZH).rows] == ["（无负责人）", "=cmd()"]


def test_csv_has_one_row_an_instance_and_runs_no_formula() -> None:
    one = fact("i-1", idle=3, tags={})
    made = report((one, verdict_on(one, owner='=HYPERLINK("http://example.invalid","pay, now")')))

    text = to_csv(waste_rows(made))

    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.endswith("\r\n")
    assert rows[0]["owner"] == '\'=HYPERLINK("http://example.invalid","pay, now")'
    assert (rows[0]["idle_cost"], rows[0]["currency"], rows[0]["idle_hours"]) == ("6.00", "USD", "3")


@pytest.mark.parametrize("language", list(Language))
def test_every_table_and_the_json_are_made_in_every_language(language: Language) -> None:
    one = fact("i-1", idle=3, partly=1)
    two = fact("i-2")
    denied = Gap(SHARD, "signals", GapKind.THROTTLED, "slow down")

    made = report(
        (one, verdict_on(one)),
        (two, verdict_on(two, ReasonCode.NO_DATA, Verdict.UNMEASURED)),
        gaps=(denied,),
        calls=(Call("ec2:DescribeInstances"),),
    )

    assert len(waste_tables(made, language)) == 5
    assert json.dumps(waste_json(made, language))
