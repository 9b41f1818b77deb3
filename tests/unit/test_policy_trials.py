"""Users' own tests of a policy, and machines that are only described."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from tests.words.said import says

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.domain.errors import InvalidInputError
from costguard.policy.documents.loader import load_policy
from costguard.policy.trial.documents import read_tests
from costguard.ports import PolicyText
from costguard.report.policy.trial import Trial, tried

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "shared/costguard/report/schemas"
POLICY = """\
version: 1
mode: enforce
notify: {default: "slack:#gpu"}
owners: [{name: nlp, owns: {tags: {team: research}}, cloud_users: ["user/ada"]}]
idle_gpu:
  - name: research
    applies_when_all: {tags: {team: research}}
    then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]
  - name: everybody
    except_when_any: [{tags: {team: product}}]
    then: [warn, {stop: {wait: 12h}}]
    safety: {local_disk: keep}
exceptions:
  - {resource: i-0exempt, owner: nlp, reason: demo, approver: finops, expires: "2026-12-01T18:00:00+08:00"}
  - {resource: i-0exempt, owner: nlp, reason: old, approver: finops, expires: "2026-01-01T18:00:00+08:00"}
"""
LOADED = load_policy(PolicyText({"costguard.yaml": POLICY}, "r"))
MACHINE = 'cloud: aws, account: "111122223333", region: us-east-1, type: g5.xlarge, hourly: 1.01 USD'
TEAM = "tags: {team: research}"
QUIET = "gpu: 1%, cpu: 3%, network: 2KiB/s"


def trial(
    machine: str = TEAM, *, signals: str = QUIET, happened: str = "", expect: str = "verdict: violation"
) -> Trial:
    told = f"    happened: {{{happened}}}\n" if happened else ""
    text = (
        'version: 1\ntests:\n  - name: t\n    at: "2026-11-02T10:30:00+08:00"\n'
        f"    instance: {{{MACHINE}, {machine}}}\n    signals: {{{signals}}}\n{told}    expect: {{{expect}}}\n"
    )
    document, lines = read_tests("tests/t.yaml", text)
    return tried(LOADED, document.tests[0], "tests/t.yaml", lines[0])


@pytest.mark.parametrize(
    ("machine", "options", "expect"),
    [
        (TEAM, {}, "verdict: violation, reason: idle, rule: everybody, next: warn, outcome: due, owner: nlp"),
        (TEAM, {"happened": "warned: 13h"}, "next: stop, outcome: due"),
        (TEAM, {"happened": "warned: 11h"}, 'next: stop, outcome: waits, next_at: "2026-11-02T11:30:00+08:00"'),
        (TEAM + ", local_disk: true", {"happened": "warned: 13h"}, "next: stop, outcome: held, held_by: local_disk"),
        (
            TEAM + ", one_time_spot: true",
            {"happened": "warned: 13h"},
            "next: stop, outcome: held, held_by: cannot_stop",
        ),
        (
            TEAM + ", gpus: 4",
            {"signals": "gpu: [0%, 0%, 64%, 0%], cpu: 3%, network: 2KiB/s"},
            "verdict: compliant, reason: partly_idle, next: none",
        ),
        (TEAM, {"signals": QUIET + ", coverage: 80%"}, "verdict: unmeasured, reason: low_coverage"),
        (TEAM, {"signals": "cpu: 3%"}, "verdict: unmeasured, reason: no_device_metric"),
        (TEAM + ", running_for: 3h", {}, "verdict: unmeasured, reason: too_young"),
        (TEAM + ", managed_by: kubernetes", {}, "verdict: exempt, reason: kubernetes"),
        (TEAM + ", billing: prepaid", {}, "verdict: exempt, reason: prepaid"),
        (TEAM + ", id: i-0exempt", {}, "verdict: exempt, reason: exception"),
        ("tags: {team: product}", {}, "verdict: exempt, reason: no_rule, rule: none, owner: product"),
        ("tags: {team: product}, launched_by: user/ada", {}, "owner: nlp"),
    ],
)
def test_a_test_says_what_the_product_would_do(machine: str, options: dict[str, str], expect: str) -> None:
    came = trial(machine, expect=expect, **options)

    assert (came.missed, came.came.problem) == ((), "")
    assert came.passed


FOR_ANOTHER = "  - name: everybody\n    applies_when_all: {tags: {team: other}}\n"
TERMINATES = load_policy(PolicyText({"costguard.yaml": POLICY.replace("  - name: everybody\n", FOR_ANOTHER)}, "r"))


@pytest.mark.parametrize(
    ("happened", "expect"),
    [
        ("warned: 9d, stopped: 8d", "next: warn, outcome: due"),
        ("warned: 9d, stopped: 8d, warned_again: 6d", "next: snapshot, outcome: waits"),
        ("warned: 9d, stopped: 8d, warned_again: 7d", "next: snapshot, outcome: due"),
        ("warned: 9d, stopped: 8d, warned_again: 7d, snapshotted: 1h", "next: terminate, outcome: due"),
    ],
)
def test_the_whole_ladder_can_be_tested(happened: str, expect: str) -> None:
    text = (
        f'version: 1\ntests:\n  - name: t\n    at: "2026-11-02T10:30:00+08:00"\n    instance: {{{MACHINE}, {TEAM}}}\n'
        f"    signals: {{{QUIET}}}\n    happened: {{{happened}}}\n    expect: {{{expect}}}\n"
    )

    came = tried(TERMINATES, read_tests("t.yaml", text)[0].tests[0])

    assert came.missed == ()


@pytest.mark.parametrize(
    ("happened", "signals", "problem"),
    [("warned: 13h", "gpu: 90%", "no_case"), ("warned: 13h, stopped: 1h, warned_again: 1h", QUIET, "no_rung")],
)
def test_a_story_that_could_not_have_been_fails_and_says_so(happened: str, signals: str, problem: str) -> None:
    came = trial(happened=happened, signals=signals, expect="rule: everybody")

    assert (came.came.problem, came.passed) == (problem, False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("verdict: idle", "not a verdict"),
        ("verdikt: violation", "did you mean verdict?"),
        ("next: destroy", "not a step"),
    ],
)
def test_mistakes_name_file_line_and_column_and_show_the_line(wrong: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=r"tests/t.yaml:7:\d+: tests\[0\].expect") as raised:
        trial(expect=wrong)

    assert said in str(raised.value)
    assert f"expect: {{{wrong}}}" in str(raised.value)


def test_a_test_that_expects_nothing_is_a_mistake() -> None:
    with pytest.raises(InvalidInputError, match="proves nothing"):
        trial(expect="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def test_a_failed_test_tells_what_was_expected_and_what_came(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(# tests/research.yaml\n.*?)```", page, re.DOTALL)
    assert example is not None
    (folder / "tests" / "a.yaml").write_text(example[1], encoding="utf-8")

    assert run(["policy", "test", "--policy", str(folder)]) == Exit.DUE

    out = capfd.readouterr().out
    assert f"FAILED  {folder}/tests/a.yaml:4: an idle machine is stopped a day after its owner was told" in out
    assert "    rule: expected research, found everybody" in out
    assert "What came of it: everybody: idle." in out
    assert f"passed  {folder}/tests/a.yaml:" in out
    assert "2 tests: 1 passed, 1 failed." in out


def test_the_json_is_what_its_schema_says(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = f'{{name: a, at: "2026-11-02T10:30:00Z", instance: {{{MACHINE}}}, expect: {{owner: none}}}}'
    text = f"version: 1\ntests: [{one}]\n"
    (folder / "tests" / "a.yaml").write_text(text, encoding="utf-8")

    assert run(["policy", "test", "--policy", str(folder), "--json"]) == Exit.OK

    told = json.loads(capfd.readouterr().out)
    jsonschema.validate(told, json.loads((REPORT / "policy_test.schema.json").read_text(encoding="utf-8")))
    assert (told["passed"], told["failed"]) == (1, 0)


def test_no_test_at_all_does_not_pass(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "test", "--policy", str(folder)]) == Exit.BAD_INPUT
    assert "no file of tests is there" in capfd.readouterr().err


def test_a_described_machine_is_explained(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "machine.yaml"
    text = f'at: "2026-11-02T10:30:00Z"\ninstance: {{{MACHINE}, id: i-0exempt, tags: {{team: product, owner: ml}}}}\n'
    path.write_text(text, encoding="utf-8")

    assert run(["policy", "explain", str(path), "--policy", str(folder / "costguard.yaml")]) == Exit.OK

    out = capfd.readouterr().out
    assert "tags.team is product, not research" in out
    assert "excepted by tags.team=product" in out
    assert "Owner: ml (a tag), told at slack:#gpu" in out
    assert (
        "After them, if they say that it is not theirs: product" not in out
    )  # of several tags the best names somebody
    assert "Exception until 2026-12-01 10:00 UTC" in out
    assert "Exception over since 2026-01-01 10:00 UTC" in out


def test_a_described_machine_is_explained_as_the_rollout_leaves_it(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a ledger nobody was told of any step, so that none was taken."""
    path, policy = folder / "machine.yaml", folder / "costguard.yaml"
    path.write_text(f"instance: {{{MACHINE}, {TEAM}}}\nsignals: {{gpu: 1%}}\n", encoding="utf-8")
    steps = "{mode: warn, since: 2026-01-05}, {mode: enforce, since: 2026-01-19}"
    rolled_out = f"rollout: [{{team: nlp, steps: [{steps}]}}]\n"
    policy.write_text(policy.read_text(encoding="utf-8") + rolled_out, encoding="utf-8")

    assert run(["policy", "explain", str(path), "--policy", str(policy), "--json"]) == Exit.OK

    told = json.loads(capfd.readouterr().out)
    assert told["rollout"]["reason"] == "rollout"
    assert run(["policy", "explain", str(path), "--policy", str(policy)]) == Exit.OK
    assert says(capfd.readouterr().out, "policy_explain_rollout")


def test_the_explanation_as_json_is_what_its_schema_says(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "machine.yaml"
    path.write_text(f"instance: {{{MACHINE}, {TEAM}}}\nsignals: {{gpu: 1%}}\n", encoding="utf-8")

    assert run(["policy", "explain", str(path), "--policy", str(folder / "costguard.yaml"), "--json"]) == Exit.OK

    told = json.loads(capfd.readouterr().out)
    jsonschema.validate(told, json.loads((REPORT / "policy_explain.schema.json").read_text(encoding="utf-8")))
    decides = {rule["name"]: (rule["applies"], rule["applied"]) for rule in told["rules"]}
    assert decides == {"everybody": (True, True), "research": (True, False)}
    assert told["owners"] == [{"name": "nlp", "source": "owners.yaml"}, {"name": "research", "source": "tag"}]
