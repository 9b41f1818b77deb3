"""Every report names the policy that the runs it tells of decided by: a short line for people, hashes for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.builders import NOW, policy
from tests.published_rig import DAY, LOOSER, TIGHTER, Office
from tests.unit.report_facts import facts, look, sight

from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.engine.digest import plan_digest
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import LookRepository
from costguard.engine.policy.in_force import decided_by, named
from costguard.ports import Put, Record
from costguard.report.notices.digest import Kept, digest_notice
from costguard.report.page.page import Drawing, report_page
from costguard.report.policy.provenance import DecidedBy, decided_json, decided_lines
from costguard.report.waste.day_one import waste_report
from costguard.report.waste.to_json import waste_json
from costguard.report.words.sentences import Language, phrase
from costguard.settings import Secret, Settings

HASH = "4c1388307060" + "a" * 52
PUBLISHED = DecidedBy("d" * 64, ("idle_gpu", "budget"), HASH, 2)
LINES = {
    Language.EN: phrase("policy_decided", digest="4c1388307060", seq=2),
    Language.ZH: "策略 4c1388307060，第 2 次发布。",
}


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path / "bundles").enforcing()
    yield made
    made.memory.store.close()


def runs(office: Office, *guards: str) -> None:
    """The runs of these guards, by what is in force now."""
    memory = named(office.memory, office.runs())
    for guard in guards:
        memory.runs.begin(f"{guard}-{office.now.isoformat()}", guard, office.now)


def test_one_policy_is_named_once_by_its_hash_and_number(office: Office) -> None:
    runs(office, "idle_gpu", "budget")

    (found,) = decided_by(office.memory)
    first = office.memory.policies.published.all()[0]
    assert (found.bundle, found.number, found.guards, found.waiting) == (first.digest, 1, ("idle_gpu", "budget"), "")
    assert decided_lines([found]) == (phrase("policy_decided", digest=first.digest[:12], seq=1),)


def test_while_guards_decided_by_different_ones_each_is_named_with_its_guards(office: Office) -> None:
    runs(office, "budget", "idle_gpu")
    office.now += DAY
    office.publish(TIGHTER)
    runs(office, "idle_gpu")

    assert [(each.number, each.guards) for each in decided_by(office.memory)] == [(2, ("idle_gpu",)), (1, ("budget",))]
    assert [line.rpartition(",")[2] for line in decided_lines(decided_by(office.memory))] == [
        " for idle_gpu.",
        " for budget.",
    ]


def test_what_was_published_again_is_named_by_the_number_it_decided_as(office: Office) -> None:
    """A rollback publishes the same files anew; a run from before it decided by the first of them."""
    runs(office, "budget")
    office.now += DAY
    office.publish(TIGHTER)
    runs(office, "kms_rotation")
    office.now += DAY
    office.roll_back(effective_at=office.now + 2 * DAY)
    digest = office.memory.policies.published.all()[0].digest
    office.approve(digest, "U0APPROV1", "U0APPROV2")
    office.now += 3 * DAY
    runs(office, "idle_gpu")

    assert {each.guards: each.number for each in decided_by(office.memory)} == {
        ("budget",): 1,
        ("kms_rotation",): 2,
        ("idle_gpu",): 3,
    }


def test_one_that_waits_is_named_beside_the_one_that_decided(office: Office) -> None:
    waiting = office.publish(LOOSER, NOW + 2 * DAY).publication.digest
    runs(office, "idle_gpu")

    assert decided_lines(decided_by(office.memory))[0].endswith(f"number 1; {waiting[:12]} waits.")


def test_a_policy_from_files_is_named_by_the_digest_of_what_it_means() -> None:
    store = open_ledger("memory:")
    memory = Memory.over(store)
    memory.runs.deciding_by("d" * 64).begin("run-1", "idle_gpu", NOW)

    assert decided_lines(decided_by(memory)) == (phrase("policy_decided", digest="d" * 12),)
    store.close()


def test_a_run_that_named_none_names_none() -> None:
    store = open_ledger("memory:")
    memory = Memory.over(store)
    assert decided_by(memory) == ()

    body = {"run_id": "run-0", "guard": "idle_gpu", "started_at": NOW.isoformat(), "finished_at": None}
    old: dict[str, Any] = {**body, "summary": {}, "heads": {}}
    store.transact([Put(Record("run", "run-0", old), 0), Put(Record("run_latest", "idle_gpu", old), 0)])
    assert decided_by(memory) == ()
    store.close()


def test_what_was_looked_at_now_is_named_by_the_policy_it_was_judged_by(office: Office) -> None:
    runs(office, "idle_gpu", "budget")

    found = decided_by(office.memory, {"idle_gpu": "e" * 64})
    assert (found[0].digest[:3], found[0].number) == ("eee", None)
    assert [each.guards for each in found] == [("idle_gpu",), ("budget",)]


@pytest.mark.parametrize("language", list(Language))
def test_the_page_and_the_digest_say_so_in_a_short_line(language: Language) -> None:
    told = facts(looks=(look(sight()),), policies=(PUBLISHED,))

    assert f'<p class="note">{LINES[language]}</p>' in report_page(told, language, Drawing(None, "none"))
    assert LINES[language] in digest_notice(told, Kept(), language).text.splitlines()


def test_a_digest_of_a_quiet_week_says_so_too() -> None:
    quiet = replace(facts(looks=(look(),), policies=(PUBLISHED,)), budgets=(), saved=None, cases=(), refusals=())

    assert digest_notice(quiet, Kept(), Language.EN).lines[1:] == (LINES[Language.EN],)


def test_a_day_one_scan_names_the_policy_it_was_judged_by() -> None:
    report = waste_report((), (), since=NOW - timedelta(days=14), until=NOW, policy_digest=policy().digest)

    assert waste_json(report)["policy_digest"] == policy().digest


# the commands


class Clock:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Ask:
    """The command line over a ledger whose runs decided by a published policy."""

    settings: Settings
    capfd: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> str:
        run(list(arguments), program=Program(settings=lambda: self.settings, clock=Clock()))
        return self.capfd.readouterr().out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def ask(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ask:
    settings = Settings(policy=f"published:{tmp_path / 'b'}", ledger=Secret(f"sqlite:///{tmp_path / 'ledger.db'}"))
    memory = Memory.over(open_ledger(settings.ledger.reveal()))
    office = Office(tmp_path / "b", NOW, memory).enforcing()
    runs(office, "idle_gpu")
    LookRepository(memory.store).keep(look(sight(), at=NOW))
    memory.store.close()
    return Ask(settings, capfd)


def test_every_command_that_reports_names_it_for_people_and_for_machines(ask: Ask, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    told = ask.json("report", "--html", str(page))
    (said,) = told["policies"]
    line = phrase("policy_decided", digest=said["policy_bundle"][:12], seq=1)

    assert (said["number"], said["guards"], said["policy_waiting"]) == (1, ["idle_gpu"], None)
    assert len(said["policy"]) == 64
    assert ask.json("savings")["policies"] == told["policies"]
    assert line in page.read_text(encoding="utf-8")
    for command in (("report",), ("savings",), ("digest", "--dry-run")):
        assert line in ask(*command), command
    for name, document in (("report", told), ("savings", ask.json("savings"))):
        schema = json.loads(
            files("costguard.report").joinpath(f"schemas/{name}.schema.json").read_text(encoding="utf-8")
        )
        jsonschema.validate(document, schema)


def test_the_digest_of_every_channel_names_it(office: Office) -> None:
    runs(office, "idle_gpu")
    LookRepository(office.memory.store).keep(look(sight(), at=NOW))
    told = plan_digest(office.memory, office.runs().policy, "digest-1", NOW, Language.EN).told

    assert told
    assert all("published number 1." in one.notice.text for one in told)


def test_the_fields_for_machines_are_null_where_nothing_was_published() -> None:
    (said,) = decided_json([DecidedBy("d" * 64, ("idle_gpu",))])

    assert said == {
        "policy": "d" * 64,
        "policy_bundle": None,
        "number": None,
        "policy_waiting": None,
        "guards": ["idle_gpu"],
    }
