"""What stands in Terraform's files, read without Terraform: blocks, arguments, and the text of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LABEL = re.compile(r'"([^"]*)"')
_OPENING = {"{": "}", "[": "]", "(": ")"}


class HclError(Exception):
    """A file is not of the form that `terraform fmt` writes; names file and line."""


@dataclass(frozen=True, slots=True)
class Block:
    """`kind "label" { … }`; what a `dynamic` block stands for is told as that block."""

    kind: str
    labels: tuple[str, ...]
    line: int
    arguments: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    def inner(self, kind: str) -> Iterator[Block]:
        """Its own blocks of that kind."""
        return (block for block in self.blocks if block.kind == kind)


def read_folder(folder: Path) -> dict[str, Block]:
    """File name → what stands in it, of every `*.tf` file right in the folder."""
    return {path.name: read_file(path) for path in sorted(folder.glob("*.tf"))}


def read_file(path: Path) -> Block:
    """The whole file as one block.

    Raises:
        HclError: not of that form.
    """
    reader = _Reader(path, path.read_text(encoding="utf-8"))
    return reader.body(Block("file", (path.name,), 1), end="")


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._at = 0

    def body(self, block: Block, *, end: str) -> Block:
        """Everything up to `end`, put into `block`."""
        while True:
            self._skip(" \t\n")
            if self._at >= len(self._text):
                if end:
                    raise self._error("a brace is not closed")
                return block
            if end and self._text[self._at] == end:
                self._at += 1
                return block
            self._entry(block)

    def _entry(self, block: Block) -> None:
        line = self._line()
        name = self._take(_NAME, "a name")[0]
        self._skip(" \t")
        if self._peek() == "=":
            self._at += 1
            start = self._at
            self._value("\n" if block.kind != "one line" else "\n}")
            block.arguments[name] = self._text[start : self._at].strip()
            return
        labels = []
        while self._peek() == '"':
            labels.append(self._take(_LABEL, "a label")[1])
            self._skip(" \t")
        if self._peek() != "{":
            words = f"{name} is neither an argument nor a block"
            raise self._error(words)
        self._at += 1
        inner = self.body(Block(name, tuple(labels), line), end="}")
        if name == "dynamic":
            content = next(inner.inner("content"))
            inner = Block(labels[0], (), line, content.arguments, content.blocks)
        block.blocks.append(inner)

    def _value(self, stops: str) -> None:
        """Past one expression: to the end of its line, brackets and texts being whole."""
        awaited: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if not awaited and sign in stops:
                return
            if sign == '"':
                self._quoted()
                continue
            if sign == "#" or self._text.startswith("//", self._at):
                self._at = self._end_of_line()
                continue
            if self._text.startswith("<<", self._at) and re.match(r"<<-?[A-Z]+\n", self._text[self._at :]):
                raise self._error("write texts of several lines with jsonencode or join: heredocs are not read here")
            if sign in _OPENING:
                awaited.append(_OPENING[sign])
            elif awaited and sign == awaited[-1]:
                awaited.pop()
            self._at += 1
        if awaited:
            raise self._error("a bracket is not closed")

    def _quoted(self) -> None:
        """Past a text in quotes, with whatever `${…}` holds."""
        self._at += 1
        while self._at < len(self._text):
            if self._text[self._at] == "\\":
                self._at += 2
            elif self._text.startswith("${", self._at) and not self._text.startswith("$${", self._at - 1):
                self._at += 2
                self._value("}")
                self._at += 1
            elif self._text[self._at] == '"':
                self._at += 1
                return
            else:
                self._at += 1
        raise self._error("a text is not closed")

    def _skip(self, signs: str) -> None:
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                self._at = self._end_of_line()
            elif self._text[self._at] in signs:
                self._at += 1
            else:
                return

    def _take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            words = f"expected {expected}"
            raise self._error(words)
        self._at = found.end()
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _error(self, words: str) -> HclError:
        return HclError(f"{self._path.name}:{self._line()}: {words}")
