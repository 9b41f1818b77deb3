"""Planted bugs: modules of costguard loaded with a guard taken out, inside the process that hunts for it.

Nothing in the shipped code knows of this. A fresh process installs the edits before it imports costguard;
an edit whose text is not found exactly once is an error, so that the list cannot rot.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType


class PlantError(Exception):
    """The text to replace is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """In `module`, `old` becomes `new`."""

    module: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug by name, the NEVER rules it offends, and its edits.

    With `months` stories of budgets hunt for it, with `settings` stories of keys and networks, with `wires` those over
    the wires.
    Several edits where one guard stands behind another: each alone would be caught by the next.
    """

    name: str
    rules: tuple[int, ...]
    edits: tuple[Edit, ...]
    months: bool = False
    settings: bool = False
    wires: bool = False

    @property
    def family(self) -> str:
        """The letter of the stories that hunt for it."""
        return "b" if self.months else "s" if self.settings else "w" if self.wires else ""


def edited(source: str, edits: Sequence[Edit]) -> str:
    """The source with its edits made.

    Raises:
        PlantError: a text is not there, or more than once.
    """
    for edit in edits:
        found = source.count(edit.old)
        if found != 1:
            message = f"{edit.module}: {edit.old!r} is there {found} times, not once"
            raise PlantError(message)
        source = source.replace(edit.old, edit.new)
    return source


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, edits: Sequence[Edit]) -> None:
        super().__init__(name, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        """Compiled from the edited source; never cached."""
        path = self.get_filename(fullname)
        source = edited(self.get_data(path).decode(), self._edits)
        code: CodeType = compile(source, path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec with our loader for the modules to edit."""
        mine = [edit for edit in self._edits if edit.module == fullname]
        if not mine:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            spec.origin,
            loader=_Loader(fullname, spec.origin, mine),
            submodule_search_locations=spec.submodule_search_locations,
        )


def plant(bug: Bug) -> None:
    """Make every later import see the edits.

    Raises:
        PlantError: one of the modules is imported already.
    """
    for edit in bug.edits:
        if edit.module in sys.modules:
            message = f"{edit.module} is imported already: plant in a fresh process"
            raise PlantError(message)
    sys.meta_path.insert(0, _Finder(bug.edits))
