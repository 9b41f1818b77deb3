"""What docs/policy.md shows of a change from edit to live is what the commands print, in that order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.builders import NOW
from tests.published_rig import ENFORCES, text

from costguard.bootstrap import open_memory
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.connections.policies import open_bundles
from costguard.engine.policy_in_force import PolicyInForce, named, published_in_force
from costguard.providers.keys import Keys
from costguard.sandbox.alibaba.objects import oss_stand_in
from costguard.sandbox.slack import SlackStandIn
from costguard.settings import Access, AccessKey, Secret, Settings

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## From edit to live\n")[2].partition("\n## ")[0]
SHOWN = [
    line
    for block in re.findall(r"^```console\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
CHANGED = ENFORCES.replace("wait: 24h", "wait: 1h")


class Watch:
    at = NOW

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class Deployment:
    """Functions that read their policy from files until now, and whoever changes it."""

    def __init__(self, settings: Settings, slack: SlackStandIn, clock: Watch) -> None:
        self.settings, self.slack, self.clock = settings, slack, clock

    def runs(self) -> PolicyInForce:
        memory = open_memory(self.settings)
        with closing(memory.store):
            bundles = open_bundles(self.settings, self.settings.policy, self.clock)
            found = published_in_force(bundles, memory, self.clock.now())
            named(memory, found).runs.begin(self.clock.now().isoformat(), "idle_gpu", self.clock.now())
            return found

    def types(self, command: str) -> None:
        """A code that was sent is typed as it came; the page shows another in its place."""
        sent = re.search(r"\d{8}$", self.slack.posted[-1].text.split("\n")[0]) if self.slack.posted else None
        words = shlex.split(command.replace("--code 12345678", f"--code {sent.group() if sent else ''}"))
        run(words[1:], program=Program(settings=lambda: self.settings, clock=self.clock))

    def happens(self, what: str) -> None:
        later = re.fullmatch(r"# (\d+) hours later", what)
        if later is not None:
            self.clock.at += timedelta(hours=int(later[1]))
        else:
            assert what == "# the next run"
            self.runs()


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.chdir(tmp_path)
    for name, yaml in (("main", ENFORCES), ("changed", CHANGED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "costguard.yaml").write_text(yaml, encoding="utf-8")
    keys, clock = Keys("key-id", "a secret", ""), Watch()
    with SlackStandIn() as slack, oss_stand_in("acme-policy", "cn-hangzhou", keys, clock.now) as bucket:
        settings = Settings(
            policy="oss://acme-policy/costguard?region=cn-hangzhou",
            ledger=Secret("sqlite:///ledger.sqlite3"),
            slack_token=Secret(slack.token),
            slack_url=slack.base_url,
            alibaba=Access(endpoint_url=bucket.url, key=AccessKey("key-id", Secret("a secret"))),
        )
        memory = open_memory(settings)
        with closing(memory.store):
            memory.policies.remember(text(ENFORCES), NOW)
        yield Deployment(settings, slack, clock)


def test_every_step_is_as_the_page_shows_it(deployment: Deployment, capfd: pytest.CaptureFixture[str]) -> None:
    came: list[str] = []
    for line in SHOWN:
        if line.startswith("$ costguard "):
            deployment.types(line[2:])
            out, err = capfd.readouterr()
            came += [line, *(each for each in (out + err).splitlines() if each.strip())]
        elif line.startswith("# "):
            deployment.happens(line)
            came.append(line)

    assert came == [line for line in SHOWN if line.strip()]
    assert len(came) > 20


def test_the_change_that_the_page_tells_of_is_one_line() -> None:
    changed = [(old, new) for old, new in zip(ENFORCES.splitlines(), CHANGED.splitlines(), strict=True) if old != new]

    assert len(changed) == 1
    assert f"-{changed[0][0]}\n+{changed[0][1]}\n" in SECTION
    assert replace(text(CHANGED), files={}) == replace(text(ENFORCES), files={})
