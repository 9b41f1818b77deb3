"""What mutmut leaves alone: the values written outside functions, such as how long a call may stay without effect.

Each number, string, True and False of a module's or a class's own assignments is changed once, and the tests
run in a process of their own.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, MutationRunError, Progress, environment, one_line

MODULE = "<module>"
_LONGEST_SECONDS = 120  # the tests take two
_PASSED, _FAILED, _NOT_COLLECTED = 0, 1, 2  # pytest's exit codes


@dataclass(frozen=True)
class _Change:
    owner: str
    line: str
    becomes: str
    text: str


def run_outside(folder: Path, modules: Iterable[str], progress: Progress) -> list[Mutant]:
    """Every changed value of `modules`, judged in the copy in `folder`, which is left as it was.

    Raises:
        MutationRunError: the tests fail without a change, or do not see one: then no verdict means anything.
    """
    _prove(folder)
    judged = []
    for module in modules:
        path = folder / "src/costguard" / module
        original = path.read_text("utf-8")
        for change in _changes(original):
            path.write_text(change.text, "utf-8")
            status = _status(folder)
            survived = status != "killed"
            judged.append(
                Mutant(module, change.owner, status, change.line, change.becomes)
                if survived
                else Mutant(module, change.owner, status)
            )
            progress(f"{len(judged)} outside functions")
        path.write_text(original, "utf-8")
    return judged


def _prove(folder: Path) -> None:
    """The tests pass on this copy, and it is this copy that they test."""
    if _status(folder) != "survived":
        raise MutationRunError("the tests fail without any change")
    entrance = folder / "src/costguard/cases/__init__.py"
    original = entrance.read_text("utf-8")
    entrance.write_text("raise ImportError('planted')\n", "utf-8")
    if _status(folder) != "killed":
        raise MutationRunError("the tests run on another copy of the package")
    entrance.write_text(original, "utf-8")


def _changes(text: str) -> Iterator[_Change]:
    module = ast.parse(text)
    owners: list[ast.Module | ast.ClassDef] = [module]
    owners += [node for node in module.body if isinstance(node, ast.ClassDef)]
    for owner in owners:
        for statement in owner.body:
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not _is_value(statement):
                continue
            for node in ast.walk(statement.value or statement):
                if isinstance(node, ast.Constant) and (other := _other(node.value)) is not None:
                    changed = _replaced(text, node, other)
                    again = next(each for each in ast.walk(ast.parse(changed)) if _begins_at(each, statement))
                    yield _Change(
                        owner.name if isinstance(owner, ast.ClassDef) else MODULE,
                        one_line(ast.get_source_segment(text, statement) or ""),
                        one_line(ast.get_source_segment(changed, again) or ""),
                        changed,
                    )


def _is_value(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Not what is exported, and not the name of a type."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    exported = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
    return not exported and not isinstance(statement.value, ast.Subscript)


def _other(value: object) -> str | None:
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, (int, float)):
        return repr(value + 1)
    return repr(f"XX{value}XX") if isinstance(value, str) else None


def _replaced(text: str, node: ast.Constant, other: str) -> str:
    lines = text.splitlines(keepends=True)
    line = lines[node.lineno - 1].encode()  # the tree counts bytes
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        message = f"line {node.lineno}: a value over several lines"
        raise MutationRunError(message)
    lines[node.lineno - 1] = (line[: node.col_offset] + other.encode() + line[node.end_col_offset :]).decode()
    return "".join(lines)


def _begins_at(node: ast.AST, statement: ast.stmt) -> bool:
    return isinstance(node, ast.stmt) and (node.lineno, node.col_offset) == (statement.lineno, statement.col_offset)


def _status(folder: Path) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "tests/unit"],
            check=False,
            cwd=folder,
            env={**environment(folder), "PYTHONPATH": str(folder / "src")},
            capture_output=True,
            encoding="utf-8",
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    if done.returncode not in {_PASSED, _FAILED, _NOT_COLLECTED}:
        message = f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}"
        raise MutationRunError(message)
    return "survived" if done.returncode == _PASSED else "killed"
