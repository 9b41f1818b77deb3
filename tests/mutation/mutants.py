"""mutmut in a private copy of the tree: every mutant and what became of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]
_MUTMUT = (sys.executable, "-c", "from mutmut.__main__ import cli; cli()")
_RESULT = re.compile(r"^\s*costguard\.(?P<module>[\w.]+)\.(?P<function>[^.]+)__mutmut_\d+: (?P<status>[\w ]+)$")
_PROGRESS = re.compile(r"(\d+/\d+) ")
_CLASS_MARK = "\u01c1"  # mutmut writes `xǁPlanǁcase_of` for a method, `x_advance` for a function


class MutationRunError(Exception):
    """mutmut did not finish: its own output says why."""


@dataclass(frozen=True)
class Mutant:
    """One change to one function; `line` and `becomes` are only read of those that were not killed."""

    module: str
    function: str
    status: str
    line: str = ""
    becomes: str = ""

    @property
    def killed(self) -> bool:
        """Whether a test failed on it; a timeout is no proof and does not count."""
        return self.status == "killed"


def run_mutants(folder: Path, *, processes: int, progress: Progress) -> list[Mutant]:
    """Every mutant of the private copy in `folder`, judged.

    Raises:
        MutationRunError: mutmut is not installed, the tests fail without any mutant, or it was cut short.
    """
    _run(folder, progress, "run", "--max-children", str(processes))
    mutants = [_judged(folder, line) for line in _run(folder, None, "results", "--all", "true").splitlines()]
    found = [mutant for mutant in mutants if mutant is not None]
    if not found or any(mutant.status in {"not checked", "check was interrupted by user"} for mutant in found):
        raise MutationRunError("mutmut judged nothing, or not everything")
    return found


def _judged(folder: Path, line: str) -> Mutant | None:
    matched = _RESULT.match(line)
    if matched is None:
        return None
    function = matched["function"]
    name = function[1:].lstrip(_CLASS_MARK).replace(_CLASS_MARK, ".") if _CLASS_MARK in function else function[2:]
    mutant = Mutant(matched["module"].replace(".", "/") + ".py", name, matched["status"])
    if mutant.killed:
        return mutant
    key = line.strip().partition(": ")[0]
    removed, added = _change(_run(folder, None, "show", key))
    return Mutant(mutant.module, name, mutant.status, removed, added)


def _change(diff: str) -> tuple[str, str]:
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    removed, added = (one_line(" ".join(line[1:] for line in lines if line[:1] == sign)) for sign in "-+")
    return removed, added


def one_line(text: str) -> str:
    """Source without its line breaks and indents."""
    return " ".join(text.split())


def environment(folder: Path) -> dict[str, str]:
    """Nothing of whoever starts the run reaches the tests."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "PYTHONHASHSEED": "0",  # the order of sets decides which tests run first, never which run
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }


def _run(folder: Path, progress: Progress | None, *arguments: str) -> str:
    with subprocess.Popen(  # noqa: S603 - our own interpreter, fixed arguments
        [*_MUTMUT, *arguments],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        said = "".join(_told(process, progress))
    if process.returncode != 0:
        message = f"mutmut {' '.join(arguments)} ended with {process.returncode}:\n{said[-3000:]}"
        raise MutationRunError(message)
    return said


def _told(process: subprocess.Popen[str], progress: Progress | None) -> Iterator[str]:
    if process.stdout is None:
        return
    for line in process.stdout:  # universal newlines: each `\r` of its counter ends a line
        matched = _PROGRESS.search(line)
        if progress is not None and matched is not None:
            progress(matched[1])
        yield line
