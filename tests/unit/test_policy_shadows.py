"""`shadow: true` and `new_accounts` as they are written: what they become, and what is refused."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from costguard.cli.main import run
from costguard.domain.errors import InvalidInputError
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText


def policy(text: str) -> Policy:
    return load_policy(PolicyText({"costguard.yaml": text}, "test"))


def refused(text: str) -> str:
    with pytest.raises(InvalidInputError) as caught:
        policy(text)
    return str(caught.value)


def test_a_rule_in_the_shadow_is_none_of_the_rules() -> None:
    found = policy("""\
version: 1
mode: enforce
idle_gpu: [{name: a}, {name: b, shadow: true}]
kms_rotation: [{name: c, shadow: true}]
network_audit: [{name: d, shadow: true, forbid: [public_ip]}, {name: e, shadow: false, forbid: [public_ip]}]
""")

    assert [rule.name for rule in found.idle_gpu] == ["a"]
    assert [(rule.name, rule.mode) for rule in found.shadows.idle_gpu] == [("b", Mode.OBSERVE)]
    assert (found.kms_rotation, [rule.name for rule in found.shadows.kms_rotation]) == ((), ["c"])
    assert [rule.name for rule in found.network_audit] == ["e"]
    assert [rule.name for rule in found.shadows.network_audit] == ["d"]


@pytest.mark.parametrize("section", ["idle_gpu", "kms_rotation", "network_audit"])
def test_a_shadow_has_no_mode(section: str) -> None:
    forbid = ", forbid: [public_ip]" if section == "network_audit" else ""
    said = refused(f"version: 1\nmode: enforce\n{section}:\n  - {{name: a, mode: observe, shadow: true{forbid}}}\n")

    assert f"{section}[0].mode" in said
    assert "a rule in the shadow decides nothing, whatever its mode" in said
    assert "leave mode out, or shadow" in said


def test_a_shadow_has_a_name_of_its_own() -> None:
    assert "a second rule a" in refused("version: 1\nidle_gpu: [{name: a}, {name: a, shadow: true}]\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1h", timedelta(hours=1)), ("14d", timedelta(days=14)), ("90d", timedelta(days=90))],
)
def test_new_accounts_are_observed_for_so_long(written: str, meant: timedelta) -> None:
    found = policy(f"version: 1\nidle_gpu: [{{name: a}}]\nnew_accounts: {{observe_for: {written}}}\n")
    assert found.observe_new_accounts_for == meant


@pytest.mark.parametrize(
    ("written", "why"),
    [("30m", "too short"), ("91d", "longer than"), ("14", "unit"), ("forever", "forever")],
)
def test_a_wait_that_makes_no_sense_is_refused(written: str, why: str) -> None:
    said = refused(f"version: 1\nidle_gpu: [{{name: a}}]\nnew_accounts: {{observe_for: {written}}}\n")
    assert "new_accounts.observe_for" in said
    assert why in said


def test_who_lets_accounts_join_by_themselves_is_told_of_the_wait(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    joining = (
        'version: 1\nmode: enforce\naccounts: [{cloud: aws, id: "111122223333", regions: all, organisation: true}]\n'
        "notify: {default: 'slack:#a'}\nidle_gpu: [{name: a}]\n"
    )
    for name, text, told in (("a", joining, True), ("b", f"{joining}new_accounts: {{observe_for: 14d}}\n", False)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        run(["policy", "check", str(tmp_path / f"{name}.yaml")])
        assert ("new_accounts" in "".join(capfd.readouterr())) is told


def test_the_command_tells_of_shadows_and_of_none(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["shadows", "--sandbox", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"schema": 1, "shadows": []}
    assert run(["shadows", "--sandbox"]) == 0
    assert "No rule stands in the shadow" in capfd.readouterr().out
