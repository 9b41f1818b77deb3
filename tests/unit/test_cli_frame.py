"""The frame of the command line: exit statuses, errors, JSON, and what is not loaded at start."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from costguard.cli import main as program
from costguard.cli.exits import MEANINGS, Exit
from costguard.cli.main import run
from costguard.cli.output import CommandResult, emit, print_table, safe, to_json
from costguard.cli.program import Program
from costguard.cli.progress import shard_progress, waiting
from costguard.cli.wrapping import cells, wrapped
from costguard.domain.errors import InvalidInputError, LedgerError, StalePlanError
from costguard.report.tables import Column, Table
from costguard.settings import Settings, load_settings

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
ROOT = Path(__file__).parents[2]


def _leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    commands = getattr(command, "commands", {})
    if not commands or command.invoke_without_command:
        yield path, command
    for name, child in commands.items():
        yield from _leaves(child, f"{path} {name}")


HEAVY = ("pydantic", "boto3", "botocore", "sqlalchemy", "slack_sdk", "aws_lambda_powertools", "moto", "rich", "ruamel")


def test_every_exit_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


def test_the_documentation_lists_every_exit_status_as_it_is() -> None:
    text = DOCS.read_text(encoding="utf-8")

    for status in MEANINGS:
        assert f"\n| {status.value} | " in text


@pytest.mark.release
def test_the_page_says_of_every_exit_status_what_the_help_says() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [meaning for status, meaning in MEANINGS.items() if f"| {status.value} | {meaning} |" not in text] == []


def test_help_tells_every_exit_status(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == Exit.OK

    out = capfd.readouterr().out
    assert all(f"{status.value:5} {meaning}" in out for status, meaning in MEANINGS.items())


def test_nothing_heavy_is_imported_at_start() -> None:
    """`costguard scan` pays only for what it uses: a start imports no SDK, no validation and no table drawing."""
    script = "import sys, costguard.cli.main; print(*sys.modules)"

    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - fixed text, our interpreter
    loaded = done.stdout.split()

    assert [name for name in HEAVY if name in loaded] == []


SCAN = """
import sys
from costguard.cli.main import run
status = run(["scan", "--region", "us-east-1"])
ours = [module for name, module in sys.modules.items() if name.startswith("costguard.")]
named = {str(getattr(thing, "__module__", "")).partition(".")[0] for module in ours for thing in vars(module).values()}
print(int(status), sorted(set(sys.argv[1:]) & set(sys.modules)), "pydantic" in named)
"""


def test_a_scan_imports_nothing_it_does_not_need_up_to_its_first_request() -> None:
    """Nothing answers at the address, so that it ends there. Typer itself may load pydantic; we do not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{closed}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    needless = [name for name in HEAVY if name not in {"pydantic", "boto3", "botocore"}]

    command = [
        sys.executable,
        "-c",
        SCAN,
        *needless,
        "boto3",
        "botocore",
        "costguard.engine.run.run",
        "costguard.report.waste.views",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - as above

    assert done.stdout.split("\n")[0] == "3 ['botocore'] False"
    assert done.stderr.startswith("costguard: nothing could be read\naws: accounts not read (did not answer): ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInputError("policy.yaml:3:1: wrong"), Exit.BAD_INPUT),
        (StalePlanError("the fleet changed"), Exit.REFUSED),
        (LedgerError("no connection"), Exit.UNAVAILABLE),
    ],
)
def test_an_error_is_told_on_standard_error_with_its_own_status(
    error: Exception, status: Exit, capfd: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise error

    assert run([], app) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"costguard: {error}\n"


def test_a_fault_of_the_program_is_not_hidden() -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run([], app)


def test_an_unknown_option_is_bad_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", "--nonsense"]) == Exit.BAD_INPUT

    assert "--nonsense" in capfd.readouterr().err


def test_the_version_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == Exit.OK

    assert capfd.readouterr().out.startswith("costguard ")


def test_json_stays_json_whatever_the_cloud_said() -> None:
    """C1 controls and bidi marks are escaped, so that a terminal shows them and does not obey them."""
    hostile = "\x1b[2J\x9b31m\u202e训练"

    text = to_json({"name": hostile})

    assert json.loads(text) == {"name": hostile}
    assert not any(mark in text for mark in "\x1b\x9b\u202e")
    assert "训练" in text


@given(st.text())
def test_any_text_survives_json(text: str) -> None:
    assert json.loads(to_json({"text": text})) == {"text": text}


def test_carets_stay_under_their_mistake() -> None:
    assert safe("file.yaml:1:5: wrong\n    a: \x1b[31mb\n       ^") == "file.yaml:1:5: wrong\n    a: b\n       ^"


def test_people_get_lines_and_tables_and_markup_in_names_is_only_text(capfd: pytest.CaptureFixture[str]) -> None:
    table = Table("Idle", (Column("name", "Name"), Column("cost", "Cost", numeric=True)), (("[red]x[/red]", "1.00"),))

    with pytest.raises(typer.Exit) as ended:
        emit(CommandResult({}, ("first",), (table,), ("last",), Exit.DUE), as_json=False)

    out = capfd.readouterr().out
    assert ended.value.exit_code == 10
    assert out.startswith("first\n")
    assert out.endswith("last\n")
    assert "[red]x[/red]" in out
    assert "\x1b" not in out


def test_long_cells_are_told_row_by_row_where_the_page_is_narrow(capfd: pytest.CaptureFixture[str]) -> None:
    """What would be a column of three letters becomes lines; an empty column is left out."""
    columns = tuple(Column(key, key.title()) for key in ("name", "owner", "empty", "cost", "why", "more"))
    why = "the owner has said that it is needed until the end of the month"
    table = Table("Idle", columns, (("notebook", "vision", "", "1.00", why, why),))
    console = Console(width=60, force_terminal=True)

    print_table(console, table)

    lines = capfd.readouterr().out.splitlines()
    assert lines[2:] == [
        " notebook",
        "   Owner vision · Cost 1.00",
        "   Why: the owner has said that it is needed until the end",
        "     of the month",
        "   More: the owner has said that it is needed until the end",
        "     of the month",
        "",
    ]


@given(st.lists(st.text(alphabet="ab训练", max_size=9)).map(" ".join), st.integers(20, 80))
def test_wrapping_loses_nothing_and_keeps_to_the_page(text: str, width: int) -> None:
    lines = list(wrapped(text, "", 0, width))

    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cells(line) <= width for line in lines)


