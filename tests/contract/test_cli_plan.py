"""`plan`, `apply` and what people answer, on the demo's fleet: exit statuses, refusals, and effects in the next run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.contract.cli_sandbox import Cli

from cloudstand.aws.core.server import Refused
from cloudstand.world.kinds import InstanceState
from costguard.cli.decide.plan_file import plan_hash
from costguard.cli.demo.story import DEMO_POLICY
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.sandbox.running import Sandbox

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/plan.schema.json").read_text(encoding="utf-8"))
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as running:
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(sandbox, tmp_path, capfd)


@pytest.fixture(scope="module")
def plans() -> dict[object, str]:
    """What was planned before, by the moment and what had happened until then."""
    return {}


def told_of(results: Any) -> list[Any]:
    """The results but for the login node: its cloud protects it, which nobody knows before its notice is due."""
    protected = [result for result in results if result["reason"] == "protected_by_cloud"]
    assert [(result["outcome"], result["facts"]) for result in protected] == [
        (None, {"protection": "termination_protection"})
    ]
    return [result for result in results if result not in protected]


@pytest.fixture
def plan(cli: Cli, plans: dict[object, str]) -> Path:
    """A plan with a ledger that nobody used yet: while the clouds stand as they stood, it is the same."""
    path = cli.folder / "plan.json"
    stand = (cli.sandbox.clock.now(), cli.sandbox.world.revision)
    if stand not in plans:
        assert cli("plan", "--out", str(path)).status == Exit.DUE
        plans[stand] = path.read_text(encoding="utf-8")
    path.write_text(plans[stand], encoding="utf-8")
    return path


def rewritten(path: Path, **changes: Any) -> str:
    """A copy of a plan's file with other contents."""
    document = json.loads(path.read_text(encoding="utf-8"))
    other = path.with_name("other.json")
    other.write_text(json.dumps({**document, **changes}), encoding="utf-8")
    return str(other)


def test_something_due_is_status_10_and_the_documented_json(cli: Cli) -> None:
    told = cli("plan", "--guard", "idle_gpu", "--json")

    assert told.status == Exit.DUE
    jsonschema.validate(told.json, SCHEMA)
    assert {action["verb"] for action in told.json["due"]} == {"warn"}
    assert told.json["held"] == []
    due = {action["subject"] for action in told.json["due"]}
    on_aws = {subject for subject in due if subject.startswith("aws")}
    assert set(told.json["unread_protections"]) == on_aws, "the others list what protects them"
    assert len(told.json["findings"]) == 29


def test_a_plan_writes_no_ledger_and_changes_nothing(cli: Cli) -> None:
    posted, happened = len(cli.sandbox.slack.posted), len(cli.sandbox.world.history)

    first, second = cli("plan", "--json").json, cli("plan", "--json").json

    assert first == second
    assert list(cli.folder.iterdir()) == []
    assert (len(cli.sandbox.slack.posted), len(cli.sandbox.world.history)) == (posted, happened)


def test_nothing_due_is_status_0(cli: Cli) -> None:
    policy = cli.folder / "costguard.yaml"
    policy.write_text(
        "version: 1\nmode: enforce\n"
        "accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]\n"
        "idle_gpu: [{name: nobody, applies_when_all: {tags: {team: nobody}}, then: [warn]}]\n"
        "notify: {default: 'slack:#gpu-costs'}\n",
        encoding="utf-8",
    )

    told = cli("plan", "--policy", str(policy))

    assert told.status == Exit.OK
    assert "5 findings, 0 due, 0 held, 0 rehearsed, 0 gaps." in told.out


def test_a_gap_wins_over_what_is_due(cli: Cli) -> None:
    denied = Refused("ec2", "DescribeInstances", "UnauthorizedOperation", "no", region="eu-west-1")
    cli.sandbox.gateway.refused.append(denied)
    try:
        told = cli("plan", "--json")
    finally:
        cli.sandbox.gateway.refused.clear()

    assert told.status == Exit.GAPS
    assert told.json["due"]
    assert {gap["region_id"] for gap in told.json["gaps"]} == {"eu-west-1"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--guard", "nonsense"), "there is no guard 'nonsense'; there is idle_gpu, budget"),
        (("--policy", "nowhere"), "nowhere: no such file or folder"),
        (("--out", "no/such/folder/plan.json"), "cannot be written"),
        (("--ledger", "mysql://x"), "not a ledger address (scheme 'mysql')"),
    ],
)
def test_bad_input_is_told_in_one_line(cli: Cli, options: tuple[str, ...], said: str) -> None:
    told = cli("plan", *options, ledger=False)

    assert told.status == Exit.BAD_INPUT
    assert said in told.err
    assert len(told.err.splitlines()) == 1


