"""What people say and ask at the command line, over a ledger file: no cloud, a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW, case
from tests.words.said import says

from costguard.adapters.ledgers.open import open_ledger
from costguard.cases import Case, CaseStatus, ClimbedRung, speaks_for
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.audit.audit import ENTRY
from costguard.engine.ledger.memory import Memory
from costguard.guards.rules.common import Mode
from costguard.report.words.sentences import phrase, sentence
from costguard.settings import Secret, Settings


class Still:
    """A clock that stands still."""

    def now(self) -> Any:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass(frozen=True)
class Desk:
    """A command line over one ledger file."""

    url: str
    run: Callable[..., int]

    def memory(self) -> Memory:
        return Memory.over(open_ledger(self.url))

    def with_case(self, **changes: Any) -> Case:
        memory = self.memory()
        with closing(memory.store):
            memory.runs.begin("run-1", "idle_gpu", NOW)
            return memory.cases.commit(None, replace(case(), **changes), run_id="run-1", now=NOW)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    settings = Settings(ledger=Secret(url))

    def run_here(*arguments: str, paused: bool = False) -> int:
        program = Program(settings=lambda: replace(settings, paused=paused), clock=Still())
        return run(arguments, program=program)

    return Desk(url, run_here)


def test_a_ledger_that_is_not_there_is_never_made_by_a_question_or_an_answer(
    desk: Desk, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a wrong folder `pause` must not stop nothing, and `cases` must not say that there are none."""
    for arguments in (
        ("cases",),
        ("why", "i-1"),
        ("snooze", "i-1", "--for", "48h"),
        ("approve", "i-1"),
        ("stop-now", "i-1"),
        ("disown", "i-1"),
        ("pause", "--reason", "x"),
        ("resume",),
        ("audit", "verify"),
    ):
        assert desk.run(*arguments) == Exit.BAD_INPUT, arguments
        assert "no ledger is there" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_ledger_is_unavailable(desk: Desk, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ledger.db").write_text("not a database, but long enough to look like a file with contents")

    assert desk.run("cases") == Exit.UNAVAILABLE
    assert capfd.readouterr().err == "costguard: the ledger's database failed: file is not a database\n"


def test_a_snooze_is_remembered_with_who_and_why(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    known = desk.with_case()

    assert desk.run("snooze", known.subject.native_id, "--for", "48h", "--reason", "demo", "--by", "vision") == Exit.OK

    assert phrase("snoozed", resource=str(known.subject), until="2026-03-12 12:30 UTC") in capfd.readouterr().out
    memory = desk.memory()
    with closing(memory.store):
        kept = memory.snoozes.active(NOW)[str(known.subject)]
    assert (kept.until, kept.by, kept.reason) == (NOW + timedelta(hours=48), "vision", "demo")


@pytest.mark.parametrize(
    ("length", "said"),
    [
        ("48", "--for: '48' has no unit; expected a duration such as 24h, 7d, 30m or 90s; write 48h"),
        ("0h", "at most 90 days"),
        ("91d", "at most 90 days"),
        ("soon", "'soon' is not a duration"),
    ],
)
def test_a_length_that_makes_no_sense_is_refused(
    desk: Desk, length: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    known = desk.with_case()

    assert desk.run("snooze", str(known.subject), "--for", length) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("i-unknown", "no case is known for 'i-unknown'"),
        ("mars:1:2:instance:i-1", "is not a resource id"),
        ("\x1b[31mred", "no case is known for"),
    ],
)
def test_a_resource_that_nobody_knows_is_refused(
    desk: Desk, resource: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    desk.with_case()

    assert desk.run("snooze", resource, "--for", "48h") == Exit.BAD_INPUT
    err = capfd.readouterr().err
    assert said in err
    assert "\x1b" not in err


def test_only_what_waits_for_a_word_can_be_approved(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    held = Reason(ReasonCode.APPROVAL_NEEDED)
    waiting = desk.with_case(status=CaseStatus.HELD, reason=held, decision_id="decision-1")

    assert desk.run("approve", waiting.subject.native_id, "--json") == Exit.OK

    told = json.loads(capfd.readouterr().out)
    assert (told["decision_id"], told["until"]) == ("decision-1", "2026-03-11T12:30:00Z")


TWO = """
version: 1
notify:
  default: "slack:#a"
  answers: {slack_team: T0123ABCD, approvers: [U0123ABCD, U0456EFGH], two_approvers_above: [20 USD]}
idle_gpu: [{name: research}]
"""


def test_two_approvers_count_at_the_command_line_too(
    desk: Desk, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows the price, so that it takes two; the same name twice is one."""
    (tmp_path / "costguard.yaml").write_text(TWO, "utf-8")
    held = Reason(ReasonCode.APPROVAL_NEEDED)
    waiting = desk.with_case(status=CaseStatus.HELD, reason=held, decision_id="decision1")
    codes = []
    for name in ("vision", "vision", "finops"):
        named = ("--by", name, "--policy", str(tmp_path / "costguard.yaml"))
        assert desk.run("approve", waiting.subject.native_id, *named, "--json") == Exit.OK
        codes.append(json.loads(capfd.readouterr().out)["code"])

    assert codes == ["approval_needs_another", "approval_waits", "approved"]
    memory = desk.memory()
    with closing(memory.store):
        approval = memory.approvals.valid("decision1", NOW)
    assert approval is not None
    assert approval.by == "cli:vision, cli:finops"


def test_stop_now_waits_no_longer_behind_a_notice(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    known = desk.with_case(climbed=(ClimbedRung(Verb.WARN, NOW),), attempt=2)

    assert desk.run("stop-now", known.subject.native_id, "--by", "vision") == Exit.OK
    assert says(capfd.readouterr().out, "answer_stop_asked")
    assert desk.run("stop-now", known.subject.native_id, "--by", "vision") == Exit.OK
    assert "already" in capfd.readouterr().out
    memory = desk.memory()
    with closing(memory.store):
        (granted,) = memory.haste.granted(NOW)
    assert speaks_for(granted.decision_id, known)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rung": 0}, "answer_nothing_to_stop"),
        ({"mode": Mode.OBSERVE, "climbed": (ClimbedRung(Verb.WARN, NOW),)}, "answer_only_rehearsed"),
        ({"status": CaseStatus.CLOSED}, "answer_over"),
    ],
)
def test_a_stop_that_does_not_wait_cannot_be_hastened(
    desk: Desk, changes: dict[str, Any], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    known = desk.with_case(attempt=2, **changes)
    assert desk.run("stop-now", known.subject.native_id) == Exit.BAD_INPUT
    assert says(capfd.readouterr().err, said)


def test_a_machine_can_be_disowned(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    known = desk.with_case(owner="nlp")

    assert desk.run("disown", known.subject.native_id, "--by", "vision") == Exit.OK
    assert says(capfd.readouterr().out, "answer_disowned", owner="nlp")
    memory = desk.memory()
    with closing(memory.store):
        assert memory.disowned.all() == {str(known.subject): frozenset({"nlp"})}


def test_what_nobody_owns_cannot_be_disowned(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    known = desk.with_case(owner="")
    assert desk.run("disown", known.subject.native_id) == Exit.BAD_INPUT
    assert says(capfd.readouterr().err, "answer_no_owner")


def test_pause_and_resume_say_what_holds_afterwards(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    desk.with_case()

    assert desk.run("pause", "--reason", "incident", "--by", "operations") == Exit.OK
    assert "Paused by operations: incident. Nothing begins" in capfd.readouterr().out
    assert desk.run("cases") == Exit.OK
    assert phrase("is_paused", by="operations", reason="incident") in capfd.readouterr().out
    assert desk.run("resume", "--by", "operations", paused=True) == Exit.OK
    out = capfd.readouterr().out
    assert phrase("resumed", by="operations") in out
    assert phrase("still_paused") in out


def test_open_cases_are_listed_and_closed_ones_only_when_asked_for(
    desk: Desk, capfd: pytest.CaptureFixture[str]
) -> None:
    closed = Reason(ReasonCode.RECOVERED)
    known = desk.with_case(status=CaseStatus.CLOSED, reason=closed, closed_at=NOW)

    assert desk.run("cases") == Exit.OK
    assert capfd.readouterr().out == "No case.\n"
    assert desk.run("cases", "--all", "--json") == Exit.OK
    (told,) = json.loads(capfd.readouterr().out)["cases"]
    assert (told["case_id"], told["status"], told["reason"]) == (known.case_id, "closed", "recovered")


def test_why_tells_how_a_case_ended(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    known = desk.with_case(status=CaseStatus.CLOSED, reason=Reason(ReasonCode.RECOVERED), closed_at=NOW)

    assert desk.run("why", known.case_id) == Exit.OK

    out = capfd.readouterr().out
    assert f"2026-03-10 12:30 UTC  {phrase('happened_closed', why=sentence(Reason(ReasonCode.RECOVERED)))}" in out
    assert "Next" not in out
    assert desk.run("why", "i-unknown") == Exit.BAD_INPUT
    assert "`--scan` looks at the cloud as well" in capfd.readouterr().err


def test_an_audit_that_was_altered_is_status_14(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    desk.with_case()
    assert desk.run("audit", "verify") == Exit.OK
    assert phrase("audit_whole", entries=1, chains=1, intents=0) in capfd.readouterr().out
    memory = desk.memory()
    with closing(memory.store):
        (entry,) = memory.store.query(ENTRY)
        memory.store.put(replace(entry, body={**entry.body, "run_id": "run-2"}), entry.version)

    assert desk.run("audit", "verify") == Exit.BROKEN
    assert "it was changed" in capfd.readouterr().out
    assert desk.run("audit", "verify", "--json") == Exit.BROKEN
    assert json.loads(capfd.readouterr().out)["whole"] is False


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", ("not paused by this command", "Lambda: Configuration", "Function Compute: Configurations", "SCF: ")),
        ("zh", ("本命令未能暂停", "Lambda：配置", "函数计算 FC：配置", "SCF：函数配置")),
    ],
)
def test_a_pause_that_cannot_be_written_names_the_switch_of_each_host(
    desk: Desk, tmp_path: Path, capfd: pytest.CaptureFixture[str], lang: str, said: tuple[str, ...]
) -> None:
    desk.with_case()
    (tmp_path / "ledger.db").write_bytes(b"no ledger any more")
    assert desk.run("pause", "--reason", "incident", "--json", "--lang", lang) == Exit.UNAVAILABLE
    out, err = capfd.readouterr()
    assert out == ""
    named = (*said, "COSTGUARD_PAUSED=1", 'settings = { COSTGUARD_PAUSED = "1" }', "`costguard deploy`")
    assert [word for word in named if word not in err] == []


def test_a_resume_that_cannot_be_written_names_no_switch(
    desk: Desk, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What would pause a host is no advice to whoever wants it to go on."""
    desk.with_case()
    (tmp_path / "ledger.db").write_bytes(b"no ledger any more")
    assert desk.run("resume") == Exit.UNAVAILABLE
    assert "COSTGUARD_PAUSED" not in capfd.readouterr().err


def test_a_pause_of_the_wrong_ledger_is_still_a_wrong_option(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.run("pause", "--reason", "incident") == Exit.BAD_INPUT
    assert "no ledger is there" in capfd.readouterr().err
