"""The survivors that people have explained, the last run, and whether both still say the truth."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, one_line
from tests.mutation.outside import MODULE
from tests.mutation.tree import HERE, sources

SURVIVORS = HERE / "survivors.json"
LAST_RUN = HERE / "last_run.json"
MOST_EXPLAINED_PERCENT = 5
LEAST_KILLED_PERCENT = 95

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Survivor:
    """A change that no test notices, and why it cannot matter. `times`: so often, in the same words."""

    module: str
    function: str
    line: str
    becomes: str
    why: str
    times: int = 1

    @property
    def key(self) -> Key:
        """What it is known by from run to run: its words, never a number."""
        return (self.module, self.function, self.line, self.becomes)


def explained(path: Path = SURVIVORS) -> list[Survivor]:
    """The list as people wrote it."""
    return [Survivor(**entry) for entry in json.loads(path.read_text("utf-8"))["explained"]]


def last_run(path: Path = LAST_RUN) -> dict[str, Any]:
    """The figures of the last whole run; empty where there was none."""
    recorded: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return recorded


def differences(mutants: Iterable[Mutant], known: Sequence[Survivor]) -> tuple[list[Key], list[Key]]:
    """Survivors that nobody has explained, and explanations of what no longer survives."""
    found = Counter((m.module, m.function, m.line, m.becomes) for m in mutants if not m.killed)
    listed = Counter({survivor.key: survivor.times for survivor in known})
    return sorted((found - listed).elements()), sorted((listed - found).elements())


def stale(known: Sequence[Survivor]) -> list[str]:
    """Entries that no longer fit the source, each with what is wrong."""
    return [f"{each.module} {each.function}: {why}" for each in known if (why := _misfit(each))]


def _misfit(survivor: Survivor) -> str:
    path = sources().get(survivor.module)
    if path is None:
        return "there is no such module"
    text = _function(path, survivor.function)
    if text is None:
        return "there is no such function"
    if one_line(text).count(survivor.line) < survivor.times:
        return f"the line is gone: {survivor.line}"
    return "" if survivor.why.strip() and survivor.line != survivor.becomes else "it explains nothing"


def _function(path: Path, name: str) -> str | None:
    """The source of `function`, `Class`, `Class.method` or the whole module."""
    text = path.read_text("utf-8")
    if name == MODULE:
        return text
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        inside = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)) and child.name == part
        ]
        if not inside:
            return None
        node = inside[0]
    return ast.get_source_segment(text, node)
