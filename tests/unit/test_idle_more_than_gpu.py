"""A machine in use is no idle one, whatever a single metric says: CPU, network and power are asked as well."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import NOW, fact, history, instance, policy, rule

from costguard.domain.findings import Finding, InstanceFact, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Accelerator, AcceleratorKind
from costguard.domain.signals import SignalHistory, SignalName, Statistic
from costguard.guards.idle.contradiction import IN_USE_WATTS, in_use_watts
from costguard.guards.idle.judge import judge_instance
from costguard.guards.rules.idle import SHIPPED_BOUNDS, BudgetCause, IdleBounds, IdleRule
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import default_policy
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText
from costguard.report.plan.evidence import evidence_json, evidence_words
from costguard.report.words.sentences import Language, explain, sentence

STARTER = Path(__file__).parents[2] / "infra/config-repo"
GPU_ALONE = rule()
MIB = 1024.0 * 1024
CLOUDS = ("aws", "alibaba", "tencent")
MAIN = "version: 1\nmode: observe\n"


def starter_rule() -> IdleRule:
    """The starter as it is shipped."""
    files = {
        path.relative_to(STARTER).as_posix(): path.read_text(encoding="utf-8").replace("CHOOSE", "UTC")
        for path in (*STARTER.glob("*.yaml"), *STARTER.glob("policies/*.yaml"))
    }
    (found,) = load_policy(PolicyText(files, "starter")).idle_gpu
    return found


SHIPPED = {"default": default_policy().idle_gpu[0], "starter": starter_rule()}


def machine(
    *,
    gpu: float = 0.0,
    cpu: float | SignalHistory = 2.0,
    network: float = 2_000.0,
    watts: float = 30.0,
    cloud: str = "aws",
) -> InstanceFact:
    """One card, and a CPU, network and power as every cloud tells them; on Tencent Cloud of all cards together."""
    subject = instance()
    statistic = Statistic.MEAN_OF_CARDS if cloud == "tencent" else Statistic.DEVICE
    device = "" if cloud == "tencent" else "0"
    subject = replace(subject, ref=replace(subject.ref, cloud=cloud))
    return fact(
        subject,
        history(device=device, value=gpu, statistic=statistic),
        history(SignalName.POWER, device, value=watts, statistic=statistic),
        cpu if isinstance(cpu, SignalHistory) else history(SignalName.CPU, "", value=cpu),
        history(SignalName.NETWORK, "", value=network),
    )


def judged(found: InstanceFact, applied: IdleRule = GPU_ALONE) -> Finding:
    return judge_instance(found, applied, NOW)


def what(found: InstanceFact, applied: IdleRule = GPU_ALONE) -> tuple[Verdict, ReasonCode]:
    finding = judged(found, applied)
    return finding.verdict, finding.reason.code


USED = {
    "a CPU at 97 %": {"cpu": 97.0},
    "a download of 1 GB/s": {"network": 1e9},
    "an exporter stuck at 0 while the card draws 270 W": {"watts": 270.0},
    "reinforcement learning": {"gpu": 4.9, "cpu": 80.0},
}


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("use", USED)
@pytest.mark.parametrize("shipped", SHIPPED)
def test_under_the_shipped_rules_no_machine_in_use_is_idle(shipped: str, use: str, cloud: str) -> None:
    verdict, _ = what(machine(**USED[use], cloud=cloud), SHIPPED[shipped])
    assert verdict in {Verdict.COMPLIANT, Verdict.UNMEASURED}


@pytest.mark.parametrize("shipped", SHIPPED)
def test_under_the_shipped_rules_an_idle_machine_is_still_found(shipped: str) -> None:
    assert what(machine(), SHIPPED[shipped]) == (Verdict.VIOLATION, ReasonCode.IDLE)


@pytest.mark.parametrize("signal", [SignalName.CPU, SignalName.NETWORK])
@pytest.mark.parametrize("shipped", SHIPPED)
def test_the_shipped_rules_name_cpu_and_network(shipped: str, signal: SignalName) -> None:
    assert SHIPPED[shipped].idle == SHIPPED_BOUNDS
    assert signal in dict(SHIPPED_BOUNDS.bounds())


def loaded(idle: str) -> IdleRule:
    text = f"{MAIN}idle_gpu:\n  - name: one\n{idle}    then: [warn]\n"
    (found,) = load_policy(PolicyText({"costguard.yaml": text}, "t")).idle_gpu
    return found


@pytest.mark.parametrize("idle", ["", "    idle_when_all: {lasting: 24h}\n"])
def test_a_rule_that_names_no_signal_has_the_shipped_bounds(idle: str) -> None:
    assert loaded(idle).idle == SHIPPED_BOUNDS


def test_a_rule_that_names_the_gpu_alone_means_and_is_called_what_it_was() -> None:
    """Its digest is what notices and graces already given are bound to."""
    written = loaded("    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}\n")
    assert written.idle == IdleBounds()
    assert written.digest == "cfe08c32e62f5a833216fc56eae866218bf9782e698e52eee60fd299022df15b"


@pytest.mark.parametrize("bounds", [IdleBounds(), IdleBounds(power_max_below_watts=80.0)])
def test_a_rule_for_cards_alone_is_remarked_and_one_that_names_the_cpu_is_not(bounds: IdleBounds) -> None:
    told = [str(each) for each in remarks(policy(rule(idle=bounds)), NOW)]
    assert any("rule research: names neither CPU nor network" in each for each in told)
    with_cpu = rule(idle=IdleBounds(cpu_max_below_percent=10.0))
    assert not any("neither CPU nor network" in str(each) for each in remarks(policy(with_cpu), NOW))


@pytest.mark.parametrize(
    ("use", "signal", "reached"),
    [
        ({"cpu": 97.0}, "cpu", 97.0),
        ({"network": 1e9}, "network", 1e9),
        ({"watts": 270.0}, "power", 270.0),
    ],
)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_gpu_that_reads_0_against_another_signal_is_contradicted_and_not_idle(
    use: dict[str, float], signal: str, reached: float, cloud: str
) -> None:
    finding = judged(machine(**use, cloud=cloud))
    assert (finding.verdict, finding.reason.code) == (Verdict.UNMEASURED, ReasonCode.CONTRADICTED)
    assert (finding.reason.facts["signal"], finding.reason.facts["maximum"]) == (signal, reached)


def test_a_spent_budget_does_not_stop_what_is_contradicted() -> None:
    spent = replace(GPU_ALONE, cause=BudgetCause("research", Decimal(1)))
    assert what(machine(cpu=97.0), spent) == (Verdict.UNMEASURED, ReasonCode.CONTRADICTED)


def test_a_card_that_reads_anything_is_believed_where_the_rule_names_it_alone() -> None:
    assert what(machine(gpu=4.9, cpu=80.0)) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_one_silent_card_of_two_is_enough_to_doubt() -> None:
    two = instance(accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A100", 2))
    cards = (history(value=1.0), history(device="1"))
    drawing = (history(SignalName.POWER, "0", value=270.0), history(SignalName.POWER, "1", value=270.0))
    assert what(fact(two, *cards, *drawing)) == (Verdict.UNMEASURED, ReasonCode.CONTRADICTED)
    assert what(fact(two, *cards, drawing[0])) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_a_nightly_job_does_not_hide_an_idle_machine() -> None:
    nightly = history(SignalName.CPU, "", value=2.0, spikes={9: 100.0, 10: 100.0})
    assert what(machine(cpu=nightly)) == (Verdict.VIOLATION, ReasonCode.IDLE)


def test_work_that_began_two_hours_ago_is_work() -> None:
    begun = history(SignalName.CPU, "", value=2.0, spikes={0: 80.0, 1: 80.0})
    assert what(machine(cpu=begun)) == (Verdict.UNMEASURED, ReasonCode.CONTRADICTED)


def test_a_signal_that_is_only_shown_may_be_missing() -> None:
    gone = history(SignalName.CPU, "", value=90.0, missing=tuple(range(24 * 14 + 1)))
    assert what(machine(cpu=gone)) == (Verdict.VIOLATION, ReasonCode.IDLE)
    finding = judged(machine(cpu=gone))
    assert finding.evidence is not None
    assert finding.evidence.coverage == 1.0


def test_what_a_rule_names_is_taken_at_its_word() -> None:
    lenient = rule(idle=IdleBounds(cpu_max_below_percent=50.0))
    assert what(machine(cpu=30.0), lenient) == (Verdict.VIOLATION, ReasonCode.IDLE)
    assert what(machine(cpu=60.0), lenient) == (Verdict.COMPLIANT, ReasonCode.BUSY)


@pytest.mark.parametrize(
    ("model", "watts"), [("T4", 40.0), ("Tesla P4", 40.0), ("A10", 90.0), ("A10G", 150.0), ("A100", 150.0), ("", 150.0)]
)
def test_what_a_card_draws_only_in_use_depends_on_the_card(model: str, watts: float) -> None:
    assert in_use_watts(instance(accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, model, 1))) == watts
    assert IN_USE_WATTS == 150.0


def test_a_notice_says_what_was_not_looked_at() -> None:
    reason = judged(machine()).reason
    assert "Not looked at: CPU, network. Use that the rule does not measure does not close the case." in sentence(
        reason
    )
    assert "未查看：CPU、网络。规则不测量的使用不会关闭此事项。" in sentence(reason, Language.ZH)
    assert "Not looked at" not in sentence(judged(machine(), SHIPPED["default"]).reason)


def test_a_contradiction_says_which_signal_and_how_much() -> None:
    reason = judged(machine(watts=270.0)).reason
    assert explain(reason).startswith(
        "Not measured: contradicted. A GPU read 0 % throughout, while power of card 0 reached 270 W, which is over 40."
    )
    assert "功率" in explain(reason, Language.ZH)
    assert sentence(Reason(ReasonCode.CONTRADICTED))


def test_what_was_read_beside_it_is_shown_as_evidence() -> None:
    evidence = judged(machine()).evidence
    told = evidence_json(evidence)
    assert told is not None
    assert {one["name"]: one["judged"] for one in told["signals"]} == {
        "gpu": True,
        "power": False,
        "cpu": False,
        "network": False,
    }
    assert "read beside it: CPU ≤ 2 %, network ≤ 1.95 KiB/s, power ≤ 30 W" in evidence_words(evidence)


@pytest.mark.parametrize("minute", [1, 14, 31, 59])
def test_an_hour_of_five_minute_samples_is_whole_while_the_newest_is_on_its_way(minute: int) -> None:
    """A spent budget asks for an idle hour, of whose CPU a cloud tells twelve samples, the newest ten minutes late."""
    now = NOW.replace(minute=minute)
    cards, slow = history(now=now), []
    for name in (SignalName.CPU, SignalName.NETWORK):
        series = history(name, "", value=1.0, now=now, per_hour=12, delay=timedelta(minutes=10))
        series.samples[-1] = max(0, series.samples[-1] - 1)
        slow.append(series)
    hour = replace(SHIPPED_BOUNDS, lasting=timedelta(hours=1))
    found = fact(None, cards, *slow, now=now, lasting=timedelta(hours=1))
    assert judge_instance(found, rule(idle=hour), now).reason.code is ReasonCode.IDLE

    slow[0].samples[-2] = 8
    lossy = fact(None, cards, *slow, now=now, lasting=timedelta(hours=1))
    assert judge_instance(lossy, rule(idle=hour), now).reason.code is ReasonCode.LOW_COVERAGE


def test_sustained_is_what_an_eighth_of_the_hours_reached() -> None:
    hours = dict.fromkeys(range(5, 9), 50.0)
    four = history(SignalName.CPU, "", value=1.0, spikes=hours).over(NOW - timedelta(hours=24), NOW)
    three = history(SignalName.CPU, "", value=1.0, spikes={5: 50.0, 6: 50.0, 7: 50.0})
    assert (four.sustained, three.over(NOW - timedelta(hours=24), NOW).sustained) == (50.0, 1.0)
