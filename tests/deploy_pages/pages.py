"""A page of docs/ followed as a reader would: its blocks typed into one terminal, its values filled in, nothing else.

`blocks(page)` reads what stands between fences. `followed(page, stage, tree)` plays every one of them in a copy of the
tree: what bash runs in a `Terminal`, assignments of Terraform's variables into `terraform.tfvars`. A stage says what a
reader fills in (`replacing`), what cannot be played (`skipped`), and does what the prose between blocks asks for.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<language>[\w-]*)\s*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ASSIGNMENT = re.compile(r"([a-z_]+)\s+=\s")  # of Terraform: bash takes no space there
_PATIENCE_SECONDS = 600
_END = "\x04"  # what a terminal makes the end of input
_SESSION = """\
trap 'status=$?; declare -p > "$0/state"; pwd > "$0/folder"; exit $status' EXIT
if [ -e "$0/state" ]; then . "$0/state" 2> /dev/null || true; cd "$(cat "$0/folder")"; fi
. "$0/block"
"""


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences: `line` is where its text begins, `language` the word after the fence."""

    line: int
    text: str
    heading: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a block: what it ended with, and standard output and error together."""

    status: int
    output: str


class Stage(Protocol):
    """One cloud, as far as a page needs it."""

    @property
    def url(self) -> str:
        """Where the sandbox is."""

    @property
    def environ(self) -> Mapping[str, str]:
        """What a reader's terminal knows before the first block."""

    @property
    def replacing(self) -> Mapping[str, str]:
        """A value of the page that a reader must fill in, and what is filled in; each must occur in a block."""

    @property
    def skipped(self) -> Mapping[str, str]:
        """How a block begins that cannot be played, and why not; each must be the beginning of one."""

    @property
    def variables(self) -> str:
        """Where the page has `terraform.tfvars` stand, in the tree."""

    def before(self, block: Block, terminal: Terminal) -> str:
        """Do what the prose before a block asks for; what is typed where the block's commands ask something."""

    def after(self, block: Block, played: Played, terminal: Terminal) -> Iterator[str]:
        """What is wrong with what came of a block. Afterwards do what the prose behind it asks for."""


def blocks(page: Path) -> tuple[Block, ...]:
    """Every fenced block of a page, in order."""
    found: list[Block] = []
    heading, marks, language, first, lines = "", "", "", 0, list[str]()
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.fullmatch(line)
        if marks and line.strip() == marks:
            found.append(Block(first, "".join(f"{each}\n" for each in lines), heading, language))
            marks = ""
        elif marks:
            lines.append(line)
        elif fence is not None:
            marks, language, first, lines = fence["marks"], fence["language"], number + 1, []
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()
    return tuple(found)


