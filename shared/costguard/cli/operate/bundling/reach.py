"""Which modules of the package a function can ever import, those inside functions included: nothing else ships."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from costguard.guards import IDLE_GPU

_PACKAGE = "costguard"
_FROM = re.compile(r"^[ \t]*from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+(?P<names>[^\n#]*)", re.MULTILINE)
_WORDS = re.compile(r"[\w.]+")
_REMARK = re.compile(r"#[^\n]*")
_ALWAYS = ("costguard.faas.container",)  # what an image starts in place of a host's own runtime

_BESIDE = {f'build_handler("{IDLE_GPU}")': "costguard.faas.phases"}
"""What else the bundle of a function is deployed as: the phases of a run, each with a handler setting of its own."""


def modules_of(package: Path) -> Mapping[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (_PACKAGE, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def reached(package: Path, handler: str) -> Mapping[str, Path]:
    """What `handler`, the text of a function's file, leads to, by path inside the zip.

    Imports are read, not run, and none are relative. What is imported for types alone comes along, and does no harm.
    """
    modules = modules_of(package)
    waiting = [*_imported(handler), *_ALWAYS, *(name for mark, name in _BESIDE.items() if mark in handler)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in modules:
            continue
        seen.add(name)
        waiting.append(name.rpartition(".")[0])
        waiting.extend(_imported(modules[name].read_text("utf-8")))
    return {f"{_PACKAGE}/{modules[name].relative_to(package).as_posix()}": modules[name] for name in sorted(seen)}


def _imported(text: str) -> Iterable[str]:
    """By lines rather than by syntax, which takes twenty times as long; a line of a docstring does no harm."""
    for match in _FROM.finditer(text):
        yield match["module"]
        yield from (f"{match['module']}.{name}" for name in _WORDS.findall(_REMARK.sub("", match["names"])))
    for match in _IMPORT.finditer(text):
        yield from _WORDS.findall(match["names"])
