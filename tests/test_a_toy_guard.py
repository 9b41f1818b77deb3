"""A guard that `docs/add-a-guard.md` would add, put into a copy of the package: it runs as itself wherever one asks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "shared/costguard"
MOST_LINES, MOST_PLACES = 60, 5

PURE = '''"""Toys in an account: the smallest question there is."""

from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.policy.model.policy import Policy

NAME = "toys"


def judge(policy: Policy) -> tuple[Finding, ...]:
    refs = (ResourceRef(each.cloud, each.id, "us-east-1", "toy", "toy-1") for each in policy.accounts)
    reason = Reason(ReasonCode.NO_RULE)
    return tuple(Finding(NAME, "toy", "", "", ref, Verdict.VIOLATION, reason, name="a bear") for ref in refs)
'''

RUNNER = '''"""The runner of `toys`: it only tells."""

from costguard.engine.guards.runner import GuardRunner
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.notify.notices import Words
from costguard.guards.toys.judge import NAME, judge
from costguard.planning import Plan


def _see(world, *, deadline, progress, remember, seen=None):
    return judge(world.policy)


def _plan_of(world, run_id, looked, *, deadline, remember):
    head = (NAME, run_id, world.clock.now(), world.policy.digest)
    return Plan(*head, looked, (), (), (), (), (), instances_seen=len(looked))


def _messages(world):
    return Words(warning=None, news=_news)


def _news(world, index):
    for each in index.plan.findings:
        where, now = world.policy.default_channel, world.clock.now()
        yield OutboxNotice("toy-1", "", "toys/toy/1", where, "Toys lie about", each.name, now, case_id="toy-1")


RUNNER = GuardRunner(name=NAME, see=_see, plan_of=_plan_of, messages=_messages)
'''

NEW: Mapping[str, str] = {"guards/toys/judge.py": PURE, "engine/guards/toys.py": RUNNER}
"""Files that are added."""

CHANGED: Mapping[str, Sequence[tuple[str, str]]] = {
    "engine/guards/registry.py": [
        ("        NETWORK_AUDIT: f", '        "toys": f"{_HERE}.toys",\n'),
    ],
    "policy/sections.py": [
        (
            "        NETWORK_AUDIT: Section(",
            '        "toys": Section("toys", "toy", lambda policy: policy.accounts, lambda _: iter(())),\n',
        )
    ],
    "report/guard_views.py": [
        ("        NETWORK_AUDIT: GuardView(", '        "toys": GuardView(Subjects.OTHER, ("toys", "玩具")),\n')
    ],
}
"""Lines that are changed, or put before a line of a table."""

POLICY = """
version: 1
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: a}]
notify: {default: "slack:#toys"}
"""

ASKED = """
import json, sys
from datetime import datetime, timezone
from contextlib import closing
from costguard.bootstrap import open_memory, run_function
from costguard.domain.errors import InvalidInputError
from costguard.settings import process_settings

settings = process_settings()
try:
    run_function("dolls", "run-2", None, settings)
except InvalidInputError as err:
    refused = str(err)
figures = run_function("toys", "run-1", None, settings)
loaded = [name for name in sys.modules if name.startswith("costguard.")]
again = run_function("toys", "run-1", None, settings)
memory = open_memory(settings)
with closing(memory.store):
    told = [notice.title for notice in memory.outbox.beginning_with("toy-")]
    cases = [case.key for guard in ("idle_gpu", "toys") for case in memory.cases.all(guard)]
done = {"refused": refused, "figures": figures, "again": again, "told": told, "cases": cases, "loaded": loaded}
print(json.dumps(done))
"""


class Workshop:
    """A copy of the package with the toy guard in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        copy = folder / "shared/costguard"
        shutil.copytree(PACKAGE, copy)  # what is compiled comes along: it is older than no source
        for name, text in NEW.items():
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8")
        for name, changes in CHANGED.items():
            text = (copy / name).read_text(encoding="utf-8")
            for line, change in changes:
                assert text.count(line) == 1, (name, line)
                text = text.replace(line, change + line if change.startswith("        ") else change)
            (copy / name).write_text(text, encoding="utf-8")
        (folder / "costguard.yaml").write_text(POLICY, encoding="utf-8")

    def python(self, *words: str, given: str = "") -> str:
        """What a process of that package prints; it ends well."""
        ledger = f"sqlite:///{self.folder / 'ledger.sqlite3'}"
        said = {"COSTGUARD_POLICY": str(self.folder / "costguard.yaml"), "COSTGUARD_LEDGER": ledger}
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(  # noqa: S603 - this interpreter, and words of this file
            [sys.executable, *words],
            input=given,
            env={**kept, **said, "PYTHONPATH": str(self.folder / "shared"), "AWS_EC2_METADATA_DISABLED": "true"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode in {0, 10, 11, 13}, done.stderr
        return done.stdout

    def costguard(self, *words: str, given: str = "") -> str:
        return self.python("-c", "from costguard.cli.main import main; main()", *words, given=given)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("toys"))


def test_a_toy_guard_is_sixty_lines_in_five_places() -> None:
    added = sum(len(text.splitlines()) for text in NEW.values())
    changed = sum(len(changes) for changes in CHANGED.values())
    assert added + changed <= MOST_LINES
    assert len(NEW) + len(CHANGED) <= MOST_PLACES


def test_a_function_runs_the_toy_guard_as_itself_and_refuses_one_that_is_not_there(workshop: Workshop) -> None:
    """No idle-machine notice, no case, and nothing of what acts on machines is even loaded."""
    done = json.loads(workshop.python("-c", ASKED))
    assert (done["figures"]["guard"], done["figures"]["findings"]) == ("toys", {"violation": 1})
    assert done["again"]["duplicate"] is True
    assert done["told"] == ["Toys lie about"]
    assert done["cases"] == []
    assert "costguard.engine.guards.machines.run" not in done["loaded"]
    assert done["refused"].startswith("there is no guard 'dolls'; there is idle_gpu, budget, ")
    assert done["refused"].endswith("kms_rotation, toys, network_audit")


def test_the_command_line_plans_and_reports_the_toy_guard_as_itself(workshop: Workshop) -> None:
    planned = json.loads(workshop.costguard("plan", "--guard", "toys", "--json"))
    assert (planned["guard"], [one["id"] for one in planned["findings"]]) == (
        "toys",
        ["aws:111122223333:us-east-1:toy:toy-1"],
    )
    invoked = json.loads(workshop.costguard("invoke", "toys", "--event", "-", "--json", given="{}"))
    assert (invoked["guard"], invoked["instances_seen"]) == ("toys", 1)
    workshop.costguard("report", "--html", "page.html")
    page = (workshop.folder / "page.html").read_text(encoding="utf-8")
    assert "<h2>toys</h2>" in page
    assert "a bear" in page
