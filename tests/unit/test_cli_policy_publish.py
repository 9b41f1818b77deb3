"""`costguard policy publish`, `history`, `rollback` and `approve`, over a folder, a bucket and a workspace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW
from tests.published_rig import DAY, ENFORCES, FIRST, LOOSER, OBSERVES, SECOND, TIGHTER, text
from tests.world_ports.translate import to_world

from cloudstand.alibaba.core.objects import oss_stand_in
from cloudstand.slack.stand_in import SlackStandIn
from costguard.bootstrap import open_memory, read_policy, run_function
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.connections.policies import open_bundles
from costguard.domain.errors import InvalidInputError
from costguard.engine.policy.in_force import published_in_force
from costguard.providers.kit.core.credentials import Keys
from costguard.settings import Access, AccessKey, Secret, Settings


class Watch:
    at = NOW

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Desk:
    """A command line, where it works, and what it printed."""

    folder: Path
    settings: Settings
    clock: Watch
    slack: SlackStandIn
    capfd: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, status: Exit = Exit.OK) -> str:
        program = Program(settings=lambda: self.settings, clock=self.clock)
        assert run(["policy", *arguments], program=program) == status
        return "".join(self.capfd.readouterr())

    def told(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))

    def policy(self, yaml: str) -> str:
        """A checkout of the policy repo."""
        path = self.folder / "policy"
        path.mkdir(exist_ok=True)
        (path / "costguard.yaml").write_text(yaml, encoding="utf-8")
        return str(path)

    def runs(self) -> None:
        """What every run does before anything else."""
        memory = open_memory(self.settings)
        with closing(memory.store):
            published_in_force(open_bundles(self.settings, self.settings.policy, self.clock), memory, self.clock.now())

    def digests(self, run_id: str) -> dict[str, Any]:
        """A run of a function, as its host starts it."""
        return run_function("digest", run_id, None, self.settings, self.clock)


@dataclass(frozen=True)
class Standing:
    """A workspace and a bucket that all share."""

    slack: SlackStandIn
    settings: Settings


@pytest.fixture(scope="module")
def standing() -> Iterator[Standing]:
    keys = Keys("key-id", "a secret", "")
    with SlackStandIn() as slack, oss_stand_in("acme-policy", "cn-hangzhou", to_world(keys), lambda: NOW) as bucket:
        settings = Settings(
            slack_token=Secret(slack.token),
            slack_url=slack.base_url,
            alibaba=Access(endpoint_url=bucket.url, key=AccessKey("key-id", Secret("a secret"))),
        )
        yield Standing(slack, settings)


@pytest.fixture
def desk(request: pytest.FixtureRequest, standing: Standing, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Desk:
    """ENFORCES was read from files until now."""
    policy = f"published:{tmp_path / 'published'}"
    if getattr(request, "param", "") == "bucket":
        policy = f"oss://acme-policy/{tmp_path.name}?region=cn-hangzhou"
    settings = replace(standing.settings, policy=policy, ledger=Secret(f"sqlite:///{tmp_path / 'ledger.sqlite3'}"))
    memory = open_memory(settings)
    with closing(memory.store):
        memory.policies.remember(text(ENFORCES), NOW)
    return Desk(tmp_path, settings, Watch(), standing.slack, capfd)


@pytest.mark.parametrize("desk", ["folder", "bucket"], indirect=True)
def test_a_change_goes_from_edit_to_live_as_the_ledger_says(desk: Desk) -> None:
    """The one-line diff that would have loosened: published, told, approved by two, in force a day later."""
    desk("publish", desk.policy(ENFORCES), "--by", "ci", "--note", "PR 1")
    first = desk.digests("run-1")["policy_bundle"]

    refused = desk("publish", desk.policy(LOOSER), status=Exit.BAD_INPUT)
    assert "idle_gpu all: idle_when_all.every_gpu_max_below: 5%, now 9%" in refused

    said = desk("publish", desk.policy(LOOSER), "--effective-at", "25h", "--by", "ci", "--note", "PR 2")
    second = desk.told("history")["waits"]["hash"]
    assert f"Published {second[:12]} as number 2" in said
    assert "waits until 2026-03-11 13:30 UTC and for 2 more approvers." in said
    assert "1 loosen, 0 tighten, 0 do neither." in said

    for person in (FIRST, SECOND):
        desk("approve", second[:12], "--by", person)
        assert desk.slack.posted[-1].channel == f"#{person}"  # the stand-in writes one before every address
        code = re.search(r"\d{8}", desk.slack.posted[-1].text)
        assert code is not None
        desk("approve", second[:12], "--by", person, "--code", code.group())
    before = desk.digests("run-2")
    assert (before["policy_bundle"], before["policy_waiting"]) == (first, second)

    desk.clock.at = NOW + 2 * DAY
    after = desk.digests("run-3")
    assert (after["policy_bundle"], "policy_waiting" in after) == (second, False)

    rows = desk.told("history")["publications"]
    assert [(each["by"], each["note"], each["state"]) for each in rows] == [
        ("ci", "PR 1", "was_in_force"),
        ("ci", "PR 2", "in_force"),
    ]
    assert rows[1]["approved_by"] == [FIRST, SECOND]


def test_history_is_told_to_people_in_both_languages(desk: Desk) -> None:
    desk("publish", desk.policy(ENFORCES), "--by", "ci")
    desk.runs()
    desk("publish", desk.policy(TIGHTER), "--effective-at", "1h")

    assert re.search(r"It decides from 2026-03-10 13:30 UTC on\.", desk("history"))
    assert "生效中" not in desk("history", "--lang", "en")
    assert "等待中" in desk("history", "--lang", "zh")


def test_going_back_is_said_and_takes_away_what_waits(desk: Desk) -> None:
    desk("publish", desk.policy(ENFORCES))
    desk.runs()
    desk("publish", desk.policy(LOOSER), "--effective-at", "25h")

    assert "decides from the next run on" in desk("rollback", "--note", "incident 42")
    assert [each["state"] for each in desk.told("history")["publications"]] == ["was_in_force", "never", "next_run"]


@pytest.mark.parametrize("desk", ["bucket"], indirect=True)
def test_the_command_line_reads_the_policy_in_force(desk: Desk) -> None:
    """Every command that takes a policy takes the published one, and never the one that waits."""
    desk("publish", desk.policy(ENFORCES))
    desk.runs()
    desk("publish", desk.policy(LOOSER), "--effective-at", "25h")

    assert read_policy(desk.settings, desk.clock).idle_gpu[0].idle.every_gpu_max_below_percent == 5.0


def test_reading_the_policy_makes_no_ledger(desk: Desk) -> None:
    elsewhere = replace(desk.settings, ledger=Secret(f"sqlite:///{desk.folder / 'new.sqlite3'}"))

    with pytest.raises(InvalidInputError, match="no ledger is there"):
        read_policy(elsewhere, desk.clock)
    assert not (desk.folder / "new.sqlite3").exists()


def test_json_tells_what_was_published_and_what_it_means(desk: Desk) -> None:
    told = desk.told("publish", desk.policy(TIGHTER))

    assert (told["waits"], told["published"]["number"], told["published"]["state"]) == (None, 1, "next_run")
    assert [each["direction"] for each in told["differences"]] == ["tighter"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "'' is no place to publish to"),
        ("/mnt/policy", "expected published:FOLDER, s3://BUCKET"),
        ("published:", "is no place to publish to"),
        ("https://policies.example.com/x", "is no place to publish to"),
        ("s3://bucket.with.dots/x?region=us-east-1", "the address of published policies"),
        ("oss://a/x", "the address of published policies is no address of a bucket"),
    ],
)
def test_policies_are_published_to_known_places_only(address: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        open_bundles(Settings(), address, Watch())


@pytest.mark.parametrize("moment", ["tomorrow", "2026-12-01T10:00:00", "-1h"])
def test_a_moment_that_is_none_is_refused(desk: Desk, moment: str) -> None:
    said = desk("publish", desk.policy(OBSERVES), f"--effective-at={moment}", status=Exit.BAD_INPUT)

    assert "--effective-at: " in said


def test_without_a_ledger_nothing_is_published_unless_one_is_named(desk: Desk) -> None:
    desk.settings = replace(desk.settings, ledger=Secret(f"sqlite:///{desk.folder / 'new.sqlite3'}"))

    assert "no ledger is there" in desk("publish", desk.policy(OBSERVES), status=Exit.BAD_INPUT)
    desk("publish", desk.policy(OBSERVES), "--ledger", desk.settings.ledger.reveal())
    assert [each["state"] for each in desk.told("history")["publications"]] == ["next_run"]