def test_a_mark_never_begins_a_line_and_an_opening_one_never_ends_it() -> None:
    lines = list(wrapped("训练任务（练习）。" * 20, "", 0, 21))

    assert not any(line.startswith(("）", "。")) or line.endswith("（") for line in lines)
    assert "".join(lines) == "训练任务（练习）。" * 20


def test_machines_get_only_json(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        emit(CommandResult({"due": []}, ("first",)), as_json=True)

    assert json.loads(capfd.readouterr().out) == {"due": []}


def test_progress_says_nothing_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    with shard_progress("Reading") as step:
        step(1, 2, "aws:111122223333:us-east-1")
    with waiting("Starting"):
        pass

    assert capfd.readouterr() == ("", "")


SHARED = "## Options that commands share"
COMMANDS = tuple(_leaves(typer.main.get_command(program.app), "costguard"))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_every_command_and_option_is_documented_and_nothing_else(path: str, command: Any) -> None:
    """A section each; its rows and those of the shared table are exactly the options there are."""
    text = DOCS.read_text(encoding="utf-8")
    own, shared = _rows(text, f"### `{path}`"), _rows(text, SHARED)
    options = {
        parameter.opts[-1] if parameter.param_type_name == "option" else parameter.metavar
        for parameter in command.params
        if parameter.opts[-1] != "--help"
    }

    assert options - shared == own
    assert own & shared == set()


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_every_example_of_the_help_is_in_the_documentation(path: str, command: Any) -> None:
    text = DOCS.read_text(encoding="utf-8")
    examples = [line.strip() for line in command.epilog.splitlines()[2:]]

    assert examples
    assert all("costguard " in example and example in text for example in examples), path


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_every_command_and_option_explains_itself(path: str, command: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*path.split()[1:], "--help"]) == Exit.OK

    out = capfd.readouterr().out
    assert command.help.splitlines()[0].endswith(".")
    assert all(parameter.help for parameter in command.params)
    assert "Examples:\n" in out


def test_a_wrong_variable_is_told_before_anything_is_done(capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> Settings:
        return load_settings({"COSTGUARD_LANGG": "zh"})

    assert run(["cases"], program=Program(settings=broken)) == Exit.BAD_INPUT
    assert "did you mean COSTGUARD_LANG?" in capfd.readouterr().err


def _rows(text: str, heading: str) -> set[str]:
    """The names in the first column of the option table of a section."""
    section = re.split(r"^##", text.partition(heading + "\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    table = section.partition("| Option | Meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))