def test_a_plan_is_applied_once_and_exactly(cli: Cli, plan: Path) -> None:
    due = json.loads(plan.read_text(encoding="utf-8"))["due"]
    posted = len(cli.sandbox.slack.posted)

    told, again = cli("apply", "--plan", str(plan), "--json"), cli("apply", "--plan", str(plan))

    assert told.status == Exit.HELD, "one of them is protected, and was not told"
    assert [result["action_id"] for result in told.json["results"]] == [action["action_id"] for action in due]
    done = told_of(told.json["results"])
    assert {(result["outcome"], result["reason"]) for result in done} == {("took_effect", None)}
    news = [post.text for post in cli.sandbox.slack.posted[posted:]]
    named = [[result["resource_id"] in text for text in news].count(True) for result in told.json["results"]]
    assert named == [
        int(result in done) for result in told.json["results"]
    ]  # each machine in one message, those of one owner in the same
    assert len(news) < len(due)
    assert again.status == Exit.REFUSED
    assert "it was applied already" in again.err


def test_a_plan_agreed_to_minutes_ago_opens_its_cases_now(cli: Cli, plan: Path) -> None:
    """A case that a plan opens gets its ids when it is applied: all else that was agreed to is the same."""
    agreed = json.loads(plan.read_text(encoding="utf-8"))["due"]
    cli.sandbox.advance(timedelta(minutes=20))

    told = cli("apply", "--plan", str(plan), "--json")

    done = told_of(told.json["results"])
    assert {(result["verb"], result["outcome"]) for result in done} == {("warn", "took_effect")}
    assert [result["subject"] for result in told.json["results"]] == [action["subject"] for action in agreed]
    known = {case["case_id"] for case in cli("cases", "--json").json["cases"]}
    assert {result["case_id"] for result in told.json["results"]} <= known
    assert not {action["case_id"] for action in agreed} & known


@pytest.mark.parametrize(
    ("what", "said"),
    [("body", "does not match its plan_hash"), ("shown", "what it shows to people is not what its plan would do")],
)
def test_an_altered_plan_is_refused(cli: Cli, plan: Path, what: str, said: str) -> None:
    """Whether what would be done was altered, or what people read of it."""
    document = json.loads(plan.read_text(encoding="utf-8"))
    if what == "body":
        document["plan"]["due"][0]["verb"] = "terminate"
    else:
        document["due"] = document["due"][1:]

    told = cli("apply", "--plan", rewritten(plan, **document))

    assert told.status == Exit.REFUSED
    assert said in told.err
    assert not (cli.folder / "ledger.db").exists()


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ("nonsense", "it is one of guard 'nonsense'; there is idle_gpu, budget"),
        ("budget", "it has cases of another guard than budget"),
    ],
)
def test_a_plan_that_is_whole_but_of_another_guard_is_refused(cli: Cli, plan: Path, guard: str, said: str) -> None:
    document = json.loads(plan.read_text(encoding="utf-8"))
    body = {**document["plan"], "guard": guard}

    told = cli("apply", "--plan", rewritten(plan, plan=body, plan_hash=plan_hash(body), guard=guard))

    assert told.status == Exit.REFUSED
    assert said in told.err


@pytest.mark.parametrize("text", ["", "{}", "[]", "not JSON", '{"plan": {}, "language": "fr"}'])
def test_what_is_no_plan_is_bad_input(cli: Cli, text: str) -> None:
    path = cli.folder / "plan.json"
    path.write_text(text, encoding="utf-8")

    told = cli("apply", "--plan", str(path))

    assert told.status == Exit.BAD_INPUT
    assert str(path) in told.err


def test_a_plan_of_another_policy_is_refused(cli: Cli, plan: Path) -> None:
    policy = cli.folder / "policy"
    (policy / "policies").mkdir(parents=True)
    for path in DEMO_POLICY.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("{stop: {wait: 24h}}", "{stop: {wait: 23h}}")
        (policy / path.relative_to(DEMO_POLICY)).write_text(text, encoding="utf-8")

    told = cli("apply", "--plan", str(plan), "--policy", str(policy))

    assert told.status == Exit.REFUSED
    assert "the policy is not the one it was made under" in told.err


def test_a_plan_is_refused_once_its_case_has_moved(cli: Cli, plan: Path) -> None:
    other = cli.folder / "same.json"
    cli.sandbox.advance(timedelta(minutes=1))
    assert cli("plan", "--out", str(other)).status == Exit.DUE
    assert cli("apply", "--plan", str(other)).status == Exit.HELD

    told = cli("apply", "--plan", str(plan))

    assert told.status == Exit.REFUSED
    assert "has moved since" in told.err


def test_notices_that_do_not_arrive_are_not_done(cli: Cli, plan: Path) -> None:
    cli.sandbox.slack.faults.error = "channel_not_found"
    try:
        told = cli("apply", "--plan", str(plan), "--json")
    finally:
        cli.sandbox.slack.faults.error = ""

    assert told.status == Exit.HELD
    assert {result["reason"] for result in told_of(told.json["results"])} == {"notice_undelivered"}
    assert told.json["notices"] == []


