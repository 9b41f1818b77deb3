"""`costguard report` and `costguard digest` from a ledger that runs have used: no cloud, no sandbox, no network."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import typer
from tests.unit.report_facts import NOW, budget, gap, look, sight, untouchable

from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.exits import Exit
from costguard.cli.look.report import report
from costguard.cli.main import run
from costguard.cli.people.digest import digest
from costguard.cli.program import Program
from costguard.engine.ledger.runs import LookRepository
from costguard.settings import Secret, Settings

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/report.schema.json").read_text(encoding="utf-8"))
COMMANDS = typer.Typer()
COMMANDS.command()(report)
COMMANDS.command()(digest)
POLICY = "version: 1\nnotify: {default: 'slack:#gpu-costs'}\nidle_gpu: [{name: research}]\n"


class Clock:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError(seconds)


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture
def ask(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ask:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    settings = Settings(
        policy=str(tmp_path / "costguard.yaml"),
        ledger=Secret(f"sqlite:///{tmp_path / 'ledger.db'}"),
        reports=str(tmp_path / "reports"),
    )

    def asked(*arguments: str) -> Said:
        capfd.readouterr()
        status = run(arguments, COMMANDS, Program(settings=lambda: settings, clock=Clock()))
        out, err = capfd.readouterr()
        return Said(status, out, err)

    return asked


@pytest.fixture
def used(tmp_path: Path) -> None:
    """What one run of two guards left behind."""
    store = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    looks = LookRepository(store)
    looks.keep(look(sight(), untouchable(), gaps=(gap(),), held={"local_disk": 1}))
    looks.keep_budgets([budget()])
    store.close()


@pytest.mark.usefixtures("used")
def test_the_state_is_told_from_the_ledger_in_words_and_in_the_documented_json(ask: Ask) -> None:
    words, data = ask("report"), ask("report", "--json")

    assert words.status == data.status == Exit.GAPS
    assert "Still wasted, a day: 48.00 USD\n" in words.out
    assert "Not seen: 1\n" in words.out
    jsonschema.validate(json.loads(data.out), SCHEMA)
    assert json.loads(data.out)["live"] is False


@pytest.mark.usefixtures("used")
def test_the_page_is_written_whole_in_the_language_asked_for(ask: Ask, tmp_path: Path) -> None:
    said = ask("report", "--html", str(tmp_path / "report.html"), "--lang", "zh")

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert "每台机器的繁忙程度" in page
    assert page.count("<svg") == 3
    assert f"报告已写入 {tmp_path / 'report.html'}" in said.out


@pytest.mark.usefixtures("used")
def test_one_owners_part(ask: Ask) -> None:
    part = json.loads(ask("report", "--owner", "platform", "--json").out)
    assert [machine["owner"] for machine in part["machines"]] == ["platform"]

    unknown = ask("report", "--owner", "nobody")
    assert unknown.status == Exit.BAD_INPUT
    assert "nothing is known of 'nobody'; there is platform, vision" in unknown.err


def test_what_cannot_be_is_said_before_anything_is_read(ask: Ask, tmp_path: Path) -> None:
    no_folder = ask("report", "--html", str(tmp_path / "no" / "report.html"))
    assert (no_folder.status, "cannot be written" in no_folder.err) == (Exit.BAD_INPUT, True)

    no_ledger = ask("report")
    assert (no_ledger.status, "no ledger is there" in no_ledger.err) == (Exit.BAD_INPUT, True)
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.usefixtures("used")
def test_a_digest_is_shown_then_told_and_kept_then_told_no_more(ask: Ask, tmp_path: Path) -> None:
    shown = ask("digest", "--dry-run")
    assert "Not sent; this is what would be told:" in shown.out
    assert "To slack:#gpu-costs" in shown.out
    assert not (tmp_path / "reports").exists()

    told = json.loads(ask("digest", "--json").out)
    kept = Path(told["kept_at"])
    assert told["pages_kept"] == 1
    assert kept.read_bytes().startswith(b"<!doctype html>")
    assert kept.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

    assert "This digest was sent before; nothing was sent again." in ask("digest").out