class Terminal:
    """A bash that stays open: variables and folder are carried from block to block, functions and options are not.

    `environ` is all that the first block knows; it begins in `folder`. What is typed comes from a terminal of its own,
    so that programs ask as they ask a person.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = dict(environ)
        self.folder = folder
        self._session = TemporaryDirectory(prefix="costguard-terminal-")

    def play(self, block: Block, typed: str = "") -> Played:
        """Run the text of a block by `bash -e -o pipefail`; at a question `typed` is there, and then nothing more."""
        at = Path(self._session.name)
        (at / "block").write_text(block.text, "utf-8")
        ours, theirs = pty.openpty()
        try:
            os.write(ours, (typed + 8 * _END).encode())
            running = subprocess.Popen(  # noqa: S603 - the page's own commands
                ["/bin/bash", "-e", "-o", "pipefail", "-c", _SESSION, str(at)],
                cwd=self.folder,
                env=self._environ,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            try:
                output, _ = running.communicate(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                output, _ = running.communicate()
                return Played(124, f"{output}\nended after {_PATIENCE_SECONDS} seconds")
        finally:
            os.close(theirs)
            os.close(ours)
        return Played(running.returncode, _COLOUR.sub("", output))

    def close(self) -> None:
        """Forget what was carried."""
        self._session.cleanup()


def followed(page: Path, stage: Stage, tree: Path) -> Iterator[str]:
    """What is wrong with following `page` in `tree`; ends at the first block that fails, as a reader would."""
    there = blocks(page)
    unused = set(stage.replacing) | set(stage.skipped)
    terminal = Terminal(stage.environ, tree)
    try:
        for block in there:
            where = f"{page.name}:{block.line}"
            skipped = next((start for start in stage.skipped if block.text.startswith(start)), None)
            if skipped is not None:
                unused.discard(skipped)
                _say(f"{where}: not played: {stage.skipped[skipped]}")
                continue
            filled, used = _filled(block, stage.replacing)
            unused -= used
            began = time.monotonic()
            typed = stage.before(filled, terminal)
            if is_variables(filled):
                assign(tree / stage.variables, filled.text)
                played = Played(0, "")
            else:
                played = terminal.play(filled, typed)
            _say(f"{where}: {first_line(block)} ({time.monotonic() - began:.1f} s)")
            if played.status:
                yield f"{where}: ended with {played.status}:\n{block.text}{played.output[-4000:]}"
                return
            yield from (f"{where}: {problem}" for problem in stage.after(filled, played, terminal))
    finally:
        terminal.close()
    yield from (f"{page.name}: nothing there to fill in or to skip begins or reads {each!r}" for each in sorted(unused))


def is_variables(block: Block) -> bool:
    """Whether it assigns Terraform's variables rather than being for bash."""
    return block.language in {"hcl", "terraform", "tfvars"} or _ASSIGNMENT.match(block.text) is not None


def assign(file: Path, text: str) -> None:
    """Write assignments into a file of variables: one that stands there already is replaced, as an editor would."""
    kept = _assignments(file.read_text("utf-8")) if file.exists() else {}
    kept |= _assignments(text)
    file.write_text("".join(kept.values()), "utf-8")


def unassign(file: Path, name: str) -> None:
    """Take an assignment out again.

    Raises:
        KeyError: it is not there.
    """
    kept = _assignments(file.read_text("utf-8"))
    del kept[name]
    file.write_text("".join(kept.values()), "utf-8")


def _assignments(text: str) -> dict[str, str]:
    """Variable → its lines."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        begun = _ASSIGNMENT.match(line)
        if begun is not None:
            name = begun[1]
            found[name] = ""
        if name:
            found[name] += line
    return found


def first_line(block: Block) -> str:
    """How a block is called where it is told of."""
    first, *more = block.text.splitlines() or [""]
    return f"{first} …" if more else first


def _filled(block: Block, replacing: Mapping[str, str]) -> tuple[Block, set[str]]:
    used = {value for value in replacing if value in block.text}
    text = block.text
    for value in sorted(used, key=len, reverse=True):
        text = text.replace(value, replacing[value])
    return replace(block, text=text), used


@contextmanager
def tree_copy() -> Iterator[Path]:
    """The files that belong to the project, as they are now, in a folder that is gone afterwards."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git of whoever asks
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    with TemporaryDirectory(prefix="costguard-followed-") as name:
        root = Path(name) / "costguard"
        for each in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / each).is_file():  # one that is deleted and not yet committed is not
                (root / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / each, root / each, follow_symlinks=False)
        yield root


def fresh_venv(folder: Path, python: str = sys.executable) -> Mapping[str, str]:
    """A virtual environment of its own with nothing but pip in it; what a terminal knows that has activated it."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)  # noqa: S603 - the interpreter of these checks
    return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def kept_environ(dropped: Sequence[str]) -> dict[str, str]:
    """The environment of this process without variables that begin with one of these."""
    return {name: value for name, value in os.environ.items() if not name.startswith(tuple(dropped))}


def _say(line: str) -> None:
    sys.stdout.write(f"  {line}\n")
    sys.stdout.flush()