def test_what_people_say_counts_in_the_next_plan(cli: Cli, plan: Path) -> None:
    """Day 0 everybody is told; a snooze, an approval and the kill switch decide what day 1 brings."""
    asking = cli.folder / "asking"
    (asking / "policies").mkdir(parents=True)
    for path in DEMO_POLICY.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("local_disk: keep", "local_disk: ask")
        others = ("{cloud: alibaba", "{cloud: tencent")
        text = "\n".join(line for line in text.splitlines() if not any(other in line for other in others))
        (asking / path.relative_to(DEMO_POLICY)).write_text(text, encoding="utf-8")
    here = ("--policy", str(asking))

    def planned() -> Any:
        return cli("plan", *here, "--out", str(plan), "--json").json

    def stops(told: Any, where: str) -> dict[str, str]:
        return {one["resource_id"]: one.get("reason", "") for one in told[where] if one["verb"] == "stop"}

    thesis, staging, transcoder = (
        cli.id_of(name) for name in ("thesis-notebook", "staging-inference", "batch-transcoder")
    )
    planned()
    assert cli("apply", "--plan", str(plan), *here).status == Exit.HELD, "the login node is protected"

    cli.sandbox.advance(DAY)
    day_1 = planned()
    assert stops(day_1, "due").keys() == {thesis, staging}
    assert stops(day_1, "held") == {transcoder: "approval_needed"}

    assert cli("snooze", thesis, "--for", "48h", "--reason", "thesis").status == Exit.OK
    refused = cli("apply", "--plan", str(plan), *here)
    assert (refused.status, "was snoozed until" in refused.err) == (Exit.REFUSED, True)
    assert stops(planned(), "due").keys() == {staging}

    assert cli("pause", "--reason", "incident", "--by", "operations").status == Exit.OK
    refused = cli("apply", "--plan", str(plan), *here)
    assert (refused.status, "paused by operations" in refused.err) == (Exit.REFUSED, True)
    assert stops(planned(), "due") == {}
    assert "paused by operations: incident" in cli("cases").out
    assert cli("resume").status == Exit.OK

    planned()
    assert cli("apply", "--plan", str(plan), *here).status == Exit.HELD
    assert cli("approve", thesis).status == Exit.BAD_INPUT
    assert cli("approve", transcoder, "--by", "media").status == Exit.OK
    assert stops(planned(), "due") == {}, "at 24.37 USD an hour it takes two"
    assert cli("approve", transcoder, "--by", "platform").status == Exit.OK
    cli.sandbox.advance(timedelta(hours=1))
    after = planned()
    assert stops(after, "due").keys() == {transcoder}
    assert cli("apply", "--plan", str(plan), *here).status == Exit.HELD
    machines = cli.sandbox.world.machines
    assert machines[staging].state is InstanceState.STOPPED
    assert machines[thesis].state is InstanceState.RUNNING
    assert machines[transcoder].state is InstanceState.STOPPING

    why = cli("why", staging)
    assert why.status == Exit.OK
    for said in ("case opened under rule product", "told slack:#gpu-search", "asked the cloud to stop", "seen done"):
        assert said in why.out
    known = cli("why", thesis, "--json").json
    assert known["snoozed"]["reason"] == "thesis"
    assert known["case"]["status"] == "snoozed"
    assert cli("audit", "verify").status == Exit.OK
    assert {case["status"] for case in cli("cases", "--json").json["cases"]} == {"open", "held", "snoozed"}


def test_a_look_at_one_machine_needs_no_case(cli: Cli) -> None:
    told = cli("why", "paper-demo", "--scan", "--json")

    assert told.status == Exit.OK
    assert told.json["resource_id"] == cli.id_of("paper-demo")
    assert told.json["finding"]["reason"] == "protected_tag"
    assert told.json["case"] is None
    nothing = cli("why", "nobody", "--scan")
    assert nothing.status == Exit.BAD_INPUT
    assert "it was not seen now" in nothing.err


def test_an_old_plan_is_refused(cli: Cli, plan: Path) -> None:
    cli.sandbox.advance(timedelta(minutes=61))

    told = cli("apply", "--plan", str(plan))

    assert told.status == Exit.REFUSED
    assert "it was made 61 minutes ago, and a plan is valid for 60 minutes" in told.err


@pytest.mark.parametrize("ledger", ["postgresql://costguard@ledger.example.com/costguard", "dynamodb://costguard"])
def test_a_sandbox_takes_no_ledger_that_others_share(capsys: pytest.CaptureFixture[str], ledger: str) -> None:
    """Its notices would be delivered to made-up people, and their graces would begin."""
    assert run(["plan", "--sandbox", "--ledger", ledger]) == Exit.BAD_INPUT
    assert "--sandbox" in capsys.readouterr().err
